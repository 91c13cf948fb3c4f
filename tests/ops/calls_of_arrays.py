"""Calls of scans, sorts, statistics, and the arrays that all tables of calls use."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.test_numpy_calls import A, F, I, J, K, M, V

NAN = np.array([[np.nan, 2.0, -1.0, np.inf], [0.5, np.nan, 2.0, 2.0]])
LONG = np.array([3.0, -1.0, 2.0, 2.0, 0.5, 7.0])
SQUARE = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -0.25], [0.5, -0.25, 2.0]])
OTHER = np.array([[2.0, -1.0, 0.5], [0.0, 1.0, 3.0], [1.5, 2.0, -1.0]])
STACK = np.stack([SQUARE, OTHER + 3 * np.eye(3)])
CUBE = np.arange(24.0).reshape(2, 3, 4) - 7.5
TALL = CUBE[0].T.copy() ** 2 + np.eye(4, 3)
POINTS = np.array([-1.0, 0.0, 0.5, 2.0])
HEIGHTS = np.array([3.0, -1.0, 2.0, 0.25])
U = np.array([3, 200, 5], np.uint8)
Call = tuple[Any, list[Any], dict[str, Any]]


def every(functions: Any, operands: Any, *options: dict[str, Any]) -> list[Call]:
    """Each function on each list of operands with each set of options."""
    return [(f, list(args), dict(o)) for f in functions for args in operands for o in (options or ({},))]


SCANS: list[Call] = [
    *every([np.cumsum, np.cumprod], [[A], [I], [J], [M], [U], [F], [[1.0, 2.0, 4.0]]]),
    *every([np.cumsum, np.cumprod], [[A], [I], [A > 0]], {"axis": K(0)}, {"axis": K(-1)}),
    (np.cumsum, [J], {"dtype": K(np.float32)}), (np.cumsum, [A, K(1)], {}), (np.cumsum, [2.5], {}),
    *every([np.diff], [[A], [I], [V], [M], [U]]), *every([np.diff], [[A]], {"axis": K(0)}, {"n": K(2)}, {"n": K(0)}),
    (np.diff, [V], {"prepend": 0.5}), (np.diff, [V], {"append": V, "prepend": K(1)}), (np.diff, [A, K(1), K(0)], {}),
    (np.diff, [2.5], {}), (np.diff, [V], {"n": K(-1)}), (np.ediff1d, [A], {}),
    (np.gradient, [LONG], {}), (np.gradient, [LONG, 0.5], {}), (np.gradient, [A], {}),
    (np.gradient, [I], {"axis": K(1)}),
    (np.gradient, [F], {}), (np.gradient, [A, 0.5, 2.0], {}), (np.gradient, [V[:1]], {}),
    (np.trapezoid, [LONG], {}), (np.trapezoid, [A], {"axis": K(0), "dx": 0.5}),
    (np.trapezoid, [V, np.array([0.0, 1.0, 3.0])], {}),
    (np.trapezoid, [A, V], {}), (np.trapezoid, [I], {}), (np.trapezoid, [F], {}),
    *every([np.add.accumulate, np.multiply.accumulate, np.maximum.accumulate, np.minimum.accumulate],
           [[A], [I], [LONG], [NAN]], {}, {"axis": K(-1)}),
    *every([np.add.reduce, np.multiply.reduce, np.maximum.reduce, np.minimum.reduce], [[A], [I], [LONG]], {},
           {"axis": K(1)}, {"axis": K(None)}, {"keepdims": K(True)}),
    *every([np.logical_or.reduce, np.logical_and.reduce], [[M], [A > 0], [I]]), (np.add.reduce, [M], {}),
    (np.cumulative_sum, [V], {"include_initial": K(True)}), (np.cumulative_prod, [I], {"axis": K(1)}),
    (np.cumulative_sum, [A], {}), (np.cumulative_prod, [A], {"axis": K(0), "include_initial": K(True)}),
]

SORTS: list[Call] = [
    *every([np.sort], [[A], [NAN], [I], [U], [M], [[3.0, 1.0, 2.0]]], {}, {"axis": K(0)}, {"axis": K(None)}),
    *every([np.argsort], [[A], [NAN], [I], [U], [M]], {}, {"axis": K(0)}, {"kind": K("stable")}, {"stable": K(True)}),
    (np.sort, [2.5], {}), (np.sort, [A], {"axis": K(2)}), (np.sort, [LONG, K(-1), K("mergesort")], {}),
    *[(np.searchsorted, [a, v], {"side": K(s)}) for s in ("left", "right") for a in (np.sort(LONG), np.sort(NAN[0]),
        np.sort(J))
      for v in (2.0, V, NAN, 3, I)],
    (np.searchsorted, [LONG, V], {"sorter": np.argsort(LONG)}), (np.searchsorted, [A, V], {}),
    (np.digitize, [V, POINTS], {}), (np.digitize, [V, POINTS], {"right": K(True)}),
    (np.digitize, [NAN, POINTS[::-1].copy()], {}),
    (np.digitize, [0.5, POINTS], {}), (np.digitize, [V, [0.0, 1.0]], {}), (np.digitize, [V, V], {}),
    *[(np.interp, [x, POINTS, HEIGHTS], o) for x in (0.25, V, NAN, -1.0, 2.0, 0.5, 3, np.array([-5.0, 0.0, 1.9]), F)
      for o in ({}, {"left": -9.0, "right": 9.0})],
    (np.interp, [V, POINTS[:1], HEIGHTS[:1]], {}), (np.interp, [V, POINTS, V], {}),
    (np.interp, [V, [0.0, 1.0], [3, 5]], {}),
    (np.interp, [0.5, np.array([0.0, 0.5, 0.5, 1.0]), np.array([1.0, 2.0, 3.0, 4.0])], {}),
    (np.interp, [0.5, np.array([0.0, 1.0]), np.array([1.0, np.inf])], {}),
    *every([np.nonzero, np.flatnonzero, np.argwhere], [[A > 0], [I], [V], [M], [CUBE > 0], [A > 99]]),
    (np.compress, [M, V], {}), (np.compress, [M, A], {"axis": K(1)}),
    (np.compress, [np.array([True, False]), A], {"axis": K(0)}),
    (np.extract, [A > 0, A], {}), (np.extract, [A > 9, A], {}),
    *every([np.count_nonzero], [[A], [I], [M]], {}, {"axis": K(0)}, {"keepdims": K(True)}),
    *every([np.unique], [[LONG], [A], [I], [M], [NAN], [J]], {}, {"return_counts": K(True)},
        {"return_inverse": K(True)},
           {"return_inverse": K(True), "return_counts": K(True)}),
    (np.unique, [LONG[:0]], {}),
    (np.bincount, [I[0] + 1], {}), (np.bincount, [np.array([0, 3, 3])], {"minlength": K(6)}),
    (np.bincount, [np.array([0, 2, 2]), V], {}), (np.bincount, [I[0]], {}), (np.bincount, [np.array([0, 1]), V], {}),
    (np.bincount, [V], {}), (np.bincount, [np.zeros(0, int)], {}), (np.bincount, [M], {"minlength": K(4)}),
    (np.bincount, [np.array([0, 2, 2]), [1, 2, 3]], {}),
    (np.take_along_axis, [A, np.argsort(A, 1)], {"axis": K(1)}), (np.take_along_axis, [A, I + 9], {"axis": K(1)}),
    (np.take_along_axis, [V, np.array([2, -1])], {"axis": K(0)}),
]

STATISTICS: list[Call] = [
    *every([np.median], [[A], [I], [LONG], [NAN], [F], [V], [2.5], [[3, 1, 2]]]),
    *every([np.median], [[A], [I], [NAN]], {"axis": K(0)}, {"axis": K(1), "keepdims": K(True)}, {"axis": K((0, 1))}),
    *[(np.percentile, [x, q], {}) for x in (A, I, LONG, F, NAN) for q in (30.0, 50, 100, np.float64(12.5), [0, 25.0,
        80])],
    *[(np.quantile, [x, q], o) for x in (A, LONG, NAN) for q in (0.3, 1, np.array([0.0, 0.7]))
      for o in ({"axis": K(-1)}, {"axis": K(0)})],
    (np.quantile, [A, 0.4], {"axis": K(1), "keepdims": K(True)}), (np.quantile, [A, 1.5], {}),
    (np.percentile, [A, -1.0], {}),
    (np.quantile, [A, np.array([0.1, 0.9])], {"keepdims": K(True)}),
    (np.average, [A], {}), (np.average, [A], {"axis": K(0)}), (np.average, [I], {"weights": I + 2}),
    (np.average, [A], {"axis": K(1), "weights": V}), (np.average, [V], {"weights": V * 0}),
    (np.average, [A, K(0)], {"weights": A}),
    (np.average, [F], {"weights": F}), (np.average, [A], {"weights": V}),
    *every([np.ptp], [[A], [I], [NAN], [U]], {}, {"axis": K(0)}, {"axis": K(1), "keepdims": K(True)}),
    (np.cov, [A], {}), (np.cov, [A.T, ], {"rowvar": K(False)}), (np.cov, [V], {}), (np.cov, [V, V * V], {}),
    (np.cov, [I], {"bias": K(True)}),
    (np.cov, [A], {"ddof": K(0)}), (np.corrcoef, [A], {}), (np.corrcoef, [V, V * V], {}),
    (np.corrcoef, [A.T], {"rowvar": K(False)}),
    *every([np.nansum, np.nanprod, np.nanmean, np.nanmax, np.nanmin, np.nanvar, np.nanstd], [[NAN], [A], [I], [F]],
        {},
           {"axis": K(0)}, {"axis": K(1), "keepdims": K(True)}),
    *every([np.nanvar, np.nanstd], [[NAN], [A]], {"ddof": K(1)}),
]
