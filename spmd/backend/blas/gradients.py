"""Cotangents of values that all examples share, collected over the rows of a reverse walk.

A product's contribution (delta rows, input rows) is kept, not formed: one matrix product per site reduces them all,
at the end or when FLUSH rows have gathered. With `lanes` given the same rows are grouped by example. The invariant:
what is collected never depends on how rows were batched, only the order of summation does. Must not know ops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from spmd.backend.blas.fast import Moves
from spmd.runtime.ragged import Array, Ragged
from spmd.runtime.threads import BLAS, WIDE

FLUSH = 1 << 16


class SharedGradient:
    """The cotangent of one module input; `lanes`: number of examples to group by, or None for the sum over all."""

    def __init__(self, like: Any, lanes: int | None, moves: Moves) -> None:
        self.moves = moves
        array = np.asarray(like)
        self.shape = array.shape
        self.dtype = array.dtype
        self.lanes = lanes
        self.total: Array | None = None
        self.pairs: dict[int, list[tuple[Array, Array, Array | None]]] = {}
        self.waiting: dict[int, int] = {}

    def sum(self) -> Array:
        """The accumulator: [*shape], or [lanes, *shape]."""
        if self.total is None:
            self.total = np.zeros(self.shape if self.lanes is None else (self.lanes, *self.shape), self.dtype)
        return self.total

    def rows(self, value: Any, lanes: Any) -> None:
        """Adds one cotangent per row: [K, *shape], or Ragged rows of this shape."""
        if isinstance(value, Ragged):
            value = value.dense(self.shape)
        if self.lanes is not None:
            self.moves.add_repeated(self.sum(), lanes, value)
            return
        total = np.add.reduce(value, axis=0, dtype=self.dtype)
        self.total = total if self.total is None else self.total + total

    def spots(self, index: Sequence[Any], value: Array, lanes: Any) -> None:
        """Adds rows at an index of the leading axes (the adjoint of reading an element)."""
        size = len(value)
        at = [_wrapped(i, n, size) for i, n in zip(index, self.shape)]
        target = self.sum()
        if self.lanes is not None:
            at.insert(0, np.broadcast_to(lanes, (size,)))
        lead = target.shape[: len(at)]
        flat = np.ravel_multi_index(tuple(at), lead) if len(at) > 1 else at[0]
        self.moves.add_repeated(target.reshape((int(np.prod(lead)), *target.shape[len(at) :])), flat, value)

    def product(self, site: int, left: Array, right: Array, lanes: Any) -> None:
        """Adds sum over rows of outer(left, right): left [R, *m], right [R, *d]; `lanes` [R] where grouped."""
        self.pairs.setdefault(site, []).append((left, right, lanes))
        self.waiting[site] = self.waiting.get(site, 0) + len(left)
        if self.waiting[site] > FLUSH:
            self._flush(site)

    def _flush(self, site: int) -> None:
        pairs = self.pairs.pop(site)
        self.waiting[site] = 0
        left, right = _joined([p[0] for p in pairs]), _joined([p[1] for p in pairs])
        if self.lanes is not None:
            lanes = np.concatenate([np.asarray(p[2]) for p in pairs])
            self._product_by_lane(left, right, lanes)
            return
        total = summed_products(left, right).reshape(self.shape)
        self.total = total if self.total is None else self.total + total

    def _product_by_lane(self, left: Array, right: Array, lanes: Array) -> None:
        order = np.argsort(lanes, kind="stable")
        left, right = left[order], right[order]
        edges = np.searchsorted(lanes[order], np.arange(len(self.sum()) + 1))
        target = self.sum()
        for lane in range(len(edges) - 1):
            low, high = edges[lane], edges[lane + 1]
            if low < high:
                target[lane] += summed_products(left[low:high], right[low:high]).reshape(self.shape)

    def result(self) -> Array | None:
        """The whole cotangent; None where nothing was added."""
        for site in list(self.pairs):
            self._flush(site)
        return self.total

    def cotangent(self) -> Array:
        """The whole cotangent, zeros where nothing was added."""
        total = self.result()
        return self.sum() if total is None else total


def summed_products(left: Array, right: Array) -> Array:
    """Sum over rows of outer(left, right), in which 0 times anything is 0: an example whose value is infinite or NaN
    but has no part in the result leaves the gradient of shared weights as it is."""
    if left.size * right.shape[-1] < WIDE:
        total = left.T @ right
    else:
        with BLAS.wide():
            total = left.T @ right
    if np.isfinite(total).all():
        return total
    left, right = (a.reshape((len(a), int(np.prod(a.shape[1:])))) for a in (left, right))
    bad = ~(np.isfinite(left).all(axis=1) & np.isfinite(right).all(axis=1))
    return left[~bad].T @ right[~bad] + _strong_products(left[bad], right[bad])


def _strong_products(left: Array, right: Array) -> Array:
    """The same sum for rows that are not finite: the finite terms, and the signs of the infinite ones counted."""

    def hits(*pairs: tuple[Array, Array]) -> Array:
        return np.asarray(sum(a.T.astype(np.float32) @ b.astype(np.float32) for a, b in pairs)) > 0

    inf = np.inf
    total = np.where(np.isfinite(left), left, 0).T @ np.where(np.isfinite(right), right, 0)
    for sign in (1, -1):
        ups, downs = (sign * right > 0, sign * right == inf), (sign * right < 0, sign * right == -inf)
        some = hits((left == inf, ups[0]), (left == -inf, downs[0]), (left > 0, ups[1]), (left < 0, downs[1]))
        total[some] += sign * inf
    total[hits((np.isnan(left), right != 0), (left != 0, np.isnan(right)))] = np.nan
    return total


def _joined(parts: list[Array]) -> Array:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _wrapped(index: Any, size: int, rows: int) -> Array:
    at = np.broadcast_to(np.asarray(index, np.int64), (rows,))
    return np.where(at < 0, at + size, at)
