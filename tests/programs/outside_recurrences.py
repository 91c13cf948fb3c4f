"""Programs from outside: dynamic programming and estimation along sequences of any length."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from outside_program import Outside
from program import Rng


# ------------------------------------------------------------------------------------------------ Viterbi
def viterbi(initial, transition, emission, observed):
    """The most probable path of hidden states and its log probability."""
    n, states = len(observed), len(initial)
    score = np.zeros((n, states))
    back = np.zeros((n, states), dtype=int)
    score[0] = initial + emission[:, observed[0]]
    for t in range(1, n):
        candidates = score[t - 1][:, None] + transition
        back[t] = np.argmax(candidates, axis=0)
        score[t] = np.max(candidates, axis=0) + emission[:, observed[t]]
    path = np.zeros(n, dtype=int)
    path[-1] = np.argmax(score[-1])
    for t in range(n - 1, 0, -1):
        path[t - 1] = back[t, path[t]]
    return path, np.max(score[-1])


def viterbi_score(initial, transition, emission, observed):
    _, best = viterbi(initial, transition, emission, observed)
    return best


def hidden_model(rng: Rng) -> tuple[Any, ...]:
    def log_rows(*shape: int) -> np.ndarray:
        weights = rng.uniform(0.05, 1.0, shape)
        return np.log(weights / weights.sum(axis=-1, keepdims=True))

    return log_rows(4), log_rows(4, 4), log_rows(4, 6)


def observations(rng: Rng, count: int, full: bool) -> list[tuple[Any, ...]]:
    longest = 300 if full else 25
    lengths = [1, longest, *rng.integers(1, longest + 1, count)][:count]
    return [(rng.integers(0, 6, int(n)),) for n in lengths]


# ------------------------------------------------------------------------------------------ edit distance
def edit_distance(a, b):
    """Levenshtein's distance of two sequences, with two rows of the table."""
    previous = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        current = [i]
        for j, y in enumerate(b, 1):
            current.append(min(previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (x != y)))
        previous = current
    return previous[-1]


def words(rng: Rng, count: int, full: bool) -> list[tuple[Any, ...]]:
    longest = 120 if full else 14
    lengths = [(0, 0), (0, longest), (longest, longest), *rng.integers(0, longest + 1, (count, 2))][:count]
    return [tuple([int(v) for v in rng.integers(0, 4, int(n))] for n in pair) for pair in lengths]


# ---------------------------------------------------------------------------------------- particle filter
def systematic(weights, u):
    """The indices of a systematic resampling with one uniform number."""
    n = len(weights)
    positions = (np.arange(n) + u) / n
    total = np.cumsum(weights)
    chosen = np.zeros(n, dtype=int)
    i = j = 0
    while i < n:
        if positions[i] < total[j] or j == n - 1:
            chosen[i] = j
            i += 1
        else:
            j += 1
    return chosen


def particle_filter(parameters, y, start, noise, uniforms):
    """Bootstrap filter of a noisy autoregression: the log likelihood and the filtered means."""
    phi, spread, sigma = parameters
    n = len(start)
    x = start
    likelihood = 0.0
    means = np.zeros(len(y))
    for t in range(len(y)):
        x = phi * x + spread * noise[t]
        log_weights = -0.5 * ((y[t] - x) / sigma) ** 2 - math.log(sigma) - 0.5 * math.log(2.0 * math.pi)
        top = log_weights.max()
        weights = np.exp(log_weights - top)
        total = weights.sum()
        likelihood += top + np.log(total / n)
        weights /= total
        means[t] = weights @ x
        x = x[systematic(weights, uniforms[t])]
    return likelihood, means


def particle_filter_likelihood(parameters, y, start, noise, uniforms):
    likelihood, _ = particle_filter(parameters, y, start, noise, uniforms)
    return likelihood


def _tracks(rng: Rng, count: int, full: bool) -> list[tuple[Any, ...]]:
    longest, particles = (50, 100) if full else (6, 12)
    made = []
    for n in [0, longest, *rng.integers(1, longest + 1, count)][:count]:
        parameters = (float(rng.uniform(0.5, 0.95)), float(rng.uniform(0.5, 1.5)), float(rng.uniform(0.5, 1.5)))
        numbers = rng.normal(size=particles), rng.normal(size=(int(n), particles)), rng.uniform(size=int(n))
        made.append((parameters, rng.normal(size=int(n)), *numbers))
    return made


# ---------------------------------------------------------------------------------------------------- LZ77
def lz77(data, window):
    """Greedy match search: triples (offset, length, next symbol)."""
    found = []
    i = 0
    while i < len(data):
        offset = length = 0
        for j in range(max(0, i - window), i):
            k = 0
            while i + k < len(data) - 1 and data[j + k] == data[i + k]:
                k += 1
            if k > length:
                offset, length = i - j, k
        found.append((offset, length, data[i + length]))
        i += length + 1
    return found


def symbols(rng: Rng, count: int, full: bool) -> list[tuple[Any, ...]]:
    longest = 200 if full else 24
    lengths = [0, 1, longest, *rng.integers(1, longest + 1, count)][:count]
    made = [([int(v) for v in rng.integers(0, 3, int(n))], 32 if full else 8) for n in lengths]
    return [*made[:2], ([1] * longest, 8), *made[3:]][:count]


PROGRAMS = (
    Outside(viterbi, observations, share=hidden_model, loss=viterbi_score, wrt=(0, 1, 2)),
    Outside(edit_distance, words),
    Outside(particle_filter, _tracks, loss=particle_filter_likelihood, wrt=(0, 1)),
    Outside(lz77, symbols),
)
