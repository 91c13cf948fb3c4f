"""Optimiser steps: the formulas of the papers, dtypes kept, structures kept, mismatches refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

from spmd.learn import SGD, Adagrad, Adam
from spmd.learn.optim import BLOCK

OPTIMIZERS = [SGD(0.1), SGD(0.1, momentum=0.9), Adagrad(0.1), Adam(0.1)]


@dataclass(frozen=True)
class Layer:
    W: Any
    b: Any
    name: str = "layer"


class Pair(NamedTuple):
    a: Any
    b: Any


def tree(value: float, dtype: Any = np.float32) -> Any:
    array = np.full((2, 3), value, dtype)
    return {"layers": [Layer(array, array[0].copy())], "pair": Pair(array * 2, array.dtype.type(value)), "n": 7}


def gradient(value: float) -> Any:
    grads = tree(value)
    return {**grads, "layers": [Layer(grads["layers"][0].W, grads["layers"][0].b, None)], "n": None}  # type: ignore


def expected(optimizer: Any, p: float, grads: list[float]) -> float:
    """The textbook recurrence in Python floats."""
    m = v = 0.0
    s = getattr(optimizer, "start", 0.0)
    for t, g in enumerate(grads, 1):
        if isinstance(optimizer, SGD):
            m = optimizer.momentum * m + g
            p -= optimizer.rate * m
        elif isinstance(optimizer, Adagrad):
            s += g * g
            p -= optimizer.rate * g / (s**0.5 + optimizer.eps)
        else:
            m = optimizer.beta1 * m + (1 - optimizer.beta1) * g
            v = optimizer.beta2 * v + (1 - optimizer.beta2) * g * g
            mean, spread = m / (1 - optimizer.beta1**t), v / (1 - optimizer.beta2**t)
            p -= optimizer.rate * mean / (spread**0.5 + optimizer.eps)
    return p


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=str)
@pytest.mark.parametrize("inplace", [False, True])
def test_steps_follow_the_paper(optimizer: Any, inplace: bool) -> None:
    grads = [0.5, -2.0, 0.25, 0.0]
    params: Any = {"w": np.full(5, 1.5), "s": 1.5}
    state = optimizer.init(params)
    for g in grads:
        params, state = optimizer.step(params, {"w": np.full(5, g), "s": g}, state, inplace=inplace)
    want = expected(optimizer, 1.5, grads)
    np.testing.assert_allclose(params["w"], want, rtol=1e-12)
    assert params["s"] == pytest.approx(want, rel=1e-12) and type(params["s"]) is float
    assert state.steps == 4


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=str)
def test_structure_dtypes_and_other_leaves_stay(optimizer: Any) -> None:
    params = tree(1.0)
    stepped, state = optimizer.step(params, gradient(0.5), optimizer.init(params))
    stepped, state = optimizer.step(stepped, gradient(0.5), state)
    layer = stepped["layers"][0]
    assert type(layer) is Layer and layer.name == "layer" and stepped["n"] == 7 and type(stepped["pair"]) is Pair
    assert layer.W.dtype == np.float32 and layer.W.shape == (2, 3)
    assert type(stepped["pair"].b) is np.float32
    assert np.all(params["layers"][0].W == 1.0) and np.all(layer.W < 1.0)


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=str)
def test_double_gradients_do_not_widen_single_parameters(optimizer: Any) -> None:
    params = {"w": np.ones(3, np.float32)}
    stepped, state = optimizer.step(params, {"w": np.ones(3)}, optimizer.init(params))
    assert stepped["w"].dtype == np.float32
    assert all(slot["w"].dtype == np.float32 for slot in state.slots)


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=str)
def test_large_leaves_by_blocks_and_strided_leaves_whole_give_the_same(optimizer: Any) -> None:
    rng = np.random.default_rng(0)
    p, g = rng.normal(size=(2, 3, BLOCK + 7)), rng.normal(size=(2, 3, BLOCK + 7))
    whole, _ = optimizer.step(p[0], g[0], optimizer.init(p[0]))
    backward = np.asarray(p[0])[:, ::-1]
    strided, _ = optimizer.step(backward, g[0][:, ::-1], optimizer.init(backward))
    np.testing.assert_array_equal(whole, strided[:, ::-1])


def test_inplace_overwrites_arrays_and_nothing_else() -> None:
    params: Any = {"w": np.ones(3), "frozen": np.ones(3), "s": np.float64(1.0)}
    params["frozen"].flags.writeable = False
    optimizer = Adam(0.1)
    state = optimizer.init(params)
    stepped, after = optimizer.step(params, {"w": np.ones(3), "frozen": np.ones(3), "s": 1.0}, state, inplace=True)
    assert stepped["w"] is params["w"] and after.slots[0]["w"] is state.slots[0]["w"]
    assert np.all(params["frozen"] == 1.0) and np.all(stepped["frozen"] < 1.0) and stepped["s"] < 1.0


def test_without_inplace_nothing_given_is_written() -> None:
    params, optimizer = {"w": np.ones(3)}, Adam(0.1)
    state = optimizer.init(params)
    optimizer.step(params, {"w": np.ones(3)}, state)
    assert np.all(params["w"] == 1.0) and np.all(state.slots[0]["w"] == 0.0)


def test_none_freezes_a_leaf_or_a_part_and_keeps_its_state() -> None:
    params: Any = {"a": np.ones(2), "b": [np.ones(2), np.ones(2)]}
    optimizer = SGD(0.1, momentum=0.9)
    _, state = optimizer.step(params, {"a": np.ones(2), "b": [np.ones(2), np.ones(2)]}, optimizer.init(params))
    stepped, after = optimizer.step(params, {"a": np.ones(2), "b": None}, state)
    assert stepped["b"][0] is params["b"][0] and np.all(after.slots[0]["b"][1] == 1.0)


def test_the_state_of_a_complex_parameter() -> None:
    p, g = np.array([1 + 1j]), np.array([3 + 4j])
    stepped, _ = Adagrad(1.0).step(p, g, Adagrad(1.0).init(p))
    np.testing.assert_allclose(stepped, p - g / 5.0)


@pytest.mark.parametrize(
    ("grads", "error", "message"),
    [
        ({"w": np.ones(4), "n": None}, ValueError, r"params\['w'\] has shape \(4,\), the parameter \(3,\)"),
        ({"w": np.ones(3), "n": 1.0}, TypeError, r"params\['n'\] is not float \(int\)"),
        ({"w": np.ones(3)}, ValueError, r"params\['n'\] is on one side only"),
        ({"v": np.ones(3), "n": None}, ValueError, r"params\['w'\] is on one side only"),
        ([np.ones(3), None], ValueError, "params differs in structure"),
        (np.ones(3), ValueError, "params is a dict, but a ndarray"),
        ({"w": "x", "n": None}, ValueError, "is a str, not an array"),
        ({"w": np.ones(3, complex), "n": None}, TypeError, "complex"),
    ],
)
def test_gradients_that_do_not_fit_are_refused(grads: Any, error: type[Exception], message: str) -> None:
    params = {"w": np.ones(3), "n": 2}
    optimizer = SGD(0.1)
    with pytest.raises(error, match=message):
        optimizer.step(params, grads, optimizer.init(params))
    assert np.all(params["w"] == 1.0)


def test_one_array_at_two_places_is_refused() -> None:
    shared = np.ones(3)
    with pytest.raises(ValueError, match=r"params\['a'\] and params\['b'\] are one array"):
        SGD(0.1).init({"a": shared, "b": shared})
