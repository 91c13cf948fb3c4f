"""Where something stands in the user's files, and how that place is shown.

Invariant: lines and columns are 1-based, counted in characters, and true for the file as the user sees it. Nothing
that is rendered can move the cursor or change colours of a terminal. Must not know functions, syntax trees or errors.
"""

from __future__ import annotations

import linecache
import os
import re
import unicodedata
from dataclasses import dataclass

_CELL = re.compile(r"<ipython-input-(\d+)-[0-9a-f]+>")
_PYTHON_INPUT = re.compile(r"<python-input-(\d+)>")
_SHOWN = 110


@dataclass(frozen=True)
class Span:
    """A stretch of source: from (line, column) up to, not including, (end_line, end_column); all 1-based."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    function: str = ""

    def __str__(self) -> str:
        return f"{shown_file(self.file)}:{self.line}:{self.column}"

    @property
    def place(self) -> str:
        """``file:line``, for call chains and notes."""
        return f"{shown_file(self.file)}:{self.line}"

    @property
    def text(self) -> str:
        """The source line that the span starts on, stripped; empty if the file cannot be read."""
        return printable(source_line(self.file, self.line).strip())


def shown_file(file: str) -> str:
    """A file name as people know it: relative below the working folder, and a cell or prompt by its number."""
    cell = _CELL.fullmatch(file) or _PYTHON_INPUT.fullmatch(file)
    if cell:
        return f"In [{cell.group(1)}]"
    if os.path.isabs(file):
        try:
            relative = os.path.relpath(file)
        except (OSError, ValueError):  # another drive, or the working folder is gone
            return printable(file)
        if not relative.startswith(os.pardir):
            return printable(relative)
    return printable(file)


def source_line(file: str, line: int) -> str:
    """Line number `line` of a file, cell or registered text, without its line end; empty where there is none."""
    return linecache.getline(file, line).rstrip("\r\n")


def printable(text: str) -> str:
    """The text with control characters replaced, so that source cannot drive the terminal. Tabs stay."""
    return "".join(c if c == "\t" or c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def render_span(span: Span, context: int = 1) -> list[str]:
    """The span's line with a caret underline, below `context` lines that lead up to it.

    A span over several lines is underlined to the end of its first line, which then ends in ``...``. A source that
    cannot be read any more gives no lines.
    """
    if not source_line(span.file, span.line).strip():
        return []
    shown = [n for n in range(max(1, span.line - context), span.line) if source_line(span.file, n).strip()]
    gutter = max(5, len(str(span.line)))
    text = source_line(span.file, span.line)
    first = span.column - 1
    if span.end_line > span.line or span.end_column <= span.column:
        last = max(len(text.rstrip()), first + 1) if span.end_line > span.line else first + 1
    else:
        last = span.end_column - 1
    text, first, last = _window(text, first, last)
    lines = [f"{n:>{gutter}} | {_clip(source_line(span.file, n))}".rstrip() for n in shown]
    lines.append(f"{span.line:>{gutter}} | {printable(text)}".rstrip())
    more = " ..." if span.end_line > span.line else ""
    lines.append(f"{'':>{gutter}} | {_blank(text[:first])}{'^' * max(1, _width(text[first:last]))}{more}")
    return lines


def _window(text: str, first: int, last: int) -> tuple[str, int, int]:
    """Cuts an overlong line to the part around the span, which moves with it."""
    if len(text) <= _SHOWN:
        return text, first, last
    start = 0 if first < _SHOWN // 2 else first - 20
    cut = text[start : start + _SHOWN]
    lead = "... " if start else ""
    tail = " ..." if start + _SHOWN < len(text) else ""
    shift = len(lead) - start
    return lead + cut + tail, first + shift, min(last + shift, len(lead) + len(cut))


def _clip(text: str) -> str:
    return printable(text if len(text) <= _SHOWN else text[:_SHOWN] + " ...")


def _blank(text: str) -> str:
    """Blanks as wide as the text is on a terminal; tabs stay tabs, so that the caret lines up under any tab width."""
    return "".join("\t" if c == "\t" else " " * _char_width(c) for c in text)


def _width(text: str) -> int:
    return sum(_char_width(c) for c in text)


def _char_width(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
