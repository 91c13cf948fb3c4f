"""Where arrays whose size differs between rows live.

An `Arena` is an append-only buffer of one dtype and one trailing shape; a value in it is a handle (lo, dims). The
invariant: what was appended is never changed or moved within the numbering, so a handle names one value for the
whole run, and its cotangent can live at the same place of a twin buffer. Must not know who holds the handles.
"""

from __future__ import annotations

import numpy as np

from spmd.runtime.ragged import Array, Ragged

Key = tuple[str, tuple[int, ...]]


class Arena:
    """All dynamic arrays of one dtype and trailing shape of a run."""

    __slots__ = ("buffer", "used", "borrowed")

    def __init__(self, dtype: str, trail: tuple[int, ...]) -> None:
        self.buffer = np.empty((0, *trail), dtype)
        self.used = 0
        self.borrowed = False

    def append(self, data: Array) -> int:
        """Copies rows in; returns the number of the first."""
        first, need = self.used, self.used + len(data)
        if need > len(self.buffer) or self.borrowed:
            grown = np.empty((max(need, 2 * len(self.buffer), 1024), *self.buffer.shape[1:]), self.buffer.dtype)
            grown[:first] = self.buffer[:first]
            self.buffer, self.borrowed = grown, False
        self.buffer[first:need] = data
        self.used = need
        return first

    def adopt(self, data: Array) -> int:
        """As append, without a copy where the arena is still empty; `data` is only ever read."""
        if self.used or self.buffer.dtype != data.dtype:
            return self.append(data)
        self.buffer, self.used, self.borrowed = data, len(data), True
        return 0

    def view(self, lo: Array, dims: Array) -> Ragged:
        return Ragged(self.buffer, lo, dims)


class Arenas:
    """The arenas of one run, made when first needed."""

    def __init__(self) -> None:
        self.by_key: dict[Key, Arena] = {}

    def get(self, dtype: str, trail: tuple[int, ...]) -> Arena:
        key = (dtype, trail)
        arena = self.by_key.get(key)
        if arena is None:
            arena = self.by_key[key] = Arena(dtype, trail)
        return arena
