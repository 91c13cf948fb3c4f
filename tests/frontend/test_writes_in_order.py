"""Writes in the order of Python's evaluation: what is read before, what is seen while something is run over."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import batching
import spmd

SCALE = np.arange(4.0) + 0.5


@dataclass
class Record:
    a: Any
    k: float

    def bump(self, v):
        self.k += v
        self.a[0] = v
        return self.k

    def renew(self):
        self.a = self.a * 2


# ------------------------------------------------------------------------------------------------ arrays of their own
def written_as_a_whole(x, n):
    a = np.zeros(4)
    a[:] = x
    c = x[1:]
    c[0] = 5.0
    a[-1] = 7.0
    return a, x


def written_from_a_view(x, n):
    v = x[::-1]
    a = np.zeros(4)
    a[...] = v
    v[0] = 7.0
    w = v[1:]
    w[0] = 8.0
    return a, v, x, w


def written_from_a_global(x, n):
    a = np.zeros(4)
    a[:] = SCALE
    b = SCALE[1:]
    a[1] = 3.0
    return a, b * x[0]


# ------------------------------------------------------------------------------------------------ op=
def _nine(a):
    a[0] = 9.0
    return 1.0


def _popped(xs):
    return xs.pop(0)


def _renewed(r):
    r.k = 7.0
    r.a = np.ones(4)
    return 2.0


def reads_the_element_before_the_value(x, n):
    m = np.zeros((2, 4))
    m[1] = x
    x[0] += _nine(x)
    m[0] += _nine(m[0])
    return x, m


def reads_the_masked_before_the_value(x, n):
    y = x.copy()
    x[x > -9.0] += _nine(x)
    y[np.array([0, n])] += _nine(y)
    return x, y


def reads_the_item_before_the_value(x, n):
    xs = [1, 2, 3]
    xs[0] += _popped(xs)
    d = {"k": 2.0}
    d["k"] += _renewed(Record(x, 1.0)) + d["k"]
    ys = [i for i in range(n + 2)]
    ys[n] += _popped(ys)
    return xs, d["k"], ys


def reads_the_attribute_before_the_value(x, n):
    r = Record(x, 2.0)
    r.k += _renewed(r)
    q = Record(x, 2.0)
    q.a += _renewed(q)
    return r.k, q.a, x


# ------------------------------------------------------------------------------------------------ methods
def methods_write_to_their_object(x, n):
    r = Record(x, 1.0)
    q = r
    got = r.bump(3.0)
    r.renew()
    return got, q.k, q.a, x


# ------------------------------------------------------------------------------------------------ run over
def backwards_over_what_is_written(x, n):
    xs = [1, 2, 3]
    s = 0.0
    for v in reversed(xs):
        s += v
        xs[0] = 10
    for e in reversed(x):
        s += e
        x[n] += 1.0
    return s


def numbered_and_written(x, n):
    xs, ys = [1, 2, 3], [4, 5, 6]
    s = 0
    for i, v in enumerate(xs):
        xs[i] = v * 2
        xs[2] += 1
        if i == n:
            continue
        s += v
    for a, b in zip(xs, reversed(ys)):
        ys[0] += a
        s += b
    for v in xs:
        xs[n % 3] = v + 5
        s += v
    return s, xs, ys


def _last(xs, v):
    xs[2] = v + 10
    return xs[1] + v


def listed_and_written(x, n):
    xs = [1, 2, 3]
    ys = [_last(xs, v) for v in xs]
    return ys, xs, [_last(xs, v) for v in reversed(xs)]


# ------------------------------------------------------------------------------------------------ dictionaries
def dictionaries_seen_by_their_views(x, n):
    d = {"a": 1, "b": 2}
    keys, items = d.keys(), d.items()
    d["c"] = n
    s = len(keys)
    for _, v in items:
        s += v
        d["b"] = 7
    for v in d.values():
        s += v
        d["c"] = 9
    return s, sum(list(d.values()))


def tables_seen_by_their_views(x, n):
    d = {}
    for i in range(n + 1):
        d[i] = i
    keys = d.keys()
    s = 0
    for k in d:
        d[k] += 1
        s += d[k]
    for _, v in d.items():
        s += v
        d[n] = 50
    d[n + 7] = 3
    return s, len(keys), sum(d.values())


def a_table_that_grows_while_run_over(x, n):
    d = {}
    for i in range(n + 1):
        d[i] = i
    s = 0
    for k in d:
        s += k
        if n > 1:
            d[k + 10] = k
    return s


def a_table_left_in_time(x, n):
    d = {}
    d[n] = 1
    for k in d:
        d[k + 10] = k
        break
    return len(d)


# ------------------------------------------------------------------------------------------------ indices
def truth_as_an_index(x, n):
    xs, ys = [1, 2, 3], [i for i in range(4)]
    ys.append(n)
    xs[n > 1] = 4
    ys[n > 0] += 1
    return xs, ys[n > 1], ys.pop(n > 0), xs.pop(n > 2), (4, 5)[n > 0]


# ------------------------------------------------------------------------------------------------ loops
def hands_on_in_a_loop(x, n):
    r = Record(x[:], 0.0)
    v, i = x * 2, 0
    while i < n:
        i += 1
        r.a = v * 0.5
        v = r.a
    return v


SAME = [
    written_as_a_whole, written_from_a_view, written_from_a_global, reads_the_element_before_the_value,
    reads_the_masked_before_the_value, reads_the_item_before_the_value, reads_the_attribute_before_the_value,
    methods_write_to_their_object, backwards_over_what_is_written, numbered_and_written, listed_and_written,
    dictionaries_seen_by_their_views, tables_seen_by_their_views, truth_as_an_index, hands_on_in_a_loop,
    a_table_that_grows_while_run_over, a_table_left_in_time,
]


def examples(size: int) -> list[tuple[Any, ...]]:
    rng = np.random.default_rng(0)
    return [(rng.normal(size=4), k % 4) for k in range(size)]


@pytest.mark.parametrize("size", [1, 7])
@pytest.mark.parametrize("target", ["auto", "reference"])
@pytest.mark.parametrize("function", SAME, ids=lambda f: f.__name__)
def test_the_batch_is_the_loop(function: Callable[..., Any], target: str, size: int) -> None:
    given = examples(size)
    batched = spmd.vmap(function, target=target)
    columns = [list(c) for c in zip(*examples(size), strict=True)]
    want: list[Any] = []
    for k, own in enumerate(copy.deepcopy(given)):
        try:
            want.append(copy.deepcopy(function(*own)))
        except RuntimeError as error:
            with pytest.raises(type(error), match=str(error)) as caught:
                batched(*columns)
            assert caught.value.example == k  # type: ignore[attr-defined]
            return
    for got, one in zip(batching.unpack(batched(*columns)), want, strict=True):
        flat_got, flat_want = _flat(got), _flat(one)
        assert len(flat_got) == len(flat_want)
        for a, b in zip(flat_got, flat_want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)
    for column, (x, _) in zip(columns[0], given, strict=True):
        np.testing.assert_array_equal(column, x)


def _flat(value: Any) -> list[Any]:
    return [p for v in value for p in _flat(v)] if isinstance(value, (list, tuple)) else [value]


# ------------------------------------------------------------------------------------------------ refused
def _grows(xs):
    xs.append(5)


def grown_by_a_callee(x, n):
    xs = [1, 2, 3]
    s = 0
    for v in xs:
        s += v
        if v == 1:
            _grows(xs)  # here
    return s


def a_key_more(x, n):
    d = {"a": 1}
    s = 0
    for k in d:
        s += d[k]
        d["b"] = 7  # here
    return s


def _front(xs):
    xs[0] = 50
    return 1


def written_between_making_and_running(x, n):
    xs = [1, 2, 3]
    s = 0
    for a, b in zip(reversed(xs), [_front(xs), 2, 3]):  # here
        s += a * b
    return s


def an_item_of_a_tuple(x, n):
    t = (x, n)
    t[0] += 1  # here
    return t[0]


def numpys_truth_as_an_index(x, n):
    xs = [1, 2, 3]
    xs[x[0] > 0] = 4  # here
    return xs


REFUSED = [
    grown_by_a_callee, a_key_more, written_between_making_and_running, an_item_of_a_tuple, numpys_truth_as_an_index,
]


@pytest.mark.parametrize("function", REFUSED, ids=lambda f: f.__name__)
def test_what_cannot_be_kept_is_refused_at_its_line(function: Callable[..., Any]) -> None:
    with pytest.raises(spmd.SpmdError) as caught:
        spmd.vmap(function)(*[list(c) for c in zip(*examples(3), strict=True)])
    assert caught.value.span is not None
    assert "# here" in caught.value.span.text


# ------------------------------------------------------------------------------------------------ arguments
def writes_one_reads_another(a, b):
    a[0] = 9.0
    return b[0] + a[1]


def reads_both(a, b):
    c = a.copy()
    c[0] = 1.0
    return c[0] + b[0]


def grows_one(a, b):
    a.append(9.0)
    return len(b)


def writes_one_of_a_pair(p):
    p[0][0] = 9.0
    return p[1][0]


XS = np.arange(24.0).reshape(4, 6)
LISTS = [[1.0], [2.0, 3.0]]


@pytest.mark.parametrize(("function", "args"), [
    (writes_one_reads_another, (XS, XS)),
    (writes_one_reads_another, (XS[:, :3], XS[:, 2:5])),
    (writes_one_reads_another, (list(XS), XS)),
    (grows_one, (LISTS, LISTS)),
    (grows_one, (LISTS, [[1.0], LISTS[1]])),
    (writes_one_of_a_pair, ((XS, XS),)),
    (writes_one_of_a_pair, ([(x, x) for x in XS],)),
])
def test_arguments_that_are_one_thing_are_not_written_to(function: Callable[..., Any], args: Any) -> None:
    with pytest.raises(spmd.SpmdError, match="share memory|twice"):
        spmd.vmap(function)(*args)


@pytest.mark.parametrize(("function", "args"), [
    (reads_both, (XS, XS)),
    (writes_one_reads_another, (XS[:, :3], XS[:, 3:])),
    (writes_one_reads_another, (XS[:-1], XS[1:])),
    (grows_one, ([LISTS[0], LISTS[0]], [[1.0], [2.0]])),
    (writes_one_of_a_pair, ([(x, x + 1.0) for x in XS],)),
])
def test_arguments_of_different_examples_may_be_one_thing(function: Callable[..., Any], args: Any) -> None:
    want = [function(*copy.deepcopy(own)) for own in zip(*args, strict=True)]
    np.testing.assert_allclose(spmd.vmap(function)(*args), want)


def last_of_a_list(xs):
    return xs[-1]


def test_an_empty_list_at_the_end_raises() -> None:
    for target in ("auto", "blas", "reference"):
        with pytest.raises(IndexError, match="list index out of range") as caught:
            spmd.vmap(last_of_a_list, target=target)([[1.0, 2.0], [3.0], []])
        assert caught.value.example == 2  # type: ignore[attr-defined]
