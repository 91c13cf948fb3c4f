"""Calls: which rule a callee has.

The invariant: a callee is resolved now, to the object that Python would call; what cannot be resolved or has no rule is
refused at the call.
"""

from __future__ import annotations

import functools
import types
from typing import Any

import gast

from spmd.errors import TypeMismatch, UnsupportedFunction, UnsupportedType
from spmd.frontend.attributes import attribute
from spmd.frontend.builtin_calls import BUILTINS, over_generator
from spmd.frontend.classes import construct, isinstance_test
from spmd.frontend.compounds import Closure, Error, Partial
from spmd.frontend.comprehensions import call_vmapped
from spmd.frontend.exceptions import is_exception
from spmd.frontend.functions import call_closure
from spmd.frontend.identities import Object
from spmd.frontend.library import CONSTANT, call_numpy, call_of_constants
from spmd.frontend.list_methods import METHODS as LIST_METHODS
from spmd.frontend.lowering import Lowering
from spmd.frontend.methods import call_method
from spmd.frontend.python_calls import call_python, known
from spmd.frontend.subscripts import on_item
from spmd.frontend.values import Abstract, Const, Method, Node, Static, Struct, describe
from spmd.ops.table import rule_of


def call(low: Lowering, node: Any) -> Abstract:
    """A call expression."""
    if isinstance(node.func, gast.Attribute) and node.func.attr in LIST_METHODS and low.memory is not None:
        return on_item(low, node.func.value, lambda owner: _called(low, owner, node))
    callee = low.chosen(low.expression(node.func))
    if isinstance(callee, Static) and callee.value is isinstance:
        found = isinstance_test(low, node)
        assert found is not None
        return found.value
    if isinstance(callee, Static) and any(isinstance(a, gast.GeneratorExp) for a in node.args):
        return over_generator(low, callee.value, node)
    args, kwargs = _arguments(low, node)
    low.locate(node)
    return low.spread(callee, lambda one: apply(low, one, args, kwargs, node), keep=True)


def _called(low: Lowering, owner: Abstract, node: Any) -> Abstract:
    """A call of a method of an object that is known."""
    method = attribute(low, owner, node.func.attr, node.func)
    args, kwargs = _arguments(low, node)
    low.locate(node)
    return low.spread(method, lambda one: apply(low, one, args, kwargs, node), keep=True)


def _arguments(low: Lowering, node: Any) -> tuple[list[Abstract], dict[str, Abstract]]:
    args: list[Abstract] = []
    for a in node.args:
        thing = low.chosen(low.expression(a.value if isinstance(a, gast.Starred) else a))
        if not isinstance(a, gast.Starred):
            args.append(thing)
            continue
        thing = low.settled(thing)
        if isinstance(thing, Struct) and thing.kind in ("tuple", "list", "namedtuple"):
            args += thing.items
        else:
            raise low.error(UnsupportedType, f"only a tuple can be passed with *, not {describe(thing)}", a)
    kwargs: dict[str, Abstract] = {}
    for k in node.keywords:
        thing = low.chosen(low.expression(k.value))
        if k.arg is not None:
            kwargs[k.arg] = thing
            continue
        thing = low.settled(thing)
        if isinstance(thing, Struct) and thing.kind == "dict":
            kwargs.update(zip(map(str, thing.names), thing.items))
        else:
            raise low.error(UnsupportedType, f"only a dictionary can be passed with **, not {describe(thing)}", k.value)
    return args, kwargs


def apply(low: Lowering, callee: Abstract, args: list[Abstract], kwargs: dict[str, Abstract], node: Any) -> Abstract:
    """callee(*args, **kwargs)"""
    if isinstance(callee, Method):
        return call_method(low, callee, args, kwargs, node)
    if isinstance(callee, Closure):
        return call_closure(low, callee, args, kwargs, node)
    if isinstance(callee, Partial):
        named = {**dict(zip(callee.names, callee.named)), **kwargs}
        return low.spread(callee.callee, lambda one: apply(low, one, [*callee.args, *args], named, node))
    if isinstance(callee, (Node, Struct, Object)):
        found = low.overloaded("__call__", [callee, *args], node, kwargs)
        if found is not None:
            return found
    if not isinstance(callee, Static):
        raise low.error(TypeMismatch, f"{describe(callee)} cannot be called", node)
    value = callee.value
    if value is functools.partial and args:
        return Partial(args[0], tuple(args[1:]), tuple(kwargs), tuple(kwargs.values()))
    if isinstance(value, functools.partial):
        bound = [known(low, a, node) for a in value.args]
        named = {k: known(low, a, node) for k, a in value.keywords.items()}
        return apply(low, Static(value.func), [*bound, *args], {**named, **kwargs}, node)
    if isinstance(value, types.MethodType) and isinstance(value.__self__, type):
        return call_python(low, value.__func__, [Static(value.__self__), *args], kwargs, node)
    if _draws(value):
        raise low.error(UnsupportedFunction, "random numbers cannot be drawn in lanes", node,
                        "draw them before the call, and pass them as an argument.")
    if isinstance(value, types.MethodType):
        raise low.error(UnsupportedFunction, f"the bound method '{value.__name__}' cannot run in lanes", node,
                        "pass its object as an argument and call the method there.")
    if hasattr(value, "__spmd_vmap__"):
        return call_vmapped(low, value, args, kwargs, node)
    if getattr(value, "__spmd_known__", False):
        return _called_now(low, value, args, kwargs, node)
    if is_exception(callee):
        if kwargs:
            raise low.error(UnsupportedFunction, "an exception takes no keyword arguments in lanes", node)
        return Error(value, tuple(args))
    if value is abs and len(args) == 1 and isinstance(args[0], (Node, Struct, Object)):
        found = low.overloaded("__abs__", args, node)
        if found is not None:
            return found
    builtin = BUILTINS.get(value) if _hashable(value) else None
    if builtin is not None:
        return builtin(low, args, kwargs, node)
    rule = rule_of(value) if _hashable(value) else None
    if rule is not None or _hashable(value) and value in CONSTANT:
        args, kwargs = [low.settled(a) for a in args], {k: low.settled(a) for k, a in kwargs.items()}
        if rule is not None:
            return call_numpy(low, value, rule, args, kwargs, node)
        return call_of_constants(low, value, args, kwargs, node)
    if isinstance(value, types.FunctionType) and not _is_library(value):
        return call_python(low, value, args, kwargs, node)
    if isinstance(value, type):
        return construct(low, value, args, kwargs, node)
    if type(value).__module__ == "spmd.api":
        text = f"the gradient of '{value.title}' inside a function cannot run in lanes"
        raise low.error(UnsupportedFunction, text, node, "differentiate the outer function.")
    name = getattr(value, "__name__", repr(value))
    module = getattr(value, "__module__", None) or ""
    raise low.error(UnsupportedFunction, f"'{module + '.' if module else ''}{name}' cannot run in lanes", node,
                    "write it with functions that can, or call it outside, on the batch.")


def _draws(value: Any) -> bool:
    """Whether a function draws from one of NumPy's or Python's generators."""
    owner = getattr(value, "__self__", None)
    module = type(owner).__module__ if owner is not None else getattr(value, "__module__", None)
    return str(module or "").split(".")[:2] in (["numpy", "random"], ["random"])


def _called_now(low: Lowering, function: Any, args: list[Abstract], kwargs: dict[str, Abstract], node: Any) -> Abstract:
    """A call that makes a function of functions, such as `spmd.vmap(f)`: made now, of what is known now."""
    given = [_known_object(low, a, node) for a in args]
    named = {k: _known_object(low, a, node) for k, a in kwargs.items()}
    return Static(low.attempt(lambda: function(*given, **named), node))


def _known_object(low: Lowering, thing: Abstract, node: Any) -> Any:
    if isinstance(thing, (Const, Static)):
        return thing.value
    if isinstance(thing, Struct) and thing.kind in ("tuple", "list", "dict"):
        items = [_known_object(low, i, node) for i in thing.items]
        return dict(zip(thing.names, items)) if thing.kind == "dict" else thing.cls(items)
    raise low.error(UnsupportedType, f"{describe(thing)} is not known before the program runs", node,
                    "make the function outside, and call it here.")


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _is_library(function: Any) -> bool:
    return (function.__module__ or "").split(".")[0] in ("numpy", "spmd", "scipy", "math", "random")
