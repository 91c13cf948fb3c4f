"""Initial parameters are seeded, have the stated spread, and are the same numbers in every dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from spmd.learn import glorot, normal, orthogonal, uniform, zeros

DRAWS: list[Callable[..., Any]] = [uniform, normal, glorot, orthogonal]


@pytest.mark.parametrize("draw", DRAWS)
def test_a_seed_gives_the_same_numbers_in_every_dtype(draw: Callable[..., Any]) -> None:
    one, other = draw(7, (5, 3)), draw(7, (5, 3), dtype=np.float64)
    assert one.dtype == np.float32 and other.dtype == np.float64
    np.testing.assert_array_equal(one, other.astype(np.float32))
    assert not np.array_equal(one, draw(8, (5, 3)))


def test_a_generator_goes_on_from_where_it_stands() -> None:
    rng = np.random.default_rng(7)
    first, second = normal(rng, 4), normal(rng, 4)
    np.testing.assert_array_equal(first, normal(7, 4))
    assert not np.array_equal(first, second)


def test_spread() -> None:
    assert np.abs(uniform(0, 4000, -0.5, 0.25)).max() <= 0.5
    assert normal(0, 4000, scale=2.0, dtype=np.float64).std() == pytest.approx(2.0, rel=0.05)
    bound = np.sqrt(6 / 50)
    drawn = glorot(0, (20, 30), dtype=np.float64)
    assert 0.95 * bound < np.abs(drawn).max() <= bound


@pytest.mark.parametrize("shape", [(4, 4), (6, 3), (3, 6), (2, 5, 3)])
def test_orthogonal_matrices(shape: tuple[int, ...]) -> None:
    q = orthogonal(3, shape, gain=2.0, dtype=np.float64)
    n, m = shape[-2:]
    product = np.swapaxes(q, -1, -2) @ q if n >= m else q @ np.swapaxes(q, -1, -2)
    np.testing.assert_allclose(product, np.broadcast_to(4.0 * np.eye(min(n, m)), product.shape), atol=1e-12)
    assert q.flags.c_contiguous


def test_zeros_and_refusals() -> None:
    assert zeros(3).dtype == np.float32 and not zeros((2, 2)).any()
    with pytest.raises(TypeError, match="float, not int64"):
        zeros(3, np.int64)
    with pytest.raises(ValueError, match="matrix"):
        glorot(0, 3)
