"""Strings in the language: items, slices, characters to run over, methods, ord, chr, int and float.

The invariant: each rule gives what Python's str gives, errors included, for strings that are known now as for those
that differ between examples; what would make a string that is no part of one is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spmd.errors import TypeMismatch, UnsupportedAttribute, UnsupportedFunction, UnsupportedType
from spmd.frontend.iteration import Iterable
from spmd.frontend.library import call_numpy
from spmd.frontend.lowering import Lowering
from spmd.frontend.operations import both, end_in_error, folds, guard, negated, truth
from spmd.frontend.values import Abstract, Const, Excerpt, Leaf, Struct, describe, is_number, is_text
from spmd.ir.core import Value
from spmd.ir.types import Num
from spmd.ops.table import NUMPY

COUNT = Num("int64")
TESTS = frozenset({
    "isalnum", "isalpha", "isdecimal", "isdigit", "islower", "isnumeric", "isspace", "istitle", "isupper",
})
CHANGES = frozenset({
    "lower", "upper", "casefold", "swapcase", "title", "capitalize", "strip", "lstrip", "rstrip",
})
SEARCHES = frozenset({"find", "rfind", "index", "rindex", "count", "startswith", "endswith"})


# ------------------------------------------------------------------------------------------------ items and slices
def character(low: Lowering, thing: Abstract, index: Any, node: Any) -> Abstract:
    """s[i] and s[a:b:c]"""
    if isinstance(index, tuple):
        return _slice(low, thing, index, node)
    if not is_number(index) or low.value(index).type.kind not in "iub":  # type: ignore[union-attr]
        raise low.error(TypeMismatch, f"string indices must be integers, not {describe(index)}", node)
    if isinstance(thing, Const) and isinstance(index, Const):
        if -len(thing.value) <= index.value < len(thing.value):
            return Const(thing.value[index.value])
        end_in_error(low, (IndexError, ("string index out of range",)))
    b, own = low.b, low.strings.excerpt(thing)
    place = low.strings.plain(low.value(index))
    inside = b.emit("logical_and", b.emit("lt", place, own.length), b.emit("ge", place, b.emit("neg", own.length)))
    guard(low, inside, (IndexError, ("string index out of range",)))
    if not isinstance(index, Const) or index.value < 0:
        place = _from_front(low, place, own.length)
    return low.strings.letter(own.start, own.step, place)


def _from_front(low: Lowering, place: Value, length: Value) -> Value:
    b = low.b
    return b.emit("where", b.emit("lt", place, low.strings.place(0)), b.emit("add", place, length), place)


def _slice(low: Lowering, thing: Abstract, bounds: tuple[Any, ...], node: Any) -> Abstract:
    ends = [low.settled(p) for p in bounds]
    known = [p.value for p in (thing, *ends) if isinstance(p, Const)]
    if len(known) == 4:
        found = folds(lambda s, *parts: s[slice(*parts)], *known)
        if found is not None:
            return found
    if not isinstance(ends[2], Const) or not isinstance(ends[2].value, (int, type(None))):
        raise low.error(UnsupportedType, "a slice's step must be a constant", node)
    step = 1 if ends[2].value is None else int(ends[2].value)
    if not step:
        end_in_error(low, (ValueError, ("slice step cannot be zero",)))
    b, strings, own = low.b, low.strings, low.strings.excerpt(thing)
    least, most = strings.place(0), own.length  # between these lie the bounds, as Python clips them
    if step < 0:
        least, most = strings.place(-1), b.emit("sub", own.length, strings.place(1))
    first, last = (least, most) if step > 0 else (most, least)
    start, stop = (_bound(low, end, (least, most), default, own.length, node)
                   for end, default in zip(ends[:2], (first, last)))
    gap = b.emit("sub", stop, start) if step > 0 else b.emit("sub", start, stop)
    if abs(step) > 1:
        gap = b.emit("floordiv", b.emit("add", gap, strings.place(abs(step) - 1)), strings.place(abs(step)))
    count = b.emit("maximum", gap, strings.place(0))
    at = b.emit("add", own.start, strings.times(own.step, start))
    stride = own.step if step == 1 else strings.times(own.step, strings.place(step))
    return Excerpt(at, count, stride)


def _bound(
    low: Lowering, end: Abstract, limits: tuple[Value, Value], default: Value, length: Value, node: Any
) -> Value:
    """A bound of a slice, clipped as Python does: a negative one counts from the end."""
    if isinstance(end, Const) and end.value is None:
        return default
    if not is_number(end) or low.value(end).type.kind not in "iub":  # type: ignore[union-attr]
        text = f"slice indices must be integers or None, not {describe(end)}"
        raise low.error(TypeMismatch, text, node)
    place = _from_front(low, low.strings.plain(low.value(end)), length)
    return low.b.emit("minimum", low.b.emit("maximum", place, limits[0]), limits[1])


def over_characters(low: Lowering, thing: Abstract) -> Iterable:
    """A string as something to run over."""
    own = low.strings.excerpt(thing)

    def letter(start: Value, step: Value, place: Value) -> Abstract:
        inner = low.sp.current()
        return inner.strings.letter(start, step, inner.strings.plain(place))

    sources = ((None, "index", COUNT), (own.start, "same", COUNT), (own.step, "same", COUNT))
    return Iterable(low.strings.length(own), lambda i: letter(own.start, own.step, i), sources,
                    lambda values: letter(values[1], values[2], values[0]), shape=("str",))


# ------------------------------------------------------------------------------------------------ methods
def text_method(
    low: Lowering, owner: Abstract, name: str, args: list[Abstract], kwargs: dict[str, Abstract], node: Any
) -> Abstract:
    """owner.name(*args) of a string."""
    args = [low.settled(a) for a in args]
    if isinstance(owner, Const) and not kwargs and all(isinstance(a, Const) for a in args):
        found = folds(getattr(str, name), owner.value, *(a.value for a in args))  # type: ignore[attr-defined]
        if found is not None:
            return found
    if not kwargs and name in SEARCHES and 1 <= len(args) <= 3:
        return _search(low, owner, name, args, node)
    if not kwargs and not args and name in TESTS:
        return low.strings.tested(name, owner)
    if not kwargs and not args and name in CHANGES:
        if isinstance(owner, Leaf):
            return low.strings.changed(name, owner)
        raise low.error(UnsupportedFunction, f"{name}() of a slice of a string cannot run in lanes", node,
                        f"call it before slicing, s.{name}()[a:b], or on one character.")
    raise low.error(UnsupportedAttribute, f"{name}() of a string cannot run in lanes", node,
                    "strings can be indexed, sliced, compared, searched, and run over.")


def _search(low: Lowering, owner: Abstract, name: str, args: list[Abstract], node: Any) -> Abstract:
    part, *ends = args
    if isinstance(part, Struct) and part.kind == "tuple" and name in ("startswith", "endswith"):
        found: Abstract = Const(False)
        for one in part.items:
            test = _search(low, owner, name, [low.settled(one), *ends], node)
            found = negated(low, both(low, negated(low, found), negated(low, test)))
        return found
    if not is_text(part):
        raise low.error(TypeMismatch, f"{name}() of a string takes a string, not {describe(part)}", node)
    bounds: tuple[Value, ...] = ()
    if any(not (isinstance(e, Const) and e.value is None) for e in ends):
        defaults = (low.strings.place(0), low.strings.place(2**63 - 1))
        bounds = tuple(_place(low, ends[k] if k < len(ends) else Const(None), defaults[k], node) for k in range(2))
    way = {"index": "find", "rindex": "rfind"}.get(name, name)
    value = low.strings.search(way, owner, part, *bounds)
    if name in ("startswith", "endswith"):
        return Leaf(low.b.emit("cast", value, dtype="bool", python=True))
    if way != name:
        guard(low, low.b.emit("ge", value, low.strings.place(0)), (ValueError, ("substring not found",)))
    return Leaf(low.b.emit("cast", value, dtype="int64", python=True))


def _place(low: Lowering, end: Abstract, default: Value, node: Any) -> Value:
    if isinstance(end, Const) and end.value is None:
        return default
    if not is_number(end) or low.value(end).type.kind not in "iub":  # type: ignore[union-attr]
        raise low.error(TypeMismatch, f"slice indices must be integers or None, not {describe(end)}", node)
    return low.strings.plain(low.value(end))


# ------------------------------------------------------------------------------------------------ builtins
def _spread(rule: Callable[..., Abstract], function: Any) -> Callable[..., Abstract]:
    """The rule for a string as the first argument; for anything else the function's rule for numbers, if it has one."""

    def call(low: Lowering, args: list[Abstract], kwargs: dict[str, Abstract], node: Any) -> Abstract:
        args = [low.settled(args[0]), *args[1:]] if args else args

        def run(one: Abstract) -> Abstract:
            given = [one, *args[1:]]
            if is_text(one) or function in (ord, chr):
                return rule(low, [low.settled(a) for a in given], kwargs, node)
            settled = [low.settled(a) for a in given], {k: low.settled(a) for k, a in kwargs.items()}
            return call_numpy(low, function, NUMPY[function], *settled, node)

        if args:
            return low.spread(args[0], run)
        return call_numpy(low, function, NUMPY[function], [], kwargs, node)

    return call


def _ord(low: Lowering, args: list[Abstract], kwargs: dict[str, Abstract], node: Any) -> Abstract:
    if len(args) != 1 or kwargs or not is_text(args[0]):
        shown = describe(args[0]) if len(args) == 1 else f"{len(args)} arguments"
        raise low.error(TypeMismatch, f"ord() expected a string of length 1, but {shown} found", node)
    (thing,) = args
    if isinstance(thing, Const):
        if len(thing.value) == 1:
            return Const(ord(thing.value))
        text = f"ord() expected a character, but string of length {len(thing.value)} found"
        end_in_error(low, (TypeError, (text,)))
    length = low.strings.excerpt(thing).length
    number = low.strings.number(thing)
    return Leaf(low.b.emit("ord", number, length))


def _chr(low: Lowering, args: list[Abstract], kwargs: dict[str, Abstract], node: Any) -> Abstract:
    if len(args) != 1 or kwargs or not is_number(args[0]) or low.value(args[0]).type.kind not in "iub":  # type: ignore[union-attr]
        raise low.error(TypeMismatch, "chr() takes one integer", node)
    (thing,) = args
    if isinstance(thing, Const):
        found = folds(chr, thing.value)
        if found is not None:
            return found
    return Leaf(low.b.emit("chr", low.b.emit("cast", low.value(thing), dtype="int64", python=True)))


def _int(low: Lowering, args: list[Abstract], kwargs: dict[str, Abstract], node: Any) -> Abstract:
    base = args[1] if len(args) > 1 else kwargs.get("base", Const(10))
    if len(args) > 2 or set(kwargs) - {"base"} or not isinstance(base, Const) or type(base.value) is not int:
        raise low.error(UnsupportedFunction, "int() of a string takes a base that is known now", node)
    if base.value != 0 and not 2 <= base.value <= 36:
        end_in_error(low, (ValueError, ("int() base must be >= 2 and <= 36, or 0",)))
    return _number(low, "strint", args[0], int, (base.value,), {"base": base.value})


def _float(low: Lowering, args: list[Abstract], kwargs: dict[str, Abstract], node: Any) -> Abstract:
    if len(args) != 1 or kwargs:
        raise low.error(TypeMismatch, f"float() takes one argument, {len(args)} were given", node)
    return _number(low, "strfloat", args[0], float, (), {})


def _number(
    low: Lowering, name: str, thing: Abstract, kind: Any, more: tuple[Any, ...], attrs: dict[str, Any]
) -> Abstract:
    if isinstance(thing, Const):
        try:
            return Const(kind(thing.value, *more))
        except ValueError as error:
            end_in_error(low, (ValueError, error.args))
    return Leaf(low.strings.read(name, thing, **attrs))


def _bool(low: Lowering, args: list[Abstract], kwargs: dict[str, Abstract], node: Any) -> Abstract:
    if len(args) != 1 or kwargs:
        raise low.error(TypeMismatch, "bool() takes one argument", node)
    return truth(low, args[0], node).value


CALLS: dict[Any, Callable[..., Abstract]] = {
    ord: _spread(_ord, ord), chr: _spread(_chr, chr), int: _spread(_int, int), float: _spread(_float, float),
    bool: _spread(_bool, bool),
}
