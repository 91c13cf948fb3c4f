"""Statements: assignment, jumps and what is chosen by a condition.

The invariant: a statement leaves `low.scope` as Python would leave the frame, for every name that is alive after it,
or ends the path by raising `Dead`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gast
import numpy as np

from spmd.errors import UnsupportedSyntax, UnsupportedType
from spmd.frontend.bindings import bind
from spmd.frontend.closures import keep
from spmd.frontend.comprehensions import Doing
from spmd.frontend.conditions import condition
from spmd.frontend.exceptions import assert_, raise_
from spmd.frontend.exits import finish, jump
from spmd.frontend.expressions import expression
from spmd.frontend.fence import refuse
from spmd.frontend.functions import define
from spmd.frontend.handlers import try_
from spmd.frontend.identities import Object, is_mutable
from spmd.frontend.iteration import holds_iterable
from spmd.frontend.loops import for_loop, while_loop
from spmd.frontend.lowering import Lowering
from spmd.frontend.operations import BINARY, in_place
from spmd.frontend.values import NONE, UNBOUND, Abstract, Const, Static
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
        return in_place(low, symbol, fold, one, new, s)

    low.scope.names[s.target.id] = low.hold(low.spread(old, run, keep=True))


def _expr(low: Lowering, s: Any) -> None:
    if not isinstance(s.value, gast.Constant):
        expression(low, s.value)


def _if(low: Lowering, s: Any) -> None:
    early: frozenset[str] = getattr(s, "binds_before", frozenset())
    for name in early & low.definition.liveness.tail[s] if early else ():
        text = f"'{name}', which a case with a guard binds, may be read where the guard has failed"
        raise low.error(UnsupportedSyntax, text, s.test, "give it a name of its own in that case.")
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
    finish(low, keep(low, thing, s))


def _break(low: Lowering, s: Any) -> None:
    jump(low, "break")


def _continue(low: Lowering, s: Any) -> None:
    jump(low, "continue")


def _with(low: Lowering, s: Any) -> None:
    """`with np.errstate(...)`: floating-point flags are no part of what an example gives."""
    for item in s.items:
        call = item.context_expr
        callee = low.expression(call.func) if isinstance(call, gast.Call) else None
        if not isinstance(callee, Static) or callee.value is not np.errstate or item.optional_vars is not None:
            raise low.error(UnsupportedSyntax, "this 'with' cannot run in lanes", call,
                            "np.errstate can; leave others outside the function.")
        if call.args:
            raise refuse(low.definition, s, low.sp.chain())
        for keyword in call.keywords:
            mode = low.expression(keyword.value)
            if not isinstance(mode, Const) or mode.value not in ("ignore", "warn", None):
                raise low.error(UnsupportedSyntax, "only the modes 'ignore' and 'warn' of np.errstate can run in lanes",
                                keyword.value, "test for the case with 'if'.")
    block(low, s.body)


def _delete(low: Lowering, s: Any) -> None:
    """`del name`, of one or several."""
    for target in s.targets:
        for name in target.elts if isinstance(target, (gast.Tuple, gast.List)) else [target]:
            if not isinstance(name, gast.Name):
                raise refuse(low.definition, s, low.sp.chain())
            read = gast.Name(id=name.id, ctx=gast.Load(), annotation=None, type_comment=None)
            expression(low, gast.copy_location(read, name))
            low.scope.names[name.id] = UNBOUND


def _do(low: Lowering, s: Any) -> None:
    s.run(low)


def _pass(low: Lowering, s: Any) -> None:
    pass


RULES: dict[type, Callable[[Lowering, Any], None]] = {
    gast.Assign: _assign, gast.AnnAssign: _annassign, gast.AugAssign: _augassign, gast.Expr: _expr, gast.If: _if,
    gast.Return: _return, gast.Break: _break, gast.Continue: _continue, gast.While: while_loop, gast.For: for_loop,
    gast.Pass: _pass, Doing: _do, gast.Raise: raise_, gast.Assert: assert_, gast.Try: try_,
    gast.With: _with,
    gast.FunctionDef: define, gast.Delete: _delete, gast.Global: _pass, gast.Nonlocal: _pass,
}
