"""Where a result goes that is written into given arrays.

The invariant: every shape and dtype is looked at before anything is written.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from spmd.errors import ShapeMismatch


def places(out: Any, result: Any, name: str) -> Iterator[tuple[Any, Any]]:
    """The arrays of `out` with what goes into each."""
    if isinstance(out, np.ndarray) and isinstance(result, np.ndarray):
        if out.shape != result.shape or not np.can_cast(result.dtype, out.dtype, "same_kind"):
            found = f"{result.dtype}{list(result.shape)}"
            raise ShapeMismatch(f"{name} is {out.dtype}{list(out.shape)}; the result is {found}")
        yield out, result
    elif isinstance(out, dict) and isinstance(result, dict) and list(out) == list(result):
        for key, part in out.items():
            yield from places(part, result[key], f"{name}[{key!r}]")
    elif isinstance(out, (tuple, list)) and type(out) is type(result) and len(out) == len(result):
        for k, part in enumerate(out):
            yield from places(part, result[k], f"{name}[{k}]")
    elif dataclasses.is_dataclass(out) and type(out) is type(result):
        for f in dataclasses.fields(out):
            yield from places(getattr(out, f.name), getattr(result, f.name), f"{name}.{f.name}")
    elif out is not None or result is not None:
        raise ShapeMismatch(f"{name} is a {type(out).__name__}, the result a {type(result).__name__}",
                            hint="give arrays in the structure that the function returns.")
