"""Functions of Python's builtins and math module on numbers, as primitives.

The invariants: math's functions take and give Python floats, whatever number comes in, and raise as CPython's do;
builtins give the kind that CPython gives.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

from spmd.ir.build import Builder
from spmd.ir.core import Value
from spmd.ir.types import join
from spmd.ops.arguments import scalar_only, static_int
from spmd.ops.calculus import num
from spmd.ops.math_calls import MATH_CALLS, positional, python_float, python_int
from spmd.ops.numpy_elementwise import Rule, absolute, rounded
from spmd.ops.operators import binary, python_bool
from spmd.ops.primitive import Refusal
from spmd.ops.promotion import as_value, cast, common_python, constant_of


def _with_last(name: str, args: list[Any], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments with the keyword of this name as the last positional one."""
    if name not in kwargs:
        return args, kwargs
    return [*args, kwargs[name]], {k: v for k, v in kwargs.items() if k != name}


# ----------------------------------------------------------------------------------------------------- builtins
def _abs(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    value = as_value(b, *positional("abs", args, kwargs, 1, 1))
    if not num(value).python:
        return absolute(b, value)
    return b.emit("abs", cast(b, value, common_python((num(value),)), True))


def _extremum(name: str) -> Rule:
    """max() and min() of scalars: the kinds of all are joined, as the paths of an `if` are."""

    def rule(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
        if kwargs:
            raise Refusal(f"{name}() takes no keywords here")
        items: Sequence[Any] = args
        if len(args) == 1:
            if not isinstance(args[0], (tuple, list)):
                raise Refusal(f"{name}() of an array is not supported", f"use np.{name}.")
            items = args[0]
            if not items:
                raise ValueError(f"{name}() iterable argument is empty")
        values = [as_value(b, x) for x in items]
        if any(num(v).shape for v in values):
            raise Refusal(f"{name}() of arrays compares them as a whole", f"use np.{name}imum.")
        result = values[0]
        for value in values[1:]:
            result = _pair(b, name, result, value)
        return result

    return rule


def _pair(b: Builder, name: str, x: Value, y: Value) -> Value:
    type_ = join(x.type, y.type)
    if type_ is None:
        raise TypeError(f"'>' not supported between instances of '{x.type}' and '{y.type}'")
    ready = [cast(b, v, type_.dtype, type_.python) for v in (x, y)]  # type: ignore[union-attr]
    return b.emit(f"py{name}", *ready)


def _round(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    x, *digits = positional("round", *_with_last("ndigits", args, kwargs), 1, 2)
    value = as_value(b, x)
    if not num(value).python and num(value).dtype == "bool":
        raise TypeError("type numpy.bool doesn't define __round__ method")
    if not digits or digits[0] is None:
        if scalar_only(value).kind in "biu":
            return python_int(b, value)
        return b.emit("round", python_float(b, value))
    count = static_int(b, "round()", "the number of digits", digits[0])
    if num(value).python and num(value).kind == "f":
        raise Refusal("round() of a Python float to a number of digits is not supported", "use np.round.")
    if num(value).python:
        if count < 0:
            raise Refusal("round() of an int to tens is not supported")
        return python_int(b, value)
    return rounded(b, value, count)


def _sum(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    items, *start = positional("sum", *_with_last("start", args, kwargs), 1, 2)
    total: Any = start[0] if start else 0
    if isinstance(items, Value):
        return _sum_of_array(b, items, total)
    if not isinstance(items, (tuple, list)):
        raise Refusal("sum() takes a list, a tuple or an array")
    for item in items:
        total = binary(b, "+", total, item)
    return as_value(b, total)


def _sum_of_array(b: Builder, items: Value, start: Any) -> Value:
    """sum() of an array adds its rows."""
    type_ = num(items)
    if not type_.rank:
        raise TypeError("iteration over a 0-d array")
    dtype = "int64" if type_.dtype == "bool" else type_.dtype
    total = b.emit("sum", cast(b, items, dtype), axes=(0,), keepdims=False)
    return total if constant_of(b, start) == 0 else binary(b, "+", start, total)


def _float(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    given = positional("float", args, kwargs, 0, 1)
    if given and isinstance(given[0], str):
        return b.const(float(given[0]))
    return python_float(b, given[0]) if given else b.const(0.0)


def _int(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    given = positional("int", args, kwargs, 0, 1)
    if given and isinstance(given[0], str):
        return b.const(int(given[0]))
    return python_int(b, given[0]) if given else b.const(0)


def _bool(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    given = positional("bool", args, kwargs, 0, 1)
    return python_bool(b, given[0]) if given else b.const(False)


def _pow(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    x, y = positional("pow", args, kwargs, 2, 2)
    return binary(b, "**", x, y)


def _divmod(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> tuple[Value, Value]:
    x, y = (as_value(b, v) for v in positional("divmod", args, kwargs, 2, 2))
    return binary(b, "//", x, y), binary(b, "%", x, y)


PYTHON_CALLS: dict[Any, Rule] = {
    **MATH_CALLS,
    builtins.abs: _abs,
    builtins.max: _extremum("max"),
    builtins.min: _extremum("min"),
    builtins.round: _round,
    builtins.sum: _sum,
    builtins.float: _float,
    builtins.int: _int,
    builtins.bool: _bool,
    builtins.pow: _pow,
    builtins.divmod: _divmod,
}
