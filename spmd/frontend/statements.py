"""Statements: bindings and control flow.

The invariant: a statement leaves `low.scope` as Python would leave the frame, for every name that is alive after it,
or ends the path by raising `Dead`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gast
import numpy as np

from spmd.errors import ShapeMismatch, TypeMismatch, UnsupportedSyntax, UnsupportedType
from spmd.frontend.conditions import condition
from spmd.frontend.expressions import expression
from spmd.frontend.fence import refuse
from spmd.frontend.joins import alternatives
from spmd.frontend.lowering import Dead, Lowering, Pending
from spmd.frontend.operations import BINARY, binary, end_in_error, guard
from spmd.frontend.subscripts import spread_node
from spmd.frontend.values import (
    NONE,
    Abstract,
    Choice,
    Const,
    Iterable,
    Leaf,
    Node,
    Run,
    Static,
    Struct,
    describe,
    holds_iterable,
    tuple_of,
)
from spmd.ir.types import INT


def block(low: Lowering, body: Sequence[Any]) -> None:
    """Statements in order; what stands behind a statement that ends the path is not looked at."""
    for statement in body:
        low.locate(statement)
        rule = RULES.get(type(statement))
        if rule is None:
            raise refuse(low.definition, statement, low.sp.chain())
        rule(low, statement)


def _assign(low: Lowering, s: Any) -> None:
    thing = expression(low, s.value)
    for target in s.targets:
        bind(low, target, thing)


def _annassign(low: Lowering, s: Any) -> None:
    if s.value is not None:
        bind(low, s.target, expression(low, s.value))


def bind(low: Lowering, target: Any, thing: Abstract) -> None:
    """Assignment to a name or a pattern of names."""
    if isinstance(target, gast.Name):
        keepable(low, thing, target)
        low.scope.names[target.id] = thing
    elif isinstance(target, (gast.Tuple, gast.List)):
        low.locate(target)
        _unpack(low, target, thing)
    else:
        raise refuse(low.definition, target, low.sp.chain())


def keepable(low: Lowering, thing: Abstract, node: Any) -> None:
    """Refuses to name an iterator: running over it once would use it up."""
    if isinstance(thing, Iterable) and thing.once or isinstance(thing, Struct) and holds_iterable(thing):
        raise low.error(UnsupportedType, "an iterator cannot be kept in lanes", node,
                        "run over it where it is made, or make a list of it.")


def _unpack(low: Lowering, target: Any, thing: Abstract) -> None:
    thing = low.settled(thing)
    names = list(target.elts)
    starred = next((n for n in names if isinstance(n, gast.Starred)), None)
    if starred is not None:
        raise refuse(low.definition, starred, low.sp.chain())
    if isinstance(thing, Node):
        whole = spread_node(low, thing, lambda one: tuple_of(tuple(_parts(low, one, names, target))), target)
        assert isinstance(whole, Struct)
        parts = list(whole.items)
    elif isinstance(thing, Choice):
        def part_of(k: int) -> Abstract:
            return low.spread(thing, lambda one: _parts(low, one, names, target)[k])

        parts = [part_of(k) for k in range(len(names))]
    else:
        parts = _parts(low, thing, names, target)
    for name, part in zip(names, parts):
        bind(low, name, part)


def _parts(low: Lowering, thing: Abstract, names: list[Any], node: Any) -> list[Abstract]:
    """The items of a thing that is unpacked into `names`."""
    from spmd.frontend.subscripts import array_item, run_item

    wanted = len(names)
    if isinstance(thing, Struct):
        items: list[Abstract] = [Const(n) for n in thing.names] if thing.kind == "dict" else list(thing.items)
        if len(items) != wanted or thing.kind == "dataclass":
            text = f"{describe(thing)} of {len(items)} cannot be unpacked into {wanted} names"
            raise low.error(TypeMismatch, text, node)
        return items
    if isinstance(thing, Leaf) and thing.type.rank:
        size = thing.type.shape[0]
        if size is not None and size != wanted:
            raise low.error(TypeMismatch, f"an array of {size} rows cannot be unpacked into {wanted} names", node)
        if size is None:
            count = low.b.emit("dim", thing.value, axis=0)
            _demand_count(low, count, wanted)
        return [array_item(low, thing.value, low.b.const(k), node) for k in range(wanted)]
    if isinstance(thing, Run):
        _demand_count(low, low.b.insert("length", [thing.value], [INT]).result, wanted)
        return [run_item(low, thing, low.b.const(k)) for k in range(wanted)]
    raise low.error(TypeMismatch, f"{describe(thing)} cannot be unpacked", node)


def _demand_count(low: Lowering, count: Any, wanted: int) -> None:
    few = (ValueError, (f"not enough values to unpack (expected {wanted})",))
    guard(low, low.b.emit("ge", count, low.b.const(wanted)), few)
    many = (ValueError, (f"too many values to unpack (expected {wanted})",))
    guard(low, low.b.emit("le", count, low.b.const(wanted)), many)


def _augassign(low: Lowering, s: Any) -> None:
    if not isinstance(s.target, gast.Name):
        raise refuse(low.definition, s, low.sp.chain())
    read = gast.Name(id=s.target.id, ctx=gast.Load(), annotation=None, type_comment=None)
    old = expression(low, gast.copy_location(read, s.target))
    new = expression(low, s.value)
    low.locate(s)
    symbol, fold = BINARY[type(s.op)]
    result = binary(low, symbol, fold, old, new, s)
    for thing in alternatives(old):
        if isinstance(thing, Leaf) and thing.type.rank:
            result = _in_place(low, s, thing, result, symbol)
        elif isinstance(thing, (Run, Struct)) and thing.kind == "list":
            raise low.error(UnsupportedSyntax, f"the list '{s.target.id}' is changed in place", s,
                            f"write {s.target.id} = {s.target.id} {symbol} ...")
    low.scope.names[s.target.id] = result


def _in_place(low: Lowering, s: Any, old: Leaf, result: Abstract, symbol: str) -> Abstract:
    """`a += b` writes into the array a: shape and dtype stay a's. While nothing else names the array, that is the same
    as `a = a + b`."""
    name = s.target.id
    if name not in low.definition.own_arrays or not isinstance(result, Leaf):
        raise low.error(UnsupportedSyntax, f"'{name}' is updated in place, and other names may share its array", s,
                        f"write {name} = {name} {symbol} ...")
    if result.type.shape != old.type.shape:
        raise low.error(ShapeMismatch, f"'{name}' of type {old.type} cannot hold the result, {result.type}", s)
    if result.type.dtype == old.type.dtype:
        return result
    if not np.can_cast(result.type.dtype, old.type.dtype, "same_kind"):
        raise low.error(TypeMismatch, f"'{name}' of type {old.type} cannot hold the result, {result.type}", s)
    return Leaf(low.b.emit("cast", result.value, dtype=old.type.dtype, python=False))


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


def end(low: Lowering, pending: list[Pending], result: Abstract | None = None) -> None:
    """Ends the path at a jump whose terminator is written later."""
    pending.append(Pending(low.b.block, low.scope, low.b.span, result))
    low.ended.add(low.b.block)
    raise Dead


def _return(low: Lowering, s: Any) -> None:
    thing = expression(low, s.value) if s.value is not None else NONE
    low.locate(s)
    if holds_iterable(thing):
        raise low.error(UnsupportedType, "a range or an iterator cannot be returned in lanes", s, "return a list.")
    end(low, low.returns, thing)


def _break(low: Lowering, s: Any) -> None:
    end(low, low.loops[-1].breaks)


def _continue(low: Lowering, s: Any) -> None:
    end(low, low.loops[-1].continues)


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


def _while(low: Lowering, s: Any) -> None:
    from spmd.frontend.loops import while_loop

    while_loop(low, s)


def _for(low: Lowering, s: Any) -> None:
    from spmd.frontend.loops import for_loop

    for_loop(low, s)


def _pass(low: Lowering, s: Any) -> None:
    pass


RULES: dict[type, Callable[[Lowering, Any], None]] = {
    gast.Assign: _assign, gast.AnnAssign: _annassign, gast.AugAssign: _augassign, gast.Expr: _expr, gast.If: _if,
    gast.Return: _return, gast.Break: _break, gast.Continue: _continue, gast.While: _while, gast.For: _for,
    gast.Pass: _pass, gast.Raise: _raise, gast.Assert: _assert,
}

