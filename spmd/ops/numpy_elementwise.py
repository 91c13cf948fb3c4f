"""NumPy's elementwise functions, and its scalar types as conversions, as primitives.

The invariant: a rule takes (builder, arguments, keywords) and gives a value of the dtype and kind that NumPy gives:
results are NumPy scalars or arrays, also for Python numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from spmd.ir.build import Builder
from spmd.ir.core import Value
from spmd.ops.arguments import array, bind, dtype_of, needed, operand, static_int
from spmd.ops.calculus import constant, num
from spmd.ops.operators import COMPARISONS, apply, compare, power
from spmd.ops.primitive import Refusal
from spmd.ops.promotion import broadcast_together, cast, constant_of, loop, strengthen

Rule = Callable[[Builder, list[Any], dict[str, Any]], Any]
UNSUPPORTED = " -out -where -dtype -casting -order -subok"


def _operands(b: Builder, title: str, count: int, args: list[Any], kwargs: dict[str, Any]) -> list[Value]:
    names = ["x"] if count == 1 else [f"x{k + 1}" for k in range(count)]
    bound = bind(title, " ".join(names) + UNSUPPORTED, args, kwargs)
    return [operand(b, x) for x in needed(title, bound, *names)]


def ufunc(name: str, function: np.ufunc) -> Rule:
    """A ufunc that is one primitive."""
    title, count = f"np.{function.__name__}", function.nin

    def rule(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
        return apply(b, name, function, *_operands(b, title, count, args, kwargs))

    return rule


def relation(symbol: str) -> Rule:
    """A comparison: of NumPy scalars, so that the result is NumPy's bool."""
    title = f"np.{COMPARISONS[symbol][1].__name__}"

    def rule(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
        x, y = _operands(b, title, 2, args, kwargs)
        if num(x).python and num(y).python and not (num(x).text or num(y).text):
            x, y = strengthen(b, x), strengthen(b, y)
        return strengthen(b, compare(b, symbol, x, y))

    return rule


def as_bool(b: Builder, x: Value) -> Value:
    """The truth of each element."""
    x = strengthen(b, x)
    return x if num(x).dtype == "bool" else b.emit("ne", x, constant(b, 0, x))


def logical(name: str, count: int) -> Rule:
    def rule(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
        operands = [as_bool(b, x) for x in _operands(b, f"np.{name}", count, args, kwargs)]
        return b.emit(name, *(broadcast_together(b, operands) if count > 1 else operands))

    return rule


def predicate(name: str, other: bool) -> Rule:
    """isnan, isinf, isfinite; `other` is the answer for integers."""

    def rule(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
        (x,) = _operands(b, f"np.{name}", 1, args, kwargs)
        x = strengthen(b, x)
        if num(x).kind == "f":
            return b.emit(name, x)
        return constant(b, other, as_bool(b, x))

    return rule


def rounding(name: str, function: np.ufunc) -> Rule:
    """floor, ceil, trunc, rint: integers stay as they are."""

    def rule(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
        (x,) = _operands(b, f"np.{function.__name__}", 1, args, kwargs)
        (dtype,), _ = loop(function, [num(x)])
        x = cast(b, x, dtype)
        return b.emit(name, x) if num(x).kind == "f" else x

    return rule


def rounded(b: Builder, x: Value, decimals: int) -> Value:
    """np.round"""
    if num(x).kind != "f":
        if decimals and num(x).kind == "b":
            raise TypeError("ufunc 'multiply' output cannot be cast to bool with casting rule 'same_kind'")
        if decimals < 0:
            raise Refusal("rounding integers to tens is not supported")
        return cast(b, x, "float16") if num(x).kind == "b" else x
    if not decimals:
        return b.emit("rint", x)
    scale = constant(b, 10.0 ** abs(decimals), x)
    there, back = ("mul", "div") if decimals > 0 else ("div", "mul")
    return b.emit(back, b.emit("rint", b.emit(there, x, scale)), scale)


def _round(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("np.round", "a decimals -out", args, kwargs)
    (x,) = needed("np.round", bound, "a")
    return rounded(b, array(b, x), static_int(b, "np.round", "the number of decimals", bound.get("decimals", 0)))


def _absolute(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    (x,) = _operands(b, "np.abs", 1, args, kwargs)
    return absolute(b, strengthen(b, x))


def absolute(b: Builder, x: Value) -> Value:
    """np.abs of a NumPy kind."""
    return x if num(x).dtype == "bool" else b.emit("abs", x)


def _fabs(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    return apply(b, "abs", np.fabs, *_operands(b, "np.fabs", 1, args, kwargs))


def _positive(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    (x,) = _operands(b, "np.positive", 1, args, kwargs)
    loop(np.positive, [num(x)])
    return strengthen(b, x)


def _power(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("np.power", "x1 x2" + UNSUPPORTED, args, kwargs)
    x, y = needed("np.power", bound, "x1", "x2")
    exponent = None if isinstance(y, (tuple, list)) else constant_of(b, y)
    return power(b, operand(b, x), operand(b, y), exponent)


def _where(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("np.where", "condition x y", args, kwargs)
    if "x" not in bound or "y" not in bound:
        raise Refusal("np.where takes a condition alone, or with two values")
    condition, x, y = needed("np.where", bound, "condition", "x", "y")
    return select(b, array(b, condition), operand(b, x), operand(b, y))


def select(b: Builder, condition: Value, x: Value, y: Value) -> Value:
    """np.where: Python numbers are weak, as in a ufunc."""
    dtypes, _ = loop(np.maximum, [num(x), num(y)])
    arms = [cast(b, v, dtypes[0]) for v in (x, y)]
    return b.emit("where", *broadcast_together(b, [as_bool(b, condition), *arms]))


def _clip(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("np.clip", "a a_min a_max -out min max", args, kwargs)
    (a,) = needed("np.clip", bound, "a")
    return clipped(b, operand(b, a), bound.get("a_min", bound.get("min")), bound.get("a_max", bound.get("max")))


def clipped(b: Builder, x: Value, low: Any, high: Any) -> Value:
    """np.clip; a bound that is None is none."""
    if low is not None:
        x = apply(b, "maximum", np.maximum, x, operand(b, low))
    if high is not None:
        x = apply(b, "minimum", np.minimum, x, operand(b, high))
    return strengthen(b, x)


def _logaddexp(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    """log(exp(x) + exp(y)), without overflow; at a tie each operand has half of the derivative."""
    x, y = _operands(b, "np.logaddexp", 2, args, kwargs)
    (dtype, _), _ = loop(np.logaddexp, [num(x), num(y)])
    x, y = broadcast_together(b, [cast(b, x, dtype), cast(b, y, dtype)])
    tie, zero = b.emit("eq", x, y), constant(b, 0, x)
    distance = b.emit("where", tie, zero, b.emit("abs", b.emit("sub", x, y)))
    rest = b.emit("log1p", b.emit("exp", b.emit("neg", distance)))
    return b.emit("add", b.emit("maximum", x, y), rest)


def conversion(kind: type[np.generic]) -> Rule:
    """np.float32(x), np.int64(x), np.bool_(x), ..."""
    name = str(np.dtype(kind))

    def rule(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
        if kwargs or len(args) > 1:
            raise Refusal(f"np.{name} takes one value here")
        if not args:
            return b.const(kind())
        if isinstance(args[0], str):
            raise Refusal("a string cannot be converted to a number")
        return converted(b, operand(b, args[0]), name)

    return rule


def converted(b: Builder, x: Value, dtype: str) -> Value:
    """The value in another dtype, as a NumPy kind."""
    if dtype == "bool":
        return as_bool(b, x)
    if num(x).python and num(x).kind == "i" and np.dtype(dtype).kind == "f":
        x = cast(b, x, "float64")  # NumPy reads a Python int as a double first
    return cast(b, x, dtype_of(dtype))


BINARY: dict[str, np.ufunc] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
    "floordiv": np.floor_divide, "mod": np.mod, "maximum": np.maximum, "minimum": np.minimum,
    "arctan2": np.arctan2, "hypot": np.hypot, "bitand": np.bitwise_and, "bitor": np.bitwise_or,
    "bitxor": np.bitwise_xor, "lshift": np.left_shift, "rshift": np.right_shift,
}
UNARY: dict[str, np.ufunc] = {
    "neg": np.negative, "sign": np.sign, "square": np.square, "reciprocal": np.reciprocal,
    "invert": np.invert,
    **{
        name: getattr(np, name)
        for name in (
            "sqrt", "exp", "expm1", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "sinh", "cosh", "tanh",
            "arcsin", "arccos", "arctan",
        )
    },
}
SCALAR_TYPES = (
    np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.float16,
    np.float32, np.float64, np.intc, np.longlong, np.ulonglong,
)

ELEMENTWISE_CALLS: dict[Any, Rule] = {
    **{f: ufunc(name, f) for name, f in (*BINARY.items(), *UNARY.items())},
    **{COMPARISONS[symbol][1]: relation(symbol) for symbol in COMPARISONS},
    np.logical_and: logical("logical_and", 2),
    np.logical_or: logical("logical_or", 2),
    np.logical_xor: logical("logical_xor", 2),
    np.logical_not: logical("logical_not", 1),
    np.isnan: predicate("isnan", False),
    np.isinf: predicate("isinf", False),
    np.isfinite: predicate("isfinite", True),
    np.floor: rounding("floor", np.floor),
    np.ceil: rounding("ceil", np.ceil),
    np.trunc: rounding("trunc", np.trunc),
    np.rint: rounding("rint", np.rint),
    np.round: _round,
    np.around: _round,
    np.absolute: _absolute,
    np.fabs: _fabs,
    np.positive: _positive,
    np.power: _power,
    np.where: _where,
    np.clip: _clip,
    np.logaddexp: _logaddexp,
    **{kind: conversion(kind) for kind in SCALAR_TYPES},
}
