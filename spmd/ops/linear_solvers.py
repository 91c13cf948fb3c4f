"""Linear systems: solve, inverse, determinants, Cholesky factors, pseudo-inverse.

The invariants: operands are stacks of matrices with equal stack axes; a singular matrix raises LinAlgError for its
example alone. Derivatives are with respect to the elements that NumPy reads: of a symmetric matrix, its lower triangle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spmd.ir.build import Builder
from spmd.ir.core import Op, Value
from spmd.ir.types import Num, Type
from spmd.ops.calculus import num, restored, spread, strong
from spmd.ops.inference import agree, numbers
from spmd.ops.matrices import (
    alone,
    cut,
    folded,
    halved_diagonal,
    matrices,
    product,
    raising,
    rows_of,
    square,
    transposed,
)
from spmd.ops.primitive import Primitive, Site

RNG = np.random.default_rng(1)
A, B = RNG.standard_normal((3, 3)) + 2 * np.eye(3), RNG.standard_normal((3, 3)) - 2 * np.eye(3)
RIGHT, OTHER = RNG.standard_normal((3, 2)), RNG.standard_normal((3, 2))
SINGULAR, POISONED = np.ones((3, 3)), np.full((3, 3), np.nan)
ALL = (A, B, SINGULAR, POISONED)
STACK = np.stack([A, B])
POSITIVE = tuple(x @ x.T + np.eye(3) for x in (A, B))
TALL = RNG.standard_normal((4, 2))


# --------------------------------------------------------------------------------------------------------- solve
def _infer_solve(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    a, right = square("solve", types, 2)
    matrices("solve", a, right)
    if a.shape[:-2] != right.shape[:-2]:
        raise TypeError(f"'solve' needs equal stacks, not {a} and {right}")
    if not agree(a.shape[-1], right.shape[-2]):
        raise ValueError(
            "solve: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature "
            f"(m,m),(m,n)->(m,n) (size {right.shape[-2]} is different from {a.shape[-1]})"
        )
    return right


def _solve(a: Any, right: Any) -> Any:
    return np.linalg.solve(a, right)


def _rows_solve(site: Site) -> Callable[..., Any]:
    general = rows_of(_solve)(site)
    if site.varying != (False, True) or site.types[0].rank != 2:
        return general

    def shared(a: Any, right: Any, faults: Any = None) -> Any:
        """One matrix for all rows is factorised once."""
        count, n, k = right.shape
        try:
            found = np.linalg.solve(a, right.transpose(1, 0, 2).reshape(n, count * k))
        except np.linalg.LinAlgError:
            return general(a, right, faults=faults)
        return found.reshape(n, count, k).transpose(1, 0, 2)

    return shared


def _solve_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    right = b.emit("solve", transposed(b, op.operands[0]), ct, exact=True)
    return b.emit("neg", product(b, right, transposed(b, op.result))), right


# ------------------------------------------------------------------------------------------------------- inverses
def _infer_square(name: str) -> Callable[[Sequence[Type], dict[str, Any]], Num]:
    return lambda types, attrs: square(name, types)[0]


def _inv(a: Any) -> Any:
    return np.linalg.inv(a)


def _inv_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    back = transposed(b, op.result)
    return (b.emit("neg", product(b, back, ct, back)),)


def _infer_pinv(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    (a,) = numbers("pinv", types, 1)
    matrices("pinv", a)
    return Num(a.dtype, (*a.shape[:-2], a.shape[-1], a.shape[-2]))


def _pinv(a: Any, rcond: float | None = None, hermitian: bool = False) -> Any:
    return np.linalg.pinv(a, rcond, hermitian)


def _pinv_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    """Of matrices of constant rank (Golub and Pereyra, "The differentiation of pseudo-inverses", 1973)."""
    a, p = op.operands[0], op.result
    pt, ctt = transposed(b, p), transposed(b, ct)
    inner = product(b, pt, ct, pt)
    left = product(b, ctt, p, pt)
    left = b.emit("sub", left, product(b, a, p, left))
    right = product(b, pt, p, ctt)
    right = b.emit("sub", right, product(b, right, p, a))
    return (b.emit("sub", b.emit("add", left, right), inner),)


# ---------------------------------------------------------------------------------------------------- determinants
def _infer_det(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    (a,) = square("det", types)
    return Num(a.dtype, a.shape[:-2])


def _spread(b: Builder, value: Value, like: Value) -> Value:
    """A number for each matrix, in all its elements."""
    rank = num(like).rank
    return restored(b, value, like, (rank - 2, rank - 1), False) if num(value).rank else spread(b, value, like)


def _det_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    a = op.operands[0]
    return (strong(b, _spread(b, ct, a), b.emit("cofactors", a)),)


def cofactors(a: Any) -> Any:
    """The derivative of the determinant, of singular matrices too: from singular values, whose products without one of
    them exist where inverses do not."""
    n = a.shape[-1]
    if n == 0:
        return np.zeros_like(a)
    finite = np.isfinite(a).all((-2, -1), keepdims=True)
    u, s, vt = np.linalg.svd(np.where(finite, a, np.zeros((), a.dtype)))
    others = np.ones_like(s)
    for k in range(n):
        others[..., k] = np.delete(s, k, axis=-1).prod(-1)
    sign = np.linalg.det(u) * np.linalg.det(vt)
    found = np.rint(sign)[..., None, None] * np.matmul(u * others[..., None, :], vt)
    return np.where(finite, found, np.nan).astype(a.dtype)


def _cofactors_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    """C = det(A) * inv(A).T; of singular matrices this derivative is not known here, and NaN."""
    a, c = op.operands[0], op.result
    rank = num(a).rank
    inverse = b.emit("inv", a, exact=True)
    back = transposed(b, inverse)
    inner = b.emit("sum", strong(b, ct, c), axes=(rank - 2, rank - 1), keepdims=False)
    first = strong(b, _spread(b, inner, a), back)
    return (b.emit("sub", first, product(b, c, transposed(b, ct), back)),)


def _infer_slogdet(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    (a,) = square("slogdet", types)
    return Num(a.dtype, (*a.shape[:-2], 2))


def _slogdet(a: Any) -> Any:
    """(sign, logarithm) side by side."""
    return np.stack(np.linalg.slogdet(a), axis=-1)


def _slogdet_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    a = op.operands[0]
    axis = num(ct).rank - 1
    log = b.emit("sum", cut(b, ct, 1, 2, axis), axes=(axis,), keepdims=False)
    return (strong(b, _spread(b, log, a), transposed(b, b.emit("inv", a, exact=True))),)


# ------------------------------------------------------------------------------------------------------- Cholesky
def _cholesky(a: Any) -> Any:
    return np.linalg.cholesky(a)


def _cholesky_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    """Murray, "Differentiation of the Cholesky decomposition" (2016), section 3.1."""
    back = transposed(b, op.result)
    middle = halved_diagonal(b, product(b, back, ct))
    half = b.emit("solve", back, middle, exact=True)
    whole = transposed(b, b.emit("solve", back, transposed(b, half), exact=True))
    doubled = folded(b, whole)
    return (doubled,)


LINEAR_SOLVERS: tuple[Primitive, ...] = (
    Primitive(
        "solve", _infer_solve, alone(_solve), _rows_solve, _solve_adjoint, raising,
        samples=(
            *(((a, right), {}) for a in ALL for right in (RIGHT, OTHER)),
            ((STACK, np.stack([RIGHT, OTHER])), {}),
            ((SINGULAR, RIGHT), {"exact": True}), ((A, RIGHT), {"exact": True}),
        ),
    ),
    Primitive(
        "inv", _infer_square("inv"), alone(_inv), rows_of(_inv), _inv_adjoint, raising,
        samples=(*(((a,), {}) for a in ALL), ((STACK,), {}), ((SINGULAR,), {"exact": True})),
    ),
    Primitive(
        "pinv", _infer_pinv, alone(_pinv), rows_of(_pinv), _pinv_adjoint, raising,
        samples=(((TALL,), {}), ((TALL.T.copy(),), {}), ((STACK,), {}), ((POISONED,), {}), ((A,), {})),
    ),
    Primitive(
        "det", _infer_det, lambda a: np.linalg.det(a), lambda site: lambda a: np.asarray(np.linalg.det(a)),
        _det_adjoint,
        samples=(*(((a,), {}) for a in (A, B, POISONED)), ((STACK,), {})),
    ),
    Primitive(
        "cofactors", _infer_square("cofactors"), cofactors, lambda site: cofactors, _cofactors_adjoint,
        samples=(*(((a,), {}) for a in (A, B, POISONED)), ((STACK,), {}), ((A[:1, :1],), {})),
    ),
    Primitive(
        "slogdet", _infer_slogdet, _slogdet, lambda site: _slogdet, _slogdet_adjoint,
        samples=(*(((a,), {}) for a in ALL), ((STACK,), {})),
    ),
    Primitive(
        "cholesky", _infer_square("cholesky"), alone(_cholesky), rows_of(_cholesky), _cholesky_adjoint, raising,
        samples=(*(((a,), {}) for a in (*POSITIVE, -np.eye(3), POISONED)), ((np.stack(POSITIVE),), {})),
    ),
)
