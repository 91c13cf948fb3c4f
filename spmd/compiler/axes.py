"""Where the batch stands in results: `out_axes`, a prefix tree over the results' structure.

The invariant: `placed(x, axes)` and `placed(x, axes, back=True)` are inverse of each other. Only arrays have axes: a
Ragged or packed result carries its batch itself and takes 0 only.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from spmd.compiler.signature.results import container
from spmd.errors import OptionError


def check_out_axes(axes: Any) -> None:
    """Raises OptionError for what is no tree of ints."""
    for axis in _leaves(axes):
        if axis is None:
            raise OptionError("out_axes=None is not available: a result of one value for all examples",
                              hint="take any entry of the result.")
        if isinstance(axis, bool) or not isinstance(axis, int):
            raise OptionError(f"out_axes holds {axis!r}; ints are needed")


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


def placed(result: Any, axes: Any, back: bool = False) -> Any:
    """The result with the batch moved from the front to where `axes` says; with `back` from there to the front."""
    if isinstance(axes, int) and axes == 0:
        return result
    if isinstance(result, np.ndarray):
        if not isinstance(axes, int) or not -result.ndim <= axes < result.ndim:
            raise OptionError(f"out_axes={axes!r} does not fit a result with {result.ndim} axes")
        return np.moveaxis(result, axes, 0) if back else np.moveaxis(result, 0, axes)
    if result is None:
        return None
    parts = _parts(result)
    if parts is None and in_front(axes):
        return result
    if parts is None:
        raise OptionError(f"out_axes={axes!r} does not fit a result of varying size", hint="its batch is in front (0).")
    kind, names, items = parts
    chosen = _spread(axes, names, kind)
    return container(kind, type(result), names, [placed(i, a, back) for i, a in zip(items, chosen)])


def _parts(result: Any) -> tuple[str, tuple[Any, ...], list[Any]] | None:
    if isinstance(result, dict):
        return "dict", tuple(result), list(result.values())
    if isinstance(result, tuple):
        return "namedtuple" if hasattr(result, "_fields") else "tuple", tuple(range(len(result))), list(result)
    if isinstance(result, list):
        return "list", tuple(range(len(result))), list(result)
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        names = tuple(f.name for f in dataclasses.fields(result))
        return "dataclass", names, [getattr(result, n) for n in names]
    return None


def _spread(axes: Any, names: tuple[Any, ...], kind: str) -> list[Any]:
    """The axes of each part of a container."""
    if isinstance(axes, int):
        return [axes] * len(names)
    if isinstance(axes, dict) and kind == "dict" and set(axes) == set(names):
        return [axes[n] for n in names]
    if isinstance(axes, (tuple, list)) and kind != "dict" and len(axes) == len(names):
        return list(axes)
    raise OptionError(f"out_axes={axes!r} has not the structure of the result, a {kind} of {len(names)}")
