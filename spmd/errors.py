"""Every refusal that a user can meet, in one form, and what is done to exceptions on their way out.

Invariant: a refusal has a code, fits one screen, names the user's line where there is one, and says what to do. Its
text has no colour unless the caller of ``render`` asks for it. An exception that an example raised keeps its type,
identity and arguments. Must not know the compiler's stages: they raise, this file only gives the form.
"""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from spmd.config import options
from spmd.spans import Span, printable, render_span

P = ParamSpec("P")
R = TypeVar("R")
Call = tuple[str, Span]

_CALLS_SHOWN = 3
_LINES_SHOWN = 14
_BOLD, _RED, _BLUE, _PLAIN = "\x1b[1m", "\x1b[1;31m", "\x1b[1;34m", "\x1b[0m"


class SpmdError(Exception):
    """Base of every refusal: what cannot be done right is refused, with the line that asks for it.

    ``code`` names the section that ``spmd help CODE`` prints; ``span`` is the place in the user's file or None;
    ``hint`` says what to write instead; ``example`` is the index of the example to blame, if one is; ``calls`` is the
    chain of calls that led there, nearest caller first, as (name of the calling function, span of the call).
    """

    code = "E00"

    def __init__(
        self,
        message: str,
        *,
        span: Span | None = None,
        hint: str | None = None,
        example: int | None = None,
        calls: Sequence[Call] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.hint = hint
        self.example = example
        self.calls = tuple(calls)

    def __str__(self) -> str:
        """The one-screen form after the class name, which Python's own traceback prints before it."""
        first, *rest = self._lines()
        return "\n".join([f"[{self.code}] {first}", *rest])

    def render(self, color: bool | None = None) -> str:
        """The one-screen form with the class name. Colour by default only if stderr is a terminal without NO_COLOR."""
        if color is None:
            color = color_wanted(sys.stderr)
        first, *rest = self._lines()
        if not color:
            return "\n".join([f"spmd.{type(self).__name__} [{self.code}]: {first}", *rest])
        head = f"{_RED}spmd.{type(self).__name__} [{self.code}]{_PLAIN}{_BOLD}: {first}{_PLAIN}"
        return "\n".join([head, *map(_color_line, rest)])

    def _lines(self) -> list[str]:
        first, *more = (printable(line.rstrip()) for line in self.message.split("\n"))
        lines = [first, *(f"  {line}" for line in more[:_LINES_SHOWN])]
        if len(more) > _LINES_SHOWN:
            lines.append(f"  ... and {len(more) - _LINES_SHOWN} more lines")
        if self.span is not None:
            lines.append(f"  --> {self.span}{self._circumstances()}")
            lines.extend(render_span(self.span))
        elif self.example is not None or self.calls:
            lines.append(f"  -->{self._circumstances().removeprefix(',')}")
        more_help = f"more: spmd help {self.code}"
        lines.append(f"  hint: {printable(self.hint)}   {more_help}" if self.hint else f"  {more_help}")
        return lines

    def _circumstances(self) -> str:
        parts = ""
        if self.span is not None and self.span.function:
            parts += f", in {printable(self.span.function)}"
        if self.example is not None:
            parts += f", in example {self.example}"
        if self.calls:
            shown = [f"{printable(name)}, {span.place}" for name, span in self.calls[:_CALLS_SHOWN]]
            more = len(self.calls) - _CALLS_SHOWN
            parts += f" (called from {'; from '.join(shown)}{f'; and {more} more' if more > 0 else ''})"
        return parts


def _color_line(line: str) -> str:
    body = line.lstrip()
    if body.startswith("-->"):
        return line.replace("-->", f"{_BLUE}-->{_PLAIN}", 1)
    if body.startswith("|") and set(body[1:].replace("...", "").split()) and set(body) <= set("|^ \t."):
        return line.replace(body, f"|{_RED}{body[1:]}{_PLAIN}", 1)
    if body.startswith(("hint:", "more:")):
        return f"{_BOLD}{line}{_PLAIN}"
    return line


def color_wanted(stream: Any) -> bool:
    """Whether `stream` is a terminal and its user has not set NO_COLOR."""
    return not os.environ.get("NO_COLOR") and bool(getattr(stream, "isatty", lambda: False)())


class SourceUnavailable(SpmdError):
    """The source of a function cannot be read, or is not what was loaded."""

    code = "E01"


class UnknownName(SpmdError, NameError):
    """A name that nothing defines."""

    code = "E02"


class UnsupportedFunction(SpmdError):
    """A call of a function that has no batched form."""

    code = "E03"


class UnsupportedAttribute(SpmdError):
    """An attribute or method that has no batched form, or that the value does not have."""

    code = "E04"


class UnsupportedType(SpmdError):
    """A value of a type that cannot be batched."""

    code = "E05"


class TypeMismatch(SpmdError, TypeError):
    """An operation between types that it is not defined for, or a value whose types cannot be joined."""

    code = "E06"


class UnsupportedSyntax(SpmdError):
    """A form of Python that cannot run in lanes."""

    code = "E07"


class ShapeMismatch(SpmdError, ValueError):
    """Arrays whose shapes do not fit the operation."""

    code = "E08"


class BatchError(SpmdError, ValueError):
    """The mapped arguments do not make one batch."""

    code = "E09"

    @classmethod
    def of_lengths(cls, lengths: Sequence[tuple[str, int]], *, hint: str | None = None) -> BatchError:
        """Mapped arguments of different length; `lengths` holds (argument as code, examples in it)."""
        width = max((len(name) for name, _ in lengths), default=0)
        rows = "".join(f"\n{name:<{width}}  {_count(length, 'example')}" for name, length in lengths)
        return cls(
            "the mapped arguments differ in length" + rows,
            hint=hint or "map arguments of one length; in_axes=None shares an argument between all examples.",
        )


class StructureError(SpmdError, ValueError):
    """Data whose structure the program does not fit: a child of the wrong class, None for a node, a cycle as a tree."""

    code = "E10"


class GradientError(SpmdError, TypeError):
    """A gradient that does not exist: of an integer argument, of a result that is not one number."""

    code = "E11"


class MemoryBudgetError(SpmdError, MemoryError):
    """Live frames or the tape outgrew the memory budget; recursion without end stops here."""

    code = "E12"
    # Whether fewer examples at a time would have needed less.
    divisible = False

    @classmethod
    def of_recursion(cls, function: str, depth: int, budget: int, **place: Any) -> MemoryBudgetError:
        """Recursion of `function` that stood `depth` calls deep when `budget` bytes of frames were live."""
        return cls(
            f"recursion in '{function}' was {depth:,} calls deep when its frames filled the memory budget"
            f" of {_size(budget)}",
            hint="check that every path ends; if it does, raise SPMD_BUDGET.",
            **place,
        )

    @classmethod
    def of_cycle(cls, function: str, **place: Any) -> MemoryBudgetError:
        """Recursion of `function` over objects that are linked in a cycle: a call waits for its own result."""
        return cls(
            f"recursion in '{function}' has no end: an object that it follows is linked in a cycle, so that a call"
            " needs its own result",
            hint="follow links that lead away from the first object only.",
            **place,
        )


class InternalError(SpmdError):
    """The compiler broke one of its own rules. It is never the user's fault."""

    code = "E13"

    def __init__(self, message: str, *, hint: str | None = None, **rest: Any) -> None:
        hint = hint or "this is a defect of spmd: please report it with the program and the output of 'spmd doctor'."
        super().__init__(message, hint=hint, **rest)


class OptionError(SpmdError, ValueError):
    """An option of a transformation that does not exist or does not fit: target, fp, in_axes, argnums."""

    code = "E14"


ERRORS: tuple[type[SpmdError], ...] = (
    SourceUnavailable,
    UnknownName,
    UnsupportedFunction,
    UnsupportedAttribute,
    UnsupportedType,
    TypeMismatch,
    UnsupportedSyntax,
    ShapeMismatch,
    BatchError,
    StructureError,
    GradientError,
    MemoryBudgetError,
    InternalError,
    OptionError,
)
CODES: dict[str, tuple[type[SpmdError], str]] = {
    error.code: (error, (error.__doc__ or "").partition("\n")[0]) for error in ERRORS
}
"""Code -> (class, title), in the order of the codes."""

for _error in (SpmdError, *ERRORS):
    _error.__module__ = "spmd"  # the public home: tracebacks then print spmd.UnsupportedSyntax, and pickling finds it


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _size(size: int) -> str:
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= scale:
            return f"{size / scale:.1f} {unit}"
    return _count(size, "byte")


E_ = TypeVar("E_", bound=BaseException)


def attach_example(exc: E_, index: int, span: Span | None = None) -> E_:
    """Marks an exception that an example raised with the example's index and the source line, and returns it.

    Type, identity and arguments stay. Where the class forbids new attributes, the exception is returned as it was.
    """
    try:
        exc.example = index  # type: ignore[attr-defined]
        if isinstance(exc, SpmdError):  # its own form has a place for both
            exc.span = exc.span or span
            return exc
        note = f"in example {index}" + (f", {span.place}: {span.text}".rstrip(": ") if span is not None else "")
        if sys.version_info >= (3, 11):
            exc.add_note(note)
        else:
            exc.__notes__ = [*getattr(exc, "__notes__", ()), note]  # type: ignore[attr-defined]
    except (AttributeError, TypeError):
        pass
    return exc


_PACKAGE = Path(__file__).resolve().parent
_OWN = (str(_PACKAGE) + os.sep, str(_PACKAGE.parent / "batching") + os.sep)
_LIBRARIES = tuple(
    str(Path(path).resolve()) + os.sep for key, path in sysconfig.get_paths().items() if key in ("purelib", "platlib")
)


class hide_compiler_frames:  # noqa: N801 (used as a context manager and decorator, named as contextlib's are)
    """Context manager and decorator: refusals, and exceptions of examples, leave without the compiler's frames.

    It stands at the public entrances. Any other exception is a defect of the compiler and keeps its traceback, as does
    everything under SPMD_TRACEBACK=full. On Python 3.10 the frame of the entrance itself stays visible.
    """

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, _: TracebackType | None) -> None:
        if exc is not None:
            strip_compiler_frames(exc)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Wraps a public function."""

        @functools.wraps(function)
        def entrance(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return function(*args, **kwargs)
            except Exception as exc:
                strip_compiler_frames(exc)
                raise  # a bare raise adds no entry for this frame

        return entrance


def strip_compiler_frames(exc: BaseException) -> None:
    """Takes the compiler's frames out of the traceback of a refusal or of an exception that an example raised."""
    wanted = isinstance(exc, SpmdError) or getattr(exc, "example", None) is not None
    if not wanted or isinstance(exc, InternalError) or options().traceback == "full":
        return
    entrance = exc.__traceback__
    kept = _user_frames(entrance)
    if sys.version_info < (3, 11) and entrance is not None and entrance is not kept:
        # There, raising again restores the traceback object that the interpreter holds; only its tail can be changed.
        entrance.tb_next = kept
    exc.__traceback__ = kept
    if exc.__cause__ is None:
        exc.__suppress_context__ = True


def _user_frames(traceback: TracebackType | None) -> TracebackType | None:
    """The entries outside the compiler and outside the libraries that it called, linked anew."""
    kept: list[TracebackType] = []
    hidden = False
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        hidden = file.startswith(_OWN) or (hidden and file.startswith(_LIBRARIES))
        if not hidden:
            kept.append(traceback)
        traceback = traceback.tb_next
    chain: TracebackType | None = None
    for entry in reversed(kept):
        chain = TracebackType(chain, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return chain
