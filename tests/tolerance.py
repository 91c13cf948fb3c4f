"""How far a batched result may lie from the loop's: the numbers of the design, defined once.

Values: relative to the largest element of what is compared (at least 1), times the square root of its length, since
reductions may be reordered. Gradients are compared with finite differences, which are good to about 1e-8.
"""

from __future__ import annotations

from typing import Any

import numpy as np

VALUE = {"float64": 1e-9, "float32": 1e-5}
GRADIENT = 2e-6
SINGLE_GRADIENT = 2e-3


def value_tolerance(dtype: Any) -> float:
    """Relative tolerance of a float dtype."""
    return VALUE["float32" if np.dtype(dtype) in (np.float32, np.float16, np.complex64) else "float64"]


def close(got: Any, want: Any, rtol: float | None = None) -> bool:
    """Whether two arrays of equal shape agree: exactly for integers, NaN with NaN, infinities with their sign."""
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        return False
    if want.dtype.kind not in "fc" and got.dtype.kind not in "fc":
        return bool(np.array_equal(got, want))
    if want.size == 0:
        return True
    if rtol is None:
        rtol = max(value_tolerance(a.dtype) for a in (got, want) if a.dtype.kind in "fc")
    finite = np.abs(want[np.isfinite(want)])
    bound = rtol * max(1.0, float(finite.max(initial=0.0))) * np.sqrt(want.size)
    return bool(np.allclose(got, want, rtol=0.0, atol=bound, equal_nan=True))
