"""Where paths meet: which objects of the paths become one object.

A name that holds one object on one path and another on another path holds, behind the meeting, an object that is
neither: a fresh one, to which each path brings its own cell. The invariant: behind a meeting two places hold one Object
if and only if they do on every path. Where they do on some paths only, the objects are fixed (not to be written to), and
each `shares` the memory that it may be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from spmd.frontend.objects import fresh, inside, reachable
from spmd.frontend.values import ABSENT, Abstract, Cell, Choice, Object, Struct, View, cell_name

PATHS = "which of several objects it is depends on the path taken"
Names = dict[str, Abstract]


@dataclass(eq=False)
class Meeting:
    """Paths that meet: for each, its names, which are changed in place so that all paths agree on identities.

    snapshot  (path, object) -> what a view of an array gives at the end of a path.
    head      path 0 is what the head of a loop was taken to hold; identities in `own` were made for it before.
    """

    paths: Sequence[Names]
    snapshot: Callable[[int, Object], Abstract]
    head: bool = False
    own: set[int] = field(default_factory=set)
    made: dict[tuple[int | None, ...], int] = field(default_factory=dict)

    def meet(self, roots: Iterable[str], also: Iterable[int] = ()) -> set[int]:
        """Aligns what the roots (and the objects `also`, which are the same on all paths) lead to; gives the
        identities that are reachable behind the meeting."""
        before = [dict(path) for path in self.paths]
        seen: set[int] = set()
        queue: list[tuple[int | None, ...]] = []
        for name in roots:
            things = [path.get(name) for path in self.paths]
            if any(t is None for t in things) or all(t is things[0] for t in things):
                for path, thing in zip(self.paths, things):
                    queue += [self._lone(path, o) for o in inside(thing)] if thing is not None else []
                continue
            for path, thing in zip(self.paths, self.aligned(things, queue)):  # type: ignore[arg-type]
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
            return row[0]  # type: ignore[return-value]
        if row not in self.made:
            self.made[row] = fresh().ident
        return self.made[row]

    # ---------------------------------------------------------------------------------------- structure
    def aligned(self, things: Sequence[Abstract], queue: list[tuple[int | None, ...]]) -> list[Abstract]:
        """The things of the paths with the identities that they have behind the meeting."""
        first = things[0]
        if all(isinstance(t, Struct) for t in things) and len({_form(t) for t in things}) == 1:
            columns = [self.aligned(items, queue) for items in zip(*(t.items for t in things))]  # type: ignore[attr-defined]
            rows = zip(*columns) if columns else [()] * len(things)
            return [Struct(t.kind, t.cls, t.names, tuple(row)) for t, row in zip(things, rows)]  # type: ignore[attr-defined]
        held = [self._one(t) for t in things]
        if all(h is None for h in held):
            for path, thing in zip(self.paths, things):
                queue += [self._lone(path, o) for o in inside(thing)]
            return list(things)
        if all(t is first for t in things):
            queue.append(tuple(held))
            return list(things)
        ident = self.name_of(tuple(held))
        queue.append(tuple(held))
        return [_with(t, h, ident) for t, h in zip(things, held)]

    @staticmethod
    def _one(thing: Abstract) -> int | None:
        """The object that a thing is, or may be."""
        if isinstance(thing, Object):
            return thing.ident
        if isinstance(thing, View):
            return thing.root
        if isinstance(thing, Choice):
            found = [a.ident for a in thing.alternatives if isinstance(a, Object)]
            return found[0] if len(found) == 1 else None
        return None

    def _cells(
        self, row: tuple[int | None, ...], ident: int, before: Sequence[Names], queue: list[tuple[int | None, ...]]
    ) -> None:
        """Brings each path's cell under the common identity."""
        cells = [old.get(cell_name(k)) if k is not None else None for k, old in zip(row, before)]
        if all(c is cells[0] for c in cells) and all(k == ident for k in row):
            for path, cell in zip(self.paths, cells):
                queue += [self._lone(path, o) for o in inside(cell)] if cell is not None else []
            return
        cells = self._snapshots(row, cells)
        there = [c for c in cells if isinstance(c, Cell)]
        things = self.aligned([c.thing for c in there], queue) if len(there) == len(cells) else [c.thing for c in there]
        if len(there) != len(cells):
            for path, cell in zip(self.paths, cells):
                queue += [self._lone(path, o) for o in inside(cell)] if cell is not None else []
        fresh_things = iter(things)
        fixed = max(c.fixed for c in there)
        stale = max(c.stale for c in there)
        shares = frozenset().union(*(c.shares for c in there))
        for path, cell in zip(self.paths, cells):
            thing = next(fresh_things) if isinstance(cell, Cell) else ABSENT
            path[cell_name(ident)] = Cell(thing, fixed, shares, stale)

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

    # ---------------------------------------------------------------------------------------- doubts
    def _tell_doubts(self, rows: Sequence[tuple[int | None, ...]]) -> None:
        """Objects that are one on some path and two on another must not be written to."""
        for k in range(len(self.paths)):
            places: dict[int, list[tuple[int | None, ...]]] = {}
            for row in rows:
                if row[k] is not None:
                    places.setdefault(row[k], []).append(row)  # type: ignore[arg-type]
            for ident, several in places.items():
                if len(several) > 1:
                    for row in several:
                        self._doubt(row, {ident, *(self.name_of(r) for r in several if r is not row)})

    def _doubt(self, row: tuple[int | None, ...], others: set[int]) -> None:
        ident = self.name_of(row)
        if all(k == ident for k in row):
            return
        for path in self.paths:
            cell = path.get(cell_name(ident))
            if isinstance(cell, Cell):
                path[cell_name(ident)] = Cell(cell.thing, cell.fixed or PATHS, cell.shares | (others - {ident}),
                                              cell.stale)


def _form(thing: Abstract) -> tuple[object, ...]:
    return (thing.kind, thing.cls, thing.names) if isinstance(thing, Struct) else ()


def _with(thing: Abstract, old: int | None, new: int) -> Abstract:
    """The thing with another identity for one of its objects."""
    if old is None or old == new:
        return thing
    if isinstance(thing, View):
        return View(new, thing.steps)
    if isinstance(thing, Choice):
        parts = (Object(new) if isinstance(a, Object) and a.ident == old else a for a in thing.alternatives)
        return Choice(thing.tag, tuple(parts))
    return Object(new)


def without_dead(names: Names, roots: Iterable[str], also: Iterable[int] = ()) -> None:
    """Forgets cells that nothing alive leads to."""
    alive = reachable(names, [names[r] for r in roots if r in names]) | set(also)
    for name in [n for n in names if n.startswith("@") and int(n[1:]) not in alive]:
        del names[name]
