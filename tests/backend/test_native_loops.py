"""Loops that compiled code runs whole: values, exceptions, arrays that grow, rows without end, interrupts, threads."""

from __future__ import annotations

import _thread
import math
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import spmd
from spmd.compiler import executable
from spmd.config import configure
from spmd.runtime import machine

RNG = np.random.default_rng(7)
LIMITS = np.array([3.0, 2.5, 0.0])


def executions(function: Callable[..., Any], *args: Any) -> tuple[Any, int]:
    """The result, and how many region executions it took."""
    runs: list[Any] = []
    executable.OBSERVERS.append(runs.append)
    try:
        out = spmd.vmap(function)(*args)
    finally:
        executable.OBSERVERS.remove(runs.append)
    return out, sum(sum(run.log.runs) for run in runs)


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:
        return type(error), str(error).splitlines()[0]


def same(function: Callable[..., Any], *columns: Any) -> None:
    """The batch gives what the loop over examples gives: values and kinds, or the first exception."""

    def plain() -> Any:
        return [function(*row) for row in zip(*columns)]

    with np.errstate(all="ignore"):
        expected, found = outcome(plain), outcome(lambda: spmd.vmap(function)(*columns))
    if isinstance(expected, tuple) and expected and isinstance(expected[0], type):
        assert found == expected
        return
    assert not isinstance(found, tuple) or not isinstance(found[0], type), found
    for x, y in zip(found, expected):
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=0)


# ------------------------------------------------------------------------------------------------ programs
def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def power_of_three(n):
    total = 1
    for _ in range(n):
        total *= 3
    return total


def harmonic(n, x):
    s = 0.0
    for k in range(n):
        s += 1.0 / (x - k)
    return s


def is_prime(n):
    if n < 2:
        return False
    d = 2
    while d * d <= n:
        if n % d == 0:
            return False
        d += 1
    return True


def prime_count(n):
    c = 0
    for k in range(n):
        if is_prime(k):
            c += 1
    return c


def triangle(n):
    total = 0
    for i in range(n):
        for j in range(i):
            if j == 7:
                break
            if (i + j) % 3 == 0:
                continue
            total += i * j
    return total


def look_up(a, i, n):
    s = 0.0
    for k in range(n):
        s += a[i + k]
    return s


def bubble(x):
    a = x.copy()
    n = len(a)
    for i in range(n):
        for j in range(n - 1 - i):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
    return a


def bubble_and_original(x):
    a = bubble(x)
    return a - x, x


def edit(a, b):
    prev = list(range(len(b) + 1))
    for i in range(len(a)):
        cur = [i + 1] + [0] * len(b)
        for j in range(len(b)):
            cost = 0 if a[i] == b[j] else 1
            cur[j + 1] = min(prev[j + 1] + 1, cur[j] + 1, prev[j] + cost)
        prev = cur
    return prev[-1]


def primes(n):
    ps = []
    k = 2
    while len(ps) < n:
        ok = True
        for p in ps:
            if p * p > k:
                break
            if k % p == 0:
                ok = False
                break
        if ok:
            ps.append(k)
        k += 1
    return ps[-1] if ps else 0


def brackets(xs):
    stack = []
    deepest = 0
    for x in xs:
        if x > 0:
            stack.append(x)
        else:
            stack.pop()
        deepest = max(deepest, len(stack))
    return deepest


def kept_versions(n):
    """Two names for lists that part ways."""
    a = [0]
    b = [1]
    for k in range(n):
        c = a
        a = b + [k]
        b = c
        b = b + [2 * k]
        b[0] = len(a)
    return a[0] * 1000 + b[0] * 10 + len(a) - a[-1]


def rotated(x, n):
    """Small arrays in registers."""
    y = x
    for k in range(n):
        y = np.array([y[1], y[2], y[0]]) * 0.5 + x
        if y[k % 3] > 2.0:
            y[k % 3] = -1.0
    return y


def single(x):
    s = np.float32(0.1)
    for _ in range(20):
        s = s * x + np.float32(0.3)
    return s


def wrapping(x):
    s = np.int32(1)
    for _ in range(40):
        s = s * x + np.int32(7)
    return s


def digits(x):
    n = 0
    while x >= 1.0:
        x = x / 10.0
        n = n + int(x) % 3 + round(x) % 2
    return n


def matrix_path(a):
    i = j = 0
    s = 0.0
    while i < a.shape[0] and j < a.shape[1]:
        s += a[i, j]
        if a[i, j] > 0:
            i += 1
        else:
            j += 1
    return s


def counted_sieve(n):
    f = np.ones(50, dtype=bool)
    i = 2
    while i * i < n:
        if f[i]:
            for j in range(i * i, n, i):
                f[j] = False
        i += 1
    return f


def shared_limit(x):
    return x + LIMITS[1]


def calls_that_read_a_global(x, n):
    for _ in range(n):
        if x > LIMITS[0]:
            x = x - 7.0
        x = shared_limit(x)
    return x


def first_negative(xs):
    for k in range(len(xs)):
        if xs[k] < 0:
            return xs[k], k
    return 0.0, -1


def shifts(a, n):
    for k in range(3):
        a = (a << n) ^ (a >> k)
    return a


def squares(x):
    for _ in range(6):
        x = x**2 + 0.5
    return x


INTS = [int(n) for n in RNG.integers(1, 500, 33)]
ROWS = [RNG.normal(size=int(n)) for n in RNG.integers(0, 30, 33)]
WORDS = [RNG.integers(0, 3, int(n)) for n in RNG.integers(0, 20, 33)]
PROGRAMS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (collatz, (INTS,)),
    (power_of_three, ([n % 39 for n in INTS],)),
    (triangle, ([n % 40 for n in INTS],)),
    (is_prime, (INTS,)),
    (prime_count, ([n % 60 for n in INTS],)),
    (bubble, (RNG.normal(size=(33, 20)),)),
    (bubble, (RNG.normal(size=(33, 5)),)),
    (bubble, ([np.append(RNG.normal(size=20), np.nan) for _ in range(33)],)),
    (edit, (WORDS, WORDS[::-1])),
    (primes, ([n % 30 for n in INTS],)),
    (brackets, ([[1] * n + [-1] * n + [1] for n in (k % 9 for k in INTS)],)),
    (kept_versions, ([n % 12 for n in INTS],)),
    (rotated, (RNG.normal(size=(33, 3)), [n % 12 for n in INTS])),
    (single, (RNG.normal(size=33).astype(np.float32),)),
    (wrapping, (RNG.integers(-9, 9, 33).astype(np.int32),)),
    (digits, ([float(n) ** 3 for n in INTS],)),
    (matrix_path, (RNG.normal(size=(33, 6, 7)),)),
    (counted_sieve, ([n % 50 for n in INTS],)),
    (shifts, (INTS, [n % 4 for n in INTS])),
    (squares, ([n / 500 for n in INTS],)),
    (calls_that_read_a_global, ([n / 50 for n in INTS], [n % 20 for n in INTS])),
]


@pytest.mark.parametrize("function, columns", PROGRAMS, ids=lambda x: getattr(x, "__name__", ""))
@pytest.mark.parametrize("size", [1, 33])
def test_batch_equals_loop(function: Callable[..., Any], columns: tuple[Any, ...], size: int) -> None:
    same(function, *(c[:size] for c in columns))


def test_no_examples() -> None:
    assert spmd.vmap(wrapping)(np.zeros(0, np.int32)).shape == (0,)
    assert spmd.vmap(bubble)(np.zeros((0, 30))).shape == (0, 30)


@pytest.mark.parametrize("function, columns", PROGRAMS, ids=lambda x: getattr(x, "__name__", ""))
def test_these_loops_are_native(function: Callable[..., Any], columns: tuple[Any, ...]) -> None:
    text = spmd.explain(spmd.vmap(function), *columns, stage="regions")
    assert " = native" in text
    assert not any("loop" in line.split("=")[-1] for line in text.splitlines() if line.startswith("    %"))


def test_one_region_execution_runs_all_examples() -> None:
    values = [int(n) for n in RNG.integers(1, 10_000, 512)]
    one, few = executions(collatz, values[:1])
    found, runs = executions(collatz, values)
    assert runs == few == 1
    assert list(found) == [collatz(n) for n in values]


def test_a_pair_of_results_by_return_in_the_loop() -> None:
    found = spmd.vmap(first_negative)(ROWS)
    expected = [first_negative(x) for x in ROWS]
    assert np.array_equal(found[0], [x for x, _ in expected]) and list(found[1]) == [k for _, k in expected]


def test_the_argument_is_not_written() -> None:
    x = RNG.normal(size=(9, 40))
    before = x.copy()
    moved, original = spmd.vmap(bubble_and_original)(x)
    assert np.array_equal(x, before) and np.array_equal(original, before)
    np.testing.assert_allclose(moved + before, np.sort(before, axis=1))


# ------------------------------------------------------------------------------------------------ exceptions
def failing(n, limit, divisor):
    total = 0
    for k in range(n):
        if total > limit:
            raise ValueError("too much")
        total = total * 2 + 10 // (divisor - k)
    return total


@pytest.mark.parametrize(
    "function, columns",
    [
        (harmonic, ([3, 4, 2], [0.5, 3.0, 1.0])),
        (failing, ([3, 9, 9], [1000, 20, 1000], [50, 50, 4])),
        (failing, ([3, 9, 9], [1000, 1000, 20], [50, 4, 50])),
        (look_up, ([np.arange(4.0)] * 3, [0, -4, 2], [4, 4, 3])),
        (look_up, ([np.arange(4.0), np.arange(9.0), np.arange(2.0)], [0, -4, -3], [4, 4, 3])),
        (brackets, ([[1, -1], [1, -1, -1], [-1]],)),
        (shifts, ([5, 5], [3, -1])),
        (squares, ([0.5, 1e200, 2.0],)),
        (digits, ([1.5, math.nan, math.inf],)),
    ],
)
def test_the_exception_of_the_first_example(function: Callable[..., Any], columns: tuple[Any, ...]) -> None:
    same(function, *columns)
    same(function, *(c[::-1] for c in columns))


@pytest.mark.parametrize(
    "function, columns, example",
    [
        (power_of_three, ([3, 39, 40, 50],), 2),
        (shifts, ([5, 5, 1 << 60], [3, 4, 9]), 2),
        (shifts, ([5, 5], [3, 70]), 1),
    ],
)
def test_ints_of_more_than_64_bits(function: Callable[..., Any], columns: tuple[Any, ...], example: int) -> None:
    with pytest.raises(OverflowError) as caught:
        spmd.vmap(function)(*columns)
    assert caught.value.example == example  # type: ignore[attr-defined]


def test_the_example_and_line_are_named() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        spmd.vmap(harmonic)([3, 4, 2], [0.5, 3.0, 1.0])
    assert caught.value.example == 1  # type: ignore[attr-defined]
    assert any("s += 1.0 / (x - k)" in note for note in caught.value.__notes__)


# ------------------------------------------------------------------------------------------------ no end
def counting(n, step):
    while n > 0:
        n -= step
    return 10 // n


def test_an_example_that_never_ends_waits_for_those_that_fail() -> None:
    """The exception of example 1 comes from behind its loop, while the loop of example 2 has no end."""
    with pytest.raises(ZeroDivisionError) as caught:
        spmd.vmap(counting)([3, 4, 5], [2, 2, 0])
    assert caught.value.example == 1  # type: ignore[attr-defined]


def test_a_row_that_takes_long_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "PATIENCE", 1)
    n = [5, 3_000_001, 7, 4_000_001, 9]
    found = spmd.vmap(counting)(n, [2] * 5)
    assert list(found) == [counting(*row) for row in zip(n, [2] * 5)]


def test_an_interrupt_ends_a_loop_without_end() -> None:
    batched = spmd.vmap(counting)
    expected = list(batched([5, 7], [2, 2]))
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    started = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        batched([5, 7], [2, 0])
    assert time.perf_counter() - started < 5
    timer.join()
    assert list(batched([5, 7], [2, 2])) == expected


def growing(n):
    xs = [0.0]
    while len(xs) > n:
        xs.append(1.0)
    return len(xs)


def test_the_budget_ends_growth_without_end() -> None:
    with configure(budget=1 << 22):
        with pytest.raises(MemoryError):
            spmd.vmap(growing)([5, 0, 3])
        assert list(spmd.vmap(growing)([5, 1, 3])) == [1, 1, 1]


# ------------------------------------------------------------------------------------------------ threads, gradients
def test_threads_share_a_loop() -> None:
    batched = spmd.vmap(edit)
    words = [[[RNG.integers(0, 3, size) for _ in range(20)] for size in (40, 30)] for _ in range(8)]
    data = [(long, short) for long, short in words]
    expected = [[edit(*row) for row in zip(*d)] for d in data]
    found: list[Any] = [None] * len(data)

    def work(k: int) -> None:
        for _ in range(5):
            found[k] = list(batched(*data[k]))

    workers = [threading.Thread(target=work, args=(k,)) for k in range(len(data))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == expected


def newton(a):
    x = a
    while abs(x * x - a) > 1e-12 * a:
        x = 0.5 * (x + a / x)
    return x


def test_values_and_gradients_are_programs_of_their_own() -> None:
    a = RNG.uniform(1, 50, 20)
    for _ in range(2):
        np.testing.assert_allclose(spmd.vmap(newton)(a), np.sqrt(a), rtol=1e-9)
        np.testing.assert_allclose(spmd.vmap(spmd.grad(newton))(a), 0.5 / np.sqrt(a), rtol=1e-6)


def waves(x):
    t = 0.0
    while t < 1.0:
        x = x + 0.1 * math.sin(x + t)
        t += 0.1
    return x


@pytest.mark.parametrize("size", [20, 600])
def test_elementary_functions_in_small_and_large_batches(size: int) -> None:
    x = RNG.normal(size=size).tolist()
    np.testing.assert_allclose(spmd.vmap(waves)(x), [waves(v) for v in x], rtol=1e-12)
