"""Turns a packed list, or the result of a call over a batch, into the list that a loop over the examples would give.

Invariant: numbers come as NumPy scalars, everything else as fresh arrays in the containers of one example.
Must not know: the compiler; a result is told by its structure alone.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from batching.keypath import KeyPath, PackingError
from batching.packed import Packed
from batching.ragged import Ragged
from batching.shapes import DICTS

__all__ = ["unpack"]


def unpack(result: Any) -> list[Any]:
    """The list of examples in a Packed, a Ragged, an array [B, ...], or a container of these.

    A container is a tuple, list, dict, NamedTuple or dataclass; each example gets one of the same structure, a leaf of
    None stays None. Raises PackingError where leaves differ in their number of examples, or where none has any.
    """
    path = KeyPath("result")
    sizes: dict[int, KeyPath] = {}
    _sizes(result, path, sizes)
    if len(sizes) > 1:
        first, second = list(sizes.items())[:2]
        raise PackingError(second[1], f"{second[0]} examples, but {first[1]} has {first[0]}")
    if not sizes:
        raise PackingError(path, "holds no array, Ragged or Packed, so the number of its examples is unknown")
    return _examples(result, next(iter(sizes)))


def _parts(result: Any) -> list[tuple[str, Any]] | None:
    """The parts of a container with the code that reads each; None for a leaf."""
    if type(result) in (tuple, list):
        return [(f"[{place}]", part) for place, part in enumerate(result)]
    if type(result) in DICTS:
        return [(f"[{key!r}]", part) for key, part in result.items()]
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return [(f".{name}", part) for name, part in zip(result._fields, result, strict=True)]
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        return [(f".{field.name}", getattr(result, field.name)) for field in dataclasses.fields(result)]
    return None


def _sizes(result: Any, path: KeyPath, sizes: dict[int, KeyPath]) -> None:
    if result is None:
        return
    if isinstance(result, (Packed, Ragged)) or isinstance(result, np.ndarray) and result.ndim:
        sizes.setdefault(len(result), path)
        return
    parts = _parts(result)
    if parts is None:
        raise PackingError(path, f"a {type(result).__qualname__} is not a result over a batch: an array [B, ...], a "
                                 "Ragged, a Packed, None, or a container of these")
    for step, part in parts:
        _sizes(part, KeyPath(step, path), sizes)


def _examples(result: Any, count: int) -> list[Any]:
    if result is None:
        return [None] * count
    if isinstance(result, Packed):
        return result.examples()
    if isinstance(result, Ragged):
        return result.to_list()
    if isinstance(result, np.ndarray):
        return list(result.copy())
    parts = _parts(result)
    assert parts is not None
    columns = [_examples(part, count) for _, part in parts]
    rows = [[column[place] for column in columns] for place in range(count)]
    return [_container(result, row) for row in rows]


def _container(like: Any, values: list[Any]) -> Any:
    if type(like) in DICTS:
        return type(like)(zip(like, values, strict=True))
    if type(like) is list:
        return values
    if type(like) is tuple:
        return tuple(values)
    if isinstance(like, tuple):
        return type(like)._make(values)  # type: ignore[attr-defined]
    made = object.__new__(type(like))
    for field, value in zip(dataclasses.fields(like), values, strict=True):
        object.__setattr__(made, field.name, value)
    return made
