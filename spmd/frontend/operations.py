"""Operators on bound things: arithmetic, equality, membership, identity, truth.

The invariant: what is computed from constants alone is computed now, an operand that is one of several kinds is spread
over its kinds, and what a test shows of rows and tags is told with its truth value.
"""

from __future__ import annotations

import dataclasses
import inspect
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import gast
import numpy as np

from spmd.errors import TypeMismatch, UnsupportedSyntax, UnsupportedType
from spmd.frontend.compounds import Format
from spmd.frontend.identities import Object
from spmd.frontend.iteration import Iterable
from spmd.frontend.lowering import Lowering
from spmd.frontend.paths import Dead
from spmd.frontend.scope import NO_FACTS, Facts
from spmd.frontend.values import (
    NONE,
    Abstract,
    Choice,
    Const,
    Excerpt,
    Grown,
    Leaf,
    Node,
    Run,
    Static,
    Struct,
    Table,
    describe,
    is_text,
    list_of,
    tuple_of,
)
from spmd.ir.core import Value
from spmd.ir.types import BOOL, INT, Num
from spmd.ops import operators

BINARY = {
    gast.Add: ("+", operator.add), gast.Sub: ("-", operator.sub), gast.Mult: ("*", operator.mul),
    gast.Div: ("/", operator.truediv), gast.FloorDiv: ("//", operator.floordiv), gast.Mod: ("%", operator.mod),
    gast.Pow: ("**", operator.pow), gast.MatMult: ("@", operator.matmul), gast.BitAnd: ("&", operator.and_),
    gast.BitOr: ("|", operator.or_), gast.BitXor: ("^", operator.xor), gast.LShift: ("<<", operator.lshift),
    gast.RShift: (">>", operator.rshift),
}
COMPARE = {
    gast.Lt: ("<", operator.lt), gast.LtE: ("<=", operator.le), gast.Gt: (">", operator.gt),
    gast.GtE: (">=", operator.ge), gast.Eq: ("==", operator.eq), gast.NotEq: ("!=", operator.ne),
}
RELATIONS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}
UNARY: dict[type, tuple[str, Callable[..., Any]]] = {
    gast.USub: ("-", operator.neg), gast.UAdd: ("+", operator.pos), gast.Invert: ("~", operator.invert),
}


def end_in_error(low: Lowering, error: tuple[Any, tuple[Any, ...]]) -> NoReturn:
    """The example that gets here raises."""
    low.b.insert("raise", (), (), {"error": error})
    raise Dead


def guard(low: Lowering, cond: Value, error: tuple[Any, tuple[Any, ...]]) -> None:
    """The example raises unless `cond`."""
    low.b.insert("guard", [cond], (), {"error": error})


# ---------------------------------------------------------------------------------------------- special methods
BUILTIN = (object, tuple, list, dict)
EQUALITY = ("__eq__", "__ne__")
GENERATED = (*EQUALITY, "__lt__", "__le__", "__gt__", "__ge__")


def refuse_own(low: Lowering, classes: list[type], names: tuple[str, ...], node: Any) -> None:
    """Refuses what Python would answer by a method of the user's class: only the builtin answers are computed here."""
    for cls in classes:
        for name in names:
            if defines(cls, name):
                raise low.error(UnsupportedType, f"class '{cls.__name__}' defines its own {name}, which cannot run in "
                                "lanes here", node, "give the method a plain name, and call that.")


def defines(cls: type, name: str) -> bool:
    """Whether a class has a special method that neither a builtin class nor @dataclass made."""
    found = inspect.getattr_static(cls, name, None)
    if found is None or any(found is inspect.getattr_static(base, name, None) for base in BUILTIN):
        return False
    code = getattr(found, "__code__", None)
    return name not in GENERATED or code is None or code.co_filename != "<string>"  # where dataclasses make theirs


# ---------------------------------------------------------------------------------------------- arithmetic
def binary(low: Lowering, symbol: str, fold: Callable[..., Any], x: Abstract, y: Abstract, node: Any) -> Abstract:
    """`x symbol y` for numbers, arrays, strings and containers."""
    x, y = low.chosen(x), low.chosen(y)
    if isinstance(x, Choice):
        return low.spread(x, lambda one: binary(low, symbol, fold, one, y, node), keep=True)
    if isinstance(y, Choice):
        return low.spread(y, lambda one: binary(low, symbol, fold, x, one, node), keep=True)
    found = low.overloaded(symbol, [x, y], node)
    if found is not None:
        return found
    x, y = low.settled(x), low.settled(y)
    if isinstance(x, Choice) or isinstance(y, Choice):
        return binary(low, symbol, fold, x, y, node)
    if isinstance(x, Const) and isinstance(y, Const):
        folded = folds(fold, x.value, y.value)
        if folded is not None:
            return folded
    if is_text(x) and is_text(y) and symbol in RELATIONS:
        return low.strings.compared(RELATIONS[symbol], x, y)
    if symbol not in RELATIONS and (is_text(x) and not isinstance(x, Const) or is_text(y) and not isinstance(y, Const)):
        raise low.error(TypeMismatch, f"'{symbol}' of strings makes new strings, which cannot be done in lanes", node,
                        "collect the parts in a list, and join them outside.")
    if isinstance(x, Struct) and isinstance(y, Struct) and symbol == "+" and x.kind == y.kind in ("tuple", "list"):
        return (tuple_of if x.kind == "tuple" else list_of)(x.items + y.items)
    of_lists = low.rules.of_lists(low, symbol, x, y, node)
    if of_lists is not None:
        return of_lists
    if symbol in ("==", "!="):
        same = _equality(low, x, y, node)
        if same is not None:
            return negated(low, same) if symbol == "!=" else same
    values = [low.value(numeric(low, thing, node), node) for thing in (x, y)]
    return low.apart(Leaf(low.attempt(lambda: operators.binary(low.b, symbol, values[0], values[1]), node)))


def in_place(
    low: Lowering, symbol: str, fold: Callable[..., Any], x: Abstract, y: Abstract, node: Any
) -> Abstract:
    """What `x op= y` binds: by the method that the class of x has for it, else as `x op y`."""
    found = low.overloaded(f"__i{fold.__name__.strip('_')}__", [x, y], node)
    return found if found is not None else binary(low, symbol, fold, x, y, node)


def numeric(low: Lowering, thing: Abstract, node: Any) -> Abstract:
    """A thing as a number or array, where NumPy would make one of it."""
    if isinstance(thing, (Leaf, Const)) and thing is not NONE:
        return thing
    raise low.error(TypeMismatch, f"a number or array is needed here, not {describe(thing)}", node)


def folds(function: Callable[..., Any], *values: Any) -> Const | None:
    """The result on constants, if there is one and it is a constant too."""
    try:
        result = function(*values)
    except Exception:  # noqa: BLE001 (what Python raises here it raises when the example runs)
        return None
    if isinstance(result, (bool, int, float, complex, str)) and not isinstance(result, np.generic):
        if isinstance(result, int) and not -(2**63) <= result < 2**63:
            return None
        return Const(result)
    return None


def _equality(low: Lowering, x: Abstract, y: Abstract, node: Any) -> Abstract | None:
    """`==` of things that are not both numbers; None where the operator of numbers decides."""
    values = (Leaf, Const, Excerpt)
    if isinstance(x, values) and isinstance(y, values) and NONE.value not in _consts(x, y):
        if is_text(x) != is_text(y):
            _demand_scalar(low, x, y, node)
            return Const(False)
        return None
    if isinstance(x, Struct) and isinstance(y, Struct) and _by_items(x) and _by_items(x) == _by_items(y):
        if len(x.items) != len(y.items):
            return Const(False)
        result: Abstract = Const(True)
        for a, b in zip(x.items, y.items):
            result = both(low, result, same_item(low, a, b, node))
            if isinstance(result, Const) and not result.value:
                break
        return result
    if isinstance(x, Static) and isinstance(y, Static):
        return Const(x.value == y.value)
    for one, other in ((x, y), (y, x)):
        if isinstance(one, Const) and one.value is None:
            _demand_scalar(low, x, y, node)
            return identity(low, other, one).value
    raise low.error(UnsupportedType, f"{describe(x)} and {describe(y)} cannot be compared in lanes", node)


def _by_items(thing: Struct) -> Any:
    """What a container must share with another to be compared with it item by item; None where it is not."""
    if thing.kind == "dataclass":
        made = inspect.getattr_static(thing.cls, "__eq__")
        compared = all(f.compare for f in dataclasses.fields(thing.cls))
        return thing.cls if compared and made is not object.__eq__ and not defines(thing.cls, "__eq__") else None
    if thing.kind == "namedtuple":
        return "tuple" if thing.cls.__eq__ is tuple.__eq__ else None
    return thing.kind if thing.kind in ("tuple", "list") else None


def _demand_scalar(low: Lowering, x: Abstract, y: Abstract, node: Any) -> None:
    """Refuses what NumPy would compare item by item, although no item can be equal."""
    if any(isinstance(t, Leaf) and t.type.rank for t in (x, y)):
        raise low.error(UnsupportedType, f"{describe(x)} and {describe(y)} cannot be compared in lanes", node,
                        "an array can be compared with a number; 'is' is for None.")


def same_item(low: Lowering, x: Abstract, y: Abstract, node: Any) -> Abstract:
    """Whether containers take two items for the same: one and the same object (a NaN too), or of a true `==`."""
    x, y = low.settled(x), low.settled(y)
    if isinstance(x, Leaf) and isinstance(y, Leaf) and x.value is y.value and x.type.rank:
        raise low.error(UnsupportedType, "arrays in a container cannot be compared in lanes", node,
                        "compare them with np.all(a == b).")
    if _identical(x, y):
        return Const(True)
    return truth(low, binary(low, "==", operator.eq, x, y, node), node).value


def _identical(x: Abstract, y: Abstract) -> bool:
    """Whether two things are surely one Python object; arrays are not, as views of one array have its value here."""
    if isinstance(x, Const) and isinstance(y, Const):
        return x.value is y.value
    if isinstance(x, Struct) or isinstance(y, Struct):
        return x is y
    if not isinstance(x, (Leaf, Node, Run, Choice)) or type(x) is not type(y) or x.key() != y.key():
        return False
    pairs = list(zip(x.leaves(), y.leaves()))
    return all(a is b and not getattr(a.type, "rank", 0) for a, b in pairs)


def _consts(*things: Abstract) -> list[Any]:
    return [t.value for t in things if isinstance(t, Const)]


def both(low: Lowering, x: Abstract, y: Abstract) -> Abstract:
    """`x and y` of truth values, without a branch."""
    for one, other in ((x, y), (y, x)):
        if isinstance(one, Const):
            return other if one.value else one
    values = [low.value(x), low.value(y)]
    if values[0].type != values[1].type:  # Python's and NumPy's truth values
        values = [v if v.type == BOOL else low.b.emit("cast", v, dtype="bool", python=True) for v in values]
    return Leaf(low.b.emit("logical_and", *values))


def negated(low: Lowering, thing: Abstract) -> Abstract:
    if isinstance(thing, Const):
        return Const(not thing.value)
    return Leaf(low.attempt(lambda: operators.unary(low.b, "not", low.value(thing))))


# ---------------------------------------------------------------------------------------------- truth
@dataclass(frozen=True, eq=False)
class Condition:
    """A truth value (a constant or a bool leaf) and what holds where it is true and where it is false."""

    value: Abstract
    yes: Facts = NO_FACTS
    no: Facts = NO_FACTS

    def negated(self, low: Lowering) -> Condition:
        return Condition(negated(low, self.value), self.no, self.yes)


def truth(low: Lowering, thing: Abstract, node: Any) -> Condition:
    """bool(thing)."""
    thing = low.settled(thing)
    own = low.overloaded("__bool__", [thing], node)
    if own is not None:
        return truth(low, own, node)
    if isinstance(thing, Const):
        return Condition(Const(bool(thing.value)))
    if isinstance(thing, Leaf):
        if thing.type.text:
            empty = low.converter.number(Const(""), thing.type)
            return Condition(Leaf(low.b.emit("ne", thing.value, empty)))
        return Condition(Leaf(low.attempt(lambda: operators.truth(low.b, thing.value), node)))
    if isinstance(thing, Excerpt):
        return Condition(Leaf(low.b.emit("gt", thing.length, low.strings.place(0))))
    if isinstance(thing, Struct):
        return Condition(Const(len(thing.items) > 0 or thing.kind == "dataclass"))
    if isinstance(thing, Run):
        length = low.b.insert("length", [thing.value], [INT]).result
        return Condition(Leaf(low.b.emit("gt", length, low.b.const(0))))
    if isinstance(thing, (Grown, Table)):
        count = thing.entries.count if isinstance(thing, Table) else thing.count
        return Condition(Leaf(low.b.emit("gt", count, low.converter.constant(0, Num("int64")))))
    if isinstance(thing, Node):
        if any(hasattr(cls, "__bool__") or hasattr(cls, "__len__") for cls, _ in low.sp.layouts[thing.table].classes):
            raise low.error(UnsupportedType, "truth of an object with __bool__ or __len__ cannot run in lanes", node)
        return identity(low, thing, NONE).negated(low)
    if isinstance(thing, Choice):
        return Condition(low.spread(thing, lambda one: Leaf(low.value(truth(low, one, node).value))))
    if isinstance(thing, Iterable) and not thing.once:
        return truth(low, thing.count, node)
    if isinstance(thing, Format):
        raise low.error(UnsupportedType, "a formatted string has no truth value in lanes", node)
    return Condition(Const(True))


def contains(low: Lowering, x: Abstract, container: Abstract, node: Any) -> Abstract:
    own = low.overloaded("__contains__", [container, x], node)
    if own is not None:
        return truth(low, own, node).value
    container = low.settled(container)
    if is_text(container):
        return low.spread(x, lambda one: _in_text(low, one, container, node))
    of_lists = low.rules.of_lists(low, "in", x, container, node)
    if of_lists is not None:
        return of_lists
    if isinstance(container, Struct) and container.kind == "dict":
        if isinstance(x, Const):
            return Const(x.value in container.names)
        if isinstance(x, Excerpt) or isinstance(x, Leaf) and not x.type.rank:
            return contains(low, x, tuple_of(tuple(Const(n) for n in container.names)), node)
        if isinstance(x, Struct):
            return low.rules.has(low, container, x, node)
    elif isinstance(container, Struct) and container.kind in ("tuple", "list"):
        result: Abstract = Const(False)
        for item in container.items:
            same = same_item(low, x, item, node)
            result = negated(low, both(low, negated(low, result), negated(low, same)))
        return result
    raise low.error(UnsupportedType, f"'in' {describe(container)} cannot run in lanes", node)


def _in_text(low: Lowering, part: Abstract, whole: Abstract, node: Any) -> Abstract:
    """`part in whole` of strings."""
    if not is_text(part):
        raise low.error(TypeMismatch, f"'in <string>' requires string as left operand, not {describe(part)}", node)
    if isinstance(part, Const) and isinstance(whole, Const):
        return Const(part.value in whole.value)
    return low.strings.contains(part, whole)


def identity(low: Lowering, x: Abstract, y: Abstract, node: Any = None) -> Condition:
    """`x is y`, where one of them is None, or both are known now."""
    if isinstance(x, Const) and x.value is None:
        x, y = y, x
    x, y = low.chosen(x), low.chosen(y)
    if isinstance(x, Object) and isinstance(y, Object):
        return _same_object(low, x, y, node)
    x, y = low.settled(x), low.settled(y)
    if isinstance(y, Const) and y.value is None:
        return _is_none(low, x)
    if isinstance(x, Node) and isinstance(y, Node) and x.table == y.table:
        return Condition(Leaf(low.b.insert("same", [x.value, y.value], [BOOL]).result))
    if isinstance(x, Static) and isinstance(y, Static):
        return Condition(Const(x.value is y.value))
    if isinstance(y, Const) and isinstance(y.value, bool):
        if isinstance(x, Const):
            return Condition(Const(x.value is y.value))
        if isinstance(x, Leaf) and x.type == BOOL:
            return Condition(binary(low, "==", operator.eq, x, y, node))
    raise low.error(UnsupportedSyntax, f"'is' between {describe(x)} and {describe(y)} cannot run in lanes", node,
                    "compare with ==; 'is' is for None.")


def _same_object(low: Lowering, x: Object, y: Object, node: Any) -> Condition:
    """Whether two mutable things are one object. A view is another object than its array, and none of the input's."""
    if x.ident == y.ident:
        return Condition(Const(True))
    assert low.memory is not None
    if low.memory.cell(x).fixed or low.memory.cell(y).fixed:
        raise low.error(UnsupportedSyntax, "'is' between these cannot run in lanes", node, "compare with ==.")
    return Condition(Const(False))


def _is_none(low: Lowering, x: Abstract) -> Condition:
    if isinstance(x, Const):
        return Condition(Const(x.value is None))
    if isinstance(x, Node):
        if low.is_nonnull(x):
            return Condition(Const(False))
        test = low.b.insert("isnull", [x.value], [BOOL]).result
        return Condition(Leaf(test), NO_FACTS, Facts(frozenset({x.value})))
    if isinstance(x, Choice):
        left = low.possible(x)
        none = frozenset(k for k in left if isinstance(x.alternatives[k], Const) and x.alternatives[k] is not None
                         and x.alternatives[k].value is None)  # type: ignore[attr-defined]
        if any(isinstance(x.alternatives[k], Node) and x.alternatives[k].nullable for k in left):  # type: ignore[attr-defined]
            return Condition(low.spread(x, lambda one: Leaf(low.value(_is_none(low, one).value))))
        return tag_test(low, x.tag, left, none)
    return Condition(Const(False))


def tag_test(low: Lowering, tag: Value, left: frozenset[int], wanted: frozenset[int]) -> Condition:
    """Whether a tag, which may be any of `left`, is one of `wanted`."""
    wanted &= left
    if not wanted or wanted == left:
        return Condition(Const(bool(wanted)))
    few, flip = (wanted, False) if len(wanted) <= len(left) - len(wanted) else (left - wanted, True)
    test: Value | None = None
    for k in sorted(few):
        one = low.b.emit("eq", tag, low.converter.constant(k, tag.type))
        test = one if test is None else low.b.emit("logical_or", test, one)
    assert test is not None
    if flip:
        test = low.b.emit("logical_not", test)
    return Condition(Leaf(test), Facts(tags={tag: wanted}), Facts(tags={tag: left - wanted}))
