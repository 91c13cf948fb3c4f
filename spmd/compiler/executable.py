"""A compiled program with what it needs at a call: where its inputs come from, what it returns, its adjoints.

The invariant: an executable is immutable but for adjoints that are compiled on demand under a lock, so threads may
share it; all that belongs to one call is in a `Call`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from spmd.backend.native.support import WIDE, light
from spmd.compiler import pipelines
from spmd.compiler.axes import gathered
from spmd.compiler.signature import Packed
from spmd.compiler.signature.aliases import severed
from spmd.compiler.signature.columns import Columns, uniform
from spmd.compiler.signature.cotangents import CotangentRows, Fields
from spmd.compiler.signature.gradients import Gradients
from spmd.compiler.signature.results import Results, container
from spmd.compiler.signature.sizes import fitted
from spmd.compiler.trace import Argument, Traced, trace
from spmd.errors import GradientError
from spmd.frontend.values import Abstract, Choice, Const, Leaf, Struct
from spmd.ir.core import Block, Module, Value
from spmd.ir.region import Program
from spmd.ir.types import Num, carries_gradient

Wanted = tuple[Any, ...]


@dataclass(eq=False)
class Executable:
    """One specialisation of a function for the types of its arguments, on one target. `program` is what runs for values
    alone: cheap loops are whole in it; `differentiable` is the same in regions that all have adjoints, `vectors` what
    runs large batches where that program has loops which vectors of rows run faster. `shared_rows`: there are tables
    whose rows are one frame each, however many places lead to them."""

    function: Any
    arguments: tuple[Argument, ...]
    target: str
    fp: str
    traced: Traced
    module: Module
    program: Program | None
    plain: Any
    shared_rows: bool = False
    coarse: Program | None = None
    vectors: Any = None
    taped: dict[Wanted, Any] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def holds(self) -> bool:
        """Whether what the program took for granted is still so."""
        return all(guard.holds() for guard in self.traced.guards)

    def captured(self, keep: bool = False) -> list[Packed] | None:
        """What the program captures, as it is now; None if its types have changed. `keep`: arrays are copied."""
        found: list[Packed] = []
        for capture in self.traced.captures:
            packed = capture.read(keep)
            if packed is None or packed.schema != capture.schema:
                return None
            found.append(packed)
        return found

    def compiled(self, wanted: Wanted | None, batch: int = 0) -> Any:
        """What runs for so many examples; with the adjoints for what is to be differentiated."""
        if wanted is None and batch >= WIDE and self._heavy:
            return self._wide()
        if wanted is None or self.target == "reference":
            return self.plain
        with self.lock:
            if wanted not in self.taped:
                self.taped[wanted] = _backend(self, wanted)
            return self.taped[wanted]

    def _natives(self) -> Iterator[Block]:
        """The loops that compiled code runs."""
        if self.program is not None:
            for region in self.program.regions:
                yield from (op.blocks[0] for op in region.ops if op.name == "native")

    @cached_property
    def _heavy(self) -> bool:
        return not all(map(light, self._natives()))

    def _wide(self) -> Any:
        """The program for large batches."""
        with self.lock:
            if self.vectors is None:
                self.vectors = _backend(self, None, pipelines.cut(self.module, "wide"))
            return self.vectors

    @property
    def differentiable(self) -> Program:
        """The program without native loops; made when first asked for."""
        with self.lock:
            if self.coarse is None:
                assert self.program is not None
                self.coarse = pipelines.cut(self.module) if any(True for _ in self._natives()) else self.program
            return self.coarse

    def wanted(self, argnums: Sequence[int]) -> Wanted:
        """What to differentiate with respect to, for arguments by position: inputs, table fields, parameters."""
        given = self.traced.given
        entry = self.module.functions[self.module.entry]
        numbers = {id(v): k for k, v in enumerate(_params(self))}
        found: list[Any] = []
        for position in argnums:
            argument, thing = self.arguments[position], given[position]
            for v in thing.leaves():
                if carries_gradient(v.type):
                    found.append(v if not argument.mapped else numbers[id(v)])
            for name, table in self.module.tables.items():
                if name.startswith(argument.name + "/"):
                    found += [(name, k) for k, t in enumerate(table.fields) if carries_gradient(t)]
        assert len(numbers) == len(entry.params)
        return tuple(found)


def _params(executable: Executable) -> list[Value]:
    """The placeholders of the entry's parameters, in order."""
    traced = executable.traced
    return [
        v for argument, thing in zip(executable.arguments, traced.given) if argument.mapped for v in thing.leaves()
    ]


def build(
    function: Any,
    arguments: Sequence[Argument],
    target: str,
    fp: str = "strict",
    watch: Callable[[str, Module], None] | None = None,
) -> Executable:
    """Compiles a function for arguments of these types. Raises SpmdError. `watch` is told the module after lowering and
    after each pass."""
    pipelines.check_target(target)
    traced = trace(function, arguments)
    if watch is not None:
        watch("lowered", traced.module)
    module = pipelines.optimise(traced.module, watch)
    program = None if target == "reference" else pipelines.cut(module, "native" if target == "auto" else "coarse")
    shared = any(table.shared for table in module.tables.values())
    executable = Executable(function, tuple(arguments), target, fp, traced, module, program, None, shared)
    executable.plain = _backend(executable, None)
    return executable


def _backend(executable: Executable, wanted: Wanted | None, program: Program | None = None) -> Any:
    if executable.target == "reference":
        from spmd.backend.reference.target import compile_program as interpret

        return interpret(executable.module)
    from spmd.backend.blas.executor import compile_program

    assert executable.program is not None
    if program is None:
        program = executable.program if wanted is None else executable.differentiable
    adjoints = None if wanted is None else pipelines.differentiate(program, wanted)
    contract = executable.fp == "contract"
    return compile_program(program, target=executable.target, adjoints=adjoints, contract=contract)


@dataclass(eq=False)
class Call:
    """One call: the arguments as columns, the run, and its results."""

    executable: Executable
    packed: list[Packed]
    batch: int
    columns: list[Columns]
    run: Any
    captured: list[Packed]

    def results(self) -> Any:
        """The results, stacked over the batch."""
        traced = self.executable.traced
        return Results(self.batch, self._field, self._size).stacked(traced.result, iter(self.run.results))

    def uniform(self) -> Any:
        """The results' structure with a bool for each leaf: whether all examples are sure to have the same value there,
        since every return gives one and the same module input or constant."""
        module = self.executable.module
        returns = [op.operands for op in module.functions[module.entry].body.walk() if op.name == "return"]
        columns = list(zip(*returns)) if returns else []
        inputs = set(module.inputs)
        same = iter([len(set(column)) == 1 and column[0] in inputs for column in columns])
        return _stack_like(self.executable.traced.result, same, constant=True)

    def _field(self, table: str, index: int) -> Any:
        if table.startswith("@"):
            return self.run.table(table).fields[index]
        for columns in self.columns:
            if table in columns.tables:
                return columns.tables[table].fields[index]
        raise KeyError(table)

    def _size(self, table: str) -> int:
        if table.startswith("@"):
            return int(self.run.table(table).rows)
        return next(columns.tables[table].rows for columns in self.columns if table in columns.tables)

    def cotangents(self, given: Any, out_axes: Any = 0) -> tuple[list[Any], Fields]:
        """Row values of the cotangents of the entry's results, which stand where `out_axes` says, and cotangents of the
        frames of lists among them."""
        result = self.executable.traced.result
        given = gathered(result, given, out_axes, self.batch)
        found = CotangentRows(self._field)
        return found.rows(result, given, list(self.run.results), self.batch), found.fields

    def ones(self, has_aux: bool = False) -> list[Any]:
        """The cotangent of a single number; with `has_aux` of the first of a pair."""
        result = self.executable.traced.result
        rest: list[Any] = []
        if has_aux:
            if not isinstance(result, Struct) or len(result.items) != 2:
                name = _name(self.executable.function)
                raise GradientError(f"has_aux=True: '{name}' does not return (number, anything)")
            rest = [None] * len(list(result.items[1].leaves()))
            result = result.items[0]
        if isinstance(result, Const) and type(result.value) is float:
            return rest
        if isinstance(result, Choice) and self._all_numbers(result):
            own = list(self.run.results[: len(list(result.leaves()))])
            return [*CotangentRows(self._field).rows(result, [1.0] * self.batch, own, self.batch), *rest]
        if not _float_number(result):
            name = _name(self.executable.function)
            raise GradientError(
                f"a gradient is of a function that returns one float number; '{name}' does not",
                hint="sum the result, or use spmd.vjp.",
            )
        return [np.ones(self.batch, result.type.dtype), *rest]  # type: ignore[attr-defined]

    def _all_numbers(self, result: Choice) -> bool:
        """Whether all examples took paths that return a float number, though others return something else."""
        return all(_float_number(result.alternatives[tag]) for tag in np.unique(self.run.results[0]))

    def gradients(
        self, cotangents: list[Any], argnums: Sequence[int], per_lane: bool, fields: Fields | None = None
    ) -> list[Any]:
        """The gradient of each argument asked for: stacked for mapped ones; for shared ones one row, or with `per_lane`
        one row for each example."""
        found = self.run.backward(cotangents, per_lane=per_lane, fields=fields)
        inputs, params = iter(found.inputs), iter(found.params)
        by_argument: list[list[Any]] = []
        for argument, thing in zip(self.executable.arguments, self.executable.traced.given):
            source = params if argument.mapped else inputs
            by_argument.append([next(source) for _ in thing.leaves()])
        tables = found.tables
        return [self._gradient(k, by_argument[k], tables, per_lane) for k in argnums]

    def _gradient(self, position: int, leaves: list[Any], tables: Any, per_lane: bool) -> Any:
        argument, packed = self.executable.arguments[position], self.packed[position]
        if not argument.mapped:
            if per_lane and self.batch != 1:
                return self._per_lane(position, leaves)
            leaves = [None if leaf is None else leaf if per_lane else np.asarray(leaf)[None] for leaf in leaves]
        return Gradients(argument.name, packed, lambda table, k: tables.get((table, k))).stacked(leaves)

    def _per_lane(self, position: int, leaves: list[Any]) -> Any:
        """One gradient of a shared argument for each example: its structure, the leaves stacked."""
        thing = self.executable.traced.given[position]
        inputs = dict(zip(self.executable.module.inputs, _inputs(self.executable, self.columns, self.captured)))
        kept = list(leaves)
        for k, v in enumerate(thing.leaves()):
            if carries_gradient(v.type) and leaves[k] is None:
                kept[k] = np.zeros((self.batch, *np.shape(inputs[v])), v.type.dtype)  # type: ignore[union-attr]
            if not isinstance(v.type, Num):
                name = self.executable.arguments[position].name
                raise GradientError(
                    f"gradients for each example with respect to '{name}', a list or objects shared by all, are"
                    " not kept",
                    hint="map over the argument, or differentiate the sum.",
                )
        return _stack_like(thing, iter(kept))


def _stack_like(thing: Abstract, leaves: Iterator[Any], constant: Any = None) -> Any:
    """Leaves in one example's structure; `constant` where there is none."""
    if isinstance(thing, Struct):
        items = [_stack_like(i, leaves, constant) for i in thing.items]
        return container(thing.kind, thing.cls, thing.names, items)
    if isinstance(thing, Leaf):
        return next(leaves)
    for _ in thing.leaves():
        next(leaves)
    return constant if isinstance(thing, Const) else None


def _float_number(thing: Abstract) -> bool:
    return isinstance(thing, Leaf) and not thing.type.shape and thing.type.floating


def _name(function: Any) -> str:
    return getattr(function, "__name__", "the function")


def _inputs(executable: Executable, columns: list[Columns], captured: list[Packed]) -> list[Any]:
    """Uniform values of the module's inputs: shared arguments, then captures."""
    values: list[Any] = []
    shared = [c for c, a in zip(columns, executable.arguments) if not a.mapped]
    shared += columns[len(executable.arguments) :]
    for part in shared:
        values += [uniform(leaf) for leaf in part.leaves]
    found = []
    for value, given in zip(values, executable.traced.module.inputs):
        python = isinstance(given.type, Num) and given.type.python
        found.append(value.item() if python and isinstance(value, np.generic) else value)
    return found


def call(
    executable: Executable, packed: list[Packed], batch: int, wanted: Wanted | None, captured: list[Packed]
) -> Call:
    """Runs the program on packed arguments."""
    packed = [fitted(p, a.schema) for p, a in zip(packed, executable.arguments)]
    if wanted is not None or executable.shared_rows:
        packed = [severed(p) if a.mapped else p for p, a in zip(packed, executable.arguments)]
    columns = [Columns(a.name, p) for a, p in zip(executable.arguments, packed)]
    columns += [Columns(c.name, p) for c, p in zip(executable.traced.captures, captured)]
    tables = {name: data for part in columns for name, data in part.tables.items()}
    params = [
        leaf for part, a in zip(columns, executable.arguments) if a.mapped for leaf in part.leaves
    ]
    inputs = _inputs(executable, columns, captured)
    run = executable.compiled(wanted, batch).forward(inputs, params, tables, batch, wanted is not None)
    _observe(run)
    return Call(executable, packed, batch, columns, run, captured)


OBSERVERS: list[Any] = []


def _observe(run: Any) -> None:
    for observer in OBSERVERS:
        observer(run)
