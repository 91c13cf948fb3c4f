"""Walks, clones and substitutes.

The invariant: a clone defines new values for everything that it defines, shares nothing mutable with the original and
keeps spans and positions. Nothing here decides whether a rewrite is right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy

from spmd.ir.core import Block, Function, Module, Op, Value

Map = dict[Value, Value]


def blocks(block: Block) -> Iterator[Block]:
    """The block and every block inside it, outer ones first."""
    yield block
    for op in block.ops:
        for inner in op.blocks:
            yield from blocks(inner)


def module_blocks(module: Module) -> Iterator[Block]:
    """Every block of every function."""
    for function in module.functions.values():
        yield from blocks(function.body)


def use_counts(block: Block) -> dict[Value, int]:
    """How often each value is an operand in the block and in all inside it."""
    counts: dict[Value, int] = {}
    for op in block.walk():
        for value in op.operands:
            counts[value] = counts.get(value, 0) + 1
    return counts


def resolve(mapping: Map, value: Value) -> Value:
    """Follows a chain of replacements to its end."""
    while value in mapping:
        value = mapping[value]
    return value


def substitute(block: Block, mapping: Map) -> None:
    """Replaces uses, in place, in the block and in all inside it."""
    if not mapping:
        return
    for op in block.walk():
        op.operands = [resolve(mapping, v) for v in op.operands]


def fresh(values: Sequence[Value], mapping: Map) -> list[Value]:
    """New values of the same types and names, entered into the mapping."""
    made = []
    for value in values:
        mapping[value] = Value(value.type, value.name)
        made.append(mapping[value])
    return made


def clone_op(op: Op, mapping: Map, prefix: tuple[int, ...] = ()) -> Op:
    """A copy of the op whose operands go through the mapping and whose results are entered into it."""
    operands = [mapping.get(v, v) for v in op.operands]
    inner = [clone_block(b, mapping, prefix) for b in op.blocks]
    results = fresh(op.results, mapping)
    return Op(op.name, operands, copy(op.attrs), results, inner, op.span, (*prefix, *op.order))


def clone_block(block: Block, mapping: Map, prefix: tuple[int, ...] = ()) -> Block:
    """A copy of the block; `prefix` is put in front of the positions of its ops."""
    args = fresh(block.args, mapping)
    return Block(args, [clone_op(op, mapping, prefix) for op in block.ops])


def clone_function(function: Function) -> Function:
    """A copy of the function with values of its own; module inputs stay shared."""
    mapping: Map = {}
    params = fresh(function.params, mapping)
    body = clone_block(function.body, mapping)
    return Function(function.name, params, list(function.results), body, function.span)


def clone_module(module: Module) -> Module:
    """A copy whose functions can be changed without changing the original's; inputs and tables are shared."""
    functions = {name: clone_function(f) for name, f in module.functions.items()}
    prologue = None if module.prologue is None else module.prologue
    if prologue is not None:
        prologue = Block(list(prologue.args), list(prologue.ops))
    return Module(functions, module.entry, list(module.inputs), dict(module.tables), prologue)
