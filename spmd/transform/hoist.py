"""Uniform work goes into the prologue.

The invariant: only ops that cannot raise and that depend on module inputs and constants alone are moved, each piece of
work once for the whole module; their results become derived inputs, which any function may name. Reads of tables stay
where they are. Constants and broadcasts are not worth an input of their own: they are repeated where they are used.

    input %w                                   input %w
    func @f(%x) {                              prologue { %0 = transpose %w; yield %0 }
      %0 = transpose %w              ->        derived %1
      %1 = matmul %x, %0 ...                   func @f(%x) { %2 = matmul %x, %1 ...
"""

from __future__ import annotations

from dataclasses import replace

from spmd.analysis.effects import Primitives, default_primitives, may_raise
from spmd.ir.core import STRUCTURAL, Block, Module, Op, Value
from spmd.ir.equal import op_key
from spmd.ir.rewrite import clone_module
from spmd.ir.types import Num

REPEATED = frozenset({"const", "broadcast"})


def hoist(module: Module, primitives: Primitives | None = None) -> Module:
    """A module whose functions do no uniform work that the prologue can do."""
    primitives = default_primitives() if primitives is None else primitives
    module = clone_module(module)
    mover = _Mover(module, primitives)
    for function in module.functions.values():
        mover.find(function.body)
    for function in module.functions.values():
        mover.replace(function.body)
    mover.close()
    return module


class _Mover:
    """`moved` maps a value of a function to the value of the prologue that equals it."""

    def __init__(self, module: Module, primitives: Primitives) -> None:
        self.module = module
        self.primitives = primitives
        self.moved: dict[Value, Value] = {}
        self.constants: dict[Value, Op] = {}
        given = module.prologue.terminator.operands if module.prologue is not None else []
        first = len(module.inputs) - len(given)
        self.ops: list[Op] = list(module.prologue.ops[:-1]) if module.prologue is not None else []
        self.inputs = {v: v for v in module.inputs[:first]}
        self.inputs.update(zip(module.inputs[first:], given, strict=True))
        self.derived: dict[Value, Value] = dict(zip(given, module.inputs[first:], strict=True))
        self.done: dict[tuple[object, ...], Op] = {op_key(op): op for op in self.ops}
        self.candidates: dict[Value, Op] = {}

    def find(self, block: Block) -> None:
        """Marks uniform ops, in program order, inner blocks included."""
        for op in block.ops:
            if op.name == "const":
                self.constants[op.result] = op
            elif self.uniform(op):
                self.candidates[op.result] = replace(op, operands=list(op.operands))  # as it was
            for inner in op.blocks:
                self.find(inner)

    def uniform(self, op: Op) -> bool:
        if op.name in STRUCTURAL or op.terminator or op.blocks or not op.operands or len(op.results) != 1:
            return False
        if not isinstance(op.result.type, Num):
            return False
        known = all(v in self.inputs or v in self.constants or v in self.candidates for v in op.operands)
        return known and not may_raise(op, self.primitives)

    def replace(self, block: Block) -> None:
        """Names derived inputs instead of moved values; ops that were moved go."""
        kept = []
        for op in block.ops:
            if any(v in self.candidates for v in op.results) and op.name not in REPEATED:
                continue
            for inner in op.blocks:
                self.replace(inner)
            op.operands = [self.name(v) for v in op.operands]
            kept.append(op)
        block.ops = kept

    def name(self, value: Value) -> Value:
        """What stands for an operand of an op that stays."""
        op = self.candidates.get(value)
        if op is None or op.name in REPEATED:
            return value
        source = self.prologue(value)
        if source not in self.derived:
            self.derived[source] = Value(value.type, value.name)
        return self.derived[source]

    def prologue(self, value: Value) -> Value:
        """The prologue's value that equals a uniform value; its op is written there when first asked for."""
        stack = [value]
        while stack:
            top = stack[-1]
            if top in self.inputs or top in self.moved:
                stack.pop()
                continue
            op = self.constants.get(top) or self.candidates[top]
            missing = [v for v in op.operands if v not in self.inputs and v not in self.moved]
            if missing:
                stack += missing
                continue
            self.moved[top] = self.write(op)
            stack.pop()
        return self.moved.get(value) or self.inputs[value]

    def write(self, op: Op) -> Value:
        operands = [self.moved.get(v) or self.inputs[v] for v in op.operands]
        key = op_key(op, operands)
        if key not in self.done:
            made = Op(op.name, operands, op.attrs, [Value(op.result.type, op.result.name)], [], op.span, op.order)
            self.ops.append(made)
            self.done[key] = made
        return self.done[key].result

    def close(self) -> None:
        """Puts the prologue and the derived inputs into the module."""
        if not self.derived:
            return
        first = len(self.module.inputs) - (
            len(self.module.prologue.terminator.operands) if self.module.prologue is not None else 0
        )
        self.module.inputs = self.module.inputs[:first] + list(self.derived.values())
        self.module.prologue = Block([], [*self.ops, Op("yield", list(self.derived), {}, [])])
