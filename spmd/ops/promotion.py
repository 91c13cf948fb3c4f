"""Which types operands get before an elementwise op: NumPy 2's promotion and CPython's, and broadcasting.

The invariants: NumPy itself says which loop of a ufunc runs, so promotion is NumPy's (Python scalars are weak); what
comes out of here has equal shapes and the dtypes of that loop. A size that differs between examples is checked when
the program runs, by `broadcast_dims`, wherever types alone do not show that it fits.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from spmd.ir.build import Builder, constant_type
from spmd.ir.core import Value
from spmd.ir.types import Num, Shape
from spmd.ops.calculus import dims_of, num
from spmd.ops.casts import CASTS
from spmd.ops.compare import COMPARE
from spmd.ops.elementary import ELEMENTARY
from spmd.ops.elementwise import ELEMENTWISE
from spmd.ops.inference import broadcast_shape
from spmd.ops.primitive import Refusal
from spmd.ops.special import SPECIALS
from spmd.ops.transcendental import TRANSCENDENTAL

SHAPE_KEEPING = frozenset(p.name for p in (*ELEMENTWISE, *TRANSCENDENTAL, *COMPARE, *CASTS)) | frozenset(
    p.name for p in (*ELEMENTARY, *SPECIALS) if p.pointwise
)
WEAK: dict[str, Any] = {"int64": int, "float64": float, "bool": np.dtype(bool)}
ORDER = ("bool", "int64", "float64")


def as_value(b: Builder, x: Any) -> Value:
    """A value, or a constant made one. Raises Refusal for what is no number."""
    if isinstance(x, Value):
        if not isinstance(x.type, Num):
            raise TypeError(f"a number or array is needed here, not {x.type}")
        if x.type.kind == "c":
            raise Refusal("complex numbers are not supported", "keep real and imaginary parts apart.")
        return x
    if x is None or isinstance(x, str):
        raise TypeError(f"a number or array is needed here, not {x!r}")
    type_ = constant_type(x)
    if type_.kind not in "biuf":
        raise Refusal(f"values of type {type_.dtype} are not supported")
    return b.const(x, type_)


def constant_of(b: Builder, x: Any) -> Any:
    """The number that a value is, if it is a constant of this block, else None."""
    if not isinstance(x, Value):
        return x
    op = b.definition(x)
    return op.attrs["value"] if op is not None and op.name == "const" else None


def type_name(type_: Num) -> str:
    """The name of a value's class, as in Python's own messages."""
    if type_.text:
        return "str"
    if type_.python:
        return str(type_)
    return "numpy.ndarray" if type_.shape else f"numpy.{type_.dtype}"


# ------------------------------------------------------------------------------------------------------- dtypes
def cast(b: Builder, x: Value, dtype: str, python: bool = False) -> Value:
    """The value with another dtype or kind. A Python float goes to an integer type by way of int(), as in Python."""
    type_ = num(x)
    if type_.dtype == dtype and type_.python == python:
        return x
    if type_.text:
        raise TypeError("a string cannot be converted to a number")
    whole = np.dtype(dtype).kind in "iu"
    if whole and type_.kind == "f" and (type_.python or python):
        x = b.emit("toint", cast(b, x, "float64", True))
        return cast(b, x, dtype, python)
    return b.emit("cast", x, dtype=dtype, python=python)


def strengthen(b: Builder, x: Value) -> Value:
    """A Python number as the NumPy scalar that a NumPy function makes of it."""
    return cast(b, x, num(x).dtype) if num(x).python else x


def loop(ufunc: np.ufunc, types: Sequence[Num]) -> tuple[list[str], str]:
    """Operand and result dtypes of the loop that a ufunc runs. Raises TypeError with NumPy's text."""
    if any(t.text for t in types):
        raise TypeError(f"'{ufunc.__name__}' does not take strings")
    weak = not all(t.python for t in types)
    given = tuple(WEAK[t.dtype] if t.python and weak else np.dtype(t.dtype) for t in types)
    *operands, result = ufunc.resolve_dtypes((*given, None))
    names = [str(dtype) for dtype in operands]
    if any(dtype.kind not in "biuf" for dtype in (*operands, result)):
        raise TypeError(f"'{ufunc.__name__}' does not take {', '.join(str(t) for t in types)}")
    return names, str(result)


def common_python(types: Sequence[Num], least: str = "int64") -> str:
    """The dtype that CPython computes in: the widest of the operands', at least `least`."""
    return ORDER[max(ORDER.index(least), *(ORDER.index(t.dtype) for t in types))]


# ---------------------------------------------------------------------------------------------------- broadcasts
def broadcast_to_shape(b: Builder, x: Value, shape: Shape) -> Value:
    """The value in a static shape."""
    if num(x).shape == shape and not num(x).python:
        return x
    if not shape:
        return x
    return b.emit("broadcast", x, shape=shape)


def broadcast_like(b: Builder, x: Value, like: Value) -> Value:
    """The value in the shape of another one."""
    return broadcast_together(b, [x, like])[0]


def broadcast_into(b: Builder, x: Value, like: Value) -> Value:
    """The value in the shape of another one that it fits into, as numbers are written into an array."""
    if num(x).shape == num(like).shape and not num(x).python:
        return x
    if num(like).static:
        return broadcast_to_shape(b, x, num(like).shape)
    return b.emit("broadcast_to", x, dims_of(b, like), shape=num(like).shape)


def broadcast_together(b: Builder, values: Sequence[Value]) -> list[Value]:
    """The values in their common shape. Raises ValueError with NumPy's text where there cannot be one."""
    shapes = [num(v).shape for v in values]
    if all(shape == shapes[0] for shape in shapes) and None not in shapes[0]:
        return list(values)
    result: Shape = functools.reduce(broadcast_shape, shapes)
    if all(num(v).static for v in values):
        return [broadcast_to_shape(b, v, result) for v in values]
    keys = {id(_shape_key(b, v)) for v in values if num(v).rank}
    if len(keys) == 1 and all(shape in (result, ()) for shape in shapes):
        certain = True
    else:
        certain = all(_certain([s[::-1][k] for s in shapes if len(s) > k]) for k in range(len(result)))
    dims = _common_dims(b, values, shapes, result, certain)
    return [v if _fits(num(v), result, certain) else b.emit("broadcast_to", v, dims, shape=result) for v in values]


def _fits(type_: Num, result: Shape, certain: bool) -> bool:
    return type_.shape == result and (certain or type_.static)


def _certain(sizes: Sequence[int | None]) -> bool:
    """Whether the sizes along one axis fit for sure: only one of them is not 1, or all are known."""
    wide = [n for n in sizes if n != 1]
    return len(wide) < 2 or None not in wide


def _common_dims(b: Builder, values: Sequence[Value], shapes: Sequence[Shape], result: Shape, certain: bool) -> Value:
    """The sizes of the common shape, checked where that is needed."""
    if certain:
        for v, shape in zip(values, shapes):
            if shape == result:
                return dims_of(b, v)
    ranked = [dims_of(b, v) for v in values if num(v).rank]
    return functools.reduce(lambda x, y: b.emit("broadcast_dims", x, y), ranked)


def _shape_key(b: Builder, x: Value) -> Value:
    """A value that stands for the sizes of `x`: two values of one key have equal shapes."""
    while (op := b.definition(x)) is not None:
        if op.name == "broadcast_to":
            dims = b.definition(op.operands[1])
            if dims is None or dims.name != "shape_of":
                return op.operands[1]
            x = dims.operands[0]
        elif op.name in SHAPE_KEEPING:
            shape = num(op.result).shape
            x = next(v for v in reversed(op.operands) if num(v).shape == shape)
        else:
            break
    return x
