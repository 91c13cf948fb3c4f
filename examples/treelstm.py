"""TreeLSTMs written for one tree, trained on minibatches of real trees.

    python examples/treelstm.py                 which module is a function of Python's own library from?
    python examples/treelstm.py --sst DIR       sentiment of every phrase of a bracketed treebank (train/dev/test.txt)

The functions down to the line are the model, as one would write it for a single tree in plain NumPy: no batch, no
levels, no padding. `spmd.vmap` and `spmd.value_and_grad` make the minibatch of it. At the end the same minibatch goes
through the plain per-example loop, and the differences are printed.

Models: K. S. Tai, R. Socher, C. D. Manning, "Improved semantic representations from tree-structured long short-term
memory networks" (ACL 2015): Child-Sum for syntax trees of any arity, binary for the treebank.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from data import PhraseNode, SyntaxNode, library_functions, phrases, treebank
from training import Parameters, compare_with_loop, fit

import batching
import spmd
from spmd import learn

HIDDEN = 128


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def surprise(scores, label):
    """Cross entropy of one label under unnormalised scores."""
    shifted = scores - np.max(scores)
    return np.log(np.sum(np.exp(shifted))) - shifted[label]


def encode(p, node: SyntaxNode):
    """Child-Sum TreeLSTM: hidden state and cell of one node of a syntax tree."""
    z = (p["kind"][node.kind] + p["word"][node.word]) @ p["W"] + p["b"]
    if len(node.children) == 0:
        c = sigmoid(z[:HIDDEN]) * np.tanh(z[2 * HIDDEN : 3 * HIDDEN])
        return sigmoid(z[HIDDEN : 2 * HIDDEN]) * np.tanh(c), c
    states = [encode(p, child) for child in node.children]
    hidden = np.stack([h for h, _ in states])
    cells = np.stack([c for _, c in states])
    g = z[: 3 * HIDDEN] + np.sum(hidden, axis=0) @ p["U"]
    forget = sigmoid(z[3 * HIDDEN :] + hidden @ p["Uf"])
    c = sigmoid(g[:HIDDEN]) * np.tanh(g[2 * HIDDEN :]) + np.sum(forget * cells, axis=0)
    return sigmoid(g[HIDDEN : 2 * HIDDEN]) * np.tanh(c), c


def module_scores(p, tree: SyntaxNode):
    h, _ = encode(p, tree)
    return h @ p["out"] + p["bias"]


def module_loss(p, tree: SyntaxNode, module: int):
    return surprise(module_scores(p, tree), module)


def guessed_module(p, tree: SyntaxNode):
    return np.argmax(module_scores(p, tree))


def leaf(p, word: int):
    z = p["word"][word] @ p["W"] + p["b"]
    c = sigmoid(z[:HIDDEN]) * np.tanh(z[2 * HIDDEN :])
    return sigmoid(z[HIDDEN : 2 * HIDDEN]) * np.tanh(c), c


def join(p, hl, cl, hr, cr):
    z = np.concatenate([hl, hr]) @ p["U"] + p["bu"]
    kept = sigmoid(z[2 * HIDDEN : 3 * HIDDEN]) * cl + sigmoid(z[3 * HIDDEN : 4 * HIDDEN]) * cr
    c = sigmoid(z[:HIDDEN]) * np.tanh(z[4 * HIDDEN :]) + kept
    return sigmoid(z[HIDDEN : 2 * HIDDEN]) * np.tanh(c), c


def read(p, node: PhraseNode):
    """Binary TreeLSTM: hidden state and cell of a phrase, and the loss of all the phrases in it."""
    if node.left is None:
        h, c = leaf(p, node.word)
        return h, c, surprise(h @ p["out"] + p["bias"], node.label)
    hl, cl, left_loss = read(p, node.left)
    hr, cr, right_loss = read(p, node.right)
    h, c = join(p, hl, cl, hr, cr)
    return h, c, left_loss + right_loss + surprise(h @ p["out"] + p["bias"], node.label)


def judge(p, node: PhraseNode):
    """Hidden state and cell of a phrase, how many phrases in it get the right label, and whether it does itself."""
    if node.left is None:
        h, c = leaf(p, node.word)
        below = 0
    else:
        hl, cl, left_right, _ = judge(p, node.left)
        hr, cr, right_right, _ = judge(p, node.right)
        h, c = join(p, hl, cl, hr, cr)
        below = left_right + right_right
    correct = 1 if np.argmax(h @ p["out"] + p["bias"]) == node.label else 0
    return h, c, below + correct, correct


def sentence_loss(p, tree: PhraseNode):
    return read(p, tree)[2]


def sentence_marks(p, tree: PhraseNode):
    _, _, phrases_right, root_right = judge(p, tree)
    return phrases_right, root_right


# ---------------------------------------------------------------------------------------------------------------------


module_losses = spmd.vmap(module_loss, in_axes=(None, 0, 0))
guessed_modules = spmd.vmap(guessed_module, in_axes=(None, 0))
sentence_losses = spmd.vmap(sentence_loss, in_axes=(None, 0))
marks = spmd.vmap(sentence_marks, in_axes=(None, 0))


def mean_module_loss(p, trees, modules):
    return np.mean(module_losses(p, trees, modules))


def mean_sentence_loss(p, trees):
    return np.mean(sentence_losses(p, trees))


@dataclass
class Task:
    """What the two programs of this file differ in: data, functions, and how the held-out part is judged."""

    parameters: Parameters
    optimiser: Any
    examples: list[tuple[Any, ...]]
    columns: tuple[Any, ...]
    loss: Callable[..., Any]
    losses: Callable[..., Any]
    mean_loss: Callable[..., Any]
    judge: Callable[[Parameters], str]


def module_task(seed: int) -> Task:
    data = library_functions(seed=seed)
    rng = np.random.default_rng(seed)
    parameters = {
        "kind": learn.normal(rng, (data.kinds, HIDDEN), 0.5),
        "word": learn.normal(rng, (data.words, HIDDEN), 0.5),
        "W": learn.glorot(rng, (HIDDEN, 4 * HIDDEN)),
        "b": learn.zeros(4 * HIDDEN),
        "U": learn.glorot(rng, (HIDDEN, 3 * HIDDEN)),
        "Uf": learn.glorot(rng, (HIDDEN, HIDDEN)),
        "out": learn.glorot(rng, (HIDDEN, len(data.modules))),
        "bias": learn.zeros(len(data.modules)),
    }
    held_out = batching.pack([tree for tree, _ in data.test])
    answers = np.array([module for _, module in data.test])
    print(f"{len(data.train)} functions to learn from, {len(data.test)} held out, of {', '.join(data.modules)}")

    def judged(p: Parameters) -> str:
        accuracy = float(np.mean(guessed_modules(p, held_out) == answers))
        return f"held-out accuracy {accuracy:.1%} ({accuracy / data.majority:.1f} x the majority's {data.majority:.1%})"

    columns = (batching.pack([tree for tree, _ in data.train]), np.array([module for _, module in data.train]))
    return Task(
        parameters, learn.Adam(3e-3), list(data.train), columns, module_loss, module_losses, mean_module_loss, judged
    )


def sentiment_task(seed: int, folder: Path) -> Task:
    data = treebank(folder)
    rng = np.random.default_rng(seed)
    parameters = {
        "word": learn.normal(rng, (data.words, HIDDEN), 0.1),
        "W": learn.glorot(rng, (HIDDEN, 3 * HIDDEN)),
        "b": learn.zeros(3 * HIDDEN),
        "U": learn.glorot(rng, (2 * HIDDEN, 5 * HIDDEN)),
        "bu": learn.zeros(5 * HIDDEN),
        "out": learn.glorot(rng, (HIDDEN, data.classes)),
        "bias": learn.zeros(data.classes),
    }
    dev = batching.pack(data.dev)
    count = sum(1 for tree in data.dev for _ in phrases(tree))
    print(f"{len(data.train)} sentences to learn from, {len(data.dev)} to judge by, {data.words} words")

    def judged(p: Parameters) -> str:
        right, root_right = marks(p, dev)
        return f"dev accuracy: all nodes {np.sum(right) / count:.1%}, root {np.mean(root_right):.1%}"

    examples = [(tree,) for tree in data.train]
    return Task(
        parameters,
        learn.Adagrad(0.05),
        examples,
        (batching.pack(data.train),),
        sentence_loss,
        sentence_losses,
        mean_sentence_loss,
        judged,
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sst", type=Path, metavar="DIR", help="folder of train.txt, dev.txt, test.txt")
    options.add_argument("--seed", type=int, default=0, help="of split, start and shuffling")
    options.add_argument("--epochs", type=int, help="passes over the training part (8; with --sst 3)")
    options.add_argument("--batch", type=int, help="trees in a minibatch (64; with --sst 25)")
    given = options.parse_args()
    task = sentiment_task(given.seed, given.sst) if given.sst else module_task(given.seed)
    epochs, size = given.epochs or (3 if given.sst else 8), given.batch or (25 if given.sst else 64)
    loader = batching.Loader(task.columns, size, seed=given.seed)
    parameters = fit(task.mean_loss, task.parameters, task.optimiser, loader, epochs, task.judge)
    minibatch = tuple(column[:size] for column in task.columns)
    compare_with_loop(task.loss, task.losses, task.mean_loss, parameters, minibatch, task.examples[:size], given.seed)


if __name__ == "__main__":
    main()
