"""Zoo: loops whose trip counts differ between examples, zero included."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from program import Collection, Rng, arrays, integers, numbers, pairs, sequences

zoo = Collection()


@zoo.add(integers(1, 60, first=((1,), (27,))))
def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@zoo.add(pairs(numbers(-1, 1), integers(-2, 7, first=((0,), (-1,)))), wrt=(0,))
def multiplies_n_times(x, n):
    r = 1.0
    while n > 0:
        r = r * x + 0.5
        n -= 1
    return r


@zoo.add(pairs(arrays((3, 4)), numbers(-1, 1.5)), wrt=(0,))
def searches_in_two_loops(m, limit):
    total = 0.0
    for i in range(3):
        for j in range(4):
            if m[i, j] > limit + 1.0:
                break
            if total > 2.0:
                return total * 2.0
            total = total + m[i, j] * m[i, j]
        total = total - 0.1
    return total


@zoo.add(sequences(0, 8), wrt=(0,))
def skips_negatives(xs):
    s = 0.0
    n = 0
    for x in xs:
        if x < 0:
            continue
        s = s + x * x
        n += 1
    return s, n


@zoo.add(integers(0, 25, first=((0,),)))
def skips_and_stops(n):
    i = 0
    s = 0
    while i < n:
        i += 1
        if i % 3 == 0:
            continue
        if i % 7 == 0:
            break
        s += i
    return s


@zoo.add(integers(0, 12, 3, first=((5, 0, 2), (0, 5, 1), (3, 3, 1))))
def counts_down_and_up(a, b, step):
    step = step % 3 + 1
    if a > b:
        step = -step
    acc = 0
    for i in range(a, b, step):
        acc = acc * 2 + i
    return acc


@zoo.add(pairs(numbers(-1, 1, 3), integers(0, 6, first=((0,), (1,)))), wrt=(0, 1, 2))
def rotates_loop_variables(a, b, c, n):
    for _ in range(n):
        a, b, c = b, c, a * 0.5 + b
    return a * 2.0 + b - c


@zoo.add(pairs(numbers(-1, 1, 2), integers(0, 5, first=((0,), (3,)))), wrt=(0, 1))
def swaps_loop_variables(x, y, n):
    while n > 0:
        x, y = y, x
        n = n - 1
    return x * 2.0 + y * y


@zoo.add(numbers(0.2, 300, first=((1.0,),)), wrt=(0,))
def newton_root(a):
    x = a
    k = 0
    while True:
        y = 0.5 * (x + a / x)
        k += 1
        if abs(y - x) < 1e-12 * a or k > 60:
            break
        x = y
    return y, k


@zoo.add(numbers(0.1, 5, 1))
def bisects(target):
    low, high = 0.0, 4.0
    while high - low > 1e-6:
        middle = (low + high) / 2.0
        if middle * middle < target:
            low = middle
        else:
            high = middle
    return low


@zoo.add(pairs(numbers(0.2, 4), numbers(0.5, 1.5)), wrt=(1,))
def steps_adaptively(k, y0):
    t, y, h = 0.0, y0, 0.5
    trips = 0
    while t < 1.0 and trips < 200:
        trips += 1
        if t + h > 1.0:
            h = 1.0 - t
        e1 = y + h * (-k * y)
        m = y + 0.5 * h * (-k * y)
        e2 = m + 0.5 * h * (-k * m)
        if abs(e2 - e1) < 1e-2:
            t = t + h
            y = 2.0 * e2 - e1
        else:
            h = 0.5 * h
    return y


@zoo.add(pairs(numbers(1.5, 3), integers(0, 13, first=((0,), (12,), (2,)))), wrt=(0,))
def forgets_an_overflow(x, n):
    y = x
    for _ in range(n):
        y = y * y
    if y > 1e6:
        y = 1.0
    return y * x


def _square(rng: Rng) -> tuple[Any, ...]:
    return (rng.normal(size=(3, 3)) * 0.9,)


@zoo.add(arrays((3,)), share=_square, wrt=(0, 1))
def multiplies_until_small(w, h):
    n = 0
    while np.max(np.abs(h)) > 0.3 and n < 6:
        h = np.tanh(w @ h) * 0.9
        n += 1
    return h, n


def _rnn(rng: Rng) -> tuple[Any, ...]:
    return ({"w": rng.normal(size=(4, 3)) * 0.5, "u": rng.normal(size=(4, 4)) * 0.5, "b": rng.normal(size=4) * 0.5},)


@zoo.add(sequences(0, 6, 3), share=_rnn, wrt=(0, 1))
def recurrent_net(p, xs):
    h = np.zeros(4)
    for x in xs:
        h = np.tanh(p["w"] @ x + p["u"] @ h + p["b"])
    return h


@zoo.add(sequences(1, 6, 3), share=_rnn, wrt=(0, 1))
def gated_net_over_indices(p, xs):
    h = p["b"]
    loss = 0.0
    for t in range(len(xs)):
        z = 1.0 / (1.0 + np.exp(-(p["w"] @ xs[t])))
        h = z * h + (1.0 - z) * np.tanh(p["u"] @ h)
        loss = loss + np.sum(h * h)
    return loss / len(xs)


def _layers(rng: Rng) -> tuple[Any, ...]:
    return ([rng.normal(size=(3, 3)) * 0.8 for _ in range(4)],)


@zoo.add(arrays((3,), scale=0.7), share=_layers, wrt=(1,))
def leaves_layers_early(layers, h):
    for w in layers:
        h = np.tanh(w @ h)
        if np.max(np.abs(h)) < 0.4:
            return h
    return h * 2.0


def _sorted(rng: Rng, size: int) -> list[tuple[Any, ...]]:
    lengths = [0, 1, *rng.integers(0, 30, size)][:size]
    return [(np.sort(rng.normal(size=int(n))), float(rng.normal())) for n in lengths]


@zoo.add(_sorted)
def binary_search(xs, target):
    low, high = 0, len(xs)
    while low < high:
        middle = (low + high) // 2
        if xs[middle] < target:
            low = middle + 1
        else:
            high = middle
    return low


@zoo.add(numbers(-2, 2, first=((0.0,),)), wrt=(0,))
def sums_a_series(x):
    term = 1.0
    total = 1.0
    n = 0
    while abs(term) > 1e-10:
        n += 1
        term = term * x / n
        total += term
    return total


@zoo.add(numbers(-2, 0.6, 2))
def escapes(cr, ci):
    zr = zi = 0.0
    k = 0
    while k < 30 and zr * zr + zi * zi <= 4.0:
        zr, zi = zr * zr - zi * zi + cr, 2.0 * zr * zi + ci
        k += 1
    return k, zr


def _lists(rng: Rng, size: int) -> list[tuple[Any, ...]]:
    lengths = [0, 7, *rng.integers(0, 8, size)][:size]
    return [([float(v) for v in rng.normal(size=int(n))],) for n in lengths]


@zoo.add(_lists, wrt=(0,))
def folds_a_list_until_full(xs):
    s = 0.0
    for x in xs:
        if s > 1.5:
            break
        s = s + x * x
    return s


@zoo.add(arrays((4, 4)), wrt=(0,))
def iterates_a_power(m):
    v = np.ones(4)
    for k in range(3):
        w = m @ v + v
        v = w / np.sqrt(np.sum(w * w) + 1e-3)
        if k == 1 and v[0] > 0:
            v = v * 0.5
    return v


@zoo.add(integers(0, 60, 2, first=((0, 0), (0, 5), (12, 18))))
def greatest_divisor(a, b):
    while b:
        a, b = b, a % b
    return a


def _nested(rng: Rng, size: int) -> list[tuple[Any, ...]]:
    counts = [0, 3, *rng.integers(0, 4, size)][:size]
    return [([rng.normal(size=(int(k), 2)) for k in rng.integers(0, 4, int(n))],) for n in counts]


def _two(rng: Rng) -> tuple[Any, ...]:
    return (rng.normal(size=(2, 2)) * 0.7,)


@zoo.add(_nested, share=_two, wrt=(0, 1))
def nested_ragged_nets(w, sentences):
    outer = np.zeros(2)
    for words in sentences:
        inner = np.zeros(2)
        for x in words:
            inner = np.tanh(w @ inner + x)
        outer = np.tanh(w @ outer + inner)
    return outer


@zoo.add(pairs(integers(0, 5, first=((2,),)), numbers(-2, 2)))
def starts_as_an_integer(n, x):
    s = 0
    for _ in range(n):
        s = s + x * 0.5
    return s * 1.0


@zoo.add(pairs(integers(1, 6), numbers(-2, 2)), wrt=(1,))
def reads_the_loop_variable_after(n, base):
    for j in range(n):
        t = base * j
    return j + t


@zoo.add(pairs(integers(0, 7, first=((0,),)), numbers(-2, 2)), wrt=(1,))
def defines_before_and_uses_after(n, x):
    g = x * x
    acc = 0.0
    for i in range(n):
        acc = acc + math.sin(x * i)
        if acc > 1.5:
            acc = acc - g
    return g * acc + g


@zoo.add(pairs(integers(0, 5), integers(0, 5), numbers(-1, 1)), wrt=(2,))
def nests_counted_loops(n, m, x):
    s = 0.0
    for i in range(n):
        y = x
        for j in range(i, m):
            y = y * 0.9 + 0.1 * j
            if y > 0.8:
                break
        s = s + y * y
    return s


def _codes(rng: Rng, size: int) -> list[tuple[Any, ...]]:
    lengths = [0, 6, *rng.integers(0, 7, size)][:size]
    return [(rng.integers(0, 4, int(n)), float(rng.normal())) for n in lengths]


@zoo.add(_codes, wrt=(1,))
def interprets_codes(codes, x):
    acc = 1.0
    for c in codes:
        if c == 0:
            acc = acc * x
        elif c == 1:
            acc = acc + x
            continue
        elif c == 2:
            acc = acc - 0.5
        acc = acc * 0.9
    return acc
