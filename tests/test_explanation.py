"""`spmd.explain`: every stage is there, with source lines, and nothing is run."""

from __future__ import annotations

import numpy as np
import pytest

import spmd

WEIGHTS = np.eye(3)


def settled(x, steps):
    h = x
    for _ in range(steps):
        if h[0] > 1.0:
            break
        h = np.tanh(WEIGHTS @ h)
    return np.sum(h)


STAGES = ("lowered", "simplify", "fission", "hoist", "regions", "adjoint", "code")


def test_all_stages_of_a_gradient() -> None:
    text = spmd.explain(spmd.vmap(spmd.grad(settled)), np.ones((2, 3)), [1, 2])
    places = [text.index(f"== {stage} ==") for stage in STAGES]
    assert places == sorted(places)


def test_ops_stand_below_their_source_lines() -> None:
    text = spmd.explain(spmd.vmap(settled), np.ones((2, 3)), [1, 2], stage="lowered")
    lines = text.splitlines()
    at = next(k for k, line in enumerate(lines) if "matmul" in line)
    assert "h = np.tanh(WEIGHTS @ h)" in lines[at - 1]
    assert "@\"" not in text


def test_one_stage_and_a_function_of_one_example() -> None:
    code = spmd.explain(settled, np.ones(3), 2, stage="code")
    assert "def region_0(" in code
    with pytest.raises(spmd.OptionError, match="adjoint"):
        spmd.explain(settled, np.ones(3), 2, stage="adjoint")


def test_the_reference_has_no_regions() -> None:
    text = spmd.explain(spmd.vmap(settled, target="reference"), np.ones((2, 3)), [1, 2])
    assert "== hoist ==" in text and "== code ==" not in text


def test_nothing_is_run() -> None:
    def raises(x):
        return x // 0

    assert "floordiv" in spmd.explain(spmd.vmap(raises), [1, 2], stage="lowered")
