"""Refuses syntax that no stage could take, before anything is compiled, naming the place and a way out.

The invariant: what passes the fence is either lowered with Python's meaning or refused by the rule that knows better.
The texts stand in one table, so that the guide can list them.
"""

from __future__ import annotations

from typing import Any

import gast

from spmd.errors import UnsupportedSyntax
from spmd.frontend.liveness import writes
from spmd.frontend.read import Definition
from spmd.spans import Span

REFUSED: dict[type, tuple[str, str]] = {
    gast.Yield: ("'yield' cannot run in lanes", "return a tuple, or build the values with a comprehension."),
    gast.YieldFrom: ("'yield from' cannot run in lanes", "return a tuple, or build the values with a comprehension."),
    gast.Await: ("'await' cannot run in lanes", "compute the value before the call."),
    gast.AsyncFor: ("'async for' cannot run in lanes", "use a plain 'for'."),
    gast.AsyncWith: ("'async with' cannot run in lanes", "leave it outside the function."),
    gast.AsyncFunctionDef: ("'async def' cannot run in lanes", "use a plain function."),
    gast.ClassDef: ("a class inside a function cannot run in lanes", "define it at the top of the module."),
    gast.Global: ("a global cannot be written in lanes: examples do not write to globals", "return the value instead."),
    gast.Delete: ("this 'del' cannot run in lanes", "only names can be deleted."),
    gast.Import: ("an import inside a function cannot run in lanes", "import at the top of the module."),
    gast.ImportFrom: ("an import inside a function cannot run in lanes", "import at the top of the module."),
    gast.Set: ("a set display cannot run in lanes", "write s = set(), and s.add(x)."),
    gast.Raise: ("this 'raise ... from' cannot run in lanes", "leave out the cause."),
    gast.Starred: ("a starred target of something whose length varies cannot run in lanes",
                   "unpack a tuple, or take slices."),
}
JUDGED = (gast.Raise, gast.Starred, gast.Delete)  # some forms have a rule
WRITES = {
    gast.Subscript: ("a loop that writes into an array, list or dictionary cannot run in lanes",
                     "loop over a name, and write in the body."),
    gast.Attribute: ("a loop that writes to an attribute cannot run in lanes",
                     "loop over a name, and write in the body."),
}


def refuse(definition: Definition, node: Any, calls: tuple[tuple[str, Span], ...] = ()) -> UnsupportedSyntax:
    """The refusal of a statement, target or expression that has no rule."""
    target = _written(node)
    if target is not None:
        text, hint = WRITES[type(target)]
        node = target
    else:
        text, hint = REFUSED.get(type(node), (f"this ({type(node).__name__}) cannot run in lanes", ""))
    return UnsupportedSyntax(text, span=definition.span(node), hint=hint or None, calls=calls)


def _written(node: Any) -> Any:
    targets = getattr(node, "targets", None) or [getattr(node, "target", node)]
    return next((t for t in targets if type(t) in WRITES), None)


def _global(definition: Definition, node: Any, calls: tuple[tuple[str, Span], ...]) -> None:
    """A global may be read; the function that declares it must not bind it."""
    for other in _around(definition.written, node):
        if set(node.names) & writes(other):
            raise refuse(definition, node, calls)


def _around(body: list[Any], node: Any) -> list[Any]:
    """The statements of the innermost function that a statement stands in."""
    for statement in body:
        for function in gast.walk(statement):
            if isinstance(function, gast.FunctionDef) and any(n is node for n in gast.walk(function)):
                return _around(function.body, node)
    return body


def _inner_function(definition: Definition, node: Any, calls: tuple[tuple[str, Span], ...]) -> None:
    if getattr(node, "decorator_list", None):
        text, decorator = "a decorated function inside a function cannot run in lanes", node.decorator_list[0]
        raise UnsupportedSyntax(text, span=definition.span(decorator), hint="leave out the decorator.", calls=calls)


def inspect(definition: Definition, calls: tuple[tuple[str, Span], ...] = ()) -> None:
    """Walks a whole function and refuses the first thing that stands in the way."""
    decorated = getattr(definition.node, "decorator_list", [])
    if isinstance(definition.node, gast.AsyncFunctionDef):
        raise refuse(definition, definition.node, calls)
    skip = set(map(id, decorated))
    stack = list(reversed(definition.written))
    while stack:
        node = stack.pop()
        if id(node) in skip:
            continue
        if isinstance(node, (gast.FunctionDef, gast.Lambda)):
            _inner_function(definition, node, calls)
        if isinstance(node, gast.Global):
            _global(definition, node, calls)
        elif type(node) in REFUSED and not isinstance(node, JUDGED):
            raise refuse(definition, node, calls)
        if isinstance(node, gast.For) and _written(node) is not None:
            raise refuse(definition, node, calls)
        stack += reversed(list(gast.iter_child_nodes(node)))
