"""What a region leaves for its adjoint, and where dynamic arrays live.

A dynamic array in a column is a handle into an arena, and its cotangent lies in the arena's twin. So its cotangent
belongs to the array, not to the column: only the region that made the array reads it, and a handle that is passed on
moves nothing. The invariant: both halves of a region build the same Tape, item by item.

  ('value', v)   a primal value
  ('home', v)    the handle under which a fresh dynamic value was put into its arena
  ('handle', v)  a dynamic value's handle, for a cotangent that is added to its blocks
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spmd.backend.blas.plan import Plan, num, ragged_axes
from spmd.ir.core import Op, Value
from spmd.ir.region import AdjointRegion, Fork, Leave, Region, Seed
from spmd.ir.types import Num
from spmd.runtime.frames import ColumnSpec

Item = tuple[str, Value]


@dataclass(eq=False)
class Passing:
    """How a region handles its values: which are loaded and which are made."""

    plan: Plan
    region: Region
    inputs: dict[Value, int]

    def __post_init__(self) -> None:
        self.loads = {value: column for column, value in self.region.loads}
        self.loaded_from = {column.id: value for column, value in self.region.loads}
        self.producer = {r: op for op in self.region.ops for r in op.results}

    def field_load(self, value: Value) -> Op | None:
        """The `load` that a dynamic value comes from."""
        op = self.producer.get(value)
        return op if op is not None and op.name == "load" else None

    def fresh(self, value: Value) -> bool:
        """Whether the region makes this array (else it has a handle already)."""
        return value not in self.loads and self.field_load(value) is None

    def own_stores(self) -> Iterator[tuple[ColumnSpec, Value]]:
        """Every (column, value) that the region writes in its own frames: stores and results."""
        for column, value in self.region.stores:
            yield self.plan.spec(column), value
        exit_ = self.region.exit
        if isinstance(exit_, Leave):
            frame = self.plan.frames[self.plan.function_number[self.region.function]]
            for position, value in zip(frame.results, exit_.values):
                yield frame.columns[position], value

    def stored(self) -> Iterator[tuple[ColumnSpec, Value]]:
        """Every (column, value) that the region writes: its own, and parameters of callees."""
        yield from self.own_stores()
        exit_ = self.region.exit
        if isinstance(exit_, Fork):
            for site in exit_.sites:
                frame = self.plan.frames[self.plan.function_number[site.function]]
                for position, value in zip(frame.params, site.args):
                    yield frame.columns[position], value

    def homes(self) -> dict[Value, ColumnSpec]:
        """Values that need a handle, with the column that tells their arena."""
        out: dict[Value, ColumnSpec] = {}
        for spec, value in self.stored():
            if spec.kind == "ragged":
                out.setdefault(value, spec)
        return out

    def axes(self, value: Value, spec: ColumnSpec) -> int:
        """Ragged sizes of the value's handle; a mapped array has more than the column of one element."""
        rank = num(value).rank if isinstance(value.type, Num) else 0
        return max(spec.sizes, ragged_axes(value.type), rank - len(spec.shape))

    def seed_value(self, seed: Seed) -> tuple[ColumnSpec, Value]:
        """The column that a seed reads, and the primal value that the region put there."""
        exit_ = self.region.exit
        if seed.kind == "argument":
            assert isinstance(exit_, Fork)
            site = exit_.sites[seed.site]
            frame = self.plan.frames[self.plan.function_number[site.function]]
            return frame.columns[frame.params[seed.index]], site.args[seed.index]
        assert seed.column is not None
        spec = self.plan.spec(seed.column)
        if seed.kind == "result":
            assert isinstance(exit_, Leave)
            function = self.plan.functions[self.plan.function_number[self.region.function]]
            at = next(i for i, c in enumerate(function.results) if c.id == seed.column.id)
            return spec, exit_.values[at]
        return spec, next(v for c, v in self.region.stores if c.id == seed.column.id)


def tape(passing: Passing, adjoint: AdjointRegion) -> list[Item]:
    """The items, in order, without repeats."""
    items: dict[Item, None] = {}
    constants = {r for op in passing.region.ops if op.name == "const" for r in op.results}
    for value in adjoint.residuals:
        if value not in passing.inputs and value not in constants:
            items[("value", value)] = None
    used = used_values(adjoint)
    for seed in adjoint.seeds:
        spec, value = passing.seed_value(seed)
        if spec.kind != "ragged" or seed.value not in used:
            continue
        items[("home" if passing.fresh(value) else "handle", value)] = None
    for add in adjoint.adds:
        if add.kind == "column" and add.column is not None and passing.plan.spec(add.column).kind == "ragged":
            items[("handle", passing.loaded_from[add.column.id])] = None
    return list(items)


def used_values(adjoint: AdjointRegion) -> set[Value]:
    """Values that the adjoint's ops and adds name."""
    out = {v for op in adjoint.ops for v in op.operands}
    for add in adjoint.adds:
        out.add(add.value)
        if add.ref is not None:
            out.add(add.ref)
    return out
