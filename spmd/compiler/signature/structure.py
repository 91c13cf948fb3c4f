"""Schemas as structure over leaves: what the front end lowers with, and the tables that it reads.

The invariant: leaves come in the order in which `columns.Columns` gives their data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
    TableSchema,
    VariantSchema,
)
from spmd.frontend.names import NodeLayout
from spmd.frontend.values import NONE, TAG, UNBOUND, Abstract, Choice, Leaf, Node, Run, Struct
from spmd.ir.core import Table, Value
from spmd.ir.types import TEXT, Num, Ref, Seq


@dataclass(eq=False)
class Shapes:
    """Turns schemas into structure; the tables that they mention are added to `tables` and `layouts`."""

    tables: dict[str, Table]
    layouts: dict[str, NodeLayout]

    def argument(self, name: str, schema: PackedSchema, unique: bool) -> Abstract:
        """The structure of one argument; placeholders for leaves. Table names begin with the argument's.

        `unique`: each table row belongs to one example (mapped arguments).
        """
        self._prefix, self._unique, self._count = name, unique, 0
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
            inner = self.abstract(schema.inner)
            return Choice(Value(TAG), (NONE, *(inner.alternatives if isinstance(inner, Choice) else (inner,))))
        assert isinstance(schema, VariantSchema)
        return Choice(Value(TAG), tuple(self.abstract(a) for a in schema.alternatives))

    def _list(self, schema: ListSchema) -> Run:
        name = element_table(self._prefix, self._count)
        self._count += 1
        nothing = isinstance(schema.element, NoneSchema) and not schema.element.seen
        item = UNBOUND if nothing else self.abstract(schema.element)
        types = tuple(v.type for v in item.leaves())
        labels = tuple(f"item.{k}" for k in range(len(types)))
        self.tables[name] = Table(name, types, labels, self._unique)
        return Run(Value(Seq(name)), item, tuple(range(len(types))), schema.kind)


def node_table(argument: str, number: int) -> str:
    return f"{argument}/nodes{number}"


def element_table(argument: str, number: int) -> str:
    return f"{argument}/items{number}"
