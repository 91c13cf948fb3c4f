"""The functions of Python's math module, as primitives.

The invariant: they take and give Python numbers, whatever number comes in, and raise as CPython's do; integers are
exact in 64 bits or raise OverflowError.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from spmd.ir.build import Builder
from spmd.ir.core import Value
from spmd.ops.arguments import array, bind, needed, scalar_only
from spmd.ops.calculus import num
from spmd.ops.numpy_elementwise import Rule
from spmd.ops.operators import binary, compare
from spmd.ops.primitive import Refusal
from spmd.ops.promotion import as_value, cast, constant_of, type_name


def positional(title: str, args: list[Any], kwargs: dict[str, Any], low: int, high: int) -> list[Any]:
    """Arguments that have no names. Raises TypeError where there are too few or too many."""
    if kwargs:
        raise Refusal(f"{title}() takes no keywords here")
    if not low <= len(args) <= high:
        raise TypeError(f"{title}() takes {low} to {high} arguments, {len(args)} were given")
    return args


def python_float(b: Builder, x: Any) -> Value:
    """float(x) of a number."""
    value = as_value(b, x)
    if scalar_only(value).text:
        raise Refusal("a string cannot be converted to a number")
    return cast(b, value, "float64", True)


def python_int(b: Builder, x: Any) -> Value:
    """int(x) of a number."""
    value = as_value(b, x)
    if scalar_only(value).text:
        raise Refusal("a string cannot be converted to a number")
    return cast(b, value, "int64", True)


def index(b: Builder, x: Any) -> Value:
    """An argument that must be an integer, as a Python int."""
    value = as_value(b, x)
    type_ = scalar_only(value)
    if type_.text or type_.kind not in "iu" and not (type_.python and type_.kind == "b"):
        raise TypeError(f"'{type_name(type_)}' object cannot be interpreted as an integer")
    return cast(b, value, "int64", True)


# -------------------------------------------------------------------------------------------------- floats to floats
def function(name: str, title: str, count: int = 1) -> Rule:
    """A function of floats that is one primitive."""

    def rule(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
        given = positional(f"math.{title}", args, kwargs, count, count)
        return b.emit(name, *[python_float(b, x) for x in given])

    return rule


def _to_integer(name: str) -> Rule:
    """math.floor, ceil, trunc: a Python int."""

    def rule(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
        (x,) = positional(f"math.{name}", args, kwargs, 1, 1)
        value = as_value(b, x)
        type_ = scalar_only(value)
        if name == "trunc" and not type_.python and type_.dtype != "float64":
            raise TypeError(f"type {type_name(type_)} doesn't define __trunc__ method")
        if type_.kind in "biu":
            return python_int(b, value)
        return b.emit("toint", b.emit(name, python_float(b, value)))

    return rule


def _log(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    x, *base = positional("math.log", args, kwargs, 1, 2)
    logs = [b.emit("log", python_float(b, v)) for v in (x, *base)]
    return b.emit("div", *logs) if base else logs[0]


def _power(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    x, y = (python_float(b, v) for v in positional("math.pow", args, kwargs, 2, 2))
    return b.emit("pow", x, y, domain=True)


def _times(title: str, factor: float) -> Rule:
    def rule(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
        (x,) = positional(title, args, kwargs, 1, 1)
        return b.emit("mul", python_float(b, x), b.const(factor))

    return rule


def _distance(b: Builder, parts: Sequence[Value]) -> Value:
    """The length of a vector of floats."""
    if not parts:
        return b.const(0.0)
    total = b.emit("abs", parts[0])
    for x in parts[1:]:
        total = b.emit("hypot", total, x)
    return total


def _hypot(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    return _distance(b, [python_float(b, x) for x in positional("math.hypot", args, kwargs, 0, len(args))])


def _dist(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    p, q = positional("math.dist", args, kwargs, 2, 2)
    if isinstance(p, Value) or isinstance(q, Value):
        return _dist_of_arrays(b, p, q)
    if len(p) != len(q):
        raise ValueError("both points must have the same number of dimensions")
    return _distance(b, [b.emit("sub", python_float(b, x), python_float(b, y)) for x, y in zip(p, q)])


def _dist_of_arrays(b: Builder, p: Any, q: Any) -> Value:
    points = [cast(b, array(b, v), "float64") for v in (p, q)]
    if any(num(v).rank != 1 for v in points):
        raise TypeError("only 0-dimensional arrays can be converted to Python scalars")
    sizes = [num(v).shape[0] for v in points]
    if None in sizes:
        raise Refusal("math.dist needs points whose number of coordinates is known", "use np.linalg.norm(p - q).")
    if sizes[0] != sizes[1]:
        raise ValueError("both points must have the same number of dimensions")
    between = b.emit("sub", *points)
    return _distance(b, [cast(b, b.emit("index", between, b.const(k)), "float64", True) for k in range(sizes[0] or 0)])


def _ldexp(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    x, n = positional("math.ldexp", args, kwargs, 2, 2)
    value = as_value(b, n)
    if num(value).kind not in "iub":
        raise TypeError("Expected an int as second argument to ldexp.")
    return b.emit("ldexp", python_float(b, x), index(b, value))


def _parts(title: str, first: str, second: str) -> Rule:
    """math.modf, math.frexp"""

    def rule(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> tuple[Value, Value]:
        (x,) = positional(title, args, kwargs, 1, 1)
        value = python_float(b, x)
        return b.emit(first, value), b.emit(second, value)

    return rule


def _nextafter(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    x, y = positional("math.nextafter", args, kwargs, 2, 2)
    return b.emit("nextafter", python_float(b, x), python_float(b, y))


def _isclose(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("math.isclose", "a b rel_tol abs_tol", positional("math.isclose", args, {}, 2, 2), kwargs)
    x, y = (python_float(b, v) for v in needed("math.isclose", bound, "a", "b"))
    limits = [python_float(b, bound.get(name, default)) for name, default in (("rel_tol", 1e-9), ("abs_tol", 0.0))]
    for k, limit in enumerate(limits):
        known = constant_of(b, limit)
        if known is None:
            limits[k] = b.emit("demand", limit, what="tolerances")
        elif known < 0:
            raise ValueError("tolerances must be non-negative")
    relative, absolute = limits
    distance = b.emit("abs", b.emit("sub", x, y))
    near = compare(b, "<=", distance, absolute)
    for side in (x, y):
        limit = b.emit("abs", b.emit("mul", relative, side))
        near = b.emit("logical_or", near, compare(b, "<=", distance, limit))
    finite = b.emit("logical_not", b.emit("logical_or", b.emit("isinf", x), b.emit("isinf", y)))
    return b.emit("logical_or", compare(b, "==", x, y), b.emit("logical_and", finite, near))


# -------------------------------------------------------------------------------------------------------- integers
def _folded(name: str, empty: int) -> Rule:
    """math.gcd, math.lcm: of any number of integers."""

    def rule(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
        values = [index(b, x) for x in positional(f"math.{name}", args, kwargs, 0, len(args))]
        if len(values) == 1:
            return b.emit("abs", values[0])
        total = values[0] if values else b.const(empty)
        for x in values[1:]:
            total = b.emit(name, total, x)
        return total

    return rule


def _counted(name: str, low: int, high: int) -> Rule:
    """math.isqrt, factorial, comb, perm"""

    def rule(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
        given = positional(f"math.{name}", args, kwargs, low, high)
        values = [index(b, x) for x in given if x is not None]
        if name == "perm" and len(values) == 1:
            return b.emit("factorial", values[0])
        return b.emit(name, *values)

    return rule


# ---------------------------------------------------------------------------------------------- sums and products
def _column(b: Builder, title: str, x: Any) -> Value:
    """An iterable of numbers as a vector."""
    value = array(b, x)
    if num(value).rank == 0:
        raise TypeError(f"'{type_name(num(value))}' object is not iterable")
    if num(value).rank > 1:
        raise Refusal(f"{title} of an array of more than one axis is not supported")
    return value


def _fsum(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    (x,) = positional("math.fsum", args, kwargs, 1, 1)
    return b.emit("fsum", cast(b, _column(b, "math.fsum", x), "float64"))


def _prod(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("math.prod", "iterable start", positional("math.prod", args, {}, 1, 1), kwargs)
    (x,) = needed("math.prod", bound, "iterable")
    total: Any = bound.get("start", 1)
    if not isinstance(x, Value):
        for item in x:
            total = binary(b, "*", total, item)
        return as_value(b, total)
    value = _column(b, "math.prod", x)
    if num(value).kind == "b":
        raise Refusal("math.prod of an array of bools is not supported", "use np.prod.")
    return binary(b, "*", total, b.emit("prod", value, axes=(0,), keepdims=False))


FUNCTIONS: dict[str, str] = {
    **{name: name for name in (
        "exp", "expm1", "log1p", "log2", "log10", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh",
        "isnan", "isinf", "isfinite", "erf", "erfc", "gamma", "lgamma", "ulp", "cbrt", "exp2",
    )},
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "fabs": "abs",
    "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
}
PAIRS: dict[str, str] = {"atan2": "arctan2", "fmod": "fmod", "remainder": "remainder", "copysign": "copysign"}

MATH_CALLS: dict[Any, Rule] = {
    **{
        getattr(math, name): function(primitive, name, count)
        for table, count in ((FUNCTIONS, 1), (PAIRS, 2))
        for name, primitive in table.items()
        if hasattr(math, name)  # cbrt and exp2 are younger than Python 3.10
    },
    math.hypot: _hypot,
    math.dist: _dist,
    math.log: _log,
    math.pow: _power,
    math.floor: _to_integer("floor"),
    math.ceil: _to_integer("ceil"),
    math.trunc: _to_integer("trunc"),
    math.radians: _times("math.radians", math.pi / 180),
    math.degrees: _times("math.degrees", 180 / math.pi),
    math.ldexp: _ldexp,
    math.modf: _parts("math.modf", "fraction", "trunc"),
    math.frexp: _parts("math.frexp", "mantissa", "exponent"),
    math.nextafter: _nextafter,
    math.isclose: _isclose,
    math.gcd: _folded("gcd", 0),
    math.lcm: _folded("lcm", 1),
    math.isqrt: _counted("isqrt", 1, 1),
    math.factorial: _counted("factorial", 1, 1),
    math.comb: _counted("comb", 2, 2),
    math.perm: _counted("perm", 1, 2),
    math.fsum: _fsum,
    math.prod: _prod,
}
