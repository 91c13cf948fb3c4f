"""Reduces columns to what their examples reach: rows of node tables, list elements and ragged values.

Invariant: the examples stay the same and keep their order; rows of tables keep theirs.
Must not know: Python objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from batching.columns import (
    ArrayColumn,
    Column,
    LinkColumn,
    ListColumn,
    NoneColumn,
    NumberColumn,
    OptionalColumn,
    RaggedColumn,
    RecordColumn,
    StringColumn,
    TableColumns,
    VariantColumn,
    rows_of,
)
from batching.schema import (
    LinkSchema,
    ListSchema,
    OptionalSchema,
    PackedSchema,
    RecordSchema,
    Schema,
    VariantSchema,
)

__all__ = ["compact_columns"]

Index = np.ndarray[Any, np.dtype[np.int64]]


def compact_columns(
    schema: PackedSchema, root: Column, tables: Sequence[TableColumns],
) -> tuple[Column, tuple[TableColumns, ...]]:
    """The columns without the nodes, elements and values that no example reaches."""
    reached = _reach(schema, root, tables)
    places = [np.cumsum(mask) - 1 for mask in reached]
    rows = [np.flatnonzero(mask) for mask in reached]
    small = _gather(schema.root, root, np.arange(rows_of(root)), places)
    kept = []
    for table, kind, index in zip(tables, schema.tables, rows, strict=True):
        fields = [_gather(part, column, index, places) for part, column in zip(kind.fields, table.fields, strict=True)]
        kept.append(TableColumns(table.tag[index], tuple(fields)))
    return small, tuple(kept)


def spans(start: Index, length: Index) -> Index:
    """The rows of all spans, one after the other."""
    offset = np.cumsum(length) - length
    return np.arange(int(length.sum())) + np.repeat(start - offset, length)


def _reach(schema: PackedSchema, root: Column, tables: Sequence[TableColumns]) -> list[np.ndarray[Any, Any]]:
    """Which rows of each table the examples reach, found one level of links at a time."""
    reached = [np.zeros(len(table), bool) for table in tables]
    found: list[tuple[int, Index]] = []
    _links(schema.root, root, np.arange(rows_of(root)), found)
    linking = [[_has_links(kind) for kind in table.fields] for table in schema.tables]
    while found:
        fresh: dict[int, list[Index]] = {}
        for table, rows in found:
            new = rows[~reached[table][rows]]
            if len(new):
                new = np.unique(new) if len(new) > 1 else new
                reached[table][new] = True
                fresh.setdefault(table, []).append(new)
        found = []
        for table, groups in fresh.items():
            for rows in groups:
                for place, kind in enumerate(schema.tables[table].fields):
                    if linking[table][place]:
                        _links(kind, tables[table].fields[place], rows, found)
    return reached


def _has_links(schema: Schema) -> bool:
    if isinstance(schema, RecordSchema):
        return any(map(_has_links, schema.fields))
    if isinstance(schema, ListSchema):
        return _has_links(schema.element)
    if isinstance(schema, OptionalSchema):
        return _has_links(schema.inner)
    if isinstance(schema, VariantSchema):
        return any(map(_has_links, schema.alternatives))
    return isinstance(schema, LinkSchema)


def _links(schema: Schema, column: Column, rows: Index, found: list[tuple[int, Index]]) -> None:
    """Adds the nodes that some rows of a column link to."""
    if isinstance(column, LinkColumn):
        assert isinstance(schema, LinkSchema)
        targets = column.rows[rows]
        found.append((schema.table, targets[targets >= 0]))
    elif isinstance(column, RecordColumn):
        assert isinstance(schema, RecordSchema)
        for kind, part in zip(schema.fields, column.fields, strict=True):
            _links(kind, part, rows, found)
    elif isinstance(column, VariantColumn):
        assert isinstance(schema, VariantSchema)
        for kind, part in zip(schema.alternatives, column.alternatives, strict=True):
            _links(kind, part, rows, found)
    elif isinstance(column, OptionalColumn):
        assert isinstance(schema, OptionalSchema)
        _links(schema.inner, column.inner, rows, found)
    elif isinstance(column, ListColumn):
        assert isinstance(schema, ListSchema)
        if _has_links(schema.element):
            _links(schema.element, column.elements, spans(column.start[rows], column.length[rows]), found)


def _gather(schema: Schema, column: Column, rows: Index, places: list[Index]) -> Column:
    """The given rows of a column, with the elements and values of these rows only; links lead to their new places."""
    if isinstance(column, NumberColumn):
        return NumberColumn(column.values[rows])
    if isinstance(column, ArrayColumn):
        return ArrayColumn(column.values[rows])
    if isinstance(column, NoneColumn):
        return NoneColumn(len(rows))
    if isinstance(column, StringColumn):
        return StringColumn(column.ids[rows])
    if isinstance(column, RaggedColumn):
        dims = column.dims[rows]
        length = dims.prod(axis=1)
        return RaggedColumn(column.values[spans(column.start[rows], length)], np.cumsum(length) - length, dims)
    if isinstance(column, LinkColumn):
        assert isinstance(schema, LinkSchema)
        # Entry -1 stands for None and stays.
        moved = np.append(places[schema.table], -1)
        return LinkColumn(moved[column.rows[rows]])
    if isinstance(column, ListColumn):
        assert isinstance(schema, ListSchema)
        length = column.length[rows]
        elements = _gather(schema.element, column.elements, spans(column.start[rows], length), places)
        return ListColumn(np.cumsum(length) - length, length, elements)
    if isinstance(column, RecordColumn):
        assert isinstance(schema, RecordSchema)
        kinds = zip(schema.fields, column.fields, strict=True)
        return RecordColumn(tuple(_gather(kind, part, rows, places) for kind, part in kinds), len(rows))
    if isinstance(column, OptionalColumn):
        assert isinstance(schema, OptionalSchema)
        return OptionalColumn(column.present[rows], _gather(schema.inner, column.inner, rows, places))
    assert isinstance(schema, VariantSchema)
    kinds = zip(schema.alternatives, column.alternatives, strict=True)
    return VariantColumn(column.tag[rows], tuple(_gather(kind, part, rows, places) for kind, part in kinds))
