"""The reverse pass over a trace: every step backwards, by the adjoint rule of its primitive.

The invariant: a cotangent is complete when its step is reached, since all uses of an instance ran after the step that
defined it; it is then taken out, so a trace can be walked any number of times with fresh cotangents. Values that
nothing flowed into have no cotangent at all, so no rule is run for them. Must not know regions or control flow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spmd.backend.reference.interpreter import conforming
from spmd.backend.reference.trace import Applied, Element, Instance, Loaded, Stacked, Trace
from spmd.backend.reference.values import add_to_row, scalar, zeros_like_column
from spmd.errors import InternalError
from spmd.ir.core import Block, Module, Op, Value
from spmd.ir.types import Num, Type, carries_gradient
from spmd.ops.table import PRIMITIVES, builder


@dataclass(eq=False)
class Rule:
    """The adjoint of one op as straight-line IR over values of its operands and result, and `cotangent`.

    None of these is of a Python kind: derivatives follow IEEE and raise nothing.
    """

    operands: list[Value]
    result: Value
    cotangent: Value
    ops: list[Op]
    gradients: Sequence[Value | None]


class Rules:
    """Adjoint rules of a module's ops, built once each."""

    def __init__(self) -> None:
        self._built: dict[Op, Rule | None] = {}

    def of(self, op: Op) -> Rule | None:
        """The rule of an op; None where it has no derivative."""
        if op not in self._built:
            self._built[op] = self._build(op)
        return self._built[op]

    def _build(self, op: Op) -> Rule | None:
        adjoint = PRIMITIVES[op.name].adjoint
        if adjoint is None or not carries_gradient(op.result.type):
            return None
        body = Block()
        b = builder(body)
        b.span = op.span
        operands = [Value(strict(v.type)) for v in op.operands]
        result, cotangent = Value(strict(op.result.type)), Value(strict(op.result.type))
        shadow = Op(op.name, operands, op.attrs, [result], [], op.span, op.order)
        return Rule(operands, result, cotangent, body.ops, adjoint(b, shadow, cotangent))


def strict(type_: Type) -> Type:
    """The NumPy kind of a Python kind; any other type as it is."""
    return replace(type_, python=False) if isinstance(type_, Num) else type_


class Cotangents:
    """Cotangents under way in one walk, and those that arrived in table columns."""

    def __init__(self, module: Module, tables: dict[str, Any]) -> None:
        self.module = module
        self.data = tables
        self.of: dict[Instance, Any] = {}
        self.tables: dict[tuple[str, int], Any] = {}

    def add(self, instance: Instance, contribution: Any) -> None:
        """Adds a contribution to the cotangent of an instance."""
        known = self.of.get(instance)
        self.of[instance] = contribution if known is None else known + contribution

    def field(self, table: str, index: int) -> tuple[Num, Any]:
        """The column of cotangents of a table's field, made of zeros at first use, and the field's type."""
        type_ = self.module.tables[table].fields[index]
        assert isinstance(type_, Num)
        if (table, index) not in self.tables:
            self.tables[table, index] = zeros_like_column(type_, self.data[table].fields[index])
        return type_, self.tables[table, index]


def walk(trace: Trace, cotangents: Cotangents, rules: Rules) -> None:
    """Takes the cotangents of what the trace computed back to what it started from."""
    with np.errstate(all="ignore"):
        for step in reversed(trace):
            cotangent = cotangents.of.pop(step.result, None)
            if cotangent is None:
                continue
            if isinstance(step, Applied):
                _apply(step, cotangent, cotangents, rules)
            elif isinstance(step, Loaded):
                _loaded(step, cotangent, cotangents)
            elif isinstance(step, Stacked):
                for part, row in zip(step.parts, cotangent, strict=True):
                    cotangents.add(part, row)
            elif isinstance(step, Element):
                whole = np.zeros_like(step.array.value)
                whole[step.index] = cotangent
                cotangents.add(step.array, whole)


def _loaded(step: Loaded, cotangent: Any, cotangents: Cotangents) -> None:
    if not carries_gradient(cotangents.module.tables[step.table].fields[step.field]):
        return
    type_, column = cotangents.field(step.table, step.field)
    if step.count is None:
        add_to_row(type_, column, step.row, cotangent)
        return
    for k in range(step.count):
        add_to_row(type_, column, step.row + k, cotangent[k])


def _apply(step: Applied, cotangent: Any, cotangents: Cotangents, rules: Rules) -> None:
    op = step.op
    rule = rules.of(op)
    if rule is None:
        return
    named = [*zip(rule.operands, (i.value for i in step.operands), strict=True), (rule.result, step.result.value)]
    env = {v: plain(v.type, x) for v, x in [*named, (rule.cotangent, cotangent)]}
    evaluate(rule.ops, env)
    for operand, instance, gradient in zip(rule.operands, step.operands, rule.gradients, strict=True):
        if gradient is not None and carries_gradient(operand.type):
            cotangents.add(instance, _checked(op, operand, instance, env[gradient]))


def plain(type_: Type, value: Any) -> Any:
    """A value as its type demands it; rows of tables as they are."""
    return scalar(type_, value) if isinstance(type_, Num) else value


def _checked(op: Op, operand: Value, instance: Instance, gradient: Any) -> Any:
    """A contribution in the dtype of its operand. Raises InternalError where the sizes differ."""
    assert isinstance(operand.type, Num)
    made = np.asarray(gradient, dtype=operand.type.dtype)
    if made.shape != np.shape(instance.value):
        raise InternalError(
            f"the adjoint of '{op.name}' gave shape {made.shape} for an operand of shape {np.shape(instance.value)}",
            span=op.span,
        )
    return made[()]


def evaluate(ops: Sequence[Op], env: dict[Value, Any]) -> None:
    """Runs straight-line ops on the values in `env`, which their results join."""
    for op in ops:
        if op.name == "const":
            assert isinstance(op.result.type, Num)
            env[op.result] = scalar(op.result.type, op.attrs["value"])
        else:
            value = PRIMITIVES[op.name].numpy(*[env[v] for v in op.operands], **op.attrs)
            env[op.result] = conforming(op, value)


def row_cotangent(type_: Num, rows: Any, index: int) -> Any:
    """What one example sees of a result's cotangent."""
    return rows.one(index) if not type_.static else np.asarray(rows[index], dtype=type_.dtype)[()]
