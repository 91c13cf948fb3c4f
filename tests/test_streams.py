"""Random numbers: example i draws the same alone, in the plain loop, in any batch, on any target."""

from __future__ import annotations

import numpy as np
import pytest

import spmd

TARGETS = ("auto", "blas", "reference")


def walks(r, n):
    place, steps = 0.0, 0
    while steps < n and abs(place) < 2.0:
        place += r.normal()
        if r.random() < 0.2:
            place += r.uniform(0.5, 1.0)
        steps += 1
    return place, steps, r.integers(-2, 5), r.exponential(2.0)


def vectors(r):
    return r.normal(1.0, 0.5, size=3), r.permutation(5), r.random(2), r.integers(0, 7, size=4), r.random()


def moves(r, scale):
    x = scale
    for _ in range(4):
        x += scale * r.normal() * 0.1
    return x * x


LENGTHS = [k % 6 for k in range(33)]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("size", [0, 1, 33])
def test_a_batch_draws_what_the_loop_draws(target: str, size: int) -> None:
    got = spmd.vmap(walks, target=target)(spmd.rngs(3, 33)[:size], LENGTHS[:size])
    want = [walks(r, n) for r, n in zip(spmd.rngs(3, 33)[:size], LENGTHS[:size])]
    for k, column in enumerate(got):
        np.testing.assert_allclose(column, np.array([row[k] for row in want]).reshape(np.shape(column)), rtol=1e-12)
    got = spmd.vmap(vectors, target=target)(spmd.rngs(4, 33)[:size])
    rows = [vectors(r) for r in spmd.rngs(4, 33)[:size]]
    for k, column in enumerate(got):
        wanted = np.array([row[k] for row in rows]).reshape(np.shape(column))
        np.testing.assert_allclose(column, wanted, rtol=1e-12)
        assert not size or np.asarray(column).dtype == wanted.dtype


def test_the_place_in_a_batch_does_not_matter() -> None:
    streams = spmd.rngs(7, 12)
    whole = spmd.vmap(walks)(streams, [5] * 12)
    some = spmd.vmap(walks)([spmd.rngs(7, 40)[k] for k in (9, 2, 2)], [5] * 3)
    for one, other in zip(whole, some):
        np.testing.assert_array_equal(np.asarray(one)[[9, 2, 2]], other)
    assert [s.count for s in streams] == [0] * 12, "a batch does not move the caller's streams on"


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_drawn_is_a_constant_to_derivatives(target: str) -> None:
    scales = np.linspace(0.5, 1.5, 5)
    slopes = spmd.vmap(spmd.grad(moves, argnums=1), target=target)(spmd.rngs(1, 5), scales.tolist())
    for k, scale in enumerate(scales):
        ends = [moves(spmd.rngs(1, 5)[k], scale + h) for h in (-1e-6, 1e-6)]
        assert np.isclose(slopes[k], (ends[1] - ends[0]) / 2e-6, rtol=1e-6)


def test_numbers_are_distributed_as_said() -> None:
    r = spmd.rngs(11, 1)[0]
    normal, uniform, whole = r.normal(size=40000), r.random(40000), r.integers(3, 7, size=40000)
    assert abs(normal.mean()) < 0.02 and abs(normal.std() - 1.0) < 0.02
    assert abs(uniform.mean() - 0.5) < 0.01 and 0.0 <= uniform.min() and uniform.max() < 1.0
    assert set(whole.tolist()) == {3, 4, 5, 6}
    assert abs(np.corrcoef(uniform[1:], uniform[:-1])[0, 1]) < 0.02
    across = np.array([s.random() for s in spmd.rngs(2, 20000)])
    assert abs(across.mean() - 0.5) < 0.01 and abs(np.corrcoef(across[1:], across[:-1])[0, 1]) < 0.03
    assert sorted(r.permutation(9).tolist()) == list(range(9))


def test_streams_are_told_apart_by_seed_and_place() -> None:
    keys = {int(s.key) for seed in range(20) for s in spmd.rngs(seed, 50)}
    assert len(keys) == 1000
    assert [s.key for s in spmd.rngs(5, 3)] == [s.key for s in spmd.rngs(5, 9)[:3]]
    with pytest.raises(ValueError, match="negative"):
        spmd.rngs(1, -1)


def draws_nothing(r):
    return r.integers(3, 3)


def test_a_range_without_integers_raises() -> None:
    for run in (lambda: draws_nothing(spmd.rngs(1, 1)[0]), lambda: spmd.vmap(draws_nothing)(spmd.rngs(1, 2))):
        with pytest.raises(ValueError, match="low >= high"):
            run()


