"""Number theory on integers: gcd and lcm of both kinds, and what math computes of Python ints alone.

The invariant: of Python ints the result is exact or OverflowError, as everywhere; of NumPy integers it is the ufunc's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from spmd.ir.types import INT, Num
from spmd.ops import checked as python
from spmd.ops.checked import HIGH, LOW, fits, plain
from spmd.ops.elementwise import raises_on_python
from spmd.ops.faults import blame, checked
from spmd.ops.inference import elementwise, numbers
from spmd.ops.primitive import Faults, Primitive, Samples, Site

PAIRS: Samples = (
    ((np.array([12, -7, 0]), np.array([18, 21, 0])), {}), ((np.int32(6), np.int32(4)), {}),
    *(((a, b), {}) for a in (12, -8, 0, LOW, HIGH, 2**40) for b in (18, 0, LOW, 2**41 - 1)),
)
CHOICES: Samples = tuple(
    ((n, k), {}) for n in (5, 0, -1, 66, 10**6, 70, HIGH) for k in (2, 0, -3, 33, 9, 35, HIGH)
)
COUNTS: Samples = tuple(((n,), {}) for n in (0, 1, 5, 20, 21, -1, HIGH))
SQUARES: Samples = tuple(((n,), {}) for n in (0, 1, 15, 16, 17, -1, HIGH, 3037000499**2, 3037000499**2 - 1, 2**53 + 1))


def _pair(name: str, ufunc: np.ufunc, function: Callable[..., int], compute: Callable[..., Any]) -> Primitive:
    def numpy(a: Any, b: Any) -> Any:
        return fits(function(a, b)) if plain(a) else ufunc(a, b)

    def rows(site: Site) -> Callable[..., Any]:
        return checked(site, numpy, compute) if site.types[0].python else lambda a, b: ufunc(a, b)

    return Primitive(name, elementwise(name, 2, "iu"), numpy, rows, raises=raises_on_python("i"), pointwise=True,
                     samples=PAIRS)


def _gcd(a: Any, b: Any) -> tuple[Any, Any]:
    found = np.gcd(a, b)
    return found, found < 0  # 2**63, which does not fit


def _lcm(a: Any, b: Any) -> tuple[Any, Any]:
    """|a| / gcd * |b|; where both are as small as can be, these magnitudes are not numbers of 64 bits themselves."""
    common = np.gcd(a, b)
    part = np.floor_divide(a, np.where(common == 0, 1, common))
    found, bad = python.mul(part, b)
    return np.abs(found), bad | (found == LOW)


def _exactly(function: Callable[..., int], beyond: Callable[..., bool]) -> Callable[..., Any]:
    """The function of Python ints, without computing what has too many digits anyway."""

    def numpy(*operands: int) -> int:
        if beyond(*operands):
            raise OverflowError("the integer does not fit in 64 bits")
        return fits(function(*operands))

    return numpy


def _one_by_one(numpy: Callable[..., Any]) -> Callable[[Site], Any]:
    """NumPy has no such function of arrays: Python's is called for each element."""

    def value(*operands: Any) -> Any:
        try:
            return numpy(*(int(x) for x in operands))
        except (ValueError, OverflowError):
            return None

    def compute(*operands: Any) -> tuple[Any, Any]:
        found = np.asarray(np.frompyfunc(value, len(operands), 1)(*operands), object)
        bad = np.frompyfunc(lambda x: x is None, 1, 1)(found).astype(bool)
        return np.where(bad, 0, found).astype(np.int64), bad

    return lambda site: checked(site, numpy, compute)


def _isqrt(n: Any) -> tuple[Any, Any]:
    bad = n < 0
    root = np.minimum(np.sqrt(np.where(bad, 0, n).astype(np.float64)).astype(np.int64), 3037000499)
    root = root - (root * root > n)
    return root + ((root < 3037000499) & ((root + 1) * (root + 1) <= n)), bad


def _rows_isqrt(site: Site) -> Callable[..., Any]:
    return checked(site, math.isqrt, lambda n: _isqrt(np.asarray(n)))


def _of_ints(name: str, arity: int) -> Callable[..., Num]:
    def infer(types: Any, attrs: dict[str, Any]) -> Num:
        if any(t != INT for t in numbers(name, types, arity)):
            raise TypeError(f"'{name}' takes Python ints, not {', '.join(map(str, types))}")
        return INT

    return infer


def _counted(name: str, function: Callable[..., int], beyond: Callable[..., bool], samples: Samples) -> Primitive:
    numpy = _exactly(function, beyond)
    return Primitive(
        name, _of_ints(name, len(samples[0][0])), numpy, _one_by_one(numpy), raises=lambda types, attrs: True,
        samples=samples,
    )


# ---------------------------------------------------------------------------------------------- sums and products
def _infer_product(types: Any, attrs: dict[str, Any]) -> Num:
    (x,) = numbers("product_of_ints", types, 1)
    if x.dtype != "int64" or x.rank != 1:
        raise TypeError(f"'product_of_ints' takes a vector of int64, not {x}")
    return INT


def _product(x: Any) -> int:
    return fits(math.prod(int(n) for n in x))


def _rows_product(site: Site) -> Callable[..., Any]:
    """Element by element for all rows; rows that overflowed on the way are looked at again, digit by digit."""

    def run(x: Any, faults: Faults) -> Any:
        total, bad = np.ones(len(x), np.int64), np.zeros(len(x), bool)
        for k in range(x.shape[1]):
            total, over = python.mul(total, x[:, k])
            bad |= over
        for row in np.flatnonzero(bad):
            found = math.prod(int(n) for n in x[row])
            if LOW <= found <= HIGH:
                total[row], bad[row] = found, False
        blame(faults, bad, site, _product, (x,))
        return total

    return run


INTEGERS: tuple[Primitive, ...] = (
    _pair("gcd", np.gcd, math.gcd, _gcd),
    _pair("lcm", np.lcm, math.lcm, _lcm),
    Primitive(
        "isqrt", _of_ints("isqrt", 1), math.isqrt, _rows_isqrt, raises=lambda types, attrs: True, samples=SQUARES
    ),
    _counted("factorial", math.factorial, lambda n: n > 20, COUNTS),
    _counted("comb", math.comb, lambda n, k: min(k, n - k) >= 34, CHOICES),
    _counted("perm", math.perm, lambda n, k: 20 < k <= n, CHOICES),
    Primitive(
        "product_of_ints", _infer_product, _product, _rows_product, raises=lambda types, attrs: True,
        samples=tuple(((np.array(x),), {}) for x in ([2, 3, -4], [2**40, 2**40, 0], [2**40, 2**40, 1], [2**62, 2, -1]))
        + (((np.zeros(0, np.int64),), {}),),
    ),
)
