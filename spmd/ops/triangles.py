"""Triangles and diagonals of matrices, the last two axes of an array.

The invariant: values are kept or replaced by 0, never computed with; offsets and sides are attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spmd.ir.build import Builder
from spmd.ir.core import Op, Value
from spmd.ir.types import Num, Shape, Type
from spmd.ops.broadcasting import target, target_dims
from spmd.ops.calculus import num, shaped, sizes_of
from spmd.ops.inference import agree, numbers
from spmd.ops.primitive import Primitive, Site
from spmd.ops.shaping import every_row

X = np.arange(1.0, 13.0).reshape(3, 4) ** 1.5
STACK = np.stack([X, -X])


def _infer_triangle(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    (x,) = numbers("triangle", types, 1)
    if x.rank < 2:
        raise TypeError(f"'triangle' takes matrices, not {x}")
    return x


def _triangle(x: Any, k: int, lower: bool) -> Any:
    return np.tril(x, k) if lower else np.triu(x, k)


def _triangle_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    return (b.emit("triangle", ct, **op.attrs),)


def diagonal_size(rows: int | None, columns: int | None, offset: int) -> int | None:
    """How many elements a diagonal has."""
    if rows is None or columns is None:
        return None
    return max(0, min(rows + min(offset, 0), columns - max(offset, 0)))


def _infer_diagonal(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    (x,) = numbers("diagonal", types, 1)
    if x.rank < 2:
        raise ValueError("diag requires an array of at least two dimensions")
    return Num(x.dtype, (*x.shape[:-2], diagonal_size(x.shape[-2], x.shape[-1], attrs["offset"])))


def _diagonal(x: Any, offset: int) -> Any:
    return np.diagonal(x, offset, -2, -1)


def _diagonal_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    x = op.operands[0]
    return (b.emit("onto_diagonal", ct, *sizes_of(b, x), shape=num(x).shape, offset=op.attrs["offset"]),)


def _infer_onto(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    g, shape = numbers("onto_diagonal", types)[0], tuple(attrs["shape"])
    if None in shape:
        target_dims("onto_diagonal", types[-1], shape)
    if len(shape) != g.rank + 1 or not agree(g.shape[-1], diagonal_size(shape[-2], shape[-1], attrs["offset"])):
        raise TypeError(f"'onto_diagonal' cannot put {g} into {shape}")
    return Num(g.dtype, shape)


def _placed(out: Any, g: Any, offset: int) -> Any:
    at = np.arange(g.shape[-1])
    out[..., at + max(-offset, 0), at + max(offset, 0)] = g
    return out


def _onto(g: Any, *dims: Any, shape: Shape, offset: int) -> Any:
    return _placed(np.zeros(target(shape, dims[0] if dims else None), g.dtype), g, offset)


def _rows_onto(site: Site) -> Callable[..., Any]:
    shape, offset = site.attrs["shape"], site.attrs["offset"]

    def run(g: Any, *dims: Any) -> Any:
        rows = every_row(site, (g, *dims))[0]
        return _placed(np.zeros((len(rows), *target(shape, dims[0] if dims else None)), rows.dtype), rows, offset)

    return run


def _onto_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    back = b.emit("diagonal", ct, offset=op.attrs["offset"])
    return (shaped(b, back, op.operands[0]), *([None] * (len(op.operands) - 1)))


TRIANGLES: tuple[Primitive, ...] = (
    Primitive(
        "triangle", _infer_triangle, _triangle, lambda site: lambda x: _triangle(x, **site.attrs), _triangle_adjoint,
        samples=tuple(((x,), {"k": k, "lower": side}) for x in (X, STACK) for k in (0, 1, -1) for side in (True, False))
        + (((X > 20,), {"k": 0, "lower": True}),),
    ),
    Primitive(
        "diagonal", _infer_diagonal, _diagonal, lambda site: lambda x: _diagonal(x, site.attrs["offset"]),
        _diagonal_adjoint, samples=tuple(((x,), {"offset": k}) for x in (X, STACK) for k in (0, 2, -1, 9)),
    ),
    Primitive(
        "onto_diagonal", _infer_onto, _onto, _rows_onto, _onto_adjoint,
        sizes=lambda types, attrs: (len(types) - 1,) if None in attrs["shape"] else (),
        samples=(
            ((X[0, :3],), {"shape": (3, 4), "offset": 0}), ((X[0, :2],), {"shape": (3, 4), "offset": -1}),
            ((X[:, :2],), {"shape": (3, 3, 3), "offset": 1}),
            ((X[0, :3], np.array([3, 4])), {"shape": (None, None), "offset": 0}),
        ),
    ),
)
