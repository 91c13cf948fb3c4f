"""When two ops do the same work.

The invariant: equal keys mean equal results, bit for bit: 0.0 is not -0.0, 1 is not True, float32 is not float64.
Keys may differ for ops that do the same work.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spmd.ir.core import Op


def attrs_key(value: Any) -> Any:
    """A hashable stand-in of attributes; equal keys mean equal attributes, bit for bit."""
    if isinstance(value, dict):
        return tuple((k, attrs_key(v)) for k, v in sorted(value.items()))
    if isinstance(value, (tuple, list)):
        return (type(value).__name__, tuple(attrs_key(v) for v in value))
    if isinstance(value, (np.ndarray, np.generic)):
        return (type(value).__name__, str(value.dtype), value.shape, value.tobytes())
    if isinstance(value, (float, complex)):
        return (type(value).__name__, repr(value))
    try:
        hash(value)
    except TypeError:
        return ("object", id(value))
    return (type(value).__name__, value)


def op_key(op: Op, operands: list[Any] | None = None) -> tuple[Any, ...]:
    """A key of the op's work; `operands` stand in for its own, where they have been replaced."""
    given = op.operands if operands is None else operands
    return (op.name, tuple(given), attrs_key(op.attrs), tuple(v.type for v in op.results))
