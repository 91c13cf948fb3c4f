"""Elementwise arithmetic: sums, products, quotients, rounding, sign, maximum and minimum, selection.

The invariants: operands have equal types; on NumPy kinds the meaning is NumPy's ufunc, on Python kinds CPython's
operator. Rounding, sign and comparison-like ops have no derivative; ties follow DESIGN 8.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spmd.ir.build import Builder
from spmd.ir.core import Value
from spmd.ir.types import Num, Type
from spmd.ops import checked as python
from spmd.ops.calculus import constant, masked, quotient, rule, scaled, strong, tame
from spmd.ops.checked import fits, kept, plain
from spmd.ops.faults import checked
from spmd.ops.inference import alike, elementwise, numbers
from spmd.ops.primitive import Primitive, Samples, Site

Compute = Callable[..., tuple[Any, Any]]

FLOAT_PAIRS: Samples = (
    ((np.array([1.5, -2.0, 0.25]), np.array([0.5, 3.0, -4.0])), {}),
    ((np.float64(-1.25), np.float64(2.5)), {}),
    ((2.5, -0.75), {}),
    ((-3.5, 2.0), {}),
)
INT_PAIRS: Samples = (
    ((np.array([7, -7, 5]), np.array([2, 3, -4])), {}),
    ((np.int32(9), np.int32(-4)), {}),
    ((7, -2), {}),
    ((-9, 4), {}),
)
HUGE_PAIRS: Samples = (((2**62, 2**62 - 1), {}), ((2**63 - 1, 2**63 - 1), {}), ((-(2**63), -1), {}), ((3, 4), {}))
ZERO_DIVISORS: Samples = (((1.0, 0.0), {}), ((0.0, 0.0), {}), ((4.0, 2.0), {}), ((-4.0, 3.0), {}))
ZERO_INTEGERS: Samples = (((1, 0), {}), ((-(2**63), -1), {}), ((4, 2), {}), ((-7, 2), {}))
ONE_ARRAY: Samples = (((np.array([1.5, -2.5, 0.25, -0.75]),), {}), ((np.float64(-1.25),), {}))


def raises_on_python(kinds: str) -> Callable[[Sequence[Type], dict[str, Any]], bool]:
    """Raising exactly for Python kinds of these NumPy kind letters."""

    def raises(types: Sequence[Type], attrs: dict[str, Any]) -> bool:
        first = types[0]
        return isinstance(first, Num) and first.python and first.kind in kinds

    return raises


def rows_of(ufunc: Callable[..., Any], numpy: Callable[..., Any], **python_kinds: Compute) -> Callable[[Site], Any]:
    """The rows rule of a ufunc; `i=` and `f=` are the checked forms for Python ints and floats."""

    def rows(site: Site) -> Callable[..., Any]:
        first = site.types[0]
        if first.python and first.kind in python_kinds:
            return checked(site, numpy, python_kinds[first.kind])
        return lambda *operands: ufunc(*operands)

    return rows


def _primitive(
    name: str,
    arity: int,
    ufunc: Callable[..., Any],
    numpy: Callable[..., Any],
    kinds: str = "iuf",
    adjoint: Any = None,
    samples: tuple[Any, ...] = (),
    scalars: bool = True,
    chain: str | None = None,
    **python_kinds: Compute,
) -> Primitive:
    return Primitive(
        name,
        elementwise(name, arity, kinds, python=scalars),
        numpy,
        rows_of(ufunc, numpy, **python_kinds),
        adjoint,
        raises_on_python("".join(python_kinds)),
        name if chain is None else chain,
        samples=samples,
        errors=(ArithmeticError,),
    )


# --------------------------------------------------------------------------------------------------- derivatives
def _mul(b: Builder, ct: Value, y: Value, x: Value, w: Value) -> Sequence[Value | None]:
    return strong(b, ct, w), strong(b, ct, x)


def _strongmul(b: Builder, ct: Value, y: Value, x: Value, w: Value) -> Sequence[Value | None]:
    return strong(b, ct, tame(b, x, w)), strong(b, ct, x)


def _div(b: Builder, ct: Value, y: Value, x: Value, w: Value) -> Sequence[Value | None]:
    dx = quotient(b, ct, w)
    return dx, b.emit("neg", strong(b, dx, y))


def _mod(b: Builder, ct: Value, y: Value, x: Value, w: Value) -> Sequence[Value | None]:
    return ct, b.emit("neg", strong(b, ct, b.emit("floordiv", x, w)))


def _abs(b: Builder, ct: Value, y: Value, x: Value) -> Sequence[Value | None]:
    zero = constant(b, 0, x)
    below = masked(b, b.emit("lt", x, zero), b.emit("neg", ct))
    return (b.emit("where", b.emit("gt", x, zero), ct, below),)


def _square(b: Builder, ct: Value, y: Value, x: Value) -> Sequence[Value | None]:
    return (strong(b, ct, b.emit("add", x, x)),)


def _reciprocal(b: Builder, ct: Value, y: Value, x: Value) -> Sequence[Value | None]:
    return (b.emit("neg", strong(b, ct, b.emit("square", y))),)


def _pow(b: Builder, ct: Value, y: Value, x: Value, c: Value) -> Sequence[Value | None]:
    """c * x**(c-1), 0 at c = 0 (the exponent there is 0, so that no infinity arises); log(x) * x**c, 0 at x = 0."""
    zero, one = constant(b, 0, x), constant(b, 1, x)
    exponent = b.emit("sub", b.emit("where", b.emit("eq", c, zero), one, c), one)
    dx = strong(b, ct, b.emit("mul", c, b.emit("pow", x, exponent)))
    at_zero = b.emit("eq", x, zero)
    slope = b.emit("mul", b.emit("log", b.emit("where", at_zero, one, x)), y)
    return dx, strong(b, ct, b.emit("where", at_zero, zero, slope))


def _extremum(comparison: str) -> Callable[..., Sequence[Value | None]]:
    """The larger (smaller) operand gets the cotangent; at a tie each gets half."""

    def derive(b: Builder, ct: Value, y: Value, x: Value, w: Value) -> Sequence[Value | None]:
        tie, half = b.emit("eq", x, w), scaled(b, ct, 0.5)
        zero = constant(b, 0, ct)
        first = b.emit("where", b.emit(comparison, x, w), ct, zero)
        second = b.emit("where", b.emit(comparison, w, x), ct, zero)
        return b.emit("where", tie, half, first), b.emit("where", tie, half, second)

    return derive


def _where(b: Builder, ct: Value, y: Value, cond: Value, x: Value, w: Value) -> Sequence[Value | None]:
    zero = constant(b, 0, ct)
    return None, b.emit("where", cond, ct, zero), b.emit("where", cond, zero, ct)


# ------------------------------------------------------------------------------------------------- one example
def _python_power(x: Any, c: Any) -> Any:
    result = x**c
    if type(result) is complex:
        raise ValueError(f"{x} ** {c} is a complex number, which is not supported")
    return fits(result)


def _divided(a: Any, b: Any, ints: bool = False) -> Any:
    """True division; `ints` says that Python ints were divided, whose error has a text of its own."""
    if plain(b) and b == 0 and ints:
        return int(a) / int(b)
    return a / b


def _as_numpy(ufunc: Any) -> Callable[..., Any]:
    """The ufunc itself, for what has no meaning on Python kinds."""
    return lambda *operands: ufunc(*operands)


# ---------------------------------------------------------------------------------------------------- selection
def _infer_where(types: Sequence[Type], attrs: dict[str, Any]) -> Type:
    """A scalar condition selects anything (rows of tables too), an array's selects elementwise."""
    if len(types) != 3:
        raise TypeError(f"'where' takes 3 operands, not {len(types)}")
    (cond,) = numbers("where", types[:1])
    if cond.dtype != "bool":
        raise TypeError(f"the condition of 'where' must be bool, not {cond}")
    if types[1] != types[2]:
        raise TypeError(f"'where' needs operands of one type, not {types[1]}, {types[2]}")
    if cond.shape:
        arm = alike("where", types[1:], text=True)
        if arm.shape != cond.shape:
            raise TypeError(f"'where' needs operands of one shape, not {cond}, {arm}")
    return types[1]


def _select(cond: Any, a: Any, b: Any) -> Any:
    return np.where(cond, a, b) if np.ndim(cond) else (a if cond else b)


def _rows_where(site: Site) -> Callable[..., Any]:
    arm: Type = site.types[1]
    rank = arm.rank if isinstance(arm, Num) and not site.types[0].shape else 0

    def run(cond: Any, a: Any, b: Any) -> Any:
        if site.varying[0] and rank:
            cond = cond.reshape((-1,) + (1,) * rank)
        if isinstance(a, tuple):
            return tuple(np.where(cond, x, y) for x, y in zip(a, b))
        return np.where(cond, a, b)

    return run


def _strong_product(ct: Any, factor: Any) -> Any:
    """ct * factor, and 0 where ct is 0."""
    return np.where(np.equal(ct, 0), np.zeros((), np.result_type(ct, factor)), np.multiply(ct, factor))[()]


def _where_samples() -> tuple[Any, ...]:
    x, w = np.array([1.0, np.nan]), np.array([np.inf, -2.0])
    return (
        ((np.array([True, False]), x, w), {}),
        ((np.array([False, True]), x, w), {}),
        ((True, 1.5, -2.5), {}),
        ((False, 1.5, -2.5), {}),
        ((np.False_, np.array([1.0, 2.0]), np.array([3.0, 4.0])), {}),
        ((np.True_, np.array([1.0, 2.0]), np.array([3.0, 4.0])), {}),
    )


WHERE = Primitive(
    "where", _infer_where, _select, _rows_where, rule(_where), chain="where", samples=_where_samples()
)

ROUND: Samples = (((np.array([1.5, -2.5, 0.25, -0.75]),), {}), ((np.float64(2.5),), {}), ((-3.5,), {}))
TIES: Samples = (
    ((np.array([1.0, 2.0, np.nan]), np.array([1.0, -2.0, 0.0])), {}),
    ((np.float64(3.0), np.float64(4.0)), {}),
    ((np.int64(3), np.int64(-4)), {}),
)
POWERS: Samples = (
    ((np.array([1.5, 2.0, 0.0, -2.0]), np.array([2.0, -0.5, 2.5, 3.0])), {}),
    ((np.float64(0.0), np.float64(0.0)), {}),
    ((2.5, 1.5), {}),
    ((np.array([3, -2]), np.array([4, 3])), {}),
    ((np.int64(3), np.int64(2)), {}),
    ((np.int64(3), np.int64(-1)), {}),
    ((0.0, -1.0), {}),
    ((1e200, 3.0), {}),
)


def _raises_pow(types: Sequence[Type], attrs: dict[str, Any]) -> bool:
    return isinstance(types[0], Num) and (types[0].python or types[0].kind in "iu")


def _rows_pow(site: Site) -> Callable[..., Any]:
    if site.types[0].python:
        return checked(site, _power, python.pow_float)
    if site.types[0].kind in "iu":
        return checked(site, _power, _pow_integer_rows)
    return np.power


def _pow_integer_rows(a: Any, b: Any) -> tuple[Any, Any]:
    result, bad = python.pow_integer(a, b)
    bad = np.broadcast_to(bad, result.shape)
    return result, bad.any(tuple(range(1, bad.ndim)))


def _power(x: Any, c: Any, domain: bool = False) -> Any:
    """x ** c; `domain` asks for math.pow, whose errors differ."""
    if domain:
        return math.pow(x, c)
    return _python_power(x, c) if plain(x) else np.power(x, c)


POW = Primitive(
    "pow", elementwise("pow", 2), _power, _rows_pow, rule(_pow), _raises_pow, "pow", samples=POWERS
)

ELEMENTWISE: tuple[Primitive, ...] = (
    _primitive(
        "add", 2, np.add, lambda a, b: fits(a + b), adjoint=rule(lambda b, ct, y, x, w: (ct, ct)), i=python.add,
        samples=FLOAT_PAIRS + INT_PAIRS + HUGE_PAIRS,
    ),
    _primitive(
        "sub", 2, np.subtract, lambda a, b: fits(a - b), adjoint=rule(lambda b, ct, y, x, w: (ct, b.emit("neg", ct))),
        i=python.sub, samples=FLOAT_PAIRS + INT_PAIRS + HUGE_PAIRS,
    ),
    _primitive(
        "mul", 2, np.multiply, lambda a, b: fits(a * b), adjoint=rule(_mul), i=python.mul,
        samples=FLOAT_PAIRS + INT_PAIRS + HUGE_PAIRS,
    ),
    _primitive(
        "strongmul", 2, _strong_product, _as_numpy(_strong_product), "f", rule(_strongmul), scalars=False,
        samples=(
            ((np.array([1.5, -2.0]), np.array([0.5, 3.0])), {}),
            ((np.array([0.0, -0.0, np.nan, 2.0]), np.array([np.inf, np.nan, 0.0, np.inf])), {}),
        ),
    ),
    Primitive(
        "div", elementwise("div", 2, "f"), _divided,
        rows_of(lambda a, b: np.divide(a, b), _divided, f=python.div_float),
        rule(_div), raises_on_python("f"), "div", errors=(ArithmeticError,),
        samples=FLOAT_PAIRS + ZERO_DIVISORS + (((1.0, 0.0), {"ints": True}),),
    ),
    _primitive(
        "floordiv", 2, np.floor_divide, lambda a, b: fits(a // b), i=python.floordiv, f=python.floordiv_float,
        samples=FLOAT_PAIRS + INT_PAIRS + ZERO_DIVISORS + ZERO_INTEGERS,
    ),
    _primitive(
        "mod", 2, np.remainder, lambda a, b: fits(a % b), adjoint=rule(_mod), i=python.mod, f=python.mod_float,
        samples=FLOAT_PAIRS + INT_PAIRS + ZERO_DIVISORS + ZERO_INTEGERS,
    ),
    POW,
    _primitive(
        "neg", 1, np.negative, lambda a: fits(-a), adjoint=rule(lambda b, ct, y, x: (b.emit("neg", ct),)),
        i=python.neg, samples=ROUND + (((5,), {}), ((-(2**63),), {})),
    ),
    _primitive(
        "abs", 1, np.abs, lambda a: fits(abs(a)), adjoint=rule(_abs), i=python.absolute,
        samples=ROUND + (((np.array([0.0, -0.0]),), {}), ((-5,), {}), ((-(2**63),), {})),
    ),
    _primitive("sign", 1, np.sign, _as_numpy(np.sign), scalars=False, samples=ONE_ARRAY),
    _primitive(
        "square", 1, np.square, lambda a: a**2 if plain(a) else np.square(a), adjoint=rule(_square), kinds="iuf",
        f=python.square_float, samples=ROUND + (((1e200,), {}),),
    ),
    _primitive(
        "reciprocal", 1, np.reciprocal, _as_numpy(np.reciprocal), "f", rule(_reciprocal), scalars=False,
        samples=ONE_ARRAY,
    ),
    _primitive(
        "maximum", 2, np.maximum, _as_numpy(np.maximum), adjoint=rule(_extremum("gt")), scalars=False, samples=TIES
    ),
    _primitive(
        "minimum", 2, np.minimum, _as_numpy(np.minimum), adjoint=rule(_extremum("lt")), scalars=False, samples=TIES
    ),
    _primitive("floor", 1, np.floor, kept(np.floor), "f", samples=ROUND),
    _primitive("ceil", 1, np.ceil, kept(np.ceil), "f", samples=ROUND),
    _primitive("rint", 1, np.rint, kept(np.rint), "f", samples=ROUND, chain="round"),
    _primitive("trunc", 1, np.trunc, kept(np.trunc), "f", samples=ROUND),
    WHERE,
)
