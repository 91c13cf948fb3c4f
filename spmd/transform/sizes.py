"""Work on sizes that are known to be equal goes.

The sizes that `analysis.sizes` knows decide broadcasts: one to the sizes that an array has already is that array, the
common sizes of equal ones are theirs, sizes are asked of the first array that has them. Checks that are known to hold
are marked `exact`, so that they cannot raise. The invariant: values, exceptions and derivatives stay; an op that might
raise is only dropped or marked where it never does.

    %d = shape_of %x; %y = exp %x; %e = shape_of %y                      %y = exp %x
    %b = broadcast_dims %d, %e; %z = broadcast_to %x, %b           ->    %w = mul %x, %y
    %v = broadcast_to %y, %b; %w = mul %z, %v
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spmd.analysis.effects import Primitives, default_primitives
from spmd.analysis.sizes import VECTORS, Known, Size, Sizes, Symbol
from spmd.ir.build import constant_type
from spmd.ir.core import Block, Module, Op, Value
from spmd.ir.equal import op_key
from spmd.ir.rewrite import clone_module, resolve, substitute
from spmd.ir.types import INT, Num, Seq, Type
from spmd.transform.simplify import drop_dead

SHARED = frozenset({"broadcast_to", "unbroadcast", "reshape_to", "sum", "transpose"})  # done once for equal operands


def trim_sizes(module: Module, primitives: Primitives | None = None) -> Module:
    """A module that computes the same with less work on sizes."""
    primitives = default_primitives() if primitives is None else primitives
    module = clone_module(module)
    for function in module.functions.values():
        work = Trimmer(Sizes(primitives))
        work.block(function.body, Scope())
        substitute(function.body, work.names)
        drop_dead(function.body, primitives)
    return module


@dataclass(eq=False)
class Scope:
    """What is there already: an array of given sizes, a vector of given entries, an integer, equal work."""

    arrays: dict[Known, Value] = field(default_factory=dict)
    vectors: dict[tuple[Known, Type], Value] = field(default_factory=dict)
    numbers: dict[tuple[Size, Type], Value] = field(default_factory=dict)
    done: dict[tuple[Any, ...], Value] = field(default_factory=dict)

    def inner(self) -> Scope:
        return Scope(dict(self.arrays), dict(self.vectors), dict(self.numbers), dict(self.done))

    def enter(self, value: Value, facts: Sizes) -> None:
        """A value that later ops may name."""
        if not isinstance(value.type, Num):
            return
        if not value.type.static:
            self.arrays.setdefault(facts.of(value), value)
        elif value.type.rank == 1 and value.type.dtype == "int64":
            self.vectors.setdefault((facts.entries(value), value.type), value)
        elif value.type.shape == () and value.type.dtype == "int64" and not value.type.text:
            self.numbers.setdefault((facts.number(value), value.type), value)


class Trimmer:
    """Rewrites ops in order. `names`: what stands for a value that is gone; `runs`: runs of rows whose length may be
    asked (all of them if None)."""

    def __init__(self, facts: Sizes, runs: set[Value] | None = None) -> None:
        self.facts = facts
        self.runs = runs
        self.names: dict[Value, Value] = {}

    def block(self, block: Block, scope: Scope) -> None:
        for value in block.args:
            scope.enter(value, self.facts)
        block.ops = self.ops(block.ops, scope)

    def ops(self, ops: Iterable[Op], scope: Scope) -> list[Op]:
        kept: list[Op] = []
        for op in ops:
            op.operands = [resolve(self.names, v) for v in op.operands]
            for inner in op.blocks if op.name != "native" else ():  # that block names nothing from outside
                self.block(inner, scope.inner())
            for each in self.trimmed(op, scope):
                kept.append(each)
                self.facts.see(each)
                for value in each.results:
                    scope.enter(value, self.facts)
        return kept

    def trimmed(self, op: Op, scope: Scope) -> list[Op]:
        """The ops that stand for `op`: none where its result is there already."""
        rule = RULES.get(op.name)
        if rule is not None:
            done = rule(self, op, scope)
        elif op.name in VECTORS:
            done = self._vector(op, scope)
        else:
            done = [op]
        if isinstance(done, Value):
            return self._named(op, done)
        if len(done) == 1 and op.name in SHARED:
            twin = scope.done.setdefault(op_key(op), op.result)
            if twin is not op.result:
                return self._named(op, twin)
        return done

    def _named(self, op: Op, value: Value) -> list[Op]:
        self.names[op.result] = value
        return []

    # ------------------------------------------------------------------------------------------ vectors and numbers
    def _vector(self, op: Op, scope: Scope) -> list[Op] | Value:
        """A vector of sizes: there already, constant, or the sizes of an array."""
        type_ = op.result.type
        known = self.facts.vector(op) if isinstance(type_, Num) and type_.dtype == "int64" else None
        if known is None:
            return [op]
        twin = scope.vectors.get((known, type_))
        if twin is not None:
            return twin
        if all(isinstance(n, int) for n in known):
            return [_constant(op, np.array(known, np.int64))]
        array = scope.arrays.get(known)
        if array is not None:
            return [Op("shape_of", [array], {}, op.results, [], op.span, op.order)]
        if op.name == "broadcast_dims":
            op.attrs = {**op.attrs, "exact": True}
        return [op]

    def _dim(self, op: Op, scope: Scope) -> list[Op] | Value:
        (array,) = op.operands
        size = self.facts.of(array)[op.attrs["axis"]]
        if isinstance(size, int):
            return [_constant(op, size)] if op.result.type == INT else [op]
        twin = scope.numbers.get((size, op.result.type))
        if twin is not None:
            return twin
        askable = size.kind == "length" and (self.runs is None or size.value in self.runs)
        if askable and isinstance(size.value.type, Seq) and op.result.type == INT:
            return [Op("length", [size.value], {}, op.results, [], op.span, op.order)]
        op.operands = [scope.arrays.get(self.facts.of(array), array)]
        return [op]

    # ------------------------------------------------------------------------------------------ arrays
    def _broadcast_to(self, op: Op, scope: Scope) -> list[Op] | Value:
        source, dims = op.operands
        same = self.facts.of(source) == self.facts.entries(dims) and source.type == op.result.type
        return source if same else [op]

    def _fill_to(self, op: Op, scope: Scope) -> list[Op] | Value:
        """Sizes of arrays are not negative: nothing to check."""
        sizes = self.facts.entries(op.operands[1])
        if all(n >= 0 if isinstance(n, int) else n.kind in ("axis", "length") for n in sizes):
            return [Op("broadcast_to", op.operands, op.attrs, op.results, [], op.span, op.order)]
        return [op]

    def _reshape_to(self, op: Op, scope: Scope) -> list[Op] | Value:
        source, dims = op.operands
        sizes, target = self.facts.of(source), self.facts.entries(dims)
        if sizes == target and source.type == op.result.type:
            return source
        if _elements(sizes) == _elements(target):
            op.attrs = {**op.attrs, "exact": True}
        return [op]

    def _matmul(self, op: Op, scope: Scope) -> list[Op] | Value:
        left, right = (self.facts.of(v) for v in op.operands)
        inner = right[0] if len(right) == 1 else right[-2]
        stacks = (left[:-2], right[:-2])
        if isinstance(inner, Symbol) and inner == left[-1] and (not all(stacks) or stacks[0] == stacks[1]):
            op.attrs = {**op.attrs, "exact": True}
        return [op]

    def _unbroadcast(self, op: Op, scope: Scope) -> list[Op] | Value:
        """Sums along the axes that are known to have been added or widened, where that is known of all."""
        source, dims = op.operands
        extra, target = op.attrs["extra"], self.facts.entries(dims)
        sizes = self.facts.of(source)[extra:]
        wide = [k for k, (m, n) in enumerate(zip(sizes, target)) if m != n]
        if len(sizes) != len(target) or any(target[k] != 1 for k in wide):
            return [op]
        steps = [(tuple(range(extra)), False)] if extra else []
        steps += [(tuple(wide), True)] if wide else []
        made: list[Op] = []
        for axes, keepdims in steps:
            result = _summed(source, axes, keepdims)
            made.append(Op("sum", [source], {"axes": axes, "keepdims": keepdims}, [result], [], op.span, op.order))
            source = result
        if source.type != op.result.type:
            return [op]
        if not made:
            return source
        made[-1].results = op.results
        return made


def _summed(source: Value, axes: Sequence[int], keepdims: bool) -> Value:
    type_ = source.type
    assert isinstance(type_, Num)
    shape = [1 if k in axes else n for k, n in enumerate(type_.shape) if keepdims or k not in axes]
    return Value(type_.with_shape(tuple(shape)))


def _elements(sizes: Known) -> tuple[int, dict[Symbol, int]]:
    """The number of elements as a number times powers of symbols."""
    number = 1
    powers: dict[Symbol, int] = {}
    for n in sizes:
        if isinstance(n, int):
            number *= n
        else:
            powers[n] = powers.get(n, 0) + 1
    return number, powers


def _constant(op: Op, value: Any) -> Op:
    assert constant_type(value) == op.result.type
    return Op("const", [], {"value": value}, op.results, [], op.span, op.order)


RULES: dict[str, Any] = {
    "dim": Trimmer._dim,
    "broadcast_to": Trimmer._broadcast_to,
    "fill_to": Trimmer._fill_to,
    "reshape_to": Trimmer._reshape_to,
    "matmul": Trimmer._matmul,
    "unbroadcast": Trimmer._unbroadcast,
}
