"""Residuals that cost less to compute again than to keep.

A cheap elementwise value whose operands are on the tape anyway is computed again inside the adjoint's own kernels: no
memory is written or read for it. The invariant: the same ops on the same operands, so the same values; nothing that
can raise, and no elementary function, runs twice. (To-be-recorded sets: Hascoet, Naumann and Pascual, "To be recorded
analysis in reverse-mode automatic differentiation", 2005.)
"""

from __future__ import annotations

from dataclasses import replace

from spmd.backend.blas.grouping import COSTLY, chainable
from spmd.ir.core import Op, Value
from spmd.ir.region import AdjointRegion, Region
from spmd.ops.table import PRIMITIVES, may_raise


def recomputing(
    region: Region, adjoint: AdjointRegion, inputs: dict[Value, int], stored: set[Value]
) -> AdjointRegion:
    """The adjoint with fewer residuals: cheap ones come from ops put in front. Values that the region `stored`, or that
    other ops read, are in memory anyway: these stay residuals."""
    there = stored | {v for op in region.ops if not chainable(op, set()) for v in op.operands}
    free = set(inputs) | {op.result for op in region.ops if op.name == "const"}
    cheap = {op.results[0]: op for op in region.ops if _cheap(op) and op.results[0] not in there}
    kept = {v for v in adjoint.residuals if v not in cheap}
    known = free | kept
    for value, op in cheap.items():
        if all(v in known for v in op.operands):
            known.add(value)
    again = [v for v in adjoint.residuals if v in cheap and v in known]
    if not again:
        return adjoint
    wanted, waiting = set(), list(again)
    while waiting:
        value = waiting.pop()
        if value in cheap and value in known and value not in wanted:
            wanted.add(value)
            waiting += cheap[value].operands
    ops = [op for op in region.ops if op.results and op.results[0] in wanted]
    residuals = [v for v in adjoint.residuals if v not in wanted]
    return replace(adjoint, residuals=residuals, ops=[*ops, *adjoint.ops])


def _cheap(op: Op) -> bool:
    return op.name != "const" and chainable(op, set()) and not may_raise(op) and PRIMITIVES[op.name].chain not in COSTLY
