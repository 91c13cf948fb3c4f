"""Packed arguments as row values of leaves and data of tables.

The invariant: leaves and tables come in the order in which `structure.Shapes` describes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from batching import Packed
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
    VariantColumn,
)
from batching.schema import ListSchema, OptionalSchema, RecordSchema, Schema, VariantSchema
from spmd.compiler.signature.structure import element_table, node_table
from spmd.runtime.frames import TableData
from spmd.runtime.ragged import Ragged as RaggedRows


class Columns:
    """The row values of one argument's leaves, and its tables' data, in the order that Shapes gives them."""

    def __init__(self, name: str, packed: Packed) -> None:
        self.name = name
        self.tables: dict[str, TableData] = {}
        self._count = 0
        for number, (schema, data) in enumerate(zip(packed.schema.tables, packed.tables)):
            fields: list[Any] = [data.tag] if len(schema.classes) > 1 else []
            for field, column in zip(schema.fields, data.fields):
                fields += list(self.walk(field, column))
            table = node_table(name, number)
            self.tables[table] = TableData(table, fields)
        self.leaves = list(self.walk(packed.schema.root, packed.root))

    def walk(self, schema: Schema, column: Column) -> Iterator[Any]:
        """Row values of the leaves of a column."""
        if isinstance(column, (NumberColumn, ArrayColumn)):
            yield column.values
        elif isinstance(column, RaggedColumn):
            yield RaggedRows(column.values, column.start, column.dims)
        elif isinstance(column, StringColumn):
            yield column.ids
        elif isinstance(column, LinkColumn):
            yield column.rows
        elif isinstance(column, RecordColumn):
            assert isinstance(schema, RecordSchema)
            for part, field in zip(schema.fields, column.fields):
                yield from self.walk(part, field)
        elif isinstance(column, ListColumn):
            assert isinstance(schema, ListSchema)
            name = element_table(self.name, self._count)
            self._count += 1
            self.tables[name] = TableData(name, list(self.walk(schema.element, column.elements)))
            yield column.start, column.length
        elif isinstance(column, OptionalColumn):
            assert isinstance(schema, OptionalSchema)
            leaves = list(self.walk(schema.inner, column.inner))
            if isinstance(column.inner, VariantColumn):  # one tag for both: 0 is None
                yield np.where(column.present, leaves.pop(0) + 1, 0).astype(np.int8)
            else:
                yield column.present.astype(np.int8)
            yield from leaves
        elif isinstance(column, VariantColumn):
            assert isinstance(schema, VariantSchema)
            yield column.tag
            for part, inner in zip(schema.alternatives, column.alternatives):
                yield from self.walk(part, inner)
        else:
            assert isinstance(column, NoneColumn)


def uniform(value: Any) -> Any:
    """Row 0 of a row value: what one example sees."""
    if isinstance(value, tuple):
        return tuple(part[0] for part in value)
    if isinstance(value, RaggedRows):
        return value.one(0)
    return value[0]
