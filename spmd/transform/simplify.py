"""Constant folding, equal work once, dead work not at all, branches that are decided or not worth a jump, elements at
constant places.

The invariant: values, exceptions and derivatives stay. An op that would raise or warn on its constants is left to do so
at run time; what can raise is dropped only where an equal op has run before.

    %1 = const 2; %2 = const 3; %3 = add %1, %2; if %true { %4 = f %3; yield %4 } ...     ->     %3 = const 5; %4 = f %3
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from spmd.analysis.effects import Primitives, default_primitives, removable
from spmd.ir.build import constant_type
from spmd.ir.core import STRUCTURAL, Block, Function, Module, Op, Value
from spmd.ir.equal import op_key
from spmd.ir.rewrite import Map, clone_module, substitute, use_counts
from spmd.ir.types import Num, Ref
from spmd.transform.loops import tidy_loop
from spmd.transform.predicate import selected

FOLDED = 1024  # elements that a folded constant may have
SLICED = 64  # elements of an array whose cotangent may be made whole for one element
ROUNDS = 10  # enough for every chain of rewrites seen; stopping early only leaves work undone
UNSHARED = frozenset({"call", "map", "if", "loop"})  # too much to compare; calls are shared by nobody


def simplify(module: Module, primitives: Primitives | None = None) -> Module:
    """A module that computes the same with less."""
    primitives = default_primitives() if primitives is None else primitives
    module = clone_module(module)
    for function in module.functions.values():
        work = _Simplifier(function, primitives)
        for _ in range(ROUNDS):
            if not work.round():
                break
    return module


class _Simplifier:
    """Rewrites one function in place; `round` says whether anything changed."""

    def __init__(self, function: Function, primitives: Primitives) -> None:
        self.function = function
        self.primitives = primitives
        self.names: Map = {}
        self.constants: dict[Value, Any] = {}
        self.changed = False

    def round(self) -> bool:
        self.changed = False
        self.names, self.constants = {}, {}
        self.block(self.function.body, {})
        substitute(self.function.body, self.names)
        self.changed |= drop_dead(self.function.body, self.primitives)
        return self.changed

    def block(self, block: Block, done: dict[tuple[object, ...], Op]) -> None:
        """Ops in order; `done` holds those that have run before, by key."""
        kept: list[Op] = []
        pending = list(reversed(block.ops))
        while pending:
            op = pending.pop()
            op.operands = [self.current(v) for v in op.operands]
            more = self.decided(op) or selected(op, self.primitives) or self.sliced(op)
            if more is not None:
                ops, results = more
                if ops and ops[-1].terminator:  # the arm leaves: nothing behind it runs
                    pending = []
                else:
                    self.rename(op.results, results)
                pending += reversed(ops)
                self.changed = True
                continue
            for inner in op.blocks:
                self.block(inner, dict(done))
            if op.name == "loop":
                self.tidy(op)
            if not self.known(op, done):
                kept.append(op)
        block.ops = kept

    def current(self, value: Value) -> Value:
        """What a value is called by now. What an arm yields is renamed once more when the arm's ops are met."""
        while value in self.names:
            value = self.names[value]
        return value

    def rename(self, old: list[Value], new: list[Value]) -> None:
        self.names.update(zip(old, new, strict=True))

    def known(self, op: Op, done: dict[tuple[object, ...], Op]) -> bool:
        """Whether the op's results are there already: an equal op ran, or it does nothing."""
        if op.terminator or op.name in UNSHARED:
            return False
        self.fold(op)
        same = self.nothing(op)
        if same is None:
            twin = done.setdefault(op_key(op), op)
            if twin is op:
                return False
            same = twin.results
        self.rename(op.results, same)
        self.changed = True
        return True

    def nothing(self, op: Op) -> list[Value] | None:
        """The operand that the op gives back unchanged."""
        if op.name in ("nonnull", "assured") and op.operands[0].type == op.result.type:
            return [op.operands[0]]
        if op.name in ("cast", "broadcast", "reshape") and op.operands[0].type == op.result.type:
            return [op.operands[0]]
        if op.name == "where" and op.operands[1] is op.operands[2]:
            return [op.operands[1]]
        return None

    def fold(self, op: Op) -> None:
        """Turns an op on constants into a constant, in place."""
        if op.name == "isnull" and isinstance(op.operands[0].type, Ref) and not op.operands[0].type.nullable:
            op.name, op.operands, op.attrs = "const", [], {"value": False}
            self.changed = True
        if op.name == "const":
            self.constants[op.result] = op.attrs["value"]
            return
        if op.name in STRUCTURAL or not op.operands or not all(v in self.constants for v in op.operands):
            return
        value = evaluated(op, [self.constants[v] for v in op.operands], self.primitives)
        if value is not None:
            op.name, op.operands, op.attrs = "const", [], {"value": value}
            self.constants[op.result] = value
            self.changed = True

    def decided(self, op: Op) -> tuple[list[Op], list[Value]] | None:
        """The ops of the arm that is taken, where the condition is a constant."""
        if op.name != "if" or op.operands[0] not in self.constants:
            return None
        arm = op.blocks[0 if self.constants[op.operands[0]] else 1]
        *ops, last = arm.ops
        if last.name != "yield":
            return arm.ops, []
        if any(v.type != given.type for v, given in zip(op.results, last.operands, strict=True)):
            return None
        return ops, list(last.operands)

    def sliced(self, op: Op) -> tuple[list[Op], list[Value]] | None:
        """An element at constant positions in range is a slice: it cannot raise, and its cotangents are assembled."""
        if op.name != "index" or not all(v in self.constants for v in op.operands[1:]):
            return None
        source, result = op.operands[0].type, op.result.type
        if not isinstance(source, Num) or not isinstance(result, Num) or not source.static or source.size > SLICED:
            return None
        sizes = [n for n in source.shape if n is not None]
        places = [int(self.constants[v]) for v in op.operands[1:]]
        if any(not -n <= k < n for k, n in zip(places, sizes)):
            return None
        starts = [k % n for k, n in zip(places, sizes)]
        where = tuple((k, k + 1, 1) for k in starts) + tuple((0, n, 1) for n in sizes[len(starts) :])
        piece = Value(Num(source.dtype, (1,) * len(starts) + result.shape))
        value = Value(result, op.result.name)
        return [
            Op("slice", [op.operands[0]], {"index": where}, [piece], [], op.span, op.order),
            Op("reshape", [piece], {"shape": result.shape}, [value], [], op.span, op.order),
        ], [value]

    def tidy(self, op: Op) -> None:
        changed, names = tidy_loop(op)
        self.names.update(names)
        self.changed |= changed
        substitute(op.blocks[0], names)


def evaluated(op: Op, values: list[Any], primitives: Primitives) -> Any:
    """The op's result on constants; None where it raises, warns, is large or is of no constant's type."""
    type_ = op.result.type
    if not isinstance(type_, Num) or not type_.static or type_.size > FOLDED or type_.text:
        return None
    if any(isinstance(v.type, Num) and v.type.text for v in op.operands):
        return None
    try:
        with warnings.catch_warnings(), np.errstate(all="raise"):
            warnings.simplefilter("error")
            value = primitives[op.name].numpy(*values, **op.attrs)
    except Exception:
        return None
    if constant_type(value) != type_:
        return None
    return np.array(value) if isinstance(value, np.ndarray) else value


def drop_dead(block: Block, primitives: Primitives) -> bool:
    """Removes ops that cannot raise and whose results nobody uses; true if any went."""
    counts = use_counts(block)
    return _drop(block, counts, primitives)


def _drop(block: Block, counts: dict[Value, int], primitives: Primitives) -> bool:
    changed = False
    kept: list[Op] = []
    for op in reversed(block.ops):
        if not any(counts.get(v) for v in op.results) and removable(op, primitives):
            for inner in (op, *(o for b in op.blocks for o in b.walk())):
                for value in inner.operands:
                    counts[value] -= 1
            changed = True
            continue
        for inner_block in reversed(op.blocks):
            changed |= _drop(inner_block, counts, primitives)
        kept.append(op)
    block.ops = kept[::-1]
    return changed
