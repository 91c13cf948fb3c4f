"""Lists: items read and set, appended, inserted and taken out, of known and of varying length.

The invariant: a list whose length is known stays a structure, so that its items may be of any kind and keep their
identity; a list of varying length (`Grown`) holds its items by value, in columns, and items that have an identity are
fixed. Indices out of range raise IndexError with Python's texts.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from spmd.errors import TypeMismatch, UnsupportedSyntax, UnsupportedType
from spmd.frontend.identities import ITEM, Cell, Object
from spmd.frontend.joins import grown_of, join_all, widen
from spmd.frontend.lowering import Lowering
from spmd.frontend.operations import end_in_error, guard
from spmd.frontend.values import UNBOUND, Abstract, Const, Grown, Leaf, Run, Struct, describe, is_number, list_of
from spmd.ir.core import Value
from spmd.ir.types import INT, Num, Ref, Type

COUNT = Num("int64")
RANGE = "list index out of range"
SIZES = "a loop runs over it, and the list would change its length meanwhile"


# ------------------------------------------------------------------------------------------------ kinds of lists
def is_list(thing: Abstract) -> bool:
    return isinstance(thing, Grown) or isinstance(thing, (Struct, Run)) and thing.kind == "list"


def grown(low: Lowering, thing: Abstract, more: tuple[Abstract, ...] = (), node: Any = None) -> Grown:
    """A list as one of varying length whose items can be `more`, too."""
    if isinstance(thing, Struct):
        thing = list_of(tuple(_by_value(low, i) for i in thing.items))
    own = thing.items if isinstance(thing, Struct) else (thing.item,)  # type: ignore[attr-defined]
    items = [widen(i) for i in (*own, *more) if i is not UNBOUND]
    size = len(thing.items) if isinstance(thing, Struct) else thing.size if isinstance(thing, Grown) else None
    target = low.attempt(lambda: grown_of(join_all(items) if items else UNBOUND, size), node)
    if isinstance(thing, Grown) and thing.key() == target.key():
        return thing
    leaves = low.attempt(lambda: low.converter.convert(thing, target), node)
    made = target.replace(iter(leaves))
    assert isinstance(made, Grown)
    return made


def _by_value(low: Lowering, thing: Abstract) -> Abstract:
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
    target = grown_of(thing.item)
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
    """A list that a recursive call is given with another length than the call that runs: its length varies."""
    if not isinstance(cell, Cell) or not isinstance(known, Cell) or not (is_list(cell.thing) and is_list(known.thing)):
        return cell
    ours, theirs = (len(t.items) if isinstance(t, Struct) else None for t in (cell.thing, known.thing))
    if ours is None or ours == theirs:
        return cell
    return Cell(varying(low, grown(low, cell.thing)), cell.fixed, cell.shares, cell.stale)


# ------------------------------------------------------------------------------------------------ reading
def grown_item(low: Lowering, thing: Grown, index: Value, text: str = RANGE) -> Abstract:
    """Item `index`, which may count from the back; raises the example's IndexError."""
    if thing.item is UNBOUND:
        end_in_error(low, (IndexError, (text,)))
    if not thing.columns:
        _demand_within(low, index, thing.count, text)
    rows = [low.attempt(partial(low.b.emit, "index", c, index, text=text)) for c in thing.columns]
    return low.hold(item_of(low, thing.item, rows), ITEM)


def item_of(low: Lowering, item: Abstract, rows: list[Value]) -> Abstract:
    """An item around rows of the columns; Python's numbers are that again."""
    return item.replace(iter([_leaf(low, v, leaf.type) for v, leaf in zip(rows, item.leaves())]))


def _leaf(low: Lowering, value: Value, type_: Type) -> Value:
    """A cell of a column as the leaf that it stands for."""
    if isinstance(type_, Ref):
        return low.b.insert("row", [value], [type_]).result
    assert isinstance(type_, Num)
    return value if value.type == type_ else low.b.emit("cast", value, dtype=type_.dtype, python=type_.python)


def _demand_within(low: Lowering, index: Value, count: Value, text: str) -> None:
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
    return Grown(thing.item, tuple(columns), low.b.emit("cast", count, dtype="int64", python=False))


def _places(low: Lowering, count: Value) -> Value:
    """An array as long as a list."""
    return low.b.emit("fill_to", low.converter.constant(0, COUNT), low.b.emit("stack", count, axis=0), shape=(None,))


# ------------------------------------------------------------------------------------------------ joining
def of_lists(low: Lowering, symbol: str, x: Abstract, y: Abstract, node: Any) -> Abstract | None:
    """`x + y` and `x * n` of lists; None for all else."""
    if symbol == "+" and is_list(x) and is_list(y):
        return joined(low, x, y, node)
    for one, other in ((x, y), (y, x)):
        if symbol == "*" and is_list(one) and is_number(other):
            return repeated(low, one, other, node)
    return None


def joined(low: Lowering, x: Abstract, y: Abstract, node: Any) -> Abstract:
    """x + y of lists."""
    if isinstance(x, Struct) and isinstance(y, Struct):
        return list_of(x.items + y.items)
    template = grown(low, y, (), node).item
    first = grown(low, x, () if template is UNBOUND else (template,), node)
    second = grown(low, y, () if first.item is UNBOUND else (first.item,), node)
    if UNBOUND in (first.item, second.item):
        return first if second.item is UNBOUND else second
    columns = [low.b.emit("concat", a, b, axis=0) for a, b in zip(first.columns, second.columns)]
    return Grown(first.item, tuple(columns), low.b.emit("add", first.count, second.count))


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
    return Grown(one.item, tuple(columns), count)


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
    if not is_number(index) or low.value(index).type.kind not in "iub":  # type: ignore[union-attr]
        raise low.error(TypeMismatch, f"list indices must be integers or slices, not {describe(index)}", node)
    if isinstance(held, Struct) and isinstance(index, Const):
        items = list(held.items)
        if not -len(items) <= index.value < len(items):
            end_in_error(low, (IndexError, ("list assignment index out of range",)))
        items[index.value] = low.hold(thing)
        memory.write(owner, list_of(tuple(items)), node)
        return
    place = low.value(index)
    value = _by_value(low, low.hold(thing))
    whole = grown(low, held, (value,), node)
    text = "list assignment index out of range"
    if whole.item is UNBOUND:
        end_in_error(low, (IndexError, (text,)))
    _demand_within(low, place, whole.count, text)
    leaves = low.attempt(lambda: low.converter.convert(value, whole.item), node)
    cells = map(low.converter.cell, leaves)
    columns = [low.b.emit("put_index", c, v, place, exact=True) for c, v in zip(whole.columns, cells)]
    memory.write(owner, Grown(whole.item, tuple(columns), whole.count), node)


def extend_list(low: Lowering, owner: Object, held: Abstract, more: Abstract, node: Any) -> None:
    """xs += ys, xs.extend(ys)"""
    memory = low.memory
    assert memory is not None
    more = low.settled(more)
    if isinstance(more, Struct) and more.kind in ("tuple", "namedtuple"):
        more = list_of(more.items)
    if not is_list(more) or not is_list(held):
        raise low.error(UnsupportedSyntax, f"{describe(held)} cannot be extended by {describe(more)} in lanes", node,
                        "extend by a list: xs += [...].")
    _resize(low, owner, node)
    memory.write(owner, joined(low, held, more, node), node)


def _resize(low: Lowering, owner: Object, node: Any) -> None:
    if owner.ident in low.iterated:
        text = f"this list cannot be changed here: {SIZES}"
        raise low.error(UnsupportedSyntax, text, node, "run over a copy: xs[:].")


def append(low: Lowering, owner: Object, held: Abstract, thing: Abstract, node: Any) -> None:
    """xs.append(x)"""
    memory = low.memory
    assert memory is not None
    _resize(low, owner, node)
    thing = low.hold(thing)
    if isinstance(held, Struct):
        memory.write(owner, list_of((*held.items, thing)), node)
        return
    value = _by_value(low, thing)
    whole = grown(low, held, (value,), node)
    leaves = low.attempt(lambda: low.converter.convert(value, whole.item), node)
    rows = [low.b.emit("stack", low.converter.cell(v), axis=0) for v in leaves]
    columns = [low.b.emit("concat", c, row, axis=0) for c, row in zip(whole.columns, rows)]
    count = low.b.emit("add", whole.count, low.converter.constant(1, COUNT))
    memory.write(owner, Grown(whole.item, tuple(columns), count), node)


def pop(low: Lowering, owner: Object, held: Abstract, index: Abstract, node: Any) -> Abstract:
    """xs.pop(), xs.pop(i)"""
    memory = low.memory
    assert memory is not None
    _resize(low, owner, node)
    empty = (IndexError, ("pop from empty list",))
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
    found = grown_item(low, whole, low.value(index, node), "pop index out of range")
    fewer = b.emit("sub", whole.count, low.converter.constant(1, COUNT))
    if isinstance(index, Const) and index.value == -1:
        columns = [_cut(low, c, None, fewer) for c in whole.columns]
    else:
        place = _wrapped(low, low.value(index), whole.count)
        after = b.emit("add", place, low.converter.constant(1, COUNT))
        parts = [(_cut(low, c, None, place), _cut(low, c, after, None)) for c in whole.columns]
        columns = [b.emit("concat", before, behind, axis=0) for before, behind in parts]
    memory.write(owner, Grown(whole.item, tuple(columns), fewer), node)
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
    _resize(low, owner, node)
    thing = low.hold(thing)
    if isinstance(held, Struct) and isinstance(index, Const):
        items = list(held.items)
        items.insert(index.value, thing)
        memory.write(owner, list_of(tuple(items)), node)
        return
    value = _by_value(low, thing)
    whole = grown(low, held, (value,), node)
    leaves = low.attempt(lambda: low.converter.convert(value, whole.item), node)
    b = low.b
    rows = [b.emit("stack", low.converter.cell(v), axis=0) for v in leaves]
    zero = low.converter.constant(0, COUNT)
    place = b.emit("minimum", b.emit("maximum", _wrapped(low, low.value(index, node), whole.count), zero), whole.count)
    columns = [b.emit("concat", _cut(low, c, None, place), row, _cut(low, c, place, None), axis=0)
               for c, row in zip(whole.columns, rows)]
    count = b.emit("add", whole.count, low.converter.constant(1, COUNT))
    memory.write(owner, Grown(whole.item, tuple(columns), count), node)


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
    _resize(low, owner, node)
    assert low.memory is not None
    low.memory.write(owner, list_of(()), node)
    return Const(None)


def _copied(low: Lowering, owner: Object, held: Abstract, args: list[Abstract], node: Any) -> Abstract:
    return held


METHODS: dict[str, tuple[int, int, Callable[..., Abstract]]] = {
    "append": (1, 1, _none(append)),
    "extend": (1, 1, _none(extend_list)),
    "pop": (0, 1, _settled_pop),
    "insert": (2, 2, _settled_insert),
    "clear": (0, 0, _clear),
    "copy": (0, 0, _copied),
}
