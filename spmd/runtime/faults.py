"""Exceptions of examples: which one the plain loop over examples would have raised.

A fault is an exception that one frame raised. The invariant: the fault that is kept is the least by (lane, program
position), and a waiting frame is dropped only if it is later than that. Program position of two frames of one lane is
decided at their lowest common ancestor by call site and element number. Must not know how rows are scheduled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spmd.runtime.frames import FrameTable
from spmd.runtime.ragged import Array

Order = tuple[int, ...]
Make = Callable[[int], BaseException]
Step = tuple[Order, int]

LAST: Order = (1 << 62,)


class Faults:
    """Collects, while a region runs, which rows an op failed on; `at` is the number of the op that runs now. `late`:
    rows whose loop ran so long that others should go first."""

    __slots__ = ("found", "at", "late")

    def __init__(self) -> None:
        self.found: list[tuple[int, Array, Make]] = []
        self.at = 0
        self.late: Array | None = None

    def report(self, bad: Array, make: Make) -> None:
        """`bad`: bool [K]; `make(row)` builds the exception of a row."""
        if bad.any():
            self.found.append((self.at, bad, make))


class FaultOrder:
    """Keeps the least fault of a run and compares waiting frames with it."""

    def __init__(self, tables: Sequence[FrameTable], sites: Sequence[tuple[int, Order]]) -> None:
        self._tables = tables
        self._sites = sites
        self.lane = -1
        self.path: list[Step] = []
        self.exception: BaseException | None = None
        self.span: Any = None
        self._verdicts: dict[tuple[int, int], bool] = {}
        self._trail: dict[tuple[int, int], int] = {}

    @property
    def any(self) -> bool:
        """Whether some example has raised."""
        return self.exception is not None

    def offer(self, function: int, frame: int, order: Order, make: Callable[[], BaseException], span: Any) -> None:
        """A frame raised at `order`; keep it if it is earlier than what is kept."""
        lane = int(self._tables[function].lane[frame])
        if self.exception is not None and lane > self.lane:
            return
        path, trail = self._path(function, frame)
        path.append((order, 0))
        if self.exception is not None and lane == self.lane and path >= self.path:
            return
        self.lane, self.path, self.exception, self.span = lane, path, make(), span
        self._trail = {node: depth for depth, node in enumerate(trail)}
        self._verdicts = {}

    def _path(self, function: int, frame: int) -> tuple[list[Step], list[tuple[int, int]]]:
        """Steps from the root to a frame, and the frames on the way."""
        steps: list[Step] = []
        nodes = [(function, frame)]
        while True:
            table = self._tables[function]
            parent = int(table.parent[frame])
            if parent < 0:
                break
            site = int(table.site[frame])
            function, order = self._sites[site]
            steps.append((order, int(table.element[frame]) if table.spec.elements else 0))
            frame = parent
            nodes.append((function, frame))
        steps.reverse()
        nodes.reverse()
        return steps, nodes

    def keep(self, function: int, rows: Array) -> Array:
        """bool per waiting frame: it may still raise an earlier exception."""
        lanes = self._tables[function].lane[rows]
        out = lanes < self.lane
        for i in np.flatnonzero(lanes == self.lane):
            out[i] = self._earlier(function, int(rows[i]))
        return out

    def _earlier(self, function: int, frame: int) -> bool:
        """Whether a frame of the fault's lane comes before the fault."""
        way: list[tuple[int, int]] = []
        node = (function, frame)
        while True:
            known = self._verdicts.get(node)
            if known is not None:
                break
            depth = self._trail.get(node)
            if depth is not None:
                known = not way or self._step(way[-1]) < self.path[depth]
                break
            way.append(node)
            table = self._tables[node[0]]
            site = int(table.site[node[1]])
            node = (self._sites[site][0], int(table.parent[node[1]]))
        for n in way:
            self._verdicts[n] = known
        return known

    def _step(self, node: tuple[int, int]) -> Step:
        table = self._tables[node[0]]
        element = int(table.element[node[1]]) if table.spec.elements else 0
        return self._sites[int(table.site[node[1]])][1], element
