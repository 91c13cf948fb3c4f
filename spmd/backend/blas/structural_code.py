"""Writes the structural ops: reads of tables and frames, runs of rows, checks.

The invariant: an op that can fail on a row says so (`fails`) before the line that may report it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spmd.backend.blas import spaces, structural
from spmd.backend.blas.plan import num
from spmd.backend.blas.values import UNKNOWN, Held, ValueWriter
from spmd.errors import InternalError
from spmd.ir.core import Op
from spmd.ir.types import Num, Ref, Seq


class StructuralWriter(ValueWriter):
    """Emits structural ops: `_op_NAME` for each."""

    def _op_const(self, op: Op) -> None:
        value = op.attrs["value"]
        if isinstance(op.result.type, Ref):
            self.set(op.result, f"np.full(K, {-1 if value is None else int(value)})", "rows")
            return
        if isinstance(op.result.type, Seq):
            first, count = map(int, value)
            self.set(op.result, f"(np.full(K, {first}), np.full(K, {count}))", "run")
            return
        type_ = num(op.result)
        if not type_.python:
            value = np.asarray(value, type_.dtype)
            value = value[()] if value.ndim == 0 else value
        self.set(op.result, self.source.constant(value), "uniform", value)

    def _op_load(self, op: Op) -> None:
        (ref,) = op.operands
        table, index = op.attrs["table"], op.attrs["field"]
        at = self.rows(ref)
        if table.startswith("@"):
            function, spec = self.plan.result_spec(table, index)
            data = [f"run.frames[{function}].data[{spec.slot + i}]" for i in range(spec.slots)]
            text, form = self._read_results(spec, data, at)
        else:
            data = [f"run.tables[{self.plan.table_number[table]}].fields[{index}]"]
            text, form = self._read_field(self.plan.program.field_type(table, index), data[0], at)
        if op.result in self.lazy and form == "rows":
            self.env[op.result] = Held("", "lazy", op.result.type, UNKNOWN, (data[0], at))
            return
        name = self.source.fresh()
        self.source.line(f"{name} = {text}")
        self.set(op.result, name, form, tight=form == "rows")

    def _op_load_or(self, op: Op) -> None:
        ref, other = op.operands
        table, index = op.attrs["table"], op.attrs["field"]
        if table.startswith("@"):
            function, spec = self.plan.result_spec(table, index)
            data = f"run.frames[{function}].data[{spec.slot}]"
        else:
            data = f"run.tables[{self.plan.table_number[table]}].fields[{index}]"
        held = self.held(other)
        args = f"{data}, {self.rows(ref)}, {held.name}, {held.varying}"
        name = self.source.fresh()
        self.source.line(f"{name} = {self.source.function(structural.gather_or)}({args})")
        self.set(op.result, name, "rows", tight=True)

    def field(self, table: str, index: int) -> str:
        """Expression of a whole field of a table, or of a function's frames."""
        if not table.startswith("@"):
            return f"run.tables[{self.plan.table_number[table]}].fields[{index}]"
        function, spec = self.plan.result_spec(table, index)
        data = [f"run.frames[{function}].data[{spec.slot + i}]" for i in range(spec.slots)]
        if spec.kind == "ragged":
            buffer = f"run.arenas.get({spec.dtype!r}, {spec.shape!r}).buffer"
            return f"{self.source.function(structural.Ragged)}({buffer}, {data[0]}, {data[1]})"
        return data[0] if spec.kind == "dense" else f"({data[0]}, {data[1]})"

    def _read_results(self, spec: Any, data: list[str], at: str) -> tuple[str, str]:
        if spec.kind == "dense":
            return f"{data[0]}.take({at}, 0)", "rows"
        if spec.kind == "run":
            return f"({data[0]}.take({at}), {data[1]}.take({at}))", "run"
        buffer = f"run.arenas.get({spec.dtype!r}, {spec.shape!r}).buffer"
        ragged = self.source.function(structural.Ragged)
        return f"{ragged}({buffer}, {data[0]}.take({at}), {data[1]}.take({at}, 0))", "ragged"

    def _read_field(self, type_: Any, data: str, at: str) -> tuple[str, str]:
        if isinstance(type_, Seq):
            return f"{self.source.function(structural.gather_run)}({data}, {at})", "run"
        if isinstance(type_, Num) and not type_.static:
            return f"{self.source.function(structural.gather_ragged)}({data}, {at})", "ragged"
        return f"{self.source.function(structural.gather)}({data}, {at})", "rows"

    def _simple(self, op: Op, text: str, form: str) -> None:
        name = self.source.fresh()
        self.source.line(f"{name} = {text}")
        self.set(op.result, name, form)

    def _op_item(self, op: Op) -> None:
        run, index = (self.name(v) for v in op.operands)
        fails = self.fails(op)
        self._simple(op, f"{self.source.function(structural.item)}({run}, {index}, {fails})", "rows")

    def _op_length(self, op: Op) -> None:
        self._simple(op, f"{self.name(op.operands[0])}[1]", "rows")

    def _op_column(self, op: Op) -> None:
        table, index = op.attrs["table"], op.attrs["field"]
        if table.startswith("@"):
            function, spec = self.plan.result_spec(table, index)
            data = f"run.frames[{function}].data[{spec.slot}]"
            plain = spec.kind == "dense"
        else:
            data = f"run.tables[{self.plan.table_number[table]}].fields[{index}]"
            plain = static(self.plan.program.field_type(table, index))
        if not plain:
            raise InternalError(f"column of a field whose size varies: {op!r}")
        run = op.operands[0]
        rows, name = self.run_rows(run), self.source.fresh()
        like = self.column_of.get(run)
        if like is None:
            self.column_of[run] = name
            text = f"{self.source.function(spaces.first_column)}({rows}, {self.name(run)}, {data})"
        else:
            text = f"{self.source.function(spaces.more_columns)}({rows}, {like}, {data})"
        self.source.line(f"{name} = {text}")
        self.set(op.result, name, "ragged")

    def _op_isnull(self, op: Op) -> None:
        self._simple(op, f"{self.rows(op.operands[0])} < 0", "rows")

    def _op_assured(self, op: Op) -> None:
        self._simple(op, self.rows(op.operands[0]), "rows")

    def _op_rownumber(self, op: Op) -> None:
        self._simple(op, f"{self.rows(op.operands[0])}.astype(np.int64)", "rows")

    def _op_row(self, op: Op) -> None:
        self._simple(op, self.rows(op.operands[0]), "rows")

    def _op_same(self, op: Op) -> None:
        self._simple(op, " == ".join(self.rows(v) for v in op.operands), "rows")

    def _op_nonnull(self, op: Op) -> None:
        fails = self.fails(op)
        make = self.source.constant(structural.make_error(op.attrs["error"]))
        text = f"{self.source.function(structural.nonnull)}({self.rows(op.operands[0])}, {fails}, {make})"
        self._simple(op, text, "rows")

    def _op_seqslice(self, op: Op) -> None:
        args = ", ".join(self.name(v) for v in op.operands)
        self._simple(op, f"{self.source.function(structural.part)}({args})", "run")

    def _op_guard(self, op: Op) -> None:
        fails = self.fails(op)
        make = self.source.constant(structural.make_error(op.attrs["error"]))
        cond = self.name(op.operands[0])
        self.source.line(f"{self.source.function(structural.guard)}({cond}, K, {fails}, {make})")


def static(type_: Any) -> bool:
    return not isinstance(type_, Num) or type_.static
