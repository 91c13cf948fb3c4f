"""Bound things that are made of other things and that no result can be: functions made inside functions, formatted
strings, exceptions, ways out.

The invariant: that of `values`; two things of equal `form` can be exchanged part by part.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from spmd.frontend.values import Abstract, Compound, parts_of


@dataclass(frozen=True, eq=False)
class Closure(Compound):
    """A function made inside a function, with its defaults (`names`, `given`).

    cells    None while it stands in a frame of the function that made it (or in what that frame called by an inner
             function): its free names mean the variables there, as they are when it is called. Where it has left that
             frame, the names and values (`held`) of the variables that it and the functions it reaches read.
    loaned   the frame that made it may still change one of these variables: it may be called, not kept.
    """

    definition: Any
    names: tuple[str, ...] = ()
    given: tuple[Abstract, ...] = ()
    cells: tuple[str, ...] | None = None
    held: tuple[Abstract, ...] = ()
    loaned: bool = False

    @property
    def parts(self) -> tuple[Abstract, ...]:
        return self.given + self.held

    @property
    def form(self) -> Any:
        return ("closure", id(self.definition), self.names, self.cells, self.loaned)

    @property
    def title(self) -> str:
        return f"the function '{self.definition.name}'"

    def around(self, parts: tuple[Abstract, ...]) -> Closure:
        count = len(self.given)
        return replace(self, given=parts[:count], held=parts[count:])


@dataclass(frozen=True, eq=False)
class Partial(Compound):
    """`functools.partial(callee, *args, **named)`."""

    callee: Abstract
    args: tuple[Abstract, ...]
    names: tuple[str, ...]
    named: tuple[Abstract, ...]

    @property
    def parts(self) -> tuple[Abstract, ...]:
        return (self.callee, *self.args, *self.named)

    @property
    def form(self) -> Any:
        return ("partial", len(self.args), self.names)

    @property
    def title(self) -> str:
        return "a partial function"

    def around(self, parts: tuple[Abstract, ...]) -> Partial:
        callee, *rest = parts
        count = len(self.args)
        return replace(self, callee=callee, args=tuple(rest[:count]), named=tuple(rest[count:]))


@dataclass(frozen=True, eq=False)
class Format(Compound):
    """A formatted string: texts, and values each with its conversion and its own format (text or formatted string).

    `texts` has one more item than `conversions`; `parts` are value, format, value, format...
    """

    texts: tuple[str, ...]
    conversions: tuple[str, ...]
    parts: tuple[Abstract, ...] = ()

    @property
    def form(self) -> Any:
        return ("format", self.texts, self.conversions)

    @property
    def title(self) -> str:
        return "a formatted string"

    def around(self, parts: tuple[Abstract, ...]) -> Format:
        return replace(self, parts=parts)


@dataclass(frozen=True, eq=False)
class Error(Compound):
    """An exception that the program makes: of a class, with arguments."""

    cls: type
    parts: tuple[Abstract, ...] = ()

    @property
    def form(self) -> Any:
        return ("error", self.cls)

    @property
    def title(self) -> str:
        return "an exception"

    def around(self, parts: tuple[Abstract, ...]) -> Error:
        return replace(self, parts=parts)


@dataclass(frozen=True, eq=False)
class Failed(Compound):
    """An exception that an operation raised and that was caught. `parts` are a code (`spmd.ops.outcomes`) that says of
    which class it is, and what the operation was given if it may be raised again: `again` says how."""

    again: Any
    parts: tuple[Abstract, ...] = ()

    @property
    def form(self) -> Any:
        return ("failed", None if self.again is None else repr(self.again), tuple(p.key() for p in self.parts))

    @property
    def title(self) -> str:
        return "an exception"

    def around(self, parts: tuple[Abstract, ...]) -> Failed:
        return replace(self, parts=parts)


@dataclass(frozen=True, eq=False)
class Exit(Compound):
    """A way out of a `try` that is still to be gone: 'raise' or 'return' with a value, 'break', 'continue'."""

    kind: str
    parts: tuple[Abstract, ...] = ()

    @property
    def form(self) -> Any:
        return ("exit", self.kind)

    @property
    def title(self) -> str:
        return "a jump"

    def around(self, parts: tuple[Abstract, ...]) -> Exit:
        return replace(self, parts=parts)


def functions_in(thing: Abstract) -> Iterator[Closure]:
    """The inner functions that a thing is or holds."""
    if isinstance(thing, Closure):
        yield thing
    for part in parts_of(thing):
        yield from functions_in(part)
