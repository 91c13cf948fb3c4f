"""Mutable things by identity, and what they hold: the kinds of bound things that programs with writes have.

The invariant: everything here is as immutable as any bound thing; what changes is which Cell a scope has for an Object.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from spmd.frontend.values import Abstract, Choice, Compound, Grown, Leaf, Run, Struct, Table
from spmd.ir.core import Op, Value
from spmd.ir.types import Num

FRESH = itertools.count(1_000_000)  # parameters of functions have small numbers
MUTABLE = ("list", "dict", "dataclass")

INPUT = "it belongs to an object, a list or a global name, which examples do not write to"
ITEM = "it is an item of a list of varying length, which holds its items by value"


class NeedsObjects(Exception):
    """The program writes into something: it must be lowered with identities."""


@dataclass(frozen=True, eq=False)
class Object(Abstract):
    """A mutable thing by identity: names that hold the same object have the same `ident`. What it holds is in the
    scope, as the Cell called `cell`."""

    ident: int
    label = "an array, list or record"

    @property
    def cell(self) -> str:
        return cell_name(self.ident)

    def key(self) -> Any:
        return ("object", self.ident)


def cell_name(ident: int) -> str:
    """What a scope calls an object's cell; no name of the user's can be this."""
    return f"@{ident}"


@dataclass(frozen=True, eq=False)
class Cell(Abstract):
    """What an object holds at one point of the program.

    thing   an array, a list, a dictionary or a record, with the objects in it by identity; a View of another object.
    fixed   why it must not be written to ('' where it may).
    shares  objects whose memory this may be too, on some path; after a write to one of them the cell is `stale`.
    """

    thing: Abstract
    fixed: str = ""
    shares: frozenset[int] = frozenset()
    stale: str = ""

    def leaves(self) -> Iterator[Value]:
        return self.thing.leaves()

    def replace(self, leaves: Iterator[Value]) -> Cell:
        return Cell(self.thing.replace(leaves), self.fixed, self.shares, self.stale)

    def key(self) -> Any:
        return ("cell", self.thing.key(), self.fixed, self.shares, self.stale)


@dataclass(frozen=True)
class Step:
    """One op that reads a part of an array; `operands` are those behind the array."""

    name: str
    attrs: tuple[tuple[str, Any], ...]
    operands: tuple[Value, ...]
    type: Num

    @classmethod
    def of(cls, op: Op) -> Step:
        assert isinstance(op.result.type, Num)
        return cls(op.name, tuple(sorted(op.attrs.items())), tuple(op.operands[1:]), op.result.type)


@dataclass(frozen=True, eq=False)
class View(Abstract):
    """A part of an object's array: the steps that read it."""

    root: int
    steps: tuple[Step, ...]

    def leaves(self) -> Iterator[Value]:
        for step in self.steps:
            yield from step.operands

    def replace(self, leaves: Iterator[Value]) -> View:
        steps = (Step(s.name, s.attrs, tuple(next(leaves) for _ in s.operands), s.type) for s in self.steps)
        return View(self.root, tuple(steps))

    def key(self) -> Any:
        steps = tuple((s.name, s.attrs, tuple(v.type for v in s.operands), s.type) for s in self.steps)
        return ("view", self.root, steps)


@dataclass(frozen=True, eq=False)
class Part(View):
    """The keys, values or items of a dictionary that is an object: they are what it holds when they are read."""

    name: str = ""

    def replace(self, leaves: Iterator[Value]) -> Part:
        return self

    def key(self) -> Any:
        return ("part", self.root, self.name)


@dataclass(frozen=True, eq=False)
class Absent(Abstract):
    """What a cell holds on a path on which its object does not exist."""

    def key(self) -> Any:
        return ("absent",)


ABSENT = Absent()


@dataclass(frozen=True, eq=False)
class Outcome(Abstract):
    """What a call gives in a program that writes: its result, and what objects hold behind it. Those that it was given
    have the numbers of its parameters, those that it made negative ones."""

    result: Abstract
    cells: tuple[tuple[int, Cell], ...]

    def leaves(self) -> Iterator[Value]:
        yield from self.result.leaves()
        for _, cell in self.cells:
            yield from cell.leaves()

    def replace(self, leaves: Iterator[Value]) -> Outcome:
        result = self.result.replace(leaves)
        return Outcome(result, tuple((k, cell.replace(leaves)) for k, cell in self.cells))

    def key(self) -> Any:
        return ("outcome", self.result.key(), tuple((k, cell.key()) for k, cell in self.cells))


# ------------------------------------------------------------------------------------------------ asking
def fresh() -> Object:
    """An object that nothing else is."""
    return Object(next(FRESH))


def is_mutable(thing: Abstract) -> bool:
    """Whether Python could write into such a thing."""
    if isinstance(thing, Leaf):
        return thing.type.rank > 0
    if isinstance(thing, Struct):
        frozen = thing.kind == "dataclass" and thing.cls.__dataclass_params__.frozen  # type: ignore[attr-defined]
        return thing.kind in MUTABLE and not frozen
    return isinstance(thing, (Grown, Table)) or isinstance(thing, Run) and thing.kind == "list"


def inside(thing: Abstract) -> Iterator[Object]:
    """The objects that a thing names, in order."""
    if isinstance(thing, Object):
        yield thing
    elif isinstance(thing, Cell):
        yield from inside(thing.thing)
    elif isinstance(thing, View):
        yield Object(thing.root)
    elif isinstance(thing, Struct):
        for item in thing.items:
            yield from inside(item)
    elif isinstance(thing, Choice):
        for item in thing.alternatives:
            yield from inside(item)
    elif isinstance(thing, Compound):
        for part in thing.parts:
            yield from inside(part)
    elif hasattr(thing, "owner"):
        yield from inside(thing.owner)


def renamed(thing: Abstract, names: dict[int, int]) -> Abstract:
    """The thing with other identities for its objects."""
    if isinstance(thing, Object):
        return Object(names.get(thing.ident, thing.ident))
    if isinstance(thing, Cell):
        shares = frozenset(names.get(k, k) for k in thing.shares)
        return Cell(renamed(thing.thing, names), thing.fixed, shares, thing.stale)
    if isinstance(thing, View):
        return replace(thing, root=names.get(thing.root, thing.root))
    if isinstance(thing, Struct):
        return Struct(thing.kind, thing.cls, thing.names, tuple(renamed(i, names) for i in thing.items))
    if isinstance(thing, Choice):
        return Choice(thing.tag, tuple(renamed(a, names) for a in thing.alternatives))
    if isinstance(thing, Compound):
        return thing.around(tuple(renamed(part, names) for part in thing.parts))
    if hasattr(thing, "owner"):
        return replace(thing, owner=renamed(thing.owner, names))  # type: ignore[type-var]
    return thing


def reachable(names: dict[str, Abstract], things: list[Abstract]) -> set[int]:
    """The objects that things lead to."""
    found: set[int] = set()
    stack = [o.ident for thing in things for o in inside(thing)]
    while stack:
        ident = stack.pop()
        if ident not in found:
            found.add(ident)
            cell = names.get(cell_name(ident))
            stack += [o.ident for o in inside(cell)] if cell is not None else []
    return found
