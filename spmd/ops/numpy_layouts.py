"""NumPy's layouts: grids, borders, columns and layers, and axes put where they are wanted.

The invariant: elements are moved or repeated, never computed with; widths and axes are constants.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spmd.ir.build import Builder
from spmd.ir.core import Value
from spmd.ops.arguments import array, axis_number, bind, needed, sequence, sizes_of_value, static_bool, static_int
from spmd.ops.calculus import constant, num
from spmd.ops.numpy_elementwise import Rule
from spmd.ops.numpy_rearranging import argument, spread_to
from spmd.ops.numpy_shapes import flattened, joined, permuted, raised_to, reshaped, with_axes
from spmd.ops.operators import binary
from spmd.ops.primitive import Refusal
from spmd.ops.promotion import broadcast_together, cast


def _meshgrid(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> tuple[Value, ...]:
    bound = bind("np.meshgrid", "copy sparse indexing", [], kwargs)
    if not static_bool(b, "np.meshgrid", "copy", bound.get("copy", True)):
        raise Refusal("np.meshgrid(copy=False) is not supported", "leave 'copy' away.")
    sparse = static_bool(b, "np.meshgrid", "sparse", bound.get("sparse", False))
    indexing = bound.get("indexing", "xy")
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    lines = [flattened(b, array(b, x)) for x in args]
    rank = len(lines)
    order = list(range(rank))
    if indexing == "xy" and rank > 1:
        order[:2] = [1, 0]
    wide = [with_axes(b, x, [k for k in range(rank) if k != order[at]]) for at, x in enumerate(lines)]
    if sparse or rank < 2:
        return tuple(wide)
    sizes = [sizes_of_value(b, lines[order.index(k)])[0] for k in range(rank)]
    return tuple(spread_to(b, x, sizes) for x in wide)


def _broadcast_arrays(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> tuple[Value, ...]:
    bind("np.broadcast_arrays", "-subok", [], kwargs)
    return tuple(broadcast_together(b, [array(b, x) for x in args]))


def _pad(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    title = "np.pad"
    x, bound = argument(b, title, "array pad_width mode constant_values", args, kwargs)
    (width,) = needed(title, bound, "pad_width")
    mode = bound.get("mode", "constant")
    rank = num(x).rank
    pairs = np.broadcast_to(np.asarray(_widths(b, title, width)), (rank, 2)).tolist()
    if any(n < 0 for pair in pairs for n in pair):
        raise ValueError("index can't contain negative values")
    if mode not in ("constant", "edge", "wrap", "reflect", "symmetric"):
        raise Refusal(f"the mode {mode!r} of np.pad is not supported", "use 'constant', 'edge', 'wrap' or 'reflect'.")
    for axis, (before, after) in enumerate(pairs):
        if before or after:
            x = _padded(b, x, axis, before, after, mode, bound.get("constant_values", 0))
    return x


def _widths(b: Builder, title: str, width: Any) -> Any:
    """A width, or nested lists of them, as constants."""
    if isinstance(width, (tuple, list)):
        return [_widths(b, title, w) for w in width]
    return static_int(b, title, "a width", width)


def _padded(b: Builder, x: Value, axis: int, before: int, after: int, mode: str, value: Any) -> Value:
    size = num(x).shape[axis]
    if mode == "constant":
        if isinstance(value, (tuple, list)):
            raise Refusal("np.pad takes one constant value here")
        fill = cast(b, array(b, value), num(x).dtype)
        sizes = sizes_of_value(b, x)
        sides = [spread_to(b, with_axes(b, fill, range(num(x).rank)), [*sizes[:axis], n, *sizes[axis + 1 :]])
                 for n in (before, after)]
        return b.emit("concat", sides[0], x, sides[1], axis=axis)
    if not size:
        raise Refusal(f"np.pad with mode={mode!r} needs a size that is known and not 0")
    at = np.pad(np.arange(size), (before, after), mode=mode)  # type: ignore[call-overload]
    return b.emit("take", x, b.const(at), axis=axis, exact=True)


def _column_stack(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("np.column_stack", "tup", args, kwargs)
    parts = sequence(b, "np.column_stack", *needed("np.column_stack", bound, "tup"))
    columns = [with_axes(b, v, [1]) if num(v).rank == 1 else reshaped(b, v, [1, 1]) if not num(v).rank else v
               for v in parts]
    return joined(b, columns, 1)


def _dstack(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("np.dstack", "tup", args, kwargs)
    return joined(b, [atleast_3d(b, v) for v in sequence(b, "np.dstack", *needed("np.dstack", bound, "tup"))], 2)


def atleast_3d(b: Builder, x: Value) -> Value:
    """np.atleast_3d"""
    rank = num(x).rank
    if rank == 1:
        return with_axes(b, x, [0, 2])
    return with_axes(b, x, [2]) if rank == 2 else raised_to(b, x, 3)


def _atleast_3d(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    x, _ = argument(b, "np.atleast_3d", "ary", args, kwargs)
    return atleast_3d(b, x)


def _rollaxis(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    x, bound = argument(b, "np.rollaxis", "a axis start", args, kwargs)
    rank = num(x).rank
    axis = axis_number(static_int(b, "np.rollaxis", "the axis", *needed("np.rollaxis", bound, "axis")), rank)
    start = static_int(b, "np.rollaxis", "the start", bound.get("start", 0))
    start = start + rank if start < 0 else start
    perm = [k for k in range(rank) if k != axis]
    perm.insert(start - 1 if axis < start else start, axis)
    return permuted(b, x, perm)


def _block(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("np.block", "arrays", args, kwargs)
    (blocks,) = needed("np.block", bound, "arrays")
    depth = _depth(blocks)
    rank = max(depth, _rank(b, blocks))
    return _blocks(b, blocks, depth, rank)


def _depth(blocks: Any) -> int:
    """How deep lists are nested."""
    return 1 + max(_depth(x) for x in blocks) if isinstance(blocks, list) and blocks else 0


def _rank(b: Builder, blocks: Any) -> int:
    return max((_rank(b, x) for x in blocks), default=0) if isinstance(blocks, list) else num(array(b, blocks)).rank


def _blocks(b: Builder, blocks: Any, depth: int, rank: int) -> Value:
    """Joined along the last axes, the innermost lists along the very last."""
    if not isinstance(blocks, list):
        if depth:
            raise ValueError("List depths are mismatched.")
        return raised_to(b, array(b, blocks), rank)
    return joined(b, [_blocks(b, x, depth - 1, rank) for x in blocks], rank - depth)


def _polyval(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    """Horner's scheme, as NumPy runs it."""
    bound = bind("np.polyval", "p x", args, kwargs)
    p, x = (array(b, v) for v in needed("np.polyval", bound, "p", "x"))
    if num(p).rank != 1 or num(p).shape[0] is None:
        raise Refusal("np.polyval takes a vector of coefficients whose number is known")
    y = constant(b, 0, x)
    for k in range(num(p).shape[0] or 0):
        y = binary(b, "+", binary(b, "*", y, x), b.emit("index", p, b.const(k)))
    return y


LAYOUT_CALLS: dict[Any, Rule] = {
    np.meshgrid: _meshgrid,
    np.broadcast_arrays: _broadcast_arrays,
    np.pad: _pad,
    np.column_stack: _column_stack,
    np.dstack: _dstack,
    np.atleast_3d: _atleast_3d,
    np.rollaxis: _rollaxis,
    np.block: _block,
    np.polyval: _polyval,
}
