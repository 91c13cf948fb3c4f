"""Ops on ragged rows that run on all elements of all rows at once.

`rule` looks at an op and the forms of its operands and gives a function, or None where only buckets serve. The
invariant: a flat rule falls back on the bucket rule for any row sizes that it was not made for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spmd.backend.blas.plan import num, ragged_axes, trail
from spmd.backend.blas.structural import bounded, ragged_element
from spmd.ir.core import Op
from spmd.ir.types import Num
from spmd.ops.primitive import Site
from spmd.ops.table import PRIMITIVES
from spmd.runtime.faults import Faults
from spmd.runtime.ragged import Array, Ragged, from_dense, from_uniform, packed, runs, segment_sum

Rule = Callable[..., Any]


def rule(op: Op, forms: Sequence[str], bucket: Rule) -> Rule | None:
    """The flat rule of an op, if it has one for operands in these forms."""
    record = PRIMITIVES[op.name]
    if (record.chain or record.pointwise) and not bucket_only(op):
        return _elementwise(op, forms, bucket)
    maker = MAKERS.get(op.name)
    return maker(op, tuple(forms), bucket) if maker is not None else None


def bucket_only(op: Op) -> bool:
    """Elementwise ops that can raise go by buckets, which know how to name the row."""
    return PRIMITIVES[op.name].raises([v.type for v in op.operands], op.attrs)


def _types(op: Op) -> list[Num]:
    return [num(v) for v in op.operands]


def _elementwise(op: Op, forms: Sequence[str], bucket: Rule) -> Rule:
    k = ragged_axes(op.result.type)
    inner = trail(num(op.result))
    flat_types = tuple(t.with_shape(inner) for t in _types(op))
    site = Site(flat_types, num(op.result).with_shape(inner), op.attrs, (True,) * len(flat_types))
    run = PRIMITIVES[op.name].rows(site)

    def elementwise(*operands: Any, faults: Faults) -> Any:
        first = next(x for x, f in zip(operands, forms) if f == "ragged")
        if not _aligned(first, operands, forms):
            return bucket(*operands, faults=faults)
        data = []
        for x, form in zip(operands, forms):
            if form == "uniform":
                x = from_uniform(x, len(first), k)
            elif form == "rows":
                x = Ragged(np.ascontiguousarray(x).reshape((-1, *inner)), first.lo, first.dims, True)
            data.append(x.flat())
        return first.with_data(run(*data))

    return elementwise


def _aligned(first: Ragged, operands: Sequence[Any], forms: Sequence[str]) -> bool:
    """Whether all operands have the sizes of the first; only rows that failed before do not."""
    for x, form in zip(operands, forms):
        if form == "ragged":
            if x.dims is not first.dims and not np.array_equal(x.dims, first.dims):
                return False
            continue
        shape = np.shape(x)[1:] if form == "rows" else np.shape(x)
        if not (first.dims == shape[: first.dims.shape[1]]).all():
            return False
    return True


# ---------------------------------------------------------------------------------------------- sizes
def _shape_of(op: Op, forms: tuple[str, ...], bucket: Rule) -> Rule:
    def shape_of(x: Ragged, faults: Faults) -> Array:
        out = np.empty((len(x), x.dims.shape[1] + len(x.trail)), np.int64)
        out[:, : x.dims.shape[1]] = x.dims
        out[:, x.dims.shape[1] :] = x.trail
        return out

    return shape_of


def _dim(op: Op, forms: tuple[str, ...], bucket: Rule) -> Rule:
    axis = op.attrs["axis"] % num(op.operands[0]).rank

    def dim(x: Ragged, faults: Faults) -> Array:
        k = x.dims.shape[1]
        return x.dims[:, axis] if axis < k else np.full(len(x), x.trail[axis - k])

    return dim


def _target(dims: Any, form: str, size: int) -> Array:
    dims = np.asarray(dims, np.int64)
    return dims if form == "rows" else np.broadcast_to(dims, (size, *dims.shape))


def _repeat(op: Op, forms: tuple[str, ...], bucket: Rule) -> Rule | None:
    """broadcast_to and fill_to: a value that is equal along all ragged axes is repeated."""
    source, result = _types(op)[0], num(op.result)
    k, inner = ragged_axes(result), trail(result)
    if forms[0] == "ragged":
        return _broadcast_ragged(k, forms, bucket)
    lead = max(source.rank - len(inner), 0)
    if not source.static or not k or any(n != 1 for n in source.shape[:lead]):
        return None
    own = static_sizes(source)[lead:]

    def repeat(x: Any, dims: Any, faults: Faults) -> Ragged:
        size = len(x) if forms[0] == "rows" else len(dims)
        out = packed(np.empty(0), _target(dims, forms[1], size)[:, :k])
        total = int(out.sizes.sum())
        if forms[0] == "uniform":
            out.data = np.broadcast_to(np.asarray(x, result.dtype).reshape(own), (total, *inner))
            return out
        wide = x.reshape((size,) + (1,) * (len(inner) - len(own)) + own)
        out.data = np.repeat(np.broadcast_to(wide, (size, *inner)), out.sizes, axis=0)
        return out

    return repeat


def static_sizes(type_: Num) -> tuple[int, ...]:
    """The known sizes of a type."""
    return tuple(n for n in type_.shape if n is not None)


def _unbroadcast(op: Op, forms: tuple[str, ...], bucket: Rule) -> Rule | None:
    """The adjoint of a broadcast: where nothing was widened, the cotangent itself."""
    if forms[0] != "ragged" or op.attrs["extra"] or num(op.operands[0]).shape != num(op.result).shape:
        return None

    def unbroadcast(ct: Ragged, dims: Any, faults: Faults) -> Any:
        k = ct.dims.shape[1]
        target = _target(dims, forms[1], len(ct))
        if (target[:, :k] == ct.dims).all() and (target[:, k:] == ct.trail).all():
            return ct
        if k == 1 and (target[:, 0] == 1).all() and (target[:, k:] == ct.trail).all():
            return packed(segment_sum(ct.flat(), ct.sizes), target[:, :1])
        return bucket(ct, dims, faults=faults)

    return unbroadcast


def _broadcast_ragged(k: int, forms: tuple[str, ...], bucket: Rule) -> Rule:
    def broadcast(x: Ragged, dims: Any, faults: Faults) -> Any:
        target = _target(dims, forms[1], len(x))
        whole = x.dims.shape[1]
        if whole == k and target.shape[1] == k + len(x.trail):
            same = (target[:, :k] == x.dims).all() and (target[:, k:] == x.trail).all()
            if same:
                return x
        return bucket(x, dims, faults=faults)

    return broadcast


def _arange(op: Op, forms: tuple[str, ...], bucket: Rule) -> Rule | None:
    if num(op.result).kind != "i" or any(t.kind not in "iu" for t in _types(op)):
        return None
    dtype = np.dtype(num(op.result).dtype)

    def arange(start: Any, stop: Any, step: Any, faults: Faults) -> Ragged:
        size = next(len(x) for x, f in zip((start, stop, step), forms) if f != "uniform")
        start, stop, step = (np.broadcast_to(np.asarray(x, np.int64), (size,)) for x in (start, stop, step))
        if (step == 0).any():
            return bucket(start, stop, step, faults=faults)
        counts = np.maximum(0, -((start - stop) // step))
        out = packed(np.empty(0), counts[:, None])
        within = np.arange(int(counts.sum())) - np.repeat(out.lo, counts)
        out.data = (np.repeat(start, counts) + within * np.repeat(step, counts)).astype(dtype)
        return out

    return arange


# ---------------------------------------------------------------------------------------------- reading
def _index(op: Op, forms: tuple[str, ...], bucket: Rule) -> Rule | None:
    if forms[0] != "ragged":
        return None
    text, exact = op.attrs.get("text", ""), op.attrs.get("exact", False)
    return lambda x, *i, faults: ragged_element(x, i, None if exact else faults, text)[0]


def _put_index(op: Op, forms: tuple[str, ...], bucket: Rule) -> Rule | None:
    """One element or row of the leading axis written anew."""
    if forms[0] != "ragged" or ragged_axes(op.operands[0].type) != 1 or len(op.operands) != 3 or forms[1] == "ragged":
        return None
    exact = op.attrs.get("exact", False)

    def put_index(x: Ragged, part: Any, i: Any, faults: Faults) -> Ragged:
        (at,) = bounded((i,), (x.dims[:, 0],), len(x), None)
        if not exact:
            i = np.broadcast_to(np.asarray(i, np.int64), (len(x),))
            if ((i < -x.dims[:, 0]) | (i >= x.dims[:, 0])).any():
                return bucket(x, part, i, faults=faults)
        out = x.with_data(x.flat().copy())
        some = np.flatnonzero(out.sizes)  # a row that has failed may be empty
        if len(some) < len(x):
            at, part = at[some], part[some] if forms[1] == "rows" else part
        out.data[out.lo[some] + at] = part
        return out

    return put_index


def _concat(op: Op, forms: tuple[str, ...], bucket: Rule) -> Rule | None:
    """Arrays laid one after the other along their first axis."""
    if op.attrs["axis"] != 0 or any(ragged_axes(v.type) > 1 for v in op.operands) or ragged_axes(op.result.type) != 1:
        return None

    def concat(*parts: Any, faults: Faults) -> Ragged:
        size = next(len(x) for x, f in zip(parts, forms) if f != "uniform")
        rows = [x if f == "ragged" else from_dense(x, 1) if f == "rows" else from_uniform(x, size, 1)
                for x, f in zip(parts, forms)]
        out = packed(np.empty((0, *rows[0].trail), rows[0].data.dtype), np.sum([r.dims for r in rows], axis=0))
        out.data = np.empty((int(out.sizes.sum()), *rows[0].trail), rows[0].data.dtype)
        lo = out.lo
        for r in rows:
            out.data[runs(lo, r.sizes)] = r.flat()
            lo = lo + r.sizes
        return out

    return concat


def _onto_index(op: Op, forms: tuple[str, ...], bucket: Rule) -> Rule | None:
    """Zeros with a value added at one element of the leading axis."""
    result = num(op.result)
    if ragged_axes(result) != 1 or len(op.operands) != 3 or forms[0] != "rows":
        return None
    inner = trail(result)

    def onto_index(g: Array, i: Any, dims: Any, faults: Faults) -> Ragged:
        target = _target(dims, forms[2], len(g))
        out = packed(np.empty(0), target[:, :1])
        out.data = np.zeros((int(out.sizes.sum()), *inner), result.dtype)
        some = np.flatnonzero(out.sizes)
        (at,) = bounded((i,), (out.sizes,), len(g), None)
        out.data[out.lo[some] + at[some]] = g[some]
        return out

    return onto_index


def _first(op: Op, forms: tuple[str, ...], bucket: Rule) -> Rule | None:
    """Where each vector of truth values is True for the first time, -1 if nowhere."""
    if forms[0] != "ragged":
        return None

    def first(x: Ragged, faults: Faults) -> Array:
        x = x.pack()
        places = np.flatnonzero(x.data)
        nearest = np.searchsorted(places, x.lo)
        found = np.append(places, len(x.data))[nearest] - x.lo
        return np.where(found < x.sizes, found, -1)

    return first


def _dynslice(op: Op, forms: tuple[str, ...], bucket: Rule) -> Rule | None:
    """A stretch of the leading axis is a handle into the same buffer."""
    step = op.attrs.get("step", 1)
    if forms[0] != "ragged" or ragged_axes(op.operands[0].type) != 1 or step != 1 or op.attrs.get("axis", 0) != 0:
        return None
    if op.attrs.get("size") is not None:  # rows of one size: no handles
        return None
    has_start, has_stop = op.attrs.get("given", (True, True))

    def dynslice(x: Ragged, *bounds: Any, faults: Faults) -> Ragged:
        n = x.dims[:, 0]
        low = _clipped(bounds[0], n) if has_start else np.zeros_like(n)
        high = _clipped(bounds[-1], n) if has_stop else n
        return Ragged(x.data, x.lo + low, np.maximum(high - low, 0)[:, None])

    return dynslice


def _clipped(at: Any, n: Array) -> Array:
    """Bound of a slice as Python reads it."""
    at = np.broadcast_to(np.asarray(at, np.int64), n.shape)
    return np.clip(np.where(at < 0, at + n, at), 0, n)


def _take(op: Op, forms: tuple[str, ...], bucket: Rule) -> Rule | None:
    """Rows of one shared table at ragged indices."""
    if forms[0] != "uniform" or forms[1] != "ragged" or op.attrs.get("axis", 0) != 0:
        return None
    if ragged_axes(op.operands[1].type) != num(op.operands[1]).rank or num(op.operands[1]).rank != 1:
        return None

    def take(x: Any, index: Ragged, faults: Faults) -> Any:
        at, n = index.flat(), len(x)
        if len(at) and (at.min() < -n or at.max() >= n):
            return bucket(x, index, faults=faults)
        return index.with_data(np.asarray(x)[at])

    return take


# ---------------------------------------------------------------------------------------------- sums and products
def _sum(op: Op, forms: tuple[str, ...], bucket: Rule) -> Rule | None:
    source = num(op.operands[0])
    k = ragged_axes(source)
    axes = tuple(sorted(a % source.rank for a in op.attrs["axes"]))
    dtype = np.dtype(num(op.result).dtype)
    if forms[0] != "ragged":
        return None
    if axes and min(axes) >= k:
        inner = tuple(a - k + 1 for a in axes)
        keep = bool(op.attrs.get("keepdims"))
        return lambda x, faults: x.with_data(np.sum(x.flat(), axis=inner, keepdims=keep, dtype=dtype))
    if axes[:k] != tuple(range(k)):
        return None
    inner = tuple(a - k + 1 for a in axes[k:])
    shape = tuple(n or 0 for n in num(op.result).shape)

    def total(x: Ragged, faults: Faults) -> Array:
        data = x.flat()
        if inner:
            data = np.sum(data, axis=inner, dtype=dtype)
        return segment_sum(data.astype(dtype, copy=False), x.sizes).reshape((len(x), *shape))

    return total


def _matmul(op: Op, forms: tuple[str, ...], bucket: Rule) -> Rule | None:
    """Products over flat data; one in which 0 times anything is 0 goes by the general rule where that shows."""
    product = _flat_product(op, forms, bucket)
    if product is None or not op.attrs.get("strong"):
        return product

    def strong(x: Any, y: Any, faults: Faults) -> Any:
        out = product(x, y, faults)
        data = out.flat() if isinstance(out, Ragged) else out
        return out if np.isfinite(np.sum(data)) else bucket(x, y, faults=faults)

    return strong


def _flat_product(op: Op, forms: tuple[str, ...], bucket: Rule) -> Rule | None:
    """Products whose ragged axis is the first of the left operand, and inner products over it."""
    left, right = _types(op)
    if forms[0] != "ragged" or ragged_axes(left) != 1:
        return None
    if left.rank == 2 and right.rank <= 2 and forms[1] == "uniform":
        return lambda x, w, faults: x.with_data(x.flat() @ w)
    if left.rank == 2 and forms[1] == "rows" and right.rank == 1:
        return lambda x, v, faults: x.with_data(np.einsum("td,td->t", x.flat(), np.repeat(v, x.sizes, axis=0)))
    if left.rank == 1 and forms[1] == "ragged" and ragged_axes(right) == 1 and right.rank <= 2:
        wide = (slice(None), None) if right.rank == 2 else (slice(None),)

        def inner(x: Ragged, y: Ragged, faults: Faults) -> Any:
            if not np.array_equal(x.sizes, y.sizes):
                return bucket(x, y, faults=faults)
            return segment_sum(x.flat()[wide] * y.flat(), x.sizes)

        return inner
    return None


MAKERS: dict[str, Callable[[Op, tuple[str, ...], Rule], Rule | None]] = {
    "shape_of": _shape_of,
    "dim": _dim,
    "broadcast_to": _repeat,
    "fill_to": _repeat,
    "unbroadcast": _unbroadcast,
    "arange": _arange,
    "index": _index,
    "onto_index": _onto_index,
    "put_index": _put_index,
    "concat": _concat,
    "first": _first,
    "dynslice": _dynslice,
    "take": _take,
    "sum": _sum,
    "matmul": _matmul,
}
