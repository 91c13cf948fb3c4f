"""Writes a module as text.

The invariant: `parser.parse(text(m))` is a module whose text is the same. Spans and program positions are written
on request. The printer checks nothing: a broken module prints too, so that the verifier can show it.

    module @main
    input %w: float64[4, 4]
    table node(left: ref<node?>, word: int) unique

    func @main(%x: float64[4]) -> (float64[4]) {
      %0: float64[4] = matmul %w, %x
      return %0
    }
"""

from __future__ import annotations

from collections.abc import Sequence

from spmd.ir.core import Block, Function, Module, Op, Table, Value
from spmd.ir.text import Names, literal, quoted, string_text, type_text
from spmd.spans import Span


class Printer:
    """Collects lines. Names are unique within a function and the module inputs."""

    def __init__(self, spans: bool = False, orders: bool = False, inputs: Sequence[Value] = ()) -> None:
        self.inputs = list(inputs)
        self.names = Names(inputs)
        self.lines: list[str] = []
        self.spans = spans
        self.orders = orders

    def typed(self, values: Sequence[Value]) -> str:
        """Definitions: `%x: int, %y: float`."""
        return ", ".join(f"%{self.names.define(v)}: {type_text(v.type)}" for v in values)

    def uses(self, values: Sequence[Value]) -> str:
        return ", ".join(self.names[v] for v in values)

    def op(self, op: Op, indent: str) -> None:
        """One op with its blocks."""
        head = " ".join(part for part in (op.name, self.uses(op.operands)) if part)
        if op.attrs:
            head += " [" + ", ".join(f"{key}={literal(value)}" for key, value in op.attrs.items()) + "]"
        if self.orders and op.order:
            head += " #" + ".".join(str(k) for k in op.order)
        if self.spans and op.span is not None:
            head += " " + span_text(op.span)
        at = len(self.lines)
        self.lines.append("")
        for number, block in enumerate(op.blocks):
            opening = (f" ({self.typed(block.args)})" if block.args else "") + " {"
            if number == 0:
                head += opening
            else:
                self.lines.append(f"{indent}}}{' else' if op.name == 'if' else ''}{opening}")
            self.block(block, indent + "  ")
        if op.blocks:
            self.lines.append(f"{indent}}}")
        results = self.typed(op.results)  # after the blocks: they do not see the op's results
        self.lines[at] = indent + (f"{results} = {head}" if results else head)

    def block(self, block: Block, indent: str) -> None:
        for op in block.ops:
            self.op(op, indent)

    def local(self) -> None:
        """Names start afresh behind those of the inputs."""
        self.names = Names(self.inputs)

    def function(self, function: Function) -> None:
        self.local()
        params = self.typed(function.params)
        results = ", ".join(type_text(t) for t in function.results)
        span = " " + span_text(function.span) if self.spans and function.span else ""
        self.lines.append(f"func {quoted('@' + function.name)}({params}) -> ({results}){span} {{")
        self.block(function.body, "  ")
        self.lines += ["}", ""]

    def module(self, module: Module) -> None:
        self.lines.append(f"module {quoted('@' + module.entry)}")
        derived = len(module.prologue.terminator.operands) if module.prologue and module.prologue.ops else 0
        for number, value in enumerate(module.inputs):
            word = "derived" if number >= len(module.inputs) - derived else "input"
            self.lines.append(f"{word} {self.typed([value])}")
        self.inputs = module.inputs
        for table in module.tables.values():
            self.lines.append(table_text(table))
        self.lines.append("")
        if module.prologue is not None:
            self.local()
            self.lines.append("prologue {")
            self.block(module.prologue, "  ")
            self.lines += ["}", ""]
        for function in module.functions.values():
            self.function(function)

    def text(self) -> str:
        return "\n".join(self.lines).rstrip("\n") + "\n"


def table_text(table: Table) -> str:
    """`table name(label: type, ...)` with its flags."""
    fields = ", ".join(f"{quoted(label)}: {type_text(t)}" for label, t in zip(table.labels, table.fields, strict=True))
    flags = (" unique" if table.unique else "") + (" shared" if table.shared else "")
    return f"table {quoted(table.name)}({fields}){flags}"


def span_text(span: Span) -> str:
    """`@"file":line:column-line:column:"function"`."""
    end = f"{span.end_line}:{span.end_column}"
    return f"@{string_text(span.file)}:{span.line}:{span.column}-{end}:{string_text(span.function)}"


def module_text(module: Module, *, spans: bool = False, orders: bool = False) -> str:
    """The whole module as text."""
    printer = Printer(spans, orders)
    printer.module(module)
    return printer.text()


def op_text(op: Op) -> str:
    """One op as text, for error messages; operands are shown with their types."""
    printer = Printer()
    operands = printer.typed(op.operands)
    printer.op(op, "")
    head = printer.text().rstrip("\n")
    return f"{head}    where {operands}" if operands else head
