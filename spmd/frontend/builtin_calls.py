"""Builtins that are no arithmetic: len, range, enumerate, zip, reversed, tuple, list, dict.

The invariant: each rule gives what Python's builtin would give, or refuses; it never gives a copy where Python would
give the thing itself and the difference could be seen.
"""

from __future__ import annotations

from typing import Any

from spmd.errors import TypeMismatch, UnsupportedFunction
from spmd.frontend.attributes import dimension
from spmd.frontend.iterables import make_enumerate, make_range, make_reversed, make_zip
from spmd.frontend.lowering import Lowering
from spmd.frontend.values import Abstract, Const, Iterable, Leaf, Run, Struct, describe, list_of, tuple_of
from spmd.ir.types import INT


def _len(low: Lowering, args: list[Abstract], kwargs: dict[str, Abstract], node: Any) -> Abstract:
    if len(args) != 1 or kwargs:
        raise low.error(TypeMismatch, "len() takes exactly one argument", node)
    return low.spread(args[0], lambda one: _length(low, one, node))


def _length(low: Lowering, thing: Abstract, node: Any) -> Abstract:
    if isinstance(thing, Struct) and thing.kind != "dataclass":
        return Const(len(thing.items))
    if isinstance(thing, Const) and isinstance(thing.value, str):
        return Const(len(thing.value))
    if isinstance(thing, Run):
        return Leaf(low.b.insert("length", [thing.value], [INT]).result)
    if isinstance(thing, Leaf) and thing.type.rank:
        return dimension(low, thing, 0)
    if isinstance(thing, Iterable):
        return thing.count
    raise low.error(TypeMismatch, f"{describe(thing)} has no len()", node)


def _sequence(low: Lowering, args: list[Abstract], kwargs: dict[str, Abstract], node: Any, kind: str) -> Abstract:
    """tuple(x) and list(x)."""
    make = list_of if kind == "list" else tuple_of
    if not args:
        return make(())
    thing = low.settled(args[0])
    if isinstance(thing, Struct) and thing.kind in ("tuple", "list", "namedtuple"):
        return make(thing.items)
    if isinstance(thing, Run):
        return Run(thing.value, thing.item, thing.fields, kind)
    if isinstance(thing, Iterable) and thing.items is not None:
        return make(thing.items)
    raise low.error(UnsupportedFunction, f"{kind}() of {describe(thing)} cannot run in lanes", node)


def _range(low: Lowering, args: list[Abstract], kwargs: dict[str, Abstract], node: Any) -> Abstract:
    if kwargs or not 1 <= len(args) <= 3:
        raise low.error(TypeMismatch, "range takes one to three integers", node)
    return make_range(low, args, node)


BUILTINS: dict[Any, Any] = {
    len: _len,
    range: _range,
    enumerate: lambda low, args, kwargs, node: make_enumerate(low, args, node, kwargs.get("start", Const(0))),
    zip: lambda low, args, kwargs, node: make_zip(low, args, node),
    reversed: lambda low, args, kwargs, node: make_reversed(low, args, node),
    tuple: lambda low, args, kwargs, node: _sequence(low, args, kwargs, node, "tuple"),
    list: lambda low, args, kwargs, node: _sequence(low, args, kwargs, node, "list"),
    dict: lambda low, args, kwargs, node: Struct("dict", dict, tuple(kwargs), tuple(kwargs.values())),
}
