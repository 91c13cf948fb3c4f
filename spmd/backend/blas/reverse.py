"""The schedule log walked backwards: cotangents of frames, tables, arenas and shared arguments.

Each entry (a) reads the cotangents of everything that it defined, (b) zeroes them, (c) runs its adjoint on taped
values, (d) only then adds to what it had read. The invariant: the run itself is only read, so a walk may be repeated
with other cotangents. Columns written once per frame need no zeroing: nothing reads their cotangent again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from spmd.backend.blas.fast import Moves
from spmd.backend.blas.gradients import SharedGradient
from spmd.runtime.frames import Rows
from spmd.runtime.machine import Machine
from spmd.runtime.ragged import Array, Ragged, add_rows, packed, runs, segment_sum


class Backward:
    """State of one reverse walk over one run. `lanes`: group shared cotangents by this many examples, or None."""

    def __init__(self, run: Machine, lanes: int | None, moves: Moves) -> None:
        self.moves = moves
        self.run = run
        self.lanes = lanes
        self.frames: list[list[Any]] = [[None] * len(t.data) for t in run.frames]
        self.fields: dict[tuple[int, int], Array] = {}
        self.arenas: dict[tuple[str, tuple[int, ...]], Array] = {}
        self.shared: dict[int, SharedGradient] = {}

    def walk(self, adjoints: Sequence[Any]) -> None:
        """Calls the adjoint of every entry, last first."""
        tables = self.run.frames
        functions = [r.function for r in self.run.code.regions]
        for entry in reversed(self.run.log.entries):
            adjoint = adjoints[entry.region]
            if adjoint is not None:
                table = tables[functions[entry.region]]
                adjoint(self, self.run, table, entry.rows, entry.count, entry.residuals, entry.children)

    # ---------------------------------------------------------------------------------- frame columns
    def column(self, function: int, slot: int) -> Array:
        """The cotangents of a dense column, made at first use."""
        columns = self.frames[function]
        found = columns[slot]
        if found is None:
            data = self.run.frames[function].data[slot]
            found = columns[slot] = np.zeros((self.run.frames[function].n, *data.shape[1:]), data.dtype)
        return found

    def read(self, function: int, slot: int, rows: Rows, single: bool) -> Array | None:
        """(a) and (b) for a dense column; None where nothing was ever added."""
        column = self.frames[function][slot]
        if column is None:
            return None
        if isinstance(rows, slice):
            if single:
                return column[rows]
            out = column[rows].copy()
        else:
            out = column.take(rows, 0)
        if not single:
            column[rows] = 0
        return out

    def add(self, function: int, slot: int, rows: Rows, value: Any) -> None:
        """(d) for a dense column, rows without repeats."""
        column = self.frames[function][slot]
        if column is None:
            column = self.column(function, slot)
        self.moves.add(column, rows, value)

    def add_repeated(self, function: int, slot: int, rows: Array, value: Any) -> None:
        """(d) where rows may repeat: results of shared frames."""
        self.moves.add_repeated(self.column(function, slot), rows, value)

    def add_maybe(self, function: int, slot: int, rows: Array, value: Any, repeated: bool) -> None:
        """(d) where there is a row; what is added elsewhere goes to nobody."""
        rows, value = _there(rows, value)
        if len(rows):
            (self.add_repeated if repeated else self.add)(function, slot, rows, value)

    def add_field_maybe(self, table: int, index: int, refs: Array, value: Any) -> None:
        """Adds to rows of a field where there is a row; rows may repeat."""
        refs, value = _there(refs, value)
        if len(refs):
            self.add_field(table, index, refs, value)

    def add_spots(self, function: int, slot: int, rows: Rows, index: Sequence[Any], value: Any) -> None:
        """(d) at one element per row of an array column."""
        column = self.column(function, slot)
        if isinstance(rows, slice):
            rows = np.arange(rows.start, rows.stop, rows.step or 1)
        column[(rows, *_wrapped(index, column.shape[1:], len(rows)))] += value

    def children_sum(self, function: int, slot: int, child: Any, single: bool) -> Array | None:
        """(a) and (b) for a parameter that all children of a map share: its sum over each row's children."""
        ids, counts = child
        value = self.read(function, slot, ids, single)
        return None if value is None else segment_sum(value, counts)

    def children_stack(self, function: int, slot: int, child: Any, single: bool, static: int | None) -> Any:
        """(a) and (b) for a parameter that is an element per child: stacked per row; `static`: the stack's size."""
        ids, counts = child
        value = self.read(function, slot, ids, single)
        if value is None:
            return None
        if static is None:
            return packed(value, counts[:, None])
        if (counts == static).all():
            return value.reshape((len(counts), static, *value.shape[1:]))
        out = np.zeros((len(counts), static, *value.shape[1:]), value.dtype)
        owner = np.repeat(np.arange(len(counts)), counts)
        out[owner, np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)] = value
        return out

    # ---------------------------------------------------------------------------------- arenas
    def arena(self, dtype: str, trail: tuple[int, ...]) -> Array:
        """The cotangents of an arena."""
        found = self.arenas.get((dtype, trail))
        if found is None:
            found = np.zeros((self.run.arenas.get(dtype, trail).used, *trail), dtype)
            self.arenas[(dtype, trail)] = found
        return found

    def read_home(self, dtype: str, trail: tuple[int, ...], home: Ragged) -> Ragged | None:
        """Cotangent of a dynamic value that the entry made: its blocks lie side by side and are read once."""
        arena = self.arenas.get((dtype, trail))
        if arena is None:
            return None
        low = int(home.lo[0]) if len(home) else 0
        return packed(arena[low : low + int(home.sizes.sum())], home.dims)

    def add_blocks(self, dtype: str, trail: tuple[int, ...], handle: Ragged, value: Any) -> None:
        """Adds to the blocks of a handle, which may repeat."""
        value = value.flat() if isinstance(value, Ragged) else np.reshape(value, (-1, *trail))
        add_blocks(self.arena(dtype, trail), handle, value)

    def add_block_spots(self, dtype: str, trail: tuple[int, ...], handle: Ragged, index: Sequence[Any], v: Any) -> None:
        """Adds at one element of each block."""
        block_spots(self.arena(dtype, trail), handle, index, v)

    # ---------------------------------------------------------------------------------- tables
    def field(self, table: int, index: int) -> Array:
        """The cotangents of a table's field: as its array, or as the buffer of its ragged values."""
        found = self.fields.get((table, index))
        if found is None:
            data = self.run.tables[table].fields[index]
            data = data.data if isinstance(data, Ragged) else data
            found = self.fields[(table, index)] = np.zeros(data.shape, data.dtype)
        return found

    def add_field(self, table: int, index: int, refs: Array, value: Any) -> None:
        """Adds to rows of a field; rows may repeat."""
        target, data = self.field(table, index), self.run.tables[table].fields[index]
        if isinstance(data, Ragged):
            value = value.flat() if isinstance(value, Ragged) else np.reshape(value, (-1, *data.trail))
            add_blocks(target, data.take(refs), value)
        else:
            self.moves.add_repeated(target, refs, value)

    def add_field_spots(self, table: int, index: int, refs: Array, at: Sequence[Any], value: Any) -> None:
        """Adds at one element of each row of a field."""
        target, data = self.field(table, index), self.run.tables[table].fields[index]
        if isinstance(data, Ragged):
            block_spots(target, data.take(refs), at, value)
            return
        np.add.at(target, (refs, *_wrapped(at, target.shape[1:], len(refs))), value)

    # ---------------------------------------------------------------------------------- shared arguments
    def sink(self, number: int) -> SharedGradient:
        """The collector of a module input."""
        found = self.shared.get(number)
        if found is None:
            found = self.shared[number] = SharedGradient(self.run.inputs[number], self.lanes, self.moves)
        return found


def _there(rows: Array, value: Any) -> tuple[Array, Any]:
    """The rows that there are, and what belongs to them."""
    if (rows >= 0).all():
        return rows, value
    at = np.flatnonzero(rows >= 0)
    return rows[at], value[at]


def add_blocks(target: Array, handle: Ragged, value: Array) -> None:
    """target[blocks] += value, as one slice where the blocks follow each other."""
    lo, sizes = handle.lo, handle.sizes
    if not len(lo):
        return
    ends = lo + sizes
    if (lo[1:] == ends[:-1]).all():
        target[int(lo[0]) : int(ends[-1])] += value
    elif (lo[1:] >= ends[:-1]).all():
        target[runs(lo, sizes)] += value
    else:
        add_rows(target, runs(lo, sizes), value)


def block_spots(target: Array, handle: Ragged, index: Sequence[Any], value: Any) -> None:
    """target[element `index` of each block] += value; blocks may repeat."""
    k = handle.dims.shape[1]
    size = len(handle)
    inner = [handle.dims[:, a] if a < k else handle.trail[a - k] for a in range(len(index))]
    at = _wrapped(index, inner, size)
    lo = np.zeros(size, np.int64)
    for axis in range(k):
        lo = lo * handle.dims[:, axis] + (at[axis] if axis < len(at) else 0)
    if len(at) >= k:
        np.add.at(target, (handle.lo + lo, *at[k:]), value)
    else:
        flat = value.flat() if isinstance(value, Ragged) else np.reshape(value, (-1, *handle.trail))
        add_blocks(target, Ragged(handle.data, handle.lo + lo, handle.dims[:, len(at) :]), flat)


def _wrapped(index: Sequence[Any], shape: Sequence[Any], rows: int) -> list[Array]:
    out = []
    for i, n in zip(index, shape):
        at = np.broadcast_to(np.asarray(i, np.int64), (rows,))
        out.append(np.where(at < 0, at + n, at))
    return out
