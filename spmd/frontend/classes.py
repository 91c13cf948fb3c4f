"""Classes: building NamedTuples and dataclasses, and `isinstance`.

The invariant: a test answers as Python's would for the object that the user gave, and tells what it has shown.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import gast

from spmd.errors import TypeMismatch, UnsupportedFunction, UnsupportedType
from spmd.frontend.attributes import node_tag
from spmd.frontend.lowering import Lowering
from spmd.frontend.operations import Condition, identity, tag_test
from spmd.frontend.python_calls import known
from spmd.frontend.scope import Facts
from spmd.frontend.values import (
    NONE,
    Abstract,
    Choice,
    Const,
    Excerpt,
    Leaf,
    Node,
    Run,
    Static,
    Struct,
    class_of,
    describe,
)

GETTER: type = type(namedtuple("GETTER", "field").field)  # type: ignore[attr-defined]
"""What a field of a NamedTuple is on its class."""


@dataclass(frozen=True)
class Maker:
    """How a class builds its objects: the parameters of the function that was generated for it; those of `made` have a
    default that is made by a call."""

    kind: str
    function: types.FunctionType
    positional: tuple[str, ...]
    names: tuple[str, ...]
    made: frozenset[str] = frozenset()

    def default(self, name: str) -> Any:
        """What a parameter is when it is not given; MISSING where it must be."""
        function = self.function
        late = dict(zip(reversed(self.positional), reversed(function.__defaults__ or ())))
        return {**late, **(function.__kwdefaults__ or {})}.get(name, dataclasses.MISSING)


def construct(low: Lowering, cls: type, args: list[Abstract], kwargs: dict[str, Abstract], node: Any) -> Abstract:
    """A NamedTuple or a dataclass built from its fields."""
    maker = _maker(low, cls, node)
    names = maker.positional
    if len(args) > len(names) or set(kwargs) - set(maker.names) or set(names[: len(args)]) & set(kwargs):
        only = [n for n in maker.names if n not in names]
        text = f"{cls.__name__}() has the fields {', '.join(maker.names)}"
        raise low.error(TypeMismatch, text + (f" ({', '.join(only)} by keyword only)" if only else ""), node)
    bound = {name: low.hold(thing) for name, thing in [*zip(names, args), *kwargs.items()]}
    for name in maker.names:
        if name in bound:
            continue
        if name in maker.made:
            raise low.error(UnsupportedFunction, f"the default_factory of '{name}' of {cls.__name__} cannot be called "
                            "in lanes", node, f"pass {name}= to the call.")
        default = maker.default(name)
        if default is dataclasses.MISSING:
            raise low.error(TypeMismatch, f"{cls.__name__}() missing required argument: '{name}'", node)
        bound[name] = known(low, default, node)
    return Struct(maker.kind, cls, maker.names, tuple(bound[n] for n in maker.names))


def _maker(low: Lowering, cls: type, node: Any) -> Maker:
    """How the class builds its objects; refused where code of its own would run, or where there are no fields."""
    named = issubclass(cls, tuple) and hasattr(cls, "_fields")
    if not named and not dataclasses.is_dataclass(cls):
        raise low.error(UnsupportedFunction, f"objects of class '{cls.__name__}' cannot be built in lanes", node,
                        "a NamedTuple or a dataclass can.")
    maker = _of_namedtuple(cls) if named else _of_dataclass(cls)
    if maker is None or type(cls).__call__ is not type.__call__ or inspect.isabstract(cls):
        text = f"'{cls.__name__}' does more than store its fields when it is built, which cannot run in lanes"
        raise low.error(UnsupportedFunction, text, node,
                        "leave out __init__, __new__, __post_init__, InitVar and field(init=False), and compute what "
                        "they do before the call.")
    for name in ("__new__", "__init__"):
        low.sp.globals.note_attribute(cls, name)
    return maker


def _of_namedtuple(cls: Any) -> Maker | None:
    """The maker of a NamedTuple, None unless its __new__ is the generated one."""
    new, fields = cls.__new__, tuple(cls._fields)
    if not isinstance(new, types.FunctionType) or cls.__init__ is not object.__init__:
        return None
    own = str(new.__globals__.get("__name__", "")).startswith("namedtuple_")
    if not own or _parameters(new) != (fields, fields):
        return None
    if not all(isinstance(inspect.getattr_static(cls, n, None), GETTER) for n in fields):
        return None
    return Maker("namedtuple", new, fields, fields)


def _of_dataclass(cls: Any) -> Maker | None:
    """The maker of a dataclass, None unless its __init__ is the generated one and stores the fields, nothing more."""
    init, fields = cls.__init__, dataclasses.fields(cls)
    if not isinstance(init, types.FunctionType) or cls.__new__ is not object.__new__ or hasattr(cls, "__post_init__"):
        return None
    code, frozen = init.__code__, cls.__dataclass_params__.frozen
    if code.co_filename != "<string>" or not getattr(code, "co_qualname", "__create_fn__").startswith("__create_fn__"):
        return None
    if not frozen and cls.__setattr__ is not object.__setattr__:
        return None
    positional, names = _parameters(init)
    ordered = tuple(f.name for f in fields)
    if set(names) != set(ordered) or not all(_is_stored(cls, n) for n in ordered):
        return None
    made = frozenset(f.name for f in fields if f.default_factory is not dataclasses.MISSING)
    return Maker("dataclass", init, positional, ordered, made)


def _parameters(function: types.FunctionType) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The parameters behind the first that can be given by position, and all of them."""
    code = function.__code__
    names, count = code.co_varnames, code.co_argcount
    return names[1:count], names[1 : count + code.co_kwonlyargcount]


def _is_stored(cls: type, name: str) -> bool:
    """Whether a field is read as it was written: no property stands in its place."""
    found = inspect.getattr_static(cls, name, None)
    return isinstance(found, types.MemberDescriptorType) or not hasattr(type(found), "__set__")


# ---------------------------------------------------------------------------------------------- isinstance
def isinstance_test(low: Lowering, node: Any) -> Condition | None:
    """isinstance(x, C) with what it shows, or None if the call is another one."""
    if not isinstance(node.func, (gast.Name, gast.Constant)) or len(node.args) != 2 or node.keywords:
        return None
    callee = low.expression(node.func) if isinstance(node.func, gast.Constant) else (
        low.scope.names.get(node.func.id) or low.sp.globals.resolve(low.definition.function, node.func.id)
    )
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
        tests = {k: _instance(low, thing.alternatives[k], classes, node) for k in left}
        if all(t is not None for t in tests.values()):
            return tag_test(low, thing.tag, left, frozenset(k for k, t in tests.items() if t))
        return Condition(low.spread(thing, lambda one: Leaf(low.value(instance_of(low, one, classes, node).value))))
    answer = _instance(low, thing, classes, node)
    if answer is not None:
        return Condition(Const(answer))
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


def _instance(low: Lowering, thing: Abstract, classes: tuple[type, ...], node: Any) -> bool | None:
    """The answer where it is known now; None where the row's class decides."""
    thing = low.settled(thing)
    if isinstance(thing, Choice):
        answers = {_instance(low, a, classes, node) for a in thing.alternatives}
        return answers.pop() if len(answers) == 1 else None
    if isinstance(thing, (Const, Leaf, Excerpt, Struct, Run)):
        return issubclass(class_of(thing), classes)
    if isinstance(thing, Node):
        layout = low.sp.layouts[thing.table]
        none = thing.nullable and isinstance(None, classes)
        if not none and not any(issubclass(cls, classes) for cls, _ in layout.classes):
            return False
        return None
    if isinstance(thing, Static):
        return isinstance(thing.value, classes)
    raise low.error(UnsupportedType, f"isinstance of {describe(thing)} is not supported", node,
                    "test what it is made of.")
