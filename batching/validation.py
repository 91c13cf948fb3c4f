"""Checks that columns fit a schema: dtypes, shapes, row counts, and that every offset and link is in range.

Invariant: columns that pass can be read without further checks of their own offsets and links. Placeholders are
checked only as far as reading them needs.
Must not know: Python objects, packing.
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
from batching.keypath import KeyPath, PackingError
from batching.schema import (
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
from batching.strings import text

__all__ = ["check_columns"]

Array = np.ndarray[Any, np.dtype[Any]]
_COLUMNS: dict[type, type] = {
    NumberSchema: NumberColumn, NoneSchema: NoneColumn, StringSchema: StringColumn, RecordSchema: RecordColumn,
    ListSchema: ListColumn, LinkSchema: LinkColumn, OptionalSchema: OptionalColumn, VariantSchema: VariantColumn,
}


def check_columns(schema: PackedSchema, root: Column, tables: Sequence[TableColumns]) -> None:
    """Raises PackingError, naming the column, where columns and schema do not belong together."""
    path = KeyPath("packed")
    if len(tables) != len(schema.tables):
        raise PackingError(path, f"{len(tables)} node tables for a schema of {len(schema.tables)}")
    sizes = [len(table) for table in tables]
    _check(schema.root, root, sizes, np.ones(rows_of(root), bool), path.attribute("root"))
    for number, (kind, table) in enumerate(zip(schema.tables, tables, strict=True)):
        here = path.attribute("tables").item(number)
        _number(table.tag, "int8", (), here.attribute("tag"))
        _range(table.tag, len(kind.classes), here.attribute("tag"))
        if len(table.fields) != len(kind.fields):
            raise PackingError(here, f"{len(table.fields)} columns for {len(kind.fields)} fields")
        for name, field, column in zip(kind.names, kind.fields, table.fields, strict=True):
            place = here.attribute(name) if isinstance(name, str) else here.item(name)
            if rows_of(column) != len(table):
                raise PackingError(place, f"{rows_of(column)} rows in a table of {len(table)}")
            has = np.asarray([name in names for _, names in kind.classes], bool)
            _check(field, column, sizes, has[table.tag], place)


def _check(schema: Schema, column: Any, sizes: list[int], live: Array, path: KeyPath) -> None:
    """Checks one column; `live` marks the rows that hold values and not placeholders."""
    wanted = _COLUMNS.get(type(schema))
    if isinstance(schema, ArraySchema):
        wanted = RaggedColumn if schema.ragged else ArrayColumn
    assert wanted is not None
    found: type = type(column)
    if found is not wanted:
        raise PackingError(path, f"a {found.__name__} where the schema needs a {wanted.__name__}")
    if isinstance(schema, NumberSchema):
        _number(column.values, schema.dtype, (), path)
    elif isinstance(schema, ArraySchema):
        _arrays(schema, column, path)
    elif isinstance(schema, StringSchema):
        _number(column.ids, "int64", (), path)
        if column.ids.size:
            _range(column.ids[[int(column.ids.argmin())]], 1 << 62, path)
            try:
                text(int(column.ids.max()))
            except IndexError:
                raise PackingError(path, "an id that no interned string has") from None
    elif isinstance(schema, RecordSchema):
        if len(column.fields) != len(schema.fields):
            raise PackingError(path, f"{len(column.fields)} columns for {len(schema.fields)} fields")
        for name, kind, part in zip(schema.names, schema.fields, column.fields, strict=True):
            _part(kind, part, column.n, sizes, live, path.item(name))
    elif isinstance(schema, ListSchema):
        _number(column.start, "int64", (), path)
        _number(column.length, "int64", (), path)
        _spans(column.start, column.length, rows_of(column.elements), path)
        used = np.zeros(rows_of(column.elements) + 1, np.int64)
        np.add.at(used, column.start[live], 1)
        np.add.at(used, (column.start + column.length)[live], -1)
        _check(schema.element, column.elements, sizes, np.cumsum(used)[:-1] > 0, path.anywhere())
    elif isinstance(schema, LinkSchema):
        _number(column.rows, "int64", (), path)
        _range(column.rows + 1, sizes[schema.table] + 1, path)
        if not schema.nullable and np.any(column.rows[live] < 0):
            raise PackingError(path, "a link to no node where the schema has no None")
    elif isinstance(schema, OptionalSchema):
        _number(column.present, "bool", (), path)
        _part(schema.inner, column.inner, len(column.present), sizes, live & column.present, path)
    elif isinstance(schema, VariantSchema):
        _number(column.tag, "int8", (), path)
        _range(column.tag, len(schema.alternatives), path)
        if len(column.alternatives) != len(schema.alternatives):
            raise PackingError(path, f"{len(column.alternatives)} columns for {len(schema.alternatives)} alternatives")
        for place, (kind, part) in enumerate(zip(schema.alternatives, column.alternatives, strict=True)):
            _part(kind, part, len(column.tag), sizes, live & (column.tag == place), path)


def _part(schema: Schema, column: Column, rows: int, sizes: list[int], live: Array, path: KeyPath) -> None:
    if rows_of(column) != rows:
        raise PackingError(path, f"{rows_of(column)} rows beside columns of {rows}")
    _check(schema, column, sizes, live, path)


def _arrays(schema: ArraySchema, column: Any, path: KeyPath) -> None:
    if not schema.ragged:
        _number(column.values, schema.dtype, tuple(size or 0 for size in schema.shape), path)
        return
    _number(column.values, schema.dtype, schema.trailing, path)
    _number(column.start, "int64", (), path)
    _number(column.dims, "int64", (schema.leading,), path)
    if len(column.dims) != len(column.start):
        raise PackingError(path, f"{len(column.dims)} rows of sizes beside {len(column.start)} offsets")
    if np.any(column.dims < 0):
        raise PackingError(path, "a negative size")
    for place, size in enumerate(schema.shape[:schema.leading]):
        if size is not None and np.any(column.dims[:, place] != size):
            raise PackingError(path, f"a size other than the static {size}")
    _spans(column.start, column.dims.prod(axis=1), len(column.values), path)


def _number(array: Array, dtype: str, shape: tuple[int, ...], path: KeyPath) -> None:
    if array.dtype.name != dtype or array.shape[1:] != shape or array.ndim != len(shape) + 1:
        wanted = ", ".join(["n", *map(str, shape)])
        raise PackingError(path, f"an array of dtype {array.dtype} and shape {array.shape} where the schema needs "
                                 f"dtype {dtype} and shape ({wanted})")


def _range(array: Array, end: int, path: KeyPath) -> None:
    if array.size and (array.min() < 0 or array.max() >= end):
        raise PackingError(path, f"a tag or link out of range (from {array.min()} to {array.max()}, {end} allowed)")


def _spans(start: Array, length: Array, total: int, path: KeyPath) -> None:
    if len(start) != len(length):
        raise PackingError(path, f"{len(start)} offsets beside {len(length)} lengths")
    if start.size and (start.min() < 0 or length.min() < 0 or np.any(length > total - start)):
        raise PackingError(path, f"an offset or length that reaches outside of the {total} rows")
