"""Writes are seen through every name of an array, and through nothing else."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
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


FUNCTIONS = [
    accumulates, copies, reads_shapes, names_itself, alias, argument, view, in_a_list,
    rows_of_a_loop, by_walrus, by_call, by_method, swapped,
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_writes_are_seen_as_in_python(function: Any) -> None:
    for size in (1, 4):
        np.testing.assert_allclose(spmd.vmap(function)(XS[:size]), [function(x.copy()) for x in XS[:size]])


def in_a_comprehension(x):
    h = np.ones(3)
    gs = [h for _ in range(2)]
    h += x  # here
    return gs[0]


def by_choice(x):
    h = np.ones(3)
    g = h if x[0] > 0 else x
    h += x
    return g  # here


def to_a_choice(x):
    h = np.ones(3)
    g = h if x[0] > 0 else x
    g += x  # here
    return h


def of_a_shape(x):
    m = np.outer(x, x)
    v = m.T.reshape(9)
    v[0] = 1.0  # here
    return m


def in_a_growing_list(x):
    h = np.ones(3)
    kept = [x]
    for _ in range(int(x[0] > 0)):
        kept.append(h)
        h += 1.0  # here
    return kept[0]


GLOBAL = np.ones(3)


def to_a_global(x):
    GLOBAL[0] = x[0]  # here
    return x


REFUSED = [in_a_comprehension, by_choice, to_a_choice, of_a_shape, in_a_growing_list, to_a_global]


@pytest.mark.parametrize("function", REFUSED)
def test_what_cannot_be_told_apart_is_refused(function: Any) -> None:
    with pytest.raises(spmd.UnsupportedSyntax) as caught:
        spmd.vmap(function)(XS)
    assert caught.value.span is not None
    assert caught.value.hint
    lines, first = inspect.getsourcelines(function)
    assert "# here" in lines[caught.value.span.line - first]


NUMBERS = [1.0, 2.0, 3.0]
BY_NAME = {"a": 1.0}


class Holder:
    row = [1.0, 2.0]

    def __init__(self, xs):
        self.xs = xs


def to_an_item_of_the_input(xs):
    row = xs[0]
    row[0] = 5.0  # here
    return xs[0][0]


def to_a_list_of_an_object(h):
    h.xs[0] = 5.0  # here
    return h.xs[0]


def to_an_item_of_made_lists(n):
    rows = [[0.0] * 3 for _ in range(n)]
    rows[0][1] = 4.0  # here
    return rows[0][1]


def to_a_global_list(n):
    NUMBERS[0] = 4.0  # here
    return NUMBERS[0]


def to_a_global_dictionary(n):
    BY_NAME["a"] = 4.0  # here
    return BY_NAME["a"]


def to_a_class(n):
    Holder.row[0] = 4.0  # here
    return Holder.row[0]


HELD = [
    (to_an_item_of_the_input, [[np.ones(2), np.zeros(2)], [np.ones(2)]]),
    (to_a_list_of_an_object, [Holder([1.0, 2.0]), Holder([3.0])]),
    (to_an_item_of_made_lists, [1, 2]), (to_a_global_list, [1, 2]), (to_a_global_dictionary, [1, 2]), (to_a_class, [1]),
]


@pytest.mark.parametrize(("function", "given"), HELD)
def test_what_belongs_to_something_else_is_not_written_to(function: Any, given: Any) -> None:
    with pytest.raises(spmd.UnsupportedSyntax) as caught:
        spmd.vmap(function)(given)
    assert caught.value.span is not None
    lines, first = inspect.getsourcelines(function)
    assert "# here" in lines[caught.value.span.line - first]


@dataclass
class Counter:
    count: int = 0

    @property
    def next(self):
        self.count += 1
        return self.count

    def twice(self):
        return self.next + self.next


class Louder(Counter):
    def twice(self):
        return 10 * super().twice()


def counts(n):
    c = Counter()
    total = 0
    for _ in range(n):
        total += c.next * c.twice()
    return total, c.count


def counts_louder(n):
    c = Louder(n)
    return c.twice() + c.next, c.count


@pytest.mark.parametrize("function", [counts, counts_louder])
def test_methods_and_properties_write_to_the_object_itself(function: Any) -> None:
    got = list(zip(*(column.tolist() for column in spmd.vmap(function)([0, 1, 4]))))
    assert got == [function(n) for n in (0, 1, 4)]
