"""Conditions and what they show; `and`, `or`, comparison chains and conditional expressions.

The invariant: an operand that Python would not evaluate is evaluated in a branch that is not taken, and each operand of
a chain is evaluated once.
"""

from __future__ import annotations

from typing import Any

import gast

from spmd.errors import TypeMismatch
from spmd.frontend.classes import isinstance_test
from spmd.frontend.lowering import Lowering
from spmd.frontend.operations import COMPARE, Condition, binary, contains, identity, truth
from spmd.frontend.scope import NO_FACTS
from spmd.frontend.values import Abstract, Const, Leaf


def condition(low: Lowering, node: Any) -> Condition:
    """The truth of an expression."""
    low.locate(node)
    if isinstance(node, gast.BoolOp):
        return _all_or_any(low, node.values, isinstance(node.op, gast.And))
    if isinstance(node, gast.UnaryOp) and isinstance(node.op, gast.Not):
        return condition(low, node.operand).negated(low)
    if isinstance(node, gast.Compare):
        return comparisons(low, node)
    if isinstance(node, gast.Call):
        found = isinstance_test(low, node)
        if found is not None:
            return found
    return truth(low, low.expression(node), node)


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


def comparisons(low: Lowering, node: Any) -> Condition:
    """`a < b <= c`: each operand once, the later ones only where the earlier comparisons hold."""
    left = low.expression(node.left)
    return _compare_chain(low, left, list(zip(node.ops, node.comparators)), node)


def _compare_chain(low: Lowering, left: Abstract, rest: list[tuple[Any, Any]], node: Any) -> Condition:
    op, right_node = rest[0]
    right = low.expression(right_node)
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
        found = Condition(contains(low, x, y, node))
        return found.negated(low) if isinstance(op, gast.NotIn) else found
    symbol, fold = COMPARE[type(op)]
    return Condition(binary(low, symbol, fold, x, y, node))


# ---------------------------------------------------------------------------------------------- choice by value
def boolop(low: Lowering, node: Any) -> Abstract:
    """`x and y` / `x or y` as values: the operand that decides."""
    conjunction = isinstance(node.op, gast.And)

    def rest(values: list[Any]) -> Abstract:
        thing = low.expression(values[0])
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


def ifexp(low: Lowering, node: Any) -> Abstract:
    cond = condition(low, node.test)
    if isinstance(cond.value, Const):
        return low.expression(node.body if cond.value.value else node.orelse)
    result = low.branch(
        low.value(cond.value),
        (lambda: low.expression(node.body), lambda: low.expression(node.orelse)),
        (cond.yes, cond.no),
        low.scope.names,
    )
    assert result is not None
    return result
