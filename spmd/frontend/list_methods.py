"""Writes into lists: items set, appended, inserted and taken out; the methods of lists.

The invariant: a write is refused where a loop runs over the list and would see its length change; what is put into a
list of varying length is fixed from then on, since such a list holds its items by value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spmd.errors import TypeMismatch, UnsupportedSyntax
from spmd.frontend.identities import Object
from spmd.frontend.lists import (
    COUNT,
    as_index,
    by_value,
    demand_within,
    grown,
    grown_item,
    is_list,
    joined,
    matches,
    varying,
)
from spmd.frontend.lowering import Lowering
from spmd.frontend.operations import end_in_error, guard
from spmd.frontend.values import UNBOUND, Abstract, Const, Grown, Leaf, Struct, describe, list_of
from spmd.ir.core import Value


# ------------------------------------------------------------------------------------------------ writing
def set_item(low: Lowering, owner: Object, held: Abstract, index: Any, thing: Abstract, node: Any) -> None:
    """xs[index] = thing"""
    memory = low.memory
    assert memory is not None
    if not is_list(held):
        raise low.error(TypeMismatch, f"{describe(held)} does not support item assignment", node)
    if isinstance(index, tuple):
        raise low.error(UnsupportedSyntax, "a slice of a list cannot be written to in lanes", node,
                        "build the list anew: xs[:a] + new + xs[b:].")
    as_index(low, index, node)
    if isinstance(held, Struct) and isinstance(index, Const):
        items = list(held.items)
        if not -len(items) <= index.value < len(items):
            end_in_error(low, (IndexError, ("list assignment index out of range",)))
        items[index.value] = low.hold(thing)
        memory.write(owner, list_of(tuple(items)), node)
        return
    place = as_index(low, index, node)
    value = by_value(low, low.hold(thing))
    whole = grown(low, held, (value,), node)
    text = "list assignment index out of range"
    if whole.item is UNBOUND:
        end_in_error(low, (IndexError, (text,)))
    demand_within(low, place, whole.count, text)
    leaves = low.attempt(lambda: low.converter.convert(value, whole.item), node)
    cells = map(low.converter.cell, leaves)
    columns = [low.b.emit("put_index", c, v, place, exact=True) for c, v in zip(whole.columns, cells)]
    memory.write(owner, whole.holding(columns, whole.count), node)


def extend_list(low: Lowering, owner: Object, held: Abstract, more: Abstract, node: Any) -> None:
    """xs += ys, xs.extend(ys)"""
    memory = low.memory
    assert memory is not None
    memory.demand_resizable(owner, node)
    more = low.settled(more)
    if isinstance(more, Struct) and more.kind in ("tuple", "namedtuple"):
        more = list_of(more.items)
    if not is_list(more) or not (is_list(held) or isinstance(held, Grown)):
        raise low.error(UnsupportedSyntax, f"{describe(held)} cannot be extended by {describe(more)} in lanes", node,
                        "extend by a list: xs += [...].")
    memory.write(owner, joined(low, held, more, node), node)


def append(low: Lowering, owner: Object, held: Abstract, thing: Abstract, node: Any) -> None:
    """xs.append(x)"""
    memory = low.memory
    assert memory is not None
    memory.demand_resizable(owner, node)
    thing = low.hold(thing)
    if isinstance(held, Struct):
        memory.write(owner, list_of((*held.items, thing)), node)
        return
    memory.write(owner, appended(low, held, by_value(low, thing), node), node)


def appended(low: Lowering, held: Abstract, value: Abstract, node: Any) -> Grown:
    """A list in columns with one item more."""
    whole = grown(low, held, (value,), node)
    leaves = low.attempt(lambda: low.converter.convert(value, whole.item), node)
    rows = [low.b.emit("stack", low.converter.cell(v), axis=0) for v in leaves]
    columns = [low.b.emit("concat", c, row, axis=0) for c, row in zip(whole.columns, rows)]
    return whole.holding(columns, low.b.emit("add", whole.count, low.converter.constant(1, COUNT)))


def without(low: Lowering, whole: Grown, place: Value) -> Grown:
    """A list in columns without the item at a place from 0."""
    b, one = low.b, low.converter.constant(1, COUNT)
    after = b.emit("add", place, one)
    parts = [(_cut(low, c, None, place), _cut(low, c, after, None)) for c in whole.columns]
    columns = [b.emit("concat", before, behind, axis=0) for before, behind in parts]
    return whole.holding(columns, b.emit("sub", whole.count, one))


def pop(low: Lowering, owner: Object, held: Abstract, index: Abstract, node: Any) -> Abstract:
    """xs.pop(), xs.pop(i)"""
    memory = low.memory
    assert memory is not None
    memory.demand_resizable(owner, node)
    empty = (IndexError, ("pop from empty list",))
    place = as_index(low, index, node)
    if isinstance(held, Struct) and isinstance(index, Const):
        items = list(held.items)
        if not items:
            end_in_error(low, empty)
        if not -len(items) <= index.value < len(items):
            end_in_error(low, (IndexError, ("pop index out of range",)))
        found = items.pop(index.value)
        memory.write(owner, list_of(tuple(items)), node)
        return found
    whole = grown(low, held, (), node)
    if whole.item is UNBOUND:
        end_in_error(low, empty)
    b = low.b
    guard(low, b.emit("gt", whole.count, low.converter.constant(0, COUNT)), empty)
    found = grown_item(low, whole, place, "pop index out of range")
    if isinstance(index, Const) and index.value == -1:
        fewer = b.emit("sub", whole.count, low.converter.constant(1, COUNT))
        left = whole.holding([_cut(low, c, None, fewer) for c in whole.columns], fewer)
    else:
        left = without(low, whole, _wrapped(low, place, whole.count))
    memory.write(owner, left, node)
    return found


def _wrapped(low: Lowering, index: Value, count: Value) -> Value:
    """An index from 0."""
    b = low.b
    plain = b.emit("cast", index, dtype="int64", python=False)
    return b.emit("where", b.emit("lt", plain, low.converter.constant(0, COUNT)), b.emit("add", plain, count), plain)


def _cut(low: Lowering, column: Value, start: Value | None, stop: Value | None) -> Value:
    bounds = [v for v in (start, stop) if v is not None]
    return low.b.emit("dynslice", column, *bounds, axis=0, step=1, given=(start is not None, stop is not None))


def insert(low: Lowering, owner: Object, held: Abstract, index: Abstract, thing: Abstract, node: Any) -> None:
    """xs.insert(i, x): an index out of range is clipped."""
    memory = low.memory
    assert memory is not None
    memory.demand_resizable(owner, node)
    at = as_index(low, index, node)
    thing = low.hold(thing)
    if isinstance(held, Struct) and isinstance(index, Const):
        items = list(held.items)
        items.insert(index.value, thing)
        memory.write(owner, list_of(tuple(items)), node)
        return
    value = by_value(low, thing)
    whole = grown(low, held, (value,), node)
    leaves = low.attempt(lambda: low.converter.convert(value, whole.item), node)
    b = low.b
    rows = [b.emit("stack", low.converter.cell(v), axis=0) for v in leaves]
    zero = low.converter.constant(0, COUNT)
    place = b.emit("minimum", b.emit("maximum", _wrapped(low, at, whole.count), zero), whole.count)
    columns = [b.emit("concat", _cut(low, c, None, place), row, _cut(low, c, place, None), axis=0)
               for c, row in zip(whole.columns, rows)]
    count = b.emit("add", whole.count, low.converter.constant(1, COUNT))
    memory.write(owner, whole.holding(columns, count), node)


# ------------------------------------------------------------------------------------------------ methods
def list_method(
    low: Lowering, owner: Object, name: str, args: list[Abstract], node: Any
) -> Abstract | None:
    """A method of a list; None where there is no rule for it."""
    rule = METHODS.get(name)
    if rule is None:
        return None
    least, most, run = rule
    if not least <= len(args) <= most:
        raise low.error(TypeMismatch, f"{name}() takes {least} to {most} arguments, {len(args)} were given", node)
    return run(low, owner, low.settled(owner), args, node)


def _none(write: Callable[..., None]) -> Callable[..., Abstract]:
    def run(low: Lowering, owner: Object, held: Abstract, args: list[Abstract], node: Any) -> Abstract:
        write(low, owner, held, *args, node)
        return Const(None)

    return run


def _settled_pop(low: Lowering, owner: Object, held: Abstract, args: list[Abstract], node: Any) -> Abstract:
    return pop(low, owner, held, low.settled(args[0]) if args else Const(-1), node)


def _settled_insert(low: Lowering, owner: Object, held: Abstract, args: list[Abstract], node: Any) -> Abstract:
    insert(low, owner, held, low.settled(args[0]), args[1], node)
    return Const(None)


def _clear(low: Lowering, owner: Object, held: Abstract, args: list[Abstract], node: Any) -> Abstract:
    assert low.memory is not None
    low.memory.demand_resizable(owner, node)
    low.memory.write(owner, list_of(()), node)
    return Const(None)


def _copied(low: Lowering, owner: Object, held: Abstract, args: list[Abstract], node: Any) -> Abstract:
    return held


# ------------------------------------------------------------------------------------------------ by value
def _place(low: Lowering, thing: Abstract, wanted: Abstract, text: str, node: Any) -> tuple[Grown, Value]:
    """Where a list has an item for the first time; ValueError where it has none."""
    whole = grown(low, thing, (), node)
    error = (ValueError, (text,))
    if whole.item is UNBOUND:
        end_in_error(low, error)
    place = low.b.emit("first", matches(low, whole, wanted, node))
    guard(low, low.b.emit("ge", place, low.converter.constant(0, COUNT)), error)
    return whole, place


def _index(low: Lowering, owner: Object, held: Abstract, args: list[Abstract], node: Any) -> Abstract:
    _, place = _place(low, held, args[0], "the value is not in list", node)
    return Leaf(low.b.emit("cast", place, dtype="int64", python=True))


def _count(low: Lowering, owner: Object, held: Abstract, args: list[Abstract], node: Any) -> Abstract:
    whole = grown(low, held, (), node)
    if whole.item is UNBOUND:
        return Const(0)
    found = low.b.emit("cast", matches(low, whole, args[0], node), dtype="int64", python=False)
    return Leaf(low.b.emit("cast", low.b.emit("sum", found, axes=(0,), keepdims=False), dtype="int64", python=True))


def _remove(low: Lowering, owner: Object, held: Abstract, args: list[Abstract], node: Any) -> Abstract:
    whole, place = _place(low, held, args[0], "list.remove(x): x not in list", node)
    pop(low, owner, whole, Leaf(place), node)
    return Const(None)


def _reverse(low: Lowering, owner: Object, held: Abstract, args: list[Abstract], node: Any) -> Abstract:
    assert low.memory is not None
    if isinstance(held, Struct):
        low.memory.write(owner, list_of(held.items[::-1]), node)
        return Const(None)
    whole = grown(low, held, (), node)
    attrs = {"axis": 0, "step": -1, "given": (False, False)}
    columns = tuple(low.b.emit("dynslice", c, **attrs) for c in varying(low, whole).columns)
    low.memory.write(owner, whole.holding(columns, whole.count), node)
    return Const(None)


METHODS: dict[str, tuple[int, int, Callable[..., Abstract]]] = {
    "append": (1, 1, _none(append)),
    "extend": (1, 1, _none(extend_list)),
    "pop": (0, 1, _settled_pop),
    "insert": (2, 2, _settled_insert),
    "clear": (0, 0, _clear),
    "copy": (0, 0, _copied),
    "index": (1, 1, _index),
    "count": (1, 1, _count),
    "remove": (1, 1, _remove),
    "reverse": (0, 0, _reverse),
}
