"""Sibling calls become one fork.

The invariant: calls share a fork only if no argument of a later one depends on a result of an earlier one and nothing
that can raise stands between them and depends on such a result; so every op and every call runs exactly for the rows
for which it runs in program order, save that a row on which something earlier raised may also have run later siblings
(the runtime drops their effects by position). Positions are given here, per node, in program order.

    a = f(x); n = y - 1; b = f(n); c = a + b     ->     n = y - 1; fork { a = f(x), b = f(n) }; c = a + b
"""

from __future__ import annotations

from collections.abc import Sequence

from spmd.analysis.effects import Primitives, may_raise
from spmd.ir.core import Op, Value
from spmd.transform.flow import Calls, CallSite, Flow, Goto, Node, Step
from spmd.transform.straighten import defined, straighten, used


def merge_forks(flow: Flow, primitives: Primitives) -> None:
    """Merges in place, until nothing merges, and numbers ops and sites within each node."""
    while _merge_one(flow, primitives):
        pass
    straighten(flow)  # what was left behind a fork may be small enough to be copied now
    for node in flow.nodes():
        if not _merged(node):
            number(node)


def _merged(node: Node) -> bool:
    return isinstance(node.exit, Calls) and len(node.exit.sites) > 1


def number(node: Node) -> None:
    """Positions 1, 2, ... in the order of the steps, then of the sites."""
    position = 0
    for op in node.ops:
        position += 1
        op.order = (position,)
    if isinstance(node.exit, Calls):
        for site in node.exit.sites:
            position += 1
            site.order = (position,)


def _merge_one(flow: Flow, primitives: Primitives) -> bool:
    before = flow.predecessors()
    for node in before:
        if not isinstance(node.exit, Calls):
            continue
        middle = node.exit.target
        if middle is node or not isinstance(middle.exit, Calls) or len(before[middle]) != 1:
            continue
        if _merge(node, node.exit, middle, middle.exit, primitives, len(before[middle.exit.target])):
            return True
    return False


def _merge(
    node: Node, first: Calls, middle: Node, second: Calls, primitives: Primitives, leading: int
) -> bool:
    """Moves `middle` into `node` where that is legal; `leading` edges lead to the node behind it."""
    independent, dependent = _divide(first.sites, middle.steps)
    if any(isinstance(step, Op) and may_raise(step, primitives) for step in dependent):
        return False
    late = {site.child for site in first.sites} | {v for step in dependent for v in defined(step)}
    if any(v in late for site in second.sites for v in site.uses):
        return False
    if not _merged(node):
        number(node)
    number(middle)
    last = max([0, *(op.order[0] for op in node.ops), *(site.order[0] for site in first.sites)])
    for op in middle.ops:
        op.order = (last + op.order[0],)
    for site in second.sites:
        site.order = (last + site.order[0],)
    node.steps += independent
    node.exit = Calls([*first.sites, *second.sites], second.target)
    if dependent and leading == 1 and second.target is not node:
        second.target.steps = dependent + second.target.steps
    elif dependent:
        node.exit.target = Node(dependent, Goto(second.target), middle.span, middle.order)
    return True


def _divide(sites: Sequence[CallSite], steps: Sequence[Step]) -> tuple[list[Step], list[Step]]:
    """Steps that can run before the calls, and those that read a result, or would disturb one that stays behind."""
    late = {site.child for site in sites}
    read = {v for site in sites for v in site.uses}  # arguments are read at the fork, after what is moved
    independent: list[Step] = []
    dependent: list[Step] = []
    for step in steps:
        assigned: list[Value] = defined(step)
        if any(v in late for v in used(step)) or any(v in late or v in read for v in assigned):
            dependent.append(step)
            late.update(assigned)
            read.update(used(step))
        else:
            independent.append(step)
    return independent, dependent

