"""What a forward pass leaves: results, the log, and the way back.

The invariant: a Run is only read after it is made, so cotangents may be asked for again and from several threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from spmd.backend.blas.chunks import Bounds, Chunk
from spmd.backend.blas.fast import Moves
from spmd.backend.blas.plan import Plan
from spmd.backend.blas.prologue import run_adjoint
from spmd.backend.blas.reverse import Backward
from spmd.ir.region import AdjointRegion
from spmd.runtime.code import Code
from spmd.runtime.frames import ColumnSpec, TableData
from spmd.runtime.log import Log
from spmd.runtime.ragged import Array, Ragged, concat, packed
from spmd.runtime.threads import BLAS


@dataclass(eq=False)
class Cotangents:
    """What a backward pass gives.

    inputs  per module input (derived ones left out): array like the input, or [B, *shape] per example; None for those
            that the results do not depend on
    params  per parameter of the entry: [B, *shape] or Ragged, or None
    tables  (table, field) -> array like the field's (a Ragged field: a Ragged with its handles)
    """

    inputs: list[Any]
    params: list[Any]
    tables: dict[tuple[str, int], Any]
    batch: int


class Compiled(Protocol):
    """What a run reads of the compiled program that made it."""

    plan: Plan
    code: Code
    moves: Moves
    adjoints: list[Any]
    prologue_adjoint: tuple[AdjointRegion, Any] | None
    differentiated: set[int]


class Run:
    """A finished forward pass.

    results      per result of the entry: [B, *shape], Ragged, int64 [B] (Ref) or a pair of int64 [B] (Seq)
    region_runs  how often each region ran, by its id
    log          the schedule log (of the only chunk, or the first)
    chunks       examples of each chunk

    Frames of one chunk stay until the Run goes. Of several chunks only the results stay; `again` then runs them with a
    tape, one after the other, each time that cotangents are asked for.
    """

    def __init__(
        self,
        compiled: Compiled,
        chunks: Iterable[Chunk],
        batch: int,
        again: Callable[[list[Bounds]], Iterator[Chunk]] | None = None,
    ) -> None:
        self.compiled = compiled
        self.batch = batch
        self.again = again
        self.chunks: list[int] = []
        self.logs: list[Log] = []
        self.only: Chunk | None = None
        spec = compiled.code.frames[compiled.code.entry]
        columns = [spec.columns[p] for p in spec.results]
        parts: list[list[Any]] = []
        for chunk in chunks:
            self.chunks.append(chunk.batch)
            self.logs.append(chunk.run.log)
            parts.append([self._rows(column, chunk) for column in columns])
            self.only = chunk if again is None else None
        self.results = [_result(column, list(rows)) for column, rows in zip(columns, zip(*parts))]

    def _rows(self, column: ColumnSpec, chunk: Chunk) -> Any:
        """The results of a chunk, which are the caller's to write to and to keep: copied where a tape may hold their
        cells as residuals, where they are inputs, and where they would keep far more memory than their own."""
        run = chunk.run
        rows = run.frames[self.compiled.code.entry].read(column, slice(0, chunk.batch), run.arenas)
        ended = self.again is None and not run.tape
        if isinstance(rows, tuple):
            return rows
        if isinstance(rows, Ragged):
            arena = run.arenas.get(column.dtype, column.shape)
            own = ended and not arena.borrowed and 2 * int(rows.sizes.sum()) >= len(arena.buffer)
            return rows if own else packed(rows.data[rows.index()], rows.dims)
        return owned(rows) if ended else rows.copy()

    @property
    def log(self) -> Log:
        return self.logs[0]

    @property
    def region_runs(self) -> dict[int, int]:
        return {i: sum(counts) for i, counts in enumerate(zip(*(log.runs for log in self.logs)))}

    def table(self, name: str) -> TableData:
        """The results of all frames of a function, for handles into '@name'."""
        assert self.only is not None
        run = self.only.run
        table = run.frames[self.compiled.plan.function_number[name.removeprefix("@")]]
        every = slice(0, table.n)
        return TableData(name, [table.read(table.spec.columns[p], every, run.arenas) for p in table.spec.results])

    def backward(
        self,
        result_cotangents: Sequence[Any],
        per_lane: bool = False,
        fields: dict[tuple[str, int], Any] | None = None,
    ) -> Cotangents:
        """Cotangents of everything that the results depend on. May be called again; the run stays as it is.

        result_cotangents  per result: rows as the result's, or None
        fields             cotangents of results of inner frames: ('@f', field) -> rows of `table('@f')`
        """
        low, parts = 0, []
        for chunk in self._taped():
            high = low + chunk.batch
            own = [None if c is None else rows_of(c, low, high, self.batch) for c in result_cotangents]
            parts.append(self._chunk_backward(chunk, own, per_lane, fields or {}))
            low = high
        return parts[0] if len(parts) == 1 else _sum(parts, per_lane)

    def _taped(self) -> Iterator[Chunk]:
        if self.again is not None:
            ends = np.cumsum(self.chunks).tolist()
            yield from self.again([(high - size, high) for size, high in zip(self.chunks, ends)])
        elif self.only is not None:
            yield self.only

    def _chunk_backward(self, chunk: Chunk, given: list[Any], per_lane: bool, fields: dict[Any, Any]) -> Cotangents:
        compiled, run = self.compiled, chunk.run
        back = Backward(run, chunk.batch if per_lane else None, compiled.moves)
        code = compiled.code
        spec = code.frames[code.entry]
        with BLAS.narrow(), np.errstate(all="ignore"):
            for position, value in zip(spec.results, given):
                if value is not None:
                    _seed(back, code.entry, spec.columns[position], slice(0, chunk.batch), value)
            for (table, index), value in fields.items():
                function, column = compiled.plan.result_spec(table, index)
                _seed(back, function, column, slice(0, run.frames[function].n), value)
            back.walk(compiled.adjoints)
            if compiled.prologue_adjoint is not None:
                run_adjoint(*compiled.prologue_adjoint, back, chunk.kept)
            return self._collect(back, chunk)

    def _collect(self, back: Backward, chunk: Chunk) -> Cotangents:
        compiled = self.compiled
        program = compiled.plan.program
        derived = len(program.prologue.terminator.operands) if program.prologue is not None else 0
        inputs = []
        for number in range(len(program.inputs) - derived):
            if number in compiled.differentiated:
                back.sink(number)
            sink = back.shared.get(number)
            inputs.append(None if sink is None else sink.cotangent())
        tables: dict[tuple[str, int], Any] = {}
        names = compiled.plan.tables
        for (number, index), value in back.fields.items():
            tables[(names[number], index)] = value
        self._adopted_fields(back, tables)
        for (name, index), value in tables.items():
            data = back.run.tables[names.index(name)].fields[index]
            if isinstance(data, Ragged):
                tables[(name, index)] = Ragged(value, data.lo, data.dims, data.packed)
        return Cotangents(inputs, self._params(back, chunk), tables, chunk.batch)

    def _adopted_fields(self, back: Backward, tables: dict[tuple[str, int], Any]) -> None:
        """Cotangents that lie in the arena, where a table's dynamic field was put into one."""
        for key, first in back.run.adopted.items():
            if key[0] == "param":
                continue
            number, index = key
            data = back.run.tables[number].fields[index].data
            arena = back.arenas.get((str(data.dtype), data.shape[1:]))
            if arena is None:
                continue
            own = arena[first : first + len(data)]
            name = (self.compiled.plan.tables[number], index)
            tables[name] = tables[name] + own if name in tables else own

    def _params(self, back: Backward, chunk: Chunk) -> list[Any]:
        code, run = self.compiled.code, chunk.run
        table = run.frames[code.entry]
        out: list[Any] = []
        for number, position in enumerate(table.spec.params):
            column = table.spec.columns[position]
            if column.kind == "ragged":
                out.append(self._ragged_param(back, number, column, chunk))
                continue
            own = back.frames[code.entry][column.slot]
            out.append(None if own is None else owned(own[: chunk.batch]))
        return out

    @staticmethod
    def _ragged_param(back: Backward, number: int, column: ColumnSpec, chunk: Chunk) -> Ragged | None:
        run = chunk.run
        table = run.frames[run.code.entry]
        rows = slice(0, chunk.batch)
        lo, dims = table.data[column.slot][rows], table.data[column.slot + 1][rows]
        arena = back.arenas.get((column.dtype, column.shape))
        if arena is None:  # another chunk may have one
            total = int(dims.prod(axis=1).sum())
            return packed(np.zeros((total, *column.shape), column.dtype), dims)
        return Ragged(arena, lo, dims).pack()


def owned(rows: Array) -> Array:
    """Rows for the caller to keep: a copy where they would hold on to more than twice their memory."""
    return rows if rows.base is None or 2 * rows.nbytes >= rows.base.nbytes else rows.copy()


def _result(column: ColumnSpec, parts: list[Any]) -> Any:
    """The results of all chunks, one after the other."""
    if column.kind == "ragged":
        return concat(parts)
    if column.kind == "run":
        return tuple(_joined([p[k] for p in parts]) for k in (0, 1))
    return _joined(parts)


def _seed(back: Backward, function: int, column: ColumnSpec, rows: slice, value: Any) -> None:
    if column.kind == "dense":
        back.add(function, column.slot, rows, value)
        return
    data = back.run.frames[function].data
    handle = Ragged(np.empty(0), data[column.slot][rows], data[column.slot + 1][rows])
    back.add_blocks(column.dtype, column.shape, handle, value)


def rows_of(value: Any, low: int, high: int, batch: int) -> Any:
    """Rows low..high-1 of a row value."""
    if low == 0 and high == batch:
        return value
    if isinstance(value, tuple):
        return tuple(v[low:high] for v in value)
    if isinstance(value, Ragged):
        return value.take(slice(low, high)).pack()
    return value[low:high]


def _joined(parts: list[Array]) -> Array:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _sum(parts: list[Cotangents], per_lane: bool) -> Cotangents:
    """Cotangents of all chunks: sums, and rows one after the other."""
    batches = [p.batch for p in parts]
    inputs = [_sum_input(list(v), batches, per_lane) for v in zip(*(p.inputs for p in parts))]
    params = [_sum_param(list(v), batches) for v in zip(*(p.params for p in parts))]
    tables: dict[tuple[str, int], Any] = {}
    for part in parts:
        for key, value in part.tables.items():
            known = tables.get(key)
            if known is None:
                tables[key] = value
            elif isinstance(value, Ragged):
                tables[key] = Ragged(known.data + value.data, value.lo, value.dims, value.packed)
            else:
                tables[key] = known + value
    return Cotangents(inputs, params, tables, sum(batches))


def _sum_input(values: list[Any], batches: list[int], per_lane: bool) -> Any:
    some = [v for v in values if v is not None]
    if not some:
        return None
    if not per_lane:
        return sum(some[1:], some[0])
    shape = some[0].shape[1:]
    return np.concatenate([np.zeros((n, *shape), some[0].dtype) if v is None else v for v, n in zip(values, batches)])


def _sum_param(values: list[Any], batches: list[int]) -> Any:
    some = [v for v in values if v is not None]
    if not some:
        return None
    if isinstance(some[0], Ragged):
        return concat(some)
    shape = some[0].shape[1:]
    return np.concatenate([np.zeros((n, *shape), some[0].dtype) if v is None else v for v, n in zip(values, batches)])
