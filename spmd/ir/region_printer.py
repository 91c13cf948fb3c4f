"""Writes a program in regions, and its adjoints, as text for people and golden tests.

The invariant: everything that the runtime uses is shown. There is no parser for this text.

    region 3 of encode  jump 4
      load  h <- c2
      %0: float64[4] = tanh %h
      store c2 <- %0
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spmd.ir.core import Value
from spmd.ir.printer import Printer, table_text
from spmd.ir.region import (
    Add,
    AdjointRegion,
    Branch,
    Column,
    Exit,
    Fork,
    FunctionRegions,
    Jump,
    Leave,
    Program,
    Raise,
    Region,
    Seed,
    Site,
)
from spmd.ir.text import literal, quoted, type_text


def column_text(column: Column) -> str:
    """A column by number, with its name if it has one."""
    return f"c{column.id}" + (f".{column.name}" if column.name else "")


class RegionPrinter:
    """One printer per text; names are unique within a region and the inputs."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.printer = Printer(orders=True, inputs=program.inputs)
        self.lines = self.printer.lines

    def uses(self, values: Sequence[Value]) -> str:
        return self.printer.uses(values)

    def region(self, region: Region) -> None:
        self.printer.local()
        self.lines.append(f"  region {region.id}")
        for column, value in region.loads:
            self.lines.append(f"    {self.printer.typed([value])} = column {column_text(column)}")
        for op in region.ops:
            self.printer.op(op, "    ")
        for column, value in region.stores:
            self.lines.append(f"    {column_text(column)} := {self.uses([value])}")
        self.exit(region.exit)

    def exit(self, out: Exit) -> None:
        if isinstance(out, Jump):
            self.lines.append(f"    jump {out.target}")
        elif isinstance(out, Branch):
            self.lines.append(f"    branch {self.uses([out.cond])} ? {out.then} : {out.other}")
        elif isinstance(out, Fork):
            self.lines += [f"    {self.site(site)}" for site in out.sites]
            self.lines.append(f"    join {out.target}")
        elif isinstance(out, Leave):
            self.lines.append(f"    leave {self.uses(out.values)}".rstrip())
        elif isinstance(out, Raise):
            self.lines.append(f"    raise {literal(out.error)}")
        else:
            self.lines.append("    dead")

    def site(self, site: Site) -> str:
        args = [self.uses([v]) for v in site.args]
        if site.count is None:
            how = f"fork @{site.function}({', '.join(args)})"
        else:
            pairs = ", ".join(f"{word} {arg}" for word, arg in zip(site.each, args, strict=True))
            how = f"map {self.uses([site.count])} x @{site.function}({pairs})"
        guards = " and ".join(("" if truth else "not ") + self.uses([v]) for v, truth in site.guards)
        how += f" if {guards}" if guards else ""
        return f"{column_text(site.child)} := {how} #{'.'.join(map(str, site.order))}"

    def function(self, function: FunctionRegions) -> None:
        self.lines.append(f"function {quoted('@' + function.name)} from {function.entry}")
        for word, columns in (("param", function.params), ("result", function.results)):
            for column in columns:
                self.lines.append(f"  {word} {self.slot(column)}")
        for column in function.columns:
            if column not in function.params and column not in function.results:
                self.lines.append(f"  {self.slot(column)}")
        for number in function.regions:
            self.region(self.program.regions[number])

    def slot(self, column: Column) -> str:
        return f"{column_text(column)}: {type_text(column.type)}" + ("" if column.single else " many")

    def header(self) -> None:
        self.lines.append(f"program {quoted('@' + self.program.entry)}")
        self.lines += [f"input {self.printer.typed([value])}" for value in self.program.inputs]
        self.lines += [table_text(table) for table in self.program.tables.values()]
        if self.program.prologue is not None:
            self.lines.append("prologue")
            self.printer.block(self.program.prologue, "  ")

    # ---- adjoints
    def adjoint(self, adjoint: AdjointRegion) -> None:
        self.printer.local()
        name = f"adjoint of region {adjoint.id}" if adjoint.id >= 0 else "adjoint of the prologue"
        self.lines.append(name)
        if adjoint.residuals:
            self.lines.append(f"  tape {self.printer.typed(adjoint.residuals)}")
        for seed in adjoint.seeds:
            self.lines.append(f"  {self.printer.typed([seed.value])} = cotangent of {self.seed(seed)}")
        for op in adjoint.ops:
            self.printer.op(op, "  ")
        for add in adjoint.adds:
            self.lines.append(f"  {self.add(add)} += {self.uses([add.value])}")

    def seed(self, seed: Seed) -> str:
        if seed.kind == "argument":
            return f"argument {seed.index} of site {seed.site}"
        if seed.kind == "input":
            return f"input {seed.index}"
        assert seed.column is not None
        return f"{seed.kind} {column_text(seed.column)}"

    def add(self, add: Add) -> str:
        if add.kind == "column":
            assert add.column is not None
            return column_text(add.column)
        if add.kind == "input":
            assert add.input is not None
            return f"input {self.uses([add.input])}"
        assert add.ref is not None
        return f"{add.kind} {add.table}[{self.uses([add.ref])}].{add.index}"


def program_text(program: Program) -> str:
    """The whole program as text."""
    printer = RegionPrinter(program)
    printer.header()
    for function in program.functions.values():
        printer.function(function)
    return printer.printer.text()


def adjoints_text(program: Program, adjoints: Mapping[int, AdjointRegion]) -> str:
    """The adjoints of a program's regions as text, in the order of the regions."""
    printer = RegionPrinter(program)
    for number in sorted(adjoints):
        printer.adjoint(adjoints[number])
    return printer.printer.text()
