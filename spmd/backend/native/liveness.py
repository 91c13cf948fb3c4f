"""Which values of a structured loop are needed after an op, jumps taken into account.

Invariant: `after[op]` holds every value that some path behind the op may read; so what is not in it is dead and its
memory may be written over or given back. Must not know what values are kept in.
"""

from __future__ import annotations

from dataclasses import dataclass

from spmd.ir.core import Block, Op, Value

Live = frozenset[Value]
NONE: Live = frozenset()


@dataclass(frozen=True)
class Exits:
    """What is alive where a block's terminators lead."""

    yields: Live = NONE
    breaks: Live = NONE
    continues: Live = NONE
    returns: Live = NONE

    def of(self, name: str) -> Live:
        """Alive behind a terminator."""
        found = {
            "yield": self.yields, "break": self.breaks, "continue": self.continues, "return": self.returns
        }
        return found.get(name, NONE)


def outside(block: Block) -> set[Value]:
    """Values that a block reads and does not define."""
    inner = set(block.args)
    used: set[Value] = set()
    for op in block.walk():
        inner.update(op.results)
        for b in op.blocks:
            inner.update(b.args)
        used.update(op.operands)
    return used - inner


class Liveness:
    """`after`: op -> values alive behind it. `exits`: block -> what is alive where it leads."""

    def __init__(self, block: Block) -> None:
        self.after: dict[int, Live] = {}
        self._block(block, Exits())

    def dies(self, op: Op, value: Value) -> bool:
        """Whether the op is the only reader that is left, and reads the value once."""
        inside = any(value in outside(block) for block in op.blocks)
        return value not in self.after[id(op)] and op.operands.count(value) == 1 and not inside

    def _block(self, block: Block, exits: Exits) -> None:
        last = block.ops[-1]
        live = set(exits.of(last.name))
        for op in reversed(block.ops):
            self.after[id(op)] = frozenset(live)
            live.difference_update(op.results)
            behind = frozenset(live)
            if op.name == "if":
                inner = Exits(behind, exits.breaks, exits.continues, exits.returns)
            elif op.name == "inline":
                inner = Exits(returns=behind)
            elif op.blocks:
                around = behind | outside(op.blocks[0])
                inner = Exits(NONE, behind, around, exits.returns)
            for b in op.blocks:
                self._block(b, inner)
                live |= outside(b)
            live.update(op.operands)
