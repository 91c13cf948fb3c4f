"""Element reads by computed index (`index`, `take`) and their adjoints, which add into zeros of the shape.

The invariants: negative indices count from the back; one out of range is reported for its row with NumPy's text and
replaced, so that no read leaves the array. The adjoint of a read is an `onto_index` or `onto_take`, which the backend
adds in place into the cotangent: no cotangent of the array's size arises.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spmd.ir.build import Builder
from spmd.ir.core import Op, Value
from spmd.ir.types import Num, Shape, Type
from spmd.ops.broadcasting import target, target_dims
from spmd.ops.calculus import num, shaped, sizes_of
from spmd.ops.faults import blame, row_count
from spmd.ops.inference import integer, numbers
from spmd.ops.primitive import Faults, Primitive, Site

X = np.arange(1.0, 13.0).reshape(3, 4) ** 1.5
V = np.array([1.5, -2.0, 3.5, 0.25])


def _inexact(types: Sequence[Type], attrs: dict[str, Any]) -> bool:
    return not attrs.get("exact", False)


def wrapped(index: Any, size: int) -> tuple[Any, Any]:
    """(index from 0, rows that are out of range or None); those get index 0."""
    index = np.asarray(index)
    if index.dtype == np.uint64:
        index = np.minimum(index, np.uint64(2**62))
    index = index.astype(np.int64, copy=False)
    if (index.view(np.uint64) < size).all():  # seen as unsigned, a negative number is a huge one
        return index, None
    bad = (index < -size) | (index >= size)
    return np.where(bad, 0, np.where(index < 0, index + size, index)), bad


def any_bad(found: Sequence[Any]) -> Any:
    """Where any of several indices is out of range; None if nowhere."""
    bad = [b for b in found if b is not None]
    return functools.reduce(np.logical_or, bad) if bad else None


# --------------------------------------------------------------------------------------------------------- index
def _infer_index(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    x = numbers("index", types)[0]
    for type_ in types[1:]:
        integer("index", type_)
    count = len(types) - 1
    if count > x.rank:
        raise IndexError(
            f"too many indices for array: array is {x.rank}-dimensional, but {count} were indexed"
        )
    return Num(x.dtype, x.shape[count:])


def _index(x: Any, *ids: Any, exact: bool = False, text: str = "") -> Any:
    """`text` is the message of the container that the stacked items stand for; else the message is NumPy's."""
    try:
        return x[tuple(int(i) for i in ids)]
    except IndexError:
        if text:
            raise IndexError(text) from None
        raise


def _rows_index(site: Site) -> Callable[..., Any]:
    """One fancy read; rows of a shared array are gathered by `take`, which is faster."""
    first, count = site.varying[0], len(site.types) - 1
    indexed = any(site.varying[1:])
    lead = 1 if first else 0

    def run(x: Any, *ids: Any, faults: Faults | None = None) -> Any:
        sizes = x.shape[lead : lead + count]
        found = [wrapped(i, n) for i, n in zip(ids, sizes)]
        if faults is not None:
            bad = any_bad([f[1] for f in found])
            if bad is not None:
                blame(faults, bad, site, _index, (x, *ids))
        if 0 in sizes:
            return np.zeros((row_count(site, (x, *ids)), *x.shape[lead + count :]), x.dtype)
        at = [f[0] for f in found]
        if not first:
            return x.take(at[0], 0) if count == 1 else x[tuple(at)]
        if not indexed:
            return x[(slice(None), *[int(i) for i in at])]
        return x[(np.arange(len(x)), *at)]

    return run


def _index_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    x, *ids = op.operands
    into = b.emit("onto_index", ct, *ids, *sizes_of(b, x), shape=num(x).shape, dtype=num(x).dtype)
    return (into, *([None] * len(ids)))


# ---------------------------------------------------------------------------------------------------- onto_index
def _split(operands: Sequence[Any], shape: Shape) -> tuple[Sequence[Any], Any]:
    """The index operands and the sizes operand, if there is one."""
    return (operands[:-1], operands[-1]) if None in shape else (operands, None)


def _infer_onto(name: str) -> Callable[[Sequence[Type], dict[str, Any]], Num]:
    def infer(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
        g = numbers(name, types)[0]
        if None in attrs["shape"]:
            target_dims(name, types[-1], attrs["shape"])
        return Num(g.dtype, tuple(attrs["shape"]))

    return infer


def _sizes_onto(types: Sequence[Type], attrs: dict[str, Any]) -> tuple[int, ...]:
    return (len(types) - 1,) if None in attrs["shape"] else ()


def _onto_index(g: Any, *operands: Any, shape: Shape, dtype: str = "") -> Any:
    ids, dims = _split(operands, shape)
    out = np.zeros(target(shape, dims), np.asarray(g).dtype)
    out[tuple(int(i) for i in ids)] = g
    return out


def _rows_onto_index(site: Site) -> Callable[..., Any]:
    shape = site.attrs["shape"]

    def run(g: Any, *operands: Any) -> Any:
        ids, dims = _split(operands, shape)
        count = row_count(site, (g, *operands))
        out = np.zeros((count, *target(shape, dims)), np.asarray(g).dtype)
        out[(np.arange(count), *ids)] = g
        return out

    return run


def _onto_index_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    ids, dims = _split(op.operands[1:], op.attrs["shape"])
    rest = [None] * (len(op.operands) - 1)
    return (shaped(b, b.emit("index", ct, *ids, exact=True), op.operands[0]), *rest)


# ---------------------------------------------------------------------------------------------------------- take
def _infer_take(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    x, idx = numbers("take", types, 2)
    if idx.kind not in "iu" or idx.text:
        raise IndexError("arrays used as indices must be of integer (or boolean) type")
    axis = attrs["axis"]
    if not 0 <= axis < x.rank:
        raise IndexError("too many indices for array")
    return Num(x.dtype, (*x.shape[:axis], *idx.shape, *x.shape[axis + 1 :]))


def _take(x: Any, idx: Any, axis: int, exact: bool = False) -> Any:
    return np.asarray(x)[(slice(None),) * axis + (np.asarray(idx),)]


def _rows_take(site: Site) -> Callable[..., Any]:
    axis, (first, second) = site.attrs["axis"], site.varying
    rank = site.types[1].rank

    def run(x: Any, idx: Any, faults: Faults | None = None) -> Any:
        size = x.shape[axis + 1] if first else x.shape[axis]
        at, bad = wrapped(idx, size)
        if faults is not None and bad is not None:
            outside = bad.any(tuple(range(1, bad.ndim))) if second else bad.any()
            blame(faults, outside, site, _take, (x, idx))
        if not size:
            shape = x.shape[1:] if first else x.shape
            inner = at.shape[1:] if second else at.shape
            return np.zeros((row_count(site, (x, idx)), *shape[:axis], *inner, *shape[axis + 1 :]), x.dtype)
        if not second:
            return np.take(x, at, axis=axis + 1)
        if not first:
            return np.moveaxis(np.take(x, at, axis=axis), axis, 0) if axis else np.take(x, at, axis=0)
        lanes = np.arange(len(x)).reshape((-1,) + (1,) * rank)
        found = np.moveaxis(x, axis + 1, 1)[lanes, at]
        return np.moveaxis(found, list(range(1, 1 + rank)), list(range(1 + axis, 1 + axis + rank)))

    return run


def _take_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    x, idx = op.operands
    return b.emit("onto_take", ct, idx, *sizes_of(b, x), shape=num(x).shape, axis=op.attrs["axis"]), None


# ----------------------------------------------------------------------------------------------------- onto_take
def _onto_take(g: Any, idx: Any, *dims: Any, shape: Shape, axis: int) -> Any:
    idx = np.asarray(idx)
    out = np.zeros(target(shape, dims[0] if dims else None), np.asarray(g).dtype)
    moved = np.moveaxis(g, list(range(axis, axis + idx.ndim)), list(range(idx.ndim)))
    np.add.at(np.moveaxis(out, axis, 0), idx, moved)
    return out


def _rows_onto_take(site: Site) -> Callable[..., Any]:
    shape, axis, rank = site.attrs["shape"], site.attrs["axis"], site.types[1].rank

    def run(g: Any, idx: Any, *dims: Any) -> Any:
        count = row_count(site, (g, idx, *dims))
        out = np.zeros((count, *target(shape, dims[0] if dims else None)), np.asarray(g).dtype)
        if not site.varying[0]:
            g = np.broadcast_to(g, (count, *np.shape(g)))
        if not site.varying[1]:
            idx = np.broadcast_to(idx, (count, *np.shape(idx)))
        moved = np.moveaxis(g, list(range(1 + axis, 1 + axis + rank)), list(range(1, 1 + rank)))
        lanes = np.broadcast_to(np.arange(count).reshape((-1,) + (1,) * rank), idx.shape)
        np.add.at(np.moveaxis(out, axis + 1, 1), (lanes, idx), moved)
        return out

    return run


def _onto_take_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    rest = [None] * (len(op.operands) - 1)
    back = b.emit("take", ct, op.operands[1], axis=op.attrs["axis"], exact=True)
    return (shaped(b, back, op.operands[0]), *rest)


FROM_INDEX = {"shape": (3, 4), "dtype": "float64"}
INDEXING: tuple[Primitive, ...] = (
    Primitive(
        "index", _infer_index, _index, _rows_index, _index_adjoint, _inexact,
        samples=(
            ((V, 1), {}), ((V, -4), {}), ((V, 4), {}), ((V, -5), {}),
            ((X, 2), {}), ((X, -1), {}), ((X, 2, -1), {}), ((X, 0, 3), {}), ((X, 3, 0), {}), ((X, 0, -5), {}),
            ((V, np.int32(2)), {}), ((V, np.uint64(2**63)), {}),
        ),
    ),
    Primitive(
        "onto_index", _infer_onto("onto_index"), _onto_index, _rows_onto_index, _onto_index_adjoint,
        sizes=_sizes_onto,
        samples=(
            ((V, 1), FROM_INDEX), ((V, -3), FROM_INDEX), ((np.float64(2.5), 1, -1), FROM_INDEX),
            ((np.float64(2.5), 0, 2), FROM_INDEX),
            ((V, 1, np.array([3, 4])), {"shape": (None, 4), "dtype": "float64"}),
        ),
    ),
    Primitive(
        "take", _infer_take, _take, _rows_take, _take_adjoint, _inexact,
        samples=(
            ((V, np.array([1, -1, 1])), {"axis": 0}), ((V, np.array([0, 4, 1])), {"axis": 0}),
            ((X, np.array([[2, 0], [1, 1]])), {"axis": 1}), ((X, np.array([[0, 9], [1, 1]])), {"axis": 1}),
            ((V, np.int8(2)), {"axis": 0}), ((X, np.array([2, 2])), {"axis": 0}),
        ),
    ),
    Primitive(
        "onto_take", _infer_onto("onto_take"), _onto_take, _rows_onto_take, _onto_take_adjoint, sizes=_sizes_onto,
        samples=(
            ((V[:3], np.array([1, -1, 1])), {"shape": (4,), "axis": 0}),
            ((X[:, :2].reshape(3, 1, 2), np.array([[1, 1]])), {"shape": (3, 4), "axis": 1}),
        ),
    ),
)
