"""The columns that hold a packed list: a small tree of NumPy arrays that mirrors its schema.

Invariant: all arrays of a column have the same number of rows, `rows_of(column)`, except elements and ragged values,
which have their own; what `pack` makes is in C order; every array is read-only (a read-only view: an array that the
caller holds is not changed); taking rows touches the arrays of this level only and shares elements, ragged values and
tables.
Must not know: what Python objects the rows came from, nor the compiler. That offsets and links are in range is checked
by validation.py.

Rows that an optional, a variant or a node class does not use hold placeholders: zeros, the empty string, ragged and
list length 0, link -1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = [
    "ArrayColumn", "Column", "LinkColumn", "ListColumn", "NoneColumn", "NumberColumn", "OptionalColumn", "RaggedColumn",
    "RecordColumn", "StringColumn", "TableColumns", "VariantColumn", "rows_of", "take",
]

Array = np.ndarray[Any, np.dtype[Any]]
Rows = slice | Array


def frozen(array: Array) -> Array:
    """A read-only view of an array (the array itself, where it is read-only already)."""
    array = np.asarray(array)
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


class _Frozen:
    """Freezes the arrays of a column as it is built."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                object.__setattr__(self, name, frozen(value))


@dataclass(frozen=True, eq=False)
class NumberColumn(_Frozen):
    """Numbers: values [n]."""

    values: Array


@dataclass(frozen=True, eq=False)
class ArrayColumn(_Frozen):
    """Arrays of one shape: values [n, *shape]."""

    values: Array


@dataclass(frozen=True, eq=False)
class RaggedColumn(_Frozen):
    """Arrays whose sizes differ: row i is the block of prod(dims[i]) rows of `values` from start[i] on, in C order."""

    values: Array
    start: Array
    dims: Array


@dataclass(frozen=True, eq=False)
class NoneColumn:
    """None, n times."""

    n: int


@dataclass(frozen=True, eq=False)
class StringColumn(_Frozen):
    """Ids of interned strings: ids [n]."""

    ids: Array


@dataclass(frozen=True, eq=False)
class RecordColumn:
    """One column per field. `n` is kept since a record may have no field."""

    fields: tuple[Column, ...]
    n: int


@dataclass(frozen=True, eq=False)
class ListColumn(_Frozen):
    """Sequences: row i is rows start[i] : start[i] + length[i] of `elements`."""

    start: Array
    length: Array
    elements: Column


@dataclass(frozen=True, eq=False)
class LinkColumn(_Frozen):
    """Rows of a node table, -1 for None: rows [n]."""

    rows: Array


@dataclass(frozen=True, eq=False)
class OptionalColumn(_Frozen):
    """present [n], and the inner column for all n rows."""

    present: Array
    inner: Column


@dataclass(frozen=True, eq=False)
class VariantColumn(_Frozen):
    """tag [n] (int8), and each alternative's column for all n rows."""

    tag: Array
    alternatives: tuple[Column, ...]


@dataclass(frozen=True, eq=False)
class TableColumns(_Frozen):
    """A node table: tag [rows] (int8, index into the schema's classes) and one column per field."""

    tag: Array
    fields: tuple[Column, ...]

    def __len__(self) -> int:
        return len(self.tag)


Column = (
    NumberColumn | ArrayColumn | RaggedColumn | NoneColumn | StringColumn | RecordColumn | ListColumn | LinkColumn
    | OptionalColumn | VariantColumn
)


def rows_of(column: Column) -> int:
    """The number of rows of a column."""
    if isinstance(column, (NumberColumn, ArrayColumn)):
        return len(column.values)
    if isinstance(column, (RaggedColumn, ListColumn)):
        return len(column.start)
    if isinstance(column, (NoneColumn, RecordColumn)):
        return column.n
    if isinstance(column, StringColumn):
        return len(column.ids)
    if isinstance(column, LinkColumn):
        return len(column.rows)
    return len(column.present if isinstance(column, OptionalColumn) else column.tag)


def take(column: Column, rows: Rows) -> Column:
    """The given rows of a column, by slice (views) or by index array; elements and ragged values are shared.

    Raises IndexError for an index out of range.
    """
    if isinstance(column, NumberColumn):
        return NumberColumn(column.values[rows])
    if isinstance(column, ArrayColumn):
        return ArrayColumn(column.values[rows])
    if isinstance(column, RaggedColumn):
        return RaggedColumn(column.values, column.start[rows], column.dims[rows])
    if isinstance(column, NoneColumn):
        return NoneColumn(_count(column.n, rows))
    if isinstance(column, StringColumn):
        return StringColumn(column.ids[rows])
    if isinstance(column, RecordColumn):
        return RecordColumn(tuple(take(field, rows) for field in column.fields), _count(column.n, rows))
    if isinstance(column, ListColumn):
        return ListColumn(column.start[rows], column.length[rows], column.elements)
    if isinstance(column, LinkColumn):
        return LinkColumn(column.rows[rows])
    if isinstance(column, OptionalColumn):
        return OptionalColumn(column.present[rows], take(column.inner, rows))
    return VariantColumn(column.tag[rows], tuple(take(part, rows) for part in column.alternatives))


def _count(n: int, rows: Rows) -> int:
    """How many rows of n an index selects. Raises IndexError for an index out of range."""
    if isinstance(rows, slice):
        return len(range(*rows.indices(n)))
    if rows.size and (rows.max() >= n or rows.min() < -n):
        raise IndexError(f"an index is out of range for {n} rows")
    return len(rows)


def map_arrays(column: Column, function: Callable[[Array], Array]) -> Column:
    """The column with every array, at every level, replaced by function(array)."""
    changed: dict[str, Any] = {}
    for name, value in vars(column).items():
        if isinstance(value, np.ndarray):
            changed[name] = function(value)
        elif isinstance(value, tuple):
            changed[name] = tuple(map_arrays(part, function) for part in value)
        elif isinstance(value, int):
            changed[name] = value
        else:
            changed[name] = map_arrays(value, function)
    return type(column)(**changed)
