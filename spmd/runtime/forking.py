"""Calls and returns: frames made by forks, and frames that wait for them.

The invariant: a frame goes on exactly once after a fork, when every child that it counts has returned; the children
of one site follow the order of the rows that made them. Frames of pure calls on a table with shared rows are kept by
table row: a second request waits for the first one's frame. Must not know what the calls compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from spmd.errors import MemoryBudgetError
from spmd.runtime.code import Code, ForkSpec, SiteSpec
from spmd.runtime.faults import FaultOrder, Order
from spmd.runtime.frames import ColumnSpec, FrameSpec, FrameTable, Rows, TableData, compact, vector
from spmd.runtime.ragged import Array, Ragged, offsets, runs
from spmd.runtime.schedule import Queues

NEVER = 1 << 40

# Bytes that a fork counts for beside the cells of its frames, while they live: row sets, queue parts, and the log entry
# with its residuals and cotangents that a gradient run makes of it (measured: 1 to 2 KiB). It is what stops recursion
# without end after half a million levels instead of tens of millions.
LEVEL = 2048

# What a fork leaves in the log per site: the children, and for a map how many each row has.
Children = tuple[Rows, "Array | None"]


class Forking:
    """The part of a run that makes frames and brings their results back."""

    def __init__(self, code: Code, tables: Sequence[TableData], capacities: Sequence[int], budget: int) -> None:
        sizes = capacities or [64] * len(code.frames)
        self.code = code
        self.tables = tables
        self.budget = budget
        self.frames = [FrameTable(spec, n) for spec, n in zip(code.frames, sizes)]
        self.queues = Queues(code.priorities)
        self.push = self.queues.push
        self.fault_order = FaultOrder(self.frames, [(s.caller, s.order) for s in code.sites])
        self.live = 0.0
        self.bytes = 0
        self._alive = [0] * len(code.frames)
        self._levels = [0.0] * len(code.frames)
        self._memos = [np.full(self._table_rows(t), -1, np.int64) for t in self.code.memos]
        self._waiting = _Waiters()
        self._fork_of_site = np.array([s.fork for s in code.sites] + [-1], np.int64)

    def _table_rows(self, name: str) -> int:
        table: TableData = next(t for t in self.tables if t.name == name)
        return table.rows

    # -------------------------------------------------------------------------------------------- calls
    def fork(
        self,
        number: int,
        table: FrameTable,
        rows: Rows,
        size: int,
        args: tuple[Any, ...],
        faulted: tuple[Array, list[Order | None]] | None = None,
    ) -> list[Children]:
        """Makes the children of all rows. `args`: per site (count or None, values of the callee's parameters, None or
        which rows make the call)."""
        fork = self.code.forks[number]
        if faulted is None and fork.woven:
            return self._weave(fork, table, rows, size, args)
        every = vector(rows)
        pending = np.zeros(size, np.int64)
        made: list[Children] = []
        for site, (number_of, values, some) in zip(fork.sites, args):
            if faulted is not None:
                allowed = _allowed(site, *faulted)
                some = allowed if some is None else some & allowed
            made.append(self._make(site, table, every, size, number_of, values, pending, some))
        if faulted is not None:
            pending[~faulted[0]] = NEVER
        table.pending[rows] = pending
        ready = every[pending == 0]
        self.push(fork.target, compact(ready), len(ready))
        return made

    def _weave(self, fork: ForkSpec, table: FrameTable, rows: Rows, size: int, args: Any) -> list[Children]:
        """Plain calls of one function: children of a parent lie side by side, so parents come back in order."""
        sites = fork.sites
        width = len(sites)
        callee = self.frames[sites[0].callee]
        number = width * size
        first = callee.new(number)
        stop = first + number
        spec = callee.spec
        if width == 1:
            callee.parent[first:stop] = vector(rows)
            callee.site[first:stop] = sites[0].number
            callee.lane[first:stop] = table.lane[rows]
        else:
            callee.parent[first:stop].reshape(size, width)[:] = vector(rows)[:, None]
            callee.site[first:stop].reshape(size, width)[:] = [s.number for s in sites]
            callee.lane[first:stop].reshape(size, width)[:] = table.lane[rows][:, None]
        table.pending[rows] = width
        self._born(spec.number, number)
        if spec.elements:
            callee.element[first:stop] = 0
        if spec.waits:
            callee.waiter[first:stop], callee.done[first:stop] = -1, False
        made: list[Children] = []
        for k, (site, (_, values, _)) in enumerate(zip(sites, args)):
            ids = slice(first + k, stop, width) if width > 1 else slice(first, stop)
            for column, value in zip(spec.params, values):
                callee.write(spec.columns[column], ids, value)
            child = table.spec.columns[site.child]
            table.data[child.slot][rows] = np.arange(first + k, stop, width)
            made.append((ids, None))
        self.push(self.code.entries[spec.number], slice(first, stop), number)
        return made

    def _make(
        self,
        site: SiteSpec,
        table: FrameTable,
        rows: Array,
        size: int,
        number_of: Any,
        values: Any,
        pending: Array,
        some: Array | None,
    ) -> Children:
        """Children of one site; `some`: which rows make the call (all if None)."""
        if site.shared >= 0:
            return self._share(site, table, rows, values[0], pending, some)
        callee = self.frames[site.callee]
        spec = callee.spec
        counts = _counts(site, number_of, size, some)
        owner = np.repeat(np.arange(size), counts)
        total = len(owner)
        starts = offsets(counts)
        first = callee.new(total)
        ids = slice(first, first + total)
        self._enter(callee, ids, site, rows[owner], table.lane[rows[owner]])
        self._born(spec.number, total)
        within = np.arange(total) - starts[owner]
        if spec.elements:
            callee.element[ids] = within
        for k, column in enumerate(spec.params):
            each, cells = site.each[k] if site.map else "same", spec.columns[column]
            source = site.sources[k] if site.map else None
            if source is None:
                callee.write(cells, ids, _argument(cells, each, values[k], owner, within, counts))
            else:
                callee.write(cells, ids, self._field(source, runs(np.broadcast_to(values[k][0], counts.shape), counts)))
        child = table.spec.columns[site.child]
        if site.map:
            table.write(child, rows, (first + starts, counts))
        else:
            table.data[child.slot][rows] = first + starts if some is None else np.where(some, first + starts, -1)
        pending += counts
        self.push(self.code.entries[spec.number], ids, total)
        return ids, counts if site.map or site.guarded else None

    def _field(self, source: tuple[bool, int, int], at: Array) -> Any:
        """A field of the table rows that a map runs over."""
        packed, number, index = source
        data = self.tables[number].fields[index] if packed else self.frames[number].data[index]
        return tuple(part[at] for part in data) if isinstance(data, tuple) else data[at]

    @staticmethod
    def _enter(callee: FrameTable, ids: slice, site: SiteSpec, parents: Array, lanes: Array) -> None:
        callee.parent[ids] = parents
        callee.site[ids] = site.number
        callee.lane[ids] = lanes
        if callee.spec.elements:
            callee.element[ids] = 0
        if callee.spec.waits:
            callee.waiter[ids], callee.done[ids] = -1, False

    # -------------------------------------------------------------------------------------------- shared frames
    def _share(
        self, site: SiteSpec, table: FrameTable, rows: Array, refs: Any, pending: Array, some: Array | None
    ) -> Children:
        """One frame per table row: the first request makes it, later ones wait for it or take its result. None is no
        row: each request for it has a frame of its own, since examples must not share one."""
        callee = self.frames[site.callee]
        column = callee.spec.columns[callee.spec.params[0]]
        refs = np.broadcast_to(np.asarray(refs, np.int64), (len(rows),))
        memo = self._memos[site.shared]
        asking = np.arange(len(rows)) if some is None else np.flatnonzero(some)
        there = refs[asking] >= 0
        real, none = asking[there], asking[~there]
        unknown = real[memo[refs[real]] < 0]
        fresh, where = np.unique(refs[unknown], return_index=True)
        makers = np.concatenate([unknown[where], none])
        first = callee.n
        if len(makers):
            first = callee.new(len(makers))
            ids = slice(first, first + len(makers))
            self._enter(callee, ids, site, rows[makers], table.lane[rows[makers]])
            self._born(callee.spec.number, len(makers))
            callee.write(column, ids, refs[makers])
            memo[fresh] = np.arange(first, first + len(fresh))
            self.push(self.code.entries[site.callee], ids, len(makers))
        children = np.full(len(rows), -1, np.int64)
        children[real] = memo[refs[real]]
        children[none] = np.arange(first + len(fresh), first + len(makers))
        table.data[table.spec.columns[site.child].slot][rows] = children
        waiting = asking[~callee.done[children[asking]]]
        pending[waiting] += 1
        self._waiting.add(callee, children[waiting], rows[waiting], site.fork)
        return children, None

    # -------------------------------------------------------------------------------------------- returns
    def leave(self, table: FrameTable, rows: Rows, size: int) -> None:
        """Frames end; their results are in their columns. Parents that have all they wait for go on."""
        spec = table.spec
        self._gone(spec, size)
        callers = self.code.callers[spec.number]
        if spec.waits:
            table.done[rows] = True
            for fork, parents in self._waiting.of(table, vector(rows)):
                self._returned(fork, parents)
        elif spec.number == self.code.entry:
            self._back_by_site(table, rows)
        elif len(callers) == 1:
            self._returned(callers[0], table.parent[rows])
        else:
            self._back_by_site(table, rows)

    def _back_by_site(self, table: FrameTable, rows: Rows) -> None:
        forks = self._fork_of_site[table.site[rows]]
        parents = table.parent[rows]
        while len(forks):
            fork = int(forks[0])
            same = forks == fork
            number = int(np.count_nonzero(same))
            if number == len(forks):
                own, forks = parents, forks[:0]
            else:
                own, rest = parents[same], ~same
                parents, forks = parents[rest], forks[rest]
            if fork >= 0:
                self._returned(fork, own)

    def _returned(self, number: int, parents: Array) -> None:
        """One child of each of these parents (a parent may stand several times) is back."""
        fork = self.code.forks[number]
        if fork.woven and len(fork.sites) == 1 and not self.fault_order.any:
            ready = parents
        else:
            pending = self.frames[fork.function].pending
            np.subtract.at(pending, parents, 1)
            ready = parents[pending[parents] == 0]
        if not len(ready):
            return
        if len(ready) > 1:
            steps = ready[1:] - ready[:-1]
            if steps.min() <= 0:
                ready = np.unique(ready)
        self.push(fork.target, compact(ready), len(ready))

    # -------------------------------------------------------------------------------------------- memory
    def _born(self, function: int, number: int) -> None:
        """Counts new frames against the budget. Raises MemoryBudgetError: recursion without end stops here."""
        if not number:
            return
        nbytes = number * self.code.frames[function].nbytes
        self._alive[function] += number
        self._levels[function] += LEVEL
        self.live += nbytes + LEVEL
        self.bytes += nbytes
        if self.live > 2 * self.budget or self.bytes > 4 * self.budget:
            self._over_budget(self.code.frames[function])

    def _gone(self, spec: FrameSpec, number: int) -> None:
        """Frames that end give back their cells' bytes, and their share of what their forks count for."""
        function = spec.number
        share = self._levels[function] * number / self._alive[function]
        self._alive[function] -= number
        self._levels[function] -= share
        self.live -= number * spec.nbytes + share

    def _over_budget(self, spec: FrameSpec) -> None:
        if self.live > 2 * self.budget:
            depth = self.depth(spec.number, self.frames[spec.number].n - 1)
            raise MemoryBudgetError.of_recursion(spec.name, depth, self.budget, span=spec.span)
        error = MemoryBudgetError(
            f"all calls of this run together, {self.frames[spec.number].n:,} of '{spec.name}' among them, took "
            f"{self.bytes:,} bytes, four times the memory budget",
            hint="give each example less work, or raise SPMD_BUDGET.",
            span=spec.span,
        )
        error.divisible = True
        raise error

    def depth(self, function: int, frame: int) -> int:
        """Number of calls that a frame stands below the entry."""
        depth = 0
        sites, frames = self.code.sites, self.frames
        parent = int(frames[function].parent[frame])
        while parent >= 0:
            function, frame, depth = sites[int(frames[function].site[frame])].caller, parent, depth + 1
            parent = int(frames[function].parent[frame])
        return depth


class _Waiters:
    """Frames that wait for a shared frame: one linked list per shared frame, in growing arrays."""

    def __init__(self) -> None:
        self.used = 0
        self.frame = np.empty(64, np.int64)
        self.fork = np.empty(64, np.int64)
        self.next = np.empty(64, np.int64)

    def add(self, callee: FrameTable, children: Array, frames: Array, fork: int) -> None:
        """`frames[i]`, in `fork`, waits for `children[i]`; children may repeat."""
        if not len(children):
            return
        order = np.argsort(children, kind="stable")
        children, frames = children[order], frames[order]
        at = np.arange(self.used, self.used + len(children))
        self.used += len(children)
        while self.used > len(self.frame):
            self.frame, self.fork, self.next = (np.concatenate([a, a]) for a in (self.frame, self.fork, self.next))
        self.frame[at], self.fork[at] = frames, fork
        same = np.concatenate(([False], children[1:] == children[:-1]))
        self.next[at] = np.where(same, at - 1, callee.waiter[children])
        callee.waiter[children] = at

    def of(self, table: FrameTable, rows: Array) -> list[tuple[int, Array]]:
        """(fork, frames) that waited for these rows."""
        found = []
        at = table.waiter[rows]
        at = at[at >= 0]
        while len(at):
            found.append(at)
            at = self.next[at]
            at = at[at >= 0]
        table.waiter[rows] = -1
        if not found:
            return []
        every = np.concatenate(found)
        forks = self.fork[every]
        return [(int(f), self.frame[every[forks == f]]) for f in np.unique(forks)]


def _allowed(site: SiteSpec, good: Array, stops: list[Order | None]) -> Array:
    """Rows that reach a site: the good ones, and the bad ones that failed at a later op."""
    return np.array([g or (s is not None and site.order < s) for g, s in zip(good.tolist(), stops)], bool)


def _counts(site: SiteSpec, number_of: Any, size: int, some: Array | None) -> Array:
    """Children per row."""
    if site.map:
        counts = np.maximum(np.broadcast_to(np.asarray(number_of, np.int64), (size,)), 0)
    else:
        counts = np.ones(size, np.int64)
    return counts if some is None else np.where(some, counts, 0)


def _argument(column: ColumnSpec, each: str, value: Any, owner: Array, within: Array, counts: Array) -> Any:
    """A parameter of all children of a site: the element, the value of the row that makes the call, or the number."""
    if each == "index":
        return within
    if each == "same":
        return _repeated(column, value, owner)
    if isinstance(value, tuple):
        return runs(np.broadcast_to(value[0], counts.shape), counts)
    if isinstance(value, Ragged):
        return _elements(column, value, owner, within)
    return value[owner, within]


def _repeated(column: ColumnSpec, value: Any, owner: Array) -> Any:
    if column.kind == "run":
        return tuple(v[owner] if np.ndim(v) else v for v in value)
    if column.kind == "ragged":
        return value.take(owner)
    return value[owner] if np.ndim(value) > len(column.shape) else value


def _elements(column: ColumnSpec, value: Ragged, owner: Array, within: Array) -> Any:
    """Element `within` of the leading axis of each row's block."""
    if value.dims.shape[1] == 1:
        return value.data[value.lo[owner] + within]
    dims = value.dims[owner][:, 1:]
    block = dims.prod(axis=1)
    lo = value.lo[owner] + within * block
    if column.kind == "ragged":
        return Ragged(value.data, lo, dims)
    return value.data[runs(lo, block)].reshape((len(owner), *column.shape))
