"""Who calls whom, and which functions lead back to themselves."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from spmd.analysis.callgraph import call_graph, components, cyclic, reachable, recursive
from spmd.ir.parser import parse
from spmd.transform.inline import LIMIT, inlinable

CALLS = """module @a
func @a(%n: int) -> (int) {
  %x: int = call %n [function="b"]
  %y: int = call %n [function="even"]
  %z: int = call %n [function="b"]
  return %y
}
func @b(%n: int) -> (int) {
  %s: seq<@c> = map %n, %n [function="c", each=("index",)]
  return %n
}
func @c(%n: int) -> (int) {
  return %n
}
func @even(%n: int) -> (int) {
  %x: int = call %n [function="odd"]
  return %x
}
func @odd(%n: int) -> (int) {
  %x: int = call %n [function="even"]
  return %x
}
func @unused(%n: int) -> (int) {
  %x: int = call %n [function="unused"]
  return %x
}
"""


def test_calls_and_maps_are_edges() -> None:
    assert call_graph(parse(CALLS)) == {
        "a": ["b", "even"], "b": ["c"], "c": [], "even": ["odd"], "odd": ["even"], "unused": ["unused"]
    }


def test_mutual_recursion_is_recursion() -> None:
    assert recursive(parse(CALLS)) == {"even", "odd", "unused"}


def test_only_what_does_not_lead_back_is_written_in_place() -> None:
    assert inlinable(parse(CALLS)) == {"b", "c"}


def test_large_callees_of_several_calls_stay() -> None:
    body = "".join(f"  %v{k}: pybool = lt %n, %n\n" for k in range(LIMIT + 1))
    text = CALLS.replace("func @c(%n: int) -> (int) {\n", "func @c(%n: int) -> (int) {\n" + body)
    text = text.replace('map %n, %n [function="c", each=("index",)]', 'call %n [function="c"]')
    text = text.replace("seq<@c>", "int")
    assert "c" in inlinable(parse(text))  # one call
    twice = text.replace("  return %y\n", '  %u: int = call %n [function="c"]\n  return %y\n')
    assert "c" not in inlinable(parse(twice))


GRAPHS = st.integers(1, 7).flatmap(
    lambda n: st.lists(st.lists(st.integers(0, n - 1), max_size=3), min_size=n, max_size=n)
).map(lambda rows: dict(enumerate(rows)))


@given(GRAPHS)
def test_components_are_what_reaches_each_other(graph: dict[int, list[int]]) -> None:
    reach = {a: {c for b in graph[a] for c in reachable(graph, b)} for a in graph}
    groups = components(graph)
    assert sorted(k for group in groups for k in group) == sorted(graph)
    for group in groups:
        for a in group:
            mates = {b for b in graph if b == a or (b in reach[a] and a in reach[b])}
            assert set(group) == mates
    at = {k: number for number, group in enumerate(groups) for k in group}
    assert all(at[b] <= at[a] for a in graph for b in graph[a])
    assert cyclic(graph) == {a for a in graph if a in reach[a]}
