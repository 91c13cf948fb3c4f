"""Live variables and activity are least fixpoints."""

from __future__ import annotations

from typing import Any

from spmd.analysis.activity import activity
from spmd.analysis.effects import leaves, may_raise, removable
from spmd.analysis.liveness import live_in
from spmd.ir.parser import parse
from spmd.ir.region import Program
from spmd.ops.table import PRIMITIVES
from spmd.transform.regions import regions


def test_variables_that_feed_only_dead_variables_are_dead() -> None:
    # 0: a, b := start;  1: a := a + 1 (nobody reads a), branch on b;  2: return b
    code: dict[int, list[tuple[str, list[str]]]] = {0: [("a", []), ("b", [])], 1: [("a", ["a"])], 2: []}
    reads: dict[int, set[str]] = {0: set(), 1: {"b"}, 2: {"b"}}
    edges = {0: [1], 1: [1, 2], 2: []}

    def transfer(node: int, out: set[str]) -> set[str]:
        alive = out | reads[node]
        for target, sources in reversed(code[node]):
            if target in alive:
                alive = (alive - {target}) | set(sources)
        return alive

    assert live_in(list(edges), lambda n: edges[n], transfer) == {0: set(), 1: {"b"}, 2: {"b"}}


TEXT = """module @f
input %w: float64
input %u: float64
table node(x: float64, y: float64, n: int) unique
func @f(%r: ref<node>, %a: float64, %k: int) -> (float64, int) {
  %x: float64 = load %r [table="node", field=0]
  %y: float64 = load %r [table="node", field=1]
  %zero: int = const [value=0]
  %one: int = const [value=1]
  %s: float64 = loop %zero, %a (%i: int, %v: float64) {
    %c: pybool = lt %i, %k
    if %c {
      yield
    } else {
      break %v
    }
    %f: float64 = floor %y
    %m: float64 = mul %v, %x
    %p: float64 = mul %m, %w
    %q: float64 = add %p, %f
    %unused: float64 = mul %q, %u
    %j: int = add %i, %one
    continue %j, %q
  }
  return %s, %k
}
"""


def places(program: Program, wanted: list[Any]) -> set[str]:
    found = activity(program, wanted, PRIMITIVES)
    columns = {c.name for f in program.functions.values() for c in f.columns if found.active(c)}
    inputs = {v.name for v in program.inputs if found.active(v)}
    fields = {f"node.{k}" for k in range(3) if found.active(("node", k))}
    return columns | inputs | fields


def test_active_is_varied_and_useful() -> None:
    program = regions(parse(TEXT))
    w, u = program.inputs
    assert places(program, [w]) == {"w", "v", "result0"}
    assert places(program, [u]) == set()
    assert places(program, [1]) == {"a", "v", "result0"}
    assert places(program, [("node", 0)]) == {"node.0", "x", "v", "result0"}


def test_nothing_passes_through_what_has_no_derivative() -> None:
    assert places(regions(parse(TEXT)), [("node", 1)]) == set()


def test_effects_look_into_blocks() -> None:
    text = """module @f
func @f(%x: float, %p: pybool) -> (float) {
  if %p {
    %a: float = div %x, %x
    yield
  } else {
    yield
  }
  if %p {
    %b: float = mul %x, %x
    yield
  } else {
    return %x
  }
  loop (){
    loop () {
      break
    }
    break
  }
  return %x
}
""".replace("loop (){", "loop {").replace("loop () {", "loop {")
    first, second, loop, _ = parse(text).functions["f"].body.ops
    assert may_raise(first, PRIMITIVES) and not leaves(first) and not removable(first, PRIMITIVES)
    assert not may_raise(second, PRIMITIVES) and leaves(second) and not removable(second, PRIMITIVES)
    assert not leaves(loop) and may_raise(loop, PRIMITIVES)  # it might never end
