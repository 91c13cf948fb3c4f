"""Memory that a run gives back stays with the process for the next run.

The arrays of a run are freed together when it ends. By default glibc then returns them to the system, page by page, and
the next run pays for each page again: a quarter of a training step, measured. Its thresholds adapt: they follow the
largest block that was mapped by itself and freed (mallopt(3), M_MMAP_THRESHOLD). So one such block, never touched, is
freed once. The invariant: at most twice its size stays unused in the process; other allocators take no notice.
"""

from __future__ import annotations

from functools import cache

import numpy as np

BLOCK = 31 << 20  # bytes; glibc follows blocks up to 32 MiB


@cache
def keep_freed_memory() -> None:
    """Once per process."""
    np.empty(BLOCK, np.uint8)
