"""Formulas that one primitive computes: fewer roundings, fewer values to keep for the adjoint.

The invariant: the result is the formula's within the tolerance of DESIGN 8, infinities and NaN included, and the
derivative is the formula's wherever that is finite. Only NumPy's kinds: Python's floats raise where they overflow.

    %1 = neg %x; %2 = exp %1; %3 = add 1, %2; %4 = div 1, %3        ->     %4 = sigmoid %x
    %1 = exp %x; %2 = add %1, 1; %3 = div 1, %2                     ->     %n = neg %x; %3 = sigmoid %n
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spmd.analysis.effects import Primitives, default_primitives
from spmd.ir.core import Block, Module, Op, Value
from spmd.ir.rewrite import clone_module, module_blocks
from spmd.ir.types import Num
from spmd.transform.simplify import drop_dead

Definitions = dict[Value, Op]


def algebra(module: Module, primitives: Primitives | None = None) -> Module:
    """A module with formulas replaced by the primitives that compute them."""
    primitives = default_primitives() if primitives is None else primitives
    module = clone_module(module)
    defined = {r: op for block in module_blocks(module) for op in block.ops for r in op.results}
    for block in module_blocks(module):
        for op in list(block.ops):
            _sigmoid(op, block, defined)
    for function in module.functions.values():
        drop_dead(function.body, primitives)
    return module


def _sigmoid(op: Op, block: Block, defined: Definitions) -> None:
    """Rewrites 1 / (1 + exp(-x)) and its spellings in place."""
    denominator = _denominator(op, defined)
    total = defined.get(denominator) if denominator is not None else None
    if total is None or total.name != "add":
        return
    grown = [v for v in total.operands if not _is_one(v, defined)]
    if len(grown) != 1:
        return
    power = defined.get(grown[0])
    if power is None or power.name != "exp":
        return
    exponent = power.operands[0]
    turned = defined.get(exponent)
    if turned is not None and turned.name == "neg":
        argument = turned.operands[0]
    else:
        opposite = Op("neg", [exponent], {}, [Value(exponent.type)], [], op.span, op.order)
        block.ops.insert(block.ops.index(op), opposite)
        argument = defined.setdefault(opposite.result, opposite).result
    op.name, op.operands, op.attrs = "sigmoid", [argument], {}


def _denominator(op: Op, defined: Definitions) -> Value | None:
    """What a quotient with numerator 1 divides by."""
    type_ = op.results[0].type if op.results else None
    if not isinstance(type_, Num) or type_.python or type_.kind != "f":
        return None
    if op.name == "reciprocal":
        return op.operands[0]
    if op.name == "div" and _is_one(op.operands[0], defined):
        return op.operands[1]
    return None


def _is_one(value: Value, defined: Definitions) -> bool:
    """Whether a value is the constant 1, in any shape."""
    op = defined.get(value)
    while op is not None and op.name in ("broadcast", "broadcast_to", "cast", "reshape"):
        op = defined.get(op.operands[0])
    if op is None or op.name != "const":
        return False
    constant: Any = np.asarray(op.attrs["value"])
    return bool(constant.size) and bool((constant == 1).all())
