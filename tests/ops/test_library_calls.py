"""The wider library of NumPy, math and scipy.special through the rules: value, dtype and kind as the functions give."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest

from spmd.ops.primitive import Refusal
from spmd.ops.table import METHODS, NUMPY, rule_of
from tests.ops.test_numpy_calls import A, B, F, I, J, K, M, V, both_ways, check, through_rule

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
    (np.gradient, [LONG], {}), (np.gradient, [LONG, 0.5], {}), (np.gradient, [A], {}), (np.gradient, [I], {"axis": K(1)}),
    (np.gradient, [F], {}), (np.gradient, [A, 0.5, 2.0], {}), (np.gradient, [V[:1]], {}),
    (np.trapezoid, [LONG], {}), (np.trapezoid, [A], {"axis": K(0), "dx": 0.5}), (np.trapezoid, [V, np.array([0.0, 1.0, 3.0])], {}),
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
    *[(np.searchsorted, [a, v], {"side": K(s)}) for s in ("left", "right") for a in (np.sort(LONG), np.sort(NAN[0]), np.sort(J))
      for v in (2.0, V, NAN, 3, I)],
    (np.searchsorted, [LONG, V], {"sorter": np.argsort(LONG)}), (np.searchsorted, [A, V], {}),
    (np.digitize, [V, POINTS], {}), (np.digitize, [V, POINTS], {"right": K(True)}), (np.digitize, [NAN, POINTS[::-1].copy()], {}),
    (np.digitize, [0.5, POINTS], {}), (np.digitize, [V, [0.0, 1.0]], {}), (np.digitize, [V, V], {}),
    *[(np.interp, [x, POINTS, HEIGHTS], o) for x in (0.25, V, NAN, -1.0, 2.0, 0.5, 3, np.array([-5.0, 0.0, 1.9]), F)
      for o in ({}, {"left": -9.0, "right": 9.0})],
    (np.interp, [V, POINTS[:1], HEIGHTS[:1]], {}), (np.interp, [V, POINTS, V], {}), (np.interp, [V, [0.0, 1.0], [3, 5]], {}),
    (np.interp, [0.5, np.array([0.0, 0.5, 0.5, 1.0]), np.array([1.0, 2.0, 3.0, 4.0])], {}),
    (np.interp, [0.5, np.array([0.0, 1.0]), np.array([1.0, np.inf])], {}),
    *every([np.nonzero, np.flatnonzero, np.argwhere], [[A > 0], [I], [V], [M], [CUBE > 0], [A > 99]]),
    (np.compress, [M, V], {}), (np.compress, [M, A], {"axis": K(1)}), (np.compress, [np.array([True, False]), A], {"axis": K(0)}),
    (np.extract, [A > 0, A], {}), (np.extract, [A > 9, A], {}),
    *every([np.count_nonzero], [[A], [I], [M]], {}, {"axis": K(0)}, {"keepdims": K(True)}),
    *every([np.unique], [[LONG], [A], [I], [M], [NAN], [J]], {}, {"return_counts": K(True)}, {"return_inverse": K(True)},
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
    *[(np.percentile, [x, q], {}) for x in (A, I, LONG, F, NAN) for q in (30.0, 50, 100, np.float64(12.5), [0, 25.0, 80])],
    *[(np.quantile, [x, q], o) for x in (A, LONG, NAN) for q in (0.3, 1, np.array([0.0, 0.7]))
      for o in ({"axis": K(-1)}, {"axis": K(0)})],
    (np.quantile, [A, 0.4], {"axis": K(1), "keepdims": K(True)}), (np.quantile, [A, 1.5], {}), (np.percentile, [A, -1.0], {}),
    (np.quantile, [A, np.array([0.1, 0.9])], {"keepdims": K(True)}),
    (np.average, [A], {}), (np.average, [A], {"axis": K(0)}), (np.average, [I], {"weights": I + 2}),
    (np.average, [A], {"axis": K(1), "weights": V}), (np.average, [V], {"weights": V * 0}), (np.average, [A, K(0)], {"weights": A}),
    (np.average, [F], {"weights": F}), (np.average, [A], {"weights": V}),
    *every([np.ptp], [[A], [I], [NAN], [U]], {}, {"axis": K(0)}, {"axis": K(1), "keepdims": K(True)}),
    (np.cov, [A], {}), (np.cov, [A.T, ], {"rowvar": K(False)}), (np.cov, [V], {}), (np.cov, [V, V * V], {}), (np.cov, [I], {"bias": K(True)}),
    (np.cov, [A], {"ddof": K(0)}), (np.corrcoef, [A], {}), (np.corrcoef, [V, V * V], {}), (np.corrcoef, [A.T], {"rowvar": K(False)}),
    *every([np.nansum, np.nanprod, np.nanmean, np.nanmax, np.nanmin, np.nanvar, np.nanstd], [[NAN], [A], [I], [F]], {},
           {"axis": K(0)}, {"axis": K(1), "keepdims": K(True)}),
    *every([np.nanvar, np.nanstd], [[NAN], [A]], {"ddof": K(1)}),
]

PRODUCTS: list[Call] = [
    *[(np.einsum, [K(s), *xs], {}) for s, xs in (
        ("ij,jk->ik", [A, B.T]), ("ij,jk", [A, B.T]), ("ij->ji", [A]), ("ij->", [A]), ("ij->j", [A]), ("ii->i", [SQUARE]),
        ("ii", [SQUARE]), ("i,i->", [V, V]), ("i,j->ij", [V, F]), ("i,i->i", [V, V]), ("ij,ij->i", [A, B]), ("ij,j->i", [A, V]),
        ("bij,bjk->bik", [STACK, STACK]), ("bij,bj->bi", [STACK, A]), ("ijk,ijk->k", [CUBE, CUBE]), ("ijk,kl->ijl", [CUBE, TALL]),
        ("...ij,...jk->...ik", [STACK, SQUARE]), ("...i->...", [CUBE]), ("i,j,k->", [V, V, F]), ("ij,jk,kl->il", [A, B.T, B]),
        ("ia,ja,ka->ijk", [A, A, B]), ("ba,b->a", [A, F]), ("i,->i", [V, 2.0]), ("ij,ij", [I, I]), ("iij->j", [np.stack([A, B])]),
        ("ijk,jil->kl", [CUBE, np.swapaxes(CUBE, 0, 1).copy()]), ("ji,j", [A, F]), ("ab,cb->ca", [I, I]),
        ("ij,jk->ik", [A, B]), ("ij", [V]), ("i,i", [V]), ("ij->ik", [A]), ("ij->ii", [A]), ("i1->i", [A]), ("i,i->i", [V, V[:1]]),
    )],
    *[(np.tensordot, [x, y], o) for x, y, o in (
        (A, B, {"axes": K(2)}), (A, B.T, {"axes": K(1)}), (A, V, {"axes": K(1)}), (V, V, {"axes": K(0)}), (CUBE, CUBE, {"axes": K(([0, 1], [0, 1]))}),
        (CUBE, A, {"axes": K(([1, 0], [1, 0]))}), (A, B, {"axes": K((0, 0))}), (A, B, {"axes": K(1)}), (A, B, {}), (STACK, SQUARE, {"axes": K(1)}),
    )],
    *every([np.dot], [[CUBE, TALL], [STACK, STACK], [V, STACK], [STACK, V], [CUBE, 2.0]]),
    *every([np.inner], [[CUBE, CUBE], [STACK, V], [V, 2.0], [A, B]]),
    *every([np.kron], [[A, B], [V, F], [SQUARE, V], [I, J], [2.0, V], [A, 3]]),
    (np.cross, [V, V[::-1].copy()], {}), (np.cross, [A, B], {}), (np.cross, [A, V], {}), (np.cross, [SQUARE, OTHER], {"axis": K(0)}),
    (np.cross, [V[:2], F], {}), (np.cross, [I, J], {}), (np.cross, [LONG, V], {}),
    *[(f, [x, y], {"mode": K(m)}) for f in (np.convolve, np.correlate) for m in ("full", "same", "valid")
      for x, y in ((LONG, V), (V, LONG), (LONG, F), (F, LONG), (J, J), (LONG, LONG[:4]), (LONG[:4], LONG))],
    (np.convolve, [LONG, V], {}), (np.correlate, [LONG, V], {}), (np.convolve, [LONG, LONG[:0]], {}), (np.convolve, [A, V], {}),
    (np.trace, [SQUARE], {}), (np.trace, [I], {"offset": K(1)}), (np.trace, [CUBE], {"axis1": K(0), "axis2": K(2)}),
    (np.trace, [J > 0], {}), (np.diagonal, [A], {}), (np.diagonal, [CUBE, K(1), K(1), K(2)], {}), (np.diagonal, [V], {}),
    (np.vecdot, [A, B], {}), (np.vecdot, [A, V], {}), (np.vecdot, [SQUARE, OTHER], {"axis": K(0)}),
    *every([np.add.outer, np.subtract.outer, np.multiply.outer, np.maximum.outer], [[V, F], [A, J], [2.0, V]]),
]

LINALG: list[Call] = [
    *[(np.linalg.solve, [a, b], {}) for a, b in (
        (SQUARE, V), (SQUARE, A.T), (STACK, V), (STACK, STACK), (SQUARE, STACK), (I[:, :2], J[:2]), (SQUARE.astype(np.float32), V),
        (np.ones((3, 3)), V), (A, V), (SQUARE, F), (V, V), (SQUARE.astype(np.float32), V.astype(np.float32)),
    )],
    *every([np.linalg.inv, np.linalg.det, np.linalg.slogdet], [[SQUARE], [STACK], [np.ones((3, 3))], [I[:, :2]], [A], [V], [SQUARE * np.nan],
                                                           [SQUARE.astype(np.float32)]]),
    *every([np.linalg.cholesky], [[SQUARE], [-SQUARE], [A], [OTHER + 9 * np.eye(3)]], {}, {"upper": K(True)}),
    *every([np.linalg.eigh], [[SQUARE], [STACK], [A]], {}, {"UPLO": K("U")}),
    *every([np.linalg.eigvalsh], [[SQUARE], [OTHER], [SQUARE.astype(np.float32)]], {}, {"UPLO": K("U")}),
    *every([np.linalg.qr], [[SQUARE], [TALL], [A], [STACK]], {}, {"mode": K("r")}),
    *every([np.linalg.svd], [[SQUARE], [TALL], [A], [STACK]], {"full_matrices": K(False)}, {"compute_uv": K(False)}),
    (np.linalg.svd, [SQUARE], {}), (np.linalg.svdvals, [A], {}), (np.linalg.svd, [SQUARE * np.nan], {}),
    (np.linalg.pinv, [A], {}), (np.linalg.pinv, [TALL], {}), (np.linalg.pinv, [STACK], {}), (np.linalg.pinv, [A, K(0.5)], {}),
    (np.linalg.matrix_rank, [A], {}), (np.linalg.matrix_rank, [np.ones((3, 3))], {}), (np.linalg.cond, [SQUARE], {}),
    (np.linalg.cond, [SQUARE, K(-2)], {}), *[(np.linalg.matrix_power, [x, K(n)], {}) for x in (SQUARE, STACK, I[:, :2]) for n in (0, 1, 3, 5, -2)],
    (np.linalg.matrix_power, [A, K(2)], {}), (np.linalg.multi_dot, [[A, B.T, A]], {}), (np.matrix_transpose, [CUBE], {}),
    *[(np.linalg.norm, [x], {"ord": K(o), "axis": K(ax), "keepdims": K(k)}) for x in (A, I) for ax in (0, -1)
      for o in (None, 2, 1, 0, 3, 0.5, -1, np.inf, -np.inf) for k in (False, True)],
    *[(np.linalg.norm, [x, K(o)], {}) for x in (A, SQUARE, V, F, J) for o in (None, 1, 2, -2, np.inf, -np.inf, "fro", "nuc", 3)],
    (np.linalg.norm, [CUBE], {}), (np.linalg.norm, [CUBE, K(2)], {}), (np.linalg.norm, [CUBE], {"axis": K((0, 2))}),
    (np.linalg.norm, [CUBE], {"axis": K((2, 0)), "ord": K(1)}), (np.linalg.norm, [CUBE], {"axis": K((0, 2)), "ord": K("nuc"), "keepdims": K(True)}),
    (np.linalg.norm, [A], {"keepdims": K(True)}), (np.linalg.norm, [2.5], {}), (np.linalg.vector_norm, [A], {}),
    (np.linalg.vector_norm, [A], {"axis": K(1), "ord": K(1)}), (np.linalg.matrix_norm, [STACK], {}), (np.linalg.matrix_norm, [A], {"ord": K(2)}),
]

LAYOUTS: list[Call] = [
    *[(np.roll, [x, s], o) for x in (A, V, I) for s in (1, K(-2), K(7)) for o in ({}, {"axis": K(0)}, {"axis": K(-1)})],
    (np.roll, [A, K((1, -1))], {"axis": K((0, 1))}), (np.roll, [A, K(1)], {"axis": K((0, 1))}),
    *[(np.repeat, [x, n], o) for x in (A, V, J) for n in (2, K(0), K(3)) for o in ({}, {"axis": K(0)}, {"axis": K(-1)})],
    (np.repeat, [V, K([1, 0, 2])], {}), (np.repeat, [A, np.array([2, 1])], {"axis": K(0)}), (np.repeat, [V, np.array([1, -1, 2])], {}),
    (np.repeat, [V, -1], {}), (np.repeat, [2.5, 3], {}), (np.repeat, [A, np.array([2])], {"axis": K(1)}),
    *[(np.tile, [x, n], {}) for x in (A, V, 2.5) for n in (2, K(0), K((2, 1)), (3, K(2)), K((2, 1, 2)))],
    *every([np.flipud, np.fliplr], [[A], [I], [V]]), *[(np.rot90, [A], {"k": K(k)}) for k in (-1, 0, 1, 2, 3)],
    (np.rot90, [CUBE, K(1), K((1, 2))], {}),
    *every([np.tril, np.triu], [[A], [I], [V], [CUBE], [M]], {}, {"k": K(1)}, {"k": K(-1)}),
    *every([np.diag], [[A], [V], [I], [M], [CUBE]], {}, {"k": K(1)}, {"k": K(-2)}), (np.diagflat, [A], {}),
    (np.split, [LONG, K(3)], {}), (np.split, [LONG, K(4)], {}), (np.split, [LONG, K([1, 4])], {}), (np.split, [A, K(3)], {"axis": K(1)}),
    (np.array_split, [LONG, K(4)], {}), (np.array_split, [A, K(2), K(1)], {}), (np.hsplit, [A, K(3)], {}), (np.vsplit, [A, K(2)], {}),
    (np.hsplit, [LONG, K(2)], {}), (np.vsplit, [LONG, K(2)], {}), (np.dsplit, [CUBE, K([1])], {}), (np.split, [LONG, K([-2, 9])], {}),
    (np.append, [A, V], {}), (np.append, [A, B], {"axis": K(0)}), (np.append, [V, 2], {}), (np.append, [A, V], {"axis": K(0)}),
    (np.insert, [V, K(1), 9.0], {}), (np.insert, [V, K(-1), 9], {}), (np.insert, [A, K(1), V], {"axis": K(0)}),
    (np.insert, [A, K(1), 5.0], {"axis": K(1)}), (np.insert, [J, K(3), 2.7], {}), (np.insert, [V, K(7), 1.0], {}),
    (np.delete, [V, K(1)], {}), (np.delete, [A, K([0, -1])], {"axis": K(1)}), (np.delete, [A, K(2)], {}), (np.delete, [V, K(5)], {}),
    (np.delete, [V, 1], {}), (np.delete, [V, -1], {}), (np.delete, [V, 3], {}), (np.delete, [A, 1], {"axis": K(0)}),
    *[(np.meshgrid, [V, F], {"indexing": K(i), "sparse": K(s)}) for i in ("xy", "ij") for s in (False, True)],
    (np.meshgrid, [V, F, J], {}), (np.meshgrid, [V], {}), (np.meshgrid, [V, 2.0], {}),
    (np.broadcast_arrays, [A, V, 2.0], {}), (np.column_stack, [[V, V]], {}), (np.column_stack, [(SQUARE, V)], {}),
    (np.dstack, [[A, B]], {}), (np.dstack, [[V, V]], {}), *every([np.atleast_3d], [[A], [V], [2.5], [CUBE]]),
    (np.rollaxis, [CUBE, K(2)], {}), (np.rollaxis, [CUBE, K(0), K(3)], {}),
    *[(np.pad, [x, K(w)], o) for x, w in ((V, 2), (A, ((1, 0), (2, 1))), (J, (1, 2))) for o in
      ({}, {"constant_values": 7}, {"mode": K("edge")}, {"mode": K("wrap")}, {"mode": K("reflect")}, {"mode": K("symmetric")})],
]

SPECIAL = [0.25, -1.5, 3, True, np.float32(0.5), A, F, NAN, I, [0.5, 2.0]]
ELEMENTWISE: list[Call] = [
    *every([np.cbrt, np.exp2, np.arcsinh, np.arccosh, np.arctanh, np.deg2rad, np.rad2deg, np.radians, np.degrees, np.sinc, np.signbit,
            np.modf, np.frexp, np.nan_to_num, np.isposinf, np.isneginf, np.real, np.imag, np.conj, np.isreal, np.iscomplex],
           [[x] for x in SPECIAL]),
    *[(f, [x, y], {}) for f in (np.fmax, np.fmin, np.fmod, np.copysign, np.nextafter, np.logaddexp2, np.heaviside, np.float_power, np.divmod)
      for x in (*SPECIAL[:7], NAN[:, :3]) for y in (2.0, 3, -0.5, V, np.float32(-2))],
    *every([np.fmax, np.fmin], [[NAN, NAN[::-1].copy()]]), *every([np.gcd, np.lcm], [[I, 6], [J, I], [12, 18], [U, U], [V, 2]]),
    (np.ldexp, [V, J], {}), (np.ldexp, [F, 3], {}), (np.ldexp, [2.5, 2], {}), (np.ldexp, [A, 5000], {}),
    (np.nan_to_num, [NAN], {"nan": 7.0, "posinf": 1.0, "neginf": -1.0}), (np.nan_to_num, [NAN[0].astype(np.float32)], {}),
    *[(f, [x, y], o) for f in (np.isclose, np.allclose) for x, y in ((A, A + 1e-9), (A, B), (NAN, NAN), (V, 0.5), (I, I), (F, 1.5), (2, 2.0), (M, M))
      for o in ({}, {"equal_nan": K(True)}, {"rtol": 0.5, "atol": 1.0})],
    *[(np.array_equal, [x, y], o) for x, y in ((A, A.copy()), (A, B), (A, V), (NAN, NAN), (I, I * 1.0)) for o in ({}, {"equal_nan": K(True)})],
    (np.array_equiv, [A, A[0]], {}), (np.array_equiv, [A, F], {}),
    (np.select, [[A > 1, A < 0], [A, -A]], {}), (np.select, [[V > 0], [1]], {"default": 2.5}), (np.select, [[M], [J]], {}),
]

INTEGERS = [0, 1, 5, 12, -8, 2**40, 2**62, -(2**63), True, np.int32(6), 2.0]
SMALL = [0, 1, 5, 12, 20, 21, 66, 33, -8, True, np.int32(6), 2.0]
FLOATS = [0.0, -0.0, 0.5, -2.5, 3, 171.0, 172.0, 1e308, math.inf, -math.inf, math.nan, -3.0, np.float32(0.3), True]
MATH: list[Call] = [
    *every([getattr(math, n) for n in ("asinh", "acosh", "atanh", "erf", "erfc", "gamma", "lgamma", "ulp", "cbrt", "exp2", "modf", "frexp",
                                       "fabs") if hasattr(math, n)], [[x] for x in FLOATS]),
    *[(f, [x, y], {}) for f in (math.fmod, math.remainder, math.copysign, math.nextafter, math.isclose, math.hypot, math.atan2)
      for x in FLOATS for y in (2.0, -0.75, 0.0, math.inf, math.nan)],
    *[(math.ldexp, [x, n], {}) for x in (1.5, 0.0, math.inf, -1e300, 3) for n in (3, -2000, 1030, 2.0)],
    *every([math.isqrt], [[n] for n in INTEGERS]), *every([math.factorial], [[n] for n in SMALL]),
    *[(f, [m, n], {}) for f in (math.gcd, math.lcm) for m in INTEGERS for n in INTEGERS],
    *[(f, [m, n], {}) for f in (math.comb, math.perm) for m in (*SMALL, 2**40) for n in SMALL],
    (math.gcd, [], {}), (math.lcm, [], {}), (math.gcd, [-4], {}), (math.gcd, [12, 18, 8], {}), (math.lcm, [4, 6, 10], {}),
    (math.perm, [5], {}), (math.perm, [5, K(None)], {}), (math.hypot, [], {}), (math.hypot, [-3.0], {}), (math.hypot, [1.0, 2, 3.0], {}),
    (math.dist, [(1.0, 2.0), (4, 6.0)], {}), (math.dist, [V, V * 2], {}), (math.dist, [(1.0,), (1.0, 2.0)], {}), (math.dist, [[0.5], [2]], {}),
    (math.fsum, [[0.1] * 10], {}), (math.fsum, [V], {}), (math.fsum, [(1e16, 1.0, -1e16)], {}), (math.fsum, [[math.inf, -math.inf]], {}),
    (math.fsum, [[]], {}), (math.fsum, [I[0]], {}), (math.prod, [(2, 3, 4)], {}), (math.prod, [[1.5, 2]], {"start": 2}), (math.prod, [V], {}),
    (math.prod, [J], {}), (math.prod, [()], {}), (math.prod, [(2**40, 2**40)], {}),
    (math.isclose, [1.0, 1.1], {"rel_tol": 0.2}), (math.isclose, [1.0, 1.1], {"abs_tol": -1.0}), (math.isclose, [0.0, 1e-12], {"abs_tol": 1e-9}),
]

CALLS = [*SCANS, *SORTS, *STATISTICS, *PRODUCTS, *LINALG, *LAYOUTS, *ELEMENTWISE, *MATH]
REFUSED_WITHOUT_SIZES = {
    np.interp, np.gradient, np.quantile, np.percentile, np.cov, np.corrcoef, np.split, np.array_split, np.hsplit, np.vsplit, np.dsplit,
    np.insert, np.delete, np.array_equal, np.array_equiv, np.cross, np.linalg.qr, np.linalg.matrix_rank, np.take_along_axis, np.pad,
    math.dist, np.repeat,
}
"""Functions that need sizes which are known; they are refused where they are not."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("case", "hide"), both_ways(CALLS, lambda case: case[1]))
def test_calls_give_value_and_kind_of_the_original(case: int, hide: bool) -> None:
    function, args, kwargs = CALLS[case]
    rule = NUMPY[function]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if hide:
            try:
                through_rule(rule, args, kwargs, True)
            except Refusal:
                return
            except Exception:  # noqa: BLE001 (what the function itself may raise)
                pass
        check(function, rule, args, kwargs, hide)


METHOD_CALLS: list[tuple[str, Any, list[Any], dict[str, Any]]] = [
    *[(name, x, [], o) for name in ("cumsum", "cumprod", "argsort") for x in (A, I) for o in ({}, {"axis": K(0)})],
    ("searchsorted", np.sort(LONG), [V], {}), ("diagonal", A, [], {}), ("trace", A, [], {}), ("nonzero", A > 0, [], {}),
    ("repeat", V, [2], {}), ("repeat", A, [2], {"axis": K(1)}), ("compress", V, [M], {}), ("conj", A, [], {}),
    ("clip", V, [], {"min": K(0.0)}), ("clip", A, [], {"max": 1.0}), ("std", A, [], {"ddof": K(1)}), ("argmax", A, [], {"axis": K(1)}),
    ("any", A > 0, [], {"axis": K(0)}), ("prod", A, [], {"axis": K(0), "keepdims": K(True)}), ("searchsorted", V, [V], {"side": K("right")}),
]


@pytest.mark.parametrize(("case", "hide"), both_ways(METHOD_CALLS, lambda case: case[1:2]))
def test_methods_give_value_and_kind_of_the_original(case: int, hide: bool) -> None:
    name, owner, args, kwargs = METHOD_CALLS[case]
    check(lambda x, *a, **k: getattr(x, name)(*a, **k), METHODS[name], [owner, *args], kwargs, hide)


# ------------------------------------------------------------------------------------------------------------ SciPy
def _scipy_calls() -> list[Call]:
    try:
        from scipy import special
    except ImportError:
        return []
    values = [0.3, 0.7, -1.5, 0.0, 2, A, F, NAN, np.float32(0.25), V / 5, I]
    unary = ("expit", "logit", "erf", "erfc", "gamma", "gammaln", "digamma", "psi", "log_expit", "entr", "ndtr", "exp2", "cbrt")
    return [
        *every([getattr(special, n) for n in unary], [[x] for x in values]),
        *[(f, [x, y], {}) for f in (special.xlogy, special.rel_entr) for x in (*values[:8], 0) for y in (2.0, 0.5, V[0], 3)],
        *[(f, [x], o) for f in (special.softmax, special.log_softmax, special.logsumexp) for x in (A, I, F, NAN, LONG - np.inf, A * 900)
          for o in ({}, {"axis": K(0)}, {"axis": K(-1)})],
        (special.logsumexp, [A], {"b": np.abs(B), "axis": K(1), "keepdims": K(True)}), (special.logsumexp, [A], {"b": M * 1.0}),
        *[(special.polygamma, [K(n), x], {}) for n in (0, 1, 2, 3) for x in (0.5, V, A)],
    ]


SCIPY = _scipy_calls()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(not SCIPY, reason="SciPy is not there")
def test_scipys_functions_are_scipys() -> None:
    for function, args, kwargs in SCIPY:
        rule = rule_of(function)
        assert rule is not None
        for hide in (False, True):
            check(function, rule, args, kwargs, hide)


def test_scipy_is_not_imported() -> None:
    assert rule_of(len) is None and rule_of(np.fft.fft) is None
