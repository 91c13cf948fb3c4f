"""The special functions: erf and erfc, gamma and its logarithm, polygamma, x log y, and exact sums.

The invariants: on Python floats the meaning is the math module's, errors included; on NumPy kinds it is scipy.special's
(poles are infinite or NaN, nothing raises), computed in double precision. SciPy itself is not needed.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from spmd.ir.build import Builder
from spmd.ir.core import Op, Value
from spmd.ir.types import FLOAT, Num, Type
from spmd.ops.calculus import constant, lift, num, quotient, rule, spread, strong
from spmd.ops.checked import plain
from spmd.ops.elementwise import raises_on_python
from spmd.ops.faults import blame, checked
from spmd.ops.inference import elementwise, numbers
from spmd.ops.primitive import Faults, Primitive, Samples, Site
from spmd.ops.transcendental import ANY, BAD, POSITIVE, SPECIAL

Cotangents = Sequence["Value | None"]


def _each(function: Callable[[float], float]) -> Callable[..., Any]:
    """A function of the C library that NumPy does not have: it is called for each element of an array."""
    ufunc = np.frompyfunc(function, 1, 1)

    def apply(x: Any) -> Any:
        x = np.asarray(x)
        return np.asarray(ufunc(x.astype(np.float64)), np.float64).astype(x.dtype)[()]

    return apply


def _gamma(x: float) -> float:
    """scipy.special.gamma: infinite at 0 and beyond its range, NaN at the other poles."""
    try:
        return math.gamma(x)
    except OverflowError:
        return math.inf
    except ValueError:
        return math.copysign(math.inf, x) if x == 0 else math.nan


def _lgamma(x: float) -> float:
    """scipy.special.gammaln: infinite at the poles."""
    try:
        return math.lgamma(x)
    except (OverflowError, ValueError):
        return math.inf


ERF, ERFC, GAMMA, LGAMMA = _each(math.erf), _each(math.erfc), _each(_gamma), _each(_lgamma)


def _special(
    name: str, function: Callable[[float], float], rows: Callable[..., Any], derive: Any, samples: Samples,
    raising: bool = False,
) -> Primitive:
    def numpy(x: Any) -> Any:
        return function(x) if plain(x) else rows(x)

    def rule_of_rows(site: Site) -> Callable[..., Any]:
        return checked(site, numpy, compute) if raising and site.types[0].python else lambda x: rows(x)

    def compute(x: Any) -> tuple[Any, Any]:
        result = rows(x)
        pole = (x <= 0) & (x == np.floor(x)) & (np.isfinite(x) | (name == "gamma"))
        return result, pole | (np.isinf(result) & np.isfinite(x)) | (np.isnan(result) & ~np.isnan(x))

    return Primitive(
        name, elementwise(name, 1, "f"), numpy, rule_of_rows, rule(derive),
        raises_on_python("f" if raising else ""), pointwise=True, samples=samples,
    )


# --------------------------------------------------------------------------------------------------- derivatives
def _bell(sign: float) -> Callable[..., Cotangents]:
    def derive(b: Builder, ct: Value, y: Value, x: Value) -> Cotangents:
        bell = b.emit("exp", b.emit("neg", b.emit("square", x)))
        return (strong(b, ct, b.emit("mul", constant(b, sign * 2.0 / math.sqrt(math.pi), x), bell)),)

    return derive


def _gamma_slope(b: Builder, ct: Value, y: Value, x: Value) -> Cotangents:
    return (strong(b, ct, b.emit("mul", y, b.emit("polygamma", x, n=0))),)


def _lgamma_slope(b: Builder, ct: Value, y: Value, x: Value) -> Cotangents:
    return (strong(b, ct, b.emit("polygamma", x, n=0)),)


def _polygamma_adjoint(b: Builder, op: Op, ct: Value) -> Cotangents:
    return (strong(b, ct, b.emit("polygamma", op.operands[0], n=op.attrs["n"] + 1)),)


def _xlogy(b: Builder, ct: Value, y: Value, p: Value, q: Value) -> Cotangents:
    return strong(b, ct, b.emit("log", q)), quotient(b, strong(b, ct, p), q)


# ----------------------------------------------------------------------------------------------------- polygamma
@functools.cache
def _bernoulli(count: int) -> tuple[Fraction, ...]:
    """B_0 ... B_(count - 1), with B_1 = -1/2."""
    found: list[Fraction] = []
    for m in range(count):
        total = sum((math.comb(m + 1, k) * found[k] for k in range(m)), Fraction(0))
        found.append(Fraction(1) if m == 0 else -total / (m + 1))
    return tuple(found)


TERMS = 12


def _right(n: int, x: Any) -> Any:
    """polygamma of positive numbers: shifted up by its recurrence, then the asymptotic series (Abramowitz and Stegun,
    "Handbook of Mathematical Functions", 6.3.18 and 6.4.11)."""
    total, sign, scale = np.zeros_like(x), (-1.0) ** (n + 1), float(math.factorial(n))
    limit = 12.0 + n
    for _ in range(int(limit)):
        small = x < limit
        total = np.where(small, total + sign * scale / np.where(small, x, 1.0) ** (n + 1), total)
        x = np.where(small, x + 1.0, x)
    numbers_ = _bernoulli(2 * TERMS + 1)
    if n == 0:
        series = np.log(x) - 0.5 / x
        for k in range(1, TERMS):
            series = series - float(numbers_[2 * k] / (2 * k)) / x ** (2 * k)
        return total + series
    series = math.factorial(n - 1) / x**n + scale / (2.0 * x ** (n + 1))
    for k in range(1, TERMS):
        factor = numbers_[2 * k] * math.factorial(2 * k + n - 1) / math.factorial(2 * k)
        series = series + float(factor) / x ** (2 * k + n)
    return total + sign * series


def _cotangent_slope(n: int, x: Any) -> Any:
    """The n-th derivative of pi * cot(pi * x): a polynomial in the cotangent."""
    c = 1.0 / np.tan(math.pi * (x - np.rint(x)))
    polynomial = np.polynomial.Polynomial([0.0, 1.0])
    for _ in range(n):
        polynomial = polynomial.deriv() * np.polynomial.Polynomial([-1.0, 0.0, -1.0])
    return math.pi ** (n + 1) * polynomial(c)


def polygamma(n: int, x: Any) -> Any:
    """The n-th derivative of digamma; at its poles infinite, but NaN for digamma at those below 0."""
    x = np.asarray(x)
    z = x.astype(np.float64)
    pole, below = (z <= 0) & (z == np.floor(z)), z <= 0
    inner = np.where(pole | ~np.isfinite(z), 1.0, z)
    found = _right(n, np.where(below & ~pole, 1.0 - inner, inner))
    found = np.where(below & ~pole, (-1.0) ** n * found - _cotangent_slope(n, np.where(below, inner, 0.5)), found)
    at_pole = np.where(z == 0, -np.copysign(np.inf, z), np.nan) if n == 0 else (-1.0) ** (n + 1) * np.inf
    far = np.where(z == np.inf, np.inf if n == 0 else 0.0, np.nan)
    found = np.where(pole, np.where(np.isfinite(z), at_pole, np.nan), np.where(np.isfinite(z), found, far))
    return found.astype(x.dtype)[()]


def xlogy(x: Any, y: Any) -> Any:
    """x * log(y), and 0 where x is 0 and y a number."""
    product = x * np.log(np.where(x == 0, 1.0, y))
    return np.where((x == 0) & ~np.isnan(y), 0.0, np.where(np.isnan(y), y, product)).astype(np.asarray(x).dtype)[()]


# ---------------------------------------------------------------------------------------------------- exact sums
def _infer_fsum(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    (x,) = numbers("fsum", types, 1)
    if x.kind != "f" or x.rank != 1:
        raise TypeError(f"'fsum' takes a vector of floats, not {x}")
    return FLOAT


def _rows_fsum(site: Site) -> Callable[..., Any]:
    """NumPy has no correctly rounded sum: Python's is called for each row."""

    def run(x: Any, faults: Faults) -> Any:
        out, bad = np.zeros(len(x)), np.zeros(len(x), bool)
        for k, row in enumerate(x.tolist()):
            try:
                out[k] = math.fsum(row)
            except (ValueError, OverflowError):
                bad[k] = True
        blame(faults, bad, site, math.fsum, (x,))
        return out

    return run


def _fsum_adjoint(b: Builder, op: Op, ct: Value) -> Cotangents:
    x = op.operands[0]
    return (spread(b, b.emit("cast", lift(b, ct), dtype=num(x).dtype, python=False), x),)


POLES: Samples = tuple(((x,), {}) for x in (0.0, -0.0, -1.0, -2.5, 171.7, 1e306, -math.inf, math.inf, math.nan, 0.5))
ARGUMENTS: Samples = (((np.array([0.25, 1.0, 3.5, -0.75, -3.25]),), {}), ((np.float64(12.5),), {}), *SPECIAL)
LOGS: Samples = (
    ((np.array([0.5, 2.0, -1.0]), np.array([3.0, 0.25, 1.5])), {}),
    ((np.array([0.0, 0.0, np.nan, 1.0]), np.array([0.0, np.nan, 1.0, 0.0])), {}),
    ((np.array([0.0, np.inf]), np.array([-1.0, 0.0])), {}),
)

SPECIALS: tuple[Primitive, ...] = (
    _special("erf", math.erf, ERF, _bell(1.0), ANY + SPECIAL),
    _special("erfc", math.erfc, ERFC, _bell(-1.0), ANY + SPECIAL + BAD),
    _special("gamma", math.gamma, GAMMA, _gamma_slope, POSITIVE + POLES + ARGUMENTS, raising=True),
    _special("lgamma", math.lgamma, LGAMMA, _lgamma_slope, POSITIVE + POLES + ARGUMENTS, raising=True),
    Primitive(
        "polygamma", elementwise("polygamma", 1, "f", python=False), lambda x, n: polygamma(n, x),
        lambda site: lambda x: polygamma(site.attrs["n"], x), _polygamma_adjoint,
        pointwise=True, samples=tuple((args, {"n": n}) for n in (0, 1, 2, 3) for args, _ in ARGUMENTS),
    ),
    Primitive(
        "xlogy", elementwise("xlogy", 2, "f", python=False), xlogy, lambda site: lambda x, y: xlogy(x, y), rule(_xlogy),
        pointwise=True, samples=LOGS,
    ),
    Primitive(
        "fsum", _infer_fsum, math.fsum, _rows_fsum, _fsum_adjoint, lambda types, attrs: True,
        samples=tuple(((np.array(x),), {}) for x in ([0.1, 0.2, 0.3], [1e5, 0.1, -1e5], [np.inf, -np.inf, 1.0]))
        + (((np.zeros(0),), {}),),
    ),
)
