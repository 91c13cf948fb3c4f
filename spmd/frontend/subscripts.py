"""`x[i]`, `x[a:b]`, `x[i, :]` reads, of arrays, lists, tuples and dictionaries.

The invariant: an index that an example's data makes out of range raises that example's IndexError, with NumPy's or
Python's text, and reads nothing.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NoReturn

import gast
import numpy as np

from spmd.errors import TypeMismatch, UnsupportedType
from spmd.frontend import tables
from spmd.frontend.array_subscripts import array_pick
from spmd.frontend.attributes import node_tag, present
from spmd.frontend.identities import INPUT, ITEM, Object
from spmd.frontend.lists import RANGE, as_index, grown_item, grown_slice
from spmd.frontend.lowering import Lowering
from spmd.frontend.operations import binary, end_in_error, guard, refuse_own, tag_test
from spmd.frontend.paths import Dead
from spmd.frontend.scope import Facts
from spmd.frontend.strings import character
from spmd.frontend.values import (
    UNBOUND,
    Abstract,
    Choice,
    Const,
    Excerpt,
    Grown,
    Leaf,
    Node,
    Run,
    Static,
    Struct,
    Table,
    class_of,
    describe,
    is_number,
    is_text,
    list_of,
    tuple_of,
)
from spmd.ir.core import Value
from spmd.ir.types import INT, Num, Ref, Seq


def subscript(low: Lowering, node: Any) -> Abstract:
    thing = low.expression(node.value)
    index, several = index_parts(low, node)
    low.locate(node)
    return low.spread(thing, lambda one: pick(low, one, index, several, node))


def on_item(low: Lowering, node: Any, run: Callable[[Abstract], Abstract]) -> Abstract:
    """Does something to the object that an expression is. An item that data chooses out of a list of objects is done
    behind a test of its place, so that a write reaches the object itself."""
    if low.memory is None or not isinstance(node, gast.Subscript):
        return run(low.hold(low.expression(node)))
    thing = low.hold(low.expression(node.value))
    index, several = index_parts(low, node)
    low.locate(node)
    held, part = low.settled(thing), index[0]
    objects = isinstance(held, Struct) and held.kind == "list" and all(isinstance(i, Object) for i in held.items)
    if several or not objects or not isinstance(part, Leaf) or part.type.rank or part.type.kind not in "iu":
        return run(low.hold(low.spread(thing, lambda one: pick(low, one, index, several, node))))
    assert isinstance(held, Struct)
    return _on_place(low, held, part.value, run, 0)


def _on_place(low: Lowering, held: Struct, index: Value, run: Callable[[Abstract], Abstract], at: int) -> Abstract:
    if at == len(held.items):
        end_in_error(low, (IndexError, (RANGE,)))
    arms = (lambda: run(held.items[at]), lambda: _on_place(low, held, index, run, at + 1))
    result = low.branch(_is_place(low, index, at, len(held.items)), arms, live=low.scope.names)
    assert result is not None
    return result


def _is_place(low: Lowering, index: Value, at: int, size: int) -> Value:
    """Whether an index means a place, from the front or from the back."""
    here = low.b.emit("eq", index, low.converter.constant(at, index.type))
    if index.type.kind == "i":  # type: ignore[union-attr]
        below = low.b.emit("eq", index, low.converter.constant(at - size, index.type))
        here = low.b.emit("logical_or", here, below)
    return here


def index_parts(low: Lowering, node: Any) -> tuple[list[Any], bool]:
    """What stands in the brackets: its parts, a slice being a tuple of three, and whether there is a comma."""
    parts = list(node.slice.elts) if isinstance(node.slice, gast.Tuple) else [node.slice]
    index = [_slice(low, p) if isinstance(p, gast.Slice) else _part(low, p) for p in parts]
    return index, isinstance(node.slice, gast.Tuple)


def _part(low: Lowering, node: Any) -> Abstract:
    """One part of an index; a list of numbers is an array."""
    part = low.settled(low.expression(node))
    if isinstance(part, (Grown, Run)) or isinstance(part, Struct) and part.kind == "list":
        return low.settled(low.apply(Static(np.array), [part], {}, node))
    return part


def is_mask(part: Any) -> bool:
    """Whether a part of an index is an array of truth values."""
    return isinstance(part, Leaf) and part.type.rank > 0 and part.type.kind == "b"


def _slice(low: Lowering, node: Any) -> tuple[Abstract, Abstract, Abstract]:
    parts = (node.lower, node.upper, node.step)
    bounds = [low.expression(part) if part is not None else Const(None) for part in parts]
    return (bounds[0], bounds[1], bounds[2])


def pick(low: Lowering, thing: Abstract, index: list[Any], several: bool, node: Any) -> Abstract:
    """thing[index]."""
    k = next((k for k, part in enumerate(index) if isinstance(part, Choice)), None)
    if k is not None:
        before, after = index[:k], index[k + 1 :]
        if isinstance(thing, Leaf):
            index[k] = present_index(low, index[k])
        return low.spread(index[k], lambda one: pick(low, thing, [*before, one, *after], several, node))
    if isinstance(thing, (Struct, Node)) and not several and not isinstance(index[0], tuple):
        own = low.overloaded("__getitem__", [thing, index[0]], node)
        if own is not None:
            return own
    if isinstance(thing, Struct):
        return _struct_item(low, thing, index, several, node)
    if isinstance(thing, Table):
        return tables.read(low, thing, index[0] if not several else tuple_of(tuple(index)), node)
    if isinstance(thing, Grown) and not several and thing.kind != "set":
        return _grown_pick(low, thing, index[0], node)
    if isinstance(thing, Run) and not several:
        return _run_pick(low, thing, index[0], node)
    if isinstance(thing, Node) and not several:
        return spread_node(low, thing, lambda one: pick(low, one, index, several, node), node)
    if is_text(thing) and not several:
        return character(low, thing, index[0], node)
    if isinstance(thing, Leaf) and thing.type.rank:
        return array_pick(low, thing.value, index, node)
    if is_number(thing) or _is_none(thing):
        _end_unsubscriptable(low, class_of(thing))
    raise low.error(TypeMismatch, f"{describe(thing)} cannot be indexed", node)


def _end_unsubscriptable(low: Lowering, cls: type) -> NoReturn:
    """The example that indexes a number or None raises what Python does: a path that walks a nested tuple is compiled
    for its numbers too, though no example of this batch may take it there."""
    if issubclass(cls, np.generic):
        end_in_error(low, (IndexError, ("invalid index to scalar variable.",)))
    end_in_error(low, (TypeError, (f"'{cls.__name__}' object is not subscriptable",)))


def present_index(low: Lowering, part: Choice) -> Abstract:
    """An index that is a number or None, as the data has it: where it is None, the example raises. (NumPy takes None
    for a new axis, but no program means that by data.)"""
    none = frozenset(k for k in low.possible(part) if _is_none(part.alternatives[k]))
    left = low.possible(part) - none
    if none and left:
        for k in sorted(none):
            there = low.b.emit("ne", part.tag, low.converter.constant(k, part.tag.type))
            guard(low, there, (TypeError, ("None stands where an index is needed",)))
        low.scope.facts = low.scope.facts.both(Facts(tags={part.tag: left}))
    return low.settled(part)


def _is_none(thing: Abstract) -> bool:
    return isinstance(thing, Const) and thing.value is None


def _struct_item(low: Lowering, thing: Struct, index: list[Any], several: bool, node: Any) -> Abstract:
    refuse_own(low, [thing.cls], ("__getitem__",), node)
    part = index[0]
    if thing.kind == "dict":
        part = tuple_of(tuple(index)) if several else part
        if isinstance(part, Excerpt) or isinstance(part, Leaf) and not part.type.rank:
            return by_key(low, thing, part, node)
        name, known = tables.known_key(low, part) if isinstance(part, Abstract) else (None, False)
        if not known and isinstance(part, Struct):
            return tables.read(low, tables.table(low, thing, (), node), part, node)
        item = thing.field(name) if known else None
        if item is None:
            text = f"this dictionary has no key {describe_index(part)}; its keys are {list(thing.names)}"
            raise low.error(TypeMismatch, text, node)
        return item
    if thing.kind == "dataclass" or several:
        raise low.error(TypeMismatch, f"{describe(thing)} cannot be indexed so", node)
    if isinstance(part, tuple):
        if not all(isinstance(p, Const) for p in part):
            raise low.error(UnsupportedType, "a tuple can be sliced only with bounds known now", node)
        items = thing.items[slice(*(p.value for p in part))]
        return (list_of if thing.kind == "list" else tuple_of)(items)
    if isinstance(part, Const) and isinstance(part.value, int):
        if -len(thing.items) <= part.value < len(thing.items):
            return thing.items[part.value]
        end_in_error(low, (IndexError, (f"{'list' if thing.kind == 'list' else 'tuple'} index out of range",)))
    return _chosen_item(low, thing, part, node)


def by_key(
    low: Lowering, thing: Struct, key: Abstract, node: Any, at: int = 0, default: Abstract | None = None
) -> Abstract:
    """A dictionary's item by a key that is known when the program runs: the keys are tried in turn. Without a default,
    an example that has none of them raises."""
    if at == len(thing.names):
        if default is not None:
            return default
        tables.end_without(low, key)
    test = binary(low, "==", operator.eq, key, Const(thing.names[at]), node)
    if isinstance(test, Const):
        return thing.items[at] if test.value else by_key(low, thing, key, node, at + 1, default)
    arms = (lambda: thing.items[at], lambda: by_key(low, thing, key, node, at + 1, default))
    result = low.branch(low.value(test), arms, live=low.scope.names)
    assert result is not None
    return result


def _chosen_item(low: Lowering, thing: Struct, part: Any, node: Any) -> Abstract:
    """A tuple's item by an index that is known when the program runs: items of one kind are stacked, others tried."""
    kind = "list" if thing.kind == "list" else "tuple"
    place = as_index(low, part, node, kind)
    text = f"{kind} index out of range"
    values = [low.value(i) for i in thing.items] if all(map(_is_value, thing.items)) else []
    if not values or any(v.type != values[0].type for v in values):
        return _tried_item(low, thing, place, text, 0)
    type_ = values[0].type
    assert isinstance(type_, Num)
    stacked = low.attempt(lambda: low.b.emit("stack", *values, axis=0), node)
    item = low.attempt(lambda: low.b.emit("index", stacked, place, text=text), node)
    return Leaf(item if item.type == type_ else low.b.emit("cast", item, dtype=type_.dtype, python=type_.python))


def _is_value(thing: Abstract) -> bool:
    """A number or array of static shape, which can be stacked."""
    if isinstance(thing, Leaf):
        return thing.type.static and not thing.type.text
    return isinstance(thing, Const) and isinstance(thing.value, (bool, int, float))


def _tried_item(low: Lowering, thing: Struct, index: Value, text: str, at: int) -> Abstract:
    """The items from `at` on are tried in turn, each under its two numbers."""
    if at == len(thing.items):
        end_in_error(low, (IndexError, (text,)))
    arms = (lambda: thing.items[at], lambda: _tried_item(low, thing, index, text, at + 1))
    result = low.branch(_is_place(low, index, at, len(thing.items)), arms, live=low.scope.names)
    assert result is not None
    return result


def spread_node(low: Lowering, thing: Node, run: Callable[[Abstract], Abstract], node: Any) -> Abstract:
    """Applies `run` to a nested tuple or dictionary as a container, for each of the forms that it may have."""
    layout = low.sp.layouts[thing.table]
    row = present(low, thing, "__getitem__")
    tag, classes = node_tag(low, Node(row), row)
    first, rest = min(classes), classes - {min(classes)}
    cls, names = layout.classes[first]
    if not issubclass(cls, (tuple, dict)):
        raise low.error(TypeMismatch, f"objects of class {cls.__name__} cannot be indexed or unpacked", node)
    refuse_own(low, [cls], ("__getitem__", "__iter__"), node)

    def whole() -> Abstract:
        items = []
        for name in names:
            template, at = layout.fields[name]
            values = [low.load(row, thing.table, at + k, v.type) for k, v in enumerate(template.leaves())]
            items.append(low.hold(template.replace(iter(values)), INPUT))
        if issubclass(cls, dict):
            return run(Struct("dict", dict, names, tuple(items)))
        return run(tuple_of(tuple(items)))

    if not rest:
        return whole()
    assert tag is not None
    test = tag_test(low, tag, classes, frozenset({first}))
    again = Node(row)
    result = low.branch(
        low.value(test.value), (whole, lambda: spread_node(low, again, run, node)), (test.yes, test.no), low.scope.names
    )
    assert result is not None
    return result


def describe_index(part: Any) -> str:
    return repr(part.value) if isinstance(part, Const) else "that is known only when the program runs"


# ---------------------------------------------------------------------------------------------- lists
def _run_pick(low: Lowering, run: Run, part: Any, node: Any) -> Abstract:
    if isinstance(part, tuple):
        start, stop, step = part
        if not (isinstance(step, Const) and step.value in (None, 1)):
            raise low.error(UnsupportedType, "a list can be sliced only with step 1", node)
        length = low.b.insert("length", [run.value], [INT]).result
        bounds = [_clipped(low, length, start, 0), _clipped(low, length, stop, None)]
        value = low.b.insert("seqslice", [run.value, *bounds], [Seq(run.table)]).result
        return Run(value, run.item, run.fields, run.kind)
    return run_item(low, run, as_index(low, part, node, run.kind))


def _grown_pick(low: Lowering, thing: Grown, part: Any, node: Any) -> Abstract:
    if isinstance(part, tuple) and thing.kind == "list":
        return grown_slice(low, thing, part, node)
    return grown_item(low, thing, as_index(low, part, node), f"{thing.kind} index out of range")


def _clipped(low: Lowering, length: Value, bound: Abstract, default: int | None) -> Value:
    """A slice bound as Python clips it: negative counts from the end, then 0 <= bound <= length."""
    if isinstance(bound, Const) and bound.value is None:
        return low.b.const(0) if default == 0 else length
    b = low.b
    wrap = {"dtype": "int64", "python": False}
    value, size = b.emit("cast", low.value(bound), **wrap), b.emit("cast", length, **wrap)
    zero = low.converter.constant(0, Num("int64"))
    value = b.emit("where", b.emit("lt", value, zero), b.emit("add", value, size), value)
    clipped = b.emit("minimum", b.emit("maximum", value, zero), size)
    return b.emit("cast", clipped, dtype="int64", python=True)


def run_item(low: Lowering, run: Run, index: Value) -> Abstract:
    """Item `index` of a list; raises the example's IndexError."""
    ref = low.b.insert("item", [run.value, index], [Ref(run.table)], {"table": run.table, "checked": True}).result
    if run.item is UNBOUND and not run.table.startswith("@"):  # no list of this kind has an item
        end_in_error(low, (IndexError, (f"{run.kind} index out of range",)))
    return load_item(low, run, ref)


def load_item(low: Lowering, run: Run, ref: Value) -> Abstract:
    """The item in a row of the run's table."""
    if run.item is UNBOUND:
        raise Dead
    leaves = list(run.item.leaves())
    values = [low.load(ref, run.table, k, v.type) for k, v in zip(run.fields, leaves)]
    return low.hold(run.item.replace(iter(values)), ITEM)
