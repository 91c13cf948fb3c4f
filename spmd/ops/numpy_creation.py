"""NumPy's functions that make arrays, as primitives.

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
    array,
    bind,
    dims_value,
    dtype_of,
    needed,
    operand,
    sizes_of_shape,
    static_bool,
    static_int,
    static_shape,
)
from spmd.ops.calculus import dims_of, num
from spmd.ops.numpy_elementwise import Rule, converted, rounding
from spmd.ops.primitive import Refusal
from spmd.ops.promotion import as_value, cast, constant_of, strengthen


def filled(b: Builder, value: Value, sizes: Sequence[Size]) -> Value:
    """An array of one value (a NumPy scalar)."""
    shape = static_shape(sizes)
    if not shape:
        return value
    if None not in shape:
        return b.emit("broadcast", value, shape=shape)
    return b.emit("fill_to", value, dims_value(b, sizes), shape=shape)


def constant_array(number: int) -> Rule:
    """np.zeros, np.ones"""
    title = "np.ones" if number else "np.zeros"

    def rule(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
        bound = bind(title, "shape dtype -order", args, kwargs)
        (shape,) = needed(title, bound, "shape")
        dtype = np.dtype(dtype_of(bound.get("dtype")))
        return filled(b, b.const(dtype.type(number)), sizes_of_shape(b, title, shape))

    return rule


def _full(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("np.full", "shape fill_value dtype -order", args, kwargs)
    shape, value = needed("np.full", bound, "shape", "fill_value")
    number = operand(b, value)
    if num(number).shape:
        raise Refusal("np.full takes a scalar value here")
    number = _filling(b, number, dtype_of(bound.get("dtype"), num(number).dtype))
    return filled(b, number, sizes_of_shape(b, "np.full", shape))


def _filling(b: Builder, value: Value, dtype: str) -> Value:
    """What np.full writes: a Python int must fit, any other number is cast."""
    weak = num(value).python and num(value).kind == "i"
    return converted(b, value if weak else strengthen(b, value), dtype)


def like(number: int | None) -> Rule:
    """np.zeros_like, np.ones_like, np.full_like"""
    title = "np.full_like" if number is None else "np.ones_like" if number else "np.zeros_like"

    def rule(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
        names = "a fill_value dtype" if number is None else "a dtype"
        bound = bind(title, names + " -order -subok -shape", args, kwargs)
        x = array(b, *needed(title, bound, "a"))
        dtype = dtype_of(bound.get("dtype"), num(x).dtype)
        if number is not None:
            return _as_large(b, b.const(np.dtype(dtype).type(number)), x)
        (value,) = needed(title, bound, "fill_value")
        return _as_large(b, _filling(b, operand(b, value), dtype), x)

    return rule


def _as_large(b: Builder, value: Value, x: Value) -> Value:
    shape = num(x).shape
    if num(value).shape:
        raise Refusal("np.full_like takes a scalar value here")
    if not shape:
        return value
    if num(x).static:
        return b.emit("broadcast", value, shape=shape)
    return b.emit("broadcast_to", value, dims_of(b, x), shape=shape)


def _arange(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("np.arange", "start stop step dtype", args, kwargs)
    bounds = [bound.get("start", 0), bound.get("stop"), bound.get("step", 1)]
    if bounds[1] is None:
        bounds[:2] = [0, bounds[0]]
    step = constant_of(b, bounds[2])
    values = [strengthen(b, operand(b, x)) for x in bounds]
    kinds = [np.dtype(num(v).dtype) for v in values]
    if any(k.kind not in "iuf" for k in kinds):
        raise TypeError("np.arange takes integers and floats here")
    dtype = dtype_of(bound.get("dtype"), str(np.result_type(*kinds)))
    common = "float64" if any(k.kind == "f" for k in kinds) else "int64"
    values = [cast(b, v, common) for v in values]
    exact = {} if step is None or step == 0 else {"exact": True}
    return b.emit("arange", *values, dtype=dtype, **exact)


def _array(title: str) -> Rule:
    """np.array, np.asarray, np.copy"""

    def rule(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
        names = {"np.array": "object dtype copy -order", "np.asarray": "a dtype copy -order"}
        bound = bind(title, names.get(title, "a -order"), args, kwargs)
        (x,) = needed(title, bound, "object" if title == "np.array" else "a")
        if bound.get("dtype") is None:
            return array(b, x)
        return _in_dtype(b, x, dtype_of(bound["dtype"]))

    return rule


def _in_dtype(b: Builder, x: Any, dtype: str) -> Value:
    """An array of a stated dtype: each number is converted by itself, so that a Python int must fit."""
    if not isinstance(x, (tuple, list)):
        return converted(b, as_value(b, x), dtype)
    if not x:
        return b.const(np.zeros(0, dtype))
    return b.emit("stack", *[_item_in_dtype(b, item, dtype) for item in x], axis=0)


def assigned(b: Builder, value: Value, dtype: str) -> Value:
    """What is written into an array of a dtype: a number is converted by itself, an array is cast."""
    if num(value).rank:
        return converted(b, value, dtype)
    return _item_in_dtype(b, value, dtype)


def _item_in_dtype(b: Builder, item: Any, dtype: str) -> Value:
    """An item of a list. For a signed integer dtype NumPy takes int() of its float scalars too."""
    if isinstance(item, (tuple, list)):
        return _in_dtype(b, item, dtype)
    value = as_value(b, item)
    kind, op = np.dtype(dtype).kind, b.definition(value)
    if kind in "iu" and op is not None and op.name in ("column", "fill_to") and num(value).dtype != dtype:
        raise Refusal("a list of lists of varying length cannot become an array of another integer type",
                      "convert it afterwards, with astype.")
    if kind == "i" and num(value).kind in "fiu" and not num(value).shape and num(value).dtype != "uint64":
        value = cast(b, value, "float64" if num(value).kind == "f" else "int64", True)
    return converted(b, value, dtype)


def _empty(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    raise Refusal("np.empty has no defined values", "use np.zeros.")


def _linspace(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("np.linspace", "start stop num endpoint -retstep dtype -axis", args, kwargs)
    ends = [array(b, x) for x in needed("np.linspace", bound, "start", "stop")]
    own = str(np.result_type(*[num(v).dtype if num(v).kind == "f" else "float64" for v in ends]))
    start, stop = (cast(b, v, own) for v in ends)
    count = static_int(b, "np.linspace", "the number of points", bound.get("num", 50))
    endpoint = static_bool(b, "np.linspace", "the endpoint", bound.get("endpoint", True))
    gaps = count - 1 if endpoint else count
    if num(start).shape or num(stop).shape or gaps < 1:
        raise Refusal("np.linspace takes two numbers and more than one point here")
    steps = b.const(np.arange(count, dtype=own))
    step = b.emit("div", b.emit("sub", stop, start), b.const(np.dtype(own).type(gaps)))
    spread = [b.emit("broadcast", v, shape=(count,)) for v in (start, step, stop)]
    points = b.emit("add", spread[0], b.emit("mul", steps, spread[1]))
    if gaps < count:
        last = b.const(np.arange(count) == count - 1)
        points = b.emit("where", last, spread[2], points)
    dtype = dtype_of(bound.get("dtype"), own)
    if np.dtype(dtype).kind in "iu":
        points = rounding("floor", np.floor)(b, [points], {})
    return converted(b, points, dtype)


def constant_only(function: Any) -> Rule:
    """A function that makes an array of constants alone: it is called now."""
    title = f"np.{function.__name__}"

    def rule(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
        known = [constant_of(b, x) for x in (*args, *kwargs.values())]
        if any(isinstance(x, Value) and found is None for x, found in zip((*args, *kwargs.values()), known)):
            raise Refusal(f"the arguments of {title} must be constants")
        return b.const(function(*known[: len(args)], **dict(zip(kwargs, known[len(args) :]))))

    return rule


CREATION_CALLS: dict[Any, Rule] = {
    np.zeros: constant_array(0),
    np.ones: constant_array(1),
    np.full: _full,
    np.zeros_like: like(0),
    np.ones_like: like(1),
    np.full_like: like(None),
    np.arange: _arange,
    np.linspace: _linspace,
    np.array: _array("np.array"),
    np.asarray: _array("np.asarray"),
    np.copy: _array("np.copy"),
    np.eye: constant_only(np.eye),
    np.identity: constant_only(np.identity),
    np.tri: constant_only(np.tri),
    np.empty: _empty,
    np.empty_like: _empty,
}
