"""Assignment to names, items, attributes and patterns of them.

The invariant: a name is bound to what Python would bind it to; an example whose thing has too few or too many parts for
a pattern raises, and what cannot be kept under a name is refused.
"""

from __future__ import annotations

from typing import Any

import gast

from spmd.errors import TypeMismatch, UnsupportedType
from spmd.frontend.array_subscripts import array_item
from spmd.frontend.fence import refuse
from spmd.frontend.iteration import Iterable, holds_iterable
from spmd.frontend.lowering import Lowering
from spmd.frontend.operations import end_in_error, guard
from spmd.frontend.subscripts import run_item, spread_node
from spmd.frontend.values import (
    Abstract,
    Choice,
    Const,
    Leaf,
    Node,
    Run,
    Struct,
    describe,
    list_of,
    tuple_of,
)
from spmd.frontend.writes import store
from spmd.ir.types import INT


def bind(low: Lowering, target: Any, thing: Abstract) -> None:
    """Assignment to a name, an item, an attribute, or a pattern of them."""
    if isinstance(target, gast.Name):
        keepable(low, thing, target)
        low.scope.names[target.id] = low.hold(thing)
    elif isinstance(target, (gast.Tuple, gast.List)):
        low.locate(target)
        _unpack(low, target, thing)
    elif isinstance(target, (gast.Subscript, gast.Attribute)):
        store(low, target, thing)
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
    star = next((k for k, n in enumerate(names) if isinstance(n, gast.Starred)), None)
    if star is not None:
        _unpack_rest(low, target, names, star, thing)
        return
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
    held = [low.hold(part) for part in parts]
    for name, part in zip(names, held):
        bind(low, name, part)


def _unpack_rest(low: Lowering, target: Any, names: list[Any], star: int, thing: Abstract) -> None:
    """`a, *b, c = thing`, of something whose number of items is known."""
    if not isinstance(thing, Struct) or thing.kind == "dataclass":
        raise refuse(low.definition, names[star], low.sp.chain())
    items = [Const(n) for n in thing.names] if thing.kind == "dict" else list(thing.items)
    behind = len(names) - star - 1
    if len(items) < len(names) - 1:
        text = f"not enough values to unpack (expected at least {len(names) - 1}, got {len(items)})"
        end_in_error(low, (ValueError, (text,)))
    rest = list_of(tuple(items[star : len(items) - behind]))
    parts = [*items[:star], rest, *items[len(items) - behind :]]
    for name, part in zip(names, parts):
        bind(low, name.value if isinstance(name, gast.Starred) else name, part)


def _parts(low: Lowering, thing: Abstract, names: list[Any], node: Any) -> list[Abstract]:
    """The items of a thing that is unpacked into `names`."""
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
