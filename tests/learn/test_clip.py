"""Clipping keeps structure, dtype and direction."""

from __future__ import annotations

import math

import numpy as np
import pytest

from spmd.learn import clip_by_global_norm, clip_by_value, global_norm


def test_the_norm_is_that_of_all_leaves_together() -> None:
    assert global_norm({"a": np.array([3.0, 0.0]), "b": [np.float32(4.0), None, 7]}) == 5.0


def test_the_norm_of_single_precision_does_not_overflow() -> None:
    assert global_norm(np.full(4, 1e30, np.float32)) == pytest.approx(2e30, rel=1e-6)


def test_clipping_by_norm_keeps_direction_and_dtype() -> None:
    grads = {"a": np.array([3.0, 0.0], np.float32), "b": (4.0, None, 7)}
    clipped = clip_by_global_norm(grads, 1.0)
    np.testing.assert_allclose(clipped["a"], [0.6, 0.0], rtol=1e-6)
    assert clipped["a"].dtype == np.float32 and clipped["b"][1:] == (None, 7)
    assert clipped["b"][0] == pytest.approx(0.8)
    assert clip_by_global_norm(grads, 5.0) is grads


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_norm_that_is_not_finite_is_refused(bad: float) -> None:
    with pytest.raises(FloatingPointError, match="norm"):
        clip_by_global_norm([np.array([bad])], 1.0)


def test_clipping_by_value() -> None:
    clipped = clip_by_value({"a": np.array([-3.0, 0.5, math.nan], np.float32), "n": 3, "s": 2.0}, 1.0)
    np.testing.assert_array_equal(clipped["a"], np.array([-1.0, 0.5, math.nan], np.float32))
    assert clipped["a"].dtype == np.float32 and clipped["n"] == 3 and clipped["s"] == 1.0


@pytest.mark.parametrize("limit", [0.0, -1.0, math.nan])
def test_limits_are_positive(limit: float) -> None:
    with pytest.raises(ValueError, match="positive"):
        clip_by_global_norm([], limit)
    with pytest.raises(ValueError, match="positive"):
        clip_by_value([], limit)
