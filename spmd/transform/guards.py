"""Calls in the arms of a branch as guarded calls before the branch.

The invariant: a guarded call runs exactly for the rows that take its arm; what stands before it in the arm is brought
before the branch only if it is total, cheap and passes a zero cotangent on as zero, so rows that take the other arm
notice nothing. What follows the call stays in its arm. Nothing is changed here: `Ahead` says what would be.

    if c { v = f(x); y = v * 2 } else { y = z }     ->     fork { v = f(x) if c }; if c { y = v * 2 } else { y = z }
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from spmd.analysis.effects import Primitives
from spmd.ir.core import Op, Value
from spmd.ir.types import Num, Seq
from spmd.transform.flow import Calls, CallSite, Flow, Node, Split, Step
from spmd.transform.predicate import total
from spmd.transform.straighten import defined

BROUGHT = 12  # ops of an arm that may run for rows that do not take it
MOVING = frozenset({"broadcast", "reshape"})  # cotangents are passed on or summed
READING = frozenset({"const", "isnull", "assured", "same", "length"})


@dataclass(eq=False)
class Ahead:
    """A node's calls if those of its arms are made by itself: steps, calls, and what comes when they have returned."""

    steps: list[Step]
    sites: list[CallSite]
    rest: Node


class View:
    """What is asked of a whole graph: who leads to a node, and how many steps assign a variable."""

    def __init__(self, flow: Flow, primitives: Primitives) -> None:
        self.primitives = primitives
        self.before: dict[Node, list[Node]] = flow.predecessors()
        self.assigned = Counter(v for node in self.before for step in node.steps for v in defined(step))
        self.assigned.update(
            site.child for node in self.before if isinstance(node.exit, Calls) for site in node.exit.sites
        )


def ahead(node: Node, view: View) -> Ahead | None:
    """What the node's calls would be; None if it makes none, or none that can be brought before a branch."""
    out = node.exit
    if isinstance(out, Calls):
        return Ahead(list(node.steps), list(out.sites), out.target)
    if not isinstance(out, Split) or out.then is out.other:
        return None
    steps, sites, rests = list(node.steps), [], []
    for arm, truth in ((out.then, True), (out.other, False)):
        found = ahead(arm, view) if len(view.before[arm]) == 1 else None
        if found is None or not _can_run_everywhere(found, view):
            rests.append(arm)
            continue
        steps += found.steps
        sites += [replace(site, guards=((out.cond, truth), *site.guards)) for site in found.sites]
        rests.append(found.rest)
    if not sites:
        return None
    return Ahead(steps, sites, Node([], Split(out.cond, *rests), node.span, node.order))


def _can_run_everywhere(found: Ahead, view: View) -> bool:
    """Whether the steps may run, and the children be assigned, for rows that do not take the arm."""
    if len(found.steps) > BROUGHT or not all(_guardable(site) for site in found.sites):
        return False
    assigned = [v for step in found.steps for v in defined(step)] + [site.child for site in found.sites]
    if any(view.assigned[v] != 1 for v in assigned):  # elsewhere such a variable may have another value that is needed
        return False
    doubtful: set[Value] = set()  # rows of tables that the arm's own test has shown to be there
    for step in found.steps:
        if not isinstance(step, Op) or not harmless(step, doubtful, view.primitives):
            return False
        if step.name == "assured":
            doubtful.update(step.results)
    return True


def harmless(op: Op, doubtful: set[Value], primitives: Primitives) -> bool:
    """Whether the op may run for rows that do not need it; `doubtful` rows of tables may not be there then, nor need
    children be."""
    if op.name == "load":
        return op.operands[0] not in doubtful and not op.attrs["table"].startswith("@")
    if op.name in READING:
        return True
    if op.name in MOVING:
        return all(isinstance(v.type, Num) and v.type.static for v in (*op.operands, *op.results))
    return total(op, primitives)


def _guardable(site: CallSite) -> bool:
    """A map must not take elements whose cotangents are stacked per row: the stacks of other rows would be missing."""
    for word, value in zip(site.each, site.args):
        if word not in ("same", "index") and not (word == "each" and isinstance(value.type, Seq)):
            return False
    return True
