"""Calls of functions written in Python: how arguments meet parameters.

The invariant: a parameter is bound as Python would bind it, or the call is refused; what a default holds is known now.
"""

from __future__ import annotations

from typing import Any

from spmd.errors import TypeMismatch, UnsupportedType
from spmd.frontend.closures import pack
from spmd.frontend.iteration import holds_iterable
from spmd.frontend.lowering import Lowering
from spmd.frontend.names import static
from spmd.frontend.read import Definition, read
from spmd.frontend.values import Abstract, Struct, tuple_of


def call_python(low: Lowering, function: Any, args: list[Abstract], kwargs: dict[str, Abstract], node: Any) -> Abstract:
    """A call of a function written in Python: of its specialisation for these arguments."""
    span = low.locate(node)
    definition = read(function)
    bound = bind_arguments(low, definition, args, kwargs, node)
    bound = {name: pack(low, thing, node) for name, thing in bound.items()}
    result = low.sp.call(low, function, bound, span)
    low.locate(node)
    return result


def bind_arguments(
    low: Lowering,
    definition: Definition,
    args: list[Abstract],
    kwargs: dict[str, Abstract],
    node: Any,
    given: dict[str, Abstract] | None = None,
) -> dict[str, Abstract]:
    """Arguments by parameter name, as Python binds them; `given` are the defaults of an inner function."""
    spec = definition.node.args
    names = [a.id for a in [*spec.posonlyargs, *spec.args]]
    by_place = {a.id for a in spec.posonlyargs}
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
    others: dict[str, Abstract] = {}
    for name, thing in kwargs.items():
        if name in names and name not in by_place or name in only:
            if name in bound:
                raise low.error(TypeMismatch, f"{title}() got multiple values for argument '{name}'", node)
            bound[name] = thing
        elif spec.kwarg is not None:
            others[name] = thing
        elif name in by_place:
            text = f"{title}() got some positional-only arguments passed as keyword arguments: '{name}'"
            raise low.error(TypeMismatch, text, node)
        else:
            raise low.error(TypeMismatch, f"{title}() got an unexpected keyword argument '{name}'", node)
    defaults = given if given is not None else _defaults(definition.function, names)
    for name in [*names, *only]:
        if name not in bound:
            if name not in defaults:
                raise low.error(TypeMismatch, f"{title}() missing required argument: '{name}'", node)
            default = defaults[name]
            bound[name] = default if isinstance(default, Abstract) else known(low, default, node)
    if spec.kwarg is not None:
        bound[spec.kwarg.id] = Struct("dict", dict, tuple(others), tuple(others.values()))
    for name, thing in bound.items():
        if holds_iterable(thing):
            text = f"'{name}' of {title}() is a range or an iterator, which cannot be passed on"
            raise low.error(UnsupportedType, text, node, "pass a list, an array or the bounds.")
    extra = [[x.id] if x is not None else [] for x in (spec.vararg, spec.kwarg)]
    return {name: bound[name] for name in [*names, *extra[0], *only, *extra[1]]}


def _defaults(function: Any, names: list[str]) -> dict[str, Any]:
    late = function.__defaults__ or ()
    return {**dict(zip(names[len(names) - len(late) :], late)), **(function.__kwdefaults__ or {})}


def known(low: Lowering, value: Any, node: Any) -> Abstract:
    found = static(value)
    if found is None:
        raise low.error(UnsupportedType, "a default or bound argument must be a number, a string or a function", node,
                        "pass arrays as arguments, or name a global array in the function.")
    return found
