"""An `if` whose arms are cheap and total becomes selections.

The invariant: only ops that cannot raise and pass a zero cotangent on as zero are run on rows that do not take their
arm; so products, quotients and partial functions of floats stay behind their branch (0 * inf).

    %3 = if %c { %1 = neg %x; yield %1 } else { yield %x }     ->     %1 = neg %x; %3 = where %c, %1, %x
"""

from __future__ import annotations

from spmd.analysis.effects import Primitives, may_raise
from spmd.ir.core import Block, Op, Value
from spmd.ir.types import Num

ARM = 8  # ops of an arm
SELECTIONS = 6  # results

TOTAL = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "isfinite", "logical_and", "logical_or",
                   "logical_xor", "logical_not", "bitand", "bitor", "bitxor", "invert", "where"})
LINEAR = frozenset({"add", "sub", "neg"})  # of floats: their cotangents are passed on, never multiplied
INTEGER = frozenset({"add", "sub", "mul", "neg", "maximum", "minimum", "pymax", "pymin", "abs", "sign"})


def selected(op: Op, primitives: Primitives) -> tuple[list[Op], list[Value]] | None:
    """The ops of both arms with a `where` for each result, and the results; None where the branch must stay."""
    if op.name != "if" or len(op.results) > SELECTIONS or not all(_plain(v) for v in op.results):
        return None
    if not all(_cheap(block, primitives) for block in op.blocks):
        return None
    then, other = (block.terminator.operands for block in op.blocks)
    ops = [inner for block in op.blocks for inner in block.ops[:-1]]
    results = []
    for value, a, b in zip(op.results, then, other, strict=True):
        if a is b:
            results.append(a)
            continue
        results.append(Value(value.type, value.name))
        ops.append(Op("where", [op.operands[0], a, b], {}, [results[-1]], [], op.span, op.order))
    return ops, results


def _plain(value: Value) -> bool:
    return isinstance(value.type, Num) and value.type.static


def _cheap(block: Block, primitives: Primitives) -> bool:
    *ops, last = block.ops
    return last.name == "yield" and len(ops) <= ARM and all(total(op, primitives) for op in ops)


def total(op: Op, primitives: Primitives) -> bool:
    """Whether the op may run on rows that do not need it."""
    if op.blocks or op.terminator or not all(_plain(v) for v in (*op.operands, *op.results)):
        return op.name == "isnull"
    if op.name == "const":
        return True
    if may_raise(op, primitives):
        return False
    kinds = {v.type.kind for v in (*op.operands, *op.results) if isinstance(v.type, Num)}
    if op.name == "cast":
        return kinds <= set("biu") or _widens(op)
    return op.name in TOTAL or op.name in LINEAR or (op.name in INTEGER and kinds <= set("biu"))


def _widens(op: Op) -> bool:
    """Casts that lose nothing and set no flag: to a wider float, or between a Python and a NumPy kind."""
    source, target = op.operands[0].type, op.result.type
    assert isinstance(source, Num) and isinstance(target, Num)
    return target.kind == "f" and target.dtype == "float64" and source.kind in "fbiu"
