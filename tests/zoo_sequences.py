"""Zoo: ragged arrays, lists of lists and of arrays, comprehensions and what is made of them.

Every function is written for one example; nothing here knows that it will be batched.
"""

from __future__ import annotations

import numpy as np
from program import Collection, arrays, integers, pairs, sequences

zoo = Collection()


@zoo.add(sequences(0, 6), wrt=(0,))
def sums_of_slices(x):
    return np.sum(x[1:] * x[:-1]) + np.sum(x[::2]) - np.sum(x[-2:]) + np.sum(x[::-1][:2]) + np.sum(x[3:1])


@zoo.add(sequences(0, 6), raises=True)
def reads_from_the_end(x):
    return x[-2] + x[1]


@zoo.add(sequences(0, 6), wrt=(0,))
def mean_or_zero(x):
    return np.mean(x) if len(x) else 0.0


@zoo.add(sequences(0, 6, 3), share=lambda rng: (rng.normal(size=(3, 2)), rng.normal(size=2)), wrt=(0, 1, 2))
def ragged_rows_by_a_matrix(w, b, x):
    h = np.tanh(x @ w + b)
    return np.sum(h, axis=0)


@zoo.add(sequences(1, 6, 3), wrt=(0,))
def attends(x):
    s = x @ x.T
    s = s - np.max(s, axis=1, keepdims=True)
    e = np.exp(s)
    a = e / np.sum(e, axis=1, keepdims=True)
    return np.sum(a @ x, axis=0)


@zoo.add(sequences(1, 6), wrt=(0,))
def outer_products(x):
    return np.sum(np.outer(x, x) * 0.5), np.outer(x, x[:1])


@zoo.add(sequences(1, 6), wrt=(0,))
def distances(x):
    return np.sum((x[:, None] - x[None, :]) ** 2)


def two_sequences(rng, size):
    """Of equal length, but for every seventh example."""
    lengths = [(int(n), int(n) + (k % 7 == 4)) for k, n in enumerate(rng.integers(1, 4, size))]
    return [(rng.normal(size=n), rng.normal(size=m)) for n, m in lengths]


@zoo.add(two_sequences, raises=True)
def adds_two_sequences(x, y):
    return x + y


@zoo.add(two_sequences, raises=True)
def multiplies_two_sequences(x, y):
    return np.dot(x, y)


@zoo.add(two_sequences, wrt=(0, 1))
def compares_shapes(x, y):
    if x.shape == y.shape:
        return x @ y
    if len(x) > len(y):
        return np.sum(x)
    return np.sum(y) * 2


@zoo.add(two_sequences, wrt=(0, 1))
def joins_sequences(x, y):
    z = np.concatenate([x, y, x[:1]])
    return np.sum(z * np.arange(len(z)))


@zoo.add(sequences(1, 6), wrt=(0,))
def stacks_a_comprehension(x):
    ys = [(k + 1) * v for k, v in enumerate(x)]
    return np.stack(ys)


@zoo.add(sequences(1, 6), wrt=(0,))
def nests_comprehensions(x):
    ys = [sum([a * b for b in x]) for a in x]
    return np.sum(np.array(ys))


@zoo.add(arrays((2, 3)), wrt=(0,))
def joins_a_comprehension(x):
    rows = [x[i] * (i + 1) for i in range(2)]
    return np.concatenate(rows) + np.hstack(rows), sum([r.sum() for r in rows])


@zoo.add(integers(0, 6, 2))
def lists_of_ranges(n, m):
    r = list(range(n))
    z = list(zip(r, range(m)))
    e = tuple(enumerate(z))
    return (
        len(r),
        len(z),
        sum(r),
        sum([a * b for a, b in z]),
        sum([i * a for i, (a, b) in e]),
        max([1] + [2]),
        sum(k * 2 for k in range(n)),
    )


@zoo.add(sequences(0, 5))
def extremes_of_lists(x):
    ys = [v * 2 for v in x]
    return (
        max(ys) if ys else 0.0,
        min(ys) if len(ys) > 0 else 1.0,
        any([y > 1 for y in ys]),
        all([y > -1 for y in ys]),
        any(v > 0 for v in x),
        all(v > 0 for v in x),
    )


def lists_with_nan(rng, size):
    return [
        ([float(v) if rng.random() < 0.7 else float("nan") for v in rng.integers(-3, 3, rng.integers(1, 5))],)
        for _ in range(size)
    ]


@zoo.add(lists_with_nan)
def largest_among_nan(xs):
    return max(xs), min(xs), max([1.0, *[2.0]]), max(xs[0], 0.0)


@zoo.add(sequences(0, 5), raises=True)
def largest_of_none(x):
    return max([v * 2 for v in x])


def nested(rng, size):
    return [
        ([[float(v) for v in rng.normal(size=rng.integers(0, 4))] for _ in range(rng.integers(0, 4))],)
        for _ in range(size)
    ]


@zoo.add(nested, wrt=(0,))
def walks_lists_of_lists(xss):
    t = 0.0
    for xs in xss:
        m = 0.0
        for x in xs:
            if x > m:
                m = x
            elif x < -1.5:
                break
        else:
            t += 1
        t += m
    return t


def lists_of_sequences(rng, size):
    return [([rng.normal(size=int(rng.integers(0, 4))) for _ in range(rng.integers(0, 4))],) for _ in range(size)]


@zoo.add(lists_of_sequences, wrt=(0,))
def walks_lists_of_sequences(xs):
    s = 0.0
    for i, x in enumerate(xs):
        for j, v in enumerate(x):
            if v < -1:
                break
            s = s + v * (i + 1) * (j + 2)
    return s


def lists_of_pairs(rng, size):
    return [([(int(rng.integers(0, 3)), float(rng.normal())) for _ in range(rng.integers(0, 5))],) for _ in range(size)]


@zoo.add(lists_of_pairs, wrt=(0,))
def pairs_of_pairs(ps):
    s = 0.0
    for i, (k, v) in enumerate(ps):
        for m, w in ps[i:]:
            if m == k:
                s += v * w
    return s


@zoo.add(pairs(arrays((3,)), integers(0, 3)), wrt=(0,))
def picks_from_a_tuple(x, k):
    return (x[0], x[1] * 2, x[2])[k]


@zoo.add(pairs(arrays((4,)), integers(-5, 6, 2)), wrt=(0,))
def slices_by_numbers(x, a, b):
    return np.sum(x[a:b]) + np.sum(x[a:]) * 2 + np.sum(x[:b:2])


@zoo.add(sequences(0, 5), wrt=(0,))
def shifts_a_window(x):
    s = np.zeros(3)
    for t, v in enumerate(x):
        s = np.concatenate([s[1:], np.array([v * (t + 1)])])
    return s


@zoo.add(pairs(arrays((3,)), integers(0, 6, first=((0,), (5,)))), wrt=(0,))
def zips_what_is_fixed_with_what_is_not(x, n):
    numbers = [0.5 * k + x[0] for k in range(n)]
    s = x[1]
    for weight, v in zip((x[2], x[1], x[0] * 2.0), numbers):
        s += weight * v
    for (p, q), k, v in zip([(1, 2.0), (3, 4.0)], range(n), numbers):
        s += p * v + q * k
    products = [a * v for a, v in zip([0.1, 0.2, 0.3, 0.4], numbers)]
    return s, sum(products, 0.0 * s), len([v for _, v in zip((), numbers)])


@zoo.add(sequences(0, 6, 2), wrt=(0,))
def keeps_the_largest_pair(x):
    best = (0.0, -1)
    lowest = (1.0, 0, 0)
    for k in range(len(x)):
        best = max(best, (x[k, 0] + x[k, 1], k))
        lowest = min(lowest, (x[k, 0], k, k), (x[k, 1], k, -k))
    return best, lowest


def two_lists(rng, size):
    few = [[int(v) for v in rng.integers(0, 2, int(n))] for n in rng.integers(0, 3, 2 * size)]
    return [([], []), ([1, 0], [1, 0]), ([1], [1, 0]), *zip(few[::2], few[1::2])][:size]


@zoo.add(two_lists)
def compares_lists_of_any_length(xs, ys):
    ones = [x for x in xs if x == 1]
    return xs == ys, xs != ys, xs == [1, 0], ones == [y for y in ys if y == 1], (len(xs), xs) == (len(ys), ys)
