"""Iterators and generators: what Python would use up, or compute lazily, is refused where the difference could show."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import spmd

XS = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]])


def names_a_generator(xs):
    doubled = (x * 2.0 for x in xs)
    return sum(doubled) + sum(doubled)


def names_a_zip(xs):
    both = zip(xs, xs)
    total = 0.0
    for a, b in both:
        total = total + a * b
    return total


def names_it_by_walrus(xs):
    total = 0.0
    for k, x in (both := enumerate(xs)):
        total = total + k * x
    return total, sum([k for k, _ in both])


def hides_an_iterator(xs):
    pair = (reversed(xs), 1)
    return pair[1]


def passes_a_range(n):
    return taking(range(n))


def taking(numbers):
    return len(numbers)


def returns_a_range(n):
    return range(n)


def any_of_what_may_raise(k):
    return any(10 // (n - k) > 0 for n in (1, 2, 3))


def iterates_lazily(xs):
    total = 0.0
    for x in (1.0 / v for v in xs):
        if x > 0.0:
            break
        total = total + x
    return total


@pytest.mark.parametrize("function", [
    names_a_generator, names_a_zip, names_it_by_walrus, hides_an_iterator, iterates_lazily,
])
def test_iterators_that_would_be_used_up_are_refused(function: Any) -> None:
    with pytest.raises(spmd.SpmdError) as caught:
        spmd.vmap(function)(XS)
    assert caught.value.span is not None
    assert caught.value.hint


@pytest.mark.parametrize("function", [passes_a_range, returns_a_range, any_of_what_may_raise])
def test_ranges_stay_where_they_are_made(function: Any) -> None:
    with pytest.raises(spmd.SpmdError) as caught:
        spmd.vmap(function)([1, 2, 3])
    assert caught.value.span is not None


def keeps_a_range(n):
    numbers = range(n)
    return sum([k for k in numbers]) + sum([k for k in numbers]) + len(numbers)


def lists_of_iterators(n):
    pairs = list(zip(range(n), range(1, n + 1)))
    return sum([a * b for a, b in pairs]) + sum([a for a, _ in pairs]) + len(tuple(enumerate(pairs)))


@pytest.mark.parametrize("function", [keeps_a_range, lists_of_iterators])
def test_what_can_be_run_over_again(function: Any) -> None:
    assert spmd.vmap(function)([0, 1, 4]).tolist() == [function(n) for n in (0, 1, 4)]
