"""Which columns, inputs, table fields and values carry a cotangent.

The invariant: a value is active exactly if it depends, through differentiable ops, on what is differentiated (varied)
and a result of the entry depends on it so (useful). Both are least fixpoints over all regions of a program; what is
not active has a cotangent that is zero or that nobody asks for. Activity is a property of a column, never of a path.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from spmd.analysis.effects import Primitives
from spmd.ir.core import Op, Value, element_table
from spmd.ir.region import Column, Fork, Leave, Program, Region, Site
from spmd.ir.types import Seq, carries_gradient

Field = tuple[str, int]
Place = Column | Value | Field
Wanted = Value | Field | int

READS = ("load", "load_or", "column")  # of fields of tables


@dataclass
class Activity:
    """`varied` and `useful` hold columns, values (module inputs among them) and fields of input tables."""

    varied: set[Place] = field(default_factory=set)
    useful: set[Place] = field(default_factory=set)

    def active(self, place: Place) -> bool:
        return place in self.varied and place in self.useful


def field_place(program: Program, table: str, index: int) -> Place:
    """Where a field of a table lives: a result column for a table of frames."""
    if table.startswith("@"):
        return program.functions[table[1:]].results[index]
    return (table, index)


def differentiable(op: Op, primitives: Primitives) -> bool:
    """Whether a cotangent can pass from the op's result to an operand."""
    primitive = primitives.get(op.name)
    return primitive is not None and primitive.adjoint is not None and all(
        carries_gradient(v.type) for v in op.results
    )


def argument_place(program: Program, site: Site, index: int) -> Place:
    """Where an argument of a fork comes from: its value, or the table field that a map reads for each element."""
    value = site.args[index]
    word = site.each[index] if site.each else ""
    if word.startswith("field:"):
        return field_place(program, element_table(value.type), int(word[6:]))
    return value


def exits(program: Program, region: Region) -> Iterator[tuple[Place, Column]]:
    """What leaves the region and the columns that it goes to: stores, results, callees' parameters."""
    for column, value in region.stores:
        yield value, column
    if isinstance(region.exit, Leave):
        yield from zip(region.exit.values, program.functions[region.function].results, strict=True)
    if isinstance(region.exit, Fork):
        for site in region.exit.sites:
            for index, column in enumerate(program.functions[site.function].params):
                yield argument_place(program, site, index), column


def activity(program: Program, wanted: Iterable[Wanted], primitives: Primitives) -> Activity:
    """Activity for a gradient with respect to `wanted`: module inputs, (table, field) pairs, numbers of parameters of
    the entry."""
    found = Activity()
    entry = program.functions[program.entry]
    for item in wanted:
        found.varied.add(entry.params[item] if isinstance(item, int) else item)
    found.useful.update(c for c in _results(program, program.entry, set()) if carries_gradient(c.type))
    prologue = program.prologue
    derived: Sequence[Value] = []
    if prologue is not None:
        given = prologue.terminator.operands
        derived = program.inputs[len(program.inputs) - len(given) :]
        _forward_ops(program, prologue.ops, found, primitives)
        found.varied.update(d for d, v in zip(derived, given, strict=True) if v in found.varied)
    while any([_forward(program, region, found, primitives) for region in program.regions]):
        pass
    while any([_backward(program, region, found, primitives) for region in reversed(program.regions)]):
        pass
    if prologue is not None:
        found.useful.update(v for d, v in zip(derived, prologue.terminator.operands, strict=True) if d in found.useful)
        _backward_ops(program, prologue.ops, found, primitives)
    return found


def _results(program: Program, name: str, seen: set[str]) -> Iterator[Column]:
    """The results of a function, and of those whose frames are lists among its results."""
    seen.add(name)
    for column in program.functions[name].results:
        yield column
        table = column.type.table if isinstance(column.type, Seq) else ""
        if table.startswith("@") and table[1:] not in seen:
            yield from _results(program, table[1:], seen)


def _forward_ops(program: Program, ops: Sequence[Op], found: Activity, primitives: Primitives) -> None:
    for op in ops:
        if op.name in READS:
            source = field_place(program, op.attrs["table"], op.attrs["field"])
            varied = source in found.varied or (op.name == "load_or" and op.operands[1] in found.varied)
            if varied and carries_gradient(op.result.type):
                found.varied.add(op.result)
        elif differentiable(op, primitives) and any(v in found.varied for v in op.operands):
            found.varied.update(op.results)


def _forward(program: Program, region: Region, found: Activity, primitives: Primitives) -> bool:
    size = len(found.varied)
    found.varied.update(v for c, v in region.loads if c in found.varied)
    _forward_ops(program, region.ops, found, primitives)
    for value, column in exits(program, region):
        if value in found.varied and carries_gradient(column.type):
            found.varied.add(column)
    return len(found.varied) > size


def _backward_ops(program: Program, ops: Sequence[Op], found: Activity, primitives: Primitives) -> None:
    for op in reversed(ops):
        if not any(v in found.useful for v in op.results):
            continue
        if op.name in READS:
            found.useful.add(field_place(program, op.attrs["table"], op.attrs["field"]))
            if op.name == "load_or" and carries_gradient(op.operands[1].type):
                found.useful.add(op.operands[1])
        elif differentiable(op, primitives):
            found.useful.update(v for v in op.operands if carries_gradient(v.type))


def _backward(program: Program, region: Region, found: Activity, primitives: Primitives) -> bool:
    size = len(found.useful)
    found.useful.update(v for v, c in exits(program, region) if c in found.useful and carries_gradient(c.type))
    _backward_ops(program, region.ops, found, primitives)
    found.useful.update(c for c, v in region.loads if v in found.useful)
    return len(found.useful) > size
