"""Between the rows that a target's callers hold and the value that one example sees.

The invariant: `of_row(type, column, k)` is exactly what the program of example k would hold (a Python scalar for a
Python kind, a NumPy scalar for rank 0, an array else; an int for a row of a table, a pair of ints for a run), and
`to_rows` is its inverse over all examples. Knows types and the runtime's row values only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from spmd.ir.types import Num, Ref, Seq, Shape, Type
from spmd.runtime.ragged import Ragged


def scalar(type_: Num, value: Any) -> Any:
    """A number or array as the type demands it: Python kinds as Python scalars, rank 0 as NumPy scalars."""
    if type_.python or type_.text:
        return value.item() if isinstance(value, (np.generic, np.ndarray)) else value
    array = np.asarray(value, dtype=type_.dtype)
    return array[()] if not type_.shape else array


def of_row(type_: Type, column: Any, row: int) -> Any:
    """The value of example (or table row) `row` in a column."""
    if isinstance(type_, Ref):
        return int(column[row])
    if isinstance(type_, Seq):
        return int(column[0][row]), int(column[1][row])
    if not type_.static:
        return column.one(row)
    return scalar(type_, column[row])


def of_uniform(type_: Type, value: Any) -> Any:
    """A module input as a program holds it; no row axis."""
    if isinstance(type_, Ref):
        return int(value)
    if isinstance(type_, Seq):
        return int(value[0]), int(value[1])
    return scalar(type_, value)


def to_rows(type_: Type, values: Sequence[Any]) -> Any:
    """The row value that holds the values of all examples, in order."""
    count = len(values)
    if isinstance(type_, Ref):
        return np.array(values, dtype=np.int64).reshape(count)
    if isinstance(type_, Seq):
        pairs = np.array(values, dtype=np.int64).reshape(count, 2)
        return pairs[:, 0].copy(), pairs[:, 1].copy()
    if not type_.static:
        return _ragged_rows(type_, values)
    rows = np.empty((count, *sizes(type_.shape)), dtype=type_.dtype)
    for k, value in enumerate(values):
        rows[k] = value
    return rows


def sizes(shape: Shape) -> tuple[int, ...]:
    """A shape in which every size is known."""
    known = tuple(n for n in shape if n is not None)
    assert len(known) == len(shape), shape
    return known


def _ragged_rows(type_: Num, values: Sequence[Any]) -> Ragged:
    """Blocks one after the other, without gaps."""
    leading = 1 + max(axis for axis, n in enumerate(type_.shape) if n is None)
    tail = sizes(type_.shape[leading:])
    blocks = [np.asarray(v, dtype=type_.dtype) for v in values]
    dims = np.array([b.shape[:leading] for b in blocks], dtype=np.int64).reshape(len(blocks), leading)
    counts = np.prod(dims, axis=1, dtype=np.int64)
    flat = [b.reshape(n, *tail) for b, n in zip(blocks, counts, strict=True)]
    data = np.concatenate([np.empty((0, *tail), dtype=type_.dtype), *flat])
    return Ragged(data, np.cumsum(counts) - counts, dims, True)


def zeros_like_column(type_: Num, column: Any) -> Any:
    """A column of zeros of the same rows and sizes, to add cotangents into."""
    if not type_.static:
        return Ragged(np.zeros_like(column.data), column.lo, column.dims, column.packed)
    return np.zeros_like(column)


def add_to_row(type_: Num, column: Any, row: int, cotangent: Any) -> None:
    """Adds a cotangent into one row, in place."""
    if not type_.static:
        target = column.one(row)
        target += cotangent
    else:
        column[row] += cotangent


def nbytes(value: Any) -> int:
    """Bytes that a value takes, its Python object included."""
    return 64 + value.nbytes if isinstance(value, np.ndarray) else 32
