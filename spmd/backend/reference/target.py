"""The `reference` target behind the executors' common interface: forward over examples in order, and backward.

The invariant: examples run one after the other, so the first one in batch order that raises is the one that is
reported, and none after it runs. All state of a run is in the `Run`; a `Compiled` may be shared by threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spmd.backend.reference.interpreter import Interpreter, Raised, row_value
from spmd.backend.reference.reverse import Cotangents, Rules, row_cotangent, walk
from spmd.backend.reference.trace import Instance, Trace
from spmd.backend.reference.values import of_row, of_uniform, to_rows
from spmd.config import options
from spmd.errors import attach_example
from spmd.ir.core import Function, Module
from spmd.ir.types import Num, carries_gradient
from spmd.runtime.frames import TableData


@dataclass(eq=False)
class Gradients:
    """What a backward pass gives: per input (None where it has no gradient), per parameter, per table field.

    inputs  summed over the batch, or [B, *shape] with per_lane; only inputs that a caller gives, none derived.
    params  row values, one per parameter of the entry.
    tables  {(table, field): column of cotangents}, one row per table row; with per_lane, a table whose rows examples
            share has a list of such columns (or None), one per example.
    """

    inputs: list[Any]
    params: list[Any]
    tables: dict[tuple[str, int], Any] = field(default_factory=dict)


class Compiled:
    """A module, ready to run."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.rules = Rules()

    def forward(
        self,
        inputs: Sequence[Any],
        params: Sequence[Any],
        tables: dict[str, Any],
        batch: int,
        tape: bool,
    ) -> Run:
        """Runs all examples, in order.

        inputs are uniform values in the order of the module's, without the derived ones; params are row values.
        Raises what the first raising example raises, with `.example`; MemoryBudgetError for recursion without end.
        """
        return Run(self, inputs, params, tables, batch, tape)


class Run:
    """One forward pass over a batch, and the traces that its backward passes read."""

    def __init__(
        self,
        compiled: Compiled,
        inputs: Sequence[Any],
        params: Sequence[Any],
        tables: dict[str, Any],
        batch: int,
        tape: bool,
    ) -> None:
        module = compiled.module
        self.module = module
        self.rules = compiled.rules
        self.tables = tables
        self.batch = batch
        self.region_runs: dict[int, int] = {}
        self.log: list[Any] = []
        self.given = [Instance(of_uniform(v.type, x)) for v, x in zip(module.inputs, inputs, strict=False)]
        self.prologue: Trace = []
        self.traces: list[Trace] = []
        self.entries: list[list[Instance]] = []
        self.outcomes: list[tuple[Instance, ...]] = []
        self._interpreter = Interpreter(module, tables, options().budget)
        self._run_prologue()
        entry = module.functions[module.entry]
        for k in range(batch):
            self._run_example(entry, params, k, tape)
        self.results = [row_value(t, [o[j] for o in self.outcomes]) for j, t in enumerate(entry.results)]

    def _run_prologue(self) -> None:
        module, interpreter = self.module, self._interpreter
        interpreter.inputs.update(zip(module.inputs, self.given, strict=False))
        if module.prologue is None:
            return
        derived = module.inputs[len(self.given) :]
        interpreter.trace = self.prologue
        results = interpreter.run(Function("prologue", [], [v.type for v in derived], module.prologue), [])
        interpreter.inputs.update(zip(derived, results, strict=True))

    def _run_example(self, entry: Function, params: Sequence[Any], k: int, tape: bool) -> None:
        interpreter = self._interpreter
        trace: Trace = []
        interpreter.trace = trace if tape else None
        args = [Instance(of_row(v.type, column, k)) for v, column in zip(entry.params, params, strict=True)]
        failure: Raised | None = None
        try:
            self.outcomes.append(interpreter.run(entry, args))
        except Raised as raised:
            failure = raised
        if failure is not None:  # outside of the handler, so that the example's exception stands alone
            raise attach_example(failure.error, k, failure.span)
        if tape:
            self.traces.append(trace)
            self.entries.append(args)

    def table(self, name: str) -> TableData:
        """All frames of a function as its table '@name': the results, as row values."""
        types = self.module.functions[name[1:]].results
        frames = self._interpreter.frames[name[1:]]
        return TableData(name, [to_rows(t, [f[k].value for f in frames]) for k, t in enumerate(types)])

    def backward(
        self,
        cotangents: Sequence[Any],
        per_lane: bool = False,
        fields: dict[tuple[str, int], Any] | None = None,
    ) -> Gradients:
        """Gradients for given cotangents of the results (row values, None for none) and of frames ('@f', field) -> one
        row for each frame. May be called again."""
        if len(self.traces) != self.batch:
            raise ValueError("this run was made without a tape")
        entry = self.module.functions[self.module.entry]
        shared: list[dict[tuple[str, int], Any]] = []
        inputs: list[list[Any]] = []
        params: list[list[Any]] = []
        state = Cotangents(self.module, self.tables)
        for (table, index), column in (fields or {}).items():
            type_ = self.module.functions[table[1:]].results[index]
            assert isinstance(type_, Num)
            for number, frame in enumerate(self._interpreter.frames[table[1:]]):
                state.add(frame[index], row_cotangent(type_, column, number))
        for k in range(self.batch):
            if per_lane:
                state.of = {}
            self._seed(state, entry, cotangents, k)
            walk(self.traces[k], state, self.rules)
            params.append([self._taken(state, v.type, i) for v, i in zip(entry.params, self.entries[k], strict=True)])
            if per_lane:
                inputs.append(self._at_inputs(state))
                shared.append(self._of_shared_tables(state))
        if not per_lane:
            inputs.append(self._at_inputs(state))
        tables = dict(state.tables)
        for key in {key for lane in shared for key in lane}:
            tables[key] = [lane.get(key) for lane in shared]
        return Gradients(
            [self._joined_input(j, [row[j] for row in inputs], per_lane) for j in range(len(self.given))],
            [
                to_rows(v.type, [row[j] for row in params]) if carries_gradient(v.type) else None
                for j, v in enumerate(entry.params)
            ],
            tables,
        )

    def _seed(self, state: Cotangents, entry: Function, cotangents: Sequence[Any], k: int) -> None:
        for type_, rows, instance in zip(entry.results, cotangents, self.outcomes[k], strict=True):
            if rows is not None and isinstance(type_, Num) and carries_gradient(type_):
                state.add(instance, row_cotangent(type_, rows, k))

    def _at_inputs(self, state: Cotangents) -> list[Any]:
        """Takes the cotangents of derived inputs back through the prologue, then reads those of the given ones."""
        walk(self.prologue, state, self.rules)
        return [
            self._taken(state, value.type, instance) if carries_gradient(value.type) else None
            for value, instance in zip(self.module.inputs, self.given, strict=False)
        ]

    def _of_shared_tables(self, state: Cotangents) -> dict[tuple[str, int], Any]:
        """Takes out the columns of tables whose rows more than one example can reach."""
        keys = [key for key in state.tables if not self.module.tables[key[0]].unique]
        return {key: state.tables.pop(key) for key in keys}

    def _taken(self, state: Cotangents, type_: Any, instance: Instance) -> Any:
        if not carries_gradient(type_):
            return None
        found = state.of.get(instance)
        return np.zeros(np.shape(instance.value), type_.dtype)[()] if found is None else found

    def _joined_input(self, index: int, rows: Sequence[Any], per_lane: bool) -> Any:
        type_ = self.module.inputs[index].type
        if not isinstance(type_, Num) or not carries_gradient(type_):
            return None
        if not per_lane:
            return rows[0]
        shape = np.shape(self.given[index].value)
        return np.array(rows, dtype=type_.dtype).reshape(self.batch, *shape)


def compile_program(module: Module) -> Compiled:
    """Makes a module runnable by the interpreter."""
    return Compiled(module)
