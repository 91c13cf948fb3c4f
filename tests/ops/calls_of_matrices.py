"""Calls of products, linear algebra, layouts."""

from __future__ import annotations

import numpy as np

from tests.ops.calls_of_arrays import CUBE, LONG, OTHER, SQUARE, STACK, TALL, Call, every
from tests.ops.test_numpy_calls import A, B, F, I, J, K, M, V

PRODUCTS: list[Call] = [
    *[(np.einsum, [K(s), *xs], {}) for s, xs in (
        ("ij,jk->ik", [A, B.T]), ("ij,jk", [A, B.T]), ("ij->ji", [A]), ("ij->", [A]), ("ij->j", [A]),
        ("ii->i", [SQUARE]),
        ("ii", [SQUARE]), ("i,i->", [V, V]), ("i,j->ij", [V, F]), ("i,i->i", [V, V]), ("ij,ij->i", [A, B]),
        ("ij,j->i", [A, V]),
        ("bij,bjk->bik", [STACK, STACK]), ("bij,bj->bi", [STACK, A]), ("ijk,ijk->k", [CUBE, CUBE]),
        ("ijk,kl->ijl", [CUBE, TALL]),
        ("...ij,...jk->...ik", [STACK, SQUARE]), ("...i->...", [CUBE]), ("i,j,k->", [V, V, F]),
        ("ij,jk,kl->il", [A, B.T, B]),
        ("ia,ja,ka->ijk", [A, A, B]), ("ba,b->a", [A, F]), ("i,->i", [V, 2.0]), ("ij,ij", [I, I]),
        ("iij->j", [np.stack([A, B])]),
        ("ijk,jil->kl", [CUBE, np.swapaxes(CUBE, 0, 1).copy()]), ("ji,j", [A, F]), ("ab,cb->ca", [I, I]),
        ("ij,jk->ik", [A, B]), ("ij", [V]), ("i,i", [V]), ("ij->ik", [A]), ("ij->ii", [A]), ("i1->i", [A]),
        ("i,i->i", [V, V[:1]]),
    )],
    *[(np.tensordot, [x, y], o) for x, y, o in (
        (A, B, {"axes": K(2)}), (A, B.T, {"axes": K(1)}), (A, V, {"axes": K(1)}), (V, V, {"axes": K(0)}),
        (CUBE, CUBE, {"axes": K(([0, 1], [0, 1]))}),
        (CUBE, A, {"axes": K(([1, 0], [1, 0]))}), (A, B, {"axes": K((0, 0))}), (A, B, {"axes": K(1)}), (A, B, {}),
        (STACK, SQUARE, {"axes": K(1)}),
    )],
    *every([np.dot], [[CUBE, TALL], [STACK, STACK], [V, STACK], [STACK, V], [CUBE, 2.0]]),
    *every([np.inner], [[CUBE, CUBE], [STACK, V], [V, 2.0], [A, B]]),
    *every([np.kron], [[A, B], [V, F], [SQUARE, V], [I, J], [2.0, V], [A, 3]]),
    (np.cross, [V, V[::-1].copy()], {}), (np.cross, [A, B], {}), (np.cross, [A, V], {}),
    (np.cross, [SQUARE, OTHER], {"axis": K(0)}),
    (np.cross, [V[:2], F], {}), (np.cross, [I, J], {}), (np.cross, [LONG, V], {}),
    *[(f, [x, y], {"mode": K(m)}) for f in (np.convolve, np.correlate) for m in ("full", "same", "valid")
      for x, y in ((LONG, V), (V, LONG), (LONG, F), (F, LONG), (J, J), (LONG, LONG[:4]), (LONG[:4], LONG))],
    (np.convolve, [LONG, V], {}), (np.correlate, [LONG, V], {}), (np.convolve, [LONG, LONG[:0]], {}),
    (np.convolve, [A, V], {}),
    (np.trace, [SQUARE], {}), (np.trace, [I], {"offset": K(1)}), (np.trace, [CUBE], {"axis1": K(0), "axis2": K(2)}),
    (np.trace, [J > 0], {}), (np.diagonal, [A], {}), (np.diagonal, [CUBE, K(1), K(1), K(2)], {}),
    (np.diagonal, [V], {}),
    (np.vecdot, [A, B], {}), (np.vecdot, [A, V], {}), (np.vecdot, [SQUARE, OTHER], {"axis": K(0)}),
    *every([np.add.outer, np.subtract.outer, np.multiply.outer, np.maximum.outer], [[V, F], [A, J], [2.0, V]]),
]

LINALG: list[Call] = [
    *[(np.linalg.solve, [a, b], {}) for a, b in (
        (SQUARE, V), (SQUARE, A.T), (STACK, V), (STACK, STACK), (SQUARE, STACK), (I[:, :2], J[:2]),
        (SQUARE.astype(np.float32), V),
        (np.ones((3, 3)), V), (A, V), (SQUARE, F), (V, V), (SQUARE.astype(np.float32), V.astype(np.float32)),
    )],
    *every([np.linalg.inv, np.linalg.det, np.linalg.slogdet], [[SQUARE], [STACK], [np.ones((3, 3))], [I[:, :2]], [A],
        [V], [SQUARE * np.nan],
                                                           [SQUARE.astype(np.float32)]]),
    *every([np.linalg.cholesky], [[SQUARE], [-SQUARE], [A], [OTHER + 9 * np.eye(3)]], {}, {"upper": K(True)}),
    *every([np.linalg.eigh], [[SQUARE], [STACK], [A]], {}, {"UPLO": K("U")}),
    *every([np.linalg.eigvalsh], [[SQUARE], [OTHER], [SQUARE.astype(np.float32)]], {}, {"UPLO": K("U")}),
    *every([np.linalg.qr], [[SQUARE], [TALL], [A], [STACK]], {}, {"mode": K("r")}),
    *every([np.linalg.svd], [[SQUARE], [TALL], [A], [STACK]], {"full_matrices": K(False)}, {"compute_uv": K(False)}),
    (np.linalg.svd, [SQUARE], {}), (np.linalg.svdvals, [A], {}), (np.linalg.svd, [SQUARE * np.nan], {}),
    (np.linalg.pinv, [A], {}), (np.linalg.pinv, [TALL], {}), (np.linalg.pinv, [STACK], {}),
    (np.linalg.pinv, [A, K(0.5)], {}),
    (np.linalg.matrix_rank, [A], {}), (np.linalg.matrix_rank, [np.ones((3, 3))], {}), (np.linalg.cond, [SQUARE], {}),
    (np.linalg.cond, [SQUARE, K(-2)], {}), *[(np.linalg.matrix_power, [x, K(n)], {}) for x in (SQUARE, STACK, I[:,
        :2]) for n in (0, 1, 3, 5, -2)],
    (np.linalg.matrix_power, [A, K(2)], {}), (np.linalg.multi_dot, [[A, B.T, A]], {}),
    (np.matrix_transpose, [CUBE], {}),
    *[(np.linalg.norm, [x], {"ord": K(o), "axis": K(ax), "keepdims": K(k)}) for x in (A, I) for ax in (0, -1)
      for o in (None, 2, 1, 0, 3, 0.5, -1, np.inf, -np.inf) for k in (False, True)],
    *[(np.linalg.norm, [x, K(o)], {}) for x in (A, SQUARE, V, F, J) for o in (None, 1, 2, -2, np.inf, -np.inf, "fro",
        "nuc", 3)],
    (np.linalg.norm, [CUBE], {}), (np.linalg.norm, [CUBE, K(2)], {}), (np.linalg.norm, [CUBE], {"axis": K((0, 2))}),
    (np.linalg.norm, [CUBE], {"axis": K((2, 0)), "ord": K(1)}),
    (np.linalg.norm, [CUBE], {"axis": K((0, 2)), "ord": K("nuc"), "keepdims": K(True)}),
    (np.linalg.norm, [A], {"keepdims": K(True)}), (np.linalg.norm, [2.5], {}), (np.linalg.vector_norm, [A], {}),
    (np.linalg.vector_norm, [A], {"axis": K(1), "ord": K(1)}), (np.linalg.matrix_norm, [STACK], {}),
    (np.linalg.matrix_norm, [A], {"ord": K(2)}),
]

LAYOUTS: list[Call] = [
    *[(np.roll, [x, s], o) for x in (A, V, I) for s in (1, K(-2), K(7)) for o in ({}, {"axis": K(0)},
        {"axis": K(-1)})],
    (np.roll, [A, K((1, -1))], {"axis": K((0, 1))}), (np.roll, [A, K(1)], {"axis": K((0, 1))}),
    *[(np.repeat, [x, n], o) for x in (A, V, J) for n in (2, K(0), K(3)) for o in ({}, {"axis": K(0)},
        {"axis": K(-1)})],
    (np.repeat, [V, K([1, 0, 2])], {}), (np.repeat, [A, np.array([2, 1])], {"axis": K(0)}),
    (np.repeat, [V, np.array([1, -1, 2])], {}),
    (np.repeat, [V, -1], {}), (np.repeat, [2.5, 3], {}), (np.repeat, [A, np.array([2])], {"axis": K(1)}),
    *[(np.tile, [x, n], {}) for x in (A, V, 2.5) for n in (2, K(0), K((2, 1)), (3, K(2)), K((2, 1, 2)))],
    *every([np.flipud, np.fliplr], [[A], [I], [V]]), *[(np.rot90, [A], {"k": K(k)}) for k in (-1, 0, 1, 2, 3)],
    (np.rot90, [CUBE, K(1), K((1, 2))], {}),
    *every([np.tril, np.triu], [[A], [I], [V], [CUBE], [M]], {}, {"k": K(1)}, {"k": K(-1)}),
    *every([np.diag], [[A], [V], [I], [M], [CUBE]], {}, {"k": K(1)}, {"k": K(-2)}), (np.diagflat, [A], {}),
    (np.split, [LONG, K(3)], {}), (np.split, [LONG, K(4)], {}), (np.split, [LONG, K([1, 4])], {}),
    (np.split, [A, K(3)], {"axis": K(1)}),
    (np.array_split, [LONG, K(4)], {}), (np.array_split, [A, K(2), K(1)], {}), (np.hsplit, [A, K(3)], {}),
    (np.vsplit, [A, K(2)], {}),
    (np.hsplit, [LONG, K(2)], {}), (np.vsplit, [LONG, K(2)], {}), (np.dsplit, [CUBE, K([1])], {}),
    (np.split, [LONG, K([-2, 9])], {}),
    (np.append, [A, V], {}), (np.append, [A, B], {"axis": K(0)}), (np.append, [V, 2], {}),
    (np.append, [A, V], {"axis": K(0)}),
    (np.insert, [V, K(1), 9.0], {}), (np.insert, [V, K(-1), 9], {}), (np.insert, [A, K(1), V], {"axis": K(0)}),
    (np.insert, [A, K(1), 5.0], {"axis": K(1)}), (np.insert, [J, K(3), 2.7], {}), (np.insert, [V, K(7), 1.0], {}),
    (np.delete, [V, K(1)], {}), (np.delete, [A, K([0, -1])], {"axis": K(1)}), (np.delete, [A, K(2)], {}),
    (np.delete, [V, K(5)], {}),
    (np.delete, [V, 1], {}), (np.delete, [V, -1], {}), (np.delete, [V, 3], {}), (np.delete, [A, 1], {"axis": K(0)}),
    *[(np.meshgrid, [V, F], {"indexing": K(i), "sparse": K(s)}) for i in ("xy", "ij") for s in (False, True)],
    (np.meshgrid, [V, F, J], {}), (np.meshgrid, [V], {}), (np.meshgrid, [V, 2.0], {}),
    (np.broadcast_arrays, [A, V, 2.0], {}), (np.column_stack, [[V, V]], {}), (np.column_stack, [(SQUARE, V)], {}),
    (np.dstack, [[A, B]], {}), (np.dstack, [[V, V]], {}), *every([np.atleast_3d], [[A], [V], [2.5], [CUBE]]),
    (np.rollaxis, [CUBE, K(2)], {}), (np.rollaxis, [CUBE, K(0), K(3)], {}),
    *[(np.pad, [x, K(w)], o) for x, w in ((V, 2), (A, ((1, 0), (2, 1))), (J, (1, 2))) for o in
      ({}, {"constant_values": 7}, {"mode": K("edge")}, {"mode": K("wrap")}, {"mode": K("reflect")},
          {"mode": K("symmetric")})],
]
