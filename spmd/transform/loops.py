"""Loop arguments and results that need no variable of their own.

The invariant: an argument that every round passes on unchanged is its initial value; a result that every `break` gives
from one value defined outside the loop is that value. Nothing else of the loop changes.

    %r = loop %a, %b (%x, %y) { ... break %x ... continue %x, %1 }     ->     loop %b (%y) { ... break ... continue %1 }
"""

from __future__ import annotations

from spmd.ir.core import Block, Op, Value
from spmd.ir.rewrite import Map


def own_terminators(block: Block, name: str) -> list[Op]:
    """The `break` or `continue` ops that belong to the loop that the block is the body of."""
    found = []
    for op in block.ops:
        if op.name == name:
            found.append(op)
        elif op.name != "loop":
            for inner in op.blocks:
                found += own_terminators(inner, name)
    return found


def tidy_loop(loop: Op) -> tuple[bool, Map]:
    """Removes what needs no variable; the names tell which values stand for what was removed."""
    (body,) = loop.blocks
    names: Map = {}
    rounds = own_terminators(body, "continue")
    for k in reversed(range(len(body.args))):
        arg, init = body.args[k], loop.operands[k]
        if arg.type == init.type and all(op.operands[k] in (arg, init) for op in rounds):
            names[arg] = init
            del body.args[k], loop.operands[k]
            for op in rounds:
                del op.operands[k]
    breaks = own_terminators(body, "break")
    inside = defined_in(body)
    for k in reversed(range(len(loop.results))):
        given = {names.get(op.operands[k], op.operands[k]) for op in breaks}
        if len(given) == 1 and not given & inside and all(v.type == loop.results[k].type for v in given):
            names[loop.results[k]] = given.pop()
            del loop.results[k]
            for op in breaks:
                del op.operands[k]
    return bool(names), names


def defined_in(block: Block) -> set[Value]:
    """Values that the block and those inside it define."""
    found = set(block.args)
    for op in block.ops:
        found.update(op.results)
        for inner in op.blocks:
            found |= defined_in(inner)
    return found
