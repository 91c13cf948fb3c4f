"""Elements at several index arrays at once: `x[rows, columns]` read (`gather`), written (`put_gather`) and added to
(`add_gather`, which is `np.add.at`).

The invariant: the index arrays are of one shape and index the leading axes; negative ones count from the back, and one
out of range raises its row's IndexError. The cotangent of a read adds where places repeat; of several values written to
one place the last one stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spmd.ir.build import Builder
from spmd.ir.core import Op, Value
from spmd.ir.types import Num, Type
from spmd.ops.broadcasting import target, target_dims
from spmd.ops.calculus import constant, expanded, masked, num, shaped, sizes_of, spread
from spmd.ops.faults import blame, row_count
from spmd.ops.indexing import any_bad, wrapped
from spmd.ops.inference import agree, numbers
from spmd.ops.primitive import Faults, Primitive, Samples, Site
from spmd.ops.shaping import every_row

X = np.arange(1.0, 13.0).reshape(3, 4) ** 1.5
V = np.array([1.5, -2.0, 3.5, 0.25])
ROW, COLUMN = np.array([0, 2, -1]), np.array([3, 1, 1])


def _inexact(types: Sequence[Type], attrs: dict[str, Any]) -> bool:
    return not attrs.get("exact", False)


def _indexed(name: str, x: Num, ids: Sequence[Num]) -> tuple[int | None, ...]:
    """The shape of what index arrays take from an array."""
    if not ids or any(i.kind not in "iu" or i.text for i in ids):
        raise IndexError("arrays used as indices must be of integer (or boolean) type")
    if len(ids) > x.rank:
        raise IndexError(f"too many indices for array: array is {x.rank}-dimensional, but {len(ids)} were indexed")
    for other in ids[1:]:
        if other.rank != ids[0].rank or not all(agree(m, n) for m, n in zip(other.shape, ids[0].shape)):
            raise TypeError(f"'{name}' takes index arrays of one shape")
    return (*ids[0].shape, *x.shape[len(ids) :])


def _at(ids: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(np.asarray(i) for i in ids)


def _lanes(site: Site, first: int, ids: Sequence[Any], sizes: Sequence[int]) -> tuple[list[Any], Any]:
    """Index arrays with a lane axis and from 0, and the rows in which one is out of range (None: nowhere)."""
    found, bad = [], []
    for k, (i, n) in enumerate(zip(ids, sizes)):
        at, outside = wrapped(i, n)
        if outside is not None:
            varying = site.varying[first + k]
            bad.append(outside.reshape(len(outside), -1).any(axis=1) if varying else outside.any())
        found.append(at)
    return found, any_bad(bad)


def _spread_rows(site: Site, first: int, ids: Sequence[Any], count: int) -> tuple[Any, ...]:
    rank = site.types[first].rank
    lanes = np.arange(count).reshape((-1,) + (1,) * rank)
    wide = [i if site.varying[first + k] else i[None] for k, i in enumerate(ids)]
    return (lanes, *wide)


# --------------------------------------------------------------------------------------------------------- gather
def _infer_gather(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    x, *ids = numbers("gather", types)
    return Num(x.dtype, _indexed("gather", x, ids))


def _gather(x: Any, *ids: Any, exact: bool = False) -> Any:
    return np.asarray(x)[_at(ids)]


def _rows_gather(site: Site) -> Callable[..., Any]:
    lead = 1 if site.varying[0] else 0

    def run(x: Any, *ids: Any, faults: Faults | None = None) -> Any:
        found, bad = _lanes(site, 1, ids, x.shape[lead:])
        if faults is not None and bad is not None:
            blame(faults, bad, site, _gather, (x, *ids))
        count = row_count(site, (x, *ids))
        if 0 in x.shape[lead : lead + len(ids)]:
            inner = np.shape(ids[0])[1 if site.varying[1] else 0 :]
            return np.zeros((count, *inner, *x.shape[lead + len(ids) :]), x.dtype)
        at = _spread_rows(site, 1, found, count)
        return x[at] if lead else np.broadcast_to(x[at[1:]], (count, *x[at[1:]].shape[1:]))

    return run


def _gather_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    x, *ids = op.operands
    into = b.emit("onto_gather", ct, *ids, *sizes_of(b, x), shape=num(x).shape)
    return (into, *([None] * len(ids)))


# ---------------------------------------------------------------------------------------------------- onto_gather
def _infer_onto(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    shape = tuple(attrs["shape"])
    if None in shape:
        target_dims("onto_gather", types[-1], shape)
    return Num(numbers("onto_gather", types)[0].dtype, shape)


def _split(operands: Sequence[Any], shape: Any) -> tuple[Sequence[Any], Any]:
    return (operands[:-1], operands[-1]) if None in shape else (operands, None)


def _onto_gather(g: Any, *operands: Any, shape: Any) -> Any:
    ids, dims = _split(operands, shape)
    out = np.zeros(target(shape, dims), np.asarray(g).dtype)
    np.add.at(out, _at(ids), g)
    return out


def _rows_onto(site: Site) -> Callable[..., Any]:
    shape = tuple(site.attrs["shape"])

    def run(g: Any, *operands: Any) -> Any:
        ids, dims = _split(operands, shape)
        count = row_count(site, (g, *operands))
        out = np.zeros((count, *target(shape, dims)), np.asarray(g).dtype)
        at = _spread_rows(site, 1, [wrapped(i, n)[0] for i, n in zip(ids, out.shape[1:])], count)
        np.add.at(out, at, g if site.varying[0] else g[None])
        return out

    return run


def _onto_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    ids, _ = _split(op.operands[1:], op.attrs["shape"])
    back = b.emit("gather", ct, *ids, exact=True)
    return (shaped(b, back, op.operands[0]), *([None] * (len(op.operands) - 1)))


# ------------------------------------------------------------------------------------------ put_gather, add_gather
def _infer_put(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    x, part, *ids = numbers("put_gather", types)
    shape = _indexed("put_gather", x, ids)
    if part.dtype != x.dtype or part.rank != len(shape) or not all(agree(m, n) for m, n in zip(part.shape, shape)):
        raise TypeError(f"'put_gather' cannot put {part} into {x}")
    return Num(x.dtype, x.shape)


def _put_gather(x: Any, part: Any, *ids: Any, exact: bool = False) -> Any:
    out = np.array(x)
    out[_at(ids)] = part
    return out


def _add_gather(x: Any, part: Any, *ids: Any, exact: bool = False) -> Any:
    out = np.array(x)
    np.add.at(out, _at(ids), part)
    return out


def _rows_put(add: bool) -> Callable[[Site], Callable[..., Any]]:
    rule = _add_gather if add else _put_gather

    def rows(site: Site) -> Callable[..., Any]:
        def run(x: Any, part: Any, *ids: Any, faults: Faults | None = None) -> Any:
            out = np.array(every_row(site, (x, part, *ids))[0])
            found, bad = _lanes(site, 2, ids, out.shape[1:])
            if faults is not None and bad is not None:
                blame(faults, bad, site, rule, (x, part, *ids))
            if 0 in out.shape[1 : 1 + len(ids)]:
                return out
            at, value = _spread_rows(site, 2, found, len(out)), part if site.varying[1] else part[None]
            if add:
                np.add.at(out, at, value)
            else:
                out[at] = value
            return out

        return run

    return rows


def _put_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    x, part, *ids = op.operands
    whole = b.emit("put_gather", ct, constant(b, 0, part), *ids, exact=True)
    back = shaped(b, b.emit("gather", ct, *ids, exact=True), part)
    last = _last(b, x, ids)
    rank = num(part).rank
    last = expanded(b, last, range(num(ids[0]).rank, rank), rank)
    if num(last).shape != num(part).shape:
        shape = num(part).shape
        last = (b.emit("broadcast_to", last, b.emit("shape_of", part), shape=shape) if None in shape
                else b.emit("broadcast", last, shape=shape))
    return (whole, masked(b, last, back), *([None] * len(ids)))


def _last(b: Builder, x: Value, ids: Sequence[Value]) -> Value:
    """Which of the places that index arrays mean come for the last time."""
    place: Value | None = None
    total: Value | None = None
    for k, i in enumerate(ids):
        size = num(x).shape[k]
        n = b.const(np.int64(size)) if size is not None else (
            b.emit("cast", b.emit("dim", x, axis=k), dtype="int64", python=False))
        at, wide = b.emit("cast", i, dtype="int64", python=False), spread(b, n, i)
        at = b.emit("where", b.emit("lt", at, constant(b, 0, at)), b.emit("add", at, wide), at)
        place = at if place is None else b.emit("add", b.emit("mul", place, wide), at)
        total = n if total is None else b.emit("mul", total, n)
    assert place is not None and total is not None
    return b.emit("last_places", place, total)


def _add_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    part, ids = op.operands[1], op.operands[2:]
    return (ct, shaped(b, b.emit("gather", ct, *ids, exact=True), part), *([None] * len(ids)))


SAMPLES: Samples = (
    ((V, V[:3] * 2, ROW), {}), ((X, V[:3] * 2, ROW, COLUMN), {}), ((X, X[:, :4] * 2, ROW), {}),
    ((X, V[:3], ROW, COLUMN + 2), {}),
)
GATHERING: tuple[Primitive, ...] = (
    Primitive("gather", _infer_gather, _gather, _rows_gather, _gather_adjoint, _inexact,
              samples=(((V, ROW), {}), ((X, ROW, COLUMN), {}), ((X, ROW), {}), ((X, ROW, COLUMN + 2), {}))),
    Primitive("onto_gather", _infer_onto, _onto_gather, _rows_onto, _onto_adjoint,
              sizes=lambda types, attrs: (len(types) - 1,) if None in attrs["shape"] else (),
              samples=(((V[:3], ROW, COLUMN), {"shape": (3, 4)}), ((V[:3], np.array([1, 1, -2])), {"shape": (4,)}))),
    Primitive("put_gather", _infer_put, _put_gather, _rows_put(False), _put_adjoint, _inexact, samples=SAMPLES),
    Primitive("add_gather", _infer_put, _add_gather, _rows_put(True), _add_adjoint, _inexact, samples=SAMPLES),
)
