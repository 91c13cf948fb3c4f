"""Cuts a module into regions.

The invariant: the program computes, for one example, what the module computes: same results, same exceptions. Calls
and coarse control flow end a region; everything else is straight-line. Functions that are not recursive and not too
large are written in place; sibling calls become one fork; `order` of ops and sites is their position within the region
(two candidates for the first exception of one frame always stand in one region). It knows no engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spmd.analysis.callgraph import reachable
from spmd.analysis.effects import Primitives, default_primitives
from spmd.errors import InternalError
from spmd.ir.core import Block, Module, Value
from spmd.ir.region import (
    Branch,
    Column,
    Dead,
    Exit,
    Fork,
    FunctionRegions,
    Jump,
    Leave,
    Program,
    Raise,
    Region,
    Site,
)
from spmd.transform.columns import Placement, children, place, stored_homes
from spmd.transform.flow import Calls, Fail, Flow, FlowBuilder, Give, Goto, Node, Split
from spmd.transform.forks import Positions, merge_forks
from spmd.transform.inline import inlinable
from spmd.transform.native import WholeLoops
from spmd.transform.write import RegionWriter


def regions(
    module: Module, primitives: Primitives | None = None, native: Callable[[Block], bool] | None = None
) -> Program:
    """The module as a program of regions; the module is not changed. `native`: which closed
    blocks of a loop compiled code runs; such loops stay whole, as one op."""
    primitives = default_primitives() if primitives is None else primitives
    inline = inlinable(module)
    flows: dict[str, Flow] = {}
    whole = WholeLoops(module, inline.__contains__, native)
    arms: dict[str, Flow] = {}
    positions: Positions = {}
    waiting = [module.entry]
    while waiting:
        name = waiting.pop()
        if name in flows:
            continue
        flow = arms.get(name) or FlowBuilder(module, inline.__contains__, whole).build(module.functions[name])
        arms.update((arm.function.name, arm) for arm in merge_forks(flow, primitives, positions, module.functions))
        flows[name] = flow
        for node in flow.nodes():
            if isinstance(node.exit, Calls):
                waiting += [site.function for site in reversed(node.exit.sites)]
    return _Cutter(module, primitives).program({n: flows[n] for n in (*module.functions, *arms) if n in flows})


class _Cutter:
    """Numbers regions and columns over all functions."""

    def __init__(self, module: Module, primitives: Primitives) -> None:
        self.module = module
        self.primitives = primitives
        self.regions: list[Region] = []
        self.columns = 0

    def column(self, value: Value, name: str = "", single: bool = True) -> Column:
        self.columns += 1
        return Column(self.columns - 1, value.type, name or value.name, single)

    def program(self, flows: dict[str, Flow]) -> Program:
        functions = {name: self.function(flow) for name, flow in flows.items()}
        module = self.module
        return Program(
            functions, module.entry, self.regions, list(module.inputs), dict(module.tables), module.prologue
        )

    def function(self, flow: Flow) -> FunctionRegions:
        function = flow.function
        placement = place(flow, self.module.inputs, self.primitives)
        undefined = placement.live[flow.entry] - set(function.params)
        if undefined:
            raise InternalError(f"{sorted(map(repr, undefined))} may be unassigned in {function.name}")
        nodes = flow.nodes()
        columns: dict[Value, Column] = {p: self.column(p) for p in function.params}
        results = [self.column(Value(t), f"result{k}") for k, t in enumerate(function.results)]
        single = single_homes(nodes, placement)
        for node in nodes:
            wanted = sorted(placement.live[node] | children(node), key=lambda v: v.id)
            for home in [placement.home[v] for v in wanted]:
                if home not in columns:
                    columns[home] = self.column(home, single=home in single)
        numbers = {node: len(self.regions) + k for k, node in enumerate(nodes)}
        for node in nodes:
            self.regions.append(self.region(function.name, node, numbers, placement, columns))
        listed = [columns[p] for p in function.params] + results
        listed += [c for v, c in columns.items() if v not in function.params]
        params = [columns[p] for p in function.params]
        ids = list(numbers.values())
        return FunctionRegions(function.name, params, results, listed, numbers[flow.entry], ids, function.span)

    def region(
        self,
        function: str,
        node: Node,
        numbers: dict[Node, int],
        placement: Placement,
        columns: dict[Value, Column],
    ) -> Region:
        region = Region(numbers[node], function, span=node.span, order=node.order)
        writer = RegionWriter(region, node, placement, columns, set(self.module.inputs))
        writer.write()
        region.exit = self.exit(node, numbers, writer, columns)
        writer.close()
        return region

    def exit(
        self, node: Node, numbers: dict[Node, int], writer: RegionWriter, columns: dict[Value, Column]
    ) -> Exit:
        out = node.exit
        if isinstance(out, Goto):
            return Jump(numbers[out.target])
        if isinstance(out, Split):
            return Branch(writer.read(out.cond), numbers[out.then], numbers[out.other])
        if isinstance(out, Calls):
            sites = [
                Site(
                    s.function,
                    [writer.read(v) for v in s.args],
                    columns[s.child],
                    s.each,
                    None if s.count is None else writer.read(s.count),
                    s.order,
                    s.span,
                    tuple((writer.read(v), truth) for v, truth in s.guards),
                )
                for s in out.sites
            ]
            return Fork(sites, numbers[out.target])
        if isinstance(out, Give):
            return Leave([writer.read(v) for v in out.values])
        return Raise(out.error) if isinstance(out, Fail) else Dead()


def single_homes(nodes: Sequence[Node], placement: Placement) -> set[Value]:
    """Columns that are stored at most once in a frame's life: no store can follow another."""
    index = {node: k for k, node in enumerate(nodes)}
    graph = {k: [index[s] for s in node.successors] for node, k in index.items()}
    stores: dict[Value, list[int]] = {}
    for node, k in index.items():
        for home in stored_homes(node, placement):
            stores.setdefault(home, []).append(k)
    found = set()
    behind: dict[int, set[int]] = {}
    for home, places in stores.items():
        for k in places:
            if k not in behind:
                behind[k] = {n for s in graph[k] for n in reachable(graph, s)}
        if not any(j in behind[k] for k in places for j in places):
            found.add(home)
    return found
