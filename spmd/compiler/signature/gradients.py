"""Gradients in the user's containers.

The invariant: a gradient has its argument's structure with float leaves, other leaves are None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from batching import Packed, Ragged
from batching.columns import (
    ArrayColumn,
    Column,
    NoneColumn,
    NumberColumn,
    RaggedColumn,
    RecordColumn,
)
from batching.schema import ArraySchema, NumberSchema, PackedSchema, RecordSchema, Schema, StringSchema
from spmd.compiler.signature.columns import Columns
from spmd.compiler.signature.results import container
from spmd.runtime.ragged import Ragged as RaggedRows

Fields = dict[tuple[str, int], Any]


def unpacked(given: Packed, leaf: Callable[[Any], Any] = np.asarray) -> Any:
    """A packed record as a container of stacked leaves (through `leaf`)."""
    return stacked_columns(given.schema.root, given.root, lambda schema, column: Packed(
        PackedSchema(schema, given.schema.tables), column, given.tables, checked=True), leaf)


def owned(array: Any) -> Any:
    """An array that the caller may write to: packed columns are read-only, gradients are the caller's own."""
    try:
        array.setflags(write=True)
    except ValueError:
        return array.copy()
    return array


def stacked_columns(
    schema: Schema, column: Column, rest: Callable[[Schema, Column], Any], leaf: Callable[[Any], Any]
) -> Any:
    """Columns as a container of stacked leaves (through `leaf`); what has no such form goes through `rest`."""
    if isinstance(schema, RecordSchema) and isinstance(column, RecordColumn):
        items = [stacked_columns(s, c, rest, leaf) for s, c in zip(schema.fields, column.fields)]
        return container(schema.kind, schema.cls, schema.names, items)
    if isinstance(column, (NumberColumn, ArrayColumn)):
        return leaf(column.values)
    if isinstance(column, RaggedColumn):
        return Ragged(column.values, column.start, column.dims)
    if isinstance(column, NoneColumn):
        return None
    return rest(schema, column)


class Gradients:
    """Rebuilds the gradient of one argument from the cotangents of its leaves.

    `leaves` are row values ([n, ...], one row per example or, for a shared argument, one row in all) or None;
    `tables(table, field)` the cotangents of a table's field, or None.
    """

    def __init__(self, name: str, packed: Packed, tables: Callable[[str, int], Any]) -> None:
        self.name = name
        self.packed = packed
        self.tables = tables
        self._columns = Columns(name, packed)

    def stacked(self, leaves: list[Any]) -> Any:
        """The gradient of the argument's examples."""
        found = _Replaced(self._columns, leaves, self.tables, self.name)
        packed = self.packed
        floats = iter(found.arrays(packed))
        gradient = packed.gradient_like([next(floats) for _ in packed.float_leaves()])
        return unpacked(gradient, owned)


def empty_gradient(name: str, packed: Packed) -> Any:
    """The gradient of an argument for each of no examples."""
    return Gradients(name, packed[:0], lambda table, k: None).stacked([])


class _Replaced:
    """Walks an argument's columns in the order of `Packed.float_leaves` and looks up each float leaf's cotangent."""

    def __init__(self, columns: Columns, leaves: list[Any], tables: Callable[[str, int], Any], name: str) -> None:
        self.columns = columns
        self.leaves = leaves
        self.tables = tables
        self.name = name

    def arrays(self, packed: Packed) -> Iterator[Any]:
        by_array: dict[int, Any] = {}
        for row, leaf in zip(self.leaves, self.columns.leaves):
            self._note(by_array, leaf, row)
        for table, data in self.columns.tables.items():
            for k, leaf in enumerate(data.fields):
                self._note(by_array, leaf, self.tables(table, k))
        for _, values in packed.float_leaves():
            found = by_array.get(id(values))
            yield np.zeros_like(values) if found is None else np.asarray(found, values.dtype).reshape(values.shape)

    def _note(self, by_array: dict[int, Any], leaf: Any, cotangent: Any) -> None:
        if cotangent is None or isinstance(leaf, tuple):
            return
        if isinstance(leaf, RaggedRows):
            by_array[id(leaf.data)] = _scattered(leaf, cotangent)
        else:
            by_array[id(leaf)] = cotangent


def _scattered(leaf: RaggedRows, cotangent: Any) -> Any:
    """The cotangent of ragged rows, at the places of their values."""
    if not isinstance(cotangent, RaggedRows):
        return cotangent
    out = np.zeros(leaf.data.shape, cotangent.data.dtype)
    np.add.at(out, leaf.index(), cotangent.flat())
    return out


def holds_numbers(schema: PackedSchema) -> bool:
    """Whether there is any number, array or string in what a schema describes."""
    stack: list[Any] = [schema.root, *schema.tables]
    while stack:
        part = stack.pop()
        if isinstance(part, (NumberSchema, ArraySchema, StringSchema)):
            return True
        for name in ("fields", "alternatives"):
            stack += list(getattr(part, name, ()))
        for name in ("element", "inner"):
            stack += [getattr(part, name)] if hasattr(part, name) else []
    return False
