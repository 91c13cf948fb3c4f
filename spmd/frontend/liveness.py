"""Which names are alive where, on the syntax tree.

Backward data flow (Aho et al., Compilers, 9.2.5) over structured statements. The invariant: a name that is not in
`after[stmt]` (or in `head[loop]`) is written before it is read on every path from there, so that paths that meet there
need not agree on it. Comprehension variables are scopes of their own; what inner functions read is alive `always`, as
any call may reach them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gast

Names = frozenset[str]
NOTHING: Names = frozenset()
COMPREHENSIONS = (gast.ListComp, gast.SetComp, gast.GeneratorExp, gast.DictComp)
FUNCTIONS = (gast.FunctionDef, gast.AsyncFunctionDef, gast.Lambda)


@dataclass(frozen=True)
class Exits:
    """What is alive where a jump out of a statement leads."""

    breaks: Names = NOTHING
    continues: Names = NOTHING
    raises: Names = NOTHING


class Liveness:
    """`after[s]`: alive after statement s; `head[s]`: at the head of loop s (before its test, in each round);
    `tail[s]`: where an `else` begins; `entry[s]`: where a `finally` begins; `caught[s]`: where an
    exception of the body of `try` s leads. `always`: names that inner functions read."""

    def __init__(self, body: Sequence[Any], always: Names = NOTHING) -> None:
        self.after: dict[Any, Names] = {}
        self.head: dict[Any, Names] = {}
        self.tail: dict[Any, Names] = {}
        self.entry: dict[Any, Names] = {}
        self.caught: dict[Any, Names] = {}
        self._always = always
        self._block(body, always, Exits())

    def _block(self, body: Sequence[Any], out: Names, exits: Exits) -> Names:
        out |= exits.raises
        for statement in reversed(body):
            self.after[statement] = out
            out = self._statement(statement, out, exits) | self._always | exits.raises
        return out

    def _statement(self, s: Any, out: Names, exits: Exits) -> Names:
        if isinstance(s, gast.Return):
            return reads(s.value)
        if isinstance(s, gast.Raise):
            return reads(s.exc) | reads(s.cause)
        if isinstance(s, gast.Break):
            return exits.breaks
        if isinstance(s, gast.Continue):
            return exits.continues
        if isinstance(s, gast.If):
            then = self._block(s.body, out, exits)
            other = self.tail[s] = self._block(s.orelse, out, exits)
            return reads(s.test) | ((then | other) - sure_writes(s.test)) | (then & other)
        if isinstance(s, gast.While):
            return self._loop(s, out, exits, reads(s.test), NOTHING)
        if isinstance(s, gast.For):
            inner = self._loop(s, out, exits, NOTHING, writes(s.target))
            return inner | reads(s.iter) | reads(s.target)
        if isinstance(s, gast.With):
            return self._block(s.body, out, exits) | frozenset().union(*map(reads, s.items))
        if isinstance(s, gast.Try):
            return self._try(s, out, exits)
        if isinstance(s, FUNCTIONS):
            return (out - {getattr(s, "name", "")}) | reads(s)
        return (out - sure_writes(s)) | reads(s)

    def _loop(self, s: Any, out: Names, exits: Exits, test: Names, target: Names) -> Names:
        after = self.tail[s] = self._block(s.orelse, out, exits)
        head = after | test | self._always
        while True:
            body = self._block(s.body, head, Exits(out, head, exits.raises))
            new = after | test | (body - target) | head
            if new == head:
                self.head[s] = head
                return head
            head = new

    def _try(self, s: Any, out: Names, exits: Exits) -> Names:
        """An exception may leave the body anywhere; what follows it by any way is alive all through `finally`."""
        if s.finalbody:
            every = out | exits.breaks | exits.continues | exits.raises
            out = self.entry[s] = self._block(s.finalbody, every, exits)
            exits = Exits(out, out, out)
        caught = exits.raises
        for handler in s.handlers:
            caught |= self._block(handler.body, out, exits) - writes(handler.name) | reads(handler.type)
        self.caught[s] = caught
        after = self.tail[s] = self._block(s.orelse, out, exits)
        return self._block(s.body, after, Exits(exits.breaks, exits.continues, self.caught[s])) | caught


def reads(node: Any) -> Names:
    """Names that a statement or expression may read from its surroundings."""
    if node is None:
        return NOTHING
    if isinstance(node, COMPREHENSIONS):
        bound: Names = NOTHING
        found: Names = NOTHING
        for generator in node.generators:
            found |= reads(generator.iter) - bound
            bound |= writes(generator.target)
            found |= frozenset().union(*map(reads, generator.ifs)) - bound
        parts = [node.key, node.value] if isinstance(node, gast.DictComp) else [node.elt]
        return found | (frozenset().union(*map(reads, parts)) - bound)
    if isinstance(node, FUNCTIONS):
        return NOTHING.union(*map(reads, [*node.args.defaults, *node.args.kw_defaults]))
    if isinstance(node, gast.Name):
        return frozenset({node.id}) if isinstance(node.ctx, (gast.Load, gast.Del)) else NOTHING
    found = frozenset().union(NOTHING, *map(reads, gast.iter_child_nodes(node)))
    if isinstance(node, gast.AugAssign) and isinstance(node.target, gast.Name):
        found |= {node.target.id}
    return found


def writes(node: Any) -> Names:
    """Names that a statement or target may bind, inner functions left out; of a comprehension what `:=` binds."""
    if node is None:
        return NOTHING
    if isinstance(node, FUNCTIONS):
        made = frozenset({node.name}) if not isinstance(node, gast.Lambda) else NOTHING
        return made.union(*map(writes, [*node.args.defaults, *node.args.kw_defaults]))
    if isinstance(node, COMPREHENSIONS):
        targets = frozenset().union(*(writes(g.target) for g in node.generators))
        return frozenset().union(*map(writes, gast.iter_child_nodes(node))) - targets
    if isinstance(node, gast.Name):
        return frozenset({node.id}) if isinstance(node.ctx, (gast.Store, gast.Del)) else NOTHING
    return frozenset().union(NOTHING, *map(writes, gast.iter_child_nodes(node)))


def sure_writes(node: Any) -> Names:
    """Names that a simple statement binds whatever happens."""
    if isinstance(node, gast.Assign):
        return frozenset().union(NOTHING, *map(writes, node.targets))
    if isinstance(node, gast.AnnAssign):
        return writes(node.target) if node.value is not None else NOTHING
    if isinstance(node, gast.FunctionDef):
        return frozenset({node.name})
    if isinstance(node, gast.Delete):
        return frozenset().union(NOTHING, *map(writes, node.targets))
    return NOTHING
