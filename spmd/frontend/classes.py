"""Classes: building NamedTuples and dataclasses, and `isinstance`.

The invariant: a test answers as Python's would for the object that the user gave, and tells what it has shown.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import gast

from spmd.errors import TypeMismatch, UnsupportedFunction, UnsupportedType
from spmd.frontend.attributes import node_tag
from spmd.frontend.lowering import Lowering
from spmd.frontend.operations import Condition, identity, tag_test
from spmd.frontend.python_calls import known
from spmd.frontend.scope import Facts
from spmd.frontend.values import NONE, Abstract, Choice, Const, Leaf, Node, Run, Static, Struct, class_of, describe


def construct(low: Lowering, cls: type, args: list[Abstract], kwargs: dict[str, Abstract], node: Any) -> Abstract:
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
            bound[name] = known(low, defaults[name], node)
    return Struct(kind, cls, tuple(names), tuple(bound[n] for n in names))


def _plain_dataclass(cls: type) -> bool:
    own_init = "__init__" in cls.__dict__ and not getattr(cls, "__dataclass_params__").init  # noqa: B009
    return not own_init and not hasattr(cls, "__post_init__") and all(f.init for f in dataclasses.fields(cls))


# ---------------------------------------------------------------------------------------------- isinstance
def isinstance_test(low: Lowering, node: Any) -> Condition | None:
    """isinstance(x, C) with what it shows, or None if the call is another one."""
    if not isinstance(node.func, gast.Name) or len(node.args) != 2 or node.keywords:
        return None
    callee = low.scope.names.get(node.func.id) or low.sp.globals.resolve(low.definition.function, node.func.id)
    if not isinstance(callee, Static) or callee.value is not isinstance:
        return None
    thing = low.scope.names.get(node.args[0].id) if isinstance(node.args[0], gast.Name) else None
    if not isinstance(thing, Choice) or any(describe(a) == "no value" for a in thing.alternatives):
        thing = low.expression(node.args[0])
    thing = low.settled(thing)
    classes = _classes(low, low.expression(node.args[1]), node)
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
    if isinstance(thing, (Const, Leaf, Struct, Run)):
        return issubclass(class_of(thing), classes)
    if isinstance(thing, Node):
        layout = low.sp.layouts[thing.table]
        none = thing.nullable and isinstance(None, classes)
        if not none and not any(issubclass(cls, classes) for cls, _ in layout.classes):
            return False
        return None
    return False
