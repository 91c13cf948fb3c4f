"""Results of guarded calls are selected where they are read, without a branch; so are the parts of a condition.

The invariant: a row without the call has the other arm's value, and its cotangent goes there whole; what runs for rows
that do not need it is total, cheap and passes a zero cotangent on as zero. Branches that do more stay.

    fork { k = f(x) if c }; if c { v = load k } else { v = z }     ->     fork { k = f(x) if c }; v = load_or k, z
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from spmd.analysis.effects import Primitives
from spmd.ir.core import Op, Value
from spmd.ir.types import Num
from spmd.transform.flow import Calls, Flow, Goto, Move, Node, Split, Step
from spmd.transform.guards import total_steps
from spmd.transform.straighten import defined, shorten, used
from spmd.transform.view import assignments

Guards = tuple[tuple[Value, bool], ...]


def select_results(flow: Flow, primitives: Primitives) -> None:
    """Rewrites in place, inner branches first, until none is left to rewrite."""
    while True:
        before = flow.predecessors()
        guards: dict[Value, Guards] = {
            site.child: site.guards for n in before if isinstance(n.exit, Calls) for site in n.exit.sites if site.guards
        }
        if not any([_select(node, before, guards, primitives) for node in before]):
            return
        shorten(flow)


@dataclass(eq=False)
class _Arm:
    """What an arm computes and what it assigns at its end; `reads`: what it reads of its own calls,
    which are made exactly where the arm is taken: where there is no child, the other arm's value may be read."""

    steps: list[Step]
    given: dict[Value, Value]
    reads: dict[Value, Op] = field(default_factory=dict)


def _select(
    node: Node, before: dict[Node, list[Node]], guards: Mapping[Value, Guards], primitives: Primitives
) -> bool:
    """`before` may count nodes that are gone: then a branch waits for the next round."""
    out = node.exit
    if not isinstance(out, Split):
        return False
    join = _join_of(out, before)
    if join is None:
        return False
    arms = [_arm(a, join, guards, (out.cond, truth), primitives) for a, truth in ((out.then, True), (out.other, False))]
    then, other = arms
    if then is None or other is None or then.given.keys() != other.given.keys():
        return False
    assigned = assignments(before)
    if any(assigned[v] > 1 for arm in (then, other) for step in arm.steps for v in defined(step)):
        return False
    if not then.reads and not other.reads and not all(_boolean(t.type) for t in then.given):
        return False
    if not all(_plain(v.type) and v.type == t.type for a in (then, other) for t, v in a.given.items()):
        return False
    first, second = (other, then) if then.reads else (then, other)
    node.steps += [*first.steps, *second.steps, *_merged(out.cond, second is then, first, second)]
    node.exit = Goto(join)
    return True


def _join_of(out: Split, before: Mapping[Node, Sequence[Node]]) -> Node | None:
    """Where both arms lead, if each is a node of its own or nothing."""
    if not any(isinstance(arm.exit, Goto) for arm in (out.then, out.other)):
        return None
    ends = set()
    for arm in (out.then, out.other):
        if len(before[arm]) == 1 and isinstance(arm.exit, Goto):
            ends.add(arm.exit.target)
        else:
            ends.add(arm)
    return ends.pop() if len(ends) == 1 else None


def _arm(
    node: Node, join: Node, guards: Mapping[Value, Guards], taken: tuple[Value, bool], primitives: Primitives
) -> _Arm | None:
    """The arm with reads of its own calls' results made total; None where it does something else."""
    if node is join:
        return _Arm([], {})
    steps = list(node.steps)
    given: dict[Value, Value] = {}
    if steps and isinstance(steps[-1], Move):
        move = steps.pop()
        given = dict(zip(defined(move), used(move), strict=True))
    def own(child: Value) -> bool:
        return taken in guards.get(child, ())

    found = total_steps(steps, primitives, own)
    if found is None:
        return None
    reads = [step for step in found if isinstance(step, Op) and step.name == "load_or"]
    return _Arm(found, given, {op.result: op for op in reads if own(op.operands[0]) and op not in steps})


def _boolean(type_: object) -> bool:
    return isinstance(type_, Num) and type_.shape == () and type_.dtype == "bool"


def _plain(type_: object) -> bool:
    return isinstance(type_, Num) and type_.static and not type_.text


def _merged(cond: Value, truth: bool, first: _Arm, second: _Arm) -> list[Op | Move]:
    """One value per variable: a read with the other arm's value in place, or a `where`. `second` is the arm taken if
    the condition is `truth`; its ops stand behind those of `first`."""
    steps: list[Op | Move] = []
    own = [*(v for step in second.steps for v in used(step)), *second.given.values()]
    results = []
    for target, value in second.given.items():
        given, read = first.given[target], second.reads.get(value)
        if value is given:
            results.append(value)
        elif read is not None and own.count(value) == 1:
            read.operands[1] = given
            results.append(value)
        else:
            results.append(Value(target.type, target.name))
            steps.append(Op("where", [cond, *((value, given) if truth else (given, value))], {}, [results[-1]]))
    if results:
        steps.append(Move(list(second.given), results))
    return steps
