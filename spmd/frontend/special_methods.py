"""Special methods of the user's classes: `a + b`, `a < b`, `-a`, `a(x)`, `a[i]`, `len(a)`, `x in a`, the truth of `a`.

The invariant: the method that runs is the one that Python's protocol would call for the classes that an example's
objects have, reflected methods and NotImplemented included; what has no such method is left to the builtin rules.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from spmd.errors import TypeMismatch, UnsupportedType
from spmd.frontend.attributes import class_attribute, node_tag
from spmd.frontend.iteration import Iterable
from spmd.frontend.joins import alternatives
from spmd.frontend.lowering import Lowering
from spmd.frontend.operations import defines, end_in_error, negated, tag_test, truth
from spmd.frontend.values import Abstract, Const, Leaf, Node, Run, Static, Struct, class_of
from spmd.ir.types import BOOL, Ref

REFLECTED = {
    "+": ("__add__", "__radd__"), "-": ("__sub__", "__rsub__"), "*": ("__mul__", "__rmul__"),
    "/": ("__truediv__", "__rtruediv__"), "//": ("__floordiv__", "__rfloordiv__"), "%": ("__mod__", "__rmod__"),
    "**": ("__pow__", "__rpow__"), "@": ("__matmul__", "__rmatmul__"), "&": ("__and__", "__rand__"),
    "|": ("__or__", "__ror__"), "^": ("__xor__", "__rxor__"), "<<": ("__lshift__", "__rlshift__"),
    ">>": ("__rshift__", "__rrshift__"), "<": ("__lt__", "__gt__"), "<=": ("__le__", "__ge__"),
    ">": ("__gt__", "__lt__"), ">=": ("__ge__", "__le__"), "==": ("__eq__", "__eq__"), "!=": ("__ne__", "__ne__"),
}
IN_PLACE = {"__i" + method[2:]: symbol for symbol, (method, _) in REFLECTED.items() if symbol[0] not in "<>=!" or
            symbol in ("<<", ">>")}
EQUAL = ("==", "!=")
COMPARE = ("<", "<=", ">", ">=", *EQUAL)
PLAIN = (object.__eq__,)


def overloaded(
    low: Lowering, name: str, operands: list[Abstract], node: Any, named: dict[str, Abstract] | None = None
) -> Abstract | None:
    """The result of an operator or special method `name`, or None where no operand's class defines it."""
    names = REFLECTED.get(name, (name,))
    if not any(_may_define(low, thing, n) for thing, n in zip(operands, names)):
        return None
    if name in REFLECTED:
        x, y = operands
        return by_class(low, x, lambda a: by_class(low, y, lambda b: _binary(low, name, a, b, node)))
    owner, *rest = operands
    return by_class(low, owner, lambda one: _single(low, name, one, rest, named or {}, node))


def _classes(low: Lowering, thing: Abstract) -> list[type]:
    thing = low.settled(thing)
    if isinstance(thing, Node):
        return [cls for cls, _ in low.sp.layouts[thing.table].classes]
    return [thing.cls] if isinstance(thing, Struct) else []


def _may_define(low: Lowering, thing: Abstract, name: str) -> bool:
    names = {"__ne__": ("__ne__", "__eq__"), "__bool__": ("__bool__", "__len__")}.get(name, (name,))
    return any(defines(cls, n) for cls in _classes(low, thing) for n in names)


def by_class(low: Lowering, thing: Abstract, run: Callable[[Abstract], Abstract]) -> Abstract:
    """`run` for the thing as an object of one class that is not None, behind a test of its class."""
    thing = low.chosen(thing)
    if not isinstance(thing, Node):
        return run(thing)
    if not low.is_nonnull(thing):
        null = low.b.insert("isnull", [thing.value], [BOOL]).result
        empty: Callable[[], Abstract] = lambda: run(Const(None))  # noqa: E731
        present: Callable[[], Abstract] = lambda: by_class(low, _assured(low, thing), run)  # noqa: E731
        found = low.branch(null, (empty, present), live=low.scope.names)
        assert found is not None
        return found
    row = low.assured(thing.value)
    tag, left = node_tag(low, thing, row)
    if tag is None or len(left) == 1:
        return run(Node(row))
    test = tag_test(low, tag, left, frozenset({min(left)}))
    again: Callable[[], Abstract] = lambda: by_class(low, Node(row), run)  # noqa: E731
    found = low.branch(low.value(test.value), (again, again), (test.yes, test.no), low.scope.names)
    assert found is not None
    return found


def _assured(low: Lowering, thing: Node) -> Node:
    return Node(low.b.insert("assured", [thing.value], [Ref(thing.table)]).result)


def _class(low: Lowering, thing: Abstract) -> type | None:
    """The one class that an object is of (`by_class` has settled it)."""
    thing = low.settled(thing)
    if isinstance(thing, Node):
        layout = low.sp.layouts[thing.table]
        _, left = node_tag(low, thing, low.assured(thing.value))
        return layout.classes[min(left)][0]
    return class_of(thing) if isinstance(thing, (Const, Leaf, Struct, Run)) else None


def _own(cls: type | None, name: str) -> bool:
    return cls is not None and cls.__module__ not in ("builtins", "numpy") and defines(cls, name)


# ---------------------------------------------------------------------------------------------- two operands
def _binary(low: Lowering, symbol: str, x: Abstract, y: Abstract, node: Any) -> Abstract:
    """Python's protocol for two objects, each of one class."""
    if any(isinstance(t, Leaf) and not t.type.python for t in (low.settled(x), low.settled(y))):
        raise low.error(UnsupportedType, "NumPy's numbers and arrays with objects that define operators cannot run in "
                        "lanes", node, "call the method by name.")
    method, reflected = REFLECTED[symbol]
    cx, cy = _class(low, x), _class(low, y)
    calls = [(x, cx, method, y), (y, cy, reflected, x)]
    if cx is not None and cy is not None and cx is not cy and issubclass(cy, cx):
        if symbol in COMPARE or _overrides(cx, cy, reflected):
            calls.reverse()
    elif cx is cy and symbol not in COMPARE:
        calls = calls[:1]  # of one class, the reflected method is not asked
    for owner, cls, name, other in calls:
        found = _asked(low, owner, cls, name, other, node)
        if found is not None:
            return found
    if symbol in EQUAL:
        same = _same(low, x, y, node)
        return negated(low, same) if symbol == "!=" else same
    end_in_error(low, (TypeError, (_unsupported(symbol, cx, cy),)))


def _same(low: Lowering, x: Abstract, y: Abstract, node: Any) -> Abstract:
    """`==` where no method answers: one and the same object."""
    x, y = low.settled(x), low.settled(y)
    if isinstance(x, Node) and isinstance(y, Node):
        plain = all(inspect.getattr_static(_class(low, t), "__eq__", None) in PLAIN for t in (x, y))
        if plain or _class(low, x) is not _class(low, y):
            return Leaf(low.b.insert("same", [x.value, y.value], [BOOL]).result) if x.table == y.table else Const(False)
    elif isinstance(x, Const) and isinstance(y, Const):
        return Const(x.value == y.value)
    elif isinstance(x, (Const, Leaf)) != isinstance(y, (Const, Leaf)):
        return Const(False)
    raise low.error(UnsupportedType, "a comparison that no method of the program's answers cannot run in lanes", node)


def _overrides(cx: type, cy: type, name: str) -> bool:
    return inspect.getattr_static(cy, name, None) is not inspect.getattr_static(cx, name, None)


def _asked(low: Lowering, owner: Abstract, cls: type | None, name: str, other: Abstract, node: Any) -> Abstract | None:
    """What a method answers; None where there is none, or it answers NotImplemented."""
    inverted = name == "__ne__" and cls is not None and not defines(cls, "__ne__") and defines(cls, "__eq__")
    if not inverted and not _own(cls, name):
        return None
    assert cls is not None
    result = _call(low, owner, cls, "__eq__" if inverted else name, [other], node)
    if isinstance(result, Static) and result.value is NotImplemented:
        return None
    if any(isinstance(a, Static) for a in alternatives(result)):
        raise low.error(UnsupportedType, f"{cls.__name__}.{name} answers NotImplemented for some examples only", node,
                        "decide by the class of its argument.")
    return negated(low, truth(low, result, node).value) if inverted else result


def _unsupported(symbol: str, cx: type | None, cy: type | None) -> str:
    a, b = (c.__name__ if c is not None else "object" for c in (cx, cy))
    if symbol in ("<", "<=", ">", ">="):
        return f"'{symbol}' not supported between instances of '{a}' and '{b}'"
    symbol = "** or pow()" if symbol == "**" else symbol
    return f"unsupported operand type(s) for {symbol}: '{a}' and '{b}'"


# ---------------------------------------------------------------------------------------------- one operand
MISSING = {
    "__call__": "'{}' object is not callable", "__getitem__": "'{}' object is not subscriptable",
    "__len__": "object of type '{}' has no len()", "__contains__": "argument of type '{}' is not iterable",
    "__neg__": "bad operand type for unary -: '{}'", "__pos__": "bad operand type for unary +: '{}'",
    "__invert__": "bad operand type for unary ~: '{}'",
}


def _single(
    low: Lowering, name: str, owner: Abstract, rest: list[Abstract], named: dict[str, Abstract], node: Any
) -> Abstract:
    cls = _class(low, owner)
    if _own(cls, name):
        assert cls is not None
        result = _call(low, owner, cls, name, rest, node, named)
        if name in IN_PLACE and any(isinstance(a, Static) for a in alternatives(result)):
            raise low.error(UnsupportedType, f"{cls.__name__}.{name} answers NotImplemented, which cannot run in lanes",
                            node, "decide by the class of its argument.")
        return result
    if name == "__bool__":
        if isinstance(owner, Const):
            return Const(False)
        if not _own(cls, "__len__"):
            return Const(True)
        assert cls is not None
        return truth(low, _call(low, owner, cls, "__len__", [], node), node).value
    if name in IN_PLACE:
        return _not_in_place(low, IN_PLACE[name], owner, rest[0], node)
    title = cls.__name__ if cls is not None else "object"
    end_in_error(low, (TypeError, (MISSING.get(name, "'{}' object").format(title),)))


def _not_in_place(low: Lowering, symbol: str, x: Abstract, y: Abstract, node: Any) -> Abstract:
    """`x op= y` of a class that has no method for it, beside others that have."""
    found = low.overloaded(symbol, [x, y], node)
    if found is None:
        raise low.error(UnsupportedType, f"'{symbol}=' is a method of some of these classes only", node,
                        f"write x = x {symbol} y.")
    return found


def _call(
    low: Lowering, owner: Abstract, cls: type, name: str, args: list[Abstract], node: Any,
    named: dict[str, Abstract] | None = None,
) -> Abstract:
    if any(isinstance(a, Iterable) for a in args):
        raise low.error(TypeMismatch, "an iterator cannot be handed to a special method in lanes", node)
    if low.memory is not None and isinstance(owner, Struct):
        owner = low.hold(owner, "its special method is given what it holds, not the record itself")
    return low.apply(class_attribute(low, owner, cls, name, node), args, named or {}, node)
