"""`while` and `for`.

A loop is lowered for assumed kinds of its carried names; where the body gives wider ones it is lowered again, until the
kinds hold (they only widen). The invariant: what an attempt that was given up has left behind (noted returns, narrower
kinds) is forgotten. A `for` loop carries a hidden counter that steps from 0 by 1 and is tested at the top.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import gast

from spmd.errors import UnsupportedSyntax
from spmd.frontend.bindings import bind
from spmd.frontend.conditions import condition
from spmd.frontend.exits import EXIT, caught, go_on
from spmd.frontend.expressions import expression
from spmd.frontend.identities import Cell, Object, Part, View, cell_name
from spmd.frontend.iterables import iterable
from spmd.frontend.iteration import Iterable
from spmd.frontend.joins import join, widen
from spmd.frontend.liveness import writes
from spmd.frontend.lowering import Lowering
from spmd.frontend.meetings import Meeting
from spmd.frontend.nesting import Growth
from spmd.frontend.operations import Condition, guard, tag_test
from spmd.frontend.paths import Dead, LoopFrame
from spmd.frontend.subscripts import spread_node
from spmd.frontend.values import (
    Abstract,
    Choice,
    Const,
    Leaf,
    Node,
    Table,
)
from spmd.ir.core import Block, Value
from spmd.ir.types import Num

COUNTER = Num("int64")
RESIZED = "dictionary changed size during iteration"
LEFT = "#left"  # whether an unrolled round was left by break; no name of the user's can be this


@dataclass(eq=False)
class Plan:
    """What a loop does: `test` at the top (given the counter), `enter` before the body, counted or not."""

    node: Any
    names: list[str]
    counted: bool
    test: Callable[[Value | None], Condition]
    enter: Callable[[Value | None], None]
    own: set[int] = field(default_factory=set)


def while_loop(low: Lowering, s: Any) -> None:
    names = _carried(low, s, frozenset())
    lower(low, Plan(s, names, False, lambda _: condition(low, s.test), lambda _: None))


def for_loop(low: Lowering, s: Any) -> None:
    thing = low.hold(expression(low, s.iter))
    over = [ident for ident, _ in thing.over] if isinstance(thing, Iterable) else []
    over += low.memory.behind(thing) if low.memory is not None else []
    looked_after = isinstance(thing, Object) and isinstance(low.settled(_whole(low, thing)), Table)
    with low.running_over(over, () if looked_after else over):
        _for_each(low, s, thing)


def _whole(low: Lowering, thing: Object) -> Object:
    """The dictionary of which an object is the keys, values or items; else the object."""
    assert low.memory is not None
    return Object(low.memory.behind(thing)[-1])


def _for_each(low: Lowering, s: Any, thing: Abstract) -> None:
    thing = whole = low.chosen(thing)
    if isinstance(thing, Object):
        held = low.settled(thing)
        if isinstance(held, Choice):
            thing = held
    if isinstance(thing, Node):
        thing = low.settled(spread_node(low, thing, lambda one: one, s.iter))
    if isinstance(thing, Choice):
        _for_choice(low, s, thing)
        return
    things = iterable(low, thing, s.iter)
    low.locate(s)
    if things.items is not None:
        _unroll(low, s, things, len(things.items))
        return
    count = things.count
    limit = low.b.emit("cast", low.value(count), dtype="int64", python=False)
    dictionary = _whole(low, whole) if isinstance(whole, Object) else None

    def test(counter: Value | None) -> Condition:
        assert counter is not None
        held = low.settled(dictionary) if dictionary is not None else None
        if isinstance(held, Table):
            guard(low, low.b.emit("eq", held.entries.count, limit), (RuntimeError, (RESIZED,)))
        return Condition(Leaf(low.b.emit("lt", counter, limit)))

    def enter(counter: Value | None) -> None:
        assert counter is not None
        low.locate(s.target)
        bind(low, s.target, things.at(counter))

    lower(low, Plan(s, _carried(low, s, writes(s.target)), True, test, enter))


def _for_choice(low: Lowering, s: Any, thing: Choice) -> None:
    """A loop over one of several things: a loop for each, behind a test of the tag."""
    left = low.possible(thing)
    first = min(left)
    test = tag_test(low, thing.tag, left, frozenset({first}))
    low.branch(
        low.value(test.value),
        (lambda: _for_each(low, s, thing.alternatives[first]), lambda: _for_each(low, s, thing)),
        (test.yes, test.no),
        low.definition.liveness.after[s],
    )


def _carried(low: Lowering, s: Any, target: frozenset[str]) -> list[str]:
    """Names that a round may change and that the next round, or what follows, reads."""
    changed = frozenset().union(target, *map(writes, s.body), writes(getattr(s, "test", None)))
    alive = low.definition.liveness.head[s] | low.definition.liveness.after[s]
    return sorted((changed | low.definition.boxed) & alive)


def _unroll(low: Lowering, s: Any, things: Iterable, size: int) -> None:
    """A loop over a fixed structure: its items may be of different kinds. Each round sees what they are then."""
    if _jumps(s.body):
        _rounds(low, s, things, 0, size)
        return
    for k in range(size):
        bind(low, s.target, things.item(k))
        low.block(s.body)
    low.block(s.orelse)


def _rounds(low: Lowering, s: Any, things: Iterable, k: int, size: int) -> None:
    """An unrolled loop with jumps: each round is a loop of one trip, the next runs where none has left by `break`."""
    if k == size:
        low.block(s.orelse)
        return
    left = _one_round(low, s, things.item(k))
    if isinstance(left, Const):
        if not left.value:
            _rounds(low, s, things, k + 1, size)
        return
    live = low.definition.liveness.after[s]
    low.branch(low.value(left), (lambda: None, lambda: _rounds(low, s, things, k + 1, size)), live=live)


def _one_round(low: Lowering, s: Any, item: Abstract) -> Abstract:
    """The body for one item, in a loop that always ends; gives whether it was left by `break`."""
    outer, body, frame = low.scope, Block(), LoopFrame()
    low.loops.append(frame)
    low.scope = outer.copy()
    try:
        with low.b.at(body):
            try:
                bind(low, s.target, item)
                low.block(s.body)
                low.end(frame.continues)
            except Dead:
                low.close(body)
    finally:
        low.loops.pop()
        low.scope = outer
    for pending in frame.continues:
        pending.scope.names[LEFT] = Const(False)
    for pending in frame.breaks:
        pending.scope.names[LEFT] = Const(True)
    for pending in frame.breaks:
        if EXIT in pending.scope.names:
            pending.scope.names[LEFT] = Const(False)
    frame.breaks += frame.continues
    low.locate(s)
    live = low.definition.liveness.head[s] | low.definition.liveness.after[s] | {LEFT}
    leave_loop(low, s, body, [], frame, live)
    go_on(low, live)
    return low.scope.names.pop(LEFT)


def _jumps(body: list[Any]) -> bool:
    """Whether statements hold a break or continue of the loop that they are the body of."""
    for s in body:
        if isinstance(s, (gast.Break, gast.Continue)):
            return True
        if isinstance(s, gast.If) and (_jumps(s.body) or _jumps(s.orelse)):
            return True
        if isinstance(s, (gast.For, gast.While)) and _jumps(s.orelse):
            return True
        if isinstance(s, gast.With) and _jumps(s.body):
            return True
        if isinstance(s, gast.Try):
            if any(map(_jumps, (s.body, s.orelse, s.finalbody, *(h.body for h in s.handlers)))):
                return True
    return False


# ------------------------------------------------------------------------------------------------ the loop itself
def lower(low: Lowering, plan: Plan) -> None:
    """Emits the loop and binds what is alive after it."""
    low.scope = low.scope.copy()  # objects get the identities here that they have at the head
    growth, carried = Growth(), [widen(low.scope.bound(n)) for n in plan.names]
    while True:
        returns = len(low.returns)
        body, frame, args, head = _attempt(low, plan, carried)
        wider = _wider(low, plan, carried, frame, head)
        if wider is None:
            break
        growth.demand_end(low, wider, plan.node)
        del low.returns[returns:]
        carried = wider
    _emit(low, plan, body, frame, carried, args)


def _attempt(
    low: Lowering, plan: Plan, carried: list[Abstract]
) -> tuple[Block, LoopFrame, list[Value], dict[str, Abstract]]:
    """Lowers a round for assumed kinds; gives also what the names are at its head."""
    outer = low.scope
    body = Block()
    if plan.counted:
        body.args.append(Value(COUNTER, "i"))
    things = [thing.replace(iter([Value(v.type) for v in thing.leaves()])) for thing in carried]
    body.args += [v for thing in things for v in thing.leaves()]
    counter = body.args[0] if plan.counted else None
    frame = LoopFrame()
    low.loops.append(frame)
    low.scope = outer.copy()
    low.scope.names.update(zip(plan.names, things))
    _forget(low, plan)
    head = dict(low.scope.names)
    try:
        with low.b.at(body):
            _round(low, plan, counter)
    finally:
        low.loops.pop()
        low.scope = outer
    return body, frame, body.args, head


def _forget(low: Lowering, plan: Plan) -> None:
    """Names that each round binds before it reads them are unknown at the top."""
    changed = frozenset().union(*map(writes, plan.node.body), writes(getattr(plan.node, "target", None)))
    for name in changed - frozenset(plan.names):
        low.scope.names.pop(name, None)


def _round(low: Lowering, plan: Plan, counter: Value | None) -> None:
    s = plan.node

    def go_on() -> None:
        plan.enter(counter)
        low.block(s.body)
        low.end(low.loops[-1].continues)

    def stop() -> None:
        if _apart(low, s):
            low.scope.names[LEFT] = Const(False)
            low.end(low.loops[-1].breaks)
        frame = low.loops.pop()
        try:
            low.block(s.orelse)
        finally:
            low.loops.append(frame)
        low.end(low.loops[-1].breaks)

    try:
        cond = plan.test(counter)
        if isinstance(cond.value, Const):
            low.scope.facts = low.scope.facts.both(cond.yes if cond.value.value else cond.no)
            (go_on if cond.value.value else stop)()
        else:
            low.branch(low.value(cond.value), (go_on, stop), (cond.yes, cond.no))
    except Dead:
        low.close(low.b.block)


def _apart(low: Lowering, s: Any) -> bool:
    """Whether `else` runs behind the loop, where it can leave the loops around."""
    returns = any(isinstance(n, gast.Return) for x in s.orelse for n in gast.walk(x))
    return bool(s.orelse) and (_jumps(s.orelse) or bool(caught(low)) or returns)


def _wider(
    low: Lowering, plan: Plan, carried: list[Abstract], frame: LoopFrame, head: dict[str, Abstract]
) -> list[Abstract] | None:
    """The kinds that hold the assumed ones and what the rounds give; None where the assumed ones do. In a program that
    writes, objects that the rounds change or exchange become names that the loop carries."""
    known = len(plan.names)
    start = list(carried)
    if low.memory is not None:
        _carry_objects(low, plan, frame, head)
        start = [head.get(n, low.scope.bound(n)) for n in plan.names]
    wider = list(start)
    for scope in [low.scope, *(pending.scope for pending in frame.continues)]:
        for k, name in enumerate(plan.names):
            wider[k] = low.attempt(partial(join, wider[k], scope.bound(name)), plan.node)
    same = known == len(plan.names) and all(a.key() == b.key() for a, b in zip(wider, carried))
    return None if same else [widen(w) for w in wider]


def _carry_objects(low: Lowering, plan: Plan, frame: LoopFrame, head: dict[str, Abstract]) -> None:
    """Aligns the identities at the head, before the loop and at the end of each round."""
    live = low.definition.liveness.head[plan.node] | low.definition.liveness.after[plan.node] | set(plan.names)
    roots = [n for n in live if not n.startswith("@")]
    ends = [pending.scope.names for pending in frame.continues]
    seen = dict(head)
    paths = [head, low.scope.names, *ends]
    meeting = Meeting(paths, partial(_look, low, frame, head), head=True, own=plan.own)
    reached = meeting.meet(roots, low.pins)
    plan.own |= set(meeting.made.values())
    for cell in (cell_name(k) for k in sorted(reached)):
        moved = any(end.get(cell) is not head.get(cell) for end in ends) or head.get(cell) is not seen.get(cell)
        if moved and cell not in plan.names:
            plan.names.append(cell)


def _look(low: Lowering, frame: LoopFrame, head: dict[str, Abstract], k: int, thing: Object) -> Abstract:
    """What an object holds at the head (a view: its kind alone), before the loop or at the end of a round."""
    assert low.memory is not None
    if k > 1:
        return low.memory.look(frame.continues[k - 2], thing)
    if k == 1:
        return low.memory.contents(thing)
    cell = head[thing.cell]
    assert isinstance(cell, Cell)
    if isinstance(cell.thing, Part):
        text = "the keys or items of several dictionaries cannot share a name in lanes"
        raise low.error(UnsupportedSyntax, text, None, "ask for them where they are read.")
    return Leaf(Value(cell.thing.steps[-1].type)) if isinstance(cell.thing, View) else cell.thing


def _emit(
    low: Lowering, plan: Plan, body: Block, frame: LoopFrame, carried: list[Abstract], args: list[Value]
) -> None:
    outer = low.scope
    low.locate(plan.node)
    inits: list[Value] = [low.converter.constant(0, COUNTER)] if plan.counted else []
    for name, thing in zip(plan.names, carried):
        inits += low.attempt(partial(low.converter.convert, outer.bound(name), thing))
    for pending in frame.continues:
        with low.b.at(pending.block):
            low.b.span = pending.span
            values: list[Value] = []
            if plan.counted:
                values.append(low.b.emit("add", args[0], low.converter.constant(1, COUNTER)))
            for name, thing in zip(plan.names, carried):
                values += low.attempt(partial(low.converter.convert, pending.scope.bound(name), thing))
            low.b.insert("continue", values, ())
    low.locate(plan.node)
    after, orelse = low.definition.liveness.after[plan.node], plan.node.orelse
    if not _apart(low, plan.node):
        leave_loop(low, plan.node, body, inits, frame, after)
        go_on(low, after)
        return
    for pending in frame.breaks:
        pending.scope.names.setdefault(LEFT, Const(True))
    leave_loop(low, plan.node, body, inits, frame, after | low.definition.liveness.tail[plan.node] | {LEFT})
    go_on(low, after | low.definition.liveness.tail[plan.node] | {LEFT})
    left = low.scope.names.pop(LEFT)
    if not isinstance(left, Const):
        low.branch(low.value(left), (lambda: None, lambda: low.block(orelse)), live=after)
    elif not left.value:
        low.block(orelse)


def leave_loop(
    low: Lowering, node: Any, body: Block, inits: list[Value], frame: LoopFrame, alive: frozenset[str]
) -> None:
    """Binds what is alive after the loop, from every break (the test at the top included)."""
    outer = low.scope
    live = low.met(frame.breaks, alive | {EXIT})
    changed = sorted(n for n in live if any(p.scope.names.get(n) is not outer.names.get(n) for p in frame.breaks))
    joined: list[Abstract] = []
    for name in changed:
        thing: Abstract | None = None
        for pending in frame.breaks:
            own = pending.scope.bound(name)
            thing = own if thing is None else low.attempt(partial(join, thing, own), node)
        assert thing is not None
        joined.append(thing if name in (LEFT, EXIT) else widen(thing))
    types = [v.type for thing in joined for v in thing.leaves()]
    op = low.b.insert("loop", inits, types, blocks=[body])
    for pending in frame.breaks:
        with low.b.at(pending.block):
            low.b.span = pending.span
            values = []
            for name, thing in zip(changed, joined):
                values += low.attempt(partial(low.converter.convert, pending.scope.bound(name), thing))
            low.b.insert("break", values, ())
    if not frame.breaks:
        raise Dead
    results = iter(op.results)
    low.scope.names.update((n, t.replace(results)) for n, t in zip(changed, joined))
