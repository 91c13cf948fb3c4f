"""Loops that compiled code runs whole, as ops of regions: free values become operands, the body a closed block.

The invariant: the op names nothing of the block and the block nothing of what is around it, so the op may be copied,
and its operands renamed, like those of any other; `number` tells loops apart, equal operands do not make equal loops.
Calls in the loop are written in place as `inline` ops, whose block ends in `return`. Where the loop itself returns from
its function, the op's first result says so, and what is returned follows the loop's own results.

    loop %0 (%i: int) { ... %x ... break %i }   ->   native %0, %x { (%a, %y) loop %a (%i: int) { ... %y ... }; yield }
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from spmd.ir.core import Block, Module, Op, Value
from spmd.ir.rewrite import Map, clone_block, clone_op, fresh
from spmd.ir.types import BOOL, Num, Type

OPS = 2000
"""Operations of a loop that stays whole: the time to compile grows with them."""
SPARE = 1024
"""Elements of an array that stands for a result which another way out of the loop does not give."""


@dataclass(eq=False)
class Whole:
    """A loop as one op. `given`: the values that are its operands; `returned`: types of what its function returns,
    where the loop may return."""

    number: int
    given: list[Value]
    block: Block
    returned: list[Type] | None

    def op(self, loop: Op, order: tuple[int, ...], prefix: tuple[int, ...]) -> Op:
        """The op, without operands and results."""
        return Op("native", [], {"number": self.number}, [], [clone_block(self.block, {}, prefix)], loop.span, order)


class WholeLoops:
    """Finds the loops of a module that stay whole: those whose closed block `native` accepts."""

    def __init__(self, module: Module, inline: Callable[[str], bool], native: Callable[[Block], bool] | None) -> None:
        self.module = module
        self.inline = inline
        self.native = native
        self._found: dict[int, Whole | None] = {}
        self._constants: dict[Value, Op] | None = None

    def find(self, loop: Op) -> Whole | None:
        """The loop as one op; None where it is not run whole."""
        if self.native is None:
            return None
        if id(loop) not in self._found:
            whole = self._closed(loop, len(self._found))
            self._found[id(loop)] = whole if whole is not None and self.native(whole.block) else None
        return self._found[id(loop)]

    def _closed(self, loop: Op, number: int) -> Whole | None:
        if self._constants is None:
            functions = self.module.functions.values()
            self._constants = {op.result: op for f in functions for op in f.body.walk() if op.name == "const"}
        copier = _Copier(self.module, self.inline)
        mapping: Map = {}
        block, given = Block(), []
        for value in free_values(loop):
            known = self._constants.get(value)
            if known is not None:
                block.ops.append(clone_op(known, mapping))
            else:
                mapping[value] = Value(value.type, value.name)
                block.args.append(mapping[value])
                given.append(value)
        copy = copier.op(loop, mapping, (), 0)
        if copy is None or copier.left < 0:
            return None
        block.args += copier.inputs.values()
        given += copier.inputs
        if not copier.returns:
            block.ops += [copy, Op("yield", list(copy.results), {}, [], [], loop.span, copy.order)]
            return Whole(number, given, block, None)
        returned = [v.type for v in copier.returns[0].operands]
        if not _ways_out(block, copy, copier.returns, returned):
            return None
        return Whole(number, given, block, returned)


def free_values(op: Op) -> list[Value]:
    """Values from outside that the op or its blocks read, in order of first use."""
    inner: set[Value] = set()
    found: dict[Value, None] = dict.fromkeys(op.operands)
    for block in op.blocks:
        inner.update(block.args)
        for each in block.walk():
            found.update(dict.fromkeys(each.operands))
            inner.update(each.results)
            for b in each.blocks:
                inner.update(b.args)
    return [v for v in found if v not in inner]


class _Copier:
    """Copies a loop with the bodies of its callees in place. `left`: ops that may still be copied; `returns`: copies of
    those that leave the loop's own function; `inputs`: module inputs that only callees name, and what
    stands for them."""

    def __init__(self, module: Module, inline: Callable[[str], bool]) -> None:
        self.module = module
        self.inline = inline
        self.left = OPS
        self.returns: list[Op] = []
        self.inputs: Map = {}

    def _operand(self, value: Value, mapping: Map) -> Value:
        found = mapping.get(value) or self.inputs.get(value)
        if found is None:
            found = self.inputs[value] = Value(value.type, value.name)
        return found

    def op(self, op: Op, mapping: Map, prefix: tuple[int, ...], depth: int) -> Op | None:
        """A copy; None where it would be too large or calls what is not written in place."""
        self.left -= 1
        if self.left < 0 or op.name == "map":
            return None
        operands = [self._operand(v, mapping) for v in op.operands]
        order = (*prefix, *op.order)
        name, attrs, blocks = op.name, dict(op.attrs), op.blocks
        inner = mapping
        if op.name == "call":
            if not self.inline(op.attrs["function"]):
                return None
            callee = self.module.functions[op.attrs["function"]]
            name, attrs, inner, prefix, depth = "inline", {}, dict(mapping), order, depth + 1
            blocks = [Block(callee.params, callee.body.ops)]
        copies = []
        for block in blocks:
            args = fresh(block.args, inner)
            ops = []
            for each in block.ops:
                copy = self.op(each, inner, prefix, depth)
                if copy is None:
                    return None
                ops.append(copy)
            copies.append(Block(args, ops))
        made = Op(name, operands, attrs, fresh(op.results, mapping), copies, op.span, order)
        if op.name == "return" and not depth:
            self.returns.append(made)
        return made


def _ways_out(block: Block, loop: Op, returns: list[Op], returned: list[Type]) -> bool:
    """Ends the block with the loop and what tells how it ended; False where a result has no stand-in."""
    own = [v.type for v in loop.results]
    stand_ins = [[_spare(t, loop) for t in types] for types in (own, returned)]
    if any(op is None for group in stand_ins for op in group):
        return False
    yes, no = (Op("const", [], {"value": b}, [Value(BOOL)], [], loop.span, loop.order) for b in (True, False))
    spare = [[op.result for op in group if op is not None] for group in stand_ins]
    block.ops += [yes, no, *(op for group in stand_ins for op in group if op is not None)]
    for op in returns:
        op.operands = [yes.result, *spare[0], *op.operands]
    values = [no.result, *loop.results, *spare[1]]
    body = Block([], [loop, Op("return", values, {}, [], [], loop.span, loop.order)])
    results = [Value(t) for t in (BOOL, *own, *returned)]
    block.ops.append(Op("inline", [], {}, results, [body], loop.span, loop.order))
    block.ops.append(Op("yield", list(results), {}, [], [], loop.span, loop.order))
    return True


def _spare(type_: Type, loop: Op) -> Op | None:
    """Any constant of the type, as small as can be."""
    if not isinstance(type_, Num) or (type_.static and type_.size > SPARE):
        return None
    value = np.zeros([n or 0 for n in type_.shape], type_.dtype)
    plain = type_.python or type_.text
    return Op("const", [], {"value": value.item() if plain else value[()]}, [Value(type_)], [], loop.span, loop.order)

