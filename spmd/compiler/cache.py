"""Finds the executable for a call, or builds it.

The invariant: an executable is used only while its guards hold and what it captured has the types that it was compiled
for; a function whose source, callees or captured constants changed is compiled again. Memory only, per function object.
"""

from __future__ import annotations

import threading
import types
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from spmd.compiler.executable import Executable, build
from spmd.compiler.signature import Packed
from spmd.compiler.signature.sizes import lengths_joined
from spmd.compiler.trace import Argument
from spmd.errors import SpmdError

MANY = 8
KEPT = "__spmd_cache__"
Key = tuple[tuple[str, str], Any, tuple[Argument, ...]]


class SpecialisationCache:
    """Executables of one function, by target and argument types."""

    @classmethod
    def of(cls, function: Any) -> SpecialisationCache:
        """The function's cache: one for all its transforms, kept on the function itself, so that it lives as long and
        `spmd.grad(f)(x)` written in a loop compiles once."""
        if not isinstance(function, types.FunctionType):
            return cls(function)
        found = vars(function).get(KEPT)
        if found is None or found.function is not function:  # functools.wraps copies attributes to another function
            found = vars(function)[KEPT] = cls(function)
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        """A function is pickled without what was compiled for it."""
        return SpecialisationCache, (None,)

    def __init__(self, function: Any) -> None:
        self.function = function
        self._found: dict[Key, list[Executable]] = {}
        self._impossible: set[Key] = set()
        self._lock = threading.RLock()

    def find(
        self, arguments: Sequence[Argument], target: str, fp: str = "strict", keep: bool = False
    ) -> tuple[Executable, list[Packed]]:
        """The executable for these argument types, with what it captures as it is now (copied if `keep`).

        Its arguments may be more general than these: where a call without a mapped argument sees an array of another
        length than an earlier one, that length is a size that may differ from then on. Raises SpmdError.
        """
        code = getattr(self.function, "__code__", None)
        key = ((target, fp), code, tuple(arguments))
        with self._lock:
            found = self._valid(key, keep)
            if found is not None:
                return found
            wide = self._generalised(key)
            if wide is not None:
                found = self._valid(wide, keep) or self._attempt(wide, keep)
            if wide is not None and found is not None:
                self._found[key] = self._found[wide]
                return found
            return self._built(key, keep)

    def _valid(self, key: Key, keep: bool) -> tuple[Executable, list[Packed]] | None:
        candidates = self._found.get(key, [])
        for executable in list(candidates):
            if not executable.holds():
                candidates.remove(executable)
                continue
            captured = executable.captured(keep)
            if captured is not None:
                return executable, captured
        return None

    def _built(self, key: Key, keep: bool) -> tuple[Executable, list[Packed]]:
        (target, fp), _, arguments = key
        executable = build(self.function, arguments, target, fp)
        captured = executable.captured(keep)
        assert captured is not None
        self._found.setdefault(key, []).append(executable)
        self._warn(key)
        return executable, captured

    def _attempt(self, key: Key, keep: bool) -> tuple[Executable, list[Packed]] | None:
        """Builds the more general program, unless it is known that there is none."""
        if key in self._impossible:
            return None
        try:
            return self._built(key, keep)
        except SpmdError:
            self._impossible.add(key)
            return None

    def _generalised(self, key: Key) -> Key | None:
        """The types of this call joined with those of an earlier one that differs in lengths of arrays only."""
        target, code, arguments = key
        if any(a.mapped for a in arguments):
            return None
        for known_target, known_code, known in self._found:
            if (known_target, known_code) == (target, code) and len(known) == len(arguments):
                schemas = [lengths_joined(a.schema, b.schema) for a, b in zip(known, arguments)]
                if all(s is not None for s in schemas):
                    joined = tuple(replace(a, schema=s) for a, s in zip(arguments, schemas) if s is not None)
                    if joined != arguments:
                        return target, code, joined
        return None

    def all(self) -> list[Executable]:
        """Every executable built so far."""
        return list({id(e): e for group in self._found.values() for e in group}.values())

    def _warn(self, key: Key) -> None:
        mapped = [a.mapped for a in key[2]]
        alike = [known for known in self._found if known[:2] == key[:2] and [a.mapped for a in known[2]] == mapped]
        if len(alike) == MANY:
            name = getattr(self.function, "__name__", "a function")
            warnings.warn(
                f"'{name}' was compiled for {MANY} different kinds of arguments; pack the whole data set once"
                " (batching.pack), so that sizes that differ are one kind",
                stacklevel=6,
            )
