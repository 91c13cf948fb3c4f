"""Calls of elementwise functions, of the math module, of scipy.special."""

from __future__ import annotations

import math

import numpy as np

from tests.ops.calls_of_arrays import LONG, NAN, Call, U, every
from tests.ops.test_numpy_calls import A, B, F, I, J, K, M, V

SPECIAL = [0.25, -1.5, 3, True, np.float32(0.5), A, F, NAN, I, [0.5, 2.0]]
ELEMENTWISE: list[Call] = [
    *every([np.cbrt, np.exp2, np.arcsinh, np.arccosh, np.arctanh, np.deg2rad, np.rad2deg, np.radians, np.degrees,
        np.sinc, np.signbit,
            np.modf, np.frexp, np.nan_to_num, np.isposinf, np.isneginf, np.real, np.imag, np.conj, np.isreal,
                np.iscomplex],
           [[x] for x in SPECIAL]),
    *[(f, [x, y], {}) for f in (np.fmax, np.fmin, np.fmod, np.copysign, np.nextafter, np.logaddexp2, np.heaviside,
        np.float_power, np.divmod)
      for x in (*SPECIAL[:7], NAN[:, :3]) for y in (2.0, 3, -0.5, V, np.float32(-2))],
    *every([np.fmax, np.fmin], [[NAN, NAN[::-1].copy()]]), *every([np.gcd, np.lcm], [[I, 6], [J, I], [12, 18], [U,
        U], [V, 2]]),
    (np.ldexp, [V, J], {}), (np.ldexp, [F, 3], {}), (np.ldexp, [2.5, 2], {}), (np.ldexp, [A, 5000], {}),
    (np.nan_to_num, [NAN], {"nan": 7.0, "posinf": 1.0, "neginf": -1.0}),
    (np.nan_to_num, [NAN[0].astype(np.float32)], {}),
    *[(f, [x, y], o) for f in (np.isclose, np.allclose) for x, y in ((A, A + 1e-9), (A, B), (NAN, NAN), (V, 0.5),
        (I, I), (F, 1.5), (2, 2.0), (M, M))
      for o in ({}, {"equal_nan": K(True)}, {"rtol": 0.5, "atol": 1.0})],
    *[(np.array_equal, [x, y], o) for x, y in ((A, A.copy()), (A, B), (A, V), (NAN, NAN),
        (I, I * 1.0)) for o in ({}, {"equal_nan": K(True)})],
    (np.array_equiv, [A, A[0]], {}), (np.array_equiv, [A, F], {}),
    (np.select, [[A > 1, A < 0], [A, -A]], {}), (np.select, [[V > 0], [1]], {"default": 2.5}),
    (np.select, [[M], [J]], {}),
]

INTEGERS = [0, 1, 5, 12, -8, 2**40, 2**62, -(2**63), True, np.int32(6), 2.0]
SMALL = [0, 1, 5, 12, 20, 21, 66, 33, -8, True, np.int32(6), 2.0]
FLOATS = [0.0, -0.0, 0.5, -2.5, 3, 171.0, 172.0, 1e308, math.inf, -math.inf, math.nan, -3.0, np.float32(0.3), True]
MATH: list[Call] = [
    *every([getattr(math, n) for n in ("asinh", "acosh", "atanh", "erf", "erfc", "gamma", "lgamma", "ulp", "cbrt",
        "exp2", "modf", "frexp",
                                       "fabs") if hasattr(math, n)], [[x] for x in FLOATS]),
    *[(f, [x, y], {}) for f in (math.fmod, math.remainder, math.copysign, math.nextafter, math.isclose, math.hypot,
        math.atan2)
      for x in FLOATS for y in (2.0, -0.75, 0.0, math.inf, math.nan)],
    *[(math.ldexp, [x, n], {}) for x in (1.5, 0.0, math.inf, -1e300, 3) for n in (3, -2000, 1030, 2.0)],
    *every([math.isqrt], [[n] for n in INTEGERS]), *every([math.factorial], [[n] for n in SMALL]),
    *[(f, [m, n], {}) for f in (math.gcd, math.lcm) for m in INTEGERS for n in INTEGERS],
    *[(f, [m, n], {}) for f in (math.comb, math.perm) for m in (*SMALL, 2**40) for n in SMALL],
    (math.gcd, [], {}), (math.lcm, [], {}), (math.gcd, [-4], {}), (math.gcd, [12, 18, 8], {}),
    (math.lcm, [4, 6, 10], {}),
    (math.perm, [5], {}), (math.perm, [5, K(None)], {}), (math.hypot, [], {}), (math.hypot, [-3.0], {}),
    (math.hypot, [1.0, 2, 3.0], {}),
    (math.dist, [(1.0, 2.0), (4, 6.0)], {}), (math.dist, [V, V * 2], {}), (math.dist, [(1.0,), (1.0, 2.0)], {}),
    (math.dist, [[0.5], [2]], {}),
    (math.fsum, [[0.1] * 10], {}), (math.fsum, [V], {}), (math.fsum, [(1e16, 1.0, -1e16)], {}),
    (math.fsum, [[math.inf, -math.inf]], {}),
    (math.fsum, [[]], {}), (math.fsum, [I[0]], {}), (math.prod, [(2, 3, 4)], {}),
    (math.prod, [[1.5, 2]], {"start": 2}), (math.prod, [V], {}),
    (math.prod, [J], {}), (math.prod, [()], {}), (math.prod, [(2**40, 2**40)], {}),
    (math.isclose, [1.0, 1.1], {"rel_tol": 0.2}), (math.isclose, [1.0, 1.1], {"abs_tol": -1.0}),
    (math.isclose, [0.0, 1e-12], {"abs_tol": 1e-9}),
]


def scipy_calls() -> list[Call]:
    try:
        from scipy import special
    except ImportError:
        return []
    values = [0.3, 0.7, -1.5, 0.0, 2, A, F, NAN, np.float32(0.25), V / 5, I]
    unary = ("expit", "logit", "erf", "erfc", "gamma", "gammaln", "digamma", "psi", "log_expit", "entr", "ndtr",
        "exp2", "cbrt")
    return [
        *every([getattr(special, n) for n in unary], [[x] for x in values]),
        *[(f, [x, y], {}) for f in (special.xlogy, special.rel_entr) for x in (*values[:8], 0) for y in (2.0, 0.5,
            V[0], 3)],
        *[(f, [x], o) for f in (special.softmax, special.log_softmax, special.logsumexp) for x in (A, I, F, NAN,
            LONG - np.inf, A * 900)
          for o in ({}, {"axis": K(0)}, {"axis": K(-1)})],
        (special.logsumexp, [A], {"b": np.abs(B), "axis": K(1), "keepdims": K(True)}),
        (special.logsumexp, [A], {"b": M * 1.0}),
        *[(special.polygamma, [K(n), x], {}) for n in (0, 1, 2, 3) for x in (0.5, V, A)],
    ]


