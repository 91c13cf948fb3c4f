"""The prologue (work on shared arguments, once per call) and its adjoint.

The invariant: the prologue knows no rows: its values are what one example sees. Its adjoint runs on one row, the summed
cotangent, or on one row per example where gradients are asked per example.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from spmd.backend.blas.adjoint_code import PARAMETERS, AdjointWriter
from spmd.backend.blas.emit import OpWriter
from spmd.backend.blas.plan import Plan, ragged_axes
from spmd.backend.blas.tape import Item
from spmd.backend.blas.values import Source
from spmd.ir.core import Block, Value
from spmd.ir.region import AdjointRegion, Region
from spmd.runtime.ragged import from_dense


def compile_prologue(
    plan: Plan, block: Block, inputs: dict[Value, int], kept: list[Value]
) -> tuple[Any, str, dict[Value, tuple[str, bool]]]:
    """Function (run) -> (derived inputs, values kept for the adjoint); its text; forms of its values."""
    source = Source("prologue", "run")
    ops = OpWriter(source, plan, inputs)
    ops.prepares = False  # what is prepared is made of what the prologue gives
    ops.emit(block.ops[:-1])
    derived = "".join(ops.name(v) + ", " for v in block.terminator.operands)
    names = "".join(ops.name(v) + ", " for v in kept)
    source.line(f"return ({derived}), ({names})")
    return source.build(), source.text, {v: (h.form, False) for v, h in ops.env.items()}


class PrologueAdjointWriter(AdjointWriter):
    """Writes the adjoint of the prologue. It gets the derived inputs' cotangents as `res` (kept values after them) and
    the rows' examples as `kids`."""

    def __init__(
        self,
        plan: Plan,
        adjoint: AdjointRegion,
        inputs: dict[Value, int],
        kept: list[Value],
        forms: dict[Value, tuple[str, bool]],
        sites: Iterator[int],
    ) -> None:
        items: list[Item] = [("value", v) for v in kept]
        super().__init__(plan, Region(-1, ""), adjoint, inputs, items, forms, sites)
        self.source = Source("prologue_adjoint", PARAMETERS)
        self.ops = OpWriter(self.source, plan, inputs)

    def _residuals(self) -> None:
        names = []
        for seed in self.adjoint.seeds:
            name = self.source.fresh("s")
            names.append(name)
            self.ops.set(seed.value, name, "rows")
        for _, value in self.items:
            name = self.source.fresh("r")
            names.append(name)
            self.ops.set(value, name, self.forms[value][0])
        if names:
            self.source.line(f"{''.join(n + ', ' for n in names)} = res")

    def _constants(self) -> None:
        return

    def _seeds(self) -> None:
        for seed in self.adjoint.seeds:
            k = ragged_axes(seed.value.type)
            if k:
                name = self.ops.name(seed.value)
                self.source.line(f"{name} = {self.source.function(from_dense)}({name}, {k})")
                self.ops.set(seed.value, name, "ragged")

    def _lanes(self) -> str:
        return "kids"


def run_adjoint(adjoint: AdjointRegion, function: Any, back: Any, kept: tuple[Any, ...]) -> None:
    """Carries the cotangents of derived inputs over to the inputs that they were made of."""
    rows = 1 if back.lanes is None else back.lanes
    seeds = []
    given = False
    for seed in adjoint.seeds:
        sink = back.sink(seed.index)
        total = sink.result()
        given = given or total is not None
        if total is None:
            total = np.zeros((rows, *sink.shape), sink.dtype)
        seeds.append(np.asarray(total).reshape((rows, *sink.shape)))
    if given:
        lanes = None if back.lanes is None else np.arange(rows)
        function(back, back.run, None, None, rows, (*seeds, *kept), lanes)


