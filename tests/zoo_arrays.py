"""Zoo: NumPy on whole arrays, of fixed sizes and of sizes that differ between examples."""

from __future__ import annotations

from typing import Any

import numpy as np
from program import Collection, Rng, arrays, integers, numbers, pairs, sequences

zoo = Collection()


@zoo.add(arrays((3, 4)), wrt=(0,))
def reduces_along_axes(m):
    columns = np.sum(m, axis=0)
    rows = np.mean(m * m, axis=1)
    top = np.max(m, axis=1)
    low = m.min(axis=0)
    return np.sum(columns * low) + np.sum(rows * top), np.argmax(m, axis=1), np.argmin(m)


@zoo.add(arrays((3, 4)), wrt=(0,))
def normalises_rows(m):
    shifted = m - np.max(m, axis=1, keepdims=True)
    e = np.exp(shifted)
    return e / np.sum(e, axis=1, keepdims=True)


@zoo.add(arrays((2, 3), (2, 3), (6,)), wrt=(0, 1, 2))
def joins_and_reshapes(a, b, v):
    joined = np.concatenate([a, b], axis=0)
    layers = np.stack([a, b])
    turned = joined.T @ joined
    folded = v.reshape(2, 3) * a
    return turned + np.sum(folded), np.transpose(layers, (1, 0, 2)), layers.reshape(-1)


@zoo.add(arrays((6,), (4, 5)), wrt=(0, 1))
def reads_slices(v, m):
    inner = v[1:-1]
    steps = v[::2] * v[1::2]
    back = v[::-1]
    block = m[1:3, :2]
    return np.sum(inner) + np.sum(steps * steps), back[:2], m[-1], m[:, 2] * m[0, 0], block


def _cut(rng: Rng, size: int) -> list[tuple[Any, ...]]:
    return [(rng.normal(size=8), int(rng.integers(0, 5)), int(rng.integers(3, 10))) for _ in range(size)]


@zoo.add(_cut, wrt=(0,))
def sums_a_slice_of_any_length(v, low, high):
    part = v[low:high]
    return np.sum(part * part) + len(part)


@zoo.add(sequences(1, 7), wrt=(0,))
def softmax_of_any_length(xs):
    e = np.exp(xs - np.max(xs))
    weights = e / np.sum(e)
    return np.sum(weights * xs), np.argmax(xs), weights


def _attention(rng: Rng) -> tuple[Any, ...]:
    return rng.normal(size=(3, 3)) * 0.6, rng.normal(size=3)


@zoo.add(sequences(1, 6, 3), share=_attention, wrt=(0, 1, 2))
def attends_to_any_length(w, query, xs):
    keys = xs @ w
    scores = keys @ query
    e = np.exp(scores - np.max(scores))
    return (e / np.sum(e)) @ xs


@zoo.add(sequences(0, 6, 3), wrt=(0,))
def sums_rows_of_any_number(xs):
    total = np.sum(np.tanh(xs), axis=0)
    return total, xs.shape[0], np.sum(xs * 2.0 + 1.0)


@zoo.add(arrays((3,), (4,), (3, 4)), wrt=(0, 1, 2))
def multiplies_in_all_ranks(u, v, m):
    whole = np.outer(u, v) * m
    return u @ m @ v + np.dot(u, u), m.T @ u, whole @ m.T, np.dot(m, v)


@zoo.add(pairs(arrays((3,)), numbers(-1, 1)), wrt=(0, 1))
def makes_new_arrays(v, x):
    base = np.zeros(3) + np.ones(3) * x
    ramp = np.arange(3) * v
    return base + ramp + np.zeros_like(v) + np.full(3, 0.5), np.arange(4)


def _classifier(rng: Rng) -> tuple[Any, ...]:
    return (
        {
            "hidden": (rng.normal(size=(5, 3)) * 0.6, rng.normal(size=5) * 0.3),
            "out": (rng.normal(size=(4, 5)) * 0.6, rng.normal(size=4) * 0.3),
        },
    )


@zoo.add(pairs(arrays((3,)), integers(0, 4)), share=_classifier, wrt=(0, 1))
def classifies(p, x, label):
    w, b = p["hidden"]
    h = np.maximum(w @ x + b, 0.0)
    w, b = p["out"]
    scores = w @ h + b
    top = np.max(scores)
    return top + np.log(np.sum(np.exp(scores - top))) - scores[label]


def _words(rng: Rng, size: int) -> list[tuple[Any, ...]]:
    lengths = [0, 5, *rng.integers(0, 6, size)][:size]
    return [(rng.integers(-5, 5, int(n)),) for n in lengths]


@zoo.add(_words, share=lambda rng: (rng.normal(size=(5, 3)),), wrt=(0,))
def sums_embeddings(table, words):
    total = np.zeros(3)
    for word in words:
        total = total + table[word]
    return np.tanh(total)


def _single(rng: Rng, size: int) -> list[tuple[Any, ...]]:
    return [(rng.normal(size=3).astype(np.float32), int(rng.integers(0, 3))) for _ in range(size)]


def _single_shared(rng: Rng) -> tuple[Any, ...]:
    return rng.normal(size=(3, 3)).astype(np.float32), np.float32(0.5)


@zoo.add(_single, share=_single_shared, float32=True, wrt=(0, 1, 2))
def stays_in_single_precision(w, rate, x, n):
    for _ in range(n):
        x = np.tanh(w @ x) * rate + 0.25 * x
    return x, np.sum(x), x[0] * 2


@zoo.add(arrays((4,)), wrt=(0,))
def chooses_elementwise(v):
    safe = np.where(v > 0, v, 1.0)
    return np.where(v > 0, np.sqrt(safe), v * v), np.minimum(v, 0.3) + np.abs(v), np.sign(v), np.floor(v)


@zoo.add(arrays((3, 3), (3,)), wrt=(0, 1))
def broadcasts(m, v):
    centred = m - np.mean(m, axis=0)
    return centred * v + v[:, np.newaxis] / (1.0 + m * m), np.sum(centred, axis=1)


@zoo.add(integers(0, 5, first=((0,),)))
def computes_on_integer_arrays(n):
    a = np.arange(5) * n
    return np.sum(a), a // 2, a % 3, a > n, np.mean(a), np.max(a) - n


@zoo.add(pairs(arrays((4,)), integers(-4, 4)), wrt=(0,))
def reads_from_the_end(v, k):
    return v[k] * v[-1] + v[k - 4 if k >= 0 else k + 4]


@zoo.add(pairs(arrays((3,), scale=2.0), numbers(0.5, 2)), wrt=(0, 1))
def raises_to_powers(v, x):
    return v**2 + x**1.5, (v * v + 1.0) ** 0.5, x**3 + 2.0**x, np.exp(-v) / (1.0 + np.exp(-v)) ** 2


def _messages(rng: Rng, size: int) -> list[tuple[Any, ...]]:
    made = []
    for n in [1, 6, *rng.integers(1, 7, size)][:size]:
        sources = [int(rng.integers(0, k)) if k else 0 for k in range(int(n))]
        made.append((rng.normal(size=(int(n), 2)), np.array(sources)))
    return made


@zoo.add(_messages, share=lambda rng: (rng.normal(size=(2, 2)) * 0.6,), wrt=(0, 1))
def follows_a_parent_array(w, x, parents):
    k = len(parents) - 1
    state = x[k]
    steps = 0
    while k > 0:
        k = parents[k]
        state = np.tanh(w @ state + x[k])
        steps += 1
    return state, steps


@zoo.add(sequences(1, 5, 2), wrt=(0,))
def scales_any_number_of_rows(xs):
    centre = np.mean(xs, axis=0)
    spread = np.sqrt(np.mean((xs - centre) ** 2, axis=0) + 0.1)
    return (xs - centre) / spread


@zoo.add(arrays((3, 3)), wrt=(0,))
def picks_by_an_argmax(m):
    k = np.argmax(np.sum(m, axis=1))
    row = m[k]
    return row * row[np.argmax(row)]


def _rows_and_limits(rng: Rng, size: int) -> list[tuple[Any, ...]]:
    lengths = [0, 5, *rng.integers(0, 6, size)][:size]
    return [(rng.normal(size=(int(n), 2)), float(rng.normal() * 0.5)) for n in lengths]


@zoo.add(_rows_and_limits, wrt=(0,))
def reads_under_masks(x, limit):
    some = x[x > limit]
    rows = x[x[:, 0] > limit]
    columns = x[:, np.array([True, False])]
    return some, np.sum(rows * rows), len(rows), columns[0:1] if len(columns) > 9 else np.sum(columns)


def _masks_that_may_not_fit(rng: Rng, size: int) -> list[tuple[Any, ...]]:
    made = []
    for k in range(size):
        n = int(rng.integers(1, 6))
        made.append((rng.normal(size=n), rng.normal(size=n + (k % 5 == 3)) > 0.0))
    return made


@zoo.add(_masks_that_may_not_fit, raises=True)
def reads_under_a_given_mask(x, mask):
    return np.sum(x[mask])
