"""Runs and differentiates straight-line blocks of primitives on one example's values, for the tests of `spmd.ops`.

The meaning of an op is its record's `numpy` rule; gradients apply the records' adjoint rules op by op.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from spmd.ir.core import Block, Value
from spmd.ir.types import Num
from spmd.ops.table import PRIMITIVES, builder


def run(block: Block, env: dict[Value, Any]) -> dict[Value, Any]:
    """The values of a block's ops, given those that it names from outside."""
    env = dict(env)
    for op in block.ops:
        if op.name == "const":
            env[op.result] = op.attrs["value"]
        else:
            env[op.result] = PRIMITIVES[op.name].numpy(*[env[v] for v in op.operands], **op.attrs)
    return env


def fits(value: Any, type_: Num) -> bool:
    """Whether a value is of the type: dtype, kind and shape."""
    if type_.python:
        return type(value) is {"int64": int, "float64": float, "bool": bool}[type_.dtype]
    array = np.asarray(value)
    if type(value) in (int, float, bool) or array.dtype != type_.dtype or array.ndim != type_.rank:
        return False
    return all(n is None or n == size for n, size in zip(type_.shape, array.shape))


def cotangent_type(type_: Num) -> Num:
    """Cotangents are of NumPy kinds."""
    return Num(type_.dtype, type_.shape)


def append_gradient(block: Block, seeds: dict[Value, Value], wrt: Sequence[Value]) -> list[Value | None]:
    """Appends to a block the ops that compute the cotangents of `wrt` from those of some of its results."""
    b = builder(block)
    total: dict[Value, Value] = {}

    def contribute(value: Value, ct: Value) -> None:
        assert ct.type == cotangent_type(value.type), (value, ct)
        total[value] = b.emit("add", total[value], ct) if value in total else ct

    primal = list(block.ops)
    for value, ct in seeds.items():
        contribute(value, ct)
    for op in reversed(primal):
        if op.name == "const" or op.result not in total:
            continue
        rule = PRIMITIVES[op.name].adjoint
        if rule is None:
            continue
        cotangents = rule(b, op, total[op.result])
        assert len(cotangents) == len(op.operands), op
        for operand, ct in zip(op.operands, cotangents):
            if ct is not None and operand.type.floating:
                contribute(operand, ct)
    return [total.get(v) for v in wrt]
