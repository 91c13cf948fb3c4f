"""Nodes with several parents: work on a node is done once, gradients add up, and examples never share anything."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import batching
import spmd

TARGETS = ["auto", "blas", "reference"]
P = 0.7


class Node:
    def __init__(self, value: float, children: Any = ()) -> None:
        self.value, self.children = value, list(children)
        self.left = self.children[0] if self.children else None
        self.right = self.children[-1] if self.children else None


def by_fields(p, node):
    if node is None:
        return 0.1 * p
    return np.tanh(p * node.value + 0.3 * by_fields(p, node.left) + 0.2 * by_fields(p, node.right))


def by_comprehension(p, node):
    return np.tanh(p * node.value + 0.3 * sum([by_comprehension(p, child) for child in node.children]))


def by_loop(p, node):
    total = p * node.value
    for child in node.children:
        total = total + 0.3 * by_loop(p, child)
    return np.tanh(total)


PROGRAMS = [by_fields, by_comprehension, by_loop]


def diamonds(depth: int) -> Node:
    node = Node(0.3)
    for _ in range(depth):
        node = Node(0.1, [node, node])
    return node


def slope(f: Any, tree: Node) -> float:
    step = 1e-6
    return (f(P + step, tree) - f(P - step, tree)) / (2 * step)


@pytest.mark.parametrize("f", PROGRAMS)
@pytest.mark.parametrize("target", TARGETS)
def test_values_and_gradients_are_those_of_the_tree_that_the_loop_sees(f: Any, target: str) -> None:
    trees = [diamonds(5), Node(0.2, [Node(0.1)]), diamonds(0)]
    values = spmd.vmap(f, in_axes=(None, 0), target=target)(P, trees)
    slopes = spmd.vmap(spmd.grad(f), in_axes=(None, 0), target=target)(P, trees)
    np.testing.assert_allclose(values, [f(P, tree) for tree in trees], rtol=1e-12)
    np.testing.assert_allclose(slopes, [slope(f, tree) for tree in trees], rtol=1e-6)


@pytest.mark.parametrize("f", PROGRAMS)
def test_a_chain_of_diamonds_is_linear_work(f: Any) -> None:
    trees = [diamonds(60), Node(0.2)]  # a tree of 2**60 leaves, if work were not shared
    assert np.isfinite(spmd.vmap(f, in_axes=(None, 0))(P, trees)).all()
    assert np.isfinite(spmd.vmap(spmd.grad(f), in_axes=(None, 0))(P, trees)).all()


def total(p, trees):
    return np.sum(spmd.vmap(by_comprehension, in_axes=(None, 0))(p, trees))


def test_a_whole_batch_in_one_function_shares_work_too() -> None:
    assert np.isfinite(spmd.value_and_grad(total)(P, [diamonds(60), Node(0.2)])[1])


@pytest.mark.parametrize("target", TARGETS)
def test_an_example_that_occurs_twice_in_a_minibatch_is_two_examples(target: str) -> None:
    packed = batching.pack([diamonds(3), Node(1.0, [Node(0.1), Node(0.2)])])
    twice = packed[np.array([0, 0, 1])]
    slopes = spmd.vmap(spmd.grad(by_fields), in_axes=(None, 0), target=target)(P, twice)
    np.testing.assert_allclose(slopes, [slope(by_fields, tree) for tree in twice.examples()], rtol=1e-6)
    _, pullback = spmd.vjp(spmd.vmap(by_fields, in_axes=(None, 0), target=target), P, twice, argnums=1)
    (gradient,) = pullback(np.array([1.0, 0.0, 0.0]))
    first, second, third = batching.unpack(gradient)
    assert first.value != 0.0 and second.value == 0.0 and third.value == 0.0


def first_of(xs, k):
    return xs[k] * xs[k]


def test_lists_and_ragged_arrays_that_occur_twice_have_gradients_of_their_own() -> None:
    for data in ([[1.0, 2.0], [3.0]], [np.array([1.0, 2.0]), np.array([3.0])]):
        twice = batching.pack(data)[[0, 0, 1]]
        _, pullback = spmd.vjp(spmd.vmap(first_of), twice, [0, 1, 0], argnums=0)
        (gradient,) = pullback(np.ones(3))
        assert [list(g) for g in batching.unpack(gradient)] == [[2.0, 0.0], [0.0, 4.0], [6.0]]
