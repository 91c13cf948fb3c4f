"""Zoo: calls that a test at the call site decides about, beside their siblings.

Every function is written for one example; nothing here knows that it will be batched.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from program import Collection, Rng

zoo = Collection()


class Node:
    """A binary node; children may be missing, and one node may stand in several places."""

    def __init__(self, x: Any, left: Node | None = None, right: Node | None = None, on: bool = True) -> None:
        self.x = x
        self.left = left
        self.right = right
        self.on = on


def _lopsided(rng: Rng, nodes: int, x: Any) -> Node | None:
    if nodes == 0:
        return None
    cut = int(rng.integers(0, nodes))
    on = bool(rng.random() < 0.7)
    return Node(x(rng), _lopsided(rng, cut, x), _lopsided(rng, nodes - 1 - cut, x), on)


def _trees(x: Any, most: int = 12) -> Any:
    def make(rng: Rng, size: int) -> list[tuple[Any, ...]]:
        sizes = [1, most, *rng.integers(1, most + 1, size)][:size]
        return [(_lopsided(rng, int(n), x),) for n in sizes]

    return make


def _number(rng: Rng) -> float:
    return float(rng.normal())


def _vector(rng: Rng) -> np.ndarray:
    return rng.normal(size=3)


def _whole(rng: Rng) -> int:
    return int(rng.integers(-2, 6))


def _graphs(rng: Rng, size: int) -> list[tuple[Any, ...]]:
    """Trees in which a node may be both children of another."""
    made = []
    for k in range(size):
        nodes: list[Node | None] = [None]
        for _ in range(1 + k % 8):
            pair = [nodes[int(i)] for i in rng.integers(0, len(nodes), 2)]
            nodes.append(Node(_number(rng), pair[0], pair[1] if rng.random() < 0.5 else pair[0]))
        made.append((nodes[-1],))
    return made


@zoo.add(_trees(_number), wrt=(0,))
def tests_both_children(n):
    a = tests_both_children(n.left) if n.left is not None else 0.0
    b = 0.25 if n.right is None else tests_both_children(n.right)
    return np.tanh(0.5 * a - 0.7 * b + n.x)


@zoo.add(_trees(_number), wrt=(0,))
def gives_a_missing_child_a_value_of_its_own(n):
    a = gives_a_missing_child_a_value_of_its_own(n.left) if n.left is not None else n.x
    b = gives_a_missing_child_a_value_of_its_own(n.right) if n.right is not None else np.sqrt(n.x * n.x + 1.0)
    return np.tanh(a - 0.7 * b) + n.x


@zoo.add(_trees(_number), wrt=(0,))
def adds_the_children_that_are_there(n):
    total = n.x
    if n.left is not None:
        total += 0.5 * adds_the_children_that_are_there(n.left)
    if n.right is not None:
        total += np.sin(adds_the_children_that_are_there(n.right))
    return np.tanh(total)


@zoo.add(_trees(_number), wrt=(0,))
def tests_the_second_child_only(n):
    if n.left is None:
        return n.x * 2.0
    a = tests_the_second_child_only(n.left)
    b = tests_the_second_child_only(n.right) if n.right is not None else 1.0
    return a * 0.3 + b * n.x


@zoo.add(_trees(_number), wrt=(0,))
def tests_what_the_child_holds(n):
    a = tests_what_the_child_holds(n.left) if n.left is not None and n.left.on else 0.5
    b = tests_what_the_child_holds(n.right) if n.on and n.right is not None and n.right.x < 1.0 else 0.1
    return np.tanh(a - b) + 0.3 * n.x


@zoo.add(_trees(_number), wrt=(0,))
def passes_what_the_child_holds(n):
    return _weighed(n, n.x)


def _weighed(n, w):
    a = _weighed(n.left, n.left.x - w) if n.left is not None else 0.0
    b = _weighed(n.right, n.right.x + w) if n.right is not None else w
    return np.tanh(a - b * w) + 0.3 * n.x


@zoo.add(_trees(_number), wrt=(0,))
def asks_the_child_whether_to_call(n):
    deep = n.left.on if n.left is not None and n.on else True
    a = asks_the_child_whether_to_call(n.left) if deep and n.left is not None else 0.5
    b = asks_the_child_whether_to_call(n.right) if n.right is not None else 1.0
    return np.tanh(a - b + n.x)


@zoo.add(_trees(_number), wrt=(0,))
def tests_within_tests(n):
    a = (tests_within_tests(n.left) if n.on else 2.0 * n.x) if n.left is not None else 0.0
    b = 0.0
    if n.right is not None:
        if n.on:
            b = tests_within_tests(n.right)
        else:
            b = n.right.x
    return np.tanh(a - b + n.x)


@zoo.add(_trees(_number), wrt=(0,))
def calls_one_of_two_functions(n):
    if n.on:
        a = calls_one_of_two_functions(n.left) if n.left is not None else 0.1
    else:
        a = _other(n.left) if n.left is not None else 0.2
    b = _other(n.right) if n.right is not None else 0.3
    return np.tanh(a - b + n.x)


def _other(n):
    a = calls_one_of_two_functions(n.left) if n.left is not None else 0.0
    b = _other(n.right) if n.right is not None else n.x
    return np.sin(a + b - n.x)


@zoo.add(_trees(_number), wrt=(0,))
def calls_in_both_arms(n):
    if n.left is None or n.right is None:
        return n.x
    a = calls_in_both_arms(n.left) if n.on else calls_in_both_arms(n.right)
    b = calls_in_both_arms(n.right)
    return np.tanh(0.6 * a - b) + n.x


@zoo.add(_trees(_number, 7), wrt=(0,))
def calls_three_times(n):
    a = calls_three_times(n.left) if n.left is not None else 0.0
    b = calls_three_times(n.right) if n.right is not None else 0.1
    c = calls_three_times(n.left) if n.on and n.left is not None else n.x
    return np.tanh(a - b * c + n.x)


@zoo.add(_trees(_number), wrt=(0,))
def needs_the_first_for_the_second(n):
    a = needs_the_first_for_the_second(n.left) if n.left is not None else 0.0
    b = needs_the_first_for_the_second(n.right) if n.right is not None and a < 0.5 else n.x
    return np.tanh(a - b) + n.x


@zoo.add(_trees(_vector), wrt=(0, 1), share=lambda rng: (rng.normal(size=(6, 9)) * 0.5,))
def cell_with_missing_children(w, n):
    h1, c1 = np.zeros(3), np.zeros(3)
    if n.left is not None:
        h1, c1 = cell_with_missing_children(w, n.left)
    if n.right is not None:
        h2, c2 = cell_with_missing_children(w, n.right)
    else:
        h2, c2 = n.x, np.ones(3)
    z = w @ np.concatenate([h1, h2, n.x])
    c = np.tanh(z[:3]) + 0.5 * c1 * c2
    return np.tanh(z[3:]) * c, c


@zoo.add(_trees(_vector), wrt=(0, 1), share=lambda rng: (rng.normal(size=(3, 3)) * 0.5,))
def multiplies_within_the_arms(w, n):
    h = n.x
    if n.left is not None:
        h = h + w @ multiplies_within_the_arms(w, n.left)
    if n.right is not None:
        h = h - np.tanh(w @ multiplies_within_the_arms(w, n.right))
    return np.tanh(h)


@zoo.add(_graphs, wrt=(0,))
def tests_shared_children(n):
    a = tests_shared_children(n.left) if n.left is not None else 0.0
    b = tests_shared_children(n.right) if n.right is not None else n.x
    return np.tanh(0.5 * a - 0.7 * b) + n.x


@zoo.add(_trees(_whole))
def counts_and_measures(n):
    size, height = 1, 0
    left, low = counts_and_measures(n.left) if n.left is not None else (0, 0)
    right, high = counts_and_measures(n.right) if n.right is not None else (0, 0)
    return size + left + right, height + 1 + max(low, high)


@zoo.add(_trees(_whole))
def adds_one_between(n):
    return 1 + (adds_one_between(n.left) if n.left else 0) + (adds_one_between(n.right) if n.right else 0)


@zoo.add(_trees(_number), wrt=(0,))
def finds_the_largest(n):
    return _largest(n).x * 2.0


def _largest(n):
    a = _largest(n.left) if n.left is not None else None
    b = _largest(n.right) if n.right is not None else n
    best = n
    if a is not None and a.x > best.x:
        best = a
    if b.x > best.x:
        best = b
    return best


@zoo.add(_trees(_number), wrt=(0,))
def lists_of_different_length(n):
    a = lists_of_different_length(n.left) if n.left is not None else np.zeros(0)
    b = lists_of_different_length(n.right) if n.right is not None else np.ones(2)
    return np.concatenate([a, np.array([n.x]), 0.5 * b])


@zoo.add(_trees(_number), wrt=(0,))
def loops_in_an_arm(n):
    a = 0.0
    if n.left is not None:
        a = loops_in_an_arm(n.left)
        while a > 0.1:
            a = a * 0.5
    b = loops_in_an_arm(n.right) if n.right is not None else 0.0
    return a + b + n.x


@zoo.add(_trees(_number), wrt=(0,))
def returns_from_an_arm(n):
    a = 0.0
    if n.left is not None:
        a = returns_from_an_arm(n.left)
        if a > 1.0:
            return a * n.x
    b = returns_from_an_arm(n.right) if n.right is not None else 0.0
    return np.tanh(a - b) + n.x


@zoo.add(_trees(_number), wrt=(0,))
def repeats_its_calls(n):
    s = n.x
    for k in range(2):
        a = repeats_its_calls(n.left) if n.left is not None else s
        b = repeats_its_calls(n.right) if n.right is not None and k > 0 else 0.2
        s = np.tanh(s + a - b)
    return s


# ------------------------------------------------------------------------------------------- which one is raised
@zoo.add(_trees(_whole, 6), raises=True)
def raises_in_either_child(n):
    a = raises_in_either_child(n.left) if n.left is not None else 6
    if n.x == 5:
        raise ValueError("five")
    b = raises_in_either_child(n.right) if n.right is not None else 12 // (n.x + 2)
    return (a + b) % 7


@zoo.add(_trees(_whole, 6), raises=True)
def raises_behind_both_children(n):
    a = raises_behind_both_children(n.left) if n.left is not None else 6
    b = raises_behind_both_children(n.right) if n.right is not None else 3
    if n.x == 3:
        raise KeyError("three")
    return 60 // (n.x + 2) + (a + b) % 7


@zoo.add(_trees(_whole, 6), raises=True)
def raises_in_the_test(n):
    a = raises_in_the_test(n.left) if n.left is not None else 6
    b = raises_in_the_test(n.right) if n.right is not None and 10 // n.right.x > 2 else 3
    return (a * 2 + b) % 7


@zoo.add(_trees(_whole, 6), raises=True)
def raises_in_an_argument(n):
    return _divided(n, 7)


def _divided(n, d):
    a = _divided(n.left, d - 1) if n.left is not None else 1
    b = _divided(n.right, 12 // n.x) if n.right is not None else 2
    if d < 5:
        raise IndexError("deep")
    return (a + b) % 5


@zoo.add(_trees(_whole, 6), raises=True)
def raises_between_tested_calls(n):
    a = raises_between_tested_calls(n.left) if n.left is not None else 4
    a = 60 // (a + n.x)
    b = raises_between_tested_calls(n.right) if n.right is not None else 3
    if n.x == 5:
        raise ValueError("five")
    return (a + b) % 7
