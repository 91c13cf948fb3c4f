"""Regions: what the scheduler runs.

A region is a straight-line piece of one function: it loads columns of its frame, runs ops, stores columns and leaves
by one exit. Still one example, no masks. The invariant: every value that is alive across a region's edge is in a
column, and nothing else is; a region's ops name only its own loads and results, and module inputs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from spmd.ir.core import Block, Op, Table, Value
from spmd.ir.types import Type
from spmd.source import Span


@dataclass(eq=False)
class Column:
    """One slot of a frame. `single`: written once in a frame's life, so it may be read by view."""

    id: int
    type: Type
    name: str = ""
    single: bool = True


@dataclass(eq=False)
class Jump:
    target: int


@dataclass(eq=False)
class Branch:
    cond: Value
    then: int
    other: int


@dataclass(eq=False)
class Site:
    """One call of a fork. A 'call' stores Ref('@f') in `child`, a 'map' stores Seq('@f') (see ir.core `map`).

    guards: conditions and whether they must be true or false; rows for which one does not hold make no call, and their
    child is -1, or an empty run.
    """

    function: str
    args: list[Value]
    child: Column
    each: tuple[str, ...] = ()
    count: Value | None = None
    order: tuple[int, ...] = ()
    span: Span | None = None
    guards: tuple[tuple[Value, bool], ...] = ()


@dataclass(eq=False)
class Fork:
    """Independent calls that run together; the frame goes on in region `target` when all have returned."""

    sites: list[Site]
    target: int


@dataclass(eq=False)
class Leave:
    values: list[Value]


@dataclass(eq=False)
class Raise:
    error: Any


@dataclass(eq=False)
class Dead:
    """No frame ever gets here."""


Exit = Jump | Branch | Fork | Leave | Raise | Dead


@dataclass(eq=False)
class Region:
    id: int
    function: str
    loads: list[tuple[Column, Value]] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    stores: list[tuple[Column, Value]] = field(default_factory=list)
    exit: Exit = field(default_factory=Dead)
    span: Span | None = None
    order: tuple[int, ...] = ()


@dataclass(eq=False)
class FunctionRegions:
    """A function cut into regions. `regions` are ids into Program.regions; results live in result columns."""

    name: str
    params: list[Column]
    results: list[Column]
    columns: list[Column]
    entry: int
    regions: list[int]
    span: Span | None = None


@dataclass(eq=False)
class Program:
    """A whole program in regions; `inputs` and `prologue` as in ir.core.Module."""

    functions: dict[str, FunctionRegions]
    entry: str
    regions: list[Region]
    inputs: list[Value]
    tables: dict[str, Table]
    prologue: Block | None = None

    def field_type(self, table: str, index: int) -> Type:
        if table.startswith("@"):
            return self.functions[table[1:]].results[index].type
        return self.tables[table].fields[index]


# ------------------------------------------------------------------------------------------------ adjoints
@dataclass(eq=False)
class Seed:
    """Where a cotangent that the adjoint starts from is read (and zeroed).

    kind 'store': column `column` at the entry's rows; 'result': the function's result column (exit Leave);
    'argument': parameter `index` of fork site `site`, for the children that the entry made: for an 'each' array
    argument the children's cotangents stacked, for a 'same' argument their sum over the children.
    """

    kind: str
    value: Value
    column: Column | None = None
    site: int = 0
    index: int = 0


@dataclass(eq=False)
class Add:
    """Where a cotangent goes, added.

    kind 'column': column at the entry's rows; 'input': a module input (summed over rows, or by lane);
    'field': table row `ref` (primal value), field `index`; 'maybe': the same where there is such a row (op `load_or`);
    'run': field of all rows of the run `ref` (op `column`).
    """

    kind: str
    value: Value
    column: Column | None = None
    input: Value | None = None
    table: str = ""
    index: int = 0
    ref: Value | None = None


@dataclass(eq=False)
class AdjointRegion:
    """The adjoint of region `id`: seeds in, adds out. `residuals` are primal values of the region that its ops and
    adds name: what the primal leaves on the tape."""

    id: int
    seeds: list[Seed]
    residuals: list[Value]
    ops: list[Op]
    adds: list[Add]
