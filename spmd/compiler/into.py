"""Where a result goes that is written into given arrays.

The invariant: every shape and dtype, and whether it can be written to, is looked at before anything is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from spmd.compiler.signature.results import parts_of
from spmd.errors import ShapeMismatch


def places(out: Any, result: Any, title: str) -> Iterator[tuple[Any, Any]]:
    """The arrays of `out` with what goes into each."""
    if isinstance(out, np.ndarray) and isinstance(result, (np.ndarray, np.generic)):
        if out.shape != result.shape or not np.can_cast(result.dtype, out.dtype, "same_kind"):
            found = f"{result.dtype}{list(result.shape)}"
            raise ShapeMismatch(f"{title} is {out.dtype}{list(out.shape)}; the result is {found}")
        if not out.flags.writeable:
            raise ShapeMismatch(f"{title} cannot be written to")
        yield out, result
        return
    target, source = parts_of(out), parts_of(result)
    alike = isinstance(out, dict) or type(out) is type(result)
    if alike and target is not None and source is not None and target[:2] == source[:2]:
        kind, names, parts = target
        for key, part, value in zip(names, parts, source[2]):
            step = f"[{key!r}]" if kind == "dict" else f"[{key}]" if kind in ("tuple", "list") else f".{key}"
            yield from places(part, value, title + step)
    elif out is not None or result is not None:
        raise ShapeMismatch(f"{title} is a {type(out).__name__}, the result a {type(result).__name__}",
                            hint="give arrays in the structure that the function returns.")
