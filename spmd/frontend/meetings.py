"""Where paths meet: which objects of the paths become one object.

A name that holds one object on one path and another on another path holds, behind the meeting, an object that is
neither: a fresh one, to which each path brings its own cell. The invariant: behind a meeting two places hold one
Object if and only if they do on every path. Where they do on some paths only, the objects are fixed (not to be written
to), and each `shares` the memory that it may be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from spmd.frontend.identities import ABSENT, ITEM, Cell, Object, View, cell_name, fresh, inside, reachable
from spmd.frontend.joins import alternatives
from spmd.frontend.values import Abstract, Choice, Grown, Run, Struct

PATHS = "which of several objects it is depends on the path taken"
Names = dict[str, Abstract]


@dataclass(eq=False)
class Meeting:
    """Paths that meet: for each, its names, which are changed in place so that all paths agree on identities.

    snapshot  (path, object) -> what a view of an array gives at the end of a path.
    shares    what each object shares memory with on each path, in the path's own names.
    whole     objects that are one and hold the same on all paths.
    head      path 0 is what the head of a loop was taken to hold; identities in `own` were made for it before.
    """

    paths: Sequence[Names]
    snapshot: Callable[[int, Object], Abstract]
    head: bool = False
    own: set[int] = field(default_factory=set)
    made: dict[tuple[int | None, ...], int] = field(default_factory=dict)
    shares: dict[int, list[frozenset[int]]] = field(default_factory=dict)
    whole: set[int] = field(default_factory=set)

    def meet(self, roots: Iterable[str], also: Iterable[int] = ()) -> set[int]:
        """Aligns what the roots (and the objects `also`, which are the same on all paths) lead to; gives the
        identities that are reachable behind the meeting."""
        before = [dict(path) for path in self.paths]
        seen: set[int] = set()
        queue: list[tuple[int | None, ...]] = []
        for name in roots:
            things = [path.get(name) for path in self.paths]
            for path, thing in zip(self.paths, self.aligned(things, queue)):
                if thing is not None:
                    path[name] = thing
        queue += [(ident,) * len(self.paths) for ident in also]
        kept: list[tuple[int | None, ...]] = []
        while queue:
            row = self._filled(queue.pop(), before)
            ident = self.name_of(row)
            if ident in seen:
                continue
            seen.add(ident)
            kept.append(row)
            self._cells(row, ident, before, queue)
        self._tell_shares(kept)
        self._tell_doubts(kept)
        return seen

    def _lone(self, path: Names, thing: Object) -> tuple[int | None, ...]:
        """An object of a name that only some paths bind, or that is the same thing on all."""
        return tuple(thing.ident if p is path or thing.cell in p else None for p in self.paths)

    @staticmethod
    def _filled(row: tuple[int | None, ...], before: Sequence[Names]) -> tuple[int | None, ...]:
        """One identity that some paths do not name here: they may have the object all the same."""
        there = {ident for ident in row if ident is not None}
        if len(there) > 1 or None not in row:
            return row
        (ident,) = there
        return tuple(ident if cell_name(ident) in path else None for path in before)

    def name_of(self, row: tuple[int | None, ...]) -> int:
        """The identity behind the meeting of what is `row[k]` on path k."""
        there = {ident for ident in row if ident is not None}
        if len(there) == 1 and not (self.head and row[0] is None):
            return next(iter(there))
        if row[0] in self.own:
            return row[0]
        if row not in self.made:
            self.made[row] = fresh().ident
        return self.made[row]

    # ---------------------------------------------------------------------------------------- structure
    def aligned(
        self, things: Sequence[Abstract | None], queue: list[tuple[int | None, ...]]
    ) -> list[Abstract | None]:
        """The things of the paths with the identities that they have behind the meeting. What is of one form on several
        paths (the alternatives of a union taken one by one) is brought together part by part."""
        if all(t is things[0] for t in things):
            for path, thing in zip(self.paths, things):
                queue += [self._lone(path, o) for o in inside(thing)] if thing is not None else []
            return list(things)
        parts = [dict((_form(a), a) for a in alternatives(t)) if t is not None else {} for t in things]
        for form in dict.fromkeys(f for part in parts for f in part):
            row = self._of_one_form([part.get(form) for part in parts], queue)
            for part, new in zip(parts, row):
                if new is not None:
                    part[form] = new
        return [_rebuilt(t, part) for t, part in zip(things, parts)]

    def _of_one_form(
        self, things: list[Abstract | None], queue: list[tuple[int | None, ...]]
    ) -> list[Abstract | None]:
        first = next(t for t in things if t is not None)
        if isinstance(first, Struct):
            width = range(len(first.items))
            columns = [self.aligned([t.items[k] if isinstance(t, Struct) else None for t in things], queue)
                       for k in width]
            return [replace(t, items=tuple(c[k] for c in columns)) if isinstance(t, Struct) else None  # type: ignore[misc]
                    for k, t in enumerate(things)]
        if isinstance(first, (Object, View)):
            row = tuple(t.ident if isinstance(t, Object) else t.root if isinstance(t, View) else None for t in things)
            queue.append(row)
            ident = self.name_of(row)
            return [_called(t, ident) for t in things]
        for path, thing in zip(self.paths, things):
            queue += [self._lone(path, o) for o in inside(thing)] if thing is not None else []
        return things

    def _cells(
        self, row: tuple[int | None, ...], ident: int, before: Sequence[Names], queue: list[tuple[int | None, ...]]
    ) -> None:
        """Brings each path's cell under the common identity."""
        cells = [old.get(cell_name(k)) if k is not None else None for k, old in zip(row, before)]
        if all(c is cells[0] for c in cells) and all(k == ident for k in row):
            for path, cell in zip(self.paths, cells):
                queue += [self._lone(path, o) for o in inside(cell)] if cell is not None else []
            self.shares[ident] = [c.shares if isinstance(c, Cell) else frozenset() for c in cells]
            self.whole.add(ident)
            return
        cells = self._by_value(self._snapshots(row, cells))
        there = [c for c in cells if isinstance(c, Cell)]
        things = self.aligned([c.thing if isinstance(c, Cell) else None for c in cells], queue)
        fixed = max(c.fixed for c in there)
        stale = max(c.stale for c in there)
        self.shares[ident] = [c.shares if isinstance(c, Cell) else frozenset() for c in cells]
        for path, thing in zip(self.paths, things):
            path[cell_name(ident)] = Cell(ABSENT if thing is None else thing, fixed, frozenset(), stale)

    def _snapshots(self, row: tuple[int | None, ...], cells: list[Abstract | None]) -> list[Abstract | None]:
        """Views that are not the same part of one object on all paths are, from here on, arrays of their own."""
        forms = {(c.thing.key()[:1], c.thing.key()[2:]) if isinstance(c, Cell) and isinstance(c.thing, View) else None
                 for c in cells if c is not None}
        if len(forms) == 1:
            return cells
        done: list[Abstract | None] = []
        for k, (ident, cell) in enumerate(zip(row, cells)):
            if isinstance(cell, Cell) and isinstance(cell.thing, View):
                assert ident is not None
                thing = self.snapshot(k, Object(ident))
                cell = Cell(thing, cell.fixed or PATHS, cell.shares | {cell.thing.root}, cell.stale)
            done.append(cell)
        return done

    def _by_value(self, cells: list[Abstract | None]) -> list[Abstract | None]:
        """Lists of different length hold their items by value from here on: an item that is an object is fixed."""
        things = [c.thing for c in cells if isinstance(c, Cell)]
        lists = all(isinstance(t, Grown) or isinstance(t, (Struct, Run)) and t.kind == "list" for t in things)
        if not lists or len({len(t.items) if isinstance(t, Struct) else -1 for t in things}) == 1:
            return cells
        return [Cell(self._values(k, c.thing), c.fixed, c.shares, c.stale) if isinstance(c, Cell) else c
                for k, c in enumerate(cells)]

    def _values(self, k: int, thing: Abstract) -> Abstract:
        """A thing with what its objects hold on a path in their place; there, they are fixed."""
        if isinstance(thing, Object):
            path = self.paths[k]
            held = self._values(k, self.snapshot(k, thing))
            for ident in reachable(path, [thing]):
                cell = path[cell_name(ident)]
                assert isinstance(cell, Cell)
                path[cell_name(ident)] = Cell(cell.thing, cell.fixed or ITEM, cell.shares, cell.stale)
            return held
        if isinstance(thing, Struct):
            return replace(thing, items=tuple(self._values(k, i) for i in thing.items))
        return thing

    # ---------------------------------------------------------------------------------------- doubts
    def _tell_shares(self, rows: Sequence[tuple[int | None, ...]]) -> None:
        """What an object may share memory with, by the names behind the meeting; what none of them is, is gone."""
        called: list[dict[int, set[int]]] = [{} for _ in self.paths]
        for row in rows:
            for names, ident in zip(called, row):
                if ident is not None:
                    names.setdefault(ident, set()).add(self.name_of(row))
        for row in rows:
            ident = self.name_of(row)
            pairs = zip(called, self.shares[ident])
            found = frozenset(n for names, shares in pairs for k in shares for n in names.get(k, ())) - {ident}
            if not found <= self.shares[ident][0] or ident not in self.whole:
                self._mark(ident, "", found, only=True)

    def _mark(self, ident: int, fixed: str, shares: frozenset[int], only: bool = False) -> None:
        """Notes what an object shares (`only` that, or that as well) and why it is fixed."""
        for path in self.paths:
            cell = path.get(cell_name(ident))
            if isinstance(cell, Cell):
                now = shares if only else cell.shares | shares
                if now != cell.shares or fixed and not cell.fixed:
                    path[cell_name(ident)] = Cell(cell.thing, cell.fixed or fixed, now, cell.stale)

    def _tell_doubts(self, rows: Sequence[tuple[int | None, ...]]) -> None:
        """Objects that are one on some path and two on another must not be written to."""
        for k in range(len(self.paths)):
            places: dict[int, list[tuple[int | None, ...]]] = {}
            for row in rows:
                if row[k] is not None:
                    places.setdefault(row[k], []).append(row)  # type: ignore[arg-type]
            for several in places.values():
                if len(several) > 1:
                    for row in several:
                        ident = self.name_of(row)
                        if any(k != ident for k in row):
                            others = frozenset(self.name_of(r) for r in several) - {ident}
                            self._mark(ident, PATHS, others)


def _form(thing: Abstract) -> tuple[object, ...]:
    """What two things agree in that can be one thing behind a meeting, whatever their parts are."""
    if isinstance(thing, Struct):
        return (thing.kind, thing.cls, thing.names)
    return ("object",) if isinstance(thing, Object) else ("view",) if isinstance(thing, View) else (id(thing),)


def _called(thing: Abstract | None, ident: int) -> Abstract | None:
    return replace(thing, root=ident) if isinstance(thing, View) else Object(ident) if thing is not None else None


def _rebuilt(thing: Abstract | None, parts: dict[tuple[object, ...], Abstract]) -> Abstract | None:
    """A thing with new alternatives, in their old order."""
    if isinstance(thing, Choice):
        return Choice(thing.tag, tuple(parts[_form(a)] for a in thing.alternatives))
    return None if thing is None else parts[_form(thing)]


def without_dead(names: Names, roots: Iterable[str], also: Iterable[int] = ()) -> None:
    """Forgets cells that nothing alive leads to."""
    alive = reachable(names, [names[r] for r in roots if r in names]) | set(also)
    for name in [n for n in names if n.startswith("@") and int(n[1:]) not in alive]:
        del names[name]
