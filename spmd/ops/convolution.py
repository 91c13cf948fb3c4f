"""Convolution of two vectors, in full: every product of two elements is added where their places add up to.

The invariant: other modes are slices of the full one, and correlation is convolution with one operand turned round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spmd.ir.build import Builder
from spmd.ir.core import Op, Value
from spmd.ir.types import Num, Type
from spmd.ops.calculus import lift, num
from spmd.ops.faults import blame
from spmd.ops.inference import numbers
from spmd.ops.primitive import Faults, Primitive, Site
from spmd.ops.shaping import every_row


def _infer(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    x, k = numbers("convolve", types, 2)
    if x.rank != 1 or k.rank != 1 or x.dtype != k.dtype or x.kind not in "iuf":
        raise ValueError("object too deep for desired array")
    for side, name in ((x, "a"), (k, "v")):
        if side.shape[0] == 0:
            raise ValueError(f"{name} cannot be empty")
    known = None if x.shape[0] is None or k.shape[0] is None else x.shape[0] + k.shape[0] - 1
    return Num(x.dtype, (known,))


def _raises(types: Sequence[Type], attrs: dict[str, Any]) -> bool:
    return not attrs.get("exact", False) and any(not t.static for t in numbers("convolve", types))


def _convolve(x: Any, k: Any, exact: bool = False, strong: bool = False) -> Any:
    """`strong`: 0 times anything is 0, as in the gradient of one operand."""
    return convolved(x[None], k[None], strong)[0] if strong else np.convolve(x, k)


def convolved(x: Any, k: Any, strong: bool) -> Any:
    """Row by row. NumPy convolves single vectors: here the shorter operand is walked through, for all rows at once."""
    long, short = (x, k) if x.shape[1] >= k.shape[1] else (k, x)
    out = np.zeros((len(x), x.shape[1] + k.shape[1] - 1), x.dtype)
    strong = strong and not np.isfinite(np.sum(x) * np.sum(k))
    for at in range(short.shape[1]):
        tap = short[:, at : at + 1]
        product = tap * long
        if strong:
            product = np.where((tap == 0) | (long == 0), np.zeros((), x.dtype), product)
        out[:, at : at + long.shape[1]] += product
    return out


def _rows(site: Site) -> Callable[..., Any]:
    def run(x: Any, k: Any, faults: Faults | None = None) -> Any:
        x, k = every_row(site, (x, k))
        if not x.shape[1] or not k.shape[1]:
            if faults is not None:
                blame(faults, True, site, _convolve, (x, k))
            return np.zeros((len(x), max(x.shape[1] + k.shape[1] - 1, 0)), x.dtype)
        return convolved(x, k, site.attrs.get("strong", False))

    return run


def turned(b: Builder, x: Value) -> Value:
    """A vector from its end to its beginning."""
    size = num(x).shape[0]
    if size is None:
        return b.emit("dynslice", x, axis=0, step=-1, given=(False, False))
    return b.emit("slice", x, index=((size - 1, -1, -1),))


def _adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    x, k = op.operands
    return _against(b, ct, k, x), _against(b, ct, x, k)


def _against(b: Builder, ct: Value, other: Value, like: Value) -> Value:
    """The cotangents at all distances that the other operand reaches to, from each place of `like`."""
    whole = b.emit("convolve", ct, turned(b, other), exact=True, strong=True)
    sizes = (num(other).shape[0], num(like).shape[0])
    if None not in sizes:
        start = (sizes[0] or 0) - 1
        return b.emit("slice", whole, index=((start, start + (sizes[1] or 0), 1),))
    first = b.emit("sub", lift(b, b.emit("dim", other, axis=0)), b.const(np.int64(1)))
    last = b.emit("add", first, lift(b, b.emit("dim", like, axis=0)))
    return b.emit("dynslice", whole, first, last, axis=0, step=1, size=sizes[1])


X, K = np.array([1.5, -2.0, 0.25, 3.0]), np.array([0.5, 4.0, -1.0])

CONVOLUTION: tuple[Primitive, ...] = (
    Primitive(
        "convolve", _infer, _convolve, _rows, _adjoint, _raises,
        samples=(((X, K), {}), ((K, X), {}), ((K[:1], X), {}), ((np.array([1, 2, 3]), np.array([4, -5])), {})),
    ),
)
