"""Matrix products, of stacks too.

The invariants: `matmul` is NumPy's, of any ranks above 0; over rows, a matrix that all rows share makes one product
over the rows (GEMM), whichever side it stands on. The derivative of matrix @ vector with respect to the matrix is an
`outer`, so that the backend can collect its two operands over rows instead of forming it for each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spmd.ir.build import Builder
from spmd.ir.core import Op, Value
from spmd.ir.types import Num, Shape, Type
from spmd.ops.calculus import dims_of, expanded, num, shaped, spread, strong
from spmd.ops.faults import blame
from spmd.ops.inference import agree, broadcast_shape, numbers, shown
from spmd.ops.primitive import Faults, Primitive, Site

RNG = np.random.default_rng(0)
M34, M43, M33, V3, V4 = (RNG.standard_normal(s) for s in ((3, 4), (4, 3), (3, 3), (3,), (4,)))
STACK, STACK2 = RNG.standard_normal((2, 3, 4)), RNG.standard_normal((2, 4, 2))


def _pair(name: str, types: Sequence[Type]) -> tuple[Num, Num]:
    a, b = numbers(name, types, 2)
    if a.dtype != b.dtype or a.python or b.python or a.text or b.text:
        raise TypeError(f"'{name}' needs arrays of one type, not {a}, {b}")
    return a, b


def _infer_matmul(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    a, b = _pair("matmul", types)
    for k, side in enumerate((a, b)):
        if not side.rank:
            raise ValueError(
                f"matmul: Input operand {k} does not have enough dimensions (has 0, gufunc core with signature "
                "(n?,k),(k,m?)->(n?,m?) requires 1)"
            )
    inner = b.shape[0] if b.rank == 1 else b.shape[-2]
    if not agree(a.shape[-1], inner):
        raise ValueError(
            f"matmul: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature "
            f"(n?,k),(k,m?)->(n?,m?) (size {inner} is different from {a.shape[-1]})"
        )
    stack: Shape = broadcast_shape(a.shape[:-2], b.shape[:-2])
    rows = a.shape[-2:-1] if a.rank > 1 else ()
    columns = b.shape[-1:] if b.rank > 1 else ()
    return Num(a.dtype, (*stack, *rows, *columns))


def _matmul(x: Any, y: Any, exact: bool = False, strong: bool = False) -> Any:
    """`strong`: 0 times anything is 0, as in the gradient of one factor of a product."""
    return _strong_product(np.matmul, x, y) if strong else np.matmul(x, y)


def _strong_product(product: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    """A product in which 0 times anything is 0. What is infinite or NaN stays so where it meets a number that is not 0:
    where it does is a product of the operands' patterns."""
    out = product(x, y)
    if np.isfinite(np.sum(out)):
        return out
    odd_x, odd_y = ~np.isfinite(x), ~np.isfinite(y)
    meets = product(odd_x.astype(out.dtype), (y != 0).astype(out.dtype))
    meets = meets + product((x != 0).astype(out.dtype), odd_y.astype(out.dtype))
    plain = product(np.where(odd_x, 0, x).astype(out.dtype), np.where(odd_y, 0, y).astype(out.dtype))
    return np.where(meets > 0, out, plain)[()]


def _raises_matmul(types: Sequence[Type], attrs: dict[str, Any]) -> bool:
    a, b = numbers("matmul", types)
    inner = b.shape[0] if b.rank == 1 else b.shape[-2]
    stacked = (a.rank > 2 or b.rank > 2) and None in a.shape[:-2] + b.shape[:-2]
    return not attrs.get("exact", False) and (a.shape[-1] is None or inner is None or stacked)


# ------------------------------------------------------------------------------------------------------- rows
def _flat_left(x: Any, w: Any) -> Any:
    """Rows of vectors or matrices times one matrix (or vector) for all: one product."""
    *lead, inner = x.shape
    return (x.reshape(math.prod(lead), inner) @ w).reshape(*lead, *w.shape[1:])


def _rows_shared_right(a: Num, b: Num) -> Callable[[Any, Any], Any]:
    if b.rank <= 2:
        return _flat_left if a.rank > 1 else (lambda x, w: x @ w)
    return _rows_general(a, b, (True, False))


def _rows_shared_left(a: Num, b: Num) -> Callable[[Any, Any], Any]:
    if b.rank == 1 and a.rank == 1:
        return lambda w, y: y @ w
    if b.rank == 1 and a.rank == 2:
        return lambda w, y: y @ w.T
    return _rows_general(a, b, (False, True))


def _rows_general(a: Num, b: Num, varying: tuple[bool, bool]) -> Callable[[Any, Any], Any]:
    """Stacks of matrices: vectors become matrices, and missing stack axes go behind the row axis."""
    stack = max(a.rank, b.rank, 2) - 2

    def run(x: Any, y: Any) -> Any:
        x = _aligned(x[..., None, :] if a.rank == 1 else x, max(a.rank, 2), stack, varying[0])
        y = _aligned(y[..., :, None] if b.rank == 1 else y, max(b.rank, 2), stack, varying[1])
        out = np.matmul(x, y)
        if b.rank == 1:
            out = out[..., 0]
        return out[..., 0] if a.rank == 1 and b.rank == 1 else (out[..., 0, :] if a.rank == 1 else out)

    return run


def _aligned(x: Any, rank: int, stack: int, varying: bool) -> Any:
    missing = stack - (rank - 2)
    if not missing or not varying:
        return x
    return x.reshape(x.shape[:1] + (1,) * missing + x.shape[1:])


def _rows_dot(a: Num, b: Num) -> Callable[[Any, Any], Any]:
    return lambda x, y: np.einsum("ki,ki->k", x, y)


def _product(site: Site) -> Callable[[Any, Any], Any]:
    a, b = site.types
    varying = tuple(site.varying)
    if varying == (True, False):
        return _rows_shared_right(a, b)
    if varying == (False, True):
        return _rows_shared_left(a, b)
    if varying == (True, True):
        return _rows_dot(a, b) if a.rank == b.rank == 1 else _rows_general(a, b, (True, True))
    return np.matmul


def _rows_matmul(site: Site) -> Callable[..., Any]:
    product = _product(site)
    if site.attrs.get("strong"):
        plain = product
        product = lambda x, y: _strong_product(plain, x, y)  # noqa: E731
    if not _raises_matmul(site.types, site.attrs):
        return lambda x, y, faults=None: product(x, y)

    def run(x: Any, y: Any, faults: Faults) -> Any:
        ax, ay = (v.shape[1:] if varying else v.shape for v, varying in zip((x, y), site.varying))
        if ax[-1] == (ay[0] if len(ay) == 1 else ay[-2]) and _broadcast(ax[:-2], ay[:-2]):
            return product(x, y)
        blame(faults, True, site, _matmul, (x, y))
        count = len(x) if site.varying[0] else len(y)
        if site.result.rank > 2:
            return np.zeros((count, *(n or 0 for n in site.result.shape)), x.dtype)
        return np.zeros((count, *ax[:-1], *ay[1:]), x.dtype)

    return run


def _broadcast(a: Shape, b: Shape) -> bool:
    """Whether two stacks fit together."""
    return all(m == n or 1 in (m, n) for m, n in zip(a[::-1], b[::-1]))


# ------------------------------------------------------------------------------------------------- derivatives
def swapped(b: Builder, x: Value) -> Value:
    """The matrices of a stack transposed."""
    rank = num(x).rank
    return b.emit("transpose", x, perm=(*range(rank - 2), rank - 1, rank - 2))


def _matmul_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    x, w = op.operands
    ranks = (num(x).rank, num(w).rank)
    if ranks == (1, 1):
        return strong(b, spread(b, ct, w), w), strong(b, spread(b, ct, x), x)
    if ranks == (2, 1):
        return b.emit("outer", ct, w, strong=True), _product_of(b, ct, x)
    if ranks == (1, 2):
        return _product_of(b, w, ct), b.emit("outer", x, ct, strong=True)
    if ranks == (2, 2):
        return _product_of(b, ct, swapped(b, w)), _product_of(b, swapped(b, x), ct)
    return _stacked_adjoint(b, x, w, ct)


def _product_of(b: Builder, x: Value, y: Value) -> Value:
    """A product with a cotangent, whose sizes are known to fit."""
    if num(x).static and num(y).static:
        return b.emit("matmul", x, y, strong=True)
    return b.emit("matmul", x, y, exact=True, strong=True)


def _stacked_adjoint(b: Builder, x: Value, w: Value, ct: Value) -> tuple[Value, Value]:
    """Stacks: a vector operand counts as a matrix of one row or column."""
    left = _with_axis(b, x, 0) if num(x).rank == 1 else x
    right = _with_axis(b, w, 1) if num(w).rank == 1 else w
    if num(w).rank == 1:
        ct = _with_axis(b, ct, num(ct).rank)
    if num(x).rank == 1:
        ct = _with_axis(b, ct, num(ct).rank - 1)
    dx = unstacked(b, _product_of(b, ct, swapped(b, right)), left)
    dw = unstacked(b, _product_of(b, swapped(b, left), ct), right)
    return shaped(b, dx, x), shaped(b, dw, w)


def _with_axis(b: Builder, x: Value, axis: int) -> Value:
    return expanded(b, x, (axis,), num(x).rank + 1)


def unstacked(b: Builder, ct: Value, like: Value) -> Value:
    """A cotangent summed over the stack axes along which `like` was broadcast."""
    extra = num(ct).rank - num(like).rank
    if not (num(ct).static and num(like).static):
        return b.emit("unbroadcast", ct, dims_of(b, like), shape=num(like).shape, extra=extra)
    if extra:
        ct = b.emit("sum", ct, axes=tuple(range(extra)), keepdims=False)
    wide = tuple(k for k, (m, n) in enumerate(zip(num(ct).shape, num(like).shape)) if n == 1 and m != 1)
    return b.emit("sum", ct, axes=wide, keepdims=True) if wide else ct


def _infer_outer(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    a, b = _pair("outer", types)
    if a.rank != 1 or b.rank != 1:
        raise TypeError(f"'outer' takes two vectors, not {shown(a.shape)} and {shown(b.shape)}")
    return Num(a.dtype, (a.shape[0], b.shape[0]))


def _outer(x: Any, y: Any, strong: bool = False) -> Any:
    """`strong`: 0 times anything is 0, as in the gradient of a weight that one of two vectors was multiplied by."""
    return _strong_zeros(np.outer(x, y), x[:, None], y) if strong else np.outer(x, y)


def _strong_zeros(product: Any, x: Any, y: Any) -> Any:
    return product if np.isfinite(product).all() else np.where((x == 0) | (y == 0), 0, product).astype(product.dtype)


def _rows_outer(site: Site) -> Callable[..., Any]:
    first, second = site.varying

    def run(x: Any, y: Any) -> Any:
        return (x[:, :, None] if first else x[:, None]) * (y[:, None, :] if second else y)

    def run_strong(x: Any, y: Any) -> Any:
        return _strong_zeros(run(x, y), x[:, :, None] if first else x[:, None], y[:, None, :] if second else y)

    return run_strong if site.attrs.get("strong") else run


def _outer_adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    x, y = op.operands
    return _product_of(b, ct, y), _product_of(b, x, ct)


PRODUCTS = (
    (V4, V4), (M34, V4), (V3, M34), (M34, M43), (M33, M33), (STACK, STACK2), (STACK, V4), (V3, STACK), (STACK, M43),
    (M34, STACK2), (M33, STACK),
)

LINALG: tuple[Primitive, ...] = (
    Primitive(
        "matmul", _infer_matmul, _matmul, _rows_matmul, _matmul_adjoint, _raises_matmul,
        samples=tuple((pair, {}) for pair in PRODUCTS) + (((np.array([1, 2]), np.array([[3, 4], [5, 6]])), {}),),
    ),
    Primitive(
        "outer", _infer_outer, _outer, _rows_outer, _outer_adjoint,
        samples=(((V3, V4), {}), ((np.array([0.0, 2.0]), np.array([np.nan, np.inf, 1.0])), {"strong": True})),
    ),
)
