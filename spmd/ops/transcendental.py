"""Elementary functions: exponentials, logarithms, trigonometry, hyperbolics, square root.

The invariants: float operands only; on NumPy kinds the meaning is NumPy's (IEEE results, nothing raises), on Python
floats that of the math module (ValueError, OverflowError). Derivatives use the result where that is cheaper.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spmd.ir.build import Builder
from spmd.ir.core import Value
from spmd.ops.calculus import constant, quotient, rule, strong
from spmd.ops.checked import defined
from spmd.ops.elementwise import raises_on_python
from spmd.ops.faults import checked
from spmd.ops.inference import elementwise
from spmd.ops.primitive import Primitive, Samples, Site

Cotangents = Sequence["Value | None"]

ANY: Samples = (((np.array([-1.5, 0.25, 2.0, -0.0]),), {}), ((np.float64(0.75),), {}), ((-0.5,), {}), ((1.25,), {}))
POSITIVE: Samples = (((np.array([0.25, 1.0, 3.5]),), {}), ((np.float64(2.0),), {}), ((0.5,), {}), ((4.0,), {}))
UNIT: Samples = (((np.array([-0.75, 0.0, 0.5]),), {}), ((np.float64(0.25),), {}), ((-0.25,), {}))
SPECIAL: Samples = (((np.array([np.inf, -np.inf, np.nan, 0.0]),), {}),)
BAD: Samples = tuple((((x,), {})) for x in (0.0, -1.0, -2.0, math.inf, math.nan, 1e308))
PAIRS: Samples = (
    ((np.array([1.5, -2.0, 0.25]), np.array([0.5, 3.0, -4.0])), {}),
    ((np.float64(-1.25), np.float64(2.5)), {}),
    ((2.5, -0.75), {}),
)


def _twin(ufunc: Callable[..., Any], function: Callable[..., float]) -> Callable[..., Any]:
    """One example's meaning: the math module's function for Python floats, else the ufunc."""

    def apply(*operands: Any) -> Any:
        return function(*operands) if type(operands[0]) is float else ufunc(*operands)

    return apply


def _rows(ufunc: Callable[..., Any], numpy: Callable[..., Any], raising: bool) -> Callable[[Site], Any]:
    def compute(*operands: Any) -> tuple[Any, Any]:
        result = ufunc(*operands)
        return result, defined(result, *operands)

    def rows(site: Site) -> Callable[..., Any]:
        if site.types[0].python and raising:
            return checked(site, numpy, compute)
        return lambda *operands: ufunc(*operands)

    return rows


def function_of_floats(
    name: str,
    ufunc: Callable[..., Any],
    function: Callable[..., float],
    derive: Callable[..., Cotangents],
    samples: tuple[Any, ...],
    raising: bool = True,
    arity: int = 1,
    chain: str | None = None,
    kinds: str = "f",
) -> Primitive:
    """A function that NumPy has as a ufunc and math as a function; `chain` is '' where no kernel has it."""
    numpy = _twin(ufunc, function)
    return Primitive(
        name,
        elementwise(name, arity, kinds),
        numpy,
        _rows(ufunc, numpy, raising),
        rule(derive),
        raises_on_python("f" if raising else ""),
        name if chain is None else chain,
        pointwise=True,
        samples=samples,
        errors=(ValueError, OverflowError),
    )


# ------------------------------------------------------------------------------------------------- derivatives
def _one_minus_square(b: Builder, x: Value) -> Value:
    return b.emit("sub", constant(b, 1, x), b.emit("square", x))


def _one_plus_square(b: Builder, x: Value) -> Value:
    return b.emit("add", constant(b, 1, x), b.emit("square", x))


def _exp(b: Builder, ct: Value, y: Value, x: Value) -> Cotangents:
    return (strong(b, ct, y),)


def _expm1(b: Builder, ct: Value, y: Value, x: Value) -> Cotangents:
    return (strong(b, ct, b.emit("add", y, constant(b, 1, y))),)


def _log(b: Builder, ct: Value, y: Value, x: Value) -> Cotangents:
    return (quotient(b, ct, x),)


def _log1p(b: Builder, ct: Value, y: Value, x: Value) -> Cotangents:
    return (quotient(b, ct, b.emit("add", x, constant(b, 1, x))),)


def _log_base(base: float) -> Callable[..., Cotangents]:
    def derive(b: Builder, ct: Value, y: Value, x: Value) -> Cotangents:
        return (quotient(b, ct, b.emit("mul", x, constant(b, math.log(base), x))),)

    return derive


def _sqrt(b: Builder, ct: Value, y: Value, x: Value) -> Cotangents:
    return (quotient(b, ct, b.emit("add", y, y)),)


def _sin(b: Builder, ct: Value, y: Value, x: Value) -> Cotangents:
    return (strong(b, ct, b.emit("cos", x)),)


def _cos(b: Builder, ct: Value, y: Value, x: Value) -> Cotangents:
    return (b.emit("neg", strong(b, ct, b.emit("sin", x))),)


def _tan(b: Builder, ct: Value, y: Value, x: Value) -> Cotangents:
    return (strong(b, ct, _one_plus_square(b, y)),)


def _sinh(b: Builder, ct: Value, y: Value, x: Value) -> Cotangents:
    return (strong(b, ct, b.emit("cosh", x)),)


def _cosh(b: Builder, ct: Value, y: Value, x: Value) -> Cotangents:
    return (strong(b, ct, b.emit("sinh", x)),)


def _tanh(b: Builder, ct: Value, y: Value, x: Value) -> Cotangents:
    return (strong(b, ct, _one_minus_square(b, y)),)


def _sigmoid(b: Builder, ct: Value, y: Value, x: Value) -> Cotangents:
    return (strong(b, ct, b.emit("mul", y, b.emit("sub", constant(b, 1, y), y))),)


def _arcsin(b: Builder, ct: Value, y: Value, x: Value) -> Cotangents:
    return (quotient(b, ct, b.emit("sqrt", _one_minus_square(b, x))),)


def _arccos(b: Builder, ct: Value, y: Value, x: Value) -> Cotangents:
    return (b.emit("neg", quotient(b, ct, b.emit("sqrt", _one_minus_square(b, x)))),)


def _arctan(b: Builder, ct: Value, y: Value, x: Value) -> Cotangents:
    return (quotient(b, ct, _one_plus_square(b, x)),)


def _arctan2(b: Builder, ct: Value, y: Value, p: Value, q: Value) -> Cotangents:
    scale = quotient(b, ct, b.emit("add", b.emit("square", p), b.emit("square", q)))
    return strong(b, scale, q), b.emit("neg", strong(b, scale, p))


def _hypot(b: Builder, ct: Value, y: Value, p: Value, q: Value) -> Cotangents:
    """The derivative of a norm, which is 0 at the origin."""
    zero, one = constant(b, 0, y), constant(b, 1, y)
    scale = quotient(b, ct, b.emit("where", b.emit("eq", y, zero), one, y))
    return strong(b, scale, p), strong(b, scale, q)


def logistic(x: Any) -> Any:
    """1 / (1 + exp(-x)), without overflow on either side."""
    e = np.exp(-np.abs(x))
    return np.where(np.isnan(x), x, np.where(x >= 0, 1 / (1 + e), e / (1 + e)))[()]


def _sigmoid_rule(x: Any) -> Any:
    return float(logistic(np.float64(x))) if type(x) is float else logistic(x)


SIGMOID = Primitive(
    "sigmoid",
    elementwise("sigmoid", 1, "f"),
    _sigmoid_rule,
    lambda site: logistic,
    rule(_sigmoid),
    chain="sigmoid",
    samples=ANY + SPECIAL,
)

TRANSCENDENTAL: tuple[Primitive, ...] = (
    function_of_floats("sqrt", np.sqrt, math.sqrt, _sqrt, POSITIVE + BAD + SPECIAL),
    function_of_floats("exp", np.exp, math.exp, _exp, ANY + BAD + SPECIAL),
    function_of_floats("expm1", np.expm1, math.expm1, _expm1, ANY + BAD + SPECIAL),
    function_of_floats("log", np.log, math.log, _log, POSITIVE + BAD + SPECIAL),
    function_of_floats("log1p", np.log1p, math.log1p, _log1p, POSITIVE + BAD + SPECIAL),
    function_of_floats("log2", np.log2, math.log2, _log_base(2.0), POSITIVE + BAD + SPECIAL),
    function_of_floats("log10", np.log10, math.log10, _log_base(10.0), POSITIVE + BAD + SPECIAL),
    function_of_floats("sin", np.sin, math.sin, _sin, ANY + BAD[3:5]),
    function_of_floats("cos", np.cos, math.cos, _cos, ANY + BAD[3:5]),
    function_of_floats("tan", np.tan, math.tan, _tan, ANY + BAD[3:5]),
    function_of_floats("sinh", np.sinh, math.sinh, _sinh, ANY + BAD + SPECIAL),
    function_of_floats("cosh", np.cosh, math.cosh, _cosh, ANY + BAD + SPECIAL),
    function_of_floats("tanh", np.tanh, math.tanh, _tanh, ANY + SPECIAL, raising=False),
    function_of_floats("arcsin", np.arcsin, math.asin, _arcsin, UNIT + BAD),
    function_of_floats("arccos", np.arccos, math.acos, _arccos, UNIT + BAD),
    function_of_floats("arctan", np.arctan, math.atan, _arctan, ANY + SPECIAL, raising=False),
    function_of_floats("arctan2", np.arctan2, math.atan2, _arctan2, PAIRS, raising=False, arity=2),
    function_of_floats("hypot", np.hypot, math.hypot, _hypot, PAIRS, raising=False, arity=2),
    SIGMOID,
)
