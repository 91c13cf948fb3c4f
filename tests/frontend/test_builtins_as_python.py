"""Builtins, truth and equality answer as Python does for each example, or are refused with the line."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import spmd

INTS = [k % 7 for k in range(33)]
LISTS = [[k - 1, 2 * k, 3][: k % 4] for k in range(33)]
FLOATS = [float("nan") if k % 3 == 0 else k / 4 for k in range(33)]
ROWS = [[np.array([1.0, k]), np.array([2.0, -k])][: 1 + k % 2] for k in range(33)]


def agrees(function: Callable[..., Any], xs: list[Any]) -> None:
    for size in (1, 33):
        expected = [function(x) for x in xs[:size]]
        found = spmd.vmap(function)(xs[:size])
        if isinstance(found, tuple):
            found = list(zip(*(part.tolist() for part in found)))
        np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))


def refused(function: Callable[..., Any], xs: list[Any], code: str) -> None:
    """Refused with the code, at a line that is marked `# here`."""
    with pytest.raises(spmd.SpmdError) as caught:
        spmd.vmap(function)(xs)
    assert caught.value.code == code
    lines, first = inspect.getsourcelines(function)
    assert caught.value.span is not None
    assert "# here" in lines[caught.value.span.line - first]


# ------------------------------------------------------------------------------------------------ dict, zip, enumerate
def copies_a_dict(n):
    d = dict({"a": n, "b": 1}, c=3, a=5)
    e = dict({"a": n})
    return d["a"] + 10 * d["b"] + 100 * d["c"] + 1000 * e["a"] + 10000 * len(dict(e, z=1))


def dict_of_pairs(n):
    return dict([("a", n)])["a"]  # here


def dict_of_two(n):
    return len(dict({"a": n}, {"b": n}))  # here


def test_dict_keeps_what_it_is_given() -> None:
    agrees(copies_a_dict, INTS)
    refused(dict_of_pairs, INTS, "E03")
    refused(dict_of_two, INTS, "E06")


def zips_strictly(n):
    return sum([a * b for a, b in zip((n, 2), (3, 4), strict=True)])


def zips_loosely(xs):
    return sum([a * b for a, b in zip(xs, xs, strict=False)])


def zips_unequal(n):
    return sum([a * b for a, b in zip((n, 2), (3, 4, 5), strict=True)])  # here


def zips_lists_strictly(xs):
    return sum([a * b for a, b in zip(xs, xs[1:], strict=True)])  # here


def zips_with_a_keyword(xs):
    return len([a for a, _ in zip(xs, xs, fill=0)])  # here


def test_zip_heeds_strict() -> None:
    agrees(zips_strictly, INTS)
    agrees(zips_loosely, LISTS)
    refused(zips_unequal, INTS, "E03")
    refused(zips_lists_strictly, LISTS, "E03")
    refused(zips_with_a_keyword, LISTS, "E05")


def counts_from(xs):
    a = sum([k * x for k, x in enumerate(xs, 2)])
    b = 0
    for k, x in enumerate(xs, start=len(xs)):
        b = b + k * x
    for k, x in enumerate((1, 2, 3), len(xs)):
        a = a + k * x
    return a + 1000 * b


def counts_from_a_float(xs):
    return sum([k * x for k, x in enumerate(xs, 2.0)])  # here


def counts_too_much(xs):
    return sum([k * x for k, x in enumerate(xs, 2, 3)])  # here


def reverses_too_much(xs):
    return [x for x in reversed(xs, xs)]  # here


def reverses_a_zip(xs):
    return [x for x in reversed(zip(xs, xs))]  # here


def test_enumerate_and_reversed_drop_nothing() -> None:
    agrees(counts_from, LISTS)
    for function in (counts_from_a_float, counts_too_much, reverses_too_much, reverses_a_zip):
        refused(function, LISTS, "E06")


def length_of_zip(xs):
    return len(zip(xs, xs))  # here


def length_of_enumerate(xs):
    return len(enumerate(xs))  # here


def test_iterators_have_no_length() -> None:
    refused(length_of_zip, LISTS, "E06")
    refused(length_of_enumerate, LISTS, "E06")


# ------------------------------------------------------------------------------------------------ sum
def sums(xs):
    return sum(xs)


def sums_from(xs):
    return sum(xs, start=-5) + sum((x * x for x in xs), 7)


def sums_to_a_float(xs):
    return sum(xs, 0.5)


def sums_one_number(xs):
    return sum([2**61 for _ in xs])


def sums_from_far(xs):
    return sum((x for x in xs), 2**62)


WIDE = [2**62, -(2**62), 2**63 - 1, -(2**63), -1, 2**40, 3]
WIDE_LISTS = [[WIDE[(3 * k) % 7], -WIDE[(3 * k) % 7 - 1] // 2, k][: k % 4] for k in range(33)]


def test_a_sum_of_ints_is_exact_or_raises() -> None:
    assert spmd.vmap(sums)([[2**62, 2**62, -1], [], [-(2**63)], [2**62, 2**62, -(2**62)]]).tolist() == [
        sum(xs) for xs in ([2**62, 2**62, -1], [], [-(2**63)], [2**62, 2**62, -(2**62)])]
    for function, bad in (
        (sums, [2**62] * 3), (sums, [-(2**62)] * 3), (sums, [2**62] * 2), (sums_one_number, [1] * 4),
        (sums_from_far, [2**62]), (sums_from, [2**40]),
    ):
        with pytest.raises(OverflowError) as caught:
            spmd.vmap(function)([[1], bad, bad])
        assert caught.value.example == 1
    for function in (sums, sums_from, sums_to_a_float, sums_one_number, sums_from_far):
        agrees(function, LISTS)
    agrees(sums_to_a_float, [[2**62] * (k % 4) for k in range(33)])
    fitting = [xs if -(2**63) <= sum(xs) < 2**63 else [1] for xs in WIDE_LISTS]
    agrees(sums, fitting)


# ------------------------------------------------------------------------------------------------ truth
@dataclass
class Falsy:
    x: float

    def __bool__(self):
        return self.x > 1.0


@dataclass
class Sized:
    x: float

    def __len__(self):
        return 0


class Odd(NamedTuple):
    x: float
    y: float = 0.0

    def __bool__(self):
        return False

    def __len__(self):
        return 7

    def __getitem__(self, k):
        return 5.0


class Pair(NamedTuple):
    x: float
    y: float = 0.0


@dataclass
class Plain:
    x: float


def if_made(x):
    if Falsy(x):  # here
        return 1
    return 2


def not_made(x):
    return not Sized(x)  # here


def or_made(x):
    q = Falsy(x)
    r = q or Falsy(1.0)  # here
    return r.x


def if_given(q):
    return 1 if q else 2  # here


def length_of(q):
    return len(q)  # here


def item_of(q):
    return q[0]  # here


def makes_plain(x):
    p, q = Pair(x), Plain(x)
    return (1 if p else 2) + (10 if not q else 20) + len(p) + (p[1] or 3)


def test_records_with_own_special_methods() -> None:
    for function in (if_made, not_made, or_made):
        agrees(function, [1.0, 2.0])
    for record in (Falsy, Sized, Odd):
        agrees(if_given, [record(1.0), record(2.0)])
    agrees(length_of, [Odd(1.0), Odd(2.0)])
    agrees(item_of, [Odd(1.0), Odd(2.0)])
    agrees(makes_plain, INTS)
    agrees(length_of, [Pair(1.0)] * 33)
    agrees(item_of, [Pair(float(k)) for k in range(33)])


class Holder:
    def __init__(self, odd):
        self.odd = odd


class Truthy:
    def __init__(self, x):
        self.x = x

    def __bool__(self):
        return False


def truth_of_held(h):
    return 1 if h.odd else 2  # here


def item_of_held(h):
    return h.odd[0]  # here


def test_objects_with_own_special_methods() -> None:
    agrees(if_given, [Truthy(1.0), Truthy(2.0)])
    agrees(truth_of_held, [Holder(Odd(1.0)), Holder(Odd(2.0))])
    agrees(item_of_held, [Holder(Odd(1.0)), Holder(Odd(2.0))])


def range_is_true(n):
    return (1 if range(n) else 2) + (10 if not range(3, n) else 20) + (100 if range(0) else 200)


def test_an_empty_range_is_false() -> None:
    agrees(range_is_true, INTS)


# ------------------------------------------------------------------------------------------------ equality
class Anything:
    def __init__(self, x):
        self.x = x

    def __eq__(self, other):
        return True


class Unlike:
    def __init__(self, x):
        self.x = x

    def __ne__(self, other):
        return False


@dataclass
class Same:
    x: float

    def __eq__(self, other):
        return True


def is_equal_to_none(a):
    return a == None  # noqa: E711 # here


def differs_from_none(a):
    return None != a  # noqa: E711 # here


def made_is_none(x):
    return Same(x) == None  # noqa: E711 # here


def test_equality_with_none() -> None:
    for cls in (Anything, Same):
        agrees(is_equal_to_none, [cls(1.0), cls(2.0)])
        agrees(differs_from_none, [cls(1.0), cls(2.0), None])
    agrees(differs_from_none, [Unlike(1.0), Unlike(2.0)])
    agrees(is_equal_to_none, [Unlike(1.0), Unlike(2.0), None])
    agrees(made_is_none, [1.0, 2.0])
    for given in ([Plain(1.0)] * 33, [Holder(1.0), None, *[Holder(2.0)] * 31], [Pair(1.0)] * 33, [1.0, *[None] * 32]):
        agrees(is_equal_to_none, given)
        agrees(differs_from_none, given)


def array_is_text(x):
    return x == "a"  # here


def array_is_none(x):
    return x == None  # noqa: E711 # here


def number_is_text(x):
    return x == "a", x != "b"


def test_an_array_is_not_compared_with_a_string_or_none() -> None:
    refused(array_is_text, [np.ones(3)] * 2, "E05")
    refused(array_is_none, [np.ones(3)] * 2, "E05")
    agrees(number_is_text, INTS)


def tuple_of_arrays(x):
    return (1, x) == (1, x + 1.0)  # here


def same_array_within(x):
    t = (1, x)
    return t == t  # here


def array_in_tuple(x):
    return x in (1.0, 2.0)  # here


def tuple_of_single(x):
    return (2, x) == (2, x * 1.0), (1, x) == (2, x), (1, x) != (1, x + 1.0)


def test_items_of_tuples_are_compared_by_truth() -> None:
    refused(tuple_of_arrays, [np.ones(3)] * 2, "E05")
    refused(same_array_within, [np.ones(3)] * 2, "E05")
    refused(array_in_tuple, [np.ones(3)] * 2, "E05")
    agrees(tuple_of_single, [np.full(1, float(k)) for k in range(33)])


def finds_itself(x):
    t = (1, x)
    return x in (x,), t == t, t != t, x == x, (x,) == (x * 1.0,), x in (2.0, 1.5), (0, x) == (1, x)


def finds_a_constant(n):
    return math.nan in (math.nan, n), (math.nan, n) == (math.nan, n), n in (math.nan,)


def finds_an_object(a):
    return a in (a, a), (a, 1) == (a, 1)


def test_one_object_is_equal_to_itself_in_containers() -> None:
    agrees(finds_itself, FLOATS)
    agrees(finds_a_constant, INTS)
    agrees(finds_an_object, [Anything(float(k)) for k in range(33)])


# ------------------------------------------------------------------------------------------------ lists as arrays
def stacks_with_dtype(xs):
    return np.stack(xs, dtype=np.float32)  # here


def stacks_to_out(xs):
    return np.stack(xs, 0, xs)  # here


def piles_with_dtype(xs):
    return np.vstack(xs, dtype=np.float32)  # here


def rows_with_dtype(xs):
    return np.hstack(xs, dtype=np.float32)  # here


def joins_with_casting(xs):
    return np.concatenate(xs, casting="unsafe")  # here


def stacks_along(xs):
    a, b = np.stack(xs, axis=1, out=None), np.stack(xs, -1)
    c, d = np.concatenate(xs, axis=0), np.concatenate([x[None] for x in xs], 1)
    return np.sum(a[1]) + np.sum(b[0]) + np.sum(c) + np.sum(d[0, 0]) + np.sum(np.vstack(xs)[0]) + np.hstack(xs)[-1]


def test_keywords_of_stacking_are_not_dropped() -> None:
    for function in (stacks_with_dtype, stacks_to_out, piles_with_dtype, rows_with_dtype, joins_with_casting):
        refused(function, ROWS, "E05")
    agrees(stacks_along, ROWS)
