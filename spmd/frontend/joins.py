"""What a name is where paths meet: the joined structure.

The invariant: `join` is commutative up to the order of alternatives and widens only, so that loops and recursion reach
a fixpoint. Leaves of a joined structure are placeholders: only their types count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from spmd.frontend.identities import ABSENT, Cell, Object, Outcome, View
from spmd.frontend.values import (
    TAG,
    UNBOUND,
    Abstract,
    Choice,
    Compound,
    Const,
    Excerpt,
    Grown,
    Leaf,
    Method,
    Node,
    Run,
    Static,
    Struct,
    Table,
    is_number,
    is_text,
    tuple_of,
)
from spmd.ir.build import constant_type
from spmd.ir.core import Value
from spmd.ir.types import TEXT, Num, Ref
from spmd.ir.types import join as join_types

ALTERNATIVES = 16
EXCERPT = Excerpt(*(Value(Num("int64")) for _ in range(3)))


class JoinError(Exception):
    """Two things that no type holds."""


def leaf_of(type_: Num) -> Leaf:
    """A placeholder leaf."""
    return Leaf(Value(type_))


def join(a: Abstract, b: Abstract) -> Abstract:
    """The structure that holds either. Raises JoinError."""
    merged = merge(a, b)
    if merged is not None:
        return merged
    found: list[Abstract] = []
    for thing in (*alternatives(a), *alternatives(b)):
        for k, other in enumerate(found):
            both = merge(other, thing)
            if both is not None:
                found[k] = both
                break
        else:
            found.append(thing)
    if len(found) > ALTERNATIVES:
        raise JoinError("more than 16 kinds of value meet here")
    if len(found) == 1:
        return found[0]
    return Choice(Value(TAG), tuple(found))


def alternatives(thing: Abstract) -> tuple[Abstract, ...]:
    return thing.alternatives if isinstance(thing, Choice) else (thing,)


def join_all(things: Iterable[Abstract]) -> Abstract:
    joined: Abstract | None = None
    for thing in things:
        joined = thing if joined is None else join(joined, thing)
    assert joined is not None
    return joined


def merge(a: Abstract, b: Abstract) -> Abstract | None:
    """The join if it needs no tag, else None."""
    if isinstance(a, Cell) and isinstance(b, Cell):
        return _merge_cells(a, b)
    if a is ABSENT or b is ABSENT:
        return b if a is ABSENT else a
    if isinstance(a, Choice) or isinstance(b, Choice):
        return None
    if is_number(a) and is_number(b) or isinstance(a, (Leaf, Const)) and isinstance(b, (Leaf, Const)):
        return _merge_leaves(a, b)
    if isinstance(a, Excerpt) and is_text(b) or isinstance(b, Excerpt) and is_text(a):
        return EXCERPT
    for one, other in ((a, b), (b, a)):
        if isinstance(one, Node) and isinstance(other, Const) and other.value is None:
            return Node(Value(Ref(one.table, True)))
    if isinstance(a, Node) and isinstance(b, Node):
        joined = join_types(a.value.type, b.value.type)
        return None if joined is None else Node(Value(joined))
    if isinstance(a, Grown) and isinstance(b, Grown):
        return _merge_lists(a, b)
    if isinstance(a, Table) and isinstance(b, Table):
        return Table(_in_columns(a.entries, b.entries))
    if isinstance(a, Run) and isinstance(b, Run):
        if a.value.type == b.value.type and UNBOUND in (a.item, b.item):
            return b if a.item is UNBOUND else a
        return a if a.key() == b.key() else None
    if isinstance(a, Struct) and isinstance(b, Struct):
        return _merge_structs(a, b)
    if isinstance(a, Compound) and isinstance(b, Compound) and a.form == b.form:
        return a.around(tuple(join(x, y) for x, y in zip(a.parts, b.parts)))
    if isinstance(a, (Static, Method, Object, View)) and type(a) is type(b) and a.key() == b.key():
        return a
    if isinstance(a, Outcome) and isinstance(b, Outcome):
        return _merge_outcomes(a, b)
    return a if a is b else None


def _merge_leaves(a: Any, b: Any) -> Abstract | None:
    if isinstance(a, Const) and isinstance(b, Const) and a.key() == b.key():
        return a
    types = [_leaf_type(a), _leaf_type(b)]
    if None in types:
        return None
    joined = join_types(types[0], types[1])
    return None if joined is None else leaf_of(joined)  # type: ignore[arg-type]


def _leaf_type(thing: Leaf | Const) -> Any:
    if isinstance(thing, Leaf):
        return thing.type
    if isinstance(thing.value, str):
        return TEXT
    if isinstance(thing.value, (bool, int, float, complex)):
        return constant_type(thing.value)
    return None


def _merge_structs(a: Struct, b: Struct) -> Abstract | None:
    if (a.kind, a.cls, a.names) != (b.kind, b.cls, b.names):
        return None
    return Struct(a.kind, a.cls, a.names, tuple(join(x, y) for x, y in zip(a.items, b.items)))


def _merge_cells(a: Cell, b: Cell) -> Cell:
    """What an object holds that holds either."""
    thing = _merge_lists(a.thing, b.thing) or _merge_dicts(a.thing, b.thing)
    thing = join(a.thing, b.thing) if thing is None else thing
    return Cell(thing, max(a.fixed, b.fixed), a.shares | b.shares, max(a.stale, b.stale))


def _merge_lists(a: Abstract, b: Abstract) -> Abstract | None:
    """The list of varying length that holds two lists which are not of one structure."""
    if not all(isinstance(t, (Grown, Struct, Run)) and t.kind in ("list", "deque", "set") for t in (a, b)):
        return None
    if a.kind != b.kind:  # type: ignore[attr-defined]
        return None
    if isinstance(a, Struct) and isinstance(b, Struct) and len(a.items) == len(b.items):
        return None
    if isinstance(a, Run) and isinstance(b, Run) and a.key() == b.key():
        return None
    return _in_columns(a, b)


def _in_columns(a: Abstract, b: Abstract) -> Grown:
    items = [*_items(a), *_items(b)]
    size = _size(a) if _size(a) == _size(b) else None
    kind = a.kind if isinstance(a, Grown) else "list"
    return grown_of(join_all(map(widen, items)) if items else UNBOUND, size, kind)


def _merge_dicts(a: Abstract, b: Abstract) -> Abstract | None:
    """The table that holds two dictionaries whose keys are not the same ones on both paths."""
    if not all(isinstance(t, Table) or isinstance(t, Struct) and t.kind == "dict" for t in (a, b)):
        return None
    if isinstance(a, Struct) and isinstance(b, Struct) and a.names == b.names:
        return None
    return Table(_in_columns(entries_of(a), entries_of(b)))


def entries_of(thing: Abstract) -> Abstract:
    """The entries of a dictionary, as a list of pairs. Raises JoinError where keys are no numbers."""
    if isinstance(thing, Table):
        return thing.entries
    assert isinstance(thing, Struct)
    pairs = tuple(Struct("tuple", tuple, (0, 1), (_key_of(n), x)) for n, x in zip(thing.names, thing.items))
    return Struct("list", list, tuple(range(len(pairs))), pairs)


def part_of(held: Abstract, name: str) -> Abstract:
    """d.keys(), d.values(), d.items(), as they are now; a loop over a dictionary runs over its keys."""
    if isinstance(held, Struct):
        keys = tuple(Const(n) for n in held.names)
        pairs = tuple(tuple_of(pair) for pair in zip(keys, held.items))
        return tuple_of({"keys": keys, "values": held.items, "items": pairs}[name])
    assert isinstance(held, Table)
    item = held.entries.item
    if item is UNBOUND or name == "items":
        return held.entries
    assert isinstance(item, Struct)
    width, which = len(list(item.items[0].leaves())), int(name == "values")
    columns = held.entries.columns[width:] if which else held.entries.columns[:width]
    return Grown(item.items[which], columns, held.entries.count)


def _key_of(name: Any) -> Abstract:
    """A key that is known now, as a bound thing."""
    if isinstance(name, tuple):
        return Struct("tuple", tuple, tuple(range(len(name))), tuple(map(_key_of, name)))
    if not isinstance(name, (int, float)):
        raise JoinError("a dictionary whose keys differ between examples has keys that are numbers")
    return Const(name)


def _size(thing: Abstract) -> int | None:
    """The length of a list, where it is known now."""
    if isinstance(thing, Struct):
        return len(thing.items)
    return thing.size if isinstance(thing, Grown) else None


def _items(thing: Abstract) -> tuple[Abstract, ...]:
    """What stands for the items of a list."""
    found = thing.items if isinstance(thing, Struct) else (thing.item,)  # type: ignore[attr-defined]
    return tuple(i for i in found if i is not UNBOUND)


def grown_of(item: Abstract, size: int | None = None, kind: str = "list") -> Grown:
    """A list in columns, of varying length or of one `size`; placeholders for leaves. Raises JoinError where items have
    no columns."""
    columns = []
    for value in item.leaves():
        type_ = Num("int64") if isinstance(value.type, Ref) else value.type  # a row is kept by its number
        if not isinstance(type_, Num) or not type_.static:
            raise JoinError("a list that grows holds numbers, strings, arrays of one shape, objects, or tuples of them")
        columns.append(Value(Num(type_.dtype, (size, *type_.shape))))
    if any(True for _ in _objects(item)):
        raise JoinError("a list that grows cannot hold lists that are written to")
    return Grown(item, tuple(columns), Value(Num("int64")), kind)


def _objects(thing: Abstract) -> Iterator[Object]:
    if isinstance(thing, Object):
        yield thing
    elif isinstance(thing, (Struct, Choice)):
        for inner in thing.items if isinstance(thing, Struct) else thing.alternatives:
            yield from _objects(inner)


def _merge_outcomes(a: Outcome, b: Outcome) -> Outcome:
    ours, theirs = dict(a.cells), dict(b.cells)
    idents = sorted(ours.keys() | theirs.keys(), key=lambda k: (k < 0, abs(k)))
    nothing = Cell(ABSENT)
    cells = ((k, _merge_cells(ours.get(k, nothing), theirs.get(k, nothing))) for k in idents)
    return Outcome(join(a.result, b.result), tuple(cells))


def widen(thing: Abstract) -> Abstract:
    """The thing with constant numbers and strings as leaves: what a variable is that a loop changes."""
    if isinstance(thing, Const) and _leaf_type(thing) is not None:
        return leaf_of(_leaf_type(thing))
    if isinstance(thing, Struct):
        return Struct(thing.kind, thing.cls, thing.names, tuple(widen(i) for i in thing.items))
    if isinstance(thing, Choice):
        return Choice(thing.tag, tuple(widen(a) for a in thing.alternatives))
    if isinstance(thing, Cell):
        return Cell(widen(thing.thing), thing.fixed, thing.shares, thing.stale)
    if isinstance(thing, Compound):
        return thing.around(tuple(map(widen, thing.parts)))
    return thing
