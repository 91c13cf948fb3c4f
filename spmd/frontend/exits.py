"""Ways out of a `try`: exceptions that something in this program catches, and jumps that pass a `finally`.

An exception that is caught is a jump: the thing that was raised is put under EXIT, and the path breaks off the
innermost IR loop. A `try` is a loop of one trip; behind each loop that was left so, what stands under EXIT goes on its
way. A function that is called where its exceptions are caught returns them, as `Exit('raise')`.

The invariant: a path ends here only if Python's would leave what it is in; an exception that nothing catches is raised
by the op itself, so that its text, place and order are the op's.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import numpy as np

from spmd.errors import UnsupportedType
from spmd.frontend.compounds import Error, Exit, Failed, Format
from spmd.frontend.lowering import Lowering
from spmd.frontend.operations import tag_test
from spmd.frontend.paths import Dead, LoopFrame
from spmd.frontend.values import UNBOUND, Abstract, Choice, Const, Leaf, Struct, around, describe, parts_of
from spmd.ir.core import Value
from spmd.ir.types import BOOL, INT, Type
from spmd.ops.outcomes import CODE, built, classes
from spmd.ops.table import PRIMITIVES

FEW = 2
EXIT = "#exit"
"""The name under which a way out is carried; no name of the user's can be this."""


@dataclass(eq=False)
class TryFrame(LoopFrame):
    """A `try` being lowered. `catches`: what its handlers name, or everything where there is a `finally`.
    `keeps`: what was raised may be raised again."""

    catches: tuple[type, ...] = ()
    keeps: bool = False
    final: bool = False


# ---------------------------------------------------------------------------------------------- what is caught
def caught(low: Lowering) -> tuple[type, ...]:
    """The exceptions that something around the current place catches."""
    found = {*low.caught}
    for frame in low.loops:
        if isinstance(frame, TryFrame):
            found |= {*frame.catches}
    return tuple(sorted(found, key=lambda cls: (cls.__module__, cls.__qualname__)))


def keeps(low: Lowering) -> bool:
    """Whether what is caught may be raised again."""
    return low.keeps or any(isinstance(frame, TryFrame) and frame.keeps for frame in low.loops)


def watch(low: Lowering) -> None:
    """Has the builder show ops, if anything is caught."""
    low.b.watcher = partial(_watched, low) if caught(low) else None


def _watched(low: Lowering, name: str, operands: Sequence[Value], types: Sequence[Type], attrs: dict[str, Any]) -> None:
    """Emits a test before an op that may raise what is caught."""
    if name in ("raise", "guard", "nonnull"):
        kind, args = attrs["error"]
        cls = getattr(builtins, kind) if isinstance(kind, str) else kind
        if not issubclass(cls, caught(low)):
            return
        error = Error(cls, tuple(map(Const, args)))
        if name == "raise":
            throw(low, error)
        if name == "guard":
            low.branch(operands[0], (lambda: None, lambda: throw(low, error)))
        elif operands[0] not in low.scope.facts.nonnull:
            null = low.b.insert("isnull", operands, [BOOL]).result
            low.branch(null, (lambda: throw(low, error), lambda: None))
    elif name == "item":
        if issubclass(IndexError, caught(low)):
            _item(low, *operands)
    elif name in PRIMITIVES and name != "complain":
        _primitive(low, name, operands, attrs)


def _item(low: Lowering, run: Value, index: Value) -> None:
    length = low.b.insert("length", [run], [INT]).result
    number = low.b.emit("cast", index, dtype="int64", python=False)
    count = low.b.emit("cast", length, dtype="int64", python=False)
    above = low.b.emit("ge", number, low.b.emit("neg", count))
    fits = low.b.emit("logical_and", above, low.b.emit("lt", number, count))
    error = Error(IndexError, (Const("list index out of range"),))
    low.branch(fits, (lambda: None, lambda: throw(low, error)))


def _primitive(low: Lowering, name: str, operands: Sequence[Value], attrs: dict[str, Any]) -> None:
    record = PRIMITIVES[name]
    if not record.raises([v.type for v in operands], attrs):
        return
    handled = caught(low)
    possible = [(k, cls) for k, cls in classes() if issubclass(cls, record.errors)]
    wanted = [k for k, cls in possible if issubclass(cls, handled)]
    if not wanted:
        return
    code = low.b.emit("fails", *operands, op=name, attrs=dict(attrs))
    again = (name, attrs) if keeps(low) else None
    parts = (Leaf(code), *(map(Leaf, operands) if again else ()))
    failed = low.b.emit("ne", code, low.converter.constant(0, CODE)) if len(wanted) == len(possible) else (
        any_of(low, code, wanted)
    )
    low.branch(failed, (lambda: throw(low, Failed(again, parts)), lambda: None))


def any_of(low: Lowering, code: Value, wanted: Sequence[int]) -> Value:
    """Whether a code is one of `wanted`."""
    if len(wanted) > FEW:
        table = np.zeros(len(classes()) + 1, bool)
        table[list(wanted)] = True
        found = low.b.emit("take", low.b.const(table), code, axis=0, exact=True)
        return low.b.emit("cast", found, dtype="bool", python=True)
    test: Value | None = None
    for k in wanted:
        one = low.b.emit("eq", code, low.converter.constant(k, CODE))
        test = one if test is None else low.b.emit("logical_or", test, one)
    assert test is not None
    return test


# ---------------------------------------------------------------------------------------------- leaving
def throw(low: Lowering, thing: Abstract) -> NoReturn:
    """Raises an exception: a jump where something catches it, else for good."""
    if isinstance(thing, Error) and not issubclass(thing.cls, caught(low)):
        _raise(low, thing)
    if isinstance(thing, Failed) and thing.again is not None:
        _throw_failed(low, thing)
    if not caught(low):  # the codes that no handler takes do not come here
        low.b.insert("unreachable", (), ())
        raise Dead
    if any(isinstance(frame, TryFrame) for frame in low.loops):
        _off(low, Exit("raise", (thing,)))
    low.end(low.returns, Exit("raise", (thing,)))


def demand(low: Lowering, cond: Value, thing: Error) -> None:
    """Raises an exception unless `cond`."""
    low.branch(cond, (lambda: Const(None), lambda: throw(low, thing)), live=low.scope.names)


def _throw_failed(low: Lowering, thing: Failed) -> None:
    """Raises for good what is caught no more."""
    wanted = [k for k, cls in classes() if issubclass(cls, caught(low))]
    if not wanted:
        _again(low, thing)
    code = thing.parts[0]
    assert isinstance(code, Leaf)
    low.branch(any_of(low, code.value, wanted), (lambda: None, lambda: _again(low, thing)))


def _off(low: Lowering, thing: Exit) -> NoReturn:
    """Breaks off the innermost loop."""
    low.scope.names[EXIT] = thing
    low.end(low.loops[-1].breaks)


def leave(low: Lowering, thing: Exit) -> NoReturn:
    """Goes on a way out."""
    if thing.kind == "raise":
        throw_any(low, thing.parts[0])
    if thing.kind == "return":
        finish(low, thing.parts[0])
    jump(low, thing.kind)


def throw_any(low: Lowering, thing: Abstract) -> NoReturn:
    """Raises one of several exceptions."""
    cases(low, thing, lambda one: throw(low, one), ())
    raise Dead


def jump(low: Lowering, kind: str) -> NoReturn:
    """`break` or `continue` of the innermost loop of the program's."""
    frame = low.loops[-1]
    if isinstance(frame, TryFrame):
        _off(low, Exit(kind))
    low.end(frame.breaks if kind == "break" else frame.continues)


def finish(low: Lowering, thing: Abstract) -> NoReturn:
    """`return thing`."""
    if any(isinstance(frame, TryFrame) and frame.final for frame in low.loops):
        _off(low, Exit("return", (thing,)))
    low.end(low.returns, thing)


def go_on(low: Lowering, live: frozenset[str]) -> None:
    """Behind a loop: what has left it otherwise than by its end or its own `break` goes on its way."""
    thing = low.scope.names.pop(EXIT, UNBOUND)
    if thing is not UNBOUND:
        cases(low, thing, lambda one: None if one is UNBOUND else leave(low, _exit(one)), live)


def _exit(thing: Abstract) -> Exit:
    assert isinstance(thing, Exit)
    return thing


def returned(low: Lowering, result: Abstract) -> Abstract:
    """What a call gives: an exception that it returns, as it is caught here, is raised here."""
    ways = result.alternatives if isinstance(result, Choice) else (result,)
    if not any(isinstance(way, Exit) for way in ways):
        return result
    given: list[Abstract] = []

    def run(one: Abstract) -> Abstract:
        if isinstance(one, Exit):
            leave(low, one)
        given.append(one)
        return one

    found = cases(low, result, run, low.scope.names)
    if not given or found is None:
        raise Dead
    return found


def cases(
    low: Lowering, thing: Abstract, run: Callable[[Abstract], Abstract | None], live: Any
) -> Abstract | None:
    """`run` for each alternative that a thing may be, behind a test of its tag."""
    thing = low.settled(thing)
    if not isinstance(thing, Choice):
        return run(thing)
    left = low.possible(thing)
    first = min(left)
    test = tag_test(low, thing.tag, left, frozenset({first}))
    return low.branch(
        low.value(test.value),
        (lambda: cases(low, thing, run, live), lambda: cases(low, thing, run, live)),
        (test.yes, test.no),
        live,
    )


# ---------------------------------------------------------------------------------------------- raising for good
def _raise(low: Lowering, thing: Error) -> NoReturn:
    several = _several(low, thing)
    if several is not None:
        cases(low, several, lambda one: _raise(low, _with(low, thing, several, one)), ())
        raise Dead
    with low.b.quiet():
        operands: list[Value] = []
        args = tuple(_template(low, part, operands) for part in thing.parts)
        given: tuple[Any, ...] = ()
        if operands:
            low.b.emit("complain", *operands, error=(thing.cls, args), spell=low.sp.spell)
        else:
            given = tuple(built(template, (), low.sp.spell) for template in args)
        low.b.insert("raise", (), (), {"error": (thing.cls, given)})
    raise Dead


def _several(low: Lowering, thing: Abstract) -> Choice | None:
    """Something in a thing that is one of several kinds."""
    thing = low.settled(thing)
    if isinstance(thing, Choice):
        return thing
    return next((found for part in parts_of(thing) if (found := _several(low, part)) is not None), None)


def _with(low: Lowering, thing: Any, old: Choice, new: Abstract) -> Any:
    """The thing with one of its alternatives in a union's place."""
    if low.settled(thing) is old:
        return new
    parts = parts_of(thing)
    return around(thing, tuple(_with(low, part, old, new) for part in parts)) if parts else thing


def _again(low: Lowering, thing: Failed) -> NoReturn:
    """Runs the operation that failed once more, and so raises its exception."""
    assert thing.again is not None
    name, attrs = thing.again
    with low.b.quiet():
        low.b.emit(name, *(low.value(part) for part in thing.parts[1:]), **attrs)
        low.b.insert("raise", (), (), {"error": (Exception, ())})
    raise Dead


def _template(low: Lowering, thing: Abstract, operands: list[Value]) -> Any:
    """An argument of an exception as `spmd.ops.outcomes` builds it; its leaves are added to `operands`."""
    thing = low.settled(thing)
    if isinstance(thing, Const):
        return ("value", thing.value)
    if isinstance(thing, Leaf):
        operands.append(thing.value)
        return ("text" if thing.type.text else "given", len(operands) - 1)
    if isinstance(thing, Format):
        parts: list[Any] = [thing.texts[0]]
        for k, (conversion, text) in enumerate(zip(thing.conversions, thing.texts[1:])):
            value, spec = (_template(low, part, operands) for part in thing.parts[2 * k : 2 * k + 2])
            parts += [(value, conversion, spec), text]
        return ("format", tuple(parts))
    if isinstance(thing, Struct) and thing.kind in ("tuple", "list", "namedtuple", "dict") and thing.cls is not None:
        items = tuple(_template(low, item, operands) for item in thing.items)
        head = {"namedtuple": ("record", thing.cls), "dict": ("dict", thing.names)}.get(thing.kind, (thing.kind,))
        return (*head, items)
    raise low.error(UnsupportedType, f"an exception cannot hold {describe(thing)} in lanes", None,
                    "numbers, strings, arrays and tuples of them can be in its text.")
