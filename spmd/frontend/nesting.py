"""Structure that each round of a loop, or each call of a recursion, makes deeper: chains and trees that programs link.

Such a thing has no finite kind, so the fixpoint over kinds would not end, and where it branches it would double in size
each time. The invariant: what stops getting deeper within the stated number of rounds is not refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from spmd.errors import UnsupportedType
from spmd.frontend.identities import Cell, Outcome
from spmd.frontend.lowering import Lowering
from spmd.frontend.values import Abstract, Choice, Grown, Run, Struct, Table

ROUNDS = 6
CALLS = 12
TEXT = "builds data that nests deeper each time, which cannot run in lanes"
HINT = "keep the nodes in lists or arrays, and let numbers link them."


class Growth:
    """Watches the kinds that a fixpoint goes through."""

    def __init__(self) -> None:
        self._depth = -1
        self._rounds = 0

    def endless(self, things: Iterable[Abstract]) -> bool:
        """Whether these are deeper than the last ones, for the ROUNDS-th time in a row."""
        depth = max(map(_depth, things), default=0)
        self._rounds = self._rounds + 1 if depth > self._depth else 0
        self._depth = depth
        return self._rounds > ROUNDS

    def demand_end(self, low: Lowering, things: Iterable[Abstract], node: Any) -> None:
        """Refuses a loop whose names become deeper and deeper."""
        if self.endless(things):
            raise low.error(UnsupportedType, f"this loop {TEXT}", node, HINT)


def deepens(calls: Iterable[Iterable[Abstract]]) -> bool:
    """Whether the arguments of nested calls of one function, the outermost first, have become deeper CALLS times."""
    depths = [max(map(_depth, things), default=0) for things in calls][-CALLS - 1 :]
    return len(depths) > CALLS and all(a < b for a, b in zip(depths, depths[1:]))


def _depth(thing: Abstract) -> int:
    inner: Iterable[Abstract] = ()
    if isinstance(thing, Struct):
        inner = thing.items
    elif isinstance(thing, Choice):
        return max(map(_depth, thing.alternatives))
    elif isinstance(thing, (Grown, Run)):
        inner = (thing.item,)
    elif isinstance(thing, Table):
        inner = (thing.entries,)
    elif isinstance(thing, Cell):
        return _depth(thing.thing)
    elif isinstance(thing, Outcome):
        return max(map(_depth, (thing.result, *(cell for _, cell in thing.cells))))
    return 1 + max(map(_depth, inner), default=0)
