"""The derivatives that DESIGN 8 fixes where a function has a kink, a pole or a tie, in first and second order."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from spmd.ir.build import Builder, constant_type
from spmd.ir.core import Block, Value
from spmd.ops import operators
from spmd.ops.table import NUMPY, builder
from tests.ops.straightline import append_gradient, cotangent_type, run

Program = Callable[..., Value]


def gradient(program: Program, *args: Any, ct: Any = None, order: int = 1) -> list[Any]:
    """Derivatives of a program of scalars or arrays; the second is that of the sum of the first ones."""
    block = Block()
    b = builder(block)
    inputs = [Value(constant_type(a)) for a in args]
    result = program(b, *inputs)
    seed = Value(cotangent_type(result.type))
    cts = append_gradient(block, {result: seed}, inputs)
    one = np.ones([n or 1 for n in seed.type.shape], seed.type.dtype)[()] if ct is None else ct
    env = {**dict(zip(inputs, args)), seed: one}
    for _ in range(order - 1):
        seeds = {v: Value(v.type) for v in cts if v is not None}
        env.update({s: np.ones(s.type.shape)[()] for s in seeds.values()})
        cts = append_gradient(block, seeds, inputs)
    with np.errstate(all="ignore"):
        done = run(block, env)
    return [None if v is None else np.asarray(done[v]).tolist() for v in cts]


def call(function: Any, *constants: Any, **named: Any) -> Program:
    return lambda b, *values: NUMPY[function](b, [*values, *constants], dict(named))


def op(symbol: str, *constants: Any) -> Program:
    return lambda b, *values: operators.binary(b, symbol, *values, *constants)


ZERO = np.float64(0)


@pytest.mark.parametrize("zero", [0.0, -0.0, np.float64(0), np.float64(-0.0)])
def test_abs_has_derivative_0_at_0(zero: Any) -> None:
    assert gradient(call(np.abs), zero) == [0.0]
    assert gradient(call(abs), zero) == [0.0]


def test_numpys_extrema_split_ties_and_pythons_follow_the_operand_returned() -> None:
    assert gradient(call(np.maximum), np.float64(2), np.float64(2)) == [0.5, 0.5]
    assert gradient(call(np.minimum), np.float64(2), np.float64(2)) == [0.5, 0.5]
    assert gradient(call(max), 2.0, 2.0) == [1.0, 0.0]
    assert gradient(call(min), 2.0, 2.0) == [1.0, 0.0]
    assert gradient(call(max), 1.0, 2.0) == [0.0, 1.0]


def test_reduced_extrema_share_ties_evenly() -> None:
    x = np.array([1.0, 3.0, 3.0, 2.0, 3.0])
    assert gradient(call(np.max), x) == [[0, 1 / 3, 1 / 3, 0, 1 / 3]]
    assert gradient(call(np.min, axis=0), np.array([[1.0, 2.0], [1.0, 5.0]])) == [[[0.5, 1.0], [0.5, 0.0]]]


def test_powers_follow_the_constant_exponent() -> None:
    assert gradient(op("**", 2), ZERO) == [0.0]
    assert gradient(op("**", 0), ZERO) == [0.0]
    assert gradient(op("**", 1), ZERO) == [1.0]
    assert gradient(op("**", 2.0), 0.0) == [0.0]
    assert gradient(op("**"), ZERO, ZERO) == [0.0, 0.0]
    assert gradient(op("**"), ZERO, np.float64(2)) == [0.0, 0.0]
    assert gradient(op("**"), np.float64(-2), np.float64(3))[0] == 12.0
    assert gradient(op("**", 3), np.float64(-2)) == [12.0]
    assert gradient(op("**", -2), 2.0) == [-0.25]


def test_the_root_has_an_infinite_derivative_at_0_that_a_vanishing_cotangent_leaves_at_0() -> None:
    assert gradient(call(np.sqrt), ZERO) == [math.inf]
    assert gradient(call(math.sqrt), 0.0, ct=ZERO) == [0.0]


@pytest.mark.parametrize(
    ("program", "at"),
    [
        (call(np.sqrt), 0.0), (call(np.log), 0.0), (call(np.log2), 0.0), (call(np.log10), 0.0), (call(np.log1p), -1.0),
        (call(np.reciprocal), 0.0), (op("**", 0.5), 0.0), (op("**", -1.5), 0.0), (call(np.arcsin), 1.0),
        (call(np.arccos), -1.0), (call(np.exp), 1000.0), (call(np.cosh), 1000.0), (call(np.tan), math.inf),
    ],
)
def test_a_vanishing_cotangent_gives_0_at_a_pole(program: Program, at: float) -> None:
    assert gradient(program, np.float64(at), ct=ZERO) == [0.0]


def test_a_vanishing_cotangent_gives_0_for_0_divided_by_0() -> None:
    for x, y in ((0.0, 0.0), (1.0, 0.0)):
        assert gradient(op("/"), np.float64(x), np.float64(y), ct=ZERO) == [0.0, 0.0]


def test_a_masked_arm_gives_no_nan() -> None:
    def root_where_positive(b: Builder, x: Value) -> Value:
        positive = operators.binary(b, ">", x, 0.0)
        return NUMPY[np.where](b, [positive, NUMPY[np.sqrt](b, [x], {}), x], {})

    assert gradient(root_where_positive, np.array([0.0, -1.0, 4.0])) == [[1.0, 1.0, 0.25]]


def test_a_saturated_logistic_has_derivative_0() -> None:
    def logistic(b: Builder, x: Value) -> Value:
        e = NUMPY[np.exp](b, [operators.unary(b, "-", x)], {})
        return operators.binary(b, "/", 1.0, operators.binary(b, "+", 1.0, e))

    assert gradient(logistic, np.array([-1000.0, 1000.0])) == [[0.0, 0.0]]


def test_norms_have_derivative_0_at_the_origin() -> None:
    assert gradient(call(np.linalg.norm), np.zeros(3)) == [[0.0, 0.0, 0.0]]
    assert gradient(call(np.hypot), ZERO, ZERO) == [0.0, 0.0]
    assert gradient(call(math.hypot), 0.0, 0.0) == [0.0, 0.0]
    np.testing.assert_allclose(gradient(call(np.linalg.norm), np.array([3.0, 4.0]))[0], [0.6, 0.8])


def test_steps_have_no_derivative() -> None:
    for function in (np.sign, np.floor, np.ceil, np.rint, np.trunc):
        assert gradient(call(function), np.float64(1.5)) == [None]


def test_logaddexp_shares_ties_evenly() -> None:
    assert gradient(call(np.logaddexp), np.float64(2), np.float64(2)) == [0.5, 0.5]
    shares = [1 / (1 + math.e), math.e / (1 + math.e)]
    np.testing.assert_allclose(gradient(call(np.logaddexp), np.float64(0), np.float64(1)), shares)


def test_products_with_zeros_have_exact_derivatives() -> None:
    assert gradient(call(np.prod), np.array([2.0, 0.0, 3.0])) == [[0.0, 6.0, 0.0]]
    assert gradient(call(np.prod), np.array([0.0, 0.0, 3.0])) == [[0.0, 0.0, 0.0]]
    assert gradient(call(np.prod), np.array([2.0, 0.0, 3.0]), order=2) == [[3.0, 5.0, 2.0]]
    assert gradient(call(np.cumprod), np.array([2.0, 0.0, 3.0]), ct=np.array([0.0, 0.0, 1.0])) == [[0.0, 6.0, 0.0]]


def test_running_extrema_split_ties_as_numpys_maximum_does() -> None:
    last = np.array([0.0, 0.0, 1.0])
    assert gradient(call(np.maximum.accumulate), np.array([2.0, 2.0, 1.0]), ct=last) == [[0.5, 0.5, 0.0]]
    assert gradient(call(np.minimum.accumulate), np.array([2.0, 1.0, 1.0]), ct=last) == [[0.0, 0.5, 0.5]]


def test_a_determinant_of_a_singular_matrix_has_its_derivative() -> None:
    found = gradient(call(np.linalg.det), np.array([[1.0, 2.0], [2.0, 4.0]]))
    np.testing.assert_allclose(found, [[[4.0, -2.0], [-2.0, 1.0]]], rtol=1e-12)


def test_norms_of_every_order_have_derivative_0_at_0() -> None:
    for order in (None, 1, 2, 3, 0.5, np.inf):
        assert gradient(call(np.linalg.norm, order), np.zeros(2)) == [[0.0, 0.0]]


def test_of_a_symmetric_matrix_the_lower_triangle_has_the_derivative() -> None:
    for function in (np.linalg.cholesky, np.linalg.eigvalsh):
        (found,) = gradient(call(function), np.array([[2.0, 0.5], [0.5, 1.0]]))
        assert found[0][1] == 0.0


def test_a_vanishing_cotangent_keeps_the_mixed_second_derivative() -> None:
    """y * f(x) at y = 0: the cotangent of f(x) is 0, but its own derivative is not."""
    known = ((np.sqrt, 4.0, 0.25), (np.log, 2.0, 0.5), (np.exp, 0.0, 1.0), (np.reciprocal, 2.0, -0.25))
    for function, at, slope in known:

        def product(b: Builder, x: Value, y: Value, function: Any = function) -> Value:
            return operators.binary(b, "*", y, NUMPY[function](b, [x], {}))

        dx, dy = gradient(product, np.float64(at), ZERO, order=2)
        assert dx == pytest.approx(slope) and dy == pytest.approx(slope)


def test_the_second_derivative_of_a_square_is_2_everywhere() -> None:
    for x in (0.0, 3.0):
        assert gradient(op("**", 2), np.float64(x), order=2) == [2.0]
        assert gradient(op("**", 2.0), x, order=2) == [2.0]


def test_the_fourth_derivative_of_a_gaussian_at_0_is_12() -> None:
    def gaussian(b: Builder, x: Value) -> Value:
        return NUMPY[np.exp](b, [operators.unary(b, "-", operators.binary(b, "**", x, 2))], {})

    assert gradient(gaussian, ZERO, order=4) == [12.0]


def test_stable_log_of_a_sum_of_exponentials_has_the_softmax_as_derivative() -> None:
    def logsumexp(b: Builder, x: Value) -> Value:
        top = NUMPY[np.max](b, [x], {})
        total = NUMPY[np.sum](b, [NUMPY[np.exp](b, [operators.binary(b, "-", x, top)], {})], {})
        return operators.binary(b, "+", top, NUMPY[np.log](b, [total], {}))

    x = np.array([1.0, 2.0, 3.0, 3.0])
    np.testing.assert_allclose(gradient(logsumexp, x)[0], np.exp(x) / np.exp(x).sum(), rtol=1e-12)
