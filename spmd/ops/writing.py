"""Arrays with a part written anew: the functional twins of `a[i] = v`, one for each way of reading a part.

The invariant: operand 0 keeps its shape and dtype, operand 1 has the shape and dtype of the part that it replaces;
negative indices and ends out of range mean what they mean in a read. The cotangent of the whole is the result's with
zeros in the part; the part's cotangent is the result's part. `copy` is an array with memory of its own: the same value
to everything but the question which names share it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spmd.ir.build import Builder
from spmd.ir.core import Op, Value
from spmd.ir.types import Num, Type
from spmd.ops.calculus import constant, expanded, masked, num, shaped
from spmd.ops.faults import blame
from spmd.ops.indexing import any_bad, wrapped
from spmd.ops.inference import agree, integer, numbers
from spmd.ops.primitive import Faults, Primitive, Site
from spmd.ops.shaping import every_row
from spmd.ops.slicing import BOTH, Index, extent, python_slice

X = np.arange(1.0, 13.0).reshape(3, 4) ** 1.5
V = np.array([1.5, -2.0, 3.5, 0.25])
W = np.array([9.0, -7.0, 5.0, -3.0])


def _whole(name: str, types: Sequence[Type], shape: Sequence[int | None]) -> Num:
    """The type of the whole, if the part has the given shape and the whole's dtype."""
    x, part = numbers(name, types)[:2]
    if part.dtype != x.dtype or part.rank != len(shape) or not all(agree(m, n) for m, n in zip(part.shape, shape)):
        raise TypeError(f"'{name}' cannot put {part} into {x}")
    return Num(x.dtype, x.shape)


def _zeros(b: Builder, like: Value) -> Value:
    return constant(b, 0, like)


def _copied(site: Site, x: Any, part: Any, *rest: Any) -> Any:
    """The whole for every row, in memory of its own."""
    rows = every_row(site, (x, part, *rest))[0]
    return np.array(rows)


# ----------------------------------------------------------------------------------------------------------- copy
def _infer_copy(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    (x,) = numbers("copy", types, 1)
    return Num(x.dtype, x.shape)


def _copy_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    return (ct,)


# ------------------------------------------------------------------------------------------------------ put_index
def _infer_index(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    x = numbers("put_index", types)[0]
    for type_ in types[2:]:
        integer("put_index", type_)
    count = len(types) - 2
    if count > x.rank:
        raise IndexError(f"too many indices for array: array is {x.rank}-dimensional, but {count} were indexed")
    return _whole("put_index", types, x.shape[count:])


def _inexact(types: Sequence[Type], attrs: dict[str, Any]) -> bool:
    return not attrs.get("exact", False)


def _put_index(x: Any, part: Any, *ids: Any, exact: bool = False) -> Any:
    out = np.array(x)
    out[tuple(int(i) for i in ids)] = part
    return out


def _rows_index(site: Site) -> Callable[..., Any]:
    count = len(site.types) - 2

    def run(x: Any, part: Any, *ids: Any, faults: Faults | None = None) -> Any:
        out = _copied(site, x, part, *ids)
        sizes = out.shape[1 : 1 + count]
        found = [wrapped(i, n) for i, n in zip(ids, sizes)]
        bad = any_bad([f[1] for f in found])
        if faults is not None and bad is not None:
            blame(faults, bad, site, _put_index, (x, part, *ids))
        if 0 not in sizes:
            out[(np.arange(len(out)), *[f[0] for f in found])] = part
        return out

    return run


def _index_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    part, ids = op.operands[1], op.operands[2:]
    whole = b.emit("put_index", ct, _zeros(b, part), *ids, exact=True)
    return (whole, shaped(b, b.emit("index", ct, *ids, exact=True), part), *([None] * len(ids)))


# ------------------------------------------------------------------------------------------------------ put_slice
def _infer_slice(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    x = numbers("put_slice", types, 2)[0]
    if any(entry is not None and size is None for entry, size in zip(attrs["index"], x.shape)):
        raise TypeError("'put_slice' cuts axes of known size only")
    return _whole("put_slice", types, [extent(entry, size) for entry, size in zip(attrs["index"], x.shape)])


def _put_slice(x: Any, part: Any, index: Index) -> Any:
    out = np.array(x)
    out[tuple(map(python_slice, index))] = part
    return out


def _rows_slice(site: Site) -> Callable[..., Any]:
    index = (slice(None), *map(python_slice, site.attrs["index"]))

    def run(x: Any, part: Any) -> Any:
        out = _copied(site, x, part)
        out[index] = part
        return out

    return run


def _slice_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    part, index = op.operands[1], op.attrs["index"]
    return b.emit("put_slice", ct, _zeros(b, part), index=index), shaped(b, b.emit("slice", ct, index=index), part)


# --------------------------------------------------------------------------------------------------- put_dynslice
def _infer_dynslice(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    x = numbers("put_dynslice", types, 2 + sum(attrs.get("given", BOTH)))[0]
    for type_ in types[2:]:
        integer("put_dynslice", type_)
    axis = attrs["axis"]
    return _whole("put_dynslice", types, (*x.shape[:axis], attrs.get("size"), *x.shape[axis + 1 :]))


def _cuts(operands: Sequence[Any], attrs: dict[str, Any], row: int | None) -> slice:
    """The slice of one row."""
    ends = iter(operands)
    given = attrs.get("given", BOTH)
    bounds: list[int | None] = []
    for here in given:
        end = np.asarray(next(ends)) if here else None
        at = row if row is not None and end is not None and end.ndim else ()
        bounds.append(None if end is None else int(end[at]))
    return slice(bounds[0], bounds[1], attrs.get("step", 1))


def _put_dynslice(x: Any, part: Any, *bounds: Any, axis: int, **attrs: Any) -> Any:
    out = np.array(x)
    out[(*((slice(None),) * axis), _cuts(bounds, attrs, None))] = part
    return out


def _rows_dynslice(site: Site) -> Callable[..., Any]:
    axis, attrs = site.attrs["axis"], site.attrs

    def run(x: Any, part: Any, *bounds: Any) -> Any:
        out = _copied(site, x, part, *bounds)
        first = (slice(None),) * axis
        ends = [e for e, varying in zip(bounds, site.varying[2:]) if varying]
        if all((e == e[:1]).all() for e in ends):
            if len(out):
                out[(slice(None), *first, _cuts(bounds, attrs, 0))] = part
            return out
        for row in range(len(out)):  # slices of one size that begin in different places
            out[(row, *first, _cuts(bounds, attrs, row))] = part[row] if site.varying[1] else part
        return out

    return run


def _dynslice_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    part, bounds = op.operands[1], op.operands[2:]
    whole = b.emit("put_dynslice", ct, _zeros(b, part), *bounds, **op.attrs)
    back = b.emit("dynslice", ct, *bounds, **op.attrs)
    return (whole, shaped(b, back, part), *([None] * len(bounds)))


def _sizes_dynslice(types: Sequence[Type], attrs: dict[str, Any]) -> tuple[int, ...]:
    return tuple(range(2, len(types))) if attrs.get("size") is None else ()


# ------------------------------------------------------------------------------------------------------- put_take
def _infer_take(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    x, _, idx = numbers("put_take", types, 3)
    if idx.kind not in "iu" or idx.text:
        raise IndexError("arrays used as indices must be of integer (or boolean) type")
    axis = attrs["axis"]
    return _whole("put_take", types, (*x.shape[:axis], *idx.shape, *x.shape[axis + 1 :]))


def _put_take(x: Any, part: Any, idx: Any, axis: int, exact: bool = False) -> Any:
    out = np.array(x)
    out[(slice(None),) * axis + (np.asarray(idx),)] = part
    return out


def _rows_take(site: Site) -> Callable[..., Any]:
    axis, rank = site.attrs["axis"], site.types[2].rank

    def run(x: Any, part: Any, idx: Any, faults: Faults | None = None) -> Any:
        out = _copied(site, x, part, idx)
        at, bad = wrapped(idx, out.shape[axis + 1])
        if faults is not None and bad is not None:
            outside = bad.any(tuple(range(1, bad.ndim))) if site.varying[2] else bad.any()
            blame(faults, outside, site, _put_take, (x, part, idx))
        if not out.shape[axis + 1]:
            return out
        if not site.varying[1]:
            part = np.broadcast_to(part, (len(out), *np.shape(part)))
        if not site.varying[2]:
            at = np.broadcast_to(at, (len(out), *np.shape(at)))
        moved = np.moveaxis(part, list(range(1 + axis, 1 + axis + rank)), list(range(1, 1 + rank)))
        lanes = np.arange(len(out)).reshape((-1,) + (1,) * rank)
        np.moveaxis(out, axis + 1, 1)[lanes, at] = moved
        return out

    return run


def _take_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    """Of several values written to one place the last one stays."""
    x, part, idx = op.operands
    axis = op.attrs["axis"]
    whole = b.emit("put_take", ct, _zeros(b, part), idx, axis=axis, exact=True)
    back = shaped(b, b.emit("take", ct, idx, axis=axis, exact=True), part)
    size = num(x).shape[axis]
    last = b.emit("last_places", idx, b.emit("dim", x, axis=axis) if size is None else b.const(size))
    rank, inner = num(part).rank, range(axis, axis + num(idx).rank)
    last = expanded(b, last, [k for k in range(rank) if k not in inner], rank)
    if num(part).shape != num(last).shape:
        shape = num(part).shape
        last = (b.emit("broadcast_to", last, b.emit("shape_of", part), shape=shape) if None in shape
                else b.emit("broadcast", last, shape=shape))
    return whole, masked(b, shaped(b, last, part), back), None


# ---------------------------------------------------------------------------------------------------- last_places
def _infer_last(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    idx = numbers("last_places", types, 2)[0]
    return Num("bool", idx.shape)


def _last_places(idx: Any, size: Any) -> Any:
    """Where an index occurs for the last time; negative ones count from the back of `size`."""
    flat = np.asarray(idx).reshape(-1)
    flat = np.where(flat < 0, flat + int(size), flat)
    _, last = np.unique(flat[::-1], return_index=True)
    out = np.zeros(flat.size, bool)
    out[flat.size - 1 - last] = True
    return out.reshape(np.shape(idx))


def _rows_last(site: Site) -> Callable[..., Any]:
    def run(idx: Any, size: Any) -> Any:
        idx, size = every_row(site, (idx, size))
        return np.stack([_last_places(i, n) for i, n in zip(idx, size)]) if len(idx) else np.zeros(idx.shape, bool)

    return run


# ---------------------------------------------------------------------------------------------------------- first
def _infer_first(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    (x,) = numbers("first", types, 1)
    if x.kind != "b" or x.rank != 1:
        raise TypeError(f"'first' takes a vector of truth values, not {x}")
    return Num("int64")


def _first(x: Any) -> Any:
    """Where a vector is True for the first time; -1 if it is nowhere."""
    return np.int64(np.argmax(x) if np.any(x) else -1)


def _rows_first(site: Site) -> Callable[..., Any]:
    def run(x: Any) -> Any:
        return np.where(x.any(axis=1), np.argmax(x, axis=1), -1) if x.shape[1] else np.full(len(x), -1)

    return run


ROWS = {"index": ((1, 3, 1), None)}
CUT = {"axis": 0, "step": 1}
WRITING: tuple[Primitive, ...] = (
    Primitive("copy", _infer_copy, lambda x: np.array(x), lambda site: np.array, _copy_adjoint,
              samples=(((V,), {}), ((X,), {}))),
    Primitive(
        "put_index", _infer_index, _put_index, _rows_index, _index_adjoint, _inexact,
        samples=(
            ((V, np.float64(9.0), 1), {}), ((V, np.float64(9.0), -4), {}), ((V, np.float64(9.0), 4), {}),
            ((X, W, 2), {}), ((X, W, -4), {}), ((X, np.float64(9.0), 2, -1), {}), ((X, np.float64(9.0), 0, 4), {}),
        ),
    ),
    Primitive("put_slice", _infer_slice, _put_slice, _rows_slice, _slice_adjoint,
              samples=(((X, X[:2] * 2), ROWS), ((V, W[:2]), {"index": ((3, -1, -2),)}))),
    Primitive(
        "put_dynslice", _infer_dynslice, _put_dynslice, _rows_dynslice, _dynslice_adjoint, sizes=_sizes_dynslice,
        samples=(((V, W[:2], 1, 3), CUT), ((V, W[:2], -2, 4), CUT), ((X, X[:2], 0, 2), CUT),
                 ((X, X[:, :1], 2, 3), {"axis": 1, "step": 1})),
    ),
    Primitive(
        "put_take", _infer_take, _put_take, _rows_take, _take_adjoint, _inexact,
        samples=(
            ((V, W[:3], np.array([1, -1, 1])), {"axis": 0}), ((V, W[:2], np.array([0, 4])), {"axis": 0}),
            ((X, X[:2] * 3, np.array([2, -3])), {"axis": 0}), ((X, X[:, :2] * 3, np.array([3, 3])), {"axis": 1}),
        ),
    ),
    Primitive("first", _infer_first, _first, _rows_first,
              samples=(((np.array([False, True, True]),), {}), ((np.array([False, False]),), {}))),
    Primitive("last_places", _infer_last, _last_places, _rows_last,
              samples=(((np.array([1, -1, 1, 3]), 4), {}), ((np.array([[0, 0], [1, 0]]), 2), {}))),
)
