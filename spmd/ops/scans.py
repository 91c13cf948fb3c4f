"""Scans: running sums, running products, linear recurrences, and moves along one axis (`shift`, `roll`).

The invariant: each keeps its operand's shape and works along the attribute `axis`; `reverse` scans from the end. A
recurrence carries zeros through anything (0 * inf = 0), as the cotangents do that run through it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spmd.ir.build import Builder
from spmd.ir.core import Op, Value
from spmd.ir.types import Num, Type
from spmd.ops.calculus import constant, strong
from spmd.ops.inference import alike, numbers
from spmd.ops.primitive import AdjointRule, Primitive, Samples, Site
from spmd.ops.shaping import every_row

X = np.array([[1.5, -2.0, 0.25], [3.0, 0.5, -1.0]])
ZEROS = np.array([[0.0, -2.0, 0.5, 3.0], [1.5, 0.0, 2.0, 0.0]])
INTS = np.array([[3, -1, 2], [2, 5, -4]])
ALONG: tuple[dict[str, Any], ...] = tuple(
    {"axis": axis, "reverse": reverse} for axis in (0, 1) for reverse in (False, True)
)
SCANS: Samples = tuple(((x,), attrs) for attrs in ALONG for x in (X, ZEROS, INTS))


def _infer(name: str, count: int, kinds: str = "iuf") -> Callable[[Sequence[Type], dict[str, Any]], Num]:
    def infer(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
        numbers(name, types, count)
        x = alike(name, types)
        if x.python or x.text or x.kind not in kinds:
            raise TypeError(f"'{name}' does not take {x}")
        if not 0 <= attrs["axis"] < x.rank:
            raise TypeError(f"{x} has no axis {attrs['axis']}")
        return x

    return infer


def _scan(accumulate: Callable[..., Any]) -> Callable[..., Any]:
    def apply(x: Any, axis: int, reverse: bool = False) -> Any:
        if not reverse:
            return accumulate(x, axis=axis, dtype=x.dtype)
        return np.flip(accumulate(np.flip(x, axis), axis=axis, dtype=x.dtype), axis)

    return apply


def _one_operand(apply: Callable[..., Any]) -> Callable[[Site], Any]:
    """The rows rule of what works along one axis of one operand."""

    def rows(site: Site) -> Callable[..., Any]:
        attrs = {**site.attrs, "axis": site.attrs["axis"] + 1}
        return lambda x: apply(x, **attrs)

    return rows


def _cumsum_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    return (b.emit("cumsum", ct, axis=op.attrs["axis"], reverse=not op.attrs.get("reverse", False)),)


def _cumprod_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    """Element k is in all products from place k on: its derivative is the product before it times the cotangents
    behind it, each times the elements between. Exact where elements are 0."""
    x, axis, reverse = op.operands[0], op.attrs["axis"], op.attrs.get("reverse", False)
    following = b.emit("shift", x, axis=axis, by=1 if reverse else -1, fill=0.0)
    behind = b.emit("recurrence", following, ct, axis=axis, reverse=not reverse)
    return (strong(b, behind, products_before(b, x, axis, reverse)),)


def products_before(b: Builder, x: Value, axis: int, reverse: bool) -> Value:
    """For each element the product of those before it (behind it if `reverse`)."""
    moved = b.emit("shift", x, axis=axis, by=-1 if reverse else 1, fill=1.0)
    return b.emit("cumprod", moved, axis=axis, reverse=reverse)


# --------------------------------------------------------------------------------------------------- recurrences
def _recurrence(factor: Any, x: Any, axis: int, reverse: bool = False) -> Any:
    """y[k] = factor[k] * y[k - 1] + x[k]; a y of 0 stays out of the product, whatever the factor."""
    factor, x = np.moveaxis(factor, axis, 0), np.moveaxis(x, axis, 0)
    out = np.empty(np.broadcast_shapes(factor.shape, x.shape), x.dtype)
    order = range(len(x) - 1, -1, -1) if reverse else range(len(x))
    last: Any = np.zeros((), x.dtype)
    for k in order:
        last = np.where(last == 0, np.zeros((), x.dtype), factor[k] * last) + x[k]
        out[k] = last
    return np.moveaxis(out, 0, axis)


def _rows_recurrence(site: Site) -> Callable[..., Any]:
    axis, reverse = site.attrs["axis"] + 1, site.attrs.get("reverse", False)

    def run(factor: Any, x: Any) -> Any:
        factor, x = every_row(site, (factor, x))
        return _recurrence(factor, x, axis, reverse)

    return run


def _recurrence_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    factor, axis, reverse = op.operands[0], op.attrs["axis"], op.attrs.get("reverse", False)
    back = 1 if reverse else -1
    following = b.emit("shift", factor, axis=axis, by=back, fill=0.0)
    total = b.emit("recurrence", following, ct, axis=axis, reverse=not reverse)
    before = b.emit("shift", op.result, axis=axis, by=-back, fill=0.0)
    return strong(b, total, before), total


# ---------------------------------------------------------------------------------------------- running extrema
def _running_adjoint(comparison: str) -> AdjointRule:
    """y[k] is the larger (smaller) of y[k - 1] and x[k], which share a tie evenly."""

    def adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
        x, axis = op.operands[0], op.attrs["axis"]
        zero, half, one = (constant(b, value, x) for value in (0.0, 0.5, 1.0))
        before = b.emit("shift", op.result, axis=axis, by=1, fill=0.0)
        first = b.emit("eq", b.emit("shift", one, axis=axis, by=1, fill=0.0), zero)
        share = b.emit("where", b.emit("eq", x, before), half, zero)
        share = b.emit("where", b.emit(comparison, x, before), one, share)
        share = b.emit("where", first, one, share)
        passed = b.emit("shift", b.emit("sub", one, share), axis=axis, by=-1, fill=0.0)
        return (strong(b, b.emit("recurrence", passed, ct, axis=axis, reverse=True), share),)

    return adjoint


# --------------------------------------------------------------------------------------------------------- moves
def _shift(x: Any, axis: int, by: int, fill: float) -> Any:
    """y[k] = x[k - by], `fill` where there is no such element."""
    out = np.full(x.shape, fill, x.dtype)
    size = x.shape[axis]
    if abs(by) < size:
        ahead = (slice(None),) * axis
        into, source = slice(max(by, 0), size + min(by, 0)), slice(max(-by, 0), size - max(by, 0))
        out[(*ahead, into)] = x[(*ahead, source)]
    return out


def _shift_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    return (b.emit("shift", ct, axis=op.attrs["axis"], by=-op.attrs["by"], fill=0.0),)


def _roll(x: Any, axis: int, by: int) -> Any:
    return np.roll(x, by, axis)


def _roll_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    return (b.emit("roll", ct, axis=op.attrs["axis"], by=-op.attrs["by"]),)


def _along(
    name: str, apply: Callable[..., Any], adjoint: AdjointRule, samples: Samples, kinds: str = "iuf"
) -> Primitive:
    return Primitive(name, _infer(name, 1, kinds), apply, _one_operand(apply), adjoint, samples=samples)


RUNNING: Samples = tuple(((x,), {"axis": axis}) for axis in (0, 1) for x in (X, ZEROS, INTS))
MOVES = tuple((axis, by) for axis in (0, 1) for by in (1, -1, 2, -5, 0))

SCANNING: tuple[Primitive, ...] = (
    _along("cumsum", _scan(np.cumsum), _cumsum_adjoint, SCANS),
    _along("cumprod", _scan(np.cumprod), _cumprod_adjoint, SCANS),
    _along("cummax", lambda x, axis: np.maximum.accumulate(x, axis), _running_adjoint("gt"), RUNNING),
    _along("cummin", lambda x, axis: np.minimum.accumulate(x, axis), _running_adjoint("lt"), RUNNING),
    Primitive(
        "recurrence", _infer("recurrence", 2, "f"), _recurrence, _rows_recurrence, _recurrence_adjoint,
        samples=(
            *(((X, X[::-1].copy()), attrs) for attrs in ALONG),
            ((np.array([2.0, np.inf, 3.0]), np.array([0.0, 1.0, 2.0])), {"axis": 0}),
        ),
    ),
    _along(
        "shift", _shift, _shift_adjoint,
        tuple(((x,), {"axis": a, "by": by, "fill": 1.0}) for a, by in MOVES for x in (X, INTS)),
    ),
    _along(
        "roll", _roll, _roll_adjoint, tuple(((x,), {"axis": a, "by": by}) for a, by in MOVES for x in (X, INTS)), "biuf"
    ),
)
