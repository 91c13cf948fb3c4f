"""New arrays whose contents or sizes are computed: filled ones and ranges of numbers.

The invariant: an array of constants is a `const` and never comes here; what is computed are the value (`fill`), the
sizes (`fill_to`), or both (`arange`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spmd.ir.build import Builder
from spmd.ir.core import Op, Value
from spmd.ir.types import Num, Shape, Type
from spmd.ops.broadcasting import sizes_operand, target, target_dims
from spmd.ops.calculus import lift, num
from spmd.ops.faults import blame, row_count
from spmd.ops.inference import numbers
from spmd.ops.primitive import Faults, Primitive, Site


def _filled(name: str, value: Type, shape: Shape) -> Num:
    (scalar,) = numbers(name, (value,))
    if scalar.shape or scalar.text:
        raise TypeError(f"'{name}' takes a scalar, not {scalar}")
    return Num(scalar.dtype, tuple(shape))


def _infer_fill(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    numbers("fill", types, 1)
    return _filled("fill", types[0], attrs["shape"])


def _infer_fill_to(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    numbers("fill_to", types, 2)
    target_dims("fill_to", types[1], attrs["shape"])
    return _filled("fill_to", types[0], attrs["shape"])


def _fill(value: Any, shape: Shape) -> Any:
    return np.full(target(shape, None), value)[()]


def _fill_to(value: Any, dims: Any, shape: Shape) -> Any:
    sizes = tuple(int(n) for n in dims)
    if any(n < 0 for n in sizes):
        raise ValueError("negative dimensions are not allowed")
    return np.full(sizes, value)[()]


def _rows_fill(site: Site) -> Callable[..., Any]:
    shape = tuple(site.attrs["shape"])
    return lambda value: np.broadcast_to(value.reshape((-1,) + (1,) * len(shape)), (len(value), *shape))


def _rows_fill_to(site: Site) -> Callable[..., Any]:
    shape, (first, _) = site.attrs["shape"], site.varying

    def run(value: Any, dims: Any, faults: Faults) -> Any:
        sizes = target(shape, dims)
        if any(n < 0 for n in sizes):
            blame(faults, True, site, _fill_to, (value, dims))
            sizes = tuple(max(n, 0) for n in sizes)
        if first:
            value = value.reshape((-1,) + (1,) * len(sizes))
        return np.broadcast_to(value, (row_count(site, (value, dims)), *sizes))

    return run


def _fill_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    rank = num(ct).rank
    total = b.emit("sum", ct, axes=tuple(range(rank)), keepdims=False) if rank else ct
    return (total, *([None] * (len(op.operands) - 1)))


# -------------------------------------------------------------------------------------------------------- ranges
def _infer_arange(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    for type_ in numbers("arange", types, 3):
        if type_.shape or type_.text or type_.kind not in "iuf":
            raise TypeError(f"'arange' takes numbers, not {type_}")
    return Num(attrs["dtype"], (None,))


def _arange(start: Any, stop: Any, step: Any, dtype: str, exact: bool = False) -> Any:
    """Bounds are Python numbers here, so that a step of 0 raises what it raises in Python's range of numbers."""
    bounds: Any = [np.asarray(x).item() for x in (start, stop, step)]
    return np.arange(*bounds, dtype=np.dtype(dtype))


def _rows_arange(site: Site) -> Callable[..., Any]:
    """Rows of one bucket have equal bounds, so the first row's numbers serve them all."""

    def run(start: Any, stop: Any, step: Any, faults: Faults | None = None) -> Any:
        count = row_count(site, (start, stop, step))
        if not count:
            return np.zeros((0, 0), site.attrs["dtype"])
        bounds: Any = [np.asarray(x).reshape(-1)[0].item() for x in (start, stop, step)]
        if faults is not None and not bounds[2]:
            blame(faults, True, site, _arange, (start, stop, step))
            return np.zeros((count, 0), site.attrs["dtype"])
        numbers_ = np.arange(*bounds, dtype=np.dtype(site.attrs["dtype"]))
        return np.broadcast_to(numbers_, (count, len(numbers_)))

    return run


def _arange_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    """Element k is start + k * step; how many there are does not move."""
    start, _, step = op.operands
    if not num(op.result).floating:
        return None, None, None
    total = b.emit("sum", ct, axes=(0,), keepdims=False)
    steps = b.emit("cast", _counting(b, op.result), dtype=num(ct).dtype, python=False)
    slope = b.emit("sum", b.emit("mul", ct, steps), axes=(0,), keepdims=False)
    return _as(b, total, start), None, _as(b, slope, step)


def _counting(b: Builder, like: Value) -> Value:
    """0, 1, 2, ... as many as `like` has elements."""
    zero, one = b.const(np.int64(0)), b.const(np.int64(1))
    return b.emit("arange", zero, lift(b, b.emit("dim", like, axis=0)), one, dtype="int64", exact=True)


def _as(b: Builder, ct: Value, like: Value) -> Value | None:
    if not num(like).floating:
        return None
    return b.emit("cast", ct, dtype=num(like).dtype, python=False) if num(like).dtype != num(ct).dtype else ct


CREATION: tuple[Primitive, ...] = (
    Primitive(
        "fill", _infer_fill, _fill, _rows_fill, _fill_adjoint,
        samples=(((2.5,), {"shape": (2, 3)}), ((np.float32(1.5),), {"shape": (3,)})),
    ),
    Primitive(
        "fill_to", _infer_fill_to, _fill_to, _rows_fill_to, _fill_adjoint, raises=lambda types, attrs: True,
        sizes=sizes_operand(1),
        samples=(((2.5, np.array([2, 3])), {"shape": (None, 3)}), ((2.5, np.array([-2, 3])), {"shape": (None, 3)})),
    ),
    Primitive(
        "arange", _infer_arange, _arange, _rows_arange, _arange_adjoint,
        raises=lambda types, attrs: not attrs.get("exact", False), sizes=lambda types, attrs: (0, 1, 2),
        samples=(
            ((0, 5, 1), {"dtype": "int64"}), ((0, 5, 0), {"dtype": "int64"}),
            ((0.5, 2.1, 0.25), {"dtype": "float64"}),
        ),
    ),
)
