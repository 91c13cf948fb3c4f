"""Programs are compiled for paths that no example takes: what would fail there is no refusal, and what is returned
there does not make the result of others anything but a number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import spmd

TARGETS = pytest.mark.parametrize("target", ["auto", "blas", "reference"])


def value_of(e):
    op = e[0]
    if op == "lit":
        return e[1]
    if op == "neg":
        return -value_of(e[1])
    a, b = value_of(e[1]), value_of(e[2])
    if op == "add":
        return a + b
    return a * b


def first(x):
    return x[0]


def first_of_some(x):
    y = None
    if x > 0:
        y = np.array([x, 1.0])
    return y[0]


def number_or_pair(x):
    if x > 0.0:
        return x * x
    return x, x


LIT = ("lit", 1.5)
TREES: list[list[Any]] = [
    [LIT],
    [LIT, ("lit", -2.0)],
    [("neg", LIT)],
    [("add", LIT, ("lit", 2.0))],
    [("mul", ("neg", LIT), ("add", LIT, LIT))],
    [LIT, ("neg", LIT), ("mul", ("lit", 3.0), ("neg", LIT))],
]


@TARGETS
@pytest.mark.parametrize("trees", TREES)
def test_expressions_as_nested_tuples_of_any_shape(trees: list[Any], target: str) -> None:
    assert list(spmd.vmap(value_of, target=target)(trees)) == [value_of(e) for e in trees]


@TARGETS
def test_the_derivative_of_an_expression(target: str) -> None:
    (found,) = [spmd.grad(value_of)(("mul", ("lit", 3.0), ("neg", ("lit", 2.0))))]
    assert found == (None, (None, -2.0), (None, (None, -3.0)))
    batched = spmd.vmap(spmd.grad(value_of), target=target)([("mul", ("lit", x), ("lit", 2.0)) for x in (1.0, 5.0)])
    np.testing.assert_array_equal(batched[1][1], [2.0, 2.0])
    np.testing.assert_array_equal(batched[2][1], [1.0, 5.0])


@TARGETS
def test_gradients_where_every_example_returned_a_number(target: str) -> None:
    slopes = spmd.vmap(spmd.grad(number_or_pair), target=target)
    for count in (0, 1, 33):
        xs = np.arange(1.0, 1.0 + count)
        np.testing.assert_array_equal(slopes(xs), 2.0 * xs)
    total = spmd.vmap(number_or_pair, target=target)
    assert list(total([1.0, 2.0])) == [1.0, 4.0]
    with pytest.raises(spmd.GradientError):
        slopes(np.array([1.0, -1.0]))


@TARGETS
@pytest.mark.parametrize(
    "f, xs",
    [
        (first, [1.0, 2.0]),
        (first, [3, 4]),
        (first, [True]),
        (first, [None]),
        (first, np.array([1.0, 2.0])),
        (first, np.array([1, 2], np.int32)),
        (first, [np.ones(2), 3.0]),
        (first_of_some, [1.0, 2.0]),
        (first_of_some, [1.0, -1.0, -2.0]),
    ],
)
def test_an_index_into_a_number_or_none_raises_what_python_raises(f: Callable[..., Any], xs: Any, target: str) -> None:
    run = spmd.vmap(f, target=target)
    wanted, failing = [], None
    for k, x in enumerate(xs):
        try:
            wanted.append(f(x))
        except (TypeError, IndexError) as error:
            failing = (type(error), str(error), k)
            break
    if failing is None:
        assert list(run(xs)) == wanted
        return
    with pytest.raises(failing[0]) as caught:
        run(xs)
    assert (str(caught.value), caught.value.example) == failing[1:]
