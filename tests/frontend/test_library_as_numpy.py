"""The library in whole programs, of every kind of number: a batch is the loop, also beside examples that hold NaN."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import oracles
import pytest

import batching
import spmd

Maker = Callable[[np.random.Generator, int], Any]


def floats(*shape: int, dtype: Any = np.float64) -> Maker:
    return lambda rng, k: rng.normal(size=shape).astype(dtype)


def whole(*shape: int, dtype: Any = np.int32) -> Maker:
    return lambda rng, k: rng.integers(-5, 6, size=shape).astype(dtype)


def poisoned(*shape: int) -> Maker:
    """Numbers with ties; every third example has NaN and infinities among them."""

    def make(rng: np.random.Generator, k: int) -> Any:
        x = np.round(rng.normal(size=shape) * 2) / 2
        if k % 3 == 1:
            x[rng.random(shape) < 0.4] = np.nan
            x[rng.random(shape) < 0.2] = np.inf
        return x

    return make


def any_length(*trail: int, least: int = 0) -> Maker:
    return lambda rng, k: rng.normal(size=(least + (k * 7 % 5), *trail))


def a_float(rng: np.random.Generator, k: int) -> float:
    return float(rng.normal())


def an_int(rng: np.random.Generator, k: int) -> int:
    return int(rng.integers(-4, 8))


CASES: list[tuple[Callable[..., Any], tuple[Maker, ...]]] = []


def of(*makers: Maker) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def listed(function: Callable[..., Any]) -> Callable[..., Any]:
        CASES.append((function, makers))
        return function

    return listed


# -------------------------------------------------------------------------------------------- reductions and scans
@of(whole(2, 3))
def widens_integers(x):
    return np.cumsum(x), np.cumprod(x, axis=0), x.prod(axis=1), x.var(), x.std(axis=0), np.median(x), np.ptp(x), x.sum()


@of(lambda rng, k: rng.integers(0, 2, (2, 3)).astype(bool))
def widens_bools(x):
    return (
        np.cumsum(x, axis=1),
        x.prod(),
        x.sum(),
        x.var(),
        x.mean(),
        np.sort(x, axis=0),
        np.diff(x),
        np.count_nonzero(x),
    )


@of(floats(5, dtype=np.float32))
def keeps_single_precision(x):
    return (
        np.cumsum(x),
        np.var(x),
        np.median(x),
        np.percentile(x, 40),
        np.sort(x),
        np.linalg.norm(x),
        np.diff(x),
        np.gradient(x),
        np.interp(x, [0.0, 1.0], [2.0, 3.0]),
        np.cbrt(x),
        np.trapezoid(x),
        np.average(x),
    )


@of(poisoned(7))
def orders_beside_nan(x):
    return (
        np.sort(x),
        np.argsort(x),
        np.argmax(x),
        np.nanmax(x),
        np.unique(x),
        np.median(x),
        np.searchsorted(np.sort(x), x),
    )


@of(poisoned(3, 4))
def orders_along_axes_beside_nan(x):
    return (
        np.sort(x, axis=0),
        np.argsort(x, axis=1, kind="stable"),
        np.nansum(x, axis=0),
        np.nanmedian(x, axis=1),
        np.ptp(x, axis=0),
    )


@of(floats(3, 4))
def reduces_where(x):
    some = x > 0
    return (
        np.sum(x, where=some),
        np.mean(x, where=some),
        np.max(x, initial=0.0),
        np.min(x, axis=0, where=some, initial=9.0),
        np.prod(x, axis=1, where=some),
        np.any(x, where=some),
        np.all(x, axis=0, where=some),
        np.sum(x, initial=2),
    )


@of(floats(4))
def uses_methods_of_ufuncs(x):
    return (
        np.add.reduce(x),
        np.maximum.accumulate(x),
        np.multiply.outer(x, x),
        np.logical_or.reduce(x > 0),
        np.minimum.reduce(x),
    )


@of(any_length())
def works_on_any_length(x):
    return (
        np.cumsum(x),
        np.diff(x),
        np.median(x),
        np.sort(x)[::-1],
        np.tile(x, 2),
        np.repeat(x, 3),
        np.roll(x, 1),
        np.diag(x),
        np.triu(x),
        np.trace(np.outer(x, x)),
        np.max(x, initial=-1.0),
        np.where(x > 0)[0],
    )


@of(any_length(3, least=1))
def works_on_any_number_of_rows(x):
    return (
        np.median(x, axis=0),
        np.cumsum(x, axis=0),
        np.percentile(x, 50, axis=1),
        np.flip(x, 0),
        np.kron(x, [1.0, 2.0]),
    )


@of(lambda rng, k: rng.integers(0, 5, 1 + k % 4))
def counts_any_length(x):
    return (
        np.bincount(x, minlength=3),
        np.unique(x),
        np.bincount(x)[0],
        np.unique(x, return_counts=True)[1],
        np.cumsum(x),
    )


# ----------------------------------------------------------------------------------------------------- linear algebra
@of(floats(3, 3))
def gives_named_results(x):
    s = x @ x.T
    return (
        np.linalg.eigh(s).eigenvalues,
        np.linalg.slogdet(x).sign,
        np.linalg.svd(x).S,
        np.linalg.qr(x)[1],
        np.linalg.slogdet(x),
    )


@of(floats(3, 3), floats(3))
def solves(x, y):
    return (
        np.linalg.solve(x, y),
        np.linalg.inv(x),
        np.linalg.det(x),
        np.linalg.pinv(x),
        np.linalg.cond(x),
        x.mT @ y,
        np.linalg.matrix_rank(x),
        np.linalg.matrix_power(x, 3),
        np.linalg.multi_dot([x, x, y]),
        np.linalg.norm(x, "nuc"),
    )


@of(whole(3, 3), whole(3))
def solves_in_integers(x, y):
    s = x @ x.T + 40 * np.eye(3, dtype=np.int64)
    return (
        np.linalg.solve(s, y),
        np.trace(x),
        np.tril(x),
        np.kron(x, y),
        np.tensordot(x, x),
        np.einsum("ij,j", x, y),
        np.cross(y, x[0]),
    )


@of(floats(6), floats(3))
def convolves(x, y):
    return (
        np.convolve(x, y, "same"),
        np.correlate(x, y),
        np.correlate(x, y, "same"),
        np.histogram(x, [-1.0, 0.0, 1.0])[0],
    )


# ------------------------------------------------------------------------------------------------- elementwise, layouts
@of(whole(4))
def divides_integers(x):
    return (
        np.divmod(x, 3),
        np.fmod(x, 3),
        np.gcd(x, 6),
        np.lcm(x, 4),
        np.heaviside(x, 0.5),
        np.float_power(x, 2),
        np.copysign(x, -1),
    )


@of(poisoned(5))
def chooses(x):
    return (
        np.select([x > 1, x < 0], [x, -x], default=0.0),
        np.nan_to_num(x),
        np.fmin(x, 0.0),
        np.isclose(x, x, equal_nan=True),
        np.signbit(x),
    )


@of(floats(3), floats(2))
def lays_out(x, y):
    return (
        np.meshgrid(x, y)[0],
        np.kron(x, y),
        np.pad(x, (1, 2), mode="edge"),
        np.block([[x, y], [y, x]]),
        np.dstack([x, x]),
        np.array_split(x, 2)[1],
        np.delete(x, [0, 2]),
        np.insert(x, 1, y[0]),
        np.rot90(np.outer(x, y)),
        np.polyval(x, y),
    )


@of(an_int)
def uses_integers(n):
    m = abs(n)
    return (
        math.comb(m + 3, 2),
        math.gcd(n, 6),
        math.isqrt(m),
        math.factorial(m),
        math.lcm(n, 4),
        math.perm(m, 2),
        math.perm(m),
    )


@of(a_float, a_float)
def uses_floats(x, y):
    return (
        math.erf(x),
        math.gamma(abs(x) + 1),
        math.lgamma(x),
        math.modf(x),
        math.frexp(x),
        math.nextafter(x, 1.0),
        math.ulp(x),
        math.trunc(x),
        math.prod([x, y, 2]),
        math.fsum([x, 0.1, y]),
        math.dist([x, y], [0.0, 1.0]),
        math.isclose(x, x + 1e-12),
        math.hypot(x, y, 2.0),
        math.copysign(x, y),
        math.remainder(x, y),
        math.acosh(2.0 + abs(x)),
        math.log(abs(x) + 2, 3),
    )


@of(floats(2, 3))
def asks_for_equality(x):
    return (
        np.allclose(x, x + 1e-12),
        np.array_equal(x, x),
        np.array_equal(x, x[0]),
        np.allclose(x, 0.0),
        x.real,
        x.imag,
        x.nbytes,
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("target", ["auto", "blas", "reference"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].__name__)
def test_a_batch_is_the_loop(case: Any, target: str) -> None:
    function, makers = case
    rng = np.random.default_rng(5)
    examples = [tuple(make(rng, k) for make in makers) for k in range(33)]
    want = oracles.loop(function, (), examples)
    assert want.error is None
    columns = [batching.pack(list(column)) for column in zip(*examples, strict=True)]
    batched = spmd.vmap(function, target=target)
    for size in (0, 1, 33):
        got = batching.unpack(batched(*[column[slice(0, size)] for column in columns]))
        assert not oracles.differences(got, want.values[:size])


# ------------------------------------------------------------------------------------------------------ complex numbers
def real_part(z):
    return z.real  # here


def conjugate(z):
    return z.conj()  # here


def size_of(z):
    return np.abs(z)  # here


def total(z):
    return z.sum()  # here


def times_i(x):
    return x * 1j  # here


def makes_complex(x):
    return np.zeros(2, dtype=complex) + x  # here


def has_complex_eigenvalues(x):
    return np.linalg.eigvals(x)  # here


def fits_by_least_squares(x):
    return np.linalg.lstsq(x, x)  # here


REFUSED = [
    *[(f, np.array([1j, 2.0])) for f in (real_part, conjugate, size_of, total)],
    *[(f, np.ones((2, 2))) for f in (times_i, makes_complex, has_complex_eigenvalues, fits_by_least_squares)],
]


@pytest.mark.parametrize(("function", "example"), REFUSED, ids=[f.__name__ for f, _ in REFUSED])
def test_complex_numbers_are_refused_at_the_line(function: Callable[..., Any], example: Any) -> None:
    import inspect

    with pytest.raises(spmd.SpmdError) as caught:
        spmd.vmap(function)([example] * 2)
    lines, first = inspect.getsourcelines(function)
    assert caught.value.code == "E05" and caught.value.hint
    assert "# here" in lines[caught.value.span.line - first]
