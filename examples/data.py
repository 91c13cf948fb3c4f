"""Data sets of the examples: the functions of the installed Python's own library, and bracketed treebanks.

Everything here is plain Python: trees are dataclass nodes, labels are integers. Invariant: one interpreter and one seed
give the same examples in the same order, and no example of a held-out part shares nodes with one of the training part.
Knows nothing of batching or of the compiler.
"""

from __future__ import annotations

import ast
import random
import re
import sysconfig
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

RARE = 0
"""Id of every identifier that fewer training functions than `WORD_FLOOR` hold; also of nodes that bear none."""

WORD_FLOOR = 3
SMALLEST, LARGEST = 8, 600
"""Functions of fewer or more nodes are left out: the first say nothing, the second are a handful."""

SKIPPED_FOLDERS = ("site-packages", "test", "tests", "idlelib", "lib2to3", "turtledemo", "ensurepip", "__pycache__")
CONTEXT_NODES = (ast.Load, ast.Store, ast.Del)


@dataclass
class SyntaxNode:
    """A node of a syntax tree: its kind (`ast` class), the identifier it bears, its children in source order."""

    kind: int
    word: int
    children: list[SyntaxNode]


@dataclass
class FunctionData:
    """Functions of Python's library and the module of each: `train` and `test` are lists of (tree, class)."""

    train: list[tuple[SyntaxNode, int]]
    test: list[tuple[SyntaxNode, int]]
    kinds: int
    words: int
    modules: list[str]

    @property
    def majority(self) -> float:
        """Share of the held-out functions that the most frequent class of the training part gets right."""
        best = Counter(label for _, label in self.train).most_common(1)[0][0]
        return sum(label == best for _, label in self.test) / len(self.test)


def library_functions(modules: int = 16, seed: int = 0, held_out: float = 0.2) -> FunctionData:
    """The functions of the `modules` largest modules of the standard library, split at random by `seed`.

    A module's size is the number of its functions. Nested functions stay part of the outermost one, so no code occurs
    in two trees. Words are the identifiers (names, attributes, arguments, the function's own name) that at least
    `WORD_FLOOR` training functions hold; the rest share the id `RARE`.
    """
    sources = _largest_modules(modules)
    largest = list(sources)
    examples = [(tree, label) for label, name in enumerate(largest) for tree in sources[name]]
    random.Random(seed).shuffle(examples)
    cut = int(len(examples) * held_out)
    test, train = examples[:cut], examples[cut:]
    seen = Counter(word for tree, _ in train for word in {_identifier(node) for node in ast.walk(tree)} - {""})
    words = {word: 1 + i for i, word in enumerate(sorted(w for w, n in seen.items() if n >= WORD_FLOOR))}
    classes = sorted({type(node).__name__ for tree, _ in examples for node in ast.walk(tree)})
    kinds = {name: i for i, name in enumerate(classes)}
    return FunctionData(
        train=[(_syntax_tree(tree, kinds, words), label) for tree, label in train],
        test=[(_syntax_tree(tree, kinds, words), label) for tree, label in test],
        kinds=len(kinds),
        words=len(words) + 1,
        modules=largest,
    )


def _largest_modules(number: int) -> dict[str, list[ast.AST]]:
    """The functions of the modules that have most of them, largest first, equal ones by name.

    How often `def` occurs in a module's text bounds its functions from above, so parsing ends when no further module
    can be among the largest.
    """
    texts = {name: path.read_text(encoding="utf8", errors="replace") for name, path in _library_modules()}
    bounds = {name: len(re.findall(r"\bdef\b", text)) for name, text in texts.items()}
    found: dict[str, list[ast.AST]] = {}
    ranked: list[str] = []
    for name in sorted(texts, key=lambda name: -bounds[name]):
        if len(ranked) == number and bounds[name] < len(found[ranked[-1]]):
            break
        found[name] = list(_functions(texts[name]))
        ranked = sorted(found, key=lambda name: (-len(found[name]), name))[:number]
    return {name: found[name] for name in ranked}


def _library_modules() -> Iterator[tuple[str, Path]]:
    """(dotted name, file) of every module of the standard library that is written in Python, sorted."""
    library = Path(sysconfig.get_paths()["stdlib"])
    for path in sorted(library.rglob("*.py")):
        parts = path.relative_to(library).with_suffix("").parts
        if not any(part in SKIPPED_FOLDERS or part.startswith("config-") for part in parts):
            yield ".".join(part for part in parts if part != "__init__"), path


def _functions(text: str) -> Iterator[ast.AST]:
    """The outermost functions and methods of one module; none where it does not parse."""
    try:
        waiting: list[ast.AST] = [ast.parse(text)]
    except (SyntaxError, ValueError):
        return
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if SMALLEST <= sum(1 for _ in _walk(node)) <= LARGEST:
                yield node
        else:
            waiting.extend(reversed(list(ast.iter_child_nodes(node))))


def _walk(tree: ast.AST) -> Iterator[ast.AST]:
    return (node for node in ast.walk(tree) if not isinstance(node, CONTEXT_NODES))


def _identifier(node: ast.AST) -> str:
    for field in ("id", "attr", "arg", "name"):
        word = getattr(node, field, None)
        if isinstance(word, str):
            return word
    return ""


def _syntax_tree(node: ast.AST, kinds: dict[str, int], words: dict[str, int]) -> SyntaxNode:
    children = [_syntax_tree(c, kinds, words) for c in ast.iter_child_nodes(node) if not isinstance(c, CONTEXT_NODES)]
    return SyntaxNode(kinds[type(node).__name__], words.get(_identifier(node), RARE), children)


def count_nodes(tree: SyntaxNode) -> int:
    """Nodes of a syntax tree."""
    return 1 + sum(count_nodes(child) for child in tree.children)


@dataclass
class PhraseNode:
    """A phrase of a binary treebank tree: a leaf holds a word, an inner node two phrases."""

    label: int
    word: int
    left: PhraseNode | None
    right: PhraseNode | None


@dataclass
class TreebankData:
    """Trees of a bracketed treebank in file order; `words` is the size of the vocabulary, id 0 for unknown words."""

    train: list[PhraseNode]
    dev: list[PhraseNode]
    test: list[PhraseNode]
    words: int
    classes: int


def treebank(folder: Path) -> TreebankData:
    """Reads train.txt, dev.txt and test.txt of `folder`: one tree a line, `(3 (2 It) (4 (2 's) (4 good)))`.

    The vocabulary is that of the training part. ValueError, with file and line, for a line that is no binary tree.
    """
    vocabulary: dict[str, int] = {}
    parts = {}
    for part in ("train", "dev", "test"):
        path = folder / f"{part}.txt"
        with path.open(encoding="utf8") as lines:
            trees = []
            for number, line in enumerate(lines, 1):
                if line.strip():
                    try:
                        trees.append(_phrase_tree(line, vocabulary, grow=part == "train"))
                    except (ValueError, IndexError) as problem:
                        raise ValueError(f"{path}:{number}: not a binary bracketed tree ({problem})") from None
        parts[part] = trees
    classes = 1 + max(node.label for tree in parts["train"] for node in phrases(tree))
    return TreebankData(**parts, words=len(vocabulary) + 1, classes=classes)


def _phrase_tree(line: str, vocabulary: dict[str, int], grow: bool) -> PhraseNode:
    """One line as a tree. Words may hold U+00A0, so tokens are split at plain blanks only."""
    tokens = [t for t in line.strip().replace("(", " ( ").replace(")", " ) ").split(" ") if t]
    open_phrases: list[list[str | PhraseNode]] = []
    for position, token in enumerate(tokens, 1):
        if token == "(":
            open_phrases.append([])
        elif token != ")":
            open_phrases[-1].append(token)
        else:
            phrase = _phrase(open_phrases.pop(), vocabulary, grow)
            if not open_phrases:
                if position < len(tokens):
                    raise ValueError("more than one tree")
                return phrase
            open_phrases[-1].append(phrase)
    raise ValueError("brackets do not match")


def _phrase(parts: Sequence[str | PhraseNode], vocabulary: dict[str, int], grow: bool) -> PhraseNode:
    label = int(str(parts[0]))
    if len(parts) == 2 and isinstance(parts[1], str):
        text = parts[1].lower()
        word = vocabulary.setdefault(text, len(vocabulary) + 1) if grow else vocabulary.get(text, 0)
        return PhraseNode(label, word, None, None)
    left, right = parts[1:]
    if isinstance(left, str) or isinstance(right, str):
        raise ValueError("a phrase of words and phrases")
    return PhraseNode(label, -1, left, right)


def phrases(tree: PhraseNode) -> Iterator[PhraseNode]:
    """All phrases of a tree, parents first."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if node.left is not None and node.right is not None:
            waiting += [node.right, node.left]
