"""Sibling calls run together: region executions grow with the height of a tree, never with its size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import zoo_guards
from tolerance import close

import batching
import spmd
from spmd.testing import region_runs

Node = zoo_guards.Node
TOGETHER: list[Callable[..., Any]] = [
    zoo_guards.tests_both_children,
    zoo_guards.gives_a_missing_child_a_value_of_its_own,
    zoo_guards.adds_the_children_that_are_there,
    zoo_guards.tests_the_second_child_only,
    zoo_guards.tests_what_the_child_holds,
    zoo_guards.passes_what_the_child_holds,
    zoo_guards.tests_within_tests,
    zoo_guards.calls_one_of_two_functions,
    zoo_guards.calls_in_both_arms,
    zoo_guards.counts_and_measures,
    zoo_guards.finds_the_largest,
    zoo_guards.loops_in_an_arm,
]


def balanced(height: int) -> Any:
    if height == 0:
        return Node(0.1)
    return Node(0.3, balanced(height - 1), balanced(height - 1), height % 3 != 1)


def comb(height: int) -> Any:
    """One deep side; its other children are leaves."""
    node = Node(0.1)
    for k in range(height):
        pair = (Node(0.4), node) if k % 2 else (node, Node(0.4))
        node = Node(0.2, *pair, k % 3 != 1)
    return node


def runs(f: Callable[..., Any], trees: list[Any], *shared: Any) -> int:
    batched = spmd.vmap(f, in_axes=(*[None for _ in shared], 0))
    with region_runs() as counts:
        got = batched(*shared, trees)
    want = f(*shared, trees[0])
    pairs = zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]
    assert all(close(value[0], expected) for value, expected in pairs)
    return counts.total


@pytest.mark.parametrize("f", TOGETHER)
@pytest.mark.parametrize("tree", [balanced, comb])
def test_executions_grow_with_height(f: Callable[..., Any], tree: Callable[[int], Any]) -> None:
    low, mid, high = (runs(f, [tree(height)]) for height in (3, 6, 9))
    assert high < 2 * max(low, mid) + 10  # trees of 15, 127 and 1023 nodes take eight times as many at each step
    assert high < 20 * 9


@pytest.mark.parametrize("f", TOGETHER)
@pytest.mark.parametrize("tree", [balanced(5), comb(11)])
def test_copies_of_a_tree_run_as_often_as_one(f: Callable[..., Any], tree: Any) -> None:
    assert runs(f, [tree] * 64) == runs(f, [tree])


def test_products_of_both_children_are_one_batch() -> None:
    w = np.random.default_rng(0).normal(size=(6, 9)) * 0.5
    trees = [zoo_guards._lopsided(np.random.default_rng(k), 40, zoo_guards._vector) for k in range(8)]
    assert runs(zoo_guards.cell_with_missing_children, trees, w) < 100


def test_what_needs_an_earlier_result_waits() -> None:
    f = zoo_guards.needs_the_first_for_the_second
    assert runs(f, [balanced(4)] * 3) > 2 * runs(zoo_guards.tests_both_children, [balanced(4)] * 3)


# ------------------------------------------------------------------------------------------------ shared nodes
class Vertex:
    def __init__(self, value: float, kids: Any = ()) -> None:
        self.value, self.kids = value, list(kids)


def layers(width: int, depth: int) -> Vertex:
    rng = np.random.default_rng(width)
    row = [Vertex(float(rng.normal())) for _ in range(width)]
    for _ in range(depth):
        row = [Vertex(float(rng.normal()), [row[k] for k in rng.integers(0, width, 3)]) for _ in row]
    return Vertex(0.1, row)


def by_loop(p, vertex):
    total = p * vertex.value
    for kid in vertex.kids:
        total = total + 0.3 * by_loop(p, kid)
    return np.tanh(total)


def by_comprehension(p, vertex):
    return np.tanh(p * vertex.value + 0.3 * sum([by_comprehension(p, kid) for kid in vertex.kids]))


def test_a_loop_over_shared_nodes_makes_its_calls_at_once() -> None:
    narrow, wide = layers(4, 5), layers(24, 5)
    assert runs(by_loop, [wide], 0.7) < 1.5 * runs(by_loop, [narrow], 0.7)
    assert runs(by_loop, [wide] * 64, 0.7) == runs(by_loop, [wide], 0.7)
    slopes = [spmd.vmap(spmd.grad(f), in_axes=(None, 0))(0.7, [wide, narrow]) for f in (by_loop, by_comprehension)]
    np.testing.assert_allclose(*slopes, rtol=1e-12)


# ------------------------------------------------------------------------------------------------ poisoned lanes
def fails_where(n):
    left = fails_where(n.left) if n.left is not None else 4
    right = fails_where(n.right) if n.right is not None and 12 // n.right.x < 9 else 2
    if n.x == 7:
        raise KeyError("seven")
    return 60 // (n.x + 5) + left - right


def healthy(k: int) -> Any:
    return Node(1 + k % 3, Node(2, Node(3), Node(4)), Node(5, None, Node(6)))


POISONED = {
    "left call": (Node(1, Node(-5), Node(2)), ZeroDivisionError),
    "right call": (Node(1, Node(2), Node(-5)), ZeroDivisionError),
    "both calls": (Node(1, Node(7), Node(-5)), KeyError),
    "right before left in time": (Node(1, Node(2, Node(2, Node(7))), Node(-5)), KeyError),
    "left before right in time": (Node(1, Node(-5), Node(2, Node(7))), ZeroDivisionError),
    "guard": (Node(1, Node(2), Node(0)), ZeroDivisionError),
    "guard behind a failing left call": (Node(1, Node(7), Node(0)), KeyError),
    "own work behind both": (Node(7, Node(2), Node(3)), KeyError),
}


@pytest.mark.parametrize("where", POISONED)
@pytest.mark.parametrize("target", ["auto", "blas", "reference"])
def test_the_exception_is_the_loops(where: str, target: str) -> None:
    tree, kind = POISONED[where]
    with pytest.raises(kind):
        fails_where(tree)
    trees = [healthy(k) for k in range(33)]
    want = [fails_where(t) for t in trees]
    batched = spmd.vmap(fails_where, target=target)
    assert batched(trees).tolist() == want
    with pytest.raises(kind) as caught:
        batched([*trees[:20], tree, *trees[20:]])
    assert caught.value.example == 20  # type: ignore[attr-defined]
    with pytest.raises(KeyError) as caught:
        batched([*trees[:20], Node(7), tree])
    assert caught.value.example == 20  # type: ignore[attr-defined]


def weighs(n):
    left = weighs(n.left) if n.left is not None else n.x
    right = weighs(n.right) if n.right is not None else 0.0
    return np.sqrt(left * left) * right + np.log(n.x) * 0.1


@pytest.mark.parametrize("target", ["auto", "blas", "reference"])
def test_values_that_are_not_numbers_stay_in_their_lane(target: str) -> None:
    good = [Node(1.5, Node(2.0), Node(3.0, Node(1.2))), Node(0.5, None, Node(2.0))]
    bad = [Node(np.inf, Node(np.nan), Node(0.0)), Node(-1.0, Node(0.0), None)]
    trees = [good[0], bad[0], good[1], bad[1]]
    with np.errstate(all="ignore"):
        want = [weighs(t) for t in trees]
    np.testing.assert_allclose(spmd.vmap(weighs, target=target)(trees), want, rtol=1e-12)
    slope = spmd.vmap(spmd.grad(weighs), target=target)
    beside, alone = batching.unpack(slope(trees)), batching.unpack(slope(good))
    for one, other in zip((beside[0], beside[2]), alone, strict=True):
        assert (one.x, one.right.x) == (other.x, other.right.x)
    assert np.isfinite([alone[0].x, alone[0].left.x, alone[1].x]).all()


@pytest.mark.parametrize("size", [0, 1, 33])
def test_batches_of_any_size(size: int) -> None:
    trees = [comb(k % 5) for k in range(size)]
    packed = batching.pack([*trees, comb(2)])[:size]
    got = spmd.vmap(zoo_guards.tests_both_children)(packed)
    assert close(got, np.array([zoo_guards.tests_both_children(tree) for tree in trees]))
