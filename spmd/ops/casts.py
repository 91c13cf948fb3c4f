"""Conversions between number types.

The invariants: `cast` between NumPy kinds is NumPy's astype; from a Python int into a narrower integer it raises as
NumPy does for a Python scalar that does not fit; to a Python kind it is float(), or int() of an integer. What int()
does to a float is `toint`, which raises. Strings are not numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spmd.ir.build import Builder
from spmd.ir.core import Op, Value
from spmd.ir.types import Num, Type
from spmd.ops.calculus import num
from spmd.ops.checked import fits
from spmd.ops.faults import checked
from spmd.ops.inference import numbers
from spmd.ops.primitive import Primitive, Samples, Site


def _infer(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    (source,) = numbers("cast", types, 1)
    dtype, python = attrs["dtype"], attrs.get("python", False)
    if source.text:
        raise TypeError("a string cannot be converted to a number")
    if np.dtype(dtype).kind not in "biuf":
        raise TypeError(f"values of type {dtype} are not supported")
    if python and (source.shape or dtype not in ("bool", "int64", "float64")):
        raise TypeError(f"{source} cannot become a Python number of type {dtype}")
    if python and dtype == "int64" and source.kind == "f":
        raise TypeError("a float becomes an int by 'toint'")
    if source.python and source.kind == "f" and np.dtype(dtype).kind in "iu":
        raise TypeError("a Python float becomes an int by 'toint'")
    return Num(dtype, source.shape, python=python)


def _cast(x: Any, dtype: str, python: bool = False) -> Any:
    if python:
        kind = {"bool": bool, "int64": int, "float64": float}[dtype]
        return fits(kind(x))
    if type(x) is int and np.dtype(dtype).kind in "iu":
        return np.array(x, dtype)[()]
    return np.asarray(x).astype(dtype)[()]


def narrowing(types: Sequence[Type], attrs: dict[str, Any]) -> bool:
    """Whether a Python int, or a uint64 that becomes one, may not fit."""
    source = types[0]
    if not isinstance(source, Num):
        return False
    if source.python:
        return source.kind == "i" and np.dtype(attrs["dtype"]).kind in "iu" and attrs["dtype"] != "int64"
    return bool(attrs.get("python")) and source.dtype == "uint64" and attrs["dtype"] == "int64"


def _rows(site: Site) -> Callable[..., Any]:
    dtype = np.dtype(site.attrs["dtype"])
    if not narrowing(site.types, site.attrs):
        return lambda x: x.astype(dtype, copy=False)
    if site.types[0].dtype == "uint64":
        return checked(site, _cast, lambda x: (x.astype(np.int64), x > np.uint64(2**63 - 1)))
    low, high = (0, 2**63 - 1) if dtype == np.uint64 else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    return checked(site, _cast, lambda x: (x.astype(dtype), (x < low) | (x > high)))


def _adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    source = num(op.operands[0])
    if not source.floating or not num(op.result).floating:
        return (None,)
    if num(ct).dtype == source.dtype and not num(ct).python:
        return (ct,)
    return (b.emit("cast", ct, dtype=source.dtype, python=False),)


SAMPLES: Samples = (
    ((np.array([1.5, -2.5, 0.0]),), {"dtype": "float32", "python": False}),
    ((np.array([1.5, -2.5, 0.0]),), {"dtype": "int32", "python": False}),
    ((np.array([1.5, -2.5, 0.0]),), {"dtype": "bool", "python": False}),
    ((np.array([1, 0, -3]),), {"dtype": "float64", "python": False}),
    ((np.float32(1.1),), {"dtype": "float64", "python": True}),
    ((np.float64(1.25),), {"dtype": "float64", "python": True}),
    ((np.int32(-4),), {"dtype": "int64", "python": True}),
    ((np.uint64(2**63),), {"dtype": "int64", "python": True}),
    ((1.25,), {"dtype": "float32", "python": False}),
    ((7,), {"dtype": "float64", "python": True}),
    ((True,), {"dtype": "int64", "python": True}),
    ((2.5,), {"dtype": "bool", "python": True}),
    ((300,), {"dtype": "uint8", "python": False}),
    ((30,), {"dtype": "uint8", "python": False}),
    ((-1,), {"dtype": "uint64", "python": False}),
)

CASTS: tuple[Primitive, ...] = (
    Primitive("cast", _infer, _cast, _rows, _adjoint, narrowing, "cast", samples=SAMPLES),
)
