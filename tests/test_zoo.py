"""The zoo itself: its programs are plain Python, and its oracles tell a right gradient from a wrong one."""

from __future__ import annotations

from typing import Any

import numpy as np
import oracles
import pytest
from zoo import ZOO
from zoo_trees import Node


@pytest.mark.parametrize("name", list(ZOO))
def test_each_program_runs_as_plain_python(name: str) -> None:
    program = ZOO[name]
    first, again = oracles.run_loop(program, 0, 33), oracles.run_loop(program, 0, 33)
    assert (first.error is None) == (not program.raises)
    assert not oracles.differences(first.values, again.values)


@pytest.mark.parametrize("name", [p.name for p in ZOO.values()])
def test_examples_differ_and_a_smaller_batch_is_a_part_of_a_larger_one(name: str) -> None:
    program = ZOO[name]
    few, many = _shown(program.examples(0, 7)), _shown(program.examples(0, 33))
    assert few == many[:7]
    assert len(set(many)) > 1


def _shown(examples: list[tuple[Any, ...]]) -> list[str]:
    return [repr(list(oracles.leaves(own))) for own in examples]


def _shared_tree() -> Node:
    leaf = Node(np.array([0.5, -1.0]))
    return Node(2.0, leaf, leaf)


def _loss(tree: Node, x: float) -> float:
    return float(np.sum(tree.left.value * tree.right.value) * tree.value * x)


def _claimed(of_leaf: float) -> Node:
    tree = _shared_tree()
    leaf = Node(of_leaf * 2.0 * 3.0 * tree.left.value * 2.0)
    return Node(float(np.sum(tree.left.value**2) * 3.0), leaf, leaf)


def test_a_right_gradient_of_shared_objects_is_accepted_and_a_wrong_one_is_not() -> None:
    args = (_shared_tree(), 3.0)
    direction, want = oracles.directional(_loss, args, 0, np.random.default_rng(0))
    assert len(direction) == 2
    assert want is not None
    assert oracles.along(args[0], _claimed(1.0), direction) == pytest.approx(want, rel=1e-7)
    assert oracles.along(args[0], _claimed(0.5), direction) != pytest.approx(want, rel=1e-3)


def test_a_gradient_of_another_structure_is_not_accepted() -> None:
    with pytest.raises(AssertionError, match="left"):
        oracles.along(_shared_tree(), Node(1.0, None, None), [np.zeros(2)] * 2)


def test_finite_differences_do_not_settle_on_a_kink_or_a_jump() -> None:
    assert oracles.derivative(lambda t: abs(t)) == 0.0
    assert oracles.derivative(lambda t: max(t, 0.0) * 3.0 + (1.0 if t > 0 else 0.0)) is None
    assert oracles.derivative(lambda t: float("nan")) is None
