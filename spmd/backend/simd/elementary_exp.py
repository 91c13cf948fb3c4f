"""exp, expm1, tanh and sigmoid as vector code, for float64 and float32.

Invariant: right for every input, the special ones included: infinities, NaN, signed zeros, gradual underflow and
overflow at the last representable step. Strict arithmetic but for the multiply-adds of machines that have them.

The method is Cody and Waite's (Software Manual for the Elementary Functions, 1980): x = k ln 2 + r, |r| <= ln 2 / 2,
with ln 2 in two parts so that k times the first is exact; e^r = 1 + r + r^2 q(r), q a polynomial fitted for the least
relative error with its coefficients rounded one after the other. Greatest error found among some million arguments, in
units of the last place, with and without fused multiply-add (tests/simd/test_ulp.py asks for at most 2):

    function   float64   float32
    exp          1.01      1.01
    expm1        1.56      1.69
    tanh         1.44      1.40
    sigmoid      1.94      1.82
"""

from __future__ import annotations

from dataclasses import dataclass

from spmd.backend.simd.vector import BIAS, INTEGER, MANTISSA, Builder, Value

LOG2_E = 1.4426950408889634
ROUNDER = {"double": 6755399441055744.0, "float": 12582912.0}
"""1.5 * 2^mantissa: adding it leaves the nearest integer in the low bits, for any number that is small enough."""


@dataclass(frozen=True)
class Exponential:
    """Constants of one float type: where exp is zero and infinite, ln 2 in two parts, and the coefficients of q."""

    lowest: float
    highest: float
    log2_high: float
    log2_low: float
    terms: tuple[float, ...]
    small_terms: tuple[float, ...]
    minus_one: float
    tiny: float


EXPONENTIAL = {
    "double": Exponential(
        -746.0,
        710.0,
        float.fromhex("0x1.62e42fefa3800p-1"),
        5.497923018708371e-14,
        (
            0.5,
            0.16666666666666685,
            0.041666666666599274,
            0.008333333333315896,
            0.001388888892862377,
            0.0001984126989889821,
            2.4801506442229623e-05,
            2.755723256717726e-06,
            2.762606221704976e-07,
            2.51127769950546e-08,
        ),
        (
            0.5,
            0.16666666666666677,
            0.04166666666666668,
            0.0083333333333214,
            0.0013888888888877408,
            0.0001984126988675412,
            2.4801587340765872e-05,
            2.755724353574257e-06,
            2.7557259017491664e-07,
            2.5109285330647435e-08,
            2.091957503561497e-09,
        ),
        -40.0,
        2.0**-54,
    ),
    "float": Exponential(
        -104.0,
        89.0,
        float.fromhex("0x1.62e4p-1"),
        1.428606765330187e-06,
        (0.5, 0.16666515171527863, 0.04166645184159279, 0.008369259536266327, 0.0013936130562797189),
        (0.5, 0.16666540503501892, 0.04166647791862488, 0.008366857655346394, 0.0013933730078861117),
        -20.0,
        2.0**-25,
    ),
}

TANH_SMALL = {"double": 0.55, "float": 0.5625}
TANH_LARGE = {"double": 20.0, "float": 10.0}
TANH_TERMS = {
    "double": (
        -0.333333333333333,
        0.1333333333332661,
        -0.05396825396376355,
        0.0218694883860839,
        -0.008863232606640285,
        0.0035920920925950122,
        -0.001455543287971718,
        0.0005884464250902402,
        -0.0002333867116736725,
        8.332403889106473e-05,
        -1.9499467234665337e-05,
    ),
    "float": (
        -0.3333331346511841,
        0.13332442939281464,
        -0.05383672937750816,
        0.02100527100265026,
        -0.006177370902150869,
    ),
}


def clamp(b: Builder, x: Value, low: float | None, high: float | None) -> Value:
    """x within bounds; NaN stays NaN."""
    if low is not None:
        x = b.select(x.lt(low), low, x)
    if high is not None:
        x = b.select(x.gt(high), high, x)
    return x


@dataclass(frozen=True)
class Reduced:
    """x = k ln 2 + (high - low) with high exact, |high - low| <= ln 2 / 2; k as an integer and as a float.

    For NaN `high` is NaN and k some number that does no harm.
    """

    k: Value
    turns: Value
    high: Value
    low: Value


def reduce(b: Builder, x: Value) -> Reduced:
    constants = EXPONENTIAL[x.element]
    rounder = ROUNDER[x.element]
    shifted = b.mad(x, LOG2_E, rounder)
    turns = shifted - rounder
    k = b.bits(shifted) - b.bits(b.constant(x.element, rounder))
    return Reduced(k, turns, b.mad(turns, -constants.log2_high, x), turns * constants.log2_low)


def power_of_two(b: Builder, k: Value, element: str) -> Value:
    """2^k for integers k within the exponents of normal numbers."""
    return b.floats((k + BIAS[element]) << MANTISSA[element])


def scale(b: Builder, x: Value, r: Reduced) -> Value:
    """x 2^k in two steps, of which only the last can round: right in the subnormal range and up to infinity."""
    at_once = b.scale_instruction(x, r.turns)
    if at_once is not None:
        return at_once
    half = ((r.k + 4096) >> 1) - 2048
    first = x * power_of_two(b, half, x.element)
    return first * power_of_two(b, r.k - half, x.element)


def exp(b: Builder, x: Value) -> Value:
    constants = EXPONENTIAL[x.element]
    r = reduce(b, clamp(b, x, constants.lowest, constants.highest))
    return scale(b, exp_reduced(b, r), r)


def exp_of_negative(b: Builder, x: Value) -> Value:
    """exp of an argument that is not positive."""
    r = reduce(b, clamp(b, x, EXPONENTIAL[x.element].lowest, None))
    return scale(b, exp_reduced(b, r), r)


def exp_reduced(b: Builder, reduced: Reduced) -> Value:
    r = reduced.high - reduced.low
    q = b.polynomial(r, EXPONENTIAL[r.element].terms)
    return b.mad(r * r, q, r) + 1.0


def exp_moderate(b: Builder, x: Value) -> Value:
    """exp of an argument known to be so small in magnitude that the result is a normal number, or NaN."""
    r = reduce(b, x)
    p = exp_reduced(b, r)
    at_once = b.scale_instruction(p, r.turns)
    return p * power_of_two(b, r.k, x.element) if at_once is None else at_once


def expm1(b: Builder, x: Value) -> Value:
    """e^x - 1: p(r) for k = 0, else 2^k p(r) + (2^k - 1), halved until the end so that 2^1024 does not occur."""
    constants = EXPONENTIAL[x.element]
    reduced = reduce(b, clamp(b, x, constants.minus_one, constants.highest))
    k, r = reduced.k, reduced.high - reduced.low
    c = (reduced.high - r) - reduced.low
    q = b.polynomial(r, constants.small_terms)
    p = r + b.mad(r * r, q, c)
    half = power_of_two(b, k - 1, x.element)
    y = b.mad(p, half, half - 0.5) * 2.0
    y = b.select(k.eq(0), p, y)
    # r - r * r loses the sign of zero
    return b.select(b.fabs(x).lt(constants.tiny), x, y)


def tanh(b: Builder, x: Value) -> Value:
    """A polynomial in x^2 near zero, else 1 - 2 / (e^2|x| + 1), which is at least a half there."""
    a = b.fabs(x)
    z = x * x
    small = b.mad(a * z, b.polynomial(z, TANH_TERMS[x.element]), a)
    bounded = clamp(b, a, None, TANH_LARGE[x.element])
    large = 1.0 - 2.0 / (exp_moderate(b, bounded + bounded) + 1.0)
    return b.copysign(b.select(a.lt(TANH_SMALL[x.element]), small, large), x)


def sigmoid(b: Builder, x: Value) -> Value:
    """1 / (1 + e^-x), by e^-|x| so that nothing overflows and small results keep their digits.

    The rounding error of 1 + e^-|x| is found and taken out again: just below a power of two it is a whole ulp.
    """
    e = exp_of_negative(b, -b.fabs(x))
    divisor = e + 1.0
    error = (1.0 - divisor) + e
    quotient = b.select(x.ge(0.0), 1.0, e) / divisor
    return b.mad(quotient, -error, quotient)


def integer_of(b: Builder, k: Value, element: str) -> Value:
    """Small integers as floats, by the rounding constant: 64-bit conversions are slow before AVX-512."""
    rounder = ROUNDER[element]
    assert k.element == INTEGER[element]
    return b.floats(k + b.bits(b.constant(element, rounder))) - rounder
