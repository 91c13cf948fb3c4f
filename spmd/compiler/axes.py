"""Where the batch stands in results: `out_axes`, a prefix tree over the results' structure.

The invariant: `placed(x, axes, uniform)` and its inverse, `gathered`, move the batch and change no number. Only arrays
have axes: a Ragged or packed result carries its batch itself and takes 0 only. None asks for the one value that all
examples have, where the program shows that they have one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from spmd.compiler.signature.cotangents import numbers, parts_given
from spmd.compiler.signature.results import container, parts_of
from spmd.errors import OptionError, UnsupportedType
from spmd.frontend.values import Abstract, Leaf, Struct


def check_out_axes(axes: Any) -> None:
    """Raises OptionError for what is no tree of ints."""
    for axis in _leaves(axes):
        if axis is not None and (isinstance(axis, bool) or not isinstance(axis, int)):
            raise OptionError(f"out_axes holds {axis!r}; ints or None are needed")


def in_front(axes: Any) -> bool:
    """Whether every result is stacked in front."""
    return all(axis == 0 for axis in _leaves(axes))


def _leaves(axes: Any) -> Iterator[Any]:
    if isinstance(axes, dict):
        axes = tuple(axes.values())
    if isinstance(axes, (tuple, list)):
        for part in axes:
            yield from _leaves(part)
    else:
        yield axes


def placed(result: Any, axes: Any, uniform: Any) -> Any:
    """The result with the batch moved from the front to where `axes` says. `uniform` has the result's structure with
    bools for arrays: whether all examples are sure to have the same value."""

    def move(array: Any, axis: int | None, same: Any) -> Any:
        if axis is not None:
            return np.moveaxis(array, 0, axis)
        if not same or not len(array):
            raise OptionError("out_axes=None is for a result that is the same for all examples by the program's form",
                              hint="map it (0), and take any entry.")
        return array[0]

    return _walk(result, axes, uniform, move)


def gathered(thing: Abstract, given: Any, axes: Any, batch: int, name: str = "cotangent") -> Any:
    """A cotangent of the placed result, of structure `thing`, with the batch in front. That of one value for all
    belongs to one of them."""
    if given is None or isinstance(axes, int) and axes == 0:
        return given
    if isinstance(thing, Struct):
        parts = zip(thing.items, parts_given(thing, given, name), _spread(axes, thing.names, thing.kind), thing.names)
        moved = [gathered(item, part, axis, batch, f"{name}[{key!r}]") for item, part, axis, key in parts]
        return container(thing.kind, thing.cls, thing.names, moved)
    if not isinstance(thing, Leaf) or isinstance(axes, (dict, tuple, list)):
        return given
    array = numbers(given, name)
    if axes is None:
        out = np.zeros((batch, *array.shape), array.dtype)
        out[:1] = array
        return out
    if not -array.ndim <= axes < array.ndim:
        raise UnsupportedType(f"the {name} has shape {array.shape}, which has no axis {axes} for the examples")
    return np.moveaxis(array, axes, 0)


def _walk(result: Any, axes: Any, uniform: Any, move: Callable[[Any, int | None, Any], Any]) -> Any:
    if isinstance(axes, int) and axes == 0:
        return result
    if isinstance(result, (np.ndarray, np.generic, float)) and (axes is None or isinstance(axes, int)):
        if axes is not None and not -np.ndim(result) <= axes < np.ndim(result):
            raise OptionError(f"out_axes={axes!r} does not fit a result with {np.ndim(result)} axes")
        return move(result, axes, uniform)
    if result is None:
        return None
    parts = parts_of(result)
    if parts is None and in_front(axes):
        return result
    if parts is None:
        raise OptionError(f"out_axes={axes!r} does not fit this result", hint="its batch is in front (0).")
    kind, names, items = parts
    known = parts_of(uniform)
    same = known[2] if known is not None else [uniform] * len(items)
    moved = [_walk(i, a, u, move) for i, a, u in zip(items, _spread(axes, names, kind), same)]
    return container(kind, type(result), names, moved)


def _spread(axes: Any, names: tuple[Any, ...], kind: str) -> list[Any]:
    """The axes of each part of a container."""
    if axes is None or isinstance(axes, int):
        return [axes] * len(names)
    if isinstance(axes, dict) and kind == "dict" and set(axes) == set(names):
        return [axes[n] for n in names]
    if isinstance(axes, (tuple, list)) and kind != "dict" and len(axes) == len(names):
        return list(axes)
    raise OptionError(f"out_axes={axes!r} has not the structure of the result, a {kind} of {len(names)}")
