"""The TreeLSTM example: its data sets, and its model functions as what they are, plain NumPy for one tree."""

from __future__ import annotations

import ast
import math
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[0:0] = [str(ROOT / "examples")]

import data  # noqa: E402
import treelstm  # noqa: E402
from data import PhraseNode, SyntaxNode  # noqa: E402

H = treelstm.HIDDEN


@pytest.fixture(scope="module")
def functions() -> data.FunctionData:
    return data.library_functions()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.txt").write_text("(3 (2 It) (4 (2 's) (3 1\u00a01/2)))\n\n(1 Bad)\n", encoding="utf8")
    (tmp_path / "dev.txt").write_text("(0 (2 it) (1 boring))\n", encoding="utf8")
    (tmp_path / "test.txt").write_text("", encoding="utf8")
    return tmp_path


def test_functions_are_of_sixteen_modules_and_none_is_in_both_parts(functions: data.FunctionData) -> None:
    assert len(functions.modules) == 16
    every = functions.train + functions.test
    assert {label for _, label in every} == set(range(16))
    assert not {id(tree) for tree, _ in functions.train} & {id(tree) for tree, _ in functions.test}
    assert len(functions.test) == int(0.2 * len(every))
    assert 1 / 16 < functions.majority < 0.5


def test_syntax_trees_hold_known_kinds_and_words_and_wide_nodes(functions: data.FunctionData) -> None:
    widest = largest = 0
    for tree, _ in functions.train + functions.test:
        waiting = [tree]
        while waiting:
            node = waiting.pop()
            assert 0 <= node.kind < functions.kinds and 0 <= node.word < functions.words
            widest = max(widest, len(node.children))
            waiting += node.children
        size = data.count_nodes(tree)
        assert data.SMALLEST <= size <= data.LARGEST
        largest = max(largest, size)
    assert widest > 12 and largest > 200


def test_the_split_follows_the_seed(functions: data.FunctionData) -> None:
    other = data.library_functions(seed=1)
    assert other.modules == functions.modules
    assert [label for _, label in other.test] != [label for _, label in functions.test]


def test_nested_functions_stay_in_the_outermost_one() -> None:
    text = "class A:\n    def f(self, x):\n        def g(y):\n            return x + y\n        return g\n"
    (found,) = data._functions(text)
    assert isinstance(found, ast.FunctionDef) and found.name == "f"


def test_a_treebank_is_read_with_the_words_of_its_training_part(folder: Path) -> None:
    bank = data.treebank(folder)
    first, single = bank.train
    assert (bank.words, bank.classes) == (1 + 4, 5)
    assert [node.label for node in data.phrases(first)] == [3, 2, 4, 2, 3]
    assert single == PhraseNode(1, 4, None, None)
    (unseen,) = bank.dev
    assert unseen.left is not None and unseen.right is not None
    assert (unseen.left.word, unseen.right.word) == (1, 0)
    assert bank.test == []


@pytest.mark.parametrize(
    "line", ["(3 (2 a) (2 b)", "(3 (2 a) (2 b) (2 c))", "(3 a b)", "(x a)", "3 a", "(3)", "(3 a) (2 b)"]
)
def test_a_line_that_is_no_binary_tree_is_refused_with_its_place(folder: Path, line: str) -> None:
    (folder / "dev.txt").write_text("(0 a)\n" + line + "\n", encoding="utf8")
    with pytest.raises(ValueError, match=r"dev\.txt:2: not a binary bracketed tree"):
        data.treebank(folder)


def parameters(**shapes: tuple[int, ...]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {name: (0.1 * rng.standard_normal(shape)).astype(np.float32) for name, shape in shapes.items()}


def test_the_child_sum_model_runs_on_one_tree_in_float32() -> None:
    p = parameters(kind=(3, H), word=(2, H), W=(H, 4 * H), b=(4 * H,), U=(H, 3 * H), Uf=(H, H), out=(H, 16), bias=(16,))
    tree = SyntaxNode(0, 1, [SyntaxNode(1, 0, []), SyntaxNode(2, 0, [SyntaxNode(1, 1, [])]), SyntaxNode(2, 1, [])])
    loss = treelstm.module_loss(p, tree, 5)
    assert loss.dtype == np.float32 and 1.0 < loss < 5.0
    turned = SyntaxNode(0, 1, tree.children[::-1])
    assert math.isclose(treelstm.module_loss(p, turned, 5), loss, rel_tol=1e-5)
    losses = [treelstm.module_loss(p, tree, module) for module in range(16)]
    assert treelstm.guessed_module(p, tree) == np.argmin(losses)
    assert math.isclose(sum(np.exp(-value) for value in losses), 1.0, rel_tol=1e-5)


def test_the_binary_model_sums_the_losses_of_all_phrases() -> None:
    p = parameters(word=(4, H), W=(H, 3 * H), b=(3 * H,), U=(2 * H, 5 * H), bu=(5 * H,), out=(H, 5), bias=(5,))
    left, right = PhraseNode(1, 2, None, None), PhraseNode(4, 3, None, None)
    tree = PhraseNode(2, -1, left, right)
    whole = treelstm.sentence_loss(p, tree)
    assert whole.dtype == np.float32
    assert whole > treelstm.sentence_loss(p, left) + treelstm.sentence_loss(p, right)
    right_phrases, root_right = treelstm.sentence_marks(p, tree)
    assert 0 <= root_right <= 1 and root_right <= right_phrases <= 3
    assert right_phrases - root_right == sum(treelstm.sentence_marks(p, leaf)[1] for leaf in (left, right))
