"""What only Python numbers do: int() and round() of a float, max() and min() of two scalars.

The invariant: the meaning is CPython's, errors and ties included (the first of equal operands, and of any operands
that compare as unordered, is kept).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spmd.ir.build import Builder
from spmd.ir.core import Value
from spmd.ir.types import INT, Num, Type
from spmd.ops.calculus import masked, rule
from spmd.ops.checked import fits, to_int
from spmd.ops.faults import checked
from spmd.ops.inference import alike, numbers
from spmd.ops.primitive import Primitive, Samples, Site

PAIRS: Samples = (
    ((1.5, 2.5), {}),
    ((2.5, 2.5), {}),
    ((float("nan"), 1.0), {}),
    ((1.0, float("nan")), {}),
    ((3, -4), {}),
    ((np.float32(1.0), np.float32(2.0)), {}),
    ((np.float64(2.0), np.float64(-2.0)), {}),
)
FLOATS: Samples = tuple(((x,), {}) for x in (2.5, -3.5, 1e18, 1e19, float("nan"), float("inf"), -(2.0**63)))


def _infer_int(name: str) -> Callable[[Sequence[Type], dict[str, Any]], Num]:
    def infer(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
        (source,) = numbers(name, types, 1)
        if not source.python or source.kind != "f":
            raise TypeError(f"'{name}' takes a Python float, not {source}")
        return INT

    return infer


def _infer_pair(name: str) -> Callable[[Sequence[Type], dict[str, Any]], Num]:
    def infer(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
        numbers(name, types, 2)
        type_ = alike(name, types)
        if type_.shape or type_.text:
            raise TypeError(f"'{name}' takes two numbers, not {type_}")
        return type_

    return infer


def _extremum(comparison: str) -> Callable[..., Sequence[Value | None]]:
    """The operand that was returned gets the cotangent."""

    def derive(b: Builder, ct: Value, y: Value, x: Value, w: Value) -> Sequence[Value | None]:
        second = b.emit(comparison, w, x)
        return masked(b, b.emit("logical_not", second), ct), masked(b, second, ct)

    return derive


def _rounded(x: Any) -> tuple[Any, Any]:
    return to_int(np.rint(x))


def _always(types: Sequence[Type], attrs: dict[str, Any]) -> bool:
    return True


def _truncated(x: Any) -> Any:
    return fits(int(x))


def _nearest(x: Any) -> Any:
    return fits(round(x))


def _rows_int(numpy: Callable[..., Any], compute: Callable[..., Any]) -> Callable[[Site], Any]:
    return lambda site: checked(site, numpy, compute)


SCALARS: tuple[Primitive, ...] = (
    Primitive(
        "toint", _infer_int("toint"), _truncated, _rows_int(_truncated, to_int), raises=_always, chain="int",
        samples=FLOATS,
    ),
    Primitive(
        "round", _infer_int("round"), _nearest, _rows_int(_nearest, _rounded), raises=_always, samples=FLOATS
    ),
    Primitive(
        "pymax", _infer_pair("pymax"), lambda a, b: b if b > a else a,
        lambda site: lambda a, b: np.where(np.greater(b, a), b, a), rule(_extremum("gt")), samples=PAIRS,
    ),
    Primitive(
        "pymin", _infer_pair("pymin"), lambda a, b: b if b < a else a,
        lambda site: lambda a, b: np.where(np.less(b, a), b, a), rule(_extremum("lt")), samples=PAIRS,
    ),
)
