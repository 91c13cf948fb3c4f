"""States what holds between any two passes, and raises InternalError where it does not.

Checked: every value is defined once and dominates its uses (structured scopes), blocks end in exactly one terminator
that fits its place, structural ops have the operand and result types of `core`, primitives have the types that their
rule gives. The verifier changes nothing and knows no primitive by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from spmd.errors import InternalError
from spmd.ir.build import TypeRule
from spmd.ir.core import STRUCTURAL, TERMINATORS, Block, Function, Module, Op, Table, Value
from spmd.ir.printer import op_text
from spmd.ir.structural import check as check_structural
from spmd.ir.structural import ruled_types
from spmd.ir.types import Num, Ref, Seq, Type, fits


def broken(what: str, op: Op | None = None, where: str = "") -> NoReturn:
    """The verifier's one way to fail."""
    place = f" in {where}" if where else ""
    shown = f"\n    {op_text(op)}" if op is not None else ""
    raise InternalError(f"IR is broken{place}: {what}{shown}", span=op.span if op is not None else None)


class Verifier:
    """Checks one module; `rule` gives the result types of primitives (None: they are not checked)."""

    def __init__(self, module: Module, rule: TypeRule | None) -> None:
        self.module = module
        self.view = ModuleView(module)
        self.rule = rule
        self.seen: set[Value] = set()
        self.where = ""

    def fail(self, what: str, op: Op | None = None) -> NoReturn:
        broken(what, op, self.where)

    def define(self, values: Sequence[Value], scope: set[Value], op: Op | None = None) -> None:
        for value in values:
            if value in self.seen:
                self.fail(f"{value} is defined twice", op)
            self.table_of(value.type, op)
            self.seen.add(value)
            scope.add(value)

    def table_of(self, type_: Type, op: Op | None) -> None:
        """Tables that a type names must exist."""
        if isinstance(type_, Num):
            return
        name = type_.table
        if name.startswith("@"):
            known = name[1:] in self.module.functions
        else:
            known = name in self.module.tables
        if not known:
            self.fail(f"there is no table {name}", op)

    def check(self) -> None:
        module = self.module
        if module.entry not in module.functions:
            self.fail(f"there is no function {module.entry}")
        scope: set[Value] = set()
        self.where = "the inputs"
        self.define(module.inputs, scope)
        for table in module.tables.values():
            check_table(table, module)
        if module.prologue is not None:
            self.prologue(module.prologue)
        for name, function in module.functions.items():
            self.where = f"function {name}"
            if function.name != name:
                self.fail(f"it is called {function.name}")
            self.function(function, set(scope))

    def prologue(self, block: Block) -> None:
        """Straight-line, over the inputs that are not derived; its yield gives the types of the derived ones."""
        self.where = "the prologue"
        if block.args or not block.ops or block.terminator.name != "yield":
            self.fail("it must be a block without arguments that ends in yield")
        given = block.terminator.operands
        first = len(self.module.inputs) - len(given)
        if first < 0:
            self.fail("it yields more values than there are inputs", block.terminator)
        derived = self.module.inputs[first:]
        self.match(given, [v.type for v in derived], block.terminator)
        self.block(block, set(self.module.inputs[:first]), Frame(None, [v.type for v in derived], None))

    def function(self, function: Function, scope: set[Value]) -> None:
        self.define(function.params, scope)
        if function.body.args:
            self.fail("the body's arguments are the function's parameters; the block has none of its own")
        self.block(function.body, scope, Frame(function, None, None))

    def block(self, block: Block, scope: set[Value], frame: Frame) -> None:
        """Ops in order; inner blocks see what is defined before them."""
        self.define(block.args, scope)
        if not block.ops or not block.terminator.terminator:
            self.fail("a block does not end in a terminator", block.ops[-1] if block.ops else None)
        for op in block.ops[:-1]:
            if op.terminator:
                self.fail("a terminator stands in the middle of a block", op)
        for op in block.ops:
            for value in op.operands:
                if value not in scope:
                    self.fail(f"{value} does not dominate its use", op)
            self.op(op, scope, frame)
            self.define(op.results, scope, op)

    def op(self, op: Op, scope: set[Value], frame: Frame) -> None:
        if op.name in TERMINATORS:
            self.terminator(op, frame)
        elif op.name == "if":
            self.branch(op, scope, frame)
        elif op.name == "loop":
            self.loop(op, scope, frame)
        elif op.blocks:
            self.fail("only `if` and `loop` own blocks", op)
        elif op.name in STRUCTURAL:
            problem = check_structural(op, self.view)
            if problem:
                self.fail(problem, op)
        else:
            self.primitive(op)

    def primitive(self, op: Op) -> None:
        if self.rule is None:
            return
        try:
            types = tuple(self.rule(op.name, ruled_types(op), op.attrs))
        except Exception as error:
            self.fail(f"the type rule refuses it: {error}", op)
        if types != tuple(v.type for v in op.results):
            self.fail(f"the type rule gives {', '.join(map(str, types))}", op)

    def branch(self, op: Op, scope: set[Value], frame: Frame) -> None:
        if len(op.operands) != 1 or op.operands[0].type not in CONDITIONS or len(op.blocks) != 2:
            self.fail("`if` takes one boolean and two blocks", op)
        inner = Frame(frame.function, [v.type for v in op.results], frame.loop)
        for block in op.blocks:
            if block.args:
                self.fail("an arm has no arguments", op)
            self.block(block, set(scope), inner)

    def loop(self, op: Op, scope: set[Value], frame: Frame) -> None:
        if len(op.blocks) != 1:
            self.fail("`loop` takes one block", op)
        (body,) = op.blocks
        self.match(op.operands, [v.type for v in body.args], op)
        self.block(body, set(scope), Frame(frame.function, None, op))

    def terminator(self, op: Op, frame: Frame) -> None:
        if op.results or op.blocks:
            self.fail("a terminator gives nothing and owns nothing", op)
        if op.name in ("raise", "unreachable"):
            if op.operands or (op.name == "raise" and "error" not in op.attrs):
                self.fail("it takes no operands; `raise` has attrs error", op)
        elif op.name == "yield":
            if frame.yields is None:
                self.fail("`yield` ends arms of `if` and the prologue only", op)
            self.match(op.operands, frame.yields, op)
        elif op.name == "return":
            if frame.function is None:
                self.fail("`return` outside a function", op)
            self.match(op.operands, frame.function.results, op)
        elif frame.loop is None:
            self.fail(f"`{op.name}` outside a loop", op)
        elif op.name == "break":
            self.match(op.operands, [v.type for v in frame.loop.results], op)
        else:
            self.match(op.operands, [v.type for v in frame.loop.blocks[0].args], op)

    def match(self, values: Sequence[Value], types: Sequence[Type], op: Op) -> None:
        if len(values) != len(types) or not all(fits(v.type, t) for v, t in zip(values, types, strict=True)):
            self.fail(f"its operands should have types ({', '.join(map(str, types))})", op)


class Frame:
    """What terminators refer to: the function, the types that `yield` must give, the innermost loop."""

    def __init__(self, function: Function | None, yields: list[Type] | None, loop: Op | None) -> None:
        self.function = function
        self.yields = yields
        self.loop = loop


class ModuleView:
    """What the checks of structural ops ask of a module."""

    def __init__(self, module: Module) -> None:
        self.module = module

    def fields(self, table: str) -> tuple[Type, ...]:
        return self.module.fields(table)

    def signature(self, function: str) -> tuple[list[Type], list[Type]] | None:
        found = self.module.functions.get(function)
        return None if found is None else ([v.type for v in found.params], list(found.results))


CONDITIONS = (Num("bool"), Num("bool", python=True))


def check_table(table: Table, module: Module) -> None:
    """Labels match fields; links lead to tables that exist."""
    if len(table.fields) != len(table.labels):
        broken(f"table {table.name} has {len(table.fields)} fields and {len(table.labels)} labels")
    for type_ in table.fields:
        if isinstance(type_, (Ref, Seq)) and type_.table not in module.tables:
            broken(f"a field of table {table.name} leads to {type_.table}, which is no input table")


def verify(module: Module, rule: TypeRule | None = None) -> None:
    """Raises InternalError, with the text of the op, if the module is broken.

    `rule` is the type rule of the primitives (`spmd.ops.table.type_rule`); without it their types are not checked.
    """
    Verifier(module, rule).check()
