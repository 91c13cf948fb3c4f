"""NumPy's, math's and Python's functions through the rules: value, dtype and kind as the functions themselves give."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from spmd.ir.build import constant_type
from spmd.ir.core import Block, Value
from spmd.ir.types import Num
from spmd.ops.primitive import Refusal
from spmd.ops.table import METHODS, NUMPY, builder
from tests.ops.straightline import fits, run

A = np.array([[1.5, -2.0, 0.25], [3.0, 0.5, -1.0]])
B = np.array([[0.5, 4.0, -0.25], [1.0, 2.5, 7.0]])
V = np.array([0.5, -2.0, 3.5])
F = np.array([1.5, -2.25], np.float32)
I = np.array([[3, -1, 2], [5, 0, 4]])  # noqa: E741
J = np.array([7, 3, 2], np.int32)
M = np.array([True, False, True])
S = [2, -3, True, 0.75, -0.5, np.float32(0.5), np.float64(0.25), np.int32(3), np.bool_(True)]


class Known:
    """An argument that is a constant, not a value."""

    def __init__(self, value: Any) -> None:
        self.value = value


def K(value: Any) -> Known:  # noqa: N802 (it stands in tables of calls, beside A, B, V)
    return Known(value)


def lowered(arg: Any, env: dict[Value, Any], hide: bool) -> Any:
    if isinstance(arg, Known):
        return arg.value
    if isinstance(arg, (tuple, list)):
        return type(arg)(lowered(a, env, hide) for a in arg)
    type_ = constant_type(arg)
    value = Value(Num(type_.dtype, (None,) * type_.rank) if hide and type_.rank else type_)
    env[value] = arg
    return value


def plain(arg: Any) -> Any:
    if isinstance(arg, Known):
        return arg.value
    return type(arg)(plain(a) for a in arg) if isinstance(arg, (tuple, list)) else arg


def attempt(function: Any, *args: Any, **kwargs: Any) -> Any:
    with np.errstate(all="ignore"):
        try:
            return function(*args, **kwargs)
        except Exception as error:
            return error


def through_rule(rule: Any, args: Any, kwargs: Any, hide: bool) -> tuple[Any, Any]:
    """(result of the rule, its value)"""
    env: dict[Value, Any] = {}
    block = Block()
    result = rule(builder(block), [lowered(a, env, hide) for a in args], {k: lowered(a, env, hide) for k,
    a in kwargs.items()})
    done = run(block, env)
    if isinstance(result, (tuple, list)):
        return result, (tuple if isinstance(result, tuple) else list)(done.get(r, r) for r in result)
    return result, done.get(result, result)


def assert_same(found: Any, expected: Any, about: Any) -> None:
    if isinstance(expected, (tuple, list)):
        assert isinstance(found, type(expected)) or hasattr(expected, "_fields")
        assert len(found) == len(expected)
        for f, e in zip(found, expected):
            assert_same(f, e, about)
        return
    if type(expected) in (int, float, bool):
        assert type(found) is type(expected), (about, found, expected)
    else:
        assert type(found) not in (int, float, bool), (about, found, expected)
        assert np.asarray(found).dtype == np.asarray(expected).dtype, (about, found, expected)
        assert np.shape(found) == np.shape(expected), (about, found, expected)
    tolerance = {2: 2e-3, 4: 2e-6}.get(np.asarray(expected).dtype.itemsize, 1e-12)
    np.testing.assert_allclose(
        np.asarray(found, np.float64), np.asarray(expected, np.float64), rtol=tolerance, atol=1e-12,
        err_msg=str(about)
    )


def check(function: Any, rule: Any, args: Any, kwargs: Any, hide: bool = False) -> None:
    about = (getattr(function, "__name__", function), args, kwargs, hide)
    expected = attempt(function, *plain(tuple(args)), **{k: plain(a) for k, a in kwargs.items()})
    got = attempt(through_rule, rule, args, kwargs, hide)
    if type(expected) is int and not -(2**63) <= expected < 2**63:
        assert isinstance(got, OverflowError)
        return
    if isinstance(expected, Exception):
        assert isinstance(got, Exception), (about, got, expected)
        assert isinstance(got, (Refusal, type(expected), TypeError)), (about, got, expected)
        return
    if isinstance(got, Exception):
        raise AssertionError(about) from got
    result, found = got
    if isinstance(result, Value):
        assert fits(found, result.type), (about, found, result.type)
    assert_same(found, expected, about)


UNARY = [
    np.exp, np.log, np.log1p, np.expm1, np.log2, np.log10, np.tanh, np.sin, np.cos, np.tan, np.sinh, np.cosh,
    np.arcsin,
    np.arccos, np.arctan, np.sqrt, np.square, np.abs, np.fabs, np.sign, np.floor, np.ceil, np.rint, np.trunc,
    np.isnan,
    np.isinf, np.isfinite, np.logical_not, np.negative, np.positive, np.reciprocal, np.round, np.invert,
]
BINARY = [
    np.add, np.subtract, np.multiply, np.divide, np.floor_divide, np.mod, np.power, np.maximum, np.minimum,
    np.arctan2,
    np.hypot, np.logical_and, np.logical_or, np.logical_xor, np.equal, np.not_equal, np.less, np.less_equal,
    np.greater,
    np.greater_equal, np.logaddexp, np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.left_shift, np.right_shift,
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("function", UNARY, ids=lambda f: f.__name__)
def test_unary_functions_are_numpys(function: Any) -> None:
    for x in [*S, A, F, J, M, [0.5, 2.0], [1, 2]]:
        kinds = {constant_type(v).kind for v in (x if isinstance(x, list) else [x])}
        if function is np.reciprocal and not kinds <= {"f"}:
            continue
        if function is np.round and kinds == {"b"}:
            continue
        for hide in (False, True):
            check(function, NUMPY[function], [x], {}, hide)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("function", BINARY, ids=lambda f: f.__name__)
def test_binary_functions_are_numpys(function: Any) -> None:
    for x in [*S, A, V]:
        for y in [*S, A, V, [1.0, 2.0, 3.0]]:
            check(function, NUMPY[function], [x, y], {})
    check(function, NUMPY[function], [A > 0, V > 0], {}, True)


CALLS: list[tuple[Any, list[Any], dict[str, Any]]] = [
    (np.where, [M, V, 0.0], {}), (np.where, [True, 1, 2.5], {}), (np.where, [M, F[0], J], {}),
    (np.where, [V, V, A], {}),
    (np.where, [M, K(1), K(0)], {}), (np.where, [M, F[:1], K(0.0)], {}),
    (np.clip, [V, K(-1.0), K(1.0)], {}), (np.clip, [V, K(None), 2.0], {}), (np.clip, [J, K(2), K(5)], {}),
    (np.round, [A * 1.234567, K(2)], {}), (np.round, [A], {}), (np.round, [J], {}),
    *[
        (function, [x], kwargs)
        for function in (np.sum, np.prod, np.mean, np.max, np.min, np.any, np.all, np.std, np.var)
        for x in (A, I, J, M, F, 2.5, [1.0, 2.0, 4.0])
        for kwargs in ({}, {"axis": K(0)}, {"axis": K(-1), "keepdims": K(True)})
        if np.ndim(x) or not kwargs
    ],
    (np.sum, [A], {"axis": K((0, 1))}), (np.sum, [A], {"dtype": K(np.float32)}), (np.mean, [A], {"axis": K((0, 1))}),
    (np.sum, [A, K(1)], {}), (np.var, [A], {"ddof": K(1)}), (np.mean, [F.astype(np.float16)], {}),
    *[(f, [x], k) for f in (np.argmax, np.argmin) for x in (A, I, V) for k in ({}, {"axis": K(0)}, {"axis": K(-1)})],
    (np.argmax, [A], {"axis": K(1), "keepdims": K(True)}), (np.argmax, [A], {"keepdims": K(True)}),
    (np.linalg.norm, [A], {}), (np.linalg.norm, [A], {"axis": K(1)}), (np.linalg.norm, [V * 0], {}),
    (np.dot, [A, V], {}), (np.dot, [V, V], {}), (np.dot, [A, B.T], {}), (np.dot, [V, 2.0], {}), (np.dot, [I, V], {}),
    (np.matmul, [A, V], {}), (np.matmul, [V, A.T], {}), (np.matmul, [np.stack([A, B]), B.T], {}),
    (np.inner, [V, V], {}),
    (np.inner, [A, B], {}), (np.inner, [A, V], {}), (np.vdot, [A, B], {}), (np.outer, [V, F], {}),
    (np.outer, [A, V], {}),
    (np.concatenate, [[A, B]], {}), (np.concatenate, [(A, B)], {"axis": K(1)}),
    (np.concatenate, [[A, B]], {"axis": K(None)}),
    (np.concatenate, [[V, F]], {}), (np.concatenate, [[J, M]], {}), (np.concatenate, [[V, 1.0]], {}),
    (np.stack, [[V, V]], {}), (np.stack, [[V, J]], {"axis": K(-1)}), (np.stack, [[1.0, np.float32(2)]], {}),
    (np.vstack, [[V, A]], {}), (np.hstack, [[V, V]], {}), (np.hstack, [[A, B]], {}), (np.hstack, [[1.0, 2]], {}),
    (np.reshape, [A, K((3, 2))], {}), (np.reshape, [A, K(-1)], {}), (np.reshape, [A, (K(-1), 2)], {}),
    (np.reshape, [A, (3, K(-1))], {}), (np.reshape, [A, K((4, 2))], {}), (np.reshape, [A, (4, 2)], {}),
    (np.ravel, [A], {}),
    (np.transpose, [A], {}), (np.transpose, [A[None], K((2, 0, 1))], {}), (np.swapaxes, [A, K(0), K(-1)], {}),
    (np.moveaxis, [A[None], K(0), K(-1)], {}), (np.expand_dims, [A, K(1)], {}), (np.expand_dims, [V, K(-1)], {}),
    (np.squeeze, [A[None]], {"axis": K(0)}), (np.atleast_2d, [V], {}), (np.atleast_1d, [2.5], {}),
    (np.zeros, [2], {}), (np.zeros, [(2, K(3))], {"dtype": K(np.float32)}), (np.ones, [(3,)], {"dtype": K(int)}),
    (np.zeros, [-2], {}), (np.full, [K((2, 2)), 1.5], {}), (np.full, [3, 2], {"dtype": K(np.float32)}),
    (np.zeros_like, [A], {}), (np.ones_like, [J], {}), (np.full_like, [A, 3], {}), (np.zeros_like, [2.5], {}),
    (np.ones_like, [V], {"dtype": K(np.float32)}), (np.zeros_like, [3], {}),
    (np.arange, [4], {}), (np.arange, [1, 9, 3], {}), (np.arange, [0.5, 3], {}), (np.arange, [5, 0, K(-2)], {}),
    (np.arange, [np.float32(3)], {}), (np.arange, [4], {"dtype": K(np.float64)}), (np.arange, [0, 4, 0], {}),
    (np.linspace, [0.5, 2], {"num": K(5)}), (np.linspace, [0.5, 2, K(4)], {"endpoint": K(False)}),
    (np.array, [[1.0, 2]], {}), (np.array, [[[1, 2], [3, 4]]], {}), (np.array, [[V, V]], {}), (np.array, [2.5], {}),
    (np.array, [[1, 2]], {"dtype": K(np.float32)}), (np.asarray, [A], {}), (np.copy, [V], {}),
    (np.array, [[True, 2]], {}),
    (np.array, [[np.float32(1), 2.0]], {}), (np.array, [(M, J)], {}),
    (np.broadcast_to, [V, K((2, 3))], {}), (np.take, [V, np.array([0, -1])], {}),
    (np.take, [A, np.array([1, 1, 0])], {"axis": K(1)}),
    (np.take, [A, 4], {}), (np.flip, [A], {}), (np.flip, [A], {"axis": K(1)}),
    (np.eye, [K(2)], {}), (np.eye, [K(2), K(3)], {"dtype": K(np.float32)}), (np.identity, [K(3)], {}),
    (np.shape, [A], {}), (np.ndim, [A], {}), (np.size, [A], {}),
    *[(kind, [x], {}) for kind in (np.float32, np.float64, np.int64, np.int32, np.bool_) for x in (*S, V, J, M)],
    (np.uint8, [300], {}), (np.uint8, [30], {}), (np.int32, [math.nan], {}), (np.int8, [np.float64(3.7)], {}),
    *[
        (f, [x], {})
        for f in (
            math.exp, math.expm1, math.log, math.log1p, math.log2, math.log10, math.sqrt, math.sin, math.cos,
            math.tan,
            math.sinh, math.cosh, math.tanh, math.asin, math.acos, math.atan, math.fabs, math.floor, math.ceil,
            math.trunc,
            math.isnan, math.isinf, math.isfinite, math.radians, math.degrees,
        )
        for x in (*S, 1e308, -1e308, math.inf, -math.inf, math.nan, 0.0, A)
    ],
    (math.log, [8.0, 2], {}), (math.log, [8.0, 1.0], {}), (math.pow, [2, 0.5], {}), (math.pow, [0.0, -1.0], {}),
    (math.pow, [-8.0, 0.5], {}), (math.pow, [1e200, 3], {}), (math.atan2, [1.0, np.float32(-2)], {}),
    (math.hypot, [3, 4], {}),
    *[(f, [x], {}) for f in (abs, float, int, bool, round) for x in (*S, -2.5, 3.5, math.nan, math.inf, 1e30)],
    (abs, [A], {}), (int, [-(2**63)], {}), (abs, [-(2**63)], {}), (round, [np.float64(1.2345), K(2)], {}),
    (round, [7, K(1)], {}),
    *[(f, args, {}) for f in (max, min) for args in (
        [1, 2], [2.5, 1.5], [1.5, math.nan], [math.nan, 1.5], [1, 2, 0], [[3.0, 1.0, 2.0]], [np.float32(1),
        np.float32(2)],
        [True, False], [A, B], [0.0, -0.0], [[]],
    )],
    (sum, [(1.0, 2.0, 3.5)], {}), (sum, [[V, V]], {}), (sum, [A], {}), (sum, [J], {}), (sum, [M], {}),
    (sum, [()], {}),
    (sum, [(1, 2)], {"start": 10}), (sum, [(np.float32(1), np.float32(2))], {}), (sum, [(True, True)], {}),
    (sum, [V, 1], {}),
    (pow, [2.5, 2], {}), (pow, [3, K(4)], {}), (divmod, [7, -2], {}), (divmod, [7.5, 2], {}), (divmod, [J, 2], {}),
]


def _flat(args: Any) -> Any:
    for a in args:
        if isinstance(a, (tuple, list)):
            yield from _flat(a)
        else:
            yield a


def has_sizes(args: Any) -> bool:
    return any(isinstance(v, np.ndarray) and v.ndim for v in _flat(args))


def both_ways(cases: list[Any], args_of: Any) -> list[Any]:
    """(case, whether sizes are hidden from the compiler), the latter only where there are any."""
    return [(k, hide) for k, case in enumerate(cases) for hide in (False,
    True) if not hide or has_sizes(args_of(case))]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("case", "hide"), both_ways(CALLS, lambda case: case[1]))
def test_functions_give_value_and_kind_of_the_original(case: int, hide: bool) -> None:
    function, args, kwargs = CALLS[case]
    if hide and function is np.broadcast_to:
        with pytest.raises((Refusal, TypeError)):
            through_rule(NUMPY[function], args, kwargs, True)
        return
    check(function, NUMPY[function], args, kwargs, hide)


METHOD_CALLS: list[tuple[str, Any, list[Any], dict[str, Any]]] = [
    *[(name, x, [], kwargs) for name in ("sum", "prod", "mean", "max", "min", "any", "all", "argmax", "var", "std")
      for x in (A, I, V) for kwargs in ({}, {"axis": K(0)})],
    ("sum", A, [K(1)], {"keepdims": K(True)}), ("reshape", A, [K(3), K(2)], {}), ("reshape", A, [K((3, 2))], {}),
    ("reshape", A, [K(-1)], {}), ("reshape", A, [3, K(-1)], {}), ("transpose", A, [], {}),
    ("transpose", A, [K(1), K(0)], {}),
    ("transpose", A, [K((1, 0))], {}), ("copy", A, [], {}), ("astype", A, [K(np.float32)], {}),
    ("astype", A, [K(int)], {}),
    ("astype", J, [K("float64")], {}), ("dot", A, [V], {}), ("item", np.float32(2.5), [], {}),
    ("item", np.int32(2), [], {}),
    ("item", V[:1], [], {}), ("item", V, [], {}), ("flatten", A, [], {}), ("ravel", A, [], {}),
    ("squeeze", A[None], [K(0)], {}),
    ("swapaxes", A, [K(0), K(1)], {}), ("clip", V, [K(-1), K(1)], {}), ("round", A, [], {}),
    ("take", V, [np.array([2, 0])], {}),
    ("any", np.float64(2.0), [], {}), ("sum", np.float32(2.0), [], {}),
    ("astype", np.float64(2.7), [K(np.int32)], {}),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("case", "hide"), both_ways(METHOD_CALLS, lambda case: case[1:2]))
def test_methods_give_value_and_kind_of_the_original(case: int, hide: bool) -> None:
    name, owner, args, kwargs = METHOD_CALLS[case]
    if hide and name == "item":
        return
    check(lambda x, *a, **k: getattr(x, name)(*a, **k), METHODS[name], [owner, *args], kwargs, hide)


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "word"),
    [
        (np.var, [A], {"where": K(True)}, "where"), (np.exp, [A], {"out": A}, "out"),
        (np.exp, [A], {"dtype": K(np.float32)}, "dtype"),
        (np.sum, [A], {"axis": 1}, "axis"), (np.eye, [2], {}, "np.eye"), (np.empty, [K((2,))], {}, "np.empty"),
        (np.zeros, [2], {"dtype": K(complex)}, "complex"),
        (max, [A], {}, "max"), (np.histogram, [A], {"bins": K(4)}, "np.histogram"), (round, [2.5, K(1)], {}, "round"),
        (np.reshape, [A, K(-1)], {"order": K("F")}, "order"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(function: Any, args: Any, kwargs: Any, word: str) -> None:
    with pytest.raises(Refusal, match=word):
        through_rule(NUMPY[function], args, kwargs, False)


def test_methods_of_python_numbers_do_not_exist() -> None:
    with pytest.raises(AttributeError, match="'float' object has no attribute 'sum'"):
        through_rule(METHODS["sum"], [2.5], {}, False)
