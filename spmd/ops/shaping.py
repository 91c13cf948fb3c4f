"""Reshapes, transposes, and joining arrays along an axis.

The invariant: values are moved, never changed; static targets are attributes, sizes that differ between examples come
as the operand `dims` (see `broadcasting`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spmd.ir.build import Builder
from spmd.ir.core import Op, Value
from spmd.ir.types import Num, Shape, Type
from spmd.ops.broadcasting import sizes_operand, target, target_dims
from spmd.ops.calculus import dims_of, lift, num, shaped
from spmd.ops.faults import blame
from spmd.ops.inference import agree, known, numbers, shown
from spmd.ops.primitive import Faults, Primitive, Site

A23 = np.array([[1.5, -2.0, 0.25], [3.0, 0.5, -1.0]])
B23 = np.array([[0.5, 4.0, -0.25], [1.0, 2.5, 7.0]])
V3 = np.array([1.0, -2.0, 3.5])


# ------------------------------------------------------------------------------------------------------- reshape
def _infer_reshape(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    (x,) = numbers("reshape", types, 1)
    shape = tuple(attrs["shape"])
    if not x.static or None in shape:
        raise TypeError(f"'reshape' takes static shapes, not {x} and {shown(shape)}")
    if x.size != math.prod(shape):
        raise ValueError(f"cannot reshape array of size {x.size} into shape {shown(shape)}")
    return Num(x.dtype, shape)


def _reshape(x: Any, shape: Shape) -> Any:
    return np.asarray(x).reshape(target(shape, None))[()]


def _rows_reshape(site: Site) -> Callable[..., Any]:
    shape = tuple(site.attrs["shape"])
    return lambda x: x.reshape(len(x), *shape)


def _reshape_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    return (b.emit("reshape", ct, shape=num(op.operands[0]).shape),)


def _infer_reshape_to(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    x, _ = numbers("reshape_to", types, 2)
    target_dims("reshape_to", types[1], attrs["shape"])
    return Num(x.dtype, tuple(attrs["shape"]))


def _inexact(types: Sequence[Type], attrs: dict[str, Any]) -> bool:
    return not attrs.get("exact", False)


def _reshape_to(x: Any, dims: Any, shape: Shape, exact: bool = False) -> Any:
    return np.asarray(x).reshape(tuple(int(n) for n in dims))[()]


def _rows_reshape_to(site: Site) -> Callable[..., Any]:
    shape, (first, _) = site.attrs["shape"], site.varying

    def run(x: Any, dims: Any, faults: Faults | None = None) -> Any:
        sizes = target(shape, dims)
        if not first:
            x = np.broadcast_to(x, (len(dims), *np.shape(x)))
        if faults is not None and math.prod(x.shape[1:]) != math.prod(sizes):
            every = Site(site.types, site.result, site.attrs, (True, site.varying[1]))
            blame(faults, True, every, _reshape_to, (x, dims))
            return np.zeros((len(x), *sizes), x.dtype)
        return x.reshape(len(x), *sizes)

    return run


def _reshape_to_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    x = op.operands[0]
    return b.emit("reshape_to", ct, dims_of(b, x), shape=num(x).shape, exact=True), None


def _infer_transpose(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    (x,) = numbers("transpose", types, 1)
    perm = tuple(attrs["perm"])
    if sorted(perm) != list(range(x.rank)):
        raise ValueError("axes don't match array")
    return Num(x.dtype, tuple(x.shape[k] for k in perm))


def _rows_transpose(site: Site) -> Callable[..., Any]:
    perm = (0, *(k + 1 for k in site.attrs["perm"]))
    return lambda x: x.transpose(perm)


def _transpose_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    return (b.emit("transpose", ct, perm=tuple(int(k) for k in np.argsort(op.attrs["perm"]))),)


# --------------------------------------------------------------------------------------------- joining arrays
def _infer_concat(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    parts = numbers("concat", types)
    axis, first = attrs["axis"], parts[0]
    shape = list(first.shape)
    for k, part in enumerate(parts[1:], 1):
        if part.rank != first.rank or part.dtype != first.dtype:
            raise TypeError(f"'concat' needs arrays of one rank and dtype, not {first} and {part}")
        for d, (m, n) in enumerate(zip(shape, part.shape)):
            if d != axis and not agree(m, n):
                raise ValueError(
                    "all the input array dimensions except for the concatenation axis must match exactly, but along "
                    f"dimension {d}, the array at index 0 has size {m} and the array at index {k} has size {n}"
                )
            shape[d] = known(m, n)
    sizes = [part.shape[axis] for part in parts]
    shape[axis] = None if None in sizes else sum(n for n in sizes if n is not None)
    return Num(first.dtype, tuple(shape))


def _raises_concat(types: Sequence[Type], attrs: dict[str, Any]) -> bool:
    parts = numbers("concat", types)
    offside = [p.shape[: attrs["axis"]] + p.shape[attrs["axis"] + 1 :] for p in parts]
    return len(parts) > 1 and any(None in shape for shape in offside)


def _concat(*parts: Any, axis: int) -> Any:
    return np.concatenate(parts, axis=axis)


def every_row(site: Site, operands: Sequence[Any]) -> list[Any]:
    """The operands, the uniform ones repeated (by view) for every row."""
    count = next(len(x) for x, varying in zip(operands, site.varying) if varying)
    return [
        x if varying else np.broadcast_to(x, (count, *np.shape(x))) for x, varying in zip(operands, site.varying)
    ]


def _rows_concat(site: Site) -> Callable[..., Any]:
    axis = site.attrs["axis"]

    def run(*parts: Any, faults: Faults | None = None) -> Any:
        return np.concatenate(every_row(site, parts), axis=axis + 1)

    def careful(*parts: Any, faults: Faults) -> Any:
        try:
            return run(*parts)
        except ValueError:
            blame(faults, True, site, lambda *p, axis: _concat(*p, axis=axis), parts)
            first = every_row(site, parts)[0]
            total = sum(p.shape[axis + 1] for p in every_row(site, parts))
            return np.zeros((*first.shape[: axis + 1], total, *first.shape[axis + 2 :]), first.dtype)

    return careful if _raises_concat(site.types, site.attrs) else run


def _concat_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    axis, parts = op.attrs["axis"], op.operands
    whole = num(op.result)
    if whole.shape[axis] is not None:
        start, out = 0, []
        for part in parts:
            size = num(part).shape[axis] or 0
            index = tuple((start, start + size, 1) if k == axis else None for k in range(whole.rank))
            out.append(b.emit("slice", ct, index=index))
            start += size
        return out
    position, pieces = b.const(np.int64(0)), []
    for part in parts:
        size = num(part).shape[axis]
        end = b.emit("add", position, lift(b, b.emit("dim", part, axis=axis)))
        pieces.append(b.emit("dynslice", ct, position, end, axis=axis, step=1, size=size))
        position = end
    return pieces


def _infer_stack(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    parts = numbers("stack", types)
    shape: Shape = parts[0].shape
    for part in parts[1:]:
        if part.dtype != parts[0].dtype:
            raise TypeError(f"'stack' needs arrays of one dtype, not {parts[0]} and {part}")
        if part.rank != len(shape) or not all(agree(m, n) for m, n in zip(shape, part.shape)):
            raise ValueError("all input arrays must have the same shape")
        shape = tuple(known(m, n) for m, n in zip(shape, part.shape))
    axis = attrs["axis"]
    return Num(parts[0].dtype, (*shape[:axis], len(parts), *shape[axis:]))


def _raises_stack(types: Sequence[Type], attrs: dict[str, Any]) -> bool:
    return len(types) > 1 and any(not t.static for t in numbers("stack", types))


def _stack(*parts: Any, axis: int) -> Any:
    return np.stack([np.asarray(p) for p in parts], axis=axis)


def _rows_stack(site: Site) -> Callable[..., Any]:
    axis = site.attrs["axis"]

    def run(*parts: Any, faults: Faults | None = None) -> Any:
        return np.stack(every_row(site, parts), axis=axis + 1)

    def careful(*parts: Any, faults: Faults) -> Any:
        try:
            return run(*parts)
        except ValueError:
            blame(faults, True, site, _stack, parts)
            first = every_row(site, parts)[0]
            return np.stack([first] * len(parts), axis=axis + 1)

    return careful if _raises_stack(site.types, site.attrs) else run


def _stack_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    axis, whole, out = op.attrs["axis"], num(op.result), []
    for k, part in enumerate(op.operands):
        index = tuple((k, k + 1, 1) if d == axis else None for d in range(whole.rank))
        piece = b.emit("slice", ct, index=index)
        out.append(shaped(b, piece, part))
    return out


SHAPING: tuple[Primitive, ...] = (
    Primitive(
        "reshape", _infer_reshape, _reshape, _rows_reshape, _reshape_adjoint,
        samples=(((A23,), {"shape": (3, 2)}), ((np.float64(1.5),), {"shape": (1, 1)}), ((A23[:1, :1],), {"shape": ()})),
    ),
    Primitive(
        "reshape_to", _infer_reshape_to, _reshape_to, _rows_reshape_to, _reshape_to_adjoint,
        raises=_inexact, sizes=sizes_operand(1),
        samples=(
            ((A23, np.array([3, 2])), {"shape": (None, 2)}),
            ((A23, np.array([4, 2])), {"shape": (None, 2)}),
        ),
    ),
    Primitive(
        "transpose", _infer_transpose, lambda x, perm: np.transpose(x, perm), _rows_transpose, _transpose_adjoint,
        samples=(((A23,), {"perm": (1, 0)}), ((A23.reshape(1, 2, 3),), {"perm": (2, 0, 1)})),
    ),
    Primitive(
        "concat", _infer_concat, _concat, _rows_concat, _concat_adjoint, _raises_concat,
        samples=(((A23, B23), {"axis": 0}), ((A23, B23[:, :1]), {"axis": 1}), ((V3, V3, V3[:1]), {"axis": 0})),
    ),
    Primitive(
        "stack", _infer_stack, _stack, _rows_stack, _stack_adjoint, _raises_stack,
        samples=(
            ((V3, V3 * 2), {"axis": 0}),
            ((V3, V3 * 2), {"axis": 1}),
            ((np.float64(1.0), np.float64(2.0)), {"axis": 0}),
            ((1.5, 2.5), {"axis": 0}),
        ),
    ),
)
