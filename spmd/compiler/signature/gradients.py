"""Cotangents into a call and gradients out of it, in the user's containers.

The invariant: a gradient has its argument's structure with float leaves, other leaves are None; a cotangent has the
result's structure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from batching import Packed, PackingError, Ragged, pack
from batching.columns import (
    ArrayColumn,
    Column,
    ListColumn,
    NoneColumn,
    NumberColumn,
    RaggedColumn,
    RecordColumn,
    take,
)
from batching.schema import ArraySchema, ListSchema, NumberSchema, PackedSchema, RecordSchema, Schema, StringSchema
from spmd.compiler.signature.columns import Columns
from spmd.compiler.signature.results import container
from spmd.errors import UnsupportedType
from spmd.frontend.values import Abstract, Choice, Leaf, Run, Struct, describe
from spmd.ir.types import Num
from spmd.runtime.ragged import Ragged as RaggedRows
from spmd.runtime.ragged import from_arrays, runs

Fields = dict[tuple[str, int], Any]


@dataclass(eq=False)
class CotangentRows:
    """Turns a cotangent, in a result's structure, into row values of the result's leaves (None for leaves that carry
    none) and into `fields`: cotangents of the frames whose results are the items of lists.

    `size(table)`: the number of frames of a function's table.
    """

    size: Callable[[str], int]
    fields: Fields = field(default_factory=dict)

    def rows(self, thing: Abstract, given: Any, results: list[Any], batch: int, name: str = "cotangent") -> list[Any]:
        """`results`: the row values of the leaves themselves."""
        if isinstance(thing, Struct):
            return self._struct(thing, given, results, batch, name)
        if isinstance(thing, Choice):
            raise UnsupportedType("the cotangent of a result that is one of several kinds cannot be given",
                                  hint="return a number, and differentiate that.")
        if isinstance(thing, Run) and given is not None:
            self._list(thing, given, results[0], name)
            return [None]
        if not isinstance(thing, Leaf):
            return [None] * len(results)
        if not thing.type.floating or given is None:
            return [None]
        return [_rows(thing.type, given, results[0], batch, name)]

    def _struct(self, thing: Struct, given: Any, results: list[Any], batch: int, name: str) -> list[Any]:
        found: list[Any] = []
        for item, part, key in zip(thing.items, parts_given(thing, given, name), thing.names):
            own = results[len(found) : len(found) + len(list(item.leaves()))]
            found += self.rows(item, part, own, batch, f"{name}[{key!r}]")
        return found

    def _list(self, thing: Run, given: Any, handle: Any, name: str) -> None:
        """The cotangents of the items of all lists, at the frames that they are the results of."""
        first, count = handle
        try:
            packed = given if isinstance(given, Packed) else pack(list(given))
        except (PackingError, TypeError):
            raise UnsupportedType(f"the {name} has not the structure of the result: lists are needed") from None
        root, schema = packed.root, packed.schema.root
        if not isinstance(root, ListColumn) or not isinstance(schema, ListSchema) or not thing.table.startswith("@"):
            raise UnsupportedType(f"the {name} has not the structure of the result: lists are needed")
        if not np.array_equal(root.length, count):
            raise UnsupportedType(f"the {name} has lists of other lengths than the result")
        if not count.sum():
            return
        at = runs(root.start, root.length)
        elements = PackedSchema(schema.element, packed.schema.tables)
        whole = _unpacked(Packed(elements, take(root.elements, at), packed.tables, checked=True))
        leaves = list(thing.item.leaves())
        for k, row in zip(thing.fields, self.rows(thing.item, whole, [None] * len(leaves), len(at), f"{name}[...]")):
            if row is None:
                continue
            if not isinstance(row, np.ndarray):
                raise UnsupportedType("the cotangent of a list of arrays of varying size cannot be given")
            shape = (self.size(thing.table), *row.shape[1:])
            total = self.fields.setdefault((thing.table, k), np.zeros(shape, row.dtype))
            np.add.at(total, runs(first, count), row)


def parts_given(thing: Struct, given: Any, name: str) -> list[Any]:
    """The cotangents of a container's items, None where there is none. Raises UnsupportedType for another structure."""
    if given is None:
        return [None] * len(thing.items)
    if isinstance(given, Packed):
        given = _unpacked(given)
    if thing.kind == "dict" and isinstance(given, dict) and set(given) <= set(thing.names):
        return [given.get(k) for k in thing.names]
    ordered = thing.kind in ("tuple", "list", "namedtuple") and isinstance(given, (tuple, list))
    if ordered and len(given) == len(thing.items):
        return list(given)
    if thing.kind == "dataclass" and type(given) is thing.cls:
        return [getattr(given, str(k)) for k in thing.names]
    raise UnsupportedType(f"the {name} has not the structure of the result: {describe(thing)} is needed")


def _unpacked(given: Packed, leaf: Callable[[Any], Any] = np.asarray) -> Any:
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


def _rows(type_: Num, given: Any, result: Any, batch: int, name: str) -> Any:
    if isinstance(given, Packed):
        given = _unpacked(given)
    if type_.static:
        array = numbers(given, name, type_.dtype)
        if array.shape == type_.shape and batch == 1 and array.shape != (batch, *type_.shape):
            array = array[None]
        if array.shape != (batch, *type_.shape):
            raise UnsupportedType(f"the {name} has shape {array.shape}; {(batch, *type_.shape)} is needed")
        return np.ascontiguousarray(array)
    k = max(i for i, n in enumerate(type_.shape) if n is None) + 1
    if isinstance(given, Ragged) and given.dims.shape[1] == k:
        rows = RaggedRows(np.asarray(given.values, type_.dtype), given.start, given.dims).pack()
    else:
        rows = _from_each(given, type_, k, name)
    if isinstance(result, RaggedRows) and (rows.trail != result.trail or not np.array_equal(rows.dims, result.dims)):
        raise UnsupportedType(f"the {name} has arrays of other shapes than the result")
    return rows


def numbers(given: Any, name: str, dtype: str | None = None) -> Any:
    """An array of numbers. Raises UnsupportedType for what is none: None is no zero inside an array."""
    try:
        array = np.asarray(given)
    except ValueError:
        raise UnsupportedType(f"the {name} holds arrays or lists of different sizes where an array is needed") from None
    kinds = "biufc" if dtype is None or np.dtype(dtype).kind == "c" else "biuf"
    if array.dtype.kind not in kinds and array.size:
        raise UnsupportedType(f"the {name} holds something other than {'real ' if kinds == 'biuf' else ''}numbers")
    return array if dtype is None else array.astype(dtype, copy=False)


def _from_each(given: Any, type_: Num, k: int, name: str) -> RaggedRows:
    """Ragged rows of an array for each example."""
    arrays = [numbers(a, name, type_.dtype) for a in (given.to_list() if isinstance(given, Ragged) else given)]
    for array in arrays:
        if array.shape[k:] != type_.shape[k:] or array.ndim != type_.rank:
            raise UnsupportedType(f"the {name} has an array of shape {array.shape}; {type_} is needed")
    return from_arrays(arrays, k, type_.dtype)


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
        return _unpacked(gradient, owned)


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
