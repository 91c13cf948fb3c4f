"""numpy.linalg, as primitives.

The invariant: what comes here is what NumPy takes (numbers become floats, stacks are broadcast), results have NumPy's
classes (EighResult, ...), and what gives complex numbers or sizes that depend on values is refused.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from spmd.ir.build import Builder
from spmd.ir.core import Value
from spmd.ops.arguments import array, bind, needed, sequence, static_bool, static_int
from spmd.ops.calculus import constant, num, restored
from spmd.ops.decompositions import eigen_parts, qr_parts, svd_parts
from spmd.ops.inference import agree, broadcast_shape
from spmd.ops.matrices import LinAlgError, cut, transposed
from spmd.ops.numpy_contractions import dot
from spmd.ops.numpy_elementwise import Rule
from spmd.ops.numpy_shapes import with_axes
from spmd.ops.operators import binary, matrix_product
from spmd.ops.primitive import Refusal
from spmd.ops.promotion import broadcast_to_shape, cast, constant_of

_ONE = np.eye(1)
EighResult: Any = type(np.linalg.eigh(_ONE))
QRResult: Any = type(np.linalg.qr(_ONE))
SVDResult: Any = type(np.linalg.svd(_ONE))
SlogdetResult: Any = type(np.linalg.slogdet(_ONE))


def floats(b: Builder, x: Value) -> Value:
    """The array in the dtype that linalg computes in. Raises as NumPy does."""
    if num(x).kind in "biu":
        return cast(b, x, "float64")
    if num(x).dtype == "float16":
        raise TypeError("array type float16 is unsupported in linalg")
    return x


def matrix(b: Builder, x: Any) -> Value:
    """An argument that is a matrix or a stack of them."""
    value = floats(b, array(b, x))
    if num(value).rank < 2:
        raise LinAlgError(f"{num(value).rank}-dimensional array given. Array must be at least two-dimensional")
    return value


def _one(title: str, names: str, args: list[Any], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    bound = bind(title, names, args, kwargs)
    (x,) = needed(title, bound, names.split()[0])
    return x, bound


def _flag(b: Builder, title: str, bound: dict[str, Any], name: str, default: bool) -> bool:
    return static_bool(b, title, name, bound.get(name, default))


# --------------------------------------------------------------------------------------------------------- systems
def _solve(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("np.linalg.solve", "a b", args, kwargs)
    a, right = (floats(b, array(b, x)) for x in needed("np.linalg.solve", bound, "a", "b"))
    a = matrix(b, a)
    if not agree(num(a).shape[-1], num(a).shape[-2]):
        raise LinAlgError("Last 2 dimensions of the array must be square")
    dtype = str(np.promote_types(num(a).dtype, num(right).dtype))
    a, right = cast(b, a, dtype), cast(b, right, dtype)
    vector = num(right).rank == 1
    if not num(right).rank:
        raise ValueError("solve: Input operand 1 does not have enough dimensions (has 0, gufunc core with signature "
                         "(m,m),(m,n)->(m,n) requires 2)")
    if vector:
        right = with_axes(b, right, [1])
    a, right = _stacked(b, a, right)
    found = b.emit("solve", a, right)
    if not vector:
        return found
    return b.emit("sum", found, axes=(num(found).rank - 1,), keepdims=False)


def _stacked(b: Builder, *values: Value) -> list[Value]:
    """Stacks of matrices with their stack axes broadcast."""
    stacks = [num(v).shape[:-2] for v in values]
    if all(s == stacks[0] for s in stacks) and None not in stacks[0]:
        return list(values)
    stack = functools.reduce(broadcast_shape, stacks)
    if None in stack or any(None in num(v).shape for v in values):
        raise Refusal("stacks of matrices whose sizes differ between examples are not supported in np.linalg.solve")
    return [broadcast_to_shape(b, v, (*stack, *num(v).shape[-2:])) for v in values]


def _inv(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    x, _ = _one("np.linalg.inv", "a", args, kwargs)
    return b.emit("inv", matrix(b, x))


def _pinv(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    x, bound = _one("np.linalg.pinv", "a rcond hermitian rtol", args, kwargs)
    limit = bound.get("rcond") if bound.get("rcond") is not None else bound.get("rtol")
    rcond = constant_of(b, limit)
    if rcond is not None and not isinstance(rcond, (int, float)) or limit is not None and rcond is None:
        raise Refusal("rcond of np.linalg.pinv must be a constant")
    hermitian = _flag(b, "np.linalg.pinv", bound, "hermitian", False)
    if hermitian:
        raise Refusal("the argument 'hermitian' of np.linalg.pinv is not supported")
    return b.emit("pinv", matrix(b, x), **({} if rcond is None else {"rcond": float(rcond)}))


def _det(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    x, _ = _one("np.linalg.det", "a", args, kwargs)
    return b.emit("det", matrix(b, x))


def _slogdet(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Any:
    x, _ = _one("np.linalg.slogdet", "a", args, kwargs)
    both = b.emit("slogdet", matrix(b, x))
    axis = num(both).rank - 1
    return SlogdetResult(*(
        b.emit("sum", cut(b, both, k, k + 1, axis), axes=(axis,), keepdims=False) for k in (0, 1)
    ))


def _cholesky(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    x, bound = _one("np.linalg.cholesky", "a upper", args, kwargs)
    a = matrix(b, x)
    if not _flag(b, "np.linalg.cholesky", bound, "upper", False):
        return b.emit("cholesky", a)
    return transposed(b, b.emit("cholesky", transposed(b, a)))


# -------------------------------------------------------------------------------------------------- decompositions
def _symmetric(b: Builder, title: str, x: Any, bound: dict[str, Any]) -> tuple[Value, Value]:
    """(eigenvalues, eigenvectors) of a matrix of which one triangle is read."""
    side = bound.get("UPLO", "L")
    if not isinstance(side, str):
        raise Refusal(f"UPLO of {title} must be a constant")
    if side.upper() not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    upper = {} if side.upper() == "L" else {"upper": True}
    return eigen_parts(b, b.emit("eigh", matrix(b, x), **upper))


def _eigh(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Any:
    x, bound = _one("np.linalg.eigh", "a UPLO", args, kwargs)
    return EighResult(*_symmetric(b, "np.linalg.eigh", x, bound))


def _eigvalsh(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    x, bound = _one("np.linalg.eigvalsh", "a UPLO", args, kwargs)
    return _symmetric(b, "np.linalg.eigvalsh", x, bound)[0]


def _qr(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Any:
    x, bound = _one("np.linalg.qr", "a mode", args, kwargs)
    a, mode = matrix(b, x), bound.get("mode", "reduced")
    rows, columns = num(a).shape[-2:]
    if mode not in ("reduced", "r") and not (mode == "complete" and rows == columns):
        raise Refusal(f"mode={mode!r} of np.linalg.qr is not supported", "use mode='reduced' or 'r'.")
    if rows is None or columns is None:
        raise Refusal("np.linalg.qr needs matrices whose sizes are known")
    q, r = _wide_qr(b, a) if rows < columns else qr_parts(b, b.emit("qr", a), a)
    return r if mode == "r" else QRResult(q, r)


def _wide_qr(b: Builder, a: Value) -> tuple[Value, Value]:
    """Of a matrix that is wider than high: its first columns are decomposed, the others turned."""
    rank, (rows, columns) = num(a).rank, num(a).shape[-2:]
    square = cut(b, a, 0, rows, rank - 1)
    q, r = qr_parts(b, b.emit("qr", square), square)
    rest = matrix_product(b, transposed(b, q), cut(b, a, rows, columns, rank - 1))
    return q, b.emit("concat", r, rest, axis=rank - 1)


def _svd(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Any:
    title = "np.linalg.svd"
    x, bound = _one(title, "a full_matrices compute_uv hermitian", args, kwargs)
    a = matrix(b, x)
    if _flag(b, title, bound, "hermitian", False):
        raise Refusal("the argument 'hermitian' of np.linalg.svd is not supported")
    if not _flag(b, title, bound, "compute_uv", True):
        return singular_values(b, a)
    rows, columns = num(a).shape[-2:]
    if _flag(b, title, bound, "full_matrices", True) and (rows is None or rows != columns):
        raise Refusal("np.linalg.svd of matrices that are not square gives no full matrices here",
                      "pass full_matrices=False.")
    s, u, v = svd_parts(b, b.emit("svd", a), a)
    return SVDResult(u, s, transposed(b, v))


def singular_values(b: Builder, a: Value) -> Value:
    """The singular values of a stack, the largest first."""
    return svd_parts(b, b.emit("svd", a), a)[0]


def _svdvals(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    x, _ = _one("np.linalg.svdvals", "x", args, kwargs)
    return singular_values(b, matrix(b, x))


def _rank(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    x, _ = _one("np.linalg.matrix_rank", "A -tol -hermitian -rtol", args, kwargs)
    a = matrix(b, x)
    rows, columns = num(a).shape[-2:]
    if rows is None or columns is None:
        raise Refusal("np.linalg.matrix_rank needs sizes that are known")
    s = singular_values(b, a)
    last = num(s).rank - 1
    top = b.emit("max", s, axes=(last,), keepdims=True)
    limit = b.emit("mul", top, constant(b, max(rows, columns) * float(np.finfo(num(a).dtype).eps), top))
    above = b.emit("gt", s, restored(b, limit, s, (last,), True))
    return b.emit("sum", cast(b, above, "int64"), axes=(last,), keepdims=False)


def _cond(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    x, bound = _one("np.linalg.cond", "x p", args, kwargs)
    p, a = constant_of(b, bound.get("p")), matrix(b, x)
    if p not in (None, 2, -2):
        raise Refusal("np.linalg.cond is supported for p=2 and -2 alone")
    s = singular_values(b, a)
    last = num(s).rank - 1
    top, low = (b.emit(name, s, axes=(last,), keepdims=False) for name in ("max", "min"))
    ratio = binary(b, "/", top, low) if p in (None, 2) else binary(b, "/", low, top)
    infinite = constant(b, np.inf, ratio)
    return b.emit("where", b.emit("isnan", ratio), infinite, ratio)


# ------------------------------------------------------------------------------------------------ powers and chains
def _power(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    x, bound = _one("np.linalg.matrix_power", "a n", args, kwargs)
    n = static_int(b, "np.linalg.matrix_power", "the exponent", *needed("np.linalg.matrix_power", bound, "n"))
    a = array(b, x)
    if num(a).rank < 2 or not agree(num(a).shape[-1], num(a).shape[-2]):
        raise LinAlgError("Last 2 dimensions of the array must be square")
    if None in num(a).shape[-2:]:
        raise Refusal("np.linalg.matrix_power needs matrices whose sizes are known")
    if n < 0:
        a, n = b.emit("inv", floats(b, a)), -n
    if n == 0:
        one = b.emit("triangle", constant(b, 1, a), k=0, lower=True)
        return b.emit("triangle", one, k=0, lower=False)
    result: Value | None = None
    while n:
        if n & 1:
            result = a if result is None else matrix_product(b, result, a)
        n >>= 1
        a = matrix_product(b, a, a) if n else a
    assert result is not None
    return result


def _multi_dot(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    x, _ = _one("np.linalg.multi_dot", "arrays -out", args, kwargs)
    return functools.reduce(lambda p, q: dot(b, p, q), sequence(b, "np.linalg.multi_dot", x))


def _matrix_transpose(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    x, _ = _one("np.matrix_transpose", "x", args, kwargs)
    value = array(b, x)
    if num(value).rank < 2:
        raise ValueError(f"Input array must be at least 2-dimensional, but it is {num(value).rank}")
    return transposed(b, value)


def refused(title: str, why: str, hint: str) -> Rule:
    """A function that is known here, and why it does not run."""

    def rule(b: Builder, args: Sequence[Any], kwargs: dict[str, Any]) -> Value:
        raise Refusal(f"{title} {why}", hint)

    return rule


COMPLEX = "gives complex numbers, which are not supported"

LINALG_CALLS: dict[Any, Rule] = {
    np.linalg.solve: _solve,
    np.linalg.inv: _inv,
    np.linalg.pinv: _pinv,
    np.linalg.det: _det,
    np.linalg.slogdet: _slogdet,
    np.linalg.cholesky: _cholesky,
    np.linalg.eigh: _eigh,
    np.linalg.eigvalsh: _eigvalsh,
    np.linalg.qr: _qr,
    np.linalg.svd: _svd,
    np.linalg.svdvals: _svdvals,
    np.linalg.matrix_rank: _rank,
    np.linalg.cond: _cond,
    np.linalg.matrix_power: _power,
    np.linalg.multi_dot: _multi_dot,
    np.matrix_transpose: _matrix_transpose,
    np.linalg.matrix_transpose: _matrix_transpose,
    np.linalg.eig: refused("np.linalg.eig", COMPLEX, "use np.linalg.eigh for symmetric matrices."),
    np.linalg.eigvals: refused("np.linalg.eigvals", COMPLEX, "use np.linalg.eigvalsh for symmetric matrices."),
    np.linalg.lstsq: refused(
        "np.linalg.lstsq", "gives residuals whose number depends on the rank", "use np.linalg.pinv(a) @ b."
    ),
}
