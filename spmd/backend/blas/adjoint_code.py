"""AdjointRegion -> compiled function that runs one log entry backwards.

(back, run, frame table, rows, count, residuals, children): reads and zeroes the cotangents of what the entry defined,
runs the adjoint ops, adds to what the entry had read. The invariant: all reads come before all adds. Contributions
that are sparse or products go to where they are summed without being formed per row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from spmd.backend.blas import products
from spmd.backend.blas.chains import Kernels
from spmd.backend.blas.emit import OpWriter
from spmd.backend.blas.plan import Plan, num, trail
from spmd.backend.blas.tape import Item, Passing, used_values
from spmd.backend.blas.values import Source
from spmd.ir.core import Op, Value
from spmd.ir.region import Add, AdjointRegion, Fork, Region, Seed
from spmd.runtime.faults import Faults
from spmd.runtime.frames import ColumnSpec
from spmd.runtime.ragged import Ragged, packed

PARAMETERS = "back, run, F, rows, K, res, kids"


class AdjointWriter:
    """Writes the adjoint of one region."""

    def __init__(
        self,
        plan: Plan,
        region: Region,
        adjoint: AdjointRegion,
        inputs: dict[Value, int],
        items: list[Item],
        forms: dict[Value, tuple[str, bool]],
        sites: Iterator[int],
        kernels: Kernels | None = None,
    ) -> None:
        self.plan = plan
        self.region = region
        self.adjoint = adjoint
        self.items = items
        self.forms = forms
        self.sites = sites
        self.inputs = inputs
        self.passing = Passing(plan, region, inputs)
        self.source = Source(f"adjoint_{region.id}", PARAMETERS)
        self.ops = OpWriter(self.source, plan, inputs, kernels)
        self.used = used_values(adjoint)
        self.handles: dict[Value, str] = {}
        self.read: set[Value] = set()
        self.function = plan.function_number.get(region.function, -1)
        self.lanes_known = False

    def write(self) -> None:
        """Writes the text; `build` then compiles it."""
        self._residuals()
        self._constants()
        self._seeds()
        fused = products.fusible(self.adjoint)
        skipped = {op for f in fused.values() for op in f.ops}
        kept = {v for op in skipped for v in op.operands}
        kept.update(a.value for a in self.adjoint.adds)
        kept.update(a.ref for a in self.adjoint.adds if a.ref is not None)
        self.ops.emit([op for op in self.adjoint.ops if op not in skipped], kept)
        if self.ops.faults:  # adjoint rules never raise; some ask where they would report
            self.source.lines.insert(1, f"    ft = {self.source.function(Faults)}()")
        for add in self.adjoint.adds:
            self._add(add, fused.get(add))

    def build(self) -> Any:
        """The compiled function."""
        return self.source.build()

    # ------------------------------------------------------------------------------------------ values
    def _residuals(self) -> None:
        names = []
        for kind, value in self.items:
            name = self.source.fresh("r")
            names.append(name)
            if kind == "value":
                form, tight = self.forms[value]
                self.ops.set(value, name, form, tight=tight)
            else:
                self.handles[value] = name
        if names:
            self.source.line(f"{''.join(n + ', ' for n in names)} = res")

    def _constants(self) -> None:
        for op in self.region.ops:
            if op.name == "const" and op.result in self.used:
                self.ops.op(op)

    # ------------------------------------------------------------------------------------------ seeds
    def _seeds(self) -> None:
        """(a) and (b) for everything that the entry defined."""
        found: list[tuple[str, Seed, ColumnSpec, Value]] = []
        missing: list[tuple[Seed, ColumnSpec, Value]] = []
        for seed in self.adjoint.seeds:
            spec, value = self.passing.seed_value(seed)
            text = self._read(seed, spec, value)
            if text is None:
                if seed.value in self.used:
                    missing.append((seed, spec, value))
                continue
            if seed.value not in self.used:
                if not spec.single:
                    self.source.line(text)
                continue
            name = self.source.fresh("s")
            self.source.line(f"{name} = {text}")
            found.append((name, seed, spec, value))
        if not found:
            self.source.line("return")
        else:
            self.source.line(f"if {' and '.join(f'{n} is None' for n, *_ in found)}:")
            self.source.line("return", 2)
        for name, seed, spec, value in found:
            self.source.line(f"if {name} is None:")
            self.source.line(f"{name} = {self._zeros(seed, spec, value)}", 2)
            self._set_seed(seed, spec, name)
        for seed, spec, value in missing:
            name = self.source.fresh("s")
            self.source.line(f"{name} = {self._zeros(seed, spec, value)}")
            self._set_seed(seed, spec, name)

    def _set_seed(self, seed: Seed, spec: ColumnSpec, name: str) -> None:
        form = "rows" if num(seed.value).static else "ragged"
        if spec.kind == "ragged" and form == "rows":
            dense = f"{name}.dense({num(seed.value).shape!r})"
            self.source.line(f"{name} = {name} if type({name}) is np.ndarray else {dense}")
        self.ops.set(seed.value, name, form, tight=form == "rows")

    def _read(self, seed: Seed, spec: ColumnSpec, value: Value) -> str | None:
        """Expression that reads (and zeroes) a seed; None where it is zero by construction."""
        if spec.kind == "ragged":
            if not self.passing.fresh(value) or value in self.read or seed.value not in self.used:
                return None
            self.read.add(value)
            return f"back.read_home({spec.dtype!r}, {spec.shape!r}, {self.handles[value]})"
        if seed.kind != "argument":
            return f"back.read({self.function}, {spec.slot}, rows, {spec.single})"
        exit_ = self.region.exit
        assert isinstance(exit_, Fork)
        site = exit_.sites[seed.site]
        callee = self.plan.function_number[site.function]
        child = f"kids[{seed.site}]"
        if not site.each and not site.guards:
            return f"back.read({callee}, {spec.slot}, {child}[0], {spec.single})"
        if site.each and site.each[seed.index] == "each":
            static = num(seed.value).shape[0]
            return f"back.children_stack({callee}, {spec.slot}, {child}, {spec.single}, {static})"
        return f"back.children_sum({callee}, {spec.slot}, {child}, {spec.single})"

    def _zeros(self, seed: Seed, spec: ColumnSpec, value: Value) -> str:
        type_ = num(seed.value)
        if type_.static:
            return f"np.zeros((K, *{type_.shape!r}), {type_.dtype!r})"
        if spec.kind == "ragged":
            handle = self.handles[value]
            return f"{self.source.function(zeros_like)}({handle}, {type_.dtype!r}, {trail(type_)!r})"
        return f"{self.source.function(zero_stack)}(kids[{seed.site}][1], {type_.dtype!r}, {trail(type_)!r})"

    # ------------------------------------------------------------------------------------------ adds
    def _lanes(self) -> str:
        if not self.lanes_known:
            self.lanes_known = True
            self.source.line("L = None if back.lanes is None else F.lane[rows]")
        return "L"

    def _add(self, add: Add, fused: Any) -> None:
        if add.kind == "input":
            self._add_input(add, fused)
        elif add.kind == "column":
            self._add_column(add, fused)
        elif add.kind == "field":
            self._add_field(add, fused)
        elif add.kind == "maybe":
            self._add_maybe(add)
        else:
            self._add_run(add)

    def _add_input(self, add: Add, fused: Any) -> None:
        assert add.input is not None
        sink = f"back.sink({self.inputs[add.input]})"
        lanes = self._lanes()
        if fused is None:
            self.source.line(f"{sink}.rows({self.ops.rows(add.value)}, {lanes})")
            return
        self.source.line(fused.write(self.ops, sink, next(self.sites), lanes))

    def _add_column(self, add: Add, fused: Any) -> None:
        assert add.column is not None
        spec = self.plan.spec(add.column)
        if spec.kind == "ragged":
            handle = self.handles[self.passing.loaded_from[add.column.id]]
            where = f"{spec.dtype!r}, {spec.shape!r}, {handle}"
            if fused is not None:
                self.source.line(f"back.add_block_spots({where}, {fused.index(self.ops)}, {fused.spot(self.ops)})")
            else:
                self.source.line(f"back.add_blocks({where}, {self._block_value(add.value)})")
            return
        where = f"{self.function}, {spec.slot}, rows"
        if fused is not None:
            self.source.line(f"back.add_spots({where}, {fused.index(self.ops)}, {fused.spot(self.ops)})")
        else:
            self.source.line(f"back.add({where}, {self._dense_value(add.value)})")

    def _dense_value(self, value: Value) -> str:
        held = self.ops.held(value)
        return f"{held.name}.dense({num(value).shape!r})" if held.form == "ragged" else held.name

    def _block_value(self, value: Value) -> str:
        held = self.ops.held(value)
        return held.name if held.form == "ragged" else self.ops.rows(value)

    def _add_field(self, add: Add, fused: Any) -> None:
        assert add.ref is not None
        ref = self.ops.rows(add.ref)
        if not add.table.startswith("@"):
            where = f"{self.plan.table_number[add.table]}, {add.index}, {ref}"
            if fused is not None:
                self.source.line(f"back.add_field_spots({where}, {fused.index(self.ops)}, {fused.spot(self.ops)})")
            else:
                self.source.line(f"back.add_field({where}, {self.ops.rows(add.value)})")
            return
        function, spec = self.plan.result_spec(add.table, add.index)
        if spec.kind == "ragged":
            data = f"run.frames[{function}].data"
            handle = self.source.function(Ragged)
            cells = f"{data}[{spec.slot}].take({ref}), {data}[{spec.slot + 1}].take({ref}, 0)"
            block = f"{handle}(None, {cells})"
            self.source.line(
                f"back.add_blocks({spec.dtype!r}, {spec.shape!r}, {block}, {self._block_value(add.value)})"
            )
            return
        how = "add" if self._own_children(add.ref) else "add_repeated"
        self.source.line(f"back.{how}({function}, {spec.slot}, {ref}, {self._dense_value(add.value)})")

    def _add_maybe(self, add: Add) -> None:
        assert add.ref is not None
        if not add.table.startswith("@"):
            args = f"{self.plan.table_number[add.table]}, {add.index}, {self.ops.rows(add.ref)}"
            self.source.line(f"back.add_field_maybe({args}, {self.ops.rows(add.value)})")
            return
        function, spec = self.plan.result_spec(add.table, add.index)
        repeated = not self._own_children(add.ref)
        args = f"{self.ops.rows(add.ref)}, {self.ops.rows(add.value)}, {repeated}"
        self.source.line(f"back.add_maybe({function}, {spec.slot}, {args})")

    def _add_run(self, add: Add) -> None:
        assert add.ref is not None
        rows = self.ops.run_rows(add.ref)
        value = f"{self._block_value(add.value)}.flat()"
        if not add.table.startswith("@"):
            self.source.line(f"back.add_field({self.plan.table_number[add.table]}, {add.index}, {rows}, {value})")
            return
        function, spec = self.plan.result_spec(add.table, add.index)
        how = "add" if self._own_children(add.ref) else "add_repeated"
        self.source.line(f"back.{how}({function}, {spec.slot}, {rows}, {value})")

    def _own_children(self, ref: Value) -> bool:
        """Whether these are frames that the rows themselves called: then no two rows have the same."""
        producer: Op | None = self.passing.producer.get(ref)
        if producer is not None and producer.name == "item":
            ref = producer.operands[0]
        column = self.passing.loads.get(ref)
        if column is None:
            return False
        position = self.plan.columns[column.id]
        return any((s.caller, s.child) == position and s.shared < 0 for s in self.plan.sites)


def zeros_like(handle: Ragged, dtype: str, shape: tuple[int, ...]) -> Ragged:
    """Zeros in blocks of the same sizes."""
    return packed(np.zeros((int(handle.sizes.sum()), *shape), dtype), handle.dims)


def zero_stack(counts: Any, dtype: str, shape: tuple[int, ...]) -> Ragged:
    """Zeros for stacks of this many elements."""
    return packed(np.zeros((int(counts.sum()), *shape), dtype), counts[:, None])
