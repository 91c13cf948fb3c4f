"""Zoo: methods, properties, classes, NamedTuples, dictionaries, strings, and values of several kinds.

Every function is written for one example; nothing here knows that it will be batched.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from program import Collection, Rng, integers, numbers

zoo = Collection()


class Weighted(NamedTuple):
    w: Any
    b: Any


@zoo.add(integers(0, 6, 1))
def counts_in_a_record(n):
    s = Weighted(0, 1)
    while s.w < n:
        s = Weighted(s.w + 1, s.b * 2)
    return s


@zoo.add(numbers(-2, 2, 1), wrt=(0,))
def steps_a_dictionary(x):
    d = {"a": x, "b": 0.0}
    for _ in range(3):
        d = {"a": d["a"] * 0.5, "b": d["b"] + d["a"]}
        if d["b"] > 1.0:
            break
    return d


@zoo.add(integers(-3, 4, 1))
def looks_up_a_key(k):
    d = {0: "zero", 1: "one", 2: "two"}
    if k in d:
        return d[k]
    return "none"


@zoo.add(integers(-3, 4, 1), raises=True)
def misses_a_key(k):
    return {0: 1.0, 1: 2.5, -1: 4.0}[k]


class T:
    def __init__(self, v, kids=(), tag="n"):
        self.v = v
        self.kids = list(kids)
        self.tag = tag

    def size(self):
        n = 1
        for k in self.kids:
            n += k.size()
        return n

    @property
    def total(self):
        return self.v + sum([k.total for k in self.kids])


def a_tree(rng, d):
    return T(
        float(rng.normal()),
        [a_tree(rng, d - 1) for _ in range(rng.integers(0, 4))] if d else [],
        str(rng.choice(["n", "v", "adj"])),
    )


def trees(rng, size):
    return [(a_tree(rng, int(rng.integers(0, 4))),) for _ in range(size)]


@zoo.add(trees, wrt=(0,))
def calls_methods_and_properties(t):
    return t.size() * t.total


@zoo.add(trees)
def finds_or_none(t):
    if t.v > 0.3:
        return t.v
    for k in t.kids:
        r = finds_or_none(k)
        if r is not None:
            return r * 0.5
    return None


@zoo.add(trees, wrt=(0,))
def weighs_by_tag(t):
    w = {"n": 1.0, "v": 2.0}
    if t.tag in w:
        s = 1.5
    else:
        s = 0.5
    for k in t.kids:
        s += weighs_by_tag(k) * (2.0 if k.tag == t.tag else 1.0)
    return s * t.v


@zoo.add(trees, wrt=(0,))
def accumulates_down(t):
    return accumulated(t, 0.0, 1)


def accumulated(t, s, depth):
    s = s + t.v * depth
    for k in t.kids:
        s = accumulated(k, s * 0.9, depth + 1)
    return s


@zoo.add(trees, wrt=(0,))
def largest_of_children(t):
    hs = [largest_of_children(k) for k in t.kids]
    if len(hs) == 0:
        return t.v * 2
    return t.v + sum(hs) / len(hs) + max(hs)


@zoo.add(trees, wrt=(0,))
def first_and_last_child(t):
    hs = [first_and_last_child(k) for k in t.kids]
    if not hs:
        return t.v
    return hs[0] * 0.5 + hs[-1] + t.v


@zoo.add(trees, wrt=(0,))
def returns_pairs_up(t):
    m, n = t.v, 1
    for k in t.kids:
        a, b = returns_pairs_up(k)
        m = max(m, a)
        n = n + b
    return m, n


@dataclass
class Number:
    x: float

    def val(self):
        return self.x

    @property
    def name(self):
        return "leaf"


@dataclass
class Add:
    a: Any
    b: Any

    def val(self):
        return self.a.val() + self.b.val()

    @property
    def name(self):
        return "add"


@dataclass
class Mul:
    a: Any
    b: Any
    c: float = 1.0

    def val(self):
        return self.a.val() * self.b.val() * self.c

    @property
    def name(self):
        return "mul"


@dataclass
class Neg(Add):
    def val(self):
        return -(self.a.val())


def an_expression(rng, d):
    k = rng.integers(0, 4) if d else 0
    if k == 0:
        return Number(float(rng.normal()))
    a, b = an_expression(rng, d - 1), an_expression(rng, d - 1)
    return [None, Add(a, b), Mul(a, b, 0.5), Neg(a, b)][k]


def expressions(rng, size):
    return [(an_expression(rng, int(rng.integers(0, 4))),) for _ in range(size)]


@zoo.add(expressions, wrt=(0,))
def evaluates_by_method(e):
    return e.val()


@zoo.add(expressions, wrt=(0,))
def evaluates_by_class(e):
    if isinstance(e, (Add, Mul)):
        if not isinstance(e, Mul):
            if isinstance(e, Neg):
                return -evaluates_by_class(e.a)
            return evaluates_by_class(e.a) + evaluates_by_class(e.b)
        return e.c * evaluates_by_class(e.b) * evaluates_by_class(e.a)
    return e.x


@zoo.add(expressions)
def names_by_property(e):
    n = e.name
    if n == "leaf":
        return 1
    return names_by_property(e.a) + (2 if n == "add" else 3)


@zoo.add(expressions, raises=True)
def reads_a_field_that_some_lack(e):
    return e.a.x if not isinstance(e, Number) else 0.0


def several_kinds(rng, size):
    kinds = [None, 1.5, "s", (2, 3.0), rng.normal(size=2), np.float64(3)]
    drawn = [[kinds[k] for k in rng.integers(0, 6, rng.integers(1, 5))] for _ in range(size)]
    return [(v, vs) for v, *vs in drawn]


def kind_of(v):
    if v is None:
        return 0.0
    if isinstance(v, str):
        return 1.0 if v == "s" else 2.0
    if isinstance(v, tuple):
        return v[0] * v[1]
    if isinstance(v, np.ndarray):
        return v[0] + v[1]
    return v + 1


@zoo.add(several_kinds)
def tells_kinds_apart(v, vs):
    s = kind_of(v)
    for w in vs:
        s = s * 2 + kind_of(w)
    return s


@zoo.add(several_kinds, raises=True)
def reads_the_shape_of_any(v, vs):
    return v.shape[0]


@dataclasses.dataclass
class Vector:
    x: float
    y: float

    def dot(self, o):
        return self.x * o.x + self.y * o.y

    def __add__(self, o):
        return Vector(self.x + o.x, self.y + o.y)

    @property
    def n(self):
        return math.sqrt(self.dot(self))


def vectors(rng, size):
    return [(Vector(float(rng.normal()), float(rng.normal())), Vector(1.0, float(rng.normal()))) for _ in range(size)]


@zoo.add(vectors, wrt=(0, 1))
def uses_a_dataclass(a, b):
    return a.dot(b) * a.n + b.n


@zoo.add(integers(0, 5, 1))
def returns_text_or_number(n):
    if n == 0:
        return "none"
    return n


def _coordinates(rng: Rng, size: int) -> list[tuple[Any, ...]]:
    few = [(float(a), int(b), float(c), int(d)) for a, b, c, d in rng.integers(0, 3, (size, 4))]
    return [(0.0, 1, 0.0, 1), (0.0, 1, 0.0, 2), (1.0, 0, 0.0, 2), *few][:size]


@zoo.add(_coordinates)
def orders_tuples_and_lists(a, b, c, d):
    p, q = (a, b), (c, d)
    best = p if p < q else q
    nested = (p, 1) <= (q, 0), (p, b) > (q, d)
    shorter = (a,) < q, p >= (c, d, 0), [a, b] < [c, d]
    return best[0] * 2.0 + best[1], p < q <= (2.0, 1), nested, shorter


@zoo.add(numbers(-1, 1, 4), wrt=(0, 1, 2, 3))
def takes_the_smallest_pair(a, b, c, d):
    pairs = [(a, b), (c, d), (a * c, b + d)]
    best = pairs[0]
    for pair in pairs[1:]:
        if pair < best:
            best = pair
    return best[0] * 2.0 + best[1] * best[1]
