"""Rows of tables and runs of rows: what the structural ops do for all rows of a region at once.

The invariant: a bad row (None where a row is needed, an index out of range) is reported and goes on with row 0; it is
never read out of bounds. Must not know regions or code generation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spmd.ops.outcomes import exception
from spmd.runtime.faults import Faults
from spmd.runtime.ragged import Array, Ragged, packed, runs

Pair = tuple[Array, Array]


def gather(data: Array, rows: Array) -> Array:
    """Rows of an array. An empty table gives zeros: then all rows are bad ones."""
    if not len(data):
        return np.zeros((len(rows), *data.shape[1:]), data.dtype)
    return data.take(rows, 0)


def gather_or(data: Array, rows: Array, other: Any, varying: bool) -> Array:
    """Rows of an array, and the other value where there is no row: of each row if it is varying."""
    out = gather(data, rows)
    missing = rows < 0
    if missing.any():
        out[missing] = other[missing] if varying else other
    return out


def gather_run(data: Pair, rows: Array) -> Pair:
    """Rows of a pair of columns (first, count)."""
    return gather(data[0], rows), gather(data[1], rows)


def gather_ragged(data: Ragged, rows: Array) -> Ragged:
    """Rows of ragged values; the buffer is shared."""
    return Ragged(data.data, gather(data.lo, rows), gather(data.dims, rows))


def item(run: Pair, index: Any, faults: Faults) -> Array:
    """Row `first + index` of each run, negative indices from its end."""
    first, count = run
    at = np.where(np.less(index, 0), index + count, index)
    bad = (at < 0) | (at >= count)
    if bad.any():
        faults.report(bad, lambda row: IndexError("list index out of range"))
        return np.where(bad, 0, first + at)  # an empty run may begin where the table ends
    return first + at


def nonnull(ref: Array, faults: Faults, make: Callable[[int], BaseException]) -> Array:
    """The rows, none of them None."""
    bad = ref < 0
    if bad.any():
        faults.report(bad, make)
        return np.where(bad, 0, ref)
    return ref


def guard(cond: Any, size: int, faults: Faults, make: Callable[[int], BaseException]) -> None:
    """Reports rows where the condition is false."""
    bad = np.broadcast_to(np.logical_not(cond), (size,))
    if bad.any():
        faults.report(bad, make)


def part(run: Pair, low: Any, high: Any) -> Pair:
    """Rows low..high-1 of each run; both are clipped already."""
    first, count = run
    low = np.broadcast_to(np.asarray(low, np.int64), count.shape)
    return first + low, np.maximum(np.broadcast_to(np.asarray(high, np.int64), count.shape) - low, 0)


def column(run: Pair, data: Array) -> Ragged:
    """One field of all rows of each run: [K runs] of [count, *field]."""
    first, count = run
    dims = count[:, None]
    if len(first) and (first[1:] == first[:-1] + count[:-1]).all():
        low = int(first[0])
        return packed(data[low : low + int(count.sum())], dims)
    return packed(data[runs(first, count)], dims)


def run_rows(run: Pair) -> Any:
    """The rows of all runs one after the other, as a slice where they are contiguous."""
    first, count = run
    if len(first) and (first[1:] == first[:-1] + count[:-1]).all():
        return slice(int(first[0]), int(first[0]) + int(count.sum()))
    return runs(first, count)


def make_error(error: Any) -> Callable[[int], BaseException]:
    """`error` attribute -> builds the exception. A class or the name of a builtin one, and its arguments."""
    return lambda row: exception(error)


def element(
    data: Array, rows: Any, index: Sequence[Any], shape: Sequence[int], size: int, faults: Faults, text: str = ""
) -> Array:
    """data[rows, i, j, ...] without reading whole rows; `shape`: sizes of the indexed axes."""
    if isinstance(rows, slice):
        rows = np.arange(rows.start, rows.stop, rows.step or 1)
    return data[(rows, *bounded(index, shape, size, faults, text))]


def bounded(
    index: Sequence[Any], shape: Sequence[Any], size: int, faults: Faults | None, text: str = ""
) -> list[Array]:
    """Indices of leading axes with negative ones wrapped; bad ones are reported (with `text`, if there is one) and
    become 0."""
    out = []
    for axis, (i, n) in enumerate(zip(index, shape)):
        i = np.broadcast_to(np.asarray(i, np.int64), (size,))
        at = np.where(i < 0, i + n, i)
        bad = (at < 0) | (at >= n)
        if bad.any():
            if faults is not None:
                faults.report(bad, _index_error(i, axis, n, text))
            at = np.where(bad, 0, at)
        out.append(at)
    return out


def _index_error(index: Array, axis: int, n: Any, text: str) -> Callable[[int], BaseException]:
    if text:
        return lambda row: IndexError(text)
    sizes = np.broadcast_to(n, index.shape).copy()
    index = index.copy()
    return lambda row: IndexError(f"index {index[row]} is out of bounds for axis {axis} with size {sizes[row]}")


def ragged_element(
    value: Ragged, index: Sequence[Any], faults: Faults | None, text: str = ""
) -> tuple[Any, Array]:
    """Element of each block: its value, and where it lies in the buffer (first row of what remains). What remains
    keeps its sizes if some are ragged still."""
    size, k = len(value), value.dims.shape[1]
    inner = [value.dims[:, axis] if axis < k else value.trail[axis - k] for axis in range(len(index))]
    at = bounded(index, inner, size, faults, text)
    lead = min(len(index), k)
    lo = np.zeros(size, np.int64)
    for axis in range(k):
        lo = lo * value.dims[:, axis] + (at[axis] if axis < lead else 0)
    lo = value.lo + lo
    if lead < k:
        return Ragged(value.data, lo, value.dims[:, lead:]), lo
    if not len(value.data):
        return np.zeros((size, *value.trail[len(index) - k :]), value.data.dtype), lo
    lo = np.minimum(lo, len(value.data) - 1)
    return value.data[(lo, *at[k:])], lo
