"""NumPy's other products: kron, cross, convolve and correlate, outer forms of ufuncs; traces and diagonals.

The invariant: axes, offsets and modes are constants.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from spmd.ir.build import Builder
from spmd.ir.core import Value
from spmd.ops.arguments import (
    alike,
    array,
    axis_number,
    bind,
    dtype_of,
    needed,
    product,
    sizes_of_value,
    static_int,
)
from spmd.ops.calculus import lift, num
from spmd.ops.convolution import turned
from spmd.ops.numpy_contractions import last, pair
from spmd.ops.numpy_elementwise import Rule
from spmd.ops.numpy_reductions import widened
from spmd.ops.numpy_shapes import flattened, permuted, reshaped, with_axes
from spmd.ops.operators import apply
from spmd.ops.primitive import Refusal
from spmd.ops.promotion import broadcast_together, cast


def _kron(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    x, y = pair(b, "np.kron", args, kwargs, "a b")
    rank = max(num(x).rank, num(y).rank)
    x, y = (with_axes(b, v, range(rank - num(v).rank)) for v in (x, y))
    sizes = [product(b, both) for both in zip(sizes_of_value(b, x), sizes_of_value(b, y))]
    wide = with_axes(b, x, range(1, 2 * rank, 2)), with_axes(b, y, range(0, 2 * rank, 2))
    return reshaped(b, apply(b, "mul", np.multiply, *wide), sizes) if rank else apply(b, "mul", np.multiply, x, y)


def _cross(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("np.cross", "a b -axisa -axisb -axisc axis", args, kwargs)
    x, y = (array(b, v) for v in needed("np.cross", bound, "a", "b"))
    axis = static_int(b, "np.cross", "the axis", bound.get("axis") if bound.get("axis") is not None else -1)
    if not num(x).rank or not num(y).rank:
        raise ValueError("At least one array has zero dimension")
    x, y = (last(b, v, axis) for v in (x, y))
    for v in (x, y):
        if num(v).shape[-1] is None:
            raise Refusal("np.cross needs vectors of a size that is known")
        if num(v).shape[-1] not in (2, 3):
            raise ValueError("incompatible dimensions for cross product\n(dimension must be 2 or 3)")
    parts = [[_component(b, v, k) for k in range(num(v).shape[-1] or 0)] for v in (x, y)]
    times = functools.partial(apply, b, "mul", np.multiply)

    def minor(i: int, j: int) -> Value:
        return apply(b, "sub", np.subtract, times(parts[0][i], parts[1][j]), times(parts[0][j], parts[1][i]))

    if len(parts[0]) == len(parts[1]) == 2:
        return minor(0, 1)
    if len(parts[0]) != len(parts[1]):
        raise Refusal("np.cross of vectors of 2 and of 3 elements is not supported", "append a 0 to the shorter ones.")
    found = b.emit("stack", *broadcast_together(b, [minor(1, 2), minor(2, 0), minor(0, 1)]), axis=0)
    rank = num(found).rank
    at = axis_number(axis, rank)
    perm = list(range(1, rank))
    perm.insert(at, 0)
    return permuted(b, found, perm)


def _component(b: Builder, x: Value, k: int) -> Value:
    """x[..., k]"""
    rank = num(x).rank
    piece = b.emit("slice", x, index=tuple((k, k + 1, 1) if d == rank - 1 else None for d in range(rank)))
    return reshaped(b, piece, sizes_of_value(b, piece)[:-1])


# ------------------------------------------------------------------------------------------------------ convolution
def _full(b: Builder, title: str, x: Value, k: Value, mode: Any, turn: bool) -> Value:
    if mode not in ("full", "same", "valid"):
        raise Refusal(f"the mode of {title} must be 'full', 'same' or 'valid', and known now")
    x, k = alike(b, [x, k])
    if num(x).kind not in "iuf":
        raise Refusal(f"{title} of bools is not supported", "convert them to numbers.")
    n, m = num(x).shape[0] if num(x).rank else None, num(k).shape[0] if num(k).rank else None
    whole = b.emit("convolve", x, turned(b, k) if turn else k)
    if mode == "full":
        return whole
    if n is None or m is None:
        return _cut_of_unknown(b, x, k, whole, mode)
    short, long = min(n, m), max(n, m)
    start, size = (short - 1, long - short + 1) if mode == "valid" else _same(n, m, short, long, turn)
    return b.emit("slice", whole, index=((start, start + size, 1),))


def _same(n: int, m: int, short: int, long: int, turn: bool) -> tuple[int, int]:
    """(start, size) of the middle. NumPy swaps operands so that the first is the longer one; a correlation, which it
    then turns round, starts at the other side of an even middle."""
    start = short // 2 if turn and m > n else (short - 1) // 2
    return start, long


def _cut_of_unknown(b: Builder, x: Value, k: Value, whole: Value, mode: str) -> Value:
    if mode == "same":
        raise Refusal("mode='same' needs sizes that are known", "use mode='full' or 'valid'.")
    n, m = (lift(b, b.emit("dim", v, axis=0)) for v in (x, k))
    start = b.emit("sub", b.emit("minimum", n, m), b.const(np.int64(1)))
    stop = b.emit("maximum", n, m)
    return b.emit("dynslice", whole, start, stop, axis=0, step=1)


def _convolve(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("np.convolve", "a v mode", args, kwargs)
    x, k = (array(b, v) for v in needed("np.convolve", bound, "a", "v"))
    x, k = (flattened(b, v) if not num(v).rank else v for v in (x, k))
    return _full(b, "np.convolve", x, k, bound.get("mode", "full"), False)


def _correlate(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("np.correlate", "a v mode", args, kwargs)
    x, k = (array(b, v) for v in needed("np.correlate", bound, "a", "v"))
    x, k = (flattened(b, v) if not num(v).rank else v for v in (x, k))
    return _full(b, "np.correlate", x, k, bound.get("mode", "valid"), True)


def _trace(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("np.trace", "a offset axis1 axis2 dtype -out", args, kwargs)
    x = array(b, *needed("np.trace", bound, "a"))
    return trace(b, x, bound)


def trace(b: Builder, x: Value, bound: dict[str, Any]) -> Value:
    """np.trace"""
    line = diagonal(b, "np.trace", x, bound)
    line = cast(b, line, dtype_of(bound.get("dtype"), widened(num(line).dtype)))
    return b.emit("sum", line, axes=(num(line).rank - 1,), keepdims=False)


def diagonal(b: Builder, title: str, x: Value, bound: dict[str, Any]) -> Value:
    """np.diagonal"""
    rank = num(x).rank
    if rank < 2:
        raise ValueError("diag requires an array of at least two dimensions")
    i, j = (axis_number(static_int(b, title, "an axis", bound.get(n, k)), rank)
            for k, n in enumerate(("axis1", "axis2")))
    if i == j:
        raise ValueError("axis1 and axis2 cannot be the same")
    moved = permuted(b, x, [*(k for k in range(rank) if k not in (i, j)), i, j])
    return b.emit("diagonal", moved, offset=static_int(b, title, "the offset", bound.get("offset", 0)))


def _diagonal(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("np.diagonal", "a offset axis1 axis2", args, kwargs)
    return diagonal(b, "np.diagonal", array(b, *needed("np.diagonal", bound, "a")), bound)


def outer_of(name: str, ufunc: np.ufunc) -> Rule:
    """ufunc.outer of two arrays."""

    def rule(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
        x, y = pair(b, f"np.{ufunc.__name__}.outer", args, kwargs, "A B")
        return apply(b, name, ufunc, with_axes(b, x, range(num(x).rank, num(x).rank + num(y).rank)), y)

    return rule


PRODUCT_CALLS: dict[Any, Rule] = {
    np.kron: _kron,
    np.cross: _cross,
    np.convolve: _convolve,
    np.correlate: _correlate,
    np.trace: _trace,
    np.diagonal: _diagonal,
    **{
        ufunc.outer: outer_of(name, ufunc)
        for name, ufunc in (
            ("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("div", np.divide), ("maximum", np.maximum),
            ("minimum", np.minimum),
        )
    },
}
