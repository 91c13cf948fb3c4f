"""Zoo: jumps out of every kind of loop, names that one path binds, rotations, ands and ors as values.

Every function is written for one example; nothing here knows that it will be batched.
"""

from __future__ import annotations

import numpy as np
from program import Collection, integers, numbers, pairs, sequences

zoo = Collection()


@zoo.add(numbers(-2, 2, 2), wrt=(0, 1))
def binds_on_one_branch(x, y):
    if x > 0:
        z = x * y
    if y > 0:
        z = y * 2.0
        w = z + 1.0
    else:
        w = 0.5
    if x > 0 or y > 0:
        return z + w
    return w


@zoo.add(numbers(-2, 2, 1, first=((0.5,),)), raises=True)
def binds_for_some_only(x):
    if x > 0:
        y = x
    return y


@zoo.add(
    integers(0, 6, 2),
)
def rotates_integers(n, m):
    a, b, c = 1, 2, 3
    for i in range(n):
        a, b, c = b, c, a + i
        for j in range(m):
            a, b = b, a + j
            if j == 2:
                break
        else:
            c = c + 1
    return a, b, c


@zoo.add(pairs(integers(0, 6, 1), numbers(-1, 1, 3)), wrt=(1, 2, 3))
def rotates_floats(n, x, y, z):
    for i in range(n):
        x, y, z = y, z * x, x + 0.1 * i
        j = 0
        while j < i:
            y, z = z, y
            j += 1
            if y > 1.0:
                break
    return x * 1.0 + y * 2.0 + z * 3.0


@zoo.add(integers(-2, 6, 1))
def reads_loop_variables_after(n):
    i = -7
    for i in range(n):  # noqa: B007
        pass  # noqa: B007
    j = -1
    for j in range(2, n, 2):
        if j == 4:
            break
    else:
        j = j + 100
    return i, j


@zoo.add(sequences(0, 6), raises=True)
def reads_an_unbound_loop_variable(xs):
    for x in xs:  # noqa: B007
        pass
    return x


def lists(rng, size):
    return [([float(v) for v in rng.normal(size=rng.integers(0, 6))],) for _ in range(size)]


@zoo.add(lists, wrt=(0,))
def returns_out_of_enumerate(xs):
    s = 0.0
    for k, x in enumerate(xs, 2):
        if x < -1.0:
            continue
        if x > 1.5:
            return s - x
        s += k * x
    return s


@zoo.add(lists, wrt=(0,))
def breaks_out_of_zip_reversed(xs):
    s = 0.0
    p = 1.0
    for a, b in zip(xs, reversed(xs)):
        s = s + a * b * p
        p = p * 0.5
        if s > 2.0:
            break
    return s + p


@zoo.add(numbers(-2, 2, 3), wrt=(0, 1, 2))
def breaks_out_of_a_tuple(x, y, z):
    s = 0.0
    for v in (x, y, z):
        if v < -1.0:
            break
        if v < 0.0:
            continue
        s = s * 0.5 + v
    else:
        s = s + 10.0
    return s


@zoo.add(numbers(-2, 2, 2), wrt=(0, 1))
def continues_over_dictionary_items(x, y):
    d = {"a": x, "b": y, "c": 3}
    s = 1.0
    for k, v in d.items():
        if k == "b" and v > 0:
            continue
        s = s * v
    for k in d:
        s += d[k]
    return s


@zoo.add(numbers(-2, 2, 3), wrt=(0, 1, 2))
def jumps_in_nested_tuples(x, y, z):
    s = 0.0
    for a in (x, y, z):
        for b in (1.0, 2.0, -1.0):
            if a * b > 1.5:
                break
            if a < 0:
                continue
            for i in range(2):
                if i * b > a:
                    break
                s = s + a * b
        else:
            continue
        if s > 3.0:
            break
    return s


@zoo.add(numbers(-2, 2, 2), wrt=(0, 1))
def breaks_between_kinds(x, y):
    r = None
    for k, v in (("a", x), ("b", (x, y)), ("c", None)):
        if k == "b" and x > 0:
            break
        r = v
    if r is None:
        return 0.5 * x
    if isinstance(r, tuple):
        return r[0] * r[1]
    return r


@zoo.add(numbers(-2, 2, 2), wrt=(0, 1))
def chooses_by_and_or(x, y):
    a = x > 0 and x or y
    b = x and y
    c = (y < 0 and 2) or 3.5
    return a * b + c


@zoo.add(integers(-3, 4, 2))
def chooses_integers_by_and_or(a, b):
    return (a and b), (a or b), (not a), a > 0 and b > 0, (0 or a), (None or b)


def increased(a):
    return a + 1


@zoo.add(integers(-3, 6, 3))
def chains_calls(a, b, c):
    return increased(a) < increased(b) <= increased(c) != 3, 0 < increased(a) < 3


@zoo.add(integers(-3, 6, 3, first=((3, 1, 0), (0, 1, 0))), raises=True)
def chains_stop_early(a, b, c):
    if a < b < 10 // c:
        return 1
    return 0


@zoo.add(integers(0, 7, 2))
def breaks_three_deep(n, m):
    c = 0
    i = 0
    while True:
        if i >= n:
            break
        for j in range(m):
            if j > i:
                break
            if (i + j) % 3 == 0:
                continue
            c += j
            while c % 5 != 0:
                c += 1
                if c > 40:
                    return c, i, j
        i += 1
    return c, i, 0


@zoo.add(numbers(-2, 2, 1), wrt=(0,))
def names_while_testing(x):
    if (y := x * 2) > 1.0:
        return y
    while (y := y + 0.7) < 1.0:
        pass
    return y * x


@zoo.add(integers(0, 5, 1))
def keeps_the_best_or_none(n):
    best = None
    for i in range(n):
        v = (i * 7) % 5
        if best is None or v > best:
            best = v
    return -1 if best is None else best


@zoo.add(numbers(-2, 2, 1), wrt=(0,))
def returns_out_of_while_true(x):
    n = 0
    while True:
        x = x * 0.5 + 0.3
        n += 1
        if x > 0.5 or n > 5:
            return x * n


@zoo.add(sequences(0, 4, 3), share=lambda rng: (rng.normal(size=(3, 3)),), wrt=(0, 1))
def steps_until_it_breaks(w, x):
    h = np.zeros(3)
    for t, row in enumerate(x):
        if row[0] < -1.2:
            continue
        h = np.tanh(w @ h + row)
        if h @ h > 2.0 and t > 0:
            h = h * 0.5
            break
    else:
        h = h + 1.0
    return h
