"""Recognises counted loops: `for x in xs`, and `while` loops that count so.

The invariant: a loop that is matched runs its rounds with counter 0, 1, ... while counter < limit, and nothing in a
round but the test at the top ends it early, so that round i starts exactly if 0 <= i < limit. What is not surely so is
not matched.

    loop 0, ... (%i, ...) { %c = lt %i, %n; if %c { ...; continue %i + 1, ... } else { ...; break ... }; unreachable }
    loop 0, ... (%i, ...) { %c = lt %i, %n; if %c { yield } else { ...; break ... }; ...; continue %i + 1, ... }
"""

from __future__ import annotations

from dataclasses import dataclass, field

from spmd.analysis.effects import Primitives, leaves, may_raise
from spmd.ir.core import Block, Function, Op, Value
from spmd.ir.types import Num
from spmd.transform.loops import defined_in, own_terminators

Definitions = dict[Value, Op]
Bound = tuple[str, "Value | int"]


@dataclass(eq=False)
class CountedLoop:
    """`head`: ops before the test. `block` holds the round's ops from position `start` on, its `continue` last."""

    loop: Op
    counter: Value
    limit: Value
    head: list[Op]
    block: Block
    start: int
    steps: set[Op] = field(default_factory=set)
    inside: set[Value] = field(default_factory=set)

    @property
    def round(self) -> list[Op]:
        return self.block.ops[self.start : -1]


def definitions(function: Function) -> Definitions:
    """The op that defines each value of a function."""
    return {v: op for op in function.body.walk() for v in op.results}


def counted(loop: Op, defs: Definitions, primitives: Primitives) -> CountedLoop | None:
    """The loop as a counted one, or None."""
    (body,) = loop.blocks
    at = next((k for k, op in enumerate(body.ops) if op.name == "if"), -1)
    if at < 0 or any(op.blocks or may_raise(op, primitives) for op in body.ops[:at]):
        return None
    branch = body.ops[at]
    test = defs.get(branch.operands[0])
    if test is None or test.name != "lt" or test.operands[0] not in body.args or branch.results:
        return None
    counter, limit = test.operands
    then, other = branch.blocks
    rest = body.ops[at + 1 :]
    if then.terminator.name == "continue" and len(rest) == 1 and rest[0].name == "unreachable":
        found = CountedLoop(loop, counter, limit, body.ops[:at], then, 0)
    elif len(then.ops) == 1 and then.terminator.name == "yield" and rest[-1].name == "continue":
        found = CountedLoop(loop, counter, limit, body.ops[:at], body, at + 1)
    else:
        return None
    if own_terminators(other, "continue") or _yields(other) or any(leaves(op) for op in found.round):
        return None
    found.inside = defined_in(body)
    return found if _steps_by_one(found, defs) else None


def _yields(block: Block) -> bool:
    return block.terminator.name == "yield"


def _steps_by_one(found: CountedLoop, defs: Definitions) -> bool:
    """The counter starts at 0 and every round adds 1."""
    (body,) = found.loop.blocks
    number = body.args.index(found.counter)
    if not is_constant(found.loop.operands[number], 0, defs):
        return False
    for op in own_terminators(body, "continue"):
        step = defs.get(op.operands[number])
        if step is None or step.name != "add" or step.operands[0] is not found.counter:
            return False
        if not is_constant(step.operands[1], 1, defs):
            return False
        found.steps.add(step)
    return True


def is_constant(value: Value, number: int, defs: Definitions) -> bool:
    """Whether the value is this integer constant."""
    op = defs.get(value)
    return op is not None and op.name == "const" and isinstance(value.type, Num) and value.type.shape == () \
        and value.type.kind in "iu" and int(op.attrs["value"]) == number


def bounds(limit: Value, defs: Definitions) -> set[Bound]:
    """What a limit is known not to exceed: ('length', run), ('dim', array) or ('number', n)."""
    op = defs.get(limit)
    if op is None:
        return set()
    if op.name == "length":
        return {("length", op.operands[0])}
    if op.name == "dim" and op.attrs["axis"] == 0:
        return {("dim", op.operands[0])}
    if op.name == "const" and isinstance(limit.type, Num) and limit.type.shape == () and limit.type.kind in "iu":
        return {("number", int(op.attrs["value"]))}
    if op.name == "cast" and _integers(op):
        return bounds(op.operands[0], defs)
    if op.name in ("minimum", "pymin"):
        return bounds(op.operands[0], defs) | bounds(op.operands[1], defs)
    return set()


def _integers(op: Op) -> bool:
    """Whether a cast keeps integers as they are."""
    types = (op.operands[0].type, op.result.type)
    return all(isinstance(t, Num) and t.dtype == "int64" for t in types)


def not_negative(limit: Value, defs: Definitions) -> bool:
    """Whether the limit is surely at least 0."""
    op = defs.get(limit)
    if op is None:
        return False
    if op.name in ("length", "dim"):
        return True
    if op.name == "cast" and _integers(op):
        return not_negative(op.operands[0], defs)
    if op.name in ("minimum", "pymin"):
        return all(not_negative(v, defs) for v in op.operands)
    if op.name in ("maximum", "pymax"):
        return any(not_negative(v, defs) for v in op.operands)
    return op.name == "const" and isinstance(limit.type, Num) and limit.type.shape == () \
        and limit.type.kind in "iu" and int(op.attrs["value"]) >= 0


def reads_element(op: Op, found: CountedLoop, limits: set[Bound]) -> bool:
    """Whether the op reads the round's own element of a run or array, surely in range."""
    if op.name not in ("item", "index") or len(op.operands) != 2 or op.operands[1] is not found.counter:
        return False
    whole = op.operands[0]
    if op.name == "item":
        return ("length", whole) in limits
    size = whole.type.shape[0] if isinstance(whole.type, Num) else None
    numbers = [n for kind, n in limits if kind == "number" and isinstance(n, int)]
    return ("dim", whole) in limits or (size is not None and any(n <= size for n in numbers))
