"""Order: sorting, the places that sorting moves elements from, searching, and elements at places of their own.

The invariants: NaN stands behind all numbers, as in NumPy; the derivative of a sort follows the elements to where they
went (equal ones in their first order), that of a search is none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from spmd.ir.build import Builder
from spmd.ir.core import Op, Value
from spmd.ir.types import Num, Shape, Type
from spmd.ops.broadcasting import sizes_operand, target, target_dims
from spmd.ops.calculus import num, shaped, sizes_of
from spmd.ops.faults import blame
from spmd.ops.indexing import wrapped
from spmd.ops.inference import agree, numbers
from spmd.ops.primitive import Faults, Primitive, Samples, Site
from spmd.ops.shaping import every_row

X = np.array([[1.5, -2.0, 0.25], [3.0, 0.5, -1.0]])
TIED = np.array([[2.0, 1.0, 2.0, np.nan], [np.nan, 2.0, -np.inf, 1.0]])
INTS = np.array([[3, -1, 3], [2, 5, -4]])
SORTED: Samples = tuple(((x,), {"axis": axis}) for axis in (0, 1) for x in (X, TIED, INTS, X > 0))


def _array(name: str, type_: Num, axis: int) -> Num:
    if type_.python or type_.text or not 0 <= axis < type_.rank:
        raise TypeError(f"'{name}' along axis {axis} does not take {type_}")
    return type_


def _infer_sort(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    return _array("sort", numbers("sort", types, 1)[0], attrs["axis"])


def _infer_argsort(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    return Num("int64", _array("argsort", numbers("argsort", types, 1)[0], attrs["axis"]).shape)


def _argsort(x: Any, axis: int, stable: bool = False) -> Any:
    """The default order of equal elements is the one that NumPy's own default gives."""
    return np.argsort(x, axis=axis, kind="stable" if stable else None)


def _rows_along(function: Callable[..., Any]) -> Callable[[Site], Any]:
    def rows(site: Site) -> Callable[..., Any]:
        attrs = {**site.attrs, "axis": site.attrs["axis"] + 1}
        return lambda x: function(x, **attrs)

    return rows


def _sort_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    """Each element's cotangent stands where the element went: at its rank."""
    axis = op.attrs["axis"]
    order = b.emit("argsort", op.operands[0], axis=axis, stable=True)
    ranks = b.emit("argsort", order, axis=axis, stable=True)
    return (b.emit("take_along", ct, ranks, axis=axis, exact=True),)


# ------------------------------------------------------------------------------------------- elements along an axis
def _infer_take_along(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    x, at = numbers("take_along", types, 2)
    axis = attrs["axis"]
    _array("take_along", x, axis)
    if at.kind not in "iu" or at.text:
        raise IndexError("`indices` must be an integer array")
    if at.rank != x.rank or any(not agree(m, n) for k, (m, n) in enumerate(zip(x.shape, at.shape)) if k != axis):
        raise TypeError(f"'take_along' needs arrays that agree beside axis {axis}, not {x} and {at}")
    return Num(x.dtype, at.shape)


def _take_along(x: Any, at: Any, axis: int, exact: bool = False) -> Any:
    return np.take_along_axis(x, np.asarray(at), axis)


def _rows_take_along(site: Site) -> Callable[..., Any]:
    axis = site.attrs["axis"] + 1

    def run(x: Any, at: Any, faults: Faults | None = None) -> Any:
        own, places = every_row(site, (x, at))
        inside, bad = wrapped(places, own.shape[axis])
        if faults is not None and bad is not None:
            blame(faults, bad.reshape(len(bad), -1).any(1), site, _take_along, (x, at))
        if not own.shape[axis]:
            return np.zeros(inside.shape, own.dtype)
        return np.take_along_axis(own, inside, axis)

    return run


def _take_along_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    x, at = op.operands
    return b.emit("onto_along", ct, at, *sizes_of(b, x), shape=num(x).shape, axis=op.attrs["axis"]), None


def _infer_onto_along(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    g = numbers("onto_along", types)[0]
    if None in attrs["shape"]:
        target_dims("onto_along", types[-1], attrs["shape"])
    return Num(g.dtype, tuple(attrs["shape"]))


def _put(out: Any, at: Any, g: Any, axis: int) -> Any:
    grid = list(np.ogrid[tuple(slice(n) for n in at.shape)])
    grid[axis] = at
    np.add.at(out, tuple(grid), g)
    return out


def _onto_along(g: Any, at: Any, *dims: Any, shape: Shape, axis: int) -> Any:
    return _put(np.zeros(target(shape, dims[0] if dims else None), g.dtype), np.asarray(at), g, axis)


def _rows_onto_along(site: Site) -> Callable[..., Any]:
    shape, axis = site.attrs["shape"], site.attrs["axis"] + 1

    def run(g: Any, at: Any, *dims: Any) -> Any:
        own, places, *_ = every_row(site, (g, at, *dims))
        out = np.zeros((len(own), *target(shape, dims[0] if dims else None)), own.dtype)
        return _put(out, places, own, axis)

    return run


def _onto_along_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    back = b.emit("take_along", ct, op.operands[1], axis=op.attrs["axis"], exact=True)
    return (shaped(b, back, op.operands[0]), *([None] * (len(op.operands) - 1)))


# --------------------------------------------------------------------------------------------------------- search
def _infer_searchsorted(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    a, v = numbers("searchsorted", types, 2)
    if a.rank != 1:
        raise ValueError("object too deep for desired array")
    if a.dtype != v.dtype or a.text or v.text or v.python:
        raise TypeError(f"'searchsorted' needs values of one dtype, not {a} and {v}")
    return Num("int64", v.shape)


def _searchsorted(a: Any, v: Any, side: str = "left") -> Any:
    return np.searchsorted(a, v, side=side)  # type: ignore[call-overload]


def before(x: Any, y: Any) -> Any:
    """NumPy's order of sorting: NaN is behind all numbers."""
    less = x < y
    return less | (np.isnan(y) & ~np.isnan(x)) if np.asarray(x).dtype.kind == "f" else less


def _rows_searchsorted(site: Site) -> Callable[..., Any]:
    """NumPy searches one sorted array; in one of each row's own, all rows are bisected at once."""
    side, (first, _) = site.attrs.get("side", "left"), site.varying

    def run(a: Any, v: Any) -> Any:
        if not first:
            return np.asarray(np.searchsorted(a, v, side=side))
        v = every_row(site, (a, v))[1]
        low, high = np.zeros(v.shape, np.int64), np.full(v.shape, a.shape[1], np.int64)
        lanes = np.arange(len(a)).reshape((-1,) + (1,) * (v.ndim - 1))
        while (open_ := low < high).any():
            middle = (low + high) // 2
            found = a[lanes, np.minimum(middle, a.shape[1] - 1)]
            later = before(found, v) if side == "left" else ~before(v, found)
            low = np.where(open_ & later, middle + 1, low)
            high = np.where(open_ & ~later, middle, high)
        return low

    return run


def _infer_digitize(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    x, bins = numbers("digitize", types, 2)
    return _infer_searchsorted((bins, x), attrs)


def _digitize(x: Any, bins: Any, right: bool = False) -> Any:
    return np.digitize(x, bins, right)


def _rows_digitize(site: Site) -> Callable[..., Any]:
    """Bins may rise or fall, which each row decides; falling ones are searched from their end."""
    right = site.attrs.get("right", False)
    turned = replace(site, types=site.types[::-1], varying=(True, True), attrs={"side": "left" if right else "right"})
    searched = _rows_searchsorted(turned)

    def run(x: Any, bins: Any, faults: Faults) -> Any:
        x, bins = every_row(site, (x, bins))
        up, down = ((bins[:, 1:] >= bins[:, :-1]).all(1), (bins[:, 1:] <= bins[:, :-1]).all(1))
        blame(faults, ~(up | down), replace(site, varying=(True, True)), _digitize, (x, bins))
        backward = bins.shape[1] - searched(bins[:, ::-1], x)
        return np.where(up.reshape((-1,) + (1,) * (x.ndim - 1)), searched(bins, x), backward)

    return run


# -------------------------------------------------------------------------------------------- places of what is true
def _infer_positions(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    mask, _ = numbers("positions", types, 2)
    target_dims("positions", types[1], attrs["shape"])
    if mask.dtype != "bool" or mask.rank != 1 or len(attrs["shape"]) != 1:
        raise TypeError(f"'positions' takes a vector of bools, not {mask}")
    return Num("int64", tuple(attrs["shape"]))


def _positions(mask: Any, dims: Any, shape: Shape) -> Any:
    return np.flatnonzero(mask)


def _rows_positions(site: Site) -> Callable[..., Any]:
    shape = site.attrs["shape"]

    def run(mask: Any, dims: Any) -> Any:
        mask = every_row(site, (mask, dims))[0]
        (count,) = target(shape, dims)
        if (mask.sum(1) == count).all():
            return np.nonzero(mask)[1].reshape(len(mask), count)
        return np.argsort(~mask, axis=1, kind="stable")[:, :count]  # rows that failed before: any places will do

    return run


# --------------------------------------------------------------------------------------------------------- counts
def _infer_counts(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    x, *weights, _ = numbers("counts", types)
    target_dims("counts", types[-1], attrs["shape"])
    if x.dtype != "int64" or x.rank != 1 or len(weights) > 1:
        raise TypeError(f"'counts' takes a vector of int64, not {x}")
    if weights and (weights[0].kind != "f" or weights[0].rank != 1):
        raise TypeError(f"'counts' takes a vector of float weights, not {weights[0]}")
    if weights and not agree(x.shape[0], weights[0].shape[0]):
        raise ValueError("The weights and list don't have the same length.")
    return Num("float64" if weights else "int64", tuple(attrs["shape"]))


def _counts(x: Any, *operands: Any, shape: Shape) -> Any:
    *weights, dims = operands
    found = np.bincount(x, weights[0] if weights else None, int(dims[0]))
    return found.astype(np.float64) if weights else found  # NumPy's own counts of nothing are ints, weighted or not


def _rows_counts(site: Site) -> Callable[..., Any]:
    """Each row counts in a stretch of its own of one long vector."""
    shape = site.attrs["shape"]

    def run(x: Any, *operands: Any, faults: Faults) -> Any:
        own, *weights, _ = every_row(site, (x, *operands))
        rows, (count,) = len(own), target(shape, operands[-1])
        if weights and weights[0].shape != own.shape:
            blame(faults, True, site, _counts, (x, *operands))
            return np.zeros((rows, count), site.result.dtype)
        outside = (own < 0) | (own >= count)
        blame(faults, (own < 0).any(1), site, _counts, (x, *operands))
        if outside.any():
            weights = [np.where(outside, 0, w) for w in weights] or [(~outside).astype(np.float64)]
            own = np.where(outside, 0, own)
        total = rows * count
        if not total:
            return np.zeros((rows, count), site.result.dtype)
        flat = (own + np.arange(rows)[:, None] * count).reshape(-1)
        found = np.bincount(flat, weights[0].reshape(-1) if weights else None, total)
        return found.reshape(rows, count).astype(site.result.dtype, copy=False)

    return run


def _counts_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    if len(op.operands) == 2:
        return None, None
    back = b.emit("take", ct, op.operands[0], axis=0, exact=True)
    weights = op.operands[1]
    return None, shaped(b, b.emit("cast", back, dtype=num(weights).dtype, python=False), weights), None


PLACES = np.array([[2, 0], [-1, 1]])
LINE = np.array([-2.0, 0.5, 0.5, 3.0, np.nan])
SEARCHED: tuple[Any, ...] = (0.5, np.array([[-3.0, 0.5], [np.nan, 9.0]]), np.array([3.0]))
COUNTED = (np.array([1, 0, 3, 1]), np.array([0.5, 2.0, -1.0, 0.25]))
OPEN: dict[str, Any] = {"shape": (None,)}

SORTING: tuple[Primitive, ...] = (
    Primitive("sort", _infer_sort, lambda x, axis: np.sort(x, axis=axis), _rows_along(lambda x, axis: np.sort(x, axis)),
              _sort_adjoint, samples=SORTED),
    Primitive("argsort", _infer_argsort, _argsort, _rows_along(_argsort),
              samples=SORTED + tuple((args, {**attrs, "stable": True}) for args, attrs in SORTED)),
    Primitive(
        "take_along", _infer_take_along, _take_along, _rows_take_along, _take_along_adjoint,
        lambda types, attrs: not attrs.get("exact", False),
        samples=(
            ((X, PLACES), {"axis": 1}), ((X, PLACES + 7), {"axis": 1}), ((X[:, :2], PLACES % 2), {"axis": 0}),
            ((X, np.array([[1, 1, 1, -3], [0, 2, 2, 0]])), {"axis": 1}), ((INTS, PLACES), {"axis": 1}),
        ),
    ),
    Primitive(
        "onto_along", _infer_onto_along, _onto_along, _rows_onto_along, _onto_along_adjoint,
        sizes=lambda types, attrs: (len(types) - 1,) if None in attrs["shape"] else (),
        samples=(
            ((X[:, :2], PLACES), {"shape": (2, 3), "axis": 1}),
            ((X, np.array([[1, 1, 0], [0, -1, 2]])), {"shape": (2, 3), "axis": 1}),
            ((X[:, :2], PLACES, np.array([2, 3])), {"shape": (2, None), "axis": 1}),
        ),
    ),
    Primitive(
        "searchsorted", _infer_searchsorted, _searchsorted, _rows_searchsorted,
        samples=tuple(
            ((a, np.asarray(v, a.dtype)[()]), {"side": side})
            for side in ("left", "right") for v in SEARCHED for a in (LINE, LINE[:4], LINE[:0])
        ) + (((np.array([1, 4, 4, 9]), np.array([4, 0, 10])), {"side": "right"}),),
    ),
    Primitive(
        "digitize", _infer_digitize, _digitize, _rows_digitize, raises=lambda types, attrs: True,
        samples=tuple(
            ((np.asarray(v, float)[()], bins), {"right": right}) for right in (False, True) for v in SEARCHED
            for bins in (LINE[:4], LINE[3::-1].copy(), np.array([1.0, 0.0, 2.0, 3.0]))
        ),
    ),
    Primitive(
        "positions", _infer_positions, _positions, _rows_positions, sizes=sizes_operand(1),
        samples=tuple(
            ((np.array(mask), np.array([2])), OPEN) for mask in ([True, False, True], [False, True, True])
        ) + (((np.array([False, False, False]), np.array([0])), OPEN),),
    ),
    Primitive(
        "counts", _infer_counts, _counts, _rows_counts, _counts_adjoint, lambda types, attrs: True,
        sizes=sizes_operand(-1),
        samples=(
            ((COUNTED[0], np.array([4])), OPEN), ((COUNTED[0], np.array([6])), OPEN),
            ((COUNTED[0] - 1, np.array([4])), OPEN), ((*COUNTED, np.array([5])), OPEN),
            ((COUNTED[0][:0], np.array([3])), OPEN), ((COUNTED[0][:0], np.array([0])), OPEN),
        ),
    ),
)
