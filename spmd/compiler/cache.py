"""Finds the executable for a call, or builds it.

The invariant: an executable is used only while its guards hold and what it captured has the types that it was compiled
for; a function whose source, callees or captured constants changed is compiled again. Memory only, per function object.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Sequence
from typing import Any

from spmd.compiler.executable import Executable, build
from spmd.compiler.signature import Packed
from spmd.compiler.trace import Argument

MANY = 8


class SpecialisationCache:
    """Executables of one function, by target and argument types."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self._found: dict[Any, list[Executable]] = {}
        self._lock = threading.RLock()

    def find(self, arguments: Sequence[Argument], target: str) -> tuple[Executable, list[Packed]]:
        """The executable for these argument types, with what it captures as it is now. Raises SpmdError."""
        key = (target, getattr(self.function, "__code__", None), tuple(arguments))
        with self._lock:
            candidates = self._found.setdefault(key, [])
            for executable in list(candidates):
                if not executable.holds():
                    candidates.remove(executable)
                    continue
                captured = _captured(executable)
                if captured is not None:
                    return executable, captured
            executable = build(self.function, arguments, target)
            captured = _captured(executable)
            assert captured is not None
            candidates.append(executable)
            self._warn()
            return executable, captured

    def all(self) -> list[Executable]:
        """Every executable built so far."""
        return [e for group in self._found.values() for e in group]

    def _warn(self) -> None:
        if len(self.all()) == MANY:
            name = getattr(self.function, "__name__", "a function")
            warnings.warn(
                f"'{name}' was compiled for {MANY} different kinds of arguments; pack the whole data set once"
                " (batching.pack), so that sizes that differ are one kind",
                stacklevel=6,
            )


def _captured(executable: Executable) -> list[Packed] | None:
    """What the program captures, as it is now; None if its types have changed."""
    found: list[Packed] = []
    for capture in executable.traced.captures:
        packed = capture.read()
        if packed is None or packed.schema != capture.schema:
            return None
        found.append(packed)
    return found
