"""Named streams of what the compiler does: ``SPMD_LOG=passes,ir``, or ``spmd.log.show("passes")``.

Invariant: silent unless asked, and what is not shown costs no formatting. The streams are those of the standard
``logging`` package below ``spmd``, so that a program may route them as it likes. Must not know who writes.
"""

from __future__ import annotations

import logging
import sys
from functools import lru_cache

from spmd.config import options

STREAMS = {
    "passes": "passes with their times",
    "ir": "the program after each pass",
}


@lru_cache(maxsize=1)
def _start() -> logging.Logger:
    """The root of the streams, with the handler that prints them. Runs once, at the first use of a stream."""
    root = logging.getLogger("spmd")
    root.setLevel(logging.WARNING)
    return root


def stream(name: str) -> logging.Logger:
    """The logger of one stream: ``info`` is shown by its name in SPMD_LOG, ``debug`` by ``+name``.

    Raises ValueError for a name that is not in STREAMS.
    """
    if name not in STREAMS:
        raise ValueError(f"there is no stream {name!r}; there are {', '.join(STREAMS)}")
    _apply_environment()
    return logging.getLogger(f"spmd.{name}")


def show(wanted: str) -> None:
    """Shows exactly the streams named in text such as ``passes,+ir``; empty text silences all.

    Raises ValueError for an unknown name; ``all`` and ``+all`` name every stream.
    """
    levels = dict.fromkeys(STREAMS, logging.NOTSET)
    for item in filter(None, (part.strip() for part in wanted.split(","))):
        name = item.removeprefix("+")
        level = logging.DEBUG if item.startswith("+") else logging.INFO
        if name != "all" and name not in STREAMS:
            raise ValueError(f"SPMD_LOG: there is no stream {name!r}; there are {', '.join(STREAMS)} and all")
        for each in STREAMS if name == "all" else (name,):
            levels[each] = level
    root = _start()
    for name, level in levels.items():
        logging.getLogger(f"spmd.{name}").setLevel(level)
    if any(levels.values()) and not any(isinstance(handler, _Printer) for handler in root.handlers):
        root.addHandler(_Printer())


class _Printer(logging.Handler):
    """Prints records to whatever sys.stderr is at that time, which notebooks and tests replace."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            name = record.name.removeprefix("spmd.")
            sys.stderr.write("".join(f"spmd {name}: {line}\n" for line in record.getMessage().splitlines() or [""]))
        except Exception:
            self.handleError(record)


@lru_cache(maxsize=1)
def _apply_environment() -> None:
    wanted = options().log
    if wanted:
        show(wanted)
    else:
        _start()
