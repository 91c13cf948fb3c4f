"""Zoo: functions that call themselves or each other, on numbers, indices and linked chains."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from program import Collection, Rng, integers, numbers, pairs, sequences

zoo = Collection()


@zoo.add(integers(0, 11, first=((0,), (1,), (10,))))
def fib(n):
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)


@zoo.add(pairs(numbers(-1, 1), integers(0, 8, first=((0,),))), wrt=(0,))
def fib_of_floats(x, n):
    if n < 2:
        return x * x
    return math.sin(fib_of_floats(x, n - 1)) + 0.5 * fib_of_floats(x * 0.9, n - 2)


def _odd_step(x, n, acc):
    if n == 0:
        return acc, False
    return mutual_recursion(x + 0.2, n - 1, acc * 0.7 + x)


@zoo.add(pairs(numbers(-1, 1), integers(0, 9, first=((0,), (1,))), numbers(-1, 1)), wrt=(0, 2))
def mutual_recursion(x, n, acc):
    if n == 0:
        return acc, True
    return _odd_step(x * 1.1, n - 1, acc + x * x)


@zoo.add(pairs(numbers(-1, 1), integers(0, 4, first=((0,),)), integers(0, 3)), wrt=(0,))
def calls_that_depend_on_each_other(x, depth, width):
    if depth == 0:
        return math.tanh(x)
    acc = x
    for i in range(width):
        acc = calls_that_depend_on_each_other(acc * 0.9 + i, depth - 1, width) + 0.1 * acc
    return acc


@zoo.add(pairs(integers(0, 3), integers(0, 4)))
def ackermann(m, n):
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, 1)
    return ackermann(m - 1, ackermann(m, n - 1))


def _matrix(rng: Rng, size: int) -> list[tuple[Any, ...]]:
    return [(rng.normal(size=(2, 2)) * 0.7, int(n)) for n in [0, 1, *rng.integers(0, 9, size)][:size]]


@zoo.add(_matrix, wrt=(0,))
def matrix_power(m, n):
    if n == 0:
        return np.eye(2)
    h = matrix_power(m, n // 2)
    if n % 2 == 0:
        return h @ h
    return h @ h @ m


def _split(xs, low, high):
    if high - low == 0:
        return 0.5
    if high - low == 1:
        return xs[low]
    middle = (low + high) // 2
    a = _split(xs, low, middle)
    b = _split(xs, middle, high)
    return a * b + a + b


@zoo.add(sequences(0, 9), wrt=(0,))
def divides_and_conquers(xs):
    return _split(xs * 0.3, 0, len(xs))


def _simpson(c, a, b, depth):
    m = 0.5 * (a + b)
    whole = (b - a) / 6.0 * (math.exp(c * a) + 4.0 * math.exp(c * m) + math.exp(c * b))
    left = (m - a) / 6.0 * (math.exp(c * a) + 4.0 * math.exp(c * 0.5 * (a + m)) + math.exp(c * m))
    right = (b - m) / 6.0 * (math.exp(c * m) + 4.0 * math.exp(c * 0.5 * (m + b)) + math.exp(c * b))
    if depth == 0 or abs(left + right - whole) < 1e-5:
        return left + right
    return _simpson(c, a, m, depth - 1) + _simpson(c, m, b, depth - 1)


@zoo.add(numbers(-4, 4, first=((0.0,),)), wrt=(0,))
def adaptive_quadrature(c):
    return _simpson(c, 0.0, 1.5, 7)


@zoo.add(numbers(0.1, 8, 2), wrt=(0, 1))
def shrinks_until_small(x, y):
    if x < 0.5:
        return y * x
    return shrinks_until_small(x * 0.6, y + x) - 0.1 * x * y


@zoo.add(integers(0, 8, first=((0,),)))
def work_after_the_call(n):
    if n > 1:
        r = n * work_after_the_call(n - 1)
    else:
        r = 1
    return r + 1


class Link:
    """A chain; None ends it."""

    def __init__(self, value: float, rest: Link | None) -> None:
        self.value = value
        self.rest = rest


def _chains(rng: Rng, size: int) -> list[tuple[Any, ...]]:
    made = []
    for n in [1, 200, *rng.integers(1, 60, size)][:size]:
        chain = None
        for v in rng.normal(size=int(n)):
            chain = Link(float(v), chain)
        made.append((chain,))
    return made


@zoo.add(_chains, wrt=(0,))
def folds_a_deep_chain(chain):
    if chain is None:
        return 0.25
    return folds_a_deep_chain(chain.rest) * 0.9 + math.sin(chain.value)


@zoo.add(_chains, wrt=(0,))
def walks_a_chain_in_a_loop(chain):
    total = 0.0
    while chain is not None and total < 4.0:
        total = total * 0.9 + chain.value * chain.value
        chain = chain.rest
    return total


class Twig:
    """A binary node; children may be missing."""

    def __init__(self, value: float, left: Twig | None, right: Twig | None) -> None:
        self.value = value
        self.left = left
        self.right = right


def _twig(rng: Rng, nodes: int) -> Twig | None:
    if nodes == 0:
        return None
    cut = int(rng.integers(0, nodes))
    return Twig(float(rng.normal()), _twig(rng, cut), _twig(rng, nodes - 1 - cut))


@zoo.add(lambda rng, size: [(_twig(rng, n),) for n in [1, 9, *rng.integers(1, 10, size)][:size]], wrt=(0,))
def best_path(tree):
    best = tree.value
    if tree.left is not None:
        best = tree.value + 0.9 * best_path(tree.left)
    if tree.right is not None:
        other = tree.value * 0.5 + best_path(tree.right)
        if other > best:
            best = other
    return best


@dataclass
class Interval:
    low: float
    high: float


def _intervals(rng: Rng, size: int) -> list[tuple[Any, ...]]:
    made = [Interval(float(rng.uniform(-1, 0)), float(rng.uniform(0.5, 2))) for _ in range(size)]
    return [(interval, int(rng.integers(0, 5))) for interval in made]


@zoo.add(_intervals, wrt=(0,))
def carries_a_dataclass(interval, n):
    for _ in range(n):
        middle = 0.5 * (interval.low + interval.high)
        if middle * middle > 0.3:
            interval = Interval(interval.low, middle)
        else:
            interval = Interval(middle, interval.high * 0.95)
    return interval.low * 0.3 + interval.high * 0.7


def _towers(n, source, target, spare, cost):
    if n == 0:
        return cost
    cost = _towers(n - 1, source, spare, target, cost)
    cost = cost * 1.01 + (source - target) * 0.1
    return _towers(n - 1, spare, target, source, cost)


@zoo.add(pairs(integers(0, 5, first=((0,),)), numbers(-1, 1, 3)), wrt=(1, 2, 3))
def moves_towers(n, a, b, c):
    return _towers(n, a, b, c, 0.0)
