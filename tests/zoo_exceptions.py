"""Zoo: exceptions that are raised, caught, raised again and passed by, and `match`.

Every function is written for one example; nothing here knows that it will be batched.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from program import Collection, integers, numbers, pairs, sequences

zoo = Collection()


class Unfit(ValueError):
    """An error of the program's own."""


@zoo.add(numbers(-2, 2, 2, first=((1.0, 0.0), (2.0, 4.0))), wrt=(0,))
def divides_or_not(x, y):
    try:
        z = x / y
    except ZeroDivisionError:
        z = x * 3.0
    else:
        z = z + 1.0
    return z * y


@zoo.add(numbers(-2, 2, 1, first=((0.0,), (-1.0,))), wrt=(0,))
def takes_roots_or_not(x):
    try:
        y = math.sqrt(x) * 2.0
        y = y + 1.0 / (x - 1.0)
    except ValueError:
        y = x * x
    except ZeroDivisionError:
        y = 7.0
    return y + x


@zoo.add(integers(0, 9, 2))
def catches_in_a_loop(n, k):
    total = 0
    for i in range(n):
        try:
            if i == 4:
                continue
            total += 12 // (k - i)
            if total > 20:
                break
            if total < -40:
                return -1
        except ZeroDivisionError:
            total += 100
    else:
        total = -total
    return total


@zoo.add(pairs(integers(0, 6, 1), numbers(-1, 1, 1)), wrt=(1,))
def raises_out_of_loops(n, x):
    total = x
    try:
        for i in range(n):
            for j in range(i):
                total = total + x * j
                if i * j > 5:
                    raise Unfit(i, j)
                if total > 3.0:
                    raise KeyError("over")
        total = total * 2.0
    except (KeyError, Unfit):
        total = total * x - 1.0
    return total


def _checked(x):
    if x < -1.0:
        raise Unfit(f"{x} is below")
    return math.log(x + 1.5)


@zoo.add(numbers(-2, 2, 2, first=((-1.9, 1.0), (-1.75, 0.0))), wrt=(0, 1))
def catches_around_calls(x, y):
    try:
        a = _checked(x)
        b = _checked(y) * a
    except Unfit:
        a, b = x, 0.5
    return a * b + y


def _factorial(n, x):
    if n < 0:
        raise Unfit("negative")
    if n > 6:
        raise OverflowError("too large")
    if n == 0:
        return x
    return n * _factorial(n - 1, x + 1.0)


@zoo.add(pairs(integers(-2, 9, 1), numbers(-1, 1, 1)), wrt=(1,))
def catches_around_recursion(n, x):
    try:
        return _factorial(n, x)
    except Unfit:
        return x * 2.0
    except Exception:
        return x


def _halving(n, floor):
    """A handler in every frame of a recursion."""
    if n <= floor:
        raise Unfit("below")
    try:
        return 1 + _halving(n // 2, floor)
    except Unfit:
        if n % 2 == 0:
            raise
        return n


@zoo.add(integers(0, 40, 2, first=((40, 2), (17, 0))))
def passes_exceptions_up(n, floor):
    try:
        return _halving(n, floor)
    except Unfit:
        return -n


@zoo.add(integers(-1, 6, 2, first=((2, 0), (0, 3))))
def cleans_up(n, k):
    log = 0
    try:
        try:
            log = log * 10 + 1
            log = log + 6 // n
        except ZeroDivisionError:
            log = log * 10 + 2
            log = log + 6 // k
        finally:
            log = log * 10 + 3
        if k == 2:
            return log
    except ZeroDivisionError:
        log = log * 10 + 4
    finally:
        log = log * 10 + 5
    return log


@zoo.add(integers(-1, 6, 2))
def finally_in_loops(n, k):
    log = 1
    for i in range(6):
        try:
            if i == n:
                continue
            if i == k:
                break
            log = log * 2 + 6 // (i - 1)
        except ZeroDivisionError:
            log = log + 100
        finally:
            log = log + i
    return log


@zoo.add(sequences(0, 6), wrt=(0,))
def looks_up_or_not(xs):
    total = 0.5
    for k in range(4):
        try:
            total = total + xs[2 * k] * k
        except IndexError:
            total = total * 0.5
    return total


def _lists(rng, size):
    return [([int(v) for v in rng.integers(-3, 4, rng.integers(0, 5))], int(rng.integers(-6, 6))) for _ in range(size)]


@zoo.add(_lists)
def looks_into_lists(xs, k):
    try:
        return 10 // xs[k]
    except (IndexError, ZeroDivisionError):
        return -1


@zoo.add(numbers(0, 800, 1, first=((709.0,), (710.0,))), wrt=(0,))
def overflows_or_not(x):
    try:
        return math.exp(x) * 1e-300
    except OverflowError:
        return -x


@zoo.add(numbers(-2, 2, 1), wrt=(0,))
def ignores_flags(x):
    with np.errstate(divide="ignore", invalid="ignore"):
        y = np.sqrt(np.abs(x)) * 2.0
    return y


# ------------------------------------------------------------------------------------------------- that raise
@zoo.add(integers(0, 9, 2, first=((3, 1), (4, 2))), raises=True)
def raises_again(n, k):
    total = 0
    try:
        total = n // (k - 1)
        total += 7 % (n - 4)
    except ZeroDivisionError:
        if n == 3:
            total = 1000
        else:
            raise
    return total


@zoo.add(numbers(-2, 2, 1, first=((0.5,), (1.0,))), raises=True)
def raises_with_values(x):
    if x < 0:
        raise Unfit(f"negative input {x} or {x:.3f} or {int(x * 10)!r:>5}", x)
    assert x != 1.0, f"{x=}"
    return x


@zoo.add(integers(-3, 4, 1, first=((1,),)), raises=True)
def is_not_caught(n):
    try:
        return 5 // n + math.sqrt(n)
    except KeyError:
        return 0
    finally:
        n = 0


@zoo.add(integers(-3, 4, 1, first=((1,),)), raises=True)
def raises_another(n):
    try:
        return 5 // n
    except ZeroDivisionError as error:
        raise Unfit("not zero") from error


# ------------------------------------------------------------------------------------------------- match
@dataclass
class Circle:
    radius: float


@dataclass
class Box:
    width: float
    height: float


class Lit:
    __match_args__ = ("value",)

    def __init__(self, value):
        self.value = value


class Two:
    __match_args__ = ("op", "left", "right")

    def __init__(self, op, left, right):
        self.op, self.left, self.right = op, left, right


def _expression(rng, depth):
    if depth == 0 or rng.random() < 0.3:
        return Lit(float(rng.normal()))
    op = ("add", "mul", "neg")[int(rng.integers(0, 3))]
    right = None if op == "neg" else _expression(rng, depth - 1)
    return Two(op, _expression(rng, depth - 1), right)


@zoo.add(lambda rng, size: [(_expression(rng, k % 4),) for k in range(size)], wrt=(0,))
def matches_trees(e):
    match e:
        case Lit(v):
            return v
        case Two("neg", inner, None):
            return -matches_trees(inner)
        case Two(op="add", left=a, right=b):
            return matches_trees(a) + matches_trees(b)
        case Two("mul", Lit(value=v) as lit, b) if v > 0.0:
            return lit.value * matches_trees(b) * 0.5
        case _:
            return matches_trees(e.left) * matches_trees(e.right)


@zoo.add(integers(-2, 9, 1))
def matches_numbers(n):
    match n:
        case 0 | 1:
            return 10
        case 2:
            return 20
        case k if k < 0:
            return k * 3
        case int(k):
            return k + 1
        case _:
            return -1


@zoo.add(pairs(integers(0, 4, 1), numbers(-2, 2, 2)), wrt=(1, 2))
def matches_shapes(n, x, y):
    if n == 0:
        shape = Circle(x)
    elif n == 1:
        shape = Box(x, y)
    elif n == 2:
        shape = (x, y)
    else:
        shape = None
    match shape:
        case Circle(radius=r):
            return r * r * 3.0
        case Box(w, h):
            return w * h
        case (a, b):
            return a + b * b
        case None:
            return y
    return 0.0


@zoo.add(numbers(-2, 2, 3), wrt=(0, 1, 2))
def matches_sequences(x, y, z):
    total = 0.0
    for row in ((x, y, z), (x, y), [x], (), ("op", x)):
        match row:
            case ["op", v]:
                total = total + v * 5.0
            case [a, *_, c]:
                total = total + a * c
            case [a]:
                total = total - a
            case []:
                total = total * 2.0
    match {"kind": "pair", "x": x, "y": y}:
        case {"kind": "one", "x": a}:
            total = total + a
        case {"kind": "pair", "x": a, "y": b}:
            total = total + a * b
    return total
