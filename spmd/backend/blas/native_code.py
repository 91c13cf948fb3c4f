"""Native loops in regions: what compiles all those of a program, and how ops around them are kept in order.

The invariant: what stands before a loop in a region runs before it, and what stands behind it after: a row that failed
before must not begin the loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import Any

from spmd.backend.blas.structural import make_error
from spmd.backend.native import LoopWriter, compile_loops
from spmd.ir.core import Block, Op, Value
from spmd.runtime.frames import FrameTable
from spmd.runtime.ragged import Array


class Loops:
    """All native loops of a program; equal blocks are compiled once."""

    def __init__(self, contract: bool = False) -> None:
        self.contract = contract
        self.writers: dict[int, LoopWriter] = {}
        self.places: list[tuple[int, dict[str, Any], str]] = []

    def add(self, block: Block, names: dict[str, Any], name: str) -> LoopWriter:
        """Has the loop put under `name` into a table of names; its code, not yet compiled."""
        writer = self.writers.get(id(block))
        if writer is None:
            writer = LoopWriter(block, f"loop{len(self.writers)}", self.contract)
            self.writers[id(block)] = writer
        self.places.append((id(block), names, name))
        return writer

    def compile(self) -> dict[str, str]:
        """Compiles all in one module and puts them where they belong; their text by name."""
        if not self.writers:
            return {}
        made = dict(zip(self.writers, compile_loops(list(self.writers.values()), make_error), strict=True))
        for number, names, name in self.places:
            names[name] = made[number]
        return {f"native {writer.name}": writer.text for writer in self.writers.values()}


def between_loops(ops: Sequence[Op], kept: Set[Value]) -> Iterator[tuple[list[Op], set[Value]]]:
    """Stretches of ops without native loops, and these one by one, with the values that others read of each."""
    stretches: list[list[Op]] = [[]]
    for op in ops:
        if op.name == "native":
            stretches += [[op], []]
        else:
            stretches[-1].append(op)
    needed = set(kept)
    found = []
    for stretch in reversed(stretches):
        found.append((stretch, set(needed)))
        needed.update(v for op in stretch for v in op.operands)
    yield from (pair for pair in reversed(found) if pair[0])


def lanes_of(table: FrameTable, rows: Any) -> Array:
    """The examples that the rows belong to, one after the other in memory."""
    return table.lane[rows].copy() if isinstance(rows, slice) else table.lane.take(rows)
