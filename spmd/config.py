"""Options: what can be set, from which SPMD_* variable, and how to override it for a stretch of code.

Invariant: an ``Options`` object is complete, checked and never changes. The environment is read once, at first use;
``configure`` overrides it for the current thread or task only. Must not know who reads an option.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

GIB = 1 << 30
_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
WIDTHS = (64, 128, 256, 512)


@dataclass(frozen=True)
class Options:
    """All options with their defaults. Values are checked on construction; a bad one raises ValueError."""

    traceback: str = "short"
    """'short' hides the compiler's frames, 'full' shows them."""
    log: str = ""
    """Streams to show, as in ``passes,ir``."""
    budget: int = GIB
    """Bytes that live frames may take before scheduling narrows; at twice as many recursion is stopped. All frames of
    a run and its tape may take four times as many; beyond, the batch runs in pieces that gradients run again."""
    keep: int = GIB // 2
    """Bytes that may lie free at the end of the process's heap for the next runs; 0 leaves the allocator as it is. What
    counts is the value when the first program is compiled. `release_memory` returns them to the system."""
    width: int | None = None
    """Vector width in bits; None takes the machine's widest."""

    def __post_init__(self) -> None:
        if self.traceback not in ("short", "full"):
            raise ValueError(f"traceback must be 'short' or 'full', not {self.traceback!r}")
        if not isinstance(self.log, str):
            raise ValueError(f"log must be text such as 'passes,+ir', not {self.log!r}")
        for name in ("budget", "keep"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise ValueError(f"{name} must be a number of bytes, not {value!r}")
        if self.width is not None and self.width not in WIDTHS:
            raise ValueError(f"width must be one of {', '.join(map(str, WIDTHS))} bits, not {self.width!r}")


@dataclass(frozen=True)
class Variable:
    """One SPMD_* variable: the option that it sets, how its text is read, and what `spmd help env` says of it."""

    name: str
    option: str
    read: Callable[[str], Any]
    about: str


def read_bytes(text: str) -> int:
    """Number of bytes in text such as ``4096``, ``512MiB`` or ``1.5 GB``. Raises ValueError for anything else."""
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?(?:e[0-9]+)?)\s*([a-zA-Z]*)\s*", text)
    unit = _UNITS.get(match.group(2).lower()) if match else None
    if match is None or unit is None:
        raise ValueError(f"{text!r} is not a number of bytes (write 1073741824, 512MiB or 1GB)")
    number = match.group(1)
    return int(number) * unit if number.isdigit() else int(float(number) * unit)


def _read_width(text: str) -> int:
    if not text.strip().isdigit():
        raise ValueError(f"{text!r} is not a width in bits ({', '.join(map(str, WIDTHS))})")
    return int(text)


VARIABLES = (
    Variable("SPMD_TRACEBACK", "traceback", str, "short (default) or full: show the compiler's frames in tracebacks."),
    Variable("SPMD_LOG", "log", str, "Streams to print, as in passes,ir."),
    Variable(
        "SPMD_BUDGET", "budget", read_bytes, "Memory for live frames and the tape, as in 512MiB. Default: 1GiB."
    ),
    Variable(
        "SPMD_KEEP", "keep", read_bytes, "Freed memory that the process keeps for the next runs. Default: 512MiB."
    ),
    Variable("SPMD_WIDTH", "width", _read_width, "Vector width in bits: 64, 128, 256 or 512. Default: the widest."),
)


def read_environment() -> Options:
    """Options as the SPMD_* variables say now; empty ones count as unset. Raises ValueError, naming the variable."""
    given: dict[str, Any] = {}
    for variable in VARIABLES:
        text = os.environ.get(variable.name, "")
        if not text:
            continue
        try:
            value = variable.read(text)
            Options(**{variable.option: value})
        except ValueError as error:
            raise ValueError(f"{variable.name}: {error}") from None
        given[variable.option] = value
    return Options(**given)


_from_environment = lru_cache(maxsize=1)(read_environment)
_override: ContextVar[Options | None] = ContextVar("spmd_options", default=None)


def options() -> Options:
    """The options in force here: the innermost ``configure``, else the environment as it was at first use."""
    return _override.get() or _from_environment()


@contextmanager
def configure(**changes: Any) -> Iterator[Options]:
    """Overrides options inside a ``with`` block, for this thread or task only.

    Takes the fields of `Options` by name. Raises TypeError for an unknown name and ValueError for a bad value.
    """
    known = [field.name for field in fields(Options)]
    for name in changes:
        if name not in known:
            raise TypeError(f"configure() has no option {name!r}; there are {', '.join(known)}")
    token = _override.set(replace(options(), **changes))
    try:
        yield options()
    finally:
        _override.reset(token)
