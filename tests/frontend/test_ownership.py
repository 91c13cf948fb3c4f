"""`a += b` on arrays: the same as `a = a + b` where nothing else names the array, refused everywhere else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import spmd

XS = np.random.default_rng(0).normal(size=(4, 3))


def accumulates(x):
    h = np.zeros(3)
    s = h + 1.0
    for k in range(3):
        h += x * k
        h *= 0.5
    return s * h


def copies(x):
    c = x.copy()
    c *= 2.0
    c += x
    return c


def reads_shapes(x):
    h = np.outer(x, x)
    n = h.shape[0]
    h += n
    return h


def names_itself(x):
    h = np.tanh(x)
    h += h
    h *= h[0]
    return h


@pytest.mark.parametrize("function", [accumulates, copies, reads_shapes, names_itself])
def test_own_arrays_are_updated(function: Any) -> None:
    np.testing.assert_allclose(spmd.vmap(function)(XS), [function(x.copy()) for x in XS])


def alias(x):
    h = np.zeros(3)
    g = h
    h += x
    return g


def argument(x):
    x += 1.0
    return x


def view(x):
    h = np.outer(x, x)
    g = h[0]
    h += 1.0
    return g


def in_a_list(x):
    h = np.zeros(3)
    gs = [h, x]
    h += x
    return gs[0]


def in_a_comprehension(x):
    h = np.ones(3)
    gs = [h for _ in range(2)]
    h += x
    return gs[0]


def rows_of_a_loop(x):
    h = np.outer(x, x)
    total = np.zeros(3)
    for row in h:
        total = total + row
        h *= 0.5
    return total


def by_walrus(x):
    h = np.ones(3)
    if (g := h)[0] > 0:
        h += x
    return g


def by_choice(x):
    h = np.ones(3)
    g = h if x[0] > 0 else x
    h += x
    return g


def by_call(x):
    h = np.zeros(3)
    g = same(h)
    h += x
    return g


def same(v):
    return v


def by_method(x):
    h = np.zeros(3)
    g = h.reshape(3)
    h += x
    return g


def swapped(x):
    h, g = np.zeros(3), np.ones(3)
    h, g = g, h
    h += x
    return g


ALIASED = [
    alias, argument, view, in_a_list, in_a_comprehension, rows_of_a_loop, by_walrus, by_choice, by_call, by_method,
    swapped,
]


@pytest.mark.parametrize("function", ALIASED)
def test_arrays_that_may_be_known_elsewhere_are_not(function: Any) -> None:
    with pytest.raises(spmd.UnsupportedSyntax, match="in place") as caught:
        spmd.vmap(function)(XS)
    assert caught.value.span is not None
    assert caught.value.hint
