"""Builtins that are no arithmetic: len, range, enumerate, zip, reversed, tuple, list, dict.

The invariant: each rule gives what Python's builtin would give, or refuses; it never gives a copy where Python would
give the thing itself and the difference could be seen.
"""

from __future__ import annotations

import operator
from collections import deque
from dataclasses import replace
from typing import Any

import gast
import numpy as np

from spmd.errors import TypeMismatch, UnsupportedFunction, UnsupportedSyntax
from spmd.frontend.attributes import dimension
from spmd.frontend.comprehensions import comprehension, mapped
from spmd.frontend.iterables import fixed, iterable, make_enumerate, make_range, make_reversed, make_zip
from spmd.frontend.iteration import Iterable
from spmd.frontend.library import call_numpy
from spmd.frontend.list_sorting import sorted_call
from spmd.frontend.lists import grown, grown_item, is_list, length, varying
from spmd.frontend.lowering import Lowering
from spmd.frontend.operations import binary, both, negated, truth
from spmd.frontend.orderings import ordered
from spmd.frontend.queues import make
from spmd.frontend.runs import (
    as_column,
    demand_empty,
    extremum,
    first_beyond,
)
from spmd.frontend.strings import (
    CALLS,
)
from spmd.frontend.values import (
    UNBOUND,
    Abstract,
    Const,
    Grown,
    Leaf,
    Run,
    Struct,
    Table,
    describe,
    is_number,
    is_text,
    list_of,
    tuple_of,
)
from spmd.frontend.writes import add_at
from spmd.ir.core import Op
from spmd.ir.types import Num
from spmd.ops.arguments import bind, needed
from spmd.ops.numpy_elementwise import as_bool
from spmd.ops.table import NUMPY, PRIMITIVES, may_raise


def _len(low: Lowering, args: list[Abstract], kwargs: dict[str, Abstract], node: Any) -> Abstract:
    if len(args) != 1 or kwargs:
        raise low.error(TypeMismatch, "len() takes exactly one argument", node)
    own = low.overloaded("__len__", args, node)
    return own if own is not None else low.spread(args[0], lambda one: _length(low, one, node))


def _length(low: Lowering, thing: Abstract, node: Any) -> Abstract:
    if isinstance(thing, Struct) and thing.kind != "dataclass":
        return Const(len(thing.items))
    if is_text(thing):
        return low.strings.length(thing)
    if isinstance(thing, (Run, Grown, Table)):
        return length(low, thing.entries if isinstance(thing, Table) else thing)
    if isinstance(thing, Leaf) and thing.type.rank:
        return dimension(low, thing, 0)
    if isinstance(thing, Iterable) and not thing.once:
        return thing.count
    raise low.error(TypeMismatch, f"{describe(thing)} has no len()", node)


def _sequence(low: Lowering, args: list[Abstract], kwargs: dict[str, Abstract], node: Any, kind: str) -> Abstract:
    """tuple(x) and list(x)."""
    make = list_of if kind == "list" else tuple_of
    if not args:
        return make(())
    if len(args) > 1 or kwargs:
        raise low.error(TypeMismatch, f"{kind}() takes one argument", node)
    thing = low.settled(args[0])
    if isinstance(thing, Run):
        return Run(thing.value, thing.item, thing.fields, kind)
    if isinstance(thing, Grown) and kind == "list":
        return thing
    things = iterable(low, thing, node)
    if things.items is not None:
        return make(things.items)
    if things.rebuild is None:
        raise low.error(UnsupportedFunction, f"{kind}() of {describe(thing)} cannot run in lanes", node)
    made = mapped(low, things, {}, lambda inner, item: item, ("items", kind), kind)
    return Run(made.value, made.item, made.fields, kind)


def _any_all(
    low: Lowering, args: list[Abstract], kwargs: dict[str, Abstract], node: Any, conjunction: bool
) -> Abstract:
    """any(x) and all(x) of what has been computed."""
    name = "all" if conjunction else "any"
    if len(args) != 1 or kwargs:
        raise low.error(TypeMismatch, f"{name}() takes exactly one argument", node)
    thing = low.settled(args[0])
    if isinstance(thing, Struct):
        things = iterable(low, thing, node)
        result: Abstract = Const(conjunction)
        for item in things.items or ():
            test = truth(low, item, node).value
            joined = both(low, result, test) if conjunction else negated(
                low, both(low, negated(low, result), negated(low, test)))
            result = joined
        return result
    if isinstance(thing, Run) and thing.item is UNBOUND:
        demand_empty(low, thing)
        return Const(conjunction)
    column = as_column(low, thing, node) if isinstance(thing, (Run, Grown)) else low.value(thing, node)
    if not isinstance(column.type, Num) or column.type.rank != 1 or column.type.text:
        raise low.error(UnsupportedFunction, f"{name}() of {describe(thing)} cannot run in lanes", node,
                        "it needs a list or an array of numbers or truth values.")
    tests = low.attempt(lambda: as_bool(low.b, column), node)
    found = low.b.emit(name, tests, axes=(0,), keepdims=False)
    return Leaf(low.b.emit("cast", found, dtype="bool", python=True))


def _extremum(low: Lowering, args: list[Abstract], kwargs: dict[str, Abstract], node: Any, function: Any) -> Abstract:
    """max() and min(): of a list or array here, of separate numbers by their own rule."""
    if len(args) == 1 and set(kwargs) == {"key"}:
        return _by_key(low, args[0], kwargs["key"], node, function)
    if len(args) == 1 and not kwargs:
        thing = low.settled(args[0])
        if isinstance(thing, (Run, Grown)) or isinstance(thing, Leaf) and thing.type.rank:
            return extremum(low, thing, function.__name__, node)
    if len(args) > 1 and not kwargs:
        things = [low.settled(a) for a in args]
        if all(isinstance(t, Struct) and t.kind in ("tuple", "namedtuple") for t in things):
            return _first_extreme(low, things, ">" if function is max else "<", node)
    return call_numpy(low, function, NUMPY[function], args, kwargs, node)


def _by_key(low: Lowering, thing: Abstract, key: Abstract, node: Any, function: Any) -> Abstract:
    """max(xs, key=f) and min(xs, key=f): the first item whose key is beyond those before it."""
    held = low.settled(thing)
    if not is_list(held):
        raise low.error(UnsupportedFunction, f"{function.__name__}() of {describe(held)} with a key cannot run in "
                        "lanes", node, "pass a list.")
    whole = varying(low, grown(low, held, (), node))
    keys = mapped(low, iterable(low, whole, node), {},
                  lambda inner, one: inner.apply(key, [one], {}, node), ("key", function), "key")
    place = first_beyond(low, keys, function.__name__, node)
    return grown_item(low, whole, place)


def _first_extreme(low: Lowering, things: list[Abstract], symbol: str, node: Any) -> Abstract:
    """max() and min() of tuples: the first one that no other comes before."""
    best = things[0]
    for thing in things[1:]:
        better = ordered(low, symbol, thing, best, node)
        assert better is not None
        if isinstance(better, Const):
            best = thing if better.value else best
            continue
        chosen = low.branch(low.value(better), (lambda: thing, lambda: best), live=low.scope.names)  # noqa: B023
        assert chosen is not None
        best = chosen
    return best


def over_generator(low: Lowering, function: Any, node: Any) -> Abstract:
    """A function of a generator: where all items are needed, or where computing one can have no other effect, that is
    the function of a list."""
    rule = BUILTINS.get(function) if function in (max, min, list, tuple, any, all) else None
    if function is not sum and rule is None or len(node.args) != 1 and function is not sum:
        raise low.error(UnsupportedSyntax, "a generator cannot run in lanes here", node.args[0],
                        "write a list: [... for ...].")
    start = len(low.b.block.ops)
    args = [comprehension(low, a) if isinstance(a, gast.GeneratorExp) else low.expression(a) for a in node.args]
    kwargs = {k.arg: low.expression(k.value) for k in node.keywords}
    if function in (any, all) and not _harmless(low, low.b.block.ops[start:]):
        text = f"{function.__name__}() of a generator whose items may raise cannot run in lanes"
        raise low.error(UnsupportedSyntax, text, node.args[0], "write a list, which computes all items: [... for ...].")
    low.locate(node)
    if rule is not None:
        return rule(low, args, kwargs, node)
    return call_numpy(low, function, NUMPY[function], args, kwargs, node)


OBSERVABLE = frozenset({"call", "loop", "guard", "raise", "nonnull", "item"})


def _harmless(low: Lowering, ops: list[Op]) -> bool:
    """Whether ops neither raise nor run on: computing them for nothing cannot be observed."""
    for op in ops:
        inner = [o for block in op.blocks for o in block.walk()]
        if op.name == "map":
            callee = low.sp.module.functions.get(op.attrs["function"])
            if callee is None or not _harmless(low, [o for o in callee.body.ops if not o.terminator]):
                return False
        elif op.name in OBSERVABLE or op.name in PRIMITIVES and may_raise(op):
            return False
        elif not _harmless(low, [o for o in inner if o.name not in ("yield", "return")]):
            return False
    return True


def _range(low: Lowering, args: list[Abstract], kwargs: dict[str, Abstract], node: Any) -> Abstract:
    if kwargs or not 1 <= len(args) <= 3:
        raise low.error(TypeMismatch, "range takes one to three integers", node)
    return make_range(low, args, node)


def _enumerate(low: Lowering, args: list[Abstract], kwargs: dict[str, Abstract], node: Any) -> Iterable:
    bound = low.attempt(lambda: bind("enumerate", "iterable start", args, kwargs), node)
    (thing,) = low.attempt(lambda: needed("enumerate", bound, "iterable"), node)
    start = low.settled(bound.get("start", Const(0)))
    if not is_number(start) or low.value(start, node).type.kind not in "iub":  # type: ignore[union-attr]
        raise low.error(TypeMismatch, f"enumerate starts from an integer, not {describe(start)}", node)
    things = iterable(low, thing, node)
    if things.items is None or isinstance(start, Const):
        return make_enumerate(low, [things, start], node)
    begin = Leaf(low.b.emit("cast", low.value(start), dtype="int64", python=True))
    rows = [(binary(low, "+", operator.add, begin, Const(k), node), x) for k, x in enumerate(things.items)]
    return fixed(tuple(map(tuple_of, rows)), [things], lambda k: tuple_of((rows[k][0], things.item(k))))


def _zip(low: Lowering, args: list[Abstract], kwargs: dict[str, Abstract], node: Any) -> Iterable:
    """zip(): with `strict`, only of lengths that are known now to be equal, as Python raises after the last items."""
    strict = low.attempt(lambda: bind("zip", "strict", (), kwargs), node).get("strict", Const(False))
    things = [iterable(low, a, node) for a in args]
    known = {t.count.value if isinstance(t.count, Const) else None for t in things}
    if not isinstance(strict, Const) or strict.value and things[1:] and (None in known or len(known) > 1):
        raise low.error(UnsupportedFunction, "zip(strict=...) cannot run in lanes here", node,
                        "assert that the lengths are equal, and zip without 'strict'.")
    return make_zip(low, list(things), node)


def _reversed(low: Lowering, args: list[Abstract], kwargs: dict[str, Abstract], node: Any) -> Iterable:
    if len(args) != 1 or kwargs:
        raise low.error(TypeMismatch, "reversed() takes exactly one argument", node)
    thing = low.chosen(args[0])
    if isinstance(thing, Iterable) and thing.once:
        raise low.error(TypeMismatch, f"{describe(thing)} cannot be reversed", node, "reverse the sequence itself.")
    return make_reversed(low, [thing], node)


def _dict(low: Lowering, args: list[Abstract], kwargs: dict[str, Abstract], node: Any) -> Abstract:
    """dict(a=..., b=...) and dict(d, a=...): the dictionary's own keys come first, in their places."""
    if len(args) > 1:
        raise low.error(TypeMismatch, f"dict() takes at most one argument, {len(args)} were given", node)
    given = low.settled(args[0]) if args else Struct("dict", dict, (), ())
    if not isinstance(given, Struct) or given.kind != "dict" or given.cls is not dict:
        raise low.error(UnsupportedFunction, f"dict() of {describe(given)} cannot run in lanes", node,
                        "name the keys: dict(a=..., b=...), or pass a dictionary.")
    merged = {**dict(zip(given.names, given.items)), **kwargs}
    return Struct("dict", dict, tuple(merged), tuple(merged.values()))


def _once(things: Iterable) -> Iterable:
    return replace(things, once=True)


BUILTINS: dict[Any, Any] = {
    len: _len,
    range: _range,
    enumerate: lambda low, args, kwargs, node: _once(_enumerate(low, args, kwargs, node)),
    zip: lambda low, args, kwargs, node: _once(_zip(low, args, kwargs, node)),
    reversed: lambda low, args, kwargs, node: _once(_reversed(low, args, kwargs, node)),
    any: lambda low, args, kwargs, node: _any_all(low, args, kwargs, node, False),
    all: lambda low, args, kwargs, node: _any_all(low, args, kwargs, node, True),
    max: lambda low, args, kwargs, node: _extremum(low, args, kwargs, node, max),
    min: lambda low, args, kwargs, node: _extremum(low, args, kwargs, node, min),
    tuple: lambda low, args, kwargs, node: _sequence(low, args, kwargs, node, "tuple"),
    list: lambda low, args, kwargs, node: _sequence(low, args, kwargs, node, "list"),
    dict: _dict,
    np.add.at: lambda low, args, kwargs, node: add_at(low, args, kwargs, node, 1),
    np.subtract.at: lambda low, args, kwargs, node: add_at(low, args, kwargs, node, -1),
    set: lambda low, args, kwargs, node: make(low, "set", args, kwargs, node),
    deque: lambda low, args, kwargs, node: make(low, "deque", args, kwargs, node),
    sorted: lambda low, args, kwargs, node: sorted_call(low, args, kwargs, mapped, node),
    **CALLS,
}
