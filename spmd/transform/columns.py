"""Gives the variables of a flow graph their columns and writes the nodes down as regions.

The invariant: exactly the variables that are alive across an edge are in columns, constants and module inputs never;
a region loads only what it uses and stores only what somebody reads. Variables that are copies of each other at an
edge share a column where they are never alive together with different values, so a loop's result costs no copy.
Parameters and children have columns of their own, which regions never store.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from spmd.analysis.effects import Primitives, removable
from spmd.analysis.liveness import live_in
from spmd.ir.core import Op, Value
from spmd.transform.flow import Calls, Flow, Move, Node, Step
from spmd.transform.straighten import defined

Origin = tuple[str, object]


@dataclass(eq=False)
class Placement:
    """What `regions` needs to write a function down.

    live      variables alive on entry to a node (constants and inputs are never listed)
    steps     for each node the steps that something needs; moves without their dead targets
    home      variable -> the variable that stands for its column
    constants variable -> the op that is written again wherever its result is used
    """

    live: dict[Node, set[Value]]
    steps: dict[Node, list[Step]]
    home: dict[Value, Value]
    constants: dict[Value, Op]
    free: set[Value] = field(default_factory=set)

    def out(self, node: Node) -> set[Value]:
        """Variables alive on exit that the node's successors read from columns."""
        alive = set().union(*[self.live[s] for s in node.successors]) if node.successors else set()
        return alive - children(node)


def children(node: Node) -> set[Value]:
    """Variables that the node's fork assigns."""
    return {site.child for site in node.exit.sites} if isinstance(node.exit, Calls) else set()


def stored_homes(node: Node, placement: Placement) -> set[Value]:
    """Columns that the node stores, children of its fork included."""
    assigned = {v for step in placement.steps[node] for v in defined(step)}
    return {placement.home[v] for v in placement.out(node) if v in assigned} | children(node)


def place(flow: Flow, inputs: Iterable[Value], primitives: Primitives) -> Placement:
    """Liveness and shared columns of one function."""
    nodes = flow.nodes()
    free = set(inputs)
    constants = _constants(nodes, free)
    free |= constants.keys()

    def transfer(node: Node, alive: set[Value]) -> set[Value]:
        return _backward(node, alive, free, primitives)[0]

    live = live_in(nodes, lambda n: n.successors, transfer)
    found = Placement(live, {}, {}, constants, free)
    for node in nodes:
        alive = set().union(*[live[s] for s in node.successors]) if node.successors else set()
        found.steps[node] = _backward(node, alive, free, primitives)[1]
    _share(flow, nodes, found)
    return found


def _constants(nodes: list[Node], free: set[Value]) -> dict[Value, Op]:
    """Constants, and broadcasts of constants and inputs: cheaper to make again than to keep in a column."""
    found = {op.result: op for node in nodes for op in node.ops if op.name == "const"}
    rest = [op for node in nodes for op in node.ops if op.name == "broadcast"]
    while True:
        more = {op.result: op for op in rest if op.result not in found and all(
            v in free or v in found for v in op.operands)}
        if not more:
            return found
        found.update(more)


def _backward(
    node: Node, alive: set[Value], free: set[Value], primitives: Primitives
) -> tuple[set[Value], list[Step]]:
    """Variables alive on entry for those alive on exit, and the steps that are needed."""
    alive = alive - children(node)
    alive.update(node.exit_uses())
    needed: list[Step] = []
    for step in reversed(node.steps):
        if isinstance(step, Move):
            pairs = [(t, s) for t, s in zip(step.targets, step.sources, strict=True) if t in alive]
            alive.difference_update(step.targets)
            alive.update(s for _, s in pairs)
            if pairs:
                needed.append(Move([t for t, _ in pairs], [s for _, s in pairs]))
        elif any(v in alive for v in step.results) or not removable(step, primitives):
            alive.difference_update(step.results)
            alive.update(step.operands)
            needed.append(step)
    return alive - free, needed[::-1]


def _origins(node: Node, placement: Placement) -> dict[Value, Origin]:
    """Where the value of each variable that the node assigns comes from: equal origins are equal values."""
    found: dict[Value, Origin] = {}

    def origin(variable: Value) -> Origin:
        if variable in found:
            return found[variable]
        return ("free" if variable in placement.free else "in", variable)

    for step in placement.steps[node]:
        if isinstance(step, Move):
            sources = [origin(s) for s in step.sources]
            found.update(zip(step.targets, sources, strict=True))
        else:
            for value in step.results:
                found[value] = ("free", value) if value in placement.constants else ("op", (step, value))
    return found


class _Classes:
    """Variables that share a column: disjoint sets with their members listed."""

    def __init__(self) -> None:
        self.members: dict[Value, list[Value]] = {}
        self.root: dict[Value, Value] = {}

    def of(self, variable: Value) -> Value:
        return self.root.get(variable, variable)

    def all(self, root: Value) -> list[Value]:
        return self.members.get(root, [root])

    def merge(self, keep: Value, drop: Value) -> None:
        members = self.all(keep) + self.all(drop)
        self.members.pop(drop, None)
        self.members[keep] = members
        for variable in members:
            self.root[variable] = keep


def _share(flow: Flow, nodes: list[Node], placement: Placement) -> None:
    """Joins the columns of move targets and sources that never hold different values at once."""
    in_column = set().union(*placement.live.values())
    fixed = set(flow.function.params)
    for node in nodes:
        fixed |= children(node)
    edges = [(placement.live[node], placement.out(node), _origins(node, placement)) for node in nodes]
    classes = _Classes()
    for node in nodes:
        for step in placement.steps[node]:
            if not isinstance(step, Move):
                continue
            for target, source in zip(step.targets, step.sources, strict=True):
                a, b = classes.of(target), classes.of(source)
                if a is b or a.type != b.type or not {target, source} <= in_column or fixed & {a, b}:
                    continue
                if not _interfere(classes.all(a), classes.all(b), edges):
                    classes.merge(b, a)
    for variable in in_column | set(flow.function.params):
        placement.home[variable] = classes.of(variable)
    for node in nodes:
        for child in children(node):
            placement.home[child] = child


def _interfere(
    left: list[Value],
    right: list[Value],
    edges: list[tuple[set[Value], set[Value], dict[Value, Origin]]],
) -> bool:
    """Whether a variable of one set and one of the other are alive together with values that may differ."""
    for alive, out, origins in edges:
        for a in left:
            for b in right:
                if a in alive and b in alive:
                    return True
                if a in out and b in out and origins.get(a, ("in", a)) != origins.get(b, ("in", b)):
                    return True
    return False
