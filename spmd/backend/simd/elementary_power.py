"""pow and arctan2 as vector code, with the special cases of C99; float32 by way of float64.

Invariant: right for every pair of arguments. x^y is e^(y log x); for a result good to an ulp at y log x = 700 the
logarithm needs 65 bits, so its leading terms are sums of two floats (Dekker, Numerische Mathematik 18, 1971). Greatest
error found, in units of the last place (tests/simd/test_ulp.py asks for at most 2):

    function   float64   float32
    pow          1.00      0.50
    arctan2      1.88      0.50
"""

from __future__ import annotations

from collections.abc import Callable

from spmd.backend.simd.elementary_exp import EXPONENTIAL, Reduced, clamp, exp, exp_reduced, reduce, scale
from spmd.backend.simd.elementary_log import SMALLEST_NORMAL, log, split
from spmd.backend.simd.elementary_trig import PI, atan_magnitude, in_double, two_sum
from spmd.backend.simd.vector import Builder, Value

TWO_THIRDS, TWO_THIRDS_REST = 0.6666666666666666, 3.700743415417188e-17
TERMS = (
    0.40000000000002445,
    0.2857142857001707,
    0.22222222533739466,
    0.18181783212955183,
    0.15386808685018757,
    0.1325565319863686,
    0.13206917371336782,
)
LARGEST_EXPONENT = 2.0**65
PI_REST = 1.2246467991473532e-16
INFINITY = float("inf")


def _two_product(b: Builder, x: Value, y: Value) -> tuple[Value, Value]:
    """x * y rounded, and its rounding error; without fused multiply-add by Dekker's splitting."""
    product = x * y
    if b.machine.fma:
        return product, b.mad(x, y, -product)
    (x1, x2), (y1, y2) = _halves(x), _halves(y)
    return product, ((x1 * y1 - product) + x1 * y2 + x2 * y1) + x2 * y2


def _halves(x: Value) -> tuple[Value, Value]:
    carried = x * 134217729.0
    high = carried - (carried - x)
    return high, x - high


def _quick_two_sum(x: Value, y: Value) -> tuple[Value, Value]:
    """As `two_sum`, for |x| >= |y| or x = 0."""
    total = x + y
    return total, y - (total - x)


def _log_in_two(b: Builder, x: Value) -> tuple[Value, Value]:
    """log of a positive finite number as a sum of two floats."""
    constants = EXPONENTIAL["double"]
    subnormal = x.lt(SMALLEST_NORMAL["double"])
    k, m = split(b, b.select(subnormal, x * 2.0**54, x))
    k = b.select(subnormal, k - 54.0, k)
    f = m - 1.0
    divisor, divisor_rest = _quick_two_sum(b.constant("double", 2.0), f)
    s = f / divisor
    product, error = _two_product(b, s, divisor)
    s_rest = (((f - product) - error) - s * divisor_rest) / divisor
    z, z_rest = _two_product(b, s, s)
    z_rest = z_rest + (s + s) * s_rest
    # (2/3) s^3
    cube, cube_rest = _two_product(b, s, z)
    cube_rest = cube_rest + (s * z_rest + s_rest * z)
    third, third_rest = _two_product(b, cube, b.constant("double", TWO_THIRDS))
    third_rest = third_rest + (cube * TWO_THIRDS_REST + cube_rest * TWO_THIRDS)
    tail = (cube * z) * b.polynomial(z, TERMS)
    high, error_1 = two_sum(k * constants.log2_high, s + s)
    high, error_2 = two_sum(high, third)
    low = (error_1 + error_2) + (((k * constants.log2_low + (s_rest + s_rest)) + third_rest) + tail)
    return _quick_two_sum(high, low)


def _magnitude(b: Builder, x: Value, y: Value) -> Value:
    """x^y for finite x > 0; any y but NaN."""
    # log x is 0 or at least 2^-53 in magnitude, so larger exponents change nothing
    exponent = clamp(b, y, -LARGEST_EXPONENT, LARGEST_EXPONENT)
    high, low = _log_in_two(b, x)
    product, error = _two_product(b, exponent, high)
    error = error + exponent * low
    constants = EXPONENTIAL["double"]
    bounded = clamp(b, product, constants.lowest, constants.highest)
    error = b.select(bounded.eq(product), error, 0.0)
    r = reduce(b, bounded)
    r = Reduced(r.k, r.turns, r.high, r.low - error)
    return scale(b, exp_reduced(b, r), r)


def is_integer(b: Builder, x: Value) -> Value:
    """Mask of floats without a fraction; infinities are taken as (even) integers."""
    return b.intrinsic("floor", x).eq(x)


def _magnitude_for_single(b: Builder, x: Value, y: Value) -> Value:
    """As `_magnitude`, good to the precision of float32: there a logarithm of 53 bits is enough."""
    return exp(b, clamp(b, y, -LARGEST_EXPONENT, LARGEST_EXPONENT) * log(b, x))


def power(b: Builder, x: Value, y: Value) -> Value:
    if x.element == "double":
        return _power(b, x, y, _magnitude)
    base, exponent = b.convert("fpext", x, "double"), b.convert("fpext", y, "double")
    return b.convert("fptrunc", _power(b, base, exponent, _magnitude_for_single), "float")


def _power(b: Builder, x: Value, y: Value, magnitude: Callable[[Builder, Value, Value], Value]) -> Value:
    """C99's special cases around a function for finite x > 0."""
    size = b.fabs(x)
    ordinary = size.gt(0.0) & size.lt(INFINITY)
    result = magnitude(b, b.select(ordinary, size, 1.0), b.select(y.unordered(), 0.0, y))
    growing = size.gt(1.0) ^ y.lt(0.0)
    extreme = b.select(growing, INFINITY, b.constant("double", 0.0))
    result = b.select(ordinary, result, extreme)
    whole = is_integer(b, y)
    odd = whole & ~is_integer(b, y * 0.5)
    negative = b.bits(x).lt(0)
    result = b.select(negative & odd, -result, result)
    result = b.select(x.lt(0.0) & x.gt(-INFINITY) & ~whole, float("nan"), result)
    result = b.select(x.unordered() | y.unordered(), x + y, result)
    return b.select(x.eq(1.0) | y.eq(0.0), 1.0, result)


@in_double
def arctan2(b: Builder, y: Value, x: Value) -> Value:
    """Angle of the point (x, y), with y first as in C; right for zeros, infinities and the edges of the range."""
    rise, run = b.fabs(y), b.fabs(x)
    both_infinite = rise.eq(INFINITY) & run.eq(INFINITY)
    both_zero = rise.eq(0.0) & run.eq(0.0)
    larger = b.select(rise.gt(run), rise, run)
    factor = b.select(larger.gt(2.0**1000), 2.0**-100, b.constant("double", 1.0))
    factor = b.select(larger.lt(2.0**-900), 2.0**100, factor)
    rise = b.select(both_infinite, 1.0, rise * factor)
    run = b.select(both_infinite | both_zero, 1.0, run * factor)
    angle = atan_magnitude(b, rise, run)
    angle = b.select(b.bits(x).lt(0), (PI - angle) + PI_REST, angle)
    return b.select(x.unordered() | y.unordered(), x + y, b.copysign(angle, y))
