"""Slices with known ends (`slice`), slices with computed ends (`dynslice`), and their adjoints.

The invariants: a static slice is a tuple of one entry per axis: (start, stop, step) with start and stop as
`slice.indices` gives them, or None for the whole axis. `dynslice` cuts one axis as Python does (negative ends count
from the back, ends out of range are clipped). `assemble` puts pieces into zeros of a shape, added where they overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spmd.ir.build import Builder
from spmd.ir.core import Op, Value
from spmd.ir.types import Num, Shape, Type
from spmd.ops.broadcasting import target, target_dims
from spmd.ops.calculus import num, shaped, sizes_of
from spmd.ops.inference import agree, integer, numbers
from spmd.ops.primitive import Primitive, Samples, Site
from spmd.ops.shaping import every_row

Index = Sequence["tuple[int, int, int] | None"]

X = np.arange(1.0, 13.0).reshape(3, 4) ** 1.5
V = np.array([1.5, -2.0, 3.5, 0.25, 7.0])


def python_slice(entry: tuple[int, int, int] | None) -> slice:
    """An entry as a slice; a stop before the first element is None, since -1 would count from the back."""
    if entry is None:
        return slice(None)
    start, stop, step = entry
    if not len(range(start, stop, step)):
        return slice(0, 0, 1)
    return slice(start, None if stop < 0 else stop, step)


def extent(entry: tuple[int, int, int] | None, size: int | None) -> int | None:
    """How many elements an entry takes."""
    return size if entry is None else len(range(*entry))


def _slices(index: Index) -> tuple[slice, ...]:
    return tuple(python_slice(entry) for entry in index)


# --------------------------------------------------------------------------------------------------------- slice
def _infer_slice(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    (x,) = numbers("slice", types, 1)
    index = attrs["index"]
    if len(index) != x.rank:
        raise TypeError(f"'slice' needs {x.rank} entries, not {len(index)}")
    for entry, size in zip(index, x.shape):
        if entry is None:
            continue
        if size is None:
            raise TypeError("'slice' cuts axes of known size only")
        if any(not 0 <= k < size for k in range(*entry)[:1]) or any(not 0 <= k < size for k in range(*entry)[-1:]):
            raise ValueError(f"slice {entry} leaves an axis of size {size}")
    return Num(x.dtype, tuple(extent(entry, size) for entry, size in zip(index, x.shape)))


def _slice(x: Any, index: Index) -> Any:
    return x[_slices(index)]


def _rows_slice(site: Site) -> Callable[..., Any]:
    index = (slice(None), *_slices(site.attrs["index"]))
    return lambda x: x[index]


def _slice_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    x = op.operands[0]
    return (b.emit("assemble", ct, *sizes_of(b, x), shape=num(x).shape, pieces=(tuple(op.attrs["index"]),)),)


# ------------------------------------------------------------------------------------------------------ assemble
def _infer_assemble(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    operands = numbers("assemble", types)
    shape, pieces = tuple(attrs["shape"]), attrs["pieces"]
    if None in shape:
        target_dims("assemble", types[-1], shape)
        operands = operands[:-1]
    if len(operands) != len(pieces):
        raise TypeError(f"'assemble' has {len(pieces)} places for {len(operands)} pieces")
    for part, piece in zip(operands, pieces):
        wanted = [extent(entry, size) for entry, size in zip(piece, shape)]
        if part.rank != len(wanted) or not all(agree(m, n) for m, n in zip(part.shape, wanted)):
            raise TypeError(f"'assemble' cannot put {part} at {piece}")
    return Num(operands[0].dtype, shape)


def _pieces(operands: Sequence[Any], shape: Shape) -> tuple[Sequence[Any], Any]:
    """The pieces and the sizes operand, if there is one."""
    return (operands[:-1], operands[-1]) if None in shape else (operands, None)


def _assemble(*operands: Any, shape: Shape, pieces: Sequence[Index]) -> Any:
    parts, dims = _pieces(operands, shape)
    out = np.zeros(target(shape, dims), parts[0].dtype)
    for part, piece in zip(parts, pieces):
        out[_slices(piece)] += part
    return out


def tiling(shape: Shape, pieces: Sequence[Index]) -> tuple[int, list[int]] | None:
    """(axis, order) if the pieces, in that order, laid side by side along the axis, are the whole shape."""
    cut = [[k for k, entry in enumerate(piece) if entry is not None and entry != (0, shape[k], 1)] for piece in pieces]
    axes = {k for found in cut for k in found}
    if len(axes) != 1 or any(len(found) != 1 for found in cut):
        return None
    (axis,) = axes
    entries = [piece[axis] or (0, 0, 1) for piece in pieces]
    order = sorted(range(len(pieces)), key=lambda k: entries[k])
    end = 0
    for k in order:
        start, stop, step = entries[k]
        if start != end or step != 1 or stop < start:
            return None
        end = stop
    return (axis, order) if end == shape[axis] else None


def _rows_assemble(site: Site) -> Callable[..., Any]:
    shape, pieces = tuple(site.attrs["shape"]), site.attrs["pieces"]
    tiled = tiling(shape, pieces) if None not in shape else None
    if tiled is not None:
        axis, order = tiled

        def joined(*parts: Any) -> Any:
            rows = every_row(site, parts)
            return np.concatenate([rows[k] for k in order], axis=axis + 1)

        return joined
    places = [(slice(None), *_slices(piece)) for piece in pieces]

    def run(*operands: Any) -> Any:
        parts, dims = _pieces(operands, shape)
        count = next(len(x) for x, varying in zip(operands, site.varying) if varying)
        out = np.zeros((count, *target(shape, dims)), parts[0].dtype)
        for part, place in zip(parts, places):
            out[place] += part
        return out

    return run


def _assemble_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    cut = [b.emit("slice", ct, index=tuple(piece)) for piece in op.attrs["pieces"]]
    parts: list[Value | None] = [shaped(b, piece, part) for piece, part in zip(cut, op.operands)]
    return (*parts, *([None] * (len(op.operands) - len(parts))))


# ------------------------------------------------------------------------------------------------------ dynslice
BOTH = (True, True)


def _bounds(operands: Sequence[Any], given: tuple[bool, bool]) -> tuple[Any, Any, Sequence[Any]]:
    """(start, stop, the operands behind them); a bound that is not given is None."""
    rest = list(operands)
    start = rest.pop(0) if given[0] else None
    stop = rest.pop(0) if given[1] else None
    return start, stop, rest


def _infer_dynslice(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    given = attrs.get("given", BOTH)
    x = numbers("dynslice", types, 1 + sum(given))[0]
    for type_ in types[1:]:
        integer("dynslice", type_)
    axis = attrs["axis"]
    if not 0 <= axis < x.rank:
        raise IndexError("too many indices for array")
    if not attrs.get("step", 1):
        raise ValueError("slice step cannot be zero")
    return Num(x.dtype, (*x.shape[:axis], attrs.get("size"), *x.shape[axis + 1 :]))


def _cut(start: Any, stop: Any, axis: int, step: int) -> tuple[slice, ...]:
    """The index that cuts one axis behind others that stay whole."""
    return (*((slice(None),) * axis), slice(one(start), one(stop), step))


def one(value: Any) -> int | None:
    """A bound that is equal in all rows of a bucket."""
    if value is None:
        return None
    flat = np.asarray(value).reshape(-1)
    return int(flat[0]) if flat.size else 0


def _dynslice(
    x: Any, *bounds: Any, axis: int, step: int = 1, size: int | None = None, given: tuple[bool, bool] = BOTH
) -> Any:
    start, stop, _ = _bounds(bounds, given)
    return x[_cut(start, stop, axis, step)]


def _sizes_dynslice(types: Sequence[Type], attrs: dict[str, Any]) -> tuple[int, ...]:
    return tuple(range(1, len(types))) if attrs.get("size") is None else ()


def _positions(start: Any, step: int, count: int, size: int) -> Any:
    """Element numbers [K, count] of slices that begin at `start` (Python's meaning) in an axis of `size`."""
    start = np.asarray(start, np.int64)
    start = np.clip(np.where(start < 0, start + size, start), 0, max(size - 1, 0))
    return np.clip(start[:, None] + np.arange(count) * step, 0, max(size - 1, 0))


def _rows_dynslice(site: Site) -> Callable[..., Any]:
    attrs = site.attrs
    axis, step, count, given = attrs["axis"], attrs.get("step", 1), attrs.get("size"), attrs.get("given", BOTH)

    def run(x: Any, *bounds: Any) -> Any:
        start, stop, _ = _bounds(bounds, given)
        (rows, *_) = every_row(site, (x, *bounds))
        if count is None or not np.ndim(start):
            return rows[_cut(start, stop, axis + 1, step)]
        at = _positions(start, step, count, rows.shape[axis + 1])
        moved = np.moveaxis(rows, axis + 1, 1)
        return np.moveaxis(moved[np.arange(len(rows))[:, None], at], 1, axis + 1)

    return run


def _cut_attrs(op: Op) -> dict[str, Any]:
    """The attributes that a slice and its adjoint share."""
    attrs = op.attrs
    shared = {"axis": attrs["axis"], "step": attrs.get("step", 1), "given": attrs.get("given", BOTH)}
    return shared if attrs.get("size") is None else {**shared, "size": attrs["size"]}


def _dynslice_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    x, *bounds = op.operands
    into = b.emit("onto_slice", ct, *bounds, *sizes_of(b, x), shape=num(x).shape, **_cut_attrs(op))
    return (into, *([None] * len(bounds)))


# ---------------------------------------------------------------------------------------------------- onto_slice
def _infer_onto_slice(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    g = numbers("onto_slice", types)[0]
    if None in attrs["shape"]:
        target_dims("onto_slice", types[-1], attrs["shape"])
    return Num(g.dtype, tuple(attrs["shape"]))


def _onto_slice(
    g: Any,
    *operands: Any,
    shape: Shape,
    axis: int,
    step: int = 1,
    size: int | None = None,
    given: tuple[bool, bool] = BOTH,
) -> Any:
    start, stop, dims = _bounds(operands, given)
    out = np.zeros(target(shape, dims[0] if dims else None), g.dtype)
    out[_cut(start, stop, axis, step)] = g
    return out


def _sizes_onto_slice(types: Sequence[Type], attrs: dict[str, Any]) -> tuple[int, ...]:
    ends = sum(attrs.get("given", BOTH))
    bounds = range(1, 1 + ends) if attrs.get("size") is None else range(0)
    return (*bounds, *((1 + ends,) if None in attrs["shape"] else ()))


def _rows_onto_slice(site: Site) -> Callable[..., Any]:
    attrs = site.attrs
    shape, axis, step, count = attrs["shape"], attrs["axis"], attrs.get("step", 1), attrs.get("size")
    given = attrs.get("given", BOTH)

    def run(g: Any, *operands: Any) -> Any:
        start, stop, dims = _bounds(operands, given)
        (rows, *_) = every_row(site, (g, *operands))
        out = np.zeros((len(rows), *target(shape, dims[0] if dims else None)), g.dtype)
        if count is None or not np.ndim(start):
            out[_cut(start, stop, axis + 1, step)] = rows
            return out
        at = _positions(start, step, count, out.shape[axis + 1])
        np.moveaxis(out, axis + 1, 1)[np.arange(len(rows))[:, None], at] = np.moveaxis(rows, axis + 1, 1)
        return out

    return run


def _onto_slice_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    ends = sum(op.attrs.get("given", BOTH))
    back = b.emit("dynslice", ct, *op.operands[1 : 1 + ends], **_cut_attrs(op))
    return (shaped(b, back, op.operands[0]), *([None] * (len(op.operands) - 1)))


SLICES = (
    ((0, 2, 1), None), ((2, -1, -1), (1, 4, 2)), (None, (3, 0, -2)), ((1, 1, 1), None), ((0, 3, 1), (0, 4, 1)),
)
PIECES: Samples = (
    ((X[:, :2], X[:, 2:]), {"shape": (3, 4), "pieces": ((None, (0, 2, 1)), (None, (2, 4, 1)))}),
    ((X[:, 2:], X[:, :2]), {"shape": (3, 4), "pieces": ((None, (2, 4, 1)), (None, (0, 2, 1)))}),
    ((V[:3], V[:2]), {"shape": (5,), "pieces": (((1, 4, 1),), ((4, 0, -2),))}),
    ((X[:, :2], np.array([3, 4])), {"shape": (None, 4), "pieces": ((None, (0, 2, 1)),)}),
)
CUTS = ((1, 3, 1, 0, V), (-2, 99, 1, 0, V), (3, 1, 1, 0, V), (4, -9, -2, 0, V), (1, 3, 1, 1, X))

SLICING: tuple[Primitive, ...] = (
    Primitive(
        "slice", _infer_slice, _slice, _rows_slice, _slice_adjoint,
        samples=tuple(((X,), {"index": index}) for index in SLICES),
    ),
    Primitive(
        "assemble", _infer_assemble, _assemble, _rows_assemble, _assemble_adjoint,
        sizes=lambda types, attrs: (len(types) - 1,) if None in attrs["shape"] else (), samples=PIECES,
    ),
    Primitive(
        "dynslice", _infer_dynslice, _dynslice, _rows_dynslice, _dynslice_adjoint, sizes=_sizes_dynslice,
        samples=tuple(((x, a, b), {"axis": axis, "step": step}) for a, b, step, axis, x in CUTS)
        + tuple(((X, a, b), {"axis": 1, "step": 1, "size": 2}) for a, b in ((0, 2), (-3, -1), (2, 4)))
        + (
            ((V, 2), {"axis": 0, "step": 1, "given": (True, False)}),
            ((V, -1), {"axis": 0, "step": 1, "given": (False, True)}),
            ((V,), {"axis": 0, "step": -1, "given": (False, False)}),
        ),
    ),
    Primitive(
        "onto_slice", _infer_onto_slice, _onto_slice, _rows_onto_slice, _onto_slice_adjoint, sizes=_sizes_onto_slice,
        samples=tuple(
            ((X[:, :2], a, b), {"shape": (3, 4), "axis": 1, "step": 1, "size": 2}) for a, b in ((0, 2), (-3, -1))
        )
        + (((V[:2], 1, 3), {"shape": (5,), "axis": 0, "step": 1}),),
    ),
)
