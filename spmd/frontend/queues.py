"""`collections.deque` and sets of numbers: lists in columns with methods of their own.

The invariant: a set holds no two equal items. The order in which Python runs over a set is that of its hashes, so a set
can be asked and changed here, and not run over.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from spmd.errors import TypeMismatch, UnsupportedSyntax
from spmd.frontend.compounds import Error
from spmd.frontend.exits import demand, throw
from spmd.frontend.identities import Object
from spmd.frontend.list_methods import METHODS as LISTS
from spmd.frontend.list_methods import append, appended, insert, pop, without
from spmd.frontend.lists import COUNT, by_value, grown, matches
from spmd.frontend.lowering import Lowering
from spmd.frontend.operations import end_in_error, guard
from spmd.frontend.values import UNBOUND, Abstract, Const, Grown, Run, Struct, describe
from spmd.ir.core import Value

EMPTY = "pop from an empty deque"


def make(low: Lowering, kind: str, args: list[Abstract], kwargs: dict[str, Abstract], node: Any) -> Abstract:
    """deque(), deque(xs), set(), set(xs)"""
    if kwargs or len(args) > 1:
        raise low.error(UnsupportedSyntax, f"{kind}() of these arguments cannot run in lanes", node,
                        f"{kind}() and {kind}(list) can.")
    low.needs_objects()
    zero = low.converter.constant(0, COUNT)
    owner = low.hold(Grown(UNBOUND, (), zero, kind))
    assert isinstance(owner, Object)
    if args:
        given = low.settled(args[0])
        if not isinstance(given, (Struct, Grown, Run)) or getattr(given, "kind", "") not in ("list", "tuple"):
            raise low.error(UnsupportedSyntax, f"{kind}() of {describe(given)} cannot run in lanes", node,
                            "pass a list.")
        if kind == "set" and not isinstance(given, Struct):
            raise low.error(UnsupportedSyntax, "a set of a list of varying length cannot run in lanes", node,
                            "add the items in a loop.")
        if isinstance(given, Struct):
            for item in given.items:
                (add if kind == "set" else append)(low, owner, low.settled(owner), item, node)
        else:
            whole = grown(low, given, (), node)
            assert low.memory is not None
            low.memory.write(owner, Grown(whole.item, whole.columns, whole.count, kind), node)
    return owner


# ------------------------------------------------------------------------------------------------ deque
def _pop(low: Lowering, owner: Object, held: Abstract, args: list[Abstract], node: Any, end: int) -> Abstract:
    assert isinstance(held, Grown)
    if held.item is UNBOUND:
        end_in_error(low, (IndexError, (EMPTY,)))
    guard(low, low.b.emit("gt", held.count, low.converter.constant(0, COUNT)), (IndexError, (EMPTY,)))
    return pop(low, owner, held, Const(end), node)


def _append_left(low: Lowering, owner: Object, held: Abstract, args: list[Abstract], node: Any) -> Abstract:
    insert(low, owner, held, Const(0), args[0], node)
    return Const(None)


Rule = tuple[int, int, Callable[..., Abstract]]
DEQUE: dict[str, Rule] = {
    **{name: LISTS[name] for name in ("append", "extend", "count", "remove", "reverse", "index")},
    "pop": (0, 0, partial(_pop, end=-1)),
    "popleft": (0, 0, partial(_pop, end=0)),
    "appendleft": (1, 1, _append_left),
}


# ------------------------------------------------------------------------------------------------ set
def _place(low: Lowering, held: Abstract, item: Abstract, node: Any) -> tuple[Grown, Abstract, Value]:
    """The set that can hold an item, the item by value, and its place (-1 where it is not there)."""
    value = by_value(low, low.hold(item))
    whole = grown(low, held, (value,), node)
    return whole, value, low.b.emit("first", matches(low, whole, value, node))


def add(low: Lowering, owner: Object, held: Abstract, item: Abstract, node: Any) -> None:
    """s.add(x)"""
    assert low.memory is not None
    low.memory.demand_resizable(owner, node)
    whole, value, place = _place(low, held, item, node)
    memory = low.memory
    assert memory is not None
    memory.write(owner, whole, node)
    there = low.b.emit("ge", place, low.converter.constant(0, COUNT))
    low.branch(there, (lambda: None, lambda: memory.write(owner, appended(low, whole, value, node), node)),
               live=low.scope.names)


def _taken_out(
    low: Lowering, owner: Object, held: Abstract, args: list[Abstract], node: Any, demanded: bool
) -> Abstract:
    """s.remove(x), s.discard(x)"""
    assert low.memory is not None
    low.memory.demand_resizable(owner, node)
    error = Error(KeyError, (low.settled(args[0]),))
    if isinstance(held, Grown) and held.item is UNBOUND:
        if demanded:
            throw(low, error)
        return Const(None)
    whole, _, place = _place(low, held, args[0], node)
    memory = low.memory
    assert memory is not None
    memory.write(owner, whole, node)
    there = low.b.emit("ge", place, low.converter.constant(0, COUNT))
    if demanded:
        demand(low, there, error)
        memory.write(owner, without(low, whole, place), node)
        return Const(None)
    low.branch(there, (lambda: memory.write(owner, without(low, whole, place), node), lambda: None),
               live=low.scope.names)
    return Const(None)


def _added(low: Lowering, owner: Object, held: Abstract, args: list[Abstract], node: Any) -> Abstract:
    add(low, owner, held, args[0], node)
    return Const(None)


SET: dict[str, Rule] = {
    "add": (1, 1, _added),
    "remove": (1, 1, partial(_taken_out, demanded=True)),
    "discard": (1, 1, partial(_taken_out, demanded=False)),
}


def method(low: Lowering, owner: Object, held: Grown, name: str, args: list[Abstract], node: Any) -> Abstract:
    """A method of a deque or a set."""
    rule = (DEQUE if held.kind == "deque" else SET).get(name)
    if rule is None:
        raise low.error(UnsupportedSyntax, f"'{name}' of a {held.kind} cannot run in lanes", node)
    least, most, run = rule
    if not least <= len(args) <= most:
        raise low.error(TypeMismatch, f"{name}() takes {least} to {most} arguments, {len(args)} were given", node)
    return run(low, owner, held, args, node)

