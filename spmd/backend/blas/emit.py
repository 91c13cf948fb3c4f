"""Writes straight-line Python for ops over rows.

The invariant: generated text holds numbered names only; every constant, rule and user value comes through a table of
names, so no user text is ever compiled. One `Held` per value says where it is and in which form:

  uniform  what one example sees: a scalar or array
  rows     array [K, *shape] (links: int64 [K])
  run      pair (first, count) of int64 [K]
  ragged   Ragged of K rows
  lazy     an array in a column or table field that is read element by element
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from spmd.backend.blas import dynamic, structural
from spmd.backend.blas.plan import Plan
from spmd.errors import InternalError
from spmd.ir.core import Op, Value
from spmd.ir.types import Num, Ref, Seq
from spmd.ops.primitive import Site
from spmd.ops.table import PRIMITIVES

UNKNOWN = object()


@dataclass(eq=False)
class Held:
    """Where a value is. `known`: its value where that is a compile-time constant. `source`: for lazy ones the
    expressions of the array and of the rows in it."""

    name: str
    form: str
    type: Any
    known: Any = UNKNOWN
    source: tuple[str, str] = ("", "")

    @property
    def varying(self) -> bool:
        return self.form != "uniform"


class Source:
    """Text of one function and the table of names that it uses."""

    def __init__(self, name: str, arguments: str) -> None:
        self.name = name
        self.lines = [f"def {name}({arguments}):"]
        self.names: dict[str, Any] = {"np": np}
        self._next = 0

    def fresh(self, letter: str = "v") -> str:
        """A name that nothing has yet."""
        self._next += 1
        return f"{letter}{self._next}"

    def constant(self, value: Any, letter: str = "c") -> str:
        """The name of a value in the table."""
        name = self.fresh(letter)
        self.names[name] = value
        return name

    def function(self, value: Callable[..., Any]) -> str:
        """The name of a function in the table; one name per function."""
        for name, known in self.names.items():
            if known is value:
                return name
        return self.constant(value, "f")

    def line(self, text: str, depth: int = 1) -> None:
        self.lines.append("    " * depth + text)

    def build(self) -> Callable[..., Any]:
        """Compiles the text."""
        code = compile(self.text, f"<spmd {self.name}>", "exec")
        scope = dict(self.names)
        exec(code, scope)  # noqa: S102 (numbered names only, see the module's invariant)
        out: Callable[..., Any] = scope[self.name]
        return out

    @property
    def text(self) -> str:
        return "\n".join([*self.lines, "    return None"] if len(self.lines) == 1 else self.lines) + "\n"


class OpWriter:
    """Emits ops into a source. `orders`/`spans` collect the ops that may raise."""

    def __init__(self, source: Source, plan: Plan, inputs: dict[Value, int], env: dict[Value, Held]) -> None:
        self.source = source
        self.plan = plan
        self.inputs = inputs
        self.env = env
        self.orders: list[tuple[int, ...]] = []
        self.spans: list[Any] = []
        self.faults = False
        self.lazy: set[Value] = set()
        self._head = len(source.lines)

    # ------------------------------------------------------------------------------------------ values
    def held(self, value: Value) -> Held:
        """Where a value is; a module input is fetched at its first use."""
        found = self.env.get(value)
        if found is not None:
            return found
        number = self.inputs.get(value)
        if number is None:
            raise InternalError(f"{value!r} is used where it is not known")
        name = self.source.fresh("i")
        text = f"run.inputs[{number}]"
        form = "uniform"
        if isinstance(value.type, Ref):
            text, form = f"np.full(K, {text})", "rows"
        elif isinstance(value.type, Seq):
            text, form = f"(np.full(K, {text}[0]), np.full(K, {text}[1]))", "run"
        self._head_line(f"{name} = {text}")
        return self.set(value, name, form)

    def _head_line(self, text: str) -> None:
        self.source.lines.insert(self._head, "    " + text)
        self._head += 1

    def set(self, value: Value, name: str, form: str, known: Any = UNKNOWN) -> Held:
        out = self.env[value] = Held(name, form, value.type, known)
        return out

    def name(self, value: Value) -> str:
        return self.held(value).name

    def rows(self, value: Value) -> str:
        """Expression of a value with a row axis."""
        held = self.held(value)
        if held.form != "uniform":
            return held.name
        return self.as_rows(held)

    def as_rows(self, held: Held) -> str:
        """Expression that repeats a uniform value for every row."""
        return f"{self.source.function(spread)}({held.name}, K, {self.source.constant(np.dtype(held.type.dtype))})"

    # ------------------------------------------------------------------------------------------ ops
    def emit(self, ops: Iterable[Op]) -> None:
        """Emits ops in order."""
        for op in ops:
            self.op(op)

    def op(self, op: Op) -> None:
        structural_op = getattr(self, f"_op_{op.name}", None)
        if structural_op is not None:
            structural_op(op)
        else:
            self._primitive(op)

    def fails(self, op: Op) -> str:
        """Says that the next line may report faults of `op`; the name of the collector."""
        self.faults = True
        self.orders.append(op.order)
        self.spans.append(op.span)
        self.source.line(f"ft.at = {len(self.orders) - 1}")
        return "ft"

    def _primitive(self, op: Op) -> None:
        record = PRIMITIVES[op.name]
        operands = [self.held(v) for v in op.operands]
        raises = record.raises([v.type for v in op.operands], op.attrs)
        if not any(h.varying for h in operands):
            if not raises:
                self._uniform(op, record, operands)
                return
            operands[0] = Held(f"({self.as_rows(operands[0])})", "rows", operands[0].type)
        result = op.result.type
        if any(h.form == "lazy" for h in operands):
            self._element(op, operands)
            return
        if not (all(_static(h.type) for h in operands) and _static(result)):
            rule, form, raises = dynamic.rule(op, [h.form for h in operands], raises)
        else:
            site = Site(tuple(h.type for h in operands), result, op.attrs, tuple(h.varying for h in operands))
            rule, form = record.rows(site), "rows"
        name = self.source.fresh()
        args = ", ".join(h.name for h in operands)
        if raises:
            args += f", faults={self.fails(op)}"
        self.source.line(f"{name} = {self.source.constant(rule, 'p')}({args})")
        self.set(op.result, name, form)

    def _uniform(self, op: Op, record: Any, operands: Sequence[Held]) -> None:
        rule = partial(record.numpy, **op.attrs) if op.attrs else record.numpy
        if all(h.known is not UNKNOWN for h in operands):
            with np.errstate(all="ignore"):
                value = rule(*(h.known for h in operands))
            self.set(op.result, self.source.constant(value), "uniform", value)
            return
        name = self.source.fresh()
        args = ", ".join(h.name for h in operands)
        self.source.line(f"{name} = {self.source.constant(rule, 'u')}({args})")
        self.set(op.result, name, "uniform")

    def _element(self, op: Op, operands: Sequence[Held]) -> None:
        """`index` of an array that stays in its column."""
        array, *index = operands
        name = self.source.fresh()
        shape = self.source.constant(array.type.shape)
        args = ", ".join(h.name for h in index)
        data, rows = array.source
        read = self.source.function(structural.element)
        self.source.line(f"{name} = {read}({data}, {rows}, ({args},), {shape}, K, {self.fails(op)})")
        self.set(op.result, name, "rows")

    # ------------------------------------------------------------------------------------------ structural ops
    def _op_const(self, op: Op) -> None:
        value, type_ = op.attrs["value"], op.result.type
        if isinstance(type_, Ref):
            self.set(op.result, f"np.full(K, {-1 if value is None else int(value)})", "rows")
            return
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
        self.set(op.result, name, form)

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
            plain = _static(self.plan.program.field_type(table, index))
        if not plain:
            raise InternalError(f"column of a field whose size varies: {op!r}")
        self._simple(op, f"{self.source.function(structural.column)}({self.name(op.operands[0])}, {data})", "ragged")

    def _op_isnull(self, op: Op) -> None:
        self._simple(op, f"{self.rows(op.operands[0])} < 0", "rows")

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


def _static(type_: Any) -> bool:
    return not isinstance(type_, Num) or type_.static


def spread(value: Any, count: int, dtype: np.dtype[Any]) -> Any:
    """One example's value for `count` rows, without a copy."""
    value = np.asarray(value, dtype)
    return np.broadcast_to(value, (count, *value.shape))


def lazy_values(ops: Sequence[Op], candidates: set[Value], kept: set[Value]) -> set[Value]:
    """Candidates (arrays that could stay where they are) whose every use is as the array of an `index`."""
    out = {v for v in candidates if isinstance(v.type, Num) and v.type.static and v.type.rank and v not in kept}
    used = set()
    for op in ops:
        for position, value in enumerate(op.operands):
            if op.name == "index" and position == 0:
                used.add(value)
            else:
                out.discard(value)
    return out & used
