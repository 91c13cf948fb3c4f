"""What tests of programs need: how many region executions a batch took.

Public, as it lets users assert that their program batches (`region_runs(...)`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from spmd.compiler.executable import OBSERVERS


@dataclass(eq=False)
class RegionRuns:
    """Counts of region executions; `by_region` sums them over all runs inside, by region number."""

    by_region: dict[int, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """All region executions."""
        return sum(self.by_region.values())

    def note(self, run: Any) -> None:
        """Adds the counts of one run."""
        for region, count in run.region_runs.items():
            self.by_region[region] = self.by_region.get(region, 0) + count


@contextmanager
def region_runs() -> Iterator[RegionRuns]:
    """Counts the region executions of all compiled calls inside."""
    counts = RegionRuns()
    OBSERVERS.append(counts.note)
    try:
        yield counts
    finally:
        OBSERVERS.remove(counts.note)
