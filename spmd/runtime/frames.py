"""Frames of one function as columns.

A frame is one activation of a function for one example. Frame ids are given in order and never taken back within a
run: ended frames keep their cells until the run ends, with a tape or without, so a run's memory grows with all its
calls, not with those under way. (Forking stops a run whose frames took four times the budget; the batch then runs in
smaller pieces.) The invariant: a cell of a `single` column never changes once it is written, so such a column is read
by view; all others are read by copy. What a column holds for a value: numbers and links one array, runs of a table two
(first, count), dynamic arrays a handle (lo, dims) into an arena. Must not know regions or ops.

Rows of a table are a `slice` with positive step where they can be, else an int64 vector in ascending order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spmd.runtime.arena import Arenas
from spmd.runtime.ragged import Array, Ragged

Rows = Any


@dataclass(frozen=True)
class ColumnSpec:
    """One column. kind 'dense' (array [n, *shape]), 'run' (two int64 arrays) or 'ragged' (lo [n], dims [n, sizes] of
    arrays with trailing shape `shape`). `slot` is the number of its first array."""

    kind: str
    dtype: str
    shape: tuple[int, ...]
    slot: int
    single: bool = True
    sizes: int = 0

    @property
    def slots(self) -> int:
        return 1 if self.kind == "dense" else 2

    def arrays(self) -> list[tuple[str, tuple[int, ...]]]:
        """dtype and shape of one frame's cell, slot by slot."""
        if self.kind == "dense":
            return [(self.dtype, self.shape)]
        if self.kind == "run":
            return [("int64", ()), ("int64", ())]
        return [("int64", ()), ("int64", (self.sizes,))]

    @property
    def nbytes(self) -> int:
        return sum(np.dtype(d).itemsize * int(np.prod(s)) for d, s in self.arrays())


@dataclass(frozen=True)
class FrameSpec:
    """The columns of one function's frames. `params` and `results` are positions in `columns`."""

    number: int
    name: str
    columns: tuple[ColumnSpec, ...]
    params: tuple[int, ...]
    results: tuple[int, ...]
    span: Any = None
    elements: bool = False
    waits: bool = False
    arrays: tuple[tuple[str, tuple[int, ...]], ...] = field(default=(), init=False)
    nbytes: int = field(default=0, init=False)

    SYSTEM = 40

    def __post_init__(self) -> None:
        object.__setattr__(self, "arrays", tuple(a for c in self.columns for a in c.arrays()))
        object.__setattr__(self, "nbytes", self.SYSTEM + sum(c.nbytes for c in self.columns))


class FrameTable:
    """All frames of one function in one run.

    data     arrays by slot, each at least `n` long
    parent   the caller's frame (-1 for the entry), `site` the call site's number (-1), `lane` the example,
    pending  children not yet back; `element` which element of a map the frame is for (0 elsewhere)
    waiter   head of the list of frames that share this one (functions with `waits` only), see schedule
    """

    __slots__ = ("spec", "n", "capacity", "data", "parent", "site", "lane", "pending", "element", "waiter", "done")

    def __init__(self, spec: FrameSpec, capacity: int = 64) -> None:
        self.spec = spec
        self.n = 0
        self.capacity = max(capacity, 1)
        self.data = [np.empty((self.capacity, *shape), dtype) for dtype, shape in spec.arrays]
        self.parent = np.empty(self.capacity, np.int64)
        self.site = np.empty(self.capacity, np.int64)
        self.lane = np.empty(self.capacity, np.int64)
        self.pending = np.empty(self.capacity, np.int64)
        self.element = np.empty(self.capacity if spec.elements else 0, np.int64)
        self.waiter = np.empty(self.capacity if spec.waits else 0, np.int64)
        self.done = np.empty(self.capacity if spec.waits else 0, np.bool_)

    def new(self, count: int) -> int:
        """Appends frames with unset columns; returns the id of the first."""
        first = self.n
        self.n = first + count
        if self.n > self.capacity:
            self._grow(first)
        return first

    def _grow(self, used: int) -> None:
        self.capacity = max(2 * self.capacity, self.n)
        self.data = [_grown(a, used, self.capacity) for a in self.data]
        for name in ("parent", "site", "lane", "pending"):
            setattr(self, name, _grown(getattr(self, name), used, self.capacity))
        if self.spec.elements:
            self.element = _grown(self.element, used, self.capacity)
        if self.spec.waits:
            self.waiter = _grown(self.waiter, used, self.capacity)
            self.done = _grown(self.done, used, self.capacity)

    def read(self, column: ColumnSpec, rows: Rows, arenas: Arenas) -> Any:
        """The column's cells at these rows as a row value; a view only of a `single` column."""
        data, slot = self.data, column.slot
        if column.kind == "dense":
            return self._cells(data[slot], rows, column.single)
        first = self._cells(data[slot], rows, column.single)
        second = self._cells(data[slot + 1], rows, column.single)
        if column.kind == "run":
            return first, second
        return Ragged(arenas.get(column.dtype, column.shape).buffer, first, second)

    @staticmethod
    def _cells(array: Array, rows: Rows, single: bool) -> Array:
        if isinstance(rows, slice):
            return array[rows] if single else array[rows].copy()
        return array.take(rows, 0)

    def write(self, column: ColumnSpec, rows: Rows, value: Any) -> None:
        """Sets cells; `value` has one row per row or is one example's value for all. Ragged values are handles into
        the arena of the column."""
        data, slot = self.data, column.slot
        if column.kind == "dense":
            data[slot][rows] = value
        elif column.kind == "run":
            data[slot][rows], data[slot + 1][rows] = value
        else:
            data[slot][rows], data[slot + 1][rows] = value.lo, value.dims


def _grown(array: Array, used: int, capacity: int) -> Array:
    out = np.empty((capacity, *array.shape[1:]), array.dtype)
    out[:used] = array[:used]
    return out


def count(rows: Rows) -> int:
    """Number of rows."""
    if isinstance(rows, slice):
        return len(range(rows.start, rows.stop, rows.step or 1))
    return len(rows)


def vector(rows: Rows) -> Array:
    """The rows as an index vector."""
    if isinstance(rows, slice):
        return np.arange(rows.start, rows.stop, rows.step or 1)
    return rows


def compact(rows: Array) -> Rows:
    """An ascending vector without repeats, as a slice where it is contiguous."""
    if len(rows) and rows[-1] - rows[0] + 1 == len(rows):
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return rows


def union(parts: list[Rows]) -> Rows:
    """Disjoint row sets as one, ascending."""
    if len(parts) == 1:
        return parts[0]
    if all(isinstance(p, slice) and p.step is None for p in parts):
        ordered = sorted(parts, key=lambda p: p.start)
        if all(a.stop == b.start for a, b in zip(ordered, ordered[1:])):
            return slice(ordered[0].start, ordered[-1].stop)
    rows = np.concatenate([vector(p) for p in parts])
    rows.sort()
    return compact(rows)


@dataclass(eq=False)
class TableData:
    """A packed table that comes with the inputs: field by field one array, link vector, pair (first, count) or Ragged
    with one row per table row."""

    name: str
    fields: list[Any]

    @property
    def rows(self) -> int:
        """Number of table rows."""
        if not self.fields:
            return 0
        first = self.fields[0]
        return len(first[0]) if isinstance(first, tuple) else len(first)
