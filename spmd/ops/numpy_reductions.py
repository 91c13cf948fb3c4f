"""NumPy's reductions, as primitives.

The invariant: dtypes are NumPy's (sums and products of bools and small integers widen to 64 bits, means of integers
are float64); axes and keepdims are constants.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spmd.ir.build import Builder
from spmd.ir.core import Value
from spmd.ops.arguments import (
    array,
    axes_of,
    bind,
    dtype_of,
    needed,
    product,
    size_value,
    sizes_of_value,
    static_bool,
    static_int,
)
from spmd.ops.calculus import constant, num
from spmd.ops.numpy_elementwise import Rule, as_bool
from spmd.ops.operators import binary
from spmd.ops.primitive import Refusal
from spmd.ops.promotion import broadcast_together, cast


def _axes(b: Builder, title: str, bound: dict[str, Any], x: Value) -> dict[str, Any]:
    """The attributes of a reduction."""
    keepdims = static_bool(b, title, "keepdims", bound.get("keepdims", False))
    return {"axes": axes_of(b, title, bound.get("axis"), num(x).rank), "keepdims": keepdims}


def widened(dtype: str) -> str:
    """The dtype that NumPy sums in."""
    kind, size = np.dtype(dtype).kind, np.dtype(dtype).itemsize
    if kind in "bi" and size < 8:
        return "int64"
    return "uint64" if kind == "u" and size < 8 else dtype


def reduction(name: str) -> Rule:
    """np.sum, np.prod"""
    title = f"np.{name}"

    def rule(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
        bound = bind(title, "a axis dtype -out keepdims initial where", args, kwargs)
        x = array(b, *needed(title, bound, "a"))
        x = cast(b, x, dtype_of(bound.get("dtype"), widened(num(x).dtype)))
        x = chosen(b, title, x, bound, int(name == "prod"))
        found = b.emit(name, x, **_axes(b, title, bound, x))
        if bound.get("initial") is None:
            return found
        return binary(b, "+" if name == "sum" else "*", found, start(b, title, bound, x))

    return rule


def chosen(b: Builder, title: str, x: Value, bound: dict[str, Any], neutral: Any) -> Value:
    """The array with what `where` leaves out replaced by what changes nothing."""
    if bound.get("where") is None:
        return x
    mask = array(b, bound["where"])
    if num(mask).kind != "b":
        raise TypeError(f"Cannot cast array data from dtype('{num(mask).dtype}') to dtype('bool') according to the "
                        "rule 'safe'")
    mask, wide = broadcast_together(b, [mask, x])
    if num(wide).shape != num(x).shape:
        raise Refusal(f"'where' of {title} must have the array's shape, or one that is spread over it")
    return b.emit("where", mask, wide, constant(b, neutral, wide))


def start(b: Builder, title: str, bound: dict[str, Any], x: Value) -> Value:
    """The number that a reduction starts from, in the array's dtype."""
    value = array(b, bound["initial"])
    if num(value).rank:
        raise Refusal(f"'initial' of {title} must be a number")
    if num(value).kind == "f" and num(x).kind != "f":
        raise Refusal(f"'initial' of {title} must not be a float where the array is of integers")
    return cast(b, value, num(x).dtype)


def extremum(name: str) -> Rule:
    """np.max, np.min"""
    title = f"np.{name}"

    def rule(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
        bound = bind(title, "a axis -out keepdims initial where", args, kwargs)
        x = array(b, *needed(title, bound, "a"))
        attrs = _axes(b, title, bound, x)
        if bound.get("initial") is not None:
            return _extremum_from(b, name, chosen_beside(b, title, x, bound), start(b, title, bound, x), attrs)
        if bound.get("where") is not None:
            raise ValueError(f"reduction operation '{name}imum' does not have an identity, so to use a where mask one "
                             "has to specify 'initial'")
        if any(num(x).shape[k] == 0 for k in attrs["axes"]):
            which = "maximum" if name == "max" else "minimum"
            raise ValueError(f"zero-size array to reduction operation {which} which has no identity")
        return b.emit(name, x, **attrs)

    return rule


def chosen_beside(b: Builder, title: str, x: Value, bound: dict[str, Any]) -> Value:
    """The array with what `where` leaves out replaced by `initial`."""
    if bound.get("where") is None:
        return x
    first = start(b, title, bound, x)
    mask, wide = broadcast_together(b, [array(b, bound["where"]), x])
    if num(wide).shape != num(x).shape or num(mask).kind != "b":
        raise Refusal(f"'where' of {title} must be bools of the array's shape, or of one that is spread over it")
    return b.emit("where", *broadcast_together(b, [mask, wide, first]))


def _extremum_from(b: Builder, name: str, x: Value, first: Value, attrs: dict[str, Any]) -> Value:
    """An extremum that starts from a number: one more element along the first axis, so that none may be empty."""
    if not attrs["axes"]:
        return b.emit(f"{name}imum", *broadcast_together(b, [x, first]))
    if num(x).kind == "b":
        raise Refusal(f"'initial' of np.{name} of bools is not supported")
    axis = attrs["axes"][0]
    slot = b.emit("sum", x, axes=(axis,), keepdims=True)
    spread = broadcast_together(b, [first, slot])[0]
    return b.emit(name, b.emit("concat", x, spread, axis=axis), **attrs)


def position(name: str) -> Rule:
    """np.argmax, np.argmin"""
    title = f"np.{name}"

    def rule(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
        bound = bind(title, "a axis -out keepdims", args, kwargs)
        x = array(b, *needed(title, bound, "a"))
        if not num(x).rank:
            return b.const(np.int64(0))
        return b.emit(name, x, **_axes(b, title, bound, x))

    return rule


def test(name: str) -> Rule:
    """np.any, np.all"""
    title = f"np.{name}"

    def rule(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
        bound = bind(title, "a axis -out keepdims where", args, kwargs)
        x = as_bool(b, array(b, *needed(title, bound, "a")))
        x = chosen(b, title, x, bound, name == "all")
        return b.emit(name, x, **_axes(b, title, bound, x))

    return rule


# ---------------------------------------------------------------------------------------------------- averages
def divided(b: Builder, total: Value, count: Any) -> Value:
    """A sum divided by a number of elements (a Python int, or a value)."""
    if isinstance(count, int):
        return b.emit("div", total, constant(b, count, total))
    return binary(b, "/", total, cast(b, size_value(b, count), num(total).dtype))


def average(b: Builder, x: Value, axes: tuple[int, ...], keepdims: bool, dtype: Any = None, ddof: int = 0) -> Value:
    """The mean: of float16 computed in float32, of integers in float64, as NumPy does."""
    own = num(x).dtype
    result = dtype_of(dtype, "float64" if np.dtype(own).kind in "biu" else own)
    x = cast(b, x, "float32" if result == "float16" else result)
    count = product(b, [n for k, n in enumerate(sizes_of_value(b, x)) if k in axes])
    if ddof:
        count = count - ddof if isinstance(count, int) else b.emit("sub", count, b.const(np.int64(ddof)))
        count = max(count, 0) if isinstance(count, int) else b.emit("maximum", count, b.const(np.int64(0)))
    return cast(b, divided(b, b.emit("sum", x, axes=axes, keepdims=keepdims), count), result)


def _mean(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("np.mean", "a axis dtype -out keepdims where", args, kwargs)
    x = array(b, *needed("np.mean", bound, "a"))
    attrs = _axes(b, "np.mean", bound, x)
    if bound.get("where") is not None:
        return _mean_where(b, x, bound, attrs)
    return average(b, x, attrs["axes"], attrs["keepdims"], bound.get("dtype"))


def _mean_where(b: Builder, x: Value, bound: dict[str, Any], attrs: dict[str, Any]) -> Value:
    """The mean of the elements that `where` leaves."""
    own = num(x).dtype
    result = dtype_of(bound.get("dtype"), "float64" if num(x).kind in "biu" else own)
    x = cast(b, x, "float32" if result == "float16" else result)
    total = b.emit("sum", chosen(b, "np.mean", x, bound, 0), **attrs)
    counted = chosen(b, "np.mean", constant(b, 1, x), bound, 0)
    return cast(b, b.emit("div", total, b.emit("sum", counted, **attrs)), result)


def _variance(b: Builder, title: str, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind(title, "a axis -dtype -out ddof keepdims -where -mean -correction", args, kwargs)
    x = array(b, *needed(title, bound, "a"))
    attrs = _axes(b, title, bound, x)
    ddof = static_int(b, title, "ddof", bound.get("ddof", 0))
    if num(x).kind in "biu":
        x = cast(b, x, "float64")
    if num(x).dtype == "float16":
        raise Refusal(f"{title} of float16 values is not supported", "convert them to float32.")
    centre = average(b, x, attrs["axes"], True)
    return average(b, b.emit("square", binary(b, "-", x, centre)), attrs["axes"], attrs["keepdims"], ddof=ddof)


def _var(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    return _variance(b, "np.var", args, kwargs)


def root(b: Builder, x: Value) -> Value:
    """A square root whose derivative at 0 is 0: that of a norm (DESIGN 8)."""
    empty = b.emit("eq", x, constant(b, 0, x))
    safe = b.emit("where", empty, constant(b, 1, x), x)
    return b.emit("where", empty, constant(b, 0, x), b.emit("sqrt", safe))


def _std(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    return root(b, _variance(b, "np.std", args, kwargs))


REDUCTION_CALLS: dict[Any, Rule] = {
    np.sum: reduction("sum"),
    np.prod: reduction("prod"),
    np.max: extremum("max"),
    np.amax: extremum("max"),
    np.min: extremum("min"),
    np.amin: extremum("min"),
    np.argmax: position("argmax"),
    np.argmin: position("argmin"),
    np.any: test("any"),
    np.all: test("all"),
    np.mean: _mean,
    np.var: _var,
    np.std: _std,
}
