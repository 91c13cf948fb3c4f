"""Loops over numbers and lists: a vmapped call beside the plain loop over examples.

Each row is checked: the batch must give what the loop gives, or the row counts as failed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Columns = tuple[Any, ...]


def bubble_sort(x):  # type: ignore[no-untyped-def]
    a = x.copy()
    n = len(a)
    for i in range(n):
        for j in range(n - 1 - i):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
    return a


def edit_distance(a, b):  # type: ignore[no-untyped-def]
    prev = list(range(len(b) + 1))
    for i in range(len(a)):
        cur = [i + 1] + [0] * len(b)
        for j in range(len(b)):
            cost = 0 if a[i] == b[j] else 1
            cur[j + 1] = min(prev[j + 1] + 1, cur[j] + 1, prev[j] + cost)
        prev = cur
    return prev[-1]


def primes(n):  # type: ignore[no-untyped-def]
    found = []
    k = 2
    while len(found) < n:
        prime = True
        for p in found:
            if p * p > k:
                break
            if k % p == 0:
                prime = False
                break
        if prime:
            found.append(k)
        k += 1
    return found[-1] if found else 0


def collatz(n):  # type: ignore[no-untyped-def]
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def mandelbrot(a, b):  # type: ignore[no-untyped-def]
    x = y = 0.0
    k = 0
    while k < 200 and x * x + y * y < 4.0:
        x, y = x * x - y * y + a, 2.0 * x * y + b
        k += 1
    return k


def newton(a):  # type: ignore[no-untyped-def]
    x = a
    while abs(x * x - a) > 1e-10 * a:
        x = 0.5 * (x + a / x)
    return x


def data(size: int) -> dict[Callable[..., Any], Columns]:
    """Arguments of each program for a batch."""
    rng = np.random.default_rng(0)

    def words() -> list[Any]:
        return [rng.integers(0, 4, int(n)) for n in rng.integers(40, 120, size)]

    return {
        bubble_sort: (list(rng.normal(size=(size, 40))),),
        edit_distance: (words(), words()),
        primes: (rng.integers(50, 150, size).tolist(),),
        collatz: (rng.integers(1, 10_000, size).tolist(),),
        mandelbrot: (rng.uniform(-2, 1, size).tolist(), rng.uniform(-1, 1, size).tolist()),
        newton: (rng.uniform(1, 100, size).tolist(),),
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this case."""
    parser.add_argument("--batch", type=int, nargs="+", default=[50, 1000])
    parser.add_argument("--json", type=Path)


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Measures every program at every batch size and prints a line for each."""
    rows = []
    print(f"{'program':14} {'batch':>6} {'first ms':>9} {'ms':>9} {'loop ms':>9} {'times':>7}")
    for size in options.batch:
        for function, columns in data(size).items():
            row = _measured(function, columns, size)
            rows.append(row)
            print(
                f"{row['program']:14} {size:6} {row['first_ms']:9.1f} {row['ms']:9.2f} {row['loop_ms']:9.2f}"
                f" {row['times']:7.1f}" + ("" if row["equal"] else "  WRONG"),
                flush=True,
            )
    return {"rows": rows, "failed": not all(row["equal"] for row in rows)}


def _measured(function: Callable[..., Any], columns: Columns, size: int) -> dict[str, Any]:
    import spmd

    batched = spmd.vmap(function)
    first = _time(lambda: batched(*columns))[0]
    best, found = min((_time(lambda: batched(*columns)) for _ in range(5)), key=lambda pair: pair[0])
    plain, expected = _time(lambda: [function(*row) for row in zip(*columns)])
    equal = all(np.allclose(x, y, rtol=1e-9, atol=0) for x, y in zip(found, expected, strict=True))
    return {
        "program": function.__name__, "batch": size, "first_ms": 1e3 * first, "ms": 1e3 * best,
        "loop_ms": 1e3 * plain, "times": plain / best, "equal": equal,
    }


def _time(call: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    found = call()
    return time.perf_counter() - started, found
