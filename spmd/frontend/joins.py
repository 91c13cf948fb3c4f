"""What a name is where paths meet: the joined structure, and the ops that bring each path's leaves into it.

The invariant: `join` is commutative up to the order of alternatives, widens only (so loops and recursion reach a
fixpoint), and `convert(thing, join(thing, other))` loses nothing but the kinds of numbers that DESIGN 8 lets widen.
Leaves of a joined structure are placeholders: only their types count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spmd.frontend.identities import ABSENT, Cell, Object, Outcome, View
from spmd.frontend.values import (
    NONE,
    TAG,
    UNBOUND,
    Abstract,
    Choice,
    Const,
    Grown,
    Leaf,
    Method,
    Node,
    Run,
    Static,
    Struct,
    Table,
    is_number,
)
from spmd.ir.build import Builder, constant_type
from spmd.ir.core import Value
from spmd.ir.types import TEXT, Num, Ref, Seq, Type
from spmd.ir.types import join as join_types
from spmd.ops.operators import convert as convert_number

ALTERNATIVES = 16


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
    if not all(isinstance(t, Grown) or isinstance(t, (Struct, Run)) and t.kind == "list" for t in (a, b)):
        return None
    if isinstance(a, Struct) and isinstance(b, Struct) and len(a.items) == len(b.items):
        return None
    if isinstance(a, Run) and isinstance(b, Run) and a.key() == b.key():
        return None
    return _in_columns(a, b)


def _in_columns(a: Abstract, b: Abstract) -> Grown:
    items = [*_items(a), *_items(b)]
    size = _size(a) if _size(a) == _size(b) else None
    return grown_of(join_all(map(widen, items)) if items else UNBOUND, size)


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


def grown_of(item: Abstract, size: int | None = None) -> Grown:
    """A list in columns, of varying length or of one `size`; placeholders for leaves. Raises JoinError where items have
    no columns."""
    columns = []
    for value in item.leaves():
        type_ = Num("int64") if isinstance(value.type, Ref) else value.type  # a row is kept by its number
        if not isinstance(type_, Num) or not type_.static or type_.text:
            raise JoinError("a list that grows holds numbers, arrays of one shape, objects, or tuples of them")
        columns.append(Value(Num(type_.dtype, (size, *type_.shape))))
    if any(True for _ in _objects(item)):
        raise JoinError("a list that grows cannot hold lists that are written to")
    return Grown(item, tuple(columns), Value(Num("int64")))


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
    return thing


class Converter:
    """Emits what brings a thing into a joined structure. `intern` numbers a string."""

    def __init__(self, builder: Builder, intern: Callable[[str], int]) -> None:
        self.b = builder
        self.intern = intern

    def convert(self, thing: Abstract, target: Abstract) -> list[Value]:
        """The leaves of `target`, as `thing` gives them; for alternatives that it is not, zeros."""
        if isinstance(target, Cell):
            assert isinstance(thing, Cell)
            return self.convert(thing.thing, target.thing)
        if isinstance(target, Outcome):
            assert isinstance(thing, Outcome)
            cells = dict(thing.cells)
            found = self.convert(thing.result, target.result)
            return found + [v for k, cell in target.cells for v in self.convert(cells.get(k, Cell(ABSENT)), cell)]
        if thing is ABSENT:
            return [self.zero(v.type) for v in target.leaves()]
        if isinstance(target, Choice):
            return self._choice(thing, target)
        if isinstance(target, Leaf):
            return [self.number(thing, target.type)]
        if isinstance(target, Node):
            if isinstance(thing, Const):
                return [self.constant(-1, target.value.type)]
            assert isinstance(thing, Node)
            return [thing.value]
        if isinstance(target, Table):
            return self._grown(entries_of(thing), target.entries)
        if isinstance(target, Grown):
            return self._grown(thing, target)
        if isinstance(target, Struct) and isinstance(thing, Struct):
            return [v for x, t in zip(thing.items, target.items) for v in self.convert(x, t)]
        return list(thing.leaves())

    def _grown(self, thing: Abstract, target: Grown) -> list[Value]:
        """A list as one of varying length: a column for each leaf of its items, and their number."""
        plain = Num("int64")
        types = [v.type for v in target.columns if isinstance(v.type, Num)]
        if isinstance(thing, Struct):
            rows = [self.convert(item, target.item) for item in thing.items]
            count = self.constant(len(rows), plain)
            return [*(self._stacked(column, type_) for column, type_ in zip(zip(*rows), types)), count] if rows else [
                *(self.zero(type_) for type_ in types), count]
        if isinstance(thing, Run):
            length = self.b.insert("length", [thing.value], [Num("int64", python=True)]).result
            count = self.b.emit("cast", length, dtype="int64", python=False)
            if thing.item is UNBOUND:
                return [*(self.zero(type_) for type_ in types), count]
            leaves = [v.type for v in thing.item.leaves()]
            if thing.item.key()[:1] != target.item.key()[:1] or len(leaves) != len(types) or any(
                    isinstance(t, (Ref, Seq)) for t in leaves):
                raise JoinError("lists of items of different kinds meet here")
            columns = [self.b.insert("column", [thing.value], [Num(t.dtype, (None, *t.shape))],  # type: ignore[union-attr]
                                     {"table": thing.table, "field": k}).result for t, k in zip(leaves, thing.fields)]
            return [*map(self._number, columns, types), count]
        assert isinstance(thing, Grown)
        if thing.item is UNBOUND:
            return [*(self.zero(type_) for type_ in types), thing.count]
        if len(thing.columns) != len(types):
            raise JoinError("lists of items of different kinds meet here")
        return [*map(self._number, thing.columns, types), thing.count]

    def cell(self, value: Value) -> Value:
        """A leaf of an item as a column holds it: a number in NumPy's kind, a row by its number."""
        type_ = value.type
        if isinstance(type_, Ref):
            return self.b.insert("rownumber", [value], [Num("int64")]).result
        assert isinstance(type_, Num)
        return self.b.emit("cast", value, dtype=type_.dtype, python=False) if type_.python else value

    def _stacked(self, column: Sequence[Value], type_: Num) -> Value:
        """Leaves of items as the rows of an array."""
        plain = [self._number(self.cell(v), Num(type_.dtype, type_.shape[1:])) for v in column]
        return self._number(self.b.emit("stack", *plain, axis=0), type_)

    def _choice(self, thing: Abstract, target: Choice) -> list[Value]:
        if isinstance(thing, Choice):
            return self._rechoose(thing, target)
        chosen = self._slot(thing, target)
        values = [self.constant(chosen, TAG)]
        for k, alternative in enumerate(target.alternatives):
            if k == chosen:
                values += self.convert(thing, alternative)
            else:
                values += [self.zero(v.type) for v in alternative.leaves()]
        return values

    def _rechoose(self, thing: Choice, target: Choice) -> list[Value]:
        """A union into a wider one: the tag is renumbered, and each alternative goes to its slot."""
        slots = [self._slot(a, target) for a in thing.alternatives]
        tag = thing.tag
        if slots != list(range(len(slots))):
            table = self.b.const(np.asarray(slots, np.int8))
            tag = self.b.emit("take", table, tag, axis=0)
        values = [tag]
        for k, alternative in enumerate(target.alternatives):
            sources = [i for i, slot in enumerate(slots) if slot == k]
            if not sources:
                values += [self.zero(v.type) for v in alternative.leaves()]
                continue
            parts = self.convert(thing.alternatives[sources[0]], alternative)
            for i in sources[1:]:
                other = self.convert(thing.alternatives[i], alternative)
                here = self.b.emit("eq", thing.tag, self.constant(i, TAG))
                parts = [self.b.emit("where", here, y, x) for x, y in zip(parts, other)]
            values += parts
        return values

    def _slot(self, thing: Abstract, target: Choice) -> int:
        for k, alternative in enumerate(target.alternatives):
            merged = merge(alternative, thing)
            if merged is not None and merged.key() == alternative.key():
                return k
        raise JoinError("a value has no place where paths meet")

    def number(self, thing: Abstract, type_: Num) -> Value:
        """A number, array or string as a value of the given type."""
        if isinstance(thing, Const):
            if isinstance(thing.value, str):
                return self.constant(self.intern(thing.value), TEXT)
            if thing.value is NONE.value:
                raise JoinError("None has no number")
            if not type_.shape:
                return self.constant(thing.value, type_)
            return self._number(self.b.const(thing.value), type_)
        assert isinstance(thing, Leaf)
        return self._number(thing.value, type_)

    def _number(self, value: Value, type_: Num) -> Value:
        if value.type == type_:
            return value
        return convert_number(self.b, value, type_)

    def constant(self, value: Any, type_: Type) -> Value:
        """A constant of a stated type."""
        if isinstance(type_, Num):
            value = np.dtype(type_.dtype).type(value)
            if type_.python or type_.text:
                value = value.item()
        return self.b.insert("const", (), [type_], {"value": value}).result

    def zero(self, type_: Type) -> Value:
        """What stands where a value is not used."""
        if isinstance(type_, Ref):
            null = self.constant(-1, Ref(type_.table, True))
            return null if type_.nullable else self.b.insert("assured", [null], [type_]).result
        if isinstance(type_, Seq):
            return self.constant((0, 0), type_)
        if not type_.shape:
            return self.constant(0, type_)
        array = np.zeros([0 if n is None else n for n in type_.shape], type_.dtype)
        return self.b.insert("const", (), [type_], {"value": array}).result


@dataclass(eq=False)
class Yielded:
    """Which leaves an `if` must yield: those that an arm defines or that differ between the arms."""

    columns: list[list[Value]]
    inner: list[set[Value]]

    @property
    def yielded(self) -> list[bool]:
        return [
            any(v in inner for v, inner in zip(row, self.inner)) or any(v is not row[0] for v in row[1:])
            for row in zip(*self.columns)
        ]

    @property
    def types(self) -> list[Value]:
        """For each yielded leaf one value that has its type; a row may be None in either arm."""
        chosen = []
        for row, keep in zip(zip(*self.columns), self.yielded):
            if keep:
                chosen.append(next((v for v in row if getattr(v.type, "nullable", False)), row[0]))
        return chosen

    def sources(self, arm: int) -> list[Value]:
        return [v for v, keep in zip(self.columns[arm], self.yielded) if keep]

    def rebuild(self, joined: list[Abstract], results: list[Value]) -> list[Abstract]:
        """The joined things around the results, and around the leaves that pass by."""
        fresh = iter(results)
        leaves = iter(
            [next(fresh) if keep else row[0] for row, keep in zip(zip(*self.columns), self.yielded)]
        )
        return [thing.replace(leaves) for thing in joined]
