"""Random programs: hypothesis writes them, plain Python and finite differences say what they mean.

Each program is a real file, since its source is read like any user's; a failure prints it. Inputs of a program come
from its own seed, its extremes first: an empty sequence, no trip, a tree of one node.
"""

from __future__ import annotations

import importlib.util
import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import oracles
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from program_writer import Writer
from tolerance import GRADIENT
from wide_program_writer import WideWriter

import batching
import spmd

BATCH = 7
AXES = (None, 0, 0, 0, 0, 0, 0)
WRT = (0, 1, 3, 4, 5, 6)
TARGETS = ("auto", "auto", "blas", "reference")
_numbers = itertools.count()


def load(text: str, folder: Path) -> ModuleType:
    """The program as a module of its own."""
    name = f"random_program_{next(_numbers)}"
    file = folder / f"{name}.py"
    file.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def tree(module: ModuleType, rng: np.random.Generator, nodes: int) -> Any:
    if nodes == 0:
        return None
    cut = int(rng.integers(0, nodes))
    return module.Node(float(rng.normal()), tree(module, rng, cut), tree(module, rng, nodes - 1 - cut))


def wide_tree(module: ModuleType, rng: np.random.Generator, nodes: int) -> Any:
    """Any number of children; one in four is a node that another one has, too."""
    made = [module.Branch(float(rng.normal()), [])]
    for _ in range(nodes - 1):
        known = made[int(rng.integers(0, len(made)))]
        if known is not made[0] and rng.random() < 0.25:
            made.insert(0, module.Branch(float(rng.normal()), [made[0], known]))
        else:
            known.children.append(module.Branch(float(rng.normal()), []))
            made.append(known.children[-1])
    return made[0]


def inputs(module: ModuleType, seed: int) -> tuple[tuple[Any, ...], list[tuple[Any, ...]]]:
    """Shared arguments and the examples."""
    rng = np.random.default_rng(seed)
    shared = (rng.normal(size=(3, 3)),)
    examples = []
    for k in range(BATCH):
        length = int(rng.integers(0, 4)) if k else 0
        count = int(rng.integers(-1, 5)) if k else 0
        nodes = int(rng.integers(1, 6)) if k else 1
        trees = tree(module, rng, nodes), wide_tree(module, rng, nodes)
        examples.append((float(rng.normal()), count, rng.normal(size=3), rng.normal(size=length), *trees))
    return shared, examples


@st.composite
def programs(draw: Callable[..., Any], raising: bool = False) -> str:
    return Writer(lambda n: draw(st.integers(0, n - 1)) if n > 1 else 0, raising).module()


@st.composite
def wide_programs(draw: Callable[..., Any], raising: bool = False) -> str:
    return WideWriter(lambda n: draw(st.integers(0, n - 1)) if n > 1 else 0, raising).module()


def check_values(module: ModuleType, target: str, seed: int) -> bool:
    """Values, dtypes and exceptions of the batch are those of the loop. Whether there are values."""
    shared, examples = inputs(module, seed)
    want = oracles.loop(module.main, *inputs(module, seed))
    columns = [list(column) for column in zip(*examples, strict=True)]
    batched = spmd.vmap(module.main, in_axes=AXES, target=target)
    if want.error is not None:
        with pytest.raises(type(want.error)) as caught:
            batched(*shared, *columns)
        assert caught.value.example == want.index  # type: ignore[attr-defined]
        return False
    found = oracles.differences(batching.unpack(batched(*shared, *columns)), want.values)
    assert not found, "\n".join(found)
    return True


def check_gradients(module: ModuleType, target: str, seed: int) -> None:
    """The pullback of the batch agrees with finite differences of the loop, argument by argument."""
    shared, examples = inputs(module, seed)
    columns = [list(column) for column in zip(*examples, strict=True)]
    batched = spmd.vmap(module.main, in_axes=AXES, target=target)
    out, pullback = spmd.vjp(batched, *shared, *columns, argnums=WRT)
    rng = np.random.default_rng(seed + 1)
    weights = [oracles.cotangent_of(value, rng) for value in batching.unpack(out)]
    gradients = pullback(batching.pack(weights))

    def total(w: Any) -> float:
        both = zip(examples, weights, strict=True)
        return sum(oracles.weighted(module.main(w, *own), weight) for own, weight in both)

    agree(total, shared, 0, gradients[0], rng)
    for position, gradient in zip(WRT[1:], gradients[1:], strict=True):
        for k, one in enumerate(batching.unpack(gradient)):

            def loss(*args: Any, k: int = k) -> float:
                return oracles.weighted(module.main(*args), weights[k])

            agree(loss, (*shared, *examples[k]), position, one, rng)


def agree(loss: Callable[..., float], args: tuple[Any, ...], position: int, gradient: Any, rng: Any) -> None:
    """Where finite differences settle, the gradient is theirs."""
    direction, want = oracles.directional(loss, args, position, rng)
    claimed = oracles.along(args[position], gradient, direction)
    if want is not None:
        assert abs(claimed - want) <= GRADIENT * (1 + abs(want)), f"argument {position}: {claimed} instead of {want}"


def budget(full: bool, usual: int) -> int:
    return usual * 20 if full else usual


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programs")


def test_random_programs(folder: Path, full: bool) -> None:
    @settings(max_examples=budget(full, 160))
    @given(text=programs(), target=st.sampled_from(TARGETS), seed=st.integers(0, 1000))
    def run(text: str, target: str, seed: int) -> None:
        note(f"target {target}, seed {seed}\n{text}")
        module = load(text, folder)
        if check_values(module, target, seed):  # an overflowed float may raise, as in math.sin(inf)
            check_gradients(module, target, seed)

    run()


def test_random_programs_that_may_raise(folder: Path, full: bool) -> None:
    @settings(max_examples=budget(full, 80))
    @given(text=programs(raising=True), target=st.sampled_from(TARGETS), seed=st.integers(0, 1000))
    def run(text: str, target: str, seed: int) -> None:
        note(f"target {target}, seed {seed}\n{text}")
        check_values(load(text, folder), target, seed)

    run()


@pytest.mark.parametrize("raising", [False, True])
def test_random_programs_that_catch_and_define(folder: Path, full: bool, raising: bool) -> None:
    @settings(max_examples=budget(full, 12))
    @given(text=wide_programs(raising=raising), target=st.sampled_from(TARGETS), seed=st.integers(0, 1000))
    def run(text: str, target: str, seed: int) -> None:
        note(f"target {target}, seed {seed}\n{text}")
        module = load(text, folder)
        if check_values(module, target, seed) and not raising:
            check_gradients(module, target, seed)

    run()
