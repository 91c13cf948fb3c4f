"""Initial parameters from a seeded generator.

Invariant: the same generator state and shape give the same numbers whatever the dtype, up to its rounding. Each
function takes a ``numpy.random.Generator`` (draws go on from where it stands) or an integer seed. Must not know what
the parameters are for.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Source = np.random.Generator | int
Shape = int | tuple[int, ...]


def _generator(rng: Source) -> np.random.Generator:
    return rng if isinstance(rng, np.random.Generator) else np.random.default_rng(rng)


def _shape(shape: Shape) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def _cast(values: np.ndarray, dtype: Any) -> np.ndarray:
    kind = np.dtype(dtype)
    if kind.kind != "f":
        raise TypeError(f"parameters are float, not {kind}")
    return np.ascontiguousarray(values, dtype=kind)


def uniform(rng: Source, shape: Shape, low: float = -0.1, high: float = 0.1, dtype: Any = np.float32) -> np.ndarray:
    """Uniform on [low, high)."""
    return _cast(_generator(rng).uniform(low, high, _shape(shape)), dtype)


def normal(rng: Source, shape: Shape, scale: float = 0.1, mean: float = 0.0, dtype: Any = np.float32) -> np.ndarray:
    """Normal with the given standard deviation and mean."""
    return _cast(_generator(rng).normal(mean, scale, _shape(shape)), dtype)


def glorot(rng: Source, shape: Shape, gain: float = 1.0, dtype: Any = np.float32) -> np.ndarray:
    """Uniform on +-gain * sqrt(6 / (n + m)) for matrices of shape (..., n, m) (Glorot, Bengio, 2010; also Xavier)."""
    n, m = _matrix(shape)
    bound = gain * math.sqrt(6.0 / max(1, n + m))
    return uniform(rng, shape, -bound, bound, dtype)


def orthogonal(rng: Source, shape: Shape, gain: float = 1.0, dtype: Any = np.float32) -> np.ndarray:
    """gain times a random matrix with orthonormal rows or columns, whichever are fewer (Saxe et al., 2014).

    The QR factors of a normal matrix, with signs fixed so that the distribution is Haar's (Mezzadri, 2007). Leading
    axes of `shape` (..., n, m) give independent matrices.
    """
    n, m = _matrix(shape)
    lead = _shape(shape)[:-2]
    drawn = _generator(rng).normal(size=(*lead, max(n, m), min(n, m)))
    q, r = np.linalg.qr(drawn)
    diagonal = np.diagonal(r, axis1=-2, axis2=-1)
    q = q * np.where(diagonal < 0, -1.0, 1.0)[..., None, :]
    return _cast(gain * (q if n >= m else np.swapaxes(q, -1, -2)), dtype)


def zeros(shape: Shape, dtype: Any = np.float32) -> np.ndarray:
    """All zero, for biases."""
    return _cast(np.zeros(_shape(shape)), dtype)


def _matrix(shape: Shape) -> tuple[int, int]:
    sizes = _shape(shape)
    if len(sizes) < 2:
        raise ValueError(f"shape {sizes} is not that of a matrix: it needs two axes or more")
    return sizes[-2], sizes[-1]
