"""Zoo: functions inside functions, functions as values, and the ways in which arguments meet parameters.

Every function is written for one example; nothing here knows that it will be batched.
"""

from __future__ import annotations

import functools

import numpy as np
from program import Collection, integers, numbers, pairs, sequences
from zoo_trees import _lopsided_trees

zoo = Collection()


@zoo.add(numbers(-2, 2, 2), wrt=(0, 1))
def reads_around(x, y):
    k = x * 2.0

    def inner(z):
        return z * k + y

    return inner(y) * inner(1.0)


@zoo.add(numbers(-2, 2, 1), wrt=(0,))
def reads_late(x):
    k = x

    def f(z):
        return z * k

    early = f(3.0)
    k = x + 1.0
    if x > 0.0:
        k = k * k
    return early + f(2.0)


@zoo.add(pairs(integers(0, 5, 1), numbers(-1, 1, 1)), wrt=(1,))
def reads_the_loop_variable(n, x):
    total = x

    def scaled():
        return total * 0.5 + i

    i = -1
    for i in range(n):  # noqa: B007
        total = total + scaled() * x
    return scaled()


@zoo.add(pairs(integers(0, 5, 1), numbers(-1, 1, 1)), wrt=(1,))
def writes_around(n, x):
    total, count = 0.0, 0

    def bump(v):
        nonlocal total, count
        if v > 0.0:
            total = total + v * x
        count += 1
        return total

    for i in range(n):
        if bump(i - 1.0) > 1.0:
            break
    return total * total + count


@zoo.add(integers(0, 5, 1))
def counts_in_recursion(n):
    count = 0

    def visit(depth):
        nonlocal count
        count += 1
        if depth > 0:
            visit(depth - 1)
            visit(depth - 2)

    visit(n)
    return count


@zoo.add(_lopsided_trees, wrt=(0,))
def searches_with_an_inner_function(tree):
    best = -1e30
    scale = 0.5

    def go(node, depth):
        nonlocal best
        if node is None:
            return 0.0
        value = node.value * scale + depth
        if value > best:
            best = value
        return value + go(node.left, depth + 1.0) * go(node.right, depth + 1.0)

    return go(tree, 0.0) + best


@zoo.add(integers(0, 9, 1))
def calls_each_other(n):
    def even(m):
        return True if m == 0 else odd(m - 1)

    def odd(m):
        return False if m == 0 else even(m - 1)

    return even(n), odd(n)


def _iterated(f, x, n):
    for _ in range(n):
        x = f(x)
    return x


@zoo.add(pairs(numbers(-1, 1, 1), integers(0, 5, 1)), wrt=(0,))
def passes_a_function_on(x, n):
    c = x * 0.5
    return _iterated(lambda t: t * c + 1.0, x, n)


def _adder(k):
    j = k * 2.0

    def add(t):
        return t * j + k

    return add


@zoo.add(numbers(-2, 2, 1), wrt=(0,))
def makes_functions(x):
    one, other = _adder(x), _adder(x * 2.0)
    table = {"one": one, "other": other}
    k, j = 100.0, 200.0
    return table["one"](1.0) * other(2.0) + (k + j) * x


@zoo.add(numbers(-2, 2, 1), wrt=(0,))
def chooses_a_function(x):
    def doubled(t):
        return t * 2.0 * x

    if x > 1.0:
        f = doubled
    elif x > 0.0:
        f = np.tanh
    else:
        f = lambda t, k=x * 3.0: t + k  # noqa: E731
    return f(0.5) + f(x)


@zoo.add(pairs(numbers(-2, 2, 1), integers(0, 4, 1)), wrt=(0,))
def keeps_defaults(x, n):
    fs = (lambda t, k=x: t * k, lambda t, *, k=x + 1.0: t - k, _adder(x))
    x = 0.25
    total = x
    for f in fs:
        for _ in range(n):
            total = f(total)
    return total


@zoo.add(numbers(-2, 2, 2), wrt=(0, 1))
def applies_in_part(x, y):
    def f(a, b, *, c=1.0):
        return a * b + c * x

    g = functools.partial(f, x, c=y)
    return g(3.0) + functools.partial(g, 2.0)() + functools.partial(np.add, x)(y)


def _every_way(x, /, y=2.0, *args, scale=1.0, **rest):
    total = x * y
    for a in args:
        total = total + a
    return total * scale + rest.get("x", 0.0) + len(rest)


@zoo.add(numbers(-2, 2, 2), wrt=(0, 1))
def binds_arguments_in_every_way(x, y):
    more = (x, y, 1.0)
    named = {"scale": y, "x": x}
    return (
        _every_way(x) + _every_way(x, y, *more) + _every_way(*more, scale=x) + _every_way(x, x=y, z=1.0)
        + _every_way(x, **named) + _every_way(x, *more[1:], **named)
    )


@zoo.add(sequences(0, 5), wrt=(0,))
def calls_in_comprehensions(xs):
    k = 0.5

    def f(v):
        return v * k + 1.0

    first = sum([f(v) for v in xs]) + 0.5
    k = 2.0
    fs = [lambda t, v=v: t * v * k for v in xs]
    k = 3.0
    total = first
    for g in fs:
        total = total + g(first)
    return total


@zoo.add(numbers(-2, 2, 1), wrt=(0,))
def nests_three_deep(x):
    a = x

    def outer(b):
        c = b + a

        def middle(d):
            def inner(e):
                return a * b + c * d + e

            return inner(c) * inner(d)

        return middle(a) + middle(b)

    return outer(1.0) + outer(x)


@zoo.add(numbers(-2, 2, 1), raises=True)
def reads_an_unbound_variable_around(x):
    def f():
        return z

    if x > -1.0:
        z = x
    return f()


@zoo.add(numbers(-2, 2, 1), raises=True)
def deletes_names(x):
    y = x * 2.0
    z = y + 1.0
    if x < -1.0:
        del y, z
    return y
