"""A callee that never returns is called: what it raises arrives, and what others return is untouched."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import spmd


def fails(x):
    raise ValueError("no")


def negative_fails(x):
    if x < 0:
        fails(x)
    return x


def endless(x):
    return endless(x + 1.0)


def negative_is_endless(x):
    if x < 0:
        return endless(x)
    return x


@pytest.mark.parametrize("target", ["auto", "blas", "reference"])
def test_what_a_callee_always_raises_is_raised_by_the_example_that_calls_it(target: str) -> None:
    run = spmd.vmap(negative_fails, target=target)
    assert list(run([1.0, 2.0])) == [1.0, 2.0]
    with pytest.raises(ValueError, match="no") as caught:
        run([1.0, -2.0, -3.0])
    assert caught.value.example == 1


@pytest.mark.parametrize("target", ["auto", "blas", "reference"])
def test_endless_recursion_that_one_example_enters_ends_at_the_memory_budget(target: str) -> None:
    with spmd.configure(budget=2_000_000):
        run = spmd.vmap(negative_is_endless, target=target)
        assert list(run([1.0, 2.0])) == [1.0, 2.0]
        with pytest.raises(spmd.MemoryBudgetError, match="endless"):
            run([1.0, -2.0])


def always_raises(x):
    if x > 0:
        raise ValueError("positive")
    raise KeyError("not positive")


@pytest.mark.parametrize("target", ["auto", "blas", "reference"])
def test_a_function_that_never_returns_raises_what_its_first_example_raises(target: str) -> None:
    with pytest.raises(KeyError) as caught:
        spmd.vmap(always_raises, target=target)([-1.0, 1.0])
    assert caught.value.example == 0


def test_recursion_without_a_way_out_is_refused_before_running() -> None:
    with pytest.raises(spmd.TypeMismatch, match="never returns"):
        spmd.vmap(endless)([1.0])


def at(xs, k):
    return xs[k]


def last(xs, k):
    return xs[-1] * k


@pytest.mark.parametrize("target", ["auto", "blas", "reference"])
@pytest.mark.parametrize("f", [at, last])
def test_an_index_into_a_shared_list_that_is_empty_raises_what_python_raises(f: Any, target: str) -> None:
    run = spmd.vmap(f, in_axes=(None, 0), target=target)
    for empty in ([], ()):
        with pytest.raises(IndexError) as expected:
            f(empty, 0)
        with pytest.raises(IndexError, match=str(expected.value)) as caught:
            run(empty, np.arange(3))
        assert caught.value.example == 0
        run(empty, np.arange(0))
        with pytest.raises(IndexError, match=str(expected.value)):
            spmd.grad(lambda x, xs: f(xs, 0) * x)(1.0, empty)
    assert list(run([5.0], np.zeros(2, int))) == [f([5.0], 0)] * 2


@pytest.mark.parametrize("target", ["auto", "blas", "reference"])
def test_lists_of_which_none_has_an_item(target: str) -> None:
    with pytest.raises(IndexError, match="list index out of range") as caught:
        spmd.vmap(lambda xs: xs[0], target=target)([[], []])
    assert caught.value.example == 0
