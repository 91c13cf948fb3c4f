"""Decompositions of matrices: eigenvalues and -vectors of symmetric ones, QR, singular values.

The invariant: each gives one array that holds its factors one above the other (the call rules cut it), so that NumPy
decomposes once for all of them. Signs of vectors are LAPACK's. Derivatives assume distinct eigenvalues and full rank
where they need them; what does not depend on it is right without.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from spmd.ir.build import Builder
from spmd.ir.core import Op, Value
from spmd.ir.types import Num, Shape, Type
from spmd.ops.calculus import num, quotient, restored, scaled, strong
from spmd.ops.inference import numbers
from spmd.ops.linear_solvers import ALL, POSITIVE, STACK, A, B
from spmd.ops.matrices import cut, folded, lower, matrices, product, raising, rows_of, size_of, square, transposed
from spmd.ops.primitive import Primitive

RNG = np.random.default_rng(2)
TALL, TALLER, WIDE = RNG.standard_normal((4, 2)), RNG.standard_normal((4, 2)), RNG.standard_normal((2, 4))
SYMMETRIC = tuple(x + x.T for x in (A, B))


def _plus(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def least(a: int | None, b: int | None) -> int | None:
    """The smaller of two sizes, if they are known."""
    return None if a is None or b is None else min(a, b)


def _diagonal(b: Builder, values: Value, like: Value) -> Value:
    """The values on the diagonals of a stack of square matrices."""
    spread = restored(b, values, like, (num(like).rank - 2,), False)
    return _masked(b, spread)


def _masked(b: Builder, x: Value) -> Value:
    """The diagonals alone."""
    return lower(b, b.emit("triangle", x, k=0, lower=False))


def _columns(b: Builder, x: Value, factors: Value) -> Value:
    """Each column of the matrices times a number."""
    return strong(b, x, restored(b, factors, x, (num(x).rank - 2,), False))


def _gaps(b: Builder, values: Value, like: Value) -> Value:
    """values[j] - values[i] at [i, j]."""
    wide = restored(b, values, like, (num(like).rank - 2,), False)
    return b.emit("sub", wide, transposed(b, wide))


def _off_diagonal(b: Builder, x: Value, gaps: Value) -> Value:
    """x / gaps, 0 on the diagonal and where x is 0."""
    beside = b.emit("sub", x, _masked(b, x))
    return quotient(b, beside, gaps)


def _antisymmetric(b: Builder, x: Value) -> Value:
    return b.emit("sub", x, transposed(b, x))


# ---------------------------------------------------------------------------------------------------- eigenvalues
def _infer_eigh(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    (a,) = square("eigh", types)
    return Num(a.dtype, (*a.shape[:-2], _plus(a.shape[-2], 1), a.shape[-1]))


def _eigh(a: Any, upper: bool = False) -> Any:
    """A row of eigenvalues above the matrix of eigenvectors; `upper` says which triangle is read."""
    values, vectors = np.linalg.eigh(a, "U" if upper else "L")
    return np.concatenate([values[..., None, :], vectors], axis=-2)


def _eigh_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    """Giles, "An extended collection of matrix derivative results" (2008), section 3.1, of the triangle read."""
    w, v = eigen_parts(b, op.result)
    dw, dv = eigen_parts(b, ct)
    turned = _antisymmetric(b, product(b, transposed(b, v), dv))
    mixed = scaled(b, _off_diagonal(b, turned, _gaps(b, w, v)), 0.5)
    middle = b.emit("add", _diagonal(b, dw, v), mixed)
    ct_read = folded(b, product(b, v, middle, transposed(b, v)))
    return (transposed(b, ct_read) if op.attrs.get("upper") else ct_read,)


def eigen_parts(b: Builder, packed: Value) -> tuple[Value, Value]:
    """(eigenvalues, eigenvectors) of what `eigh` gives."""
    axis, size = num(packed).rank - 2, size_of(b, packed, -2)
    row = cut(b, packed, 0, 1, axis)
    return b.emit("sum", row, axes=(axis,), keepdims=False), cut(b, packed, 1, size, axis)


# ------------------------------------------------------------------------------------------------------------- QR
def _infer_qr(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    (a,) = numbers("qr", types, 1)
    matrices("qr", a)
    rows, columns = a.shape[-2:]
    if rows is not None and columns is not None and rows < columns:
        raise TypeError(f"'qr' takes no matrices wider than they are high: {a}")
    return Num(a.dtype, (*a.shape[:-2], _plus(rows, columns), columns))


def _qr(a: Any) -> Any:
    """Q above R."""
    return np.concatenate(np.linalg.qr(a), axis=-2)


def _qr_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    """Walter and Lehmann, "Algorithmic differentiation of linear algebra functions" (2010), section 3.2."""
    a = op.operands[0]
    q, r = qr_parts(b, op.result, a)
    dq, dr = qr_parts(b, ct, a)
    m = b.emit("sub", product(b, r, transposed(b, dr)), product(b, transposed(b, dq), q))
    mirrored = b.emit("add", lower(b, m), transposed(b, lower(b, m, -1)))
    total = b.emit("add", dq, product(b, q, mirrored))
    return (transposed(b, b.emit("solve", r, transposed(b, total), exact=True)),)


def qr_parts(b: Builder, packed: Value, a: Value) -> tuple[Value, Value]:
    """(Q, R) of what `qr` gives for `a`."""
    axis, rows = num(packed).rank - 2, size_of(b, a, -2)
    return cut(b, packed, 0, rows, axis), cut(b, packed, rows, size_of(b, packed, -2), axis)


# ------------------------------------------------------------------------------------------------- singular values
def _infer_svd(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    (a,) = numbers("svd", types, 1)
    matrices("svd", a)
    rows, columns = a.shape[-2:]
    height = None if rows is None or columns is None else 1 + rows + columns
    shape: Shape = (*a.shape[:-2], height, least(rows, columns))
    return Num(a.dtype, shape)


def _svd(a: Any) -> Any:
    """A row of singular values above U above V."""
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    return np.concatenate([s[..., None, :], u, np.swapaxes(vt, -1, -2)], axis=-2)


def _svd_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    """Townsend, "Differentiating the singular value decomposition" (2016)."""
    a = op.operands[0]
    s, u, v = svd_parts(b, op.result, a)
    ds, du, dv = svd_parts(b, ct, a)
    ut, vt = transposed(b, u), transposed(b, v)
    inner = product(b, ut, du)
    gaps = _gaps(b, b.emit("square", s), inner)
    left = _columns(b, _off_diagonal(b, _antisymmetric(b, inner), gaps), s)
    right = _off_diagonal(b, _antisymmetric(b, product(b, vt, dv)), gaps)
    right = transposed(b, _columns(b, transposed(b, right), s))
    middle = b.emit("add", _diagonal(b, ds, inner), b.emit("add", left, right))
    total = product(b, u, middle, vt)
    beside_u = _over(b, b.emit("sub", du, product(b, u, inner)), s)
    beside_v = _over(b, b.emit("sub", dv, product(b, v, vt, dv)), s)
    total = b.emit("add", total, product(b, beside_u, vt))
    return (b.emit("add", total, product(b, u, transposed(b, beside_v))),)


def _over(b: Builder, x: Value, s: Value) -> Value:
    """Each column of the matrices divided by a number, 0 where it is 0."""
    return quotient(b, x, restored(b, s, x, (num(x).rank - 2,), False))


def svd_parts(b: Builder, packed: Value, a: Value) -> tuple[Value, Value, Value]:
    """(singular values, U, V) of what `svd` gives for `a`."""
    axis, rows, height = num(packed).rank - 2, size_of(b, a, -2), size_of(b, packed, -2)
    end = rows + 1 if isinstance(rows, int) else b.emit("add", rows, b.const(np.int64(1)))
    values = b.emit("sum", cut(b, packed, 0, 1, axis), axes=(axis,), keepdims=False)
    return values, cut(b, packed, 1, end, axis), cut(b, packed, end, height, axis)


DECOMPOSITIONS: tuple[Primitive, ...] = (
    Primitive(
        "eigh", _infer_eigh, _eigh, rows_of(_eigh), _eigh_adjoint, raising,
        samples=(
            *(((a,), {}) for a in (*SYMMETRIC, *POSITIVE, A, ALL[3])), ((np.stack(SYMMETRIC),), {}),
            ((A,), {"upper": True}),
        ),
    ),
    Primitive(
        "qr", _infer_qr, _qr, rows_of(_qr), _qr_adjoint, raising,
        samples=(*(((a,), {}) for a in (A, B, TALL, TALLER)), ((STACK,), {})),
    ),
    Primitive(
        "svd", _infer_svd, _svd, rows_of(_svd), _svd_adjoint, raising,
        samples=(*(((a,), {}) for a in (A, B, TALL, TALLER, WIDE, ALL[3])), ((STACK,), {})),
    ),
)
