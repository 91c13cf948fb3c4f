"""A compiled program as the scheduler sees it: numbered functions, regions, forks and call sites.

The invariant: plain data that never changes after compilation, so one program serves any number of runs at a time.
Must not know how a region's code came about.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from spmd.runtime.faults import Order
from spmd.runtime.frames import FrameSpec
from spmd.runtime.schedule import Priorities


@dataclass(frozen=True)
class SiteSpec:
    """One call in a fork.

    child   column (position in the caller's frame) that gets the children: a link or a run.
    each    'each', 'field:n', 'same' or 'index' per parameter of a map; () for a call.
    sources for each 'field:n' of a map where the field is read: (True, input table, field) or (False, function, slot).
    guarded rows decide whether they make the call; one that does not has no child (-1) or an empty run.
    shared  slot of the memo table for a call whose frames are shared by table row, else -1.
    """

    number: int
    fork: int
    caller: int
    callee: int
    child: int
    order: Order
    span: Any
    each: tuple[str, ...] = ()
    map: bool = False
    shared: int = -1
    sources: tuple[tuple[bool, int, int] | None, ...] = ()
    guarded: bool = False


@dataclass(frozen=True)
class ForkSpec:
    """Independent calls that run together. `woven`: all are plain calls of one function that every row makes, so the
    children of one parent lie side by side."""

    number: int
    function: int
    target: int
    sites: tuple[SiteSpec, ...]
    woven: bool


@dataclass(eq=False)
class RegionCode:
    """A region's compiled form.

    execute  (run, frame table, rows, count) -> (residuals, children of the fork)
    orders, spans   of the ops that may raise, by the number that they report under.
    taped   bytes of residuals that one row leaves.
    """

    id: int
    function: int
    execute: Callable[..., Any]
    span: Any = None
    orders: list[Order] = field(default_factory=list)
    spans: list[Any] = field(default_factory=list)
    taped: int = 0


@dataclass(eq=False)
class Code:
    """A whole program. `callers[f]`: forks that make frames of f; `entries[f]`: its first region; `memos`: the number
    of memo tables (name of the packed table per memo)."""

    frames: tuple[FrameSpec, ...]
    regions: list[RegionCode]
    forks: list[ForkSpec]
    sites: list[SiteSpec]
    callers: list[list[int]]
    entries: list[int]
    entry: int
    memos: list[str]
    priorities: Priorities
