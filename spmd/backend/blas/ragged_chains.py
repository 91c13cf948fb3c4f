"""Elementwise groups over arrays whose size differs from row to row, as one kernel over all their elements.

The operands of a group have equal sizes row by row, but for rows that failed before. The invariant: the kernel runs
only where all sizes are seen to agree; else the ops run one by one by their own rules, which serve failed rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from spmd.backend.blas import dynamic
from spmd.backend.blas.chains import Chain, contiguous
from spmd.backend.blas.grouping import Group
from spmd.backend.blas.plan import num, trail
from spmd.backend.blas.spaces import sizes_of
from spmd.ir.core import Value
from spmd.runtime.faults import Faults
from spmd.runtime.ragged import Ragged


class RaggedChain:
    """One group. Called with all values that its ops read from outside, `outside`, in order. `likes`: vectors of sizes
    and the values whose sizes they are, which stand for them."""

    def __init__(self, group: Group, chain: Chain, forms: dict[Value, str], likes: dict[Value, Value]) -> None:
        made = {op.result for op in group.ops}
        read = dict.fromkeys(v for op in group.ops for v in op.operands if v not in made)
        self.sizes = [(v, likes[v]) for v in read if v in likes]
        self.outside = list(dict.fromkeys(likes.get(v, v) for v in read))
        place = {v: i for i, v in enumerate(self.outside)}
        self.operands = [(place[v], kind, np.dtype(num(v).dtype)) for v, kind in chain.operands]
        self.full = [place[v] for v, kind in chain.operands if kind == "full"]
        self.inner = trail(num(chain.outputs[0]))
        self.features = int(np.prod(self.inner, dtype=np.int64))
        self.dtypes = [np.dtype(num(v).dtype) for v in chain.outputs]
        self.outputs = chain.outputs
        self.steps = []
        every = dict(forms)
        for op in group.ops:
            rule, every[op.result] = dynamic.rule(op, [every[v] for v in op.operands], False)
            self.steps.append((op, rule))
        self.kernel: Any = None

    def __call__(self, values: Sequence[Any], faults: Faults) -> list[Any]:
        first: Ragged = values[self.full[0]]
        for k in self.full[1:]:
            other = values[k]
            if other.dims is not first.dims and not np.array_equal(other.dims, first.dims):
                return self._one_by_one(values, faults)
        data = [
            contiguous(values[k].flat()) if kind == "full" else np.asarray(values[k], dtype)
            for k, kind, dtype in self.operands
        ]
        total = next(len(d) for d, (_, kind, _) in zip(data, self.operands) if kind == "full")
        outs = [np.empty((total, *self.inner), dtype) for dtype in self.dtypes]
        self.kernel(outs, data, total, self.features)
        return [first.with_data(out) for out in outs]

    def _one_by_one(self, values: Sequence[Any], faults: Faults) -> list[Any]:
        env = dict(zip(self.outside, values))
        env.update((v, sizes_of(env[like])) for v, like in self.sizes)
        for op, rule in self.steps:
            env[op.result] = rule(*(env[v] for v in op.operands), faults=faults)
        return [env[v] for v in self.outputs]
