"""Calls in the arms of a branch as guarded calls before the branch.

The invariant: a guarded call runs exactly for the rows that take its arm; what stands before it in the arm is brought
before the branch only if it is total, cheap and passes a zero cotangent on as zero, so rows that take the other arm
notice nothing. What follows the call stays in its arm. Nothing is changed here: `Ahead` says what would be.

    if c { v = f(x); y = v * 2 } else { y = z }     ->     fork { v = f(x) if c }; if c { y = v * 2 } else { y = z }
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from spmd.analysis.effects import Primitives
from spmd.ir.core import Op, Value
from spmd.ir.types import Num, Ref, Seq, Type
from spmd.transform.arms import Outlined, Outliner
from spmd.transform.flow import Calls, CallSite, Move, Node, Split, Step
from spmd.transform.predicate import total
from spmd.transform.straighten import defined
from spmd.transform.view import View

BROUGHT = 12  # ops of an arm that may run for rows that do not take it
MOVING = frozenset({"broadcast", "reshape"})  # cotangents are passed on or summed
READING = frozenset({"const", "isnull", "assured", "same", "length", "load_or"})


@dataclass(eq=False)
class Ahead:
    """A node's calls if those of its arms are made by itself: steps, calls, and what comes when they have returned."""

    steps: list[Step]
    sites: list[CallSite]
    rest: Node
    outlined: list[Outlined] = field(default_factory=list)


def ahead(node: Node, view: View, outliner: Outliner | None = None) -> Ahead | None:
    """What the node's calls would be; None if it makes none, or none that can be brought before a branch. With an
    outliner, arms for which they cannot become functions."""
    out = node.exit
    if isinstance(out, Calls):
        return Ahead(list(node.steps), list(out.sites), out.target)
    if not isinstance(out, Split) or out.then is out.other:
        return None
    steps, sites, rests = list(node.steps), [], []
    made: list[Outlined] = []
    arms = (out.then, out.other)
    if outliner is not None and not any(outliner.makes_calls(arm, view) for arm in arms):
        outliner = None
    for arm, truth in zip(arms, (True, False), strict=True):
        found: Ahead | None = None
        if outliner is not None and outliner.whole:
            found = _outlined(arm, view, outliner, made)
        if found is None and len(view.before[arm]) == 1:
            found = ahead(arm, view, outliner)
            found = None if found is None else _everywhere(found, view)
        if found is None and outliner is not None:
            found = _outlined(arm, view, outliner, made)
        if found is None:
            rests.append(arm)
            continue
        made += found.outlined
        steps += found.steps
        sites += [replace(site, guards=((out.cond, truth), *site.guards)) for site in found.sites]
        rests.append(found.rest)
    if not sites:
        return None
    return Ahead(steps, sites, Node([], Split(out.cond, *rests), node.span, node.order), made)


def _outlined(arm: Node, view: View, outliner: Outliner, made: list[Outlined]) -> Ahead | None:
    """The call of the arm as a function."""
    outlined = outliner.outline(arm, view)
    if outlined is None:
        return None
    made.append(outlined)
    return ahead(outlined.call, view)


def _everywhere(found: Ahead, view: View) -> Ahead | None:
    """The same for rows that do not take the arm too; None where its steps may not run, or its children not be
    assigned, for them."""
    if not all(_guardable(site) for site in found.sites):
        return None
    assigned = [v for step in found.steps for v in defined(step)] + [site.child for site in found.sites]
    if any(view.assigned[v] > 1 for v in assigned):  # elsewhere such a variable may have another value that is needed
        return None
    steps = total_steps(found.steps, view.primitives)
    return None if steps is None else Ahead([*steps], found.sites, found.rest, found.outlined)


def total_steps(
    steps: Sequence[Step], primitives: Primitives, own: Callable[[Value], bool] = lambda child: False
) -> list[Step] | None:
    """Steps of an arm as they may run for all rows: reads of rows that only the arm's test has shown to be there, and
    of `own` children, give zero where there is none. None where a step is not total, cheap and linear."""
    if len(steps) > BROUGHT:
        return None
    doubtful: set[Value] = set()
    found: list[Step] = []
    for step in steps:
        if isinstance(step, Move):
            found.append(step)
            doubtful.update(t for t, s in zip(step.targets, step.sources, strict=True) if s in doubtful)
        elif step.name == "load" and (step.operands[0] in doubtful or own(step.operands[0])):
            other = nothing(step.result.type)
            if other is None:
                return None
            attrs, span = step.attrs, step.span
            found.append(other)
            found.append(Op("load_or", [step.operands[0], other.result], attrs, step.results, [], span, step.order))
        elif _harmless(step, primitives):
            found.append(step)
        else:
            return None
        if isinstance(step, Op) and step.name == "assured":
            doubtful.update(step.results)
    return found


def _harmless(op: Op, primitives: Primitives) -> bool:
    """Whether the op may run for rows that do not need it; children need not be there then."""
    if op.name == "load":
        return not op.attrs["table"].startswith("@")
    if op.name in READING:
        return True
    if op.name in MOVING:
        return all(isinstance(v.type, Num) and v.type.static for v in (*op.operands, *op.results))
    return total(op, primitives)


def nothing(type_: Type) -> Op | None:
    """A constant of this type for rows where it is not looked at: zeros, or None."""
    if isinstance(type_, Ref) and type_.nullable:
        return Op("const", [], {"value": -1}, [Value(type_)])
    if not isinstance(type_, Num) or not type_.static or type_.text:
        return None
    value = np.zeros([n for n in type_.shape if n is not None], type_.dtype)
    return Op("const", [], {"value": value.item() if type_.python else value[()]}, [Value(type_)])


def _guardable(site: CallSite) -> bool:
    """A map must not take elements whose cotangents are stacked per row: the stacks of other rows would be missing."""
    for word, value in zip(site.each, site.args):
        if word not in ("same", "index") and not (word == "each" and isinstance(value.type, Seq)):
            return False
    return True
