"""Writes one node down as a region: variables become SSA values again.

The invariant: within a region equal work is done once (same op, operands and attributes), steps that nobody needs are
not written, each column is loaded at most once and stores are parallel.
"""

from __future__ import annotations

from typing import Any

from spmd.ir.core import Op, Value
from spmd.ir.equal import op_key
from spmd.ir.region import Column, Region
from spmd.transform.columns import Placement
from spmd.transform.flow import Move, Node

Key = tuple[Any, ...]


class RegionWriter:
    """`read` gives the value of a variable at the point reached so far."""

    def __init__(
        self,
        region: Region,
        node: Node,
        placement: Placement,
        columns: dict[Value, Column],
        inputs: set[Value],
    ) -> None:
        self.region = region
        self.node = node
        self.placement = placement
        self.columns = columns
        self.inputs = inputs
        self.values: dict[Value, Value] = {}
        self.loaded: dict[Column, Value] = {}
        self.done: dict[Key, Op] = {}

    def read(self, variable: Value) -> Value:
        if variable in self.values:
            return self.values[variable]
        if variable in self.inputs:
            return variable
        if variable in self.placement.constants:
            self.emit(self.placement.constants[variable])
            return self.values[variable]
        column = self.columns[self.placement.home[variable]]
        if column not in self.loaded:
            self.loaded[column] = Value(variable.type, variable.name)
            self.region.loads.append((column, self.loaded[column]))
        self.values[variable] = self.loaded[column]
        return self.values[variable]

    def emit(self, op: Op) -> None:
        """Writes the op, or finds that an equal one is there."""
        operands = [self.read(v) for v in op.operands]
        key = op_key(op, operands)
        twin = self.done.get(key)
        if twin is None:
            results = [Value(v.type, v.name) for v in op.results]
            twin = Op(op.name, operands, op.attrs, results, op.blocks, op.span, op.order)
            self.region.ops.append(twin)
            self.done[key] = twin
        self.values.update(zip(op.results, twin.results, strict=True))

    def write(self) -> None:
        """The steps that are needed."""
        for step in self.placement.steps[self.node]:
            if isinstance(step, Move):
                self.move(step)
            elif not any(v in self.placement.constants for v in step.results):  # these are written where they are used
                self.emit(step)
        self.region.span = self.region.span or next((op.span for op in self.region.ops if op.span), None)

    def move(self, step: Move) -> None:
        """All sources are read before a target is assigned."""
        sources = [self.read(v) for v in step.sources]
        self.values.update(zip(step.targets, sources, strict=True))

    def close(self) -> None:
        """Stores what is alive on exit and changed, then drops loads that nothing used."""
        stored: dict[Column, Value] = {}
        for variable in sorted(self.placement.out(self.node), key=lambda v: v.id):
            column = self.columns[self.placement.home[variable]]
            value = self.values.get(variable)
            if value is not None and value is not self.loaded.get(column):
                stored[column] = value
        self.region.stores = list(stored.items())
        used = {v for op in self.region.ops for v in op.operands} | set(stored.values())
        used |= set(exit_values(self.region))
        self.region.loads = [(c, v) for c, v in self.region.loads if v in used]


def exit_values(region: Region) -> list[Value]:
    """Values that the region's exit reads."""
    out: Any = region.exit
    if hasattr(out, "cond"):
        return [out.cond]
    if hasattr(out, "values"):
        return list(out.values)
    values: list[Value] = []
    for site in getattr(out, "sites", []):
        values += [*(v for v, _ in site.guards), *([] if site.count is None else [site.count]), *site.args]
    return values
