"""An arm of a branch as a function of its own, so that it can be called beside its siblings.

The invariant: the function gives, for the variables that the arm reads, the variables that it assigns and that are read
behind it; it raises what the arm raises, in the same order. Done only where that lets calls share a fork: a frame more
for each row of the arm. Nothing is changed before `close`.

    if c { n = 7 // x; v = f(n) } else { v = z }     ->     if c { v = f.arm1(x) } else { v = z }
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from spmd.analysis.effects import Primitives, may_raise
from spmd.analysis.liveness import live_in
from spmd.ir.core import Block, Function, Op, Value
from spmd.transform.flow import Calls, CallSite, Fail, Flow, Give, Goto, Move, Node, Split, child_of
from spmd.transform.straighten import copy_step
from spmd.transform.view import View, alive, assignments


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
    """Makes functions of arms of one flow. `taken`: names of functions that there are; `whole`: also of arms whose
    calls can be brought before the branch as they are; `tried`: functions that may be made now, by arm; `number`: of
    the last one, `closed`: of the last one when some were made."""

    flow: Flow
    primitives: Primitives
    taken: Collection[str]
    whole: bool = False
    tried: dict[Node, Outlined] = field(default_factory=dict)
    number: int = 0
    closed: int = 0

    def start(self) -> None:
        """Forgets what was tried; the graph may have changed."""
        self.tried, self.number = {}, self.closed

    def close(self, wanted: Sequence[Outlined]) -> list[Flow]:
        """These functions, for good."""
        self.closed = self.number
        self.start()
        return [outlined.close() for outlined in wanted]

    def makes_calls(self, arm: Node, view: View) -> bool:
        """Whether the arm could be a function and has calls."""
        found = _whole(arm, view)
        return found is not None and any(isinstance(node.exit, Calls) for node in found[0])

    def outline(self, arm: Node, view: View) -> Outlined | None:
        """The arm as a function, where it makes calls or can raise and all of it leads to one node."""
        if arm in self.tried:
            return self.tried[arm]
        found = _whole(arm, view)
        if found is None:
            return None
        nodes, join = found
        calls = any(isinstance(node.exit, (Calls, Fail)) for node in nodes)
        if not calls and not any(may_raise(op, self.primitives) for node in nodes for op in node.ops):
            return None
        own = assignments(nodes)
        results = sorted((v for v in view.live[join] if v in own), key=lambda v: v.id)
        known = {*self.flow.function.params, *view.assigned}  # the others are inputs of the module
        needed = sorted((v for v in _read(nodes, join, results)[arm] if v in known), key=lambda v: v.id)
        constants = [s for v in needed if isinstance(s := view.steps.get(v), Op) and s.name == "const"]
        given = {v for op in constants for v in op.results}
        name = self._fresh_name()
        params = [v for v in needed if v not in given]
        call = self._call(name, arm, join, params, results)
        self.tried[arm] = Outlined(name, call, arm, nodes, join, params, results, constants)
        return self.tried[arm]

    def _fresh_name(self) -> str:
        while True:
            self.number += 1
            name = f"{self.flow.function.name}.arm{self.number}"
            if name not in self.taken:
                return name

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


def _whole(arm: Node, view: View) -> tuple[list[Node], Node] | None:
    """All nodes that only the arm leads to, and the one node that they lead to."""
    if arm not in view.before or len(view.before[arm]) != 1:
        return None
    nodes = view.dominated(arm)
    inside = set(nodes)
    ends = {s for node in nodes for s in node.successors if s not in inside}
    if len(ends) != 1 or any(isinstance(node.exit, Give) for node in nodes):
        return None
    return nodes, ends.pop()


def _read(nodes: Sequence[Node], join: Node, results: Sequence[Value]) -> dict[Node, set[Value]]:
    """Alive on entry to each node if only the results are read behind the nodes."""
    inside = set(nodes)

    def transfer(node: Node, behind: set[Value]) -> set[Value]:
        return alive(node, behind.union(results) if join in node.successors else behind)

    return live_in(nodes, lambda node: [n for n in node.successors if n in inside], transfer)

