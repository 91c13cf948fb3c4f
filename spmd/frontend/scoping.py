"""Whose variable each name is, in a function and the functions inside it.

`def outer(k): def inner(): return k` reads, in inner, the variable k of outer, as it is when inner is called. Here the
free names of inner functions are renamed to `name@level`, level being the depth of the function that binds them, so
that no later stage has to look for the scope of a name: `k` is the function's own or a global, `k@0` is a cell.

The invariant: after `scope` a name without `@` is a local of the function (or comprehension) it stands in, or a global.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import gast

from spmd.errors import UnsupportedSyntax
from spmd.frontend.liveness import COMPREHENSIONS, FUNCTIONS, writes
from spmd.spans import Span

Place = Callable[[Any], Span]
LOOPS = (gast.For, gast.While)


@dataclass(eq=False)
class Scopes:
    """What is known of the functions of one tree, the outermost (key None) and those inside it, by their nodes.

    free    cells that a function or one inside it reads or writes.
    boxed   cells that an inner function writes (`nonlocal`).
    locals  names that a function binds.
    shaky   own names of a function that it may bind again after an inner function that reads them was made.
    """

    free: dict[Any, frozenset[str]] = field(default_factory=dict)
    boxed: set[str] = field(default_factory=set)
    locals: dict[Any, frozenset[str]] = field(default_factory=dict)
    shaky: dict[Any, frozenset[str]] = field(default_factory=dict)

    def always(self, node: Any, level: int) -> frozenset[str]:
        """Names that are alive everywhere in a function, as a call of an inner one may read them."""
        own = {key for inner in self.free.values() for key in inner if key.endswith(f"@{level}")}
        return frozenset(key.split("@")[0] for key in own) | {k for k in self.boxed if int(k.split("@")[1]) < level}


@dataclass(eq=False)
class _Frame:
    """A function (or a comprehension, which has no node) that is being looked at."""

    node: Any
    level: int
    bound: frozenset[str]
    declared: frozenset[str]
    outer: _Frame | None
    comprehension: bool = False


def own_name(key: str, level: int) -> str:
    """A cell as the frame of a function at `level` calls it: its own variables by their plain names."""
    name, _, owner = key.partition("@")
    return name if owner == str(level) else key


def bare(name: str) -> str:
    """A name as the user wrote it."""
    return name.partition("@")[0]


def parameters(node: Any) -> tuple[str, ...]:
    """Names of all parameters of a function."""
    a = node.args
    extra = [x for x in (a.vararg, a.kwarg) if x is not None]
    return tuple(x.id for x in [*a.posonlyargs, *a.args, *a.kwonlyargs, *extra])


def scope(node: Any, body: Sequence[Any], span: Place) -> Scopes:
    """Renames the free names of the functions inside `body`, in place."""
    found = Scopes()
    _function(node, None, body, 0, None, found, span)
    return found


def inner_body(node: Any) -> list[Any]:
    """The statements of an inner function; a lambda's is one `return`, the same one at each call."""
    if isinstance(node, gast.Lambda):
        if not isinstance(node.body, gast.Return):
            node.body = gast.copy_location(gast.Return(value=node.body), node.body)
        return [node.body]
    body: list[Any] = node.body
    return body


def _function(
    node: Any, key: Any, body: Sequence[Any], level: int, outer: _Frame | None, found: Scopes, span: Place
) -> frozenset[str]:
    """Looks at one function; gives the cells that it needs."""
    declared: dict[type, set[str]] = {gast.Global: set(), gast.Nonlocal: set()}
    for inner in _own_nodes(body):
        if isinstance(inner, (gast.Global, gast.Nonlocal)):
            declared[type(inner)] |= set(inner.names)
    written = frozenset().union(*map(writes, body))
    elsewhere = frozenset(declared[gast.Global] | declared[gast.Nonlocal])
    bound = (frozenset(parameters(node)) | written) - elsewhere
    frame = _Frame(key, level, bound, frozenset(declared[gast.Global]), outer)
    found.locals[key] = bound
    cells: set[str] = set()
    for statement in body:
        _names(statement, frame, found, cells, span)
    if outer is not None:
        for name in declared[gast.Nonlocal] & written:
            found.boxed.add(_resolve(name, outer, span, node) or name)
        found.free[key] = frozenset(k for k in cells if int(k.split("@")[1]) < level)
    found.shaky[key] = frozenset(_shaky(body, bound, level, found))
    return frozenset(cells)


def _names(node: Any, frame: _Frame, found: Scopes, cells: set[str], span: Place) -> None:
    """Renames the names below a node of one function, and goes into the functions inside it."""
    if isinstance(node, FUNCTIONS):
        a = node.args
        for default in [*a.defaults, *a.kw_defaults, *getattr(node, "decorator_list", ())]:
            if default is not None:
                _names(default, frame, found, cells, span)
        level = frame.level + 1
        cells |= {k for k in _function(node, node, inner_body(node), level, frame, found, span)
                  if int(k.split("@")[1]) < level}
        if not isinstance(node, gast.Lambda):
            node.name = _resolved(node.name, frame, cells, span, node)
    elif isinstance(node, COMPREHENSIONS):
        first, *_ = node.generators
        _names(first.iter, frame, found, cells, span)
        bound = frozenset().union(*(writes(g.target) for g in node.generators))
        inner = _Frame(None, frame.level, bound, frozenset(), frame, comprehension=True)
        for child in gast.iter_child_nodes(node):
            if child is first:
                for part in (first.target, *first.ifs):
                    _names(part, inner, found, cells, span)
            else:
                _names(child, inner, found, cells, span)
    elif isinstance(node, gast.Name):
        node.id = _resolved(node.id, frame, cells, span, node)
    else:
        for child in gast.iter_child_nodes(node):
            _names(child, frame, found, cells, span)


def _resolved(name: str, frame: _Frame, cells: set[str], span: Place, node: Any) -> str:
    """The name of a variable after renaming."""
    at: _Frame | None = frame
    while at is not None and at.comprehension and name not in at.bound:
        at = at.outer
    assert at is not None
    if name in at.bound or name in at.declared:
        return name
    resolved = _resolve(name, at.outer, span, node)
    if resolved is None:
        return name
    cells.add(resolved)
    return resolved


def _resolve(name: str, frame: _Frame | None, span: Place, node: Any) -> str | None:
    """The cell that a free name means; None for a global."""
    while frame is not None:
        if name in frame.declared:
            return None
        if name in frame.bound:
            if frame.comprehension:
                raise UnsupportedSyntax(f"a function that reads '{name}' of a comprehension cannot run in lanes",
                                        span=span(node), hint=f"give it a parameter: {name}={name}.")
            return f"{name}@{frame.level}"
        frame = frame.outer
    return None


def _own_nodes(body: Sequence[Any]) -> Iterator[Any]:
    """Nodes of a function without those of the functions inside it."""
    stack = list(reversed(body))
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, FUNCTIONS):
            stack += reversed(list(gast.iter_child_nodes(node)))


def _shaky(body: Sequence[Any], bound: frozenset[str], level: int, found: Scopes) -> Iterator[str]:
    """Own names that a function may bind after an inner function that reads them was made."""
    bindings: list[tuple[str, int, frozenset[Any], Any]] = []
    captures: list[tuple[str, int, frozenset[Any], Any]] = []

    def look(node: Any, at: int, loops: frozenset[Any]) -> None:
        if isinstance(node, FUNCTIONS):
            if isinstance(node, gast.FunctionDef):
                bindings.append((node.name, at, loops, node))
            captures.extend((k, at, loops, node) for k in found.free.get(node, ()))
            return
        if isinstance(node, gast.Name) and isinstance(node.ctx, (gast.Store, gast.Del)):
            bindings.append((node.id, at, loops, node))
        inside = loops | {node} if isinstance(node, LOOPS) else loops
        for child in gast.iter_child_nodes(node):
            if isinstance(child, gast.stmt):
                counter[0] += 1
                look(child, counter[0], inside)
            else:
                look(child, at, inside)

    counter = [0]
    for statement in body:
        counter[0] += 1
        look(statement, counter[0], frozenset())
    for name in bound:
        key = f"{name}@{level}"
        if key in found.boxed:
            yield name
            continue
        own = [b for b in bindings if b[0] == name]
        taken = [c for c in captures if c[0] == key]
        if any((b[1] >= c[1] and b[3] is not c[3]) or b[2] & c[2] for b in own for c in taken):
            yield name
