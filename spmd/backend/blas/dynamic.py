"""Ops on arrays whose size differs from row to row.

Two ways. The flat way (dynamic_flat) works on all elements of all rows at once where the op allows it. The bucket way
serves everything else: rows whose operands have equal sizes are one bucket and run densely through the primitive's own
rule. The invariant: both give each row what the primitive's rows rule gives for that row's sizes. Rows that failed
before may have sizes that do not fit; they go on with empty arrays, and no other row notices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from spmd.backend.blas import dynamic_flat
from spmd.backend.blas.plan import num, ragged_axes
from spmd.ir.core import Op
from spmd.ir.types import Num
from spmd.ops.faults import raised
from spmd.ops.primitive import Site
from spmd.ops.table import PRIMITIVES
from spmd.runtime.faults import Faults
from spmd.runtime.ragged import Array, Ragged, offsets, runs

Rule = tuple[Callable[..., Any], str]


def rule(op: Op, forms: Sequence[str], raises: bool) -> Rule:
    """(function of the operands and `faults=`, form of its result)."""
    form = "rows" if num(op.result).static else "ragged"
    bucket = Buckets(op, forms, raises)
    flat = dynamic_flat.rule(op, forms, bucket)
    if flat is not None:
        return flat, form
    return bucket, form


class _GroupFaults:
    """Passes faults of some rows on as faults of all rows."""

    def __init__(self, outer: Faults, rows: Array, size: int) -> None:
        self.outer, self.rows, self.size = outer, rows, size

    def report(self, bad: Array, make: Callable[[int], BaseException]) -> None:
        bad = np.broadcast_to(bad, (len(self.rows),))
        every = np.zeros(self.size, bool)
        every[self.rows] = bad
        place = {int(r): i for i, r in enumerate(self.rows)}
        self.outer.report(every, lambda row: make(place[row]))


class Buckets:
    """An op run bucket by bucket. Rules are kept by the sizes that they serve."""

    LIMIT = 4096

    def __init__(self, op: Op, forms: Sequence[str], raises: bool) -> None:
        self.record = PRIMITIVES[op.name]
        self.op = op
        self.forms = tuple(forms)
        self.raises = raises
        self.types = [num(v) for v in op.operands]
        self.result = num(op.result)
        self.deciding = tuple(self.record.sizes(self.types, op.attrs))
        self.rules: dict[tuple[Any, ...], Callable[..., Any]] = {}

    def __call__(self, *operands: Any, faults: Faults) -> Any:
        size = next(len(x) for x, f in zip(operands, self.forms) if f != "uniform")
        done: list[tuple[Array, Array]] = []
        for rows in self._groups(operands, size):
            done += self._bucket(operands, rows, size, faults)
        return self._joined(done, size)

    def _bucket(self, operands: Sequence[Any], rows: Array, size: int, faults: Faults) -> list[tuple[Array, Array]]:
        try:
            return [(rows, self._run(operands, rows, size, faults))]
        except (ValueError, IndexError, TypeError, OverflowError) as error:
            return self._rescued(operands, rows, size, faults, error)

    def _rescued(
        self, operands: Sequence[Any], rows: Array, size: int, faults: Faults, error: Exception
    ) -> list[tuple[Array, Array]]:
        """A bucket that failed: its rows failed before, or its sizes do not fit and each of them raises."""
        lost = np.zeros(size, bool)
        for _, bad, _ in faults.found:
            lost |= bad
        gone, kept = rows[lost[rows]], rows[~lost[rows]]
        if len(gone):
            out = [self._nothing(gone)]
            return out + self._bucket(operands, kept, size, faults) if len(kept) else out
        if not self.raises:
            raise error
        first = [self._one(x, f, int(rows[0])) for x, f in zip(operands, self.forms)]
        own = raised(self.record.numpy, first, self.op.attrs)
        if type(own) is not type(error):
            raise error
        bad = np.zeros(size, bool)
        bad[rows] = True
        faults.report(bad, lambda row: own)
        return [self._nothing(rows)]

    def _nothing(self, rows: Array) -> tuple[Array, Array]:
        """What stands for the results of rows that have failed."""
        shape = tuple(0 if n is None else n for n in self.result.shape)
        return rows, np.zeros((len(rows), *shape), self.result.dtype)

    @staticmethod
    def _one(x: Any, form: str, row: int) -> Any:
        return x if form == "uniform" else x.one(row) if form == "ragged" else x[row]

    def _groups(self, operands: Sequence[Any], size: int) -> list[Array]:
        keys = []
        for i, (x, form) in enumerate(zip(operands, self.forms)):
            if form == "ragged":
                keys.append(x.dims)
            if i in self.deciding and form != "uniform":
                keys.append((x.flat() if form == "ragged" else x).reshape(size, -1))
        every = np.arange(size)
        if not keys or not size:
            return [every] if size else []
        matrix = np.concatenate(keys, axis=1) if len(keys) > 1 else keys[0]
        if (matrix == matrix[0]).all():
            return [every]
        _, inverse = np.unique(matrix, axis=0, return_inverse=True)
        inverse = inverse.reshape(-1)
        order = np.argsort(inverse, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(inverse[order])) + 1)

    def _run(self, operands: Sequence[Any], rows: Array, size: int, faults: Faults) -> Array:
        """[k, *shape] for the rows of one bucket."""
        values, types, varying = [], [], []
        whole = len(rows) == size
        for i, (x, form, type_) in enumerate(zip(operands, self.forms, self.types)):
            if form == "ragged":
                x = x if whole else x.take(rows)
                shape = (*(int(n) for n in x.dims[0]), *x.trail)
                x = x.dense(shape)
            elif form == "rows":
                x = x if whole else x[rows]
                shape = x.shape[1:]
            else:
                shape = np.shape(x)
            varies = form != "uniform"
            if varies and i in self.deciding:
                x, varies = x[0], False
            values.append(x)
            types.append(replace(type_, shape=shape))
            varying.append(varies)
        if not any(varying):
            return self._same(values, rows, size, faults)
        key = (tuple(t.shape for t in types), tuple(varying))
        known = self.rules.get(key)
        if known is None:
            if len(self.rules) > self.LIMIT:
                self.rules.clear()
            known = self.rules[key] = self.record.rows(self._site(types, varying))
        if not self.raises:
            return np.asarray(known(*values))
        inner = faults if whole else _GroupFaults(faults, rows, size)
        return np.asarray(known(*values, faults=inner))

    def _site(self, types: list[Num], varying: list[bool]) -> Site:
        result = self.result
        if not self.deciding:
            inferred = self.record.infer(types, self.op.attrs)
            assert isinstance(inferred, Num)
            result = inferred
        return Site(tuple(types), result, self.op.attrs, tuple(varying))

    def _same(self, values: list[Any], rows: Array, size: int, faults: Faults) -> Array:
        """All operands equal within the bucket: one example's result for all its rows."""
        try:
            value = np.asarray(self.record.numpy(*values, **self.op.attrs))
        except Exception as error:
            if not self.raises:
                raise
            kept = error.with_traceback(None)
            bad = np.zeros(size, bool)
            bad[rows] = True
            faults.report(bad, lambda row: kept)
            shape = tuple(0 if n is None else n for n in self.result.shape)
            value = np.zeros(shape, self.result.dtype)
        return np.broadcast_to(value, (len(rows), *value.shape))

    def _joined(self, done: list[tuple[Array, Array]], size: int) -> Any:
        k = ragged_axes(self.result)
        if not k:
            if len(done) == 1:
                return done[0][1]
            shape = tuple(n or 0 for n in self.result.shape)
            out = np.empty((size, *shape), self.result.dtype)
            for rows, value in done:
                out[rows] = value
            return out
        dims = np.zeros((size, k), np.int64)
        for rows, value in done:
            dims[rows] = value.shape[1 : 1 + k]
        trail = tuple(n or 0 for n in self.result.shape[k:])
        sizes = dims.prod(axis=1)
        lo = offsets(sizes)
        if len(done) == 1:
            return Ragged(np.ascontiguousarray(done[0][1]).reshape((-1, *trail)), lo, dims, True)
        data = np.empty((int(sizes.sum()), *trail), self.result.dtype)
        for rows, value in done:
            data[runs(lo[rows], sizes[rows])] = value.reshape((-1, *trail))
        return Ragged(data, lo, dims, True)
