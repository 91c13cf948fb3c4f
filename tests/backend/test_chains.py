"""Elementwise groups: what is grouped, and that kernels change no value and no exception."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from blas_programs import Writer, central, compiled, function, module

from spmd.backend.blas.grouping import Group, group, sizes_first, sunk, uniform_values
from spmd.ir.core import Block, Op, Value
from spmd.ir.types import INT, Num
from spmd.runtime.ragged import from_arrays

VEC, LONG = Num("float64", (6,)), Num("float64", (None,))
FLOAT64 = Num("float64")


def ops_of(fill: Any, *types: Any) -> tuple[list[Op], list[Value]]:
    block = Block()
    values = [Value(t) for t in types]
    fill(Writer(block), *values)
    return block.ops, values


def grouped(ops: list[Op], kept: set[Value]) -> list[Any]:
    uniform = uniform_values(ops, lambda v: False)
    ops = sizes_first(sunk(ops, kept, uniform), uniform, kept)
    return group(ops, uniform_values(ops, lambda v: False), kept)


def test_slices_move_in_front_so_that_gates_are_one_group() -> None:
    def fill(b: Writer, z: Value, bias: Value) -> None:
        s = b.emit("add", z, bias)
        first = b.emit("tanh", b.emit("slice", s, index=((0, 3, 1),)))
        b.emit("mul", first, b.emit("sigmoid", b.emit("slice", s, index=((3, 6, 1),))))

    ops, _ = ops_of(fill, VEC, VEC)
    items = grouped(ops, {ops[-1].result})
    groups = [i for i in items if isinstance(i, Group)]
    assert len(groups) == 1 and [op.name for op in groups[0].ops].count("add") == 2
    assert all(op.name == "slice" for op in items if isinstance(op, Op))


def test_a_product_between_two_groups_keeps_them_apart() -> None:
    def fill(b: Writer, x: Value, w: Value) -> None:
        y = b.emit("tanh", x)
        b.emit("tanh", b.emit("add", y, b.emit("matmul", w, y)))

    ops, _ = ops_of(fill, VEC, Num("float64", (6, 6)))
    items = grouped(ops, {ops[-1].result})
    kinds = ["group" if isinstance(i, Group) else i.name for i in items]
    assert kinds == ["group", "matmul", "group"]


def test_ragged_values_of_other_sizes_are_never_one_group() -> None:
    def fill(b: Writer, x: Value, y: Value) -> None:
        b.emit("tanh", x)
        b.emit("tanh", y)

    ops, _ = ops_of(fill, LONG, LONG)
    items = grouped(ops, {op.result for op in ops})
    assert [len(i.ops) for i in items if isinstance(i, Group)] == [1, 1]


def loss() -> Any:
    """sum(sigmoid-like(x) * y), x and y of one length per example, with the checks that lengths agree."""

    def fill(b: Writer, x: Value, y: Value, n: Value) -> None:
        one = b.const(np.float64(1.0))

        def spread(v: Value) -> Value:
            return b.emit("broadcast_to", one, b.emit("shape_of", v), shape=(None,))

        e = b.emit("exp", b.emit("neg", x))
        s = b.emit("div", spread(e), b.emit("add", spread(e), e))
        dims = b.emit("broadcast_dims", b.emit("shape_of", s), b.emit("shape_of", y))
        left = b.emit("broadcast_to", s, dims, shape=(None,))
        right = b.emit("broadcast_to", y, dims, shape=(None,))
        total = b.emit("sum", b.emit("tanh", b.emit("mul", left, right)), axes=(0,), keepdims=False)
        scaled = b.emit("cast", b.emit("floordiv", b.const(12), n), dtype="float64", python=False)
        b.end("return", b.emit("mul", total, scaled))

    return module([function("loss", [LONG, LONG, INT], [FLOAT64], fill)])


def plain(x: Any, y: Any, n: int) -> Any:
    return np.tanh(1 / (1 + np.exp(-x)) * y).sum() * (12 // n)


@pytest.mark.parametrize("target", ["auto", "blas"])
def test_ragged_kernels_give_the_values_and_gradients_of_the_loop(target: str) -> None:
    rng = np.random.default_rng(0)
    sizes = [3, 0, 5, 1]
    xs, ys = ([rng.normal(size=n) for n in sizes] for _ in range(2))
    ns = np.array([1, 2, 3, 5])
    code = compiled(loss(), [0, 1], target)
    run = code.forward([], [from_arrays(xs), from_arrays(ys), ns], {}, 4, tape=True)
    np.testing.assert_allclose(run.results[0], [plain(*a) for a in zip(xs, ys, ns)], rtol=1e-12)
    got = run.backward([np.ones(4)])
    for i in range(4):
        want = central(lambda v, i=i: plain(v, ys[i], ns[i]), xs[i])  # type: ignore[misc]
        np.testing.assert_allclose(got.params[0].one(i), want, rtol=1e-6, atol=1e-8)
        want = central(lambda v, i=i: plain(xs[i], v, ns[i]), ys[i])  # type: ignore[misc]
        np.testing.assert_allclose(got.params[1].one(i), want, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("target", ["auto", "blas"])
def test_faults_beside_ragged_kernels_are_those_of_the_loop(target: str) -> None:
    code = compiled(loss(), target=target)
    xs = [np.ones(2), np.ones(3), np.ones(2)]
    ys = [np.ones(2), np.ones(2), np.ones(3)]
    with pytest.raises(ValueError) as caught:
        code.forward([], [from_arrays(xs), from_arrays(ys), np.array([1, 1, 0])], {}, 3)
    assert caught.value.example == 1  # type: ignore[attr-defined]
    with pytest.raises(ZeroDivisionError) as divided:
        code.forward([], [from_arrays(xs), from_arrays(xs), np.array([1, 1, 0])], {}, 3)
    assert divided.value.example == 2  # type: ignore[attr-defined]
