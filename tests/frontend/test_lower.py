"""Golden IR of lowered programs: tests/golden/lower.test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import batching
from spmd.compiler.trace import Argument, trace
from spmd.frontend.read import read
from spmd.ir.printer import module_text


class Tree:
    """A node."""

    def __init__(self, value: float, left: Any = None, right: Any = None) -> None:
        self.value, self.left, self.right = value, left, right


def branches(x):
    if x > 0.0:
        y = x * 2.0
    else:
        y = -x
    return y


def returns_early(x, n):
    if n == 0:
        return x
    return x / n


def chains(a, b, c):
    return a < b <= c and not c == 0


def loops(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


def leaves_a_loop(xs):
    total = 0.0
    for x in xs:
        if x < 0.0:
            continue
        total = total + x
        if total > 1.0:
            break
    else:
        total = -total
    return total


def unrolls_with_jumps(x, y):
    total = 0.0
    for v in (x, y):
        if v < 0.0:
            break
        total = total + v
    return total


def recurses(tree):
    if tree.left is None:
        return tree.value
    return recurses(tree.left) + recurses(tree.right)


def maps(xs):
    return sum([x * x for x in xs])


def names_on_one_path(x):
    if x > 0.0:
        y = x
    return y


def either_kind(n):
    value = None
    if n > 0:
        value = (n, 2.0)
    return value


FLOATS: list[Any] = [1.0, -1.0]
TREES = [Tree(1.0), Tree(2.0, Tree(1.0), Tree(3.0))]
PROGRAMS: dict[Callable[..., Any], tuple[Any, ...]] = {
    branches: (FLOATS,),
    returns_early: (FLOATS, [0, 1]),
    chains: ([1, 2], [2, 3], [3, 3]),
    loops: ([1, 2],),
    leaves_a_loop: ([np.ones(2), np.ones(3)],),
    unrolls_with_jumps: (FLOATS, FLOATS),
    recurses: (TREES,),
    maps: ([[1.0], [2.0, 3.0]],),
    names_on_one_path: (FLOATS,),
    either_kind: ([0, 1],),
}


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_lowered(function: Callable[..., Any], golden: Callable[[str, str, str], None]) -> None:
    names = read(function).parameters
    given = [Argument(name, batching.pack(column).schema, True) for name, column in zip(names, PROGRAMS[function])]
    golden("lower", function.__name__, module_text(trace(function, given).module))
