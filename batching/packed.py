"""A list of examples in columns: what `pack` gives and what compiled functions take.

Invariant: the columns fit the schema, offsets and links are in range, all arrays are read-only; a minibatch has the
schema of the whole and shares its tables, elements and ragged values.
Must not know: how Python values are walked, nor the compiler.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from batching.columns import Column, TableColumns, rows_of, take
from batching.compaction import compact_columns
from batching.gradients import derived_schema, float_leaves, with_leaves
from batching.keypath import PackingError
from batching.rebuilding import rebuild
from batching.schema import PackedSchema
from batching.validation import check_columns

__all__ = ["Packed", "PackedColumns"]

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, eq=False)
class PackedColumns:
    """The columns of the examples themselves and of each node table."""

    root: Column
    tables: tuple[TableColumns, ...] = ()


class Packed:
    """Examples in columns. `schema` and `columns` are all that there is; both are immutable.

    Built from given columns, it checks them: PackingError where they do not fit the schema.
    `complete` says that every node and element is reached from an example.
    """

    __slots__ = ("columns", "complete", "schema")

    def __init__(self, schema: PackedSchema, root: Column, tables: Sequence[TableColumns] = (), *,
                 complete: bool = False, checked: bool = False) -> None:
        if not checked:
            check_columns(schema, root, tables)
        self.schema = schema
        self.columns = PackedColumns(root, tuple(tables))
        self.complete = complete

    @property
    def root(self) -> Column:
        """The column of the examples themselves."""
        return self.columns.root

    @property
    def tables(self) -> tuple[TableColumns, ...]:
        """The columns of each node table."""
        return self.columns.tables

    def __len__(self) -> int:
        return rows_of(self.root)

    @overload
    def __getitem__(self, index: int | np.integer[Any]) -> Any: ...
    @overload
    def __getitem__(self, index: slice | Array | list[int] | list[bool]) -> Packed: ...
    def __getitem__(self, index: Any) -> Any:
        """One example, rebuilt; or with a slice, index array or mask a minibatch of the same schema, in O(batch).

        Raises IndexError for an index out of range.
        """
        if isinstance(index, (int, np.integer)) and not isinstance(index, (bool, np.bool_)):
            place = int(index)
            if not -len(self) <= place < len(self):
                raise IndexError(f"example {place} of {len(self)}")
            return self[np.asarray([place % len(self)])].examples()[0]
        if isinstance(index, slice):
            return self._rows(index)
        rows = np.asarray(index)
        if rows.ndim != 1 or rows.size and rows.dtype.kind not in "iub":
            raise IndexError(f"an index is an int, a slice, or an array [n] of ints or bools, not {index!r}")
        if rows.dtype.kind == "b":
            if len(rows) != len(self):
                raise IndexError(f"a mask of {len(rows)} for {len(self)} examples")
            rows = np.flatnonzero(rows)
        return self._rows(rows.astype(np.int64))

    def _rows(self, rows: slice | Array) -> Packed:
        return Packed(self.schema, take(self.root, rows), self.tables, checked=True)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.examples())

    def examples(self) -> list[Any]:
        """The examples as Python objects, made without `__init__`; nodes shared in an example are one object."""
        whole = self.compact()
        return rebuild(whole.schema, whole.root, whole.tables)

    def compact(self) -> Packed:
        """The same examples with only the nodes, elements and values that they reach."""
        if self.complete:
            return self
        root, tables = compact_columns(self.schema, self.root, self.tables)
        return Packed(self.schema, root, tables, complete=True, checked=True)

    def with_columns(self, root: Column, tables: Sequence[TableColumns]) -> Packed:
        """The same structure with other leaves.

        The column trees mirror this one's. A leaf may be replaced by one of another dtype, or by a `NoneColumn`, which
        makes its schema `NoneSchema`; containers and links stay. Raises PackingError where the columns do not fit.
        """
        if len(tables) != len(self.tables):
            raise PackingError("packed", f"{len(tables)} node tables for {len(self.tables)}")
        schema = derived_schema(self.schema, root, tables)
        if rows_of(root) != len(self):
            raise PackingError("packed.root", f"{rows_of(root)} rows for {len(self)} examples")
        return Packed(schema, root, tables, complete=self.complete)

    def float_leaves(self) -> list[tuple[str, Array]]:
        """Every column of floats with its name, in the order that `gradient_like` takes."""
        return float_leaves(self.schema, self.root, self.tables)

    def gradient_like(self, leaves: Sequence[Array | None]) -> Packed:
        """A gradient in the structure of this packed list.

        `leaves` replace the float columns in the order of `float_leaves`, each of its column's shape; None stands for
        no gradient. All other leaves (ints, bools, complex numbers, strings) become None; lists keep their lengths,
        links and tags stay, so that unpacking gives objects of the same classes, linked in the same way.
        """
        root, tables = with_leaves(self.schema, self.root, self.tables, leaves)
        return self.with_columns(root, tables)

    def __repr__(self) -> str:
        nodes = "".join(
            f", {len(columns)} nodes of {' | '.join(dict.fromkeys(cls.__name__ for cls, _ in table.classes))}"
            for table, columns in zip(self.schema.tables, self.tables, strict=True)
        )
        return f"Packed({len(self)} examples{nodes})"
