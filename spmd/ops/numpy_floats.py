"""NumPy's rarer elementwise functions, and comparisons with a tolerance, as primitives.

The invariant: dtypes are those of the loops that NumPy runs; what can be said with other primitives is.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from spmd.ir.build import Builder
from spmd.ir.core import Value
from spmd.ops.arguments import array, bind, needed, operand, static_bool
from spmd.ops.calculus import constant, num
from spmd.ops.inference import broadcast_shape
from spmd.ops.numpy_elementwise import UNSUPPORTED, Rule, absolute, as_bool, select, ufunc
from spmd.ops.operators import apply, binary, compare, python_bool
from spmd.ops.primitive import Refusal
from spmd.ops.promotion import broadcast_together, cast, strengthen


def _operands(b: Builder, function: np.ufunc, args: list[Any], kwargs: dict[str, Any]) -> list[Value]:
    """The operands as the loop of a ufunc takes them, in one shape."""
    title = f"np.{function.__name__}"
    names = ["x"] if function.nin == 1 else [f"x{k + 1}" for k in range(function.nin)]
    bound = bind(title, " ".join(names) + UNSUPPORTED, args, kwargs)
    values = [operand(b, x) for x in needed(title, bound, *names)]
    return in_loop(b, function, values)


def in_loop(b: Builder, function: np.ufunc, values: list[Value]) -> list[Value]:
    """The values in the dtypes of the loop that a ufunc runs for them, in one shape."""
    types = [num(v) for v in values]
    weak: dict[str, Any] = {"int64": int, "float64": float, "bool": np.dtype(bool)}
    plain = all(t.python for t in types)
    given = tuple(weak[t.dtype] if t.python and not plain else np.dtype(t.dtype) for t in types)
    dtypes = function.resolve_dtypes((*given, *([None] * function.nout)))[: len(values)]
    if any(d.kind not in "biuf" for d in dtypes):
        raise TypeError(f"'{function.__name__}' does not take {', '.join(map(str, types))}")
    ready = [cast(b, v, str(d)) for v, d in zip(values, dtypes)]
    return broadcast_together(b, ready) if len(ready) > 1 else ready


# --------------------------------------------------------------------------------------------- extrema without NaN
def _present(name: str, function: np.ufunc) -> Rule:
    """np.fmax, np.fmin: of a NaN and a number the number."""

    def rule(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
        x, y = _operands(b, function, args, kwargs)
        if num(x).kind != "f":
            return apply(b, name, function, x, y)
        both = b.emit(name, x, y)
        found = b.emit("where", b.emit("isnan", x), y, both)
        return b.emit("where", b.emit("isnan", y), x, found)

    return rule


# ----------------------------------------------------------------------------------------------- by other functions
def _scaled(function: np.ufunc, factor: float) -> Rule:
    def rule(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
        (x,) = _operands(b, function, args, kwargs)
        return b.emit("mul", x, constant(b, factor, x))

    return rule


def _logaddexp2(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    """log2(2**x + 2**y), without overflow; at a tie each operand has half of the derivative."""
    x, y = _operands(b, np.logaddexp2, args, kwargs)
    tie, zero = b.emit("eq", x, y), constant(b, 0, x)
    distance = b.emit("where", tie, zero, b.emit("abs", b.emit("sub", x, y)))
    rest = b.emit("log1p", b.emit("exp2", b.emit("neg", distance)))
    return b.emit("add", b.emit("maximum", x, y), b.emit("mul", rest, constant(b, 1.0 / math.log(2.0), rest)))


def _heaviside(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    x, middle = _operands(b, np.heaviside, args, kwargs)
    zero, one = constant(b, 0, x), constant(b, 1, x)
    found = b.emit("where", b.emit("gt", x, zero), one, zero)
    found = b.emit("where", b.emit("eq", x, zero), middle, found)
    return b.emit("where", b.emit("isnan", x), x, found)


def _float_power(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    return b.emit("pow", *_operands(b, np.float_power, args, kwargs))


def _signbit(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    (x,) = _operands(b, np.signbit, args, kwargs)
    one = constant(b, 1, x)
    return b.emit("lt", b.emit("copysign", one, x), constant(b, 0, x))


def _sinc(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    x = strengthen(b, array(b, *needed("np.sinc", bind("np.sinc", "x", args, kwargs), "x")))
    x = cast(b, x, "float64") if num(x).kind in "biu" else x
    center = b.emit("eq", x, constant(b, 0, x))
    y = b.emit("mul", constant(b, math.pi, x), b.emit("where", center, constant(b, 1.0, x), x))
    return b.emit("where", center, constant(b, 1, x), b.emit("div", b.emit("sin", y), y))


def _divmod(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> tuple[Value, Value]:
    x, y = _operands(b, np.divmod, args, kwargs)
    return b.emit("floordiv", x, y), b.emit("mod", x, y)


def _modf(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> tuple[Value, Value]:
    (x,) = _operands(b, np.modf, args, kwargs)
    return b.emit("fraction", x), b.emit("trunc", x)


def _frexp(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> tuple[Value, Value]:
    (x,) = _operands(b, np.frexp, args, kwargs)
    return b.emit("mantissa", x), b.emit("exponent", x)


def _ldexp(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    return b.emit("ldexp", *_operands(b, np.ldexp, args, kwargs))


def _nan_to_num(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("np.nan_to_num", "x copy nan posinf neginf", args, kwargs)
    x = array(b, *needed("np.nan_to_num", bound, "x"))
    if not static_bool(b, "np.nan_to_num", "copy", bound.get("copy", True)):
        raise Refusal("np.nan_to_num(copy=False) writes to its argument", "leave 'copy' away.")
    if num(x).kind != "f":
        return x
    limits = np.finfo(num(x).dtype)
    zero, missing = constant(b, 0, x), b.emit("isnan", x)
    infinite = b.emit("isinf", x)
    for test, name, default in (
        (b.emit("logical_and", infinite, b.emit("gt", x, zero)), "posinf", limits.max),
        (b.emit("logical_and", infinite, b.emit("lt", x, zero)), "neginf", limits.min),
        (missing, "nan", 0.0),
    ):
        given = bound.get(name)
        value = cast(b, array(b, default if given is None else given), num(x).dtype)
        x = b.emit("where", *broadcast_together(b, [test, value, x]))
    return x


def _infinite(title: str, comparison: str) -> Rule:
    """np.isposinf, np.isneginf"""

    def rule(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
        x = array(b, *needed(title, bind(title, "x -out", args, kwargs), "x"))
        if num(x).kind != "f":
            return constant(b, False, as_bool(b, x))
        return b.emit("logical_and", b.emit("isinf", x), b.emit(comparison, x, constant(b, 0, x)))

    return rule


def _real_only(title: str, answer: Any) -> Rule:
    """np.real, np.imag, np.conj, np.isreal: of real numbers."""

    def rule(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
        if len(args) != 1 or kwargs:
            raise Refusal(f"{title} takes one array here")
        x = operand(b, args[0])
        if num(x).python and title != "np.iscomplex":
            x = cast(b, x, "int64", True) if num(x).dtype == "bool" else x
            return x if answer is None else b.const(answer if isinstance(answer, bool) or num(x).kind == "i" else 0.0)
        x = strengthen(b, x)
        if answer is None:
            return x
        return constant(b, answer, as_bool(b, x) if isinstance(answer, bool) else x)

    return rule


def _conjugate(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    return _operands(b, np.conjugate, args, kwargs)[0]


# --------------------------------------------------------------------------------------------- equality in tolerance
def close(b: Builder, title: str, args: list[Any], kwargs: dict[str, Any]) -> Value:
    """np.isclose: |x - y| <= atol + rtol * |y| where y is finite, or equality."""
    bound = bind(title, "a b rtol atol equal_nan", args, kwargs)
    x, y = (array(b, v) for v in needed(title, bound, "a", "b"))
    equal_nan = static_bool(b, title, "equal_nan", bound.get("equal_nan", False))
    y = cast(b, y, str(np.result_type(num(y).dtype, 1.0)))
    if num(x).kind == "b":
        x = cast(b, x, str(np.result_type(num(x).dtype, num(y).dtype)))
    distance = absolute(b, binary(b, "-", x, y))
    limit = binary(b, "+", bound.get("atol", 1e-8), binary(b, "*", bound.get("rtol", 1e-5), absolute(b, y)))
    near = compare(b, "<=", distance, limit)
    near, finite = broadcast_together(b, [near, b.emit("isfinite", y)])
    near = b.emit("logical_and", near, finite)
    near = b.emit("logical_or", *broadcast_together(b, [near, compare(b, "==", x, y)]))
    if equal_nan and num(x).kind == "f":
        both = broadcast_together(b, [b.emit("isnan", x), b.emit("isnan", y)])
        near = b.emit("logical_or", near, b.emit("logical_and", *both))
    return near


def _isclose(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    return close(b, "np.isclose", args, kwargs)


def _all(b: Builder, x: Value) -> Value:
    """A Python bool: whether all elements are true."""
    rank = num(x).rank
    return python_bool(b, b.emit("all", x, axes=tuple(range(rank)), keepdims=False) if rank else x)


def _allclose(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    return _all(b, close(b, "np.allclose", args, kwargs))


def _array_equal(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Any:
    bound = bind("np.array_equal", "a1 a2 equal_nan", args, kwargs)
    x, y = (array(b, v) for v in needed("np.array_equal", bound, "a1", "a2"))
    shapes = num(x).shape, num(y).shape
    if len(shapes[0]) != len(shapes[1]) or any(m != n for m, n in zip(*shapes) if m is not None and n is not None):
        return b.const(False)
    if None in shapes[0] or None in shapes[1]:
        raise Refusal("np.array_equal needs arrays whose sizes are known", "compare with np.all(a == b).")
    same = compare(b, "==", x, y)
    equal_nan = static_bool(b, "np.array_equal", "equal_nan", bound.get("equal_nan", False))
    if equal_nan and num(x).kind == num(y).kind == "f":
        same = b.emit("logical_or", same, b.emit("logical_and", b.emit("isnan", x), b.emit("isnan", y)))
    return _all(b, same)


def _array_equiv(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Any:
    bound = bind("np.array_equiv", "a1 a2", args, kwargs)
    x, y = (array(b, v) for v in needed("np.array_equiv", bound, "a1", "a2"))
    if not (num(x).static and num(y).static):
        raise Refusal("np.array_equiv needs arrays whose sizes are known", "compare with np.all(a == b).")
    try:
        broadcast_shape(num(x).shape, num(y).shape)
    except ValueError:
        return b.const(False)
    return _all(b, compare(b, "==", x, y))


def _select(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    """np.select: the first condition that holds chooses."""
    bound = bind("np.select", "condlist choicelist default", args, kwargs)
    tests, choices = needed("np.select", bound, "condlist", "choicelist")
    if not isinstance(tests, (tuple, list)) or not isinstance(choices, (tuple, list)):
        raise Refusal("np.select takes lists of conditions and choices that are written out")
    if len(tests) != len(choices):
        raise ValueError("list of cases must be same length as list of conditions")
    if not tests:
        raise ValueError("select with an empty condition list is not possible")
    found = operand(b, bound.get("default", 0))
    for test, choice in zip(reversed(tests), reversed(choices)):
        condition = array(b, test)
        if num(condition).kind != "b":
            raise TypeError("invalid entry in condlist: should be boolean ndarray")
        found = select(b, condition, operand(b, choice), found)
    return strengthen(b, found)


FLOAT_CALLS: dict[Any, Rule] = {
    **{
        getattr(np, name): ufunc(name, getattr(np, name))
        for name in (
            "cbrt", "exp2", "arcsinh", "arccosh", "arctanh", "fmod", "copysign", "nextafter", "gcd", "lcm",
        )
    },
    np.fmax: _present("maximum", np.fmax),
    np.fmin: _present("minimum", np.fmin),
    np.deg2rad: _scaled(np.deg2rad, math.pi / 180),
    np.radians: _scaled(np.radians, math.pi / 180),
    np.rad2deg: _scaled(np.rad2deg, 180 / math.pi),
    np.degrees: _scaled(np.degrees, 180 / math.pi),
    np.logaddexp2: _logaddexp2,
    np.heaviside: _heaviside,
    np.float_power: _float_power,
    np.signbit: _signbit,
    np.sinc: _sinc,
    np.divmod: _divmod,
    np.modf: _modf,
    np.frexp: _frexp,
    np.ldexp: _ldexp,
    np.nan_to_num: _nan_to_num,
    np.isposinf: _infinite("np.isposinf", "gt"),
    np.isneginf: _infinite("np.isneginf", "lt"),
    np.real: _real_only("np.real", None),
    np.conjugate: _conjugate,
    np.imag: _real_only("np.imag", 0),
    np.isreal: _real_only("np.isreal", True),
    np.iscomplex: _real_only("np.iscomplex", False),
    np.isclose: _isclose,
    np.allclose: _allclose,
    np.array_equal: _array_equal,
    np.array_equiv: _array_equiv,
    np.select: _select,
}
