"""Operations on Python's own numbers: 64-bit integers that must not overflow, and floats that raise as CPython does.

Invariant: a checked operation computes something harmless in every lane and reports the lanes in which CPython would
raise, with the reason; it never traps. Must not know how failures are recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

from spmd.backend.simd import arithmetic
from spmd.backend.simd.elementary_exp import exp, expm1
from spmd.backend.simd.elementary_log import log, log1p, log2, log10
from spmd.backend.simd.elementary_power import is_integer, power
from spmd.backend.simd.elementary_trig import cos, sin
from spmd.backend.simd.vector import Builder, Value


class Failure(IntEnum):
    """Why a checked operation fails, as written into the error array of a chain."""

    OVERFLOW = 1
    """An integer beyond 64 bits, or a float function's finite argument with an infinite result: OverflowError."""
    ZERO_DIVISION = 2
    """ZeroDivisionError."""
    DOMAIN = 3
    """Outside of a function's domain, as math.log(0): ValueError."""
    NOT_A_NUMBER = 4
    """int() of NaN: ValueError."""
    INFINITE = 5
    """int() of an infinity: OverflowError."""
    COMPLEX = 6
    """A negative float to a fractional power: a complex number in CPython."""


Fail = Callable[[Value, Failure], None]


def _with_overflow(b: Builder, name: str, x: Value, y: Value) -> tuple[Value, Value]:
    pair = f"{{ {x.type}, {b.vector('i1')} }}"
    function = f"@llvm.{name}.with.overflow.{b.suffix('i64')}"
    b.declarations.add(f"declare {pair} {function}({x.type}, {x.type})")
    both = b.scalar(f"call {pair} {function}({x.type} {x.name}, {x.type} {y.name})")
    return b.emit("i64", f"extractvalue {pair} {both}, 0"), b.emit("i1", f"extractvalue {pair} {both}, 1")


def _integer_arithmetic(name: str) -> Callable[..., Value]:
    def emit(b: Builder, dtype: str, fail: Fail, x: Value, y: Value) -> Value:
        result, over = _with_overflow(b, name, x, y)
        fail(over, Failure.OVERFLOW)
        return result

    return emit


add = _integer_arithmetic("sadd")
sub = _integer_arithmetic("ssub")
mul = _integer_arithmetic("smul")


def neg(b: Builder, dtype: str, fail: Fail, x: Value) -> Value:
    fail(x.eq(arithmetic.lowest(x)), Failure.OVERFLOW)
    return -x


def absolute(b: Builder, dtype: str, fail: Fail, x: Value) -> Value:
    fail(x.eq(arithmetic.lowest(x)), Failure.OVERFLOW)
    return arithmetic.absolute(b, dtype, x)


def floor_divide(b: Builder, dtype: str, fail: Fail, x: Value, y: Value) -> Value:
    fail(y.eq(0), Failure.ZERO_DIVISION)
    if dtype == "int64":
        fail(x.eq(arithmetic.lowest(x)) & y.eq(-1), Failure.OVERFLOW)
    return arithmetic.floor_divide(b, dtype, x, y)


def remainder(b: Builder, dtype: str, fail: Fail, x: Value, y: Value) -> Value:
    fail(y.eq(0), Failure.ZERO_DIVISION)
    return arithmetic.remainder(b, dtype, x, y)


def divide(b: Builder, dtype: str, fail: Fail, x: Value, y: Value) -> Value:
    fail(y.eq(0.0), Failure.ZERO_DIVISION)
    return x / y


def to_integer(b: Builder, dtype: str, fail: Fail, x: Value) -> Value:
    """int(x): towards zero; fails for NaN, infinities and numbers beyond 64 bits."""
    fail(x.unordered(), Failure.NOT_A_NUMBER)
    fail(arithmetic.infinite(b, x), Failure.INFINITE)
    fail(arithmetic.finite(b, x) & ~arithmetic.in_range(x, "i64"), Failure.OVERFLOW)
    return arithmetic.to_signed(b, x, "i64")


def _may_overflow(function: Callable[[Builder, Value], Value]) -> Callable[..., Value]:
    def emit(b: Builder, dtype: str, fail: Fail, x: Value) -> Value:
        result = function(b, x)
        fail(arithmetic.infinite(b, result) & arithmetic.finite(b, x), Failure.OVERFLOW)
        return result

    return emit


def _above(function: Callable[[Builder, Value], Value], bound: float, included: bool) -> Callable[..., Value]:
    def emit(b: Builder, dtype: str, fail: Fail, x: Value) -> Value:
        fail(x.compare("lt" if included else "le", bound), Failure.DOMAIN)
        return function(b, x)

    return emit


def _finite_only(function: Callable[[Builder, Value], Value]) -> Callable[..., Value]:
    """A function that has no value at the infinities, such as math.sin."""

    def emit(b: Builder, dtype: str, fail: Fail, x: Value) -> Value:
        fail(arithmetic.infinite(b, x), Failure.DOMAIN)
        return function(b, x)

    return emit


def power_checked(b: Builder, dtype: str, fail: Fail, x: Value, y: Value) -> Value:
    """x ** y of Python floats: zero to a negative power, a negative number to a fraction, and overflow fail."""
    both_finite = arithmetic.finite(b, x) & arithmetic.finite(b, y)
    fail(both_finite & x.eq(0.0) & y.lt(0.0), Failure.ZERO_DIVISION)
    fail(both_finite & x.lt(0.0) & ~is_integer(b, y), Failure.COMPLEX)
    result = power(b, x, y)
    fail(both_finite & arithmetic.infinite(b, result) & x.ne(0.0), Failure.OVERFLOW)
    return result


exp_checked = _may_overflow(exp)
expm1_checked = _may_overflow(expm1)
log_checked = _above(log, 0.0, False)
log2_checked = _above(log2, 0.0, False)
log10_checked = _above(log10, 0.0, False)
log1p_checked = _above(log1p, -1.0, False)
sqrt_checked = _above(lambda b, x: b.sqrt(x), 0.0, True)
sin_checked = _finite_only(sin)
cos_checked = _finite_only(cos)
