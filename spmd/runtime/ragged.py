"""Arrays whose size differs from row to row, and sums over runs of rows.

A `Ragged` is K blocks in one flat buffer: the block of row r is ``data[lo[r] : lo[r] + prod(dims[r])]`` in C order,
seen as an array of shape ``dims[r] + data.shape[1:]``. The invariant: handles (`lo`, `dims`) are never changed in
place, so a Ragged may be shared; `packed` says that the blocks follow each other and fill `data` exactly.
Must not know arenas, frames or ops.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class Ragged:
    """K blocks of one flat buffer. data [total, *trail], lo int64[K], dims int64[K, k]."""

    __slots__ = ("data", "lo", "dims", "packed", "_sizes")

    def __init__(self, data: Array, lo: Array, dims: Array, packed: bool = False) -> None:
        self.data = data
        self.lo = lo
        self.dims = dims
        self.packed = packed
        self._sizes: Array | None = None

    def __len__(self) -> int:
        return len(self.lo)

    def __repr__(self) -> str:
        return f"Ragged({len(self)} rows, {self.dims.shape[1]} sizes, {self.data.dtype}{self.data.shape})"

    @property
    def sizes(self) -> Array:
        """Number of buffer rows of each block, int64[K]."""
        if self._sizes is None:
            self._sizes = self.dims[:, 0] if self.dims.shape[1] == 1 else self.dims.prod(axis=1)
        return self._sizes

    @property
    def trail(self) -> tuple[int, ...]:
        """The sizes behind the ragged ones, equal in all rows."""
        return self.data.shape[1:]

    def take(self, rows: Any) -> Ragged:
        """Some of the rows; the buffer is shared."""
        return Ragged(self.data, self.lo[rows], self.dims[rows])

    def index(self) -> Array:
        """Buffer row of every element, block after block."""
        return runs(self.lo, self.sizes)

    def flat(self) -> Array:
        """All blocks one after the other, [total, *trail]; the buffer itself where it is packed."""
        return self.data if self.packed else self.data[self.index()]

    def pack(self) -> Ragged:
        """The same value with blocks that follow each other."""
        return self if self.packed else packed(self.flat(), self.dims)

    def one(self, row: int) -> Array:
        """The block of one row as an array."""
        lo = int(self.lo[row])
        shape = tuple(int(n) for n in self.dims[row]) + self.trail
        return self.data[lo : lo + int(self.sizes[row])].reshape(shape)

    def dense(self, shape: tuple[int, ...]) -> Array:
        """[K, *shape] where every row has this one shape."""
        return self.flat().reshape((len(self), *shape))

    def with_data(self, data: Array) -> Ragged:
        """Blocks of the same sizes in a packed buffer of their own."""
        out = Ragged(data, self.lo if self.packed else offsets(self.sizes), self.dims, True)
        out._sizes = self._sizes
        return out


def offsets(counts: Array) -> Array:
    """Where each run starts if they follow each other: the exclusive sum."""
    out = np.empty(len(counts), np.int64)
    if len(counts):
        out[0] = 0
        counts[:-1].cumsum(out=out[1:])
    return out


def runs(first: Array, counts: Array) -> Array:
    """first[0], first[0]+1, ... (counts[0] numbers), first[1], ...: the rows of all runs, run after run."""
    at = np.repeat(first - offsets(counts), counts)
    at += np.arange(len(at))
    return at


def packed(data: Array, dims: Array) -> Ragged:
    """Blocks of these sizes that follow each other in `data`."""
    out = Ragged(data, dims[:, 0], dims, True)
    out.lo = offsets(out.sizes)
    return out


def from_dense(rows: Array, k: int) -> Ragged:
    """Rows of one shape [K, *shape] as ragged ones; the first k axes become sizes."""
    shape = rows.shape[1 : 1 + k]
    dims = np.broadcast_to(np.array(shape, np.int64), (len(rows), k))
    block = int(np.prod(shape, dtype=np.int64))
    data = np.ascontiguousarray(rows).reshape((len(rows) * block, *rows.shape[1 + k :]))
    return Ragged(data, np.arange(len(rows), dtype=np.int64) * block, dims, True)


def from_uniform(value: Array, count: int, k: int) -> Ragged:
    """One example's array, `count` times, each its own block."""
    value = np.asarray(value)
    return from_dense(np.broadcast_to(value, (count, *value.shape)), k)


def from_arrays(arrays: list[Array], k: int = 1, dtype: Any = None) -> Ragged:
    """Packs a list of arrays whose first k sizes may differ."""
    dims = np.array([a.shape[:k] for a in arrays], np.int64).reshape(len(arrays), k)
    parts = [np.asarray(a, dtype).reshape((-1, *a.shape[k:])) for a in arrays]
    return packed(np.concatenate(parts), dims)


def concat(values: list[Ragged]) -> Ragged:
    """The rows of all values one after the other."""
    if len(values) == 1:
        return values[0]
    dims = np.concatenate([v.dims for v in values])
    return packed(np.concatenate([v.flat() for v in values]), dims)


def segment_sum(data: Array, counts: Array) -> Array:
    """Sums of runs of rows that follow each other: [total, *s], int64[K] -> [K, *s]; an empty run gives zero."""
    out = np.zeros((len(counts), *data.shape[1:]), data.dtype)
    if len(data):
        some = np.flatnonzero(counts)
        out[some] = np.add.reduceat(data, offsets(counts)[some], axis=0, dtype=data.dtype)
    return out


def add_rows(target: Array, rows: Any, values: Any) -> None:
    """target[rows] += values, where rows may repeat."""
    if isinstance(rows, slice):
        target[rows] += values
    elif target.ndim == 1:
        np.add.at(target, rows, values)
    else:
        add_repeated(target, rows, np.asarray(values))


def add_repeated(target: Array, rows: Array, values: Array) -> None:
    """Rows that may repeat, by one sort and sums of equal runs: `np.add.at` on matrices is far slower."""
    if not len(rows):
        return
    order = np.argsort(rows, kind="stable")
    sorted_rows = rows[order]
    starts = np.flatnonzero(np.concatenate(([True], sorted_rows[1:] != sorted_rows[:-1])))
    values = np.broadcast_to(values, (len(rows), *target.shape[1:]))
    if len(starts) == len(rows):
        target[rows] += values
        return
    target[sorted_rows[starts]] += np.add.reduceat(values[order], starts, axis=0, dtype=target.dtype)
