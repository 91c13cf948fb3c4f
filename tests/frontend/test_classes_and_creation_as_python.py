"""Classes, bound functions, conversions on creation and mixed comparisons: what the plain loop gives, or a refusal."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest

import spmd

INTS = [2**53 + 1, 2**53, 2**53 - 1, -(2**53) - 1, 2**63 - 1, -(2**63), 0, 5, 2**62 + 1]
FLOATS = [
    2.0**53, 2.0**53 + 2, -(2.0**53), 2.0**63, -(2.0**63), 2.0**62, float("nan"), float("inf"), -float("inf"), 0.5, 5.0,
]


@dataclass
class OwnInit:
    x: float

    def __init__(self, x):
        self.x = x + 1.0


@dataclass
class Plain:
    x: float
    y: float = 2.0


class InheritsInit(Plain):
    pass


class SubInit(Plain):
    def __init__(self, x):
        super().__init__(x * 2.0)


@dataclass
class OwnNew:
    x: float

    def __new__(cls, x):
        raise ValueError("never")


@dataclass
class PostInit:
    x: float

    def __post_init__(self):
        self.x = self.x * 3.0


@dataclass
class NoInitField:
    x: float
    y: float = field(init=False, default=1.0)


@dataclass
class WithInitVar:
    x: float
    y: dataclasses.InitVar[float] = 1.0


@dataclass
class KeywordOnly:
    x: float
    y: float = field(default=5.0, kw_only=True)


@dataclass
class Made:
    x: float
    y: Any = field(default_factory=tuple)


@dataclass
class WatchesWrites:
    x: float

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value + 1.0)


@dataclass(frozen=True, slots=True)
class Frozen:
    x: float
    y: float = 4.0


class Pair(NamedTuple):
    a: float
    b: float = 3.0


class PairNew(Pair):
    def __new__(cls, a, b=1.0):
        return super().__new__(cls, a + 10.0, b)


class PairProperty(Pair):
    @property
    def a(self):
        return 7.0


def fields_of(cls: Any, *more: Any, **named: Any) -> Callable[[Any], Any]:
    """A function of one example that builds an object: written out, as programs are read as source."""
    return {
        OwnInit: lambda x: OwnInit(x).x,
        SubInit: lambda x: SubInit(x).x,
        OwnNew: lambda x: OwnNew(x).x,
        PostInit: lambda x: PostInit(x).x,
        NoInitField: lambda x: NoInitField(x).x,
        WithInitVar: lambda x: WithInitVar(x).x,
        WatchesWrites: lambda x: WatchesWrites(x).x,
        PairNew: lambda x: PairNew(x).a,
        PairProperty: lambda x: PairProperty(x).a,
    }[cls]


def of_plain(x):
    return Plain(x).y * InheritsInit(x, 3.0).x


def of_keyword_only(x):
    return KeywordOnly(x, y=x).y + KeywordOnly(x).y


def of_factory_given(x):
    return Made(x, x).y


def of_frozen(x):
    return Frozen(x).y + Frozen(y=x, x=1.0).y


def of_pair(x):
    return Pair(x).b + Pair(x, x).b


def positional_keyword_only(x):
    return KeywordOnly(x, x).y


def calls_the_factory(x):
    return Made(x).x


def refused(function: Any, *batches: Any) -> spmd.SpmdError:
    with pytest.raises(spmd.SpmdError) as caught:
        spmd.vmap(function)(*batches)
    assert caught.value.code != "E00"
    assert caught.value.span is not None
    return caught.value


def leaves(result: Any) -> list[Any]:
    return list(result) if isinstance(result, tuple) else [result]


def as_loop(function: Any, *batches: Any) -> None:
    """Equal values and dtypes, for one example and for many."""
    many = [list((list(batch) * 33)[:33]) for batch in batches]
    for given in ([batch[:1] for batch in many], many):
        found = leaves(spmd.vmap(function)(*given))
        expected = [leaves(function(*row)) for row in zip(*given)]
        assert len(found) == len(expected[0])
        for k, column in enumerate(found):
            want = np.array([row[k] for row in expected])
            assert np.asarray(column).dtype == want.dtype
            np.testing.assert_array_equal(column, want)


def raises_as_loop(function: Any, batch: Any, example: int) -> None:
    """The loop's exception, at the loop's example."""
    with pytest.raises(Exception) as plain:
        [function(x) for x in batch]
    with pytest.raises(type(plain.value)) as caught:
        spmd.vmap(function)(batch)
    assert str(caught.value) == str(plain.value)
    assert caught.value.example == example  # type: ignore[attr-defined]


# ------------------------------------------------------------------------------------------------ (1) building
@pytest.mark.parametrize("function", [of_plain, of_keyword_only, of_factory_given, of_frozen, of_pair])
def test_generated_constructors_build_as_python(function: Any) -> None:
    as_loop(function, [1.5, -2.0, 4.0])


@pytest.mark.parametrize("cls", [
    OwnInit, SubInit, OwnNew, PostInit, NoInitField, WithInitVar, WatchesWrites, PairNew, PairProperty,
])
def test_constructors_with_code_of_their_own_are_refused(cls: Any) -> None:
    assert refused(fields_of(cls), [1.0, 2.0]).hint


def test_how_fields_are_given_is_as_declared() -> None:
    assert "by keyword only" in str(refused(positional_keyword_only, [1.0]))
    assert refused(calls_the_factory, [1.0]).hint


def test_changed_defaults_are_seen() -> None:
    @dataclass
    class Late:
        x: float
        y: float = 2.0
        z: float = field(default=3.0, kw_only=True)

    class LatePair(NamedTuple):
        a: float
        b: float = 2.0

    def both(x):
        made = Late(x)
        return made.y * x + made.z + LatePair(x).b

    compiled = spmd.vmap(both)
    for _ in range(2):
        assert list(compiled([1.0, 2.0])) == [both(1.0), both(2.0)]
        Late.__init__.__defaults__ = (20.0,)
        Late.__init__.__kwdefaults__["z"] = 30.0
        LatePair.__new__.__defaults__ = (50.0,)


# ------------------------------------------------------------------------------------------------ (2) isinstance
def of_functions(x):
    return isinstance(np.tanh, np.ufunc), isinstance(float, type), isinstance(np.tanh, type), isinstance(x, float)


def of_a_method(x):
    return isinstance(x.sum, type)


def test_isinstance_answers_for_functions_and_classes() -> None:
    as_loop(of_functions, [1.0, 2.0])
    assert refused(of_a_method, np.ones((2, 3))).hint


# ------------------------------------------------------------------------------------------------ (3) partial
def scaled(a, x, c):
    return a * x + c


def test_a_changed_partial_is_seen() -> None:
    inner = functools.partial(scaled, 2.0, c=1.0)

    held = functools.partial(scaled, 3.0, c=4.0)

    def nested(x, f=held):
        return f(x)

    def outer(x):
        return inner(x) + nested(x)

    compiled = spmd.vmap(outer)
    for c in (11.0, 13.0):
        assert list(compiled([1.0, 2.0])) == [outer(1.0), outer(2.0)]
        inner.keywords["c"] = c
        held.keywords["c"] = -c
    inner.__setstate__((scaled, (5.0,), {"c": 13.0}, {}))  # type: ignore[attr-defined]
    assert list(compiled([1.0, 2.0])) == [outer(1.0), outer(2.0)]


# ------------------------------------------------------------------------------------------------ (4) dtypes
def array_uint8(x):
    return np.array([x, 1], dtype=np.uint8)


def nested_uint8(x):
    return np.array([[1, 2], (x, 4)], dtype=np.uint8)


def full_uint8(x):
    return np.full(3, x, dtype=np.uint8)


def full_like_uint8(x):
    return np.full_like(np.zeros(2, np.uint8), x)


def asarray_int8(x):
    return np.asarray(x, dtype=np.int8)


def array_uint64(x):
    return np.array(x, dtype=np.uint64)


def array_float32(x):
    return np.array([x, 2.5], dtype=np.float32)


def array_bool(x):
    return np.array([x, 0], dtype=bool)


@pytest.mark.parametrize("function", [
    array_uint8, nested_uint8, full_uint8, full_like_uint8, asarray_int8, array_uint64, array_float32, array_bool,
])
def test_a_dtype_converts_each_number(function: Any) -> None:
    as_loop(function, [3, 100, 7])
    as_loop(function, [3.5, 99.75])
    as_loop(function, [np.int64(70), np.int64(3)])


@pytest.mark.parametrize("function", [array_uint8, nested_uint8, full_uint8, full_like_uint8, asarray_int8])
def test_a_python_int_that_does_not_fit_raises(function: Any) -> None:
    raises_as_loop(function, [3, 300, 300], 1)


def test_numbers_that_do_not_fit_raise_or_wrap_as_numpy_says() -> None:
    raises_as_loop(array_uint64, [1, 2, -1], 2)
    raises_as_loop(asarray_int8, [1.5, 300.5], 1)
    raises_as_loop(array_uint8, [1.5, 300.5], 1)
    raises_as_loop(array_uint8, [1.5, float("nan")], 1)
    as_loop(full_uint8, [1.5, 300.5])
    as_loop(full_like_uint8, [1.5, 300.5])
    as_loop(array_uint8, [np.int64(300), np.int64(-1)])
    as_loop(array_uint8, [np.float64(300.5), np.float64(3.0)])
    as_loop(array_float32, [2**60 + 2**36 + 1, 1])


def constant_that_does_not_fit(x):
    return np.array([300, 1], dtype=np.uint8) + x


def int8_of_numpy_float(x):
    return np.array([x], dtype=np.int8)


def test_constants_and_numpy_floats_in_lists() -> None:
    raises_as_loop(constant_that_does_not_fit, [1, 2], 0)
    as_loop(int8_of_numpy_float, [np.float64(30.5), np.float64(-3.0)])
    raises_as_loop(int8_of_numpy_float, [np.float64(3.0), np.float64(300.5)], 1)


# ------------------------------------------------------------------------------------------------ (5) linspace
def whole_points(x):
    return np.linspace(x, 2.5, 4, dtype=int)


def open_points(x):
    return np.linspace(x, 2.5, 4, endpoint=False)


def points(x):
    return np.linspace(x, x + np.float32(1.1), 7)


def endpoint_from_data(x):
    return np.linspace(0.0, 1.0, 3, endpoint=x)


def test_linspace_rounds_and_ends_as_numpy() -> None:
    as_loop(whole_points, [-2.5, 0.25, -7.1])
    as_loop(open_points, [-2.5, 0.25])
    as_loop(points, [np.float32(0.1), np.float32(0.2)])
    refused(endpoint_from_data, [True, False])


# ------------------------------------------------------------------------------------------------ (6) comparisons
def compared(i, f):
    return i < f, i <= f, i > f, i >= f, i == f, i != f, f < i, f <= i, f > i, f >= i, f == i, f != i


def with_a_constant(i):
    return i == 2.0**53, i > 2.0**53, i >= 0.5, 2.0**63 > i


def compared_by_numpy(i, f):
    return np.equal(i, f), np.less(i, f), np.equal(i, np.float64(f)), np.greater_equal(np.int64(i), f)


@pytest.mark.filterwarnings("ignore")
def test_an_int_and_a_float_compare_exactly() -> None:
    pairs = [(i, f) for i in INTS for f in FLOATS]
    whole, real = [i for i, _ in pairs], [f for _, f in pairs]
    for function in (compared, compared_by_numpy):
        found = zip(*(np.asarray(column).tolist() for column in spmd.vmap(function)(whole, real)))
        assert list(found) == [tuple(map(bool, function(i, f))) for i, f in pairs]
    as_loop(compared, INTS[:1], FLOATS[:1])
    as_loop(with_a_constant, INTS)


# ------------------------------------------------------------------------------------------------ (7) methods
def items_with_more(x):
    return {"a": x}.items(x)


def get_by_keyword(x):
    return {"a": x}.get("a", default=x)


def get_too_many(x):
    return {"a": x}.get("a", x, x)


def replaced_by_position(x):
    return Pair(x)._replace(x, b=x).a


def as_dictionary_of(x):
    return Pair(x)._asdict(x)["a"]


def methods_as_python(x):
    return {"a": x}.get("b", x), Pair(x)._replace(b=x).b, sum({"a": x, "b": 2.0}.values())


@pytest.mark.parametrize("function", [
    items_with_more, get_by_keyword, get_too_many, replaced_by_position, as_dictionary_of,
])
def test_methods_take_what_python_takes(function: Any) -> None:
    assert isinstance(refused(function, [1.0, 2.0]), spmd.TypeMismatch)


def test_methods_of_records_and_dictionaries() -> None:
    as_loop(methods_as_python, [1.0, 2.0])
