"""Ragged values that share their sizes: what is found out of one of them serves all.

Blocks of equal sizes lie in one space of flat rows. Which values share one is known when code is written (columns of
one run, a value spread over the sizes of another); then starts and sizes are computed once and handed on.
The invariant: a value made here has exactly the handles of the one that it is made like.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from spmd.backend.blas.plan import num, ragged_axes, trail
from spmd.ir.core import Op
from spmd.runtime.ragged import Array, Ragged, offsets, packed, segment_sum

KERNEL_SUMS = frozenset({"float32", "float64"})


def first_column(rows: Any, run: tuple[Array, Array], data: Array) -> Ragged:
    """One field of all rows of each run; `rows`: the rows of all runs."""
    return packed(data[rows], run[1][:, None])


def more_columns(rows: Any, like: Ragged, data: Array) -> Ragged:
    """Another field of the same runs."""
    return like.with_data(data[rows])


def sizes_of(x: Ragged) -> Array:
    """All sizes of each block, int64 [K, rank]."""
    k = x.dims.shape[1]
    out = np.empty((len(x), k + len(x.trail)), np.int64)
    out[:, :k] = x.dims
    out[:, k:] = x.trail
    return out


def spreads(op: Op, form: str, like: Any) -> bool:
    """Whether a broadcast_to repeats rows of its operand over ragged axes; `like`: a type with its target's sizes."""
    result, source = num(op.result), num(op.operands[0])
    k, inner = ragged_axes(result), trail(result)
    if form != "rows" or not source.static or ragged_axes(like) != k or trail(like) != inner:
        return False
    lead = source.rank - len(inner)
    return lead >= 0 and source.shape[lead:] == inner and all(n == 1 for n in source.shape[:lead])


def spread(x: Array, like: Ragged) -> Ragged:
    """Each row once for every flat row of its block."""
    rows = x.reshape((len(x), *like.trail)) if x.ndim != 1 + len(like.trail) else x
    return like.with_data(np.repeat(rows, like.sizes, axis=0))


def sums_blocks(op: Op, form: str) -> bool:
    """Whether a sum adds up the flat rows of each block, rows of several numbers: NumPy adds these one after the other,
    as the row kernel does (single numbers it adds in pairs)."""
    source = num(op.operands[0])
    k = ragged_axes(source)
    whole = tuple(op.attrs["axes"]) == tuple(range(k))
    return form == "ragged" and whole and bool(trail(source)) and source.dtype in KERNEL_SUMS


def block_sums(shape: tuple[int, ...]) -> Callable[[Ragged], Array]:
    """The sums of the flat rows of each block, as rows of `shape`."""
    from spmd.backend.simd.rows import segment_sum_rows

    def total(x: Ragged) -> Array:
        data = x.flat()
        if not data.flags.c_contiguous:
            return segment_sum(data, x.sizes).reshape((len(x), *shape))
        out = np.empty((len(x), *x.trail), data.dtype)
        segment_sum_rows(data, x.lo if x.packed else offsets(x.sizes), x.sizes, out)
        return out.reshape((len(x), *shape))

    return total
