"""Calls: of Python functions, classes, NumPy, builtins, methods, and vmapped functions.

The invariant: a callee is resolved now, to the object that Python would call; what cannot be resolved or has no rule is
refused at the call.
"""

from __future__ import annotations

import dataclasses
import functools
import types
from typing import Any

import gast
import numpy as np

from spmd.errors import TypeMismatch, UnsupportedAttribute, UnsupportedFunction, UnsupportedType
from spmd.frontend.attributes import class_attribute, node_field, node_tag, present
from spmd.frontend.expressions import Condition, expression, tag_test
from spmd.frontend.iterables import make_enumerate, make_range, make_reversed, make_zip
from spmd.frontend.lowering import Lowering
from spmd.frontend.names import static
from spmd.frontend.read import Definition, read
from spmd.frontend.runs import EXACT, as_column
from spmd.frontend.values import (
    Abstract, Choice, Const, Iterable, Leaf, Method, Node, Run, Static, Struct, describe, list_of, tuple_of,
)
from spmd.ir.core import Value
from spmd.ir.types import INT
from spmd.ops.table import METHODS, NUMPY


def call(low: Lowering, node: Any) -> Abstract:
    """A call expression."""
    callee = low.settled(expression(low, node.func))
    if isinstance(callee, Static) and callee.value is isinstance:
        found = isinstance_test(low, node)
        assert found is not None
        return found.value
    args, kwargs = _arguments(low, node)
    low.locate(node)
    return low.spread(callee, lambda one: apply(low, one, args, kwargs, node))


def _arguments(low: Lowering, node: Any) -> tuple[list[Abstract], dict[str, Abstract]]:
    args: list[Abstract] = []
    for a in node.args:
        thing = low.settled(expression(low, a.value if isinstance(a, gast.Starred) else a))
        if not isinstance(a, gast.Starred):
            args.append(thing)
        elif isinstance(thing, Struct) and thing.kind in ("tuple", "list", "namedtuple"):
            args += thing.items
        else:
            raise low.error(UnsupportedType, f"only a tuple can be passed with *, not {describe(thing)}", a)
    kwargs: dict[str, Abstract] = {}
    for k in node.keywords:
        thing = low.settled(expression(low, k.value))
        if k.arg is not None:
            kwargs[k.arg] = thing
        elif isinstance(thing, Struct) and thing.kind == "dict":
            kwargs.update(zip(map(str, thing.names), thing.items))
        else:
            raise low.error(UnsupportedType, f"only a dictionary can be passed with **, not {describe(thing)}", k.value)
    return args, kwargs


def apply(low: Lowering, callee: Abstract, args: list[Abstract], kwargs: dict[str, Abstract], node: Any) -> Abstract:
    """callee(*args, **kwargs)"""
    if isinstance(callee, Method):
        return _method(low, callee, args, kwargs, node)
    if not isinstance(callee, Static):
        raise low.error(TypeMismatch, f"{describe(callee)} cannot be called", node)
    value = callee.value
    if isinstance(value, functools.partial):
        bound = [_known(low, a, node) for a in value.args]
        named = {k: _known(low, a, node) for k, a in value.keywords.items()}
        return apply(low, Static(value.func), [*bound, *args], {**named, **kwargs}, node)
    if isinstance(value, types.MethodType):
        raise low.error(UnsupportedFunction, f"the bound method '{value.__name__}' cannot run in lanes", node,
                        "pass its object as an argument and call the method there.")
    if hasattr(value, "__spmd_vmap__"):
        from spmd.frontend.comprehensions import call_vmapped

        return call_vmapped(low, value, args, kwargs, node)
    builtin = BUILTINS.get(value) if _hashable(value) else None
    if builtin is not None:
        return builtin(low, args, kwargs, node)
    if _hashable(value) and value in NUMPY:
        return call_numpy(low, value, NUMPY[value], args, kwargs, node)
    if _hashable(value) and value in CONSTANT:
        return _of_constants(low, value, args, kwargs, node)
    if isinstance(value, types.FunctionType) and not _is_library(value):
        return call_python(low, value, args, kwargs, node)
    if isinstance(value, type):
        return _construct(low, value, args, kwargs, node)
    name = getattr(value, "__name__", repr(value))
    module = getattr(value, "__module__", None) or ""
    raise low.error(UnsupportedFunction, f"'{module + '.' if module else ''}{name}' cannot run in lanes", node)


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _is_library(function: Any) -> bool:
    return (function.__module__ or "").split(".")[0] in ("numpy", "spmd", "scipy", "math", "random")


def _known(low: Lowering, value: Any, node: Any) -> Abstract:
    found = static(value)
    if found is None:
        raise low.error(UnsupportedType, "a default or bound argument must be a number, a string or a function", node,
                        "pass arrays as arguments, or name a global array in the function.")
    return found


# ---------------------------------------------------------------------------------------------- Python functions
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
            raise low.error(TypeMismatch, f"{title}() takes {len(names)} positional arguments but {len(args)} were given", node)
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
            bound[name] = _known(low, defaults[name], node)
    if spec.kwarg is not None:
        raise low.error(UnsupportedFunction, f"{title}() takes **{spec.kwarg.id}, which cannot run in lanes", node)
    order = [*names, *([spec.vararg.id] if spec.vararg else []), *only]
    return {name: bound[name] for name in order}


def _construct(low: Lowering, cls: type, args: list[Abstract], kwargs: dict[str, Abstract], node: Any) -> Abstract:
    """A NamedTuple or a dataclass built from its fields."""
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        names = list(cls._fields)
        defaults = dict(getattr(cls, "_field_defaults", {}))
        kind = "namedtuple"
    elif dataclasses.is_dataclass(cls) and _plain_dataclass(cls):
        fields = [f for f in dataclasses.fields(cls) if f.init]
        names = [f.name for f in fields]
        defaults = {f.name: f.default for f in fields if f.default is not dataclasses.MISSING}
        kind = "dataclass"
    else:
        raise low.error(UnsupportedFunction, f"objects of class '{cls.__name__}' cannot be built in lanes", node,
                        "a NamedTuple or a dataclass can.")
    if len(args) > len(names) or any(k not in names for k in kwargs) or set(names[: len(args)]) & set(kwargs):
        raise low.error(TypeMismatch, f"{cls.__name__}() has the fields {', '.join(names)}", node)
    bound = {**dict(zip(names, args)), **kwargs}
    for name in names:
        if name not in bound:
            if name not in defaults:
                raise low.error(TypeMismatch, f"{cls.__name__}() missing required argument: '{name}'", node)
            bound[name] = _known(low, defaults[name], node)
    return Struct(kind, cls, tuple(names), tuple(bound[n] for n in names))


def _plain_dataclass(cls: type) -> bool:
    own_init = "__init__" in cls.__dict__ and not getattr(cls, "__dataclass_params__").init  # noqa: B009
    return not own_init and not hasattr(cls, "__post_init__") and all(f.init for f in dataclasses.fields(cls))


# ---------------------------------------------------------------------------------------------- NumPy and methods
def call_numpy(
    low: Lowering, function: Any, rule: Any, args: list[Abstract], kwargs: dict[str, Abstract], node: Any
) -> Abstract:
    """A call of a function that has a rule; of constants alone it is called now."""
    for k, thing in enumerate(args):
        if isinstance(low.settled(thing), Choice):
            return low.spread(
                thing, lambda one, k=k: call_numpy(low, function, rule, [*args[:k], one, *args[k + 1 :]], kwargs, node)
            )
    exact = EXACT.get(function)
    if exact is not None and args and isinstance(args[0], Run):
        return exact(low, args, kwargs, node)
    plain = [_argument(low, a, node) for a in args]
    named = {k: _argument(low, a, node) for k, a in kwargs.items()}
    if not _has_value(plain) and not _has_value(list(named.values())):
        found = _fold(function, plain, named)
        if found is not None:
            return _thing(low, found)
    return _thing(low, low.attempt(lambda: rule(low.b, plain, named), node))


def _of_constants(
    low: Lowering, function: Any, args: list[Abstract], kwargs: dict[str, Abstract], node: Any
) -> Abstract:
    """An array that is made of constants alone, made now."""
    plain = [_argument(low, a, node) for a in args]
    named = {k: _argument(low, a, node) for k, a in kwargs.items()}
    if _has_value(plain) or _has_value(list(named.values())):
        raise low.error(UnsupportedFunction, f"'{function.__name__}' takes only arguments that are known now", node)
    found = _fold(function, plain, named)
    if found is None:
        raise low.error(TypeMismatch, f"'{function.__name__}' cannot be called with these arguments", node)
    return _thing(low, found)


def _argument(low: Lowering, thing: Abstract, node: Any) -> Any:
    """A bound thing as rules take it: a value, a Python constant, or a tuple or list of them."""
    thing = low.settled(thing)
    if isinstance(thing, Leaf):
        return thing.value
    if isinstance(thing, Const):
        return thing.value
    if isinstance(thing, Static):
        return thing.value
    if isinstance(thing, Struct) and thing.kind in ("tuple", "list", "namedtuple"):
        items = [_argument(low, i, node) for i in thing.items]
        return items if thing.kind == "list" else tuple(items)
    if isinstance(thing, Run):
        return as_column(low, thing, node)
    if isinstance(thing, Choice):
        raise low.error(TypeMismatch, f"one kind of value is needed here, not {describe(thing)}", node)
    raise low.error(TypeMismatch, f"a number or array is needed here, not {describe(thing)}", node)


def _has_value(things: Any) -> bool:
    if isinstance(things, Value):
        return True
    return isinstance(things, (list, tuple)) and any(_has_value(t) for t in things)


def _fold(function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    try:
        with np.errstate(all="raise"):
            return function(*args, **kwargs)
    except Exception:  # noqa: BLE001 (what NumPy raises here it raises when the example runs)
        return None


def _thing(low: Lowering, found: Any) -> Abstract:
    """What a rule gave, as a bound thing."""
    if isinstance(found, Value):
        return Leaf(found)
    if isinstance(found, tuple):
        return tuple_of(tuple(_thing(low, x) for x in found))
    if isinstance(found, list):
        return list_of(tuple(_thing(low, x) for x in found))
    if isinstance(found, (np.ndarray, np.generic)):
        return Leaf(low.b.const(found))
    return Const(found)


def _method(low: Lowering, method: Method, args: list[Abstract], kwargs: dict[str, Abstract], node: Any) -> Abstract:
    owner = low.settled(method.owner)
    if method.function is not None:
        return call_python(low, method.function, [owner, *args], kwargs, node)
    if isinstance(owner, Leaf) and method.name in METHODS:
        rule = METHODS[method.name]
        return call_numpy(low, method.name, lambda b, a, k: rule(b, a, k), [owner, *args], kwargs, node)
    if isinstance(owner, Struct) and owner.kind == "dict":
        found = _dict_method(owner, method.name, args)
        if found is not None:
            return found
    if isinstance(owner, Struct) and owner.kind == "namedtuple" and method.name == "_replace":
        return _replaced(low, owner, kwargs, node)
    if isinstance(owner, Node):
        return _dispatched(low, owner, method.name, args, kwargs, node)
    raise low.error(UnsupportedAttribute, f"{describe(owner)} has no method '{method.name}' that can run in lanes", node)


def _replaced(low: Lowering, owner: Struct, changes: dict[str, Abstract], node: Any) -> Abstract:
    if set(changes) - set(owner.names):
        raise low.error(TypeMismatch, f"{owner.cls.__name__} has the fields {', '.join(map(str, owner.names))}", node)
    items = tuple(changes.get(n, item) for n, item in zip(owner.names, owner.items))
    return Struct(owner.kind, owner.cls, owner.names, items)


def _dict_method(owner: Struct, name: str, args: list[Abstract]) -> Abstract | None:
    if name == "items" and not args:
        return tuple_of(tuple(tuple_of((Const(n), x)) for n, x in zip(owner.names, owner.items)))
    if name == "keys" and not args:
        return tuple_of(tuple(Const(n) for n in owner.names))
    if name == "values" and not args:
        return tuple_of(owner.items)
    if name == "get" and args and isinstance(args[0], Const):
        found = owner.field(args[0].value)
        return found if found is not None else args[1] if len(args) > 1 else Const(None)
    return None


def _dispatched(
    low: Lowering, owner: Node, name: str, args: list[Abstract], kwargs: dict[str, Abstract], node: Any
) -> Abstract:
    """A method that differs between the classes that an object may be of."""
    layout = low.sp.layouts[owner.table]
    tag, classes = node_tag(low, owner, present(low, owner, name))
    first = min(classes)
    if tag is None or len(classes) == 1:
        found = class_attribute(low, owner, layout.classes[first][0], name, node)
        return apply(low, found, args, kwargs, node)
    test = tag_test(low, tag, classes, frozenset({first}))
    result = low.branch(
        low.value(test.value),
        (
            lambda: apply(low, class_attribute(low, owner, layout.classes[first][0], name, node), args, kwargs, node),
            lambda: apply(low, node_field(low, owner, name, node), args, kwargs, node),
        ),
        (test.yes, test.no),
        low.scope.names,
    )
    assert result is not None
    return result


# ---------------------------------------------------------------------------------------------- builtins
def isinstance_test(low: Lowering, node: Any) -> Condition | None:
    """isinstance(x, C) with what it shows, or None if the call is another one."""
    if not isinstance(node.func, gast.Name) or len(node.args) != 2 or node.keywords:
        return None
    callee = low.scope.names.get(node.func.id) or low.sp.globals.resolve(low.definition.function, node.func.id)
    if not isinstance(callee, Static) or callee.value is not isinstance:
        return None
    thing = low.scope.names.get(node.args[0].id) if isinstance(node.args[0], gast.Name) else None
    if not isinstance(thing, Choice) or any(describe(a) == "no value" for a in thing.alternatives):
        thing = expression(low, node.args[0])
    thing = low.settled(thing)
    classes = _classes(low, expression(low, node.args[1]), node)
    low.locate(node)
    return instance_of(low, thing, classes, node)


def _classes(low: Lowering, thing: Abstract, node: Any) -> tuple[type, ...]:
    items = thing.items if isinstance(thing, Struct) else (thing,)
    found = tuple(i.value for i in items if isinstance(i, Static) and isinstance(i.value, type))
    if len(found) != len(items):
        raise low.error(UnsupportedType, "isinstance needs classes that are known now", node)
    return found


def instance_of(low: Lowering, thing: Abstract, classes: tuple[type, ...], node: Any) -> Condition:
    """Whether a thing is of one of the classes."""
    if isinstance(thing, Choice):
        left = low.possible(thing)
        tests = {k: _instance(low, thing.alternatives[k], classes) for k in left}
        if all(t is not None for t in tests.values()):
            return tag_test(low, thing.tag, left, frozenset(k for k, t in tests.items() if t))
        return Condition(low.spread(thing, lambda one: Leaf(low.value(instance_of(low, one, classes, node).value))))
    known = _instance(low, thing, classes)
    if known is not None:
        return Condition(Const(known))
    assert isinstance(thing, Node)
    return _node_instance(low, thing, classes)


def _node_instance(low: Lowering, thing: Node, classes: tuple[type, ...]) -> Condition:
    layout = low.sp.layouts[thing.table]
    if low.is_nonnull(thing):
        tag, left = node_tag(low, thing, low.assured(thing.value))
        wanted = frozenset(k for k in left if issubclass(layout.classes[k][0], classes))
        if tag is None:
            return Condition(Const(bool(wanted)))
        return tag_test(low, tag, left, wanted)
    from spmd.frontend.expressions import identity
    from spmd.frontend.scope import Facts
    from spmd.frontend.values import NONE

    null = identity(low, thing, NONE)
    inner: list[Condition] = []

    def test() -> Abstract:
        inner.append(_node_instance(low, thing, classes))
        return Leaf(low.value(inner[0].value))

    none = isinstance(None, classes)
    value = low.branch(
        low.value(null.value), (lambda: Leaf(low.boolean(none)), test), (null.yes, null.no), low.scope.names
    )
    assert value is not None
    return Condition(value, Facts(frozenset() if none else frozenset({thing.value})))


def _instance(low: Lowering, thing: Abstract, classes: tuple[type, ...]) -> bool | None:
    """The answer where it is known now; None where the row's class decides."""
    if isinstance(thing, Const):
        return isinstance(thing.value, classes)
    if isinstance(thing, Leaf):
        return issubclass(_class_of(thing), classes)
    if isinstance(thing, Struct):
        return issubclass(thing.cls, classes)
    if isinstance(thing, Run):
        return issubclass({"list": list, "tuple": tuple}.get(thing.kind, object), classes)
    if isinstance(thing, Node):
        layout = low.sp.layouts[thing.table]
        if not any(issubclass(cls, classes) for cls, _ in layout.classes) and not (thing.nullable and isinstance(None, classes)):
            return False
        return None
    return False


def _class_of(thing: Leaf) -> type:
    type_ = thing.type
    if type_.rank:
        return np.ndarray
    if type_.text:
        return str
    if type_.python:
        return {"int64": int, "float64": float, "bool": bool, "complex128": complex}[type_.dtype]
    return np.dtype(type_.dtype).type


def _len(low: Lowering, args: list[Abstract], kwargs: dict[str, Abstract], node: Any) -> Abstract:
    if len(args) != 1 or kwargs:
        raise low.error(TypeMismatch, "len() takes exactly one argument", node)
    return low.spread(args[0], lambda one: _length(low, one, node))


def _length(low: Lowering, thing: Abstract, node: Any) -> Abstract:
    from spmd.frontend.attributes import dimension

    if isinstance(thing, Struct) and thing.kind != "dataclass":
        return Const(len(thing.items))
    if isinstance(thing, Const) and isinstance(thing.value, str):
        return Const(len(thing.value))
    if isinstance(thing, Run):
        return Leaf(low.b.insert("length", [thing.value], [INT]).result)
    if isinstance(thing, Leaf) and thing.type.rank:
        return dimension(low, thing, 0)
    if isinstance(thing, Iterable):
        return thing.count
    raise low.error(TypeMismatch, f"{describe(thing)} has no len()", node)


def _sequence(low: Lowering, args: list[Abstract], kwargs: dict[str, Abstract], node: Any, kind: str) -> Abstract:
    """tuple(x) and list(x)."""
    make = list_of if kind == "list" else tuple_of
    if not args:
        return make(())
    thing = low.settled(args[0])
    if isinstance(thing, Struct) and thing.kind in ("tuple", "list", "namedtuple"):
        return make(thing.items)
    if isinstance(thing, Run):
        return Run(thing.value, thing.item, thing.fields, kind)
    if isinstance(thing, Iterable) and thing.items is not None:
        return make(thing.items)
    raise low.error(UnsupportedFunction, f"{kind}() of {describe(thing)} cannot run in lanes", node)


def _range(low: Lowering, args: list[Abstract], kwargs: dict[str, Abstract], node: Any) -> Abstract:
    if kwargs or not 1 <= len(args) <= 3:
        raise low.error(TypeMismatch, "range takes one to three integers", node)
    return make_range(low, args, node)


CONSTANT = frozenset({np.eye, np.identity, np.tri, np.linspace, np.geomspace, np.logspace, np.full, np.diag, np.dtype})

BUILTINS: dict[Any, Any] = {
    len: _len,
    range: _range,
    enumerate: lambda low, args, kwargs, node: make_enumerate(low, args, node, kwargs.get("start", Const(0))),
    zip: lambda low, args, kwargs, node: make_zip(low, args, node),
    reversed: lambda low, args, kwargs, node: make_reversed(low, args, node),
    tuple: lambda low, args, kwargs, node: _sequence(low, args, kwargs, node, "tuple"),
    list: lambda low, args, kwargs, node: _sequence(low, args, kwargs, node, "list"),
    dict: lambda low, args, kwargs, node: Struct("dict", dict, tuple(kwargs), tuple(kwargs.values())),
}
