"""Bad input: each is answered on one screen that names the place, the cause and what to do, and changes nothing.

The texts are golden (tests/golden/bad_input.test), with the path of this file cut to its name.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import batching
import spmd

SCREEN_LINES, SCREEN_WIDTH = 20, 180
Golden = Callable[[str, str, str], None]


class Tree:
    """A node of the trees below."""

    def __init__(self, value: Any, left: Any = None, right: Any = None) -> None:
        self.value = value
        self.left = left
        self.right = right


def total(tree):
    if tree.left is None:
        return tree.value
    return total(tree.left) + total(tree.right)


def depth(tree):
    if tree is None:
        return 0
    return depth(tree.left) + depth(tree.right) + 1


def hopeless(x):
    return hopeless(x + 1.0) * 2.0


def endless(x):
    if x < 0.0:
        return x
    return endless(x + 1.0) * 2.0


def yields(x):
    yield x


def opens_a_file(x):
    with open("numbers") as file:
        return x + len(file.name)


def asks_an_unknown_function(x):
    return np.fft.fft(x)[1]


def writes_an_attribute(tree):
    tree.value = tree.value * 2.0
    return tree.value


def adds(x, y):
    return x + y


def multiplies(w, x):
    return w @ x


def scales(x, n):
    return x * n


def many_results(x):
    return x, x * 2.0


def names_nothing(x):
    return x * undefined_factor  # noqa: F821


def links_a_chain(n):
    chain = None
    for k in range(n):
        chain = (k, chain)
    return 0 if chain is None else chain[0]


def half_and_half(low, high):
    middle = (low + high) // 2
    return None if low >= high else (middle, half_and_half(low, middle), half_and_half(middle + 1, high))


def builds_a_tree(n):
    tree = half_and_half(0, n)
    return 0 if tree is None else tree[0]


def wraps(n, inner):
    return inner if n == 0 else wraps(n - 1, (n, inner))


def hands_a_chain_on(n):
    chain = wraps(n, None)
    return 0 if chain is None else chain[0]


def refusal(golden: Golden, case: str, kind: type[BaseException], call: Callable[[], Any]) -> spmd.SpmdError:
    """Runs a call that must be refused; its text must be the golden one and fit one screen."""
    with pytest.raises(kind) as caught:
        call()
    error = caught.value
    assert isinstance(error, spmd.SpmdError)
    text = error.render(color=False)
    lines = text.splitlines()
    assert len(lines) <= SCREEN_LINES
    assert max(map(len, lines)) <= SCREEN_WIDTH
    golden("bad_input", case, _without_place(text))
    return error


def _without_place(text: str) -> str:
    """The text with this file named by its last part, wherever the tests run, and without the depth of a recursion."""
    here = Path(__file__).resolve()
    for shown in (str(here), str(Path("tests") / here.name)):
        text = text.replace(shown, here.name)
    return re.sub(r"[0-9,]+ calls deep", "N calls deep", text)


def deep_cycle() -> Tree:
    tree = Tree(1.0, Tree(2.0), Tree(3.0))
    tree.left.left = tree
    tree.left.right = Tree(4.0)
    return tree


# ------------------------------------------------------------------------------------------ what is written
UNSUPPORTED = {
    "yield": (yields, [1.0, 2.0]),
    "with": (opens_a_file, [1.0, 2.0]),
    "unknown function": (asks_an_unknown_function, np.ones((2, 3, 3))),
    "attribute write": (writes_an_attribute, [Tree(1.0), Tree(2.0)]),
    "undefined name": (names_nothing, [1.0, 2.0]),
    "chain built by a loop": (links_a_chain, [0, 3]),
    "tree built by recursion": (builds_a_tree, [0, 3]),
    "chain built by an argument": (hands_a_chain_on, [0, 3]),
}


@pytest.mark.parametrize("case", UNSUPPORTED)
def test_what_cannot_run_in_lanes_is_refused_at_its_line(golden: Golden, case: str) -> None:
    function, argument = UNSUPPORTED[case]
    error = refusal(golden, case, spmd.SpmdError, lambda: spmd.vmap(function)(argument))
    assert error.span is not None
    assert Path(error.span.file).name == Path(__file__).name
    assert error.hint


def test_nothing_is_run_of_a_function_that_is_refused(golden: Golden) -> None:
    trees = [Tree(1.0), Tree(2.0)]
    with pytest.raises(spmd.SpmdError):
        spmd.vmap(writes_an_attribute)(trees)
    assert [tree.value for tree in trees] == [1.0, 2.0]


# ------------------------------------------------------------------------------------------ what is given
def test_lengths_that_differ_are_listed_with_their_sizes(golden: Golden) -> None:
    error = refusal(golden, "batch lengths", ValueError, lambda: spmd.vmap(adds)([1.0, 2.0, 3.0], np.ones(2)))
    assert "3" in str(error) and "2" in str(error)
    assert "x" in str(error) and "y" in str(error)


def test_none_where_a_node_is_needed_names_the_example() -> None:
    trees = [Tree(1.0), Tree(2.0, Tree(1.0), Tree(3.0)), Tree(3.0, Tree(1.0), None)]
    with pytest.raises(AttributeError) as caught:
        total(trees[2])
    plain = str(caught.value)
    with pytest.raises(AttributeError) as caught:
        spmd.vmap(total)(trees)
    assert caught.value.example == 2  # type: ignore[attr-defined]
    assert str(caught.value) == plain
    assert any(Path(__file__).name in note for note in caught.value.__notes__)


def test_a_child_of_the_wrong_type_raises_in_its_example() -> None:
    trees = [Tree(1.0), Tree(2.0, Tree(1.0), Tree(3.0)), Tree(2.0, "left", Tree(3.0))]
    with pytest.raises(AttributeError) as caught:
        total(trees[2])
    plain = str(caught.value)
    with pytest.raises(AttributeError) as caught:
        spmd.vmap(total)(trees)
    assert caught.value.example == 2  # type: ignore[attr-defined]
    assert str(caught.value) == plain
    assert any(Path(__file__).name in note for note in caught.value.__notes__)


def test_children_that_are_all_of_a_wrong_type_are_refused(golden: Golden) -> None:
    trees = [Tree(1.0, "a", "b"), Tree(2.0, "left", "right")]
    refusal(golden, "wrong child", spmd.StructureError, lambda: spmd.vmap(total)(trees))


def test_shapes_that_do_not_fit_are_refused(golden: Golden) -> None:
    batched = spmd.vmap(multiplies, in_axes=(None, 0))
    refusal(golden, "shapes", ValueError, lambda: batched(np.ones((3, 4)), np.ones((2, 5))))


def test_shapes_that_differ_between_examples_raise_in_the_first_that_does_not_fit() -> None:
    with pytest.raises(ValueError) as caught:
        spmd.vmap(adds)([np.ones(3), np.ones(2)], [np.ones(3), np.ones(4)])
    assert caught.value.example == 1  # type: ignore[attr-defined]


def test_a_cycle_taken_for_a_tree_ends_in_the_budget_or_a_refusal(golden: Golden) -> None:
    with spmd.configure(budget=4_000_000):
        error = refusal(golden, "cycle", spmd.SpmdError, lambda: spmd.vmap(depth)([Tree(1.0), deep_cycle()]))
    assert "depth" in str(error) or "cycle" in str(error)


def test_recursion_that_no_path_ends_is_refused_before_running(golden: Golden) -> None:
    error = refusal(golden, "hopeless recursion", spmd.SpmdError, lambda: spmd.vmap(hopeless)([1.0, 2.0]))
    assert "'hopeless'" in str(error)


@pytest.mark.parametrize("target", ["auto", "blas", "reference"])
def test_recursion_without_end_is_stopped_by_the_memory_budget(target: str) -> None:
    with spmd.configure(budget=4_000_000), pytest.raises(spmd.MemoryBudgetError) as caught:
        spmd.vmap(endless, target=target)([1.0, 2.0])
    text = caught.value.render(color=False)
    assert "'endless'" in text
    assert "calls deep" in text
    assert Path(__file__).name in text


def test_gradients_of_integers_are_refused(golden: Golden) -> None:
    refusal(golden, "integer gradient", TypeError, lambda: spmd.grad(scales, argnums=1)(2.0, 3))


def test_gradients_of_several_numbers_are_refused(golden: Golden) -> None:
    refusal(golden, "gradient of a tuple", TypeError, lambda: spmd.grad(many_results)(2.0))


def test_an_option_that_does_not_exist_is_refused(golden: Golden) -> None:
    refusal(golden, "target", ValueError, lambda: spmd.vmap(adds, target="gpu")([1.0], [2.0]))


# ---------------------------------------------------------------------------------------- what is no error
def test_an_empty_batch_works() -> None:
    assert spmd.vmap(adds)(np.empty(0), np.empty(0)).shape == (0,)
    packed = batching.pack([Tree(1.0), Tree(2.0, Tree(1.0), Tree(2.0))])
    assert spmd.vmap(total)(packed[:0]).shape == (0,)


def test_a_nan_stays_in_its_example() -> None:
    values = np.array([1.0, np.nan, 3.0])
    out = spmd.vmap(adds)(values, np.ones(3))
    assert out[[0, 2]].tolist() == [2.0, 4.0]
    assert np.isnan(out[1])
    gradient = spmd.vmap(spmd.grad(square_of_sum))(values, np.ones(3))
    assert gradient[[0, 2]].tolist() == [4.0, 8.0]


def square_of_sum(x, y):
    return (x + y) * (x + y)


def test_arguments_are_left_as_they_were() -> None:
    trees = [Tree(1.0), Tree(2.0, Tree(0.5), Tree(3.0))]
    before = copy.deepcopy(trees)
    spmd.vmap(total)(trees)
    assert [vars(t)["value"] for t in trees] == [vars(t)["value"] for t in before]
    assert [t.left is None for t in trees] == [t.left is None for t in before]
