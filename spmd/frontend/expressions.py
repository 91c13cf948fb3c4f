"""Expressions -> bound things.

The invariant: evaluation order is Python's, and a name is what it is bound to on the path that is being lowered.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import gast

from spmd.errors import UnknownName, UnsupportedSyntax, UnsupportedType
from spmd.frontend.attributes import attribute, super_attribute
from spmd.frontend.bindings import bind
from spmd.frontend.calls import call
from spmd.frontend.comprehensions import comprehension, dict_comprehension, set_comprehension
from spmd.frontend.conditions import boolop, comparisons, condition, ifexp
from spmd.frontend.exceptions import formatted
from spmd.frontend.fence import refuse
from spmd.frontend.functions import closure
from spmd.frontend.identities import INPUT
from spmd.frontend.lowering import Lowering
from spmd.frontend.operations import BINARY, UNARY, binary, end_in_error, folds, guard, numeric
from spmd.frontend.scope import Facts
from spmd.frontend.scoping import bare
from spmd.frontend.subscripts import subscript
from spmd.frontend.tables import known_key
from spmd.frontend.values import UNBOUND, Abstract, Choice, Const, Leaf, Static, Struct, describe, list_of, tuple_of
from spmd.ops import operators


def expression(low: Lowering, node: Any) -> Abstract:
    """The value of an expression."""
    rule = RULES.get(type(node))
    if rule is None:
        raise refuse(low.definition, node, low.sp.chain())
    low.locate(node)
    found = rule(low, node)
    return found if low.memory is None else low.memory.shared(found)


def _constant(low: Lowering, node: Any) -> Abstract:
    if isinstance(node.value, bytes):
        raise low.error(UnsupportedType, "bytes cannot run in lanes", node)
    return Static(node.value) if callable(node.value) else Const(node.value)  # what desugaring names is no constant


def _name(low: Lowering, node: Any) -> Abstract:
    thing = low.scope.names.get(node.id)
    if thing is None:
        if node.id in low.definition.locals or "@" in node.id:
            return _unbound(low, node, UNBOUND)
        thing = low.sp.globals.resolve(low.definition.function, node.id)
        if thing is None:
            raise low.error(UnknownName, f"name '{node.id}' is not defined", node,
                            "define it before the first call, or pass it as an argument.")
        return low.hold(thing, INPUT)
    if thing is UNBOUND or isinstance(thing, Choice) and UNBOUND in thing.alternatives:
        return _unbound(low, node, thing)
    return low.chosen(thing)


def _unbound(low: Lowering, node: Any, thing: Abstract) -> Abstract:
    """A name that has no value on some path: the example that reads it there raises."""
    error = _unbound_error(node.id)
    if not isinstance(thing, Choice):
        end_in_error(low, error)
    assert isinstance(thing, Choice)
    slot = thing.alternatives.index(UNBOUND)
    left = low.possible(thing) - {slot}
    if slot in low.possible(thing):
        if not left:
            end_in_error(low, error)
        tag = low.converter.constant(slot, thing.tag.type)
        guard(low, low.b.emit("ne", thing.tag, tag), error)
        low.scope.facts = low.scope.facts.both(Facts(tags={thing.tag: left}))
    return low.chosen(thing)


def _unbound_error(name: str) -> tuple[type, tuple[str]]:
    """What the running Python says of a variable without a value."""
    if "@" in name:
        old = f"free variable '{bare(name)}' referenced before assignment in enclosing scope"
        new = f"cannot access free variable '{bare(name)}' where it is not associated with a value in enclosing scope"
        return NameError, (new if sys.version_info >= (3, 11) else old,)
    old = f"local variable '{name}' referenced before assignment"
    new = f"cannot access local variable '{name}' where it is not associated with a value"
    return UnboundLocalError, (new if sys.version_info >= (3, 11) else old,)


# ---------------------------------------------------------------------------------------------- operators
def _binop(low: Lowering, node: Any) -> Abstract:
    x = expression(low, node.left)
    y = expression(low, node.right)
    low.locate(node)
    symbol, fold = BINARY[type(node.op)]
    return binary(low, symbol, fold, x, y, node)


def _unaryop(low: Lowering, node: Any) -> Abstract:
    if isinstance(node.op, gast.Not):
        return condition(low, node).value
    thing = expression(low, node.operand)
    low.locate(node)
    symbol, fold = UNARY[type(node.op)]

    def run(one: Abstract) -> Abstract:
        own = low.overloaded(f"__{fold.__name__}__", [one], node)
        if own is not None:
            return own
        if isinstance(one, Const):
            folded = folds(fold, one.value)
            if folded is not None:
                return folded
        value = low.value(numeric(low, one, node), node)
        return low.apart(Leaf(low.attempt(lambda: operators.unary(low.b, symbol, value), node)))

    return low.spread(thing, run)


# ---------------------------------------------------------------------------------------------- containers
def _tuple(low: Lowering, node: Any) -> Abstract:
    items: list[Abstract] = []
    for element in node.elts:
        if isinstance(element, gast.Starred):
            inner = low.settled(expression(low, element.value))
            if not isinstance(inner, Struct):
                raise low.error(UnsupportedSyntax, f"only a tuple can be unpacked here, not {describe(inner)}", element)
            items += inner.items
        else:
            items.append(low.hold(expression(low, element)))
    return tuple_of(tuple(items)) if isinstance(node, gast.Tuple) else list_of(tuple(items))


def _dict(low: Lowering, node: Any) -> Abstract:
    names: list[Any] = []
    items: list[Abstract] = []
    for key, value in zip(node.keys, node.values):
        if key is None:
            raise low.error(UnsupportedSyntax, "a dictionary cannot be unpacked into another in lanes", node,
                            "write dict(d, key=value).")
        name, known = known_key(low, expression(low, key))
        if not known or not isinstance(name, (str, int, tuple)):
            raise low.error(UnsupportedSyntax, "a dictionary's keys must be constants here", node,
                            "begin with d = {}, and write d[key] = value.")
        thing = low.hold(expression(low, value))
        if name in names:
            items[names.index(name)] = thing
        else:
            names.append(name)
            items.append(thing)
    return Struct("dict", dict, tuple(names), tuple(items))


def _walrus(low: Lowering, node: Any) -> Abstract:
    thing = low.hold(expression(low, node.value))
    bind(low, node.target, thing)
    return thing


def _attribute(low: Lowering, node: Any) -> Abstract:
    call = node.value
    if isinstance(call, gast.Call) and isinstance(call.func, gast.Name) and call.func.id == "super" and not call.args:
        callee = expression(low, call.func)
        if isinstance(callee, Static) and callee.value is super:
            low.locate(node)
            return super_attribute(low, node.attr, node)
    thing = expression(low, node.value)
    low.locate(node)
    return attribute(low, thing, node.attr, node)


def _lambda(low: Lowering, node: Any) -> Abstract:
    return closure(low, node)


def _generator(low: Lowering, node: Any) -> Abstract:
    raise low.error(UnsupportedSyntax, "a generator cannot run in lanes here", node, "write a list: [... for ...].")


RULES: dict[type, Callable[[Lowering, Any], Abstract]] = {
    gast.Constant: _constant, gast.Name: _name, gast.BinOp: _binop, gast.UnaryOp: _unaryop,
    gast.BoolOp: boolop, gast.Compare: lambda low, node: comparisons(low, node).value, gast.IfExp: ifexp,
    gast.Tuple: _tuple, gast.List: _tuple, gast.Dict: _dict, gast.NamedExpr: _walrus, gast.Call: call,
    gast.Attribute: _attribute, gast.Subscript: subscript, gast.ListComp: comprehension,
    gast.DictComp: dict_comprehension, gast.SetComp: set_comprehension, gast.GeneratorExp: _generator,
    gast.Lambda: _lambda, gast.JoinedStr: formatted,
}
