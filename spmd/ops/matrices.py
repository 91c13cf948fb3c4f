"""What the functions of matrices share: stacks of them as NumPy's linalg takes them, and rows that fail in one.

The invariant: of a stack in which some matrices fail, exactly these are reported, each with the exception that NumPy
raises for it alone; the others have the results that they have alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spmd.ir.build import Builder
from spmd.ir.core import Value
from spmd.ir.types import Num, Type
from spmd.ops.calculus import constant, lift, num
from spmd.ops.faults import blame
from spmd.ops.inference import agree, numbers
from spmd.ops.primitive import Faults, Site
from spmd.ops.shaping import every_row

Function = Callable[..., Any]
LinAlgError = np.linalg.LinAlgError


def square(name: str, types: Sequence[Type], count: int = 1) -> tuple[Num, ...]:
    """The operand types, the first of them a stack of square matrices. Raises as NumPy does."""
    found = numbers(name, types, count)
    matrices(name, *found)
    if not agree(found[0].shape[-1], found[0].shape[-2]):
        raise LinAlgError("Last 2 dimensions of the array must be square")
    return found


def matrices(name: str, *types: Num) -> None:
    """Check that the operands are stacks of matrices of floats."""
    for type_ in types:
        if type_.rank < 2:
            raise LinAlgError(f"{type_.rank}-dimensional array given. Array must be at least two-dimensional")
        if type_.dtype not in ("float32", "float64") or type_.dtype != types[0].dtype:
            raise TypeError(f"array type {type_.dtype} is unsupported in linalg")


def raising(types: Sequence[Type], attrs: dict[str, Any]) -> bool:
    """Matrices may be singular, unless that is known not to matter (`exact`)."""
    return not attrs.get("exact", False)


def rows_of(one: Function) -> Callable[[Site], Function]:
    """The rows rule of a function that NumPy computes of stacks: `one` is its rule for one example.

    With `exact` a matrix that fails gives NaN and is not reported.
    """

    def rows(site: Site) -> Function:
        attrs = {k: v for k, v in site.attrs.items() if k != "exact"}

        def run(*operands: Any, faults: Faults | None = None) -> Any:
            own = every_row(site, operands)
            count = len(own[0])
            if count > 1 and all(x.strides[0] == 0 for x in own):  # one matrix in all rows is worked on once
                own = [x[:1] for x in own]
            result, bad = tolerant(lambda *x: one(*x, **attrs), own)
            if result is None:
                inner = own[-1].shape[1:] if "exact" in site.attrs else (n or 0 for n in site.result.shape)
                result = np.full((len(own[0]), *inner), np.nan, site.result.dtype)
            if len(result) != count:
                result, bad = np.broadcast_to(result, (count, *result.shape[1:])), np.broadcast_to(bad, (count,))
            if faults is not None:
                blame(faults, bad, site, lambda *x, **given: one(*x, **attrs), operands)
            return result.astype(site.result.dtype, copy=False)

        return run

    return rows


def tolerant(function: Function, operands: Sequence[Any]) -> tuple[Any, Any]:
    """(results, rows that fail): NumPy raises for a whole stack, so a stack that fails is halved until the matrices at
    fault are alone. The result is None if all fail."""
    count = len(operands[0])
    bad = np.zeros(count, bool)
    try:
        return function(*operands), bad
    except LinAlgError:
        if count <= 1:
            return None, ~bad
    half = count // 2
    parts = [tolerant(function, [x[cut] for x in operands]) for cut in (slice(0, half), slice(half, count))]
    whole = next((found for found, _ in parts if found is not None), None)
    if whole is not None:
        filled = [
            np.full((len(rows), *whole.shape[1:]), np.nan, whole.dtype) if found is None else found
            for found, rows in parts
        ]
        whole = np.concatenate(filled)
    return whole, np.concatenate([rows for _, rows in parts])


def alone(one: Function) -> Function:
    """The one-example rule with `exact`: NaN where the matrix fails."""

    def apply(*operands: Any, exact: bool = False, **attrs: Any) -> Any:
        if not exact:
            return one(*operands, **attrs)
        try:
            return one(*operands, **attrs)
        except LinAlgError:
            return np.full(operands[-1].shape, np.nan, operands[-1].dtype)

    return apply


# ---------------------------------------------------------------------------------------------- building derivatives
def transposed(b: Builder, x: Value) -> Value:
    """The matrices of a stack transposed."""
    rank = num(x).rank
    return b.emit("transpose", x, perm=(*range(rank - 2), rank - 1, rank - 2))


def product(b: Builder, *factors: Value) -> Value:
    """The product of matrices whose sizes are known to fit; 0 times anything is 0."""
    result = factors[0]
    for factor in factors[1:]:
        exact = {} if num(result).static and num(factor).static else {"exact": True}
        result = b.emit("matmul", result, factor, strong=True, **exact)
    return result


def lower(b: Builder, x: Value, k: int = 0) -> Value:
    """The lower triangles of a stack."""
    return b.emit("triangle", x, k=k, lower=True)


def halved_diagonal(b: Builder, x: Value) -> Value:
    """The lower triangle, its diagonal halved."""
    both = b.emit("add", lower(b, x), lower(b, x, -1))
    return b.emit("mul", both, constant(b, 0.5, both))


def folded(b: Builder, x: Value) -> Value:
    """The cotangent of the lower triangle of which a function reads a symmetric matrix: each element below the diagonal
    stands for two."""
    return b.emit("add", lower(b, x), lower(b, transposed(b, x), -1))


def cut(b: Builder, x: Value, start: Any, stop: Any, axis: int) -> Value:
    """A stretch of one axis; ends are ints or int64 values."""
    type_ = num(x)
    if isinstance(start, int) and isinstance(stop, int) and type_.shape[axis] is not None:
        index = tuple((start, stop, 1) if k == axis else None for k in range(type_.rank))
        return b.emit("slice", x, index=index)
    ends = [b.const(np.int64(n)) if isinstance(n, int) else n for n in (start, stop)]
    size = stop - start if isinstance(start, int) and isinstance(stop, int) else None
    return b.emit("dynslice", x, *ends, axis=axis, step=1, size=size) if size is not None else b.emit(
        "dynslice", x, *ends, axis=axis, step=1)


def size_of(b: Builder, x: Value, axis: int) -> Any:
    """A size: an int where it is known, else an int64 value."""
    axis %= num(x).rank
    size = num(x).shape[axis]
    return size if size is not None else lift(b, b.emit("dim", x, axis=axis))
