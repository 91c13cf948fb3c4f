"""Tells whether one example reaches the same memory in two ways, so that a write through one would show in the other.

Invariant: never misses shared memory of arrays; arrays of one buffer whose byte ranges interleave count as shared even
where no byte is common (columns of one matrix).
Must not know: schemas and columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["overlapping"]


def overlapping(arrays: Sequence[np.ndarray[Any, Any]], owners: Sequence[int]) -> bool:
    """Whether two of the arrays that belong to one example share memory. `owners` are the examples."""
    keys = [(owner, buffer_of(array)) for owner, array in zip(owners, arrays, strict=True) if array.size]
    if len(set(keys)) == len(keys):
        return False
    spans: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for key, array in zip(keys, (array for array in arrays if array.size), strict=True):
        spans.setdefault(key, []).append(np.lib.array_utils.byte_bounds(array))
    for ranges in spans.values():
        ranges.sort()
        ends = [end for _, end in ranges[:-1]]
        if any(start < end for (start, _), end in zip(ranges[1:], ends, strict=True)):
            return True
    return False


def buffer_of(array: np.ndarray[Any, Any]) -> int:
    """The identity of the object that owns an array's memory."""
    owner: Any = array
    while isinstance(owner, np.ndarray) and owner.base is not None:
        owner = owner.base
    return id(owner)
