"""Packs a list of examples into columns.

Invariant: `unpack(pack(examples))` gives equal examples, with objects that are shared inside one example still shared;
examples never share a node.
Must not know: what the columns are used for.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Sequence
from typing import Any

from batching.aliasing import overlapping
from batching.columns import TableColumns
from batching.filling import Filler
from batching.forest import link_flags
from batching.inference import infer_schema, survey
from batching.keypath import KeyPath, PackingError
from batching.packed import Packed
from batching.schema import (
    LinkSchema,
    ListSchema,
    OptionalSchema,
    PackedSchema,
    RecordSchema,
    Schema,
    TableSchema,
    VariantSchema,
)
from batching.shapes import DICTS, NodeShape, Offence, attributes_of
from batching.walking import SEQUENCE, Decisions, Plan

__all__ = ["pack"]


def pack(
    examples: Sequence[Any], like: Packed | None = None, name: str = "examples", *, copy: bool = True,
) -> Packed:
    """Packs examples (any Python values of the kinds in schema.py) into columns.

    With `like`, the result has the schema of that packed list (only the flags `shared`, `cyclic` and `aliased` may be
    added) and data that does not fit it is refused. `name` is what errors call the list.
    With `copy=False` a column of one array may be a view of the example's own (for large parameters that are packed for
    the length of a call); the caller then must not write to it as long as the packed list is used.
    Raises PackingError, naming the key path, for a value that cannot be packed.
    """
    if isinstance(examples, Packed) and like is None:
        return examples
    examples = list(examples)
    try:
        if like is None:
            taken = survey(examples)
            schema, owners = infer_schema(taken)
        else:
            schema = like.schema
            decisions, wanted, owners = follow(schema)
            taken = survey(examples, decisions, wanted)
            _check_classes(taken.tables, owners, schema, taken.nodes.objects)
        filler = Filler(taken, owners, copy)
        root = filler.root(schema.root)
        tables: list[TableColumns] = []
        kinds: list[TableSchema] = []
        for owner, kind in zip(owners, schema.tables, strict=True):
            tables.append(filler.table(taken.tables[owner], kind))
        shared, cyclic = link_flags(filler.links, len(taken.nodes.objects))
        for owner, kind in zip(owners, schema.tables, strict=True):
            numbers = taken.tables[owner].numbers
            flags = kind.shared or bool(shared[numbers].any()), kind.cyclic or bool(cyclic[numbers].any())
            kinds.append(dataclasses.replace(kind, shared=flags[0], cyclic=flags[1]))
    except Offence as offence:
        path = locate(examples, offence.value, name) if _has_identity(offence.value) else None
        place = path or (offence.path.replace("examples", name, 1) if offence.path else None)
        raise PackingError(place or locate(examples, offence.value, name) or name, offence.message) from None
    aliased = schema.aliased or taken.nodes.aliased or overlapping(filler.arrays, filler.array_owners)
    full = PackedSchema(schema.root, tuple(kinds), aliased)
    return Packed(full, root, tuple(tables), complete=True, checked=True)


def _has_identity(value: object) -> bool:
    return not (value is None or isinstance(value, (bool, str)) or isinstance(value, int) and abs(value) < 1 << 62)


def _check_classes(tables: dict[object, Any], owners: list[object], schema: PackedSchema, objects: list[Any]) -> None:
    """Refuses nodes that the schema to follow does not know."""
    for owner, table in tables.items():
        known = len(schema.tables[owners.index(owner)].classes) if owner in owners else 0
        strangers = [row for row, tag in enumerate(table.tag.tolist()) if tag >= known]
        if strangers:
            node = objects[int(table.numbers[strangers[0]])]
            shape = table.shapes[int(table.tag[strangers[0]])]
            names = ", ".join(map(str, shape.names)) or "none"
            raise Offence(node, f"a {shape.cls.__qualname__} with the fields {names} does not occur in the schema to "
                                "follow")


def follow(schema: PackedSchema) -> tuple[Decisions, dict[object, list[NodeShape]], list[object]]:
    """The decisions that lead to a given schema, the shapes that each table must have, and the tables' owners."""
    decisions = Decisions(groups=len(schema.tables))
    shapes: list[list[NodeShape]] = []
    for number, table in enumerate(schema.tables):
        plain = [cls is tuple or cls in DICTS for cls, _ in table.classes]
        shapes.append([
            NodeShape(cls, names, number if grouped else None)
            for (cls, names), grouped in zip(table.classes, plain, strict=True)
        ])
        for shape in shapes[-1][1:]:
            decisions.unite(shapes[-1][0].owner, shape.owner)
    owners = [decisions.table(members[0].owner) for members in shapes]
    _plan(schema.root, decisions.root, schema, decisions)
    for owner, table in zip(owners, schema.tables, strict=True):
        plans = decisions.fields.setdefault(owner, {})
        for name, kind in zip(table.names, table.fields, strict=True):
            _plan(kind, plans.setdefault(name, Plan()), schema, decisions)
    return decisions, dict(zip(owners, shapes, strict=True)), owners


def _plan(schema: Schema, plan: Plan, packed: PackedSchema, decisions: Decisions) -> None:
    if isinstance(schema, OptionalSchema):
        _plan(schema.inner, plan, packed, decisions)
    elif isinstance(schema, VariantSchema):
        for kind in schema.alternatives:
            _plan(kind, plan, packed, decisions)
        if any(map(_structural, schema.alternatives)):
            # A position has its tuples and dictionaries either all in a table or all as structure.
            plan.group = None
    elif isinstance(schema, LinkSchema):
        if any(cls is tuple or cls in DICTS for cls, _ in packed.tables[schema.table].classes):
            plan.group = schema.table
    elif isinstance(schema, ListSchema):
        steps = {"tuple": SEQUENCE, "list": list, "deque": collections.deque}
        plan.sequence = True if schema.kind == "tuple" else plan.sequence
        _plan(schema.element, plan.child(steps[schema.kind]), packed, decisions)
    elif isinstance(schema, RecordSchema):
        if schema.kind in ("namedtuple", "dataclass"):
            decisions.records.add(schema.cls)
        key: object = schema.cls
        if schema.kind == "tuple":
            plan.sequence = False
        if schema.kind in ("tuple", "dict"):
            key = schema.cls, len(schema.names) if schema.kind == "tuple" else schema.names
        for position, kind in enumerate(schema.fields):
            _plan(kind, plan.child((key, position)), packed, decisions)


def _structural(schema: Schema) -> bool:
    """Whether a schema is that of tuples or dictionaries that are no nodes."""
    return isinstance(schema, (RecordSchema, ListSchema)) and schema.kind in ("tuple", "dict")


def locate(examples: Sequence[Any], value: object, name: str) -> KeyPath | None:
    """The key path of a value, found by identity; None if it is not there."""
    root = KeyPath(name)
    work: list[tuple[Any, KeyPath]] = [(example, root.item(place)) for place, example in enumerate(examples)]
    seen: set[int] = set()
    for item, path in work:
        if item is value:
            return path
        if id(item) in seen or isinstance(item, (int, float, str)):
            continue
        seen.add(id(item))
        kind = type(item)
        if kind in (list, tuple, collections.deque):
            work.extend((element, path.item(place)) for place, element in enumerate(item))
        elif kind in DICTS:
            work.extend((element, path.item(key)) for key, element in item.items())
        elif isinstance(item, tuple) and hasattr(kind, "_fields"):
            work.extend((element, path.attribute(field)) for field, element in zip(kind._fields, item, strict=True))
        elif hasattr(item, "__dict__") or hasattr(kind, "__slots__"):
            if not isinstance(item, type) and not callable(item):
                work.extend((getattr(item, field), path.attribute(field)) for field in attributes_of(item))
    return None
