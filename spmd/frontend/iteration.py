"""What a loop runs over, as a bound thing.

The invariant: that of `values`; it belongs to the function that made it, so no result or argument can be one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from spmd.frontend.values import Abstract, Struct
from spmd.ir.core import Value


@dataclass(frozen=True, eq=False)
class Iterable(Abstract):
    """What `range`, `enumerate`, `zip` and `reversed` give: `count` items, item i made by `at(i)`.

    `count` is a constant or a Python int leaf. `sources` feed a `map`: (operand or None for the count, each kind, type
    of the callee's parameter), from which `rebuild` makes the item inside the callee. A fixed structure has `items`.
    `shape` is what `rebuild` makes: two things of equal sources and shape have the same items inside a callee.
    `once`: Python's iterator is used up by running over it. `over`: the objects whose items these are, each with what
    it held when the iterator was made; `now` gives a fixed structure's item as it is when it is reached.
    """

    label = "an iterator"

    count: Abstract
    at: Callable[[Value], Abstract]
    sources: tuple[tuple[Value | None, str, Any], ...] = ()
    rebuild: Callable[[list[Value]], Abstract] | None = None
    items: tuple[Abstract, ...] | None = None
    shape: Any = ()
    once: bool = False
    over: tuple[tuple[int, Any], ...] = ()
    now: Callable[[int], Abstract] | None = None

    def item(self, k: int) -> Abstract:
        """Item k of a fixed structure, when it is reached."""
        assert self.items is not None
        return self.items[k] if self.now is None else self.now(k)

    def key(self) -> Any:
        return ("iterable", id(self))


def holds_iterable(thing: Abstract) -> bool:
    """Whether a range or an iterator is in it: these belong to the function that made them."""
    if isinstance(thing, Struct):
        return any(map(holds_iterable, thing.items))
    return isinstance(thing, Iterable)
