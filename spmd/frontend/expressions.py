"""Expressions -> bound things, and conditions with what they show.

The invariant: evaluation order is Python's, an operand that Python would not evaluate is evaluated in a branch that is
not taken, and what is computed from constants alone is computed now.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import gast
import numpy as np

from spmd.errors import TypeMismatch, UnknownName, UnsupportedSyntax, UnsupportedType
from spmd.frontend.fence import refuse
from spmd.frontend.lowering import Lowering
from spmd.frontend.scope import NO_FACTS, Facts
from spmd.frontend.values import (
    NONE, UNBOUND, Abstract, Choice, Const, Iterable, Leaf, Method, Node, Run, Static, Struct, describe, list_of, tuple_of,
)
from spmd.ir.core import Value
from spmd.ir.types import BOOL, INT
from spmd.ops import operators

BINARY = {
    gast.Add: ("+", operator.add), gast.Sub: ("-", operator.sub), gast.Mult: ("*", operator.mul),
    gast.Div: ("/", operator.truediv), gast.FloorDiv: ("//", operator.floordiv), gast.Mod: ("%", operator.mod),
    gast.Pow: ("**", operator.pow), gast.MatMult: ("@", operator.matmul), gast.BitAnd: ("&", operator.and_),
    gast.BitOr: ("|", operator.or_), gast.BitXor: ("^", operator.xor), gast.LShift: ("<<", operator.lshift),
    gast.RShift: (">>", operator.rshift),
}
COMPARE = {
    gast.Lt: ("<", operator.lt), gast.LtE: ("<=", operator.le), gast.Gt: (">", operator.gt),
    gast.GtE: (">=", operator.ge), gast.Eq: ("==", operator.eq), gast.NotEq: ("!=", operator.ne),
}
UNARY = {gast.USub: ("-", operator.neg), gast.UAdd: ("+", operator.pos), gast.Invert: ("~", operator.invert)}


def expression(low: Lowering, node: Any) -> Abstract:
    """The value of an expression."""
    rule = RULES.get(type(node))
    if rule is None:
        raise refuse(low.definition, node, low.sp.chain())
    low.locate(node)
    return rule(low, node)


def _constant(low: Lowering, node: Any) -> Abstract:
    if isinstance(node.value, bytes):
        raise low.error(UnsupportedType, "bytes cannot run in lanes", node)
    return Const(node.value)


def _name(low: Lowering, node: Any) -> Abstract:
    thing = low.scope.names.get(node.id)
    if thing is None:
        if node.id in low.definition.locals:
            return _unbound(low, node, UNBOUND)
        thing = low.sp.globals.resolve(low.definition.function, node.id)
        if thing is None:
            raise low.error(UnknownName, f"name '{node.id}' is not defined", node)
        return thing
    if thing is UNBOUND or isinstance(thing, Choice) and UNBOUND in thing.alternatives:
        return _unbound(low, node, thing)
    return low.settled(thing)


def _unbound(low: Lowering, node: Any, thing: Abstract) -> Abstract:
    """A name that has no value on some path: the example that reads it there raises."""
    text = f"cannot access local variable '{node.id}' where it is not associated with a value"
    error = (UnboundLocalError, (text,))
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
    return low.settled(thing)


def end_in_error(low: Lowering, error: tuple[Any, tuple[Any, ...]]) -> NoReturn:
    """The example that gets here raises."""
    from spmd.frontend.lowering import Dead

    low.b.insert("raise", (), (), {"error": error})
    raise Dead


def guard(low: Lowering, cond: Value, error: tuple[Any, tuple[Any, ...]]) -> None:
    """The example raises unless `cond`."""
    low.b.insert("guard", [cond], (), {"error": error})


# ---------------------------------------------------------------------------------------------- operators
def binary(low: Lowering, symbol: str, fold: Callable[..., Any], x: Abstract, y: Abstract, node: Any) -> Abstract:
    """`x symbol y` for numbers, arrays, strings and containers."""
    x, y = low.settled(x), low.settled(y)
    if isinstance(x, Choice):
        return low.spread(x, lambda one: binary(low, symbol, fold, one, y, node))
    if isinstance(y, Choice):
        return low.spread(y, lambda one: binary(low, symbol, fold, x, one, node))
    if isinstance(x, Const) and isinstance(y, Const):
        folded = folds(fold, x.value, y.value)
        if folded is not None:
            return folded
    if isinstance(x, Struct) and isinstance(y, Struct) and symbol == "+" and x.kind == y.kind in ("tuple", "list"):
        return (tuple_of if x.kind == "tuple" else list_of)(x.items + y.items)
    if symbol in ("==", "!="):
        same = _equality(low, x, y, node)
        if same is not None:
            return _negated(low, same) if symbol == "!=" else same
    values = [low.value(numeric(low, thing, node), node) for thing in (x, y)]
    return Leaf(low.attempt(lambda: operators.binary(low.b, symbol, values[0], values[1]), node))


def numeric(low: Lowering, thing: Abstract, node: Any) -> Abstract:
    """A thing as a number or array, where NumPy would make one of it."""
    if isinstance(thing, (Leaf, Const)) and thing is not NONE:
        return thing
    raise low.error(TypeMismatch, f"a number or array is needed here, not {describe(thing)}", node)


def folds(function: Callable[..., Any], *values: Any) -> Const | None:
    """The result on constants, if there is one and it is a constant too."""
    try:
        result = function(*values)
    except Exception:  # noqa: BLE001 (what Python raises here it raises when the example runs)
        return None
    if isinstance(result, (bool, int, float, complex, str)) and not isinstance(result, np.generic):
        if isinstance(result, int) and not -(2**63) <= result < 2**63:
            return None
        return Const(result)
    return None


def _equality(low: Lowering, x: Abstract, y: Abstract, node: Any) -> Abstract | None:
    """`==` of things that are not both numbers; None where the operator of numbers decides."""
    if isinstance(x, (Leaf, Const)) and isinstance(y, (Leaf, Const)) and NONE.value not in _consts(x, y):
        texts = [_is_text(x), _is_text(y)]
        if texts[0] != texts[1]:
            return Const(False)
        if all(texts):
            return Leaf(low.b.emit("eq", low.value(x), low.value(y)))
        return None
    if isinstance(x, Struct) and isinstance(y, Struct) and x.kind in ("tuple", "list") and x.kind == y.kind:
        if len(x.items) != len(y.items):
            return Const(False)
        result: Abstract = Const(True)
        for a, b in zip(x.items, y.items):
            result = both(low, result, binary(low, "==", operator.eq, a, b, node))
        return result
    if isinstance(x, Static) and isinstance(y, Static):
        return Const(x.value == y.value)
    for one, other in ((x, y), (y, x)):
        if isinstance(one, Const) and one.value is None:
            return identity(low, other, one).value
    raise low.error(UnsupportedType, f"{describe(x)} and {describe(y)} cannot be compared in lanes", node)


def _consts(*things: Abstract) -> list[Any]:
    return [t.value for t in things if isinstance(t, Const)]


def _is_text(thing: Abstract) -> bool:
    return isinstance(thing, Const) and isinstance(thing.value, str) or isinstance(thing, Leaf) and thing.type.text


def both(low: Lowering, x: Abstract, y: Abstract) -> Abstract:
    """`x and y` of truth values, without a branch."""
    for one, other in ((x, y), (y, x)):
        if isinstance(one, Const):
            return other if one.value else one
    return Leaf(low.b.emit("logical_and", low.value(x), low.value(y)))


def _negated(low: Lowering, thing: Abstract) -> Abstract:
    if isinstance(thing, Const):
        return Const(not thing.value)
    return Leaf(low.attempt(lambda: operators.unary(low.b, "not", low.value(thing))))


def _binop(low: Lowering, node: Any) -> Abstract:
    x = expression(low, node.left)
    y = expression(low, node.right)
    low.locate(node)
    symbol, fold = BINARY[type(node.op)]
    return binary(low, symbol, fold, x, y, node)


def _unaryop(low: Lowering, node: Any) -> Abstract:
    if isinstance(node.op, gast.Not):
        return _as_bool(condition(low, node))
    thing = expression(low, node.operand)
    low.locate(node)
    symbol, fold = UNARY[type(node.op)]

    def run(one: Abstract) -> Abstract:
        if isinstance(one, Const):
            folded = folds(fold, one.value)
            if folded is not None:
                return folded
        value = low.value(numeric(low, one, node), node)
        return Leaf(low.attempt(lambda: operators.unary(low.b, symbol, value), node))

    return low.spread(thing, run)


# ---------------------------------------------------------------------------------------------- conditions
@dataclass(frozen=True, eq=False)
class Condition:
    """A truth value (a constant or a bool leaf) and what holds where it is true and where it is false."""

    value: Abstract
    yes: Facts = NO_FACTS
    no: Facts = NO_FACTS

    def negated(self, low: Lowering) -> Condition:
        return Condition(_negated(low, self.value), self.no, self.yes)


def condition(low: Lowering, node: Any) -> Condition:
    """The truth of an expression."""
    low.locate(node)
    if isinstance(node, gast.BoolOp):
        return _all_or_any(low, node.values, isinstance(node.op, gast.And))
    if isinstance(node, gast.UnaryOp) and isinstance(node.op, gast.Not):
        return condition(low, node.operand).negated(low)
    if isinstance(node, gast.Compare):
        return _comparisons(low, node)
    if isinstance(node, gast.Call):
        from spmd.frontend.calls import isinstance_test

        found = isinstance_test(low, node)
        if found is not None:
            return found
    return truth(low, expression(low, node), node)


def _all_or_any(low: Lowering, values: list[Any], conjunction: bool) -> Condition:
    """`and` / `or` of conditions: the rest is evaluated only where the first does not decide."""
    first = condition(low, values[0])
    if len(values) == 1:
        return first
    if isinstance(first.value, Const):
        return _all_or_any(low, values[1:], conjunction) if bool(first.value.value) == conjunction else first
    rest: list[Condition] = []

    def go_on() -> Abstract:
        rest.append(_all_or_any(low, values[1:], conjunction))
        return Leaf(low.value(rest[0].value))

    def decided() -> Abstract:
        return Leaf(low.boolean(not conjunction))

    arms = (go_on, decided) if conjunction else (decided, go_on)
    live = low.scope.names
    value = low.branch(low.value(first.value), arms, (first.yes, first.no), live)
    assert value is not None
    if not rest:
        return Condition(value)
    if conjunction:
        return Condition(value, first.yes.both(rest[0].yes), NO_FACTS)
    return Condition(value, NO_FACTS, first.no.both(rest[0].no))


def truth(low: Lowering, thing: Abstract, node: Any) -> Condition:
    """bool(thing)."""
    thing = low.settled(thing)
    if isinstance(thing, Const):
        return Condition(Const(bool(thing.value)))
    if isinstance(thing, Leaf):
        if thing.type.text:
            empty = low.converter.number(Const(""), thing.type)
            return Condition(Leaf(low.b.emit("ne", thing.value, empty)))
        return Condition(Leaf(low.attempt(lambda: operators.truth(low.b, thing.value), node)))
    if isinstance(thing, Struct):
        return Condition(Const(len(thing.items) > 0 or thing.kind == "dataclass"))
    if isinstance(thing, Run):
        length = low.b.insert("length", [thing.value], [INT]).result
        return Condition(Leaf(low.b.emit("gt", length, low.b.const(0))))
    if isinstance(thing, Node):
        classes = [cls for cls, _ in low.sp.layouts[thing.table].classes]
        if any(hasattr(cls, "__bool__") or hasattr(cls, "__len__") for cls in classes):
            raise low.error(UnsupportedType, "truth of an object with __bool__ or __len__ cannot run in lanes", node)
        return identity(low, thing, NONE).negated(low)
    if isinstance(thing, Choice):
        return Condition(low.spread(thing, lambda one: Leaf(low.value(truth(low, one, node).value))))
    return Condition(Const(True))


def _as_bool(cond: Condition) -> Abstract:
    return cond.value


def _comparisons(low: Lowering, node: Any) -> Condition:
    """`a < b <= c`: each operand once, the later ones only where the earlier comparisons hold."""
    left = expression(low, node.left)
    return _compare_chain(low, left, list(zip(node.ops, node.comparators)), node)


def _compare_chain(low: Lowering, left: Abstract, rest: list[tuple[Any, Any]], node: Any) -> Condition:
    op, right_node = rest[0]
    right = expression(low, right_node)
    low.locate(node)
    first = _compare(low, op, left, right, node)
    if len(rest) == 1:
        return first
    if isinstance(first.value, Const):
        return _compare_chain(low, right, rest[1:], node) if first.value.value else first
    if isinstance(first.value, Leaf) and first.value.type.rank:
        raise low.error(TypeMismatch, "a chained comparison of arrays has no truth value", node)
    value = low.branch(
        low.value(first.value),
        (lambda: Leaf(low.value(_compare_chain(low, right, rest[1:], node).value)), lambda: Leaf(low.boolean(False))),
        (first.yes, first.no),
        low.scope.names,
    )
    assert value is not None
    return Condition(value, first.yes)


def _compare(low: Lowering, op: Any, x: Abstract, y: Abstract, node: Any) -> Condition:
    if isinstance(op, (gast.Is, gast.IsNot)):
        found = identity(low, x, y, node)
        return found.negated(low) if isinstance(op, gast.IsNot) else found
    if isinstance(op, (gast.In, gast.NotIn)):
        found = Condition(_contains(low, x, y, node))
        return found.negated(low) if isinstance(op, gast.NotIn) else found
    symbol, fold = COMPARE[type(op)]
    return Condition(binary(low, symbol, fold, x, y, node))


def _contains(low: Lowering, x: Abstract, container: Abstract, node: Any) -> Abstract:
    if isinstance(container, Struct) and container.kind == "dict":
        if isinstance(x, Const):
            return Const(x.value in container.names)
    elif isinstance(container, Struct) and container.kind in ("tuple", "list"):
        result: Abstract = Const(False)
        for item in container.items:
            same = binary(low, "==", operator.eq, x, item, node)
            result = _negated(low, both(low, _negated(low, result), _negated(low, same)))
        return result
    raise low.error(UnsupportedType, f"'in' {describe(container)} cannot run in lanes", node)


def identity(low: Lowering, x: Abstract, y: Abstract, node: Any = None) -> Condition:
    """`x is y`, where one of them is None, or both are known now."""
    if isinstance(x, Const) and x.value is None:
        x, y = y, x
    x = low.settled(x)
    if isinstance(y, Const) and y.value is None:
        return _is_none(low, x)
    if isinstance(x, Node) and isinstance(y, Node) and x.table == y.table:
        return Condition(Leaf(low.b.insert("same", [x.value, y.value], [BOOL]).result))
    if isinstance(x, Static) and isinstance(y, Static):
        return Condition(Const(x.value is y.value))
    if isinstance(y, Const) and isinstance(y.value, bool):
        if isinstance(x, Const):
            return Condition(Const(x.value is y.value))
        if isinstance(x, Leaf) and x.type == BOOL:
            return Condition(binary(low, "==", operator.eq, x, y, node))
    raise low.error(UnsupportedSyntax, f"'is' between {describe(x)} and {describe(y)} cannot run in lanes", node,
                    "compare with ==; 'is' is for None.")


def _is_none(low: Lowering, x: Abstract) -> Condition:
    if isinstance(x, Const):
        return Condition(Const(x.value is None))
    if isinstance(x, Node):
        if low.is_nonnull(x):
            return Condition(Const(False))
        test = low.b.insert("isnull", [x.value], [BOOL]).result
        return Condition(Leaf(test), NO_FACTS, Facts(frozenset({x.value})))
    if isinstance(x, Choice):
        left = low.possible(x)
        none = frozenset(k for k in left if isinstance(x.alternatives[k], Const) and x.alternatives[k] is not None
                         and x.alternatives[k].value is None)  # type: ignore[attr-defined]
        if any(isinstance(x.alternatives[k], Node) and x.alternatives[k].nullable for k in left):  # type: ignore[attr-defined]
            return Condition(low.spread(x, lambda one: Leaf(low.value(_is_none(low, one).value))))
        return tag_test(low, x.tag, left, none)
    return Condition(Const(False))


def tag_test(low: Lowering, tag: Value, left: frozenset[int], wanted: frozenset[int]) -> Condition:
    """Whether a tag, which may be any of `left`, is one of `wanted`."""
    wanted &= left
    if not wanted or wanted == left:
        return Condition(Const(bool(wanted)))
    few, flip = (wanted, False) if len(wanted) <= len(left) - len(wanted) else (left - wanted, True)
    test: Value | None = None
    for k in sorted(few):
        one = low.b.emit("eq", tag, low.converter.constant(k, tag.type))
        test = one if test is None else low.b.emit("logical_or", test, one)
    assert test is not None
    if flip:
        test = low.b.emit("logical_not", test)
    return Condition(Leaf(test), Facts(tags={tag: wanted}), Facts(tags={tag: left - wanted}))


# ---------------------------------------------------------------------------------------------- choice by value
def _boolop(low: Lowering, node: Any) -> Abstract:
    """`x and y` / `x or y` as values: the operand that decides."""
    conjunction = isinstance(node.op, gast.And)

    def rest(values: list[Any]) -> Abstract:
        thing = expression(low, values[0])
        if len(values) == 1:
            return thing
        cond = truth(low, thing, values[0])
        if isinstance(cond.value, Const):
            return rest(values[1:]) if bool(cond.value.value) == conjunction else thing
        arms = (lambda: rest(values[1:]), lambda: thing)
        if not conjunction:
            arms = arms[::-1]
        result = low.branch(low.value(cond.value), arms, (cond.yes, cond.no), low.scope.names)
        assert result is not None
        return result

    return rest(list(node.values))


def _ifexp(low: Lowering, node: Any) -> Abstract:
    cond = condition(low, node.test)
    if isinstance(cond.value, Const):
        return expression(low, node.body if cond.value.value else node.orelse)
    result = low.branch(
        low.value(cond.value),
        (lambda: expression(low, node.body), lambda: expression(low, node.orelse)),
        (cond.yes, cond.no),
        low.scope.names,
    )
    assert result is not None
    return result


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
            items.append(expression(low, element))
    return tuple_of(tuple(items)) if isinstance(node, gast.Tuple) else list_of(tuple(items))


def _dict(low: Lowering, node: Any) -> Abstract:
    names, items = [], []
    for key, value in zip(node.keys, node.values):
        name = expression(low, key) if key is not None else UNBOUND
        if not isinstance(name, Const) or not isinstance(name.value, (str, int)):
            raise low.error(UnsupportedSyntax, "a dictionary's keys must be constants here", node)
        thing = expression(low, value)
        if name.value in names:
            items[names.index(name.value)] = thing
        else:
            names.append(name.value)
            items.append(thing)
    return Struct("dict", dict, tuple(names), tuple(items))


def _walrus(low: Lowering, node: Any) -> Abstract:
    thing = expression(low, node.value)
    low.scope.names[node.target.id] = thing
    return thing


def _call(low: Lowering, node: Any) -> Abstract:
    from spmd.frontend.calls import call

    return call(low, node)


def _attribute(low: Lowering, node: Any) -> Abstract:
    from spmd.frontend.attributes import attribute

    thing = expression(low, node.value)
    low.locate(node)
    return attribute(low, thing, node.attr, node)


def _subscript(low: Lowering, node: Any) -> Abstract:
    from spmd.frontend.subscripts import subscript

    return subscript(low, node)


def _listcomp(low: Lowering, node: Any) -> Abstract:
    from spmd.frontend.comprehensions import comprehension

    return comprehension(low, node)


RULES: dict[type, Callable[[Lowering, Any], Abstract]] = {
    gast.Constant: _constant, gast.Name: _name, gast.BinOp: _binop, gast.UnaryOp: _unaryop,
    gast.BoolOp: _boolop, gast.Compare: lambda low, node: _as_bool(_comparisons(low, node)), gast.IfExp: _ifexp,
    gast.Tuple: _tuple, gast.List: _tuple, gast.Dict: _dict, gast.NamedExpr: _walrus, gast.Call: _call,
    gast.Attribute: _attribute, gast.Subscript: _subscript, gast.ListComp: _listcomp, gast.GeneratorExp: _listcomp,
}

