"""What a user holds is never written to by a later call, whatever memory the later call uses again.

The allocator fills what is freed, and what it gives out, with bytes that make NaN or huge numbers: reading an array
that is gone, or one that was never written, shows. Arrays are large enough to bypass NumPy's own cache of small ones.
"""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tolerance import close

import batching
import spmd
from spmd.backend.blas import executor
from spmd.runtime import heap

PERTURB = -6  # of mallopt
B, D = 40, 40
RNG = np.random.default_rng(0)
W = RNG.normal(size=(D, D)) / 8
X = RNG.normal(size=(B, D))
N = np.arange(B) % 5
target = pytest.mark.parametrize("target", ("auto", "blas"))


@pytest.fixture(autouse=True, params=(0xFF, 0x01), ids=("stale_nan", "fresh_huge"))
def poisoned(request: pytest.FixtureRequest) -> Iterator[None]:
    """Freed memory is filled with the byte, memory that is given out with its complement."""
    library = heap._glibc()
    if library is not None:
        library.mallopt(PERTURB, request.param)
    yield
    if library is not None:
        library.mallopt(PERTURB, 0)


def steps(w, x, n):
    if n == 0:
        return np.tanh(x)
    return steps(w, np.tanh(w @ x), n - 1) + x


def loops(w, x, n):
    for _ in range(n + 1):
        x = np.tanh(w @ x) + x
    return x


def cuts(w, x, n):
    return (w @ x)[n:] * x[n:]


def once(w, x, n):
    return np.tanh(w @ x)  # its derivative is made of the result


def fails(w, x, n):
    for k in range(n):
        x = np.tanh(w @ x)
        if k == 3:
            raise ValueError("four steps are too many")
    return x


function = pytest.mark.parametrize("function", (steps, loops, cuts, once))


def flat(value: Any) -> list[Any]:
    """The arrays of a result, a gradient or a list of them."""
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, (batching.Ragged, batching.Packed)):
        return flat(batching.unpack(value))
    return [] if value is None else [a for item in value for a in flat(item)]


def held(array: Any) -> int:
    """Bytes that live as long as an array."""
    return array.nbytes if array.base is None else array.base.nbytes


def copies(value: Any) -> list[Any]:
    return [a.copy() for a in flat(value)]


def same(value: Any, expected: list[Any]) -> None:
    found = flat(value)
    assert len(found) == len(expected) and all(map(np.array_equal, found, expected))


def loop(function: Any, scale: float = 1.0) -> list[Any]:
    return [function(W, x * scale, int(n)) for x, n in zip(X, N)]


def churn(batched: Any, sizes: Any = (40, 7, 33, 40)) -> None:
    """Calls of other sizes, whose results are dropped."""
    for size in sizes:
        batched(W, X[:size] * 2.0, N[:size])
        spmd.vjp(batched, W, X[:size] * 2.0, N[:size], argnums=(0, 1))
    gc.collect()


@target
@function
def test_results_stay(function: Any, target: str) -> None:
    batched = spmd.vmap(function, in_axes=(None, 0, 0), target=target)
    held = [batched(W, X, N) for _ in range(3)]
    expected = copies(held[0])
    assert all(map(close, batching.unpack(held[0]), loop(function)))
    churn(batched)
    for one in held:
        same(one, expected)


@target
@function
def test_a_result_may_be_written_to(function: Any, target: str) -> None:
    batched = spmd.vmap(function, in_axes=(None, 0, 0), target=target)
    out, pullback = spmd.vjp(batched, W, X, N, argnums=(0, 1))
    expected = copies(pullback(out))
    given = batched(W, X, N)
    writeable = [a for a in flat([out]) if a.flags.writeable]
    for a in writeable:
        a[...] = np.nan
    same(pullback(given), expected)


@target
@function
def test_gradients_stay(function: Any, target: str) -> None:
    batched = spmd.vmap(function, in_axes=(None, 0, 0), target=target)
    out, pullback = spmd.vjp(batched, W, X, N, argnums=(0, 1))
    held = [pullback(out), pullback(out)]
    expected = copies(held[0])
    del pullback
    churn(batched)
    for one in held:
        same(one, expected)
        for a in flat(one):
            assert a.flags.writeable
            a[...] = np.nan


@target
@function
def test_pullbacks_stay_alive_beside_each_other(function: Any, target: str) -> None:
    batched = spmd.vmap(function, in_axes=(None, 0, 0), target=target)
    made = [spmd.vjp(batched, W, X * scale, N, argnums=(0, 1)) for scale in (1.0, 0.5, 2.0)]
    first = [copies(pullback(out)) for out, pullback in made]
    churn(batched)
    for k in (2, 0, 1, 0):
        out, pullback = made[k]
        same(pullback(out), first[k])
    del made[1]
    churn(batched)
    for (out, pullback), expected in zip(made, (first[0], first[2])):
        same(pullback(out), expected)


@target
@pytest.mark.parametrize("budget", (1 << 30, 200_000))
def test_pieces_stay_apart(budget: int, target: str) -> None:
    batched = spmd.vmap(steps, in_axes=(None, 0, 0), target=target)
    with spmd.configure(budget=budget):
        out, pullback = spmd.vjp(batched, W, X, N, argnums=(0, 1))
        held = pullback(out)
        expected = copies(held)
        assert all(map(close, out, loop(steps)))
        churn(batched)
        same(pullback(out), expected)
        same(held, expected)


@target
@function
def test_threads_share_an_executable(function: Any, target: str) -> None:
    batched = spmd.vmap(function, in_axes=(None, 0, 0), target=target)
    scales = (1.0, 0.25, 3.0)
    alone = []
    for scale in scales:
        out, pullback = spmd.vjp(batched, W, X * scale, N, argnums=(0, 1))
        alone.append((copies(out), copies(pullback(out))))
    wrong: list[Any] = []

    def work(k: int) -> None:
        for _ in range(8):
            out, pullback = spmd.vjp(batched, W, X * scales[k], N, argnums=(0, 1))
            found = (copies(out), copies(pullback(out)))
            for part, expected in zip(found, alone[k]):
                if not all(map(np.array_equal, part, expected)):
                    wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(scales))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@target
def test_an_array_may_be_freed_by_another_thread(target: str) -> None:
    batched = spmd.vmap(loops, in_axes=(None, 0, 0), target=target)
    made: list[Any] = []
    thread = threading.Thread(target=lambda: made.append(spmd.vjp(batched, W, X, N, argnums=(0, 1))))
    thread.start()
    thread.join()
    out, pullback = made.pop()
    expected = copies(pullback(out))
    churn(batched)
    same(pullback(out), expected)
    del pullback
    churn(batched)
    assert all(map(close, out, loop(loops)))


@target
def test_an_exception_in_the_middle(target: str) -> None:
    batched = spmd.vmap(fails, in_axes=(None, 0, 0), target=target)
    few = np.minimum(N, 3)
    out, pullback = spmd.vjp(batched, W, X, few, argnums=(0, 1))
    expected = copies(pullback(out))
    for _ in range(3):
        with pytest.raises(ValueError, match="four steps") as raised:
            batched(W, X, N)
        assert raised.value.example == 4
        same(pullback(out), expected)
    same(batched(W, X, few), [np.array(out)])


@target
def test_an_interrupt_in_the_middle(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C between two regions, forward and backward; the next calls give what calls before gave."""
    batched = spmd.vmap(loops, in_axes=(None, 0, 0), target=target)
    out, pullback = spmd.vjp(batched, W, X, N, argnums=(0, 1))
    expected = copies([out, pullback(out)])
    branch = executor.Machine.branch
    calls = 0

    def interrupted(*args: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            signal.raise_signal(signal.SIGINT)
        branch(*args)

    monkeypatch.setattr(executor.Machine, "branch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        batched(W, X, N)
    monkeypatch.undo()
    churn(batched)
    same([out, pullback(out)], expected)
    again, back = spmd.vjp(batched, W, X, N, argnums=(0, 1))
    same([again, back(again)], expected)


@target
def test_a_call_inside_a_call(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal handler or a finaliser may call the executable that is running."""
    batched = spmd.vmap(loops, in_axes=(None, 0, 0), target=target)
    expected = copies(batched(W, X, N))
    branch = executor.Machine.branch
    inner: list[Any] = []
    depth = 0

    def nested(*args: Any) -> None:
        nonlocal depth
        if depth < 2:
            depth += 1
            inner.append(batched(W, X, N))
        branch(*args)

    monkeypatch.setattr(executor.Machine, "branch", nested)
    outer = batched(W, X, N)
    monkeypatch.undo()
    churn(batched)
    for one in (outer, *inner):
        same(one, expected)


def test_what_is_given_holds_its_own_memory_alone() -> None:
    """A few rows of a recursion's frames, or of an input, are not views of all of it."""
    out = spmd.vmap(steps, in_axes=(None, 0, 0))(W, X[:3], np.full(3, 500))
    assert held(out) <= 2 * out.nbytes
    out, pullback = spmd.vjp(spmd.vmap(steps, in_axes=(None, 0, 0)), W, X[:3], np.full(3, 500), argnums=(1,))
    assert held(pullback(out)[0]) <= 2 * out.nbytes
    arrays = batching.pack([np.arange(3.0), np.arange(5.0)])
    assert not np.shares_memory(spmd.vmap(lambda x: x)(arrays).values, arrays.root.values)
