"""Reads a module from the text that `printer` writes.

The invariant: inverse of the printer. Every name must be defined before it is used, in this text; types are read, not
inferred. Exception classes other than builtins must be handed in. Lines that start with `;` are comments.
"""

from __future__ import annotations

import ast
import builtins
import math
import re
from collections.abc import Mapping
from typing import Any

from spmd.ir.core import Block, Function, Module, Op, Table, Value
from spmd.ir.text import read_array
from spmd.ir.types import BOOL, FLOAT, INT, TEXT, Num, Ref, Seq, Type
from spmd.spans import Span

_WORD = re.compile(r"[A-Za-z_@][\w.@$]*")
_VALUE = re.compile(r"%([\w.]+)")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_NUMBER = re.compile(r"-?\d+")
_PLAIN = {"int": INT, "float": FLOAT, "pybool": BOOL, "str": TEXT, "complex": Num("complex128", python=True)}


class ParseError(ValueError):
    """The text is no IR; the message names the line."""


class Scanner:
    """One line of text and a position in it."""

    def __init__(self, line: str, number: int) -> None:
        self.line = line
        self.number = number
        self.at = 0

    def fail(self, what: str) -> ParseError:
        return ParseError(f"line {self.number}: {what} expected at {self.line[self.at :]!r}")

    def skip(self) -> None:
        while self.at < len(self.line) and self.line[self.at] == " ":
            self.at += 1

    def accept(self, token: str) -> bool:
        self.skip()
        if self.line.startswith(token, self.at):
            self.at += len(token)
            return True
        return False

    def expect(self, token: str) -> None:
        if not self.accept(token):
            raise self.fail(repr(token))

    def match(self, pattern: re.Pattern[str], what: str) -> str:
        self.skip()
        found = pattern.match(self.line, self.at)
        if not found:
            raise self.fail(what)
        self.at = found.end()
        return found.group(0)

    def peek(self, token: str) -> bool:
        self.skip()
        return self.line.startswith(token, self.at)

    def done(self) -> bool:
        self.skip()
        return self.at >= len(self.line)

    def name(self) -> str:
        """A bare word or a string literal."""
        self.skip()
        if self.line.startswith('"', self.at):
            return str(ast.literal_eval(self.match(_STRING, "string")))
        return self.match(_WORD, "name")

    def integer(self) -> int:
        return int(self.match(_NUMBER, "integer"))

    def type(self) -> Type:
        word = self.match(re.compile(r"\w+"), "type")
        if word in ("ref", "seq"):
            self.expect("<")
            table = self.name()
            nullable = word == "ref" and self.accept("?")
            self.expect(">")
            return Ref(table, nullable) if word == "ref" else Seq(table)
        if word in _PLAIN:
            return _PLAIN[word]
        shape: list[int | None] = []
        if self.accept("["):
            while not self.accept("]"):
                shape.append(None if self.accept("?") else self.integer())
                self.accept(",")
        return Num(word, tuple(shape))

    def bracketed(self) -> str:
        """The text of a balanced [...] that starts here, without the brackets."""
        start, depth = self.at, 0
        while self.at < len(self.line):
            char = self.line[self.at]
            if char in "\"'":
                found = re.compile(rf"{char}(?:[^{char}\\]|\\.)*{char}").match(self.line, self.at)
                if not found:
                    raise self.fail("end of string")
                self.at = found.end()
                continue
            depth += (char in "[({") - (char in "])}")
            self.at += 1
            if depth == 0:
                return self.line[start + 1 : self.at - 1]
        raise self.fail("']'")


class Evaluator:
    """Attribute values: literals and the few calls that `text.literal` writes."""

    def __init__(self, classes: Mapping[str, type]) -> None:
        self.classes = classes

    def attrs(self, text: str) -> dict[str, Any]:
        call = ast.parse(f"_({text})", mode="eval").body
        assert isinstance(call, ast.Call)
        return {str(k.arg): self.value(k.value) for k in call.keywords}

    def value(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Tuple):
            return tuple(self.value(e) for e in node.elts)
        if isinstance(node, ast.List):
            return [self.value(e) for e in node.elts]
        if isinstance(node, ast.Dict):
            return {self.value(k): self.value(v) for k, v in zip(node.keys, node.values, strict=True) if k is not None}
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self.value(node.operand)
        if isinstance(node, ast.Name) and node.id in ("nan", "inf"):
            return math.nan if node.id == "nan" else math.inf
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return self.call(node.func.id, [self.value(a) for a in node.args])
        raise ParseError(f"{ast.unparse(node)} is no attribute value")

    def call(self, word: str, args: list[Any]) -> Any:
        if word in ("array", "scalar"):
            dtype, *rest = args
            return read_array(word, dtype, rest[0] if word == "array" else (), rest[-1])
        if word == "complex":
            return complex(*args)
        if word == "slice":
            return slice(*args)
        if word == "type":
            return Scanner(args[0], 0).type()
        if word == "cls":
            return self.resolve(args[0])
        raise ParseError(f"{word} is no attribute value")

    def resolve(self, path: str) -> type:
        if path in self.classes:
            return self.classes[path]
        module, _, name = path.partition(":")
        found = getattr(builtins, name, None) if module == "builtins" else None
        if not isinstance(found, type):
            raise ParseError(f"class {path} is not known here; hand it to parse(classes=...)")
        return found


class Parser:
    """Walks over the lines of one module."""

    def __init__(self, text: str, classes: Mapping[str, type]) -> None:
        lines = [(number, line.strip()) for number, line in enumerate(text.split("\n"), 1)]
        self.lines = [(n, line) for n, line in lines if line and not line.startswith(";")]
        self.at = 0
        self.evaluator = Evaluator(classes)
        self.values: dict[str, Value] = {}
        self.order = 0

    def next(self) -> Scanner:
        if self.at >= len(self.lines):
            raise ParseError("the text ends within a block")
        number, line = self.lines[self.at]
        self.at += 1
        return Scanner(line, number)

    def definition(self, scan: Scanner) -> Value:
        name = scan.match(_VALUE, "value")[1:]
        scan.expect(":")
        if name in self.values:
            raise ParseError(f"line {scan.number}: %{name} is defined twice")
        value = Value(scan.type(), "" if name.isdigit() else name)
        self.values[name] = value
        return value

    def use(self, scan: Scanner) -> Value:
        name = scan.match(_VALUE, "value")[1:]
        if name not in self.values:
            raise ParseError(f"line {scan.number}: %{name} is not defined")
        return self.values[name]

    def definitions(self, scan: Scanner, end: str) -> list[Value]:
        found = []
        while not scan.accept(end):
            found.append(self.definition(scan))
            scan.accept(",")
        return found

    def span(self, scan: Scanner) -> Span:
        file = scan.name()
        numbers = []
        for token in (":", ":", "-", ":"):
            scan.expect(token)
            numbers.append(scan.integer())
        scan.expect(":")
        return Span(file, numbers[0], numbers[1], numbers[2], numbers[3], scan.name())

    def op(self, scan: Scanner) -> Op:
        """One op; its blocks follow on the next lines."""
        pending: list[tuple[str, Type]] = []
        if scan.peek("%"):
            while not scan.accept("="):
                name = scan.match(_VALUE, "value")[1:]
                scan.expect(":")
                pending.append((name, scan.type()))
                scan.accept(",")
        op = Op(scan.match(_WORD, "op"), [], {}, [])
        while scan.peek("%"):
            op.operands.append(self.use(scan))
            scan.accept(",")
        if scan.peek("["):
            op.attrs = self.evaluator.attrs(scan.bracketed())
        self.order += 1
        op.order = (self.order,)
        if scan.accept("#"):
            op.order = tuple(int(k) for k in scan.match(re.compile(r"[\d.]+"), "position").split("."))
        if scan.accept("@"):
            op.span = self.span(scan)
        if not scan.done():
            self.blocks(op, scan)
        for name, type_ in pending:
            if name in self.values:
                raise ParseError(f"line {scan.number}: %{name} is defined twice")
            self.values[name] = Value(type_, "" if name.isdigit() else name)
            op.results.append(self.values[name])
        return op

    def blocks(self, op: Op, scan: Scanner) -> None:
        """`(args) {`, lines, `}` and perhaps another `else (args) {` on that line."""
        while True:
            block = Block(self.definitions(scan, ")") if scan.accept("(") else [])
            scan.expect("{")
            op.blocks.append(block)
            scan = self.body(block)
            scan.accept("else")
            if scan.done():
                return

    def body(self, block: Block) -> Scanner:
        """Ops up to the line that closes the block; gives that line, behind the brace."""
        while True:
            scan = self.next()
            if scan.accept("}"):
                return scan
            block.ops.append(self.op(scan))

    def local(self, module: Module) -> None:
        """Names start afresh behind those of the inputs."""
        self.values = {name: v for name, v in self.values.items() if v in set(module.inputs)}

    def function(self, scan: Scanner) -> Function:
        name = scan.name()[1:]
        scan.expect("(")
        params = self.definitions(scan, ")")
        scan.expect("->")
        scan.expect("(")
        results = []
        while not scan.accept(")"):
            results.append(scan.type())
            scan.accept(",")
        span = self.span(scan) if scan.accept("@") else None
        scan.expect("{")
        function = Function(name, params, results, Block(), span)
        self.body(function.body)
        return function

    def table(self, scan: Scanner) -> Table:
        name = scan.name()
        labels, fields = [], []
        scan.expect("(")
        while not scan.accept(")"):
            labels.append(scan.name())
            scan.expect(":")
            fields.append(scan.type())
            scan.accept(",")
        unique = scan.accept("unique")
        return Table(name, tuple(fields), tuple(labels), unique, scan.accept("shared"))

    def module(self) -> Module:
        scan = self.next()
        scan.expect("module")
        module = Module({}, scan.name()[1:], [], {})
        while self.at < len(self.lines):
            scan = self.next()
            if scan.accept("input ") or scan.accept("derived "):
                module.inputs.append(self.definition(scan))
            elif scan.accept("table "):
                table = self.table(scan)
                module.tables[table.name] = table
            elif scan.accept("prologue"):
                scan.expect("{")
                self.local(module)
                module.prologue = Block()
                self.body(module.prologue)
            else:
                scan.expect("func ")
                self.local(module)
                function = self.function(scan)
                module.functions[function.name] = function
        return module


def parse(text: str, classes: Mapping[str, type] | None = None) -> Module:
    """The module that the text shows. Raises ParseError, naming the line.

    `classes` maps 'module:QualifiedName' to exception classes that stand in the text and are no builtins.
    """
    return Parser(text, classes or {}).module()
