"""A batch in pieces, where all of it at once would outgrow the memory budget.

The invariant: pieces follow each other in batch order, so the first example that raises is the batch's first. What a
piece needs beside its results is let go before the next one runs. Must not know how a piece runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from spmd.errors import MemoryBudgetError
from spmd.runtime.machine import Machine

Bounds = tuple[int, int]


@dataclass(eq=False)
class Chunk:
    """One run over some of the examples, and what its prologue keeps."""

    run: Machine
    kept: tuple[Any, ...]
    batch: int


Job = Callable[[int, int, bool], Chunk]


def pieces(job: Job, bounds: Sequence[Bounds], tape: bool) -> Iterator[Chunk]:
    """Runs the pieces one after the other; one that outgrows the budget is halved."""
    waiting = list(reversed(bounds))
    while waiting:
        low, high = waiting.pop()
        chunk = attempt(job, low, high, tape)
        if chunk is None:
            waiting += reversed(halves(low, high))
        else:
            yield chunk


def attempt(job: Job, low: int, high: int, tape: bool) -> Chunk | None:
    """One piece; None if fewer examples at a time would need less than the memory that it asked for."""
    try:
        return job(low, high, tape)
    except MemoryBudgetError as error:
        if not error.divisible or high - low < 2:
            raise
        return None


def halves(low: int, high: int) -> list[Bounds]:
    """The two halves of a piece."""
    middle = (low + high) // 2
    return [(low, middle), (middle, high)]
