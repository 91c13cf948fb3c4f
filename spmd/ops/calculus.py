"""The building blocks that derivative rules are written in.

The invariants: every op emitted here is on NumPy kinds and raises nothing; a cotangent that vanishes is selected, not
multiplied; and what is emitted is itself differentiable, so that a rule's output can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spmd.ir.build import Builder
from spmd.ir.core import Op, Value
from spmd.ir.types import Num
from spmd.ops.primitive import AdjointRule

Derive = Callable[..., Sequence["Value | None"]]


def num(value: Value) -> Num:
    """The type of a value that is a number."""
    type_ = value.type
    if not isinstance(type_, Num):
        raise TypeError(f"{type_} is no number")
    return type_


def lift(b: Builder, value: Value) -> Value:
    """The value as a NumPy kind: arithmetic on it follows IEEE and raises nothing."""
    type_ = value.type
    if isinstance(type_, Num) and type_.python:
        return b.emit("cast", value, dtype=type_.dtype, python=False)
    return value


def rule(derive: Derive) -> AdjointRule:
    """An adjoint rule from (builder, cotangent, result, *operands) -> cotangents, all of NumPy kinds."""

    def adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
        return derive(b, lift(b, ct), lift(b, op.result), *[lift(b, v) for v in op.operands])

    return adjoint


def spread(b: Builder, scalar: Value, like: Value) -> Value:
    """A scalar in every element of the shape of `like`."""
    type_ = num(like)
    if not type_.shape:
        return scalar
    if type_.static:
        return b.emit("broadcast", scalar, shape=type_.shape)
    return b.emit("broadcast_to", scalar, b.emit("shape_of", like), shape=type_.shape)


def constant(b: Builder, value: Any, like: Value) -> Value:
    """A number of the dtype and in the shape of `like`."""
    return spread(b, b.const(np.dtype(num(like).dtype).type(value)), like)


def scaled(b: Builder, ct: Value, factor: float) -> Value:
    """A cotangent times a number."""
    return b.emit("mul", ct, constant(b, factor, ct))


def strong(b: Builder, ct: Value, factor: Value) -> Value:
    """ct * factor, and 0 where ct is 0 whatever the factor (DESIGN 8: 0 * inf = 0)."""
    return b.emit("strongmul", ct, factor)


def tame(b: Builder, ct: Value, factor: Value) -> Value:
    """The factor, and 0 where it is no finite number beside a ct of 0: the derivative of `strong` with respect to ct.

    It stays the factor wherever that is finite, so that second derivatives do not lose it where ct is 0.
    """
    vanishing = b.emit("logical_and", b.emit("eq", ct, constant(b, 0, ct)), improper(b, factor))
    return b.emit("where", vanishing, constant(b, 0, factor), factor)


def improper(b: Builder, value: Value) -> Value:
    """Where a value is infinite or NaN."""
    return b.emit("logical_not", b.emit("isfinite", value))


def quotient(b: Builder, ct: Value, divisor: Value) -> Value:
    """ct / divisor, and 0 where ct is 0 and the divisor is 0 or NaN."""
    zero = constant(b, 0, ct)
    unfit = b.emit("logical_not", b.emit("gt", b.emit("abs", divisor), zero))
    vanishing = b.emit("logical_and", b.emit("eq", ct, zero), unfit)
    return b.emit("div", ct, b.emit("where", vanishing, constant(b, 1, divisor), divisor))


def masked(b: Builder, mask: Value, ct: Value) -> Value:
    """The cotangent where the mask holds, 0 elsewhere."""
    return b.emit("where", mask, ct, constant(b, 0, ct))


def dims_of(b: Builder, like: Value) -> Value:
    """The sizes of a value as a vector."""
    type_ = num(like)
    if type_.static:
        return b.const(np.asarray(type_.shape, np.int64))
    return b.emit("shape_of", like)


def sizes_of(b: Builder, like: Value) -> tuple[Value, ...]:
    """The operands that tell an op the sizes of `like`: none where they are static, else the vector of sizes."""
    return () if num(like).static else (dims_of(b, like),)


def shaped(b: Builder, value: Value, like: Value) -> Value:
    """The value (as many elements) reshaped as `like`."""
    wanted = num(like).shape
    if num(value).shape == wanted:
        return value
    if num(like).static and num(value).static:
        return b.emit("reshape", value, shape=wanted)
    return b.emit("reshape_to", value, dims_of(b, like), shape=wanted, exact=True)


def restored(b: Builder, ct: Value, like: Value, axes: Sequence[int], keepdims: bool) -> Value:
    """The cotangent of a reduction along `axes`, broadcast to the shape of the operand `like`."""
    target = num(like)
    if not target.shape:
        return ct
    if not keepdims and 0 < num(ct).rank:
        ct = expanded(b, ct, axes, target.rank)
    if target.static:
        return b.emit("broadcast", ct, shape=target.shape)
    return b.emit("broadcast_to", ct, b.emit("shape_of", like), shape=target.shape)


def expanded(b: Builder, value: Value, axes: Sequence[int], rank: int) -> Value:
    """The value with axes of size 1 put in, so that its rank is `rank`."""
    inner = iter(num(value).shape)
    shape = tuple(1 if k in axes else next(inner) for k in range(rank))
    if shape == num(value).shape:
        return value
    if None not in shape:
        return b.emit("reshape", value, shape=shape)
    kept = b.emit("shape_of", value)
    positions = [k for k in range(rank) if k not in axes]
    ones = b.const(np.ones(rank, np.int64))
    return b.emit("reshape_to", value, placed(b, kept, positions, ones), shape=shape, exact=True)


def placed(b: Builder, sizes: Value, positions: Sequence[int], base: Value) -> Value:
    """`base` (a vector of sizes) with `sizes` at `positions`."""
    rank = num(base).size
    source = [positions.index(k) if k in positions else len(positions) + k for k in range(rank)]
    both = b.emit("concat", sizes, base, axis=0)
    return b.emit("take", both, b.const(np.asarray(source, np.int64)), axis=0, exact=True)
