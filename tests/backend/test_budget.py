"""The memory budget: what is stopped, what runs in pieces, and that pieces change nothing but the order of sums."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import batching
import spmd
from spmd.backend.blas import executor
from spmd.runtime.machine import Machine

B = 600
RNG = np.random.default_rng(0)
W = RNG.normal(size=(3, 3)) * 0.5
X = RNG.normal(size=(B, 3))
N = np.arange(B) % 7
target = pytest.mark.parametrize("target", ("auto", "blas"))


def steps_down(w, x, n):
    if n == 0:
        return np.sum(x)
    return steps_down(w, np.tanh(w @ x), n - 1) + np.sum(x) * 0.1


def steps_on(w, x, n):
    for _ in range(40 + n):
        x = np.tanh(w @ x)
    return np.sum(x)


def shrinks(xs, n):
    ys = xs
    for _ in range(n):
        ys = ys[1:] * 0.5
    return ys


def untouched(xs, n):
    return np.sum(xs * xs) if n < 4 else np.float64(n)


def without_end(x):
    if x < -1e300:
        return x
    return without_end(x - 1.0) + 1.0


def deep(x, n):
    if n == 0:
        return x
    return deep(x, n - 1) * 0.9999 + x * 1e-5


@pytest.fixture
def machines(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Weak references to all machines that are made."""
    made: list[Any] = []

    def machine(*args: Any, **options: Any) -> Machine:
        one = Machine(*args, **options)
        made.append(weakref.ref(one))
        return one

    monkeypatch.setattr(executor, "Machine", machine)
    return made


@target
@pytest.mark.parametrize("function", (steps_down, steps_on))
@pytest.mark.parametrize("budget", (20_000, 200_000, 2_000_000))
def test_pieces_give_what_the_whole_batch_gives(function: Any, budget: int, target: str, machines: list[Any]) -> None:
    batched = spmd.vmap(function, in_axes=(None, 0, 0), target=target)
    each = spmd.vmap(spmd.grad(function, argnums=(0, 1)), in_axes=(None, 0, 0), target=target)
    value, pullback = spmd.vjp(batched, W, X, N, argnums=(0, 1))
    whole, alone = pullback(np.ones(B)), each(W, X, N)
    del machines[:]
    with spmd.configure(budget=budget):
        np.testing.assert_allclose(batched(W, X, N), value, rtol=1e-12)
        again, pullback = spmd.vjp(batched, W, X, N, argnums=(0, 1))
        np.testing.assert_allclose(again, value, rtol=1e-12)
        for _ in range(2):
            for got, want in zip(pullback(np.ones(B)), whole, strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)
        for got, want in zip(each(W, X, N), alone, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)
    assert len(machines) > 4 or budget == 2_000_000


@target
def test_ragged_arrays_run_in_pieces(target: str) -> None:
    arrays = [np.arange(float(k % 9)) for k in range(300)]
    counts = [k % 6 for k in range(300)]
    batched = spmd.vmap(shrinks, target=target)
    value, pullback = spmd.vjp(batched, arrays, counts, argnums=0)
    (whole,) = pullback(value)
    with spmd.configure(budget=20_000):
        again, pullback = spmd.vjp(batched, arrays, counts, argnums=0)
        (parts,) = pullback(again)
    for one, other in zip(batching.unpack(value), batching.unpack(again), strict=True):
        np.testing.assert_array_equal(one, other)
    for one, other in zip(batching.unpack(whole), batching.unpack(parts), strict=True):
        np.testing.assert_array_equal(one, other)


@target
def test_a_piece_that_has_no_gradient_takes_none_from_others(target: str) -> None:
    arrays = [np.ones(1 + k % 3) for k in range(200)]
    counts = sorted(k % 8 for k in range(200))
    with spmd.configure(budget=10_000):
        value, pullback = spmd.vjp(spmd.vmap(untouched, target=target), arrays, counts, argnums=0)
        (found,) = pullback(np.ones(200))
    for array, n, gradient in zip(arrays, counts, batching.unpack(found), strict=True):
        np.testing.assert_array_equal(gradient, 2 * array if n < 4 else 0 * array)


@target
def test_frames_of_a_piece_are_let_go(target: str, machines: list[Any]) -> None:
    batched = spmd.vmap(steps_down, in_axes=(None, 0, 0), target=target)
    with spmd.configure(budget=20_000):
        value = batched(W, X, N)
        gc.collect()
        assert len(machines) > 4 and not any(one() for one in machines)
        value, pullback = spmd.vjp(batched, W, X, N)
        pullback(value)
        gc.collect()
        assert not any(one() for one in machines)


def test_recursion_without_end_stops_while_deep_recursion_runs(target: str = "auto") -> None:
    with spmd.configure(budget=16 << 20), pytest.raises(spmd.MemoryBudgetError, match="'without_end'") as caught:
        spmd.vmap(without_end, target=target)([1.0, 2.0])
    assert "calls deep" in str(caught.value)
    value = spmd.vmap(deep, target=target)(np.array([1.0, 2.0]), [100_000, 50])
    gradient = spmd.vmap(spmd.grad(deep), target=target)(np.array([1.0, 2.0]), [100_000, 50])
    want = [0.9999**n + 1e-5 * (1 - 0.9999**n) / 1e-4 for n in (100_000, 50)]
    np.testing.assert_allclose(gradient, want, rtol=1e-8)
    np.testing.assert_allclose(value, gradient * [1.0, 2.0], rtol=1e-8)


def test_a_loop_without_end_that_keeps_a_tape_is_stopped() -> None:
    def spins(x):
        while x < 1e300:
            x = np.tanh(x)
        return x

    with spmd.configure(budget=1 << 20), pytest.raises(spmd.MemoryBudgetError):
        spmd.vmap(spmd.grad(spins))(np.ones(3))
