"""What NumPy's float32 matrix product reaches here: one large square, and the shapes of the TreeLSTM workloads.

A child process of bench/run.py; prints one line of JSON: GFLOP/s by shape, the BLAS kernel that threadpoolctl reports.
Invariant: every figure is the shortest of many calls, by CPU time where one thread is asked for, else by wall time.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable

THREADS = int(os.environ.get("OPENBLAS_NUM_THREADS", "1"))
if THREADS == 1 and hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {int(os.environ.get("CORE", "0"))})

import numpy as np  # noqa: E402

SHAPES = {
    "square": (1024, 1024, 1024),
    "sst leaves, 25 trees": (505, 300, 450),
    "sst leaves, 256 trees": (5170, 300, 450),
    "sst inner, 8 rows": (8, 300, 750),
    "sst inner, 32 rows": (32, 300, 750),
    "sst inner, 128 rows": (128, 300, 750),
    "sst inner, 1024 rows": (1024, 300, 750),
    "sst dU, 25 trees": (300, 480, 750),
    "ast inputs, 25 trees": (1230, 128, 512),
    "ast sums, 8 rows": (8, 128, 384),
    "ast sums, 128 rows": (128, 128, 384),
    "ast forget gates, 512 rows": (512, 128, 128),
}
SECONDS_EACH = 0.25


def shortest(call: Callable[[], object]) -> float:
    """Seconds of the fastest of many calls, timed in runs that are long beside the clock's grain."""
    clock = time.process_time if THREADS == 1 else time.perf_counter
    call()
    start = clock()
    call()
    repeats = max(1, int(2e-3 / max(clock() - start, 1e-7)))
    best, end = float("inf"), time.perf_counter() + SECONDS_EACH
    while time.perf_counter() < end:
        start = clock()
        for _ in range(repeats):
            call()
        best = min(best, (clock() - start) / repeats)
    return best


def rate(rows: int, inner: int, columns: int) -> float:
    """GFLOP/s of (rows, inner) @ (inner, columns)."""
    left, right = np.ones((rows, inner), np.float32), np.ones((inner, columns), np.float32)
    out = np.empty((rows, columns), np.float32)
    return 2e-9 * rows * inner * columns / shortest(lambda: np.dot(left, right, out=out))


def kernel() -> str:
    """The BLAS library, its version and the kernels it chose; 'unknown' without threadpoolctl."""
    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        return "unknown (threadpoolctl is not installed)"
    found = [
        f"{pool['internal_api']} {pool['version']} {pool.get('architecture', '')}, {pool['num_threads']} threads"
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    ]
    return "; ".join(found) or "unknown"


def main() -> None:
    rates = {name: round(rate(*shape), 1) for name, shape in SHAPES.items()}
    shapes = {name: "x".join(map(str, shape)) for name, shape in SHAPES.items()}
    print(json.dumps({"kernel": kernel(), "threads": THREADS, "gflops": rates, "shapes": shapes}))


if __name__ == "__main__":
    main()
