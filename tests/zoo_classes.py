"""Zoo: operators and calls that the program's own classes define, inherited and overridden, names and loops.

Every function is written for one example; nothing here knows that it will be batched.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from program import Collection, integers, numbers

zoo = Collection()


class Vec:
    """Two numbers with every kind of special method."""

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __add__(self, other):
        return self.x + other.x * 10.0 + self.y + other.y

    def __mul__(self, k):
        return self.x * k

    def __rmul__(self, k):
        return self.y * k

    def __rsub__(self, k):
        return k - self.x

    def __neg__(self):
        return -self.x

    def __eq__(self, other):
        return self.x == other.x

    def __lt__(self, other):
        return self.x < other.x

    def __call__(self, t, u=1.0):
        return self.x * t + self.y * u

    def __getitem__(self, i):
        return self.x if i == 0 else self.y

    def __len__(self):
        return 2

    def __bool__(self):
        return self.x > 0.0

    def __contains__(self, v):
        return v == self.x

    def __abs__(self):
        return abs(self.x)

    @property
    def norm(self):
        return math.sqrt(self.x * self.x + self.y * self.y)

    @staticmethod
    def half(t):
        return t / 2.0

    @classmethod
    def thrice(cls, t):
        return cls.half(t) * 6.0

    def shown(self):
        return self.x


class Sub(Vec):
    """Overrides some, and asks its base."""

    def __call__(self, t, u=1.0):
        return super().__call__(t, u) + 100.0

    def __add__(self, other):
        return super().__add__(other) - 5.0

    def __radd__(self, other):
        return other.y * 2.0

    @property
    def norm(self):
        return super().norm * 2.0

    def shown(self):
        return super().shown() * self.y


@dataclass
class Point:
    a: float
    b: float = 2.0

    def __add__(self, other):
        return Point(self.a + other.a, self.b + other.b)

    def scaled(self, k):
        return Point(self.a * k, self.b)

    @property
    def double(self):
        return self.a * 2.0


class Named(NamedTuple):
    a: float
    b: float

    def total(self):
        return self.a + self.b


def _vecs(rng, size):
    def one(k):
        cls = Sub if k % 3 == 1 else Vec
        return cls(float(rng.normal()), float(rng.normal()))

    return [(one(k), one(k + k // 3)) for k in range(size)]


def _chains(rng, size):
    """Vectors of one class only."""
    return [(Vec(float(rng.normal()), float(rng.normal())), Vec(float(k % 3), 1.0)) for k in range(size)]


@zoo.add(_vecs, wrt=(0, 1))
def adds_by_class(v, w):
    return (v + w) * 0.1


@zoo.add(_vecs, wrt=(0, 1))
def scales_and_negates(v, w):
    return v * 2.0 + 3.0 * w - -v + abs(w) + (1.0 - v)


@zoo.add(_vecs)
def compares_by_method(v, w):
    return v == w, v != w, v < w, v > w, 1.0 in v, w.x in w


@zoo.add(_vecs, wrt=(0, 1))
def calls_objects(v, w):
    return v(2.0) + w(1.0, u=3.0) + v[0] * w[1] + len(v) + (1.0 if w else 2.0)


@zoo.add(_vecs, wrt=(0, 1))
def looks_up_in_classes(v, w):
    return v.norm + v.half(w.x) + Vec.half(1.0) + v.thrice(w.y) + Sub.thrice(1.0) + w.shown()


@zoo.add(_chains, wrt=(0,))
def builds_and_adds(v, w):
    p = Point(v.x) + Point(w.x, b=w.y)
    p += Point(1.0, v.y)
    n = Named(p.a, v.y)
    same = 1.0 if Point(1.0, 2.0) == Point(1.0, w.y) or n == (p.a, 5.0) else 2.0
    return p.scaled(2.0).b * p.double + n.total() * same


@zoo.add(numbers(-2, 2, 4), wrt=(0, 1, 2, 3))
def unpacks_with_a_star(a, b, c, d):
    p, *q = (a, b, c, d)
    *r, s = q
    (t, *u), w = (r, s)
    first, *_, last = "x", a, b
    return p + q[0] * 2.0 + r[1] + s * t + len(u) + w + last + len(first)


@zoo.add(numbers(-2, 2, 2), wrt=(0, 1))
def runs_over_strings_and_dictionaries(x, y):
    total = 0.0
    for character in "abca":
        if character == "a":
            total = total + x
        else:
            total = total * y
    table = {"p": x, "q": y}
    for key, value in table.items():
        total = total + value * (2.0 if key == "p" else 3.0)
    for key in table:
        total = total + len(key)
    for key in table.keys():
        total = total + table[key]
    for value in table.values():
        if value > 1.0:
            break
        total = total * value
    else:
        total = total + 10.0
    return total


@zoo.add(integers(-5, 6, 2, first=((4, -1), (-5, 2))))
def ranges_with_any_step(n, step):
    total = 0
    if step == 0:
        step = 7
    for i in range(n, -9, -3):
        total = total * 3 + i
    for i in range(-n, n, step):
        total = total + i * 5
    for i in range(10, n, -step):
        total = total - i
    return total


@zoo.add(integers(-2, 3, 1), raises=True)
def ranges_with_a_zero_step(n):
    total = 0
    for i in range(0, 10, n):
        total = total + i
    return total


@zoo.add(numbers(-2, 2, 3), wrt=(0, 1, 2))
def nests_iterators(x, y, z):
    total = 0.0
    for i, (a, (j, b)) in enumerate(zip((x, y), enumerate([y, z], 5))):
        total = total + i * a + j * b
    for i, a in reversed(list(enumerate((x, y)))):
        total = total * 2.0 + i * a
    return total


@zoo.add(numbers(-2, 2, 2), wrt=(0, 1))
def binds_inside_expressions(x, y):
    if (t := x * 2.0) > 1.0 and (u := t + y) > 1.5:
        return u * t
    found = [k := i * x for i in (1.0, 2.0, 3.0)]
    while (t := t - 0.5) > -2.0:
        pass
    return t + k + found[0] + (w if (w := y) > 0.0 else x)


@zoo.add(integers(0, 7, 2))
def leaves_by_the_else_of_a_loop(n, m):
    total = 0
    for i in range(n):
        for j in range(m):
            if j * i > 3:
                break
            total += 1
        else:
            if i > 2:
                break
            total += 100
            continue
        total += 1000
    else:
        return -total
    return total


@zoo.add(numbers(-2, 2, 2), wrt=(0, 1))
def shadows_builtins(x, y):
    max = min  # noqa: A001
    len = lambda q: q * 2.0  # noqa: A001, E731
    return max(x, y) + len(x)
