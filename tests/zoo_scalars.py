"""Zoo: branches, guards, kinds of numbers and exceptions, on scalars.

Every function is written for one example; nothing here knows that it will be batched.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from program import Collection, Rng, integers, numbers, pairs, sequences

zoo = Collection()

RATE = 0.35
STEPS = 3
WEIGHTS = np.array([0.5, -1.25, 2.0])


@zoo.add(numbers(-3, 3, first=((0.0,), (1.0,))), wrt=(0,))
def three_ways(x):
    if x < -1.0:
        y = x * x + 1.0
    elif x < 1.0:
        y = 2.0 * x
    else:
        y = x * x * x - 1.0
    return y * 0.5


@zoo.add(numbers(-3, 3, 2), wrt=(0, 1))
def returns_early(x, y):
    if x > y:
        return x - y * y
    z = x * y
    if z > 1.0:
        return z
    z = z - 5.0
    return z * x


@zoo.add(numbers(-2, 2, 2, first=((1.0, 0.0), (0.0, 0.0))), wrt=(0,))
def divides_if_it_can(x, y):
    r = x
    if y != 0:
        r = x / y
    return r * r + x


@zoo.add(numbers(-2, 3, first=((0.0,), (-1.0,))), wrt=(0,))
def roots_and_logarithms_of_positives(x):
    if x > 0:
        return math.sqrt(x) + np.log(x) + np.sqrt(x + 1.0)
    return 1.0 - x


@zoo.add(pairs(sequences(0, 6), integers(-2, 7)), wrt=(0,))
def reads_where_the_index_fits(xs, k):
    if 0 <= k < len(xs) and xs[k] > 0.0:
        return xs[k] * 2.0
    return -1.0


@zoo.add(integers(-3, 4, 3, first=((0, 0, 0), (1, 1, 2))))
def compares_in_chains(a, b, c):
    if a < b <= c:
        return 1
    if a == b == c:
        return 2
    return 3 if c > a != b else 4


@zoo.add(integers(-2, 3, 2, first=((0, 0),)))
def combines_conditions(a, b):
    r = 0
    if not (a > 0 or b > 0) and a != b:
        r = 1
    if a > 0 and (b < 0 or a == 2):
        r += 10
    return r, a > b, not a == b


@zoo.add(pairs(numbers(-2, 2), integers(0, 2)), wrt=(0,))
def chooses_in_an_expression(x, flag):
    y = x * 2.0 if x > 0 else -x
    return y * (1.5 if flag == 1 else 3.0)


@zoo.add(integers(-20, 20, 2, first=((7, 0), (-7, 2), (7, -2))))
def computes_with_integers(a, b):
    if b == 0:
        return a, a * a, -a, 0
    return a // b, a % b, (a - b) * 3 + a**2, abs(a) - (b > 0)


def _kinds(rng: Rng, size: int) -> list[tuple[Any, ...]]:
    return [(np.float32(rng.normal()), int(rng.integers(0, 4)), float(rng.normal())) for _ in range(size)]


@zoo.add(_kinds, float32=True)
def keeps_the_kinds_of_numbers(x, n, y):
    return x * 2.0 + 1, n * 2, n / 2, x + n, y * n, np.float64(x) * y, n > 1


@zoo.add(integers(-4, 5, first=((0,), (1,))))
def binds_a_name_in_one_branch(x):
    if x > 0:
        t = x * 3
    y = 1
    if x > 0:
        y = t + 1
    return y


@zoo.add(numbers(-1, 1, 2, first=((float("nan"), 1.0), (float("inf"), 2.0), (float("-inf"), -1.0))), wrt=(1,))
def lets_a_nan_pass(x, y):
    if x > 0.5:
        return x * 0.0 + y
    if x == x:
        return y * y
    return x + y


@zoo.add(numbers(-2, 2, 3), wrt=(0, 1, 2))
def unpacks_tuples(a, b, c):
    pair = (a, b * c)
    (u, v), w = pair, c
    u, v, w = w, u, v
    return u * 2.0 - v, (w, u + w)


def _polar(x, y):
    return math.hypot(x, y), math.atan2(y, x)


def _scaled(x, by=2.0):
    return x * by


@zoo.add(numbers(0.5, 2, 2), wrt=(0, 1))
def calls_helper_functions(x, y):
    r, angle = _polar(x, y)
    return _scaled(r) + _scaled(angle, by=0.25) * _scaled(x)


@zoo.add(numbers(-2, 2), wrt=(0,))
def names_globals(x):
    for _ in range(STEPS):
        x = x + RATE * math.cos(x) + WEIGHTS[1]
    return x * WEIGHTS[0]


@zoo.add(numbers(-5, 5, 3), wrt=(0, 1, 2))
def takes_extremes_of_numbers(a, b, c):
    low, high = min(a, b, c), max(a, b)
    return abs(low) * 2.0 + high * c + max(a, 0.25) - min(b, -0.25)


@zoo.add(numbers(-5, 5, first=((0.0,),)))
def rounds_and_converts(x):
    k = int(x * 3)
    return k, float(k) / 2, bool(k), np.floor(x), np.sign(x), int(np.floor(x)) + k


@zoo.add(numbers(-1, 1, 2, first=((0.0, 1.0),)), wrt=(0, 1))
def uses_the_same_value_twice(x, y):
    z = x + y
    if x > y:
        z = z * z
        x = z
    return x * z + x * x - z


@zoo.add(integers(0, 6, 2, first=((0, 0),)))
def returns_in_both_arms(n, k):
    if n > 3:
        if k > 2:
            return n
        return k
    if k == 0:
        return -1
    return n + k


# ---------------------------------------------------------------------------------------------- exceptions
@zoo.add(numbers(-1, 5, first=((1.0,), (2.0,), (-0.5,))), raises=True)
def raises_for_negatives(x):
    if x < 0:
        raise ValueError("negative")
    return math.sqrt(x)


@zoo.add(integers(0, 3, 2, first=((1, 1), (2, 1), (1, 0))), raises=True)
def divides_by_zero(a, b):
    return a // b + a


@zoo.add(pairs(sequences(1, 4), integers(0, 5)), raises=True)
def reads_past_the_end(xs, k):
    return xs[k]


@zoo.add(numbers(-2, 2, first=((1.0,), (-1.0,))), raises=True)
def takes_the_root_of_a_negative(x):
    return math.sqrt(x)


@zoo.add(integers(0, 100, first=((3,), (80,))), raises=True)
def grows_past_64_bits(n):
    r = 1
    for _ in range(n):
        r = r * 3
    return r


@zoo.add(numbers(0, 1200, first=((1.0,), (2.0,), (1100.0,))), raises=True)
def overflows_the_exponential(x):
    return math.exp(x)


@zoo.add(integers(0, 4, 2, first=((1, 1), (2, 1), (1, 0))), raises=True)
def divides_for_nothing(a, b):
    unused = 5 // (b * 2 % 5)  # noqa: F841
    return a + 1


@zoo.add(integers(0, 9, 2, first=((0, 0), (1, 5), (4, 0))), raises=True)
def raises_in_the_middle_of_a_loop(n, k):
    total = 0
    for i in range(n):
        if i == k + 2:
            raise RuntimeError("met")
        total += 10 // (i - k + 5)
    return total
