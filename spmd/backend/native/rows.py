"""Rows of tables in loops: links, runs of rows, and the fields that are read.

Invariant: a field is read only at a row that its table has. A link is a number, a run the first row and how many.
"""

from __future__ import annotations

from spmd.backend.native.arrays import ArrayWriter, num
from spmd.backend.native.scalars import element_of
from spmd.backend.native.support import in_memory, ragged_axes
from spmd.backend.native.things import Array, Small, sizes
from spmd.backend.simd.memory import stored
from spmd.backend.simd.vector import SIZES, Value
from spmd.ir.core import Block, Op
from spmd.ir.types import Num, Seq, Type


class RowWriter(ArrayWriter):
    """Emits ops on rows. `fields`: (table, field) of what is read, in the order of their words."""

    fields: list[tuple[str, int]]
    words_of: dict[tuple[str, int], list[str]]

    def word(self, number: int, type_: str = "i64") -> str:
        at = self.b.scalar(f"getelementptr i64, ptr %t, i64 {number}")
        return self.b.scalar(f"load {type_}, ptr {at}")

    def field_words(self, block: Block, at: int) -> int:
        """Reads the words of every field once: how many rows, and addresses. Where the words end."""
        self.fields, self.words_of = [], {}
        for op in block.walk():
            if op.name != "load" or _key(op) in self.words_of:
                continue
            kinds = ["i64", *["ptr"] * _addresses(op.result.type)]
            self.words_of[_key(op)] = [self.word(at + k, kind) for k, kind in enumerate(kinds)]
            self.fields.append(_key(op))
            at += len(kinds)
        return at

    def block_of(self, type_: Num, data: str, first: str, dims: str, row: str) -> Array:
        """The array of a row whose blocks differ in size: addresses of elements, first elements and sizes."""
        b, element = self.b, element_of(type_.dtype)
        lo = b.scalar(f"load i64, ptr {b.scalar(f'getelementptr i64, ptr {first}, i64 {row}')}")
        axes = ragged_axes(type_)
        own = b.scalar(f"getelementptr i64, ptr {dims}, i64 {self.times([row, str(axes)])}")
        leading = [b.scalar(f"load i64, ptr {b.scalar(f'getelementptr i64, ptr {own}, i64 {k}')}") for k in range(axes)]
        start = self.at(element, data, self.times([lo, *(str(n) for n in type_.shape[axes:])]))
        return Array(start, sizes(type_, leading))

    def _op_load(self, op: Op) -> None:
        b, type_ = self.b, num(op.result)
        rows, *places = self.words_of[_key(op)]
        row = self.scalar(op.operands[0])
        there = b.fresh("there")
        inside = row.compare("lt", Value(b, rows, "i64"), unsigned=True)
        b.write(f"br i1 {inside.name}, label %{there}, label %lost")
        b.open(there)
        if len(places) == 3:
            data, first, dims = places
            self.define(op.result, self.block_of(type_, data, first, dims, row.name))
        elif isinstance(op.result.type, Seq):
            parts = [b.scalar(f"load i64, ptr {self.at('i64', p, row.name)}") for p in places]
            self.define(op.result, Small(tuple(Value(b, part, "i64") for part in parts)))
        else:
            size = SIZES[stored(element_of(type_.dtype))]
            offset = self.times([row.name, str(size * (type_.size if type_.rank else 1))])
            data = b.scalar(f"getelementptr i8, ptr {places[0]}, i64 {offset}")
            self.define(op.result, Array(data, sizes(type_, [])) if in_memory(type_) else self.loaded(type_, data))

    def _op_item(self, op: Op) -> None:
        b = self.b
        first, count = self.few(op.operands[0]).elements
        given = Value(b, self.integer(op.operands[1]), "i64")
        at = b.select(given.lt(0), given + count, given)
        self.fails(op, at.compare("ge", count, unsigned=True).name)
        self.define(op.result, first + at)

    def _op_length(self, op: Op) -> None:
        self.define(op.result, self.few(op.operands[0]).elements[1])

    def _op_isnull(self, op: Op) -> None:
        self.define(op.result, self.scalar(op.operands[0]).lt(0))

    def _op_same(self, op: Op) -> None:
        self.define(op.result, self.scalar(op.operands[0]).eq(self.scalar(op.operands[1])))

    def _op_assured(self, op: Op) -> None:
        self.define(op.result, self.scalar(op.operands[0]))

    _op_rownumber = _op_row = _op_assured

    def _op_nonnull(self, op: Op) -> None:
        row = self.scalar(op.operands[0])
        self.fails(op, row.lt(0).name)
        self.define(op.result, row)

    def _op_seqslice(self, op: Op) -> None:
        b = self.b
        first, _ = self.few(op.operands[0]).elements
        low, high = (Value(b, self.integer(v), "i64") for v in op.operands[1:])
        self.define(op.result, Small((first + low, b.select(high.gt(low), high - low, 0))))


def _key(op: Op) -> tuple[str, int]:
    return op.attrs["table"], op.attrs["field"]


def _addresses(type_: Type) -> int:
    if isinstance(type_, Seq):
        return 2
    return 3 if isinstance(type_, Num) and ragged_axes(type_) else 1
