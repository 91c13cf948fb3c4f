"""The reference target on modules written by hand: values, gradients, exceptions and depth."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import spmd
from spmd.backend.reference.target import Compiled, compile_program
from spmd.errors import MemoryBudgetError
from spmd.ir.parser import parse
from spmd.runtime.ragged import Ragged

FIB = """
module @fib
func @fib(%n: int) -> (int) {
  %two: int = const [value=2]
  %one: int = const [value=1]
  %small: pybool = lt %n, %two
  %r: int = if %small {
    yield %n
  } else {
    %a: int = sub %n, %one
    %b: int = sub %n, %two
    %x: int = call %a [function="fib"]
    %y: int = call %b [function="fib"]
    %s: int = add %x, %y
    yield %s
  }
  return %r
}
"""

SWAPS = """
module @swaps
input %w: float64[2, 2]
func @swaps(%x: float64[2], %y: float64[2], %n: int) -> (float64[2], float64[2]) {
  %zero: int = const [value=0]
  %one: int = const [value=1]
  %u: float64[2], %v: float64[2] = loop %x, %y, %n (%a: float64[2], %b: float64[2], %k: int) {
    %more: pybool = gt %k, %zero
    if %more {
      %c: float64[2] = matmul %w, %b
      %d: float64[2] = mul %a, %a
      %j: int = sub %k, %one
      continue %c, %d, %j
    } else {
      break %a, %b
    }
    unreachable
  }
  return %u, %v
}
"""

TREE = """
module @total
input %w: float64
table node(left: ref<node?>, right: ref<node?>, value: float64[2]) unique
func @total(%t: ref<node>) -> (float64[2]) {
  %l: ref<node?> = load %t [table="node", field=0]
  %leaf: pybool = isnull %l
  if %leaf {
    %v: float64[2] = load %t [table="node", field=2]
    return %v
  } else {
    yield
  }
  %ll: ref<node> = nonnull %l [error=("AttributeError", ("no child",))]
  %r: ref<node?> = load %t [table="node", field=1]
  %rr: ref<node> = nonnull %r [error=("AttributeError", ("no child",))]
  %a: float64[2] = call %ll [function="total"]
  %b: float64[2] = call %rr [function="total"]
  %p: float64[2] = mul %a, %b
  %ws: float64[2] = broadcast %w [shape=(2,)]
  %q: float64[2] = mul %ws, %p
  %own: float64[2] = load %t [table="node", field=2]
  %s: float64[2] = add %q, %own
  return %s
}
"""

CHILDREN = """
module @root
table node(kids: seq<node>, value: float64) unique
func @root(%t: ref<node>) -> (float64) {
  %kids: seq<node> = load %t [table="node", field=0]
  %n: int = length %kids
  %done: seq<@root> = map %n, %kids [function="root", each=("each",)]
  %all: float64[?] = column %done [table="@root", field=0]
  %square: float64[?] = mul %all, %all
  %s: float64 = sum %square [axes=(0,), keepdims=False]
  %v: float64 = load %t [table="node", field=1]
  %r: float64 = add %s, %v
  return %r
}
"""

RAGGED = """
module @squares
func @squares(%x: float64[?, 2]) -> (float64[?, 2], float64[2]) {
  %y: float64[?, 2] = mul %x, %x
  %s: float64[2] = sum %y [axes=(0,), keepdims=False]
  return %y, %s
}
"""

DEEP = """
module @deep
func @deep(%x: float64, %n: int) -> (float64) {
  %zero: int = const [value=0]
  %one: int = const [value=1]
  %end: pybool = eq %n, %zero
  if %end {
    return %x
  } else {
    yield
  }
  %m: int = sub %n, %one
  %r: float64 = call %x, %m [function="deep"]
  %s: float64 = add %r, %x
  return %s
}
"""

ENDLESS = """
module @endless
func @endless(%x: float64) -> (float64) {
  %r: float64 = call %x [function="endless"]
  return %r
}
"""

QUOTIENT = """
module @quotient
func @quotient(%a: int, %b: int) -> (int) {
  %q: int = floordiv %a, %b
  return %q
}
"""

DERIVED = """
module @scaled
input %w: float64
derived %ww: float64

prologue {
  %p: float64 = mul %w, %w
  yield %p
}

func @scaled(%x: float64) -> (float64) {
  %y: float64 = mul %ww, %x
  return %y
}
"""


def compiled(text: str) -> Compiled:
    return compile_program(parse(text))


def table(*fields: Any) -> Any:
    return SimpleNamespace(fields=list(fields))


def test_recursion_gives_each_example_its_own_value() -> None:
    run = compiled(FIB).forward([], [np.arange(9)], {}, 9, False)
    assert run.results[0].dtype == np.int64
    assert run.results[0].tolist() == [0, 1, 1, 2, 3, 5, 8, 13, 21]


def test_an_empty_batch_has_empty_results() -> None:
    run = compiled(FIB).forward([], [np.arange(0)], {}, 0, True)
    assert run.results[0].shape == (0,)
    assert run.backward([None]).params == [None]


def test_a_loop_updates_its_variables_in_parallel_and_so_does_its_reverse() -> None:
    rng = np.random.default_rng(0)
    w, x, y = rng.normal(size=(2, 2)), rng.normal(size=(4, 2)), rng.normal(size=(4, 2))
    trips = np.array([0, 1, 2, 5])
    target = compiled(SWAPS)

    def outcome(w: Any, x: Any, y: Any) -> tuple[Any, Any]:
        for k, n in enumerate(trips):
            for _ in range(n):
                x[k], y[k] = w @ y[k], x[k] * x[k]
        return x, y

    run = target.forward([w], [x, y, trips], {}, 4, True)
    u, v = outcome(w, x.copy(), y.copy())
    assert np.allclose(run.results[0], u)
    assert np.allclose(run.results[1], v)
    seeds = [rng.normal(size=(4, 2)), rng.normal(size=(4, 2))]

    def loss(w: Any, x: Any, y: Any) -> float:
        u, v = outcome(w, x.copy(), y.copy())
        return float(np.sum(u * seeds[0]) + np.sum(v * seeds[1]))

    summed, lanes = run.backward(seeds), run.backward(seeds, per_lane=True)
    assert np.allclose(summed.inputs[0], numeric(lambda a: loss(a, x, y), w), atol=1e-6)
    assert np.allclose(summed.params[0], numeric(lambda a: loss(w, a, y), x), atol=1e-6)
    assert np.allclose(summed.params[1], numeric(lambda a: loss(w, x, a), y), atol=1e-6)
    assert summed.params[2] is None
    assert lanes.inputs[0].shape == (4, 2, 2)
    assert np.allclose(lanes.inputs[0].sum(axis=0), summed.inputs[0])


def numeric(fn: Any, at: Any) -> Any:
    """Central differences, element by element."""
    out = np.zeros_like(at)
    for index in np.ndindex(at.shape):
        step = np.zeros_like(at)
        step[index] = 1e-5
        out[index] = (fn(at + step) - fn(at - step)) / 2e-5
    return out


def test_tree_fields_receive_cotangents() -> None:
    left, right = np.array([1, -1, -1, 4, -1, -1]), np.array([2, -1, -1, 5, -1, -1])
    value = np.random.default_rng(1).normal(size=(6, 2))
    roots = np.array([0, 3, 1])
    target = compiled(TREE)

    def results(w: float, value: Any) -> Any:
        def total(t: int) -> Any:
            return value[t] if left[t] < 0 else w * total(left[t]) * total(right[t]) + value[t]

        return np.array([total(t) for t in roots])

    run = target.forward([0.7], [roots], {"node": table(left, right, value)}, 3, True)
    assert np.allclose(run.results[0], results(0.7, value))
    seed = np.random.default_rng(2).normal(size=(3, 2))
    got = run.backward([seed])
    assert np.allclose(got.tables["node", 2], numeric(lambda v: np.sum(results(0.7, v) * seed), value), atol=1e-6)
    assert np.allclose(got.inputs[0], numeric(lambda w: np.sum(results(w[()], value) * seed), np.array(0.7)), atol=1e-6)


def test_a_map_over_children_stacks_their_results() -> None:
    first, count = np.array([1, 3, 0, 0, 0]), np.array([2, 2, 0, 0, 0])
    value = np.array([0.5, -1.0, 2.0, 0.25, 3.0])

    def total(t: int, value: Any) -> float:
        return value[t] + sum(total(k, value) ** 2 for k in range(first[t], first[t] + count[t]))

    run = compiled(CHILDREN).forward([], [np.array([0, 1])], {"node": table((first, count), value)}, 2, True)
    assert np.allclose(run.results[0], [total(0, value), total(1, value)])
    got = run.backward([np.ones(2)]).tables["node", 1]
    assert np.allclose(got, numeric(lambda v: total(0, v) + total(1, v), value), atol=1e-5)


def test_arrays_of_different_length_go_in_and_come_out_ragged() -> None:
    data = np.arange(10.0).reshape(5, 2)
    column = Ragged(data, np.array([0, 0, 3]), np.array([[0], [3], [2]]), True)
    run = compiled(RAGGED).forward([], [column], {}, 3, True)
    out = run.results[0]
    assert out.dims.tolist() == [[0], [3], [2]]
    assert np.array_equal(out.data, data**2)
    assert np.array_equal(run.results[1], [[0, 0], np.sum(data[:3] ** 2, 0), np.sum(data[3:] ** 2, 0)])
    seed = Ragged(np.ones((5, 2)), out.lo, out.dims, True)
    got = run.backward([seed, np.ones((3, 2))]).params[0]
    assert np.array_equal(got.data, 4 * data)


def test_a_hundred_thousand_calls_deep_works_forward_and_backward() -> None:
    run = compiled(DEEP).forward([], [np.array([0.5]), np.array([100_000])], {}, 1, True)
    assert run.results[0][0] == pytest.approx(0.5 * 100_001)
    assert run.backward([np.ones(1)]).params[0][0] == 100_001


def test_recursion_without_end_is_stopped_by_the_budget() -> None:
    with spmd.configure(budget=2_000_000), pytest.raises(MemoryBudgetError, match="'endless' was [0-9,]+ calls deep"):
        compiled(ENDLESS).forward([], [np.ones(1)], {}, 1, False)


def test_the_first_raising_example_raises_with_its_index() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        compiled(QUOTIENT).forward([], [np.array([7, 1, 2]), np.array([2, 0, 0])], {}, 3, False)
    assert caught.value.example == 1  # type: ignore[attr-defined]


def test_derived_inputs_take_their_cotangents_back_to_the_given_ones() -> None:
    run = compiled(DERIVED).forward([3.0], [np.array([1.0, 2.0])], {}, 2, True)
    assert run.results[0].tolist() == [9.0, 18.0]
    assert run.backward([np.ones(2)]).inputs == [18.0]
    assert run.backward([np.ones(2)], per_lane=True).inputs[0].tolist() == [6.0, 12.0]
    assert run.backward([np.ones(2)]).inputs == [18.0]


def test_without_a_tape_there_is_no_backward() -> None:
    run = compiled(DERIVED).forward([3.0], [np.array([1.0])], {}, 1, False)
    with pytest.raises(ValueError, match="tape"):
        run.backward([np.ones(1)])
