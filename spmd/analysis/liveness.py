"""Which variables are alive on entry to each node of a control-flow graph.

The invariant: the result is the least fixpoint of the transfer function that is handed in, so a variable that only
feeds dead variables is dead (an op's operands count only if something needs its results). It does not know what nodes
are.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)
Variable = TypeVar("Variable", bound=Hashable)


def live_in(
    nodes: Sequence[Node],
    successors: Callable[[Node], Sequence[Node]],
    transfer: Callable[[Node, set[Variable]], set[Variable]],
) -> dict[Node, set[Variable]]:
    """For each node the variables alive on entry; `transfer` maps those alive on exit to those alive on entry."""
    alive: dict[Node, set[Variable]] = {node: set() for node in nodes}
    before: dict[Node, list[Node]] = {node: [] for node in nodes}
    for node in nodes:
        for successor in successors(node):
            before[successor].append(node)
    work = list(nodes)
    waiting = set(work)
    while work:
        node = work.pop()
        waiting.discard(node)
        out: set[Variable] = set()
        for successor in successors(node):
            out |= alive[successor]
        found = transfer(node, out)
        if found != alive[node]:
            alive[node] = found
            for previous in before[node]:
                if previous not in waiting:
                    waiting.add(previous)
                    work.append(previous)
    return alive
