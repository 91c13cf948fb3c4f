"""Programs from outside: equations solved by iteration, each to its own number of steps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from outside_program import Outside
from program import Rng


# ------------------------------------------------------------------------------------------------- Kepler
def kepler(mean_anomaly, eccentricity):
    """Eccentric and true anomaly by Newton's method, and the number of steps."""
    m = math.fmod(mean_anomaly, 2.0 * math.pi)
    e = eccentricity
    anomaly = m if e < 0.8 else math.pi
    for step in range(1, 60):  # noqa: B007
        f = anomaly - e * math.sin(anomaly) - m
        change = f / (1.0 - e * math.cos(anomaly))
        anomaly -= change
        if abs(change) < 1e-12:
            break
    else:
        raise RuntimeError("Newton's method did not converge")
    true = 2.0 * math.atan2(math.sqrt(1.0 + e) * math.sin(anomaly / 2), math.sqrt(1.0 - e) * math.cos(anomaly / 2))
    return anomaly, true, step


def kepler_radius(mean_anomaly, eccentricity):
    anomaly, true, _ = kepler(mean_anomaly, eccentricity)
    return 1.0 - eccentricity * math.cos(anomaly) + 0.3 * true


def _orbits(rng: Rng, count: int, full: bool) -> list[tuple[Any, ...]]:
    first = [(0.0, 0.0), (math.pi, 0.97), (0.01, 0.97), (3.0, 0.0)]
    drawn = zip(rng.uniform(0.0, 2.0 * math.pi, count), rng.uniform(0.0, 0.97, count), strict=True)
    return [*first, *((float(m), float(e)) for m, e in drawn)][:count]


# ------------------------------------------------------------------------------------- Dormand-Prince RK45
A = np.array(
    [
        [0, 0, 0, 0, 0, 0],
        [1 / 5, 0, 0, 0, 0, 0],
        [3 / 40, 9 / 40, 0, 0, 0, 0],
        [44 / 45, -56 / 15, 32 / 9, 0, 0, 0],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0, 0],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0],
        [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
    ]
)
ERROR = np.array([71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40])


def van_der_pol(mu, y):
    return np.array([y[1], mu * (1.0 - y[0] ** 2) * y[1] - y[0]])


def rk45(mu, y0, end, tolerance):
    """Integrates Van der Pol's oscillator to `end`; the state, and how many steps were accepted and rejected."""
    t, y, h = 0.0, y0, 0.05
    k = np.zeros((7, 2))
    k[0] = van_der_pol(mu, y)
    accepted = rejected = 0
    while t < end:
        h = min(h, end - t)
        for s in range(1, 7):
            k[s] = van_der_pol(mu, y + h * (A[s, :s] @ k[:s]))
        new = y + h * (A[6] @ k[:6])
        scale = tolerance + tolerance * np.maximum(np.abs(y), np.abs(new))
        error = np.sqrt(np.mean((h * (ERROR @ k) / scale) ** 2))
        if error <= 1.0:
            t += h
            y = new
            k[0] = k[6]
            accepted += 1
        else:
            rejected += 1
        h *= min(5.0, max(0.2, 0.9 * max(error, 1e-10) ** -0.2))
    return y, accepted, rejected


def rk45_end(mu, y0, end, tolerance):
    y, _, _ = rk45(mu, y0, end, tolerance)
    return y[0] + 0.5 * y[1]


def oscillators(rng: Rng, count: int, full: bool) -> list[tuple[Any, ...]]:
    stiffest, end = (100.0, 20.0) if full else (20.0, 0.6)
    first = [(1.0, np.array([2.0, 0.0]), 0.0, 1e-6), (stiffest, np.array([2.0, 0.0]), end, 1e-6)]
    drawn = [
        (float(mu), rng.normal(size=2) + [1.0, 0.0], float(rng.uniform(0.3, 1.0)) * end, 1e-6)
        for mu in rng.uniform(1.0, stiffest, count)
    ]
    return [*first, *drawn][:count]


# ------------------------------------------------------------------------------------- conjugate gradients
def conjugate_gradients(a, b):
    """Solves a x = b for a positive definite matrix; the solution and the number of steps."""
    x = np.zeros(len(b))
    r = b - a @ x
    p = r.copy()
    rs = r @ r
    limit = 1e-10 * np.linalg.norm(b)
    steps = 0
    while np.sqrt(rs) > limit:
        if steps == 10 * len(b):
            raise RuntimeError("no convergence")
        ap = a @ p
        alpha = rs / (p @ ap)
        x += alpha * p
        r -= alpha * ap
        before, rs = rs, r @ r
        p = r + (rs / before) * p
        steps += 1
    return x, steps


def conjugate_gradients_energy(a, b):
    symmetric = 0.5 * (a + a.T)
    x, _ = conjugate_gradients(symmetric, b)
    return 0.5 * x @ symmetric @ x + np.sum(x)


def _systems(rng: Rng, count: int, full: bool) -> list[tuple[Any, ...]]:
    largest = 60 if full else 14
    made = []
    for n in [5, largest, *rng.integers(5, largest + 1, count)][:count]:
        q, _ = np.linalg.qr(rng.normal(size=(n, n)))
        made.append((q @ np.diag(rng.uniform(1.0, 10.0, n)) @ q.T, rng.normal(size=n)))
    made[0] = (made[0][0], np.zeros(5))
    return made


# ------------------------------------------------------------------------------------------ Gauss-Newton
def gauss_newton(t, y, start):
    """Fits p0 exp(-p1 t) + p2; the parameters (NaN where it diverged), the number of steps and how it ended."""
    p = start.copy()
    for step in range(40):
        decay = np.exp(-p[1] * t)
        residual = p[0] * decay + p[2] - y
        jacobian = np.column_stack([decay, -p[0] * t * decay, np.ones(len(t))])
        change = np.linalg.solve(jacobian.T @ jacobian, jacobian.T @ residual)
        p -= change
        if not np.all(np.isfinite(p)) or np.max(np.abs(p)) > 1e3:
            return np.full(3, np.nan), step, "diverged"
        if np.linalg.norm(change) < 1e-9 * (1.0 + np.linalg.norm(p)):
            return p, step, "converged"
    return np.full(3, np.nan), 40, "stalled"


def gauss_newton_rate(t, y, start):
    p, _, how = gauss_newton(t, y, start)
    return p[1] + 0.2 * p[0] if how == "converged" else 0.0


def _curves(rng: Rng, count: int, full: bool) -> list[tuple[Any, ...]]:
    longest = 60 if full else 12
    made = []
    for k, n in enumerate([5, longest, *rng.integers(5, longest + 1, count)][:count]):
        t = np.sort(rng.uniform(0.0, 4.0, n))
        true = np.array([rng.uniform(1.0, 3.0), rng.uniform(0.4, 1.5), rng.uniform(-1.0, 1.0)])
        y = true[0] * np.exp(-true[1] * t) + true[2] + 0.01 * rng.normal(size=n)
        start = np.array([1e-5, 2.0 * true[1], 0.0]) if k % 5 == 1 else true * rng.uniform(0.8, 1.25, 3)
        made.append((t, y, start))
    return made


def _curves_that_fail(rng: Rng, count: int, full: bool) -> list[tuple[Any, ...]]:
    made = _curves(rng, count, full)
    return [(t, y, np.zeros(3)) if k in (4, 6) else (t, y, start) for k, (t, y, start) in enumerate(made)]


def gauss_newton_from_zero(t, y, start):
    return gauss_newton(t, y, start)


PROGRAMS = (
    Outside(kepler, _orbits, loss=kepler_radius, wrt=(0, 1), most=10_000),
    Outside(rk45, oscillators, loss=rk45_end, wrt=(0, 1)),
    Outside(conjugate_gradients, _systems, loss=conjugate_gradients_energy, wrt=(0, 1)),
    Outside(gauss_newton, _curves, loss=gauss_newton_rate, wrt=(1,)),
    Outside(gauss_newton_from_zero, _curves_that_fail, raises=True),
)
