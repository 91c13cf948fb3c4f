"""The source of a function object: its syntax tree with positions that are true in the user's file.

Invariant: the tree belongs to exactly the code that the function runs. The whole file, cell or prompt input is parsed,
so nothing is dedented and no position needs mending; what is found is compiled again and compared with the function's
code, because a file that was edited after it was loaded would otherwise give wrong numbers without an error. Must not
know what the front end does with the tree.
"""

from __future__ import annotations
import __future__

import ast
import inspect
import linecache
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from types import CodeType, FunctionType
from typing import Any

from spmd.errors import SourceUnavailable
from spmd.spans import Span as Span
from spmd.spans import render_span as render_span

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

_FUTURES = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)


class SourceFile:
    """The text of one file, notebook cell or prompt input, parsed and compiled on demand.

    `name` is the file name that code objects carry. `flags` are those of ``compile`` (a cell keeps the ``__future__``
    imports of earlier cells). Raises SyntaxError from `tree` and `code` if the text is not Python.
    """

    def __init__(self, name: str, text: str, flags: int = 0) -> None:
        self.name = name
        self.text = text
        self.flags = flags

    @cached_property
    def lines(self) -> list[str]:
        """Lines without their ends, split where Python's tokenizer splits (not at form feeds, as splitlines does)."""
        return self.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")

    @cached_property
    def tree(self) -> ast.Module:
        tree = self._compile(ast.PyCF_ONLY_AST)
        assert isinstance(tree, ast.Module)
        return tree

    @cached_property
    def code(self) -> CodeType:
        code = self._compile(0)
        assert isinstance(code, CodeType)
        return code

    def _compile(self, flags: int) -> Any:
        with warnings.catch_warnings():  # the user has seen these when the file was loaded
            warnings.simplefilter("ignore")
            try:
                return compile(self.text, self.name, "exec", self.flags | flags, dont_inherit=True)
            except SyntaxError:  # notebooks allow await at the top of a cell
                more = self.flags | flags | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
                return compile(self.text, self.name, "exec", more, dont_inherit=True)

    def column(self, line: int, offset: int) -> int:
        """1-based column, in characters, of a byte offset as syntax trees have it."""
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        return offset + 1 if text.isascii() else len(text.encode()[:offset].decode(errors="replace")) + 1

    def span(self, node: Any, function: str = "") -> Span:
        """The span of a node of ``ast`` or ``gast`` that has positions."""
        end_line = node.end_lineno or node.lineno
        end = node.col_offset + 1 if node.end_col_offset is None else node.end_col_offset
        return Span(
            self.name,
            node.lineno,
            self.column(node.lineno, node.col_offset),
            end_line,
            self.column(end_line, end),
            function,
        )


@dataclass(frozen=True)
class FunctionSource:
    """What `source_of` found.

    `text` is the definition as it stands in the file, decorators included, not dedented; it begins on line `first_line`
    (1-based) after `column_offset` characters. `node` is its syntax tree: its positions are those of the file, so it
    needs no offsets. The tree is shared between callers: convert or copy it before changing it.
    """

    text: str
    file: str
    first_line: int
    column_offset: int
    node: Definition = field(compare=False)
    name: str
    origin: SourceFile = field(compare=False, repr=False)

    def span(self, node: Any = None) -> Span:
        """The span of a node of the tree (``ast`` or ``gast``); of the definition's first line if none is given."""
        if node is not None:
            return self.origin.span(node, self.name)
        line = self.node.lineno
        column = self.origin.column(line, self.node.col_offset)
        if isinstance(self.node, ast.Lambda):
            return self.origin.span(self.node, self.name)
        return Span(self.file, line, column, line, len(self.origin.lines[line - 1].rstrip()) + 1, self.name)


def source_of(function: Callable[..., Any]) -> FunctionSource:
    """Finds the definition of a Python function or bound method, in a file, a notebook cell or a prompt input.

    A wrapper made by ``functools.wraps`` is taken as what it is, not as what it wraps. Raises SourceUnavailable if
    there is no source, if it is not that of the code that runs, or if a lambda cannot be told from its neighbours.
    """
    plain = getattr(function, "__func__", function)
    if not isinstance(plain, FunctionType):
        name = getattr(function, "__name__", type(function).__name__)
        raise SourceUnavailable(
            f"'{name}' is no function written in Python: what is read is the source of a function",
            hint="wrap the call in a function of your own.",
        )
    code = plain.__code__
    origin = _load(plain)
    nodes: list[Any] = [node for node in ast.walk(origin.tree) if _could_define(node, code)]
    if not nodes:
        raise _changed(code)
    node = nodes[0] if len(nodes) == 1 else _tell_apart(nodes, code)
    if not _is_rewritten(code) and not any(_same_code(code, other) for other in _codes_like(origin.code, code)):
        raise _changed(code)
    return _describe(origin, node, code)


def _describe(origin: SourceFile, node: Definition, code: CodeType) -> FunctionSource:
    first = min([node, *_decorators(node)], key=lambda n: (n.lineno, n.col_offset))
    # A decorator's own position is after its '@', which stands where the definition stands.
    offset = node.col_offset if first is not node else first.col_offset
    lines = list(origin.lines[first.lineno - 1 : node.end_lineno])
    lines[-1] = lines[-1].encode()[: node.end_col_offset].decode(errors="replace")
    lines[0] = lines[0].encode()[offset:].decode(errors="replace")
    column = origin.column(first.lineno, offset) - 1
    return FunctionSource("\n".join(lines), origin.name, first.lineno, column, node, code.co_name, origin)


def _load(function: FunctionType) -> SourceFile:
    code = function.__code__
    file = code.co_filename
    linecache.checkcache(file)
    lines = linecache.getlines(file, function.__globals__)
    if not lines and not file.startswith("<"):
        file = inspect.getsourcefile(function) or file  # compiled files may name a path that has moved
        lines = linecache.getlines(file, function.__globals__)
    if not lines:
        typed = file.startswith("<")
        raise SourceUnavailable(
            f"the source of '{code.co_name}' is not available: "
            + (f"it was typed or built in {file}, which keeps none" if typed else f"{file} cannot be read"),
            span=_place(code),
            hint="define it in a file or a notebook cell (the prompt of Python 3.13 and later keeps its source too)."
            if typed
            else "run the program where its source files are.",
        )
    origin = _parsed(file, "".join(lines), code.co_flags & _FUTURES)
    try:
        _ = origin.tree, origin.code
    except (SyntaxError, ValueError):
        raise _changed(code) from None
    return origin


@lru_cache(maxsize=64)
def _parsed(file: str, text: str, flags: int) -> SourceFile:
    return SourceFile(file, text, flags)


def _place(code: CodeType) -> Span:
    line = code.co_firstlineno
    return Span(code.co_filename, line, 1, line, 1, code.co_name)


def _changed(code: CodeType) -> SourceUnavailable:
    return SourceUnavailable(
        f"the source of '{code.co_name}' is not what runs: the file was edited after it was loaded,"
        " or the code was rewritten on import",
        span=_place(code),
        hint="restart or reload, so that the loaded code and the file agree.",
    )


def _decorators(node: Definition) -> list[ast.expr]:
    return [] if isinstance(node, ast.Lambda) else node.decorator_list


def _could_define(node: ast.AST, code: CodeType) -> bool:
    if isinstance(node, ast.Lambda):
        return code.co_name == "<lambda>" and node.lineno == code.co_firstlineno
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == code.co_name:
        return min([node.lineno, *(d.lineno for d in node.decorator_list)]) == code.co_firstlineno
    return False


def _tell_apart(nodes: list[Any], code: CodeType) -> Definition:
    """The one of several lambdas of a line that has the function's parameters and, where Python keeps them, columns."""
    wanted = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    nodes = [node for node in nodes if tuple(_parameters(node)) == wanted]
    if len(nodes) > 1 and hasattr(code, "co_positions"):
        places = [place for place in code.co_positions() if None not in place and place[2:] != (0, 0)]
        around = [node for node in nodes if places and all(_contains(node.body, place) for place in places)]
        # Bodies around the same instructions are nested, and the innermost begins last.
        nodes = sorted(around, key=lambda node: (node.lineno, node.col_offset))[-1:]
    if len(nodes) != 1:
        raise SourceUnavailable(
            "this lambda cannot be told from the others on its line",
            span=_place(code),
            hint="give it a name with def, or put it on a line of its own.",
        )
    node: Definition = nodes[0]
    return node


def _parameters(node: ast.Lambda) -> list[str]:
    arguments = node.args
    return [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def _contains(node: ast.expr, place: Any) -> bool:
    line, end_line, column, end_column = place
    start, end = (node.lineno, node.col_offset), (node.end_lineno or node.lineno, node.end_col_offset or 0)
    return start <= (line, column) and (end_line, end_column) <= end


def _codes_like(code: CodeType, wanted: CodeType) -> Iterator[CodeType]:
    """All code objects inside `code` with the name and first line of `wanted`."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_name == wanted.co_name and constant.co_firstlineno == wanted.co_firstlineno:
                yield constant
            yield from _codes_like(constant, wanted)


def _is_rewritten(code: CodeType) -> bool:
    """Whether pytest has rewritten this code's assert statements; they mean the same as what the file says."""
    return any(name.startswith("@py") for name in (*code.co_names, *code.co_varnames)) or any(
        _is_rewritten(constant) for constant in code.co_consts if isinstance(constant, CodeType)
    )


def _same_code(one: CodeType, other: CodeType) -> bool:
    names = ("co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_argcount", "co_kwonlyargcount")
    if any(getattr(one, name) != getattr(other, name) for name in names):
        return False
    return len(one.co_consts) == len(other.co_consts) and all(map(_same_constant, one.co_consts, other.co_consts))


def _same_constant(one: Any, other: Any) -> bool:
    if isinstance(one, CodeType) and isinstance(other, CodeType):
        return _same_code(one, other)
    # repr tells 0.0 from -0.0 and takes nan as equal to itself; the order in a frozenset is free.
    return type(one) is type(other) and (repr(one) == repr(other) or (isinstance(one, frozenset) and one == other))
