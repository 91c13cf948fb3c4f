"""What a call gives back: results and gradients in the user's containers.

The invariant: a result has one example's structure around stacked leaves (arrays with the batch in front, Ragged, or
Packed where structure itself differs), and `batching.unpack` of it is the list that the loop gives. A gradient has its
argument's structure with float leaves; other leaves are None.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from batching import Packed, Ragged
from batching.columns import (
    ArrayColumn,
    Column,
    ListColumn,
    NoneColumn,
    NumberColumn,
    RaggedColumn,
    RecordColumn,
    StringColumn,
    VariantColumn,
)
from batching.schema import (
    ArraySchema,
    ListSchema,
    NoneSchema,
    NumberSchema,
    PackedSchema,
    RecordSchema,
    Schema,
    StringSchema,
    VariantSchema,
)
from batching.strings import excerpts, intern, intern_all, text
from spmd.errors import UnsupportedType
from spmd.frontend.values import NONE, UNBOUND, Abstract, Choice, Const, Excerpt, Grown, Leaf, Run, Struct, describe
from spmd.ir.build import constant_type
from spmd.ir.core import Value
from spmd.ir.types import Num
from spmd.runtime.ragged import Ragged as RaggedRows
from spmd.runtime.ragged import offsets

Fields = Callable[[str, int], Any]


def container(kind: str, cls: Any, names: tuple[Any, ...], items: list[Any]) -> Any:
    """A container of the user's around given items; made without calling `__init__`."""
    if kind == "tuple":
        return tuple(items)
    if kind == "list":
        return list(items)
    if kind == "dict":
        return dict(zip(names, items))
    if kind == "namedtuple":
        return cls(*items)
    made = object.__new__(cls)
    for name, item in zip(names, items):
        object.__setattr__(made, name, item)
    return made


def parts_of(value: Any) -> tuple[str, tuple[Any, ...], list[Any]] | None:
    """The kind, names and items of a container, as `container` takes them; None for what is no container."""
    if isinstance(value, dict):
        return "dict", tuple(value), list(value.values())
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return "namedtuple", tuple(value._fields), list(value)
    if isinstance(value, (tuple, list)):
        return "tuple" if isinstance(value, tuple) else "list", tuple(map(str, range(len(value)))), list(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = tuple(f.name for f in dataclasses.fields(value))
        return "dataclass", names, [getattr(value, n) for n in names]
    return None


# ------------------------------------------------------------------------------------------------ results
class Results:
    """Rebuilds results from row values. `fields(table, k)` gives field k of all rows of a table, `size(table)` their
    number."""

    def __init__(self, batch: int, fields: Fields, size: Callable[[str], int]) -> None:
        self.batch = batch
        self.fields = fields
        self.size = size

    def stacked(self, thing: Abstract, leaves: Iterator[Any]) -> Any:
        """One example's structure around stacked leaves."""
        if isinstance(thing, Struct):
            return container(thing.kind, thing.cls, thing.names, [self.stacked(i, leaves) for i in thing.items])
        if isinstance(thing, Leaf):
            return self._leaf(thing.type, next(leaves))
        if isinstance(thing, Excerpt):
            return _texts(excerpts(next(leaves), next(leaves), next(leaves)))
        if isinstance(thing, Const):
            return self._constant(thing.value)
        if isinstance(thing, Grown) and thing.kind == "list" and thing.size is not None:
            columns, _ = [next(leaves) for _ in thing.columns], next(leaves)
            return [self.stacked(thing.item, iter([c[:, k] for c in columns])) for k in range(thing.size)]
        if isinstance(thing, Run) or isinstance(thing, Grown) and thing.kind == "list":
            return self._list(thing, leaves)
        if isinstance(thing, Choice):
            return self._choice(thing, leaves)
        raise UnsupportedType(f"a function that returns {describe(thing)} cannot run in lanes",
                              hint="return numbers, arrays, or tuples, dictionaries and dataclasses of them.")

    def _leaf(self, type_: Num, rows: Any) -> Any:
        if type_.text:
            return _texts([text(int(k)) for k in rows])
        if isinstance(rows, RaggedRows):
            return dense_or_ragged(rows, self.batch)
        return rows

    def _constant(self, value: Any) -> Any:
        if value is None:
            return None
        return np.full(self.batch, value)

    def _choice(self, thing: Choice, leaves: Iterator[Any]) -> Any:
        """One of several kinds: stacked where all examples have the same, else packed with a tag."""
        tag = next(leaves)
        parts = [[next(leaves) for _ in alternative.leaves()] for alternative in thing.alternatives]
        if self.batch and (tag == tag[0]).all() and _has_array(thing.alternatives[int(tag[0])]):
            chosen = int(tag[0])
            return self.stacked(thing.alternatives[chosen], iter(parts[chosen]))
        schema, column = self._column(thing, iter([tag, *(rows for part in parts for rows in part)]), self.batch)
        return Packed(PackedSchema(schema), column)

    def _list(self, thing: Run | Grown, leaves: Iterator[Any]) -> Packed:
        schema, column = self._column(thing, leaves, self.batch)
        return Packed(PackedSchema(schema), column)

    def _column(self, thing: Abstract, leaves: Iterator[Any], count: int) -> tuple[Schema, Column]:
        """A structure as a column of `count` rows."""
        if isinstance(thing, Grown) and thing.kind == "list":
            return self._grown(thing, leaves)
        if isinstance(thing, Run):
            parts = iter([self.fields(thing.table, k) for k in thing.fields])
            item = NONE if thing.item is UNBOUND else thing.item  # no list has an item, so nothing tells their kind
            schema, column = self._column(item, parts, self.size(thing.table))
            first, length = next(leaves)
            return ListSchema(schema, thing.kind), ListColumn(first, length, column)
        if isinstance(thing, Leaf):
            rows = next(leaves)
            if isinstance(rows, RaggedRows):
                return ArraySchema(thing.type.dtype, thing.type.shape), RaggedColumn(rows.data, rows.lo, rows.dims)
            if thing.type.text:
                return StringSchema(), StringColumn(rows)
            if thing.type.rank:
                return ArraySchema(thing.type.dtype, thing.type.shape), ArrayColumn(rows)
            kind = {"int64": "int", "float64": "float", "bool": "bool"}[thing.type.dtype] if thing.type.python else (
                "bool_" if thing.type.dtype == "bool" else thing.type.dtype
            )
            return NumberSchema(kind), NumberColumn(rows)
        if isinstance(thing, Excerpt):
            ids = intern_all(excerpts(next(leaves), next(leaves), next(leaves)))
            return StringSchema(), StringColumn(np.asarray(ids, np.int64))
        if isinstance(thing, Const) and thing.value is None:
            return NoneSchema(), NoneColumn(count)
        if isinstance(thing, Const) and isinstance(thing.value, str):
            return StringSchema(), StringColumn(np.full(count, intern(thing.value)))
        if isinstance(thing, Const):
            thing, leaves = Leaf(Value(constant_type(thing.value))), iter([np.full(count, thing.value)])
            return self._column(thing, leaves, count)
        if isinstance(thing, Choice):
            tag = next(leaves)
            kinds = [self._column(a, leaves, count) for a in thing.alternatives]
            return VariantSchema(tuple(s for s, _ in kinds)), VariantColumn(
                tag.astype(np.int8), tuple(c for _, c in kinds)
            )
        if isinstance(thing, Struct) and thing.kind != "list":
            kinds = [self._column(i, leaves, count) for i in thing.items]
            names = tuple(map(str, thing.names)) if thing.kind == "tuple" else thing.names
            record = RecordSchema(thing.kind, thing.cls, names, tuple(s for s, _ in kinds))
            return record, RecordColumn(tuple(c for _, c in kinds), count)
        raise UnsupportedType(f"a function that returns a list of {describe(thing)} cannot run in lanes")


    def _grown(self, thing: Grown, leaves: Iterator[Any]) -> tuple[Schema, Column]:
        """A list in columns: the elements of all lists, one after the other."""
        columns, length = [next(leaves) for _ in thing.columns], next(leaves)
        items = iter([c.flat() if isinstance(c, RaggedRows) else c.reshape(-1, *c.shape[2:]) for c in columns])
        item = NONE if thing.item is UNBOUND else thing.item
        schema, column = self._column(item, items, int(length.sum()))
        return ListSchema(schema), ListColumn(offsets(length), length, column)
def _texts(strings: list[str]) -> np.ndarray[Any, Any]:
    """Strings as an array; of objects where NumPy's own strings would lose null characters at an end."""
    return np.array(strings, dtype=object if any(s.endswith("\0") for s in strings) else np.str_)


def _has_array(thing: Abstract) -> bool:
    """Whether a stacked result of this structure says how many examples it has."""
    if isinstance(thing, Struct):
        return any(map(_has_array, thing.items))
    return not (isinstance(thing, Const) and thing.value is None)


def dense_or_ragged(rows: RaggedRows, batch: int) -> Any:
    """Arrays of one shape stacked; else Ragged."""
    dims = rows.dims
    if batch and (dims == dims[0]).all():
        return np.array(rows.dense((*map(int, dims[0]), *rows.trail)))
    return Ragged(rows.data, rows.lo, rows.dims)


def one(stacked: Any) -> Any:
    """Row 0 of a stacked result: what a single example gives."""
    if isinstance(stacked, (Packed, Ragged, np.ndarray)):
        return stacked[0]
    if stacked is None:
        return None
    found = parts_of(stacked)
    assert found is not None, "a result is a container around arrays"
    kind, names, items = found
    return container(kind, type(stacked), names, list(map(one, items)))
