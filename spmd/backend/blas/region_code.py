"""Region -> compiled function over the rows that wait at it.

The function loads columns, runs the ops, stores columns and takes the exit: (run, frame table, rows, count) ->
(residuals, children). The invariant: everything is read before anything is stored, so stores are parallel; rows that
failed are handed to the run and do not go on.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spmd.backend.blas.chains import Kernels
from spmd.backend.blas.emit import OpWriter, lazy_values
from spmd.backend.blas.native_code import Loops
from spmd.backend.blas.plan import Plan, num
from spmd.backend.blas.structural import make_error
from spmd.backend.blas.tape import Item, Passing
from spmd.backend.blas.values import Held, Source
from spmd.errors import InternalError
from spmd.ir.core import Value
from spmd.ir.region import Branch, Dead, Fork, Jump, Leave, Raise, Region
from spmd.ir.types import Num
from spmd.runtime.code import RegionCode
from spmd.runtime.faults import Faults
from spmd.runtime.frames import ColumnSpec
from spmd.runtime.ragged import Ragged, from_dense, from_uniform


def home(run: Any, dtype: str, shape: tuple[int, ...], axes: int, value: Any, form: str, count: int) -> Ragged:
    """Puts a fresh dynamic value of all rows into its arena; its handle."""
    if form == "uniform":
        value = from_uniform(value, count, axes)
    elif form == "rows":
        value = from_dense(value, axes)
    arena = run.arenas.get(dtype, shape)
    first = arena.append(value.flat())
    packed = value.pack()
    return Ragged(arena.buffer, packed.lo + first, packed.dims)


def adopted(run: Any, dtype: str, shape: tuple[int, ...], key: tuple[Any, ...], value: Ragged) -> Ragged:
    """The handle of a table field's blocks in the arena that the whole field was put into."""
    arena = run.arenas.get(dtype, shape)
    first = run.adopted.get(key)
    if first is None:
        first = run.adopted[key] = arena.adopt(value.data)
    return Ragged(arena.buffer, value.lo + first, value.dims)


class RegionWriter:
    """Writes one region."""

    def __init__(
        self,
        plan: Plan,
        region: Region,
        inputs: dict[Value, int],
        items: list[Item],
        kernels: Kernels | None = None,
        loops: Loops | None = None,
    ) -> None:
        self.plan = plan
        self.region = region
        self.items = items
        self.passing = Passing(plan, region, inputs)
        self.source = Source(f"region_{region.id}", "run, F, rows, K")
        self.ops = OpWriter(self.source, plan, inputs, kernels)
        self.ops.loops, self.ops.region = loops, region.id
        self.home_names: dict[Value, str] = {}
        # Values that kernels may write straight into a column: its slot.
        self.direct: dict[Value, int] = {}
        self.function = plan.function_number[region.function]

    def write(self) -> None:
        """Writes the text; `build` then compiles it."""
        ops = self.ops
        kept = {v for _, v in self.passing.stored()} | {v for _, v in self.items} | set(self._exit_values())
        candidates = set(self.passing.loads) | {r for op in self.region.ops if op.name == "load" for r in op.results}
        ops.lazy = lazy_values(self.region.ops, candidates, kept)
        self._loads()
        head = len(self.source.lines)
        self._direct()
        ops.emit(self.region.ops, kept)
        if ops.faults:
            self.source.lines.insert(head, f"    ft = {self.source.function(Faults)}()")
        self._homes()
        self._stores()
        self.source.line(f"res = {self._residuals()}")
        self._exit()

    def build(self) -> RegionCode:
        """The compiled region."""
        region, ops = self.region, self.ops
        execute = self.source.build()
        return RegionCode(region.id, self.function, execute, region.span, ops.orders, ops.spans, self._taped())

    def _taped(self) -> int:
        """Bytes of the residuals of one row that are no views of columns."""
        kept = [v.type for kind, v in self.items if kind == "value" and v not in self.passing.loads]
        return sum(8 if not isinstance(t, Num) or not t.static else t.size * np.dtype(t.dtype).itemsize for t in kept)

    def _direct(self) -> None:
        """Kernels write what goes into a column straight there, where the rows are a slice and the column is written
        once in a frame's life (so nothing reads these cells before)."""
        for spec, value in self.passing.own_stores():
            same = isinstance(value.type, Num) and (num(value).shape, num(value).dtype) == (spec.shape, spec.dtype)
            if spec.single and spec.kind == "dense" and same and value not in self.ops.places:
                shape = "".join(f", {n}" for n in spec.shape) or ","
                empty = f"np.empty((K{shape}), {self.source.dtype(spec.dtype)})"
                self.ops.places[value] = f"F.data[{spec.slot}][rows] if type(rows) is slice else {empty}"
                self.direct[value] = spec.slot

    def forms(self) -> dict[Value, tuple[str, bool]]:
        """The form that each value is held in, and whether its rows are known to be contiguous."""
        return {value: (held.form, held.tight) for value, held in self.ops.env.items()}

    def _exit_values(self) -> list[Value]:
        exit_ = self.region.exit
        if isinstance(exit_, Branch):
            return [exit_.cond]
        if isinstance(exit_, Fork):
            counts = [s.count for s in exit_.sites if s.count is not None]
            return [*counts, *(v for s in exit_.sites for v, _ in s.guards)]
        return []

    # ------------------------------------------------------------------------------------------ columns
    def _loads(self) -> None:
        for column, value in self.region.loads:
            spec = self.plan.spec(column)
            data = f"F.data[{spec.slot}]"
            if value in self.ops.lazy and spec.kind == "dense":
                self.ops.env[value] = Held("", "lazy", value.type, source=(data, "rows"))
                continue
            name = self.source.fresh()
            copy = "" if spec.single else ".copy()"
            first = f"{data}[rows]{copy} if type(rows) is slice else {data}.take(rows, 0)"
            if spec.kind == "dense":
                self.source.line(f"{name} = {first}")
                self.ops.set(value, name, "rows", tight=True)
                continue
            data = f"F.data[{spec.slot + 1}]"
            second = f"{data}[rows]{copy} if type(rows) is slice else {data}.take(rows, 0)"
            if spec.kind == "run":
                self.source.line(f"{name} = (({first}), ({second}))")
                self.ops.set(value, name, "run")
            else:
                buffer = f"run.arenas.get({spec.dtype!r}, {spec.shape!r}).buffer"
                self.source.line(f"{name} = {self.source.function(Ragged)}({buffer}, ({first}), ({second}))")
                self.ops.set(value, name, "ragged")

    def _homes(self) -> None:
        """Every dynamic value that is stored gets a handle."""
        for value, spec in self.passing.homes().items():
            held = self.ops.held(value)
            if value in self.passing.loads:
                self.home_names[value] = held.name
                continue
            name = self.source.fresh("h")
            load = self.passing.field_load(value)
            if load is not None and load.attrs["table"].startswith("@"):
                self.home_names[value] = held.name
                continue
            if load is not None and held.form == "ragged":
                key = (self.plan.table_number[load.attrs["table"]], load.attrs["field"])
                text = f"{self.source.function(adopted)}(run, {spec.dtype!r}, {spec.shape!r}, {key!r}, {held.name})"
            else:
                axes = self.passing.axes(value, spec)
                text = (
                    f"{self.source.function(home)}"
                    f"(run, {spec.dtype!r}, {spec.shape!r}, {axes}, {held.name}, {held.form!r}, K)"
                )
            self.source.line(f"{name} = {text}")
            self.home_names[value] = name

    def _cell(self, spec: ColumnSpec, value: Value) -> str:
        """Expression of what goes into a column."""
        if spec.kind == "ragged":
            return self.home_names[value]
        held = self.ops.held(value)
        if spec.kind == "dense" and held.form == "ragged":
            return f"{held.name}.dense({spec.shape!r})"
        return held.name

    def _stores(self) -> None:
        for column, value in self.region.stores:
            self._store(self.plan.spec(column), value)
        if isinstance(self.region.exit, Leave):
            frame = self.plan.frames[self.function]
            for position, value in zip(frame.results, self.region.exit.values):
                self._store(frame.columns[position], value)

    def _store(self, spec: ColumnSpec, value: Value) -> None:
        cell = self._cell(spec, value)
        if self.direct.get(value) == spec.slot and value in self.ops.placed:
            self.source.line(f"if type(rows) is not slice: F.data[{spec.slot}][rows] = {cell}")
            return
        first, second = f"F.data[{spec.slot}][rows]", f"F.data[{spec.slot + 1}][rows]"
        if spec.kind == "dense":
            self.source.line(f"{first} = {cell}")
        elif spec.kind == "run":
            self.source.line(f"{first}, {second} = {cell}")
        else:
            self.source.line(f"{first}, {second} = {cell}.lo, {cell}.dims")

    def _residuals(self) -> str:
        parts = []
        for kind, value in self.items:
            if kind == "home" or (kind == "handle" and value in self.home_names):
                parts.append(self.home_names[value])
            else:
                parts.append(self.ops.name(value))
        return "(" + "".join(p + ", " for p in parts) + ")"

    # ------------------------------------------------------------------------------------------ exits
    def _exit(self) -> None:
        exit_, number = self.region.exit, self.region.id
        if isinstance(exit_, Jump):
            self._guarded(f"branch_good({number}, rows, K, ft, {exit_.target}, {exit_.target}, True)")
            self.source.line(f"run.push({exit_.target}, rows, K)")
        elif isinstance(exit_, Branch):
            cond = self.ops.name(exit_.cond)
            arms = f"{exit_.then}, {exit_.other}"
            self._guarded(f"branch_good({number}, rows, K, ft, {arms}, {cond})")
            self.source.line(f"run.branch({arms}, {cond}, rows, K)")
        elif isinstance(exit_, Leave):
            self._guarded(f"leave_good({number}, F, rows, K, ft)")
            self.source.line("run.leave(F, rows, K)")
        elif isinstance(exit_, Fork):
            self._fork(exit_)
            return
        elif isinstance(exit_, Raise):
            make, span = self.source.constant(make_error(exit_.error)), self.source.constant(self.region.span)
            self._guarded(f"raised_good({number}, rows, K, ft, {make}, {span})")
            self.source.line(f"run.raised({number}, rows, K, {make}, {span})")
        elif isinstance(exit_, Dead):
            self.source.line(f"{self.source.function(unreachable)}({number})")
        self.source.line("return res, None")

    def _guarded(self, call: str) -> None:
        """What happens instead when some rows failed."""
        if not self.ops.faults:
            return
        self.source.line("if ft.found:")
        self.source.line(f"run.{call}", 2)
        self.source.line("return res, None", 2)

    def _fork(self, exit_: Fork) -> None:
        number = self.plan.fork_of_region[self.region.id]
        sites = []
        for site, spec in zip(exit_.sites, self.plan.forks[number].sites):
            frame = self.plan.frames[spec.callee]
            args = []
            for k, (position, value) in enumerate(zip(frame.params, site.args)):
                column = frame.columns[position]
                each = spec.map and (site.each[k] == "each" or site.each[k].startswith("field:"))
                args.append(self._argument(column, value, each))
            count = "None" if site.count is None else self.ops.name(site.count)
            guard = " & ".join(("" if truth else "~") + self.ops.rows(v) for v, truth in site.guards) or "None"
            sites.append(f"({count}, ({''.join(a + ', ' for a in args)}), {guard})")
        text = f"({''.join(s + ', ' for s in sites)})"
        self.source.line(f"args = {text}")
        self._guarded(f"fork_good({self.region.id}, {number}, F, rows, K, ft, args)")
        self.source.line(f"return res, run.fork({number}, F, rows, K, args)")

    def _argument(self, column: ColumnSpec, value: Value, each: bool) -> str:
        if column.kind == "ragged":
            return self.home_names[value]
        held = self.ops.held(value)
        if each:
            return self.ops.rows(value)
        if held.form == "ragged":
            return f"{held.name}.dense({column.shape!r})"
        return held.name


def unreachable(region: int) -> None:
    """A frame got to where none can."""
    raise InternalError(f"region {region} was reached")
