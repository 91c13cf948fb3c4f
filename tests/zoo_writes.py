"""Zoo: arrays, dictionaries of known keys and records that the program writes to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from program import Collection, arrays, integers, numbers, pairs, sequences

zoo = Collection()


# ------------------------------------------------------------------------------------------------ arrays
@zoo.add(pairs(arrays((3,)), integers(0, 6, first=((0,), (5,)))), wrt=(0,))
def fills_an_array(x, n):
    a = np.ones(6)
    for i in range(n):
        a[i] = x[i % 3] * a[i - 1]
        if i > 2:
            a[i - 1] += x[0] ** 2
    return a


@zoo.add(pairs(arrays((3,)), integers(-3, 3, first=((-3,), (2,)))), wrt=(0,))
def writes_rows_and_columns(x, n):
    c = x.copy()
    c[1:] *= c[:-1]
    m = np.zeros((3, 3))
    m[n] = c
    m[:, 1] += x
    v = m.T
    v[0, 2] = x[1]
    return m @ x, np.sum(v[n])


@zoo.add(arrays((3,), (2, 3)), wrt=(0, 1))
def writes_through_views(x, m):
    r = m[1]
    r[0] = x[2]
    r += x
    part = m[:, 1:]
    part *= 2.0
    flat = x[None, :]
    flat[0, 1] = 7.0 * x[0]
    return m, x, np.sum(r)


@zoo.add(pairs(arrays((4,)), integers(0, 4)), wrt=(0,))
def writes_by_index_arrays_and_masks(x, n):
    a = np.zeros(4)
    a[np.array([0, 2, 0])] = x[:3]
    a[a > 0.3] = x[1]
    a[x < 0.0] += 1.0
    b = np.zeros((4, 2))
    b[np.array([n, 1])] = x[:2]
    return a * x, b


@zoo.add(pairs(arrays((3,)), integers(0, 7, first=((0,), (6,)))), wrt=(0,))
def swaps_two_buffers(x, n):
    before, now = x.copy(), np.zeros(3)
    i = 0
    while i < n:
        now[i % 3] = before[(i + 1) % 3] * 0.5 + before[0]
        before, now = now, before
        i += 1
    return before, now


@zoo.add(sequences(0, 9), wrt=(0,))
def sorts_by_insertion(x):
    a = x.copy()
    for i in range(1, len(a)):
        key = a[i]
        j = i - 1
        while j >= 0 and a[j] > key:
            a[j + 1] = a[j]
            j -= 1
        a[j + 1] = key
    return np.sum(a * np.arange(len(a)))


@zoo.add(sequences(0, 7), wrt=(0,))
def sorts_by_bubbles(x):
    a = x.copy()
    n = len(a)
    done = False
    while not done:
        done = True
        for i in range(n - 1):
            if a[i] > a[i + 1]:
                a[i], a[i + 1] = a[i + 1], a[i]
                done = False
        n -= 1
    return np.sum(a * np.arange(len(a)))


@zoo.add(arrays((3, 2)), wrt=(0,))
def swaps_rows_as_numpy_does(m):
    m[0], m[1] = m[1], m[0]
    m[[1, 2]] = m[[2, 1]]
    return m


@zoo.add(pairs(arrays((4,)), integers(-1, 6, first=((-1,), (5,), (4,)))), raises=True)
def writes_out_of_range(x, n):
    a = np.zeros(4)
    if x[0] > -10.0:
        a[n] = x[0]
    return a


def _put(a, i, v):
    a[i] = v
    return a


def _halve(a, depth):
    if depth == 0 or len(a) < 2:
        return 0
    a *= 0.5
    middle = len(a) // 2
    return 1 + _halve(a[:middle], depth - 1) + _halve(a[middle:], depth - 1)


@zoo.add(pairs(arrays((8,)), integers(0, 4, first=((0,), (3,)))), wrt=(0,))
def writes_in_callees(x, n):
    a = np.zeros(4)
    b = _put(a, n, x[0])
    _put(b, 0, x[1])
    y = x.copy()
    count = _halve(y, n)
    return a, y, count


@zoo.add(pairs(arrays((3,)), integers(0, 4)), wrt=(0,))
def keeps_what_it_is_given(x, n):
    """What is bound before a write, and is not the same array, stays."""
    a = np.zeros(3)
    old = a + 0.0
    first = a[0]
    a[0] = x[0]
    copy = a.copy()
    if n > 1:
        a[1] = x[1]
    else:
        a = a * 2.0
    a[2] = first + x[2]
    return a, old, copy


@zoo.add(numbers(-2.0, 2.0), wrt=(0,))
def writes_integers(x):
    a = np.zeros(3, dtype=np.int32)
    a[0] = 1.75
    a[1] += 2
    b = np.zeros(2, dtype=np.float32)
    b[0] = x
    b += 1
    return a, b * 0.0, a[0] * x


# ------------------------------------------------------------------------------------------------ dictionaries, records
@dataclass
class Particle:
    place: Any
    speed: float
    hits: int = 0


@zoo.add(pairs(numbers(-2.0, 2.0, 2), integers(0, 6)), wrt=(0, 1))
def moves_a_particle(x, v, n):
    p = Particle(x, v)
    q = p
    for _ in range(n):
        q.place += 0.5 * p.speed
        if p.place > 1.0:
            p.speed = -p.speed
            p.hits += 1
    return p.place, q.speed, p.hits


@zoo.add(pairs(numbers(-2.0, 2.0), integers(0, 4)), wrt=(0,))
def counts_in_a_dictionary(x, n):
    d = {"up": 0.0, "down": 1.0}
    for k in range(n):
        if x * k > 1.0:
            d["up"] += x
        else:
            d["down"] *= 0.5
    d["both"] = d["up"] + d["down"]
    return d["both"], d["up"]


# ------------------------------------------------------------------------------------------------ index arrays, masks
@zoo.add(pairs(arrays((3, 4)), integers(-2, 3)), wrt=(0,))
def reads_and_writes_elements_at_once(m, i):
    rows, columns = np.array([0, 2, 0]), np.array([i, 1, i])
    picked = m[rows, columns]
    m[rows, columns] = picked * 2.0
    m[[1, 2], i] += 1.0
    m[m < -0.5] *= 0.5
    m[m > 1.0] = m[m > 1.0] - 1.0
    return m, picked, m[i, [0, 3]]


@zoo.add(sequences(0, 6), wrt=(0,))
def keeps_what_a_mask_holds(x):
    kept = x[x > 0.0]
    y = x.copy()
    y[y < 0.0] = -y[y < 0.0]
    return np.sum(kept * kept), len(kept), np.sum(np.sqrt(y))


@zoo.add(pairs(arrays((4,)), integers(0, 4)), wrt=(0,))
def adds_where_places_repeat(x, i):
    a = np.zeros(4)
    np.add.at(a, np.array([i, 1, i]), x[:3])
    np.subtract.at(a, [3, 3], x[1])
    b = np.zeros((2, 4))
    np.add.at(b, (np.array([0, 1, 0]), np.array([i, i, i])), x[1:])
    return a, b


@zoo.add(pairs(arrays((3,)), integers(0, 5)), raises=True)
def reads_a_place_that_may_be_out_of_range(x, i):
    m = np.outer(x, x)
    return m[np.array([0, 1]), np.array([i, 1])]
