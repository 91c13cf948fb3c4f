"""Contributions to cotangents that are never formed per row: products, element writes, embedding rows.

`fusible` finds adds whose value only one op makes, for this add alone. The invariant: a fused add gives what the op
followed by the plain add gives.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from spmd.backend.blas.emit import OpWriter
from spmd.backend.blas.plan import num
from spmd.ir.core import Op, Value
from spmd.ir.region import Add, AdjointRegion
from spmd.runtime.ragged import Array, Ragged


@dataclass(eq=False)
class Fused:
    """An add that takes over an op: `ops` are not run by themselves."""

    op: Op
    ops: list[Op]
    left: Value | None = None
    flipped: bool = False

    def index(self, ops: OpWriter) -> str:
        """Tuple expression of the element's index (onto_index)."""
        return "(" + "".join(ops.name(v) + ", " for v in index_operands(self.op)) + ")"

    def spot(self, ops: OpWriter) -> str:
        """Expression of what is added there."""
        return ops.rows(self.op.operands[0])

    def write(self, ops: OpWriter, sink: str, site: int, lanes: str) -> str:
        """The statement that adds to a shared input."""
        source, op = ops.source, self.op
        if op.name == "onto_index":
            return f"{sink}.spots({self.index(ops)}, {self.spot(ops)}, {lanes})"
        if op.name == "onto_take":
            g, index = ops.rows(op.operands[0]), ops.rows(op.operands[1])
            return f"{source.function(add_taken)}({sink}, {index}, {g}, {lanes})"
        right = op.operands[1]
        if op.name == "outer":
            return f"{sink}.product({site}, {ops.rows(op.operands[0])}, {ops.rows(right)}, {lanes})"
        assert self.left is not None
        call = source.function(add_product)
        rank = num(self.left).rank
        flip = "True" if rank == 2 and not self.flipped else "False"
        return f"{call}({sink}, {site}, {ops.rows(self.left)}, {flip}, {ops.rows(right)}, {lanes})"


def index_operands(op: Op) -> list[Value]:
    """The index of an onto_index: operands between the value and the sizes."""
    last = len(op.operands) - (1 if None in op.attrs["shape"] else 0)
    return op.operands[1:last]


def fusible(adjoint: AdjointRegion) -> dict[Add, Fused]:
    """The adds that can take over the op that makes their value."""
    uses: Counter[Value] = Counter(v for op in adjoint.ops for v in op.operands)
    uses.update(a.value for a in adjoint.adds)
    uses.update(a.ref for a in adjoint.adds if a.ref is not None)
    made = {op.result: op for op in adjoint.ops}
    seeds = {s.value for s in adjoint.seeds}
    out = {}
    for add in adjoint.adds:
        op = made.get(add.value)
        if op is None or uses[add.value] != 1:
            continue
        fused = _fuse(add, op, made, uses, seeds)
        if fused is not None:
            out[add] = fused
    return out


def _fuse(add: Add, op: Op, made: dict[Value, Op], uses: Counter[Value], seeds: set[Value]) -> Fused | None:
    if op.name == "onto_index":
        sparse = add.kind in ("input", "column") or (add.kind == "field" and not add.table.startswith("@"))
        return Fused(op, [op]) if sparse and num(op.operands[0]).static else None
    if add.kind != "input":
        return None
    if op.name == "onto_take":
        g, index = op.operands[:2]
        alike = num(g).shape[: num(index).rank] == num(index).shape
        return Fused(op, [op]) if op.attrs.get("axis", 0) == 0 and num(index).rank and alike else None
    if op.name == "outer":
        return Fused(op, [op]) if all(num(v).static for v in op.operands) else None
    if op.name == "matmul":
        return _fuse_matmul(op, made, uses, seeds)
    return None


def _fuse_matmul(op: Op, made: dict[Value, Op], uses: Counter[Value], seeds: set[Value]) -> Fused | None:
    """sum over rows of a @ b: one product over rows and inner axis. transpose(x) @ b uses x as it is."""
    left, right = op.operands
    if num(left).rank > 2 or num(right).rank > 2 or num(left).rank + num(right).rank < 3:
        return None
    ops, flipped = [op], False
    before = made.get(left)
    if before is not None and before.name == "transpose" and num(left).rank == 2 and uses[left] == 1:
        ops.append(before)
        left, flipped = before.operands[0], True
    for value, is_made in ((left, flipped), (right, True)):
        shape = num(value).shape
        if None in shape and not (is_made and shape[0] is None and None not in shape[1:]):
            return None
    if num(left).static != num(right).static:
        return None
    return Fused(op, ops, left, flipped)


def add_product(sink: Any, site: int, left: Any, flip: bool, right: Any, lanes: Any) -> None:
    """Collects sum over rows of transpose(left) @ right; with `flip` of left @ right. The inner axis of both becomes
    part of the row axis."""
    if isinstance(left, Ragged):
        if lanes is not None:
            lanes = np.repeat(lanes, left.sizes)
        sink.product(site, left.flat(), right.flat(), lanes)
        return
    if flip:
        left = left.transpose(0, 2, 1)
    inner = left.shape[1]
    if lanes is not None:
        lanes = np.repeat(lanes, inner)
    sink.product(site, _merged(left), _merged(right), lanes)


def _merged(rows: Array) -> Array:
    return rows.reshape((rows.shape[0] * rows.shape[1], *rows.shape[2:]))


def add_taken(sink: Any, index: Any, value: Any, lanes: Any) -> None:
    """Adds rows at the rows of a shared table that they were taken from."""
    if isinstance(index, Ragged):
        if lanes is not None:
            lanes = np.repeat(lanes, index.sizes)
        sink.spots((index.flat(),), value.flat(), lanes)
        return
    if lanes is not None:
        lanes = np.repeat(lanes, index[0].size if len(index) else 1)
    flat = index.reshape(-1)
    sink.spots((flat,), value.reshape((len(flat), *value.shape[index.ndim :])), lanes)
