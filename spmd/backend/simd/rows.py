"""Moving and summing whole rows: gather, scatter-add, sums of segments and of columns.

Invariant: every index is checked before anything is written; sums are taken in the order of ascending rows, so results
do not depend on the vector width and repeat exactly. Each function is compiled once per process and element type. Must
not know what the rows mean.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from math import prod

import numpy as np
from numpy.typing import NDArray

from spmd.backend.simd import arrays
from spmd.backend.simd.arithmetic import ELEMENTS
from spmd.backend.simd.entry import refusal
from spmd.backend.simd.row_code import WRITERS
from spmd.backend.simd.target import Assembly, Machine, assemble, host

Array = NDArray[np.generic]
Indices = NDArray[np.int64]
Call = Callable[[tuple[object, ...], int, int, int], int]

_NAMES = {np.dtype(name).char: name for name in ELEMENTS}
_lock = threading.Lock()
_compiled: dict[tuple[str, str], tuple[Assembly, Call]] = {}
_signature = (ctypes.c_int64, ctypes.py_object, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
_by_address = (ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


def gather_rows(source: Array, indices: Indices, out: Array) -> None:
    """out[k] = source[indices[k]] for source [N, ...], indices int64 [K], out [K, ...] of one dtype.

    Rows are contiguous, at any distance. Raises IndexError for an index outside of 0..N-1, ValueError for arrays that
    do not fit; then nothing is written.
    """
    _run("gather", (out, indices, source), len(indices), _features(out), len(source))


def scatter_add_rows(target: Array, indices: Indices, source: Array) -> None:
    """target[indices[k]] += source[k], k ascending; indices may repeat.

    target [N, ...] and source [K, ...] of one number type, indices int64 [K]. Raises as `gather_rows`.
    """
    _run("scatter_add", (target, indices, source), len(indices), _features(source), len(target))


def segment_sum_rows(source: Array, starts: Indices, counts: Indices, out: Array) -> None:
    """out[k] = sum of source[starts[k] : starts[k] + counts[k]], rows ascending; zeros where the count is 0.

    source [T, ...] and out [K, ...] of one number type, starts and counts int64 [K]. Raises IndexError for a segment
    that is not within 0..T, ValueError for arrays that do not fit; then nothing is written.
    """
    _run("segment_sum", (out, starts, counts, source), len(starts), _features(out), len(source))


def column_sum(source: Array, out: Array) -> None:
    """out = sum of source's rows, ascending: source [K, ...], out contiguous like a row; zeros for K = 0."""
    _run("column_sum", (out, source), len(source), out.size, len(source))


def _features(array: Array) -> int:
    return prod(array.shape[1:])


def _run(name: str, given: tuple[Array, ...], K: int, F: int, N: int) -> None:
    dtype = _NAMES.get(given[0].dtype.char, "")
    if dtype not in WRITERS[name].dtypes:
        raise ValueError(f"{name} is for rows of {', '.join(sorted(WRITERS[name].dtypes))}, not {given[0].dtype}")
    found = _compiled.get((name, dtype))
    if found is None:
        with _lock:
            found = _compiled.get((name, dtype))
            if found is None:
                found = _compiled[name, dtype] = _compile(name, dtype, host())
    result = found[1]((np.ndarray, None, *given), K, F, N)
    if result:
        raise _error(name, dtype, given, (K, F, N), result)


def _error(name: str, dtype: str, given: tuple[Array, ...], size: tuple[int, int, int], result: int) -> Exception:
    arguments = WRITERS[name].arguments
    K, F, N = size
    if result < 0:
        number = -1 - result
        what, kind, lead = arguments[number]
        wanted = "int64" if kind == "row" else dtype
        return refusal(given[number], what, kind, wanted, K if lead == "K" else N, F, written=number == 0)
    row = result - 1
    indices = [f"{what}[{row}] = {given[i][row]}" for i, (what, kind, _) in enumerate(arguments) if kind == "row"]
    return IndexError(f"{', '.join(indices)}: outside of the {N} rows")


def _compile(name: str, dtype: str, machine: Machine) -> tuple[Assembly, Call]:
    b = WRITERS[name].write(dtype, machine)
    text = b.function(name, "ptr %arguments, i64 %K, i64 %F, i64 %N")
    assembly = assemble("\n".join([*sorted(b.declarations), *b.functions.values(), text]), [name], machine)
    address = assembly.addresses[name]
    if arrays.readable():
        return assembly, ctypes.CFUNCTYPE(*_signature)(address)
    by_address = ctypes.CFUNCTYPE(*_by_address)(address)

    def call(items: tuple[object, ...], K: int, F: int, N: int) -> int:
        table = arrays.Described(items)
        return int(by_address(table.address, K, F, N))

    return assembly, call
