"""Arguments of a call as the compiler sees them: structure over leaves, and the columns that hold the leaves.

The only place that meets `batching`. The invariant: `abstract` (from a schema) and `columns` (from the packed data)
walk alike, so leaf k of the one has its data in entry k of the other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from batching import Packed, PackingError, Ragged, pack
from batching.columns import (
    ArrayColumn, Column, LinkColumn, ListColumn, NoneColumn, NumberColumn, OptionalColumn, RaggedColumn, RecordColumn,
    StringColumn, TableColumns, VariantColumn, rows_of,
)
from batching.schema import (
    ArraySchema, LinkSchema, ListSchema, NoneSchema, NumberSchema, OptionalSchema, PackedSchema, RecordSchema, Schema,
    StringSchema, TableSchema, VariantSchema,
)
from spmd.errors import BatchError, StructureError
from spmd.frontend.names import NodeLayout
from spmd.frontend.values import NONE, TAG, Abstract, Choice, Leaf, Node, Run, Struct
from spmd.ir.core import Table, Value
from spmd.ir.types import TEXT, Num, Ref, Seq
from spmd.runtime.frames import TableData
from spmd.runtime.ragged import Ragged as RaggedRows


# ------------------------------------------------------------------------------------------------ from the caller
def packed_shared(value: Any, name: str) -> Packed:
    """An argument that all examples share, as one packed row."""
    if isinstance(value, Packed):  # a list of examples, seen as one value
        return _as_one_list(value)
    if isinstance(value, Ragged):
        value = value.to_list()
    return _pack([value], name)


def _as_one_list(examples: Packed) -> Packed:
    """A packed list as a single row that holds the list."""
    root = examples.root
    start, length = np.zeros(1, np.int64), np.asarray([rows_of(root)], np.int64)
    schema = PackedSchema(ListSchema(examples.schema.root), examples.schema.tables)
    return Packed(schema, ListColumn(start, length, root), examples.tables, checked=True)


def _pack(examples: Sequence[Any], name: str) -> Packed:
    try:
        return pack(examples, name=name)
    except PackingError as problem:
        raise StructureError(str(problem)) from None


def packed_mapped(value: Any, name: str, axis: int) -> Packed:
    """An argument with one entry for each example: structure down to the first list, array or packed value."""
    if isinstance(value, Packed):
        return value
    if isinstance(value, Ragged):
        return _from_ragged(value)
    if isinstance(value, np.ndarray):
        return _from_array(value, name, axis)
    if isinstance(value, list) or type(value).__name__ == "deque":
        return _pack(list(value), name)
    parts = _structure(value)
    if parts is None:
        raise BatchError(
            f"argument '{name}' is mapped over, but {type(value).__name__} {_short(value)} has no examples in it",
            hint=f"give a list or array with one entry for each example, or share it: in_axes={{'{name}': None}}.",
        )
    kind, names, items = parts
    packs = [packed_mapped(item, f"{name}.{key}" if kind != "dict" else f"{name}[{key!r}]", axis)
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


def _structure(value: Any) -> tuple[str, tuple[Any, ...], tuple[Any, ...]] | None:
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return "namedtuple", tuple(value._fields), tuple(value)
    if isinstance(value, tuple):
        return "tuple", tuple(map(str, range(len(value)))), tuple(value)
    if isinstance(value, dict):
        return "dict", tuple(value), tuple(value.values())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = tuple(f.name for f in dataclasses.fields(value))
        return "dataclass", names, tuple(getattr(value, n) for n in names)
    return None


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


def _from_ragged(value: Ragged) -> Packed:
    k = value.dims.shape[1]
    schema = PackedSchema(ArraySchema(str(value.dtype), (None,) * k + value.values.shape[1:]))
    return Packed(schema, RaggedColumn(value.values, value.start, value.dims), checked=True)


# ------------------------------------------------------------------------------------------------ structure
@dataclass(eq=False)
class Shapes:
    """Turns schemas into structure; the tables that they mention are added to `tables` and `layouts`."""

    tables: dict[str, Table]
    layouts: dict[str, NodeLayout]

    def argument(self, name: str, schema: PackedSchema, unique: bool) -> Abstract:
        """The structure of one argument; placeholders for leaves. Table names begin with the argument's.

        `unique`: each table row belongs to one example (mapped arguments).
        """
        self._prefix, self._schema, self._unique, self._count = name, schema, unique, 0
        for number, table in enumerate(schema.tables):
            self._nodes(number, table)
        return self.abstract(schema.root)

    def _nodes(self, number: int, schema: TableSchema) -> None:
        name = node_table(self._prefix, number)
        fields: list[Any] = []
        labels: list[str] = []
        places: dict[Any, tuple[Abstract, int]] = {}
        several = len(schema.classes) > 1
        if several:
            fields.append(TAG)
            labels.append("tag")
        for own, field in zip(schema.names, schema.fields):
            thing = self.abstract(field)
            places[own] = (thing, len(fields))
            leaves = [v.type for v in thing.leaves()]
            fields += leaves
            labels += [f"{own}.{k}" if len(leaves) > 1 else str(own) for k in range(len(leaves))]
        self.tables[name] = Table(name, tuple(fields), tuple(labels), self._unique, schema.shared)
        self.layouts[name] = NodeLayout(name, schema.classes, places, 0 if several else None)

    def abstract(self, schema: Schema) -> Abstract:
        """The structure that a schema describes."""
        if isinstance(schema, NumberSchema):
            return Leaf(Value(Num(schema.dtype, (), schema.python)))
        if isinstance(schema, ArraySchema):
            return Leaf(Value(Num(schema.dtype, schema.shape)))
        if isinstance(schema, NoneSchema):
            return NONE
        if isinstance(schema, StringSchema):
            return Leaf(Value(TEXT))
        if isinstance(schema, LinkSchema):
            return Node(Value(Ref(node_table(self._prefix, schema.table), schema.nullable)))
        if isinstance(schema, RecordSchema):
            items = tuple(self.abstract(f) for f in schema.fields)
            names = tuple(range(len(items))) if schema.kind == "tuple" else schema.names
            return Struct(schema.kind, schema.cls, names, items)
        if isinstance(schema, ListSchema):
            return self._list(schema)
        if isinstance(schema, OptionalSchema):
            return Choice(Value(TAG), (NONE, self.abstract(schema.inner)))
        assert isinstance(schema, VariantSchema)
        return Choice(Value(TAG), tuple(self.abstract(a) for a in schema.alternatives))

    def _list(self, schema: ListSchema) -> Run:
        name = element_table(self._prefix, self._count)
        self._count += 1
        item = self.abstract(schema.element)
        types = tuple(v.type for v in item.leaves())
        labels = tuple(f"item.{k}" for k in range(len(types)))
        self.tables[name] = Table(name, types, labels, self._unique)
        return Run(Value(Seq(name)), item, tuple(range(len(types))), schema.kind)


def node_table(argument: str, number: int) -> str:
    return f"{argument}/nodes{number}"


def element_table(argument: str, number: int) -> str:
    return f"{argument}/items{number}"


# ------------------------------------------------------------------------------------------------ data
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
            yield column.present.astype(np.int8)
            yield from self.walk(schema.inner, column.inner)
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
