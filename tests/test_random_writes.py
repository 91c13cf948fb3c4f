"""Random programs that write: the batch is the loop on fresh copies, values, exceptions and gradients.

A program is a function of its seed; a failure names the seed and prints the program. Programs that are refused are
counted: they must stay few, and each refusal must name a line.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import oracles
import pytest
from memory_writer import MemoryWriter
from test_random_programs import agree, load

import batching
import spmd

TARGETS = ("auto", "auto", "blas", "reference")
WRT = (0, 2, 3, 4)
FEW = 0.2


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("writes")


def examples(seed: int, count: int) -> list[tuple[Any, ...]]:
    rng = np.random.default_rng(seed)
    made = []
    for k in range(count):
        n, length = (int(rng.integers(-1, 5)), int(rng.integers(0, 5))) if k else (0, 0)
        items = [float(f) for f in rng.normal(size=length)]
        made.append((float(rng.normal()), n, rng.normal(size=3), rng.normal(size=(3, 3)), items))
    return made


def apart(value: Any) -> Any:
    """A result in which nothing is reached twice: as the batch gives it."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(apart, value))
    return value.copy() if isinstance(value, np.ndarray) else value


def check_values(main: Callable[..., Any], target: str, seed: int, count: int) -> bool:
    """Values and exceptions of the batch are those of the loop, and what it was given is as it was."""
    want = oracles.loop(main, (), examples(seed, count))
    columns = [list(column) for column in zip(*examples(seed, count), strict=True)]
    before = copy.deepcopy(columns)
    batched = spmd.vmap(main, target=target)
    if want.error is not None:
        with pytest.raises(type(want.error)) as caught:
            batched(*columns)
        assert caught.value.example == want.index  # type: ignore[attr-defined]
        return False
    found = oracles.differences(apart(batching.unpack(batched(*columns))), [apart(v) for v in want.values])
    assert not found, "\n".join(found)
    assert repr(columns) == repr(before)
    return True


def check_gradients(main: Callable[..., Any], target: str, seed: int) -> None:
    """The pullback of the batch agrees with finite differences of the loop."""
    given = examples(seed, 3)
    columns = [list(column) for column in zip(*examples(seed, 3), strict=True)]
    out, pullback = spmd.vjp(spmd.vmap(main, target=target), *columns, argnums=WRT)
    rng = np.random.default_rng(seed + 1)
    weights = [oracles.cotangent_of(value, rng) for value in batching.unpack(out)]
    for position, gradient in zip(WRT, pullback(batching.pack(weights)), strict=True):
        for k, one in enumerate(batching.unpack(gradient)):

            def loss(*args: Any, k: int = k) -> float:
                return oracles.weighted(apart(main(*args)), weights[k])

            agree(loss, given[k], position, one, rng)


def run(folder: Path, seeds: range, raising: bool, gradients: bool) -> None:
    refused = 0
    for seed in seeds:
        text = MemoryWriter(random.Random(seed).randrange, raising).module()
        main = load(text, folder).main
        target = TARGETS[seed % len(TARGETS)]
        try:
            valued = [check_values(main, target, seed, count) for count in (7, 1)]
            if gradients and all(valued):
                check_gradients(main, target, seed)
        except spmd.SpmdError as error:
            assert error.span is not None, f"seed {seed}, {error}\n{text}"
            refused += 1
        except BaseException as error:
            error.add_note(f"seed {seed}, target {target}\n{text}")
            raise
    assert refused <= max(4, FEW * len(seeds))


def test_writes_are_those_of_the_loop(folder: Path, full: bool) -> None:
    run(folder, range(0, 1000 if full else 16), raising=False, gradients=False)


def test_writes_that_may_raise(folder: Path, full: bool) -> None:
    run(folder, range(5000, 6000 if full else 5016), raising=True, gradients=False)


def test_gradients_of_writes(folder: Path, full: bool) -> None:
    run(folder, range(2000, 2400 if full else 2008), raising=False, gradients=True)
