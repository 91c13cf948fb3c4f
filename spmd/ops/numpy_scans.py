"""NumPy's running sums and products, differences and integrals along an axis, as primitives.

The invariant: dtypes are NumPy's (running sums and products of bools and small integers widen to 64 bits); axes and
orders are constants.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spmd.ir.build import Builder
from spmd.ir.core import Value
from spmd.ops.arguments import alike, array, axes_of, axis_number, bind, dtype_of, needed, static_bool, static_int
from spmd.ops.calculus import constant, num
from spmd.ops.matrices import cut
from spmd.ops.numpy_elementwise import Rule, as_bool
from spmd.ops.numpy_reductions import widened
from spmd.ops.numpy_shapes import flattened, with_axes
from spmd.ops.operators import apply, binary
from spmd.ops.primitive import Refusal
from spmd.ops.promotion import cast, strengthen


def _axis(b: Builder, title: str, x: Value, axis: Any) -> int:
    return axis_number(static_int(b, title, "the axis", axis), num(x).rank)


def scan(name: str) -> Rule:
    """np.cumsum, np.cumprod"""
    title = f"np.{name}"

    def rule(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
        bound = bind(title, "a axis dtype -out", args, kwargs)
        x = array(b, *needed(title, bound, "a"))
        return scanned(b, name, title, x, bound.get("axis"), bound.get("dtype"))

    return rule


def scanned(b: Builder, name: str, title: str, x: Value, axis: Any, dtype: Any) -> Value:
    """The scan of an array along an axis, of all elements if that is None."""
    x = cast(b, x, dtype_of(dtype, widened(num(x).dtype)))
    if num(x).kind == "b":
        raise Refusal(f"{title} to bools is not supported")
    if axis is None:
        x, axis = flattened(b, x), 0
    return b.emit(name, x, axis=_axis(b, title, x, axis), reverse=False)


def cumulative(name: str, primitive: str) -> Rule:
    """np.cumulative_sum, np.cumulative_prod"""
    title = f"np.{name}"

    def rule(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
        bound = bind(title, "x axis dtype -out include_initial", args, kwargs)
        x = array(b, *needed(title, bound, "x"))
        if bound.get("axis") is None and num(x).rank > 1:
            raise ValueError("For arrays which have more than one dimension ``axis`` argument is required.")
        axis = bound.get("axis") if bound.get("axis") is not None else 0
        found = scanned(b, primitive, title, x, axis, bound.get("dtype"))
        if not static_bool(b, title, "include_initial", bound.get("include_initial", False)):
            return found
        at = _axis(b, title, found, axis)
        slot = b.emit("sum", found, axes=(at,), keepdims=True)
        first = constant(b, 0 if primitive == "cumsum" else 1, slot)
        return b.emit("concat", first, found, axis=at)

    return rule


def accumulation(name: str, ufunc: np.ufunc) -> Rule:
    """np.add.accumulate, np.maximum.accumulate, ..."""
    title = f"np.{ufunc.__name__}.accumulate"

    def rule(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
        bound = bind(title, "array axis dtype -out", args, kwargs)
        x = array(b, *needed(title, bound, "array"))
        axis = bound.get("axis", 0)
        if name in ("cumsum", "cumprod"):
            return scanned(b, name, title, x, axis, bound.get("dtype"))
        if bound.get("dtype") is not None or num(x).kind == "b":
            raise Refusal(f"{title} of bools, or to a dtype, is not supported")
        return b.emit(name, x, axis=_axis(b, title, x, axis))

    return rule


# ----------------------------------------------------------------------------------------------------- differences
def _diff(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("np.diff", "a n axis prepend append", args, kwargs)
    x = array(b, *needed("np.diff", bound, "a"))
    order = static_int(b, "np.diff", "the order", bound.get("n", 1))
    if order == 0:
        return x
    if order < 0:
        raise ValueError(f"order must be non-negative but got {order}")
    if not num(x).rank:
        raise ValueError("diff requires input that is at least one dimensional")
    axis = _axis(b, "np.diff", x, bound.get("axis", -1))
    before, after = (
        [] if bound.get(name) is None else [_beside(b, bound[name], x, axis)] for name in ("prepend", "append")
    )
    whole = [*before, x, *after]
    if len(whole) > 1:
        x = b.emit("concat", *alike(b, whole), axis=axis)
    for _ in range(order):
        x = _differences(b, x, axis)
    return x


def _beside(b: Builder, given: Any, x: Value, axis: int) -> Value:
    """What np.diff puts before or behind: a number stands for a row of it."""
    value = array(b, given)
    if num(value).rank:
        return value
    slot = b.emit("sum", cast(b, x, widened(num(x).dtype)), axes=(axis,), keepdims=True)
    return binary(b, "+", constant(b, 0, cast(b, slot, num(value).dtype)), value)


def _differences(b: Builder, x: Value, axis: int, bools: bool = True) -> Value:
    """Each element without the one before it; `bools`: of truth values, whether they differ."""
    size = num(x).shape[axis]
    if size is not None:
        ends = (min(1, size), size), (0, max(size - 1, 0))
        later, earlier = (cut(b, x, *pair, axis) for pair in ends)
    else:
        later = b.emit("dynslice", x, b.const(np.int64(1)), axis=axis, step=1, given=(True, False))
        earlier = b.emit("dynslice", x, b.const(np.int64(-1)), axis=axis, step=1, given=(False, True))
    if num(x).kind == "b" and bools:
        return b.emit("ne", later, earlier)
    return apply(b, "sub", np.subtract, later, earlier)


def _ediff1d(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("np.ediff1d", "ary -to_end -to_begin", args, kwargs)
    return _differences(b, flattened(b, array(b, *needed("np.ediff1d", bound, "ary"))), 0, False)


# ------------------------------------------------------------------------------------------- gradients and integrals
def _gradient(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Any:
    bound = bind("np.gradient", "axis edge_order", [], kwargs)
    x = array(b, args[0])
    if num(x).kind == "b":
        apply(b, "sub", np.subtract, x, x)  # raises as NumPy does
    if num(x).kind in "biu":
        x = cast(b, x, "float64")
    if static_int(b, "np.gradient", "edge_order", bound.get("edge_order", 1)) != 1:
        raise Refusal("np.gradient is supported for edge_order=1 alone")
    axis = bound.get("axis")
    items = list(range(num(x).rank)) if axis is None else list(axis) if isinstance(axis, (tuple, list)) else [axis]
    axes = [_axis(b, "np.gradient", x, k) for k in items]
    steps = list(args[1:]) or [1.0]
    if len(steps) == 1:
        steps *= len(axes)
    if len(steps) != len(axes):
        raise TypeError("invalid number of arguments")
    if any(isinstance(s, (tuple, list)) or isinstance(s, Value) and num(s).rank for s in steps):
        raise Refusal("np.gradient takes numbers as distances here")
    found = tuple(_slopes(b, x, k, step) for k, step in zip(axes, steps))
    return found[0] if len(found) == 1 else found


def _slopes(b: Builder, x: Value, axis: int, step: Any) -> Value:
    """Central differences inside, one-sided ones at the ends."""
    size = num(x).shape[axis]
    if size is None:
        raise Refusal("np.gradient needs a size that is known along its axis")
    if size < 2:
        raise ValueError("Shape of array too small to calculate a numerical gradient, at least (edge_order + 1) "
                         "elements are required.")
    ends = [binary(b, "-", cut(b, x, k + 1, k + 2, axis), cut(b, x, k, k + 1, axis)) for k in (0, size - 2)]
    first, last = (binary(b, "/", end, step) for end in ends)
    inner = binary(b, "-", cut(b, x, 2, size, axis), cut(b, x, 0, size - 2, axis))
    inner = binary(b, "/", inner, binary(b, "*", 2.0, step))
    return cast(b, b.emit("concat", *alike(b, [first, inner, last]), axis=axis), num(x).dtype)


def _trapezoid(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("np.trapezoid", "y x dx axis", args, kwargs)
    y = array(b, *needed("np.trapezoid", bound, "y"))
    axis = _axis(b, "np.trapezoid", y, bound.get("axis", -1))
    step: Any = bound.get("dx", 1.0)
    if bound.get("x") is not None:
        x = array(b, bound["x"])
        step = _differences(b, x, 0 if num(x).rank == 1 else axis)
        if num(x).rank == 1:
            step = with_axes(b, step, [k for k in range(num(y).rank) if k != axis])
    size = num(y).shape[axis]
    if size is not None:
        later, earlier = cut(b, y, min(1, size), size, axis), cut(b, y, 0, max(size - 1, 0), axis)
    else:
        later = b.emit("dynslice", y, b.const(np.int64(1)), axis=axis, step=1, given=(True, False))
        earlier = b.emit("dynslice", y, b.const(np.int64(-1)), axis=axis, step=1, given=(False, True))
    areas = binary(b, "/", binary(b, "*", step, binary(b, "+", later, earlier)), 2.0)
    return b.emit("sum", areas, axes=(axis,), keepdims=False)


def reduction_of(name: str, ufunc: np.ufunc) -> Rule:
    """np.add.reduce, np.maximum.reduce, ...: along the first axis unless another is named."""
    title = f"np.{ufunc.__name__}.reduce"

    def rule(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
        bound = bind(title, "array axis dtype -out keepdims -initial -where", args, kwargs)
        x = array(b, *needed(title, bound, "array"))
        if name in ("sum", "prod"):
            x = cast(b, x, dtype_of(bound.get("dtype"), widened(num(x).dtype)))
        elif bound.get("dtype") is not None:
            raise Refusal(f"the argument 'dtype' of {title} is not supported")
        if name in ("any", "all"):
            x = as_bool(b, x)
        axes = axes_of(b, title, bound.get("axis", 0), num(x).rank) if num(x).rank else ()
        if any(num(x).shape[k] == 0 for k in axes) and name in ("max", "min"):
            raise ValueError(f"zero-size array to reduction operation {ufunc.__name__} which has no identity")
        return b.emit(name, strengthen(b, x), axes=axes, keepdims=static_bool(
            b, title, "keepdims", bound.get("keepdims", False)))

    return rule


SCAN_CALLS: dict[Any, Rule] = {
    np.cumsum: scan("cumsum"),
    np.cumprod: scan("cumprod"),
    np.diff: _diff,
    np.ediff1d: _ediff1d,
    np.gradient: _gradient,
    **{
        ufunc.accumulate: accumulation(name, ufunc)
        for name, ufunc in (
            ("cumsum", np.add), ("cumprod", np.multiply), ("cummax", np.maximum), ("cummin", np.minimum)
        )
    },
    **{
        ufunc.reduce: reduction_of(name, ufunc)
        for name, ufunc in (
            ("sum", np.add), ("prod", np.multiply), ("max", np.maximum), ("min", np.minimum),
            ("any", np.logical_or), ("all", np.logical_and),
        )
    },
    **{
        getattr(np, name): rule
        for name, rule in (
            ("trapezoid", _trapezoid), ("cumulative_sum", cumulative("cumulative_sum", "cumsum")),
            ("cumulative_prod", cumulative("cumulative_prod", "cumprod")),
        )
        if hasattr(np, name)  # younger than NumPy 2.0
    },
}
