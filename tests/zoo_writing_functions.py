"""Zoo: programs that write, through inner functions, handlers and special methods.

Every function is written for one example; nothing here knows that it will be batched.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from program import Collection, integers, numbers, pairs, sequences

zoo = Collection()


@zoo.add(integers(0, 6, 1))
def appends_through_an_inner_function(n):
    found = []

    def visit(k):
        if k > 0:
            found.append(k)
            visit(k - 1)
            found.append(-k)

    visit(n)
    total = 0
    for i, v in enumerate(found):
        total = total * 2 + v * i
    return total, len(found)


@zoo.add(sequences(0, 6), wrt=(0,))
def writes_an_array_around(xs):
    out = np.zeros(4)

    def put(k, v):
        out[k % 4] += v

    for k in range(len(xs)):
        put(k, xs[k] * 2.0)
        if out[k % 4] > 3.0:
            break
    return out * out


@zoo.add(pairs(integers(0, 5, 1), numbers(-1, 1, 1)), wrt=(1,))
def keeps_a_list_of_functions(n, x):
    fs = []
    for i in range(n):
        fs.append(lambda t, i=i: t * x + i)
    r = 1.0
    for f in fs:
        r = f(r)
    return r


@zoo.add(integers(0, 8, 2))
def writes_before_it_raises(n, k):
    log = [0, 0, 0]

    def step(i):
        log[0] += 1
        if i == k:
            raise KeyError(i)
        log[1] += 12 // (i - 3)

    try:
        for i in range(n):
            step(i)
    except KeyError:
        log[2] += 100
    except ZeroDivisionError:
        log[2] += 1000
    finally:
        log[0] = log[0] * 10
    return log[0], log[1], log[2]


def _fill(out, x):
    out[0] = x
    out[1] = math.sqrt(x)
    out[2] = 1.0
    return out


@zoo.add(numbers(-2, 2, 1), wrt=(0,))
def fills_what_it_can(x):
    out = np.zeros(3)
    same = out
    try:
        _fill(out, x)
    except ValueError:
        same[2] = -1.0
    return out * 2.0


@dataclass
class Counter:
    count: int
    total: float

    def __call__(self, v):
        self.count += 1
        self.total = self.total + v
        return self.total

    def __iadd__(self, v):
        self.total = self.total + v
        return self

    def bump(self, v):
        self.count += 10
        return self(v)


@zoo.add(numbers(-2, 2, 2), wrt=(0, 1))
def counts_calls_of_a_record(x, y):
    c = Counter(0, x)
    d = c
    d += y
    first = c(y)
    if x > 0.0:
        d.bump(y * y)
    return c.total * first + d.count


@zoo.add(pairs(integers(0, 5, 1), numbers(-1, 1, 1)), wrt=(1,))
def swaps_lists_in_a_loop_with_handlers(n, x):
    a, b = [x, 1.0], [2.0, x]
    for i in range(n):
        try:
            a, b = b, a
            a[i % 2] = a[i % 2] + 1.0 / (i - 2)
        except ZeroDivisionError:
            b.append(x)
        else:
            b[0] = b[0] * 0.5
    total = 0.0
    for v in a + b:
        total = total * 0.5 + v
    return total


@zoo.add(numbers(-2, 2, 1), wrt=(0,))
def shares_a_list_with_an_inner_function(x):
    values = [x]

    def last():
        return values[-1] * 2.0

    first = last()
    values.append(x + 1.0)
    second = last()
    values = [10.0]
    return first + second * last()


@zoo.add(integers(0, 6, 1), raises=True)
def raises_with_what_was_written(n):
    log = []
    for i in range(n):
        log.append(i)
    if n > 3:
        text = f"{len(log)} items, {log[0]} first"
        log[0] = 7
        raise ValueError(text, log[0])
    return n
