"""Hand-written programs through regions, code and schedule: values and gradients against plain Python."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from blas_programs import (
    D,
    central,
    child_sum,
    compiled,
    deep,
    endless,
    fib,
    plain_child_sum,
    plain_fib,
    plain_risky,
    plain_rnn,
    plain_swap,
    plain_tree,
    risky,
    rnn,
    swap,
    tree,
)

from spmd.config import configure
from spmd.errors import MemoryBudgetError
from spmd.runtime.frames import TableData
from spmd.runtime.ragged import Ragged, from_arrays

TARGETS = ("auto", "blas")
target = pytest.mark.parametrize("target", TARGETS)


def close(got: Any, want: Any) -> None:
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def forest(rng: np.random.Generator, count: int, depth: int = 5) -> tuple[Any, Any, Any]:
    left: list[int] = []
    right: list[int] = []

    def grow(levels: int) -> int:
        node = len(left)
        left.append(-1)
        right.append(-1)
        if levels and rng.random() < 0.8:
            left[node], right[node] = grow(levels - 1), grow(levels - 1)
        return node

    roots = [grow(depth) for _ in range(count)]
    return np.array(roots), np.array(left), np.array(right)


@target
def test_two_calls_of_one_function_give_fib(target: str) -> None:
    run = compiled(fib(), target=target).forward([], [np.arange(12)], {}, 12)
    assert run.results[0].tolist() == [plain_fib(n) for n in range(12)]


@target
@pytest.mark.parametrize("program, args", [(fib, [np.array([9])]), (risky, [np.array([3]), np.array([50])])])
def test_many_copies_run_as_many_regions_as_one_example(target: str, program: Any, args: list[Any]) -> None:
    code = compiled(program(), target=target)
    one = code.forward([], args, {}, 1)
    many = code.forward([], [np.repeat(a, 512) for a in args], {}, 512)
    assert many.region_runs == one.region_runs
    assert (many.results[0] == one.results[0][0]).all()


@target
def test_a_loop_over_sequences_of_any_length(target: str) -> None:
    rng = np.random.default_rng(1)
    source, w = rnn()
    code = compiled(source, [w, 0, 1], target)
    W, hs = rng.normal(size=(D, D)), rng.normal(size=(5, D))
    xs = [rng.normal(size=(n, D)) for n in (3, 0, 5, 2, 1)]
    run = code.forward([W], [from_arrays(xs), hs], {}, 5, tape=True)
    close(run.results[0], [plain_rnn(W, x, h) for x, h in zip(xs, hs)])
    got = run.backward([np.ones(5)])
    close(got.inputs[0], central(lambda v: sum(plain_rnn(v, x, h) for x, h in zip(xs, hs)), W))
    close(got.params[1], central(lambda v: sum(plain_rnn(W, x, h) for x, h in zip(xs, v)), hs))
    for i in range(5):
        close(got.params[0].one(i), central(lambda v, i=i: plain_rnn(W, v, hs[i]), xs[i]))  # type: ignore[misc]


@target
def test_two_parameters_may_share_one_buffer(target: str) -> None:
    source, w = rnn()
    code = compiled(source, [0], target)
    data = np.arange(6.0).reshape(2, D)
    whole = Ragged(data, np.zeros(2, np.int64), np.full((2, 1), 2), False)
    run = code.forward([np.eye(D)], [whole, np.zeros((2, D))], {}, 2, tape=True)
    close(run.results[0][0], run.results[0][1])


@target
def test_a_swap_in_a_loop_is_parallel(target: str) -> None:
    rng = np.random.default_rng(2)
    source, w = swap()
    code = compiled(source, [w, 1, 2], target)
    W = rng.normal(size=(D, D))
    ns, a, b = np.array([0, 1, 2, 3, 7, 4]), rng.normal(size=(6, D)), rng.normal(size=(6, D))

    def total(w: Any, a: Any, b: Any) -> Any:
        return sum(plain_swap(w, n, x, y) for n, x, y in zip(ns, a, b))

    run = code.forward([W], [ns, a, b], {}, 6, tape=True)
    close(run.results[0].sum(), total(W, a, b))
    got = run.backward([np.ones(6)])
    close(got.inputs[0], central(lambda v: total(v, a, b), W))
    close(got.params[1], central(lambda v: total(W, v, b), a))
    close(got.params[2], central(lambda v: total(W, a, v), b))


@target
@pytest.mark.parametrize("shared", [False, True])
def test_trees_and_shared_nodes(target: str, shared: bool) -> None:
    rng = np.random.default_rng(3)
    source, w = tree(shared)
    code = compiled(source, [w, ("node", 0)], target)
    roots, left, right = forest(rng, 7)
    if shared:
        for i in np.flatnonzero(left >= 0):
            choice = rng.integers(3)
            below = left[left[i]]
            right[i] = left[i] if choice == 0 else below if choice == 1 and below >= 0 else right[i]
    x, W, weights = rng.normal(size=(len(left), D)) * 0.5, rng.normal(size=(D, D)) * 0.3, np.arange(7.0) + 1
    data = {"node": TableData("node", [x, left, right])}

    def total(w: Any, x: Any) -> Any:
        return sum(k * plain_tree(w, x, left, right, r) for k, r in zip(weights, roots))

    run = code.forward([W], [roots], data, 7, tape=True)
    close(run.results[0], [plain_tree(W, x, left, right, r) for r in roots])
    got = run.backward([weights])
    close(got.inputs[0], central(lambda v: total(v, x), W))
    close(got.tables["node", 0], central(lambda v: total(W, v), x))
    again = run.backward([weights])
    np.testing.assert_array_equal(got.inputs[0], again.inputs[0])
    each = run.backward([weights], per_lane=True).inputs[0]
    close(each.sum(0), got.inputs[0])
    for i in (0, 4):
        close(each[i], central(lambda v, i=i: weights[i] * plain_tree(v, x, left, right, roots[i]), W))  # type: ignore[misc]


def test_a_shared_node_has_one_frame() -> None:
    source, _ = tree(shared=True)
    n = 30
    below = np.append(np.arange(1, n), -1)
    data = {"node": TableData("node", [np.full((n, D), 0.01), below, below])}
    run = compiled(source).forward([np.eye(D)], [np.array([0])], data, 1)
    assert run.table("@enc").rows == n


@target
def test_any_number_of_children(target: str) -> None:
    rng = np.random.default_rng(4)
    source, w = child_sum()
    code = compiled(source, [w, ("node", 0)], target)
    first, count = np.array([3, 5, 5, 5, 5, 8, 9, 9, 9, 9]), np.array([2, 0, 3, 0, 0, 1, 0, 0, 1, 0])
    x, W, roots = rng.normal(size=(10, D)), rng.normal(size=(D, D)) * 0.5, np.arange(3)
    data = {"node": TableData("node", [x, (first, count)])}

    def total(w: Any, x: Any) -> Any:
        return sum(plain_child_sum(w, x, first, count, r) for r in roots)

    run = code.forward([W], [roots], data, 3, tape=True)
    close(run.results[0], [plain_child_sum(W, x, first, count, r) for r in roots])
    got = run.backward([np.ones(3)])
    close(got.inputs[0], central(lambda v: total(v, x), W))
    close(got.tables["node", 0], central(lambda v: total(W, v), x))


def test_recursion_100000_deep_forward_and_backward() -> None:
    run = compiled(deep(), [1]).forward([], [np.array([100_000, 5, 0]), np.array([1.0, 2.0, 3.0])], {}, 3, True)
    close(run.results[0], [2.0, 3.9375, 3.0])
    close(run.backward([np.ones(3)]).params[1], [2.0, 1.96875, 1.0])


def test_recursion_without_end_is_stopped_by_the_memory_budget() -> None:
    with configure(budget=1 << 18), pytest.raises(MemoryBudgetError, match=r"'endless'.*deep"):
        compiled(endless()).forward([], [np.array([0])], {}, 1)


@target
def test_the_first_example_that_raises_is_named(target: str) -> None:
    rng = np.random.default_rng(5)
    code = compiled(risky(), target=target)
    for _ in range(60):
        ns, ks = rng.integers(0, 5, size=9), rng.integers(-6, 14, size=9)
        want = None
        for i, (n, k) in enumerate(zip(ns, ks)):
            try:
                plain_risky(int(n), int(k))
            except ZeroDivisionError:
                want = i
                break
        try:
            run = code.forward([], [ns, ks], {}, 9)
            got = None
            assert run.results[0].tolist() == [plain_risky(int(n), int(k)) for n, k in zip(ns, ks)]
        except ZeroDivisionError as error:
            got = error.example  # type: ignore[attr-defined]
        assert got == want


@target
def test_a_small_budget_runs_the_batch_in_chunks(target: str) -> None:
    rng = np.random.default_rng(6)
    source, w = swap()
    code = compiled(source, [w, 1], target)
    W, ns = rng.normal(size=(D, D)), rng.integers(0, 5, size=40)
    a, b = rng.normal(size=(40, D)), rng.normal(size=(40, D))
    whole = code.forward([W], [ns, a, b], {}, 40, tape=True)
    with configure(budget=16_000):
        parts = code.forward([W], [ns, a, b], {}, 40, tape=True)
    assert len(parts.chunks) > 1
    close(parts.results[0], whole.results[0])
    for per_lane in (False, True):
        got, want = parts.backward([ns * 1.0], per_lane), whole.backward([ns * 1.0], per_lane)
        close(got.inputs[0], want.inputs[0])
        close(got.params[1], want.params[1])


@target
@pytest.mark.parametrize("batch", [0, 1])
def test_empty_and_single_batches(target: str, batch: int) -> None:
    source, w = rnn()
    code = compiled(source, [w, 1], target)
    xs = [np.ones((2, D))] * batch
    x = from_arrays(xs) if batch else Ragged(np.zeros((0, D)), np.zeros(0, np.int64), np.zeros((0, 1), np.int64), True)
    run = code.forward([np.eye(D)], [x, np.zeros((batch, D))], {}, batch, tape=True)
    assert run.results[0].shape == (batch,)
    got = run.backward([np.ones(batch)], per_lane=True)
    assert got.inputs[0].shape == (batch, D, D)


def test_generated_text_holds_numbered_names_only() -> None:
    source, w = tree()
    for text in compiled(source, [w]).texts.values():
        assert "enc" not in text and "node" not in text


def test_one_program_serves_many_threads() -> None:
    rng = np.random.default_rng(7)
    source, w = tree()
    code = compiled(source, [w, ("node", 0)])
    roots, left, right = forest(rng, 6)
    x, W = rng.normal(size=(len(left), D)), rng.normal(size=(D, D)) * 0.3
    data = {"node": TableData("node", [x, left, right])}

    def work(scale: float) -> tuple[Any, Any]:
        run = code.forward([W * scale], [roots], data, 6, tape=True)
        return run.results[0], run.backward([np.ones(6)]).inputs[0]

    scales = [0.1 * k for k in range(12)]
    alone = [work(s) for s in scales]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(work, scales))
    for (a, g), (b, h) in zip(alone, together):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(g, h)
