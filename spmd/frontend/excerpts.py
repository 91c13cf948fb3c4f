"""Strings as excerpts: where their characters stand among the letters of all strings, and what is asked of them there.

A string is known now (`Const`), by its id (`Leaf`), or as a part of another (`Excerpt`). The invariant: all three of
one string give the same answers, and no string is made while the program runs: a slice is another excerpt, a character
has an id. The letters and the other tables of strings are inputs of the module, asked for by name through `table`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from spmd.frontend.values import Abstract, Const, Excerpt, Leaf
from spmd.ir.build import Builder
from spmd.ir.core import Value
from spmd.ir.types import TEXT, Num
from spmd.ops import operators

PLACE = Num("int64")
FEW = 11


class Strings:
    """Emits what asks strings. `intern` numbers a string; `table(name)` is 'letters', 'bounds', or what a method of
    strings gives by id."""

    def __init__(self, builder: Builder, intern: Callable[[str], int], table: Callable[[str], Value]) -> None:
        self.b = builder
        self.intern = intern
        self.table = table

    # ------------------------------------------------------------------------------------------ numbers
    def place(self, number: int) -> Value:
        return self.b.insert("const", (), [PLACE], {"value": np.int64(number)}).result

    def plain(self, value: Value) -> Value:
        """An integer in NumPy's kind, whose arithmetic is not checked."""
        return value if value.type == PLACE else self.b.emit("cast", value, dtype="int64", python=False)

    def _known(self, value: Value) -> int | None:
        op = self.b.defs.get(value)
        return int(op.attrs["value"]) if op is not None and op.name == "const" else None

    def times(self, step: Value, count: Value) -> Value:
        """step * count"""
        return count if self._known(step) == 1 else self.b.emit("mul", step, count)

    # ------------------------------------------------------------------------------------------ forms of strings
    def known(self, string: str) -> Value:
        """A string that is known now, by its id."""
        return self.b.insert("const", (), [TEXT], {"value": self.intern(string)}).result

    def excerpt(self, thing: Abstract) -> Excerpt:
        """A string by the place of its characters."""
        if isinstance(thing, Excerpt):
            return thing
        one = self.place(1)
        if isinstance(thing, Const) and len(thing.value) < 2:
            return Excerpt(self.place(ord(thing.value) if thing.value else 0), self.place(len(thing.value)), one)
        number = self.number(thing)
        start = self.b.emit("index", self.table("bounds"), number, exact=True)
        end = self.b.emit("index", self.table("bounds"), self.b.emit("add", number, one), exact=True)
        return Excerpt(start, self.b.emit("sub", end, start), one)

    def excerpts(self, ids: Value) -> list[Value]:
        """The columns of excerpts that a column of ids is."""
        after = operators.binary(self.b, "+", ids, self.place(1))
        start, end = (self.b.emit("take", self.table("bounds"), at, axis=0) for at in (ids, after))
        return [start, self.b.emit("sub", end, start), self.b.emit("sub", after, ids)]

    def number(self, thing: Abstract) -> Value:
        """The id of a string; of an excerpt, if it is a character, else some number."""
        if isinstance(thing, Excerpt):
            at = self.b.emit("where", self.b.emit("gt", thing.length, self.place(0)), thing.start, self.place(0))
            return self.b.emit("index", self.table("letters"), at, exact=True)
        return self.b.emit("idof", self.known(thing.value) if isinstance(thing, Const) else next(thing.leaves()))

    def length(self, thing: Abstract) -> Abstract:
        """len(s)"""
        if isinstance(thing, Const):
            return Const(len(thing.value))
        return Leaf(self.b.emit("cast", self.excerpt(thing).length, dtype="int64", python=True))

    def letter(self, start: Value, step: Value, place: Value) -> Leaf:
        """The character at a place that is in the string."""
        at = self.b.emit("add", start, self.times(step, place))
        return Leaf(self.b.emit("textof", self.b.emit("index", self.table("letters"), at, exact=True)))

    # ------------------------------------------------------------------------------------------ comparisons
    def compared(self, relation: str, x: Abstract, y: Abstract) -> Leaf:
        """x < y and its like ('lt', 'eq', ...) of strings: by code points."""
        if relation in ("eq", "ne") and not isinstance(x, Excerpt) and not isinstance(y, Excerpt):
            ids = [self.known(t.value) if isinstance(t, Const) else next(t.leaves()) for t in (x, y)]
            return Leaf(self.b.emit(relation, *ids))
        order = self._asked("strcompare", x, y)
        return Leaf(self._truth(self.b.emit(relation, order, self.place(0))))

    def contains(self, part: Abstract, whole: Abstract) -> Leaf:
        """part in whole"""
        if isinstance(whole, Const) and isinstance(part, Leaf):
            s = whole.value
            parts = sorted({s[i:j] for i in range(len(s) + 1) for j in range(i, len(s) + 1)}) if len(s) <= FEW else []
            if parts and len(parts) <= FEW:
                tests = [self.b.emit("eq", part.value, self.known(p)) for p in parts]
                found = tests[0]
                for test in tests[1:]:
                    found = self.b.emit("logical_or", found, test)
                return Leaf(found)
        return Leaf(self._truth(self.b.emit("ge", self.search("find", whole, part), self.place(0))))

    def search(self, way: str, whole: Abstract, part: Abstract, *bounds: Value) -> Value:
        """whole.way(part, *bounds), an int64."""
        return self._asked("strsearch", whole, part, bounds=bounds, way=way)

    def tested(self, way: str, thing: Abstract) -> Leaf:
        """s.isdigit() and its like."""
        if isinstance(thing, Excerpt):
            return Leaf(self._asked("strtest", thing, way=way))
        number = self.b.emit("idof", next(thing.leaves()))
        return Leaf(self._truth(self.b.emit("index", self.table(way), number, exact=True)))

    def changed(self, way: str, thing: Leaf) -> Leaf:
        """s.lower() and its like, of a string that has an id."""
        number = self.b.emit("idof", thing.value)
        return Leaf(self.b.emit("textof", self.b.emit("index", self.table(way), number, exact=True)))

    def read(self, name: str, thing: Abstract, **attrs: Any) -> Value:
        """A string as a number: 'strint' or 'strfloat'."""
        return self._asked(name, thing, **attrs)

    def missing(self, thing: Abstract) -> None:
        """The KeyError of a dictionary that does not have this key."""
        self._asked("strmissing", thing)

    def _asked(self, name: str, *things: Abstract, bounds: tuple[Value, ...] = (), **attrs: Any) -> Value:
        places = [v for thing in things for v in self.excerpt(thing).leaves()]
        return self.b.emit(name, self.table("letters"), *places, *bounds, **attrs)

    def _truth(self, value: Value) -> Value:
        return self.b.emit("cast", value, dtype="bool", python=True)
