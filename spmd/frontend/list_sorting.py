"""`xs.sort()` and `sorted(xs)`: lists of numbers, or of tuples of numbers, with a key and in reverse.

The invariant: the order is Python's, and equal items keep theirs. Python's order of a NaN among floats depends on how
its sort compares; an example with one raises instead of getting another order.
"""

from __future__ import annotations

from typing import Any

from spmd.errors import TypeMismatch, UnsupportedFunction, UnsupportedType
from spmd.frontend.identities import Object
from spmd.frontend.iterables import iterable
from spmd.frontend.lists import COUNT, grown, varying
from spmd.frontend.lowering import Lowering
from spmd.frontend.operations import guard
from spmd.frontend.python_calls import call_python
from spmd.frontend.values import UNBOUND, Abstract, Const, Grown, Leaf, Run, Static, Struct, describe, list_of
from spmd.ir.core import Value
from spmd.ir.types import Num

NAN = (ValueError, ("a list that holds NaN has no order that could be told here",))


def sorted_list(
    low: Lowering, thing: Abstract, key: Abstract, reverse: Abstract, mapped: Any, node: Any
) -> Grown:
    """The list in order. `mapped` makes one frame for each item, for the key."""
    if not isinstance(reverse, Const):
        raise low.error(UnsupportedType, "'reverse' must be known now", node)
    whole = varying(low, grown(low, thing, (), node))
    if whole.item is UNBOUND:
        return whole
    keys = _keys(low, whole, key, mapped, node)
    b = low.b
    order: Value | None = None
    for column in reversed(keys):
        order = _refined(low, column, order, bool(reverse.value))
    assert order is not None
    return whole.holding([b.emit("take", c, order, axis=0, exact=True) for c in whole.columns], whole.count)


def _keys(low: Lowering, whole: Grown, key: Abstract, mapped: Any, node: Any) -> list[Value]:
    """The columns to sort by, the first one first."""
    if isinstance(key, Const) and key.value is None:
        found: Grown = whole
        columns = list(found.columns)
        item = found.item
    else:
        if not isinstance(key, Static):
            raise low.error(UnsupportedFunction, "the key must be a function that is known now", node)
        function = key.value
        made = mapped(low, iterable(low, whole, node), {},
                      lambda inner, one: call_python(inner, function, [one], {}, node), ("sorted", function), "key")
        assert isinstance(made, Run)
        keys = grown(low, made, (), node)
        columns, item = list(keys.columns), keys.item
    leaves = list(item.leaves())
    flat = isinstance(item, Leaf) or isinstance(item, Struct) and item.kind == "tuple"
    numbers = all(isinstance(v.type, Num) and not v.type.shape and not v.type.text for v in leaves)
    if not flat or not numbers or isinstance(item, Struct) and not all(isinstance(i, Leaf) for i in item.items):
        raise low.error(UnsupportedType, f"a list of {describe(item)} cannot be sorted in lanes", node,
                        "its items, or the key's results, must be numbers or tuples of numbers.")
    return columns


def _refined(low: Lowering, column: Value, order: Value | None, reverse: bool) -> Value:
    """The stable order by a column, of what was ordered by later columns before."""
    b = low.b
    type_ = column.type
    assert isinstance(type_, Num)
    if type_.floating:
        bad = b.emit("any", b.emit("isnan", column), axes=(0,), keepdims=False)
        guard(low, b.emit("logical_not", bad), NAN)
    if order is not None:
        column = b.emit("take", column, order, axis=0, exact=True)
    turned = {"axis": 0, "step": -1, "given": (False, False)}
    found = b.emit("argsort", b.emit("dynslice", column, **turned) if reverse else column, axis=0, stable=True)
    if reverse:  # the last of equal items comes first in what is turned twice
        size = b.emit("cast", b.emit("dim", column, axis=0), dtype="int64", python=False)
        last = b.emit("sub", size, low.converter.constant(1, COUNT))
        spread = b.emit("broadcast_to", last, b.emit("shape_of", found), shape=(None,))
        found = b.emit("dynslice", b.emit("sub", spread, found), **turned)
    return found if order is None else b.emit("take", order, found, axis=0, exact=True)


def demand_named(low: Lowering, title: str, args: list[Abstract], kwargs: dict[str, Abstract], node: Any) -> None:
    """Refuses what sort() and sorted() do not take."""
    if args or set(kwargs) - {"key", "reverse"}:
        raise low.error(TypeMismatch, f"{title}() takes 'key' and 'reverse'", node)


def sort(
    low: Lowering, owner: Object, held: Abstract, args: list[Abstract], kwargs: dict[str, Abstract], mapped: Any,
    node: Any,
) -> Abstract:
    """xs.sort()"""
    demand_named(low, "sort", args, kwargs, node)
    key, reverse = (low.settled(kwargs.get(n, Const(d))) for n, d in (("key", None), ("reverse", False)))
    assert low.memory is not None
    low.memory.write(owner, sorted_list(low, held, key, reverse, mapped, node), node)
    return Const(None)


def sorted_call(
    low: Lowering, args: list[Abstract], kwargs: dict[str, Abstract], mapped: Any, node: Any
) -> Abstract:
    """sorted(xs)"""
    demand_named(low, "sorted", args[1:], kwargs, node)
    if not args:
        raise low.error(TypeMismatch, "sorted() takes what it sorts", node)
    key, reverse = (low.settled(kwargs.get(n, Const(d))) for n, d in (("key", None), ("reverse", False)))
    thing = low.settled(args[0])
    if isinstance(thing, Struct) and thing.kind == "tuple":
        thing = list_of(thing.items)
    if isinstance(thing, Leaf) and thing.type.rank == 1:
        raise low.error(UnsupportedType, "sorted() of an array cannot run in lanes", node, "use np.sort.")
    if not isinstance(thing, (Grown, Run)) and not (isinstance(thing, Struct) and thing.kind == "list"):
        raise low.error(UnsupportedType, f"sorted() of {describe(thing)} cannot run in lanes", node)
    return sorted_list(low, thing, key, reverse, mapped, node)

