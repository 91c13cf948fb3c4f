"""The two TreeLSTM workloads in this project's own way: a model for one tree, batched and differentiated by `spmd`.

A child process of bench/run.py; prints one line of JSON with the peers' keys (trees_per_s, cpu_trees_per_s, loss_first,
loss_last ...) and a few more. Sizes, data, first parameters, minibatches (file order) and updates are the peers'.
Invariant: each timed epoch slices every minibatch and runs it; packing and the first call are timed apart.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

THREADS_ASKED = int(os.environ.get("OPENBLAS_NUM_THREADS", "1"))
if THREADS_ASKED == 1 and hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {int(os.environ.get("CORE", "0"))})  # as the peers do: one core, whatever would start

START = time.perf_counter()
import numpy as np  # noqa: E402

import batching  # noqa: E402
import spmd  # noqa: E402

IMPORT_S = time.perf_counter() - START

import treelstm_data as data  # noqa: E402

H = data.HIDDEN
A = data.AST_HIDDEN


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def surprise(scores, label):
    shifted = scores - np.max(scores)
    return np.log(np.sum(np.exp(shifted))) - shifted[label]


def read(p, words, node):
    """Binary TreeLSTM: hidden state and cell of a phrase, and the loss of all the phrases in it."""
    if node.left is None:
        z = words[node.word] @ p["Wl"] + p["bl"]
        c = sigmoid(z[:H]) * np.tanh(z[2 * H :])
        h = sigmoid(z[H : 2 * H]) * np.tanh(c)
        return h, c, surprise(h @ p["Ws"] + p["bs"], node.label)
    hl, cl, left_loss = read(p, words, node.left)
    hr, cr, right_loss = read(p, words, node.right)
    z = np.concatenate([hl, hr]) @ p["U"] + p["bu"]
    kept = sigmoid(z[2 * H : 3 * H]) * cl + sigmoid(z[3 * H : 4 * H]) * cr
    c = sigmoid(z[:H]) * np.tanh(z[4 * H :]) + kept
    h = sigmoid(z[H : 2 * H]) * np.tanh(c)
    return h, c, left_loss + right_loss + surprise(h @ p["Ws"] + p["bs"], node.label)


def sentence_loss(p, words, tree):
    return read(p, words, tree)[2]


def encode(p, node):
    """Child-Sum TreeLSTM: hidden state and cell of one node of a syntax tree."""
    z = p["E"][node.kind] @ p["W"] + p["b"]
    if len(node.children) == 0:
        c = sigmoid(z[:A]) * np.tanh(z[2 * A : 3 * A])
        return sigmoid(z[A : 2 * A]) * np.tanh(c), c
    states = [encode(p, child) for child in node.children]
    hidden = np.stack([h for h, _ in states])
    cells = np.stack([c for _, c in states])
    g = z[: 3 * A] + np.sum(hidden, axis=0) @ p["Uiou"]
    forget = sigmoid(z[3 * A :] + hidden @ p["Uf"])
    c = sigmoid(g[:A]) * np.tanh(g[2 * A :]) + np.sum(forget * cells, axis=0)
    return sigmoid(g[A : 2 * A]) * np.tanh(c), c


def function_loss(p, tree, label):
    h, _ = encode(p, tree)
    return surprise(h @ p["Ws"] + p["bs"], label)


sentence_losses = spmd.vmap(sentence_loss, in_axes=(None, None, 0))
function_losses = spmd.vmap(function_loss, in_axes=(None, 0, 0))


def mean_sentence_loss(p, words, trees):
    return np.mean(sentence_losses(p, words, trees))


def mean_function_loss(p, trees, labels):
    return np.mean(function_losses(p, trees, labels))


class Workload:
    """Packed examples, parameters, and `run(minibatch)`: one step, or one evaluation, that gives the summed loss."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, train = options, options.mode == "train"
        if options.task == "sst":
            trees, words = data.load_sst(options.sst, options.trees)
            self.parameters = data.sst_parameters(words)
            examples: Any = trees
            self.mflop = data.sst_mflop(trees, train, bool(options.emb))
        else:
            found, kinds = data.load_ast(options.trees)
            examples = [tree for tree, _ in found]
            self.labels = np.array([label for _, label in found])
            self.parameters = data.ast_parameters(kinds)
            self.mflop = data.ast_mflop(examples, train)
        self.count = len(examples)
        self.nodes = sum(1 for tree in examples for _ in data.nodes(tree))
        start = time.perf_counter()
        self.packed = batching.pack(examples)
        self.pack_s = time.perf_counter() - start
        self.run = self._sst(train) if options.task == "sst" else self._ast(train)

    def _sst(self, train: bool) -> Callable[[slice], float]:
        weights = {name: value for name, value in self.parameters.items() if name != "E"}
        words = self.parameters["E"]
        if not train:
            return lambda rows: float(np.sum(sentence_losses(weights, words, self.packed[rows])))
        trained = (0, 1) if self.options.emb else (0,)
        step = spmd.value_and_grad(mean_sentence_loss, argnums=trained)

        def run(rows: slice) -> float:
            value, gradients = step(weights, words, self.packed[rows])
            self.update(weights, gradients[0])
            if self.options.emb:
                words[...] -= np.float32(self.options.lr) * gradients[1]
            return float(value) * len(range(*rows.indices(self.count)))

        return run

    def _ast(self, train: bool) -> Callable[[slice], float]:
        weights = self.parameters
        if not train:
            return lambda rows: float(np.sum(function_losses(weights, self.packed[rows], self.labels[rows])))
        step = spmd.value_and_grad(mean_function_loss)

        def run(rows: slice) -> float:
            value, gradient = step(weights, self.packed[rows], self.labels[rows])
            self.update(weights, gradient)
            return float(value) * len(range(*rows.indices(self.count)))

        return run

    def update(self, weights: dict[str, np.ndarray], gradient: dict[str, np.ndarray]) -> None:
        for name, value in weights.items():
            value -= np.float32(self.options.lr) * gradient[name]

    def minibatches(self) -> Iterator[slice]:
        for first in range(0, self.count, self.options.batch):
            yield slice(first, first + self.options.batch)


def measure(work: Workload) -> dict[str, Any]:
    """Runs the epochs and returns the line to print."""
    options = work.options
    wall, cpu, losses = [], [], []
    first_call, after = 0.0, {}
    for epoch in range(options.epochs):
        start, start_cpu, total = time.perf_counter(), time.process_time(), 0.0
        for rows in work.minibatches():
            total += work.run(rows)
            if epoch == 0:
                first_call = first_call or time.perf_counter() - start
                done = min(rows.stop, work.count)
                after[done] = total / done
        wall.append(time.perf_counter() - start)
        cpu.append(time.process_time() - start_cpu)
        losses.append(total / work.count)
    warm = min(options.warm, options.epochs - 1)
    used, used_cpu = statistics.median(wall[warm:]), statistics.median(cpu[warm:])
    return {
        "peer": "ours",
        "task": options.task,
        "mode": options.mode,
        "batch": options.batch,
        "threads": THREADS_ASKED,
        "emb": options.emb,
        "trees_per_s": round(work.count / used, 1),
        "best": round(work.count / min(wall[warm:]), 1),
        "worst": round(work.count / max(wall[warm:]), 1),
        "cpu_trees_per_s": round(work.count / used_cpu, 1),
        "us_per_node": round(1e6 * used / work.nodes, 3),
        "first_epoch_s": round(wall[0], 2),
        "first_call_s": round(first_call, 3),
        "import_s": round(IMPORT_S, 3),
        "pack_s": round(work.pack_s, 4),
        "peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        "trees": work.count,
        "nodes": work.nodes,
        "mflop_per_tree": round(work.mflop, 2),
        "loss_first": round(losses[0], 5),
        "loss_last": round(losses[-1], 5),
        "loss_after": {str(done): round(value, 5) for done, value in after.items()},
    }


def main() -> None:
    options = argparse.ArgumentParser(description="One workload in this process; prints a line of JSON.")
    options.add_argument("--task", choices=["sst", "ast"], default="sst")
    options.add_argument("--mode", choices=["train", "infer"], default="train")
    options.add_argument("--batch", type=int, default=25)
    options.add_argument("--trees", type=int, default=1024)
    options.add_argument("--epochs", type=int, default=6)
    options.add_argument("--warm", type=int, default=1, help="epochs that are not timed")
    options.add_argument("--emb", type=int, default=0, help="1: word embeddings are trained too")
    options.add_argument("--lr", type=float, default=0.05)
    options.add_argument("--sst", type=Path, default=Path("../shared/data/sst"))
    print(json.dumps(measure(Workload(options.parse_args()))))


if __name__ == "__main__":
    main()
