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
from spmd.ops.calculus import num, sizes_of
from spmd.ops.inference import integer, numbers
from spmd.ops.primitive import Primitive, Site
from spmd.ops.shaping import every_row, target, target_dims

Entry = "tuple[int, int, int] | None"
Index = Sequence["tuple[int, int, int] | None"]

X = np.arange(1.0, 13.0).reshape(3, 4) ** 1.5
V = np.array([1.5, -2.0, 3.5, 0.25, 7.0])


def python_slice(entry: tuple[int, int, int] | None) -> slice:
    """An entry as a slice; a stop before the first element is None, since -1 would count from the back."""
    if entry is None:
        return slice(None)
    start, stop, step = entry
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
        if part.shape != tuple(extent(entry, size) for entry, size in zip(piece, shape)):
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
    pieces = op.attrs["pieces"]
    parts: list[Value | None] = [b.emit("slice", ct, index=tuple(piece)) for piece in pieces]
    return (*parts, *([None] * (len(op.operands) - len(parts))))


# ------------------------------------------------------------------------------------------------------ dynslice
def _infer_dynslice(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    x = numbers("dynslice", types, 3)[0]
    integer("dynslice", types[1])
    integer("dynslice", types[2])
    axis = attrs["axis"]
    if not 0 <= axis < x.rank:
        raise IndexError("too many indices for array")
    if not attrs.get("step", 1):
        raise ValueError("slice step cannot be zero")
    return Num(x.dtype, (*x.shape[:axis], attrs.get("size"), *x.shape[axis + 1 :]))


def _dynslice(x: Any, start: Any, stop: Any, axis: int, step: int = 1, size: int | None = None) -> Any:
    return x[(slice(None),) * axis + (slice(int(start), int(stop), step),)]


def _ends(position: int) -> Callable[[Sequence[Type], dict[str, Any]], tuple[int, ...]]:
    def sizes(types: Sequence[Type], attrs: dict[str, Any]) -> tuple[int, ...]:
        return (position, position + 1) if attrs.get("size") is None else ()

    return sizes


def one(value: Any) -> int:
    """A bound that is equal in all rows of a bucket."""
    flat = np.asarray(value).reshape(-1)
    return int(flat[0]) if flat.size else 0


def _positions(start: Any, step: int, count: int, size: int) -> Any:
    """Element numbers [K, count] of slices that begin at `start` (Python's meaning) in an axis of `size`."""
    start = np.asarray(start, np.int64)
    start = np.clip(np.where(start < 0, start + size, start), 0, max(size - 1, 0))
    return start[:, None] + np.arange(count) * step


def _rows_dynslice(site: Site) -> Callable[..., Any]:
    axis, step, count = site.attrs["axis"], site.attrs.get("step", 1), site.attrs.get("size")
    first = site.varying[0]

    def run(x: Any, start: Any, stop: Any) -> Any:
        rows = x if first else np.broadcast_to(x, (len(start) if np.ndim(start) else len(stop), *np.shape(x)))
        if count is None or not np.ndim(start):
            return rows[(slice(None),) * (axis + 1) + (slice(one(start), one(stop), step),)]
        at = _positions(start, step, count, rows.shape[axis + 1])
        moved = np.moveaxis(rows, axis + 1, 1)
        return np.moveaxis(moved[np.arange(len(rows))[:, None], at], 1, axis + 1)

    return run


def _dynslice_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    x, start, stop = op.operands
    attrs = {"axis": op.attrs["axis"], "step": op.attrs.get("step", 1), "size": op.attrs.get("size")}
    return b.emit("onto_slice", ct, start, stop, *sizes_of(b, x), shape=num(x).shape, **attrs), None, None


# ---------------------------------------------------------------------------------------------------- onto_slice
def _infer_onto_slice(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    g = numbers("onto_slice", types)[0]
    if None in attrs["shape"]:
        target_dims("onto_slice", types[-1], attrs["shape"])
    return Num(g.dtype, tuple(attrs["shape"]))


def _onto_slice(
    g: Any, start: Any, stop: Any, *dims: Any, shape: Shape, axis: int, step: int = 1, size: int | None = None
) -> Any:
    out = np.zeros(target(shape, dims[0] if dims else None), g.dtype)
    out[(slice(None),) * axis + (slice(int(start), int(stop), step),)] = g
    return out


def _sizes_onto_slice(types: Sequence[Type], attrs: dict[str, Any]) -> tuple[int, ...]:
    ends = (1, 2) if attrs.get("size") is None else ()
    return (*ends, *((3,) if None in attrs["shape"] else ()))


def _rows_onto_slice(site: Site) -> Callable[..., Any]:
    shape, axis, step = site.attrs["shape"], site.attrs["axis"], site.attrs.get("step", 1)
    count = site.attrs.get("size")

    def run(g: Any, start: Any, stop: Any, *dims: Any) -> Any:
        rows = next(len(x) for x, varying in zip((g, start, stop, *dims), site.varying) if varying)
        out = np.zeros((rows, *target(shape, dims[0] if dims else None)), g.dtype)
        if count is None or not np.ndim(start):
            out[(slice(None),) * (axis + 1) + (slice(one(start), one(stop), step),)] = g
            return out
        at = _positions(start, step, count, out.shape[axis + 1])
        piece = np.moveaxis(g, axis + 1, 1) if site.varying[0] else np.moveaxis(g, axis, 0)
        np.moveaxis(out, axis + 1, 1)[np.arange(rows)[:, None], at] = piece
        return out

    return run


def _onto_slice_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    _, start, stop, *dims = op.operands
    attrs = {"axis": op.attrs["axis"], "step": op.attrs.get("step", 1), "size": op.attrs.get("size")}
    return (b.emit("dynslice", ct, start, stop, **attrs), None, None, *([None] * len(dims)))


WHOLE = (None, None)
SLICES = (
    ((0, 2, 1), None), ((2, -1, -1), (1, 4, 2)), (None, (3, 0, -2)), ((1, 1, 1), None), ((0, 3, 1), (0, 4, 1)),
)
PIECES = (
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
        "dynslice", _infer_dynslice, _dynslice, _rows_dynslice, _dynslice_adjoint, sizes=_ends(1),
        samples=tuple(((x, a, b), {"axis": axis, "step": step}) for a, b, step, axis, x in CUTS)
        + tuple(((X, a, b), {"axis": 1, "step": 1, "size": 2}) for a, b in ((0, 2), (-3, -1), (2, 4))),
    ),
    Primitive(
        "onto_slice", _infer_onto_slice, _onto_slice, _rows_onto_slice, _onto_slice_adjoint, sizes=_sizes_onto_slice,
        samples=tuple(
            ((X[:, :2], a, b), {"shape": (3, 4), "axis": 1, "step": 1, "size": 2}) for a, b in ((0, 2), (-3, -1))
        )
        + (((V[:2], 1, 3), {"shape": (5,), "axis": 0, "step": 1}),),
    ),
)
