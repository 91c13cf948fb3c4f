"""Which names are alive where, on the syntax tree.

Backward data flow (Aho et al., Compilers, 9.2.5) over structured statements. The invariant: a name that is not in
`after[stmt]` (or in `head[loop]`) is written before it is read on every path from there, so that paths that meet there
need not agree on it. Comprehension variables are scopes of their own; nested functions read what they name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gast

Names = frozenset[str]
NOTHING: Names = frozenset()


class Liveness:
    """`after[s]`: alive after statement s; `head[s]`: alive at the head of loop s (before its test, in each round)."""

    def __init__(self, body: Sequence[Any]) -> None:
        self.after: dict[Any, Names] = {}
        self.head: dict[Any, Names] = {}
        self._block(body, NOTHING, NOTHING, NOTHING)

    def _block(self, body: Sequence[Any], out: Names, on_break: Names, on_continue: Names) -> Names:
        for statement in reversed(body):
            self.after[statement] = out
            out = self._statement(statement, out, on_break, on_continue)
        return out

    def _statement(self, s: Any, out: Names, on_break: Names, on_continue: Names) -> Names:
        if isinstance(s, gast.Return):
            return reads(s.value)
        if isinstance(s, gast.Raise):
            return reads(s.exc) | reads(s.cause)
        if isinstance(s, gast.Break):
            return on_break
        if isinstance(s, gast.Continue):
            return on_continue
        if isinstance(s, gast.If):
            then = self._block(s.body, out, on_break, on_continue)
            other = self._block(s.orelse, out, on_break, on_continue)
            return reads(s.test) | ((then | other) - sure_writes(s.test)) | (then & other)
        if isinstance(s, gast.While):
            return self._loop(s, out, on_break, on_continue, reads(s.test), NOTHING)
        if isinstance(s, gast.For):
            inner = self._loop(s, out, on_break, on_continue, NOTHING, writes(s.target))
            return inner | reads(s.iter) | reads(s.target)
        if isinstance(s, (gast.FunctionDef, gast.Lambda)):
            return (out - {getattr(s, "name", "")}) | reads(s)
        return (out - sure_writes(s)) | reads(s)

    def _loop(self, s: Any, out: Names, on_break: Names, on_continue: Names, test: Names, target: Names) -> Names:
        after = self._block(s.orelse, out, on_break, on_continue)
        head = after | test
        while True:
            body = self._block(s.body, head, out, head)
            new = after | test | (body - target) | head
            if new == head:
                self.head[s] = head
                return head
            head = new


def reads(node: Any) -> Names:
    """Names that a statement or expression may read from its surroundings."""
    if node is None:
        return NOTHING
    if isinstance(node, (gast.ListComp, gast.SetComp, gast.GeneratorExp, gast.DictComp)):
        bound: Names = NOTHING
        found: Names = NOTHING
        for generator in node.generators:
            found |= reads(generator.iter) - bound
            bound |= writes(generator.target)
            found |= frozenset().union(*map(reads, generator.ifs)) - bound
        parts = [node.key, node.value] if isinstance(node, gast.DictComp) else [node.elt]
        return found | (frozenset().union(*map(reads, parts)) - bound)
    if isinstance(node, (gast.FunctionDef, gast.Lambda)):
        arguments = node.args
        bound = frozenset(a.id for a in [*arguments.args, *arguments.posonlyargs, *arguments.kwonlyargs])
        body = node.body if isinstance(node.body, list) else [node.body]
        inner = frozenset().union(*map(reads, body))
        defaults = [d for d in [*arguments.defaults, *arguments.kw_defaults] if d is not None]
        return (inner - bound) | frozenset().union(NOTHING, *map(reads, defaults))
    if isinstance(node, gast.Name):
        return frozenset({node.id}) if isinstance(node.ctx, (gast.Load, gast.Del)) else NOTHING
    found = frozenset().union(NOTHING, *map(reads, gast.iter_child_nodes(node)))
    if isinstance(node, gast.AugAssign) and isinstance(node.target, gast.Name):
        found |= {node.target.id}
    return found


def writes(node: Any) -> Names:
    """Names that a statement or target may bind (inner functions and comprehensions left out)."""
    if node is None or isinstance(node, (gast.ListComp, gast.SetComp, gast.GeneratorExp, gast.DictComp, gast.Lambda)):
        return NOTHING
    if isinstance(node, gast.FunctionDef):
        return frozenset({node.name})
    if isinstance(node, gast.Name):
        return frozenset({node.id}) if isinstance(node.ctx, gast.Store) else NOTHING
    return frozenset().union(NOTHING, *map(writes, gast.iter_child_nodes(node)))


def sure_writes(node: Any) -> Names:
    """Names that a simple statement binds whatever happens."""
    if isinstance(node, gast.Assign):
        return frozenset().union(NOTHING, *map(writes, node.targets))
    if isinstance(node, gast.AnnAssign):
        return writes(node.target) if node.value is not None else NOTHING
    if isinstance(node, gast.FunctionDef):
        return frozenset({node.name})
    return NOTHING
