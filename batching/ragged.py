"""Arrays of different size, one per example, stored one after the other.

Invariant: example i is the block of prod(dims[i]) rows of `values` from start[i] on, in C order; all blocks lie inside
`values`; the arrays are read-only.
Must not know: packing, the compiler.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np

from batching.columns import frozen
from batching.keypath import PackingError
from batching.rebuilding import block

__all__ = ["Ragged"]

Array = np.ndarray[Any, np.dtype[Any]]


class Ragged:
    """One array per example, of one dtype and rank and of differing sizes.

    values [total, *trailing], start int [n], dims int [n, k]: example i has the shape (*dims[i], *trailing).
    Raises PackingError for offsets outside of the values.
    """

    __slots__ = ("dims", "start", "values")

    def __init__(self, values: Array, start: Array, dims: Array) -> None:
        start, dims = np.asarray(start, np.int64), np.asarray(dims, np.int64)
        if dims.ndim == 1:
            dims = dims[:, None]
        if start.ndim != 1 or dims.ndim != 2 or len(start) != len(dims) or values.ndim < 1 or not dims.shape[1]:
            raise PackingError("Ragged", f"values {values.shape}, start {start.shape} and dims {dims.shape} do not "
                                         "belong together; they are [total, ...], [n] and [n, k]")
        rows = dims.prod(axis=1)
        if len(start) and (dims.min() < 0 or start.min() < 0 or np.any(rows > len(values) - start)):
            raise PackingError("Ragged", f"an example reaches outside of the {len(values)} rows of values")
        self.values, self.start, self.dims = frozen(values), frozen(start), frozen(dims)

    @classmethod
    def from_list(cls, arrays: Sequence[Array]) -> Ragged:
        """Packs arrays of one dtype and rank (at least 1). Raises PackingError where they differ."""
        arrays = [np.asarray(array) for array in arrays]
        if not arrays:
            return cls(np.zeros(0), np.zeros(0, np.int64), np.zeros((0, 1), np.int64))
        first = arrays[0]
        for place, array in enumerate(arrays):
            if array.dtype != first.dtype or array.ndim != first.ndim or not array.ndim:
                raise PackingError(f"arrays[{place}]", f"dtype {array.dtype} and rank {array.ndim} beside dtype "
                                                       f"{first.dtype} and rank {first.ndim} (at least 1)")
        shapes = np.asarray([array.shape for array in arrays], np.int64)
        varying = np.flatnonzero((shapes != shapes[0]).any(axis=0))
        leading = int(varying[-1]) + 1 if len(varying) else 1
        dims = shapes[:, :leading]
        rows = dims.prod(axis=1)
        trailing = first.shape[leading:]
        flat = [array.reshape(count, *trailing) for array, count in zip(arrays, rows.tolist(), strict=True)]
        return cls(np.concatenate(flat), np.cumsum(rows) - rows, dims)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of every array."""
        return self.values.dtype

    @property
    def lengths(self) -> Array:
        """The first size of every array: int [n]."""
        return self.dims[:, 0]

    def __len__(self) -> int:
        return len(self.start)

    @overload
    def __getitem__(self, index: int | np.integer[Any]) -> Array: ...
    @overload
    def __getitem__(self, index: slice | Array | list[int]) -> Ragged: ...
    def __getitem__(self, index: Any) -> Any:
        """One example's array (a copy), or with a slice or index array a Ragged that shares the values."""
        if isinstance(index, (int, np.integer)):
            return block(self.values, int(self.start[index]), tuple(self.dims[index].tolist()))
        rows = index if isinstance(index, slice) else np.asarray(index)
        if not isinstance(rows, slice) and rows.size == 0:
            rows = rows.astype(np.int64)
        return Ragged(self.values, self.start[rows], self.dims[rows])

    def __iter__(self) -> Iterator[Array]:
        for place in range(len(self)):
            yield self[place]

    def to_list(self) -> list[Array]:
        """One array per example."""
        return list(self)

    def __repr__(self) -> str:
        shown = ", ".join(str((*dims, *self.values.shape[1:])) for dims in self.dims[:4].tolist())
        more = ", ..." if len(self) > 4 else ""
        return f"Ragged({len(self)} arrays of {self.dtype}: {shown}{more})"
