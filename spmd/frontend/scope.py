"""What is known at one point of a function: names and facts.

The invariant: facts are about SSA values, which never change, so a fact that holds at a point holds at every point
that this one dominates; names are bound to immutable things. A scope is copied where control flow splits.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from spmd.frontend.identities import ABSENT, Cell
from spmd.frontend.values import UNBOUND, Abstract
from spmd.ir.core import Value


@dataclass(eq=False)
class Facts:
    """What a test has shown.

    nonnull  rows that are not None.
    tags     possible values of a tag.
    """

    nonnull: frozenset[Value] = frozenset()
    tags: dict[Value, frozenset[int]] = field(default_factory=dict)

    def both(self, other: Facts) -> Facts:
        """Where this and the other hold."""
        tags = dict(self.tags)
        for value, possible in other.tags.items():
            tags[value] = tags.get(value, possible) & possible
        return Facts(self.nonnull | other.nonnull, tags)

    def either(self, other: Facts) -> Facts:
        """Where this or the other holds."""
        tags = {v: self.tags[v] | other.tags[v] for v in self.tags.keys() & other.tags.keys()}
        return Facts(self.nonnull & other.nonnull, tags)


NO_FACTS = Facts()
NOWHERE = Cell(ABSENT)


@dataclass(eq=False)
class Scope:
    """Names, facts, and what has been loaded already from immutable rows."""

    names: dict[str, Abstract] = field(default_factory=dict)
    facts: Facts = NO_FACTS
    loads: dict[tuple[Value, int], Value] = field(default_factory=dict)

    def bound(self, name: str) -> Abstract:
        """What a name is bound to on this path: nothing, or, where it is an object's cell, no such object."""
        found = self.names.get(name)
        return found if found is not None else NOWHERE if name.startswith("@") else UNBOUND

    def copy(self, facts: Facts = NO_FACTS) -> Scope:
        """The same, as seen inside a branch where `facts` hold too."""
        return Scope(dict(self.names), self.facts.both(facts), dict(self.loads))
