"""What rewrites of a flow graph ask of the whole graph, worked out when it is asked.

The invariant: a View holds for the graph as it was when the View was made; who changes the graph makes another one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from functools import cached_property

from spmd.analysis.effects import Primitives
from spmd.analysis.liveness import live_in
from spmd.ir.core import Value
from spmd.transform.flow import Calls, Flow, Node, Step
from spmd.transform.straighten import defined, used


class View:
    """Predecessors, assignments, dominators and liveness of a flow graph."""

    def __init__(self, flow: Flow, primitives: Primitives) -> None:
        self.flow = flow
        self.primitives = primitives
        self.before: dict[Node, list[Node]] = flow.predecessors()

    @cached_property
    def assigned(self) -> Counter[Value]:
        return assignments(self.before)

    @cached_property
    def steps(self) -> dict[Value, Step]:
        """A step that assigns each variable, the only one where there is one."""
        return {v: step for node in self.before for step in node.steps for v in defined(step)}

    @cached_property
    def live(self) -> dict[Node, set[Value]]:
        """Variables alive on entry to each node."""
        return live_in(list(self.before), lambda node: node.successors, alive)

    @cached_property
    def _inner(self) -> dict[Node, list[Node]]:
        """The nodes of which each is the immediate dominator."""
        found: dict[Node, list[Node]] = {node: [] for node in self.before}
        for node, above in dominators(self.flow.entry, self.before).items():
            if node is not above:
                found[above].append(node)
        return found

    def dominated(self, node: Node) -> list[Node]:
        """The node and all nodes that are reached through it only."""
        found, stack = [], [node]
        while stack:
            found.append(stack.pop())
            stack.extend(self._inner[found[-1]])
        return found


def assignments(nodes: Collection[Node]) -> Counter[Value]:
    """How many steps and calls assign each variable."""
    found = Counter(v for node in nodes for step in node.steps for v in defined(step))
    found.update(site.child for node in nodes if isinstance(node.exit, Calls) for site in node.exit.sites)
    return found


def alive(node: Node, behind: set[Value]) -> set[Value]:
    """Variables alive on entry to a node for those alive behind it."""
    found = behind - {site.child for site in node.exit.sites} if isinstance(node.exit, Calls) else set(behind)
    found.update(node.exit_uses())
    for step in reversed(node.steps):
        found.difference_update(defined(step))
        found.update(used(step))
    return found


def dominators(entry: Node, before: dict[Node, list[Node]]) -> dict[Node, Node]:
    """The immediate dominator of each node; the entry's is itself (Cooper, Harvey and Kennedy, 2001)."""
    order = _postorder(entry)
    number = {node: k for k, node in enumerate(order)}
    found = {entry: entry}
    changed = True
    while changed:
        changed = False
        for node in reversed(order[:-1]):
            above = _meet([n for n in before[node] if n in found], found, number)
            if found.get(node) is not above:
                found[node] = above
                changed = True
    return found


def _meet(nodes: Sequence[Node], found: dict[Node, Node], number: dict[Node, int]) -> Node:
    meet = nodes[0]
    for node in nodes[1:]:
        while meet is not node:
            if number[meet] < number[node]:
                meet = found[meet]
            else:
                node = found[node]
    return meet


def _postorder(entry: Node) -> list[Node]:
    order: list[Node] = []
    seen = {entry}
    stack = [(entry, iter(entry.successors))]
    while stack:
        node, successors = stack[-1]
        for successor in successors:
            if successor not in seen:
                seen.add(successor)
                stack.append((successor, iter(successor.successors)))
                break
        else:
            order.append(node)
            stack.pop()
    return order
