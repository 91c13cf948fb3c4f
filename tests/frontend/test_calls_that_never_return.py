"""A callee that never returns is called: what it raises arrives, and what others return is untouched."""

from __future__ import annotations

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
