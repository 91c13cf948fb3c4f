"""Containers of parameters as trees of leaves: tuples, NamedTuples, lists, dicts and dataclasses.

Invariant: a leaf keeps its place and a container its class; rebuilding calls no ``__init__``. Every leaf has a path
that reads as code (``params['layers'][0].W``) for messages and files. Must not know what the leaves are for.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

ROOT = "params"


def is_float_leaf(leaf: Any) -> bool:
    """Whether a leaf is trained: a float or complex array, NumPy scalar or Python float."""
    if isinstance(leaf, (np.ndarray, np.generic)):
        return leaf.dtype.kind in "fc"
    return isinstance(leaf, (float, complex))


def children(tree: Any) -> list[tuple[str, Any]] | None:
    """(path step as code, child) for each child of a container; None for a leaf. ``None`` is an empty leaf."""
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return [(f".{name}", getattr(tree, name)) for name in tree._fields]
    if isinstance(tree, (tuple, list)):
        return [(f"[{i}]", child) for i, child in enumerate(tree)]
    if isinstance(tree, dict):
        return [(f"[{key!r}]", child) for key, child in tree.items()]
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        return [(f".{field.name}", getattr(tree, field.name)) for field in dataclasses.fields(tree)]
    return None


def rebuild(tree: Any, parts: list[Any]) -> Any:
    """A container of the class and keys of `tree` with other children, in the order of `children`."""
    if isinstance(tree, tuple):
        return tree._make(parts) if hasattr(tree, "_make") else tuple(parts)
    if isinstance(tree, list):
        return list(parts)
    copied = copy.copy(tree)
    if isinstance(tree, dict):
        copied.update(zip(tree, parts, strict=True))
        return copied
    for field, part in zip(dataclasses.fields(tree), parts, strict=True):
        object.__setattr__(copied, field.name, part)  # frozen dataclasses too
    return copied


def iterate(tree: Any, path: str = ROOT) -> Iterator[tuple[str, Any]]:
    """(path, leaf) of every leaf, in order; ``None`` is not a leaf."""
    parts = children(tree)
    if parts is None:
        if tree is not None:
            yield path, tree
        return
    for step, child in parts:
        yield from iterate(child, path + step)


def map_leaves(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """Applies `function` to each leaf of `tree` and to what stands at its place in `others`.

    A ``None`` in `others` stands for a whole part that has nothing: the function gets None there. Raises ValueError,
    naming the path, where the structures differ.
    """
    return map_with_path(lambda _, *leaves: function(*leaves), tree, *others)


def map_with_path(function: Callable[..., Any], tree: Any, *others: Any, path: str = ROOT) -> Any:
    """As `map_leaves`; the function also gets the path of the leaf, before the leaves."""
    parts = children(tree)
    if tree is None and any(other is not None for other in others):
        raise ValueError(f"{path} is None on one side only")
    if parts is None:
        return None if tree is None else function(path, tree, *others)
    steps = [step for step, _ in parts]
    columns: list[list[Any]] = [[child for _, child in parts]]
    for other in others:
        theirs = [(step, None) for step in steps] if other is None else children(other)
        if theirs is None:
            raise ValueError(f"{path} is a {type(tree).__name__}, but a {type(other).__name__} stands at its place")
        found = dict(theirs)
        if len(found) != len(steps) or any(step not in found for step in steps):
            missing = [step for step in steps if step not in found] or [s for s in found if s not in steps]
            raise ValueError(f"{path} differs in structure: {path}{missing[0]} is on one side only")
        columns.append([found[step] for step in steps])
    rows = zip(*columns, strict=True)
    return rebuild(tree, [map_with_path(function, *row, path=path + s) for s, row in zip(steps, rows, strict=True)])
