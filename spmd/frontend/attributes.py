"""`thing.name`: fields and methods of objects, fields of records, attributes of arrays and modules.

The invariant: an attribute that Python would not find raises AttributeError for that example where it depends on data
(None in place of an object, a class without the field), and is refused where no example could have it.
"""

from __future__ import annotations

import inspect
import types
from dataclasses import replace
from typing import Any

import numpy as np

from spmd.errors import StructureError, UnsupportedAttribute, UnsupportedFunction
from spmd.frontend.identities import INPUT
from spmd.frontend.lowering import Lowering
from spmd.frontend.names import MISSING, NodeLayout, attribute_of, source_of_name, static
from spmd.frontend.operations import end_in_error, guard, tag_test
from spmd.frontend.python_calls import call_python
from spmd.frontend.scope import Facts
from spmd.frontend.values import (
    TAG,
    UNBOUND,
    Abstract,
    Choice,
    Const,
    Excerpt,
    Grown,
    Leaf,
    Method,
    Node,
    Run,
    Static,
    Struct,
    Table,
    class_of,
    describe,
    tuple_of,
)
from spmd.ir.core import Value
from spmd.ir.types import Ref
from spmd.ops.calculus import constant
from spmd.ops.numpy_shapes import size_of
from spmd.ops.promotion import as_value

RECORD_METHODS = frozenset({"_replace", "_asdict"})


def attribute(low: Lowering, thing: Abstract, name: str, node: Any) -> Abstract:
    """thing.name"""
    return low.spread(thing, lambda one: _attribute_of(low, one, name, node), keep=True)


def _attribute_of(low: Lowering, thing: Abstract, name: str, node: Any) -> Abstract:
    """An attribute of what an object holds; a method keeps the object itself."""
    held = low.settled(thing)
    if isinstance(held, Choice):
        return low.spread(held, lambda one: _attribute(low, one, one, name, node))
    found = _attribute(low, held, thing, name, node)
    return replace(found, owner=thing) if isinstance(found, Method) and found.owner is held else found


def _attribute(low: Lowering, thing: Abstract, owner: Abstract, name: str, node: Any) -> Abstract:
    """`owner` is what methods and properties get as their self: the object that holds the thing, if one does."""
    if isinstance(thing, Static):
        return _of_static(low, thing, name, node)
    if isinstance(thing, Node):
        return node_field(low, thing, name, node)
    if isinstance(thing, Struct):
        return _of_struct(low, thing, owner, name, node)
    if isinstance(thing, Leaf):
        return _of_array(low, thing, name, node)
    if isinstance(thing, Const) and thing.value is None:
        end_in_error(low, (AttributeError, (f"'NoneType' object has no attribute '{name}'",)))
    if isinstance(thing, (Run, Const, Grown, Table, Excerpt)):
        return _method_of(low, thing, class_of(thing), name, node)
    raise low.error(UnsupportedAttribute, f"{describe(thing)} has no attribute '{name}'", node)


def _method_of(low: Lowering, thing: Abstract, cls: type, name: str, node: Any) -> Method:
    """A method of a builtin kind of value. Where Python has none, something else stands where an object is needed."""
    if not hasattr(cls, name):
        raise low.error(StructureError, f"'{cls.__name__}' object has no attribute '{name}'", node,
                        f"it is read of {describe(thing)}; isinstance tells kinds apart.")
    return Method(thing, name)


def _of_static(low: Lowering, thing: Static, name: str, node: Any) -> Abstract:
    value = attribute_of(thing.value, name)
    if value is MISSING:
        raise low.error(UnsupportedAttribute, f"{describe(thing)} has no attribute '{name}'", node)
    found = static(value)
    if found is not None:
        low.sp.globals.note_attribute(thing.value, name)
        return found
    if not isinstance(thing.value, (type, types.ModuleType)):
        raise low.error(UnsupportedAttribute, f"attribute '{name}' of {describe(thing)} cannot be captured", node,
                        "pass it as an argument.")
    return low.hold(low.sp.globals.captured_attribute(thing.value, name), INPUT)


def _of_struct(low: Lowering, thing: Struct, owner: Abstract, name: str, node: Any) -> Abstract:
    if thing.kind in ("namedtuple", "dataclass"):
        item = thing.field(name)
        if item is not None:
            return item
        if thing.kind == "namedtuple" and name in RECORD_METHODS:
            return Method(thing, name)
        return class_attribute(low, owner, thing.cls, name, node)
    return _method_of(low, thing, thing.cls, name, node)


def _of_array(low: Lowering, thing: Leaf, name: str, node: Any) -> Abstract:
    type_ = thing.type
    if type_.python or type_.text:
        return _method_of(low, thing, class_of(thing), name, node)
    if name == "shape":
        return tuple_of(tuple(dimension(low, thing, k) for k in range(type_.rank)))
    if name == "ndim":
        return Const(type_.rank)
    if name == "dtype":
        return Const(np.dtype(type_.dtype))
    if name == "size":
        size = size_of(low.b, thing.value)
        return Const(size) if isinstance(size, int) else Leaf(size)
    if name == "mT" and type_.rank > 1:
        perm = (*range(type_.rank - 2), type_.rank - 1, type_.rank - 2)
        return Leaf(low.b.emit("transpose", thing.value, perm=perm))
    if name in ("real", "imag"):
        own = low.attempt(lambda: as_value(low.b, thing.value), node)
        return thing if name == "real" else Leaf(constant(low.b, 0, own))
    if name in ("itemsize", "nbytes") and (name == "itemsize" or type_.static):
        return Const(np.dtype(type_.dtype).itemsize * (type_.size if name == "nbytes" else 1))
    if name == "T":
        if type_.rank < 2:
            return thing
        return Leaf(low.b.emit("transpose", thing.value, perm=tuple(range(type_.rank))[::-1]))
    return _method_of(low, thing, class_of(thing), name, node)


def dimension(low: Lowering, thing: Leaf, axis: int) -> Abstract:
    """A size of an array: a constant where it is known."""
    size = thing.type.shape[axis]
    return Const(size) if size is not None else Leaf(low.b.emit("dim", thing.value, axis=axis))


# ---------------------------------------------------------------------------------------------- objects
def present(low: Lowering, thing: Node, name: str) -> Value:
    """The row of an object that is not None; the example in which it is None raises AttributeError."""
    if low.is_nonnull(thing):
        return low.assured(thing.value)
    error = (AttributeError, (f"'NoneType' object has no attribute '{name}'",))
    value = low.b.insert("nonnull", [thing.value], [Ref(thing.table)], {"error": error}).result
    low.scope.facts = low.scope.facts.both(Facts(frozenset({thing.value})))
    low.scope.loads[(thing.value, -1)] = value
    return value


def node_tag(low: Lowering, thing: Node, row: Value) -> tuple[Value | None, frozenset[int]]:
    """The class tag of an object's row, and the classes that it may be of."""
    layout = low.sp.layouts[thing.table]
    every = frozenset(range(len(layout.classes)))
    if layout.tag is None:
        return None, every
    tag = low.load(row, thing.table, layout.tag, TAG)
    return tag, low.scope.facts.tags.get(tag, every)


def node_field(low: Lowering, thing: Node, name: Any, node: Any) -> Abstract:
    """A field, method or property of an object."""
    layout = low.sp.layouts[thing.table]
    row = present(low, thing, name)
    tag, classes = node_tag(low, thing, row)
    having = frozenset(k for k in classes if name in layout.classes[k][1])
    if not having:
        return _by_class(low, Node(row), layout, tag, classes, name, node)
    if having != classes:
        assert tag is not None
        if any(inspect.getattr_static(layout.classes[k][0], name, MISSING) is not MISSING for k in classes - having):
            return _mixed(low, Node(row), layout, tag, (having, classes - having), name, node)
        _demand_field(low, tag, layout, classes, having, name)
    template, first = layout.fields[name]
    values = [low.load(row, thing.table, first + k, v.type) for k, v in enumerate(template.leaves())]
    return low.hold(template.replace(iter(values)), INPUT)


def _demand_field(
    low: Lowering, tag: Value, layout: NodeLayout, classes: frozenset[int], having: frozenset[int], name: Any
) -> None:
    """The example whose object is of a class without the field raises, with that class in its text."""
    left = classes
    for k in sorted(classes - having):
        test = tag_test(low, tag, left, left - {k})
        text = f"'{layout.classes[k][0].__name__}' object has no attribute '{name}'"
        guard(low, low.value(test.value), (AttributeError, (text,)))
        low.scope.facts = low.scope.facts.both(test.yes)
        left -= {k}


def _mixed(
    low: Lowering, thing: Node, layout: NodeLayout, tag: Value, parts: tuple[frozenset[int], frozenset[int]], name: Any,
    node: Any,
) -> Abstract:
    """A name that is a field of some classes and a method or property of others."""
    having, lacking = parts
    test = tag_test(low, tag, having | lacking, having)
    result = low.branch(
        low.value(test.value),
        (lambda: node_field(low, thing, name, node), lambda: _by_class(low, thing, layout, tag, lacking, name, node)),
        (test.yes, test.no),
        low.scope.names,
    )
    assert result is not None
    return result


def _by_class(
    low: Lowering, thing: Node, layout: NodeLayout, tag: Value | None, classes: frozenset[int], name: Any, node: Any
) -> Abstract:
    """A method, property or class attribute, looked up in the classes that the object may be of."""
    found = {k: inspect.getattr_static(layout.classes[k][0], str(name), MISSING) for k in classes}
    if all(value is MISSING for value in found.values()):
        names = " or ".join(sorted({layout.classes[k][0].__name__ for k in classes}))
        raise low.error(StructureError, f"objects of class {names} have no attribute '{name}'", node)
    if len({id(v) for v in found.values()}) == 1:
        return class_attribute(low, thing, layout.classes[min(classes)][0], str(name), node)
    if all(inspect.isfunction(v) for v in found.values()):
        return Method(thing, str(name))
    assert tag is not None
    return _of_each_class(low, thing, layout, tag, classes, str(name), node)


def _of_each_class(
    low: Lowering, thing: Node, layout: NodeLayout, tag: Value, classes: frozenset[int], name: str, node: Any
) -> Abstract:
    """A property or class attribute that differs between classes: looked up behind a test of the class."""
    first = min(classes)
    cls = layout.classes[first][0]

    def own() -> Abstract:
        if inspect.getattr_static(cls, name, MISSING) is MISSING:
            end_in_error(low, (AttributeError, (f"'{cls.__name__}' object has no attribute '{name}'",)))
        return class_attribute(low, thing, cls, name, node)

    if len(classes) == 1:
        return own()
    test = tag_test(low, tag, classes, frozenset({first}))
    result = low.branch(
        low.value(test.value),
        (own, lambda: _of_each_class(low, thing, layout, tag, classes - {first}, name, node)),
        (test.yes, test.no),
        low.scope.names,
    )
    assert result is not None
    return result


def class_attribute(low: Lowering, owner: Abstract, cls: type, name: str, node: Any) -> Abstract:
    """What a class says of `name`: a method bound to its owner, a property's value, or a constant."""
    value = inspect.getattr_static(cls, name, MISSING)
    low.sp.globals.note_attribute(cls, name)
    if isinstance(value, property):
        return call_python(low, value.fget, [owner], {}, node)
    if isinstance(value, staticmethod):
        return Static(value.__func__)
    if isinstance(value, classmethod):
        return Method(Static(cls), name, value.__func__)
    if inspect.isfunction(value):
        return Method(owner, name, value)
    if value is MISSING:
        raise low.error(StructureError, f"'{cls.__name__}' object has no attribute '{name}'", node)
    found = static(value)
    return found if found is not None else low.hold(low.sp.globals.captured_attribute(cls, name), INPUT)


# ---------------------------------------------------------------------------------------------- super()
def super_attribute(low: Lowering, name: str, node: Any) -> Abstract:
    """`super().name`: what comes after the method's own class in the order of the object's class."""
    function = low.definition.function
    cell = source_of_name(function, "__class__").read() if low.definition.level == 0 else MISSING
    first = next(iter(low.definition.parameters), "")
    itself = low.chosen(low.scope.names.get(first, UNBOUND))
    owner = low.settled(itself)
    hint = "name the class: Base.method(self)."
    if cell is MISSING or not isinstance(owner, (Node, Struct)):
        raise low.error(UnsupportedFunction, "this super() cannot run in lanes", node, hint)
    kinds = [owner.cls] if isinstance(owner, Struct) else [cls for cls, _ in low.sp.layouts[owner.table].classes]
    bases = {_behind(cls, cell, name) for cls in kinds if isinstance(cell, type) and issubclass(cls, cell)}
    base = bases.pop() if len(bases) == 1 else None
    if base is None:
        raise low.error(UnsupportedFunction, f"super().{name} differs between the classes of the object", node, hint)
    found = vars(base)[name]
    if not isinstance(found, property) and not inspect.isfunction(found):
        raise low.error(UnsupportedFunction, f"super().{name} is no method written in Python", node)
    return class_attribute(low, itself, base, name, node)


def _behind(cls: type, own: type, name: str) -> type | None:
    """The first class behind `own` in the order of `cls` that has an attribute."""
    order = cls.__mro__
    return next((c for c in order[order.index(own) + 1 :] if name in vars(c)), None)
