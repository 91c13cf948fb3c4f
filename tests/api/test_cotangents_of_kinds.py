"""Cotangents of results that are of several kinds, and of arrays of varying size in lists: against differences of the
plain function, and one example at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import batching
import spmd

TARGETS = pytest.mark.parametrize("target", ["auto", "blas", "reference"])
STEP = 1e-6


@dataclass
class Leaf:
    value: float


@dataclass
class Pair:
    low: float
    high: np.ndarray


def number_or_none(w, x):
    if x > 0.0:
        return w * x * x
    return None


def number_or_pair(w, x):
    if x > 0.0:
        return np.sin(w * x)
    return (w * x, x * x)


def pair_with_an_option(w, x):
    if x > 0.5:
        return x * w, None
    if x > 0.0:
        return x, (w, x * x)
    return x * 2.0, x * w


def three_kinds(w, x):
    if x > 0.5:
        return "none"
    if x > 0.0:
        return Leaf(w * x)
    return Pair(x * x, np.array([w, x * w, 1.0]))


def vector_or_number(w, x):
    if x > 0.0:
        return np.array([x, w]) * w
    return x * w


def list_or_number(w, x):
    if x > 0.0:
        return [w * x * k for k in range(int(x * 5.0))]
    return x * w


def list_of_kinds(w, x):
    return [w * x if k % 2 else (x * k, None) for k in range(int(abs(x) * 5.0))]


def powers(w, x, n):
    return np.arange(n) * 1.0 * x * w


def list_of_arrays(w, x):
    return [powers(w, x, k) for k in range(int(abs(x) * 5.0))]


def list_of_lists(w, x):
    return [[w * x * j for j in range(k)] for k in range(int(abs(x) * 5.0))]


def list_of_records(w, x):
    return [(Leaf(w * x), powers(w, x, k)) for k in range(int(abs(x) * 5.0))]


FUNCTIONS = [
    number_or_none, number_or_pair, pair_with_an_option, three_kinds, vector_or_number, list_or_number, list_of_kinds,
    list_of_arrays, list_of_lists, list_of_records,
]
KINDS = FUNCTIONS[:6]


def cotangent(out: Any, rng: np.random.Generator) -> Any:
    """Numbers in the structure of a result."""
    if isinstance(out, (float, np.floating)):
        return float(rng.normal())
    if isinstance(out, np.ndarray):
        return rng.normal(size=out.shape)
    if isinstance(out, Leaf):
        return Leaf(cotangent(out.value, rng))
    if isinstance(out, Pair):
        return Pair(cotangent(out.low, rng), cotangent(out.high, rng))
    return type(out)(cotangent(item, rng) for item in out) if isinstance(out, (tuple, list)) else None


def inner(ct: Any, out: Any) -> Any:
    """The sum of products of a cotangent with a result."""
    if isinstance(out, (float, np.floating, np.ndarray)):
        return np.sum(np.multiply(ct, out))
    if isinstance(out, (Leaf, Pair)):
        return sum(inner(getattr(ct, k), getattr(out, k)) for k in vars(out))
    if isinstance(out, (tuple, list)):
        return sum(map(inner, ct, out))
    return 0.0


def slopes(f: Callable[..., Any], w: float, x: float, ct: Any) -> tuple[float, float]:
    """Central differences of the plain function with respect to w and x."""
    along_w = (inner(ct, f(w + STEP, x)) - inner(ct, f(w - STEP, x))) / (2 * STEP)
    return along_w, (inner(ct, f(w, x + STEP)) - inner(ct, f(w, x - STEP))) / (2 * STEP)


def numbers(count: int, poisoned: bool = False) -> list[float]:
    """Numbers of all kinds, none near a place where a kind changes."""
    rng = np.random.default_rng(count)
    found = [float(v) for v in rng.choice([-0.9, -0.7, -0.31, 0.13, 0.3, 0.49, 0.7, 0.95], size=count)]
    if poisoned and count > 4:
        found[1], found[3] = -np.inf, -1e200
    return found


@TARGETS
@pytest.mark.parametrize("count", [0, 1, 2, 3, 33])
@pytest.mark.parametrize("f", FUNCTIONS)
def test_cotangents_of_a_batch_are_those_of_each_example(f: Callable[..., Any], count: int, target: str) -> None:
    w, xs = 0.8, numbers(count)
    given = [cotangent(f(w, x), np.random.default_rng([count, i])) for i, x in enumerate(xs)]
    expected = [slopes(f, w, x, ct) for x, ct in zip(xs, given)]
    out, pullback = spmd.vjp(spmd.vmap(f, in_axes=(None, 0), target=target), w, np.array(xs))
    forms: list[Any] = [given] if f is not pair_with_an_option else [([ct[0] for ct in given], [ct[1] for ct in given])]
    for form in [*forms, batching.pack(given)] if count else forms:
        along_w, along_x = pullback(form)
        np.testing.assert_allclose(along_w, sum(e[0] for e in expected), rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(along_x, [e[1] for e in expected], rtol=1e-6, atol=1e-7)
    if count and not (isinstance(out, batching.Packed) and f is three_kinds):  # strings have no cotangent
        along_w, along_x = pullback(out)
        squares = [slopes(f, w, x, f(w, x)) for x in xs]
        np.testing.assert_allclose(along_w, sum(e[0] for e in squares), rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(along_x, [e[1] for e in squares], rtol=1e-6, atol=1e-7)


@TARGETS
@pytest.mark.parametrize("f", FUNCTIONS)
@pytest.mark.parametrize("x", [-0.7, 0.3, 0.95])
def test_a_single_example(f: Callable[..., Any], x: float, target: str) -> None:
    ct = cotangent(f(0.8, x), np.random.default_rng(0))
    _, pullback = spmd.vjp(f, 0.8, x)
    np.testing.assert_allclose(pullback(ct), slopes(f, 0.8, x, ct), rtol=1e-6, atol=1e-7)


@TARGETS
def test_examples_beside_poisoned_ones(target: str) -> None:
    xs = numbers(9, poisoned=True)
    given = [cotangent(number_or_pair(0.8, x), np.random.default_rng(i)) for i, x in enumerate(xs)]
    _, pullback = spmd.vjp(spmd.vmap(number_or_pair, in_axes=(None, 0), target=target), 0.8, np.array(xs))
    found = pullback(given)[1]
    for k, (x, ct) in enumerate(zip(xs, given)):
        if abs(x) < 1.0:
            np.testing.assert_allclose(found[k], slopes(number_or_pair, 0.8, x, ct)[1], rtol=1e-6)


@TARGETS
@pytest.mark.parametrize(
    "given", [[None, 1.0, 1.0], [1.0, 1.0, 1.0], [1.0, None], [1.0, (1.0, 2.0), None], [1.0, None, "a"], 1.0]
)
def test_cotangents_that_stand_with_other_examples_are_refused(given: Any, target: str) -> None:
    _, pullback = spmd.vjp(spmd.vmap(number_or_none, in_axes=(None, 0), target=target), 0.8, np.array([0.3, -0.3, 0.7]))
    with pytest.raises(spmd.UnsupportedType):
        pullback(given)
    np.testing.assert_allclose(pullback([1.0, None, 1.0])[1], [0.48, 0.0, 1.12])


@TARGETS
def test_arrays_of_other_sizes_in_lists_are_refused(target: str) -> None:
    _, pullback = spmd.vjp(spmd.vmap(list_of_arrays, in_axes=(None, 0), target=target), 0.8, np.array([0.5, 0.7]))
    right = [[np.ones(k) for k in range(int(x * 5.0))] for x in (0.5, 0.7)]
    pullback(right)
    for wrong in ([right[0], right[0]], [right[1], right[0]], [right[0], [np.ones(0), np.ones(2), np.ones(2)]]):
        with pytest.raises(spmd.UnsupportedType):
            pullback(wrong)


@TARGETS
def test_a_cotangent_may_come_again(target: str) -> None:
    xs = numbers(7)
    given = [cotangent(list_of_arrays(0.8, x), np.random.default_rng(i)) for i, x in enumerate(xs)]
    _, pullback = spmd.vjp(spmd.vmap(list_of_arrays, in_axes=(None, 0), target=target), 0.8, np.array(xs))
    first, second = pullback(given), pullback(given)
    np.testing.assert_array_equal(first[1], second[1])
