"""Whatever the order in which queues are served, and whichever frames run together, results are the same."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from blas_programs import D, child_sum, compiled, rnn, swap, tree

from spmd.runtime.frames import TableData, compact, union, vector
from spmd.runtime.ragged import from_arrays
from spmd.runtime.schedule import Queues


def adversarial(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Picks any queue, and takes any of its frames."""
    rng = random.Random(seed)

    def pick(self: Queues, over: bool) -> int:
        return rng.choice(list(self.since))

    def take(self: Queues, region: int, over: bool) -> tuple[Any, int]:
        rows = vector(union(self.waiting[region]))
        some = np.array(sorted(rng.sample(range(len(rows)), rng.randint(1, len(rows)))))
        rest = np.delete(rows, some)
        self.waiting[region] = [rest] if len(rest) else []
        self.counts[region] = len(rest)
        if not len(rest):
            del self.since[region]
        return compact(rows[some]), len(some)

    monkeypatch.setattr(Queues, "pick", pick)
    monkeypatch.setattr(Queues, "take", take)


def cases() -> list[tuple[Any, ...]]:
    rng = np.random.default_rng(0)
    W = rng.normal(size=(D, D)) * 0.5
    x = rng.normal(size=(9, D))
    left, right = np.array([1, 3, 5, -1, -1, 7, -1, -1, -1]), np.array([2, 4, 6, -1, -1, 8, -1, -1, -1])
    loop, w1 = rnn()
    turn, w2 = swap()
    plain, w3 = tree()
    dag, w4 = tree(shared=True)
    kids, w5 = child_sum()
    again = np.where(left == 1, 2, right)
    first, count = np.array([1, 3, 5, 6, 6, 6, 8, 9, 9]), np.array([2, 2, 1, 0, 0, 2, 1, 0, 0])
    xs = [rng.normal(size=(n, D)) for n in (4, 0, 2, 7)]
    start = rng.normal(size=(4, D))
    nodes = {"node": TableData("node", [x, left, right])}
    shared = {"node": TableData("node", [x, left, again])}
    listed = {"node": TableData("node", [x, (first, count)])}
    roots = np.array([0])
    return [
        (loop, [w1, 0, 1], W, [from_arrays(xs), start], {}, 4),
        (turn, [w2, 1, 2], W, [np.array([3, 0, 5, 1]), start, start[::-1].copy()], {}, 4),
        (plain, [w3, ("node", 0)], W, [roots], nodes, 1),
        (dag, [w4, ("node", 0)], W, [roots], shared, 1),
        (kids, [w5, ("node", 0)], W, [roots], listed, 1),
    ]


@pytest.mark.parametrize("case", range(5))
def test_results_and_gradients_do_not_depend_on_the_schedule(case: int, monkeypatch: pytest.MonkeyPatch) -> None:
    source, wrt, W, params, tables, batch = cases()[case]
    code = compiled(source, wrt)
    weights = np.arange(1.0, batch + 1)

    def both() -> tuple[Any, Any]:
        run = code.forward([W], params, tables, batch, tape=True)
        return run.results[0], run.backward([weights])

    value, gradient = both()
    for seed in range(25):
        adversarial(monkeypatch, seed)
        other, found = both()
        np.testing.assert_allclose(other, value, rtol=1e-12)
        np.testing.assert_allclose(found.inputs[0], gradient.inputs[0], rtol=1e-10, atol=1e-12)
        for key, table in gradient.tables.items():
            np.testing.assert_allclose(found.tables[key], table, rtol=1e-10, atol=1e-12)
        for mine, own in zip(found.params, gradient.params):
            if isinstance(own, np.ndarray):
                np.testing.assert_allclose(mine, own, rtol=1e-10, atol=1e-12)
