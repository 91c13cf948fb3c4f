"""NumPy's sorting, searching and counting, as primitives.

The invariant: an array whose size depends on values (unique, nonzero, bincount, compress) gets it from a count that is
computed first; NaN stands behind all numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spmd.ir.build import Builder
from spmd.ir.core import Value
from spmd.ops.arguments import (
    alike,
    array,
    axes_of,
    axis_number,
    bind,
    dims_value,
    needed,
    size_value,
    sizes_of_value,
    static_bool,
    static_int,
)
from spmd.ops.calculus import constant, num
from spmd.ops.numpy_elementwise import ELEMENTWISE_CALLS, Rule, as_bool, select
from spmd.ops.numpy_shapes import flattened, reshaped
from spmd.ops.operators import compare
from spmd.ops.primitive import Refusal
from spmd.ops.promotion import broadcast_together, cast, constant_of

KINDS = (None, "quicksort", "heapsort", "mergesort", "stable")


def _along(b: Builder, title: str, x: Value, axis: Any) -> tuple[Value, int]:
    """The array and the axis to work along; None is all elements in a row."""
    if axis is None:
        return flattened(b, x), 0
    if not num(x).rank:
        raise np.exceptions.AxisError(static_int(b, title, "the axis", axis), 0)
    return x, axis_number(static_int(b, title, "the axis", axis), num(x).rank)


def _kind(title: str, bound: dict[str, Any]) -> bool:
    """Whether the sort must be stable."""
    kind, stable = bound.get("kind"), bound.get("stable")
    if kind not in KINDS or not isinstance(stable, (bool, type(None))):
        raise Refusal(f"the kind of {title} must be one of NumPy's, and known now")
    return bool(stable) or kind in ("mergesort", "stable")


def _sort(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("np.sort", "a axis kind -order stable", args, kwargs)
    _kind("np.sort", bound)
    x, axis = _along(b, "np.sort", array(b, *needed("np.sort", bound, "a")), bound.get("axis", -1))
    return b.emit("sort", x, axis=axis)


def _argsort(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("np.argsort", "a axis kind -order stable", args, kwargs)
    stable = _kind("np.argsort", bound)
    x, axis = _along(b, "np.argsort", array(b, *needed("np.argsort", bound, "a")), bound.get("axis", -1))
    return b.emit("argsort", x, axis=axis, **({"stable": True} if stable else {}))


# ---------------------------------------------------------------------------------------------------------- search
def searched(b: Builder, a: Value, v: Value, side: Any) -> Value:
    """np.searchsorted"""
    if side not in ("left", "right"):
        raise Refusal("the side of np.searchsorted must be 'left' or 'right', and known now")
    if num(a).rank != 1:
        raise ValueError("object too deep for desired array")
    a, v = alike(b, [a, v])
    return b.emit("searchsorted", a, v, side=side)


def _searchsorted(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("np.searchsorted", "a v side sorter", args, kwargs)
    a, v = (array(b, x) for x in needed("np.searchsorted", bound, "a", "v"))
    if bound.get("sorter") is not None:
        a = b.emit("take", a, array(b, bound["sorter"]), axis=0)
    return searched(b, a, v, bound.get("side", "left"))


def _digitize(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("np.digitize", "x bins right", args, kwargs)
    x, bins = (array(b, v) for v in needed("np.digitize", bound, "x", "bins"))
    right = static_bool(b, "np.digitize", "right", bound.get("right", False))
    if num(bins).rank != 1:
        raise ValueError("object too deep for desired array")
    return b.emit("digitize", *alike(b, [x, bins]), right=right)


def _full_like(b: Builder, number: int, x: Value) -> Value:
    return constant(b, number, b.emit("cast", x, dtype="int64", python=False))


def _interp(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    """As NumPy computes it: the slope of the piece that x lies in, from its left end; no slope at the last point."""
    bound = bind("np.interp", "x xp fp left right -period", args, kwargs)
    x, xp, fp = (cast(b, array(b, v), "float64") for v in needed("np.interp", bound, "x", "xp", "fp"))
    if num(xp).rank != 1 or num(fp).rank != 1:
        raise ValueError("object too deep for desired array")
    count = _points(b, xp, fp)
    outer = [cast(b, array(b, bound[n]), "float64") if bound.get(n) is not None else None for n in ("left", "right")]
    last = b.emit("sub", count, b.const(np.int64(1)))
    xp, fp, line = *(_with_slot(b, v) for v in (xp, fp)), xp
    ends, bounds = ([b.emit("index", v, k, exact=True) for k in (b.const(np.int64(0)), last)] for v in (fp, xp))
    left, right = (end if given is None else given for end, given in zip(ends, outer))
    place = b.emit("sub", b.emit("searchsorted", line, x, side="right"), _full_like(b, 1, x))
    found = _piecewise(b, x, xp, fp, place, last)
    found = select(b, compare(b, "==", x, bounds[1]), ends[1], found)
    found = select(b, compare(b, "<", x, bounds[0]), left, found)
    found = select(b, compare(b, ">", x, bounds[1]), right, found)
    return select(b, b.emit("isnan", x), x, found)


def _with_slot(b: Builder, x: Value) -> Value:
    """A vector that can be read at 0: an example that has none there raises, but goes on until that is seen."""
    return x if num(x).static else b.emit("concat", x, b.const(np.zeros(1)), axis=0)


def _points(b: Builder, xp: Value, fp: Value) -> Value:
    """How many points there are; as many of both, and one at least."""
    (count,), (other,) = num(xp).shape, num(fp).shape
    if count is not None and other is not None and count != other:
        raise ValueError("fp and xp are not of the same length.")
    if count == 0:
        raise ValueError("array of sample points is empty")
    sizes = [size_value(b, sizes_of_value(b, v)[0]) for v in (xp, fp)]
    if count is None:
        b.emit("demand", sizes[0], what="some")
    if count is None or other is None:
        b.emit("demand", b.emit("sub", *sizes), what="points")
    return sizes[0]


def _piecewise(b: Builder, x: Value, xp: Value, fp: Value, place: Value, last: Value) -> Value:
    zero = _full_like(b, 0, x)
    top = broadcast_together(b, [last, place])[0]
    at = b.emit("maximum", b.emit("minimum", place, b.emit("sub", top, _full_like(b, 1, x))), zero)
    after = b.emit("minimum", b.emit("add", at, _full_like(b, 1, x)), top)
    x0, x1, f0, f1 = (b.emit("take", v, k, axis=0, exact=True) for v in (xp, fp) for k in (at, after))
    gap = b.emit("sub", x1, x0)
    flat = b.emit("eq", gap, constant(b, 0, gap))
    slope = b.emit("div", b.emit("sub", f1, f0), b.emit("where", flat, constant(b, 1, gap), gap))
    exact = b.emit("eq", x, x0)
    distance = b.emit("where", exact, constant(b, 0, x), b.emit("sub", x, x0))
    found = b.emit("where", exact, f0, b.emit("add", b.emit("mul", slope, distance), f0))
    other = b.emit("add", b.emit("mul", slope, b.emit("sub", x, x1)), f1)
    return b.emit("where", b.emit("isnan", found), other, found)


# ------------------------------------------------------------------------------------------------ places and counts
def count_true(b: Builder, mask: Value) -> Value:
    """How many are true of a vector."""
    return b.emit("sum", cast(b, mask, "int64"), axes=(0,), keepdims=False)


def places(b: Builder, mask: Value) -> Value:
    """Where a vector of bools is true."""
    return b.emit("positions", mask, dims_value(b, [count_true(b, mask)]), shape=(None,))


def nonzero(b: Builder, x: Value) -> tuple[Value, ...]:
    """np.nonzero"""
    rank = num(x).rank
    if not rank:
        raise ValueError("Calling nonzero on 0d arrays is not allowed. Use np.atleast_1d(scalar).nonzero() instead.")
    mask = as_bool(b, x)
    at = places(b, flattened(b, mask))
    found: list[Value] = []
    for size in reversed(sizes_of_value(b, mask)[1:]):
        wide = broadcast_together(b, [at, size_value(b, size)])
        found.append(b.emit("mod", *wide))
        at = b.emit("floordiv", *wide)
    return (at, *reversed(found))


def _nonzero(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> tuple[Value, ...]:
    return nonzero(b, array(b, *needed("np.nonzero", bind("np.nonzero", "a", args, kwargs), "a")))


def _where(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """np.where: of a condition alone, where it holds."""
    bound = bind("np.where", "condition x y", args, kwargs)
    if "x" in bound or "y" in bound:
        return ELEMENTWISE_CALLS[np.where](b, args, kwargs)
    return nonzero(b, array(b, *needed("np.where", bound, "condition")))


def _flatnonzero(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    x = array(b, *needed("np.flatnonzero", bind("np.flatnonzero", "a", args, kwargs), "a"))
    return places(b, flattened(b, as_bool(b, x)))


def _argwhere(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    x = array(b, *needed("np.argwhere", bind("np.argwhere", "a", args, kwargs), "a"))
    return b.emit("stack", *nonzero(b, x), axis=1)


def _compress(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("np.compress", "condition a axis -out", args, kwargs)
    mask, x = (array(b, v) for v in needed("np.compress", bound, "condition", "a"))
    return compressed(b, mask, x, bound.get("axis"))


def compressed(b: Builder, mask: Value, x: Value, axis: Any) -> Value:
    """np.compress: the elements where a vector of bools is true."""
    if num(mask).rank != 1:
        raise ValueError("condition must be a 1-d array")
    x, at = _along(b, "np.compress", x, axis)
    return b.emit("take", x, places(b, as_bool(b, mask)), axis=at)


def _extract(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("np.extract", "condition arr", args, kwargs)
    mask, x = (flattened(b, array(b, v)) for v in needed("np.extract", bound, "condition", "arr"))
    return b.emit("take", x, places(b, as_bool(b, mask)), axis=0)


def _count_nonzero(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    """An axis that is not given gives a NumPy int, as of NumPy 2.4; a Python int before."""
    title = "np.count_nonzero"
    bound = bind(title, "a axis keepdims", args, kwargs)
    x = as_bool(b, array(b, *needed(title, bound, "a")))
    keepdims = static_bool(b, title, "keepdims", bound.get("keepdims", False))
    axes = axes_of(b, title, bound.get("axis"), num(x).rank)
    found = b.emit("sum", cast(b, x, "int64"), axes=axes, keepdims=keepdims)
    plain = bound.get("axis") is None and not keepdims and type(np.count_nonzero(np.ones(1))) is int
    return cast(b, found, "int64", True) if plain else found


def _unique(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Any:
    title = "np.unique"
    bound = bind(
        title, "ar -return_index return_inverse return_counts axis equal_nan sorted", args, kwargs)
    x = array(b, *needed(title, bound, "ar"))
    inverse, counts = (static_bool(b, title, n, bound.get(n, False)) for n in ("return_inverse", "return_counts"))
    plain = [static_bool(b, title, n, bound.get(n, True)) for n in ("equal_nan", "sorted")]
    if bound.get("axis") is not None and num(x).rank != 1 or not all(plain):
        raise Refusal("np.unique along an axis, unsorted, or of NaN as unequal values, is not supported")
    flat = flattened(b, x)
    ordered = b.emit("sort", flat, axis=0)
    first = _first_of_equals(b, ordered)
    at = places(b, first)
    found: list[Value] = [b.emit("take", ordered, at, axis=0, exact=True)]
    if inverse:
        ranks = b.emit("argsort", b.emit("argsort", flat, axis=0, stable=True), axis=0, stable=True)
        group = b.emit("cumsum", cast(b, first, "int64"), axis=0, reverse=False)
        group = b.emit("sub", group, constant(b, 1, group))
        found.append(reshaped(b, b.emit("take", group, ranks, axis=0, exact=True), sizes_of_value(b, x)))
    if counts:
        total = size_value(b, sizes_of_value(b, flat)[0])
        ends = b.emit("concat", at, reshaped(b, total, [1]), axis=0)
        later = b.emit("dynslice", ends, b.const(np.int64(1)), axis=0, step=1, given=(True, False))
        found.append(b.emit("sub", *broadcast_together(b, [later, at])))
    return found[0] if len(found) == 1 else tuple(found)


def _first_of_equals(b: Builder, ordered: Value) -> Value:
    """Where a sorted vector has a value that the element before it does not have; all NaN are one value."""
    plain = cast(b, ordered, "int64") if num(ordered).kind == "b" else ordered
    before = b.emit("shift", plain, axis=0, by=1, fill=0.0)
    place = constant(b, 1, b.emit("cast", plain, dtype="int64", python=False))
    start = b.emit("eq", b.emit("shift", place, axis=0, by=1, fill=0.0), constant(b, 0, place))
    new = b.emit("ne", plain, before)
    if num(plain).kind == "f":
        both = b.emit("logical_and", b.emit("isnan", plain), b.emit("isnan", before))
        new = b.emit("logical_and", new, b.emit("logical_not", both))
    return b.emit("logical_or", start, new)


def _bincount(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    """The size is that of the largest number, or `minlength`: it depends on values."""
    bound = bind("np.bincount", "x weights minlength", args, kwargs)
    x = array(b, *needed("np.bincount", bound, "x"))
    if num(x).kind == "f" or num(x).dtype == "uint64":
        if num(x).shape != (0,):
            raise TypeError(f"Cannot cast array data from dtype('{num(x).dtype}') to dtype('int64') according to the "
                            "rule 'safe'")
    if num(x).rank != 1:
        raise ValueError("object too deep for desired array" if num(x).rank else "object of too small depth for "
                         "desired array")
    x = cast(b, x, "int64")
    least = bound.get("minlength", 0)
    known = constant_of(b, least)
    if not isinstance(known, (int, np.integer)) or known < 0:
        raise Refusal("minlength of np.bincount must be a constant that is not negative")
    top = b.emit("max", b.emit("concat", x, b.const(np.array([known - 1])), axis=0), axes=(0,), keepdims=False)
    dims = dims_value(b, [b.emit("add", top, b.const(np.int64(1)))])
    weights = [] if bound.get("weights") is None else [cast(b, array(b, bound["weights"]), "float64")]
    if weights and num(weights[0]).rank != 1:
        raise ValueError("object too deep for desired array")
    return b.emit("counts", x, *weights, dims, shape=(None,))


def _take_along_axis(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    title = "np.take_along_axis"
    bound = bind(title, "arr indices axis", args, kwargs)
    x, at = (array(b, v) for v in needed(title, bound, "arr", "indices"))
    x, axis = _along(b, title, x, bound.get("axis", -1))
    if num(at).kind not in "iu":
        raise IndexError("`indices` must be an integer array")
    if num(at).rank != num(x).rank:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    beside = [(m, n) for k, (m, n) in enumerate(zip(num(x).shape, num(at).shape)) if k != axis]
    if any(m != n for m, n in beside) or any(None in pair for pair in beside):
        raise Refusal("np.take_along_axis needs arrays of equal, known sizes beside the axis")
    return b.emit("take_along", x, at, axis=axis)


SORTING_CALLS: dict[Any, Rule] = {
    np.sort: _sort,
    np.argsort: _argsort,
    np.searchsorted: _searchsorted,
    np.digitize: _digitize,
    np.interp: _interp,
    np.nonzero: _nonzero,
    np.where: _where,
    np.flatnonzero: _flatnonzero,
    np.argwhere: _argwhere,
    np.compress: _compress,
    np.extract: _extract,
    np.count_nonzero: _count_nonzero,
    np.unique: _unique,
    np.bincount: _bincount,
    np.take_along_axis: _take_along_axis,
}
