"""Cotangents given to a pullback: their structure is the result's, example by example, or they are refused; and a
pullback sees arguments and captured arrays as they were in its call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import batching
import spmd

TARGETS = pytest.mark.parametrize("target", ["auto", "blas", "reference"])
SCALE = np.ones(2)
ROWS = [np.array([1.0, 2.0]), np.array([3.0, 4.0, 5.0])]


@dataclass
class Left:
    a: float
    b: float


@dataclass
class Right:
    c: float


def left(x):
    return Left(x * x, x)


def squares(x):
    return x * x


def scaled(w, x):
    return w * x


def each_scaled(w, xs):
    return [w * x for x in xs]


def captures(x):
    return np.sum(np.sin(x * SCALE) * SCALE)


@TARGETS
@pytest.mark.parametrize(
    "given",
    [
        [np.ones(3), np.zeros(2)],
        [np.ones(1), np.ones(4)],
        [np.ones(2)],
        [np.ones(2), np.ones(3), np.ones(1)],
        [np.ones((2, 1)), np.ones((3, 1))],
        [1.0, 1.0],
        [np.array([1.0, None]), np.ones(3)],
        [["a", "b"], np.ones(3)],
    ],
)
def test_a_cotangent_of_arrays_of_other_sizes_than_the_result_is_refused(target: str, given: Any) -> None:
    _, pullback = spmd.vjp(spmd.vmap(squares, target=target), ROWS)
    with pytest.raises(spmd.UnsupportedType):
        pullback(given)
    (found,) = pullback([np.ones(2), np.zeros(3)])
    np.testing.assert_array_equal(found[0], [2.0, 4.0])
    np.testing.assert_array_equal(found[1], np.zeros(3))


def test_a_cotangent_of_another_class_than_the_result_is_refused() -> None:
    _, pullback = spmd.vjp(left, 3.0)
    assert pullback(Left(1.0, 2.0)) == (8.0,)
    with pytest.raises(spmd.UnsupportedType, match="structure"):
        pullback(Right(1.0))


@pytest.mark.parametrize("given", [[None, 1.0], ["a", 1.0], [[1.0], 1.0], [1.0 + 1.0j, 0.0]])
def test_what_is_no_number_among_cotangents_is_refused(given: Any) -> None:
    _, pullback = spmd.vjp(each_scaled, 0.7, [1.0, 2.0])
    with pytest.raises(spmd.UnsupportedType):
        pullback(given)
    _, pullback = spmd.vjp(spmd.vmap(squares), np.array([1.0, 2.0]))
    with pytest.raises(spmd.UnsupportedType):
        pullback(given)


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_a_list_in_place_of_an_array_of_cotangents_means_the_same(axis: int | None) -> None:
    def shared(w, x):
        return w if axis is None else w * x

    w, xs = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    out, pullback = spmd.vjp(spmd.vmap(shared, in_axes=(None, 0), out_axes=axis), w, xs)
    given = np.arange(1.0, 1.0 + out.size).reshape(out.shape)
    expected = given if axis is None else np.sum(np.moveaxis(given, axis, 0) * xs[:, None], axis=0)
    for form in (given, given.tolist(), list(given)):
        np.testing.assert_allclose(pullback(form)[0], expected)


@pytest.mark.parametrize("axis", [1, -1, None])
def test_a_cotangent_that_has_no_such_axis_is_refused(axis: int | None) -> None:
    def shared(w, x):
        return w if axis is None else w * x

    _, pullback = spmd.vjp(spmd.vmap(shared, in_axes=(None, 0), out_axes=axis), np.ones(2), np.ones(3))
    for wrong in (1.0, np.ones(3), np.ones((2, 2)), np.ones((1, 2, 3))):
        with pytest.raises(spmd.UnsupportedType):
            pullback(wrong)


@TARGETS
@pytest.mark.parametrize("mapped", [False, True])
def test_a_pullback_sees_captured_arrays_as_they_were(target: str, mapped: bool) -> None:
    try:
        x = np.array([0.3, 0.5])
        _, pullback = spmd.vjp(spmd.vmap(captures, target=target), x) if mapped else spmd.vjp(captures, 0.3)
        SCALE[:] = 100.0
        (found,) = pullback(np.ones(2) if mapped else 1.0)
        np.testing.assert_allclose(found, 2.0 * np.cos(x if mapped else 0.3))
    finally:
        SCALE[:] = 1.0


@TARGETS
def test_a_pullback_sees_a_ragged_argument_as_it_was(target: str) -> None:
    values = np.array([1.0, 2.0, 3.0])
    rows = batching.Ragged(values, np.array([0, 2]), np.array([[2], [1]]))
    _, pullback = spmd.vjp(spmd.vmap(squares, target=target), rows)
    values[:] = 100.0
    (found,) = pullback([np.ones(2), np.ones(1)])
    np.testing.assert_array_equal(found[0], [2.0, 4.0])
    np.testing.assert_array_equal(found[1], [6.0])
