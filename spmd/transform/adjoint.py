"""The adjoint of each region of a program.

The invariant: for one example and one execution of the region, the adds are the exact transpose of the derivative of
the region's exits (stores, results, callees' parameters) with respect to its loads, module inputs and table fields.
Derivative rules come from the primitives' records; nothing here knows a primitive's derivative, a mask or a schedule.

Reverse accumulation over straight-line code (Griewank and Walther, "Evaluating Derivatives", 2008, section 3.2); the
walk over region executions is the runtime's. Cotangents are of NumPy kinds, also those of Python numbers: a derivative
raises nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from spmd.analysis.activity import READS, Activity, Wanted, activity, argument_place, field_place
from spmd.analysis.effects import Primitives, default_primitives
from spmd.errors import InternalError
from spmd.ir.build import Builder, TypeRule
from spmd.ir.core import Block, Op, Value, element_table
from spmd.ir.equal import op_key
from spmd.ir.region import Add, AdjointRegion, Fork, Leave, Program, Region, Seed, Site
from spmd.ir.types import BOOL, Num, Type

PROLOGUE = -1  # the id of the prologue's adjoint
LOCAL = ("onto_index", "onto_take", "onto_slice")  # contributions to part of a value
ADDED = {"load": "field", "load_or": "maybe", "column": "run"}  # how the cotangent of a read is added
ROW_PRODUCTS = ("outer", "matmul")  # contributions to an input that sum over rows as one matrix product


def default_rule() -> TypeRule:
    """The type rule of `spmd.ops`."""
    from spmd.ops.table import type_rule

    return type_rule


def adjoint(
    program: Program,
    wanted: Iterable[Wanted],
    primitives: Primitives | None = None,
    rule: TypeRule | None = None,
) -> dict[int, AdjointRegion]:
    """Adjoints by region id, and the prologue's under PROLOGUE where it has one.

    `wanted`: what to differentiate with respect to: module inputs, (table, field) pairs and numbers of parameters of
    the entry. Regions that store, return and pass on nothing active are left out.
    """
    primitives = default_primitives() if primitives is None else primitives
    rule = default_rule() if rule is None else rule
    found = activity(program, wanted, primitives)
    result = {}
    for region in program.regions:
        made = _Reverse(program, found, primitives, rule).region(region)
        if made is not None:
            result[region.id] = made
    if program.prologue is not None:
        made = _Reverse(program, found, primitives, rule).prologue(program.prologue)
        if made is not None:
            result[PROLOGUE] = made
    return result


def cotangent_type(type_: Type) -> Num:
    """The type of the cotangent of a value of this type."""
    if not isinstance(type_, Num):
        raise InternalError(f"a {type_} has no cotangent")
    return Num(type_.dtype, type_.shape)


class _Reverse:
    """Accumulates cotangents of one straight-line piece."""

    def __init__(self, program: Program, found: Activity, primitives: Primitives, rule: TypeRule) -> None:
        self.program = program
        self.found = found
        self.primitives = primitives
        self.builder = Builder(Block(), rule)
        self.parts: dict[Value, list[Value]] = {}
        self.made_by: dict[Value, Op] = {}
        self.adds: list[Add] = []
        self.seeds: list[Seed] = []

    # ---- what is differentiated
    def region(self, region: Region) -> AdjointRegion | None:
        for column, value in region.stores:
            if self.found.active(column):
                self.seed(Seed("store", self.fresh(column.type), column), value)
        if isinstance(region.exit, Leave):
            results = self.program.functions[region.function].results
            for index, (column, value) in enumerate(zip(results, region.exit.values, strict=True)):
                if self.found.active(column):
                    self.seed(Seed("result", self.fresh(column.type), column, index=index), value)
        if isinstance(region.exit, Fork):
            for number, site in enumerate(region.exit.sites):
                self.site(number, site)
        if not self.seeds:
            return None
        self.ops(region.ops)
        for column, value in region.loads:
            for part in self.total(value, LOCAL):
                self.adds.append(Add("column", part, column=column))
        self.inputs(self.program.inputs, LOCAL + ROW_PRODUCTS)
        own = {v for _, v in region.loads} | {v for op in region.ops for v in op.results}
        return self.close(region.id, own, region.ops)

    def site(self, number: int, site: Site) -> None:
        params = self.program.functions[site.function].params
        for index, (column, value) in enumerate(zip(params, site.args, strict=True)):
            if not self.found.active(column):
                continue
            place = argument_place(self.program, site, index)
            if place is value:
                self.seed(Seed("argument", self.fresh(value.type), column, number, index), value)
                continue
            if not isinstance(column.type, Num) or not column.type.static:
                raise InternalError(f"no cotangent for a {column.type} that a map reads from a table", span=site.span)
            stacked = Num(column.type.dtype, (None, *column.type.shape))
            seed = Seed("argument", Value(stacked), column, number, index)
            self.seeds.append(seed)
            if self.found.active(place):
                field = int(site.each[index][6:])
                table = element_table(value.type)
                self.adds.append(Add("run", seed.value, table=table, index=field, ref=value))

    def prologue(self, block: Block) -> AdjointRegion | None:
        given = block.terminator.operands
        first = len(self.program.inputs) - len(given)
        for index, value in enumerate(given, first):
            if self.found.active(self.program.inputs[index]):
                self.seed(Seed("input", self.fresh(value.type), index=index), value)
        if not self.seeds:
            return None
        self.ops(block.ops[:-1])
        self.inputs(self.program.inputs[:first], LOCAL)
        own = {v for op in block.ops for v in op.results}
        return self.close(PROLOGUE, own, block.ops)

    def fresh(self, type_: Type) -> Value:
        return Value(cotangent_type(type_))

    def seed(self, seed: Seed, value: Value) -> None:
        self.seeds.append(seed)
        self.contribute(value, seed.value)

    # ---- accumulation
    def contribute(self, value: Value, part: Value | None) -> None:
        if part is None or not self.found.active(value):
            return
        expected = cotangent_type(value.type)
        if part.type != expected:
            raise InternalError(f"the cotangent of a {value.type} is a {part.type}")
        self.parts.setdefault(value, []).append(part)

    def ops(self, ops: Sequence[Op]) -> None:
        for op in reversed(ops):
            if not any(v in self.parts for v in op.results):
                continue
            self.builder.span = op.span
            if op.name in READS:
                self.field(op)
                continue
            derive = self.primitives[op.name].adjoint
            assert derive is not None, "activity passes through differentiable ops only"
            (total,) = self.total(op.result, ())
            start = len(self.builder.block.ops)
            parts = derive(self.builder, op, total)
            for made in self.builder.block.ops[start:]:
                self.made_by.update((v, made) for v in made.results)
            if len(parts) != len(op.operands):
                raise InternalError(f"the adjoint of '{op.name}' gives {len(parts)} cotangents", span=op.span)
            for value, part in zip(op.operands, parts, strict=True):
                self.contribute(value, part)

    def field(self, op: Op) -> None:
        """A read of a table: its cotangent is added to that field of that row, or of all rows of the run."""
        table, index = op.attrs["table"], op.attrs["field"]
        parts = self.total(op.result, LOCAL if op.name != "load_or" else ())
        if op.name == "load_or" and self.found.active(op.operands[1]):
            missing = self.builder.insert("isnull", op.operands[:1], [BOOL]).result
            self.contribute(op.operands[1], self.emitted("where", missing, parts[0], self.zero(parts[0])))
        if not self.found.active(field_place(self.program, table, index)):
            return
        for part in parts:
            self.adds.append(Add(ADDED[op.name], part, table=table, index=index, ref=op.operands[0]))

    def zero(self, like: Value) -> Value:
        type_ = cotangent_type(like.type)
        return self.builder.const(np.zeros([n for n in type_.shape if n is not None], type_.dtype)[()])

    def inputs(self, inputs: Iterable[Value], apart: Sequence[str]) -> None:
        for value in inputs:
            for part in self.total(value, apart):
                self.adds.append(Add("input", part, input=value))

    def total(self, value: Value, apart: Sequence[str]) -> list[Value]:
        """The sum of a value's contributions; those made by an op named in `apart` are listed on their own.

        Contributions by `assemble` become one op first: slices that tile their operand are a concatenation then.
        """
        parts = self.parts.pop(value, [])
        pieces = [p for p in parts if self.name_of(p) == "assemble"]
        alone = [p for p in parts if self.name_of(p) in apart]
        rest = [p for p in parts if p not in alone and p not in pieces]
        if pieces:
            rest.append(self.assembled(pieces))
        while len(rest) > 1:
            rest.append(self.emitted("add", rest.pop(0), rest.pop(0)))
        return rest + alone

    def assembled(self, pieces: list[Value]) -> Value:
        ops = [self.made_by[p] for p in pieces]
        if len(ops) == 1:
            return pieces[0]
        parts = [pair for op in ops for pair in zip(op.attrs["pieces"], op.operands, strict=True)]
        parts.sort(key=lambda pair: tuple(entry or () for entry in pair[0]))
        operands = [v for _, v in parts]
        where = tuple(piece for piece, _ in parts)
        return self.emitted("assemble", *operands, **{**ops[0].attrs, "pieces": where})

    def emitted(self, name: str, *operands: Value, **attrs: object) -> Value:
        value = self.builder.emit(name, *operands, **attrs)
        self.made_by[value] = self.builder.block.ops[-1]
        return value

    def name_of(self, part: Value) -> str:
        made = self.made_by.get(part)
        return "" if made is None else made.name

    # ---- the result
    def close(self, number: int, own: set[Value], primal: Sequence[Op]) -> AdjointRegion:
        """Equal ops once, unused ones not at all; constants of the primal are written again; what remains is taped."""
        constants = {op.result: op for op in primal if op.name == "const"}
        ops, names = _reduce(self.builder.block.ops, self.adds, constants)
        for add in self.adds:
            add.value = names(add.value)
            add.ref = None if add.ref is None else names(add.ref)
        named = [v for op in ops for v in op.operands]
        named += [v for add in self.adds for v in (add.value, add.ref) if v is not None]
        residuals = list(dict.fromkeys(v for v in named if v in own))
        return AdjointRegion(number, self.seeds, residuals, ops, self.adds)


def _reduce(
    ops: Sequence[Op], adds: Sequence[Add], constants: dict[Value, Op]
) -> tuple[list[Op], Callable[[Value], Value]]:
    """The ops that the adds need, each piece of work once, and the value that stands for each value."""
    made = {v: op for op in ops for v in op.results}
    needed: set[Op] = set()
    stack = [v for add in adds for v in (add.value, add.ref) if v is not None]
    while stack:
        op = made.get(stack.pop())
        if op is not None and op not in needed:
            needed.add(op)
            stack.extend(op.operands)
    twins: dict[Value, Value] = {}
    done: dict[tuple[object, ...], Op] = {}
    kept: list[Op] = []

    def name(value: Value) -> Value:
        if value in constants and value not in twins:
            op = constants[value]
            place(Op(op.name, [], op.attrs, [Value(value.type)], [], op.span, op.order), [value])
        return twins.get(value, value)

    def place(op: Op, results: Sequence[Value]) -> None:
        twin = done.setdefault(op_key(op), op)
        if twin is op:
            kept.append(op)
        twins.update(zip(results, twin.results, strict=True))

    for op in ops:
        if op in needed:
            operands = [name(v) for v in op.operands]
            results = [Value(v.type) for v in op.results]
            place(Op(op.name, operands, op.attrs, results, [], op.span, op.order), op.results)
    return kept, name
