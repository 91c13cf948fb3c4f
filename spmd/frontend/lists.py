"""Lists of known and of varying length: what they are, their items, slices and joins, and how they are searched.

The invariant: a list whose length is known stays a structure, so that its items may be of any kind and keep their
identity; a list of varying length (`Grown`) holds its items by value, in columns, and items that have an identity are
fixed. Indices out of range raise IndexError with Python's texts.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from spmd.errors import TypeMismatch, UnsupportedSyntax, UnsupportedType
from spmd.frontend.identities import ITEM, Cell
from spmd.frontend.joins import entries_of, grown_of, join_all, widen
from spmd.frontend.lowering import Lowering
from spmd.frontend.operations import end_in_error, guard
from spmd.frontend.orderings import (
    ordered,
)
from spmd.frontend.values import (
    UNBOUND,
    Abstract,
    Const,
    Excerpt,
    Grown,
    Leaf,
    Run,
    Struct,
    Table,
    describe,
    is_number,
    is_text,
    list_of,
)
from spmd.ir.core import Value
from spmd.ir.types import INT, Num, Ref, Type
from spmd.ops import operators

COUNT = Num("int64")
RANGE = "list index out of range"


# ------------------------------------------------------------------------------------------------ kinds of lists
def is_list(thing: Abstract) -> bool:
    return isinstance(thing, (Grown, Struct, Run)) and thing.kind == "list"


def grown(low: Lowering, thing: Abstract, more: tuple[Abstract, ...] = (), node: Any = None) -> Grown:
    """A list as one of varying length whose items can be `more`, too."""
    if isinstance(thing, Struct):
        thing = list_of(tuple(by_value(low, i) for i in thing.items))
    own = thing.items if isinstance(thing, Struct) else (thing.item,)  # type: ignore[attr-defined]
    items = [widen(i) for i in (*own, *more) if i is not UNBOUND]
    size = len(thing.items) if isinstance(thing, Struct) else thing.size if isinstance(thing, Grown) else None
    kind = thing.kind if isinstance(thing, Grown) else "list"
    target = low.attempt(lambda: grown_of(join_all(items) if items else UNBOUND, size, kind), node)
    if isinstance(thing, Grown) and thing.key() == target.key():
        return thing
    leaves = low.attempt(lambda: low.converter.convert(thing, target), node)
    made = target.replace(iter(leaves))
    assert isinstance(made, Grown)
    return made


def by_value(low: Lowering, thing: Abstract) -> Abstract:
    """An item as a list of varying length holds it."""
    if low.memory is None:
        return thing
    held = low.memory.plain(thing)
    low.memory.fix(thing, ITEM)
    leaves = [low.assured(v) for v in held.leaves()]  # what a test has shown of an object holds in the list
    return held.replace(iter(leaves))


def varying(low: Lowering, thing: Grown) -> Grown:
    """A list in columns as one whose length is not known."""
    if thing.size is None:
        return thing
    target = grown_of(thing.item, None, thing.kind)
    made = target.replace(iter(low.converter.convert(thing, target)))
    assert isinstance(made, Grown)
    return made


def length(low: Lowering, thing: Abstract) -> Abstract:
    """len() of a list."""
    if isinstance(thing, Struct):
        return Const(len(thing.items))
    if isinstance(thing, Run):
        return Leaf(low.b.insert("length", [thing.value], [INT]).result)
    assert isinstance(thing, Grown)
    if thing.size is not None:
        return Const(thing.size)
    return Leaf(low.b.emit("cast", thing.count, dtype="int64", python=True))


def same_lists(low: Lowering, cell: Abstract, known: Abstract | None) -> Abstract:
    """A list or dictionary that a recursive call is given with other items than the call that runs."""
    if not isinstance(cell, Cell) or not isinstance(known, Cell) or not isinstance(cell.thing, Struct):
        return cell
    ours, theirs = cell.thing, known.thing
    if getattr(theirs, "names", None) == ours.names:
        return cell
    thing: Abstract | None = None
    if is_list(ours) and is_list(theirs):
        thing = varying(low, grown(low, ours))
    elif ours.kind == "dict" and (isinstance(theirs, Table) or isinstance(theirs, Struct) and theirs.kind == "dict"):
        thing = Table(varying(low, grown(low, low.attempt(lambda: entries_of(ours)))))
    return cell if thing is None else Cell(thing, cell.fixed, cell.shares, cell.stale)


# ------------------------------------------------------------------------------------------------ reading
def as_index(low: Lowering, index: Any, node: Any, kind: str = "list") -> Value:
    """An index of a list or tuple: an integer; Python's truth values are 0 and 1, NumPy's are none."""
    type_ = low.value(index).type if is_number(index) else None
    if not isinstance(type_, Num) or type_.rank or type_.text or type_.kind not in ("iub" if type_.python else "iu"):
        raise low.error(TypeMismatch, f"{kind} indices must be integers or slices, not {describe(index)}", node)
    value = low.value(index)
    return low.b.emit("cast", value, dtype="int64", python=True) if type_.kind == "b" else value


def grown_item(low: Lowering, thing: Grown, index: Value, text: str = RANGE) -> Abstract:
    """Item `index`, which may count from the back; raises the example's IndexError."""
    if thing.item is UNBOUND:
        end_in_error(low, (IndexError, (text,)))
    if not thing.columns:
        demand_within(low, index, thing.count, text)
    rows = [low.attempt(partial(low.b.emit, "index", c, index, text=text)) for c in thing.columns]
    return low.hold(item_of(low, thing.item, rows), ITEM)


def item_of(low: Lowering, item: Abstract, rows: list[Value]) -> Abstract:
    """An item around rows of the columns; Python's numbers, and strings, are that again."""
    return item.replace(iter([_leaf(low, v, leaf.type) for v, leaf in zip(rows, item.leaves())]))


def _leaf(low: Lowering, value: Value, type_: Type) -> Value:
    """A cell of a column as the leaf that it stands for."""
    if isinstance(type_, Ref):
        return low.b.insert("row", [value], [type_]).result
    assert isinstance(type_, Num)
    if type_.text:
        return low.b.emit("textof", value)
    return value if value.type == type_ else low.b.emit("cast", value, dtype=type_.dtype, python=type_.python)


def demand_within(low: Lowering, index: Value, count: Value, text: str) -> None:
    b = low.b
    plain = b.emit("cast", index, dtype="int64", python=False)
    inside = b.emit("logical_and", b.emit("lt", plain, count), b.emit("ge", plain, b.emit("neg", count)))
    guard(low, inside, (IndexError, (text,)))


def grown_slice(low: Lowering, thing: Grown, bounds: tuple[Abstract, Abstract, Abstract], node: Any) -> Grown:
    """xs[a:b:c]"""
    step = bounds[2]
    if not isinstance(step, Const) or step.value == 0 or not isinstance(step.value, (int, type(None))):
        raise low.error(UnsupportedType, "a slice's step must be a constant", node)
    ends = [low.settled(p) for p in bounds[:2]]
    given = tuple(not (isinstance(p, Const) and p.value is None) for p in ends)
    values = [low.value(p, node) for p, here in zip(ends, given) if here]
    attrs = {"axis": 0, "step": step.value or 1, "given": given}
    columns = [low.attempt(partial(low.b.emit, "dynslice", c, *values, **attrs), node) for c in thing.columns]
    if columns:
        count = low.b.emit("dim", columns[0], axis=0)
    else:
        count = low.b.emit("dim", low.b.emit("dynslice", _places(low, thing.count), *values, **attrs), axis=0)
    return thing.holding(columns, low.b.emit("cast", count, dtype="int64", python=False))


def _places(low: Lowering, count: Value) -> Value:
    """An array as long as a list."""
    return low.b.emit("fill_to", low.converter.constant(0, COUNT), low.b.emit("stack", count, axis=0), shape=(None,))


# ------------------------------------------------------------------------------------------------ joining
def within(low: Lowering, thing: Abstract, wanted: Abstract, node: Any) -> Abstract:
    """`wanted in thing`, of a list of varying length."""
    whole = grown(low, thing, (), node)
    if whole.item is UNBOUND:
        return Const(False)
    found = low.b.emit("any", matches(low, whole, wanted, node), axes=(0,), keepdims=False)
    return Leaf(low.b.emit("cast", found, dtype="bool", python=True))


def of_lists(low: Lowering, symbol: str, x: Abstract, y: Abstract, node: Any) -> Abstract | None:
    """`x + y`, `x * n`, `x == y` and `x in y` of lists, `x < y` of lists and tuples; None for all else."""
    if symbol == "in" and isinstance(y, Table):
        return low.rules.has(low, y, x, node)
    if symbol == "in":
        return within(low, y, x, node) if isinstance(y, Grown) or isinstance(y, Run) and is_list(y) else None
    if symbol == "+" and is_list(x) and is_list(y):
        return joined(low, x, y, node)
    for one, other in ((x, y), (y, x)):
        if symbol == "*" and is_list(one) and is_number(other):
            return repeated(low, one, other, node)
    if symbol in ("==", "!=") and is_list(x) and is_list(y) and not (isinstance(x, Struct) and isinstance(y, Struct)):
        return same_items(low, x, y, symbol == "!=", node)
    return ordered(low, symbol, x, y, node)


def _alike(low: Lowering, x: Abstract, y: Abstract, node: Any) -> tuple[Grown, Grown]:
    """Two lists in columns of one kind; what has no item has no columns."""
    template = grown(low, y, (), node).item
    first = grown(low, x, () if template is UNBOUND else (template,), node)
    return first, grown(low, y, () if first.item is UNBOUND else (first.item,), node)


def same_items(low: Lowering, x: Abstract, y: Abstract, unlike: bool, node: Any) -> Abstract | None:
    """x == y of lists of which one has a varying length, or x != y (`unlike`); None for items that are not whole
    numbers: Python takes a NaN for equal to itself, if it is one object."""
    first, second = _alike(low, x, y, node)
    whole = all(isinstance(v.type, Num) and v.type.kind in "iub" and not v.type.text for v in first.columns)
    if not whole or any(v.type.rank != 1 for v in first.columns):  # type: ignore[union-attr]
        return None
    b = low.b
    result = b.emit("eq", first.count, second.count)
    if UNBOUND not in (first.item, second.item):
        count = b.emit("minimum", first.count, second.count)
        cut = {"axis": 0, "step": 1, "given": (False, True)}
        for columns in zip(first.columns, second.columns):
            same = b.emit("eq", *(b.emit("dynslice", c, count, **cut) for c in columns))
            result = b.emit("logical_and", result, b.emit("all", same, axes=(0,), keepdims=False))
    result = b.emit("logical_not", result) if unlike else result
    return Leaf(b.emit("cast", result, dtype="bool", python=True))


def joined(low: Lowering, x: Abstract, y: Abstract, node: Any) -> Abstract:
    """x + y of lists."""
    if isinstance(x, Struct) and isinstance(y, Struct):
        return list_of(x.items + y.items)
    first, second = _alike(low, x, y, node)
    if UNBOUND in (first.item, second.item):
        return first if second.item is UNBOUND else second
    columns = [low.b.emit("concat", a, b, axis=0) for a, b in zip(first.columns, second.columns)]
    return first.holding(columns, low.b.emit("add", first.count, second.count))


def repeated(low: Lowering, thing: Abstract, times: Abstract, node: Any) -> Abstract:
    """xs * n"""
    if not isinstance(thing, Struct):
        raise low.error(UnsupportedSyntax, "a list of varying length cannot be repeated in lanes", node,
                        "write a comprehension.")
    if isinstance(times, Const) and isinstance(times.value, int):
        return list_of(thing.items * times.value)
    if len(thing.items) != 1:
        raise low.error(UnsupportedSyntax, "only a list of one item can be repeated a varying number of times", node,
                        "write a comprehension.")
    b = low.b
    one = grown(low, thing, (), node)
    count = b.emit("maximum", b.emit("cast", low.value(times, node), dtype="int64", python=False),
                   low.converter.constant(0, COUNT))
    columns = []
    for column in one.columns:
        row = b.emit("index", column, low.converter.constant(0, COUNT), exact=True)
        inner = column.type.shape[1:]  # type: ignore[union-attr]
        dims = b.emit("stack", count, *(low.converter.constant(n, COUNT) for n in inner), axis=0)
        columns.append(b.emit("fill_to" if not inner else "broadcast_to", row, dims, shape=(None, *inner)))
    return one.holding(columns, count)


# ------------------------------------------------------------------------------------------------ looking through
def matches(low: Lowering, thing: Grown, wanted: Abstract, node: Any) -> Value:
    """Which items of a list are equal to a thing: a vector of truth values."""
    wanted = low.settled(wanted)
    parts = [(thing.item, wanted)]
    tests: list[Value] = []
    columns = iter(thing.columns)
    while parts:
        item, other = parts.pop(0)
        if isinstance(item, Struct) and isinstance(other, Struct) and len(item.items) == len(other.items):
            parts = [*zip(item.items, map(low.settled, other.items)), *parts]
            continue
        if is_text(item) and is_text(other) and not isinstance(item, Excerpt) and not isinstance(other, Excerpt):
            column, number = next(columns), low.strings.number(other)
            tests.append(low.attempt(partial(operators.compare, low.b, "==", column, number), node))
            continue
        if not (isinstance(item, Leaf) and is_number(item) and is_number(other)):
            text = f"{describe(other)} cannot be looked for in a list of {describe(thing.item)}"
            raise low.error(UnsupportedType, text, node)
        column, number = next(columns), low.value(other)
        tests.append(low.attempt(partial(operators.compare, low.b, "==", column, number), node))
    result = tests[0]
    for test in tests[1:]:
        result = low.b.emit("logical_and", result, test)
    return result
