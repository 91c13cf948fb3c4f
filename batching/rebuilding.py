"""Rebuilds Python objects from columns.

Invariant: objects are made without calling `__init__`; a node that several links lead to becomes one object; no Python
recursion over links. Arrays are fresh and writable.
Must not know: how the columns were made.
"""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import Any

import numpy as np

from batching.columns import Column, TableColumns, rows_of, take
from batching.keypath import PackingError
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
from batching.shapes import DICTS, attributes_of
from batching.strings import text

__all__ = ["block", "rebuild"]


def rebuild(schema: PackedSchema, root: Column, tables: Sequence[TableColumns]) -> list[Any]:
    """The examples as Python objects. The tables should hold reachable nodes only (compaction.py)."""
    nodes: list[list[Any]] = []
    waiting: list[_Waiting] = []
    for kind, table in zip(schema.tables, tables, strict=True):
        classes = [cls for cls, _ in kind.classes]
        made: list[Any] = [_empty(classes[tag]) for tag in table.tag.tolist()]
        waiting.extend(node for node in made if isinstance(node, _Waiting))
        # The last entry answers link -1.
        nodes.append([*made, None])
    if waiting:
        for kind, table, made in zip(schema.tables, tables, nodes, strict=True):
            _fill(kind, table, made, nodes, tuples=True)
        _Settling(_record_classes([kind for table in schema.tables for kind in table.fields])).settle(waiting)
        nodes = [[node.final if isinstance(node, _Waiting) else node for node in made] for made in nodes]
    for kind, table, made in zip(schema.tables, tables, nodes, strict=True):
        _fill(kind, table, made, nodes, tuples=False)
    return _values(schema.root, root, nodes)


class _Waiting:
    """Stands for a tuple until all that it holds is built."""

    __slots__ = ("cls", "final", "held")

    def __init__(self, cls: type) -> None:
        self.cls = cls
        self.held: list[Any] = []
        self.final: Any = None


def _empty(cls: type) -> Any:
    if issubclass(cls, tuple):
        return _Waiting(cls)
    return cls() if cls in DICTS else object.__new__(cls)


def _fill(kind: TableSchema, table: TableColumns, made: list[Any], nodes: list[list[Any]], tuples: bool) -> None:
    """Gives nodes their fields: of the tuples, or of all others."""
    columns = dict(zip(kind.names, zip(kind.fields, table.fields, strict=True), strict=True))
    for tag, (cls, names) in enumerate(kind.classes):
        if issubclass(cls, tuple) != tuples:
            continue
        rows = np.flatnonzero(table.tag == tag)
        objects = [made[row] for row in rows.tolist()]
        for name in names:
            schema, column = columns[name]
            values = _values(schema, take(column, rows), nodes)
            if tuples:
                for node, value in zip(objects, values, strict=True):
                    node.held.append(value)
            elif cls in DICTS:
                for node, value in zip(objects, values, strict=True):
                    node[name] = value
            else:
                _assign(cls, objects, str(name), values)


def _assign(cls: type, objects: list[Any], name: str, values: list[Any]) -> None:
    slotted = any(name in _slots(base) for base in cls.__mro__)
    for node, value in zip(objects, values, strict=True):
        if slotted:
            object.__setattr__(node, name, value)
        else:
            node.__dict__[name] = value


def _slots(base: type) -> set[str]:
    slots = vars(base).get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else slots
    private = f"_{base.__name__.lstrip('_')}"
    return {private + name if name.startswith("__") and not name.endswith("__") else name for name in names}


class _Settling:
    """Builds tuples from the innermost outwards. `records` are the dataclasses that are structure, not nodes."""

    def __init__(self, records: set[type]) -> None:
        self.records = records

    def settle(self, waiting: list[_Waiting]) -> None:
        """Builds all tuples. Raises PackingError for one that holds itself through a list."""
        active: set[int] = set()
        for first in waiting:
            stack = [first]
            while stack:
                top = stack[-1]
                inner = [] if top.final is not None else self.missing(top)
                if any(id(node) in active for node in inner):
                    raise PackingError("packed", "a tuple that contains itself cannot be rebuilt")
                if inner:
                    active.add(id(top))
                    stack.extend(inner)
                    continue
                if top.final is None:
                    held = [self.settled(value) for value in top.held]
                    top.final = tuple(held) if top.cls is tuple else top.cls._make(held)  # type: ignore[attr-defined]
                active.discard(id(top))
                stack.pop()

    def missing(self, top: _Waiting) -> list[_Waiting]:
        """The tuples that one holds and that are not built yet."""
        return [node for value in top.held for node in self.inside(value) if node.final is None]

    def inside(self, value: Any) -> list[_Waiting]:
        """The waiting tuples in a value, through structure only."""
        found = []
        work = [value]
        for item in work:
            if isinstance(item, _Waiting):
                found.append(item)
            elif isinstance(item, (list, tuple, collections.deque)):
                work.extend(item)
            elif type(item) in DICTS:
                work.extend(item.values())
            elif type(item) in self.records:
                work.extend(getattr(item, name) for name in attributes_of(item))
        return found

    def settled(self, value: Any) -> Any:
        """The value with every waiting tuple replaced by the tuple."""
        if isinstance(value, _Waiting):
            return value.final
        if not self.inside(value):
            return value
        if type(value) in DICTS:
            return type(value)((key, self.settled(item)) for key, item in value.items())
        if type(value) in self.records:
            for name in attributes_of(value):
                object.__setattr__(value, name, self.settled(getattr(value, name)))
            return value
        held = [self.settled(item) for item in value]
        return type(value)(held) if type(value) in (list, tuple, collections.deque) else type(value)._make(held)


def _record_classes(schemas: Sequence[Schema]) -> set[type]:
    """The dataclasses that are records somewhere in these schemas."""
    found: set[type] = set()
    work = list(schemas)
    for schema in work:
        if isinstance(schema, RecordSchema):
            work.extend(schema.fields)
            if schema.kind == "dataclass":
                found.add(schema.cls)
        elif isinstance(schema, ListSchema):
            work.append(schema.element)
        elif isinstance(schema, OptionalSchema):
            work.append(schema.inner)
        elif isinstance(schema, VariantSchema):
            work.extend(schema.alternatives)
    return found


def _values(schema: Schema, column: Any, nodes: list[list[Any]]) -> list[Any]:
    """The Python value of every row."""
    if isinstance(schema, NumberSchema):
        return column.values.tolist() if schema.python else list(column.values)
    if isinstance(schema, NoneSchema):
        return [None] * column.n
    if isinstance(schema, StringSchema):
        return list(map(text, column.ids.tolist()))
    if isinstance(schema, ArraySchema):
        return _arrays(schema, column)
    if isinstance(schema, LinkSchema):
        return list(map(nodes[schema.table].__getitem__, column.rows.tolist()))
    if isinstance(schema, OptionalSchema):
        inner = _values(schema.inner, column.inner, nodes)
        return [value if here else None for value, here in zip(inner, column.present.tolist(), strict=True)]
    if isinstance(schema, VariantSchema):
        return _variants(schema, column, nodes)
    if isinstance(schema, ListSchema):
        elements = _values(schema.element, column.elements, nodes)
        ends = zip(column.start.tolist(), (column.start + column.length).tolist(), strict=True)
        make: Any = {"list": None, "tuple": tuple, "deque": collections.deque}[schema.kind]
        lists = [elements[first:last] for first, last in ends]
        return lists if make is None else list(map(make, lists))
    return _records(schema, column, nodes)


def _arrays(schema: ArraySchema, column: Any) -> list[Any]:
    if not schema.ragged:
        values = column.values.copy()
        return list(values) if schema.shape else [np.array(value) for value in values]
    return [
        block(column.values, start, tuple(dims)) for start, dims in zip(column.start.tolist(), column.dims.tolist(),
                                                                        strict=True)
    ]


def block(values: np.ndarray[Any, Any], start: int, dims: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """One example's array out of ragged values, as a copy."""
    rows = 1
    for size in dims:
        rows *= size
    return values[start:start + rows].reshape(*dims, *values.shape[1:]).copy()


def _variants(schema: VariantSchema, column: Any, nodes: list[list[Any]]) -> list[Any]:
    found: list[Any] = [None] * len(column.tag)
    for tag, (kind, part) in enumerate(zip(schema.alternatives, column.alternatives, strict=True)):
        rows = np.flatnonzero(column.tag == tag)
        for row, value in zip(rows.tolist(), _values(kind, take(part, rows), nodes), strict=True):
            found[row] = value
    return found


def _records(schema: RecordSchema, column: Any, nodes: list[list[Any]]) -> list[Any]:
    fields = [_values(kind, part, nodes) for kind, part in zip(schema.fields, column.fields, strict=True)]
    rows: list[Any] = list(zip(*fields, strict=True)) if fields else [()] * rows_of(column)
    if schema.kind == "tuple":
        return rows
    if schema.kind == "namedtuple":
        return list(map(schema.cls._make, rows))  # type: ignore[attr-defined]
    if schema.kind == "dict":
        return [schema.cls(zip(schema.names, row, strict=True)) for row in rows]
    made: list[Any] = [object.__new__(schema.cls) for _ in rows]
    for name, values in zip(schema.names, fields, strict=True):
        _assign(schema.cls, made, str(name), values)
    return made
