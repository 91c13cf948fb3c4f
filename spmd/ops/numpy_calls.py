"""The table from functions and methods that people call to the rules that make primitives of them.

The invariant: a rule takes (builder, arguments, keywords). An argument is a value, a constant, or a tuple or list of
those; the result is a value, a constant, or a tuple of those. A method's first argument is its object. What has no rule
here is no function of the compiler.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from spmd.ir.build import Builder
from spmd.ir.core import Value
from spmd.ops.arguments import array, bind, dtype_of, needed, scalar_only, sizes_of_shape, static_int
from spmd.ops.calculus import num
from spmd.ops.numpy_contractions import CONTRACTION_CALLS, dot
from spmd.ops.numpy_creation import CREATION_CALLS
from spmd.ops.numpy_elementwise import ELEMENTWISE_CALLS, Rule, clipped, converted, rounded
from spmd.ops.numpy_floats import FLOAT_CALLS
from spmd.ops.numpy_layouts import LAYOUT_CALLS
from spmd.ops.numpy_linalg import LINALG_CALLS
from spmd.ops.numpy_norms import NORM_CALLS
from spmd.ops.numpy_products import PRODUCT_CALLS
from spmd.ops.numpy_rearranging import REARRANGING_CALLS
from spmd.ops.numpy_reductions import REDUCTION_CALLS
from spmd.ops.numpy_scans import SCAN_CALLS
from spmd.ops.numpy_shapes import SHAPE_CALLS, flattened, reshaped, squeezed, swapped_axes, transposed
from spmd.ops.numpy_sorting import SORTING_CALLS, compressed
from spmd.ops.numpy_statistics import STATISTICS_CALLS
from spmd.ops.primitive import Refusal
from spmd.ops.promotion import as_value, cast, type_name
from spmd.ops.python_calls import PYTHON_CALLS
from spmd.ops.scipy_calls import scipy_rule

NUMPY: dict[Any, Rule] = {
    **ELEMENTWISE_CALLS, **FLOAT_CALLS, **REDUCTION_CALLS, **SHAPE_CALLS, **CREATION_CALLS, **PYTHON_CALLS,
    **CONTRACTION_CALLS, **PRODUCT_CALLS, **LINALG_CALLS, **NORM_CALLS, **SCAN_CALLS, **SORTING_CALLS,
    **STATISTICS_CALLS, **REARRANGING_CALLS, **LAYOUT_CALLS,
}


def rule_of(function: Any) -> Rule | None:
    """The rule of a function that people call, if it has one."""
    return NUMPY.get(function) or scipy_rule(function)


def _by_name(name: str) -> Rule:
    """A method that is the NumPy function of its name."""
    rule = NUMPY[getattr(np, name)]
    return _method(name, lambda b, x, args, kwargs: rule(b, [x, *args], kwargs))


def _method(name: str, run: Callable[[Builder, Value, list[Any], dict[str, Any]], Any]) -> Rule:
    def rule(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Any:
        owner, *rest = args
        if num(owner).python or num(owner).text:
            raise AttributeError(f"'{type_name(num(owner))}' object has no attribute '{name}'")
        return run(b, as_value(b, owner), rest, kwargs)

    return rule


def _reshape(b: Builder, x: Value, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bind("reshape", "-order -copy", [], kwargs)
    shape = args[0] if len(args) == 1 else args
    return reshaped(b, x, sizes_of_shape(b, "reshape", shape))


def _transpose(b: Builder, x: Value, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bind("transpose", "", [], kwargs)
    axes = args[0] if len(args) == 1 and (args[0] is None or isinstance(args[0], (tuple, list))) else args or None
    return transposed(b, x, axes)


def _astype(b: Builder, x: Value, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("astype", "dtype -order -casting -subok copy", args, kwargs)
    return converted(b, x, dtype_of(*needed("astype", bound, "dtype")))


def _copy(b: Builder, x: Value, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bind("copy", "-order", args, kwargs)
    return x


def _flatten(b: Builder, x: Value, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bind("flatten", "-order", args, kwargs)
    return flattened(b, x)


def _squeeze(b: Builder, x: Value, args: list[Any], kwargs: dict[str, Any]) -> Value:
    return squeezed(b, x, bind("squeeze", "axis", args, kwargs).get("axis"))


def _swapaxes(b: Builder, x: Value, args: list[Any], kwargs: dict[str, Any]) -> Value:
    return swapped_axes(b, x, *needed("swapaxes", bind("swapaxes", "axis1 axis2", args, kwargs), "axis1", "axis2"))


def _dot(b: Builder, x: Value, args: list[Any], kwargs: dict[str, Any]) -> Value:
    return dot(b, x, array(b, *needed("dot", bind("dot", "b -out", args, kwargs), "b")))


def _clip(b: Builder, x: Value, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("clip", "min max -out", args, kwargs)
    return clipped(b, x, bound.get("min"), bound.get("max"))


def _round(b: Builder, x: Value, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("round", "decimals -out", args, kwargs)
    return rounded(b, x, static_int(b, "round", "the number of decimals", bound.get("decimals", 0)))


def _item(b: Builder, x: Value, args: list[Any], kwargs: dict[str, Any]) -> Value:
    """x.item(): a Python number."""
    bind("item", "-args", args, kwargs)
    if num(x).static and num(x).size == 1 and num(x).shape:
        x = b.emit("reshape", x, shape=())
    if num(x).shape:
        raise ValueError("can only convert an array of size 1 to a Python scalar")
    kind = scalar_only(x).kind
    if kind == "f":
        return cast(b, x, "float64", True)
    return cast(b, x, "bool" if kind == "b" else "int64", True)


def _compress(b: Builder, x: Value, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("compress", "condition axis -out", args, kwargs)
    return compressed(b, array(b, *needed("compress", bound, "condition")), x, bound.get("axis"))


def _same(b: Builder, x: Value, args: list[Any], kwargs: dict[str, Any]) -> Value:
    """x.conj() of real numbers: the array itself."""
    bind("conj", "", args, kwargs)
    return x


def _in_place(name: str) -> Rule:
    """A method that changes its array."""

    def run(b: Builder, x: Value, args: list[Any], kwargs: dict[str, Any]) -> Value:
        raise Refusal(f"the method '{name}' changes the array, which is not supported", f"use x = np.{name}(x, ...).")

    return _method(name, run)


METHODS: dict[str, Rule] = {
    **{
        name: _by_name(name)
        for name in (
            "sum", "prod", "mean", "var", "std", "max", "min", "argmax", "argmin", "any", "all", "take", "cumsum",
            "cumprod", "argsort", "searchsorted", "diagonal", "trace", "nonzero", "repeat",
        )
    },
    "compress": _method("compress", _compress),
    "conj": _method("conj", _same),
    "conjugate": _method("conjugate", _same),
    "sort": _in_place("sort"),
    "reshape": _method("reshape", _reshape),
    "transpose": _method("transpose", _transpose),
    "astype": _method("astype", _astype),
    "copy": _method("copy", _copy),
    "flatten": _method("flatten", _flatten),
    "ravel": _method("ravel", _flatten),
    "squeeze": _method("squeeze", _squeeze),
    "swapaxes": _method("swapaxes", _swapaxes),
    "dot": _method("dot", _dot),
    "clip": _method("clip", _clip),
    "round": _method("round", _round),
    "item": _method("item", _item),
}
