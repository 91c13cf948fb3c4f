"""Dictionaries whose keys are known when the program runs: memo tables, counts, positions.

A `Table` is its entries in order of insertion, pairs (key, value) in the columns of a list of varying length; a key is
found by comparing it with all. Keys are numbers, strings or tuples of them. The invariant: no two entries have equal
keys, and an example that reads a key which its dictionary does not have raises KeyError.
"""

from __future__ import annotations

from typing import Any, NoReturn

from spmd.errors import TypeMismatch, UnsupportedSyntax
from spmd.frontend.compounds import Error
from spmd.frontend.exits import demand, throw
from spmd.frontend.identities import Object
from spmd.frontend.joins import entries_of
from spmd.frontend.list_methods import appended, without
from spmd.frontend.lists import COUNT, by_value, grown, grown_item, matches
from spmd.frontend.lowering import Lowering
from spmd.frontend.values import (
    UNBOUND,
    Abstract,
    Const,
    Excerpt,
    Grown,
    Leaf,
    Struct,
    Table,
    describe,
    is_number,
    is_text,
    tuple_of,
)
from spmd.ir.core import Value


def is_key(thing: Abstract) -> bool:
    """Whether entries can have such a key: numbers, strings and characters, and tuples of them."""
    if isinstance(thing, Struct) and thing.kind == "tuple":
        return bool(thing.items) and all(map(is_key, thing.items))
    return is_number(thing) or is_text(thing) and not isinstance(thing, Excerpt)


def known_key(low: Lowering, key: Abstract) -> tuple[Any, bool]:
    """A key's value and whether it is known now."""
    key = low.settled(key)
    if isinstance(key, Const):
        return key.value, True
    if isinstance(key, Struct) and key.kind == "tuple":
        parts = [known_key(low, item) for item in key.items]
        return tuple(value for value, _ in parts), all(known for _, known in parts)
    return None, False


def settled_key(low: Lowering, key: Abstract) -> Abstract:
    """A key with what its parts are here."""
    key = low.settled(key)
    if isinstance(key, Struct):
        return Struct(key.kind, key.cls, key.names, tuple(settled_key(low, i) for i in key.items))
    return key


def table(low: Lowering, held: Abstract, more: tuple[Abstract, ...] = (), node: Any = None) -> Table:
    """A dictionary as a table whose entries can be `more`, too."""
    return Table(grown(low, low.attempt(lambda: entries_of(held), node), more, node))


def _found(low: Lowering, held: Table, key: Abstract, node: Any) -> Value:
    """The place of a key, -1 if there is none."""
    if not is_key(key):
        raise low.error(TypeMismatch, f"{describe(key)} cannot be a key here", node,
                        "keys are numbers, whole strings, characters, or tuples of them.")
    item = held.entries.item
    assert isinstance(item, Struct)
    width = len(list(item.items[0].leaves()))
    keys = Grown(item.items[0], held.entries.columns[:width], held.entries.count)
    return low.b.emit("first", matches(low, keys, key, node))


def _value_at(low: Lowering, held: Table, place: Value) -> Abstract:
    item = held.entries.item
    assert isinstance(item, Struct)
    entry = grown_item(low, held.entries, place)
    assert isinstance(entry, Struct)
    return entry.items[1]


def read(low: Lowering, held: Table, key: Abstract, node: Any) -> Abstract:
    """d[key]"""
    key = settled_key(low, key)
    if held.entries.item is UNBOUND:
        end_without(low, key)
    place = _found(low, held, key, node)
    there = low.b.emit("ge", place, low.converter.constant(0, COUNT))
    arms = (lambda: _value_at(low, held, place), lambda: end_without(low, key))
    found = low.branch(there, arms, live=low.scope.names)
    assert found is not None
    return found


def end_without(low: Lowering, key: Abstract) -> NoReturn:
    """The example raises, as its dictionary does not have the key."""
    if is_text(key):
        low.strings.missing(key)
    throw(low, Error(KeyError, (key,)))


def has(low: Lowering, held: Abstract, key: Abstract, node: Any) -> Abstract:
    """key in d"""
    held = table(low, held, (), node)
    if held.entries.item is UNBOUND:
        return Const(False)
    place = _found(low, held, settled_key(low, key), node)
    there = low.b.emit("ge", place, low.converter.constant(0, COUNT))
    return Leaf(low.b.emit("cast", there, dtype="bool", python=True))


def get(low: Lowering, held: Table, key: Abstract, default: Abstract, node: Any) -> Abstract:
    """d.get(key, default)"""
    if held.entries.item is UNBOUND:
        return default
    place = _found(low, held, settled_key(low, key), node)
    there = low.b.emit("ge", place, low.converter.constant(0, COUNT))
    arms = (lambda: _value_at(low, held, place), lambda: default)
    result = low.branch(there, arms, live=low.scope.names)
    assert result is not None
    return result


def write(low: Lowering, owner: Object, held: Abstract, key: Abstract, thing: Abstract, node: Any) -> None:
    """d[key] = thing: an entry written anew, or one more."""
    memory = low.memory
    assert memory is not None
    if not isinstance(held, Table):
        memory.demand_resizable(owner, node)
    key = settled_key(low, key)
    entry = tuple_of((key, by_value(low, low.hold(thing))))
    whole = table(low, held, (entry,), node)
    place = _found(low, whole, key, node)
    b = low.b
    there = b.emit("ge", place, low.converter.constant(0, COUNT))

    def replaced() -> None:
        leaves = low.attempt(lambda: low.converter.convert(entry, whole.entries.item), node)
        cells = map(low.converter.cell, leaves)
        columns = [b.emit("put_index", c, v, place, exact=True) for c, v in zip(whole.entries.columns, cells)]
        memory.write(owner, Table(whole.entries.holding(columns, whole.entries.count)), node)

    def added() -> None:
        memory.demand_resizable(owner, node)
        memory.write(owner, Table(appended(low, whole.entries, entry, node)), node)

    low.branch(there, (replaced, added), live=low.scope.names)


def delete(
    low: Lowering, owner: Object, held: Abstract, key: Abstract, default: Abstract | None, node: Any
) -> Abstract:
    """d.pop(key)"""
    if default is not None:
        raise low.error(UnsupportedSyntax, "pop() of a dictionary with a default cannot run in lanes", node,
                        "test with 'in' before.")
    memory = low.memory
    assert memory is not None
    memory.demand_resizable(owner, node)
    whole = table(low, held, (), node)
    key = settled_key(low, key)
    if whole.entries.item is UNBOUND:
        throw(low, Error(KeyError, (key,)))
    place = _found(low, whole, key, node)
    demand(low, low.b.emit("ge", place, low.converter.constant(0, COUNT)), Error(KeyError, (key,)))
    found = _value_at(low, whole, place)
    memory.write(owner, Table(without(low, whole.entries, place)), node)
    return found
