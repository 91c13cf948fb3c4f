"""The arguments of a call, packed: one row per example for mapped ones, one row in all for shared ones.

The invariant: a mapped argument is structure (tuples, dictionaries, dataclasses, NamedTuples) down to the first list,
array or packed value on each path, which carries the batch.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from batching import Packed, PackingError, Ragged, pack
from batching.columns import ArrayColumn, ListColumn, NumberColumn, RaggedColumn, RecordColumn, TableColumns, rows_of
from batching.schema import (
    ArraySchema,
    LinkSchema,
    ListSchema,
    NumberSchema,
    OptionalSchema,
    PackedSchema,
    RecordSchema,
    Schema,
    TableSchema,
    VariantSchema,
)
from batching.shapes import ARRAYS
from spmd.compiler.signature.results import parts_of
from spmd.errors import BatchError, UnsupportedType


def packed_shared(value: Any, name: str, keep: bool = False) -> Packed:
    """An argument that all examples share, as one packed row."""
    if isinstance(value, Packed):  # a list of examples, seen as one value
        return _as_one_list(value)
    if isinstance(value, Ragged):
        value = value.to_list()
    return _pack([value], name, keep)


def has_rows(schema: PackedSchema) -> bool:
    """Whether there are lists or objects, whose data stand in tables."""
    stack: list[Any] = [schema.root]
    while stack:
        part = stack.pop()
        if isinstance(part, (ListSchema, LinkSchema)):
            return True
        stack += [*getattr(part, "fields", ()), *getattr(part, "alternatives", ())]
        stack += [part.inner] if isinstance(part, OptionalSchema) else []
    return False


def copies(value: Any, name: str, count: int) -> Packed:
    """A shared argument, packed once for each example: packing severs one example from the next."""
    plain = value.examples() if isinstance(value, Packed) else value.to_list() if isinstance(value, Ragged) else value
    return _pack([plain] * count, name)


def _as_one_list(examples: Packed) -> Packed:
    """A packed list as a single row that holds the list."""
    root = examples.root
    start, length = np.zeros(1, np.int64), np.asarray([rows_of(root)], np.int64)
    schema = PackedSchema(ListSchema(examples.schema.root), examples.schema.tables)
    return Packed(schema, ListColumn(start, length, root), examples.tables, checked=True)


def _pack(examples: Sequence[Any], name: str, keep: bool = True) -> Packed:
    try:
        return pack(examples, name=name, copy=keep)
    except PackingError as problem:
        raise UnsupportedType(str(problem)) from None


def packed_mapped(value: Any, name: str, axis: int, keep: bool = False) -> Packed:
    """An argument with one entry for each example: structure down to the first list, array or packed value."""
    if isinstance(value, Packed):
        return value
    if isinstance(value, Ragged):
        return _from_ragged(value, keep)
    if isinstance(value, np.ndarray):
        if type(value) not in ARRAYS or not value.dtype.isnative:
            _pack([value], name)  # says why it cannot be packed
        return _from_array(np.array(value) if keep else value, name, axis)
    if isinstance(value, (list, collections.deque)):
        return _pack(list(value), name)
    parts = parts_of(value)
    if parts is None:
        raise BatchError(
            f"argument '{name}' is mapped over, but {type(value).__name__} {_short(value)} has no examples in it",
            hint=f"give a list or array with one entry for each example, or share it: in_axes={{'{name}': None}}.",
        )
    kind, names, items = parts
    packs = [packed_mapped(item, f"{name}.{key}" if kind != "dict" else f"{name}[{key!r}]", axis, keep)
             for key, item in zip(names, items)]
    if not packs:
        raise BatchError(f"argument '{name}' is mapped over, but is empty")
    sizes = {len(p) for p in packs}
    if len(sizes) > 1:
        raise BatchError.of_lengths([(f"{name}.{key}", len(p)) for key, p in zip(names, packs)])
    return _joined(kind, type(value), names, packs)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def _joined(kind: str, cls: type, names: tuple[Any, ...], packs: list[Packed]) -> Packed:
    """Parts of equal length as one record; their node tables are numbered on."""
    schemas, columns = [], []
    tables: list[TableSchema] = []
    data: list[TableColumns] = []
    for part in packs:
        shift = len(tables)
        schemas.append(_renumbered(part.schema.root, shift))
        columns.append(part.root)
        for table in part.schema.tables:
            fields = tuple(_renumbered(f, shift) for f in table.fields)
            tables.append(dataclasses.replace(table, fields=fields))
        data += part.tables
    schema = PackedSchema(RecordSchema(kind, cls, names, tuple(schemas)), tuple(tables))
    return Packed(schema, RecordColumn(tuple(columns), len(packs[0])), data, checked=True)


def _renumbered(schema: Schema, shift: int) -> Schema:
    """The schema with table numbers moved up."""
    if isinstance(schema, LinkSchema):
        return dataclasses.replace(schema, table=schema.table + shift)
    if isinstance(schema, RecordSchema):
        return dataclasses.replace(schema, fields=tuple(_renumbered(f, shift) for f in schema.fields))
    if isinstance(schema, ListSchema):
        return dataclasses.replace(schema, element=_renumbered(schema.element, shift))
    if isinstance(schema, OptionalSchema):
        return OptionalSchema(_renumbered(schema.inner, shift))
    if isinstance(schema, VariantSchema):
        return VariantSchema(tuple(_renumbered(a, shift) for a in schema.alternatives))
    return schema


def _from_array(array: np.ndarray[Any, Any], name: str, axis: int) -> Packed:
    if not array.ndim:
        raise BatchError(f"argument '{name}' is mapped over, but is an array without axes")
    if not -array.ndim <= axis < array.ndim:
        raise BatchError(f"argument '{name}' has {array.ndim} axes; axis {axis} cannot be mapped over")
    if array.dtype.kind not in "fiubc":
        return _pack(list(array), name)
    rows = np.moveaxis(array, axis, 0) if axis else array
    if rows.ndim == 1:
        kind = "bool_" if rows.dtype == bool else str(rows.dtype)
        return Packed(PackedSchema(NumberSchema(kind)), NumberColumn(rows), checked=True)
    schema = PackedSchema(ArraySchema(str(rows.dtype), rows.shape[1:]))
    return Packed(schema, ArrayColumn(rows), checked=True)


def _from_ragged(value: Ragged, keep: bool) -> Packed:
    k = value.dims.shape[1]
    schema = PackedSchema(ArraySchema(str(value.dtype), (None,) * k + value.values.shape[1:]))
    parts = value.values, value.start, value.dims
    if keep:
        parts = np.array(parts[0]), np.array(parts[1]), np.array(parts[2])
    return Packed(schema, RaggedColumn(*parts), checked=True)
