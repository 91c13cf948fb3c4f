"""NumPy's functions that repeat, turn, cut, and lay out arrays anew, as primitives.

The invariant: elements are moved, repeated or left out, never computed with; counts, offsets and axes are constants.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from spmd.ir.build import Builder
from spmd.ir.core import Value
from spmd.ops.arguments import (
    array,
    axis_number,
    bind,
    dims_value,
    needed,
    product,
    size_value,
    sizes_of_shape,
    sizes_of_value,
    static_int,
)
from spmd.ops.calculus import num
from spmd.ops.matrices import cut
from spmd.ops.numpy_elementwise import Rule
from spmd.ops.numpy_shapes import flattened, joined, permuted, raised_to, reshaped, with_axes
from spmd.ops.primitive import Refusal
from spmd.ops.promotion import broadcast_to_shape, broadcast_together, cast, constant_of


def argument(b: Builder, title: str, names: str, args: list[Any], kwargs: dict[str, Any]) -> tuple[Value, Any]:
    """The array that comes first, and all arguments by name."""
    bound = bind(title, names, args, kwargs)
    return array(b, *needed(title, bound, names.split()[0])), bound


def items(x: Any) -> list[Any]:
    """The items of a tuple or list; anything else alone."""
    return list(x) if isinstance(x, (tuple, list)) else [x]


def reversed_along(b: Builder, x: Value, axis: int) -> Value:
    """The array from the end of an axis to its beginning."""
    size = num(x).shape[axis]
    if size is None:
        return b.emit("dynslice", x, axis=axis, step=-1, given=(False, False))
    return b.emit("slice", x, index=tuple((size - 1, -1, -1) if k == axis else None for k in range(num(x).rank)))


# --------------------------------------------------------------------------------------------------- turned around
def _roll(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    x, bound = argument(b, "np.roll", "a shift axis", args, kwargs)
    (shift,) = needed("np.roll", bound, "shift")
    axis = bound.get("axis")
    if axis is None:
        sizes = sizes_of_value(b, x)
        return reshaped(b, _rolled(b, flattened(b, x), shift, 0), sizes)
    axes = [axis_number(static_int(b, "np.roll", "the axis", k), num(x).rank) for k in items(axis)]
    shifts = items(shift)
    if len(shifts) != len(axes):
        if 1 not in (len(shifts), len(axes)):
            raise ValueError("'shift' and 'axis' should be scalars or 1D sequences")
        longest = max(len(shifts), len(axes))
        shifts, axes = (side * longest if len(side) == 1 else side for side in (shifts, axes))
    for by, at in zip(shifts, axes):
        x = _rolled(b, x, by, at)
    return x


def _rolled(b: Builder, x: Value, shift: Any, axis: int) -> Value:
    """A shift that depends on data is a read at shifted places."""
    known = constant_of(b, shift)
    if isinstance(known, (int, np.integer)):
        return b.emit("roll", x, axis=axis, by=int(known))
    by = array(b, shift)
    if num(by).rank or num(by).kind not in "iu":
        raise TypeError("the shift of np.roll must be an integer")
    size = size_value(b, sizes_of_value(b, x)[axis])
    zero, one = b.const(np.int64(0)), b.const(np.int64(1))
    places = b.emit("arange", zero, size, one, dtype="int64", exact=True)
    moved = b.emit("sub", *broadcast_together(b, [places, cast(b, by, "int64")]))
    at = b.emit("mod", *broadcast_together(b, [moved, size]))
    return b.emit("take", x, at, axis=axis, exact=True)


def _flipped(title: str, axis: int, least: int) -> Rule:
    """np.flipud, np.fliplr"""

    def rule(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
        x, _ = argument(b, title, "m", args, kwargs)
        if num(x).rank < least:
            raise ValueError(f"Input must be >= {least}-d.")
        return reversed_along(b, x, axis)

    return rule


def _rot90(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    x, bound = argument(b, "np.rot90", "m k axes", args, kwargs)
    times = static_int(b, "np.rot90", "k", bound.get("k", 1)) % 4
    i, j = (axis_number(static_int(b, "np.rot90", "an axis", k), num(x).rank) for k in bound.get("axes", (0, 1)))
    if i == j:
        raise ValueError("Axes must be different.")
    perm = list(range(num(x).rank))
    perm[i], perm[j] = perm[j], perm[i]
    if times == 2:
        return reversed_along(b, reversed_along(b, x, i), j)
    if times == 1:
        return permuted(b, reversed_along(b, x, j), perm)
    return reversed_along(b, permuted(b, x, perm), j) if times == 3 else x


# ------------------------------------------------------------------------------------------------------- repetition
def _repeat(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    x, bound = argument(b, "np.repeat", "a repeats axis", args, kwargs)
    (repeats,) = needed("np.repeat", bound, "repeats")
    return repeated(b, x, repeats, bound.get("axis"))


def repeated(b: Builder, x: Value, repeats: Any, axis: Any) -> Value:
    """np.repeat"""
    if axis is None:
        x, axis = flattened(b, x), 0
    at = axis_number(static_int(b, "np.repeat", "the axis", axis), num(x).rank)
    known = constant_of(b, repeats)
    if isinstance(known, (tuple, list)):
        known = known if all(isinstance(n, int) for n in known) else None
    if isinstance(known, (int, np.integer)):
        return _each_repeated(b, x, int(known), at)
    counts = array(b, repeats)
    if num(counts).kind not in "iub" or num(counts).rank > 1:
        raise TypeError(f"Cannot cast array data from dtype('{num(counts).dtype}') to dtype('int64') according to the "
                        "rule 'safe'")
    if not num(counts).rank:
        size = b.emit("demand", cast(b, counts, "int64"), what="counts")
        return _each_repeated(b, x, size, at)
    return _by_counts(b, x, cast(b, counts, "int64"), at, known)


def _each_repeated(b: Builder, x: Value, count: Any, axis: int) -> Value:
    """Each element as often: an axis behind the axis, broadcast and joined with it."""
    if isinstance(count, int) and count < 0:
        raise ValueError("repeats may not contain negative values.")
    sizes = sizes_of_value(b, x)
    wide = with_axes(b, x, [axis + 1])
    target = [*sizes[: axis + 1], count, *sizes[axis + 1 :]]
    whole = [*sizes[:axis], product(b, [sizes[axis], count]), *sizes[axis + 1 :]]
    return _reshaped(b, spread_to(b, wide, target), whole)


def spread_to(b: Builder, x: Value, sizes: Sequence[Any]) -> Value:
    """The array broadcast to sizes that fit."""
    if all(isinstance(n, int) for n in sizes):
        return broadcast_to_shape(b, x, tuple(sizes))
    shape = tuple(n if isinstance(n, int) else None for n in sizes)
    return b.emit("broadcast_to", x, dims_value(b, sizes), shape=shape)


def _reshaped(b: Builder, x: Value, sizes: Sequence[Any]) -> Value:
    if all(isinstance(n, int) for n in sizes):
        return reshaped(b, x, sizes)
    shape = tuple(n if isinstance(n, int) else None for n in sizes)
    return b.emit("reshape_to", x, dims_value(b, sizes), shape=shape, exact=True)


def _by_counts(b: Builder, x: Value, counts: Value, axis: int, known: Any) -> Value:
    """Each element as often as its own count says."""
    size, given = num(x).shape[axis], num(counts).shape[0]
    if size is not None and given is not None and size != given and given != 1:
        raise ValueError(f"operands could not be broadcast together with shape ({size},) ({given},)")
    if given is None or size is None and given != 1:
        known, end = None, size_value(b, sizes_of_value(b, x)[axis])
        count = size_value(b, sizes_of_value(b, counts)[0])
        fits = b.emit("logical_or", b.emit("eq", count, end), b.emit("eq", count, b.const(np.int64(1))))
        b.emit("demand", fits, what="repeats")
        every = b.emit("arange", b.const(np.int64(0)), end, b.const(np.int64(1)), dtype="int64", exact=True)
        counts = broadcast_together(b, [counts, every])[0]
    if given == 1 and size != 1:
        count = b.emit("sum", counts, axes=(0,), keepdims=False)
        return _each_repeated(b, x, b.emit("demand", count, what="counts"), axis)
    if known is not None and size is not None:
        where = np.repeat(np.arange(size), np.asarray(known))
        return b.emit("take", x, b.const(where), axis=axis, exact=True)
    counts = b.emit("demand", counts, what="counts")
    ends = b.emit("cumsum", counts, axis=0, reverse=False)
    total = b.emit("sum", counts, axes=(0,), keepdims=False)
    places = b.emit("arange", b.const(np.int64(0)), total, b.const(np.int64(1)), dtype="int64", exact=True)
    return b.emit("take", x, b.emit("searchsorted", ends, places, side="right"), axis=axis, exact=True)


def _tile(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    x, bound = argument(b, "np.tile", "A reps", args, kwargs)
    times = sizes_of_shape(b, "np.tile", *needed("np.tile", bound, "reps"))
    rank = max(num(x).rank, len(times))
    x = raised_to(b, x, rank)
    times = [1] * (rank - len(times)) + times
    if any(isinstance(n, int) and n < 0 for n in times):
        raise ValueError("negative dimensions are not allowed")
    times = [n if isinstance(n, int) else b.emit("demand", size_value(b, n), what="counts") for n in times]
    sizes = sizes_of_value(b, x)
    wide = with_axes(b, x, range(0, 2 * rank, 2))
    spread = spread_to(b, wide, [n for pair in zip(times, sizes) for n in pair])
    return _reshaped(b, spread, [product(b, pair) for pair in zip(times, sizes)])


# --------------------------------------------------------------------------------------------------------- triangles
def _triangle(title: str, lower: bool) -> Rule:
    """np.tril, np.triu"""

    def rule(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
        x, bound = argument(b, title, "m k", args, kwargs)
        if not num(x).rank:
            raise IndexError("tuple index out of range")
        if num(x).rank == 1:
            (size,) = sizes_of_value(b, x)
            x = spread_to(b, x, [size, size])
        return b.emit("triangle", x, k=static_int(b, title, "the diagonal", bound.get("k", 0)), lower=lower)

    return rule


def _diag(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    x, bound = argument(b, "np.diag", "v k", args, kwargs)
    offset = static_int(b, "np.diag", "the diagonal", bound.get("k", 0))
    if num(x).rank == 2:
        return b.emit("diagonal", x, offset=offset)
    if num(x).rank != 1:
        raise ValueError("Input must be 1- or 2-d.")
    return _on_diagonal(b, x, offset)


def _on_diagonal(b: Builder, x: Value, offset: int) -> Value:
    (size,) = num(x).shape
    if size is not None:
        return b.emit("onto_diagonal", x, shape=(size + abs(offset),) * 2, offset=offset)
    side = b.emit("add", size_value(b, sizes_of_value(b, x)[0]), b.const(np.int64(abs(offset))))
    return b.emit("onto_diagonal", x, dims_value(b, [side, side]), shape=(None, None), offset=offset)


def _diagflat(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    x, bound = argument(b, "np.diagflat", "v k", args, kwargs)
    return _on_diagonal(b, flattened(b, x), static_int(b, "np.diagflat", "the diagonal", bound.get("k", 0)))


# ------------------------------------------------------------------------------------------------- cutting and adding
def split(title: str, along: int | None, equal: bool) -> Rule:
    """np.split, np.array_split, np.vsplit, np.hsplit, np.dsplit"""

    def rule(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> list[Value]:
        names = "ary indices_or_sections axis" if along is None else "ary indices_or_sections"
        x, bound = argument(b, title, names, args, kwargs)
        axis = bound.get("axis", 0) if along is None else along
        if along == 1 and num(x).rank == 1:
            axis = 0
        elif along is not None and num(x).rank < (least := (2, 1, 3)[along]):
            raise ValueError(f"{title[3:]} only works on arrays of {least} or more dimensions")
        at = axis_number(static_int(b, title, "the axis", axis), num(x).rank)
        (sections,) = needed(title, bound, "indices_or_sections")
        return _cuts(b, title, x, at, sections, equal)

    return rule


def _cuts(b: Builder, title: str, x: Value, axis: int, sections: Any, equal: bool) -> list[Value]:
    size = num(x).shape[axis]
    known = constant_of(b, sections)
    if isinstance(known, np.ndarray) and known.ndim:
        sections = known.tolist()
    if size is None:
        raise Refusal(f"{title} needs a size that is known along the axis", "cut the array by slices.")
    if isinstance(sections, (tuple, list)):
        ends = [static_int(b, title, "an index", k) for k in sections]
        bounds = [slice(i, j).indices(size)[:2] for i, j in zip([0, *ends], [*ends, size])]
        return [cut(b, x, i, max(i, j), axis) for i, j in bounds]
    count = static_int(b, title, "the number of sections", sections)
    if count <= 0:
        raise ValueError("number sections must be larger than 0.")
    if equal and size % count:
        raise ValueError("array split does not result in an equal division")
    each, more = divmod(size, count)
    stops = np.cumsum([0] + more * [each + 1] + (count - more) * [each]).tolist()
    return [cut(b, x, i, j, axis) for i, j in zip(stops, stops[1:])]


def _append(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("np.append", "arr values axis", args, kwargs)
    parts = [array(b, v) for v in needed("np.append", bound, "arr", "values")]
    if bound.get("axis") is None:
        return joined(b, [flattened(b, v) for v in parts], 0)
    return joined(b, parts, static_int(b, "np.append", "the axis", bound["axis"]))


def _places(b: Builder, title: str, obj: Any, size: int) -> list[int]:
    """Constant places along an axis, counted from the front."""
    known = constant_of(b, obj)
    given = known.reshape(-1).tolist() if isinstance(known, np.ndarray) else items(obj)
    found = [static_int(b, title, "a place", k) for k in given]
    return [k + size if k < 0 else k for k in found]


def _insert(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    """One place, at which the values stand before the element that was there."""
    title = "np.insert"
    x, bound = argument(b, title, "arr obj values axis", args, kwargs)
    obj, values = needed(title, bound, "obj", "values")
    if bound.get("axis") is None:
        x, axis = flattened(b, x), 0
    else:
        axis = axis_number(static_int(b, title, "the axis", bound["axis"]), num(x).rank)
    size = num(x).shape[axis]
    if size is None or isinstance(obj, (tuple, list)):
        raise Refusal("np.insert takes one constant place in an axis of known size here")
    (at,) = _places(b, title, obj, size)
    if not 0 <= at <= size:
        raise IndexError(f"index {at} is out of bounds for axis {axis} with size {size}")
    new = cast(b, array(b, values), num(x).dtype)
    if num(new).rank > 1 or num(x).rank > 1:
        if num(new).rank >= num(x).rank:
            raise Refusal("np.insert of several rows at once is not supported", "use np.concatenate.")
        shape = tuple(n for k, n in enumerate(num(x).shape) if k != axis)
        new = with_axes(b, broadcast_to_shape(b, new, shape), [axis])
    else:
        new = flattened(b, new)
    parts = [cut(b, x, 0, at, axis), new, cut(b, x, at, size, axis)]
    return b.emit("concat", *parts, axis=axis)


def _delete(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    title = "np.delete"
    x, bound = argument(b, title, "arr obj axis", args, kwargs)
    (obj,) = needed(title, bound, "obj")
    if bound.get("axis") is None:
        x, axis = flattened(b, x), 0
    else:
        axis = axis_number(static_int(b, title, "the axis", bound["axis"]), num(x).rank)
    size = num(x).shape[axis]
    known = constant_of(b, obj)
    if isinstance(obj, Value) and known is None and not num(obj).rank and num(obj).kind in "iu" and size:
        return _without(b, x, obj, axis, size)
    if size is None:
        raise Refusal("np.delete needs a size that is known along the axis")
    if np.asarray(known if known is not None else 0).dtype == bool:
        raise Refusal("np.delete takes places here, not a mask", "use np.compress.")
    gone = _places(b, title, obj, size)
    for k in gone:
        if not 0 <= k < size:
            raise IndexError(f"index {k} is out of bounds for axis {axis} with size {size}")
    left = np.array([k for k in range(size) if k not in gone], np.int64)
    return b.emit("take", x, b.const(left), axis=axis, exact=True)


def _without(b: Builder, x: Value, at: Value, axis: int, size: int) -> Value:
    """Without one element at a computed place: the places from there on are one further. `index` checks the place."""
    places = b.const(np.arange(size))
    gone = b.emit("index", places, at)
    left = b.const(np.arange(size - 1))
    wide, gone = broadcast_together(b, [left, gone])
    behind = cast(b, b.emit("ge", wide, gone), "int64")
    return b.emit("take", x, b.emit("add", wide, behind), axis=axis, exact=True)


REARRANGING_CALLS: dict[Any, Rule] = {
    np.roll: _roll,
    np.flipud: _flipped("np.flipud", 0, 1),
    np.fliplr: _flipped("np.fliplr", 1, 2),
    np.rot90: _rot90,
    np.repeat: _repeat,
    np.tile: _tile,
    np.tril: _triangle("np.tril", True),
    np.triu: _triangle("np.triu", False),
    np.diag: _diag,
    np.diagflat: _diagflat,
    np.split: split("np.split", None, True),
    np.array_split: split("np.array_split", None, False),
    np.vsplit: split("np.vsplit", 0, True),
    np.hsplit: split("np.hsplit", 1, True),
    np.dsplit: split("np.dsplit", 2, True),
    np.append: _append,
    np.insert: _insert,
    np.delete: _delete,
}
