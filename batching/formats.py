"""Reads data files into Python objects ready for packing.

Invariant: what is read is plain data: nodes with fields, no arrays, no vocabulary; nothing in a file is executed.
Must not know: columns.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from batching.keypath import PackingError

__all__ = ["BinaryNode", "TreebankNode", "read_bracketed"]


class TreebankNode:
    """A node of a bracketed tree: a leaf has a word, an inner node children."""

    __slots__ = ("label", "word", "children")

    def __init__(self, label: Any, word: str | None, children: list[TreebankNode]) -> None:
        self.label = label
        self.word = word
        self.children = children

    def __repr__(self) -> str:
        return f"TreebankNode({self.label!r}, {self.word!r}, {len(self.children)} children)"


class BinaryNode:
    """A node of a binary bracketed tree: a leaf has a word, an inner node `left` and `right`; else they are None."""

    __slots__ = ("label", "word", "left", "right")

    def __init__(self, label: Any, word: str | None, left: BinaryNode | None, right: BinaryNode | None) -> None:
        self.label = label
        self.word = word
        self.left = left
        self.right = right

    def __repr__(self) -> str:
        return f"BinaryNode({self.label!r}, {self.word!r})"


def read_bracketed(
    source: str | os.PathLike[str] | Iterable[str], label: Callable[[str], Any] = int, binary: bool = False,
) -> list[Any]:
    """The trees of a bracketed treebank, one per line: `(3 (2 It) (4 works))`.

    `source` is a path (UTF-8) or an iterable of lines; empty lines are passed over. `label` reads a node's label.
    Words are split at plain blanks only, since they may hold other white space such as U+00A0. With `binary` the nodes
    are BinaryNode and every inner node must have two children, else TreebankNode.
    Raises PackingError, naming line and column, for text that is not a tree.
    """
    if isinstance(source, (str, os.PathLike)):
        name = os.fspath(source)
        lines: Iterable[str] = Path(source).read_text(encoding="utf-8").split("\n")
    else:
        name, lines = "lines", source
    trees = []
    for number, line in enumerate(lines, 1):
        line = line.strip(" \r\n")
        if line:
            trees.append(_tree(line, label, binary, f"{name}:{number}"))
    return trees


def _tokens(line: str) -> Iterator[tuple[int, str]]:
    """Brackets and words with their columns."""
    start = None
    for column, letter in enumerate(line):
        if letter in "() ":
            if start is not None:
                yield start, line[start:column]
                start = None
            if letter != " ":
                yield column, letter
        elif start is None:
            start = column
    if start is not None:
        yield start, line[start:]


def _tree(line: str, label: Callable[[str], Any], binary: bool, place: str) -> Any:
    """One tree, read with a stack of open nodes: [label, word, children]."""
    stack: list[list[Any]] = []
    root: Any = None
    for column, token in _tokens(line):
        here = f"{place}:{column + 1}"
        if root is not None:
            raise PackingError(here, f"{token!r} after the end of the tree")
        if token == "(":
            if stack and (stack[-1][0] is None or stack[-1][1] is not None):
                raise PackingError(here, "a bracket where a label or the end of a word was expected")
            stack.append([None, None, []])
        elif not stack:
            raise PackingError(here, f"{token!r} outside of a bracket")
        elif token != ")":
            _word(stack[-1], token, label, here)
        else:
            name, word, children = stack.pop()
            node = _node(name, word, children, binary, here)
            if stack:
                stack[-1][2].append(node)
            else:
                root = node
    if root is None:
        raise PackingError(f"{place}:{len(line) + 1}", f"the line ends with {len(stack)} brackets open")
    return root


def _word(node: list[Any], token: str, label: Callable[[str], Any], here: str) -> None:
    if node[0] is None:
        try:
            node[0] = label(token)
        except ValueError as error:
            raise PackingError(here, f"{token!r} is not a label: {error}") from None
    elif node[1] is not None or node[2]:
        raise PackingError(here, f"a second word {token!r} in one bracket")
    else:
        node[1] = token


def _node(label: Any, word: str | None, children: list[Any], binary: bool, here: str) -> Any:
    if label is None or word is None and not children:
        raise PackingError(here, "a bracket with neither a word nor children")
    if not binary:
        return TreebankNode(label, word, children)
    if word is not None:
        return BinaryNode(label, word, None, None)
    if len(children) != 2:
        raise PackingError(here, f"{len(children)} children in a binary tree")
    return BinaryNode(label, None, *children)
