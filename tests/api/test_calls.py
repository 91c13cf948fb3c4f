"""Ways to call: in_axes, containers of mapped arrays, defaults, partial functions, `into` and `bind`, vmap inside."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import batching
import spmd

RNG = np.random.default_rng(0)
XS, YS = RNG.normal(size=(5, 3)), RNG.normal(size=(5, 3))


class Pair(NamedTuple):
    x: Any
    y: Any


@dataclass
class Batch:
    x: Any
    scale: Any


def dot(x, y):
    return np.sum(x * y)


def of_pair(pair):
    return np.sum(pair.x * pair.y)


def of_batch(batch):
    return np.sum(batch.x) * batch.scale


def of_dict(d):
    return np.sum(d["a"]) + d["b"][0] * d["b"][1]


def with_default(x, scale=3.0, *, shift=1.0):
    return np.sum(x) * scale + shift


class Shifted:
    by = 2.0

    @classmethod
    def shift(cls, x):
        return x + cls.by


def scaled(x, scale=2.0):
    return x * scale


all_scaled = spmd.vmap(scaled)
inner = spmd.vmap(dot, in_axes=(None, 0))
inner_gradient = spmd.vmap(spmd.grad(dot), in_axes=(None, 0))


def mean_of_rows(w, rows):
    return np.mean(inner(w, rows))


def squares_of_rows(w, rows):
    out = inner(w, rows)
    return np.sum(out * out) + out[0]


# ------------------------------------------------------------------------------------------------ axes
@pytest.mark.parametrize("axes", [0, (0, 0), {"x": 0, "y": 0}, {}, [0]])
def test_axes_by_position_and_by_name(axes: Any) -> None:
    np.testing.assert_allclose(spmd.vmap(dot, in_axes=axes)(XS, YS), np.sum(XS * YS, axis=1))


@pytest.mark.parametrize("axes", [(0, None), {"y": None}])
def test_shared_arguments(axes: Any) -> None:
    np.testing.assert_allclose(spmd.vmap(dot, in_axes=axes)(XS, YS[0]), XS @ YS[0])
    np.testing.assert_allclose(spmd.vmap(dot, in_axes=axes)(y=YS[0], x=XS), XS @ YS[0])


def test_another_axis_than_the_first() -> None:
    np.testing.assert_allclose(spmd.vmap(dot, in_axes=(1, 0))(XS.T.copy(), YS), np.sum(XS * YS, axis=1))
    np.testing.assert_allclose(spmd.vmap(dot, in_axes=(-1, 0))(XS.T, YS), np.sum(XS * YS, axis=1))


def test_containers_carry_the_batch_in_their_arrays() -> None:
    np.testing.assert_allclose(spmd.vmap(of_pair)(Pair(XS, YS)), np.sum(XS * YS, axis=1))
    np.testing.assert_allclose(spmd.vmap(of_batch)(Batch(XS, np.arange(5.0))), XS.sum(1) * np.arange(5.0))
    got = spmd.vmap(of_dict)({"a": XS, "b": (np.arange(5.0), [1.0, 2.0, 3.0, 4.0, 5.0])})
    np.testing.assert_allclose(got, XS.sum(1) + np.arange(5.0) * np.arange(1.0, 6.0))


def test_the_gradient_of_a_container_has_its_structure() -> None:
    gradient = spmd.vmap(spmd.grad(of_batch))(Batch(XS, np.arange(5.0)))
    assert isinstance(gradient, Batch)
    np.testing.assert_allclose(gradient.x, np.repeat(np.arange(5.0)[:, None], 3, axis=1))
    np.testing.assert_allclose(gradient.scale, XS.sum(1))


def test_parameters_left_at_their_defaults_are_shared() -> None:
    np.testing.assert_allclose(spmd.vmap(with_default)(XS), XS.sum(1) * 3.0 + 1.0)
    np.testing.assert_allclose(spmd.vmap(with_default)(XS, shift=np.arange(5.0)), XS.sum(1) * 3.0 + np.arange(5.0))


def twice_and_sum(x):
    return x * 2.0, {"sum": np.sum(x)}


def test_out_axes_say_where_the_batch_stands_in_each_result() -> None:
    doubled, rest = spmd.vmap(twice_and_sum, out_axes=(1, 0))(XS)
    assert np.array_equal(doubled, (XS * 2.0).T) and np.allclose(rest["sum"], XS.sum(axis=1))
    assert np.array_equal(spmd.vmap(twice_and_sum, out_axes=(-1, {"sum": 0}))(XS)[0], (XS * 2.0).T)


def test_cotangents_come_in_the_place_of_out_axes() -> None:
    weights = RNG.normal(size=(3, 5))
    _, pullback = spmd.vjp(spmd.vmap(twice_and_sum, out_axes=(1, 0)), XS)
    (gradient,) = pullback((weights, {"sum": np.zeros(5)}))
    assert np.allclose(gradient, 2.0 * weights.T)


def square_and_more(x):
    return x * x, {"next": x + 1.0, "count": 3}


def test_has_aux_hands_on_what_else_the_function_returns() -> None:
    gradient, aux = spmd.grad(square_and_more, has_aux=True)(2.0)
    assert gradient == 4.0 and aux == {"next": 3.0, "count": 3}
    (value, aux), gradient = spmd.value_and_grad(square_and_more, has_aux=True)(3.0)
    assert (value, gradient, aux["next"]) == (9.0, 6.0, 4.0)
    gradients, aux = spmd.vmap(spmd.grad(square_and_more, has_aux=True))([2.0, 3.0])
    assert list(gradients) == [4.0, 6.0] and list(aux["next"]) == [3.0, 4.0]
    with pytest.raises(spmd.GradientError, match="has_aux"):
        spmd.grad(dot, has_aux=True)(XS[0], YS[0])


def fused(x, y):
    return x * y + x


def test_contraction_is_asked_for_and_stays_within_one_rounding() -> None:
    xs, ys = RNG.normal(size=100), RNG.normal(size=100)
    assert np.array_equal(spmd.vmap(fused)(xs, ys), xs * ys + xs)
    assert np.allclose(spmd.vmap(fused, fp="contract")(xs, ys), xs * ys + xs, rtol=1e-14)
    with pytest.raises(spmd.OptionError, match="strict, contract"):
        spmd.vmap(fused, fp="fast")


@pytest.mark.parametrize("axes", [1, None, "front", (0, 1)])
def test_out_axes_that_do_not_fit_the_result_are_refused(axes: Any) -> None:
    with pytest.raises(spmd.OptionError):
        spmd.vmap(dot, out_axes=axes)(XS, YS)


# ------------------------------------------------------------------------------------------------ callables
def test_partial_functions_and_class_methods() -> None:
    np.testing.assert_allclose(spmd.vmap(functools.partial(with_default, scale=2.0))(XS), XS.sum(1) * 2.0 + 1.0)
    np.testing.assert_allclose(spmd.vmap(Shifted.shift)(XS), XS + 2.0)


@pytest.mark.parametrize("function", [np.exp, print, Pair(1, 2), 3.0])
def test_what_is_no_python_function_is_refused(function: Any) -> None:
    with pytest.raises(spmd.SpmdError):
        spmd.vmap(function)(XS)


def test_a_vmapped_function_keeps_name_and_original() -> None:
    batched = spmd.vmap(with_default)
    assert batched.__name__ == "with_default"
    assert batched.one is with_default


# ------------------------------------------------------------------------------------------------ into, bind
def test_into_writes_into_given_arrays() -> None:
    out = np.zeros(5)
    assert spmd.vmap(dot).into(out, XS, YS) is out
    np.testing.assert_allclose(out, np.sum(XS * YS, axis=1))


def test_into_writes_nothing_where_something_does_not_fit() -> None:
    def both(x, y):
        return np.sum(x), x * y

    good, bad = np.zeros(5), np.zeros((5, 2))
    with pytest.raises(spmd.ShapeMismatch, match="out"):
        spmd.vmap(both).into((good, bad), XS, YS)
    assert not good.any()
    with pytest.raises(spmd.ShapeMismatch):
        spmd.vmap(both).into(good, XS, YS)
    with pytest.raises(spmd.ShapeMismatch):
        spmd.vmap(dot).into(np.zeros(5, np.int64), XS, YS)


def test_bind_gives_a_call_for_these_types() -> None:
    bound = spmd.vmap(dot).bind(XS, YS)
    np.testing.assert_allclose(bound(XS[:2], YS[:2]), np.sum(XS * YS, axis=1)[:2])
    with pytest.raises(spmd.OptionError):
        bound(XS.astype(np.float32), YS)
    gradient = spmd.vmap(spmd.value_and_grad(dot)).bind(XS, YS)
    value, found = gradient(XS, YS)
    np.testing.assert_allclose(value, np.sum(XS * YS, axis=1))
    np.testing.assert_allclose(found, YS)


@pytest.mark.parametrize("argnums", [2, -3, (0, 5)])
def test_arguments_that_there_are_not_have_no_gradient(argnums: Any) -> None:
    with pytest.raises(spmd.OptionError):
        spmd.grad(dot, argnums=argnums)(XS[0], YS[0])
    with pytest.raises(spmd.OptionError):
        spmd.vjp(dot, XS[0], YS[0], argnums=argnums)


# ------------------------------------------------------------------------------------------------ vmap inside
def test_a_vmapped_call_inside_a_function() -> None:
    groups = RNG.normal(size=(4, 2, 3))
    got = spmd.vmap(mean_of_rows, in_axes=(None, 0))(XS[0], groups)
    np.testing.assert_allclose(got, np.mean(groups @ XS[0], axis=1))
    w, rows = XS[0], YS
    value, (dw, drows) = spmd.value_and_grad(squares_of_rows, argnums=(0, 1))(w, rows)
    out = rows @ w
    weight = 2 * out
    weight[0] += 1
    np.testing.assert_allclose(value, np.sum(out * out) + out[0])
    np.testing.assert_allclose(dw, weight @ rows)
    np.testing.assert_allclose(drows, weight[:, None] * w)


def sum_of_scaled(xs):
    return np.sum(all_scaled(xs)) + np.sum(all_scaled(xs, 3.0 * xs))


def test_defaults_of_a_vmapped_call_inside_are_shared() -> None:
    np.testing.assert_allclose(spmd.vmap(sum_of_scaled)(XS), XS.sum(1) * 2 + 3 * (XS**2).sum(1))


gradient_inside = spmd.grad(scaled)


def asks_a_gradient(x):
    return gradient_inside(x) * x


def test_a_gradient_inside_a_function_is_refused_as_such() -> None:
    with pytest.raises(spmd.UnsupportedFunction, match="gradient"):
        spmd.vmap(asks_a_gradient)(XS[0])


def test_gradients_of_constants_are_zero() -> None:
    def maybe(x):
        return np.sum(x) if len(x) else 0.0

    np.testing.assert_array_equal(spmd.grad(maybe)(np.zeros(0)), np.zeros(0))

    def flat(x):
        return 2.5

    np.testing.assert_array_equal(spmd.vmap(spmd.grad(flat))(XS), np.zeros_like(XS))


def test_gradients_keep_single_precision() -> None:
    x = XS.astype(np.float32)
    assert spmd.vmap(spmd.grad(dot))(x, x).dtype == np.float32
    assert spmd.grad(dot)(x[0], x[0]).dtype == np.float32


def sums_of_rows(p, xs):
    return np.sum(spmd.vmap(dot, in_axes=(None, 0))(p, xs))


def test_vmap_may_be_called_where_its_result_is_used() -> None:
    value, gradient = spmd.value_and_grad(sums_of_rows)(XS[0], YS)
    assert np.isclose(value, np.sum(YS @ XS[0])) and np.allclose(gradient, YS.sum(axis=0))


def shared_and_own(w, x):
    return w * 2.0, x * w, 3


def test_out_axes_none_is_for_what_all_examples_share() -> None:
    run = spmd.vmap(shared_and_own, in_axes=(None, 0), out_axes=(None, 0, None))
    doubled, own, three = run(XS[0], YS)
    assert np.array_equal(doubled, 2.0 * XS[0]) and own.shape == (5, 3) and three == 3
    _, pullback = spmd.vjp(run, XS[0], YS, argnums=0)
    (gradient,) = pullback((np.ones(3), np.zeros((5, 3)), None))
    assert np.allclose(gradient, 2.0)
    with pytest.raises(spmd.OptionError, match="same for all examples"):
        spmd.vmap(shared_and_own, in_axes=(None, 0), out_axes=None)(XS[0], YS)


class Branch:
    def __init__(self, value: float, children: Any = ()) -> None:
        self.value, self.children = value, list(children)


def height(p, node):
    return np.sin(p * node.value + sum([height(p, child) for child in node.children]))


def heights(p, node):
    return [height(p, child) for child in node.children], p * 2.0


@pytest.mark.parametrize("target", ["auto", "blas", "reference"])
def test_the_cotangent_of_lists_is_lists(target: str) -> None:
    trees = [Branch(1.0, [Branch(0.5, [Branch(0.1)]), Branch(0.2)]), Branch(2.0), Branch(0.3, [Branch(0.4)])]
    weights = [[1.0, 2.0], [], [3.0]]
    (lists, _), pullback = spmd.vjp(spmd.vmap(heights, in_axes=(None, 0), target=target), 0.7, trees, argnums=(0, 1))
    for got, tree in zip(batching.unpack(lists), trees):
        np.testing.assert_allclose(got, heights(0.7, tree)[0])

    def weighted(p):
        return sum(w * h for tree, ws in zip(trees, weights) for w, h in zip(ws, heights(p, tree)[0]))

    slope, by_tree = pullback((weights, np.zeros(3)))
    assert np.isclose(slope, (weighted(0.7 + 1e-6) - weighted(0.7 - 1e-6)) / 2e-6)
    assert batching.unpack(by_tree)[1].value == 0.0 and batching.unpack(by_tree)[2].children[0].value != 0.0
    assert pullback(([[0.0, 0.0], [], [0.0]], np.ones(3)))[0] == 6.0
    with pytest.raises(spmd.SpmdError, match="other lengths"):
        pullback(([[1.0], [], [3.0]], np.zeros(3)))


def chained(ws, x):
    for w in ws:
        x = np.tanh(w @ x)
    return np.sum(x)


@pytest.mark.parametrize("count", [0, 1, 33])
def test_gradients_for_a_shared_list_keep_poison_in_its_example_at_any_batch_size(count: int) -> None:
    ws = [0.5 * np.eye(2), np.full((2, 2), 0.3)]
    xs = np.random.default_rng(0).normal(size=(count, 2))
    xs[3:20:4] = np.nan, np.inf
    sloped = spmd.vmap(spmd.grad(chained), in_axes=(None, 0))
    for found in (sloped(ws, xs), sloped.bind(ws, xs)(ws, xs)):
        each = batching.unpack(found)
        assert len(each) == count
        for got, x in zip(each, xs):
            for one, other in zip(got, spmd.grad(chained)(ws, x)):
                np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("target", ["auto", "blas", "reference"])
def test_each_example_has_a_gradient_of_its_own_for_shared_lists_and_trees(target: str) -> None:
    ws, xs = [0.5 * np.eye(2), np.full((2, 2), 0.3)], np.array([[1.0, 2.0], [0.1, 0.2], [0.0, 1.0]])
    each = batching.unpack(spmd.vmap(spmd.grad(chained), in_axes=(None, 0), target=target)(ws, xs))
    for got, x in zip(each, xs):
        for one, other in zip(got, spmd.grad(chained)(ws, x)):
            np.testing.assert_allclose(one, other, rtol=1e-12)
    tree = Branch(1.0, [Branch(0.5), Branch(0.2)])
    slopes = spmd.vmap(spmd.grad(height, argnums=1), in_axes=(0, None), target=target)([0.3, 0.7], tree)
    for got, p in zip(batching.unpack(slopes), (0.3, 0.7)):
        want = spmd.grad(height, argnums=1)(p, tree)
        assert np.isclose(got.value, want.value) and np.isclose(got.children[1].value, want.children[1].value)


@pytest.mark.parametrize("given", [
    np.ma.array([[1.0, 2.0], [3.0, 4.0]], mask=[[0, 1], [0, 0]]), np.rec.array([[1.0, 2.0]]), np.array([[1.0]], ">f8"),
])  # fmt: skip
def test_arrays_that_behave_otherwise_are_refused_mapped_and_shared(given: Any) -> None:
    with pytest.raises(spmd.UnsupportedType, match="x"):
        spmd.vmap(lambda x: np.sum(x))(given)
    with pytest.raises(spmd.UnsupportedType, match="x"):
        spmd.vmap(lambda x, y: np.sum(x) + y, in_axes=(None, 0))(given, np.ones(2))


def test_a_memory_mapped_array_is_an_array(tmp_path: Any) -> None:
    np.save(tmp_path / "a.npy", np.arange(6.0).reshape(3, 2))
    np.testing.assert_array_equal(spmd.vmap(lambda x: np.sum(x))(np.load(tmp_path / "a.npy", mmap_mode="r")), [1, 5, 9])


def test_gradients_with_respect_to_mapped_ints_are_refused_as_for_one() -> None:
    for call in (lambda: spmd.grad(lambda x: x * 1.5)(1), lambda: spmd.vmap(spmd.grad(lambda x: x * 1.5))([1, 2])):
        with pytest.raises(spmd.GradientError, match="holds no floats"):
            call()


def test_an_empty_list_of_examples_gives_the_structure_of_the_transform() -> None:
    def weighted(p, x):
        return p["w"] @ p["w"] * x, x

    p = {"w": np.ones(3)}
    both = spmd.value_and_grad(weighted, argnums=(0, 1), has_aux=True)
    (value, aux), (slopes, slope) = spmd.vmap(both, in_axes=(None, 0))(p, [])
    assert [a.shape for a in (value, aux, slope, slopes["w"])] == [(0,), (0,), (0,), (0, 3)]
    assert spmd.vmap(lambda x: x)([]).shape == (0,)


def test_into_a_read_only_array_writes_nothing() -> None:
    good, fixed = np.full(5, 7.0), np.zeros(5)
    fixed.flags.writeable = False
    with pytest.raises(spmd.ShapeMismatch, match="written"):
        spmd.vmap(lambda x, y: (np.sum(x), np.sum(y))).into((good, fixed), XS, YS)
    assert (good == 7.0).all()
