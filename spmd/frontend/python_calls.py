"""Calls of functions written in Python: how arguments meet parameters.

The invariant: a parameter is bound as Python would bind it, or the call is refused; what a default holds is known now.
"""

from __future__ import annotations

from typing import Any

from spmd.errors import TypeMismatch, UnsupportedFunction, UnsupportedType
from spmd.frontend.lowering import Lowering
from spmd.frontend.names import static
from spmd.frontend.read import Definition, read
from spmd.frontend.values import Abstract, holds_iterable, tuple_of


def call_python(low: Lowering, function: Any, args: list[Abstract], kwargs: dict[str, Abstract], node: Any) -> Abstract:
    """A call of a function written in Python: of its specialisation for these arguments."""
    span = low.locate(node)
    definition = read(function)
    bound = bind_arguments(low, definition, args, kwargs, node)
    result = low.sp.call(low, function, bound, span)
    low.locate(node)
    return result


def bind_arguments(
    low: Lowering, definition: Definition, args: list[Abstract], kwargs: dict[str, Abstract], node: Any
) -> dict[str, Abstract]:
    """Arguments by parameter name, as Python binds them."""
    spec = definition.node.args
    function = definition.function
    names = [a.id for a in [*spec.posonlyargs, *spec.args]]
    only = [a.id for a in spec.kwonlyargs]
    title = definition.name
    bound: dict[str, Abstract] = dict(zip(names, args))
    if len(args) > len(names):
        if spec.vararg is None:
            text = f"{title}() takes {len(names)} positional arguments but {len(args)} were given"
            raise low.error(TypeMismatch, text, node)
        bound[spec.vararg.id] = tuple_of(tuple(args[len(names) :]))
    elif spec.vararg is not None:
        bound[spec.vararg.id] = tuple_of(())
    for name, thing in kwargs.items():
        if name in bound and name in names:
            raise low.error(TypeMismatch, f"{title}() got multiple values for argument '{name}'", node)
        if name not in names and name not in only:
            raise low.error(TypeMismatch, f"{title}() got an unexpected keyword argument '{name}'", node)
        bound[name] = thing
    defaults = dict(zip(names[len(names) - len(function.__defaults__ or ()) :], function.__defaults__ or ()))
    defaults.update(function.__kwdefaults__ or {})
    for name in [*names, *only]:
        if name not in bound:
            if name not in defaults:
                raise low.error(TypeMismatch, f"{title}() missing required argument: '{name}'", node)
            bound[name] = known(low, defaults[name], node)
    if spec.kwarg is not None:
        raise low.error(UnsupportedFunction, f"{title}() takes **{spec.kwarg.id}, which cannot run in lanes", node)
    for name, thing in bound.items():
        if holds_iterable(thing):
            text = f"'{name}' of {title}() is a range or an iterator, which cannot be passed on"
            raise low.error(UnsupportedType, text, node, "pass a list, an array or the bounds.")
    order = [*names, *([spec.vararg.id] if spec.vararg else []), *only]
    return {name: bound[name] for name in order}


def known(low: Lowering, value: Any, node: Any) -> Abstract:
    found = static(value)
    if found is None:
        raise low.error(UnsupportedType, "a default or bound argument must be a number, a string or a function", node,
                        "pass arrays as arguments, or name a global array in the function.")
    return found
