"""Arguments of NumPy's functions: binding by name, constants, axes, dtypes, sizes, nested lists.

The invariant: an argument that a rule does not handle is refused by name, never ignored; what NumPy needs to know
beforehand (axes, dtypes) must be a constant here.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from spmd.ir.build import Builder
from spmd.ir.core import Value
from spmd.ir.types import Num, Shape
from spmd.ops.calculus import num
from spmd.ops.primitive import Refusal
from spmd.ops.promotion import as_value, cast, constant_of, strengthen

Size = Any
"""A size: a Python int, or a Value."""


def bind(title: str, names: str, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments by name; `names` are NumPy's parameters in order, those behind '-' are not supported.

    Unsupported ones may be given as None or np._NoValue. Raises Refusal, or TypeError for what NumPy does not take.
    """
    order = names.split()
    if len(args) > len(order):
        raise TypeError(f"{title}() takes at most {len(order)} arguments, {len(args)} were given")
    bound: dict[str, Any] = {}
    for name, value in (*zip(order, args), *kwargs.items()):
        plain = name.lstrip("-")
        if "-" + plain in order:
            if value is not None:
                raise Refusal(f"the argument '{plain}' of {title} is not supported")
        elif plain not in order:
            raise Refusal(f"{title} has no argument '{plain}' that is supported")
        elif plain in bound:
            raise TypeError(f"{title}() got multiple values for argument '{plain}'")
        else:
            bound[plain] = value
    return bound


def needed(title: str, bound: dict[str, Any], *names: str) -> list[Any]:
    """The arguments of these names. Raises TypeError if one is missing."""
    for name in names:
        if name not in bound:
            raise TypeError(f"{title}() is missing the argument '{name}'")
    return [bound[name] for name in names]


# ---------------------------------------------------------------------------------------------------- constants
def static_int(b: Builder, title: str, what: str, x: Any) -> int:
    """A constant int. Raises Refusal if it is known only when the program runs."""
    found = constant_of(b, x)
    if isinstance(found, (int, np.integer)) and not isinstance(found, bool):
        return int(found)
    if isinstance(x, Value):
        raise Refusal(f"{what} of {title} must be a constant")
    raise TypeError(f"{what} of {title} must be an integer, not {x!r}")


def static_bool(b: Builder, title: str, what: str, x: Any) -> bool:
    """A constant bool. Raises Refusal if it is known only when the program runs."""
    found = constant_of(b, x)
    if isinstance(found, (bool, np.bool_, int)):
        return bool(found)
    raise Refusal(f"{what} of {title} must be a constant")


def axis_number(axis: int, rank: int) -> int:
    """An axis counted from the front. Raises AxisError as NumPy does."""
    if not -rank <= axis < rank:
        raise np.exceptions.AxisError(axis, rank)
    return axis % rank


def axes_of(b: Builder, title: str, axis: Any, rank: int) -> tuple[int, ...]:
    """Axes as a sorted tuple; None means all."""
    if axis is None:
        return tuple(range(rank))
    items = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = tuple(sorted(axis_number(static_int(b, title, "the axis", k), rank) for k in items))
    if len(set(axes)) != len(axes):
        raise ValueError("duplicate value in 'axis'")
    return axes


def dtype_of(x: Any, default: str = "float64") -> str:
    """The name of a dtype argument. Raises Refusal for types that the compiler does not have."""
    if x is None:
        return default
    if isinstance(x, Value):
        raise Refusal("a dtype must be a constant")
    dtype = np.dtype(x)
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise Refusal(f"values of type {dtype} are not supported")
    return str(dtype)


# ---------------------------------------------------------------------------------------------------- arrays
def array(b: Builder, x: Any) -> Value:
    """What np.asarray makes of an argument: a NumPy scalar or array; lists and tuples become stacks of rows."""
    if isinstance(x, (tuple, list)):
        return _stacked(b, x)
    return strengthen(b, as_value(b, x))


def operand(b: Builder, x: Any) -> Value:
    """As `array`, but a Python number stays one: ufuncs promote it weakly."""
    return _stacked(b, x) if isinstance(x, (tuple, list)) else as_value(b, x)


def _stacked(b: Builder, items: Sequence[Any]) -> Value:
    if not items:
        return b.const(np.zeros(0))
    return b.emit("stack", *alike(b, [array(b, item) for item in items]), axis=0)


def alike(b: Builder, values: Sequence[Value]) -> list[Value]:
    """The values in their common dtype."""
    dtype = str(functools.reduce(np.promote_types, [np.dtype(num(v).dtype) for v in values]))
    return [cast(b, v, dtype) for v in values]


def sequence(b: Builder, title: str, x: Any) -> list[Value]:
    """The arrays of a tuple or list argument. Raises Refusal for anything else."""
    if not isinstance(x, (tuple, list)):
        raise Refusal(f"{title} takes a tuple or list of arrays")
    if not x:
        raise ValueError("need at least one array to concatenate")
    return [array(b, item) for item in x]


# ---------------------------------------------------------------------------------------------------- sizes
def sizes_of_shape(b: Builder, title: str, shape: Any) -> list[Size]:
    """A shape argument as sizes: ints where they are constants, values elsewhere."""
    items = list(shape) if isinstance(shape, (tuple, list)) else [shape]
    sizes: list[Size] = []
    for item in items:
        found = constant_of(b, item)
        if isinstance(found, (int, np.integer)) and not isinstance(found, bool):
            sizes.append(int(found))
        elif isinstance(item, Value) and num(item).kind in "iu" and not num(item).shape:
            sizes.append(item)
        else:
            raise TypeError(f"a size of {title} must be an integer")
    return sizes


def static_shape(sizes: Sequence[Size]) -> Shape:
    """The sizes as a type's shape."""
    return tuple(n if isinstance(n, int) else None for n in sizes)


def size_value(b: Builder, size: Size) -> Value:
    """A size as a NumPy int64 scalar."""
    return b.const(np.int64(size)) if isinstance(size, int) else cast(b, size, "int64")


def dims_value(b: Builder, sizes: Sequence[Size]) -> Value:
    """Sizes as the vector that `broadcast_to`, `reshape_to` and `fill_to` take."""
    if all(isinstance(n, int) for n in sizes):
        return b.const(np.asarray(sizes, np.int64))
    return b.emit("stack", *[size_value(b, n) for n in sizes], axis=0)


def sizes_of_value(b: Builder, x: Value) -> list[Size]:
    """The sizes of an array, as ints where they are known."""
    return [b.emit("dim", x, axis=k) if n is None else n for k, n in enumerate(num(x).shape)]


def product(b: Builder, sizes: Sequence[Size]) -> Size:
    """The product of sizes."""
    known = math.prod(n for n in sizes if isinstance(n, int))
    result: Size = known
    for n in sizes:
        if not isinstance(n, int):
            result = b.emit("mul", size_value(b, result), size_value(b, n))
    return result


def scalar_only(x: Value) -> Num:
    """The type of a value that must be a scalar. Raises TypeError with NumPy's text."""
    type_ = num(x)
    if type_.shape:
        raise TypeError("only 0-dimensional arrays can be converted to Python scalars")
    return type_
