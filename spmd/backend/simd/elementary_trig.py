"""sin, cos and arctan as vector code; float32 by way of float64.

Invariant: right for every finite argument. Up to 2^20 the multiple of pi / 2 is taken off in four parts (Cody and
Waite, 1980), each but the last short enough for exact products, with the rounding errors kept (Knuth's two-sum); the
rare lanes beyond go to the C library one by one (glibc: 0.51 ulp in random samples, but 8 at the float64 nearest to a
multiple of pi / 2, 5.3e255). sin and cos of what is left are polynomials as in FreeBSD's msun, with own coefficients.
Greatest error found up to 2^20, in units of the last place (tests/simd/test_ulp.py asks for at most 2):

    function   float64   float32
    sin          0.79      0.50
    cos          0.79      0.50
    arctan       1.84      0.50
"""

from __future__ import annotations

from collections.abc import Callable

from spmd.backend.simd.elementary_exp import ROUNDER
from spmd.backend.simd.vector import Builder, Value

TWO_OVER_PI = 0.6366197723675814
HALF_PI_PARTS = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21, 8.4784276603689e-32)
REDUCED_UP_TO = 2.0**20
SIN_TERMS = (
    -0.1666666666666663,
    0.008333333333321945,
    -0.00019841269829484602,
    2.755731359108751e-06,
    -2.5050743528454354e-08,
    1.5896000046150026e-10,
)
COS_TERMS = (
    0.041666666666666595,
    -0.0013888888888873433,
    2.4801587289088995e-05,
    -2.7557314246727625e-07,
    2.087570973642429e-09,
    -1.1358979878585515e-11,
)
ATAN_TERMS = (
    -0.33333333333333326,
    0.1999999999999724,
    -0.1428571428534437,
    0.11111111085870604,
    -0.09090908071742528,
    0.07692281288865538,
    -0.06666207068214478,
    0.05876844775980639,
    -0.05217348045993855,
    0.044995363855846376,
    -0.03338659942753612,
    0.015110781527207016,
)
# tan(pi/8); beyond it arctan(x) = pi/4 + arctan((x - 1) / (x + 1)), beyond tan(3 pi/8) pi/2 - arctan(1 / x)
TAN_EIGHTH, TAN_THREE_EIGHTHS = 0.41421356237309503, 2.414213562373095
PI, HALF_PI, QUARTER_PI = 3.141592653589793, 1.5707963267948966, 0.7853981633974483
HALF_PI_REST, QUARTER_PI_REST = 6.123233995736766e-17, 3.061616997868383e-17

Function = Callable[[Builder, Value], Value]


def in_double(function: Callable[..., Value]) -> Callable[..., Value]:
    """The function for both float types: float32 computed as float64 and rounded once."""

    def emit(b: Builder, *operands: Value) -> Value:
        if operands[0].element == "double":
            return function(b, *operands)
        wide = [b.convert("fpext", x, "double") for x in operands]
        return b.convert("fptrunc", function(b, *wide), "float")

    return emit


def two_sum(x: Value, y: Value) -> tuple[Value, Value]:
    """x + y rounded, and its rounding error."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def _quarter_turns(b: Builder, x: Value) -> tuple[Value, Value, Value]:
    """(q, y, rest): x = q pi/2 + y + rest, |y| <= pi/4; the low bits of integer q say which quarter."""
    first, second, third, fourth = HALF_PI_PARTS
    rounder = ROUNDER["double"]
    shifted = b.mad(x, TWO_OVER_PI, rounder)
    turns = shifted - rounder
    y, error = two_sum(x - turns * first, turns * -second)
    y, error_2 = two_sum(y, turns * -third)
    return b.bits(shifted), y, (error + error_2) - turns * fourth


def _sin_reduced(b: Builder, y: Value, rest: Value) -> Value:
    z = y * y
    cube = z * y
    tail = b.polynomial(z, SIN_TERMS[1:])
    return y - ((z * (rest * 0.5 - cube * tail) - rest) - cube * SIN_TERMS[0])


def _cos_reduced(b: Builder, y: Value, rest: Value) -> Value:
    z = y * y
    half = z * 0.5
    w = 1.0 - half
    return w + (((1.0 - w) - half) + (z * (z * b.polynomial(z, COS_TERMS)) - y * rest))


def _sin_and_cos(b: Builder, x: Value) -> tuple[Value, Value]:
    q, y, rest = _quarter_turns(b, x)
    s, c = _sin_reduced(b, y, rest), _cos_reduced(b, y, rest)
    odd = (q & 1).ne(0)
    sine, cosine = b.select(odd, c, s), b.select(odd, s, c)
    sine = b.select((q & 2).ne(0), -sine, sine)
    cosine = b.select(((q + 1) & 2).ne(0), -cosine, cosine)
    return sine, cosine


def _library_function(b: Builder, name: str) -> str:
    """LLVM text of a function that replaces the lanes of large arguments by the C library's results."""
    b.functions[f"declare {name}"] = f"declare double @{name}(double)"
    vector = b.vector("double")
    if vector == "double":
        return f"""
define internal double @large_{name}_{b.lanes}(double %x, double %y) noinline {{
  %result = call double @{name}(double %x)
  ret double %result
}}
"""
    return f"""
define internal {vector} @large_{name}_{b.lanes}({vector} %x, {vector} %y) noinline {{
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %i.next, %latch ]
  %r = phi {vector} [ %y, %entry ], [ %r.next, %latch ]
  %more = icmp ult i64 %i, {b.lanes}
  br i1 %more, label %body, label %done
body:
  %item = extractelement {vector} %x, i64 %i
  %small = fcmp ult double %item, {REDUCED_UP_TO:e}
  %large.below = fcmp ugt double %item, {-REDUCED_UP_TO:e}
  %inside = and i1 %small, %large.below
  br i1 %inside, label %latch, label %call
call:
  %result = call double @{name}(double %item)
  %replaced = insertelement {vector} %r, double %result, i64 %i
  br label %latch
latch:
  %r.next = phi {vector} [ %r, %body ], [ %replaced, %call ]
  %i.next = add i64 %i, 1
  br label %head
done:
  ret {vector} %r
}}
"""


def _with_large(b: Builder, name: str, x: Value, y: Value) -> Value:
    """y, but for large arguments what the C library says; a branch that is hardly ever taken."""
    function = f"large_{name}_{b.lanes}"
    if function not in b.functions:
        b.functions[function] = _library_function(b, name)
    large = b.any(b.fabs(x).ge(REDUCED_UP_TO))
    rare, join, before = b.fresh("rare"), b.fresh("join"), b.block
    b.write(f"br i1 {large}, label %{rare}, label %{join}")
    b.open(rare)
    replaced = b.emit("double", f"call {x.type} @{function}({x.type} {x.name}, {y.type} {y.name})")
    b.write(f"br label %{join}")
    b.open(join)
    return b.emit("double", f"phi {y.type} [ {y.name}, %{before} ], [ {replaced.name}, %{rare} ]")


@in_double
def sin(b: Builder, x: Value) -> Value:
    sine = _with_large(b, "sin", x, _sin_and_cos(b, x)[0])
    return b.select(x.eq(0.0), x, sine)


@in_double
def cos(b: Builder, x: Value) -> Value:
    return _with_large(b, "cos", x, _sin_and_cos(b, x)[1])


def atan_magnitude(b: Builder, numerator: Value, denominator: Value) -> Value:
    """arctan(numerator / denominator) of two numbers that are not negative, with one division."""
    middle = numerator.gt(denominator * TAN_EIGHTH)
    far = numerator.gt(denominator * TAN_THREE_EIGHTHS)
    top = b.select(far, -denominator, b.select(middle, numerator - denominator, numerator))
    bottom = b.select(far, numerator, b.select(middle, numerator + denominator, denominator))
    t = top / bottom
    z = t * t
    base = b.select(far, HALF_PI, b.select(middle, QUARTER_PI, b.constant("double", 0.0)))
    rest = b.select(far, HALF_PI_REST, b.select(middle, QUARTER_PI_REST, b.constant("double", 0.0)))
    return base + (b.mad(t * z, b.polynomial(z, ATAN_TERMS), rest) + t)


@in_double
def arctan(b: Builder, x: Value) -> Value:
    magnitude = atan_magnitude(b, b.fabs(x), b.constant("double", 1.0))
    infinite = b.fabs(x).eq(float("inf"))
    return b.copysign(b.select(infinite, HALF_PI, magnitude), x)
