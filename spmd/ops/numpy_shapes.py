"""NumPy's functions that join and rearrange arrays, as primitives.

The invariant: sizes may be constants or values; where all are constants the result's shape is static.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from spmd.ir.build import Builder
from spmd.ir.core import Value
from spmd.ops.arguments import (
    Size,
    alike,
    array,
    axes_of,
    axis_number,
    bind,
    dims_value,
    needed,
    product,
    sequence,
    size_value,
    sizes_of_shape,
    sizes_of_value,
    static_int,
    static_shape,
)
from spmd.ops.calculus import num
from spmd.ops.numpy_elementwise import Rule
from spmd.ops.primitive import Refusal
from spmd.ops.promotion import cast

AXIS = "the axis"


# ------------------------------------------------------------------------------------------------------ reshapes
def reshaped(b: Builder, x: Value, sizes: Sequence[Size]) -> Value:
    """x.reshape(sizes): ints or values; one of them may be -1."""
    own = sizes_of_value(b, x)
    wanted = list(sizes)
    unknown = [k for k, n in enumerate(wanted) if isinstance(n, int) and n < 0]
    if len(unknown) > 1:
        raise ValueError("can only specify one unknown dimension")
    if unknown:
        wanted[unknown[0]] = _quotient(b, product(b, own), [n for k, n in enumerate(wanted) if k != unknown[0]], sizes)
    shape = static_shape(wanted)
    if num(x).static and None not in shape:
        return x if num(x).shape == shape else b.emit("reshape", x, shape=shape)
    return b.emit("reshape_to", x, dims_value(b, wanted), shape=shape)


def _quotient(b: Builder, total: Size, others: Sequence[Size], sizes: Sequence[Size]) -> Size:
    """The size that -1 stands for."""
    rest = product(b, others)
    if isinstance(total, int) and isinstance(rest, int):
        if not rest or total % rest:
            shown = ",".join(str(n) for n in sizes)
            raise ValueError(f"cannot reshape array of size {total} into shape ({shown})")
        return total // rest
    if isinstance(rest, int) and rest == 1:
        return total
    return b.emit("floordiv", size_value(b, total), size_value(b, rest))


def flattened(b: Builder, x: Value) -> Value:
    """x.ravel()"""
    return x if num(x).rank == 1 else reshaped(b, x, [-1])


def with_axes(b: Builder, x: Value, axes: Sequence[int]) -> Value:
    """The value with axes of size 1 at these places of the result."""
    own = iter(sizes_of_value(b, x))
    sizes = [1 if k in axes else next(own) for k in range(num(x).rank + len(axes))]
    return _exactly(b, x, sizes)


def _exactly(b: Builder, x: Value, sizes: Sequence[Size]) -> Value:
    """A reshape that is known to fit."""
    shape = static_shape(sizes)
    if num(x).shape == shape:
        return x
    if None not in shape:
        return b.emit("reshape", x, shape=shape)
    return b.emit("reshape_to", x, dims_value(b, sizes), shape=shape, exact=True)


def _reshape(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("np.reshape", "a shape -order", args, kwargs)
    x, shape = needed("np.reshape", bound, "a", "shape")
    return reshaped(b, array(b, x), sizes_of_shape(b, "np.reshape", shape))


def _ravel(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("np.ravel", "a -order", args, kwargs)
    return flattened(b, array(b, *needed("np.ravel", bound, "a")))


def permuted(b: Builder, x: Value, perm: Sequence[int]) -> Value:
    """The value with its axes in another order."""
    perm = tuple(axis_number(k, num(x).rank) for k in perm)
    if sorted(perm) != list(range(num(x).rank)):
        raise ValueError("axes don't match array")
    return x if list(perm) == sorted(perm) else b.emit("transpose", x, perm=perm)


def transposed(b: Builder, x: Value, axes: Any) -> Value:
    """np.transpose"""
    if axes is None:
        return permuted(b, x, range(num(x).rank)[::-1])
    return permuted(b, x, [static_int(b, "np.transpose", AXIS, k) for k in axes])


def _transpose(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("np.transpose", "a axes", args, kwargs)
    return transposed(b, array(b, *needed("np.transpose", bound, "a")), bound.get("axes"))


def swapped_axes(b: Builder, x: Value, first: Any, second: Any) -> Value:
    """np.swapaxes"""
    rank = num(x).rank
    i, j = (axis_number(static_int(b, "np.swapaxes", AXIS, k), rank) for k in (first, second))
    perm = list(range(rank))
    perm[i], perm[j] = j, i
    return permuted(b, x, perm)


def _swapaxes(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("np.swapaxes", "a axis1 axis2", args, kwargs)
    x, i, j = needed("np.swapaxes", bound, "a", "axis1", "axis2")
    return swapped_axes(b, array(b, x), i, j)


def moved(b: Builder, x: Value, source: int, destination: int) -> Value:
    """The value with one of its axes elsewhere."""
    perm = [k for k in range(num(x).rank) if k != source]
    perm.insert(destination, source)
    return permuted(b, x, perm)


def _moveaxis(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("np.moveaxis", "a source destination", args, kwargs)
    x, source, destination = needed("np.moveaxis", bound, "a", "source", "destination")
    value = array(b, x)
    i, j = (axis_number(static_int(b, "np.moveaxis", AXIS, k), num(value).rank) for k in (source, destination))
    return moved(b, value, i, j)


def _expand_dims(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("np.expand_dims", "a axis", args, kwargs)
    x, axis = needed("np.expand_dims", bound, "a", "axis")
    value = array(b, x)
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    return with_axes(b, value, axes_of(b, "np.expand_dims", axis, num(value).rank + count))


def squeezed(b: Builder, x: Value, axis: Any) -> Value:
    """np.squeeze"""
    shape = num(x).shape
    if axis is None:
        if None in shape:
            raise Refusal("np.squeeze of an array whose sizes differ between examples needs the axis")
        axes = tuple(k for k, n in enumerate(shape) if n == 1)
    else:
        axes = axes_of(b, "np.squeeze", axis, num(x).rank)
        if any(shape[k] not in (1, None) for k in axes):
            raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    return reshaped(b, x, [n for k, n in enumerate(sizes_of_value(b, x)) if k not in axes])


def _squeeze(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("np.squeeze", "a axis", args, kwargs)
    return squeezed(b, array(b, *needed("np.squeeze", bound, "a")), bound.get("axis"))


def _atleast(rank: int) -> Rule:
    def rule(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
        if len(args) != 1 or kwargs:
            raise Refusal(f"np.atleast_{rank}d takes one array here")
        return raised_to(b, array(b, args[0]), rank)

    return rule


def raised_to(b: Builder, x: Value, rank: int) -> Value:
    """The value with axes put in front up to a rank."""
    return with_axes(b, x, range(max(0, rank - num(x).rank)))


# ------------------------------------------------------------------------------------------------------- joining
def joined(b: Builder, parts: Sequence[Value], axis: int) -> Value:
    """np.concatenate along a known axis."""
    ranks = {num(p).rank for p in parts}
    if 0 in ranks:
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    if len(ranks) > 1:
        raise ValueError("all the input array dimensions must match in number, but they are " + str(sorted(ranks)))
    axis = axis_number(axis, ranks.pop())
    return parts[0] if len(parts) == 1 else b.emit("concat", *alike(b, parts), axis=axis)


def _concatenate(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("np.concatenate", "arrays axis -out -dtype -casting", args, kwargs)
    parts = sequence(b, "np.concatenate", *needed("np.concatenate", bound, "arrays"))
    axis = bound.get("axis", 0)
    if axis is None:
        return joined(b, [flattened(b, p) for p in parts], 0)
    return joined(b, parts, static_int(b, "np.concatenate", AXIS, axis))


def _stack(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("np.stack", "arrays axis -out -dtype -casting", args, kwargs)
    parts = sequence(b, "np.stack", *needed("np.stack", bound, "arrays"))
    axis = static_int(b, "np.stack", AXIS, bound.get("axis", 0))
    return b.emit("stack", *alike(b, parts), axis=axis_number(axis, num(parts[0]).rank + 1))


def _vstack(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("np.vstack", "tup -dtype -casting", args, kwargs)
    parts = sequence(b, "np.vstack", *needed("np.vstack", bound, "tup"))
    return joined(b, [raised_to(b, p, 2) for p in parts], 0)


def _hstack(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("np.hstack", "tup -dtype -casting", args, kwargs)
    parts = [raised_to(b, p, 1) for p in sequence(b, "np.hstack", *needed("np.hstack", bound, "tup"))]
    return joined(b, parts, 0 if num(parts[0]).rank == 1 else 1)


def _broadcast_to(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("np.broadcast_to", "array shape -subok", args, kwargs)
    x, shape = needed("np.broadcast_to", bound, "array", "shape")
    value, sizes = array(b, x), static_shape(sizes_of_shape(b, "np.broadcast_to", shape))
    if None in sizes or not num(value).static:
        raise Refusal("np.broadcast_to needs sizes that are known", "arithmetic broadcasts by itself.")
    return b.emit("broadcast", value, shape=sizes)


def _take(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("np.take", "a indices axis -out -mode", args, kwargs)
    x, indices = (array(b, v) for v in needed("np.take", bound, "a", "indices"))
    if bound.get("axis") is None:
        x = flattened(b, x)
    axis = axis_number(static_int(b, "np.take", AXIS, bound.get("axis") or 0), num(x).rank)
    return b.emit("take", x, indices, axis=axis)


def _flip(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("np.flip", "m axis", args, kwargs)
    x = array(b, *needed("np.flip", bound, "m"))
    for axis in axes_of(b, "np.flip", bound.get("axis"), num(x).rank):
        size = num(x).shape[axis]
        if size is None:
            x = b.emit("dynslice", x, axis=axis, step=-1, given=(False, False))
        else:
            index = tuple((size - 1, -1, -1) if k == axis else None for k in range(num(x).rank))
            x = b.emit("slice", x, index=index)
    return x


def _shape(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> tuple[Size, ...]:
    x = array(b, *needed("np.shape", bind("np.shape", "a", args, kwargs), "a"))
    return tuple(sizes_of_value(b, x))


def _ndim(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> int:
    return num(array(b, *needed("np.ndim", bind("np.ndim", "a", args, kwargs), "a"))).rank


def size_of(b: Builder, x: Value) -> Size:
    """The number of elements: an int where it is known, else a Python int of the program's."""
    total = product(b, sizes_of_value(b, x))
    return total if isinstance(total, int) else cast(b, total, "int64", True)


def _size(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Size:
    return size_of(b, array(b, *needed("np.size", bind("np.size", "a -axis", args, kwargs), "a")))


SHAPE_CALLS: dict[Any, Rule] = {
    np.reshape: _reshape,
    np.ravel: _ravel,
    np.transpose: _transpose,
    np.swapaxes: _swapaxes,
    np.moveaxis: _moveaxis,
    np.expand_dims: _expand_dims,
    np.squeeze: _squeeze,
    np.atleast_1d: _atleast(1),
    np.atleast_2d: _atleast(2),
    np.concatenate: _concatenate,
    np.stack: _stack,
    np.vstack: _vstack,
    np.hstack: _hstack,
    np.broadcast_to: _broadcast_to,
    np.take: _take,
    np.flip: _flip,
    np.shape: _shape,
    np.ndim: _ndim,
    np.size: _size,
}
