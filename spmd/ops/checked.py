"""Python's arithmetic on rows: 64-bit checked integers and floats that raise.

The invariant: each function gives (result, bad): on rows where `bad` is False the result is exactly Python's; on the
others it is some harmless value, and nothing trapped. On one example, `fits` is what makes a Python int 64 bits wide.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

LOW, HIGH = -(2**63), 2**63 - 1
PLAIN = (bool, int, float)


def plain(value: Any) -> bool:
    """Whether a value is of a Python kind (a NumPy scalar is not, though np.float64 is a float)."""
    return type(value) in PLAIN


def fits(value: Any) -> Any:
    """The value; raises OverflowError for a Python int that has more than 64 bits."""
    if type(value) is int and not LOW <= value <= HIGH:
        raise OverflowError("the integer does not fit in 64 bits")
    return value


def kept(ufunc: Callable[..., Any]) -> Callable[..., Any]:
    """The ufunc, giving a Python scalar for Python scalars."""

    def apply(*operands: Any) -> Any:
        result = ufunc(*operands)
        return result.item() if plain(operands[0]) else result

    return apply


def _ints(*operands: Any) -> tuple[Any, ...]:
    return tuple(np.asarray(x, np.int64) for x in operands)


def add(a: Any, b: Any) -> tuple[Any, Any]:
    a, b = _ints(a, b)
    r = a + b
    return r, ((a ^ r) & (b ^ r)) < 0


def sub(a: Any, b: Any) -> tuple[Any, Any]:
    a, b = _ints(a, b)
    r = a - b
    return r, ((a ^ b) & (a ^ r)) < 0


def mul(a: Any, b: Any) -> tuple[Any, Any]:
    a, b = np.broadcast_arrays(*_ints(a, b))
    r = a * b
    bad = np.abs(a.astype(np.float64) * b.astype(np.float64)) >= 2.0**62
    if bad.any():
        exact = [int(x) * int(y) for x, y in zip(a[bad], b[bad])]
        bad[bad] = [not LOW <= p <= HIGH for p in exact]
    return r, bad


def neg(a: Any) -> tuple[Any, Any]:
    (a,) = _ints(a)
    return -a, a == LOW


def absolute(a: Any) -> tuple[Any, Any]:
    (a,) = _ints(a)
    return np.abs(a), a == LOW


def floordiv(a: Any, b: Any) -> tuple[Any, Any]:
    a, b = _ints(a, b)
    bad = (b == 0) | ((a == LOW) & (b == -1))
    return a // np.where(bad, 1, b), bad


def mod(a: Any, b: Any) -> tuple[Any, Any]:
    a, b = _ints(a, b)
    return a % np.where((b == 0) | (b == -1), 1, b), b == 0


def lshift(a: Any, n: Any) -> tuple[Any, Any]:
    a, n = _ints(a, n)
    shift = np.clip(n, 0, 63)
    r = a << shift
    return r, (n < 0) | ((r >> shift) != a) | ((n > 63) & (a != 0))


def rshift(a: Any, n: Any) -> tuple[Any, Any]:
    a, n = _ints(a, n)
    return a >> np.clip(n, 0, 63), n < 0


def div_float(a: Any, b: Any) -> tuple[Any, Any]:
    bad = np.equal(b, 0.0)
    return np.divide(a, np.where(bad, 1.0, b)), bad


def floordiv_float(a: Any, b: Any) -> tuple[Any, Any]:
    bad = np.equal(b, 0.0)
    return np.floor_divide(a, np.where(bad, 1.0, b)), bad


def mod_float(a: Any, b: Any) -> tuple[Any, Any]:
    bad = np.equal(b, 0.0)
    return np.mod(a, np.where(bad, 1.0, b)), bad


def pow_float(a: Any, b: Any) -> tuple[Any, Any]:
    r = np.power(a, b)
    overflow = np.isinf(r) & np.isfinite(a) & np.isfinite(b)
    undefined = np.isnan(r) & ~np.isnan(a) & ~np.isnan(b)
    return r, overflow | undefined


def square_float(a: Any) -> tuple[Any, Any]:
    r = np.square(a)
    return r, np.isinf(r) & np.isfinite(a)


def pow_integer(a: Any, b: Any) -> tuple[Any, Any]:
    """NumPy's integer power: a negative exponent raises."""
    bad = np.less(b, 0)
    return np.power(a, np.where(bad, np.zeros_like(b), b)), bad


def defined(result: Any, *operands: Any) -> Any:
    """The rows where an elementary function of Python's math module raises: NaN of numbers, infinity of finite ones."""
    number, finite = ~np.isnan(operands[0]), np.isfinite(operands[0])
    for x in operands[1:]:
        number, finite = number & ~np.isnan(x), finite & np.isfinite(x)
    return (np.isnan(result) & number) | (np.isinf(result) & finite)


def to_int(a: Any) -> tuple[Any, Any]:
    bad = ~((a >= -(2.0**63)) & (a < 2.0**63))
    return np.where(bad, 0.0, a).astype(np.int64), bad
