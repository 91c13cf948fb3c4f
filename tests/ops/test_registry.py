"""Every primitive, on its own samples: types, rows against one example at a time, faults, derivatives."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from spmd.ir.build import constant_type
from spmd.ir.core import Block, Value
from spmd.ir.types import Num
from spmd.ops.primitive import Faults, Primitive, Site
from spmd.ops.table import PRIMITIVES, builder, may_raise
from tests.ops.straightline import append_gradient, cotangent_type, fits, run

NAMES = sorted(PRIMITIVES)


def narrowed(value: Any) -> Any:
    """The value in float32, where it is a NumPy float64."""
    if type(value) in (int, float, bool) or np.asarray(value).dtype != np.float64:
        return value
    return np.asarray(value).astype(np.float32)[()]


def samples(primitive: Primitive, float32: bool = False) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    if not float32:
        return list(primitive.samples)
    found = [(tuple(narrowed(a) for a in args), attrs) for args, attrs in primitive.samples]
    return [s for s, old in zip(found, primitive.samples) if any(x is not y for x, y in zip(s[0], old[0]))]


def outcome(primitive: Primitive, args: Any, attrs: dict[str, Any]) -> Any:
    """What one example gives: a value or an exception."""
    with np.errstate(all="ignore"):
        try:
            return primitive.numpy(*args, **attrs)
        except Exception as error:
            return error


def typed(args: Any) -> tuple[Num, ...]:
    return tuple(constant_type(a) for a in args)


@pytest.mark.parametrize("name", NAMES)
def test_a_record_is_complete(name: str) -> None:
    primitive = PRIMITIVES[name]
    assert primitive.name == name
    assert primitive.samples


@pytest.mark.parametrize("float32", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_the_type_rule_says_what_one_example_gives(name: str, float32: bool) -> None:
    primitive = PRIMITIVES[name]
    for args, attrs in samples(primitive, float32):
        value = outcome(primitive, args, attrs)
        type_ = primitive.infer(typed(args), attrs)
        if isinstance(value, Exception):
            assert primitive.raises(typed(args), attrs), (args, attrs, value)
            assert isinstance(value, primitive.errors), (args, attrs, value)
        else:
            assert fits(value, type_), (args, attrs, value, type_)


# --------------------------------------------------------------------------------------------------------- rows
def buckets(primitive: Primitive, float32: bool) -> list[tuple[list[Any], dict[str, Any]]]:
    """Samples of equal types and attributes, which can be rows of one batch."""
    found: dict[Any, tuple[list[Any], dict[str, Any]]] = {}
    for args, attrs in samples(primitive, float32):
        sizes = primitive.sizes(typed(args), attrs)
        alone = tuple(np.asarray(args[k]).tobytes() for k in sizes)
        found.setdefault((typed(args), repr(attrs), alone), ([], attrs))[0].append(args)
    return list(found.values())


def stacked(values: list[Any], type_: Num) -> Any:
    return np.array(values, dtype=type_.dtype).reshape(len(values), *type_.shape)


def check_rows(
    primitive: Primitive, rows: list[Any], attrs: dict[str, Any], varying: tuple[bool, ...], count: int
) -> None:
    first = rows[0]
    types = typed(first)
    picked = [rows[k % len(rows)] for k in range(count)]
    examples = [tuple(a if v else u for a, u, v in zip(args, first, varying)) for args in picked]
    expected = [outcome(primitive, args, attrs) for args in examples]
    site = Site(types, primitive.infer(types, attrs), attrs, varying)
    operands = [
        stacked([args[k] for args in examples], types[k]) if v else first[k] for k, v in enumerate(varying)
    ]
    faults = Faults()
    extra = {"faults": faults} if primitive.raises(types, attrs) else {}
    with np.errstate(all="ignore"):
        result = primitive.rows(site)(*operands, **extra)
    assert isinstance(result, np.ndarray)
    failed: dict[int, BaseException] = {}
    for bad, make in faults.found:
        assert bad.dtype == bool and bad.shape == (count,)
        for row in np.flatnonzero(bad):
            failed.setdefault(int(row), make(int(row)))
    assert set(failed) == {k for k, value in enumerate(expected) if isinstance(value, Exception)}, (varying, examples)
    assert len(result) == count
    assert result.dtype == site.result.dtype
    for k, value in enumerate(expected):
        if isinstance(value, Exception):
            assert type(failed[k]) is type(value)
            assert str(failed[k]) == str(value)
        else:
            tolerance = {"float32": 1e-5, "float64": 1e-12}.get(site.result.dtype, 0)
            about = f"{varying} {examples[k]}"
            np.testing.assert_allclose(result[k], value, rtol=tolerance, atol=tolerance, err_msg=about)


@pytest.mark.parametrize("float32", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_rows_are_the_examples_one_by_one(name: str, float32: bool) -> None:
    primitive = PRIMITIVES[name]
    for rows, attrs in buckets(primitive, float32):
        types = typed(rows[0])
        sizes = primitive.sizes(types, attrs)
        for varying in itertools.product((False, True), repeat=len(types)):
            if not any(varying) or (sizes and not any(v for k, v in enumerate(varying) if k not in sizes)):
                continue
            if attrs.get("size") is not None and varying[1] != varying[2]:
                continue  # the size that such a slice promises needs both ends
            for count in (1, 5) if any(varying[k] for k in sizes) else (0, 1, 5):
                check_rows(primitive, rows, attrs, varying, count)


@pytest.mark.parametrize("name", NAMES)
def test_rows_of_one_bucket_are_the_examples_one_by_one_where_types_do_not_know_the_sizes(name: str) -> None:
    primitive = PRIMITIVES[name]
    for args, attrs in primitive.samples:
        types = tuple(t.with_shape((None,) * t.rank) if t.rank and t.floating else t for t in typed(args))
        expected = outcome(primitive, args, attrs)
        try:
            site = Site(types, primitive.infer(types, attrs), attrs, tuple(t.floating for t in types))
        except TypeError:
            continue
        if types == typed(args) or isinstance(expected, Exception) or not any(site.varying):
            continue
        operands = [np.stack([np.asarray(a)] * 3) if v else a for a, v in zip(args, site.varying)]
        extra = {"faults": Faults()} if primitive.raises(types, attrs) else {}
        with np.errstate(all="ignore"):
            result = primitive.rows(site)(*operands, **extra)
        assert not any(faults.found for faults in extra.values())
        np.testing.assert_allclose(result, np.stack([np.asarray(expected)] * 3), rtol=1e-12)


UNFIT = [
    ("matmul", (np.ones(3), np.ones(4)), {}),
    ("matmul", (np.ones((2, 3)), np.ones((2, 3))), {}),
    ("matmul", (np.ones((2, 3)), np.ones(2)), {}),
    ("concat", (np.ones((2, 3)), np.ones((2, 4))), {"axis": 0}),
    ("stack", (np.ones(3), np.ones(2)), {"axis": 0}),
    ("max", (np.ones(0),), {"axes": (0,), "keepdims": False}),
    ("argmin", (np.ones((2, 0)),), {"axes": (1,), "keepdims": False}),
    ("reshape_to", (np.ones(3), np.array([2, 2])), {"shape": (None, None)}),
]


@pytest.mark.parametrize(("name", "args", "attrs"), UNFIT)
@pytest.mark.parametrize("shared", [False, True])
def test_sizes_that_do_not_fit_are_reported_for_every_row_of_the_bucket(
    name: str, args: Any, attrs: dict[str, Any], shared: bool
) -> None:
    primitive = PRIMITIVES[name]
    types = tuple(t.with_shape((None,) * t.rank) if t.floating else t for t in typed(args))
    varying = tuple(t.floating and not (shared and k) for k, t in enumerate(types))
    site = Site(types, primitive.infer(types, attrs), attrs, varying)
    faults = Faults()
    result = primitive.rows(site)(*[np.stack([a] * 2) if v else a for a, v in zip(args, varying)], faults=faults)
    assert len(result) == 2 and result.dtype == site.result.dtype and result.ndim == site.result.rank + 1
    ((bad, make),) = faults.found
    expected = outcome(primitive, args, attrs)
    assert bad.tolist() == [True, True]
    assert type(make(1)) is type(expected) and str(make(1)) == str(expected)


# --------------------------------------------------------------------------------------------------- derivatives
def block_of(
    primitive: Primitive, args: Any, attrs: dict[str, Any], hide: bool = False
) -> tuple[Block, list[Value], Value]:
    """The op alone in a block; `hide` makes the sizes of float operands unknown. TypeError if it needs to know them."""
    block = Block()
    operands = [Value(t.with_shape((None,) * t.rank) if hide and t.rank and t.floating else t) for t in typed(args)]
    return block, operands, builder(block).emit(primitive.name, *operands, **attrs)


STATIC_ONLY = {"broadcast", "reshape", "slice", "put_slice", "matmul"}
"""Refused for some unknown sizes: stacks of matrices, and what has a twin that takes sizes as operands."""


def moved(value: Any, index: tuple[int, ...], step: float) -> Any:
    if type(value) is float:
        return value + step
    array = np.array(value)
    array[index] += step
    return array[()]


def slopes(function: Any, args: list[Any], k: int) -> tuple[Any, Any]:
    """Finite differences of a scalar function for each element of argument k, and where the function is smooth."""
    shape = np.shape(args[k])
    slope, smooth = np.zeros(shape), np.zeros(shape, bool)
    for index in np.ndindex(*shape):
        h = 1e-6
        at = [function([moved(a, index, s) if i == k else a for i, a in enumerate(args)]) for s in (-h, 0.0, h)]
        left, right = (at[1] - at[0]) / h, (at[2] - at[1]) / h
        slope[index] = (at[2] - at[0]) / (2 * h)
        smooth[index] = abs(left) < 1e4 and abs(left - right) < 1e-3 * (1 + abs(left))
    return slope, smooth


def is_smooth_sample(args: Any) -> bool:
    return any(constant_type(a).floating for a in args) and all(np.isfinite(np.asarray(a)).all() for a in args)


def compare_gradient(function: Any, gradient: list[Any], args: list[Any]) -> int:
    """Asserts that a gradient is that of the function wherever that is smooth; the number of slopes compared."""
    checked = 0
    for k, found in enumerate(gradient):
        if not constant_type(args[k]).floating:
            continue
        expected, smooth = slopes(function, args, k)
        found = np.zeros(np.shape(args[k])) if found is None else found
        assert np.shape(found) == np.shape(args[k])
        np.testing.assert_allclose(np.asarray(found)[smooth], expected[smooth], rtol=2e-4, atol=2e-5)
        checked += int(smooth.sum())
    return checked


def differentiable() -> list[str]:
    return [name for name in NAMES if PRIMITIVES[name].adjoint is not None]


def usable(primitive: Primitive) -> list[Any]:
    found = []
    for args, attrs in primitive.samples:
        value = outcome(primitive, args, attrs)
        if is_smooth_sample(args) and not isinstance(value, Exception) and np.isfinite(value).all():
            if all(constant_type(a).dtype != "float32" for a in (*args, value)) and constant_type(value).floating:
                found.append((list(args), attrs, value))
    return found


@pytest.mark.parametrize("hide", [False, True])
@pytest.mark.parametrize("name", differentiable())
def test_the_adjoint_is_the_derivative(name: str, hide: bool) -> None:
    primitive, checked = PRIMITIVES[name], 0
    for args, attrs, value in usable(primitive):
        weight = np.cos(np.arange(np.size(value)) + 0.5).reshape(np.shape(value))
        try:
            block, operands, result = block_of(primitive, args, attrs, hide)
        except TypeError:
            assert hide and name in STATIC_ONLY
            continue
        ct = Value(cotangent_type(result.type))
        cts = append_gradient(block, {result: ct}, operands)
        assert not any(may_raise(op) for op in block.ops[1:] if op.name != "const")
        with np.errstate(all="ignore"):
            env = run(block, {**dict(zip(operands, args)), ct: np.asarray(weight, value_dtype(value))[()]})

            def function(at: list[Any], attrs: Any = attrs, weight: Any = weight) -> float:
                try:
                    return float(np.sum(weight * primitive.numpy(*at, **attrs)))
                except (ValueError, OverflowError, ZeroDivisionError):
                    return float("nan")

            found = [None if v is None else env[v] for v in cts]
            for v in cts:
                assert v is None or fits(env[v], v.type)
            checked += compare_gradient(function, found, args)
    assert checked or hide


def value_dtype(value: Any) -> Any:
    return np.asarray(value).dtype


@pytest.mark.parametrize("hide", [False, True])
@pytest.mark.parametrize("name", differentiable())
def test_the_adjoint_can_be_differentiated_again(name: str, hide: bool) -> None:
    primitive = PRIMITIVES[name]
    for args, attrs, value in usable(primitive)[:6]:
        try:
            block, operands, result = block_of(primitive, args, attrs, hide)
        except TypeError:
            continue
        ct = Value(cotangent_type(result.type))
        active = [v for v in operands if v.type.floating]
        cts = [v for v in append_gradient(block, {result: ct}, active) if v is not None]
        first = Block(ops=list(block.ops))
        seeds = {v: Value(v.type) for v in dict.fromkeys(cts)}
        inputs = [*operands, ct]
        second = append_gradient(block, seeds, [*active, ct])
        given = [*args, np.sin(1.0 + np.arange(np.size(value))).reshape(np.shape(value))[()]]
        with np.errstate(all="ignore"):
            plain = run(first, dict(zip(inputs, given)))
            weights = {s: waves(np.shape(plain[v])) for v, s in seeds.items()}
            function = weighted(first, inputs, seeds, weights)

            env = run(block, {**dict(zip(inputs, given)), **weights})
            by_value = dict(zip([*active, ct], second))
            found = [None if by_value.get(v) is None else env[by_value[v]] for v in inputs]
            compare_gradient(function, found, given)


def waves(shape: tuple[int, ...]) -> Any:
    """Weights that differ from element to element."""
    return np.cos(np.arange(math.prod(shape))).reshape(shape)[()]


def weighted(block: Block, inputs: list[Value], seeds: dict[Value, Value], weights: dict[Value, Any]) -> Any:
    """The weighted sum of a block's results as a function of its inputs; NaN where it raises."""

    def function(at: list[Any]) -> float:
        try:
            env = run(block, dict(zip(inputs, at)))
        except (ValueError, OverflowError, ZeroDivisionError):
            return float("nan")
        return float(sum(np.sum(env[v] * weights[s]) for v, s in seeds.items()))

    return function
