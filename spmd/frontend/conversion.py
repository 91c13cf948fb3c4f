"""What brings each path's leaves into the structure that paths meet in.

The invariant: `convert(thing, join(thing, other))` loses nothing but the kinds of numbers that DESIGN 8 lets widen;
what a path does not have stands there as zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spmd.frontend.excerpts import Strings
from spmd.frontend.identities import ABSENT, Cell, Outcome
from spmd.frontend.joins import JoinError, entries_of, merge
from spmd.frontend.values import (
    NONE,
    TAG,
    UNBOUND,
    Abstract,
    Choice,
    Compound,
    Const,
    Excerpt,
    Grown,
    Leaf,
    Node,
    Run,
    Struct,
    Table,
)
from spmd.frontend.watched import WatchedBuilder
from spmd.ir.core import Value
from spmd.ir.types import TEXT, Num, Ref, Seq, Type
from spmd.ops.operators import convert as convert_number


class Converter:
    """Emits what brings a thing into a joined structure."""

    def __init__(self, builder: WatchedBuilder, strings: Strings) -> None:
        self.b = builder
        self.strings = strings

    def convert(self, thing: Abstract, target: Abstract) -> list[Value]:
        """The leaves of `target`, as `thing` gives them; for alternatives that it is not, zeros."""
        with self.b.quiet():
            return self._convert(thing, target)

    def _convert(self, thing: Abstract, target: Abstract) -> list[Value]:
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
        if isinstance(target, Excerpt):
            return list(self.strings.excerpt(thing).leaves())
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
        if isinstance(target, Compound) and isinstance(thing, Compound):
            return [v for x, t in zip(thing.parts, target.parts) for v in self.convert(x, t)]
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
            if leaves == [TEXT] and isinstance(target.item, Excerpt):
                attrs = {"table": thing.table, "field": thing.fields[0]}
                ids = self.b.insert("column", [thing.value], [Num("int64", (None,))], attrs).result
                return [*map(self._number, self.strings.excerpts(ids), types), count]
            if thing.item.key()[:1] != target.item.key()[:1] or len(leaves) != len(types) or any(
                    isinstance(t, (Ref, Seq)) for t in leaves):
                raise JoinError("lists of items of different kinds meet here")
            columns = [self.b.insert("column", [thing.value], [Num(t.dtype, (None, *t.shape))],  # type: ignore[union-attr]
                                     {"table": thing.table, "field": k}).result for t, k in zip(leaves, thing.fields)]
            return [*map(self._number, columns, types), count]
        assert isinstance(thing, Grown)
        if thing.item is UNBOUND:
            return [*(self.zero(type_) for type_ in types), thing.count]
        if isinstance(thing.item, Leaf) and thing.item.type.text and isinstance(target.item, Excerpt):
            return [*map(self._number, self.strings.excerpts(thing.columns[0]), types), thing.count]
        if len(thing.columns) != len(types):
            raise JoinError("lists of items of different kinds meet here")
        return [*map(self._number, thing.columns, types), thing.count]

    def cell(self, value: Value) -> Value:
        """A leaf of an item as a column holds it: a number in NumPy's kind, a row or a string by its number."""
        type_ = value.type
        if isinstance(type_, Ref):
            return self.b.insert("rownumber", [value], [Num("int64")]).result
        assert isinstance(type_, Num)
        if type_.text:
            return self.b.emit("idof", value)
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
                return self.strings.known(thing.value)
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
