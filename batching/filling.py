"""Turns the values of each site into the columns that its schema asks for.

Invariant: a column is made only of values that fit its schema, else Offence; values go to NumPy in bulk, one call per
site and type.
Must not know: how the schema was found; it may be inferred from these values or be that of another list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
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
)
from batching.forest import Links, NodeTable
from batching.inference import Survey, owners_at
from batching.schema import (
    ArraySchema,
    LinkSchema,
    ListSchema,
    NoneSchema,
    NumberSchema,
    OptionalSchema,
    RecordSchema,
    Schema,
    StringSchema,
    TableSchema,
    VariantSchema,
)
from batching.shapes import Offence, type_names
from batching.sites import Alternative, Site
from batching.strings import intern_all

__all__ = ["Filler", "blank"]

Index = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(eq=False)
class Filler:
    """Fills the columns of one survey. `owners` lists the owner of each table of the schema."""

    taken: Survey
    owners: list[object]
    copy: bool = True
    links: Links = field(default_factory=Links)
    arrays: list[np.ndarray[Any, Any]] = field(default_factory=list)
    array_owners: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.row_of = np.zeros(len(self.taken.nodes.objects), np.int64)
        for table in self.taken.tables.values():
            self.row_of[table.numbers] = np.arange(len(table.numbers))

    def root(self, schema: Schema) -> Column:
        """The column of the examples themselves."""
        return self.column(self.taken.root, schema, np.full(len(self.taken.root.values), -1, np.int64))

    def table(self, table: NodeTable, schema: TableSchema) -> TableColumns:
        """The columns of one node table."""
        rows = len(table.numbers)
        columns = []
        for site, having, kind in zip(table.sites, table.having, schema.fields, strict=True):
            numbers = table.numbers if having is None else table.numbers[having]
            column = self.column(site, kind, numbers)
            columns.append(column if having is None else spread(column, kind, having, rows))
        return TableColumns(table.tag.astype(np.int8), tuple(columns))

    def column(self, site: Site, schema: Schema, sources: Index) -> Column:
        """The column of a site; `sources` are the nodes that hold its rows, -1 for an example itself."""
        rows = len(site.values)
        inner = schema.inner if isinstance(schema, OptionalSchema) else schema
        wanted = inner.alternatives if isinstance(inner, VariantSchema) else (inner,)
        if site.nullable and inner is schema and not isinstance(schema, NoneSchema):
            if not (isinstance(schema, LinkSchema) and schema.nullable):
                absent = next(row for row, value in enumerate(site.values) if value is None)
                raise misfit(site, absent, schema)
        parts: list[Alternative | None] = [None] * len(wanted)
        for part in site.alternatives:
            fitting = [place for place, kind in enumerate(wanted) if self.accepts(kind, part, site)]
            if not fitting:
                raise misfit(site, 0 if part.index is None else int(part.index[0]), schema)
            parts[fitting[0]] = part
        columns = []
        for kind, chosen in zip(wanted, parts, strict=True):
            if chosen is None:
                columns.append(blank(kind, rows))
                continue
            held = sources if chosen.index is None else sources[chosen.index]
            column = self.part(site, chosen, kind, held)
            columns.append(column if chosen.index is None else spread(column, kind, chosen.index, rows))
        column = columns[0]
        if isinstance(inner, VariantSchema):
            column = VariantColumn(_tags(parts, rows), tuple(columns))
        if inner is not schema:
            present = np.zeros(rows, bool)
            for chosen in site.alternatives:
                present[slice(None) if chosen.index is None else chosen.index] = True
            column = OptionalColumn(present, column)
        return column

    def accepts(self, schema: Schema, part: Alternative, site: Site) -> bool:
        """Whether values of this alternative can stand in a column of this schema, as far as their type tells."""
        what, *rest = part.key
        if isinstance(schema, NumberSchema):
            return what == "number" and rest == [schema.kind]
        if isinstance(schema, StringSchema):
            return what == "string"
        if isinstance(schema, ArraySchema):
            return what == "array" and rest == [schema.dtype, len(schema.shape)]
        if isinstance(schema, ListSchema):
            return what == "list" and rest == [schema.kind]
        if isinstance(schema, RecordSchema):
            return what == "record" and rest == [schema.kind, schema.cls, schema.names]
        if isinstance(schema, LinkSchema):
            owners = {self.taken.decisions.table(owner) for owner in owners_at(site, part)} if what == "link" else set()
            return owners == {self.owners[schema.table]}
        return False

    def part(self, site: Site, part: Alternative, schema: Schema, sources: Index) -> Column:
        """The column of one alternative, for its own rows only."""
        if isinstance(schema, NumberSchema):
            return NumberColumn(numbers(part.values, schema))
        if isinstance(schema, StringSchema):
            return StringColumn(np.asarray(intern_all(part.values), np.int64))
        if isinstance(schema, ArraySchema):
            owners = site.owners if part.index is None else site.owners[part.index]
            self.arrays.extend(part.values)
            self.array_owners.extend(owners.tolist())
            return arrays(site, part, schema, self.copy)
        if isinstance(schema, ListSchema):
            length = np.asarray(part.lengths, np.int64)
            elements = self.column(part.children[0], schema.element, np.repeat(sources, length))
            return ListColumn(np.cumsum(length) - length, length, elements)
        if isinstance(schema, RecordSchema):
            fields = [
                self.column(child, kind, sources) for child, kind in zip(part.children, schema.fields, strict=True)
            ]
            return RecordColumn(tuple(fields), len(part.values))
        owners = site.owners if part.index is None else site.owners[part.index]
        targets = np.asarray(self.taken.nodes.numbers_of(part.values, owners), np.int64)
        self.links.add(sources, targets)
        return LinkColumn(self.row_of[targets])


def _tags(parts: Sequence[Alternative | None], rows: int) -> np.ndarray[Any, np.dtype[np.int8]]:
    tag = np.zeros(rows, np.int8)
    for place, part in enumerate(parts):
        if part is not None:
            tag[slice(None) if part.index is None else part.index] = place
    return tag


def numbers(values: Sequence[Any], schema: NumberSchema) -> np.ndarray[Any, Any]:
    """Numbers as one array [n]. Raises Offence for a Python int that 64 bits cannot hold."""
    try:
        return np.array(values, dtype=schema.dtype)
    except OverflowError:
        limit = 1 << 63
        wide = next(value for value in values if not -limit <= value < limit)
        raise Offence(wide, f"the integer {wide} does not fit in 64 bits") from None


def arrays(site: Site, part: Alternative, schema: ArraySchema, copy: bool) -> Column:
    """Arrays of one dtype and rank. Raises Offence where a size differs from the schema's."""
    values = part.values
    shapes = [value.shape for value in values]
    for shape in set(shapes):
        if any(wanted is not None and size != wanted for size, wanted in zip(shape, schema.shape, strict=True)):
            row = shapes.index(shape)
            raise misfit(site, row if part.index is None else int(part.index[row]), schema)
    if not schema.ragged:
        if not copy and len(values) == 1 and values[0].flags.c_contiguous:
            return ArrayColumn(values[0][None])
        # Into an array of our own: NumPy would keep a Fortran order that all examples have.
        stacked = np.empty((len(values), *(size for size in schema.shape if size is not None)), schema.dtype)
        return ArrayColumn(np.stack(values, out=stacked) if len(values) else stacked)
    leading, trailing = schema.leading, schema.trailing
    dims = np.asarray(shapes, np.int64).reshape(len(values), len(schema.shape))[:, :leading].copy()
    rows = dims.prod(axis=1)
    if len(schema.shape) == 1:
        flat: Sequence[np.ndarray[Any, Any]] = values
    else:
        flat = [value.reshape(count, *trailing) for value, count in zip(values, rows.tolist(), strict=True)]
    joined = np.empty((int(rows.sum()), *trailing), schema.dtype)
    if len(flat):
        np.concatenate(flat, out=joined)
    return RaggedColumn(joined, np.cumsum(rows) - rows, dims)


def misfit(site: Site, row: int, schema: Schema) -> Offence:
    """The refusal of a value that does not fit the schema to follow."""
    value = site.values[row]
    found = f"an array of dtype {value.dtype} and shape {value.shape}" if isinstance(value, np.ndarray) else (
        "None" if value is None else f"a value of type {type_names([value])}")
    return Offence(value, f"{found} does not fit the schema to follow, which has {schema} here",
                   place_of(site, row))


def place_of(site: Site, row: int) -> str:
    """Where a value stands: exactly if no node is in between, else its example and its node's field."""
    path, example = site.path, f"examples[{int(site.owners[row])}]"
    return example + path if not path or path[0] in ".[" else f"{example}, {path}"


def blank(schema: Schema, rows: int) -> Column:
    """A column of placeholders."""
    zero = np.zeros(rows, np.int64)
    if isinstance(schema, NumberSchema):
        return NumberColumn(np.zeros(rows, schema.dtype))
    if isinstance(schema, NoneSchema):
        return NoneColumn(rows)
    if isinstance(schema, StringSchema):
        return StringColumn(zero)
    if isinstance(schema, ArraySchema):
        if not schema.ragged:
            return ArrayColumn(np.zeros((rows, *(size for size in schema.shape if size is not None)), schema.dtype))
        return RaggedColumn(np.zeros((0, *schema.trailing), schema.dtype), zero, _blank_dims(schema, rows))
    if isinstance(schema, RecordSchema):
        return RecordColumn(tuple(blank(kind, rows) for kind in schema.fields), rows)
    if isinstance(schema, ListSchema):
        return ListColumn(zero, zero, blank(schema.element, 0))
    if isinstance(schema, LinkSchema):
        return LinkColumn(np.full(rows, -1, np.int64))
    if isinstance(schema, OptionalSchema):
        return OptionalColumn(np.zeros(rows, bool), blank(schema.inner, rows))
    return VariantColumn(np.zeros(rows, np.int8), tuple(blank(kind, rows) for kind in schema.alternatives))


def _blank_dims(schema: ArraySchema, rows: int) -> Index:
    sizes = [size or 0 for size in schema.shape[:schema.leading]]
    return np.tile(np.asarray(sizes, np.int64), (rows, 1))


def spread(column: Column, schema: Schema, index: Index, rows: int) -> Column:
    """The column with its rows moved to the places `index` among `rows` rows, placeholders elsewhere."""
    def move(values: np.ndarray[Any, Any], fill: int = 0) -> np.ndarray[Any, Any]:
        moved = np.full((rows, *values.shape[1:]), fill, values.dtype)
        moved[index] = values
        return moved

    if isinstance(column, NumberColumn):
        return NumberColumn(move(column.values))
    if isinstance(column, ArrayColumn):
        return ArrayColumn(move(column.values))
    if isinstance(column, RaggedColumn):
        assert isinstance(schema, ArraySchema)
        dims = _blank_dims(schema, rows)
        dims[index] = column.dims
        return RaggedColumn(column.values, move(column.start), dims)
    if isinstance(column, NoneColumn):
        return NoneColumn(rows)
    if isinstance(column, StringColumn):
        return StringColumn(move(column.ids))
    if isinstance(column, RecordColumn):
        assert isinstance(schema, RecordSchema)
        parts = [spread(part, kind, index, rows) for part, kind in zip(column.fields, schema.fields, strict=True)]
        return RecordColumn(tuple(parts), rows)
    if isinstance(column, ListColumn):
        return ListColumn(move(column.start), move(column.length), column.elements)
    if isinstance(column, LinkColumn):
        return LinkColumn(move(column.rows, -1))
    if isinstance(column, OptionalColumn):
        assert isinstance(schema, OptionalSchema)
        return OptionalColumn(move(column.present), spread(column.inner, schema.inner, index, rows))
    assert isinstance(schema, VariantSchema)
    kinds = zip(column.alternatives, schema.alternatives, strict=True)
    return VariantColumn(move(column.tag), tuple(spread(part, kind, index, rows) for part, kind in kinds))
