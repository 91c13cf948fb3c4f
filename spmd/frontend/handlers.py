"""`try`: handlers for what its body raises, `else`, `finally`.

The body is a loop of one trip that every way out breaks off (see `exits`); what was raised is then told by its class.
`try: A except E: B else: C finally: D` is `try: (try: A except E: B else: C) finally: D`, and D runs once, before the
way out that was under way goes on. The invariant: handlers are asked in order, and what none takes goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gast

from spmd.errors import UnsupportedSyntax
from spmd.frontend.compounds import Error, Exit, Failed
from spmd.frontend.exits import EXIT, TryFrame, any_of, cases, leave, throw_any, watch
from spmd.frontend.loops import leave_loop
from spmd.frontend.lowering import Lowering
from spmd.frontend.paths import Dead
from spmd.frontend.values import UNBOUND, Abstract, Const, Leaf, Static, Struct, describe
from spmd.ir.core import Block
from spmd.ops.outcomes import classes

Handlers = list[tuple[Any, tuple[type, ...]]]


def try_(low: Lowering, s: Any) -> None:
    """A `try` statement."""
    liveness = low.definition.liveness
    if not s.finalbody:
        _guarded(low, s, liveness.after[s])
        return
    entry = liveness.entry[s]
    way = _attempt(low, s, TryFrame(catches=(BaseException,), keeps=True, final=True),
                   lambda: _guarded(low, s, entry) if s.handlers else low.block(s.body), entry)
    low.block(s.finalbody)
    cases(low, way, lambda one: leave(low, one) if isinstance(one, Exit) else None, liveness.after[s])


def _guarded(low: Lowering, s: Any, live: frozenset[str]) -> None:
    """The body, its handlers and `else`."""
    liveness = low.definition.liveness
    handlers = [(h, _classes(low, h)) for h in s.handlers]
    keeps = any(_raises_again(h) for h in s.handlers)
    frame = TryFrame(catches=tuple(cls for _, kinds in handlers for cls in kinds), keeps=keeps)
    inside = liveness.caught[s] | liveness.tail[s] | live
    way = _attempt(low, s, frame, lambda: low.block(s.body), inside)

    def run(one: Abstract) -> None:
        if one is UNBOUND:
            low.block(s.orelse)
        elif isinstance(one, Exit) and one.kind == "raise":
            _handle(low, one.parts[0], handlers, live)
        else:
            assert isinstance(one, Exit)
            leave(low, one)

    cases(low, way, run, live)


def _attempt(low: Lowering, s: Any, frame: TryFrame, run: Callable[[], None], live: frozenset[str]) -> Abstract:
    """Runs the body in a loop of one trip; gives how it was left: an Exit, UNBOUND by its end, or one of them."""
    outer, body = low.scope, Block()
    low.loops.append(frame)
    low.scope = outer.copy()
    watch(low)
    try:
        with low.b.at(body):
            try:
                run()
                low.end(frame.breaks)
            except Dead:
                low.close(body)
    finally:
        low.loops.pop()
        low.scope = outer
        watch(low)
    low.locate(s)
    leave_loop(low, s, body, [], frame, live | {EXIT})
    return low.scope.names.pop(EXIT, UNBOUND)


def _raises_again(handler: Any) -> bool:
    """Whether a handler needs the exception itself: it raises it again, or names it."""
    name = handler.name.id if handler.name is not None else None
    for node in [n for statement in handler.body for n in gast.walk(statement)]:
        if isinstance(node, gast.Raise) and node.exc is None:
            return True
        if name is not None and isinstance(node, gast.Name) and node.id == name:
            return True
    return False


def _classes(low: Lowering, handler: Any) -> tuple[type, ...]:
    """The classes that a handler takes; all of them where it names none."""
    if handler.type is None:
        return (BaseException,)
    with low.b.quiet():
        thing = low.settled(low.expression(handler.type))
    things: Sequence[Abstract] = thing.items if isinstance(thing, Struct) and thing.kind == "tuple" else (thing,)
    found = tuple(t.value for t in things if isinstance(t, Static) and _is_exception(t.value))
    if len(found) != len(things):
        text = f"'except' takes exception classes that are known now, not {describe(thing)}"
        raise low.error(UnsupportedSyntax, text, handler.type)
    return found


def _is_exception(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, BaseException)


def _handle(low: Lowering, error: Abstract, handlers: Handlers, live: frozenset[str]) -> None:
    """The first handler that takes the exception; where none does, it goes on. Each handler is lowered once, whatever
    was raised."""
    number = cases(low, error, lambda one: _number(low, one, handlers), ())
    assert number is not None
    _numbered(low, number, error, list(enumerate(h for h, _ in handlers)), live)


def _number(low: Lowering, error: Abstract, handlers: Handlers) -> Abstract:
    """Which handler takes an exception: its place, or that behind the last."""
    if isinstance(error, Error):
        return Const(next((k for k, (_, kinds) in enumerate(handlers) if issubclass(error.cls, kinds)), len(handlers)))
    assert isinstance(error, Failed)
    code = error.parts[0]
    assert isinstance(code, Leaf)
    found = low.b.const(len(handlers))
    for place, (_, kinds) in reversed(list(enumerate(handlers))):
        wanted = [k for k, cls in classes() if issubclass(cls, kinds)]
        if wanted:
            found = low.b.emit("where", any_of(low, code.value, wanted), low.b.const(place), found)
    return Leaf(found)


def _numbered(
    low: Lowering, number: Abstract, error: Abstract, handlers: list[tuple[int, Any]], live: frozenset[str]
) -> None:
    if not handlers:
        throw_any(low, error)
    (place, handler), *rest = handlers
    if isinstance(number, Const):
        if number.value == place:
            _run(low, handler, error)
        else:
            _numbered(low, number, error, rest, live)
        return
    test = low.b.emit("eq", low.value(number), low.b.const(place))
    low.branch(
        test,
        (lambda: _run(low, handler, error), lambda: _numbered(low, number, error, rest, live)),
        live=live,
    )


def _run(low: Lowering, handler: Any, error: Abstract) -> None:
    """A handler's body; the name of the exception is gone behind it."""
    if handler.name is not None:
        low.scope.names[handler.name.id] = error
    low.handled.append(error)
    try:
        low.block(handler.body)
    finally:
        low.handled.pop()
    if handler.name is not None:
        low.scope.names[handler.name.id] = UNBOUND
