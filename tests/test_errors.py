"""One error form, each class at least once; what happens to an example's exception; what a user's traceback shows."""

from __future__ import annotations

import io
import linecache
import pickle
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import spmd.errors as errors
from spmd.config import configure
from spmd.errors import CODES, ERRORS, BatchError, MemoryBudgetError, SpmdError, UnsupportedSyntax, attach_example
from spmd.spans import Span

Golden = Callable[[str, str, str], None]
ROOT = Path(__file__).resolve().parent.parent

MODEL = '''import numpy as np

def leaf(p, word):
    return p.emb[word]

def encode(p, node):
    if node.left is None:
        return leaf(p, node.word)
    for child in node.children:
        yield encode(p, child)
    return np.concatenate([p.W @ node.x,
                           node.left.h])

def forward(p, tree):
    return encode(p, tree)
'''


@pytest.fixture
def model() -> Iterator[Callable[..., Span]]:
    """``model(text, function)``: the span of a piece of a small program named model.py."""
    name = "model.py"
    linecache.cache[name] = (len(MODEL), None, MODEL.splitlines(keepends=True), name)

    def find(piece: str, function: str = "encode") -> Span:
        start = MODEL.index(piece)
        end = start + len(piece)
        line, end_line = MODEL.count("\n", 0, start) + 1, MODEL.count("\n", 0, end) + 1
        column = start - (MODEL.rfind("\n", 0, start) + 1) + 1
        return Span(name, line, column, end_line, end - (MODEL.rfind("\n", 0, end) + 1) + 1, function)

    yield find
    del linecache.cache[name]


def samples(span: Callable[..., Span]) -> dict[str, SpmdError]:
    """One refusal of each class, as the compiler may raise it."""
    called = [("forward", span("encode(p, tree)", "forward"))]
    shapes = "concatenate: arrays of shapes (3,) and (2, 2) do not join along axis 0"
    return {
        "E01": errors.SourceUnavailable("the source of 'f' is not available", span=Span("<stdin>", 1, 1, 1, 1, "f")),
        "E02": errors.UnknownName("name 'np' is not defined", span=span("np.concatenate")),
        "E03": errors.UnsupportedFunction(
            "'encode' is a generator", span=span("encode(p, child)"), hint="return a list.", calls=called
        ),
        "E04": errors.UnsupportedAttribute("Node has no attribute 'children'", span=span("node.children")),
        "E05": errors.UnsupportedType("trees[3].word is a set", hint="numbers, str, arrays, containers and objects."),
        "E06": errors.TypeMismatch("'@' of int and float64[3]", span=span("p.W @ node.x")),
        "E07": UnsupportedSyntax(
            "'yield' cannot run in lanes",
            span=span("yield encode(p, child)"),
            hint="collect into a list, or return a fold.",
            calls=called,
        ),
        "E08": errors.ShapeMismatch(shapes, span=span("np.concatenate([p.W @ node.x,\n" + " " * 27 + "node.left.h])")),
        "E09": BatchError.of_lengths([("trees", 1025), ("labels", 1)]),
        "E10": errors.StructureError("node.left is None", span=span("node.left.h"), example=3, calls=called * 5),
        "E11": errors.GradientError("argument 'n' is an int, which has no gradient", hint="pass a float."),
        "E12": MemoryBudgetError.of_recursion("encode", 1234567, 1 << 30, span=span("encode(p, child)"), example=0),
        "E13": errors.InternalError("verify after 'inline': value %3 is used before it is defined"),
        "E14": errors.OptionError("target='gpu' does not exist", hint="auto, simd, blas or reference."),
    }


@pytest.mark.parametrize("code", sorted(CODES))
def test_the_text_of_each_error(code: str, model: Callable[..., Span], golden: Golden) -> None:
    error = samples(model)[code]
    assert type(error) is CODES[code][0]
    golden("errors", code, error.render(color=False))
    assert len(error.render(color=False).splitlines()) <= 12


def test_codes_are_unique_and_in_order() -> None:
    assert [error.code for error in ERRORS] == sorted(CODES) and len(CODES) == len(ERRORS)
    assert all(title.endswith(".") for _, title in CODES.values())


def test_str_is_the_form_after_the_class_name(model: Callable[..., Span]) -> None:
    error = samples(model)["E07"]
    assert "spmd.UnsupportedSyntax " + str(error).replace("]", "]:", 1) == error.render(color=False)
    printed = "".join(traceback.format_exception_only(type(error), error))
    assert printed.startswith("spmd.UnsupportedSyntax: [E07] 'yield' cannot run in lanes\n  --> model.py:10:9, in ")


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (errors.TypeMismatch, TypeError),
        (errors.ShapeMismatch, ValueError),
        (errors.BatchError, ValueError),
        (errors.GradientError, TypeError),
        (errors.UnknownName, NameError),
        (errors.MemoryBudgetError, MemoryError),
    ],
)
def test_errors_are_also_what_python_would_raise(error: type[SpmdError], builtin: type[Exception]) -> None:
    assert issubclass(error, builtin) and issubclass(error, SpmdError)


def test_errors_survive_pickling_between_processes(model: Callable[..., Span]) -> None:
    for error in samples(model).values():
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error) and str(copy) == str(error) and copy.span == error.span


def test_colour_only_on_a_terminal_without_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    error = UnsupportedSyntax("no", hint="yes")
    assert "\x1b" not in str(error)
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert "\x1b" in error.render()
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in error.render()
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert "\x1b" not in error.render()


def test_coloured_text_says_the_same(model: Callable[..., Span]) -> None:
    import re

    for error in samples(model).values():
        assert re.sub("\x1b\\[[0-9;]*m", "", error.render(color=True)) == error.render(color=False)


def test_user_text_cannot_drive_the_terminal() -> None:
    assert "\x1b" not in UnsupportedSyntax("key '\x1b[2J'", hint="\x1b[31m").render(color=False)


def test_long_messages_are_cut_to_a_screen() -> None:
    text = str(BatchError.of_lengths([(f"a{i}", i) for i in range(100)]))
    assert len(text.splitlines()) < 24 and "more lines" in text


def test_an_example_keeps_its_exception_object(model: Callable[..., Span]) -> None:
    original = ZeroDivisionError("division by zero")
    marked = attach_example(original, 3, model("p.W @ node.x"))
    assert marked is original and marked.args == ("division by zero",)
    assert marked.example == 3  # type: ignore[attr-defined]
    note = "in example 3, model.py:11: return np.concatenate([p.W @ node.x,"
    assert marked.__notes__ == [note]  # type: ignore[attr-defined]


def test_an_exception_that_takes_no_attributes_is_left_alone() -> None:
    class Closed(Exception):
        def __setattr__(self, name: str, value: Any) -> None:
            raise AttributeError(name)

    original = Closed("x")
    assert attach_example(original, 1) is original


def test_a_refusal_takes_the_example_into_its_form(model: Callable[..., Span]) -> None:
    error = attach_example(errors.StructureError("a cycle"), 2, model("node.x"))
    assert "in example 2" in str(error) and error.span is not None


def run_program(tmp_path: Path, text: str, **variables: str) -> list[str]:
    """The lines that a program prints to stderr, with the compiler's entrance played by a module in its package."""
    program = tmp_path / "user.py"
    program.write_text(text)
    environment = {"PYTHONPATH": str(ROOT), "PATH": "", **variables}
    run = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert run.returncode == 1
    return run.stderr.splitlines()


# A function compiled under a file name in the package stands for the compiler.
PROGRAM = '''
import spmd.errors, os
inside = os.path.join(os.path.dirname(spmd.errors.__file__), "pretend.py")
text = """
from spmd.errors import *
def deep(error):
    try:
        {}["key"]
    except KeyError:
        raise error
def with_block(error):
    with hide_compiler_frames():
        deep(error)
@hide_compiler_frames()
def decorated(error):
    deep(error)
"""
space = {}
exec(compile(text, inside, "exec"), space)

def user(error):
    space["ENTRANCE"](error)

user(ERROR)
'''


def files_of(lines: list[str]) -> list[str]:
    return [Path(line.split('"')[1]).name for line in lines if line.startswith('  File "')]


@pytest.mark.parametrize("entrance", ["with_block", "decorated"])
@pytest.mark.parametrize(
    "error",
    ["spmd.errors.UnsupportedSyntax('no')", "spmd.errors.attach_example(ZeroDivisionError('division by zero'), 3)"],
)
def test_the_traceback_shows_the_users_frames_only(tmp_path: Path, entrance: str, error: str) -> None:
    lines = run_program(tmp_path, PROGRAM.replace("ENTRANCE", entrance).replace("ERROR", error))
    expected = ["user.py", "user.py"]
    if sys.version_info < (3, 11):
        expected.append("pretend.py" if entrance == "with_block" else "errors.py")
    assert files_of(lines) == expected
    assert "KeyError" not in "\n".join(lines)


def test_the_full_traceback_on_request(tmp_path: Path) -> None:
    program = PROGRAM.replace("ENTRANCE", "decorated").replace("ERROR", "spmd.errors.UnsupportedSyntax('no')")
    lines = run_program(tmp_path, program, SPMD_TRACEBACK="full")
    assert files_of(lines).count("pretend.py") >= 2 and "KeyError" in "\n".join(lines)


@pytest.mark.parametrize("error", ["KeyError('defect')", "spmd.errors.InternalError('defect')"])
def test_a_defect_of_the_compiler_keeps_its_traceback(tmp_path: Path, error: str) -> None:
    lines = run_program(tmp_path, PROGRAM.replace("ENTRANCE", "with_block").replace("ERROR", error))
    assert "pretend.py" in files_of(lines)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="there the entrance's own frame is always shown")
def test_configure_gives_full_tracebacks_too() -> None:
    @errors.hide_compiler_frames()
    def entrance() -> None:
        raise UnsupportedSyntax("no")

    def frames() -> list[str]:
        try:
            entrance()
        except SpmdError as error:
            return [Path(frame.filename).name for frame in traceback.extract_tb(error.__traceback__)]
        return []

    assert "errors.py" in (full := _under_full(frames)) and len(full) > len(frames())


def _under_full(frames: Callable[[], list[str]]) -> list[str]:
    with configure(traceback="full"):
        return frames()


def test_a_users_own_cause_is_kept() -> None:
    @errors.hide_compiler_frames()
    def entrance() -> None:
        raise attach_example(ValueError("b"), 0) from KeyError("a")

    with pytest.raises(ValueError) as caught:
        entrance()
    assert isinstance(caught.value.__cause__, KeyError)
