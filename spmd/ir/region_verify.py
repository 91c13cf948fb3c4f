"""States what holds of a program in regions and of its adjoints, and raises InternalError where it does not.

Checked: regions name only their loads, results and module inputs; columns belong to the function and have the type of
what is stored; exits lead to regions of the same function; forks give callees what they take; adjoints name only
seeds, their own results, residuals and inputs, and residuals are values of the primal. Nothing is changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NoReturn

from spmd.errors import InternalError
from spmd.ir.build import TypeRule
from spmd.ir.core import STRUCTURAL, Op, Value
from spmd.ir.printer import op_text
from spmd.ir.region import Add, AdjointRegion, Branch, Fork, FunctionRegions, Jump, Leave, Program, Region, Site
from spmd.ir.structural import check as check_structural
from spmd.ir.structural import map_arguments, ruled_types
from spmd.ir.types import Num, Ref, Seq, Type, fits


class ProgramView:
    """What the checks of structural ops ask of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def fields(self, table: str) -> tuple[Type, ...]:
        if table.startswith("@"):
            return tuple(c.type for c in self.program.functions[table[1:]].results)
        return self.program.tables[table].fields

    def signature(self, function: str) -> tuple[list[Type], list[Type]] | None:
        found = self.program.functions.get(function)
        return None if found is None else ([c.type for c in found.params], [c.type for c in found.results])


class _Checker:
    def __init__(self, program: Program, rule: TypeRule | None) -> None:
        self.program = program
        self.view = ProgramView(program)
        self.rule = rule
        self.where = "the program"

    def fail(self, what: str, op: Op | None = None) -> NoReturn:
        shown = f"\n    {op_text(op)}" if op is not None else ""
        raise InternalError(f"{self.where} is broken: {what}{shown}", span=op.span if op is not None else None)

    def check(self) -> None:
        program = self.program
        if program.entry not in program.functions:
            self.fail(f"there is no function {program.entry}")
        seen: set[int] = set()
        for function in program.functions.values():
            numbers = [c.id for c in function.columns]
            if len(set(numbers)) != len(numbers) or seen & set(numbers):
                self.fail(f"columns of {function.name} share numbers")
            seen.update(numbers)
            if not {*function.params, *function.results} <= set(function.columns):
                self.fail(f"{function.name} does not list all of its columns")
            if function.entry not in function.regions:
                self.fail(f"{function.name} starts outside itself")
            for number in function.regions:
                self.region(function, self.program.regions[number], number)

    def region(self, function: FunctionRegions, region: Region, number: int) -> None:
        self.where = f"region {number} of {function.name}"
        if region.id != number or region.function != function.name:
            self.fail(f"it is numbered {region.id} of {region.function}")
        columns = set(function.columns)
        scope = set(self.program.inputs)
        if len({c for c, _ in region.loads}) != len(region.loads):
            self.fail("a column is loaded twice")
        for column, value in region.loads:
            if column not in columns or column.type != value.type or value in scope:
                self.fail(f"it loads {value} from column {column.id}: {column.type}")
            scope.add(value)
        self.ops(region.ops, scope)
        if len({c for c, _ in region.stores}) != len(region.stores):
            self.fail("a column is stored twice")
        for column, value in region.stores:
            if column not in columns or column in function.params or column in function.results:
                self.fail(f"it stores column {column.id}")
            self.use([value], [column.type], scope)
        self.exit(function, region, scope)

    def ops(self, ops: Sequence[Op], scope: set[Value]) -> None:
        for op in ops:
            if (op.blocks and op.name != "native") or op.terminator or op.name in ("call", "map"):
                self.fail("it is not straight-line", op)
            for value in op.operands:
                if value not in scope:
                    self.fail(f"{value} is not there", op)
            self.types(op)
            for value in op.results:
                if value in scope:
                    self.fail(f"{value} is defined twice", op)
                scope.add(value)

    def types(self, op: Op) -> None:
        if op.name in STRUCTURAL:
            problem = check_structural(op, self.view)
            if problem:
                self.fail(problem, op)
        elif self.rule is not None:
            try:
                types = tuple(self.rule(op.name, ruled_types(op), op.attrs))
            except Exception as error:
                self.fail(f"the type rule refuses it: {error}", op)
            if types != tuple(v.type for v in op.results):
                self.fail(f"the type rule gives {', '.join(map(str, types))}", op)

    def use(self, values: Sequence[Value], types: Sequence[Type], scope: set[Value]) -> None:
        for value in values:
            if value not in scope:
                self.fail(f"{value} is not there")
        if len(values) != len(types) or not all(fits(v.type, t) for v, t in zip(values, types, strict=True)):
            self.fail(f"{list(values)} should have types ({', '.join(map(str, types))})")

    def exit(self, function: FunctionRegions, region: Region, scope: set[Value]) -> None:
        out = region.exit
        targets: list[int] = []
        if isinstance(out, Jump):
            targets = [out.target]
        elif isinstance(out, Branch):
            targets = [out.then, out.other]
            self.condition(out.cond, scope)
        elif isinstance(out, Fork):
            targets = [out.target]
            for site in out.sites:
                self.site(function, region, site, scope)
        elif isinstance(out, Leave):
            self.use(out.values, [c.type for c in function.results], scope)
        if not set(targets) <= set(function.regions):
            self.fail(f"it leads to {targets}")

    def condition(self, value: Value, scope: set[Value]) -> None:
        if value not in scope or value.type not in (Num("bool"), Num("bool", python=True)):
            self.fail(f"it branches on {value}")

    def site(self, function: FunctionRegions, region: Region, site: Site, scope: set[Value]) -> None:
        signature = self.view.signature(site.function)
        if signature is None:
            self.fail(f"it calls {site.function}, which is not there")
        table = "@" + site.function
        if site.child not in function.columns or any(c is site.child for c, _ in region.stores):
            self.fail("a child's column is not the fork's")
        for guard, _ in site.guards:
            self.condition(guard, scope)
        if site.count is None:
            self.use(site.args, signature[0], scope)
            if site.child.type != Ref(table):
                self.fail(f"the child of a call of {site.function} is a {site.child.type}")
            return
        operands = [site.count, *site.args]
        problem = map_arguments([v.type for v in operands], site.function, site.each, self.view)
        if problem or not set(operands) <= scope or site.child.type != Seq(table):
            self.fail(problem or f"a map of {site.function} is malformed")

    # ---- adjoints
    def adjoint(self, adjoint: AdjointRegion) -> None:
        self.where = f"the adjoint of region {adjoint.id}"
        program = self.program
        if adjoint.id >= 0:
            region = program.regions[adjoint.id]
            own = {v for _, v in region.loads} | {v for op in region.ops for v in op.results}
        else:
            own = {v for op in program.prologue.ops for v in op.results} if program.prologue else set()
        if not set(adjoint.residuals) <= own:
            self.fail("a residual is no value of the primal")
        scope = {*program.inputs, *adjoint.residuals}
        for seed in adjoint.seeds:
            if seed.value in scope or not plain(seed.value.type):
                self.fail(f"seed {seed.value}")
            scope.add(seed.value)
        self.ops(adjoint.ops, scope)
        for add in adjoint.adds:
            self.add(add, scope)

    def add(self, add: Add, scope: set[Value]) -> None:
        if add.kind == "column" and add.column is not None:
            target: Type = add.column.type
        elif add.kind == "input" and add.input is not None:
            target = add.input.type
        elif add.kind in ("field", "maybe", "run") and add.ref is not None:
            target = self.view.fields(add.table)[add.index]
            if add.ref not in scope:
                self.fail(f"{add.ref} is not there")
            if add.kind == "run" and isinstance(target, Num):
                target = Num(target.dtype, (None, *target.shape))
        else:
            self.fail(f"an add of kind {add.kind} is malformed")
        if not isinstance(target, Num):
            self.fail(f"a cotangent is added to a {target}")
        self.use([add.value], [Num(target.dtype, target.shape)], scope)


def plain(type_: Type) -> bool:
    """Whether a type can be a cotangent's: a float of a NumPy kind."""
    return isinstance(type_, Num) and type_.floating and not type_.python


def verify_program(program: Program, rule: TypeRule | None = None) -> None:
    """Raises InternalError if the program is broken; without `rule` types of primitives are not checked."""
    _Checker(program, rule).check()


def verify_adjoints(
    program: Program, adjoints: Mapping[int, AdjointRegion] | Iterable[AdjointRegion], rule: TypeRule | None = None
) -> None:
    """Raises InternalError if an adjoint is broken."""
    checker = _Checker(program, rule)
    for adjoint in adjoints.values() if isinstance(adjoints, Mapping) else adjoints:
        checker.adjoint(adjoint)
