"""The schedule log: what ran, in order, and what each run left for the reverse.

The invariant: entries are only appended, and what they hold is never changed, so the log can be walked backwards any
number of times. Must not know what the residuals mean.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

# Bytes that an entry counts for beside its residuals: the objects that it is made of, and its cotangents (measured).
ENTRY = 512


class Entry:
    """One execution of a region: rows of the function's frames, residual values, children made by its fork."""

    __slots__ = ("region", "rows", "count", "residuals", "children", "seconds")

    def __init__(self, region: int, rows: Any, count: int, residuals: Any, children: Any) -> None:
        self.region = region
        self.rows = rows
        self.count = count
        self.residuals = residuals
        self.children = children
        self.seconds = 0.0


@dataclass(eq=False)
class Log:
    """Entries of a taped run, and counters of any run.

    runs    executions of each region; always kept.
    rows    rows that each region ran on, in total; always kept.
    widths  (region, rows) of every execution, in order, when profiling.
    """

    regions: int
    entries: list[Entry] = field(default_factory=list)
    runs: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    widths: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.runs = [0] * self.regions
        self.rows = [0] * self.regions
        self.seconds = [0.0] * self.regions
