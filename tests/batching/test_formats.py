"""Reading of bracketed treebanks."""

from __future__ import annotations

from pathlib import Path

import pytest

import batching
from batching.formats import BinaryNode, TreebankNode, read_bracketed

TREEBANK = Path(__file__).parents[3] / "shared" / "data" / "sst" / "dev.txt"


def test_a_tree_has_labels_words_and_children() -> None:
    (tree,) = read_bracketed(["(3 (2 It) (4 (2 's) (1 good\u00a0fun)))"])
    assert isinstance(tree, TreebankNode)
    assert (tree.label, tree.word) == (3, None)
    assert [child.word for child in tree.children] == ["It", None]
    assert tree.children[1].children[1].word == "good\u00a0fun"


def test_a_binary_tree_has_left_and_right() -> None:
    (tree,) = read_bracketed(["(NP (DT a) (NN film))", ""], label=str, binary=True)
    assert isinstance(tree, BinaryNode)
    left, right = tree.left, tree.right
    assert left is not None
    assert right is not None
    assert (tree.label, left.word, right.label, left.left) == ("NP", "a", "NN", None)


def test_a_file_is_read_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "trees.txt"
    path.write_text("(1 a)\r\n\n(2 (0 b) (1 c))\n", encoding="utf-8")
    assert [tree.label for tree in read_bracketed(path)] == [1, 2]


@pytest.mark.parametrize("line", [
    "(1 a", "1 a)", "(1 a) (2 b)", "(x a)", "(1 a b)", "(1)", "()", "((1 a) (2 b))", "(1 a (2 b))", "(1 (2 b) c)",
])
def test_text_that_is_not_a_tree_is_refused_with_line_and_column(line: str) -> None:
    with pytest.raises(batching.PackingError) as caught:
        read_bracketed(["(0 x)", line])
    assert caught.value.path.startswith("lines:2:")


def test_a_binary_node_with_another_number_of_children_is_refused() -> None:
    with pytest.raises(batching.PackingError, match="3 children"):
        read_bracketed(["(1 (0 a) (0 b) (0 c))"], binary=True)


def test_depth_is_not_bounded_by_recursion() -> None:
    depth = 20_000
    (tree,) = read_bracketed(["(0 " * depth + "(1 x)" + ")" * depth])
    for _ in range(depth):
        tree = tree.children[0]
    assert tree.word == "x"


@pytest.mark.skipif(not TREEBANK.exists(), reason="the treebank is not here")
def test_a_real_treebank_packs_into_one_table() -> None:
    trees = read_bracketed(TREEBANK, binary=True)
    packed = batching.pack(trees)
    (table,) = packed.schema.tables
    assert len(packed) == 1101
    assert table.classes == ((BinaryNode, ("label", "word", "left", "right")),)
    assert not table.shared
    assert not table.cyclic
    words = [example.word for example in packed[:20].examples()]
    assert words == [tree.word for tree in trees[:20]]
