"""Which queue runs next: ready queues per region and the picking rule.

The rule (design, section 4): a queue unserved for more than AGE picks, if any; else, when live frames exceed the
budget, the most downstream queue that does not spawn, else the newest CHUNK rows of the most downstream spawner; else,
among the nonempty queues of the first nonempty component, the fullest cheap one, or the fullest. The invariant: a
frame waits in at most one queue, and every frame pushed is given out exactly once. Must not know what regions do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spmd.runtime.frames import Rows, count, union, vector

AGE = 256
CHUNK = 1024


@dataclass(frozen=True)
class Priorities:
    """Compile-time facts per region: topological rank of its strongly connected component in the graph of jumps, calls
    and returns; whether it holds no matrix product; whether it makes frames (or leads straight to a region that does).
    """

    rank: tuple[int, ...]
    cheap: tuple[bool, ...]
    spawns: tuple[bool, ...]


def ranks(successors: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Rank of every node's strongly connected component: an edge never leads to a smaller rank, and equal ranks are
    one component (Tarjan 1972, with a stack of its own: programs may be long)."""
    size = len(successors)
    index, low, component = [-1] * size, [0] * size, [-1] * size
    stack: list[int] = []
    found = counter = 0
    for root in range(size):
        if index[root] >= 0:
            continue
        work = [(root, 0)]
        while work:
            node, at = work.pop()
            if at == 0:
                index[node] = low[node] = counter
                counter += 1
                stack.append(node)
            elif component[successors[node][at - 1]] < 0:
                low[node] = min(low[node], low[successors[node][at - 1]])
            while at < len(successors[node]) and index[successors[node][at]] >= 0:
                if component[successors[node][at]] < 0:
                    low[node] = min(low[node], index[successors[node][at]])
                at += 1
            if at < len(successors[node]):
                work += [(node, at + 1), (successors[node][at], 0)]
                continue
            if low[node] == index[node]:
                while True:
                    member = stack.pop()
                    component[member] = found
                    if member == node:
                        break
                found += 1
    return tuple(found - 1 - c for c in component)


class Queues:
    """Frames that wait, by region."""

    __slots__ = ("priorities", "waiting", "counts", "since", "step")

    def __init__(self, priorities: Priorities) -> None:
        self.priorities = priorities
        regions = len(priorities.rank)
        self.waiting: list[list[Rows]] = [[] for _ in range(regions)]
        self.counts = [0] * regions
        # Regions with waiting frames -> the pick at which they began to wait; oldest first, as dictionaries keep order.
        self.since: dict[int, int] = {}
        self.step = 0

    def push(self, region: int, rows: Rows, number: int) -> None:
        """Lets frames wait at a region."""
        if not number:
            return
        if not self.counts[region]:
            self.since[region] = self.step
        self.waiting[region].append(rows)
        self.counts[region] += number

    def pick(self, over: bool) -> int:
        """The region to run now; `over`: live frames exceed the budget."""
        since = self.since
        self.step += 1
        if len(since) == 1:
            return next(iter(since))
        oldest = next(iter(since))
        if self.step - since[oldest] > AGE:
            return oldest
        rank, counts = self.priorities.rank, self.counts
        if over:
            spawns = self.priorities.spawns
            return max([r for r in since if not spawns[r]] or since, key=lambda r: (rank[r], counts[r]))
        first = min(rank[r] for r in since)
        cheap = self.priorities.cheap
        return max(since, key=lambda r: (rank[r] == first, cheap[r], counts[r]))

    def take(self, region: int, over: bool) -> tuple[Rows, int]:
        """Takes the waiting frames of a region (the newest CHUNK of a spawner when over budget) out of the queue."""
        parts, number = self.waiting[region], self.counts[region]
        if over and number > CHUNK and self.priorities.spawns[region]:
            return self._newest(region)
        del self.since[region]
        self.waiting[region] = []
        self.counts[region] = 0
        return (parts[0] if len(parts) == 1 else union(parts)), number

    def _newest(self, region: int) -> tuple[Rows, int]:
        parts = self.waiting[region]
        taken: list[Rows] = []
        number = 0
        while number < CHUNK:
            part = parts.pop()
            size = count(part)
            spare = number + size - CHUNK
            if spare > 0:
                rows = vector(part)
                parts.append(rows[:spare])
                part, size = rows[spare:], size - spare
            taken.append(part)
            number += size
        self.counts[region] -= number
        del self.since[region]
        self.since[region] = self.step
        return union(taken), number
