"""Clipping of gradients, by their common norm or by value.

Invariant: structure, dtypes and None leaves stay; nothing is written in place. Must not know optimisers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from spmd.learn.leaves import is_float_leaf, iterate, map_with_path


def global_norm(grads: Any) -> float:
    """Euclidean norm of all float leaves together, summed in float64; nan or inf if a leaf holds one."""
    total = 0.0
    for _, leaf in iterate(grads):
        if is_float_leaf(leaf):
            values = np.asarray(leaf)
            wide = np.ravel(values).astype(np.complex128 if values.dtype.kind == "c" else np.float64, copy=False)
            total += float(np.vdot(wide, wide).real)
    return math.sqrt(total)


def clip_by_global_norm(grads: Any, limit: float) -> Any:
    """Scales all gradients by limit / norm where their common norm exceeds `limit` (Pascanu et al., 2013).

    Raises FloatingPointError if the norm is not finite: scaling would turn the infinite gradient into nan, which the
    next step would write into every parameter.
    """
    if not limit > 0:
        raise ValueError(f"limit must be positive, not {limit!r}")
    norm = global_norm(grads)
    if not math.isfinite(norm):
        raise FloatingPointError(f"the norm of the gradients is {norm}")
    if norm <= limit:
        return grads
    scale = limit / norm
    return map_with_path(lambda _, leaf: leaf * scale if is_float_leaf(leaf) else leaf, grads)


def clip_by_value(grads: Any, limit: float) -> Any:
    """Clips every element of every float leaf to [-limit, limit]; nan stays nan. Complex leaves raise TypeError."""
    if not limit > 0:
        raise ValueError(f"limit must be positive, not {limit!r}")

    def clip(path: str, leaf: Any) -> Any:
        if not is_float_leaf(leaf):
            return leaf
        if np.iscomplexobj(leaf):
            raise TypeError(f"{path} is complex, which has no order to clip by")
        if isinstance(leaf, float) and not isinstance(leaf, np.generic):
            return float(np.clip(leaf, -limit, limit))
        return np.clip(leaf, -limit, limit)

    return map_with_path(clip, grads)
