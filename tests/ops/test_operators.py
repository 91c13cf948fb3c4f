"""Operators over the whole promotion matrix: value, dtype and kind as CPython and NumPy 2 give them."""

from __future__ import annotations

import itertools
import operator
from typing import Any

import numpy as np
import pytest

from spmd.ir.build import constant_type
from spmd.ir.core import Block, Value
from spmd.ir.types import BOOL, FLOAT, INT, TEXT, Num
from spmd.ops import operators
from spmd.ops.primitive import Refusal
from spmd.ops.table import builder
from tests.ops.straightline import fits, run

BINARY = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "&": operator.and_, "|": operator.or_, "^": operator.xor,
    "<<": operator.lshift, ">>": operator.rshift, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge, "==": operator.eq, "!=": operator.ne, "@": operator.matmul,
}
SCALARS = [3, -2, 2.5, -0.75, True, False]
SCALARS += [np.dtype(d).type(x) for d, x in (
    ("bool", 1), ("int8", -3), ("int32", 5), ("int64", -7), ("uint8", 6), ("uint64", 4), ("float16", 1.5),
    ("float32", -2.25), ("float64", 0.5),
)]
ARRAYS = [np.array([1.5, -2.0]), np.array([3, 1], np.int32), np.array([True, False]), np.array([0.5, 2.0], np.float32)]


def applied(op: str, x: Any, y: Any) -> tuple[Any, Num]:
    block = Block()
    b = builder(block)
    values = [Value(constant_type(v)) for v in (x, y)]
    result = operators.binary(b, op, *values)
    return run(block, dict(zip(values, (x, y))))[result], result.type


def outcome(function: Any, *args: Any) -> Any:
    with np.errstate(all="ignore"):
        try:
            return function(*args)
        except Exception as error:
            return error


def assert_same(found: Any, expected: Any, type_: Num, about: Any) -> None:
    assert fits(found, type_), (about, found, type_)
    assert (type(expected) in (int, float, bool)) == type_.python, (about, expected, type_)
    if not type_.python:
        assert np.asarray(expected).dtype == type_.dtype, (about, expected, type_)
    np.testing.assert_allclose(
        np.asarray(found, np.float64), np.asarray(expected, np.float64),
        rtol=1e-3 if type_.dtype == "float16" else 1e-6,
        err_msg=str(about),
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("op", BINARY)
def test_operators_give_the_value_and_the_kind_of_python_and_numpy(op: str) -> None:
    for x, y in itertools.product([*SCALARS, *ARRAYS], repeat=2):
        expected, got = outcome(BINARY[op], x, y), outcome(applied, op, x, y)
        if isinstance(got, Refusal):
            continue
        if isinstance(expected, complex):
            assert isinstance(got, ValueError)
            continue
        if isinstance(got, Exception) or isinstance(expected, Exception):
            assert type(got) is type(expected) or isinstance(got, TypeError), (op, x, y, got, expected)
            assert isinstance(expected, Exception), (op, x, y, got, expected)
            continue
        assert_same(got[0], expected, got[1], (op, x, y))


def test_few_operand_pairs_are_refused() -> None:
    refused = set()
    for op in BINARY:
        for x, y in itertools.product([*SCALARS, *ARRAYS], repeat=2):
            if isinstance(outcome(applied, op, x, y), Refusal):
                refused.add((op, type(x).__name__, type(y).__name__))
    powers = {("**", a, b) for a in ("int", "bool") for b in ("int", "bool")}
    assert {r for r in refused if r[0] == "**"} == powers
    assert all("uint64" in r[1:] or r in powers for r in refused), refused


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("op", ["-", "+", "~", "not"])
def test_unary_operators_give_the_value_and_the_kind_of_python_and_numpy(op: str) -> None:
    function = {"-": operator.neg, "+": operator.pos, "~": operator.invert, "not": operator.not_}[op]
    for x in [*SCALARS, *(ARRAYS if op != "not" else [])]:
        expected = outcome(function, x)
        block, value = Block(), Value(constant_type(x))
        result = outcome(operators.unary, builder(block), op, value)
        if isinstance(expected, Exception):
            assert isinstance(result, TypeError), (op, x, result)
            continue
        assert_same(run(block, {value: x})[result], expected, result.type, (op, x))


EXPONENTS = [0, 1, 2, 3, 5, -1, -2, 0.0, 0.5, 1.0, 2.0, 3.0, -1.0, -0.5, np.float32(2), np.int64(3)]


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_constant_exponents_keep_value_and_kind(exponent: Any) -> None:
    for x in [3, 2.5, True, np.float32(2.25), np.int32(3), np.float64(0.75), np.array([0.5, 2.0]), np.array([2, 3])]:
        expected = outcome(operator.pow, x, exponent)
        block, value = Block(), Value(constant_type(x))
        result = operators.binary(builder(block), "**", value, exponent)
        found = outcome(lambda block=block, value=value, x=x, result=result: run(block, {value: x})[result])
        if isinstance(expected, Exception):
            assert type(found) is type(expected) and str(found) == str(expected)
        else:
            assert_same(found, expected, result.type, (x, exponent))


def test_a_constant_exponent_is_found_when_it_is_a_value() -> None:
    block = Block()
    b = builder(block)
    operators.binary(b, "**", Value(Num("float64", (3,))), b.const(2))
    assert block.ops[-1].name == "square"


def test_python_powers_that_are_complex_raise() -> None:
    assert isinstance(outcome(applied, "**", -8.0, 0.5), ValueError)


def test_text_compares_for_equality_only() -> None:
    block = Block()
    b = builder(block)
    x, y = Value(TEXT), Value(TEXT)
    same = operators.binary(b, "==", x, y)
    assert same.type == BOOL and run(block, {x: 3, y: 3})[same] is True
    with pytest.raises(Refusal):
        operators.binary(b, "<", x, y)
    with pytest.raises(TypeError):
        operators.binary(b, "+", x, y)
    differs = operators.binary(b, "!=", x, Value(INT))
    assert run(block, {x: 3, y: 3})[differs] is True


def test_truth_of_arrays_of_several_elements_is_refused() -> None:
    b = builder(Block())
    for shape in ((2,), (None,)):
        with pytest.raises(Refusal):
            operators.truth(b, Value(Num("float64", shape)))
    assert operators.truth(b, Value(Num("float64", (1,)))).type == Num("bool")
    assert operators.truth(b, Value(FLOAT)).type == BOOL
    assert operators.truth(b, Value(Num("bool"))).type == Num("bool")


# -------------------------------------------------------------------------------------------------- broadcasting
SHAPES = [(), (1,), (3,), (2, 3), (2, 1), (1, 3), (4, 1, 3)]


def hidden(shape: tuple[int, ...], bits: int) -> tuple[Any, ...]:
    return tuple(None if bits >> k & 1 else n for k, n in enumerate(shape))


@pytest.mark.parametrize("shapes", list(itertools.product(SHAPES, repeat=2)))
def test_broadcasting_with_unknown_sizes_gives_what_numpy_gives(shapes: Any) -> None:
    x, y = (np.arange(1.0, 1 + np.prod(s, dtype=int)).reshape(s)[()] for s in shapes)
    expected = x * y
    for bits in itertools.product(*[range(2 ** len(s)) for s in shapes]):
        block = Block()
        values = [Value(Num("float64", hidden(s, k))) for s, k in zip(shapes, bits)]
        result = operators.binary(builder(block), "*", *values)
        found = run(block, dict(zip(values, (x, y))))[result]
        assert fits(found, result.type)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("bits", list(itertools.product(range(2), repeat=2)))
def test_sizes_that_do_not_fit_raise_with_numpys_text(bits: Any) -> None:
    x, y = np.ones(3), np.ones(4)
    expected = outcome(operator.add, x, y)

    def compiled() -> Any:
        block = Block()
        values = [Value(Num("float64", hidden((n,), k))) for n, k in zip((3, 4), bits)]
        result = operators.binary(builder(block), "+", *values)
        return run(block, dict(zip(values, (x, y))))[result]

    error = outcome(compiled)
    assert type(error) is ValueError and str(error) == str(expected)


def test_arrays_of_one_unknown_size_are_not_checked_against_themselves() -> None:
    block = Block()
    b = builder(block)
    x = Value(Num("float64", (None,)))
    double = operators.binary(b, "*", x, 2.0)
    operators.binary(b, "+", b.emit("exp", double), x)
    assert not any(op.name == "broadcast_dims" for op in block.ops)


# -------------------------------------------------------------------------------------------------------- joins
@pytest.mark.parametrize(
    ("value", "target"),
    [
        (3, FLOAT), (True, INT), (3, Num("float32")), (2.5, Num("float32")), (np.float32(1.5), Num("float64")),
        (np.arange(3.0), Num("float64", (None,))), (np.ones((2, 3), np.float32), Num("float64", (None, 3))),
    ],
)
def test_convert_gives_the_joined_type(value: Any, target: Num) -> None:
    block, x = Block(), Value(constant_type(value))
    result = operators.convert(builder(block), x, target)
    assert result.type == target
    found = run(block, {x: value})[result]
    assert fits(found, target)
    np.testing.assert_array_equal(found, value)
