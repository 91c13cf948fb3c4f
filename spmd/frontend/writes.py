"""Writes into arrays, lists, dictionaries and records: `a[i] = v`, `a[i] += v`, `a += v`, `r.x = v`.

The invariant: a write is seen through every name and view of the object and through nothing else; an array keeps its
shape and dtype, and what is written is converted as NumPy converts it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import gast
import numpy as np

from spmd.errors import ShapeMismatch, TypeMismatch, UnsupportedSyntax
from spmd.frontend import tables
from spmd.frontend.array_subscripts import demand_mask, index_arrays
from spmd.frontend.identities import Object, Step
from spmd.frontend.list_methods import extend_list, set_item
from spmd.frontend.lists import is_list
from spmd.frontend.lowering import Lowering
from spmd.frontend.objects import put
from spmd.frontend.operations import BINARY, binary, guard, in_place, refuse_own
from spmd.frontend.subscripts import index_parts, is_mask, on_item, pick, present_index
from spmd.frontend.values import (
    NONE,
    Abstract,
    Choice,
    Const,
    Leaf,
    Node,
    Static,
    Struct,
    Table,
    describe,
    is_number,
    tuple_of,
)
from spmd.ir.core import Value
from spmd.ir.types import Num
from spmd.ops.numpy_creation import assigned
from spmd.ops.promotion import broadcast_into

ARGUMENTS = "writing to an attribute of an object of the input cannot run in lanes: arguments are values"


def store(low: Lowering, target: Any, thing: Abstract) -> None:
    """`owner[index] = thing` or `owner.name = thing`"""
    low.needs_objects()

    def write(owner: Abstract) -> Abstract:
        if isinstance(target, gast.Attribute):
            low.locate(target)
            _on_each(low, owner, lambda one: _set_attribute(low, one, target.attr, thing, target))
            return NONE
        index, several = index_parts(low, target)
        low.locate(target)
        _on_each(low, owner, lambda one: store_item(low, one, index, several, thing, target))
        return NONE

    on_item(low, target.value, write)


def _on_each(low: Lowering, owner: Abstract, write: Callable[[Abstract], None]) -> None:
    """A write to what an owner of several kinds is in each example."""
    def run(one: Abstract) -> Abstract:
        write(one)
        return NONE

    low.spread(owner, run, keep=True)


def store_item(low: Lowering, owner: Abstract, index: list[Any], several: bool, thing: Abstract, node: Any) -> None:
    """owner[index] = thing"""
    k = next((k for k, part in enumerate(index) if isinstance(part, Choice)), None)
    if k is not None:
        before, after = index[:k], index[k + 1 :]
        part = present_index(low, index[k])
        _on_each(low, part, lambda one: store_item(low, owner, [*before, one, *after], several, thing, node))
        return
    held = low.settled(owner)
    if not isinstance(owner, Object):
        if isinstance(held, Node):
            raise low.error(UnsupportedSyntax, ARGUMENTS, node, "return the new value instead.")
        raise low.error(TypeMismatch, f"{describe(held)} does not support item assignment", node)
    if isinstance(held, Leaf):
        _store_in_array(low, owner, held, index, thing, node)
    elif isinstance(held, Table) or isinstance(held, Struct) and held.kind == "dict":
        _store_key(low, owner, held, tuple_of(tuple(index)) if several else index[0], thing, node)
    elif several:
        raise low.error(TypeMismatch, f"{describe(held)} cannot be indexed so", node)
    else:
        set_item(low, owner, held, index[0], thing, node)


# ------------------------------------------------------------------------------------------------ arrays
def _store_in_array(low: Lowering, owner: Object, held: Leaf, index: list[Any], thing: Abstract, node: Any) -> None:
    memory = low.memory
    assert memory is not None
    memory.demand_writable(owner, node)
    whole = held.value
    if len(index) == 1 and is_mask(index[0]) and _is_scalar(low, thing) and index[0].type.rank == held.type.rank:
        memory.write(owner, Leaf(_where_mask(low, whole, index[0].value, thing, node)), node)
        return
    arrays = [k for k, part in enumerate(index) if isinstance(part, Leaf) and part.type.rank]
    part = low.value(pick(low, held, index, True, node))
    new = _filling(low, conformed(low, thing, part.type, whole.type, node), part, node)
    if arrays:
        op = low.b.defs[part]
        assert op.name in ("take", "gather") and op.operands[0] is whole
        if op.name == "take":
            put_at = partial(low.b.emit, "put_take", whole, new, op.operands[1], axis=op.attrs["axis"])
        else:
            put_at = partial(low.b.emit, "put_gather", whole, new, *op.operands[1:])
        memory.write(owner, Leaf(low.attempt(put_at, node)), node)
        return
    steps, values = _path(low, whole, part)
    for step, source in zip(reversed(steps), reversed(values)):
        new = low.attempt(partial(put, low.b, step, source, new), node)
    memory.write(owner, Leaf(new), node)


def _is_scalar(low: Lowering, thing: Abstract) -> bool:
    return is_number(low.settled(thing))


def add_at(low: Lowering, args: list[Abstract], kwargs: dict[str, Abstract], node: Any, sign: int) -> Abstract:
    """np.add.at(a, index, values), np.subtract.at: places that repeat add up."""
    low.needs_objects()
    if len(args) != 3 or kwargs:
        raise low.error(TypeMismatch, "np.add.at() takes an array, an index and values", node)
    owner = args[0]
    held, part = low.settled(owner), low.settled(args[1])
    memory = low.memory
    if not isinstance(owner, Object) or not isinstance(held, Leaf) or memory is None:
        raise low.error(TypeMismatch, f"np.add.at() adds into an array, not {describe(held)}", node)
    memory.demand_writable(owner, node)
    several = isinstance(part, Struct) and part.kind == "tuple"
    parts = [low.settled(p) for p in part.items] if isinstance(part, Struct) and several else [part]
    arrays = [low.settled(low.apply(Static(np.array), [p], {}, node)) if is_list(p) else p for p in parts]
    ids = index_arrays(low, held.value, arrays, node)
    place = low.attempt(lambda: low.b.emit("gather", held.value, *ids), node)
    new = low.settled(binary(low, "*", operator.mul, args[2], Const(sign), node)) if sign < 0 else args[2]
    values = _filling(low, conformed(low, new, place.type, held.type, node), place, node)
    memory.write(owner, Leaf(low.attempt(lambda: low.b.emit("add_gather", held.value, values, *ids), node)), node)
    return NONE


def _path(low: Lowering, whole: Value, part: Value) -> tuple[list[Step], list[Value]]:
    """The steps that read a part out of the whole, and what each starts from."""
    steps: list[Step] = []
    values: list[Value] = []
    while part is not whole:
        op = low.b.defs[part]
        part = op.operands[0]
        steps.insert(0, Step.of(op))
        values.insert(0, part)
    return steps, values


def _where_mask(low: Lowering, whole: Value, mask: Value, thing: Abstract, node: Any) -> Value:
    """The array with a number where the mask holds."""
    type_ = whole.type
    assert isinstance(type_, Num) and isinstance(mask.type, Num)
    new = conformed(low, thing, type_.with_shape(()), type_, node)
    demand_mask(low, whole, mask, 0, node)
    return low.attempt(lambda: low.b.emit("where", mask, broadcast_into(low.b, new, whole), whole), node)


def conformed(low: Lowering, thing: Abstract, part: Any, whole: Any, node: Any) -> Value:
    """What is written, in the shape of the part and the dtype of the whole, converted as NumPy does on assignment."""
    thing = low.settled(thing)
    if is_list(thing) or isinstance(thing, Struct) and thing.kind == "tuple":
        thing = low.settled(low.apply(Static(np.array), [thing], {}, node))
    value = low.value(thing, node)
    type_ = value.type
    assert isinstance(type_, Num)
    if type_.rank > part.rank and type_.static and all(n == 1 for n in type_.shape[: type_.rank - part.rank]):
        value = low.b.emit("reshape", value, shape=type_.shape[type_.rank - part.rank :])
        type_ = value.type
        assert isinstance(type_, Num)
    if type_.rank > part.rank or any(
        m not in (1, n) and None not in (m, n) for m, n in zip(type_.shape[::-1], part.shape[::-1])
    ):
        text = f"could not broadcast input array from shape {_shown(type_)} into shape {_shown(part)}"
        raise low.error(ShapeMismatch, text, node)
    value = low.attempt(lambda: assigned(low.b, value, whole.dtype), node)
    return value


def _filling(low: Lowering, new: Value, part: Value, node: Any) -> Value:
    """What is written in the shape of the part; sizes that only the run knows are checked then."""
    ours, theirs = new.type, part.type
    assert isinstance(ours, Num) and isinstance(theirs, Num)
    b = low.b
    for k in range(1, ours.rank + 1):
        m, n = ours.shape[-k], theirs.shape[-k]
        if m == 1 or m == n and m is not None:
            continue
        size, room = b.emit("dim", new, axis=ours.rank - k), b.emit("dim", part, axis=theirs.rank - k)
        fits = b.emit("logical_or", b.emit("eq", size, room), b.emit("eq", size, b.const(1)))
        guard(low, fits, (ValueError, ("could not broadcast input array into the shape of what it is written into",)))
    return low.attempt(lambda: broadcast_into(b, new, part), node)


def _shown(type_: Num) -> str:
    inner = ",".join("?" if n is None else str(n) for n in type_.shape)
    return f"({inner},)" if type_.rank == 1 else f"({inner})"


# ------------------------------------------------------------------------------------------------ dictionaries, records
def _store_key(low: Lowering, owner: Object, held: Struct | Table, key: Any, thing: Abstract, node: Any) -> None:
    """d[key] = thing: of a key that is known now an item, of others an entry."""
    memory = low.memory
    assert memory is not None
    name, known = tables.known_key(low, key)
    if isinstance(held, Table) or not known:
        tables.write(low, owner, held, key, thing, node)
        return
    if not isinstance(name, (str, int, bool, float, tuple, type(None))):
        raise low.error(UnsupportedSyntax, f"{describe(key)} cannot be a key in lanes", node,
                        "keys are numbers, strings or tuples of numbers.")
    items = dict(zip(held.names, held.items))
    if name not in items:
        memory.demand_resizable(owner, node)
    items[name] = low.hold(thing)
    memory.write(owner, Struct("dict", dict, tuple(items), tuple(items.values())), node)


def _set_attribute(low: Lowering, owner: Abstract, name: str, thing: Abstract, node: Any) -> None:
    """owner.name = thing"""
    held = low.settled(owner)
    if not isinstance(held, Struct) or held.kind != "dataclass" or not isinstance(owner, Object):
        if isinstance(held, Struct) and held.kind == "dataclass":
            text = f"cannot assign to field '{name}' of the frozen dataclass {held.cls.__name__}"
            raise low.error(TypeMismatch, text, node)
        raise low.error(UnsupportedSyntax, ARGUMENTS, node, "return the new value instead.")
    refuse_own(low, [held.cls], ("__setattr__",), node)
    if name not in held.names or isinstance(getattr(held.cls, name, None), property):
        raise low.error(UnsupportedSyntax, f"'{name}' is no field of {held.cls.__name__}", node,
                        "declare the field in the class.")
    memory = low.memory
    assert memory is not None
    new = low.hold(thing)
    items = tuple(new if own == name else item for own, item in zip(held.names, held.items))
    memory.write(owner, Struct(held.kind, held.cls, held.names, items), node)


# ------------------------------------------------------------------------------------------------ in place
def augment(low: Lowering, s: Any) -> None:
    """`target op= value` where the target is an item or an attribute."""
    low.needs_objects()

    def write(owner: Abstract) -> Abstract:
        if isinstance(s.target, gast.Attribute):
            _augment_attribute(low, s, owner)
        else:
            _augment_item(low, s, owner)
        return NONE

    on_item(low, s.target.value, write)


def _augment_item(low: Lowering, s: Any, owner: Abstract) -> None:
    """`owner[index] op= value`"""
    index, several = index_parts(low, s.target)
    low.locate(s)

    def run(one: Abstract) -> None:
        held = low.settled(one)
        if isinstance(held, Struct) and held.kind in ("tuple", "namedtuple"):
            raise low.error(TypeMismatch, f"{describe(held)} does not support item assignment", s)
        masked = isinstance(held, Leaf) and len(index) == 1 and is_mask(index[0]) and (
            index[0].type.rank == held.type.rank)
        old = held if masked else low.shared(pick(low, held, index, several, s))
        new = low.expression(s.value)  # which may write to what the old value was read from
        low.locate(s)
        if masked and _is_scalar(low, new):
            _augment_masked(low, one, old, index[0], new, s)
            return
        if masked:
            old = pick(low, held, index, several, s)
        part = low.chosen(old)
        if isinstance(held, Leaf):
            result = _part_in_place(low, old, new, s)
        elif isinstance(part, Object) and _in_place(low, part, new, s):
            if _names(low.chosen(pick(low, low.settled(one), index, several, s)), part):
                return  # it is the item still
            result = part
        else:
            result = _operated(low, old, new, s)
        store_item(low, one, index, several, result, s)

    _on_each(low, owner, run)


def _augment_masked(low: Lowering, owner: Abstract, old: Abstract, mask: Leaf, new: Abstract, s: Any) -> None:
    """`a[mask] op= number`, where `old` is the array as it was before the number was computed."""
    held, other, memory = low.settled(owner), low.settled(new), low.memory
    assert memory is not None and isinstance(owner, Object) and isinstance(held, Leaf)
    result = low.value(_part_in_place(low, old, other, s))
    whole = low.attempt(lambda: assigned(low.b, result, held.type.dtype), s)
    demand_mask(low, held.value, mask.value, 0, s)
    memory.write(owner, Leaf(low.attempt(lambda: low.b.emit("where", mask.value, whole, held.value), s)), s)


def _augment_attribute(low: Lowering, s: Any, owner: Abstract) -> None:
    """`owner.name op= value`"""
    low.locate(s)

    def run(one: Abstract) -> None:
        held = low.settled(one)
        item = held.field(s.target.attr) if isinstance(held, Struct) else None
        if item is None:
            raise low.error(UnsupportedSyntax, ARGUMENTS, s, "return the new value instead.")
        new = low.expression(s.value)
        low.locate(s)
        part = low.chosen(item)
        if not (isinstance(part, Object) and _in_place(low, part, new, s)):
            _set_attribute(low, one, s.target.attr, _operated(low, item, new, s), s)
        elif not _names(low.chosen(low.settled(one).field(s.target.attr)), part):  # type: ignore[attr-defined]
            _set_attribute(low, one, s.target.attr, part, s)

    _on_each(low, owner, run)


def _names(thing: Abstract, part: Object) -> bool:
    return isinstance(thing, Object) and thing.ident == part.ident


def augment_object(low: Lowering, owner: Object, new: Abstract, s: Any) -> bool:
    """`name op= value` where the name holds an object; False where Python makes a new thing."""
    return _in_place(low, owner, new, s)


def _operated(low: Lowering, old: Abstract, new: Abstract, s: Any) -> Abstract:
    symbol, fold = BINARY[type(s.op)]
    return in_place(low, symbol, fold, old, new, s)


def _in_place(low: Lowering, owner: Object, new: Abstract, s: Any) -> bool:
    """Writes the result into an array or a list that knows how to; whether it does."""
    held = low.settled(owner)
    memory = low.memory
    assert memory is not None
    if isinstance(held, Leaf):
        memory.demand_writable(owner, s)
        result = _part_in_place(low, held, new, s)
        whole = conformed(low, result, held.type, held.type, s)
        memory.write(owner, Leaf(_filling(low, whole, held.value, s)), s)
        return True
    if isinstance(held, Table) or isinstance(held, Struct) and held.kind == "dict":
        raise low.error(UnsupportedSyntax, "a dictionary cannot be changed so", s, "write d[key] = ... for each key.")
    if isinstance(held, Struct) and held.kind in ("dataclass", "namedtuple"):
        return False
    extend_list(low, owner, held, new, s)
    return True


def _part_in_place(low: Lowering, old: Abstract, new: Abstract, s: Any) -> Abstract:
    """The result of an in-place operation on a part of an array: its dtype must take it, and its shape hold it."""
    result = low.settled(_operated(low, old, new, s))
    part = low.settled(old)
    assert isinstance(part, Leaf)
    if not part.type.rank or not isinstance(result, Leaf):
        return result
    if result.type.rank > part.type.rank or any(
        n is not None and m is not None and m != n for m, n in zip(result.type.shape[::-1], part.type.shape[::-1])
    ):
        raise low.error(ShapeMismatch, f"an array of type {part.type} cannot hold the result, {result.type}", s)
    if not np.can_cast(result.type.dtype, part.type.dtype, "same_kind"):
        raise low.error(TypeMismatch, f"an array of type {part.type} cannot hold the result, {result.type}", s)
    return result
