"""Objects handed to a call and back.

A callee knows the objects that it is given by small numbers, in the order in which its arguments lead to them; what
they hold comes as further arguments. It gives back its result, what it wrote into them, and what it made. The
invariant: two arguments that are one object of the caller are one object in the callee; those that overlap otherwise
are fixed.
"""

from __future__ import annotations

from spmd.frontend.identities import ABSENT, Cell, Object, Outcome, View, cell_name, fresh, inside, reachable, renamed
from spmd.frontend.lowering import Lowering, Spec
from spmd.frontend.objects import Memory
from spmd.frontend.paths import Pending
from spmd.frontend.scope import Scope
from spmd.frontend.values import Abstract, Grown, Leaf, Struct
from spmd.ir.core import Block
from spmd.spans import Span

OVERLAP = "it overlaps another argument of the call"


class Handed:
    """The objects of one call."""

    def __init__(self, memory: Memory, fixed: str = "") -> None:
        self.memory = memory
        self.fixed = fixed
        self.numbers: dict[int, int] = {}

    def arguments(self, args: dict[str, Abstract]) -> dict[str, Abstract]:
        """The arguments with the callee's numbers for their objects, and behind them what these hold."""
        args = {name: self.memory.hold(thing) for name, thing in args.items()}
        queue = [o for thing in args.values() for o in inside(thing)]
        cells: list[Cell] = []
        while queue:
            thing = queue.pop(0)
            if thing.ident in self.numbers:
                continue
            self.numbers[thing.ident] = len(self.numbers)
            cell = self.memory.cell(thing)
            if isinstance(cell.thing, View):
                cell = Cell(self.memory.contents(thing), cell.fixed, cell.shares, cell.stale)
            queue += list(inside(cell))
            cells.append(cell)
        overlapping = self._overlapping()
        named = {name: renamed(thing, self.numbers) for name, thing in args.items()}
        for (ident, number), cell in zip(self.numbers.items(), cells):
            shares = frozenset(k for k in cell.shares if k in self.numbers)
            fixed = cell.fixed or self.fixed or (OVERLAP if ident in overlapping else "")
            named[cell_name(number)] = renamed(Cell(cell.thing, fixed, shares, cell.stale), self.numbers)
        return named

    def _overlapping(self) -> set[int]:
        """Objects of which another argument is a part, or a part of the same array."""
        bases: dict[int, list[int]] = {}
        for ident in self.numbers:
            cell = self.memory.cell(Object(ident))
            bases.setdefault(cell.thing.root if isinstance(cell.thing, View) else ident, []).append(ident)
        return {ident for several in bases.values() if len(several) > 1 for ident in several}

    def fix(self, numbers: set[int], why: str) -> None:
        """Objects that the callee keeps by value must not be written to any more."""
        for ident, number in self.numbers.items():
            if number in numbers:
                self.memory.fix(Object(ident), why)

    def result(self, outcome: Abstract, node: Span | None) -> Abstract:
        """The result in the caller's identities, after what the callee wrote is written here."""
        assert isinstance(outcome, Outcome)
        names = {number: ident for ident, number in self.numbers.items()}
        names.update((k, fresh().ident) for k, _ in outcome.cells if k < 0)
        for k, cell in outcome.cells:
            own = Object(names[k])
            thing = self._seen(cell.thing, names)
            if k < 0:
                self.memory.names[own.cell] = Cell(thing, cell.fixed, frozenset(names[i] for i in cell.shares),
                                                   cell.stale)
            else:
                if not _as_long(self.memory.cell(own).thing, thing):
                    self.memory.demand_resizable(own, None)
                self.memory.write(own, thing, None)
        return renamed(outcome.result, names)

    def _seen(self, thing: Abstract, names: dict[int, int]) -> Abstract:
        """What an object holds, in the caller's identities; a part of what is a part here is one of the whole."""
        thing = renamed(thing, names)
        if isinstance(thing, View):
            cell = self.memory.cell(Object(thing.root)) if cell_name(thing.root) in self.memory.names else None
            if cell is not None and isinstance(cell.thing, View):
                return View(cell.thing.root, cell.thing.steps + thing.steps)
        return thing


def _as_long(old: Abstract, new: Abstract) -> bool:
    """Whether what a callee wrote into a container is known to be as long as what it held."""
    if isinstance(old, Leaf):
        return True
    sizes = [len(t.items) if isinstance(t, Struct) else t.size if isinstance(t, Grown) else None for t in (old, new)]
    return sizes[0] is not None and sizes[0] == sizes[1]


def settle_returns(low: Lowering, spec: Spec, given: dict[str, Abstract]) -> None:
    """Makes the results of a function's returns what its callers take: plain structure, or outcomes."""
    assert low.memory is not None
    if spec.plain:
        for pending in low.returns:
            _resolve(low, spec, pending)
        return
    own = [int(n[1:]) for n in given if n.startswith("@") and n in spec.params]
    paths = [*low.returns, *_known(spec, given)]
    low.met(paths, (), [cell_name(k) for k in own])
    written = [k for k in own if any(p.scope.names[cell_name(k)] is not given[cell_name(k)] for p in paths)]
    made: dict[int, int] = {}
    for path in paths:
        names = path.scope.names
        leading = [path.result, *(names[cell_name(k)] for k in written)]
        for ident in _in_order(names, leading):  # type: ignore[arg-type]
            if ident not in own:
                made.setdefault(ident, -1 - len(made))
    for path in paths:
        assert path.result is not None
        path.result = _outcome(path.scope.names, path.result, written, made)
    if len(paths) > len(low.returns):
        spec.result = paths[-1].result


def _resolve(low: Lowering, spec: Spec, pending: Pending) -> None:
    """A result with what its objects hold in their place; those that it was given escape by value."""
    assert low.memory is not None and pending.result is not None
    outer, low.scope = low.scope, pending.scope
    low.b.span = pending.span or low.b.span
    with low.b.at(pending.block):
        spec.escaped |= {k for k in reachable(low.scope.names, [pending.result]) if cell_name(k) in spec.params}
        pending.result = low.memory.plain(pending.result)
    low.scope = outer


def _known(spec: Spec, given: dict[str, Abstract]) -> list[Pending]:
    """The results known so far as one more path."""
    if not isinstance(spec.result, Outcome):
        return []
    names = {**given, **{cell_name(k): cell for k, cell in spec.result.cells}}
    return [Pending(Block(), Scope(names), None, spec.result.result)]


def _in_order(names: dict[str, Abstract], things: list[Abstract]) -> list[int]:
    """The objects that things lead to, in the order in which one comes to them."""
    found: list[int] = []
    queue = [o.ident for thing in things for o in inside(thing)]
    while queue:
        ident = queue.pop(0)
        if ident not in found:
            found.append(ident)
            cell = names.get(cell_name(ident))
            queue += [o.ident for o in inside(cell)] if cell is not None else []
    return found


def _outcome(names: dict[str, Abstract], result: Abstract, written: list[int], made: dict[int, int]) -> Outcome:
    cells = []
    for ident, number in [*((k, k) for k in written), *made.items()]:
        cell = names.get(cell_name(ident), Cell(ABSENT))
        assert isinstance(cell, Cell)
        known = frozenset(k for k in cell.shares if k in made or k < 1_000_000)
        cells.append((number, renamed(Cell(cell.thing, cell.fixed, known, cell.stale), made)))
    return Outcome(renamed(result, made), tuple(cells))  # type: ignore[arg-type]
