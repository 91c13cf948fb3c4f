"""Arrays of one length seen as arrays whose length may differ, so that one program serves several lengths.

The invariant: `fitted` changes no number, only how sizes are stated; a schema that does not differ in lengths alone has
no join.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from batching import Packed
from batching.columns import ArrayColumn, Column, RaggedColumn, RecordColumn
from batching.schema import ArraySchema, PackedSchema, RecordSchema, Schema


def lengths_joined(a: PackedSchema, b: PackedSchema) -> PackedSchema | None:
    """The schema that holds both, where they differ in the lengths of arrays only; else None."""
    if a == b:
        return b
    if a.tables or b.tables or a.aliased or b.aliased:
        return None
    root = _joined(a.root, b.root)
    return None if root is None else replace(b, root=root)


def _joined(a: Schema, b: Schema) -> Schema | None:
    if a == b:
        return b
    if isinstance(a, ArraySchema) and isinstance(b, ArraySchema):
        if a.dtype == b.dtype and len(a.shape) == len(b.shape) and a.shape[1:] == b.shape[1:] and a.shape:
            return replace(b, shape=(None, *b.shape[1:]))
        return None
    if isinstance(a, RecordSchema) and isinstance(b, RecordSchema) and replace(a, fields=b.fields) == b:
        fields = [_joined(x, y) for x, y in zip(a.fields, b.fields)]
        return replace(b, fields=tuple(f for f in fields if f is not None)) if None not in fields else None
    return None


def fitted(packed: Packed, schema: PackedSchema) -> Packed:
    """The same data under a schema that `lengths_joined` gave."""
    if packed.schema == schema:
        return packed
    root = _fitted(packed.schema.root, packed.root, schema.root)
    return Packed(schema, root, packed.tables, checked=True)


def _fitted(given: Schema, column: Column, wanted: Schema) -> Column:
    if given == wanted:
        return column
    if isinstance(column, RecordColumn):
        assert isinstance(given, RecordSchema) and isinstance(wanted, RecordSchema)
        parts = [_fitted(g, c, w) for g, c, w in zip(given.fields, column.fields, wanted.fields)]
        return RecordColumn(tuple(parts), column.n)
    assert isinstance(column, ArrayColumn)
    values = column.values
    count, length = values.shape[:2]
    rows = values.reshape(count * length, *values.shape[2:])
    starts = np.arange(count, dtype=np.int64) * length
    return RaggedColumn(rows, starts, np.full((count, 1), length, np.int64))
