"""The promise: a batch is the loop over its examples, in values, exceptions and gradients, on every target.

Programs compile once per (program, mode, target); all sizes are slices of one pack, so they share a specialisation.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from types import FrameType
from typing import Any

import losses
import numpy as np
import oracles
import pytest
from program import Program
from tolerance import GRADIENT, SINGLE_GRADIENT, close
from zoo import ZOO

import batching
import spmd

TARGETS = ("auto", "blas", "reference")
COMPILED = ("auto", "blas")
LARGEST = 33
GRADIENT_BATCH = 9
VALUES = [p for p in ZOO.values() if not p.raises]
RAISING = [p for p in ZOO.values() if p.raises]
DIFFERENTIABLE = [p for p in VALUES if p.wrt]


def names(programs: list[Program]) -> list[str]:
    return [p.name for p in programs]


@cache
def vmapped(name: str, target: str) -> Any:
    program = ZOO[name]
    return spmd.vmap(program.fn, in_axes=program.in_axes, target=target)


@pytest.fixture(scope="module")
def loss_of(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Callable[..., Any]]:
    return losses.write(DIFFERENTIABLE, tmp_path_factory.mktemp("losses"))


_graded: dict[tuple[str, str], Any] = {}


def graded(name: str, target: str, loss: Callable[..., Any]) -> Any:
    """vmap(grad(loss)), made once."""
    if (name, target) not in _graded:
        program = ZOO[name]
        gradient = spmd.grad(loss, argnums=program.wrt)
        _graded[name, target] = spmd.vmap(gradient, in_axes=program.in_axes, target=target)
    return _graded[name, target]


@cache
def packed(name: str, seed: int, count: int) -> tuple[Any, ...]:
    """One pack per own argument of a program."""
    return tuple(batching.pack(list(column)) for column in zip(*ZOO[name].examples(seed, count), strict=True))


def arguments(program: Program, picked: Any, seed: int = 0) -> list[Any]:
    """Shared arguments, and the picked examples of the largest batch."""
    return [*program.shared_arguments(), *(column[picked] for column in packed(program.name, seed, LARGEST))]


def sizes(full: bool) -> tuple[int, ...]:
    return (0, 1, 2, 7, LARGEST) if full else (0, 1, LARGEST)


# --------------------------------------------------------------------------------------------------- values
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", names(VALUES))
def test_batch_equals_the_loop(name: str, target: str, full: bool) -> None:
    program = ZOO[name]
    want = oracles.run_loop(program, 0, LARGEST).values
    for size in sizes(full):
        got = batching.unpack(vmapped(name, target)(*arguments(program, slice(0, size))))
        # One example alone may be of the narrower kind; the whole batch decides the dtype.
        found = oracles.differences(got, want[:size]) if size == LARGEST else _wrong_values(got, want[:size])
        assert not found, "\n".join(found[:5])


def _wrong_values(got: list[Any], want: list[Any]) -> list[str]:
    return [text for text in oracles.differences(got, want) if ": dtype " not in text]


@pytest.mark.parametrize("name", names(VALUES))
def test_lists_of_examples_are_taken_as_they_are(name: str) -> None:
    program = ZOO[name]
    columns = [list(column) for column in zip(*program.examples(0, LARGEST), strict=True)]
    got = batching.unpack(vmapped(name, "auto")(*program.shared_arguments(), *columns))
    assert not oracles.differences(got, oracles.run_loop(program, 0, LARGEST).values)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", names(RAISING))
def test_the_first_example_that_raises_is_the_one_reported(name: str, target: str) -> None:
    program = ZOO[name]
    for seed in (0, 1):
        want = oracles.run_loop(program, seed, LARGEST)
        assert want.error is not None
        columns = [list(column) for column in zip(*program.examples(seed, LARGEST), strict=True)]
        with pytest.raises(type(want.error)) as caught:
            vmapped(name, target)(*program.shared_arguments(), *columns)
        assert type(caught.value) is type(want.error)
        assert caught.value.example == want.index  # type: ignore[attr-defined]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", names(RAISING))
def test_examples_that_do_not_raise_have_their_values(name: str, target: str) -> None:
    program = ZOO[name]
    shared = program.shared_arguments()
    given = program.examples(0, LARGEST)
    healthy = [own for own in given if oracles.loop(program.fn, shared, [own]).error is None]
    want = oracles.loop(program.fn, shared, healthy).values
    columns = [list(column) for column in zip(*healthy, strict=True)]
    got = batching.unpack(vmapped(name, target)(*program.shared_arguments(), *columns))
    assert not oracles.differences(got, want)


# ------------------------------------------------------------------------------------------------- gradients
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", names(DIFFERENTIABLE))
def test_gradient_of_each_example(name: str, target: str, loss_of: dict[str, Callable[..., Any]]) -> None:
    program, loss = ZOO[name], loss_of[name]
    got = batching.unpack(graded(name, target, loss)(*arguments(program, slice(0, GRADIENT_BATCH))))
    assert len(got) == GRADIENT_BATCH
    rng = np.random.default_rng(3)
    checked = 0
    for own, gradients in zip(program.examples(0, LARGEST)[:GRADIENT_BATCH], got, strict=True):
        args = (*program.shared_arguments(), *own)
        for position, gradient in zip(program.wrt, gradients, strict=True):
            checked += _agrees(program, lambda *a: float(loss(*a)), args, position, gradient, rng)
    assert checked


def _agrees(
    program: Program, loss: Callable[..., float], args: tuple[Any, ...], position: int, gradient: Any, rng: Any
) -> int:
    """Compares one gradient with finite differences; 0 where these do not settle."""
    if program.float32:
        args = oracles.widened(args)
    direction, want = oracles.directional(loss, args, position, rng)
    claimed = oracles.along(args[position], gradient, direction, strict=not program.float32)
    if want is None:
        return 0
    bound = SINGLE_GRADIENT if program.float32 else GRADIENT
    assert abs(claimed - want) <= bound * (1.0 + abs(want)), f"argument {position}: {claimed} instead of {want}"
    return 1


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", names(DIFFERENTIABLE))
def test_gradient_of_the_batch(name: str, target: str) -> None:
    """The pullback of a vmapped call: one gradient per example for mapped arguments, the sum for shared ones."""
    program = ZOO[name]
    size = GRADIENT_BATCH
    rng = np.random.default_rng(4)
    given = arguments(program, slice(0, size))
    out, pullback = spmd.vjp(vmapped(name, target), *given, argnums=program.wrt)
    want = oracles.run_loop(program, 0, size).values
    assert not _wrong_values(batching.unpack(out), want)
    weights = [oracles.cotangent_of(value, rng) for value in batching.unpack(out)]
    first, again = pullback(batching.pack(weights)), pullback(batching.pack(weights))
    twice = pullback(batching.pack([_scaled(w, 2.0) for w in weights]))
    examples = program.examples(0, LARGEST)[:size]
    checked = 0
    for index, position in enumerate(program.wrt):
        mapped = position >= program.shared
        _same_gradient(first[index], again[index], 1.0, mapped)
        _same_gradient(first[index], twice[index], 2.0, mapped)
        if position < program.shared:
            checked += _agrees_in_sum(program, examples, weights, position, first[index], rng)
            continue
        for k, (own, gradient) in enumerate(zip(examples, batching.unpack(first[index]), strict=True)):
            args = (*program.shared_arguments(), *own)
            checked += _agrees(program, _weighting(program, weights[k]), args, position, gradient, rng)
    assert checked


def _weighting(program: Program, weights: Any) -> Callable[..., float]:
    return lambda *args: oracles.weighted(program.fn(*args), weights)


def _scaled(value: Any, by: float) -> Any:
    ones = (np.asarray(leaf) for _, leaf in oracles.leaves(value) if oracles.is_float(leaf))
    return oracles.shift(value, ones, by - 1.0)


def _same_gradient(one: Any, other: Any, factor: float, mapped: bool) -> None:
    """`other` is `factor` times `one`; mapped ones hold an example each."""
    both = (batching.unpack(one), batching.unpack(other)) if mapped else (one, other)
    for (path, a), (_, b) in zip(*map(oracles.leaves, both), strict=True):
        if oracles.is_float(a):
            assert close(b, factor * np.asarray(a), 1e-5 if np.asarray(a).dtype == np.float32 else 1e-12), path


def _agrees_in_sum(
    program: Program, examples: list[Any], weights: list[Any], position: int, gradient: Any, rng: Any
) -> int:
    shared = program.shared_arguments()

    def loss(*given: Any) -> float:
        runs = [program.fn(*oracles.untouched((*given, *own))) for own in examples]
        return sum(oracles.weighted(result, w) for result, w in zip(runs, weights, strict=True))

    return _agrees(program, loss, shared, position, gradient, rng)


def test_mean_over_a_batch_is_differentiated_through_the_batch() -> None:
    program = ZOO["binary_tree_lstm"]
    total, value_of = _mean_loss(program)
    (p,) = program.shared_arguments()
    (trees,) = packed(program.name, 0, LARGEST)
    value, gradient = spmd.value_and_grad(total)(p, trees)
    assert close(value, value_of(p))
    direction, want = oracles.directional(value_of, (p,), 0, np.random.default_rng(5))
    assert want is not None
    assert abs(oracles.along(p, gradient, direction) - want) <= GRADIENT * (1 + abs(want))


def _mean_loss(program: Program) -> tuple[Callable[..., Any], Callable[[Any], float]]:
    one = sum_of_state
    batched = spmd.vmap(one, in_axes=(None, 0))

    def total(p: Any, trees: Any) -> Any:
        return np.mean(batched(p, trees))

    def value_of(p: Any) -> float:
        return float(np.mean([one(p, *own) for own in program.examples(0, LARGEST)]))

    return total, value_of


def sum_of_state(p, tree):
    h, c = ZOO_TREE(p, tree)
    return np.sum(h * h) + np.sum(c)


ZOO_TREE = ZOO["binary_tree_lstm"].fn


# ------------------------------------------------------------------------------------- lanes do not meet
@pytest.mark.parametrize("target", COMPILED)
@pytest.mark.parametrize("name", names(VALUES))
def test_order_and_copies_of_lanes_do_not_matter(name: str, target: str) -> None:
    program = ZOO[name]
    picked = np.random.default_rng(6).integers(0, LARGEST, 40)
    want = oracles.run_loop(program, 0, LARGEST).values
    got = batching.unpack(vmapped(name, target)(*arguments(program, picked)))
    assert not _wrong_values(got, [want[k] for k in picked])


@pytest.mark.parametrize("target", COMPILED)
@pytest.mark.parametrize("name", names(DIFFERENTIABLE))
def test_a_poisoned_lane_stays_alone(name: str, target: str, loss_of: dict[str, Callable[..., Any]]) -> None:
    """NaN and infinity in every third example: they have the loop's values, the others what they have without them."""
    program, loss = ZOO[name], loss_of[name]
    poisoned = _poisoned(program)
    outcome = oracles.loop(program.fn, program.shared_arguments(), poisoned)
    if outcome.error is not None:
        pytest.skip(f"a poisoned example raises {type(outcome.error).__name__}")
    columns = [list(column) for column in zip(*poisoned, strict=True)]
    got = batching.unpack(vmapped(name, target)(*program.shared_arguments(), *columns))
    assert not _wrong_values(got, outcome.values)
    beside = batching.unpack(graded(name, target, loss)(*program.shared_arguments(), *columns))
    alone = batching.unpack(graded(name, target, loss)(*arguments(program, slice(0, GRADIENT_BATCH))))
    for k in range(GRADIENT_BATCH):
        if k % 3 != 2:
            assert not oracles.differences([beside[k]], [alone[k]], SINGLE_GRADIENT if program.float32 else None)


def _poisoned(program: Program) -> list[tuple[Any, ...]]:
    """Examples of which every third has NaN in its float leaves."""
    made = []
    for k, own in enumerate(program.examples(0, LARGEST)[:GRADIENT_BATCH]):
        if k % 3 == 2:
            nan = (np.full(np.shape(leaf), np.nan) for leaf in oracles.float_leaves(own))
            own = oracles.shift(own, nan, 1.0)
        made.append(own)
    return made


# ---------------------------------------------------------------------------------- no loop in disguise
@pytest.mark.parametrize("target", COMPILED)
@pytest.mark.parametrize("name", names(VALUES))
def test_neither_the_function_nor_an_interpreter_runs(name: str, target: str) -> None:
    """No frame of the user's file, and none of the interpreter, is entered by a call: not even by the first."""
    program = ZOO[name]
    given = arguments(program, slice(0, 8))
    entered: list[str] = []

    def watch(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            file = frame.f_code.co_filename
            if file == program.fn.__code__.co_filename or "reference" in file.split("/"):
                entered.append(frame.f_code.co_name)

    sys.setprofile(watch)
    try:
        vmapped(name, target)(*given)
    finally:
        sys.setprofile(None)
    assert not entered


REPEATED = ("fib", "child_sum_in_a_loop", "child_sum_by_stacking", "leaves_layers_early", "binary_tree_lstm")


@pytest.mark.parametrize("target", COMPILED)
@pytest.mark.parametrize("name", REPEATED)
def test_many_copies_run_as_many_regions_as_one(name: str, target: str) -> None:
    from spmd.testing import region_runs

    program = ZOO[name]
    with region_runs() as one:
        vmapped(name, target)(*arguments(program, np.zeros(1, np.int64) + 2))
    with region_runs() as many:
        vmapped(name, target)(*arguments(program, np.zeros(512, np.int64) + 2))
    assert one.total > 0
    assert many.total == one.total
