"""Results that are lists: with parts that are constants, of one of several kinds, and of lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import batching
import spmd


def constants(xs):
    return [3 for _ in xs]


def beside_constants(xs):
    return [(x, 3, None, "s") for x in xs]


def records(xs):
    return [{"k": x, "n": 2.0} for x in xs]


def either_list(xs):
    if len(xs) > 1:
        return [x + 1.0 for x in xs]
    return [x * 2.0 for x in xs]


def ints_or_floats(xs):
    return [3 for _ in xs] if len(xs) > 1 else [2.0 * x for x in xs]


def pairs_or_none(xs):
    if len(xs) > 1:
        return [(x, None) for x in xs]
    return None


def numbers_or_pairs(xs):
    return [x if x > 0.0 else (x, None) for x in xs]


def lists_of_lists(xs):
    return [[x * y for x in xs] for y in xs]


def sum_of_either(xs):
    ys = [x * x for x in xs] if len(xs) > 1 else [x * 2.0 for x in xs]
    total = 0.0
    for y in ys:
        total = total + y
    return total


def rows(count: int) -> list[list[float]]:
    rng = np.random.default_rng(count)
    found = [[float(x) for x in rng.normal(size=k % 4)] for k in range(count)]
    if count > 5:
        found[3][1], found[2][0] = np.nan, np.inf
    return found


@pytest.mark.parametrize("target", ["auto", "blas", "reference"])
@pytest.mark.parametrize("count", [1, 2, 33])
@pytest.mark.parametrize(
    "f",
    [
        constants, beside_constants, records, either_list, ints_or_floats, pairs_or_none, numbers_or_pairs,
        lists_of_lists,
    ],
)
def test_a_batch_of_lists_is_the_loops(f: Callable[[Any], Any], count: int, target: str) -> None:
    xs = rows(count)
    assert repr(batching.unpack(spmd.vmap(f, target=target)(xs))) == repr([f(x) for x in xs])


@pytest.mark.parametrize("target", ["auto", "blas", "reference"])
def test_gradients_through_either_list_are_those_of_the_path_taken(target: str) -> None:
    xs = rows(33)
    found = batching.unpack(spmd.vmap(spmd.grad(sum_of_either), target=target)(xs))
    for got, x in zip(found, xs):
        np.testing.assert_allclose(got, [2.0 * v for v in x] if len(x) > 1 else [2.0 for _ in x])


@pytest.mark.parametrize("f", [constants, either_list, pairs_or_none])
def test_no_lists_give_no_results(f: Callable[[Any], Any]) -> None:
    assert batching.unpack(spmd.vmap(f)(batching.pack(rows(4))[:0])) == []
