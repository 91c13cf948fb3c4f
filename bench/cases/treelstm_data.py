"""Trees and first parameters of the two TreeLSTM workloads, as the peers' scripts make them.

Invariant: number for number the same trees, vocabulary order and parameters as ../shared/peers/treelstm/common.py, so
that every tool prints the same loss; the code is this project's own. Knows nothing of the compiler.
"""

from __future__ import annotations

import ast
import hashlib
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

EMBEDDING, HIDDEN, CLASSES = 300, 150, 5
AST_HIDDEN, AST_CLASSES = 128, 16
AST_PACKAGES = (
    "asyncio collections concurrent/futures email http json logging multiprocessing unittest xml/dom xml/etree urllib "
    "importlib"
).split()
FEWEST_NODES, MOST_NODES = 10, 300


@dataclass
class Phrase:
    """A phrase of the treebank: a leaf bears a word (an inner node -1), an inner node two phrases."""

    label: int
    word: int
    left: Phrase | None
    right: Phrase | None


@dataclass
class Syntax:
    """A node of a syntax tree: the number of its type, and its children."""

    kind: int
    children: list[Syntax]


def load_sst(folder: Path, limit: int) -> tuple[list[Phrase], int]:
    """The first `limit` trees of train.txt, and the number of words in the whole of it."""
    vocabulary: dict[str, int] = {}
    with (folder / "train.txt").open(encoding="utf8") as lines:
        trees = [parse_phrase(line, vocabulary) for line in lines if line.strip()]
    return trees[:limit], len(vocabulary)


def parse_phrase(line: str, vocabulary: dict[str, int]) -> Phrase:
    """One bracketed tree. Words may hold U+00A0, so tokens are split at plain blanks only."""
    stack: list[list] = [[]]
    for token in line.strip().replace("(", " ( ").replace(")", " ) ").split(" "):
        if token == "(":
            stack.append([])
        elif token == ")":
            label, *rest = stack.pop()
            if isinstance(rest[0], str):
                word = vocabulary.setdefault(rest[0].lower(), len(vocabulary))
                stack[-1].append(Phrase(int(label), word, None, None))
            else:
                stack[-1].append(Phrase(int(label), -1, *rest))
        elif token:
            stack[-1].append(token)
    (tree,) = stack[0]
    return tree


def sst_parameters(words: int, seed: int = 0) -> dict[str, np.ndarray]:
    """E; leaf gates i o u in Wl, bl; inner gates i o fl fr u in U, bu; scores in Ws, bs."""
    draw = _uniform(seed)
    return {
        "E": draw(words, EMBEDDING),
        "Wl": draw(EMBEDDING, 3 * HIDDEN),
        "bl": draw(3 * HIDDEN),
        "U": draw(2 * HIDDEN, 5 * HIDDEN),
        "bu": draw(5 * HIDDEN),
        "Ws": draw(HIDDEN, CLASSES),
        "bs": draw(CLASSES),
    }


def load_ast(limit: int) -> tuple[list[tuple[Syntax, int]], int]:
    """(tree, class) of the first `limit` functions of Python's own library, and the number of node types seen.

    The type numbers count the functions that are left out for their size too; the class is a hash of the file's name.
    """
    kinds: dict[str, int] = {}
    found: list[tuple[Syntax, int]] = []
    for path in _library_files():
        try:
            module = ast.parse(path.read_text(encoding="utf8"))
        except (SyntaxError, UnicodeDecodeError):
            continue
        label = int(hashlib.md5(path.name.encode()).hexdigest(), 16) % AST_CLASSES
        for function in ast.walk(module):
            if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                tree = _syntax(function, kinds)
                if FEWEST_NODES <= sum(1 for _ in nodes(tree)) <= MOST_NODES:
                    found.append((tree, label))
                    if len(found) == limit:
                        return found, len(kinds)
    return found, len(kinds)


def _library_files() -> list[Path]:
    library = Path(sysconfig.get_paths()["stdlib"])
    top = sorted(str(path) for path in library.glob("*.py"))
    inner = sorted(str(path) for package in AST_PACKAGES for path in (library / package).glob("*.py"))
    return [Path(path) for path in top + inner]


def _syntax(node: ast.AST, kinds: dict[str, int]) -> Syntax:
    kept = [child for child in ast.iter_child_nodes(node) if not isinstance(child, (ast.Load, ast.Store, ast.Del))]
    children = [_syntax(child, kinds) for child in kept]
    return Syntax(kinds.setdefault(type(node).__name__, len(kinds)), children)


def ast_parameters(kinds: int, seed: int = 1) -> dict[str, np.ndarray]:
    """E; gates i o u f from the node in W, b; i o u from the children's sum in Uiou; f per child in Uf; Ws, bs."""
    draw = _uniform(seed)
    return {
        "E": draw(kinds, AST_HIDDEN),
        "W": draw(AST_HIDDEN, 4 * AST_HIDDEN),
        "b": draw(4 * AST_HIDDEN),
        "Uiou": draw(AST_HIDDEN, 3 * AST_HIDDEN),
        "Uf": draw(AST_HIDDEN, AST_HIDDEN),
        "Ws": draw(AST_HIDDEN, AST_CLASSES),
        "bs": draw(AST_CLASSES),
    }


def _uniform(seed: int):  # type: ignore[no-untyped-def]
    state = np.random.RandomState(seed)
    return lambda *shape: state.uniform(-0.08, 0.08, shape).astype(np.float32)


def nodes(tree: Phrase | Syntax) -> Iterator[Phrase | Syntax]:
    """All nodes of a tree."""
    waiting: list = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, Syntax):
            waiting += node.children
        elif node.left is not None:
            waiting += [node.left, node.right]


def sst_mflop(trees: list[Phrase], train: bool, embeddings: bool) -> float:
    """Matrix work of a tree in MFLOP, two a multiply-add: what no batching can save."""
    every = [node for tree in trees for node in nodes(tree)]
    leaves = sum(node.left is None for node in every)
    leaf = 2 * leaves * EMBEDDING * 3 * HIDDEN
    inner = 2 * (len(every) - leaves) * 2 * HIDDEN * 5 * HIDDEN
    scores = 2 * len(every) * HIDDEN * CLASSES
    factors = ((3 if embeddings else 2), 3, 3) if train else (1, 1, 1)
    return sum(f * w for f, w in zip(factors, (leaf, inner, scores), strict=True)) / len(trees) / 1e6


def ast_mflop(trees: list[Syntax], train: bool) -> float:
    """As `sst_mflop`. A leaf needs no forget gates."""
    every = [node for tree in trees for node in nodes(tree)]
    leaves = sum(not node.children for node in every)
    h = AST_HIDDEN
    work = 2 * (
        leaves * h * 3 * h + (len(every) - leaves) * (h * 4 * h + h * 3 * h) + (len(every) - len(trees)) * h * h
    )
    return (3 if train else 1) * work / len(trees) / 1e6
