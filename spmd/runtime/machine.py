"""Runs a compiled program forward: takes rows from a queue, executes their region, follows its exit.

The invariant: whatever the order in which queues are served, each frame runs its regions in program order, and all
state of a run is in the Machine, so a program may run in many threads at once. Must not know what a region computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np

from spmd.errors import MemoryBudgetError, attach_example
from spmd.runtime.arena import Arenas
from spmd.runtime.code import Code
from spmd.runtime.faults import LAST, Faults, Order
from spmd.runtime.forking import Forking
from spmd.runtime.frames import FrameTable, Rows, TableData, compact, vector
from spmd.runtime.log import ENTRY, Entry, Log
from spmd.runtime.ragged import Array

PATIENCE = 1 << 24
"""Turns of a native loop after which a row lets all others go first: some ten milliseconds."""


class Machine(Forking):
    """One run.

    inputs   uniform values in the program's order, derived ones included
    tables   packed tables by number (the order that the compiler gave them)
    tape     keep residuals for the reverse
    prepared what regions use of the inputs in another form, made once per run
    first    number of the first example, where the batch runs in chunks
    """

    def __init__(
        self,
        code: Code,
        inputs: Sequence[Any],
        tables: Sequence[TableData],
        *,
        budget: int,
        tape: bool,
        capacities: Sequence[int] = (),
        profile: bool = False,
        first: int = 0,
    ) -> None:
        super().__init__(code, tables, capacities, budget)
        self.inputs = inputs
        self.tape = tape
        self.profile = profile
        self.first = first
        self.arenas = Arenas()
        self.adopted: dict[tuple[Any, ...], int] = {}
        self.prepared: list[Array] = []
        self.log = Log(len(code.regions))
        self.patience = PATIENCE
        self._late: list[tuple[int, Array]] = []

    # -------------------------------------------------------------------------------------------- the loop
    def start(self, batch: int) -> None:
        """Makes the entry's frames, one per example; their columns are to be written before `run`."""
        entry = self.code.entry
        table = self.frames[entry]
        table.new(batch)
        table.parent[:batch] = -1
        table.site[:batch] = -1
        table.lane[:batch] = np.arange(batch)
        if table.spec.elements:
            table.element[:batch] = 0
        if table.spec.waits:
            table.waiter[:batch], table.done[:batch] = -1, False
        self._born(entry, batch)
        self.push(self.code.entries[entry], slice(0, batch), batch)

    def run(self) -> None:
        """Serves queues until none is left. Raises the exception of the first example that raises."""
        queues, regions, frames = self.queues, self.code.regions, self.frames
        log, faults = self.log, self.fault_order
        since, runs, total = queues.since, log.runs, log.rows
        while since or self._resume():
            over = self.live > self.budget
            number = queues.pick(over)
            rows, size = queues.take(number, over)
            region = regions[number]
            if faults.any:
                rows, size = self._still_wanted(region.function, rows)
                if not size:
                    continue
            started = perf_counter() if self.profile else 0.0
            residuals, children = region.execute(self, frames[region.function], rows, size)
            runs[number] += 1
            total[number] += size
            if self.tape:
                log.entries.append(Entry(number, rows, size, residuals, children))
                self.bytes += ENTRY + size * region.taped
                if self.bytes > 4 * self.budget:
                    self._over_budget(frames[region.function].spec)
            if self.profile:
                self._measure(number, size, perf_counter() - started)
        self._check_ends(faults.lane if faults.any else len(frames[self.code.entry].lane))
        if faults.exception is not None:
            raise attach_example(faults.exception, self.first + faults.lane, faults.span)

    def _check_ends(self, limit: int) -> None:
        """Raises MemoryBudgetError where a frame of an example before `limit` never ended: it waits for a shared frame
        that waits for it, so no queue holds it."""
        found = []
        for table in self.frames if self._memos else ():
            if table.spec.waits:
                lanes = table.lane[: table.n][~table.done[: table.n]]
                found += [(int(lanes.min()), table.spec)] if len(lanes) else []
        if found:
            lane, spec = min(found, key=lambda one: one[0])
            if lane < limit:
                error = MemoryBudgetError.of_cycle(spec.name, span=spec.span)
                raise attach_example(error, self.first + lane, spec.span)

    def _measure(self, region: int, size: int, seconds: float) -> None:
        self.log.seconds[region] += seconds
        self.log.widths.append((region, size))
        if self.tape:
            self.log.entries[-1].seconds = seconds

    def postpone(self, region: int, rows: Rows, late: Array) -> None:
        """Rows of an execution that is given up before it stored anything: those that ran too long begin again when
        nothing else is left to do (so that no example waits for one that never ends), with more patience; the others
        begin again now."""
        every = vector(rows)
        self._late.append((region, every[late]))
        rest = every[~late]
        if len(rest):
            self.push(region, compact(rest), len(rest))

    def _resume(self) -> bool:
        """Whether there are rows that were postponed; they are in their queues now."""
        if not self._late:
            return False
        self.patience *= 4
        waiting, self._late = self._late, []
        for region in sorted({number for number, _ in waiting}):
            rows = np.sort(np.concatenate([r for number, r in waiting if number == region]))
            self.push(region, compact(rows), len(rows))
        return True

    # -------------------------------------------------------------------------------------------- exits
    def branch(self, then: int, other: int, cond: Any, rows: Rows, size: int) -> None:
        """Rows go on by a condition: bool [K], or one for all."""
        if not isinstance(cond, np.ndarray) or cond.ndim == 0:
            self.push(then if cond else other, rows, size)
            return
        yes = int(np.count_nonzero(cond))
        if yes == size:
            self.push(then, rows, size)
        elif not yes:
            self.push(other, rows, size)
        else:
            every = vector(rows)
            self.push(then, compact(every[cond]), yes)
            self.push(other, compact(every[~cond]), size - yes)

    def raised(self, region: int, rows: Rows, size: int, make: Any, span: Any) -> None:
        """Exit of a `raise`: every row ends here."""
        every = vector(rows)
        self._offer(self.code.regions[region].function, every, np.ones(size, bool), LAST, make, span)

    def raised_good(self, region: int, rows: Rows, size: int, faults: Faults, make: Any, span: Any) -> None:
        """Exit of a `raise` for the rows that did not fail before."""
        good, _ = self.faulted(region, rows, size, faults)
        number = int(np.count_nonzero(good))
        if number:
            self.raised(region, compact(vector(rows)[good]), number, make, span)

    def faulted(self, region: int, rows: Rows, size: int, faults: Faults) -> tuple[Array, list[Order | None]]:
        """Takes in the faults of one execution. Returns the rows' good mask, and where each bad row stopped."""
        code = self.code.regions[region]
        every = vector(rows)
        good = np.ones(size, bool)
        stops: list[Order | None] = [None] * size
        for at, bad, make in faults.found:
            bad = np.broadcast_to(bad, (size,))
            good &= ~bad
            order = code.orders[at]
            for i in np.flatnonzero(bad):
                stop = stops[i]
                if stop is None or order < stop:
                    stops[i] = order
            self._offer(code.function, every, bad, order, make, code.spans[at])
        return good, stops

    def branch_good(
        self, region: int, rows: Rows, size: int, faults: Faults, then: int, other: int, cond: Any
    ) -> None:
        """A branch, or a jump (then == other), of the rows that did not fail."""
        good, _ = self.faulted(region, rows, size, faults)
        kept = compact(vector(rows)[good])
        if isinstance(cond, np.ndarray) and cond.ndim:
            cond = cond[good]
        self.branch(then, other, cond, kept, int(np.count_nonzero(good)))

    def leave_good(self, region: int, table: FrameTable, rows: Rows, size: int, faults: Faults) -> None:
        """A return of the rows that did not fail."""
        good, _ = self.faulted(region, rows, size, faults)
        number = int(np.count_nonzero(good))
        if number:
            self.leave(table, compact(vector(rows)[good]), number)

    def fork_good(
        self, region: int, fork: int, table: FrameTable, rows: Rows, size: int, faults: Faults, args: Any
    ) -> None:
        """A fork: rows that failed still make the calls that come before the failing op."""
        good, stops = self.faulted(region, rows, size, faults)
        self.fork(fork, table, rows, size, args, (good, stops))

    def _offer(self, function: int, rows: Array, bad: Array, order: Order, make: Any, span: Any) -> None:
        """Offers the faults of the lowest lane among the bad rows; the others cannot be the one that is raised."""
        at = np.flatnonzero(bad)
        lanes = self.frames[function].lane[rows[at]]
        for i in at[lanes == lanes.min()]:
            self.fault_order.offer(function, int(rows[i]), order, lambda i=int(i): make(i), span)  # type: ignore[misc]

    def _still_wanted(self, function: int, rows: Rows) -> tuple[Rows, int]:
        every = vector(rows)
        kept = every[self.fault_order.keep(function, every)]
        return compact(kept), len(kept)
