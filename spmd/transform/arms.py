"""An arm of a branch as a function of its own, so that it can be called beside its siblings.

The invariant: the function gives, for the variables that the arm reads, the variables that it assigns and that are read
behind it; it raises what the arm raises, in the same order. Done only where that lets calls share a fork: a frame more
for each row of the arm. Nothing is changed before `close`.

    if c { n = 7 // x; v = f(n) } else { v = z }     ->     if c { v = f.arm1(x) } else { v = z }
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from spmd.analysis.effects import Primitives, may_raise
from spmd.analysis.liveness import live_in
from spmd.ir.core import Block, Function, Op, Value
from spmd.transform.flow import Calls, CallSite, Fail, Flow, Give, Goto, Move, Node, Split, child_of
from spmd.transform.straighten import copy_step, defined, used


@dataclass(eq=False)
class Outlined:
    """A call of an arm: the node that makes it, and the function."""

    name: str
    call: Node
    arm: Node
    nodes: list[Node]
    join: Node
    params: list[Value]
    results: list[Value]
    constants: list[Op]

    def close(self) -> Flow:
        """The function; its nodes leave the graph that they were in."""
        end = Node([], Give(list(self.results)))
        for node in self.nodes:
            out = node.exit
            if isinstance(out, (Goto, Calls)) and out.target is self.join:
                out.target = end
            elif isinstance(out, Split):
                out.then, out.other = (end if n is self.join else n for n in (out.then, out.other))
        entry = Node([copy_step(op) for op in self.constants], Goto(self.arm), self.arm.span, self.arm.order)
        types = [v.type for v in self.results]
        return Flow(Function(self.name, list(self.params), types, Block(), self.arm.span), entry)


@dataclass(eq=False)
class Outliner:
    """Makes functions of arms of one flow. `whole`: also of arms whose calls can be brought before the branch as they
    are; `closed`: how many it has made; `tried`: those that may be made, by arm."""

    flow: Flow
    primitives: Primitives
    whole: bool = False
    closed: int = 0
    tried: dict[Node, Outlined] = field(default_factory=dict)

    def start(self) -> None:
        """Forgets what was tried; the graph may have changed."""
        self.tried = {}

    def close(self, wanted: Sequence[Outlined]) -> list[Flow]:
        """These functions, for good."""
        self.closed += len(self.tried)
        self.start()
        return [outlined.close() for outlined in wanted]

    def makes_calls(self, arm: Node, before: dict[Node, list[Node]], at: Node) -> bool:
        """Whether the arm of the branch `at` could be a function and has calls."""
        found = self._whole(arm, before, at)
        return found is not None and any(isinstance(node.exit, Calls) for node in found[0])

    def outline(self, arm: Node, before: dict[Node, list[Node]], at: Node) -> Outlined | None:
        """The arm of the branch `at` as a function, where it makes calls or can raise and all of it leads to one
        node."""
        if arm in self.tried:
            return self.tried[arm]
        found = self._whole(arm, before, at)
        if found is None:
            return None
        nodes, join = found
        calls = any(isinstance(node.exit, (Calls, Fail)) for node in nodes)
        raises = any(may_raise(op, self.primitives) for node in nodes for op in node.ops)
        if not (calls or raises):
            return None
        live = live_in(list(before), lambda node: node.successors, _alive)
        assigned = {v for node in nodes for step in node.steps for v in defined(step)}
        assigned |= {site.child for node in nodes if isinstance(node.exit, Calls) for site in node.exit.sites}
        results = sorted((v for v in live[join] if v in assigned), key=lambda v: v.id)
        everywhere = {v: step for node in before for step in node.steps for v in defined(step)}
        known = set(self.flow.function.params) | everywhere.keys()
        known |= {site.child for node in before if isinstance(node.exit, Calls) for site in node.exit.sites}
        needed = sorted((v for v in _read(nodes, join, results)[arm] if v in known), key=lambda v: v.id)
        constants = [s for v in needed if isinstance(s := everywhere.get(v), Op) and s.name == "const"]
        given = {v for op in constants for v in op.results}
        name = f"{self.flow.function.name}.arm{self.closed + len(self.tried) + 1}"
        params = [v for v in needed if v not in given]
        call = self._call(name, arm, join, params, results)
        self.tried[arm] = Outlined(name, call, arm, nodes, join, params, results, constants)
        return self.tried[arm]

    def _whole(self, arm: Node, before: dict[Node, list[Node]], at: Node) -> tuple[list[Node], Node] | None:
        """All nodes that only the arm leads to, and the one node that they lead to."""
        nodes = _reached(arm, at)
        while True:
            inside = set(nodes)
            kept = [n for n in nodes if n is arm or (n is not self.flow.entry and inside.issuperset(before[n]))]
            if len(kept) == len(nodes):
                break
            nodes = kept
        ends = {s for node in nodes for s in node.successors if s not in inside}
        if len(ends) != 1 or len(before[arm]) != 1 or any(isinstance(node.exit, Give) for node in nodes):
            return None
        return nodes, ends.pop()

    def _call(self, name: str, arm: Node, join: Node, params: Sequence[Value], results: Sequence[Value]) -> Node:
        child = child_of(name)
        order = arm.order
        fresh = [Value(v.type, v.name) for v in results]
        behind = Node(
            [
                Op("load", [child], {"table": "@" + name, "field": k}, [value], [], arm.span, order)
                for k, value in enumerate(fresh)
            ],
            Goto(join),
            arm.span,
            order,
        )
        if results:
            behind.steps.append(Move(list(results), list(fresh)))
        site = CallSite(name, list(params), child, (), None, order, arm.span)
        return Node([], Calls([site], behind), arm.span, order)


def _reached(start: Node, stop: Node) -> list[Node]:
    seen: dict[Node, None] = {}
    stack = [start]
    while stack:
        node = stack.pop()
        if node not in seen and node is not stop:
            seen[node] = None
            stack.extend(node.successors)
    return list(seen)


def _read(nodes: Sequence[Node], join: Node, results: Sequence[Value]) -> dict[Node, set[Value]]:
    """Alive on entry to each node if only the results are read behind the nodes."""
    inside = set(nodes)

    def transfer(node: Node, alive: set[Value]) -> set[Value]:
        return _alive(node, alive.union(results) if join in node.successors else alive)

    return live_in(nodes, lambda node: [n for n in node.successors if n in inside], transfer)


def _alive(node: Node, alive: set[Value]) -> set[Value]:
    alive = alive - {site.child for site in node.exit.sites} if isinstance(node.exit, Calls) else set(alive)
    alive.update(node.exit_uses())
    for step in reversed(node.steps):
        alive.difference_update(defined(step))
        alive.update(used(step))
    return alive
