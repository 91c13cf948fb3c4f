"""Values of varying size that share their sizes: children of a node, and what is spread over them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import spmd
from spmd.backend.blas.spaces import block_sums, first_column, more_columns, sizes_of, spread
from spmd.runtime.ragged import Ragged, packed

RNG = np.random.default_rng(11)
H = 3


@dataclass
class Node:
    x: np.ndarray
    children: list[Node] = field(default_factory=list)


def tree(depth: int, width: int) -> Node:
    return Node(RNG.normal(size=H), [tree(depth - 1, (width + k) % 4) for k in range(width if depth else 0)])


TREES = [tree(0, 0), tree(1, 3), tree(2, 2), tree(3, 1), tree(2, 4), Node(RNG.normal(size=H), [tree(1, 2), tree(0, 0)])]
PARAMETERS = {"W": RNG.normal(size=(H, H)) / 2, "U": RNG.normal(size=(H, H)) / 2}


def gated(p: Any, node: Any) -> Any:
    z = node.x @ p["W"]
    if len(node.children) == 0:
        return np.tanh(z), z
    states = [gated(p, c) for c in node.children]
    hidden = np.stack([h for h, _ in states])
    cells = np.stack([c for _, c in states])
    gates = 1.0 / (1.0 + np.exp(-(z + hidden @ p["U"])))
    c = np.sum(gates * cells, axis=0) + np.mean(hidden, axis=0) - np.max(cells, axis=0)
    return np.tanh(c), c + np.sum(hidden, axis=0)


def loss(p: Any, node: Any) -> Any:
    h, c = gated(p, node)
    return np.sum(h * c)


@pytest.mark.parametrize("target", ["auto", "blas"])
def test_children_that_share_their_sizes(target: str) -> None:
    run = spmd.vmap(loss, in_axes=(None, 0), target=target)
    np.testing.assert_allclose(run(PARAMETERS, TREES), [loss(PARAMETERS, t) for t in TREES], rtol=1e-12)


@pytest.mark.parametrize("target", ["auto", "blas"])
def test_their_gradient(target: str) -> None:
    run = spmd.vmap(loss, in_axes=(None, 0), target=target)
    gradient = spmd.grad(lambda p, trees: np.sum(run(p, trees)))(PARAMETERS, TREES)
    direction = {k: RNG.normal(size=v.shape) for k, v in PARAMETERS.items()}

    def along(step: float) -> float:
        moved = {k: v + step * direction[k] for k, v in PARAMETERS.items()}
        return float(sum(loss(moved, t) for t in TREES))

    expected = (along(1e-5) - along(-1e-5)) / 2e-5
    got = sum(np.sum(gradient[k] * direction[k]) for k in direction)
    np.testing.assert_allclose(got, expected, rtol=1e-7)


def test_an_example_whose_sizes_do_not_fit_raises_alone() -> None:
    def f(node: Any, w: Any) -> Any:
        hidden = np.stack([c.x for c in node.children])
        return np.sum((w * hidden[:, 0] + 1.0) * hidden[:, 1])

    run = spmd.vmap(f)
    nodes = [Node(RNG.normal(size=H), [Node(RNG.normal(size=H)) for _ in range(n)]) for n in (2, 3, 1)]
    weights = [RNG.normal(size=n) for n in (2, 3, 4)]
    np.testing.assert_allclose(run(nodes, weights), [f(n, w) for n, w in zip(nodes, weights)], rtol=1e-12)
    weights[1] = RNG.normal(size=2)
    with pytest.raises(ValueError, match="could not be broadcast"):
        run(nodes, weights)


# ------------------------------------------------------------------------------------------------ the parts
def scattered() -> Ragged:
    """Blocks with gaps, out of order, one of them empty."""
    return Ragged(RNG.normal(size=(9, 2)), np.array([5, 0, 3, 7]), np.array([[2], [3], [0], [1]]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("counts", [[2, 0, 3, 40], [0, 0], [1], []])
def test_block_sums_are_those_of_one_example_bit_for_bit(counts: list[int], dtype: str) -> None:
    x = packed(RNG.normal(size=(sum(counts), 2)).astype(dtype), np.array(counts, np.int64).reshape(-1, 1))
    expected = [np.sum(x.one(k), axis=0, keepdims=True) for k in range(len(counts))]
    np.testing.assert_array_equal(block_sums((1, 2))(x), np.array(expected, dtype).reshape(-1, 1, 2))


def test_block_sums_of_blocks_that_are_not_packed() -> None:
    x = scattered()
    expected = [x.one(k).sum(axis=0) for k in range(4)]
    np.testing.assert_allclose(block_sums((2,))(x), expected, rtol=1e-15)


def test_block_sums_of_a_spread_value() -> None:
    x = packed(np.broadcast_to(np.float64(2.0), (4, 2)), np.array([[3], [1]]))
    np.testing.assert_array_equal(block_sums((2,))(x), [[6.0, 6.0], [2.0, 2.0]])


def test_a_value_is_spread_over_blocks_that_are_not_packed() -> None:
    like, rows = scattered(), RNG.normal(size=(4, 1, 2))
    got = spread(rows, like)
    for k in range(4):
        np.testing.assert_array_equal(got.one(k), np.repeat(rows[k], int(like.sizes[k]), axis=0))


def test_columns_of_a_run_have_the_same_handles() -> None:
    run = (np.array([1, 4]), np.array([3, 0]))
    data, other = RNG.normal(size=(6, 2)), RNG.normal(size=6)
    first = first_column(slice(1, 4), run, data)
    second = more_columns(slice(1, 4), first, other)
    assert second.dims is first.dims and second.lo is first.lo
    np.testing.assert_array_equal(second.one(0), other[1:4])
    np.testing.assert_array_equal(sizes_of(first), [[3, 2], [0, 2]])
