"""Calls of methods: of arrays, records, dictionaries and packed objects.

The invariant: the method that runs is the one that Python would find on the object's class, whichever of its classes an
object has.
"""

from __future__ import annotations

from typing import Any

from spmd.errors import TypeMismatch, UnsupportedAttribute
from spmd.frontend import queues, tables
from spmd.frontend.attributes import class_attribute, node_field, node_tag, present
from spmd.frontend.comprehensions import mapped
from spmd.frontend.identities import Object
from spmd.frontend.joins import part_of
from spmd.frontend.library import call_numpy
from spmd.frontend.list_methods import METHODS as LIST_METHODS
from spmd.frontend.list_methods import list_method
from spmd.frontend.list_sorting import sort
from spmd.frontend.lists import is_list
from spmd.frontend.lowering import Lowering
from spmd.frontend.operations import tag_test
from spmd.frontend.python_calls import call_python
from spmd.frontend.strings import (
    text_method,
)
from spmd.frontend.subscripts import (
    by_key,
)
from spmd.frontend.values import (
    Abstract,
    Const,
    Grown,
    Leaf,
    Method,
    Node,
    Struct,
    Table,
    describe,
    is_text,
)
from spmd.ops.table import METHODS


def call_method(
    low: Lowering, method: Method, args: list[Abstract], kwargs: dict[str, Abstract], node: Any
) -> Abstract:
    """owner.name(*args, **kwargs)"""
    owner = low.settled(method.owner)
    if isinstance(owner, Grown) and owner.kind != "list":
        low.needs_objects()
        assert isinstance(method.owner, Object)
        _takes(low, method.name, 0, 9, args, kwargs, node)
        return queues.method(low, method.owner, owner, method.name, args, node)
    if method.function is None and is_list(owner) and method.name == "sort":
        low.needs_objects()
        held = low.hold(method.owner)
        assert isinstance(held, Object)
        return sort(low, held, owner, args, kwargs, mapped, node)
    if method.function is None and is_list(owner) and method.name in LIST_METHODS:
        return _of_list(low, method, args, kwargs, node)
    if method.function is not None:
        own = low.chosen(method.owner)  # the object: the method may write to it
        return call_python(low, method.function, [own if isinstance(own, Object) else owner, *args], kwargs, node)
    if is_text(owner):
        return text_method(low, owner, method.name, args, kwargs, node)
    if isinstance(owner, Leaf) and method.name in METHODS:
        rule = METHODS[method.name]
        return call_numpy(low, method.name, rule, [owner, *args], kwargs, node)
    if isinstance(owner, Struct) and owner.kind == "dict" and method.name == "get" and args:
        key = low.settled(args[0])
        if is_text(key) and not isinstance(key, Const):
            _takes(low, "get", 1, 2, args, kwargs, node)
            return by_key(low, owner, key, node, default=args[1] if len(args) > 1 else Const(None))
    if isinstance(owner, Struct) and owner.kind == "dict" and method.name in ("get", "pop") and args:
        if not tables.known_key(low, args[0])[1] or method.name == "pop":
            owner = tables.table(low, owner, (), node)
    if isinstance(owner, Table):
        return _of_table(low, method, owner, args, kwargs, node)
    if isinstance(owner, Struct) and owner.kind == "dict":
        found = _dict_method(low, method, owner, args, kwargs, node)
        if found is not None:
            return found
    if isinstance(owner, Struct) and owner.kind == "namedtuple" and method.name == "_replace":
        _takes(low, method.name, 0, 0, args, {}, node)
        return _replaced(low, owner, kwargs, node)
    if isinstance(owner, Struct) and owner.kind == "namedtuple" and method.name == "_asdict":
        _takes(low, method.name, 0, 0, args, kwargs, node)
        return Struct("dict", dict, owner.names, owner.items)
    if isinstance(owner, Node):
        return _dispatched(low, owner, method.name, args, kwargs, node)
    text = f"{describe(owner)} has no method '{method.name}' that can run in lanes"
    raise low.error(UnsupportedAttribute, text, node)


def _of_list(
    low: Lowering, method: Method, args: list[Abstract], kwargs: dict[str, Abstract], node: Any
) -> Abstract:
    """A method of a list, which may write into it."""
    low.needs_objects()
    if kwargs:
        raise low.error(TypeMismatch, f"{method.name}() takes no keyword arguments", node)
    owner = low.hold(method.owner)
    assert isinstance(owner, Object)
    found = list_method(low, owner, method.name, args, node)
    assert found is not None
    return found


def _of_table(
    low: Lowering, method: Method, held: Table, args: list[Abstract], kwargs: dict[str, Abstract], node: Any
) -> Abstract:
    """A method of a dictionary whose keys are known when the program runs."""
    name = method.name
    if name in ("keys", "values", "items"):
        _takes(low, name, 0, 0, args, kwargs, node)
        return _part(low, method, held)
    if name == "get":
        _takes(low, name, 1, 2, args, kwargs, node)
        return tables.get(low, held, args[0], args[1] if len(args) > 1 else Const(None), node)
    if name == "pop":
        _takes(low, name, 1, 2, args, kwargs, node)
        low.needs_objects()
        assert isinstance(method.owner, Object)
        return tables.delete(low, method.owner, held, args[0], args[1] if len(args) > 1 else None, node)
    raise low.error(UnsupportedAttribute, f"a dict has no method '{name}' that can run in lanes", node)


def _part(low: Lowering, method: Method, held: Abstract) -> Abstract:
    """d.keys(), d.values(), d.items()"""
    owner = low.chosen(method.owner)
    return low.memory.part(owner, method.name) if isinstance(owner, Object) and low.memory is not None else (
        part_of(held, method.name))


def _replaced(low: Lowering, owner: Struct, changes: dict[str, Abstract], node: Any) -> Abstract:
    if set(changes) - set(owner.names):
        raise low.error(TypeMismatch, f"{owner.cls.__name__} has the fields {', '.join(map(str, owner.names))}", node)
    items = tuple(changes.get(n, item) for n, item in zip(owner.names, owner.items))
    return Struct(owner.kind, owner.cls, owner.names, items)


def _takes(
    low: Lowering, name: str, least: int, most: int, args: list[Abstract], kwargs: dict[str, Abstract], node: Any
) -> None:
    """Refuses what a method does not take."""
    if kwargs:
        raise low.error(TypeMismatch, f"{name}() takes no keyword arguments", node)
    if not least <= len(args) <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        raise low.error(TypeMismatch, f"{name}() takes {wanted} arguments, {len(args)} were given", node)


def _dict_method(
    low: Lowering, method: Method, owner: Struct, args: list[Abstract], kwargs: dict[str, Abstract], node: Any
) -> Abstract | None:
    name = method.name
    if name in ("items", "keys", "values", "get"):
        _takes(low, name, int(name == "get"), 2 * int(name == "get"), args, kwargs, node)
    if name in ("items", "keys", "values"):
        return _part(low, method, owner)
    if name == "get" and isinstance(args[0], Const):
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
        return low.apply(found, args, kwargs, node)
    test = tag_test(low, tag, classes, frozenset({first}))
    result = low.branch(
        low.value(test.value),
        (
            lambda: low.apply(class_attribute(low, owner, layout.classes[first][0], name, node), args, kwargs, node),
            lambda: low.apply(node_field(low, owner, name, node), args, kwargs, node),
        ),
        (test.yes, test.no),
        low.scope.names,
    )
    assert result is not None
    return result
