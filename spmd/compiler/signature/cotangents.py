"""Cotangents that a pullback is given, as row values.

The invariant: a cotangent has the result's structure, example by example, or is refused; None stands for a part that
has none. Where examples have results of several kinds, a list (or packed value) holds one cotangent for each example.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from batching import Packed, PackingError, Ragged, pack, unpack
from batching.columns import ListColumn, take
from batching.schema import ListSchema, PackedSchema
from spmd.compiler.signature.gradients import unpacked
from spmd.errors import UnsupportedType
from spmd.frontend.values import Abstract, Choice, Const, Grown, Leaf, Run, Struct, describe
from spmd.ir.types import Num, carries_gradient
from spmd.runtime.ragged import Ragged as RaggedRows
from spmd.runtime.ragged import from_arrays, packed, runs

Fields = dict[tuple[str, int], Any]


@dataclass(eq=False)
class CotangentRows:
    """Turns a cotangent, in a result's structure, into row values of the result's leaves (None for leaves that carry
    none) and into `fields`: cotangents of the frames whose results are the items of lists.

    `column(table, k)`: result k of all frames of a function.
    """

    column: Callable[[str, int], Any]
    fields: Fields = field(default_factory=dict)

    def rows(self, thing: Abstract, given: Any, results: list[Any], batch: int, name: str = "cotangent") -> list[Any]:
        """`given` has the structure of the stacked result; `results`: the row values of the leaves themselves."""
        if given is None:
            return [None] * len(results)
        if isinstance(thing, Struct):
            whole = unpacked(given) if isinstance(given, Packed) else given
            if isinstance(whole, Packed):  # no record: examples that differ, or nodes of a tree
                return self.each(thing, unpack(whole), results, name)
            parts = parts_given(thing, whole, name)
            return self._of_parts(thing, results, lambda k, item, own, title: self.rows(
                item, parts[k], own, batch, title), name)
        if isinstance(thing, Choice):
            return self._choice(thing, given, results, batch, name)
        if isinstance(thing, Run):
            self._list(thing, given, results[0], name)
            return [None]
        if isinstance(thing, Grown):
            return [*self._grown(thing, given, results, batch, name), None]
        if not isinstance(thing, Leaf):
            return [None] * len(results)
        return [_rows(thing.type, given, results[0], batch, name) if thing.type.floating else None]

    def each(self, thing: Abstract, given: list[Any], results: list[Any], name: str) -> list[Any]:
        """As `rows`, of one cotangent for each example; None where an example has none."""
        if isinstance(thing, Struct):
            parts = [parts_given(thing, one, name) for one in given]
            return self._of_parts(thing, results, lambda k, item, own, title: self.each(
                item, [part[k] for part in parts], own, title), name)
        some = np.flatnonzero([one is not None for one in given])
        if len(some) < len(given):
            return self._some(thing, given, results, some, name)
        if isinstance(thing, Choice):
            return self._each_choice(thing, given, results, name)
        return self.rows(thing, given, results, len(given), name)

    def _of_parts(self, thing: Struct, results: list[Any], rows: Callable[..., list[Any]], name: str) -> list[Any]:
        found: list[Any] = []
        for k, (item, key) in enumerate(zip(thing.items, thing.names)):
            own = results[len(found) : len(found) + len(list(item.leaves()))]
            found += rows(k, item, own, f"{name}[{key!r}]")
        return found

    def _some(self, thing: Abstract, given: list[Any], results: list[Any], at: Any, name: str) -> list[Any]:
        """The rows of the examples `at`, zeros for the others."""
        if not len(at):
            return [None] * len(results)
        own = self.each(thing, [given[i] for i in at], [_taken(r, at) for r in results], name)
        return [None if row is None else _placed(row, at, result) for row, result in zip(own, results)]

    def _choice(self, thing: Choice, given: Any, results: list[Any], batch: int, name: str) -> list[Any]:
        """One of several kinds: one cotangent for each example, or the result's own form where all are of one kind."""
        tags = results[0]
        if batch and (tags == tags[0]).all() and not isinstance(given, (Packed, list)):
            rows: list[Any] = [None] * len(results)
            place = _place(thing, int(tags[0]))
            rows[place] = self.rows(thing.alternatives[tags[0]], given, results[place], batch, name)
            return rows
        if isinstance(given, Packed):
            given = unpack(given)
        if not isinstance(given, (list, np.ndarray, Ragged)) or len(given) != batch:
            raise UnsupportedType(f"the {name} of results of several kinds is a list of {batch}, one for each example")
        return self._each_choice(thing, list(given), results, name)

    def _each_choice(self, thing: Choice, given: list[Any], results: list[Any], name: str) -> list[Any]:
        rows: list[Any] = [None] * len(results)
        for k, alternative in enumerate(thing.alternatives):
            at = np.flatnonzero(results[0] == k)
            _check_kinds(alternative, given, at, name)
            place = _place(thing, k)
            rows[place] = self._some(alternative, given, results[place], at, name)
        return rows

    def _list(self, thing: Run, given: Any, handle: Any, name: str) -> None:
        """The cotangents of the items of all lists, at the frames that they are the results of."""
        first, count = handle
        if not thing.table.startswith("@"):
            raise UnsupportedType(f"the {name} has not the structure of the result: lists are needed")
        items = _items(given, count, name)
        if items is None:
            return
        frames = runs(first, count)
        columns = [self.column(thing.table, k) for k in thing.fields]
        own = [_taken(column, frames) for column in columns]
        rows = self.rows(thing.item, items, own, len(frames), f"{name}[...]")
        for k, column, row in zip(thing.fields, columns, rows):
            if row is not None:
                _add(self.fields, (thing.table, k), row, frames, column)

    def _grown(self, thing: Grown, given: Any, results: list[Any], batch: int, name: str) -> list[Any]:
        """The cotangents of a list in columns: those of its items, column by column."""
        *columns, count = results
        if thing.size is not None and isinstance(given, list) and len(given) == thing.size:  # as the result is stacked
            parts = [self.rows(thing.item, one, [c[:, k] for c in columns], batch, f"{name}[{k}]")
                     for k, one in enumerate(given)]
            return [None if all(r is None for r in row) else np.stack(
                [np.zeros_like(c[:, k]) if r is None else r for k, r in enumerate(row)], axis=1)
                for c, row in zip(columns, zip(*parts))] if parts else [None] * len(columns)
        items = _items(given, count, name)
        if items is None:
            return [None] * len(columns)
        flat = [c.flat() if isinstance(c, RaggedRows) else c.reshape(-1, *c.shape[2:]) for c in columns]
        rows = self.rows(thing.item, items, flat, len(flat[0]) if flat else 0, f"{name}[...]")
        return [None if r is None else packed(r, count[:, None]) if isinstance(c, RaggedRows) else r.reshape(c.shape)
                for r, c in zip(rows, columns)]


def _items(given: Any, count: Any, name: str) -> Any:
    """The cotangents of the items of all lists, one after the other; None where there is no item."""
    if not len(count) and not len(given):
        return None
    try:
        whole = given if isinstance(given, Packed) else pack(list(given))
    except (PackingError, TypeError):
        raise UnsupportedType(f"the {name} has not the structure of the result: lists are needed") from None
    root, schema = whole.root, whole.schema.root
    if not isinstance(root, ListColumn) or not isinstance(schema, ListSchema):
        raise UnsupportedType(f"the {name} has not the structure of the result: lists are needed")
    if not np.array_equal(root.length, count):
        raise UnsupportedType(f"the {name} has lists of other lengths than the result")
    if not count.sum():
        return None
    elements = PackedSchema(schema.element, whole.schema.tables)
    at = runs(root.start, root.length)
    return unpacked(Packed(elements, take(root.elements, at), whole.tables, checked=True))


def _place(thing: Choice, chosen: int) -> slice:
    """Where one alternative's leaves stand among those of all."""
    counts = [len(list(a.leaves())) for a in thing.alternatives]
    first = 1 + sum(counts[:chosen])
    return slice(first, first + counts[chosen])


def _check_kinds(thing: Abstract, given: list[Any], at: Any, name: str) -> None:
    """The cotangent of None is None, that of floats is not: else cotangents stand with the wrong examples."""
    none = isinstance(thing, Const) and thing.value is None
    floats = any(carries_gradient(v.type) for v in thing.leaves())
    for example in at:
        if (given[example] is None) != none and (none or floats and given[example] is None):
            raise UnsupportedType(
                f"the {name} of example {example} is {'a value' if none else 'None'}, its result {describe(thing)}"
            )


def _taken(rows: Any, at: Any) -> Any:
    """Some rows of a row value."""
    if isinstance(rows, tuple):
        return tuple(part[at] for part in rows)
    return rows.take(at) if isinstance(rows, RaggedRows) else rows[at]


def _placed(row: Any, at: Any, result: Any) -> Any:
    """Rows of the examples `at` among zeros, in the sizes of the result."""
    if isinstance(row, RaggedRows):
        out = packed(np.zeros((int(result.sizes.sum()), *row.trail), row.data.dtype), result.dims)
        out.data[runs(out.lo[at], result.sizes[at])] = row.flat()
        return out
    whole = np.zeros((len(result), *row.shape[1:]), row.dtype)
    whole[at] = row
    return whole


def _add(fields: Fields, key: tuple[str, int], row: Any, frames: Any, column: Any) -> None:
    """Adds rows at frames, which may repeat, to the cotangent of a column."""
    if isinstance(row, RaggedRows):
        zeros = packed(np.zeros((int(column.sizes.sum()), *row.trail), row.data.dtype), column.dims)
        total = fields.setdefault(key, zeros)
        np.add.at(total.data, runs(total.lo[frames], column.sizes[frames]), row.flat())
        return
    total = fields.setdefault(key, np.zeros((len(column), *row.shape[1:]), row.dtype))
    np.add.at(total, frames, row)


def parts_given(thing: Struct, given: Any, name: str) -> list[Any]:
    """The cotangents of a container's items, None where there is none. Raises UnsupportedType for another structure."""
    if given is None:
        return [None] * len(thing.items)
    if isinstance(given, Packed):
        given = unpacked(given)
    if thing.kind == "dict" and isinstance(given, dict) and set(given) <= set(thing.names):
        return [given.get(k) for k in thing.names]
    ordered = thing.kind in ("tuple", "list", "namedtuple") and isinstance(given, (tuple, list))
    if ordered and len(given) == len(thing.items):
        return list(given)
    if thing.kind == "dataclass" and type(given) is thing.cls:
        return [getattr(given, str(k)) for k in thing.names]
    raise UnsupportedType(f"the {name} has not the structure of the result: {describe(thing)} is needed")


def _rows(type_: Num, given: Any, result: Any, batch: int, name: str) -> Any:
    if isinstance(given, Packed):
        given = unpacked(given)
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
