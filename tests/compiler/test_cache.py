"""When a program is compiled again, and when an earlier one serves."""

from __future__ import annotations

import functools
import pickle
import warnings

import numpy as np
import pytest

import spmd


def squared_error(p, x, y):
    return np.sum((p["w"] @ x - y) ** 2)


batched = spmd.vmap(squared_error, in_axes=(None, 0, 0))


def total(p, xs, ys):
    return np.mean(batched(p, xs, ys))


def first_and_size(x):
    return x[0] * x.shape[0]


def flattened(x):
    return np.sum(x.reshape(3, 2)[1])


def minibatch(size: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(size)
    return rng.normal(size=(size, 3)), rng.normal(size=(size, 2))


def test_minibatches_of_other_sizes_share_one_program() -> None:
    gradient = spmd.value_and_grad(total)
    p = {"w": np.arange(6.0).reshape(2, 3)}
    for size in (8, 8, 5, 3, 8, 1):
        xs, ys = minibatch(size)
        value, found = gradient(p, xs, ys)
        error = xs @ p["w"].T - ys
        np.testing.assert_allclose(value, np.mean(np.sum(error**2, axis=1)))
        np.testing.assert_allclose(found["w"], 2 * error.T @ xs / size)
    assert len(gradient.cache.all()) == 2


def test_gradients_have_the_size_of_their_call() -> None:
    gradient = spmd.grad(total, argnums=1)
    p = {"w": np.ones((2, 3))}
    for size in (4, 2, 6):
        assert gradient(p, *minibatch(size)).shape == (size, 3)


def test_sizes_behind_the_first_are_not_generalised() -> None:
    gradient = spmd.grad(first_and_size)
    for size in (2, 3, 4):
        np.testing.assert_array_equal(gradient(np.ones(size)), np.eye(size)[0] * size)
    shapes = {e.arguments[0].schema.root.shape for e in gradient.cache.all()}
    assert shapes == {(2,), (None,)}


def test_a_program_that_needs_its_size_is_compiled_for_each() -> None:
    gradient = spmd.grad(flattened)
    np.testing.assert_array_equal(gradient(np.ones(6)), [0, 0, 1, 1, 0, 0])
    with pytest.raises(ValueError):
        gradient(np.ones(4))
    np.testing.assert_array_equal(gradient(np.ones((2, 3))).shape, (2, 3))
    np.testing.assert_array_equal(gradient(np.ones((3, 2))), [[0, 0], [1, 1], [0, 0]])


def test_transforms_of_one_function_share_its_programs() -> None:
    def weighted(x):
        return np.sum(x * x)

    for _ in range(3):
        np.testing.assert_array_equal(spmd.grad(weighted)(np.ones(2)), [2.0, 2.0])
        assert spmd.vjp(weighted, np.ones(2))[0] == 2.0
    assert len(spmd.grad(weighted).cache.all()) == 1


def test_a_wrapper_that_took_over_a_functions_attributes_has_programs_of_its_own() -> None:
    def inner(x):
        return 2.0 * x

    assert spmd.vmap(inner)([1.0])[0] == 2.0

    @functools.wraps(inner)
    def outer(x):
        return 3.0 * x

    assert spmd.vmap(outer)([1.0])[0] == 3.0


def test_a_compiled_function_is_pickled_without_its_programs() -> None:
    def plain(x):
        return x

    spmd.vmap(plain)([1.0])
    again = pickle.loads(pickle.dumps(vars(plain)))  # noqa: S301
    assert not again["__spmd_cache__"].all()


def test_batches_of_any_size_are_one_program() -> None:
    doubled = spmd.vmap(lambda x: x[0] * x.shape[0])
    for size in (1, 4, 0, 9):
        assert doubled(np.ones((size, 2))).shape == (size,)
    assert len(doubled.cache.all()) == 1


def test_the_eighth_kind_of_argument_warns() -> None:
    doubled = spmd.vmap(first_and_size)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for size in range(1, 8):
            doubled(np.ones((2, size)))
    with pytest.warns(UserWarning, match="compiled for 8"):
        doubled(np.ones((2, 8)))
