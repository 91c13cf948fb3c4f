"""What one example does stays in it: NaN in shared gradients, ops whose result nobody reads, results that are written
to, threads, interrupts, narrow vectors."""

from __future__ import annotations

import _thread
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import oracles
import pytest
from zoo import ZOO

import batching
import spmd

TARGETS = ("auto", "blas", "reference")
target = pytest.mark.parametrize("target", TARGETS)
W = np.random.default_rng(9).normal(size=(3, 3)) * 0.5


# ------------------------------------------------------------------------- NaN beside a cotangent of zero
def leaves_after_tanh(w, x):
    h = np.tanh(w @ x)
    if np.isnan(h[0]):
        return 0.0
    return np.sum(h)


def leaves_after_logistic(w, x):
    h = 1.0 / (1.0 + np.exp(-(w @ x)))
    if np.isnan(h[0]):
        return 0.0
    return np.sum(h * h)


def leaves_after_many(w, x):
    h = w @ x
    h = np.sqrt(h * h) + np.abs(h) + np.maximum(h, 0.1) + np.log(h * h) + h**2 + np.arctan(h) + np.hypot(h, 1.0)
    if not np.isfinite(h[0]):
        return 0.0
    return np.sum(h)


def leaves_after_softmax(w, x):
    h = w @ x
    h = np.exp(h - np.max(h))
    h = h / np.sum(h)
    if np.isnan(h[0]):
        h = np.zeros(3)
    return np.sum(h * h)


def leaves_out_of_a_loop(w, x):
    h = w @ x
    for _ in range(2):
        h = np.tanh(w @ h)
        if np.isnan(h[0]):
            return 1.0
    return np.sum(np.sin(h) * np.cos(h) + np.minimum(h, 0.2) + h / (1.0 + h * h))


LEAVING = (
    leaves_after_tanh, leaves_after_logistic, leaves_after_many, leaves_after_softmax, leaves_out_of_a_loop,
)


@target
@pytest.mark.parametrize("function", LEAVING)
def test_nan_on_a_path_that_was_left_is_in_no_gradient(function: Any, target: str) -> None:
    x = np.random.default_rng(0).normal(size=(6, 3))
    x[1], x[4] = np.nan, [np.nan, 1.0, np.inf]
    well = np.isfinite(x).all(axis=1)
    batched = spmd.vmap(function, in_axes=(None, 0), target=target)
    value, pullback = spmd.vjp(batched, W, x)
    shared, own = pullback(np.ones(6))
    want_shared, want_own = spmd.vjp(batched, W, x[well])[1](np.ones(4))
    np.testing.assert_allclose(shared, want_shared, rtol=1e-9)
    np.testing.assert_allclose(own[well], want_own, rtol=1e-9)
    assert not own[~well].any() and np.isfinite(value).all()
    each = spmd.vmap(spmd.grad(function), in_axes=(None, 0), target=target)(W, x)
    np.testing.assert_allclose(each.sum(axis=0), want_shared, rtol=1e-9)
    assert not each[~well].any()


def test_products_summed_over_rows_take_zero_times_anything_as_zero() -> None:
    from spmd.backend.blas.gradients import summed_products

    rng = np.random.default_rng(0)
    some, often = [0, 1, -2, 0.5, np.inf, -np.inf, np.nan], [0.3, 0.3, 0.2, 0.1, 0.04, 0.03, 0.03]
    for _ in range(200):
        left, right = rng.choice(some, p=often, size=(6, 3)), rng.choice(some, p=often, size=(6, 2))
        with np.errstate(all="ignore"):
            rows = [np.where((a[:, None] == 0) | (b == 0), 0, a[:, None] * b) for a, b in zip(left, right, strict=True)]
            np.testing.assert_array_equal(summed_products(left, right), np.sum(rows, axis=0))


# ----------------------------------------------------------------------------- raising, and never ending
def divides_in_vain(x, n):
    k = 5 // (n * 2 % 5)  # noqa: F841
    return x


def divides_in_vain_in_a_loop(x, n):
    for i in range(3):
        k = 1.0 / (n - i)  # noqa: F841
    return np.exp(x)


def reads_in_vain(x, n):
    k = np.ones(3)[n] * x  # noqa: F841
    return 1.0


@target
@pytest.mark.parametrize(
    ("function", "numbers", "error", "index"),
    [
        (divides_in_vain, [1, 0, 0], ZeroDivisionError, 1),
        (divides_in_vain_in_a_loop, [7, 3, 2, 1], ZeroDivisionError, 2),
        (reads_in_vain, [1, -3, 3], IndexError, 2),
    ],
)
def test_what_raises_raises_though_its_result_is_not_used(
    function: Any, numbers: list[int], error: type[Exception], index: int, target: str
) -> None:
    batched = spmd.vmap(function, target=target)
    assert batched(np.ones(index), numbers[:index]).shape == (index,)
    with pytest.raises(error) as caught:
        batched(np.ones(len(numbers)), numbers)
    assert caught.value.example == index  # type: ignore[attr-defined]


def raises_or_spins(x, n):
    if n == 1:
        raise ValueError("one")
    while n == 2:
        x = x * 1.0
    for _ in range(n):
        x = x + 1.0
    return x


def raises_or_sinks(x, n):
    if n == 1:
        raise ValueError("one")
    if n == 2:
        return raises_or_sinks(x, n) + 1.0
    return x if n == 0 else raises_or_sinks(x, n - 1 if n > 3 else 0)


@target
@pytest.mark.parametrize("function", (raises_or_spins, raises_or_sinks))
def test_an_example_without_end_behind_the_one_that_raises_stops(function: Any, target: str) -> None:
    with pytest.raises(ValueError, match="one") as caught:
        spmd.vmap(function, target=target)(np.ones(4), [0, 500, 1, 2])
    assert caught.value.example == 2  # type: ignore[attr-defined]


class Link:
    def __init__(self, value: float, left: Link | None = None, right: Link | None = None) -> None:
        self.value, self.left, self.right = value, left, right


def follows(link):
    if link is None:
        return 0.0
    if link.value < 0.0:
        raise ValueError("negative")
    return link.value + follows(link.left) * follows(link.right)


def ring() -> Link:
    link = Link(1.0, Link(2.0))
    link.left.right = link  # type: ignore[union-attr]
    return link


@target
def test_a_call_that_waits_for_itself_is_no_result(target: str) -> None:
    twice = Link(3.0)
    batched = spmd.vmap(follows, target=target)
    fine, bad = Link(1.0, twice, twice), Link(1.0, Link(2.0), Link(-1.0))
    with spmd.configure(budget=1 << 20):
        with pytest.raises(spmd.MemoryBudgetError):
            batched([fine, ring(), bad])
        with pytest.raises(ValueError, match="negative") as caught:
            batched([fine, bad, ring()])
    assert caught.value.example == 1  # type: ignore[attr-defined]


# ---------------------------------------------------------------------------- whose arrays results are
def three_of_it(x, w):
    y = np.tanh(x)
    z = np.exp(y * w)
    return y, z, z * y, x


@target
def test_writing_to_results_and_arguments_changes_no_pullback(target: str) -> None:
    rng = np.random.default_rng(1)
    x, w = rng.normal(size=(5, 3)), rng.normal(size=3)
    batched = spmd.vmap(three_of_it, in_axes=(0, None), target=target)
    ones = (np.ones((5, 3)),) * 4
    want = spmd.vjp(batched, x, w)[1](ones)
    results, pullback = spmd.vjp(batched, x, w)
    for array in (*results, x, w):
        array[:] = 7.0
    got = pullback(ones)
    for one, other in zip(got, want, strict=True):
        np.testing.assert_array_equal(one, other)
        one *= 0.0  # gradients are the caller's own
    np.testing.assert_array_equal(pullback(ones)[0], want[0])


def named(x):
    return {"twice": x * 2.0, "square": x * x}


def test_a_cotangent_may_leave_results_out_but_not_name_others() -> None:
    _, pullback = spmd.vjp(spmd.vmap(named), np.ones(3))
    np.testing.assert_array_equal(pullback({"twice": np.ones(3)})[0], 2 * np.ones(3))
    with pytest.raises(spmd.SpmdError, match="structure"):
        pullback({"twice": np.ones(3), "cube": np.ones(3)})


# --------------------------------------------------------------------------------- threads, interrupts
@pytest.mark.parametrize("name", ("fib", "binary_tree_lstm", "child_sum_in_a_loop"))
def test_threads_share_a_function(name: str) -> None:
    program = ZOO[name]
    batched = spmd.vmap(program.fn, in_axes=program.in_axes)
    want = oracles.run_loop(program, 0, 20).values
    found: list[Any] = []

    def work() -> None:
        try:
            for _ in range(3):
                columns = [list(c) for c in zip(*program.examples(0, 20), strict=True)]
                got = batching.unpack(batched(*program.shared_arguments(), *columns))
                found.append(oracles.differences(got, want))
        except BaseException as error:
            found.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[]] * 12


def counts_up(x, n):
    while n < 10**12:
        n += 1
    return x


@target
def test_an_interrupt_leaves_everything_usable(target: str) -> None:
    batched = spmd.vmap(counts_up, target=target)
    assert batched(np.ones(2), [10**12] * 2).tolist() == [1, 1]
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            batched(np.ones(2), [1, 2])
    finally:
        timer.cancel()
    assert batched(np.ones(2), [10**12] * 2).tolist() == [1, 1]


# ------------------------------------------------------------------------------------- narrow vectors
NARROW = """
import batching, numpy as np, oracles, spmd, sys
from zoo import ZOO
for program in list(ZOO.values())[int(sys.argv[1])::5]:
    want = oracles.run_loop(program, 0, 9)
    columns = [list(c) for c in zip(*program.examples(0, 9), strict=True)]
    try:
        got = spmd.vmap(program.fn, in_axes=program.in_axes)(*program.shared_arguments(), *columns)
        assert want.error is None, program.name
        assert not oracles.differences(batching.unpack(got), want.values), program.name
    except Exception as error:
        assert type(error) is type(want.error) and error.example == want.index, (program.name, error)
print(spmd.config.options().width)
"""


@pytest.mark.parametrize("width", ("128", "256"))
def test_narrower_vectors_give_the_same(width: str) -> None:
    here = Path(__file__).resolve().parent
    path = os.pathsep.join([str(here), str(here.parent)])
    environment = {**os.environ, "SPMD_WIDTH": width, "SPMD_CACHE": "off", "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-c", NARROW, str(int(width) // 256)], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == width


def leaves_a_product_of_its_own(w, m, u):
    h = w @ u
    y = m @ h
    both = np.outer(h, u)
    if np.isnan(y[0]):
        return 0.0
    return np.sum(y) + np.sum(both)


@pytest.mark.parametrize("target", ["auto", "blas", "reference"])
def test_a_nan_in_a_product_of_two_per_example_values_stays_out_of_shared_weights(target: str) -> None:
    ms = [np.ones((3, 3)), np.full((3, 3), np.nan), np.ones((3, 3))]
    us = [np.ones(3), np.ones(3), np.array([np.inf, np.nan, 1.0])]
    run = spmd.vmap(leaves_a_product_of_its_own, in_axes=(None, 0, 0), target=target)
    _, pullback = spmd.vjp(run, 0.5 * np.eye(3), ms, us)
    weights, _, vectors = pullback(np.ones(3))
    assert np.array_equal(weights, np.full((3, 3), 6.0))
    assert np.array_equal(vectors, [[4.5] * 3, [0.0] * 3, [0.0] * 3])


def leaves_a_product_of_varying_size(w, xs, v):
    h = xs @ w
    total = np.sum(h @ v)
    if np.isnan(total):
        return 0.0
    return total + np.sum(h)


@pytest.mark.parametrize("target", ["auto", "blas", "reference"])
def test_a_nan_in_a_product_of_varying_size_stays_out_of_shared_weights(target: str) -> None:
    xs = [np.ones((3, 2)), np.full((1, 2), np.nan), np.ones((2, 2))]
    vs = [np.ones(2), np.ones(2), np.array([np.nan, 1.0])]
    run = spmd.vmap(leaves_a_product_of_varying_size, in_axes=(None, 0, 0), target=target)
    _, pullback = spmd.vjp(run, 0.5 * np.eye(2), xs, vs)
    weights, rows, vectors = pullback(np.ones(3))
    assert np.array_equal(weights, np.full((2, 2), 6.0))
    assert [bool(r.any()) for r in rows] == [True, False, False]
    assert np.array_equal(vectors, [[1.5, 1.5], [0.0, 0.0], [0.0, 0.0]])
