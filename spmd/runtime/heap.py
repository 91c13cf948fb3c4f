"""Memory that a run gives back stays with the process for the next run.

The arrays of a run (columns, residuals, results of kernels and products, cotangents) are freed together when it ends.
By default glibc then returns them to the system, page by page, and the next run pays for each page again: a quarter of
a training step, measured. So its thresholds are raised (mallopt(3)): the heap is the arena that runs share. Whose an
array is stays the allocator's business: memory is used again when the last reference to it is gone, never before.
(A pool of our own behind NumPy's allocation hook saves the same page faults, but took up to twice the memory and, with
blocks spread by size, 1 to 4 % of the time of small steps; allocation itself is below 2 % of a step.)

The invariant: at most the option `keep` lies free at the end of the heap, and what a large run left is returned when
WINDOW runs in a row needed less than a quarter of it. Other allocators take no notice; where someone set glibc's
thresholds in the environment, they stay. Must not know what runs are.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import lru_cache
from typing import Any

from spmd.config import options

WINDOW = 64  # runs after which it is asked whether less memory would do
LARGE = 32 << 20  # bytes; what lies free below is not worth a system call

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt, from malloc.h
_SET_BY_USER = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_")


@lru_cache(maxsize=1)
def _glibc() -> Any:
    """The C library, if it is glibc."""
    if not sys.platform.startswith("linux"):
        return None
    library = ctypes.CDLL(None)
    known = all(hasattr(library, name) for name in ("mallopt", "malloc_trim", "gnu_get_libc_version"))
    return library if known else None


def _left_alone() -> bool:
    tunables = os.environ.get("GLIBC_TUNABLES", "")
    return any(name in os.environ for name in _SET_BY_USER) or "_threshold=" in tunables


@lru_cache(maxsize=1)
def keep_freed_memory() -> None:
    """Raises the thresholds, once per process: the option `keep` as it is at the first call counts."""
    library, keep = _glibc(), options().keep
    if library is None or not keep or _left_alone():
        return
    library.mallopt(_TRIM_THRESHOLD, min(keep, (1 << 31) - 1))  # takes a C int
    # Larger blocks are mapped one by one, and unmapped when they are freed. (Before 2.35 at most 32 MiB is taken.)
    if not library.mallopt(_MMAP_THRESHOLD, min(keep // 2, (1 << 31) - 1)):
        library.mallopt(_MMAP_THRESHOLD, 32 << 20)


def release_memory() -> None:
    """Returns to the system what runs left for the next ones. Arrays that anything still refers to stay as they are."""
    library = _glibc()
    if library is not None:
        library.malloc_trim(ctypes.c_size_t(0))


class Watermark:
    """How much recent runs took: tells when to return what a larger one left. Runs of several threads may report at
    once; a number lost between them only moves the moment."""

    def __init__(self) -> None:
        self.held = self.most = self.count = 0

    def ran(self, nbytes: int) -> None:
        """A run ended that took this many bytes."""
        self.most = max(self.most, nbytes)
        self.held = max(self.held, nbytes)
        self.count += 1
        if self.count < WINDOW:
            return
        if self.held > LARGE and 4 * self.most < self.held:
            release_memory()
            self.held = self.most
        self.count = self.most = 0


WATERMARK = Watermark()
