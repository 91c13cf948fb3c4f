"""Functions as values: what would be read late, written from elsewhere or kept too long is refused, not computed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import spmd


def gives_back(f):
    return f


def holds(f, x):
    return f, x


def bound_again(x):
    k = x

    def f():
        return k

    g = gives_back(f)
    k = x * 2.0
    return g()


def bound_again_in_a_tuple(x):
    k = x
    pair = holds(lambda: k, x)
    k = x * 2.0
    return pair[0]()


def bound_in_a_loop(x):
    fs = gives_back(lambda: x)
    for i in range(3):
        k = i * x
        fs = gives_back(lambda: k)  # noqa: B023
    return fs()


def passes_on_a_writer(x):
    total = 0.0

    def bump(v):
        nonlocal total
        total = total + v
        return total

    return apply_twice(bump, x) + total


def passes_on_a_reader_of_what_is_written(x):
    total = 0.0

    def bump():
        nonlocal total
        total = total + x

    def shown():
        return total

    return apply_once(shown, bump)


def apply_twice(f, x):
    return f(x) + f(x)


def apply_once(f, g):
    g()
    return f()


def reads_a_comprehension(x):
    fs = [lambda: i for i in range(3)]  # noqa: B023
    return fs[0]() + x


def writes_in_a_comprehension(xs):
    total = 0.0

    def bump(v):
        nonlocal total
        total = total + v
        return total

    return sum([bump(v) for v in xs])


def walrus_in_a_comprehension(xs):
    last = 0.0
    found = [(last := last + v) for v in xs]
    return last + sum(found)


def gives_a_function(x):
    return lambda t: t + x


def gives_a_module_function(x):
    return x, np.tanh


def writes_a_global(x):
    def f():
        global seen
        seen = x

    f()
    return x


def decorates(x):
    @gives_back
    def f():
        return x

    return f()


def run_all(fs, x):
    k = 100.0
    total = k * 0.0
    for f in fs:
        total = total + f(x)
    return total


def passes_on_a_list_of_readers(x):
    k = 2.0 * x
    fs = []
    for i in range(3):
        fs.append(lambda t, i=i: t * k + i)
    return run_all(fs, x)


def leave(fs, y):
    fs.append(lambda t: t * y)


def is_left_a_function(x):
    y = 100.0
    fs = []
    leave(fs, x)
    return fs[0](2.0) + y


def keep_for_later(fs, f):
    fs.append(f)


def leaves_what_changes(x):
    k = x
    fs = []
    keep_for_later(fs, lambda t: t * k)
    k = k + 1.0
    return fs[0](2.0)


def is_left_an_inner_function(x):
    fs = []

    def add(y):
        fs.append(lambda t: t * y)

    add(x)
    return fs[0](2.0)


def passes_on_more_and_more_functions(x):
    def fact(n, k):
        if n == 0:
            return k(1.0)
        return fact(n - 1, lambda r: k(r * n))

    return fact(3, lambda r: r * x)


REFUSED = [
    bound_again, bound_again_in_a_tuple, bound_in_a_loop, passes_on_a_writer, passes_on_a_reader_of_what_is_written,
    reads_a_comprehension, gives_a_function, gives_a_module_function, writes_a_global, decorates,
    passes_on_more_and_more_functions, passes_on_a_list_of_readers, is_left_a_function, is_left_an_inner_function,
    leaves_what_changes,
]


@pytest.mark.parametrize("f", REFUSED, ids=lambda f: f.__name__)
def test_it_is_refused(f: Any) -> None:
    with pytest.raises(spmd.SpmdError) as caught:
        spmd.vmap(f)([1.0, 2.0])
    assert caught.value.span is not None


@pytest.mark.parametrize("f", [writes_in_a_comprehension, walrus_in_a_comprehension], ids=lambda f: f.__name__)
def test_elements_that_see_each_other_are_refused(f: Any) -> None:
    with pytest.raises(spmd.SpmdError):
        spmd.vmap(f)([[1.0, 2.0], [3.0]])


def rebinds_through_def(x):
    def f():
        return 1.0

    def change():
        nonlocal f

        def f():
            return 2.0 * x

    before = f()
    change()
    return before, f()


def unrolls_a_walrus(x):
    last = 0.0
    rows = [(last := last + v) for v in (1.0, x, 3.0)]
    return last, rows[2]


def deletes_and_binds_again(x):
    y = x
    del y
    y = x + 1.0
    return y


seen = 5.0


def reads_a_global(x):
    seen = x  # noqa: F841

    def f():
        global seen
        return seen

    return f() + x


def compose(f, g):
    return lambda x: f(g(x))


def composes(x):
    h = compose(lambda t: t * x, compose(math.sin, lambda t: t + 1.0))
    return h(0.3)


def lists_functions(x):
    def table(n):
        return [lambda t, i=i: t ** i for i in range(n)]
    return sum([f(x) for f in table(3)])


def makes_functions_in_a_comprehension(xs):
    scale = 2.0
    def one(v):
        w = v * scale
        def two(u):
            return u * w
        return two(3.0)
    return sum([one(v) for v in xs]) + max(one(v) for v in xs)


def names_functions(x):
    fns = {"sq": lambda t: t * t, "cb": lambda t: t ** 3}
    total = 0.0
    for name in ("sq", "cb"):
        total += fns[name](x)
    for name, fn in fns.items():
        total += fn(x) * len(name)
    return total


def calls_while_it_changes(x):
    def step(t):
        return t * 0.5 + bias
    bias = 0.1
    n = 0
    while abs(step(x) - x) > 1e-3 and n < 50:
        x = step(x)
        bias = bias * 0.9
        n += 1
    return x


def picks_by_index(x):
    fs = (np.sin, np.cos, lambda t: t * x)
    return fs[int(abs(x)) % 3](x)


def picks_a_builtin(x):
    op = max if x > 0 else min
    return op(x, 0.5)


def writes_between_calls(x):
    memo = 0.0
    def go(n):
        nonlocal memo
        if n <= 0:
            return x
        a = go(n - 1)
        memo = memo + a
        b = go(n - 2)
        memo = memo * 0.5 + b
        return a + b + memo
    return go(4) + memo


def shadows_by_parameters(x):
    def g(x):
        def h(y, x=x):
            return x + y
        x = x * 10.0
        return h(1.0) + x
    return g(x + 1.0)


def takes_keywords_only(x):
    def g(*, a, b=x):
        return a - b
    return g(a=3.0) + g(b=1.0, a=x)


def catches_what_an_inner_function_raises(x):
    count = 0
    def risky(v):
        nonlocal count
        count += 1
        return 1.0 / v
    try:
        a = risky(x) + risky(x - 0.5)
    except ZeroDivisionError:
        a = -1.0
    finally:
        count *= 10
    return a + count


def calls_where_it_is_made(x):
    y = (lambda: 1.0 / x)() if x != 0 else (lambda: 5.0)()
    return y


def returns_one_of_two(x):
    def g():
        if x > 1:
            return lambda t: t + 1.0
        return lambda t: t * 2.0
    return g()(x)


def returns_a_pair(x):
    def g():
        return (lambda t: t + x), x * 2.0
    f, y = g()
    return f(y)


def is_left_a_function_with_defaults(x):
    fs = []

    def add(y):
        fs.append(lambda t, y=y: t * y + x)

    add(x)
    x = x + 5.0
    return run_all(fs[:0], x) + fs[0](2.0)


def keeps_functions_in_a_list(x):
    k = x
    fs = [lambda t: t * k]
    fs.append(lambda t: t + k)

    def go(t):
        for f in fs:
            t = f(t)
        return t

    k = x + 1.0
    return go(x)


WALKED = [
    is_left_a_function_with_defaults, keeps_functions_in_a_list,
    rebinds_through_def, deletes_and_binds_again, reads_a_global, unrolls_a_walrus,
    composes,
    lists_functions,
    names_functions,
    calls_while_it_changes,
    picks_by_index,
    picks_a_builtin,
    writes_between_calls,
    shadows_by_parameters,
    takes_keywords_only,
    catches_what_an_inner_function_raises,
    calls_where_it_is_made,
    returns_one_of_two,
    returns_a_pair,
]


@pytest.mark.parametrize("f", WALKED, ids=lambda f: f.__name__)
def test_it_is_the_loop(f: Any) -> None:
    xs = [0.5, -1.0, 2.0, 0.0, 1.5]
    got = spmd.vmap(f)(xs)
    np.testing.assert_array_equal(np.stack(got, -1) if isinstance(got, tuple) else got, [f(x) for x in xs])


def test_functions_are_made_and_called_in_comprehensions() -> None:
    rows = [np.array([1.0, 2.0]), np.array([3.0])]
    want = [makes_functions_in_a_comprehension(xs) for xs in rows]
    np.testing.assert_array_equal(spmd.vmap(makes_functions_in_a_comprehension)(rows), want)
