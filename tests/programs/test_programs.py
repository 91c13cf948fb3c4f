"""Programs from outside keep the promise: a batch is the loop over its examples, and gradients are finite differences.

Small sizes in CI; the full ones, and 10,000 of Kepler's orbits, under ``--full``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import oracles
import pytest
from outside_program import Outside
from outside_programs import OUTSIDE
from tolerance import GRADIENT

import batching
import spmd

sys.path[0:0] = [str(Path(__file__).resolve().parents[2])]

from bench.programs import NAMES  # noqa: E402

BATCH = 64


def parameters(programs: list[Outside]) -> list[Any]:
    """The programs; those that are refused have to fail, and by a refusal."""
    return [
        pytest.param(p, id=p.name, marks=pytest.mark.xfail(strict=True, raises=spmd.SpmdError, reason=p.refused))
        if p.refused
        else pytest.param(p, id=p.name)
        for p in programs
    ]


ALL = list(OUTSIDE.values())
TARGETS = ("auto", "reference")


def run(outside: Outside, target: str, examples: list[tuple[Any, ...]]) -> Any:
    program = outside.program(False)
    columns = [list(column) for column in zip(*examples, strict=True)]
    return spmd.vmap(program.fn, in_axes=program.in_axes, target=target)(*program.shared_arguments(), *columns)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("outside", parameters([p for p in ALL if not p.raises]))
def test_batch_equals_the_loop(outside: Outside, target: str, full: bool) -> None:
    program = outside.program(full and target == "auto")
    count = outside.few if target == "reference" else outside.most if full else BATCH
    want = oracles.run_loop(program, 0, count)
    assert want.error is None
    found = oracles.differences(batching.unpack(run(outside, target, program.examples(0, count))), want.values)
    assert not found, "\n".join(found[:5])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("outside", parameters([p for p in ALL if p.raises]))
def test_the_first_example_that_raises_is_the_one_reported(outside: Outside, target: str, full: bool) -> None:
    program = outside.program(full and target == "auto")
    examples = program.examples(0, outside.few if target == "reference" else BATCH)
    for _ in range(2):
        want = oracles.loop(program.fn, (), examples)
        assert want.error is not None
        with pytest.raises(type(want.error)) as caught:
            run(outside, target, examples)
        assert type(caught.value) is type(want.error)
        assert caught.value.args == want.error.args
        assert caught.value.example == want.index  # type: ignore[attr-defined]
        examples.pop(want.index)
    healthy = oracles.loop(program.fn, (), examples).values
    found = oracles.differences(batching.unpack(run(outside, target, examples)), healthy)
    assert not found, "\n".join(found[:5])


@pytest.mark.parametrize("outside", parameters([p for p in ALL if p.loss]))
def test_gradient_of_each_example(outside: Outside, full: bool) -> None:
    """The extreme in front is left out: what is so small that a step leads to another path has no finite difference."""
    program = outside.program(full)
    assert outside.loss is not None
    shared = program.shared_arguments()
    examples = program.examples(0, 1 + outside.few)[1:]
    columns = [list(column) for column in zip(*examples, strict=True)]
    gradient = spmd.grad(outside.loss, argnums=outside.wrt)
    got = batching.unpack(spmd.vmap(gradient, in_axes=program.in_axes)(*shared, *columns))
    rng = np.random.default_rng(3)
    checked = 0
    for own, gradients in zip(examples, got, strict=True):
        for position, claimed in zip(outside.wrt, gradients, strict=True):
            checked += agrees(outside, (*shared, *own), position, claimed, rng)
    assert checked > (0 if full else outside.few * len(outside.wrt) // 3)


def agrees(outside: Outside, args: tuple[Any, ...], position: int, claimed: Any, rng: np.random.Generator) -> int:
    """Compares one gradient with finite differences; 0 where these do not settle."""
    loss = outside.loss
    assert loss is not None
    direction, want = oracles.directional(lambda *a: float(loss(*a)), args, position, rng)
    found = oracles.along(args[position], claimed, direction)
    if want is None:
        return 0
    assert abs(found - want) <= GRADIENT * (1.0 + abs(want)), f"argument {position}: {found} instead of {want}"
    return 1


def test_the_programs_that_do_not_raise_are_those_that_are_measured() -> None:
    assert sorted(NAMES) == sorted(p.name for p in ALL if not p.raises)
