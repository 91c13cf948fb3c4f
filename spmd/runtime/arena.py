"""Where arrays whose size differs between rows live, and where big buffers wait for their next use.

An `Arena` is an append-only buffer of one dtype and one trailing shape; a value in it is a handle (lo, dims). The
invariant: what was appended is never changed or moved within the numbering, so a handle names one value for the
whole run, and its cotangent can live at the same place of a twin buffer. Must not know who holds the handles.
"""

from __future__ import annotations

import threading
from typing import Any

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

    @property
    def nbytes(self) -> int:
        return sum(a.used * a.buffer.itemsize * int(np.prod(a.buffer.shape[1:])) for a in self.by_key.values())


class Pool:
    """Big byte buffers between two calls. Fresh pages cost as much as half the arithmetic; used ones cost nothing.

    Buffers are handed out by size, the smallest that fits and is at most four times too large. Thread-safe.
    """

    def __init__(self, limit: int = 1 << 30) -> None:
        self.limit = limit
        self._free: list[Array] = []
        self._lock = threading.Lock()

    def take(self, nbytes: int) -> Array:
        """uint8 buffer of at least `nbytes`."""
        with self._lock:
            best = -1
            for i, b in enumerate(self._free):
                if nbytes <= len(b) <= 4 * nbytes and (best < 0 or len(b) < len(self._free[best])):
                    best = i
            if best >= 0:
                return self._free.pop(best)
        return np.empty(nbytes, np.uint8)

    def give(self, buffer: Array) -> None:
        """Back for later use; nobody may hold a view of it."""
        with self._lock:
            self._free.append(buffer)
            while sum(len(b) for b in self._free) > self.limit:
                self._free.pop(0)


class Workspace:
    """Temporaries of one run, cut one after the other from blocks of a pool."""

    BLOCK = 1 << 22

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.blocks: list[Array] = []
        self._block: Any = None
        self._at = 0
        self._end = 0

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """An array of unspecified content; 64-byte aligned."""
        nbytes = dtype.itemsize
        for n in shape:
            nbytes *= n
        at = (self._at + 63) & -64
        if at + nbytes > self._end:
            self._open(nbytes)
            at = self._at
        self._at = at + nbytes
        return np.ndarray(shape, dtype, self._block, at)

    def _open(self, nbytes: int) -> None:
        size = max(self.BLOCK, nbytes + 64)
        buffer = self.pool.take(size)
        self.blocks.append(buffer)
        self._block, self._end = buffer.data, len(buffer)
        self._at = -int(buffer.ctypes.data) % 64

    def close(self) -> None:
        """Gives all blocks back."""
        for b in self.blocks:
            self.pool.give(b)
        self.blocks = []
        self._block, self._at, self._end = None, 0, 0
