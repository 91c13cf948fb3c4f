"""Exceptions: the object that an example raises is CPython's, whatever it carries and wherever it passes."""

from __future__ import annotations

import math
from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import spmd

Pair = namedtuple("Pair", "a b")
TARGETS = ("auto", "blas", "reference")


class Own(Exception):
    """Of the program's own, with a text of its own."""

    def __init__(self, code, note="none"):
        super().__init__(f"{code}/{note}")
        self.code = code


class Narrow(ZeroDivisionError):
    """A class that operations do not raise."""


class Node:
    def __init__(self, op, value, next_=None):
        self.op, self.value, self.next = op, value, next_


def of_a_float(x):
    raise ValueError(f"bad {x} {x!r} {x:.2f} {x:>9.1e} {x * 2:+g}")


def of_an_int(x):
    n = int(x * 10)
    raise ValueError(f"{n:05d}|{n:x}|{n:,}|{n!s:>6}|{-n:<8}|", n)


def of_a_bool(x):
    raise ValueError(f"{x > 0} {not x:d}", x > 0, (x, [int(x), None]))


def of_a_tuple(x):
    raise KeyError((x, "a", (1, x)), Pair(x, int(x)), {"a": x})


def of_its_own(x):
    raise Own(x, note_of(x))


def note_of(x):
    return "pos" if x > 0 else "neg"


def of_its_own_without_arguments(x):
    raise Own


def of_one_of_several(x):
    v = None if x < -1 else x
    raise ValueError(f"got {v}", v)


def of_a_format_of_its_own(x):
    width = int(abs(x)) + 4
    raise ValueError(f"{x:{width}.3f}|{'a':>{width}}|{{}}|{x=:.1f}")


def of_a_bad_format(x):
    raise ValueError(f"{x:d}")


def of_numpy(x):
    y = np.float32(x)
    raise ValueError(f"{y} {y:.3f}", np.sqrt(np.abs(y)), np.int16(3))


def of_an_array(x):
    raise ValueError(f"array {np.array([x, 1.0])}", np.array([x, 2.0]).shape)


def of_a_message_made_before(x):
    message = f"x is {x}"
    error = RuntimeError(message, x)
    if x > 100.0:
        return x
    raise error


def after_a_nested_try(x):
    try:
        try:
            y = 1.0 / (x - x)
        except KeyError:
            y = 0.0
        finally:
            x = x + 1.0
    except ZeroDivisionError:
        raise Own(x) from None
    return y


def again_from_a_call(x):
    try:
        return _deep(int(x), x)
    except (ValueError, OverflowError):
        if x > -100.0:
            raise
        return 0.0


def _deep(n, x):
    if n <= 0:
        return math.sqrt(-1.0 - x * x)
    return _deep(n - 1, x) + 1.0


def by_name(x):
    try:
        xs = (1.0, x)
        return xs[0] / (x - x)
    except ArithmeticError as error:
        raise error


def not_of_a_narrower_class(x):
    try:
        return 1.0 / (x - x)
    except Narrow:
        return 0.0


def of_another_class_first(x):
    try:
        return [1.0, x][int(abs(x)) + 5] / 0.0
    except ZeroDivisionError:
        return 0.0


def from_finally(x):
    try:
        return x
    finally:
        raise Own(x, "last")


RAISING = [
    of_a_float, of_an_int, of_a_bool, of_a_tuple, of_its_own, of_its_own_without_arguments, of_one_of_several,
    of_a_format_of_its_own, of_a_bad_format, of_numpy, of_an_array, of_a_message_made_before,
    after_a_nested_try, again_from_a_call, by_name, not_of_a_narrower_class, of_another_class_first, from_finally,
]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("f", RAISING, ids=lambda f: f.__name__)
def test_the_exception_is_that_of_the_loop(f: Any, target: str) -> None:
    for xs in ([1.5, -2.0], [-0.75, 3.0], [-3.0]):
        with pytest.raises(Exception) as wanted:
            f(xs[0])
        with pytest.raises(type(wanted.value)) as caught:
            spmd.vmap(f, target=target)(xs)
        assert type(caught.value) is type(wanted.value)
        assert repr(caught.value.args) == repr(wanted.value.args)
        assert str(caught.value) == str(wanted.value)
        assert caught.value.example == 0  # type: ignore[attr-defined]


def unknown(node, shared):
    if node.op == "add":
        return node.value
    if node.next is None:
        raise KeyError(f"unknown {node.op!r}", node.op, shared)
    return unknown(node.next, shared)


@pytest.mark.parametrize("target", TARGETS)
def test_strings_and_shared_values_are_in_the_text(target: str) -> None:
    nodes = [Node("add", 1.0), Node("sub", 2.0, Node("mul", 3.0)), Node("pow", 4.0)]
    with pytest.raises(KeyError) as wanted:
        unknown(nodes[1], 7)
    with pytest.raises(KeyError) as caught:
        spmd.vmap(unknown, in_axes=(0, None), target=target)(nodes, 7)
    assert caught.value.args == wanted.value.args
    assert caught.value.example == 1  # type: ignore[attr-defined]


def only_shared(x, n):
    if x < 0:
        raise ValueError(f"n is {n}")
    return x


@pytest.mark.parametrize("target", TARGETS)
def test_a_text_of_shared_values_alone(target: str) -> None:
    f = spmd.vmap(only_shared, in_axes=(0, None), target=target)
    assert list(f([1.0, 2.0], 5)) == [1.0, 2.0]
    with pytest.raises(ValueError, match="n is 5") as caught:
        f([1.0, 2.0, -1.0, -2.0], 5)
    assert caught.value.example == 2  # type: ignore[attr-defined]


# ------------------------------------------------------------------------------------------------ caught
def sizes_that_do_not_fit(a, b):
    try:
        return np.sum(a + b)
    except ValueError:
        return np.sum(a) * 2.0


def writes_before_it_raises(x):
    count = 0

    def step(v):
        nonlocal count
        count += 1
        if v > x:
            raise Own(v)
        count += 10
        return v

    try:
        for k in range(5):
            step(float(k))
    except Own:
        count += 1000
    return count


def none_in_place_of_a_node(node):
    total = 0.0
    try:
        while True:
            total = total + node.value
            node = node.next
    except AttributeError:
        return total


def catches_everything(x):
    try:
        assert x > 0.0
        if x > 2.0:
            raise KeyError
        if x < 1.0:
            z = x
        return z * 1.0
    except Exception:
        return -1.0


def in_conditions(x):
    try:
        y = 2.0 if 1.0 / x > 0.0 and math.sqrt(x) > 1.0 else 3.0
        while math.log(x - y) < 10.0:
            y = y - 1.0
        return y
    except ZeroDivisionError:
        return -1.0
    except ValueError:
        return -2.0
    else:
        return 0.0


def returns_from_finally(x):
    for _ in range(3):
        try:
            x = x + 1.0 / (x - 2.0)
        finally:
            if x == 2.0:
                return x  # noqa: B012
            continue  # noqa: B012
    return x


def two_ways_out(n):
    total = 0
    for i in range(n):
        for j in range(n):
            try:
                if j == 3:
                    break
                if i == 2:
                    raise Own(i)
                total += 100 // (i - j)
            except ZeroDivisionError:
                continue
            else:
                total += 1
            finally:
                total += 2
        else:
            total += 1000
    return total


def for_else_in_a_try(n):
    try:
        for i in range(n):
            if i * i > 10:
                break
        else:
            raise Own(n)
    except Own:
        return -1
    return n


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("f", "columns"),
    [
        (sizes_that_do_not_fit, ([np.ones(3), np.ones(2), np.ones(4)], [np.ones(3), np.ones(4), np.ones(1)])),
        (writes_before_it_raises, ([0.5, -1.0, 2.5, 10.0],)),
        (none_in_place_of_a_node, ([Node("a", 1.0), Node("b", 2.0, Node("c", 3.0))],)),
        (catches_everything, ([0.5, -1.0, 1.5, 3.0],)),
        (in_conditions, ([0.0, 0.5, -1.0, 2.5, 30.0],)),
        (returns_from_finally, ([2.0, 1.0, 3.0, 0.5],)),
        (two_ways_out, ([0, 1, 2],)),
        (for_else_in_a_try, ([0, 3, 4, 9],)),
    ],
    ids=lambda v: getattr(v, "__name__", None),
)
def test_what_is_caught_goes_on_as_in_the_loop(f: Any, columns: tuple[list[Any], ...], target: str) -> None:
    want = [f(*row) for row in zip(*columns, strict=True)]
    got = spmd.vmap(f, target=target)(*columns)
    np.testing.assert_allclose(got, want)
    assert np.asarray(got).dtype.kind == np.asarray(want).dtype.kind


# ------------------------------------------------------------------------------------------------ refused
def in_a_comprehension(xs):
    try:
        return sum([1.0 / x for x in xs])
    except ZeroDivisionError:
        return 0.0


def formats_a_result(x):
    return f"{x}"


def asks_a_format(x):
    return 1.0 if f"{x}" else 2.0


def raises_a_number(x):
    raise x


def opens(x):
    with open("file"):
        return x


def raises_flags(x):
    with np.errstate(divide="raise"):
        return 1.0 / x


def nothing_to_raise(x):
    raise


@pytest.mark.parametrize(
    "f", [formats_a_result, asks_a_format, raises_a_number, opens, raises_flags, nothing_to_raise],
    ids=lambda f: f.__name__,
)
def test_it_is_refused(f: Any) -> None:
    with pytest.raises(spmd.SpmdError) as caught:
        spmd.vmap(f)([1.0, 2.0])
    assert caught.value.span is not None


def test_elements_that_raise_what_is_caught_are_refused() -> None:
    with pytest.raises(spmd.SpmdError, match="comprehension"):
        spmd.vmap(in_a_comprehension)([[1.0, 0.0], [2.0]])
