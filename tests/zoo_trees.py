"""Zoo: trees and graphs of linked Python objects: shared nodes, classes that differ, missing children."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from program import Collection, Rng

zoo = Collection()


class Node:
    """A binary node; children may be missing."""

    def __init__(self, value: Any, left: Node | None = None, right: Node | None = None) -> None:
        self.value = value
        self.left = left
        self.right = right


@dataclass
class Branch:
    """A node with any number of children."""

    word: int
    children: list[Branch] = field(default_factory=list)


def _binary(rng: Rng, leaves: int, value: Callable[[bool], Any]) -> Node:
    """A random full binary tree; `value(is leaf)` draws what a node holds."""
    if leaves == 1:
        return Node(value(True))
    cut = int(rng.integers(1, leaves))
    return Node(value(False), _binary(rng, cut, value), _binary(rng, leaves - cut, value))


def _lopsided(rng: Rng, nodes: int) -> Node | None:
    """A random tree in which either child may be missing."""
    if nodes == 0:
        return None
    cut = int(rng.integers(0, nodes))
    return Node(float(rng.normal()), _lopsided(rng, cut), _lopsided(rng, nodes - 1 - cut))


def _wide(rng: Rng, nodes: int) -> Branch:
    made = [Branch(int(rng.integers(0, 6)))]
    for _ in range(nodes - 1):
        child = Branch(int(rng.integers(0, 6)))
        made[int(rng.integers(0, len(made)))].children.append(child)
        made.append(child)
    return made[0]


def _sizes(rng: Rng, size: int, low: int, high: int) -> list[int]:
    return [int(n) for n in [low, high, *rng.integers(low, high + 1, size)][:size]]


def _lopsided_trees(rng: Rng, size: int) -> list[tuple[Any, ...]]:
    return [(_lopsided(rng, n),) for n in _sizes(rng, size, 1, 11)]


@zoo.add(_lopsided_trees, wrt=(0,))
def sum_and_depth(tree):
    if tree is None:
        return 0.0, 0
    left, left_depth = sum_and_depth(tree.left)
    right, right_depth = sum_and_depth(tree.right)
    return left + right * 0.5 + tree.value * tree.value, max(left_depth, right_depth) + 1


def _word_trees(rng: Rng, size: int) -> list[tuple[Any, ...]]:
    trees = [_binary(rng, n, lambda leaf: int(rng.integers(0, 6)) if leaf else 0) for n in _sizes(rng, size, 1, 8)]
    return [(tree,) for tree in trees]


def _lstm(rng: Rng) -> tuple[Any, ...]:
    d = 3
    return (
        {
            "emb": rng.normal(size=(6, d)),
            "wx": rng.normal(size=(4 * d, d)) * 0.5,
            "wh": rng.normal(size=(5 * d, 2 * d)) * 0.5,
            "b": rng.normal(size=5 * d) * 0.3,
        },
    )


def _sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


@zoo.add(_word_trees, share=_lstm, wrt=(0,))
def binary_tree_lstm(p, node):
    if node.left is None:
        z = p["wx"] @ p["emb"][node.value]
        c = _sigmoid(z[:3]) * np.tanh(z[3:6])
        return _sigmoid(z[6:9]) * np.tanh(c), c
    h1, c1 = binary_tree_lstm(p, node.left)
    h2, c2 = binary_tree_lstm(p, node.right)
    z = p["wh"] @ np.concatenate([h1, h2]) + p["b"]
    c = _sigmoid(z[:3]) * np.tanh(z[3:6]) + _sigmoid(z[6:9]) * c1 + _sigmoid(z[9:12]) * c2
    return _sigmoid(z[12:]) * np.tanh(c), c


def _losses(p, node):
    """State of a node, and the loss summed over its tree."""
    if node.left is None:
        h = np.tanh(p["wx"][:3] @ p["emb"][node.value])
        loss = 0.0
    else:
        h1, loss1 = _losses(p, node.left)
        h2, loss2 = _losses(p, node.right)
        h = np.tanh(p["wh"][:3] @ np.concatenate([h1, h2]))
        loss = loss1 + loss2
    scores = p["emb"] @ h
    best = np.max(scores)
    return h, loss + best + np.log(np.sum(np.exp(scores - best))) - scores[node.value]


@zoo.add(_word_trees, share=_lstm, wrt=(0,))
def loss_at_every_node(p, tree):
    _, loss = _losses(p, tree)
    return loss


def _wide_trees(rng: Rng, size: int) -> list[tuple[Any, ...]]:
    return [(_wide(rng, n),) for n in _sizes(rng, size, 1, 9)]


def _child_sum(rng: Rng) -> tuple[Any, ...]:
    d = 3
    return (
        {
            "emb": rng.normal(size=(6, d)),
            "w": rng.normal(size=(3 * d, 2 * d)) * 0.5,
            "f": rng.normal(size=(d, 2 * d)) * 0.5,
        },
    )


@zoo.add(_wide_trees, share=_child_sum, wrt=(0,))
def child_sum_in_a_loop(p, node):
    x = p["emb"][node.word]
    total = np.zeros(3)
    kept = np.zeros(3)
    for child in node.children:
        h, c = child_sum_in_a_loop(p, child)
        total = total + h
        kept = kept + _sigmoid(p["f"] @ np.concatenate([x, h])) * c
    z = p["w"] @ np.concatenate([x, total])
    c = _sigmoid(z[:3]) * np.tanh(z[3:6]) + kept
    return _sigmoid(z[6:]) * np.tanh(c), c


@zoo.add(_wide_trees, share=_child_sum, wrt=(0,))
def child_sum_by_stacking(p, node):
    x = p["emb"][node.word]
    if len(node.children) == 0:
        z = p["w"] @ np.concatenate([x, np.zeros(3)])
        c = _sigmoid(z[:3]) * np.tanh(z[3:6])
        return _sigmoid(z[6:]) * np.tanh(c), c
    kids = [child_sum_by_stacking(p, child) for child in node.children]
    hs = np.stack([h for h, c in kids])
    cs = np.stack([c for h, c in kids])
    z = p["w"] @ np.concatenate([x, np.sum(hs, axis=0)])
    forget = _sigmoid(hs @ p["f"][:, :3] + p["f"] @ np.concatenate([x, x]))
    c = _sigmoid(z[:3]) * np.tanh(z[3:6]) + np.sum(forget * cs, axis=0)
    return _sigmoid(z[6:]) * np.tanh(c), c


def _vector_trees(rng: Rng, size: int) -> list[tuple[Any, ...]]:
    return [(_binary(rng, n, lambda leaf: rng.normal(size=4)),) for n in _sizes(rng, size, 1, 8)]


def _fully_connected(rng: Rng) -> tuple[Any, ...]:
    return rng.normal(size=(4, 8)) * 0.5, rng.normal(size=4) * 0.5


@zoo.add(_vector_trees, share=_fully_connected, wrt=(0, 1, 2))
def tree_net(w, b, node):
    if node.left is None:
        return node.value
    left = tree_net(w, b, node.left)
    right = tree_net(w, b, node.right)
    return np.tanh(w @ np.concatenate([left, right]) + b + 0.1 * node.value)


@dataclass
class Leaf:
    value: float


@dataclass
class Inner:
    op: int
    left: Leaf | Inner
    right: Leaf | Inner


def _expression(rng: Rng, leaves: int) -> Leaf | Inner:
    if leaves == 1:
        return Leaf(float(rng.uniform(0.5, 2.0)))
    cut = int(rng.integers(1, leaves))
    return Inner(int(rng.integers(0, 4)), _expression(rng, cut), _expression(rng, leaves - cut))


def _expressions(rng: Rng, size: int) -> list[tuple[Any, ...]]:
    return [(_expression(rng, n), float(rng.normal())) for n in _sizes(rng, size, 1, 9)]


@zoo.add(_expressions, wrt=(0, 1))
def evaluates_expressions(node, x):
    if isinstance(node, Leaf):
        return node.value * x
    a = evaluates_expressions(node.left, x)
    b = evaluates_expressions(node.right, x)
    if node.op == 0:
        return a + b
    if node.op == 1:
        return a * b
    if node.op == 2:
        return a - 0.5 * b
    return a / (1.0 + b * b)


@zoo.add(_lopsided_trees)
def finds_a_large_value(tree):
    if tree is None:
        return False
    if tree.value > 1.5:
        return True
    return finds_a_large_value(tree.left) or finds_a_large_value(tree.right)


@zoo.add(_wide_trees)
def counts_leaves_and_width(node):
    if len(node.children) == 0:
        return 1, 0
    leaves = 0
    width = len(node.children)
    for child in node.children:
        below, wide = counts_leaves_and_width(child)
        leaves += below
        if wide > width:
            width = wide
    return leaves, width


@zoo.add(_wide_trees, wrt=(0,), share=lambda rng: (rng.normal(size=6),))
def stops_among_children(weights, node):
    total = weights[node.word]
    for child in node.children:
        if total > 1.2:
            break
        part = stops_among_children(weights, child)
        if part < -1.0:
            continue
        total = total * 0.9 + part
    return total


class Vertex:
    """A vertex of a directed acyclic graph; inputs may be shared."""

    def __init__(self, features: np.ndarray, inputs: list[Vertex]) -> None:
        self.features = features
        self.inputs = inputs


def _graph(rng: Rng, vertices: int) -> Vertex:
    made: list[Vertex] = []
    for _ in range(vertices):
        count = min(len(made), int(rng.integers(0, 3)))
        chosen = sorted(rng.choice(len(made), size=count, replace=False)) if count else []
        made.append(Vertex(rng.normal(size=2), [made[k] for k in chosen]))
    return Vertex(rng.normal(size=2), made[-2:])


def _graphs(rng: Rng, size: int) -> list[tuple[Any, ...]]:
    return [(_graph(rng, n),) for n in _sizes(rng, size, 0, 7)]


@zoo.add(_graphs, share=lambda rng: (rng.normal(size=(2, 2)) * 0.6,), wrt=(0, 1))
def net_over_a_graph(w, vertex):
    total = np.zeros(2)
    for other in vertex.inputs:
        total = total + net_over_a_graph(w, other)
    return np.tanh(w @ total + vertex.features)


@zoo.add(_graphs, share=lambda rng: (rng.normal(size=(2, 4)) * 0.6,), wrt=(0, 1))
def passes_messages(w, vertex):
    return _message(w, vertex, 3)


def _message(w, vertex, rounds):
    if rounds == 0:
        return np.tanh(vertex.features)
    incoming = np.zeros(2)
    for other in vertex.inputs:
        incoming = incoming + _message(w, other, rounds - 1)
    own = _message(w, vertex, rounds - 1)
    return np.tanh(w @ np.concatenate([own, incoming]))


def _diamonds(rng: Rng, size: int) -> list[tuple[Any, ...]]:
    """Each node's two children are the same node: 2**depth paths, depth + 1 nodes."""
    made = []
    for depth in _sizes(rng, size, 0, 6):
        node = Node(float(rng.normal()))
        for _ in range(depth):
            node = Node(float(rng.normal()), node, node)
        made.append((node,))
    return made


@zoo.add(_diamonds, wrt=(0,))
def sums_over_diamonds(node):
    if node.left is None:
        return node.value
    a = sums_over_diamonds(node.left)
    b = sums_over_diamonds(node.right)
    return np.sin(a * 0.5 + b * 0.25) + node.value


class Cell(NamedTuple):
    h: np.ndarray
    c: np.ndarray


@dataclass
class Weights:
    mix: np.ndarray
    scale: float


def _records(rng: Rng) -> tuple[Any, ...]:
    return (Weights(rng.normal(size=(2, 4)) * 0.6, float(rng.normal())),)


def _pairs_of_vectors(rng: Rng, size: int) -> list[tuple[Any, ...]]:
    return [({"start": Cell(rng.normal(size=2), rng.normal(size=2)), "n": n},) for n in _sizes(rng, size, 0, 5)]


def _advanced(weights, cell):
    z = weights.mix @ np.concatenate([cell.h, cell.c])
    return Cell(np.tanh(z), cell.c * weights.scale + z)


@zoo.add(_pairs_of_vectors, share=_records, wrt=(0, 1))
def carries_a_named_tuple(weights, start):
    cell = start["start"]
    for _ in range(start["n"]):
        cell = _advanced(weights, cell)
    return {"cell": cell, "norm": np.sum(cell.h * cell.h)}


@dataclass
class Tagged:
    op: str
    args: list[Tagged]
    value: float = 0.0


def _tagged(rng: Rng, leaves: int) -> Tagged:
    if leaves == 1:
        return Tagged("lit", [], float(rng.uniform(0.5, 2.0)))
    op = ["add", "mul", "neg"][int(rng.integers(0, 3))]
    if op == "neg":
        return Tagged(op, [_tagged(rng, leaves - 1)])
    cut = int(rng.integers(1, leaves))
    return Tagged(op, [_tagged(rng, cut), _tagged(rng, leaves - cut)])


@zoo.add(lambda rng, size: [(_tagged(rng, n),) for n in _sizes(rng, size, 1, 7)], wrt=(0,))
def dispatches_on_strings(node):
    if node.op == "lit":
        return node.value
    first = dispatches_on_strings(node.args[0])
    if node.op == "neg":
        return -first
    second = dispatches_on_strings(node.args[1])
    if node.op == "add":
        return first + second
    return first * second


@zoo.add(_lopsided_trees, raises=True)
def needs_both_children(tree):
    if tree.left is None and tree.right is None:
        return tree.value
    return needs_both_children(tree.left) + needs_both_children(tree.right)
