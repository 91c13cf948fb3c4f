"""Reductions along axes: sum, product, maximum, minimum, their positions, any and all.

The invariants: attributes are `axes` (a tuple of axis numbers, none negative, ascending) and `keepdims`; the dtype is
the operand's (what NumPy widens is cast before); a reduction of all axes gives a scalar. Along an axis of size 0,
sums and products give their neutral element and extrema raise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spmd.ir.build import Builder
from spmd.ir.core import Op, Value
from spmd.ir.types import Num, Type
from spmd.ops.calculus import constant, masked, num, restored, strong
from spmd.ops.faults import blame
from spmd.ops.inference import numbers, reduced
from spmd.ops.primitive import AdjointRule, Faults, Primitive, Samples, Site
from spmd.ops.scans import products_before

X = np.array([[1.5, -2.0, 0.25], [3.0, 0.5, -1.0]])
TIED = np.array([[2.0, 1.0, 2.0], [2.0, 0.0, 1.0]])
ATTRS = tuple({"axes": axes, "keepdims": keep} for axes in ((0,), (1,), (0, 1)) for keep in (False, True))
SAMPLES: Samples = tuple(((x,), attrs) for attrs in ATTRS for x in (X, TIED))
ZEROS: Samples = tuple(((np.array(x),), {"axes": (0,), "keepdims": False}) for x in ([2.0, 0.0, 3.0], [0.0, 0.0, 4.0]))
INTS: Samples = (((np.array([[3, -1], [2, 5]]),), {"axes": (1,), "keepdims": False}),)
EMPTY: Samples = (((np.zeros((0,)),), {"axes": (0,), "keepdims": False}),)


def _infer(name: str, kinds: str, result: str) -> Callable[[Sequence[Type], dict[str, Any]], Num]:
    def infer(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
        (x,) = numbers(name, types, 1)
        if x.python or x.text or x.kind not in kinds:
            raise TypeError(f"'{name}' does not take {x}")
        axes = attrs["axes"]
        if any(not 0 <= k < x.rank for k in axes):
            raise TypeError(f"axes {axes} are out of range for {x}")
        return Num(result or x.dtype, reduced(x.shape, axes, attrs["keepdims"]))

    return infer


def row_axes(axes: Sequence[int]) -> tuple[int, ...]:
    """Axes of one example's array as axes of an array of rows."""
    return tuple(k + 1 for k in axes)


def _may_be_empty(types: Sequence[Type], attrs: dict[str, Any]) -> bool:
    x = types[0]
    return isinstance(x, Num) and any(x.shape[k] in (0, None) for k in attrs["axes"])


def _widening(function: Any) -> Callable[..., Any]:
    """A sum or product that keeps the dtype."""

    def apply(x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
        x = np.asarray(x)
        return function(x, axis=axes, keepdims=keepdims, dtype=x.dtype)

    return apply


def _rows_widening(function: Any) -> Callable[[Site], Any]:
    def rows(site: Site) -> Callable[..., Any]:
        axes, keepdims = row_axes(site.attrs["axes"]), site.attrs["keepdims"]
        return lambda x: function(x, axis=axes, keepdims=keepdims, dtype=x.dtype)

    return rows


def _plain(function: Any) -> Callable[..., Any]:
    return lambda x, axes, keepdims: function(np.asarray(x), axis=axes, keepdims=keepdims)


def _refusing(site: Site, rule: Callable[..., Any], run: Callable[..., Any]) -> Callable[..., Any]:
    """Rows of an extremum along an axis that is empty: all of them fail."""
    shape, attrs = site.result.shape, site.attrs

    def fail(x: Any, faults: Faults) -> Any:
        empty = 0 in [x.shape[k + 1] for k in attrs["axes"]]
        if not empty:
            return run(x)
        blame(faults, np.ones(len(x), bool), site, rule, (x,))
        sizes = reduced(x.shape, row_axes(attrs["axes"]), attrs["keepdims"])
        return np.zeros([n or 0 for n in sizes] if None in shape else (len(x), *shape), site.result.dtype)

    return fail


def _rows_extremum(function: Any, rule: Callable[..., Any]) -> Callable[[Site], Any]:
    def rows(site: Site) -> Callable[..., Any]:
        axes, keepdims = row_axes(site.attrs["axes"]), site.attrs["keepdims"]

        def run(x: Any, faults: Faults | None = None) -> Any:
            return function(x, axis=axes, keepdims=keepdims)

        return _refusing(site, rule, run) if _may_be_empty(site.types, site.attrs) else run

    return rows


# --------------------------------------------------------------------------------------------------- derivatives
def _sum_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    return (restored(b, ct, op.operands[0], op.attrs["axes"], op.attrs["keepdims"]),)


def _prod_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    x = op.operands[0]
    others = _others(b, x, op.attrs["axes"]) if op.attrs["axes"] else constant(b, 1, x)
    return (strong(b, restored(b, ct, x, op.attrs["axes"], op.attrs["keepdims"]), others),)


def _extremum_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    """Elements that tie share the cotangent evenly: the shares sum to 1."""
    x, axes, keepdims = op.operands[0], op.attrs["axes"], op.attrs["keepdims"]
    ties = b.emit("eq", x, restored(b, op.result, x, axes, keepdims))
    count = b.emit("sum", b.emit("cast", ties, dtype=num(ct).dtype, python=False), axes=axes, keepdims=keepdims)
    share = b.emit("div", ct, b.emit("maximum", count, constant(b, 1, count)))
    return (masked(b, ties, restored(b, share, x, axes, keepdims)),)


def _others(b: Builder, x: Value, axes: Sequence[int]) -> Value:
    """For each element the product of all others along the axes, exact where elements are 0."""
    *rest, axis = axes
    own = b.emit("mul", products_before(b, x, axis, False), products_before(b, x, axis, True))
    if not rest:
        return own
    whole = b.emit("prod", x, axes=(axis,), keepdims=True)
    return b.emit("mul", own, restored(b, _others(b, whole, rest), x, (axis,), True))


# --------------------------------------------------------------------------------------------------- positions
def _position(function: Any) -> Callable[..., Any]:
    def apply(x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
        x = np.asarray(x)
        return function(x, axis=axes[0] if len(axes) == 1 else None, keepdims=keepdims)

    return apply


def _infer_position(name: str) -> Callable[[Sequence[Type], dict[str, Any]], Num]:
    plain = _infer(name, "iufb", "int64")

    def infer(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
        (x,) = numbers(name, types, 1)
        if len(attrs["axes"]) not in (1, x.rank):
            raise TypeError(f"'{name}' works along one axis or all of them")
        return plain(types, attrs)

    return infer


def _rows_position(function: Any, rule: Callable[..., Any]) -> Callable[[Site], Any]:
    def rows(site: Site) -> Callable[..., Any]:
        axes, keepdims, rank = site.attrs["axes"], site.attrs["keepdims"], site.types[0].rank

        def run(x: Any, faults: Faults | None = None) -> Any:
            if len(axes) == 1:
                return function(x, axis=axes[0] + 1, keepdims=keepdims)
            found = function(x.reshape(len(x), int(np.prod(x.shape[1:]))), axis=1)
            return found.reshape((-1,) + (1,) * rank) if keepdims else found

        return _refusing(site, rule, run) if _may_be_empty(site.types, site.attrs) else run

    return rows


def _reduction(
    name: str, kinds: str, numpy: Any, rows: Any, adjoint: AdjointRule | None, samples: tuple[Any, ...]
) -> Primitive:
    return Primitive(name, _infer(name, kinds, ""), numpy, rows, adjoint, samples=samples)


def _extremum(name: str, function: Any) -> Primitive:
    numpy = _plain(function)
    return Primitive(
        name, _infer(name, "iufb", ""), numpy, _rows_extremum(function, numpy), _extremum_adjoint, _may_be_empty,
        samples=SAMPLES + INTS + EMPTY,
    )


def _locator(name: str, function: Any) -> Primitive:
    numpy = _position(function)
    return Primitive(
        name, _infer_position(name), numpy, _rows_position(function, numpy), None, _may_be_empty,
        samples=SAMPLES + INTS + EMPTY,
    )


def _test(name: str, function: Any) -> Primitive:
    numpy = _plain(function)
    samples = tuple(((x > 0,), attrs) for (x,), attrs in SAMPLES)

    def rows_of_bools(site: Site) -> Callable[..., Any]:
        axes, keepdims = row_axes(site.attrs["axes"]), site.attrs["keepdims"]
        return lambda x: function(x, axis=axes, keepdims=keepdims)

    return Primitive(name, _infer(name, "b", "bool"), numpy, rows_of_bools, samples=samples)


REDUCE: tuple[Primitive, ...] = (
    _reduction("sum", "iuf", _widening(np.sum), _rows_widening(np.sum), _sum_adjoint, SAMPLES + INTS + EMPTY),
    _reduction("prod", "iuf", _widening(np.prod), _rows_widening(np.prod), _prod_adjoint, SAMPLES + ZEROS + INTS),
    _extremum("max", np.max),
    _extremum("min", np.min),
    _locator("argmax", np.argmax),
    _locator("argmin", np.argmin),
    _test("any", np.any),
    _test("all", np.all),
)
