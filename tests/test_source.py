"""Sources of functions: spans are true in the file, and a source that is not what runs is refused."""

from __future__ import annotations
import __future__

import ast
import functools
import importlib.util
import linecache
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from spmd.errors import SourceUnavailable
from spmd.source import SourceFile, source_of
from spmd.spans import Span, render_span, shown_file


@pytest.fixture
def module(tmp_path: Path) -> Callable[..., ModuleType]:
    """``module(text)`` writes a file and imports it."""

    def load(text: str, name: str = "written") -> ModuleType:
        file = tmp_path / f"{name}.py"
        file.write_text(text, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec is not None and spec.loader is not None
        loaded = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loaded)
        return loaded

    return load


def names_in(function: Any, name: str) -> list[Span]:
    source = source_of(function)
    return [source.span(n) for n in ast.walk(source.node) if isinstance(n, ast.Name) and n.id == name]


NESTED = '''"""doc"""
import functools
def keep(f): return f

class Cell:
    @keep
    @functools.lru_cache(
        maxsize=None)
    def plain(self): return 1

    @keep
    def step(self, x):
        text = """a
b"""
        return text, x * target

def outer():
    if True:
        def inner(x):
            return x + target
    return inner
'''


def test_spans_of_a_decorated_method_are_file_positions(module: Callable[..., ModuleType]) -> None:
    cell = module(NESTED).Cell
    (span,) = names_in(cell().step, "target")
    assert (span.line, span.column, span.end_line, span.end_column) == (15, 26, 15, 32)
    assert span.function == "step" and Path(span.file).name == "written.py"
    source = source_of(cell.step)
    assert (source.first_line, source.column_offset) == (11, 4)
    assert source.text.startswith("@keep\n    def step") and source.text.endswith("x * target")
    assert source.span() == Span(span.file, 12, 5, 12, 23, "step")


def test_spans_of_a_nested_function_are_file_positions(module: Callable[..., ModuleType]) -> None:
    (span,) = names_in(module(NESTED).outer(), "target")
    assert (span.line, span.column) == (20, 24)


def test_columns_count_characters_not_bytes(module: Callable[..., ModuleType]) -> None:
    (span,) = names_in(module("def f(x):\n    return 'äöü→', x\n").f, "x")
    assert (span.line, span.column, span.end_column) == (2, 20, 21)


def test_form_feeds_and_carriage_returns_do_not_shift_lines(module: Callable[..., ModuleType]) -> None:
    text = "a = 1\n\x0c\ndef f(x):\r\n    y = '\x1d \u2028'\n    return x, y\n"
    (span,) = names_in(module(text).f, "x")
    assert (span.line, span.column) == (5, 12)
    assert "return x, y" in render_span(span)[-2]


def test_a_lambda_alone_on_its_line_is_found(module: Callable[..., ModuleType]) -> None:
    source = source_of(module("f = (1, lambda x: x + 1)[1]\n").f)
    assert (source.text, source.first_line, source.column_offset) == ("lambda x: x + 1", 1, 8)


def test_lambdas_of_one_line_are_told_apart_by_parameters(module: Callable[..., ModuleType]) -> None:
    loaded = module("f, g = (lambda x: x), (lambda y: 2 * y)\n")
    assert source_of(loaded.g).text == "lambda y: 2 * y"


def test_lambdas_with_equal_parameters_are_told_apart_or_refused(module: Callable[..., ModuleType]) -> None:
    loaded = module("f, g = (lambda x: x), (lambda x: 2 * x)\nh = lambda x: lambda x: 3 * x\n")
    if sys.version_info < (3, 11):
        with pytest.raises(SourceUnavailable, match="cannot be told from the others"):
            source_of(loaded.g)
        return
    assert source_of(loaded.f).text == "lambda x: x"
    assert source_of(loaded.g).text == "lambda x: 2 * x"
    assert source_of(loaded.h).text == "lambda x: lambda x: 3 * x"
    assert source_of(loaded.h(1)).text == "lambda x: 3 * x"


def test_a_wrapper_is_not_taken_for_what_it_wraps() -> None:
    def inner(x: float) -> float:
        return x

    @functools.wraps(inner)
    def wrapper(x: float) -> float:
        return 2 * inner(x)

    assert "2 * inner(x)" in source_of(wrapper).text


def test_functions_with_rewritten_asserts_are_read() -> None:
    def f(x: float) -> float:
        assert x > 0
        return x

    assert source_of(f).text.startswith("def f(x")


def cell(text: str, name: str = "<ipython-input-7-0123456789ab>", flags: int = 0) -> dict[str, Any]:
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    space: dict[str, Any] = {}
    exec(compile(text, name, "exec", flags, dont_inherit=True), space)
    return space


def test_a_notebook_cell_is_read_and_shown_by_its_number() -> None:
    space = cell("import math\ndef f(x):\n    return math.exp(x)\n")
    (span,) = names_in(space["f"], "math")
    assert str(span) == "In [7]:3:12"


def test_a_cell_keeps_future_imports_of_earlier_cells() -> None:
    space = cell("def f(x: undefined_name) -> None:\n    return x\n", flags=__future__.annotations.compiler_flag)
    assert source_of(space["f"]).name == "f"


def test_a_cell_with_await_at_its_top_is_read() -> None:
    name, text = "<ipython-input-8-0123456789ab>", "def f(x):\n    return x\nif False:\n    await f(1)\n"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    space: dict[str, Any] = {}
    code = compile("def f(x):\n    return x\n", name, "exec")
    exec(code, space)
    assert source_of(space["f"]).first_line == 1


def test_functions_without_source_are_refused() -> None:
    space: dict[str, Any] = {}
    exec("def f(x): return x", space)
    with pytest.raises(SourceUnavailable, match="which keeps none") as caught:
        source_of(space["f"])
    assert caught.value.span == Span("<string>", 1, 1, 1, 1, "f")


@pytest.mark.parametrize("thing", [len, int, functools.partial(print), 3])
def test_things_that_are_not_python_functions_are_refused(thing: Any) -> None:
    with pytest.raises(SourceUnavailable, match="no function written in Python"):
        source_of(thing)


@pytest.mark.parametrize(
    "edited",
    ["def f(x):\n    return x * 3\n", "def f(x):\n    return x + 2\n", "\ndef f(x):\n    return x * 2\n", "def f(", ""],
)
def test_a_file_edited_after_loading_is_refused(module: Callable[..., ModuleType], edited: str) -> None:
    loaded = module("def f(x):\n    return x * 2\n")
    assert source_of(loaded.f).first_line == 1
    assert loaded.__file__ is not None
    Path(loaded.__file__).write_text(edited + "# edited\n")
    with pytest.raises(SourceUnavailable, match="not what runs"):
        source_of(loaded.f)


def test_an_edit_elsewhere_below_is_no_reason_to_refuse(module: Callable[..., ModuleType]) -> None:
    text = "def f(x):\n    return x * 2\n"
    loaded = module(text)
    assert loaded.__file__ is not None
    Path(loaded.__file__).write_text(text + "def g(x):\n    return x\n")
    assert source_of(loaded.f).text == "def f(x):\n    return x * 2"


def test_a_removed_file_is_refused(module: Callable[..., ModuleType]) -> None:
    loaded = module("def f(x):\n    return x * 2\n", "removed")
    assert loaded.__file__ is not None
    Path(loaded.__file__).unlink()
    with pytest.raises(SourceUnavailable, match="cannot be read"):
        source_of(loaded.f)


def shown(text: str, line: int, column: int, end_line: int, end_column: int) -> list[str]:
    name = f"<text {abs(hash(text))}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    return render_span(Span(name, line, column, end_line, end_column))


def test_the_caret_stands_below_what_is_meant() -> None:
    assert shown("for c in kids:\n    yield f(c)\n", 2, 5, 2, 15) == [
        "    1 | for c in kids:",
        "    2 |     yield f(c)",
        "      |     ^^^^^^^^^^",
    ]


def test_a_span_over_lines_is_underlined_to_the_end_of_the_first() -> None:
    assert shown("y = f(a,\n      b)\n", 1, 5, 2, 9) == ["    1 | y = f(a,", "      |     ^^^^ ..."]


def test_wide_characters_and_tabs_keep_the_caret_in_place() -> None:
    assert shown("\tx = '木' + y\n", 1, 12, 1, 13)[-1] == "      | \t" + " " * 11 + "^"


def test_long_lines_are_cut_around_the_span() -> None:
    text = "x = " + " + ".join(f"name{i}" for i in range(200)) + "\n"
    column = text.index("name150") + 1
    source, caret = shown(text, 1, column, 1, column + 7)
    assert len(source) < 140
    assert source[caret.index("^") :].startswith("name150") and caret.count("^") == 7


def test_control_characters_in_source_do_not_reach_the_terminal() -> None:
    assert "\x1b" not in "".join(shown("x = '\x1b[31m'\n", 1, 1, 1, 2))


def test_files_below_the_working_folder_are_shown_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert shown_file(str(tmp_path / "a" / "model.py")) == str(Path("a") / "model.py")
    assert shown_file(str(tmp_path.parent / "other.py")) == str(tmp_path.parent / "other.py")


def test_a_source_file_gives_spans_of_its_tree() -> None:
    file = SourceFile("t.py", "x = 1\ny = x\n")
    assert file.span(file.tree.body[1], "f") == Span("t.py", 2, 1, 2, 6, "f")
