"""scipy.special, as primitives, in programs that use it.

The invariant: SciPy is never imported here. The rules are kept by name; `scipy_rule` looks a function up among those of
the module that the program has imported, so that there is nothing to find where nobody has.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from spmd.ir.build import Builder
from spmd.ir.core import Value
from spmd.ops.arguments import array, axes_of, bind, needed, operand, static_bool, static_int
from spmd.ops.calculus import constant, num, restored
from spmd.ops.numpy_elementwise import UNSUPPORTED, Rule
from spmd.ops.numpy_floats import in_loop
from spmd.ops.operators import binary
from spmd.ops.primitive import Refusal
from spmd.ops.promotion import broadcast_together, cast


def _floats(b: Builder, title: str, count: int, args: list[Any], kwargs: dict[str, Any]) -> list[Value]:
    """The operands in the dtype that SciPy's loop computes in, in one shape."""
    names = ["x"] if count == 1 else [f"x{k + 1}" for k in range(count)]
    bound = bind(title, " ".join(names) + UNSUPPORTED, args, kwargs)
    own = getattr(sys.modules["scipy.special"], title.rsplit(".", 1)[-1])
    return in_loop(b, own, [operand(b, x) for x in needed(title, bound, *names)])


def _function(name: str, primitive: str, count: int = 1) -> Rule:
    def rule(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
        return b.emit(primitive, *_floats(b, f"scipy.special.{name}", count, args, kwargs))

    return rule


def _digamma(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    return b.emit("polygamma", *_floats(b, "scipy.special.digamma", 1, args, kwargs), n=0)


def _polygamma(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("scipy.special.polygamma", "n x", args, kwargs)
    n, x = needed("scipy.special.polygamma", bound, "n", "x")
    order = static_int(b, "scipy.special.polygamma", "the order", n)
    if order < 0:
        raise Refusal("scipy.special.polygamma takes orders from 0")
    return b.emit("polygamma", cast(b, array(b, x), "float64"), n=order)


def _logit(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    """log(p / (1 - p)); near 1/2, where that is near 0, by the distance from there."""
    (p,) = _floats(b, "scipy.special.logit", 1, args, kwargs)
    zero, one, half = (constant(b, v, p) for v in (0.0, 1.0, 0.5))
    distance = b.emit("sub", p, half)
    near = b.emit("lt", b.emit("abs", distance), constant(b, 0.2, p))
    small = b.emit("where", near, b.emit("add", distance, distance), zero)
    inner = b.emit("sub", b.emit("log1p", small), b.emit("log1p", b.emit("neg", small)))
    safe = b.emit("where", near, half, p)
    return b.emit("where", near, inner, b.emit("log", b.emit("div", safe, b.emit("sub", one, safe))))


def _log_expit(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    (x,) = _floats(b, "scipy.special.log_expit", 1, args, kwargs)
    return b.emit("neg", _softplus(b, b.emit("neg", x)))


def _softplus(b: Builder, x: Value) -> Value:
    """log(1 + exp(x)), without overflow."""
    rest = b.emit("log1p", b.emit("exp", b.emit("neg", b.emit("abs", x))))
    zero = constant(b, 0, x)
    above = b.emit("where", b.emit("gt", x, zero), x, zero)
    found = b.emit("add", above, b.emit("where", b.emit("isnan", x), x, rest))
    return _smooth_at_zero(b, x, found)


def _smooth_at_zero(b: Builder, x: Value, found: Value) -> Value:
    """At 0, where abs and where have derivative 0, the function is log(2) + x / 2."""
    zero = b.emit("eq", x, constant(b, 0, x))
    line = b.emit("add", b.emit("mul", x, constant(b, 0.5, x)), constant(b, math.log(2.0), x))
    return b.emit("where", zero, line, found)


def _entr(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    (x,) = _floats(b, "scipy.special.entr", 1, args, kwargs)
    below = b.emit("lt", x, constant(b, 0, x))
    safe = b.emit("where", below, constant(b, 1, x), x)
    return b.emit("where", below, constant(b, -np.inf, x), b.emit("neg", b.emit("xlogy", safe, safe)))


def _rel_entr(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    """x * log(x / y) of positive numbers, 0 at x = 0 <= y, infinite elsewhere."""
    x, y = _floats(b, "scipy.special.rel_entr", 2, args, kwargs)
    zero, one = constant(b, 0, x), constant(b, 1, x)
    both = b.emit("logical_and", b.emit("gt", x, zero), b.emit("gt", y, zero))
    p, q = (b.emit("where", both, v, one) for v in (x, y))
    product = b.emit("mul", p, b.emit("log", b.emit("div", p, q)))
    nothing = b.emit("logical_and", b.emit("eq", x, zero), b.emit("ge", y, zero))
    found = b.emit("where", both, product, b.emit("where", nothing, zero, constant(b, np.inf, x)))
    unknown = b.emit("logical_or", b.emit("isnan", x), b.emit("isnan", y))
    return b.emit("where", unknown, constant(b, np.nan, x), found)


def _ndtr(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    (x,) = _floats(b, "scipy.special.ndtr", 1, args, kwargs)
    scaled = b.emit("mul", x, constant(b, -math.sqrt(0.5), x))
    return b.emit("mul", b.emit("erfc", scaled), constant(b, 0.5, x))


# ------------------------------------------------------------------------------------------------------ along axes
def _shifted(b: Builder, x: Value, axes: tuple[int, ...]) -> tuple[Value, Value]:
    """(x - its maximum along the axes, that maximum; 0 where it is infinite)."""
    top = b.emit("max", x, axes=axes, keepdims=True) if axes else x
    top = b.emit("where", b.emit("isfinite", top), top, constant(b, 0, top))
    return b.emit("sub", x, restored(b, top, x, axes, True)), top


def _real(b: Builder, title: str, x: Any) -> Value:
    value = array(b, x)
    return cast(b, value, "float64") if num(value).kind in "biu" else value


def _logsumexp(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    title = "scipy.special.logsumexp"
    bound = bind(title, "a axis b keepdims return_sign", args, kwargs)
    x = _real(b, title, *needed(title, bound, "a"))
    if static_bool(b, title, "return_sign", bound.get("return_sign", False)):
        raise Refusal("the argument 'return_sign' of scipy.special.logsumexp is not supported")
    axes = axes_of(b, title, bound.get("axis"), num(x).rank)
    if any(num(x).shape[k] == 0 for k in axes):
        raise Refusal(f"{title} of no elements is not supported")
    keepdims = static_bool(b, title, "keepdims", bound.get("keepdims", False))
    factors = None
    if bound.get("b") is not None:
        factors = array(b, bound["b"])
        dtype = str(np.result_type(num(x).dtype, num(factors).dtype))
        x, factors = broadcast_together(b, [cast(b, v, dtype) for v in (x, factors)])
        nothing = b.emit("eq", factors, constant(b, 0, factors))
        x = b.emit("where", nothing, constant(b, -np.inf, x), x)
    moved, top = _shifted(b, x, axes)
    powers = b.emit("exp", moved)
    if factors is not None:
        powers = b.emit("mul", factors, powers)
    total = b.emit("sum", powers, axes=axes, keepdims=keepdims)
    if not keepdims and axes:
        top = b.emit("sum", top, axes=axes, keepdims=False)
    return b.emit("add", b.emit("log", total), top)


def _softmax(logarithm: bool) -> Rule:
    title = "scipy.special." + ("log_softmax" if logarithm else "softmax")

    def rule(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
        bound = bind(title, "x axis", args, kwargs)
        x = _real(b, title, *needed(title, bound, "x"))
        axes = axes_of(b, title, bound.get("axis"), num(x).rank)
        if any(num(x).shape[k] == 0 for k in axes):
            raise ValueError("zero-size array to reduction operation maximum which has no identity")
        moved = _shifted(b, x, axes)[0] if logarithm else _whole_shift(b, x, axes)
        powers = b.emit("exp", moved)
        total = b.emit("sum", powers, axes=axes, keepdims=True) if axes else powers
        if logarithm:
            return b.emit("sub", moved, restored(b, b.emit("log", total), x, axes, True))
        return b.emit("div", powers, restored(b, total, x, axes, True))

    return rule


def _whole_shift(b: Builder, x: Value, axes: tuple[int, ...]) -> Value:
    """x - its maximum along the axes, whatever that is."""
    top = b.emit("max", x, axes=axes, keepdims=True) if axes else x
    return binary(b, "-", x, restored(b, top, x, axes, True))


RULES: dict[str, Rule] = {
    **{name: _function(name, name) for name in ("erf", "erfc", "gamma", "cbrt", "exp2", "expm1", "log1p")},
    "expit": _function("expit", "sigmoid"),
    "gammaln": _function("gammaln", "lgamma"),
    "xlogy": _function("xlogy", "xlogy", 2),
    "digamma": _digamma,
    "psi": _digamma,
    "polygamma": _polygamma,
    "logit": _logit,
    "log_expit": _log_expit,
    "entr": _entr,
    "rel_entr": _rel_entr,
    "ndtr": _ndtr,
    "logsumexp": _logsumexp,
    "softmax": _softmax(False),
    "log_softmax": _softmax(True),
}

_found: dict[Any, Rule] = {}


def scipy_rule(function: Any) -> Rule | None:
    """The rule of a function of scipy.special, if that is what it is."""
    module = sys.modules.get("scipy.special")
    if module is None:
        return None
    if not _found:
        names = [name for name in RULES if hasattr(module, name)]
        _found.update((getattr(module, name), RULES[name]) for name in names)
    return _found.get(function)
