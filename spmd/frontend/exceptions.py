"""`raise`, `assert`, and the formatted strings that exceptions carry.

The invariant: the arguments of an exception are evaluated where Python evaluates them, and its text is CPython's for
that example: each value is formatted as the number, string or array that the example would hold.
"""

from __future__ import annotations

from typing import Any

import gast

from spmd.errors import UnsupportedSyntax
from spmd.frontend.compounds import Error, Failed, Format
from spmd.frontend.conditions import condition
from spmd.frontend.exits import cases, throw
from spmd.frontend.fence import refuse
from spmd.frontend.lowering import Lowering
from spmd.frontend.operations import end_in_error, guard
from spmd.frontend.paths import Dead
from spmd.frontend.values import Abstract, Const, Static, describe

CONVERSIONS = {-1: "", 115: "s", 114: "r", 97: "a"}
PLAIN = (str, int, float, bool, complex, type(None))


def is_exception(thing: Abstract) -> bool:
    """Whether a thing is a class of exceptions."""
    return isinstance(thing, Static) and isinstance(thing.value, type) and issubclass(thing.value, Exception)


def raise_(low: Lowering, s: Any) -> None:
    """`raise`, `raise Class`, `raise Class(...)`, `raise error`; a cause is dropped where it is None or an exception
    that was caught here."""
    if s.exc is None:
        if not low.handled:
            raise low.error(UnsupportedSyntax, "there is no exception here to be raised again", s)
        thing = low.handled[-1]
    else:
        thing = low.expression(s.exc)
    _cause(low, s)
    low.locate(s)

    def run(one: Abstract) -> None:
        if is_exception(one):
            assert isinstance(one, Static)
            one = Error(one.value)
        if not isinstance(one, (Error, Failed)):
            raise low.error(UnsupportedSyntax, f"this raises {describe(one)}", s, "raise an exception: a class of "
                            "Python's or your own, with numbers, strings, arrays or tuples of them.")
        throw(low, one)

    cases(low, thing, run, ())
    raise Dead


def _cause(low: Lowering, s: Any) -> None:
    if s.cause is None:
        return
    cause = low.expression(s.cause)
    if not (isinstance(cause, (Error, Failed)) or isinstance(cause, Const) and cause.value is None):
        raise refuse(low.definition, s, low.sp.chain())


def assert_(low: Lowering, s: Any) -> None:
    """`assert` without a message, or with a constant one (others are an `if` with a `raise`)."""
    cond = condition(low, s.test)
    low.locate(s)
    error = (AssertionError, () if s.msg is None else (s.msg.value,))
    if isinstance(cond.value, Const):
        if not cond.value.value:
            end_in_error(low, error)
        return
    guard(low, low.value(cond.value), error)
    low.scope.facts = low.scope.facts.both(cond.yes)


# ---------------------------------------------------------------------------------------------- formatted strings
def formatted(low: Lowering, node: Any) -> Abstract:
    """f"...": a constant where all of it is known now; else something that only an exception can carry."""
    texts: list[str] = [""]
    conversions: list[str] = []
    parts: list[Abstract] = []
    for piece in node.values:
        if isinstance(piece, gast.Constant):
            texts[-1] += str(piece.value)
            continue
        conversion = CONVERSIONS[piece.conversion]
        value = low.settled(low.expression(piece.value))
        if low.memory is not None:
            value = low.memory.plain(value)  # as it is now
        spec = low.settled(low.expression(piece.format_spec)) if piece.format_spec is not None else Const("")
        known = _known(low, value, conversion, spec, piece)
        if known is not None:
            texts[-1] += known
            continue
        if isinstance(value, Static):
            raise low.error(UnsupportedSyntax, f"{describe(value)} cannot be formatted in lanes", piece)
        texts.append("")
        conversions.append(conversion)
        parts += [value, spec]
    low.locate(node)
    return Format(tuple(texts), tuple(conversions), tuple(parts)) if parts else Const(texts[0])


def _known(low: Lowering, value: Abstract, conversion: str, spec: Abstract, node: Any) -> str | None:
    if not isinstance(value, Const) or not isinstance(spec, Const) or not isinstance(value.value, PLAIN):
        return None
    convert: Any = {"": lambda x: x, "s": str, "r": repr, "a": ascii}[conversion]
    try:
        return format(convert(value.value), spec.value)
    except (ValueError, TypeError) as problem:
        end_in_error(low, (type(problem), problem.args))
