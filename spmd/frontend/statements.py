"""Statements: assignment, jumps and what is chosen by a condition.

The invariant: a statement leaves `low.scope` as Python would leave the frame, for every name that is alive after it,
or ends the path by raising `Dead`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gast

from spmd.errors import UnsupportedType
from spmd.frontend.bindings import bind
from spmd.frontend.comprehensions import Doing
from spmd.frontend.conditions import condition
from spmd.frontend.expressions import expression
from spmd.frontend.fence import refuse
from spmd.frontend.identities import Object, is_mutable
from spmd.frontend.loops import for_loop, while_loop
from spmd.frontend.lowering import Lowering
from spmd.frontend.operations import BINARY, binary, end_in_error, guard
from spmd.frontend.values import NONE, Abstract, Const, Static, holds_iterable
from spmd.frontend.writes import augment, augment_object


def block(low: Lowering, body: Sequence[Any]) -> None:
    """Statements in order; what stands behind a statement that ends the path is not looked at."""
    for statement in body:
        low.locate(statement)
        rule = RULES.get(type(statement))
        if rule is None:
            raise refuse(low.definition, statement, low.sp.chain())
        rule(low, statement)


def _assign(low: Lowering, s: Any) -> None:
    thing = low.hold(expression(low, s.value))
    for target in s.targets:
        bind(low, target, thing)


def _annassign(low: Lowering, s: Any) -> None:
    if s.value is not None:
        bind(low, s.target, low.hold(expression(low, s.value)))


def _augassign(low: Lowering, s: Any) -> None:
    if isinstance(s.target, (gast.Subscript, gast.Attribute)):
        augment(low, s)
        return
    read = gast.Name(id=s.target.id, ctx=gast.Load(), annotation=None, type_comment=None)
    old = expression(low, gast.copy_location(read, s.target))
    new = expression(low, s.value)
    low.locate(s)
    symbol, fold = BINARY[type(s.op)]

    def run(one: Abstract) -> Abstract:
        if isinstance(one, Object) and augment_object(low, one, new, s):
            return one
        if is_mutable(one):
            low.needs_objects()
        return binary(low, symbol, fold, one, new, s)

    low.scope.names[s.target.id] = low.hold(low.spread(old, run, keep=True))


def _expr(low: Lowering, s: Any) -> None:
    if not isinstance(s.value, gast.Constant):
        expression(low, s.value)


def _if(low: Lowering, s: Any) -> None:
    cond = condition(low, s.test)
    if isinstance(cond.value, Const):
        low.scope.facts = low.scope.facts.both(cond.yes if cond.value.value else cond.no)
        block(low, s.body if cond.value.value else s.orelse)
        return
    low.branch(
        low.value(cond.value),
        (_body(low, s.body), _body(low, s.orelse)),
        (cond.yes, cond.no),
        low.definition.liveness.after[s],
    )


def _body(low: Lowering, body: Sequence[Any]) -> Callable[[], None]:
    return lambda: block(low, body)


def _return(low: Lowering, s: Any) -> None:
    thing = low.hold(expression(low, s.value)) if s.value is not None else NONE
    if low.memory is not None:
        low.memory.demand_known(thing, s)
    low.locate(s)
    if holds_iterable(thing):
        raise low.error(UnsupportedType, "a range or an iterator cannot be returned in lanes", s, "return a list.")
    low.end(low.returns, thing)


def _break(low: Lowering, s: Any) -> None:
    low.end(low.loops[-1].breaks)


def _continue(low: Lowering, s: Any) -> None:
    low.end(low.loops[-1].continues)


def _raise(low: Lowering, s: Any) -> None:
    """`raise Class("text")` with constant arguments."""
    error = s.exc
    if error is None or s.cause is not None:
        raise refuse(low.definition, s, low.sp.chain())
    arguments = error.args if isinstance(error, gast.Call) else []
    name = error.func if isinstance(error, gast.Call) else error
    kind = low.settled(expression(low, name))
    values = [low.settled(expression(low, a)) for a in arguments]
    constant = all(isinstance(v, Const) for v in values) and not getattr(error, "keywords", [])
    if not constant or not isinstance(kind, Static) or not _is_exception(kind.value):
        raise refuse(low.definition, s, low.sp.chain())
    low.locate(s)
    end_in_error(low, (kind.value, tuple(v.value for v in values)))  # type: ignore[attr-defined]


def _is_exception(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, Exception)


def _assert(low: Lowering, s: Any) -> None:
    cond = condition(low, s.test)
    message = low.settled(expression(low, s.msg)) if s.msg is not None else None
    if message is not None and not isinstance(message, Const):
        raise refuse(low.definition, s, low.sp.chain())
    low.locate(s)
    error = (AssertionError, () if message is None else (message.value,))
    if isinstance(cond.value, Const):
        if not cond.value.value:
            end_in_error(low, error)
        return
    guard(low, low.value(cond.value), error)
    low.scope.facts = low.scope.facts.both(cond.yes)


def _do(low: Lowering, s: Any) -> None:
    s.run(low)


def _pass(low: Lowering, s: Any) -> None:
    pass


RULES: dict[type, Callable[[Lowering, Any], None]] = {
    gast.Assign: _assign, gast.AnnAssign: _annassign, gast.AugAssign: _augassign, gast.Expr: _expr, gast.If: _if,
    gast.Return: _return, gast.Break: _break, gast.Continue: _continue, gast.While: while_loop, gast.For: for_loop,
    gast.Pass: _pass, Doing: _do, gast.Raise: _raise, gast.Assert: _assert,
}
