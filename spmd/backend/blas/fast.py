"""Shorter ways for ops whose general rule costs more than the work itself on few rows.

The invariant: each gives exactly what the primitive's rows rule gives and hands every doubtful row to that rule.
`moves` gives the row kernels where kernels may be generated, NumPy's own calls elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from spmd.backend.blas.plan import num
from spmd.ir.core import Op
from spmd.runtime.faults import Faults
from spmd.runtime.ragged import Array, add_rows
from spmd.runtime.threads import BLAS, WIDE

Rule = Callable[..., Any]
REDUCTIONS: dict[str, Any] = {"sum": np.add, "max": np.maximum, "min": np.minimum}


def shorter(op: Op, forms: list[str], general: Rule) -> Rule:
    """A shorter rule for an op over static shapes, or the general one."""
    if op.name in REDUCTIONS and forms == ["rows"]:
        return _reduction(op, general)
    if op.name == "index" and len(forms) == 2 and forms[1] == "rows":
        return _index(op, forms[0] == "rows", general)
    if op.name == "onto_index" and forms == ["rows", "rows"] and num(op.result).rank:
        return _onto_index(op, general)
    if op.name == "matmul" and sorted(forms) == ["rows", "uniform"]:
        return _product(op, forms.index("rows"), general)
    return general


def _reduction(op: Op, general: Rule) -> Rule:
    source = num(op.operands[0])
    axes = tuple(a % source.rank + 1 for a in op.attrs["axes"])
    empty = any(not source.shape[a - 1] for a in axes)
    if not source.floating or not axes or (empty and op.name != "sum"):
        return general
    reduce, keep = REDUCTIONS[op.name].reduce, bool(op.attrs.get("keepdims"))
    axis = axes[0] if len(axes) == 1 else axes
    return lambda x: reduce(x, axis, None, None, keep)


def _index(op: Op, varying: bool, general: Rule) -> Rule:
    def index(x: Any, i: Array, faults: Faults | None = None) -> Any:
        size = x.shape[1] if varying else len(x)
        # As unsigned numbers, negative indices are too large as well.
        if not size or i.dtype != np.int64 or np.maximum.reduce(i.view(np.uint64)) >= size:
            return general(x, i, faults=faults)
        return x[np.arange(len(i)), i] if varying else x.take(i, 0)

    return index


def _onto_index(op: Op, general: Rule) -> Rule:
    shape, dtype = op.attrs["shape"], np.dtype(num(op.result).dtype)

    def onto_index(g: Any, i: Array) -> Any:
        if not shape[0] or i.dtype != np.int64 or np.maximum.reduce(i.view(np.uint64)) >= shape[0]:
            return general(g, i)
        out = np.zeros((len(i), *shape), dtype)
        out[np.arange(len(i)), i] = g
        return out

    return onto_index


def _product(op: Op, varying: int, general: Rule) -> Rule:
    """A product with a matrix that all rows share: large ones get all threads."""
    inner = num(op.operands[0]).shape[-1] or 0
    limit = -(-WIDE // max(num(op.result).size * inner, 1))

    def product(x: Any, y: Any, **given: Any) -> Any:
        if len(y if varying else x) < limit:
            return general(x, y, **given)
        with BLAS.wide():
            return general(x, y, **given)

    return product


class Moves:
    """Adds of whole rows by NumPy."""

    def add(self, target: Array, rows: Any, value: Any) -> None:
        """target[rows] += value; rows do not repeat."""
        target[rows] += value

    def add_repeated(self, target: Array, rows: Any, value: Any) -> None:
        """target[rows] += value; rows may repeat."""
        add_rows(target, rows, value)


class KernelMoves(Moves):
    """The same by the row kernels, where they serve the arrays at hand."""

    def __init__(self) -> None:
        from spmd.backend.simd.rows import scatter_add_rows

        self._scatter = scatter_add_rows

    def add(self, target: Array, rows: Any, value: Any) -> None:
        """target[rows] += value; rows do not repeat."""
        if isinstance(rows, slice) or not _serves(target, value, len(rows)):
            target[rows] += value
        else:
            self._scatter(target, rows, value)

    def add_repeated(self, target: Array, rows: Any, value: Any) -> None:
        """target[rows] += value; rows may repeat."""
        if isinstance(rows, slice) or not _serves(target, value, len(rows)):
            add_rows(target, rows, value)
        else:
            self._scatter(target, rows, value)


def _serves(target: Array, value: Any, count: int) -> bool:
    """Whether the kernel takes these: one element type, a full row each, rows contiguous."""
    return (
        isinstance(value, np.ndarray)
        and value.dtype == target.dtype
        and target.dtype.kind == "f"
        and target.dtype.itemsize >= 4
        and value.ndim == target.ndim
        and len(value) == count
        and value.flags.c_contiguous
        and target.flags.c_contiguous
    )


def moves(target: str) -> Moves:
    """What moves rows on this target."""
    return Moves() if target == "blas" else KernelMoves()
