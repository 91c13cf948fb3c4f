"""Program -> something that runs: forward over a batch, and backward over what ran.

`compile_program` compiles every region and its adjoint once; `Compiled.forward` makes a `Run`, which holds all state,
so that one Compiled serves many threads. A batch whose entry frames alone would crowd the memory budget is run in
chunks of examples. The invariant: chunking changes no result, only the order of sums over examples.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from spmd.backend.blas.adjoint_code import AdjointWriter
from spmd.backend.blas.chains import Kernels
from spmd.backend.blas.chunks import Chunk, attempt, halves, pieces
from spmd.backend.blas.fast import Moves, moves
from spmd.backend.blas.native_code import Loops
from spmd.backend.blas.plan import Plan, plan, uniform_inputs
from spmd.backend.blas.prologue import PrologueAdjointWriter, compile_prologue
from spmd.backend.blas.recompute import recomputing
from spmd.backend.blas.region_code import RegionWriter
from spmd.backend.blas.run import Run, rows_of
from spmd.backend.blas.tape import Passing, tape
from spmd.config import options
from spmd.ir.core import Value
from spmd.ir.region import AdjointRegion, Program
from spmd.ir.types import Num, Ref, Seq
from spmd.runtime.code import Code
from spmd.runtime.frames import TableData
from spmd.runtime.heap import WATERMARK, keep_freed_memory
from spmd.runtime.machine import Machine
from spmd.runtime.ragged import Ragged
from spmd.runtime.threads import BLAS


class Compiled:
    """A compiled program."""

    def __init__(self, plan_: Plan, code: Code, texts: dict[str, str], moves: Moves) -> None:
        self.moves = moves
        self.plan = plan_
        self.code = code
        self.texts = texts
        self.adjoints: list[Any] = [None] * len(code.regions)
        self.prologue: Any = None
        self.prologue_adjoint: tuple[AdjointRegion, Any] | None = None
        # Module inputs that some region adds a cotangent to.
        self.differentiated: set[int] = set()
        self.capacities = [64] * len(code.frames)

    def forward(
        self,
        inputs: Sequence[Any],
        params: Sequence[Any],
        tables: dict[str, TableData],
        batch: int,
        tape: bool = False,
        profile: bool = False,
    ) -> Run:
        """Runs a batch.

        inputs   uniform values of Program.inputs without the derived ones: arrays and scalars as one example sees
                 them, an int for a Ref, a pair of ints for a Seq
        params   per parameter of the entry, with one row per example: array [B, *shape], Ragged, int64 [B] for a Ref,
                 two int64 [B] for a Seq
        tape     keep what `backward` needs

        Raises the exception of the first example that raises, and MemoryBudgetError.
        """
        budget = options().budget
        data = [self._typed(tables[name]) for name in self.plan.tables]

        def job(low: int, high: int, taped: bool) -> Chunk:
            part = [rows_of(p, low, high, batch) for p in params]
            return self._run(inputs, part, data, high - low, low, budget, taped, profile)

        bounds = self._chunks(batch, budget)
        if len(bounds) == 1:
            chunk = job(0, batch, tape) if self._whole() else attempt(job, 0, batch, tape)
            if chunk is not None:
                return Run(self, [chunk], batch)
            bounds = halves(0, batch)
        return Run(self, pieces(job, bounds, tape), batch, lambda found: pieces(job, found, True))

    def _typed(self, table: TableData) -> TableData:
        """The table with every field in the dtype that the program was compiled for."""
        types = self.plan.program.tables[table.name].fields
        fields = [
            np.asarray(f, t.dtype if isinstance(t, Num) else np.int64) if isinstance(f, np.ndarray) else f
            for f, t in zip(table.fields, types)
        ]
        return TableData(table.name, fields)

    def _chunks(self, batch: int, budget: int) -> list[tuple[int, int]]:
        entry = self.code.frames[self.code.entry]
        fits = max(1, budget // (8 * entry.nbytes))
        if self._whole() or batch <= fits:
            return [(0, batch)]
        return [(low, min(low + fits, batch)) for low in range(0, batch, fits)]

    def _whole(self) -> bool:
        """Whether results are links to frames, so that all frames are needed at once."""
        types = [c.type for c in self.plan.functions[self.code.entry].results]
        return any(isinstance(t, (Ref, Seq)) and t.table.startswith("@") for t in types)

    def _run(
        self,
        inputs: Sequence[Any],
        params: Sequence[Any],
        tables: list[TableData],
        batch: int,
        first: int,
        budget: int,
        tape: bool,
        profile: bool,
    ) -> Chunk:
        known = list(inputs)
        sizes = self.capacities
        run = Machine(
            self.code, known, tables, budget=budget, tape=tape, capacities=sizes, profile=profile, first=first
        )
        with BLAS.narrow(), np.errstate(all="ignore"):
            kept: tuple[Any, ...] = ()
            if self.prologue is not None:
                derived, kept = self.prologue(run)
                known.extend(derived)
            for _, rule, numbers in self.plan.prepared.values():
                # (ascontiguousarray would make a scalar a vector of one.)
                run.prepared.append(np.asarray(rule(*(known[k] for k in numbers)), order="C"))
            if batch:
                run.start(batch)
                self._give(run, params, batch)
                run.run()
        self.capacities = [max(64, t.n) for t in run.frames]
        WATERMARK.ran(run.bytes)
        return Chunk(run, kept, batch)

    def _give(self, run: Machine, params: Sequence[Any], batch: int) -> None:
        """Writes the entry's parameters."""
        table = run.frames[self.code.entry]
        spec = table.spec
        for number, (position, value) in enumerate(zip(spec.params, params)):
            column = spec.columns[position]
            if column.kind == "ragged":
                arena = run.arenas.get(column.dtype, column.shape)
                first = run.adopted[("param", number)] = arena.adopt(value.data)
                value = Ragged(arena.buffer, value.lo + first, value.dims)
            table.write(column, slice(0, batch), value)


def compile_program(
    program: Program,
    *,
    target: str = "auto",
    adjoints: dict[int, AdjointRegion] | None = None,
    contract: bool = False,
) -> Compiled:
    """Compiles a program, and the adjoints of its regions where given.

    adjoints          as transform.adjoint gives them; under -1 the prologue's

    target    'blas' uses NumPy alone; 'auto' also generates kernels for elementwise stretches.
    contract  kernels may round a * b + c once
    """
    keep_freed_memory()
    plan_ = plan(program)
    inputs = uniform_inputs(program)
    sites = itertools.count()
    kernels = Kernels(contract) if target == "auto" else None
    loops = Loops(contract)
    writers = _write(plan_, inputs, adjoints or {}, kernels, loops, sites)
    texts = loops.compile()
    for writer, reverse in writers:
        texts[f"region {writer.region.id}"] = writer.source.text
        if reverse is not None:
            texts[f"adjoint {writer.region.id}"] = reverse.source.text
    code_ = Code(
        plan_.frames,
        [writer.build() for writer, _ in writers],
        plan_.forks,
        plan_.sites,
        plan_.callers,
        [f.entry for f in plan_.functions],
        plan_.function_number[program.entry],
        plan_.memos,
        plan_.priorities,
    )
    out = Compiled(plan_, code_, texts, moves(target))
    out.adjoints = [reverse if reverse is None else reverse.build() for _, reverse in writers]
    out.differentiated = {
        inputs[add.input] for region in (adjoints or {}).values() for add in region.adds if add.input is not None
    }
    _prologue(out, inputs, (adjoints or {}).get(-1), sites)
    return out


def _write(
    plan_: Plan,
    inputs: dict[Value, int],
    adjoints: dict[int, AdjointRegion],
    kernels: Kernels | None,
    loops: Loops,
    sites: itertools.count[int],
) -> list[tuple[RegionWriter, AdjointWriter | None]]:
    """The text of every region and adjoint, with the kernels that it calls compiled in one go."""
    out: list[tuple[RegionWriter, AdjointWriter | None]] = []
    for region in plan_.program.regions:
        adjoint = adjoints.get(region.id)
        passing = Passing(plan_, region, inputs)
        if adjoint is not None and kernels is not None:
            adjoint = recomputing(region, adjoint, inputs, {v for _, v in passing.stored()})
        items = tape(passing, adjoint) if adjoint is not None else []
        writer = RegionWriter(plan_, region, inputs, items, kernels, loops)
        writer.write()
        reverse = None
        if adjoint is not None:
            reverse = AdjointWriter(plan_, region, adjoint, inputs, items, writer.forms(), sites, kernels)
            reverse.write()
        out.append((writer, reverse))
    if kernels is not None:
        kernels.compile()
    return out


def _prologue(
    out: Compiled, inputs: dict[Value, int], adjoint: AdjointRegion | None, sites: itertools.count[int]
) -> None:
    block = out.plan.program.prologue
    if block is None:
        return
    constants = {r for op in block.ops if op.name == "const" for r in op.results}
    kept = [v for v in (adjoint.residuals if adjoint else []) if v not in inputs and v not in constants]
    out.prologue, out.texts["prologue"], forms = compile_prologue(out.plan, block, inputs, kept)
    if adjoint is not None:
        writer = PrologueAdjointWriter(out.plan, adjoint, inputs, kept, forms, sites)
        writer.write()
        out.texts["adjoint of the prologue"] = writer.source.text
        out.prologue_adjoint = adjoint, writer.build()
