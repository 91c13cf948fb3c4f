"""Inserts ops into a block.

The invariant: every op gets the span and the program position that are current when it is emitted, and result types
come from the one type rule handed in (the primitives' own), so that no caller states a type twice. The builder does
not know which primitives exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from spmd.ir.core import Block, Op, Value
from spmd.ir.types import BOOL, FLOAT, INT, Num, Type
from spmd.source import Span

TypeRule = Callable[[str, Sequence[Type], dict[str, Any]], Sequence[Type]]


class Builder:
    """Appends ops to `block`; `at` moves it to another block for a while. `defs`: what made each value."""

    def __init__(self, block: Block, rule: TypeRule, order: tuple[int, ...] = ()) -> None:
        self.block = block
        self.rule = rule
        self.span: Span | None = None
        self._prefix = order
        self._next = 0
        # Per block: value -> the op that made it, of as many ops as were looked at.
        self._made: dict[Block, tuple[dict[Value, Op], int]] = {}
        self.defs: dict[Value, Op] = {}

    def position(self) -> tuple[int, ...]:
        """A fresh program position, later than all given before."""
        self._next += 1
        return (*self._prefix, self._next)

    @contextmanager
    def at(self, block: Block) -> Iterator[Block]:
        """Emit into another block, then return to this one."""
        outer, self.block = self.block, block
        try:
            yield block
        finally:
            self.block = outer

    def definition(self, value: Value) -> Op | None:
        """The op of the current block that made a value."""
        ops = self.block.ops
        made, seen = self._made.get(self.block, ({}, 0))
        if seen < len(ops):
            made.update((result, op) for op in ops[seen:] for result in op.results)
            self._made[self.block] = made, len(ops)
        return made.get(value)

    def insert(
        self,
        name: str,
        operands: Sequence[Value],
        types: Sequence[Type],
        attrs: dict[str, Any] | None = None,
        blocks: Sequence[Block] = (),
    ) -> Op:
        """Append an op with stated result types."""
        results = [Value(t) for t in types]
        op = Op(name, list(operands), attrs or {}, results, list(blocks), self.span, self.position())
        self.block.ops.append(op)
        self.defs.update((v, op) for v in results)
        return op

    def emit(self, name: str, *operands: Value, **attrs: Any) -> Value:
        """Append a primitive with one result, its type by the rule."""
        types = self.rule(name, [v.type for v in operands], attrs)
        return self.insert(name, operands, types, attrs).result

    def const(self, value: Any, type_: Num | None = None) -> Value:
        """A constant: Python and NumPy scalars keep their kind, arrays are copied."""
        if type_ is None:
            type_ = constant_type(value)
        return self.insert("const", (), [type_], {"value": value}).result


def constant_type(value: Any) -> Num:
    """The type of a Python or NumPy number, or of an array."""
    import numpy as np

    if isinstance(value, np.generic):  # np.float64 is a float too, but not a Python one
        return Num(str(value.dtype))
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, int):
        return INT
    if isinstance(value, float):
        return FLOAT
    if isinstance(value, complex):
        return Num("complex128", python=True)
    array = np.asarray(value)
    return Num(str(array.dtype), array.shape)
