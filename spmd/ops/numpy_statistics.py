"""NumPy's statistics: order statistics, weighted means, spans, covariance, and the forms that skip NaN, as primitives.

The invariant: an order statistic is read from a sort, so NaN, which stands last, is seen there; its derivative is that
of the elements that it was made of.
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
    bind,
    needed,
    product,
    size_value,
    sizes_of_value,
    static_bool,
    static_int,
)
from spmd.ops.calculus import constant, num, restored
from spmd.ops.matrices import cut
from spmd.ops.numpy_elementwise import Rule, rounding, select
from spmd.ops.numpy_reductions import average, divided, root, widened
from spmd.ops.numpy_shapes import flattened, permuted, raised_to, reshaped, with_axes
from spmd.ops.operators import apply, binary, matrix_product
from spmd.ops.primitive import Refusal
from spmd.ops.promotion import broadcast_together, cast


def _floats(b: Builder, x: Value) -> Value:
    return cast(b, x, "float64") if num(x).kind in "biu" else x


def _ordered(b: Builder, title: str, x: Value, axis: Any) -> tuple[Value, tuple[int, ...]]:
    """The elements along the axes sorted, as the last axis of the array; and the axes."""
    axes = axes_of(b, title, axis, num(x).rank)
    rest = [k for k in range(num(x).rank) if k not in axes]
    moved = permuted(b, x, [*rest, *axes])
    sizes = sizes_of_value(b, moved)
    flat = reshaped(b, moved, [*sizes[: len(rest)], product(b, sizes[len(rest) :])])
    return b.emit("sort", flat, axis=len(rest)), axes


def _count(b: Builder, ordered: Value) -> Value:
    """How many elements there are along the last axis."""
    return size_value(b, sizes_of_value(b, ordered)[-1])


def _element(b: Builder, ordered: Value, at: Value) -> Value:
    """ordered[..., at], where `at` is in range unless there are no elements."""
    return b.emit("take", ordered, at, axis=num(ordered).rank - 1, exact=True)


def _with_nan(b: Builder, ordered: Value) -> Value:
    """With a NaN behind the last element where there may be none: it is read instead."""
    axis = num(ordered).rank - 1
    if num(ordered).shape[axis] is not None:
        return ordered
    slot = b.emit("sum", ordered, axes=(axis,), keepdims=True)
    return b.emit("concat", ordered, constant(b, np.nan, slot), axis=axis)


def _demand_some(title: str, ordered: Value) -> None:
    if num(ordered).shape[-1] in (None, 0):
        raise Refusal(f"{title} needs a number of elements that is known and not 0")


def _median(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    title = "np.median"
    bound = bind(title, "a axis -out overwrite_input keepdims", args, kwargs)
    x = _floats(b, array(b, *needed(title, bound, "a")))
    return median(b, title, x, bound)


def median(b: Builder, title: str, x: Value, bound: dict[str, Any]) -> Value:
    """The middle element, or the mean of the two in the middle."""
    ordered, axes = _ordered(b, title, x, bound.get("axis"))
    if num(ordered).shape[-1] == 0:
        raise Refusal(f"{title} of no elements is not supported")
    count, one, two = _count(b, ordered), b.const(np.int64(1)), b.const(np.int64(2))
    ordered = _with_nan(b, ordered)
    upper = b.emit("floordiv", count, two)
    lower = b.emit("maximum", b.emit("floordiv", b.emit("sub", count, one), two), b.const(np.int64(0)))
    pair = [_element(b, ordered, at) for at in (lower, upper)]
    middle = binary(b, "/", binary(b, "+", *pair), constant(b, 2, pair[0]))
    found = select(b, b.emit("eq", lower, upper), pair[0], middle)
    last = _element(b, ordered, b.emit("sub", count, one))
    return _kept(b, title, select(b, b.emit("isnan", last), last, found), axes, bound)


def _kept(b: Builder, title: str, found: Value, axes: tuple[int, ...], bound: dict[str, Any], ahead: int = 0) -> Value:
    """The result with the reduced axes as axes of size 1, where `keepdims` asks for them."""
    if not static_bool(b, title, "keepdims", bound.get("keepdims", False)):
        return found
    return with_axes(b, found, [k + ahead for k in axes])


def quantile(title: str, whole: float) -> Rule:
    """np.quantile, np.percentile: the linear method."""

    def rule(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
        bound = bind(title, "a q axis -out overwrite_input method keepdims -weights -interpolation", args, kwargs)
        x, q = needed(title, bound, "a", "q")
        if bound.get("method", "linear") != "linear":
            raise Refusal(f"the method of {title} is 'linear' here")
        x, part = array(b, x), array(b, q)
        weak = not isinstance(q, (tuple, list)) and (not isinstance(q, Value) or num(q).python)
        if whole != 1.0:
            part = apply(b, "div", np.divide, part, b.const(whole))
        return _quantile(b, title, x, part, bound, weak)

    return rule


def _quantile(b: Builder, title: str, x: Value, part: Value, bound: dict[str, Any], weak: bool) -> Value:
    """`weak`: q is a Python number, which leaves the dtype as it is."""
    ordered, axes = _ordered(b, title, x, bound.get("axis"))
    if num(ordered).shape[-1] == 0:
        raise Refusal(f"{title} of no elements is not supported")
    final = b.emit("sub", _count(b, ordered), b.const(np.int64(1)))
    final_last = b.emit("take", ordered, final, axis=num(ordered).rank - 1)  # raises where there are no elements
    part = b.emit("demand", part, what="percentile" if title == "np.percentile" else "quantile")
    place = b.emit("mul", *broadcast_together(b, [part, cast(b, final, num(part).dtype)]))
    if num(part).kind != "f":
        return _in_front(b, title, _element(b, ordered, cast(b, place, "int64")), part, axes, bound)
    if num(x).kind == "b":
        apply(b, "sub", np.subtract, x, x)  # raises as NumPy does
    low = rounding("floor", np.floor)(b, [place], {})
    weight = b.emit("sub", place, low)
    weight = cast(b, weight, num(x).dtype) if weak and num(x).kind == "f" else weight
    at = b.emit("cast", low, dtype="int64", python=False)
    after = b.emit("minimum", *broadcast_together(b, [b.emit("add", at, constant(b, 1, at)), final]))
    pair = [_element(b, ordered, k) for k in (at, after)]
    gap = binary(b, "-", pair[1], pair[0])
    forward = binary(b, "+", pair[0], binary(b, "*", gap, weight))
    backward = binary(b, "-", pair[1], binary(b, "*", gap, binary(b, "-", 1, weight)))
    found = select(b, b.emit("ge", weight, constant(b, 0.5, weight)), backward, forward)
    last = final_last
    if num(part).rank:
        last = with_axes(b, last, range(num(last).rank, num(last).rank + num(part).rank))
    if num(last).kind == "f":
        found = select(b, b.emit("isnan", last), last, found)
    return _in_front(b, title, found, part, axes, bound)


def _in_front(
    b: Builder, title: str, found: Value, part: Value, axes: tuple[int, ...], bound: dict[str, Any]
) -> Value:
    """The result with the axes of q, which stand behind all others, in front of them."""
    if num(part).rank:
        rank, extra = num(found).rank, num(part).rank
        found = permuted(b, found, [*range(rank - extra, rank), *range(rank - extra)])
    return _kept(b, title, found, axes, bound, num(part).rank)


# ----------------------------------------------------------------------------------------------- means and spans
def _average(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Any:
    title = "np.average"
    bound = bind(title, "a axis weights returned keepdims", args, kwargs)
    x = array(b, *needed(title, bound, "a"))
    axes = axes_of(b, title, bound.get("axis"), num(x).rank)
    keepdims = static_bool(b, title, "keepdims", bound.get("keepdims", False))
    if static_bool(b, title, "returned", bound.get("returned", False)):
        raise Refusal("the argument 'returned' of np.average is not supported")
    if bound.get("weights") is None:
        return average(b, x, axes, keepdims)
    weights = array(b, bound["weights"])
    if num(weights).rank != num(x).rank:
        if num(weights).rank != 1 or len(axes) != 1 or bound.get("axis") is None:
            raise TypeError("Axis must be specified when shapes of a and weights differ.")
        weights = with_axes(b, weights, [k for k in range(num(x).rank) if k not in axes])
    dtype = np.result_type(num(x).dtype, num(weights).dtype, *(["float64"] if num(x).kind in "biu" else []))
    x, weights = broadcast_together(b, [cast(b, v, str(dtype)) for v in (x, weights)])
    total = b.emit("sum", weights, axes=axes, keepdims=keepdims)
    scale = b.emit("demand", total, what="weights")
    return b.emit("div", b.emit("sum", b.emit("mul", x, weights), axes=axes, keepdims=keepdims), scale)


def _ptp(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("np.ptp", "a axis -out keepdims", args, kwargs)
    x = array(b, *needed("np.ptp", bound, "a"))
    keepdims = static_bool(b, "np.ptp", "keepdims", bound.get("keepdims", False))
    axes = axes_of(b, "np.ptp", bound.get("axis"), num(x).rank)
    if any(num(x).shape[k] == 0 for k in axes):
        raise ValueError("zero-size array to reduction operation maximum which has no identity")
    ends = [b.emit(name, x, axes=axes, keepdims=keepdims) for name in ("max", "min")]
    return apply(b, "sub", np.subtract, *ends)


def _cov(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    title = "np.cov"
    bound = bind(title, "m y rowvar bias ddof -fweights -aweights -dtype", args, kwargs)
    return covariance(b, title, bound, *needed(title, bound, "m"))


def covariance(b: Builder, title: str, bound: dict[str, Any], x: Any) -> Value:
    """Of variables that lie along the rows."""
    rows = [_observed(b, title, bound, v) for v in (x, bound.get("y")) if v is not None]
    m = rows[0] if len(rows) == 1 else b.emit("concat", *[cast(b, v, "float64") for v in rows], axis=0)
    bias = static_bool(b, title, "bias", bound.get("bias", False))
    ddof = 1 - int(bias) if bound.get("ddof") is None else static_int(b, title, "ddof", bound["ddof"])
    count = num(m).shape[1]
    if count is None:
        raise Refusal(f"{title} needs a number of observations that is known")
    centred = binary(b, "-", m, average(b, m, (1,), True))
    total = matrix_product(b, centred, permuted(b, centred, (1, 0)))
    found = divided(b, total, max(count - ddof, 0))
    return reshaped(b, found, []) if num(found).shape == (1, 1) else found


def _observed(b: Builder, title: str, bound: dict[str, Any], x: Any) -> Value:
    value = cast(b, array(b, x), "float64")
    if num(value).rank > 2:
        raise ValueError("m has more than 2 dimensions")
    flat = num(value).rank < 2
    value = raised_to(b, value, 2)
    if not static_bool(b, title, "rowvar", bound.get("rowvar", True)) and not flat:
        value = permuted(b, value, (1, 0))
    return value


def _corrcoef(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    title = "np.corrcoef"
    bound = bind(title, "x y rowvar -dtype", args, kwargs)
    c = covariance(b, title, bound, *needed(title, bound, "x"))
    if not num(c).rank:
        return b.emit("div", c, c)
    spread = root(b, b.emit("diagonal", c, offset=0))
    scaled = binary(b, "/", c, with_axes(b, spread, [1]))
    scaled = binary(b, "/", scaled, with_axes(b, spread, [0]))
    return b.emit("minimum", b.emit("maximum", scaled, constant(b, -1, scaled)), constant(b, 1, scaled))


# ------------------------------------------------------------------------------------------------------ without NaN
def _nan_reduction(name: str) -> Rule:
    """np.nansum, np.nanmean, ...: NaN counts as nothing."""
    title = f"np.{name}"

    def rule(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
        names = {"nansum": "a axis dtype", "nanprod": "a axis dtype", "nanmean": "a axis dtype", "nanmax": "a axis",
                 "nanmin": "a axis", "nanvar": "a axis -dtype", "nanstd": "a axis -dtype"}[name]
        extra = " ddof" if name in ("nanvar", "nanstd") else ""
        bound = bind(title, f"{names} -out{extra} keepdims -initial -where -mean -correction", args, kwargs)
        x = array(b, *needed(title, bound, "a"))
        if bound.get("dtype") is not None:
            raise Refusal(f"the argument 'dtype' of {title} is not supported", "convert the array first.")
        attrs = {"axes": axes_of(b, title, bound.get("axis"), num(x).rank),
                 "keepdims": static_bool(b, title, "keepdims", bound.get("keepdims", False))}
        ddof = static_int(b, title, "ddof", bound.get("ddof", 0))
        return _without_nan(b, name, x, attrs, ddof)

    return rule


def _without_nan(b: Builder, name: str, x: Value, attrs: dict[str, Any], ddof: int) -> Value:
    if name in ("nansum", "nanprod", "nanmax", "nanmin"):
        return _skipping(b, name, x, attrs)
    x = _floats(b, x)
    if num(x).dtype == "float16":
        raise Refusal(f"np.{name} of float16 values is not supported", "convert them to float32.")
    missing = b.emit("isnan", x)
    zero = constant(b, 0, x)
    here = cast(b, b.emit("logical_not", missing), num(x).dtype)
    whole = {**attrs, "keepdims": True} if name != "nanmean" else attrs
    mean = b.emit("div", b.emit("sum", b.emit("where", missing, zero, x), **whole), b.emit("sum", here, **whole))
    if name == "nanmean":
        return mean
    wide = restored(b, mean, x, attrs["axes"], True)
    centred = b.emit("where", missing, zero, b.emit("sub", x, wide))
    total = b.emit("sum", b.emit("square", centred), **attrs)
    count = b.emit("sum", here, **attrs)
    free = b.emit("sub", count, constant(b, ddof, count))
    some = b.emit("gt", free, constant(b, 0, free))
    nan = constant(b, np.nan, total)
    found = b.emit("where", some, b.emit("div", total, b.emit("where", some, free, constant(b, 1, free))), nan)
    return root(b, found) if name == "nanstd" else found


def _nanmedian(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    """Sorted, the numbers stand before the NaN: how many there are says where the middle is."""
    title = "np.nanmedian"
    bound = bind(title, "a axis -out overwrite_input keepdims", args, kwargs)
    x = _floats(b, array(b, *needed(title, bound, "a")))
    ordered, axes = _ordered(b, title, x, bound.get("axis"))
    _demand_some(title, ordered)
    last = num(ordered).rank - 1
    here = cast(b, b.emit("logical_not", b.emit("isnan", ordered)), "int64")
    count = b.emit("sum", here, axes=(last,), keepdims=True)
    one, two = constant(b, 1, count), constant(b, 2, count)
    pair = []
    for at in (b.emit("sub", count, one), count):
        place = b.emit("maximum", b.emit("floordiv", at, two), constant(b, 0, count))
        found = b.emit("take_along", ordered, place, axis=last, exact=True)
        pair.append(b.emit("sum", found, axes=(last,), keepdims=False))
    middle = binary(b, "/", binary(b, "+", *pair), constant(b, 2, pair[0]))
    odd = b.emit("sum", b.emit("mod", count, two), axes=(last,), keepdims=False)
    return _kept(b, title, select(b, odd, pair[0], middle), axes, bound)


def _histogram(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> tuple[Value, Value]:
    """Of bins whose edges are given."""
    title = "np.histogram"
    bound = bind(title, "a bins -range -density -weights", args, kwargs)
    x = flattened(b, array(b, *needed(title, bound, "a")))
    edges = array(b, bound["bins"]) if isinstance(bound.get("bins"), (Value, tuple, list)) else None
    if edges is None or num(edges).rank != 1 or num(edges).shape[0] is None:
        raise Refusal("np.histogram takes the edges of its bins here", "np.linspace(low, high, count + 1) makes them.")
    count = num(edges).shape[0] or 0
    if count < 2:
        raise Refusal("np.histogram takes two edges or more here")
    gaps = b.emit("sub", *(cast(b, cut(b, edges, i, j, 0), "float64") for i, j in ((1, count), (0, count - 1))))
    b.emit("demand", b.emit("min", gaps, axes=(0,), keepdims=False), what="edges")
    both = alike(b, [x, edges])
    ordered = b.emit("sort", both[0], axis=0)
    ends = [b.emit("searchsorted", ordered, cut(b, both[1], i, j, 0), side=side)
            for i, j, side in ((0, count - 1, "left"), (count - 1, count, "right"))]
    places = b.emit("concat", *ends, axis=0)
    return b.emit("sub", cut(b, places, 1, count, 0), cut(b, places, 0, count - 1, 0)), edges


def _skipping(b: Builder, name: str, x: Value, attrs: dict[str, Any]) -> Value:
    plain = name[3:]
    if plain in ("sum", "prod"):
        x = cast(b, x, widened(num(x).dtype))
    elif any(num(x).shape[k] == 0 for k in attrs["axes"]):
        which = "fmax" if plain == "max" else "fmin"
        raise ValueError(f"zero-size array to reduction operation {which} which has no identity")
    if num(x).kind != "f":
        return b.emit(plain, x, **attrs)
    missing = b.emit("isnan", x)
    neutral = {"sum": 0.0, "prod": 1.0, "max": -np.inf, "min": np.inf}[plain]
    found = b.emit(plain, b.emit("where", missing, constant(b, neutral, x), x), **attrs)
    if plain in ("sum", "prod"):
        return found
    return b.emit("where", b.emit("all", missing, **attrs), constant(b, np.nan, found), found)


STATISTICS_CALLS: dict[Any, Rule] = {
    np.median: _median,
    np.quantile: quantile("np.quantile", 1.0),
    np.percentile: quantile("np.percentile", 100.0),
    np.average: _average,
    np.ptp: _ptp,
    np.cov: _cov,
    np.corrcoef: _corrcoef,
    np.nanmedian: _nanmedian,
    np.histogram: _histogram,
    **{
        getattr(np, name): _nan_reduction(name)
        for name in ("nansum", "nanprod", "nanmean", "nanmax", "nanmin", "nanvar", "nanstd")
    },
}
