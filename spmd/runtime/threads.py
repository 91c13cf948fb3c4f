"""How many threads the linear algebra library uses while a program runs.

A run makes many small products. Shared out among threads, a product of some microseconds waits until every thread has
had its turn on a processor: beside another busy process that is milliseconds. So a run keeps the library to one thread
and gives its threads back for single products that are large enough to gain. The invariant: when no run is under way
the library has the number of threads that it had before; a number that someone else sets meanwhile is left alone.

The number is the process's, not the thread's: while runs overlap, the large product of one lifts the limit for all.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

WIDE = 1 << 29  # multiply-adds from which threads gain more than they wait: some 10 ms of one thread


class BlasThreads:
    """Counts runs (`narrow`) and large products (`wide`) under way."""

    def __init__(self, libraries: Callable[[], list[Any]]) -> None:
        self._find = libraries
        self._libraries: list[Any] | None = None
        self._before: list[int] = []
        self._lock = threading.Lock()
        self._runs = 0
        self._large = 0

    def narrow(self) -> _Counted:
        """For the length of a `with` block: one thread, large products apart."""
        return _Counted(self, 1, 0)

    def wide(self) -> _Counted:
        """For the length of a `with` block inside a run: all threads."""
        return _Counted(self, 0, 1)

    def count(self, runs: int, large: int) -> None:
        """Runs and large products that begin (or, negative, end)."""
        with self._lock:
            limited = self._limited()
            self._runs += runs
            self._large += large
            if self._limited() != limited:
                self._restore() if limited else self._limit()

    def _limited(self) -> bool:
        return self._runs > 0 and not self._large

    def _limit(self) -> None:
        if self._libraries is None:
            self._libraries = self._find()
        self._before = [library.get_num_threads() or 1 for library in self._libraries]
        for library, number in zip(self._libraries, self._before):
            if number > 1:
                library.set_num_threads(1)

    def _restore(self) -> None:
        for library, number in zip(self._libraries or (), self._before):
            if number > 1 and library.get_num_threads() == 1:
                library.set_num_threads(number)


class _Counted:
    """A `with` block that counts itself."""

    __slots__ = ("_threads", "_runs", "_large")

    def __init__(self, threads: BlasThreads, runs: int, large: int) -> None:
        self._threads, self._runs, self._large = threads, runs, large

    def __enter__(self) -> None:
        self._threads.count(self._runs, self._large)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._threads.count(-self._runs, -self._large)


def _loaded() -> list[Any]:
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


BLAS = BlasThreads(_loaded)
