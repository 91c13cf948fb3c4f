"""Sibling calls become one fork.

The invariant: calls share a fork only if no argument or guard of a later one depends on a result of an earlier one and
nothing that can raise stands between them and depends on such a result; so every op and every call runs exactly for the
rows for which it runs in program order, save that a row on which something earlier raised may also have run later
siblings (the runtime drops their effects by position). Positions are given here, per node, in program order.

    a = f(x); n = y - 1; b = f(n); c = a + b     ->     n = y - 1; fork { a = f(x), b = f(n) }; c = a + b

Calls that a branch decides about are guarded (see `guards`) where that lets them share a fork; branches without calls
that stand between two calls come behind the fork of both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from spmd.analysis.effects import Primitives, may_raise
from spmd.ir.core import Op, Value
from spmd.transform.arms import Outliner
from spmd.transform.flow import Calls, CallSite, Flow, Goto, Node, Split, Step
from spmd.transform.guards import Ahead, ahead
from spmd.transform.results import select_results
from spmd.transform.straighten import defined, shorten, straighten, used
from spmd.transform.view import View

BETWEEN = 64  # nodes between two calls

Positions = dict[Step | CallSite, int]


def merge_forks(flow: Flow, primitives: Primitives, positions: Positions, taken: Collection[str]) -> list[Flow]:
    """Merges in place, until nothing merges, and numbers ops and sites within each node. Gives the functions that
    became of arms; they are to be merged with the same `positions`. `taken`: names that they must not have.

    Small joins are copied only when calls have met across them; what was left behind a fork may be copied then.
    """
    merger = _Merger(flow, primitives, positions)
    shorten(flow)
    select_results(flow, primitives)
    shorten(flow)
    merger.merge(Outliner(flow, primitives, taken))
    select_results(flow, primitives)
    straighten(flow)
    merger.merge()
    straighten(flow)
    for node in flow.nodes():
        merger.number(node)
    return merger.outlined


@dataclass(eq=False)
class _Merger:
    """`positions`: where ops and sites of merged nodes stand in program order; others stand as they are listed."""

    flow: Flow
    primitives: Primitives
    positions: Positions
    outlined: list[Flow] = field(default_factory=list)

    def merge(self, outliner: Outliner | None = None) -> None:
        """Merges until nothing does; arms become functions only where nothing else helps."""
        if sum(isinstance(node.exit, Calls) for node in self.flow.nodes()) < 2:
            return
        while self.merge_one(None) or (outliner is not None and self.outline_one(outliner)):
            shorten(self.flow)

    def outline_one(self, outliner: Outliner) -> bool:
        for outliner.whole in (False, True):
            if self.merge_one(outliner):
                return True
        return False

    def number(self, node: Node) -> None:
        """Positions 1, 2, ... in program order; ops that a merged node took over from its predecessor come first."""
        placed: list[Op | CallSite] = list(node.ops)
        if isinstance(node.exit, Calls):
            placed += node.exit.sites
            placed.sort(key=lambda each: self.positions.get(each, 0))
        for position, each in enumerate(placed, 1):
            each.order = (position,)

    def merge_one(self, outliner: Outliner | None) -> bool:
        view = View(self.flow, self.primitives)
        for node in reversed(view.before):  # calls within an arm before the branch
            if outliner is not None:
                outliner.start()
            first = ahead(node, view, outliner)
            if first is not None and self.merge_behind(node, first, view, outliner):
                return True
        return False

    def merge_behind(self, node: Node, first: Ahead, view: View, outliner: Outliner | None) -> bool:
        """Lets the calls that come next after those of the node join them, where that is legal."""
        kept = node.steps, node.exit
        if not isinstance(node.exit, Calls):
            node.steps, node.exit = first.steps, Calls(first.sites, first.rest)
            view = View(self.flow, self.primitives)
        found = self.between(node, first.rest, view, outliner)
        if found is not None:
            nodes, last = found
            second = ahead(last, view, outliner)
            if second is not None and self.join(node, first, nodes, last, second):
                if outliner is not None:
                    self.outlined += outliner.close([*first.outlined, *second.outlined])
                return True
        node.steps, node.exit = kept
        return False

    def between(
        self, node: Node, start: Node, view: View, outliner: Outliner | None
    ) -> tuple[list[Node], Node] | None:
        """The nodes that all rows pass between the calls of `node` and the next ones, which the last node makes."""
        inside = {node}
        nodes: list[Node] = []
        waiting = {start: None}
        while len(nodes) < BETWEEN:
            ready = [n for n in waiting if n is not node and all(p in inside for p in view.before[n])]
            if not ready:
                return None
            if len(waiting) == 1 and ahead(ready[0], view, outliner) is not None:
                return nodes, ready[0]
            passed = next((n for n in ready if isinstance(n.exit, (Goto, Split))), None)
            if passed is None or any(may_raise(op, self.primitives) for op in passed.ops):
                return None
            del waiting[passed]
            inside.add(passed)
            nodes.append(passed)
            waiting.update(dict.fromkeys(passed.successors))
            if any(n in inside for n in passed.successors):
                return None
        return None

    def join(self, node: Node, first: Ahead, nodes: Sequence[Node], last: Node, second: Ahead) -> bool:
        """Moves the calls of `last`, and what they need, into `node`; what needs results of the first ones stays."""
        independent, dependent, late = _divide(first.sites, nodes, second.steps)
        if any(isinstance(step, Op) and may_raise(step, self.primitives) for step in dependent):
            return False
        if any(v in late for site in second.sites for v in site.uses):
            return False
        self.place(first, second)
        for step in dependent:
            self.positions.pop(step, None)
        node.steps = first.steps + independent
        node.exit = Calls([*first.sites, *second.sites], first.rest)
        last.steps, last.exit = dependent, Goto(second.rest)
        return True

    def place(self, first: Ahead, second: Ahead) -> None:
        """Positions of what is merged: those of the first node, then those of the second."""
        start = 0
        for each in (first, second):
            placed: list[Step | CallSite] = [*each.steps, *each.sites]
            if all(site in self.positions for site in each.sites):
                own = {item: self.positions.get(item, 0) for item in placed}
            else:
                own = {item: k for k, item in enumerate(placed, 1)}
            self.positions.update((item, start + k) for item, k in own.items())
            start += max(own.values())


def _divide(
    sites: Sequence[CallSite], nodes: Iterable[Node], steps: Sequence[Step]
) -> tuple[list[Step], list[Step], set[Value]]:
    """Steps that can run before the calls and the nodes behind them, those that read a result or would disturb what
    stays behind, and all that is assigned behind the fork."""
    late = {site.child for site in sites}
    read = {v for site in sites for v in site.uses}  # arguments are read at the fork, after what is moved
    for node in nodes:
        read.update(node.exit_uses())
        for step in node.steps:
            late.update(defined(step))
            read.update(used(step))
    independent: list[Step] = []
    dependent: list[Step] = []
    for step in steps:
        assigned: list[Value] = defined(step)
        if any(v in late for v in used(step)) or any(v in late or v in read for v in assigned):
            dependent.append(step)
            late.update(assigned)
            read.update(used(step))
        else:
            independent.append(step)
    return independent, dependent, late
