"""Zoo: what is done with the results of children, and which of several exceptions is raised.

Every function is written for one example; nothing here knows that it will be batched.
"""

from __future__ import annotations

import numpy as np
from program import Collection, arrays, integers, pairs
from zoo_records import trees

zoo = Collection()


class Branch:
    def __init__(self, x, left=None, right=None):
        self.x, self.left, self.right = x, left, right


def a_branch(rng, d):
    if d == 0 or rng.random() < 0.25:
        return Branch(rng.normal(size=3))
    return Branch(rng.normal(size=3), a_branch(rng, d - 1), a_branch(rng, d - 1) if rng.random() < 0.8 else None)


def branches(rng, size):
    return [(a_branch(rng, int(rng.integers(0, 5))),) for _ in range(size)]


def fails_at_zero_or_one(a):
    if a == 0:
        raise KeyError("k")
    return 6 // (a - 1)


@zoo.add(integers(-2, 4, 2, first=((0, 5), (1, 0))), raises=True)
def raises_the_first_of_two(a, b):
    x = [1, 2, 3][b]
    y = 10 // a
    return x + y


@zoo.add(integers(-2, 4, 2, first=((2, 2),)), raises=True)
def raises_between_calls(a, b):
    p = fails_at_zero_or_one(a)
    q = fails_at_zero_or_one(b)
    if p > 2:
        raise ValueError("p")
    return p + q


@zoo.add(integers(0, 6, 2, first=((2, 2),)), raises=True)
def raises_inside_a_loop(a, b):
    s = 0
    for i in range(b):
        s += 10 // (i - a)
        if s < -8:
            break
        s += (1, 2, 3, 4)[i]
    return s


@zoo.add(trees, raises=True)
def raises_before_or_after_children(t):
    if t.v > 1.2:
        raise ValueError("big")
    s = 0.0
    for k in t.kids:
        s += raises_before_or_after_children(k)
    if s < -1.0:
        raise KeyError("small")
    return s + t.v


@zoo.add(trees, wrt=(0,))
def adds_children_by_numpy(t):
    return t.v + np.sum([adds_children_by_numpy(k) for k in t.kids])


@zoo.add(trees)
def counts_nodes(t):
    return 1 + sum([counts_nodes(k) for k in t.kids])


@zoo.add(trees, wrt=(0,))
def sums_by_a_list_function(t):
    return t.v * 1.0 + half_of_each(t.kids)


def half_of_each(ks):
    return sum([sums_by_a_list_function(k) * 0.5 for k in ks])


@zoo.add(trees, wrt=(0,))
def weighs_children_by_place(t):
    return t.v + sum([(i + 1) * weighs_children_by_place(k) for i, k in enumerate(t.kids)])


@zoo.add(trees, wrt=(0,))
def pairs_children_with_results(t):
    hs = [pairs_children_with_results(k) for k in t.kids]
    s = t.v
    for h, k in zip(hs, t.kids):
        s = s + h * k.v
    return s


@zoo.add(trees, wrt=(0,))
def splits_children(t):
    return t.v - sum([splits_children(k) for k in t.kids[1:]]) + sum([splits_children(k) for k in t.kids[:1]])


@zoo.add(trees, wrt=(0,))
def leaves_children_early(t):
    s = t.v
    for k in t.kids:
        r = leaves_children_early(k)
        if r < -1.0:
            break
        s = s + r
    else:
        s = s * 0.5
    return s


@zoo.add(trees, wrt=(0,))
def sums_and_heights(t):
    ps = [sums_and_heights(k) for k in t.kids]
    a = sum([p[0] for p in ps])
    b = max([p[1] for p in ps]) if ps else 0
    return a + t.v, b + 1


@zoo.add(trees, wrt=(0,))
def results_in_a_dictionary(t):
    ps = [results_in_a_dictionary(k) for k in t.kids]
    m = 1.0
    for p in ps:
        m = m * p["m"]
    return {"m": m * 0.5 + t.v, "n": sum([p["n"] for p in ps]) + 1}


def squares_from(n, k):
    return sum([i * i for i in range(k, n)])


@zoo.add(integers(0, 7, 1))
def ranges_from_two_starts(n):
    return squares_from(n, 1) + 10 * squares_from(n, 3)


def twice_the_sum(xs):
    return sum([v * 2 for v in xs])


@zoo.add(pairs(arrays((3,)), trees))
def runs_over_several_kinds(x, t):
    return twice_the_sum(x) + twice_the_sum([1, 2]) + twice_the_sum((1.5, 2.5)) + twice_the_sum([k.v for k in t.kids])


@zoo.add(branches, wrt=(0,))
def joins_children_that_are_there(t):
    left = joins_children_that_are_there(t.left) if t.left is not None else None
    r = joins_children_that_are_there(t.right) if t.right is not None else None
    if left is None and r is None:
        return t.x
    if left is None or r is None:
        return (left if r is None else r) * 0.5
    return left * r


@zoo.add(branches, wrt=(0,))
def follows_either_child(t):
    n = t.left or t.right
    if not n:
        return t.x
    return t.x + follows_either_child(n)


@zoo.add(branches, wrt=(0,))
def tests_down_a_path(t):
    if t.left is not None and t.left.left is not None and t.left.left.x[0] > 0:
        return t.left.left.x
    if t.left is None or t.right is None:
        return t.x
    return t.left.x + t.right.x


@zoo.add(branches)
def is_balanced(t):
    if t is None:
        return True, 0
    a, h = is_balanced(t.left)
    b, k = is_balanced(t.right)
    return a and b and abs(h - k) <= 1, max(h, k) + 1


@zoo.add(pairs(branches, integers(0, 4)), wrt=(0,))
def finds_in_order(t, k):
    x, _ = in_order(t, k)
    return x if x is not None else t.x * 0.0


def in_order(t, k):
    if t is None:
        return None, k
    x, k = in_order(t.left, k)
    if x is not None:
        return x, k
    if k == 0:
        return t.x, k
    return in_order(t.right, k - 1)


@zoo.add(branches, share=lambda r: (r.normal(size=(3, 3)), r.normal(size=(3,))), wrt=(0, 1, 2))
def attends_to_children(w, q, t):
    s = [(w @ t.x)]
    if t.left is not None:
        s = s + [attends_to_children(w, q, t.left)]
    if t.right is not None:
        s = s + [attends_to_children(w, q, t.right)]
    m = np.stack(s)
    e = np.exp(m @ q - np.max(m @ q))
    return (e / np.sum(e)) @ m


@zoo.add(trees, wrt=(0,))
def sums_while_there_are_children(t):
    total, i = 0.0, 0
    while i < len(t.kids):
        total = total + sums_while_there_are_children(t.kids[i]) * len(t.kids)
        i += 1
    return np.sin(total) + t.v


@zoo.add(trees, wrt=(0,))
def sums_while_there_are_two_more_children(t):
    total, i = 0.0, 0
    while i < min(len(t.kids), 2):
        total = total + sums_while_there_are_two_more_children(t.kids[i])
        i += 1
    return np.sin(total) + t.v


def halved(x, depth):
    return x if depth <= 0 else halved(x, depth - 1) * 0.5 + x


@zoo.add(trees, wrt=(0,))
def reads_children_while_it_counts(t):
    total, i = 0.0, 0
    while i < len(t.kids):
        total = total + halved(t.kids[i].v, 2)
        i += 1
    return total + t.v
