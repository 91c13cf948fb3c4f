"""Program -> the numbers that the scheduler works with: functions, columns, forks, call sites, priorities.

The invariant: numbering follows the program's own order, so equal programs get equal plans. Must not know how regions
compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from spmd.errors import InternalError
from spmd.ir.core import Value, element_table
from spmd.ir.region import Branch, Column, Fork, FunctionRegions, Jump, Leave, Program, Region, Site
from spmd.ir.types import Num, Ref, Seq, Type
from spmd.runtime.code import ForkSpec, SiteSpec
from spmd.runtime.frames import ColumnSpec, FrameSpec
from spmd.runtime.schedule import Priorities, ranks

PRODUCTS = frozenset({"matmul", "outer"})


def num(value: Value) -> Num:
    """The type of a value that is a number or array."""
    if not isinstance(value.type, Num):
        raise InternalError(f"{value!r} is no number")
    return value.type


def ragged_axes(type_: Type) -> int:
    """How many leading sizes of a type belong to the handle: up to the last one that varies; 0 where none does."""
    if not isinstance(type_, Num) or type_.static:
        return 0
    return max(i for i, n in enumerate(type_.shape) if n is None) + 1


def trail(type_: Num) -> tuple[int, ...]:
    """The sizes of a type behind its ragged ones."""
    return tuple(n for n in type_.shape[ragged_axes(type_) :] if n is not None)


def column_spec(type_: Type, slot: int, single: bool = True) -> ColumnSpec:
    """How a value of this type is kept."""
    if isinstance(type_, Seq):
        return ColumnSpec("run", "int64", (), slot, single)
    if isinstance(type_, Ref):
        return ColumnSpec("dense", "int64", (), slot, single)
    k = ragged_axes(type_)
    kind = "ragged" if k else "dense"
    return ColumnSpec(kind, type_.dtype, trail(type_), slot, single, k)


@dataclass(eq=False)
class Plan:
    """Numbers of a program's parts. `columns`: id of a Column -> (function, position in its frame)."""

    program: Program
    functions: list[FunctionRegions]
    function_number: dict[str, int]
    tables: list[str]
    table_number: dict[str, int]
    frames: tuple[FrameSpec, ...]
    columns: dict[int, tuple[int, int]]
    forks: list[ForkSpec] = field(default_factory=list)
    fork_of_region: dict[int, int] = field(default_factory=dict)
    sites: list[SiteSpec] = field(default_factory=list)
    callers: list[list[int]] = field(default_factory=list)
    memos: list[str] = field(default_factory=list)
    priorities: Priorities = field(default_factory=lambda: Priorities((), (), ()))

    prepared: dict[str, tuple[int, Any, list[int]]] = field(default_factory=dict)

    def prepare(self, name: str, rule: Any, inputs: Sequence[Any], attrs: dict[str, Any]) -> int:
        """The place in a run's `prepared` list of an op on module inputs."""
        key = f"{name} {inputs} {sorted(attrs.items(), key=str)}"
        found = self.prepared.setdefault(key, (len(self.prepared), rule, list(inputs)))
        return found[0]

    def spec(self, column: Column) -> ColumnSpec:
        """Where a column lies in its frame."""
        function, position = self.columns[column.id]
        return self.frames[function].columns[position]

    def result_spec(self, table: str, index: int) -> tuple[int, ColumnSpec]:
        """Function number and column of field `index` of a table of frames '@f'."""
        function = self.function_number[table[1:]]
        frame = self.frames[function]
        return function, frame.columns[frame.results[index]]


def plan(program: Program) -> Plan:
    """Numbers everything."""
    functions = list(program.functions.values())
    numbers = {f.name: i for i, f in enumerate(functions)}
    tables = list(program.tables)
    shared = _shared_functions(program)
    mapped = {
        site.function for region in program.regions for site in _sites(region) if site.each or site.count is not None
    }
    frames, columns = [], {}
    for number, function in enumerate(functions):
        every = {c.id: c for c in (*function.params, *function.results, *function.columns)}
        specs, slot, position = [], 0, {}
        for column in every.values():
            specs.append(column_spec(column.type, slot, column.single))
            position[column.id] = len(specs) - 1
            columns[column.id] = (number, len(specs) - 1)
            slot += specs[-1].slots
        frames.append(
            FrameSpec(
                number,
                function.name,
                tuple(specs),
                tuple(position[c.id] for c in function.params),
                tuple(position[c.id] for c in function.results),
                function.span,
                function.name in mapped,
                function.name in shared,
            )
        )
    out = Plan(
        program, functions, numbers, tables, {t: i for i, t in enumerate(tables)}, tuple(frames), columns
    )
    _number_forks(out, shared)
    out.priorities = _priorities(out)
    return out


def _sites(region: Region) -> list[Site]:
    return region.exit.sites if isinstance(region.exit, Fork) else []


def _shared_functions(program: Program) -> dict[str, str]:
    """Functions whose frames are shared by table row -> the table: the only parameter is a row of a packed table some
    of whose rows have several parents, and every row belongs to one example. (The frames that a batch starts with are
    nobody's children, so the entry may be such a function.)"""
    out = {}
    for function in program.functions.values():
        if len(function.params) != 1:
            continue
        type_ = function.params[0].type
        if not isinstance(type_, Ref) or type_.table not in program.tables:
            continue
        table = program.tables[type_.table]
        sites = [s for r in program.regions for s in _sites(r) if s.function == function.name]
        if table.shared and table.unique and not any(_is_map(s) for s in sites):
            out[function.name] = table.name
    return out


def _is_map(site: Site) -> bool:
    return isinstance(site.child.type, Seq)


def _source(plan_: Plan, word: str, value: Value) -> tuple[bool, int, int] | None:
    """Where the field of an element is read that a map gives to a parameter."""
    if not word.startswith("field:"):
        return None
    table, index = element_table(value.type), int(word[6:])
    if table.startswith("@"):
        function, spec = plan_.result_spec(table, index)
        return False, function, spec.slot
    return True, plan_.table_number[table], index


def _number_forks(plan_: Plan, shared: dict[str, str]) -> None:
    memo = {name: i for i, name in enumerate(shared)}
    plan_.memos = list(shared.values())
    plan_.callers = [[] for _ in plan_.functions]
    for region in plan_.program.regions:
        if not isinstance(region.exit, Fork):
            continue
        number = len(plan_.forks)
        caller = plan_.function_number[region.function]
        sites: list[SiteSpec] = []
        for site in region.exit.sites:
            callee = plan_.function_number[site.function]
            sites.append(
                SiteSpec(
                    len(plan_.sites) + len(sites),
                    number,
                    caller,
                    callee,
                    plan_.columns[site.child.id][1],
                    site.order,
                    site.span,
                    tuple(site.each),
                    _is_map(site),
                    memo.get(site.function, -1),
                    tuple(_source(plan_, word, value) for word, value in zip(site.each, site.args)),
                    bool(site.guards),
                )
            )
            if number not in plan_.callers[callee]:
                plan_.callers[callee].append(number)
        woven = len({s.callee for s in sites}) == 1 and not any(s.map or s.guarded or s.shared >= 0 for s in sites)
        plan_.sites += sites
        plan_.forks.append(ForkSpec(number, caller, region.exit.target, tuple(sites), woven))
        plan_.fork_of_region[region.id] = number


def _priorities(plan_: Plan) -> Priorities:
    program = plan_.program
    leaves: dict[str, list[int]] = {name: [] for name in program.functions}
    for region in program.regions:
        if isinstance(region.exit, Leave):
            leaves[region.function].append(region.id)
    successors: list[list[int]] = [[] for _ in program.regions]
    for region in program.regions:
        exit_ = region.exit
        if isinstance(exit_, Jump):
            successors[region.id].append(exit_.target)
        elif isinstance(exit_, Branch):
            successors[region.id] += [exit_.then, exit_.other]
        elif isinstance(exit_, Fork):
            if all(_is_map(s) or s.guards for s in exit_.sites):
                successors[region.id].append(exit_.target)
            for site in exit_.sites:
                successors[region.id].append(program.functions[site.function].entry)
                for leave in leaves[site.function]:
                    successors[leave].append(exit_.target)
    forks = [isinstance(r.exit, Fork) for r in program.regions]
    flow = [_flow(r) for r in program.regions]
    return Priorities(
        ranks(successors),
        tuple(not any(op.name in PRODUCTS for op in r.ops) for r in program.regions),
        tuple(forks[r.id] or any(forks[t] for t in flow[r.id]) for r in program.regions),
    )


def _flow(region: Region) -> list[int]:
    exit_ = region.exit
    if isinstance(exit_, Jump):
        return [exit_.target]
    if isinstance(exit_, Branch):
        return [exit_.then, exit_.other]
    return []



def uniform_inputs(program: Program) -> dict[Value, int]:
    """Number of every module input."""
    return {value: i for i, value in enumerate(program.inputs)}
