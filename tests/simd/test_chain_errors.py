"""Checked operations: rows in which Python would raise are named with the first operation at fault, no others."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

import numpy as np
import pytest
from machines import MACHINES, grid, one_op, samples

from spmd.backend.simd import ChainOp, ChainOperand, ChainSpec, Failure, compile_chains, error_operation, error_reason
from spmd.backend.simd.operations import CHECKED

LOW, HIGH = -(2**63), 2**63 - 1


def _in_64_bits(function: Callable[..., int]) -> Callable[..., int]:
    def run(*operands: int) -> int:
        result = function(*operands)
        if not LOW <= result <= HIGH:
            raise OverflowError
        return result

    return run


def _real_power(x: float, y: float) -> float:
    if x < 0 and math.isfinite(x) and math.isfinite(y) and not y.is_integer():
        raise ArithmeticError("a complex number, or too large for one")
    return x**y


PYTHON: dict[str, Callable[..., int | float]] = {
    "add!": _in_64_bits(operator.add),
    "sub!": _in_64_bits(operator.sub),
    "mul!": _in_64_bits(operator.mul),
    "neg!": _in_64_bits(operator.neg),
    "abs!": _in_64_bits(abs),
    "floordiv!": operator.floordiv,
    "mod!": operator.mod,
    "div!": operator.truediv,
    "int!": _in_64_bits(int),
    "exp!": math.exp,
    "expm1!": math.expm1,
    "log!": math.log,
    "log2!": math.log2,
    "log10!": math.log10,
    "log1p!": math.log1p,
    "sqrt!": math.sqrt,
    "sin!": math.sin,
    "cos!": math.cos,
    "pow!": _real_power,
}
RAISES = {
    Failure.OVERFLOW: OverflowError,
    Failure.ZERO_DIVISION: ZeroDivisionError,
    Failure.DOMAIN: ValueError,
    Failure.NOT_A_NUMBER: ValueError,
    Failure.INFINITE: OverflowError,
    Failure.COMPLEX: ArithmeticError,
}
CASES = [(name, dtype) for name in CHECKED for dtype in sorted(CHECKED[name].dtypes)]


def test_the_table_of_checked_operations_is_covered() -> None:
    assert set(PYTHON) == set(CHECKED)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_a_checked_operation_does_what_python_does(name: str, dtype: str, machine: str) -> None:
    arity = CHECKED[name].arity
    result = "int64" if CHECKED[name].result == "int64" else dtype
    (kernel,) = compile_chains([one_op(name, dtype, result, arity)], machine=MACHINES[machine])
    operands = grid(*[samples(dtype, seed) for seed in range(arity)])
    K = len(operands[0])
    out, errors = np.empty(K, result), np.full(K, 99, np.int32)
    function = PYTHON[name] if dtype != "int64" else _in_64_bits(PYTHON[name])
    with np.errstate(all="ignore"):
        status = kernel([out], operands, K, errors=errors)
    assert status == errors[errors != 0].min()
    for k, arguments in enumerate(zip(*[x.tolist() for x in operands], strict=True)):
        try:
            wanted = function(*arguments)
        except (ArithmeticError, ValueError) as error:
            assert errors[k], (arguments, error)
            assert error_operation(errors[k]) == 0
            assert RAISES[error_reason(errors[k])] is type(error), (arguments, error)
        else:
            assert errors[k] == 0, (arguments, wanted, errors[k])
            got = out[k].item()
            if isinstance(wanted, int):
                assert got == wanted, arguments
            else:
                close = np.isclose(got, wanted, rtol=1e-15, atol=0, equal_nan=True)
                assert close and math.copysign(1, got) == math.copysign(1, wanted) or math.isnan(wanted), arguments


def _chain() -> ChainSpec:
    """A uniform, a per-row and a per-feature operation that can fail, the per-feature one first in order."""
    operands = (ChainOperand("full", "int64"), ChainOperand("row", "int64"), ChainOperand("one", "int64"))
    ops = (
        ChainOp("floordiv!", (1, 0), "int64"),
        ChainOp("add!", (3, 1), "int64"),
        ChainOp("mul!", (1, 1), "int64"),
        ChainOp("neg!", (2,), "int64"),
        ChainOp("sub!", (0, 0), "int64"),
    )
    return ChainSpec(operands, ops, ((4, "full"), (5, "row")))


@pytest.mark.parametrize("machine", MACHINES)
def test_the_first_operation_in_order_is_blamed_in_each_row(machine: str) -> None:
    (kernel,) = compile_chains([_chain()], machine=MACHINES[machine])
    for F in (1, 5, 8, 17):
        x = np.full((6, F), 3)
        row = np.array([5, 6, 2**40, 2**40, 7, 8])
        x[1, F - 1] = x[2, 0] = 0
        outs = [np.empty((6, F), np.int64), np.empty(6, np.int64)]
        errors = np.empty(6, np.int32)
        status = kernel(outs, [x, row, np.array(1)], 6, F, errors=errors)
        blamed = [error_operation(error) if error else None for error in errors]
        assert blamed == [None, 0, 0, 2, None, None]
        assert error_reason(errors[1]) is Failure.ZERO_DIVISION and error_reason(errors[3]) is Failure.OVERFLOW
        assert status == errors[1]
        fine = [0, 4, 5]
        np.testing.assert_array_equal(outs[0][fine], (row[:, None] // np.where(x == 0, 1, x) + row[:, None])[fine])
        np.testing.assert_array_equal(outs[1][fine], (row * row)[fine])


@pytest.mark.parametrize("machine", MACHINES)
def test_a_failing_uniform_operation_is_blamed_in_every_row(machine: str) -> None:
    (kernel,) = compile_chains([_chain()], machine=MACHINES[machine])
    for F in (1, 5):
        x, row = np.full((4, F), 3), np.array([1, 2, 3, 2**40])
        x[0, 0] = 0
        errors = np.empty(4, np.int32)
        outs = [np.empty((4, F), np.int64), np.empty(4, np.int64)]
        kernel(outs, [x, row, np.array(LOW)], 4, F, errors=errors)
        assert [error_operation(error) for error in errors] == [0, 3, 3, 2]
        assert kernel([out[:0] for out in outs], [x[:0], row[:0], np.array(LOW)], 0, F, errors=errors[:0]) == 0


@pytest.mark.parametrize("machine", MACHINES)
def test_lanes_behind_the_end_cannot_fail(machine: str) -> None:
    for spec in (one_op("floordiv!", "int64", "int64", 2), one_op("floordiv!", "int64", "int64", 2, "full")):
        (kernel,) = compile_chains([spec], machine=MACHINES[machine])
        for count in range(1, 20):
            x = np.zeros(40, np.int64)
            x[:count] = 5
            shape, K, F = ((count,), count, 1) if spec.by_rows else ((1, count), 1, count)
            errors = np.full(K + 1, 99, np.int32)
            out = np.full(40, -1)
            operand = x[:count].reshape(shape)
            assert kernel([out[:count].reshape(shape)], [operand, operand], K, F, errors=errors[:K]) == 0
            assert errors.tolist() == [0] * K + [99]
            assert out.tolist() == [1] * count + [-1] * (40 - count)


def test_the_error_array_may_be_left_out() -> None:
    (kernel,) = compile_chains([one_op("div!", "float64", "float64", 2)])
    out = np.empty(3)
    assert kernel([out], [np.ones(3), np.array([1.0, 0.0, 2.0])], 3) == 16 + Failure.ZERO_DIVISION
    assert out[[0, 2]].tolist() == [1.0, 0.5]
