"""Norms of vectors and matrices, of every order that NumPy has.

The invariant: the derivative of a norm at 0 is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from spmd.ir.build import Builder
from spmd.ir.core import Value
from spmd.ops.arguments import array, axes_of, axis_number, bind, needed, static_bool, static_int
from spmd.ops.calculus import constant, num
from spmd.ops.numpy_elementwise import Rule
from spmd.ops.numpy_linalg import singular_values
from spmd.ops.numpy_reductions import root
from spmd.ops.numpy_shapes import permuted, reshaped, with_axes
from spmd.ops.operators import power
from spmd.ops.primitive import Refusal
from spmd.ops.promotion import cast, constant_of


def _norm(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    title = "np.linalg.norm"
    bound = bind(title, "x ord axis keepdims", args, kwargs)
    x = array(b, *needed(title, bound, "x"))
    if num(x).kind in "biu":
        x = cast(b, x, "float64")
    order = _order(b, title, bound.get("ord"))
    keepdims = static_bool(b, title, "keepdims", bound.get("keepdims", False))
    axis, rank = bound.get("axis"), num(x).rank
    if axis is None and order is not None and not (rank == 2 and order in ("f", "fro") or rank == 1 and order == 2):
        if rank not in (1, 2):
            raise ValueError("Improper number of dimensions to norm.")
        axis = tuple(range(rank))
    if axis is None:
        return euclidean(b, x, tuple(range(rank)), keepdims)
    given = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = [axis_number(static_int(b, title, "the axis", k), rank) for k in given]
    if len(axes) == 1:
        return vector_norm(b, x, axes[0], order, keepdims)
    if len(axes) != 2:
        raise ValueError("Improper number of dimensions to norm.")
    if axes[0] == axes[1]:
        raise ValueError("Duplicate axes given.")
    return matrix_norm(b, x, axes, order, keepdims)


def _order(b: Builder, title: str, order: Any) -> Any:
    found = constant_of(b, order)
    if order is not None and found is None:
        raise Refusal(f"the order of {title} must be a constant")
    return found


def euclidean(b: Builder, x: Value, axes: tuple[int, ...], keepdims: bool) -> Value:
    """The root of the sum of squares."""
    return root(b, b.emit("sum", b.emit("square", x), axes=axes, keepdims=keepdims))


def vector_norm(b: Builder, x: Value, axis: int, order: Any, keepdims: bool) -> Value:
    """The norm of an order along one axis."""
    attrs: dict[str, Any] = {"axes": (axis,), "keepdims": keepdims}
    if isinstance(order, str):
        raise ValueError(f"Invalid norm order '{order}' for vectors")
    if order in (None, 2):
        return euclidean(b, x, (axis,), keepdims)
    if order in (np.inf, -np.inf):
        return b.emit("max" if order > 0 else "min", b.emit("abs", x), **attrs)
    if order == 0:
        return b.emit("sum", cast(b, b.emit("ne", x, constant(b, 0, x)), num(x).dtype), **attrs)
    if order == 1:
        return b.emit("sum", b.emit("abs", x), **attrs)
    exponent = float(order)
    size = b.emit("abs", x)
    total = b.emit("sum", power(b, size, b.const(exponent), exponent), **attrs)
    zero = constant(b, 0, total)
    empty = b.emit("eq", total, zero)
    safe = b.emit("where", empty, constant(b, 1, total), total)
    found = power(b, safe, b.const(1.0 / exponent), 1.0 / exponent)
    if exponent < 0:
        return b.emit("where", empty, constant(b, np.inf, total), found)
    return b.emit("where", empty, zero, found)


def matrix_norm(b: Builder, x: Value, axes: Sequence[int], order: Any, keepdims: bool) -> Value:
    """The norm of an order of matrices that lie along two axes (rows, columns)."""
    rows, columns = axes
    if order in (None, "f", "fro"):
        return euclidean(b, x, tuple(sorted(axes)), keepdims)
    if order in (1, -1, np.inf, -np.inf):
        first, second = (rows, columns) if order in (1, -1) else (columns, rows)
        total = b.emit("sum", b.emit("abs", x), axes=(first,), keepdims=True)
        found = b.emit("max" if order > 0 else "min", total, axes=(second,), keepdims=True)
    elif order in (2, -2, "nuc"):
        rest = [k for k in range(num(x).rank) if k not in axes]
        s = singular_values(b, permuted(b, x, [*rest, rows, columns]))
        name = "sum" if order == "nuc" else "max" if order == 2 else "min"
        found = with_axes(b, b.emit(name, s, axes=(num(s).rank - 1,), keepdims=False), sorted(axes))
    else:
        raise ValueError("Invalid norm order for matrices.")
    if keepdims:
        return found
    return b.emit("sum", found, axes=tuple(sorted(axes)), keepdims=False)


def _vector_norm(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    title = "np.linalg.vector_norm"
    bound = bind(title, "x axis keepdims ord", args[:1], kwargs)
    x = array(b, *needed(title, bound, "x"))
    if num(x).kind in "biu":
        x = cast(b, x, "float64")
    keepdims = static_bool(b, title, "keepdims", bound.get("keepdims", False))
    axes = axes_of(b, title, bound.get("axis"), num(x).rank)
    order = _order(b, title, bound.get("ord", 2))
    if len(axes) == 1:
        return vector_norm(b, x, axes[0], order, keepdims)
    if order == 2:
        return euclidean(b, x, axes, keepdims)
    if len(axes) != num(x).rank or keepdims:
        raise Refusal(f"{title} along several axes is supported for ord=2 alone")
    return vector_norm(b, reshaped(b, x, [-1]), 0, order, False)


def _matrix_norm(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    title = "np.linalg.matrix_norm"
    bound = bind(title, "x keepdims ord", args[:1], kwargs)
    x = array(b, *needed(title, bound, "x"))
    if num(x).kind in "biu":
        x = cast(b, x, "float64")
    rank = num(x).rank
    if rank < 2:
        raise ValueError("Improper number of dimensions to norm.")
    keepdims = static_bool(b, title, "keepdims", bound.get("keepdims", False))
    return matrix_norm(b, x, (rank - 2, rank - 1), _order(b, title, bound.get("ord", "fro")), keepdims)


NORM_CALLS: dict[Any, Rule] = {
    np.linalg.norm: _norm,
    np.linalg.vector_norm: _vector_norm,
    np.linalg.matrix_norm: _matrix_norm,
}
