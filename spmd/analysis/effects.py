"""What running an op can do besides giving its results: raise, or cost much.

The invariant: `may_raise` is never false for an op that can raise on some values; everything else in the IR is pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from spmd.ir.core import Block, Op
from spmd.ops.primitive import Primitive

Primitives = Mapping[str, Primitive]

PURE = frozenset(
    {"const", "load", "load_or", "length", "column", "isnull", "same", "assured", "seqslice", "rownumber", "row"}
)
RAISING = frozenset({"item", "nonnull", "guard", "call", "map", "raise", "native"})
CONTROL = frozenset({"yield", "continue", "break", "return", "unreachable"})
COSTLY = frozenset({"matmul", "outer", "call", "map", "loop", "native"})


def default_primitives() -> Primitives:
    """The primitives of `spmd.ops`, looked up late: passes also run with tables of their own."""
    from spmd.ops.table import PRIMITIVES

    return PRIMITIVES


def may_raise(op: Op, primitives: Primitives) -> bool:
    """Whether the op, or an op in its blocks, can raise (or, for calls and loops, never end)."""
    if op.name in PURE or op.name in CONTROL:
        return False
    if op.name in RAISING or op.name == "loop":
        return True
    if op.name == "if":
        return any(block_may_raise(b, primitives) for b in op.blocks)
    return primitives[op.name].raises([v.type for v in op.operands], op.attrs)


def block_may_raise(block: Block, primitives: Primitives) -> bool:
    return any(may_raise(op, primitives) for op in block.ops)


def leaves(op: Op) -> bool:
    """Whether control can leave the op's blocks otherwise than by what they yield or by its own loop's break."""
    return any(_leaves(block, op.name == "loop") for block in op.blocks)


def _leaves(block: Block, looping: bool) -> bool:
    for op in block.ops:
        if op.name in ("return", "raise", "unreachable") or (op.name in ("break", "continue") and not looping):
            return True
        if any(_leaves(inner, looping or op.name == "loop") for inner in op.blocks):
            return True
    return False


def removable(op: Op, primitives: Primitives) -> bool:
    """Whether the op may be dropped if nobody uses its results."""
    return not op.terminator and op.name != "guard" and not may_raise(op, primitives) and not leaves(op)


def costly(ops: Iterable[Op]) -> bool:
    """Whether one of the ops is better run once on many rows than twice on few."""
    return any(op.name in COSTLY for op in ops)
