"""Zoo: the wider library of NumPy and math in programs: scans, sorts, statistics, linear algebra, layouts, integers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from program import Collection, Rng, arrays, integers, numbers, pairs, sequences

zoo = Collection()


# ------------------------------------------------------------------------------------------------------------ scans
@zoo.add(arrays((3, 4)), wrt=(0,))
def scans_along_axes(m):
    paths = np.cumsum(m, axis=1)
    growth = np.cumprod(1.0 + 0.1 * m, axis=0)
    peaks = np.maximum.accumulate(paths, axis=1)
    return np.diff(m, axis=0), np.cumsum(m), growth * paths, np.sum(peaks - paths), np.trapezoid(m, dx=0.5)


@zoo.add(sequences(1, 7), wrt=(0,))
def scans_any_length(xs):
    total = np.cumsum(xs)
    drawdown = np.maximum.accumulate(total) - total
    return np.diff(xs), np.max(drawdown), np.prod(1.0 + xs * 0.1), np.cumprod(xs)[-1], xs.cumsum()


@zoo.add(arrays((5,)), wrt=(0,))
def differentiates_on_a_grid(v):
    return np.gradient(v, 0.5), np.gradient(np.gradient(v)), np.ediff1d(v), np.diff(v, 2, prepend=0.0)


# ------------------------------------------------------------------------------------------------------------ order
@zoo.add(arrays((3, 4)), wrt=(0,))
def sorts_rows(m):
    ordered = np.sort(m, axis=1)
    order = np.argsort(m[0])
    return ordered * np.arange(4), m[1][order], order, np.median(m, axis=0), np.percentile(m, 30.0), np.ptp(m)


@zoo.add(sequences(1, 7), wrt=(0,))
def sorts_any_length(xs):
    ordered = np.sort(xs)
    return ordered, np.median(xs), xs[np.argsort(xs)], ordered[-1] - ordered[0], np.searchsorted(ordered, 0.1)


@zoo.add(pairs(sequences(0, 6), numbers(-1, 1)), wrt=(0,))
def keeps_what_is_above(xs, low):
    some = np.compress(xs > low, xs)
    at = np.flatnonzero(xs > low)
    return np.sum(some * some), at, some, np.count_nonzero(xs > low)


def _labels(rng: Rng, size: int) -> list[tuple[Any, ...]]:
    lengths = [1, 6, *rng.integers(1, 7, size)][:size]
    return [(rng.integers(0, 4, int(n)), rng.normal(size=int(n))) for n in lengths]


@zoo.add(_labels, wrt=(1,))
def counts_labels(labels, weights):
    total = np.bincount(labels, weights=weights, minlength=4)
    kinds, times = np.unique(labels, return_counts=True)
    return total, np.bincount(labels), kinds, times, np.sum(total * total)


def _knots(rng: Rng) -> tuple[Any, ...]:
    return np.sort(rng.normal(size=6)), rng.normal(size=6)


@zoo.add(pairs(arrays((4,)), numbers(-2, 2)), share=_knots, wrt=(1, 2, 3))
def interpolates(xp, fp, v, x):
    return np.interp(v, xp, fp), np.interp(x, xp, fp, left=0.0, right=x), np.digitize(v, xp), np.searchsorted(xp, x)


@zoo.add(pairs(sequences(1, 6), arrays((3,))), wrt=(0, 1))
def interpolates_any_number_of_points(xs, v):
    places = np.cumsum(np.exp(xs)) - 1.0
    low, ends = np.percentile(xs, 30), np.quantile(xs, [0.2, 0.9])
    return np.interp(v, places, xs), low, ends, np.repeat(xs, np.arange(len(xs)))


@zoo.add(pairs(sequences(0, 3), numbers(0, 1)), raises=True)
def meets_no_points(xs, x):
    return np.interp(x, np.cumsum(np.exp(xs)), xs), np.percentile(xs, 50)


@zoo.add(arrays((6,), (6,)), wrt=(0, 1))
def has_statistics(x, y):
    spread = np.average(x, weights=np.exp(y))
    some = np.nanmean(np.where(y > np.min(y), x, np.nan))
    return np.cov(x, y), np.corrcoef(x, y)[0, 1], spread, np.var(x, ddof=1), some


# --------------------------------------------------------------------------------------------------- linear algebra
def _near_identity(rng: Rng, size: int) -> list[tuple[Any, ...]]:
    return [(np.eye(3) * 2 + 0.4 * rng.normal(size=(3, 3)), rng.normal(size=3)) for _ in range(size)]


@zoo.add(_near_identity, wrt=(0, 1))
def solves_systems(a, v):
    x = np.linalg.solve(a, v)
    sign, log = np.linalg.slogdet(a)
    return x, np.linalg.inv(a) @ v, np.linalg.det(a), sign * log, np.linalg.solve(a, np.outer(v, v))


@zoo.add(_near_identity, wrt=(0, 1))
def uses_symmetric_matrices(a, v):
    s = a @ a.T + np.eye(3)
    low = np.linalg.cholesky(s)
    w, q = np.linalg.eigh(s)
    z = np.linalg.solve(low, v)
    return low, w, (q * w) @ q.T, z @ z + 2.0 * np.sum(np.log(np.diag(low))), np.linalg.eigvalsh(s)[-1]


@zoo.add(arrays((4, 3)), wrt=(0,))
def decomposes_matrices(m):
    q, r = np.linalg.qr(m)
    u, s, vt = np.linalg.svd(m, full_matrices=False)
    return np.abs(np.diag(r)), q @ r, s, (u * s) @ vt, np.linalg.pinv(m) @ np.ones(4), np.linalg.norm(m, 2)


def _shared_system(rng: Rng) -> tuple[Any, ...]:
    return (np.eye(3) + 0.3 * rng.normal(size=(3, 3)),)


@zoo.add(arrays((3,), (3, 2)), share=_shared_system, wrt=(0, 1, 2))
def solves_with_a_shared_matrix(a, v, m):
    return np.linalg.solve(a, v), np.linalg.solve(a, m), np.linalg.matrix_power(a, 3) @ v


def _maybe_singular(rng: Rng, size: int) -> list[tuple[Any, ...]]:
    made = [(rng.normal(size=(2, 2)), rng.normal(size=2)) for _ in range(size)]
    for k in range(3, size, 7):
        made[k] = (np.ones((2, 2)), made[k][1])
    return made


@zoo.add(_maybe_singular, raises=True)
def meets_a_singular_matrix(a, v):
    return np.linalg.solve(a, v), np.linalg.inv(a)


def _maybe_indefinite(rng: Rng, size: int) -> list[tuple[Any, ...]]:
    return [(np.diag(rng.normal(size=2) + 1.0) if k > 1 else np.eye(2),) for k in range(size)]


@zoo.add(_maybe_indefinite, raises=True)
def meets_an_indefinite_matrix(a):
    return np.linalg.cholesky(a)


@zoo.add(arrays((3,), (2, 3)), wrt=(0, 1))
def measures_vectors(v, m):
    lengths = np.linalg.norm(m, axis=1)
    return (
        lengths,
        np.linalg.norm(v, 1),
        np.linalg.norm(v, np.inf),
        np.linalg.norm(m),
        np.linalg.norm(v, 3),
        np.cross(v, m[0]),
    )


def _any_square(rng: Rng, size: int) -> list[tuple[Any, ...]]:
    sizes = [1, 4, *rng.integers(1, 5, size)][:size]
    return [(2 * np.eye(n) + 0.3 * rng.normal(size=(n, n)), rng.normal(size=n)) for n in map(int, sizes)]


@zoo.add(_any_square, wrt=(0, 1))
def solves_systems_of_any_size(a, v):
    x = np.linalg.solve(a, v)
    return x, np.linalg.det(a), np.trace(np.linalg.inv(a)), np.sum(np.tril(a)), np.diag(a)


# -------------------------------------------------------------------------------------------------------- products
@zoo.add(arrays((2, 3, 4), (3, 4), (4,)), wrt=(0, 1, 2))
def contracts_axes(t, m, v):
    return (
        np.einsum("ijk,jk->i", t, m),
        np.einsum("ijk,k->ij", t, v),
        np.einsum("ijk,ljk->il", t, t),
        t @ v,
        np.tensordot(t, m, axes=([1, 2], [0, 1])),
        np.einsum("ij,ij->", m, m),
        np.einsum("ij->ji", m),
    )


@zoo.add(arrays((2, 3, 3), (3, 3), (2, 3, 1)), share=lambda rng: (rng.normal(size=(3, 3)),), wrt=(0, 1, 2, 3))
def multiplies_stacks(w, t, m, c):
    return t @ t, t @ w, m @ t, t @ c, np.kron(m[:2], m[0]), np.swapaxes(t, 1, 2) @ c


@zoo.add(pairs(sequences(3, 8), arrays((3,))), wrt=(0, 1))
def convolves(xs, k):
    return np.convolve(xs, k), np.convolve(xs, k, mode="valid"), np.correlate(xs, k, "full")


@zoo.add(sequences(1, 5, 2), wrt=(0,))
def contracts_any_length(xs):
    gram = np.einsum("id,jd->ij", xs, xs)
    return np.trace(gram), np.einsum("id->d", xs), np.einsum("ij,jd->id", gram, xs), np.linalg.norm(xs, axis=1)


# --------------------------------------------------------------------------------------------------------- layouts
@zoo.add(arrays((2, 3), (3,)), wrt=(0, 1))
def lays_out_anew(m, v):
    a, b, c = np.split(m, 3, axis=1)
    x, y = np.meshgrid(v, m[:, 0])
    return (
        np.roll(v, 1),
        np.roll(m, -1, axis=0),
        np.repeat(v, 2),
        np.tile(v, (2, 2)),
        np.pad(v, 1),
        np.flip(m, 1),
        np.triu(m),
        a * b - c,
        x * y,
        np.diag(v),
        np.append(m, v),
        np.insert(v, 1, 0.5),
        np.delete(v, 0),
        np.column_stack([v, v]),
    )


@zoo.add(pairs(sequences(1, 6), integers(-3, 4)), wrt=(0,))
def moves_any_length(xs, k):
    return np.roll(xs, k), np.roll(xs, 2), np.repeat(xs, 2), np.tile(xs, 2), np.flip(xs), np.append(xs, 1.0)


@zoo.add(pairs(arrays((4,)), integers(0, 4)), wrt=(0,))
def removes_an_element(v, k):
    rest = np.delete(v, k)
    return rest, np.max(rest) * v[k], np.repeat(v, k)


# ------------------------------------------------------------------------------------------------------ elementwise
@zoo.add(arrays((4,), (4,)), wrt=(0, 1))
def uses_rare_functions(x, y):
    return (
        np.cbrt(x + 2.0),
        np.arcsinh(x),
        np.arctanh(np.tanh(y) * 0.9),
        np.logaddexp(x, y),
        np.copysign(x, y),
        np.fmax(x, y),
        np.fmod(x, 0.7),
        np.nan_to_num(y),
        np.sinc(x),
        np.exp2(y),
        np.heaviside(x, 0.5),
        np.isclose(x, y),
        np.allclose(x, x),
    )


@zoo.add(pairs(numbers(0.1, 3, 2, first=((1.0, 2.0),)), numbers(-3, 3)), wrt=(0, 1, 2))
def uses_math(p, q, x):
    whole, part = math.modf(x)[1], math.modf(x)[0]
    m, e = math.frexp(q)
    return (
        math.erf(x) + math.erfc(q),
        math.lgamma(p) + math.gamma(q),
        math.asinh(x),
        math.hypot(p, q, x),
        whole + part,
        m,
        e,
        math.dist((p, q), (x, 1.0)),
        math.copysign(p, x),
        math.fmod(x, p),
        math.ldexp(p, 3),
        math.fsum([p, q, x]),
        math.isclose(p, q),
        math.prod([p, q, x]),
        math.remainder(x, q),
        math.degrees(x),
    )


@zoo.add(integers(0, 12, 2, first=((0, 0), (11, 11))))
def counts_with_integers(n, k):
    return (
        math.gcd(n, k),
        math.lcm(n, k),
        math.isqrt(n),
        math.comb(n, k),
        math.factorial(n),
        math.perm(n, k),
        np.gcd(n, k),
    )


@zoo.add(pairs(numbers(-2, 2), integers(15, 25, first=((15,), (20,)))), raises=True)
def leaves_the_domain(x, n):
    return math.acosh(x + 2.5), math.factorial(n)


def _lists(rng: Rng, size: int) -> list[tuple[Any, ...]]:
    lengths = [0, 5, *rng.integers(0, 6, size)][:size]
    return [
        ([float(v) for v in rng.normal(size=int(n))], [int(v) for v in rng.integers(-4, 5, int(n))]) for n in lengths
    ]


@zoo.add(_lists)
def multiplies_lists(xs, ns):
    return math.prod(xs, start=1.0), math.prod(ns, start=2), math.fsum(xs), math.fsum(ns)
