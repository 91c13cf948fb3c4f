"""Functions inside functions: `def`, `lambda`, and calls of what they make.

The invariant: defaults are evaluated where the function is made, free variables are read when it is called, and what it
writes through `nonlocal` is bound in its caller's scope when it has returned.
"""

from __future__ import annotations

from typing import Any

from spmd.frontend.closures import keep, pack, reached
from spmd.frontend.compounds import Closure
from spmd.frontend.exits import returned
from spmd.frontend.lowering import Lowering
from spmd.frontend.python_calls import bind_arguments
from spmd.frontend.scoping import own_name
from spmd.frontend.values import UNBOUND, Abstract, Struct, tuple_of


def closure(low: Lowering, node: Any) -> Closure:
    """The function that a `def` or `lambda` makes."""
    spec = node.args
    positional = [a.id for a in [*spec.posonlyargs, *spec.args]]
    late = positional[len(positional) - len(spec.defaults) :]
    pairs = [*zip(late, spec.defaults), *zip([a.id for a in spec.kwonlyargs], spec.kw_defaults)]
    given = [(name, low.expression(default)) for name, default in pairs if default is not None]
    low.locate(node)
    definition = low.definition.inner(node)
    return Closure(definition, tuple(n for n, _ in given), tuple(thing for _, thing in given))


def define(low: Lowering, s: Any) -> None:
    """def name(...): ..."""
    low.scope.names[s.name] = closure(low, s)


def call_closure(
    low: Lowering, function: Closure, args: list[Abstract], kwargs: dict[str, Abstract], node: Any
) -> Abstract:
    """A call of an inner function: its free variables are further arguments, and those it writes further results."""
    span = low.locate(node)
    definition = function.definition
    defaults = dict(zip(function.names, function.given))
    bound = bind_arguments(low, definition, args, kwargs, node, defaults)
    bound = {name: pack(low, thing, node) for name, thing in bound.items()}
    cells = reached(low, [function]) if function.cells is None else dict(zip(function.cells, function.held))
    written = [key for key in cells if key in definition.scopes.boxed]
    result = low.sp.call_inner(low, definition, bound, cells, written, span)
    low.locate(node)
    if not written:
        return returned(low, result)
    assert isinstance(result, Struct)
    for key, thing in zip(written, result.items[1:]):
        low.scope.names[own_name(key, low.definition.level)] = thing
    return returned(low, result.items[0])


def lower_inner(low: Lowering, written: list[str]) -> None:
    """The body of an inner function; each of its ways out gives what the variables that it may write hold there."""
    try:
        low.sp.lower_body(low)
    finally:
        for pending in low.returns if written else ():
            assert pending.result is not None
            cells = [keep(low, pending.scope.names.get(key, UNBOUND), low.definition.node) for key in written]
            pending.result = tuple_of((pending.result, *cells))
