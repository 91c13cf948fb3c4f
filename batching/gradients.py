"""Replaces the leaves of columns: gradients have the structure of their arguments and other leaves.

Invariant: containers, links, tags and lengths are kept as they are; only leaves change.
Must not know: how gradients are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from batching.columns import (
    ArrayColumn,
    Column,
    ListColumn,
    NoneColumn,
    NumberColumn,
    OptionalColumn,
    RaggedColumn,
    RecordColumn,
    TableColumns,
    VariantColumn,
    rows_of,
)
from batching.keypath import KeyPath, PackingError
from batching.schema import (
    NUMPY_BOOL,
    ArraySchema,
    LinkSchema,
    ListSchema,
    NoneSchema,
    NumberSchema,
    OptionalSchema,
    PackedSchema,
    RecordSchema,
    Schema,
    StringSchema,
    VariantSchema,
)

__all__ = ["derived_schema", "float_leaves", "with_leaves"]

Array = np.ndarray[Any, np.dtype[Any]]


def derived_schema(schema: PackedSchema, root: Column, tables: Sequence[TableColumns]) -> PackedSchema:
    """The schema of columns that mirror those of `schema` but for the types of leaves."""
    kinds = [
        replace(kind, fields=tuple(_derive(field, part) for field, part in zip(kind.fields, table.fields, strict=True)))
        for kind, table in zip(schema.tables, tables, strict=True)
    ]
    return PackedSchema(_derive(schema.root, root), tuple(kinds), schema.aliased)


def _derive(schema: Schema, column: Column) -> Schema:
    if isinstance(column, NoneColumn):
        return NoneSchema()
    if isinstance(schema, NumberSchema) and isinstance(column, NumberColumn):
        name = column.values.dtype.name
        return schema if name == schema.dtype else NumberSchema(NUMPY_BOOL if name == "bool" else name)
    if isinstance(schema, ArraySchema) and isinstance(column, (ArrayColumn, RaggedColumn)):
        return replace(schema, dtype=column.values.dtype.name)
    if isinstance(schema, RecordSchema) and isinstance(column, RecordColumn):
        kinds = zip(schema.fields, column.fields, strict=True)
        return replace(schema, fields=tuple(_derive(kind, part) for kind, part in kinds))
    if isinstance(schema, ListSchema) and isinstance(column, ListColumn):
        return replace(schema, element=_derive(schema.element, column.elements))
    if isinstance(schema, OptionalSchema) and isinstance(column, OptionalColumn):
        return OptionalSchema(_derive(schema.inner, column.inner))
    if isinstance(schema, VariantSchema) and isinstance(column, VariantColumn):
        kinds = zip(schema.alternatives, column.alternatives, strict=True)
        return VariantSchema(tuple(_derive(kind, part) for kind, part in kinds))
    return schema


def float_leaves(schema: PackedSchema, root: Column, tables: Sequence[TableColumns]) -> list[tuple[str, Array]]:
    """The name and array of every column of floats: of the root, then of each table."""
    found: list[tuple[str, Array]] = []

    def note(values: Array, path: KeyPath) -> Array:
        found.append((str(path), values))
        return values

    _replace_all(schema, root, tables, note)
    return found


def with_leaves(
    schema: PackedSchema, root: Column, tables: Sequence[TableColumns], leaves: Sequence[Array | None],
) -> tuple[Column, tuple[TableColumns, ...]]:
    """The columns with the float leaves replaced, in order, and all other leaves None.

    Raises PackingError for leaves of another number or shape.
    """
    given: Iterator[Array | None] = iter(leaves)
    count = 0

    def put(values: Array, path: KeyPath) -> Array | None:
        nonlocal count
        count += 1
        leaf = next(given, None)
        if leaf is not None and leaf.shape != values.shape:
            raise PackingError(path, f"a leaf of shape {leaf.shape} for a column of shape {values.shape}")
        return leaf

    replaced = _replace_all(schema, root, tables, put)
    if count != len(leaves):
        raise PackingError("packed", f"{len(leaves)} leaves for {count} columns of floats")
    return replaced


Replace = Callable[[Array, KeyPath], "Array | None"]


def _replace_all(
    schema: PackedSchema, root: Column, tables: Sequence[TableColumns], put: Replace,
) -> tuple[Column, tuple[TableColumns, ...]]:
    new_root = _replace(schema.root, root, put, KeyPath("root"))
    new_tables = []
    for number, (kind, table) in enumerate(zip(schema.tables, tables, strict=True)):
        path = KeyPath(f"tables[{number}]")
        fields = [
            _replace(field, part, put, path.attribute(str(name)))
            for name, field, part in zip(kind.names, kind.fields, table.fields, strict=True)
        ]
        new_tables.append(TableColumns(table.tag, tuple(fields)))
    return new_root, tuple(new_tables)


def _replace(schema: Schema, column: Any, put: Replace, path: KeyPath) -> Column:
    if isinstance(schema, (NumberSchema, ArraySchema)):
        leaf = put(column.values, path) if np.dtype(schema.dtype).kind == "f" else None
        return NoneColumn(rows_of(column)) if leaf is None else replace(column, values=leaf)
    if isinstance(schema, (StringSchema, NoneSchema)):
        return NoneColumn(rows_of(column))
    if isinstance(schema, RecordSchema):
        parts = [
            _replace(kind, part, put, path.item(name))
            for name, kind, part in zip(schema.names, schema.fields, column.fields, strict=True)
        ]
        return RecordColumn(tuple(parts), column.n)
    if isinstance(schema, ListSchema):
        return replace(column, elements=_replace(schema.element, column.elements, put, path.anywhere()))
    if isinstance(schema, OptionalSchema):
        return replace(column, inner=_replace(schema.inner, column.inner, put, path))
    if isinstance(schema, VariantSchema):
        kinds = zip(schema.alternatives, column.alternatives, strict=True)
        return replace(column, alternatives=tuple(_replace(kind, part, put, path) for kind, part in kinds))
    assert isinstance(schema, LinkSchema)
    link: Column = column
    return link
