"""The structural ops of the IR as the reference target defines them: runs of rows, guards, nested control flow."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from spmd.backend.reference.target import compile_program
from spmd.errors import InternalError
from spmd.ir.parser import parse

RUNS = """
module @runs
table item(value: float64) unique
func @runs(%s: seq<item>, %k: int) -> (float64, int, float64[?]) {
  %one: int = const [value=1]
  %n: int = length %s
  %x: ref<item> = item %s, %k [table="item"]
  %v: float64 = load %x [table="item", field=0]
  %part: seq<item> = seqslice %s, %one, %n
  %m: int = length %part
  %c: float64[?] = column %part [table="item", field=0]
  return %v, %m, %c
}
"""

GUARDED = """
module @guarded
table node(next: ref<node?>) unique
func @guarded(%x: ref<node>, %ok: pybool) -> (int) {
  guard %ok [error=("RuntimeError", ("not ok",))]
  %n: ref<node?> = load %x [table="node", field=0]
  %m: ref<node> = nonnull %n [error=("AttributeError", ("no next",))]
  %one: int = const [value=1]
  return %one
}
"""

NESTED = """
module @nested
func @nested(%n: int, %m: int) -> (int) {
  %zero: int = const [value=0]
  %one: int = const [value=1]
  %ten: int = const [value=10]
  %r: int = loop %zero, %zero (%i: int, %s: int) {
    %more: pybool = lt %i, %n
    if %more {
      yield
    } else {
      break %s
    }
    %t: int = loop %zero, %s (%j: int, %u: int) {
      %inner: pybool = lt %j, %m
      if %inner {
        %large: pybool = gt %u, %ten
        if %large {
          return %u
        } else {
          %j1: int = add %j, %one
          %u1: int = add %u, %j1
          continue %j1, %u1
        }
        unreachable
      } else {
        break %u
      }
      unreachable
    }
    %i1: int = add %i, %one
    continue %i1, %t
  }
  return %r
}
"""

MAPS = """
module @main
func @square(%x: float64, %w: float64, %i: int) -> (float64) {
  %k: float64 = cast %i [dtype="float64", python=False]
  %y: float64 = mul %x, %w
  %z: float64 = mul %y, %y
  %r: float64 = add %z, %k
  return %r
}
func @main(%v: float64[3], %w: float64) -> (float64[?]) {
  %three: int = const [value=3]
  %s: seq<@square> = map %three, %v, %w, %three [function="square", each=("each", "same", "index")]
  %c: float64[?] = column %s [table="@square", field=0]
  return %c
}
"""

MISTYPED = """
module @mistyped
func @mistyped(%x: float32) -> (float64) {
  %y: float64 = mul %x, %x
  return %y
}
"""


def forward(text: str, params: list[Any], tables: dict[str, Any], batch: int, tape: bool = False) -> Any:
    return compile_program(parse(text)).forward([], params, tables, batch, tape)


def table(*fields: Any) -> Any:
    return SimpleNamespace(fields=list(fields))


def test_runs_of_rows_are_read_by_element_and_by_column() -> None:
    items = table(np.arange(5.0))
    runs = (np.array([0, 2]), np.array([2, 3]))
    run = forward(RUNS, [runs, np.array([1, -1])], {"item": items}, 2, tape=True)
    assert run.results[0].tolist() == [1.0, 4.0]
    assert run.results[1].tolist() == [1, 2]
    assert [run.results[2].one(k).tolist() for k in range(2)] == [[1.0], [3.0, 4.0]]
    got = run.backward([np.array([10.0, 20.0]), None, run.results[2]])
    assert got.tables["item", 0].tolist() == [0.0, 11.0, 0.0, 3.0, 24.0]


def test_an_element_past_the_end_raises() -> None:
    runs = (np.array([0, 2]), np.array([2, 3]))
    with pytest.raises(IndexError) as caught:
        forward(RUNS, [runs, np.array([1, 3])], {"item": table(np.arange(5.0))}, 2)
    assert caught.value.example == 1  # type: ignore[attr-defined]


def test_guards_and_missing_rows_raise_what_they_name() -> None:
    nodes = {"node": table(np.array([1, -1]))}
    with pytest.raises(RuntimeError, match="not ok"):
        forward(GUARDED, [np.array([0]), np.array([False])], nodes, 1)
    with pytest.raises(AttributeError, match="no next") as caught:
        forward(GUARDED, [np.array([0, 1]), np.array([True, True])], nodes, 2)
    assert caught.value.example == 1  # type: ignore[attr-defined]


def test_break_continue_and_return_leave_the_right_loops() -> None:
    def nested(n: int, m: int) -> int:
        s = 0
        for _ in range(n):
            for j in range(m):
                if s > 10:
                    return s
                s += j + 1
        return s

    trips = np.array([(n, m) for n in range(5) for m in range(5)])
    run = forward(NESTED, [trips[:, 0], trips[:, 1]], {}, len(trips))
    assert run.results[0].tolist() == [nested(*pair) for pair in trips.tolist()]


def test_a_map_hands_out_elements_shared_values_and_numbers() -> None:
    v, w = np.array([[1.0, 2.0, 3.0], [0.0, -1.0, 4.0]]), np.array([2.0, 0.5])
    run = forward(MAPS, [v, w], {}, 2, tape=True)
    assert np.array_equal(run.results[0].data.reshape(2, 3), (v * w[:, None]) ** 2 + np.arange(3))
    got = run.backward([run.results[0].with_data(np.ones(6))])
    assert np.allclose(got.params[0], 2 * v * w[:, None] ** 2)
    assert np.allclose(got.params[1], np.sum(2 * v * v * w[:, None], axis=1))


def test_a_result_of_another_type_than_inferred_is_an_internal_error() -> None:
    with pytest.raises(InternalError, match="float32.*float64"):
        forward(MISTYPED, [np.ones(1, np.float32)], {}, 1)

SHARED_TABLE = """
module @pick
table weight(value: float64)
input %all: seq<weight>
func @pick(%k: int, %x: float64) -> (float64) {
  %w: ref<weight> = item %all, %k [table="weight"]
  %v: float64 = load %w [table="weight", field=0]
  %y: float64 = mul %v, %x
  return %y
}
"""


def test_rows_that_examples_share_have_a_gradient_per_example_or_their_sum() -> None:
    weights = {"weight": table(np.array([2.0, 3.0]))}
    params = [np.array([1, 0, 1]), np.array([5.0, 7.0, 11.0])]
    run = compile_program(parse(SHARED_TABLE)).forward([(0, 2)], params, weights, 3, True)
    assert run.results[0].tolist() == [15.0, 14.0, 33.0]
    assert run.backward([np.ones(3)]).tables["weight", 0].tolist() == [7.0, 16.0]
    lanes = run.backward([np.ones(3)], per_lane=True).tables["weight", 0]
    assert [lane.tolist() for lane in lanes] == [[0.0, 5.0], [7.0, 0.0], [0.0, 11.0]]
