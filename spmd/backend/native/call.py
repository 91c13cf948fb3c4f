"""Compiled loops: many become one LLVM module, each a callable that runs all rows of a region.

Invariant: a call's memory and state are its own, so threads may run one loop at once; the exception of a row is made by
the failing op's own one-example rule on that row's operands. Python's lock is given back while rows run long. Must not
know how a region comes by its operands.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from spmd.backend.native import memory
from spmd.backend.native.code import LATE, NO_MEMORY, STOPPED, LoopWriter
from spmd.backend.native.support import as_number, in_memory, ragged_axes
from spmd.backend.simd.target import Assembly, assemble, host
from spmd.errors import InternalError, MemoryBudgetError
from spmd.ir.core import Op, Value
from spmd.ir.types import Num
from spmd.ops.faults import raised
from spmd.ops.table import PRIMITIVES
from spmd.runtime.faults import Faults
from spmd.runtime.ragged import Array, Ragged, from_dense, packed

_run = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
_plain = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
_gather = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
MOST = (1 << 63) - 1


def _api(name: str) -> int:
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


class NativeLoop:
    """One loop. `sites`: the ops that a row may fail at; `make_error` builds the exception of a `guard` or `raise`."""

    def __init__(self, writer: LoopWriter, assembly: Assembly, make_error: Any) -> None:
        block = writer.block
        self.takes = [_num(v) for v in block.args]
        self.gives = [_num(v) for v in block.terminator.operands]
        self.sites = writer.sites
        self.width = writer.width
        self.words = writer.words
        self.make_error = make_error
        self.assembly = assembly
        self._run = _run(assembly.addresses[writer.name])
        self._ending = _ending()
        self._release = _plain(self._ending.addresses["release"])
        self._collect = _gather(self._ending.addresses["collect"])

    def __call__(
        self, run: Any, lanes: Array, ft: Faults, first: int, values: Sequence[tuple[str, Any]], fields: Sequence[Any]
    ) -> Any:
        """The results of all rows, as rows or Ragged. Rows that failed are reported under `first` + site; if some ran
        too long, `ft.late` says which and there are no results. `fields`: the table fields that the writer named."""
        count = len(lanes)
        words = np.zeros(self.words, np.int64)
        status = np.zeros(count, np.int64)
        for _, bad, _make in ft.found:
            status[np.broadcast_to(bad, (count,))] = LATE
        records = np.zeros((count, self.width), np.int64)
        least = run.fault_order.lane if run.fault_order.any else MOST
        words[: memory.WORDS] = (
            count, status.ctypes.data, lanes.ctypes.data, memory.FIRST, 0, max(2 * run.budget, 1), 0,
            records.ctypes.data, least, -1, 0, run.patience, 0, _SAVE, _RESTORE, _SIGNALS,
        )
        status_before = status != 0
        kept: list[Any] = [status, records, lanes]
        at = memory.WORDS
        for type_, (form, value) in zip(self.takes, values, strict=True):
            at = _given(words, at, type_, form, value, count, kept)
        outputs = [_room(words, type_, count, kept) for type_ in self.gives]
        for room in outputs:
            for part in room:
                words[at] = part.ctypes.data
                at += 1
        for field in fields:
            at = _field(words, at, field, kept)
        try:
            answer = self._run(words.ctypes.data)
            if answer == STOPPED:
                raise KeyboardInterrupt
            if answer:
                raise InternalError("a compiled loop came to a place that nothing leads to")
            late = (status == LATE) & ~status_before & (lanes <= words[memory.LEAST])
            if late.any():
                ft.late = late
                return None
            found = [self._result(type_, room, count) for type_, room in zip(self.gives, outputs)]
        finally:
            self._release(words.ctypes.data)
        if (status > 0).any():
            kept_bytes = sum(int(room[1].sum()) for room in outputs if len(room) > 1)
            self._report(ft, first, status, records, kept_bytes > run.budget)
        return found

    def _result(self, type_: Num, room: list[Array], count: int) -> Any:
        if len(room) == 1:
            return room[0]
        blocks, nbytes, dims = room
        axes = ragged_axes(type_)
        trail = tuple(n for n in type_.shape[axes:] if n is not None)
        data = np.empty((int(dims.prod(axis=1).sum()), *trail), type_.dtype)
        self._collect(data.ctypes.data, blocks.ctypes.data, nbytes.ctypes.data, count)
        return packed(data, dims)

    def _report(self, ft: Faults, first: int, status: Array, records: Array, crowded: bool) -> None:
        """Hands on the rows' exceptions. `crowded`: other rows' results took half of the memory."""
        for number in np.unique(status[status > 0]).tolist():
            bad = status == number
            if number >= NO_MEMORY:
                ft.at = first + number - NO_MEMORY
                ft.report(bad, lambda row: _outgrown(crowded))
                continue
            op = self.sites[number - 1]
            ft.at = first + number - 1
            if op.name in ("guard", "raise", "nonnull"):
                ft.report(bad, self.make_error(op.attrs["error"]))
            elif op.name == "item":
                ft.report(bad, lambda row: IndexError("list index out of range"))
            else:
                ft.report(bad, _Maker(op, records))


def _outgrown(crowded: bool) -> MemoryBudgetError:
    error = MemoryBudgetError(
        "the arrays of a loop outgrew the memory budget",
        hint="check that the loop ends; if it does, raise SPMD_BUDGET.",
    )
    error.divisible = crowded
    return error


class _Maker:
    """Builds the exception of a row from what the loop wrote down of its operands."""

    def __init__(self, op: Op, records: Array) -> None:
        self.op = op
        self.records = records

    def __call__(self, row: int) -> BaseException:
        words = self.records[row]
        values, at = [], 0
        for operand in self.op.operands:
            value, at = _example(_num(operand), words, at)
            values.append(value)
        return raised(PRIMITIVES[self.op.name].numpy, values, self.op.attrs)


def _example(type_: Num, words: Array, at: int) -> tuple[Any, int]:
    """One example's operand: a number or small array as it was; of others an array of the sizes."""
    dtype = np.dtype(type_.dtype)
    if in_memory(type_):
        shape = tuple(int(n) for n in words[at : at + type_.rank])
        return np.broadcast_to(np.zeros((), dtype), shape), at + type_.rank
    count = type_.size if type_.rank else 1
    raw = words[at : at + count].copy().view(np.uint8).reshape(count, 8)[:, : dtype.itemsize]
    value = np.ascontiguousarray(raw).view(dtype).reshape(type_.shape)  # type: ignore[arg-type]
    return (value.item() if type_.python else value[()]), at + count


def _num(value: Value) -> Num:
    return as_number(value.type)


def _given(words: Array, at: int, type_: Num, form: str, value: Any, count: int, kept: list[Any]) -> int:
    """Fills in the words of an operand; where the next one's begin."""
    axes = ragged_axes(type_)
    dtype = np.dtype(type_.dtype)
    if not axes:
        if form == "ragged":
            value = value.dense(type_.shape)
        elif form == "run":
            value = np.stack(value, axis=1)
        array = np.ascontiguousarray(value, dtype)
        step = 0 if form == "uniform" else dtype.itemsize * math.prod(n for n in type_.shape if n is not None)
        kept.append(array)
        words[at : at + 2] = array.ctypes.data, step
        return at + 2
    step = 1
    if form == "uniform":
        array = np.ascontiguousarray(value, dtype)
        value, step = Ragged(array, np.zeros(1, np.int64), np.array([array.shape[:axes]], np.int64)), 0
    elif form == "rows":
        value = from_dense(value, axes)
    data = np.ascontiguousarray(value.data, dtype)
    lo, dims = np.ascontiguousarray(value.lo, np.int64), np.ascontiguousarray(value.dims, np.int64)
    kept += [data, lo, dims]
    words[at : at + 4] = data.ctypes.data, lo.ctypes.data, dims.ctypes.data, step
    return at + 4


def _field(words: Array, at: int, field: Any, kept: list[Any]) -> int:
    """Fills in the words of a table's field: how many rows, and addresses."""
    if isinstance(field, Ragged):
        parts, rows = [field.data, field.lo, field.dims], len(field)
    else:
        parts = list(field) if isinstance(field, tuple) else [field]
        rows = len(parts[0])
    parts = [np.ascontiguousarray(part) for part in parts]
    kept += parts
    words[at : at + 1 + len(parts)] = rows, *(part.ctypes.data for part in parts)
    return at + 1 + len(parts)


def _room(words: Array, type_: Num, count: int, kept: list[Any]) -> list[Array]:
    axes = ragged_axes(type_)
    if not axes:
        return [np.zeros((count, *(n for n in type_.shape if n is not None)), type_.dtype)]
    return [np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros((count, axes), np.int64)]


_SAVE, _RESTORE, _SIGNALS = (_api(n) for n in ("PyEval_SaveThread", "PyEval_RestoreThread", "PyErr_CheckSignals"))


@lru_cache(maxsize=1)
def _ending() -> Assembly:
    return assemble(memory.ENDING, ["release", "collect"], host())


def compile_loops(writers: Sequence[LoopWriter], make_error: Any) -> list[NativeLoop]:
    """The loops, compiled together. `make_error`: an `error` attribute -> what builds the exception."""
    declarations: set[str] = set()
    functions: dict[str, str] = {}
    for writer in writers:
        declarations |= writer.b.declarations
        functions |= writer.b.functions
    texts = [line for writer in writers for line in (*writer.globals, writer.text)]
    shared = [memory.MEMCPY, memory.ASK]
    if any("@take(" in text or "@grow(" in text for text in texts):
        shared.append(memory.BLOCKS)
    text = "\n".join([*shared, *sorted(declarations), *functions.values(), *texts])
    assembly = assemble(text, [writer.name for writer in writers], host())
    return [NativeLoop(writer, assembly, make_error) for writer in writers]
