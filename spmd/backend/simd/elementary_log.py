"""log, log2, log10, log1p and softplus as vector code, for float64 and float32.

Invariant: right for every input: zeros give -inf, negative numbers NaN, subnormals keep all their digits.

The method is that of FreeBSD's msun (Ng, 1993), with own coefficients: x = 2^k (1 + f) with 1 + f between sqrt(1/2) and
sqrt(2), s = f / (2 + f), log(1 + f) = f - f^2/2 + s (f^2/2 + s^2 P(s^2)). Greatest error found, in units of the last
place, with and without fused multiply-add (tests/simd/test_ulp.py asks for at most 2):

    function   float64   float32
    log          0.83      0.83
    log2         0.82      0.78
    log10        0.70      0.74
    log1p        0.82      0.83
    softplus     1.62      1.60
"""

from __future__ import annotations

from dataclasses import dataclass

from spmd.backend.simd.elementary_exp import EXPONENTIAL, exp_of_negative, integer_of
from spmd.backend.simd.vector import INTEGER, MANTISSA, Builder, Value

LOG_TERMS = {
    "double": (
        0.6666666666666738,
        0.39999999999389674,
        0.28571428747829813,
        0.22222198014059455,
        0.18183593755824637,
        0.15313283344521547,
        0.14803796475952152,
    ),
    "float": (0.6666666269302368, 0.40000849962234497, 0.2851015627384186, 0.24028582870960236),
}
SQRT_HALF = {"double": 0x3FE6A09E667F3BCD, "float": 0x3F3504F3}
SMALLEST_NORMAL = {"double": 2.0**-1022, "float": 2.0**-126}
# 1 / ln 2, 1 / ln 10 and log10(2): a part short enough for exact products, and the rest
LOG2_PARTS = {"double": (1.4426950407214463, 1.6751713164886512e-10), "float": (1.4423828125, 0.00031222838896340733)}
LOG10_PARTS = {"double": (0.4342944818781689, 2.5082946711645275e-11), "float": (0.4342041015625, 9.0380337e-05)}
LOG10_2_PARTS = {"double": (0.30102999566395283, 2.8363394551044964e-14), "float": (0.301025390625, 4.6050390665e-06)}
KEPT_BITS = {"double": -(1 << 32), "float": -(1 << 12)}


@dataclass(frozen=True)
class Reduced:
    """x = 2^k (1 + f), k as a float; half_square = f^2 / 2; rest = s (half_square + s^2 P(s^2))."""

    k: Value
    f: Value
    half_square: Value
    rest: Value


def split(b: Builder, x: Value) -> tuple[Value, Value]:
    """(k, m) of a positive normal number x = 2^k m, m between sqrt(1/2) and sqrt(2); k as a float."""
    mantissa = MANTISSA[x.element]
    base = (1 << 62) if x.element == "double" else (1 << 30)
    shift = base >> mantissa
    bits = b.bits(x)
    # the exponent counted from sqrt(1/2), moved up so that it is positive: only logical shifts are cheap everywhere
    lifted = bits - SQRT_HALF[x.element] + base
    k = integer_of(b, (lifted >> mantissa) - shift, x.element)
    m = b.floats(bits - ((lifted & -(1 << mantissa)) - base))
    return k, m


def _series(b: Builder, k: Value, f: Value) -> Reduced:
    s = f / (f + 2.0)
    z = s * s
    half_square = (f * 0.5) * f
    return Reduced(k, f, half_square, s * b.mad(z, b.polynomial(z, LOG_TERMS[f.element]), half_square))


def _normalised(b: Builder, x: Value) -> Reduced:
    mantissa = MANTISSA[x.element]
    subnormal = x.lt(SMALLEST_NORMAL[x.element])
    scaled = b.select(subnormal, x * 2.0 ** (mantissa + 2), x)
    k, m = split(b, scaled)
    k = b.select(subnormal, k - float(mantissa + 2), k)
    return _series(b, k, m - 1.0)


def _natural(b: Builder, r: Reduced, correction: Value | float = 0.0) -> Value:
    constants = EXPONENTIAL[r.f.element]
    low = b.mad(r.k, constants.log2_low, correction) + r.rest
    return b.mad(r.k, constants.log2_high, r.f - (r.half_square - low))


def _with_specials(b: Builder, x: Value, y: Value, pole: float) -> Value:
    """y where x is above the pole and finite; -inf at the pole, NaN below it; +inf and NaN stay."""
    infinity = float("inf")
    outside = b.select(x.lt(pole), float("nan"), x)
    outside = b.select(x.eq(pole), -infinity, outside)
    return b.select(x.gt(pole) & x.lt(infinity), y, outside)


def log(b: Builder, x: Value) -> Value:
    return _with_specials(b, x, _natural(b, _normalised(b, x)), 0.0)


def log1p(b: Builder, x: Value) -> Value:
    """log of the rounded 1 + x, plus the rounding error of that sum divided by it; f = x itself where k = 0."""
    u = x + 1.0
    back = u - 1.0
    error = (1.0 - (u - back)) + (x - back)
    k, m = split(b, u)
    direct = k.eq(0.0)
    f = b.select(direct, x, m - 1.0)
    correction = b.select(direct, 0.0, error / u)
    y = _natural(b, _series(b, k, f), correction)
    # 0 - (0 - x) loses the sign of zero
    y = b.select(b.fabs(x).lt(EXPONENTIAL[x.element].tiny), x, y)
    return _with_specials(b, x, y, -1.0)


def _in_base(b: Builder, x: Value, parts: tuple[float, float], step: tuple[float, float]) -> Value:
    """(k ln 2 + log(1 + f)) / ln(base): the logarithm in two parts, the first short enough for exact products.

    `parts` are those of 1 / ln(base), `step` those of ln 2 / ln(base).
    """
    r = _normalised(b, x)
    integer = INTEGER[x.element]
    high = r.f - r.half_square
    high = b.floats(b.bits(high) & b.constant(integer, KEPT_BITS[x.element]))
    low = ((r.f - high) - r.half_square) + r.rest
    main = high * parts[0]
    rest = (low + high) * parts[1] + low * parts[0]
    whole = r.k * step[0]
    if step[1]:
        rest = r.k * step[1] + rest
    total = whole + main
    # |whole| >= |main| or whole = 0, so the difference is the rounding error of the sum
    return _with_specials(b, x, (((whole - total) + main) + rest) + total, 0.0)


def log2(b: Builder, x: Value) -> Value:
    return _in_base(b, x, LOG2_PARTS[x.element], (1.0, 0.0))


def log10(b: Builder, x: Value) -> Value:
    return _in_base(b, x, LOG10_PARTS[x.element], LOG10_2_PARTS[x.element])


def softplus(b: Builder, x: Value) -> Value:
    """log(1 + e^x) as max(x, 0) + log1p(e^-|x|)."""
    tail = log1p(b, exp_of_negative(b, -b.fabs(x)))
    return b.select(x.unordered(), x, b.select(x.gt(0.0), x, 0.0) + tail)
