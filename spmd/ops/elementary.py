"""Functions of floats that no kernel generates: cbrt, exp2, inverse hyperbolics, remainders, signs, exponents.

The invariant: on NumPy kinds the meaning is NumPy's, on Python floats that of the math module, errors included.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spmd.ir.build import Builder
from spmd.ir.core import Op, Value
from spmd.ir.types import INT, Num, Type
from spmd.ops.calculus import constant, lift, quotient, rule, strong
from spmd.ops.checked import defined, plain
from spmd.ops.elementwise import raises_on_python
from spmd.ops.faults import checked
from spmd.ops.inference import elementwise, numbers
from spmd.ops.primitive import Primitive, Samples, Site
from spmd.ops.transcendental import ANY, BAD, PAIRS, SPECIAL, UNIT, function_of_floats

Cotangents = Sequence["Value | None"]
ABOVE: Samples = (((np.array([1.25, 2.0, 3.5]),), {}), ((np.float64(2.0),), {}), ((1.5,), {}), ((4.0,), {}))
DIVIDED: Samples = PAIRS + tuple(
    ((x, y), {}) for x in (0.0, 5.0, -5.0, math.inf, math.nan) for y in (0.0, -3.0, 2.5, math.inf, math.nan)
)


# --------------------------------------------------------------------------------------------------- derivatives
def _cbrt(b: Builder, ct: Value, y: Value, x: Value) -> Cotangents:
    return (quotient(b, ct, b.emit("mul", constant(b, 3, y), b.emit("square", y))),)


def _exp2(b: Builder, ct: Value, y: Value, x: Value) -> Cotangents:
    return (strong(b, ct, b.emit("mul", constant(b, math.log(2.0), y), y)),)


def _arcsinh(b: Builder, ct: Value, y: Value, x: Value) -> Cotangents:
    return (quotient(b, ct, b.emit("cosh", y)),)


def _arccosh(b: Builder, ct: Value, y: Value, x: Value) -> Cotangents:
    one = constant(b, 1, x)
    roots = [b.emit("sqrt", b.emit(name, x, one)) for name in ("sub", "add")]
    return (quotient(b, ct, b.emit("mul", *roots)),)


def _arctanh(b: Builder, ct: Value, y: Value, x: Value) -> Cotangents:
    one = constant(b, 1, x)
    return (quotient(b, ct, b.emit("mul", b.emit("sub", one, x), b.emit("add", one, x))),)


def _fmod(b: Builder, ct: Value, y: Value, x: Value, w: Value) -> Cotangents:
    return ct, b.emit("neg", strong(b, ct, b.emit("trunc", b.emit("div", x, w))))


def _remainder(b: Builder, ct: Value, y: Value, x: Value, w: Value) -> Cotangents:
    """x = n * w + y, where n is whole and does not move."""
    whole = b.emit("rint", b.emit("div", b.emit("sub", x, y), w))
    return ct, b.emit("neg", strong(b, ct, whole))


def _copysign(b: Builder, ct: Value, y: Value, x: Value, w: Value) -> Cotangents:
    """|x| with the sign of w: 0 at x = 0, as abs has it."""
    return strong(b, ct, b.emit("mul", b.emit("sign", x), b.emit("copysign", constant(b, 1, w), w))), None


def ieee_remainder(x: Any, y: Any) -> Any:
    """x - n * y for the whole n nearest to x / y, the even one of two: exact, as math.remainder says."""
    size, whole = np.abs(x), np.abs(y)
    m = np.fmod(size, whole)
    other = whole - m
    middle = m - 2.0 * np.fmod(0.5 * (size - m), whole)
    r = np.where(m < other, m, np.where(m > other, -other, middle))
    r = np.copysign(1.0, x) * r
    r = np.where(np.isfinite(x) & np.isinf(y), x, r)
    return np.where(np.isnan(x), x, np.where(np.isnan(y), y, r))[()]


# ------------------------------------------------------------------------------------------- exponents and fractions
def _infer_ldexp(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    x, n = numbers("ldexp", types, 2)
    if x.kind != "f" or n.kind not in "iu" or x.python != n.python or n.text or x.rank != n.rank:
        raise TypeError(f"'ldexp' takes a float and an integer of one shape, not {x} and {n}")
    return x


def _ldexp(x: Any, n: Any) -> Any:
    return math.ldexp(x, n) if plain(x) else scaled_by_power(x, n)


def scaled_by_power(x: Any, n: Any) -> Any:
    """np.ldexp of any integer type; beyond these exponents nothing changes any more."""
    return np.ldexp(x, np.clip(n, -5000, 5000).astype(np.int32))


def _rows_ldexp(site: Site) -> Callable[..., Any]:
    if not site.types[0].python:
        return scaled_by_power

    def compute(x: Any, n: Any) -> tuple[Any, Any]:
        result = scaled_by_power(x, n)
        return result, defined(result, x)

    return checked(site, _ldexp, compute)


def _ldexp_adjoint(b: Builder, op: Op, ct: Value) -> Cotangents:
    return b.emit("ldexp", lift(b, ct), lift(b, op.operands[1])), None


def _infer_exponent(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    x = elementwise("exponent", 1, "f")(types, attrs)
    assert isinstance(x, Num)
    return INT if x.python else Num("int32", x.shape)


def _split(part: int) -> Callable[[Any], Any]:
    def apply(x: Any) -> Any:
        return math.frexp(x)[part] if plain(x) else np.frexp(x)[part]

    return apply


def _mantissa_adjoint(b: Builder, op: Op, ct: Value) -> Cotangents:
    exponent = b.emit("exponent", lift(b, op.operands[0]))
    return (b.emit("ldexp", lift(b, ct), b.emit("neg", exponent)),)


def _fraction(x: Any) -> Any:
    return math.modf(x)[0] if plain(x) else np.modf(x)[0]


def _next(x: Any, y: Any) -> Any:
    return math.nextafter(x, y) if plain(x) else np.nextafter(x, y)


def _spacing(x: Any) -> Any:
    """The distance to the next float away from 0; math.ulp's answer for negative numbers and the largest ones."""
    size = np.abs(x)
    top = np.finfo(np.asarray(x).dtype).max
    found = np.where(size == top, size - np.nextafter(top, 0), np.nextafter(size, np.inf) - size)
    return np.where(np.isfinite(x), found, size)[()]


def _whole(name: str, numpy: Callable[..., Any], rows: Callable[..., Any], derive: Any, samples: Samples) -> Primitive:
    return Primitive(
        name, elementwise(name, len(samples[0][0]), "f"), numpy, lambda site: lambda *x: rows(*x), derive,
        pointwise=True, samples=samples,
    )


def _pass_on(b: Builder, ct: Value, y: Value, *operands: Value) -> Cotangents:
    return ct, *[None] * (len(operands) - 1)


def _unary(name: str, mathname: str, derive: Any, samples: Samples) -> Primitive:
    ufunc = getattr(np, name)
    return function_of_floats(name, ufunc, getattr(math, mathname, _as_float(ufunc)), derive, samples, chain="")


def _as_float(ufunc: Any) -> Callable[..., float]:
    """For a function that this Python's math module does not have yet."""
    return lambda *operands: float(ufunc(*operands))


MODULI: Samples = (((np.array([7, -7, 5]), np.array([3, 3, 0])), {}),)
SCALED: Samples = (
    ((np.array([1.5, -2.0, 0.0]), np.array([3, -2, 5])), {}), ((np.float64(0.75), np.int64(4)), {}),
    ((1.5, 3), {}), ((1.5, 2000), {}), ((1.5, -2000), {}), ((math.inf, 2), {}), ((math.nan, 2), {}), ((0.0, 10**6), {}),
)

ELEMENTARY: tuple[Primitive, ...] = (
    _unary("cbrt", "cbrt", _cbrt, (((np.array([-1.5, 0.25, 8.0]),), {}), ((0.5,), {}), *SPECIAL)),
    _unary("exp2", "exp2", _exp2, ANY + BAD + SPECIAL),
    _unary("arcsinh", "asinh", _arcsinh, ANY + BAD + SPECIAL),
    _unary("arccosh", "acosh", _arccosh, ABOVE + BAD + SPECIAL),
    _unary("arctanh", "atanh", _arctanh, UNIT + BAD + SPECIAL + (((1.0,), {}),)),
    function_of_floats("fmod", np.fmod, math.fmod, _fmod, DIVIDED + MODULI, arity=2, chain="", kinds="iuf"),
    function_of_floats("remainder", ieee_remainder, math.remainder, _remainder, DIVIDED, arity=2, chain=""),
    function_of_floats(
        "copysign", np.copysign, math.copysign, _copysign,
        PAIRS + tuple(((x, y), {}) for x in (2.0, -0.0, math.nan) for y in (-0.0, 0.0, -math.inf)),
        raising=False, arity=2, chain="",
    ),
    Primitive("ldexp", _infer_ldexp, _ldexp, _rows_ldexp, _ldexp_adjoint, raises_on_python("f"), samples=SCALED),
    _whole("mantissa", _split(0), lambda x: np.frexp(x)[0], _mantissa_adjoint, ANY + SPECIAL),
    Primitive(
        "exponent", _infer_exponent, _split(1),
        lambda site: lambda x: np.frexp(x)[1].astype(site.result.dtype, copy=False), samples=ANY + SPECIAL,
    ),
    _whole("fraction", _fraction, lambda x: np.modf(x)[0], rule(_pass_on), ANY + SPECIAL),
    _whole(
        "nextafter", _next, np.nextafter, rule(_pass_on),
        PAIRS + tuple(((x, y), {}) for x in (1.0, -0.0, math.inf, math.nan) for y in (0.0, 2.0, -math.inf, 1.0)),
    ),
    _whole(
        "ulp", lambda x: math.ulp(x) if plain(x) else _spacing(x), _spacing, None,
        (*ANY, *SPECIAL, *((((x,), {})) for x in (0.0, -3.5, 1.7976931348623157e308, 5e-324, -math.inf))),
    ),
)
