"""Refuses syntax that no stage could take, before anything is compiled, naming the place and a way out.

The invariant: what passes the fence is either lowered with Python's meaning or refused by the rule that knows better.
The texts stand in one table, so that the guide can list them.
"""

from __future__ import annotations

from typing import Any

import gast

from spmd.errors import UnsupportedSyntax
from spmd.frontend.read import Definition
from spmd.spans import Span

REFUSED: dict[type, tuple[str, str]] = {
    gast.Yield: ("'yield' cannot run in lanes", "return a tuple, or build the values with a comprehension."),
    gast.YieldFrom: ("'yield from' cannot run in lanes", "return a tuple, or build the values with a comprehension."),
    gast.Await: ("'await' cannot run in lanes", "compute the value before the call."),
    gast.AsyncFor: ("'async for' cannot run in lanes", "use a plain 'for'."),
    gast.AsyncWith: ("'async with' cannot run in lanes", "leave it outside the function."),
    gast.Try: ("'try' cannot run in lanes", "test for the case with 'if' before it can raise."),
    gast.With: ("'with' cannot run in lanes", "leave it outside the function."),
    gast.FunctionDef: ("a function inside a function cannot run in lanes", "define it at the top of the module."),
    gast.AsyncFunctionDef: ("'async def' cannot run in lanes", "use a plain function."),
    gast.ClassDef: ("a class inside a function cannot run in lanes", "define it at the top of the module."),
    gast.Lambda: ("a lambda inside a function cannot run in lanes", "define a function at the top of the module."),
    gast.Global: ("'global' cannot run in lanes: examples do not write to globals", "return the value instead."),
    gast.Nonlocal: ("'nonlocal' cannot run in lanes", "return the value instead."),
    gast.Delete: ("'del' cannot run in lanes", "leave the name bound; it costs nothing."),
    gast.Import: ("an import inside a function cannot run in lanes", "import at the top of the module."),
    gast.ImportFrom: ("an import inside a function cannot run in lanes", "import at the top of the module."),
    gast.Match: ("'match' cannot run in lanes", "write it with 'if' and 'elif'."),
    gast.JoinedStr: ("a formatted string cannot run in lanes", "only constant strings can, and comparing them."),
    gast.Set: ("a set cannot run in lanes", "compare with each value, or use a tuple."),
    gast.SetComp: ("a set comprehension cannot run in lanes", "use a list comprehension."),
    gast.DictComp: ("a dictionary comprehension cannot run in lanes", "write the dictionary with constant keys."),
    gast.Raise: ("this 'raise' cannot run in lanes", "raise an exception class with constant arguments."),
    gast.Assert: ("this 'assert' cannot run in lanes", "leave out the message, or make it a constant."),
    gast.Starred: ("a starred target cannot run in lanes", "unpack into plain names."),
}
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


def inspect(definition: Definition, calls: tuple[tuple[str, Span], ...] = ()) -> None:
    """Walks a whole function and refuses the first thing that stands in the way."""
    decorated = getattr(definition.node, "decorator_list", [])
    if isinstance(definition.node, gast.AsyncFunctionDef):
        raise refuse(definition, definition.node, calls)
    skip = set(map(id, decorated))
    stack = list(reversed(definition.body))
    while stack:
        node = stack.pop()
        if id(node) in skip:
            continue
        if type(node) in REFUSED and not isinstance(node, (gast.Raise, gast.Assert, gast.Starred)):
            raise refuse(definition, node, calls)
        if isinstance(node, gast.For) and _written(node) is not None:
            raise refuse(definition, node, calls)
        stack += reversed(list(gast.iter_child_nodes(node)))
