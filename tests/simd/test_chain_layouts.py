"""Chains over every kind of operand, every size and layout: right values, and nothing else touched."""

from __future__ import annotations

import numpy as np
import pytest
from machines import MACHINES

from spmd.backend.simd import ChainOp, ChainOperand, ChainSpec, compile_chains

ROWS = (0, 1, 2, 7, 33)
FEATURES = (0, 1, 5, 8, 17, 150)
SENTINEL = 77


def _mixed(dtype: str) -> ChainSpec:
    """full, row, col and one together; a full, a row and a mask as outputs."""
    kinds = ("full", "full", "row", "col", "one")
    ops = (
        ChainOp("mul", (0, 2), dtype),
        ChainOp("add", (5, 3), dtype),
        ChainOp("sub", (6, 4), dtype),
        ChainOp("maximum", (7, 1), dtype),
        ChainOp("mul", (2, 4), dtype),
        ChainOp("lt", (8, 1), "bool"),
    )
    operands = tuple(ChainOperand(kind, dtype) for kind in kinds)
    return ChainSpec(operands, ops, ((8, "full"), (9, "row"), (10, "full"), (2, "full")))


def _expected(a: np.ndarray, b: np.ndarray, row: np.ndarray, col: np.ndarray, one: np.ndarray) -> list[np.ndarray]:
    value = np.maximum(a * row[:, None] + col - one, b)
    return [value, row * one, value < b, np.broadcast_to(row[:, None], a.shape)]


def _numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return rng.integers(-9, 9, shape).astype(dtype)


def _inside(shape: tuple[int, ...], dtype: str, layout: str) -> tuple[np.ndarray, np.ndarray]:
    """(the whole buffer, an array of the shape within it): contiguous, with distant rows, or with rows backwards."""
    rows = shape[0]
    if layout == "contiguous":
        whole = np.full(int(np.prod(shape)) + 16, SENTINEL, dtype)
        return whole, whole[8 : len(whole) - 8].reshape(shape)
    if len(shape) == 1:
        whole = np.full(3 * rows + 8, SENTINEL, dtype)
        view = whole[4 : 4 + 3 * rows : 3]
    else:
        whole = np.full((rows + 2, shape[1] + 11), SENTINEL, dtype)
        view = whole[1 : rows + 1, 5 : 5 + shape[1]]
    return whole, view[::-1] if layout == "backwards" else view


@pytest.mark.parametrize("layout", ["contiguous", "distant", "backwards"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int16"])
@pytest.mark.parametrize("machine", MACHINES)
def test_all_kinds_of_operands_at_all_sizes(machine: str, dtype: str, layout: str) -> None:
    (kernel,) = compile_chains([_mixed(dtype)], machine=MACHINES[machine])
    rng = np.random.default_rng(0)
    for K in ROWS:
        for F in FEATURES:
            ins = []
            for shape in ((K, F), (K, F), (K,)):
                array = _inside(shape, dtype, layout)[1]
                array[...] = _numbers(rng, shape, dtype)
                ins.append(array)
            ins += [_numbers(rng, (F,), dtype), _numbers(rng, (), dtype)]
            shapes = (((K, F), dtype), ((K,), dtype), ((K, F), "bool"), ((K, F), dtype))
            wholes, outs = zip(*[_inside(shape, kind, layout) for shape, kind in shapes], strict=True)
            before = [whole.copy() for whole in wholes]
            assert kernel(outs, ins, K, F) == 0
            for out, wanted in zip(outs, _expected(*ins), strict=True):
                np.testing.assert_array_equal(out, wanted)
            for out, whole, old in zip(outs, wholes, before, strict=True):
                out[...] = SENTINEL
                np.testing.assert_array_equal(whole, old)


@pytest.mark.parametrize("machine", MACHINES)
def test_contiguous_arrays_of_mixed_sizes_run_as_one_loop(machine: str) -> None:
    ops = (ChainOp("cast", (1,), "float64"), ChainOp("mul", (0, 2), "float64"), ChainOp("gt", (3, 0), "bool"))
    operands = (ChainOperand("full", "float64"), ChainOperand("full", "float32"))
    spec = ChainSpec(operands, ops, ((3, "full"), (4, "full")))
    (kernel,) = compile_chains([spec], machine=MACHINES[machine])
    rng = np.random.default_rng(1)
    for K, F in ((1, 1), (3, 5), (7, 16), (33, 17), (200, 1)):
        x, y = rng.standard_normal((K, F)), rng.standard_normal((K, F)).astype(np.float32)
        out, mask = np.empty((K, F)), np.empty((K, F), np.bool_)
        kernel([out, mask], [x, y], K, F)
        np.testing.assert_array_equal(out, x * y)
        np.testing.assert_array_equal(mask, x * y > x)


@pytest.mark.parametrize("machine", MACHINES)
def test_contiguous_rows_start_a_uniform_vector_anew(machine: str) -> None:
    operands = (ChainOperand("full", "float64"), ChainOperand("col", "float64"))
    spec = ChainSpec(operands, (ChainOp("mul", (0, 1), "float64"),), ((2, "full"),))
    (kernel,) = compile_chains([spec], machine=MACHINES[machine])
    for F in (1, 3, 17):
        x, col, out = np.arange(5.0 * F).reshape(5, F), np.arange(1.0, F + 1), np.empty((5, F))
        kernel([out], [x, col], 5, F)
        np.testing.assert_array_equal(out, x * col)


@pytest.mark.parametrize("machine", MACHINES)
def test_chains_of_rows_alone_take_rows_at_any_distance(machine: str) -> None:
    ops = (ChainOp("sub", (0, 1), "float32"), ChainOp("lt", (0, 1), "bool"), ChainOp("where", (4, 3, 2), "float32"))
    operands = (ChainOperand("row", "float32"), ChainOperand("row", "float32"), ChainOperand("one", "float32"))
    spec = ChainSpec(operands, ops, ((5, "row"), (4, "row")))
    assert spec.by_rows
    (kernel,) = compile_chains([spec], machine=MACHINES[machine])
    rng = np.random.default_rng(2)
    for K in (0, 1, 3, 16, 31, 100):
        for step in (1, 3, -1):
            x, y = (rng.standard_normal(3 * K + 3).astype(np.float32)[::step][:K] for _ in range(2))
            one = np.array([[0.25]], np.float32)
            out, mask = np.full(2 * K, SENTINEL, np.float32)[::2], np.empty(K, np.bool_)
            kernel([out, mask], [x, y, one], K)
            np.testing.assert_array_equal(mask, x < y)
            np.testing.assert_array_equal(out, np.where(x < y, x - y, one[0, 0]))
            assert K == 0 or (out.base[1::2] == SENTINEL).all()


def test_rows_may_have_several_axes() -> None:
    spec = ChainSpec(
        (ChainOperand("full", "float64"), ChainOperand("col", "float64")),
        (ChainOp("add", (0, 1), "float64"),),
        ((2, "full"),),
    )
    (kernel,) = compile_chains([spec])
    x, y = np.arange(48.0).reshape(4, 3, 4), np.arange(12.0).reshape(3, 4)
    out = np.empty((4, 3, 4))
    kernel([out], [x[::-1], y], 4, 12)
    np.testing.assert_array_equal(out, x[::-1] + y)


@pytest.mark.parametrize("machine", MACHINES)
def test_an_output_may_be_the_array_of_an_operand(machine: str) -> None:
    operands = (ChainOperand("full", "float64"), ChainOperand("full", "float64"))
    ops = (ChainOp("sub", (0, 1), "float64"), ChainOp("add", (0, 1), "float64"))
    (kernel,) = compile_chains([ChainSpec(operands, ops, ((2, "full"), (3, "full")))], machine=MACHINES[machine])
    for F in (5, 17):
        x, y = np.random.default_rng(3).standard_normal((2, 6, F))
        wanted = x - y, x + y
        kernel([x, y], [x, y], 6, F)
        np.testing.assert_array_equal([x, y], wanted)


def test_operands_and_uniform_values_can_be_outputs() -> None:
    operands = (ChainOperand("full", "int32"), ChainOperand("one", "int32"))
    ops = (ChainOp("square", (1,), "int32"), ChainOp("const", (), "float64", 2.5))
    spec = ChainSpec(operands, ops, ((0, "full"), (2, "full"), (2, "row"), (3, "row")))
    (kernel,) = compile_chains([spec])
    x = np.arange(15, dtype=np.int32).reshape(3, 5)
    outs = [np.empty((3, 5), np.int32), np.empty((3, 5), np.int32), np.empty(3, np.int32), np.empty(3)]
    kernel(outs, [x, np.array(7, np.int32)], 3, 5)
    for out, wanted in zip(outs, (x, 49, 49, 2.5), strict=True):
        np.testing.assert_array_equal(out, np.broadcast_to(wanted, out.shape))
