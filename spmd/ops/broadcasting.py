"""Broadcasts, and the sizes of arrays as values.

The invariants: static targets are attributes; a target whose sizes differ between examples comes as an operand, an
int64 vector of sizes (`dims`), while the attribute `shape` says which sizes are known. Values are repeated, by view.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spmd.ir.build import Builder
from spmd.ir.core import Op, Value
from spmd.ir.types import INT, Num, Shape, Type
from spmd.ops.calculus import dims_of, num, shaped
from spmd.ops.faults import blame
from spmd.ops.inference import broadcast_shape, numbers, shown
from spmd.ops.primitive import Faults, Primitive, Site

A23 = np.array([[1.5, -2.0, 0.25], [3.0, 0.5, -1.0]])
B23 = np.array([[0.5, 4.0, -0.25], [1.0, 2.5, 7.0]])
V3 = np.array([1.0, -2.0, 3.5])


def target_dims(name: str, type_: Type, shape: Shape) -> None:
    """Check that an operand is the vector of sizes of `shape`. Raises TypeError."""
    if not isinstance(type_, Num) or type_.dtype != "int64" or type_.shape != (len(shape),):
        raise TypeError(f"'{name}' takes a vector of {len(shape)} sizes, not {type_}")


def sizes_operand(position: int) -> Callable[[Sequence[Type], dict[str, Any]], tuple[int, ...]]:
    """The operand at `position` (from the end if negative) decides the result's sizes, where they are not static."""

    def sizes(types: Sequence[Type], attrs: dict[str, Any]) -> tuple[int, ...]:
        return () if None not in attrs["shape"] else (position % len(types),)

    return sizes


def target(shape: Shape, dims: Any) -> tuple[int, ...]:
    """The sizes: static ones, or the operand's (equal in all rows of a bucket)."""
    if None not in shape:
        return tuple(n for n in shape if n is not None)
    dims = np.asarray(dims)
    if dims.ndim == 2:
        dims = dims[0] if len(dims) else np.zeros(dims.shape[1], np.int64)
    return tuple(int(n) for n in dims)


def widened(x: Any, rank: int) -> Any:
    """Rows [K, *shape] with axes of size 1 behind the row axis, so that they align with arrays of `rank`."""
    return x.reshape(x.shape[:1] + (1,) * (rank - x.ndim + 1) + x.shape[1:])


# ---------------------------------------------------------------------------------------------------- broadcast
def _infer_broadcast(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    (x,) = numbers("broadcast", types, 1)
    if not x.static:
        raise TypeError(f"'broadcast' takes static shapes, not {x}")
    return _broadcast_type(x, tuple(attrs["shape"]))


def _broadcast_type(x: Num, shape: Shape) -> Num:
    try:
        fitting = x.text is False and len(x.shape) <= len(shape)
        broadcast_shape(x.shape, shape)
        fitting = fitting and all(
            m in (1, n) or m is None or n is None for m, n in zip(x.shape[::-1], shape[::-1])
        )
    except ValueError:
        fitting = False
    if not fitting:
        raise ValueError(f"could not broadcast input array from shape {shown(x.shape)} into shape {shown(shape)}")
    return Num(x.dtype, shape)


def _broadcast(x: Any, shape: Shape) -> Any:
    return np.broadcast_to(np.asarray(x), target(shape, None))[()]


def _rows_broadcast(site: Site) -> Callable[..., Any]:
    shape = tuple(site.attrs["shape"])
    return lambda x: np.broadcast_to(widened(x, len(shape)), (len(x), *shape))


def _broadcast_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    """The sum over the axes that were added or widened."""
    x, (rank, wide) = op.operands[0], (num(op.result).rank, num(op.result).shape)
    extra = rank - num(x).rank
    axes = list(range(extra))
    axes += [k + extra for k, n in enumerate(num(x).shape) if n == 1 and wide[k + extra] != 1]
    summed = b.emit("sum", ct, axes=tuple(axes), keepdims=False) if axes else ct
    return (shaped(b, summed, x), *([None] * (len(op.operands) - 1)))


def _broadcast_to_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    """As `broadcast`; an axis whose size is not known may have been widened, so its sum is kept where it was 1."""
    x = op.operands[0]
    shape, wide = num(x).shape, num(op.result).shape
    extra = len(wide) - len(shape)
    if not any(n is None for n in shape):
        return _broadcast_adjoint(b, op, ct)
    return b.emit("unbroadcast", ct, b.emit("shape_of", x), shape=shape, extra=extra), None


def _infer_broadcast_to(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    x, _ = numbers("broadcast_to", types, 2)
    target_dims("broadcast_to", types[1], attrs["shape"])
    return _broadcast_type(x, tuple(attrs["shape"]))


def _rows_broadcast_to(site: Site) -> Callable[..., Any]:
    shape, (first, _) = site.attrs["shape"], site.varying

    def run(x: Any, dims: Any) -> Any:
        sizes = target(shape, dims)
        return np.broadcast_to(widened(x, len(sizes)) if first else x, (len(x) if first else len(dims), *sizes))

    return run


# ---------------------------------------------------------------------------------------------- its adjoint helper
def _infer_unbroadcast(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    ct, _ = numbers("unbroadcast", types, 2)
    target_dims("unbroadcast", types[1], attrs["shape"])
    return Num(ct.dtype, tuple(attrs["shape"]))


def _unbroadcast(ct: Any, dims: Any, shape: Shape, extra: int) -> Any:
    return unbroadcast(np.asarray(ct), tuple(int(n) for n in dims), extra, 0)[()]


def unbroadcast(ct: Any, sizes: tuple[int, ...], extra: int, lead: int) -> Any:
    """A cotangent summed to `sizes`, behind `lead` row axes."""
    if extra:
        ct = ct.sum(axis=tuple(range(lead, lead + extra)))
    axes = tuple(lead + k for k, n in enumerate(sizes) if n == 1 and ct.shape[lead + k] != 1)
    return ct.sum(axis=axes, keepdims=True) if axes else ct


def _rows_unbroadcast(site: Site) -> Callable[..., Any]:
    shape, extra = site.attrs["shape"], site.attrs["extra"]
    first = site.varying[0]

    def run(ct: Any, dims: Any) -> Any:
        if not first:
            ct = np.broadcast_to(ct, (len(dims), *ct.shape))
        return unbroadcast(ct, target(shape, dims), extra, 1)

    return run


def _unbroadcast_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    wide = op.operands[0]
    return b.emit("broadcast_to", ct, dims_of(b, wide), shape=num(wide).shape), None


# --------------------------------------------------------------------------------------------------------- sizes
def _infer_broadcast_dims(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    x, y = numbers("broadcast_dims", types, 2)
    if x.dtype != "int64" or y.dtype != "int64" or x.rank != 1 or y.rank != 1:
        raise TypeError(f"'broadcast_dims' takes two vectors of sizes, not {x}, {y}")
    return Num("int64", (max(x.size, y.size),))


def _broadcast_dims(dx: Any, dy: Any, exact: bool = False) -> Any:
    a, b = tuple(int(n) for n in dx), tuple(int(n) for n in dy)
    return np.array(broadcast_shape(a, b), np.int64)


def _rows_broadcast_dims(site: Site) -> Callable[..., Any]:
    rank = site.result.size

    def run(dx: Any, dy: Any, faults: Faults | None = None) -> Any:
        x, y = (
            np.concatenate([np.ones((*d.shape[:-1], rank - d.shape[-1]), np.int64), d], axis=-1) for d in (dx, dy)
        )
        if faults is not None:
            bad = (x != y) & (x != 1) & (y != 1)
            blame(faults, bad.any(-1), site, _broadcast_dims, (dx, dy))
        return np.where(x == 1, y, x)

    return run


def _infer_shape_of(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    (x,) = numbers("shape_of", types, 1)
    return Num("int64", (x.rank,))


def _rows_shape_of(site: Site) -> Callable[..., Any]:
    return lambda x: np.broadcast_to(np.array(x.shape[1:], np.int64), (len(x), x.ndim - 1))


def _infer_dim(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    (x,) = numbers("dim", types, 1)
    if not 0 <= attrs["axis"] < x.rank:
        raise TypeError(f"{x} has no axis {attrs['axis']}")
    return INT


BROADCASTING: tuple[Primitive, ...] = (
    Primitive(
        "broadcast", _infer_broadcast, _broadcast, _rows_broadcast, _broadcast_adjoint,
        samples=(
            ((V3,), {"shape": (2, 3)}),
            ((np.float64(2.5),), {"shape": (2, 2)}),
            ((1.5,), {"shape": (3,)}),
            ((A23[:, :1],), {"shape": (2, 3)}),
            ((A23[:1],), {"shape": (2, 2, 3)}),
        ),
    ),
    Primitive(
        "broadcast_to", _infer_broadcast_to, lambda x, dims, shape: _broadcast(x, tuple(int(n) for n in dims)),
        _rows_broadcast_to, _broadcast_to_adjoint, sizes=sizes_operand(1),
        samples=(((V3, np.array([2, 3])), {"shape": (None, 3)}), ((2.5, np.array([4])), {"shape": (None,)})),
    ),
    Primitive(
        "unbroadcast", _infer_unbroadcast, _unbroadcast, _rows_unbroadcast, _unbroadcast_adjoint,
        sizes=sizes_operand(1),
        samples=(
            ((A23, np.array([3])), {"shape": (None,), "extra": 1}),
            ((A23, np.array([2, 1])), {"shape": (2, None), "extra": 0}),
        ),
    ),
    Primitive(
        "broadcast_dims", _infer_broadcast_dims, _broadcast_dims, _rows_broadcast_dims,
        raises=lambda types, attrs: not attrs.get("exact", False),
        samples=(
            ((np.array([3]), np.array([1])), {}),
            ((np.array([3]), np.array([4])), {}),
            ((np.array([4]), np.array([2, 1])), {}),
        ),
    ),
    Primitive(
        "shape_of", _infer_shape_of, lambda x: np.array(np.shape(x), np.int64), _rows_shape_of, samples=(((A23,), {}),)
    ),
    Primitive(
        "dim", _infer_dim, lambda x, axis: int(np.shape(x)[axis]),
        lambda site: lambda x: np.full(len(x), x.shape[site.attrs["axis"] + 1], np.int64),
        samples=(((A23,), {"axis": 1}),),
    ),
)
