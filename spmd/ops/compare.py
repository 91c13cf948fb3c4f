"""Comparisons, logic, bits and float predicates. None of them has a derivative.

The invariant: results are bool (Python's for Python kinds and strings), except for the bit operations, which keep the
integer type of their operands; bools use the logical forms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from spmd.ops import checked as python
from spmd.ops.checked import fits, kept, plain
from spmd.ops.elementwise import raises_on_python, rows_of
from spmd.ops.inference import elementwise
from spmd.ops.primitive import Primitive, Samples

PAIRS: Samples = (
    ((np.array([1.0, np.nan, -2.0]), np.array([1.0, 2.0, np.inf])), {}),
    ((np.float64(2.0), np.float64(2.0)), {}),
    ((np.int32(3), np.int32(-4)), {}),
    ((3, 4), {}),
    ((4, 4), {}),
    ((1.5, 1.0), {}),
    ((True, False), {}),
)
BOOLS: Samples = (
    ((np.array([True, True, False, False]), np.array([True, False, True, False])), {}),
    ((np.True_, np.False_), {}),
    ((True, True), {}),
    ((True, False), {}),
)
INTS: Samples = (
    ((np.array([12, -7]), np.array([10, 3])), {}),
    ((np.int32(6), np.int32(3)), {}),
    ((6, 3), {}),
    ((-5, 1), {}),
)
SHIFTS: Samples = (
    ((np.array([12, -7]), np.array([2, 1])), {}),
    ((6, 3), {}),
    ((6, -3), {}),
    ((1, 63), {}),
    ((1, 70), {}),
    ((0, 70), {}),
)
FLOATS: Samples = (((np.array([1.0, np.nan, np.inf, -np.inf]),), {}), ((np.float64(np.nan),), {}), ((1.5,), {}))


def _relation(name: str, ufunc: Any, chain: str) -> Primitive:
    equality = name in ("eq", "ne")
    infer = elementwise(name, 2, "biuf", "bool", text=equality)
    return Primitive(name, infer, kept(ufunc), lambda site: ufunc, chain=chain, samples=PAIRS)


def _logic(name: str, arity: int, ufunc: Any, chain: str) -> Primitive:
    samples = BOOLS if arity == 2 else tuple((args[:1], attrs) for args, attrs in BOOLS)
    return Primitive(
        name, elementwise(name, arity, "b", "bool"), kept(ufunc), lambda site: ufunc, chain=chain, samples=samples
    )


def _bits(name: str, arity: int, ufunc: Any, chain: str) -> Primitive:
    samples = INTS if arity == 2 else tuple((args[:1], attrs) for args, attrs in INTS)
    return Primitive(
        name, elementwise(name, arity, "iu"), kept(ufunc), lambda site: ufunc, chain=chain, samples=samples
    )


def _left(a: Any, n: Any) -> Any:
    if not plain(a):
        return np.left_shift(a, n)
    return fits(a << min(n, 64) if a else a << min(n, 0))


def _right(a: Any, n: Any) -> Any:
    return a >> min(n, 64) if plain(a) else np.right_shift(a, n)


def _shift(name: str, ufunc: Any, numpy: Callable[..., Any], compute: Any) -> Primitive:
    return Primitive(
        name, elementwise(name, 2, "iu"), numpy, rows_of(ufunc, numpy, i=compute),
        raises=raises_on_python("i"), chain=name, samples=SHIFTS,
    )


def _predicate(name: str, ufunc: Any) -> Primitive:
    return Primitive(
        name, elementwise(name, 1, "f", "bool"), kept(ufunc), lambda site: ufunc, chain=name, samples=FLOATS
    )


COMPARE: tuple[Primitive, ...] = (
    _relation("eq", np.equal, "eq"),
    _relation("ne", np.not_equal, "ne"),
    _relation("lt", np.less, "lt"),
    _relation("le", np.less_equal, "le"),
    _relation("gt", np.greater, "gt"),
    _relation("ge", np.greater_equal, "ge"),
    _logic("logical_and", 2, np.logical_and, "and"),
    _logic("logical_or", 2, np.logical_or, "or"),
    _logic("logical_xor", 2, np.logical_xor, "xor"),
    _logic("logical_not", 1, np.logical_not, "not"),
    _bits("bitand", 2, np.bitwise_and, "bitand"),
    _bits("bitor", 2, np.bitwise_or, "bitor"),
    _bits("bitxor", 2, np.bitwise_xor, "bitxor"),
    _bits("invert", 1, np.invert, "bitnot"),
    _shift("lshift", np.left_shift, _left, python.lshift),
    _shift("rshift", np.right_shift, _right, python.rshift),
    _predicate("isnan", np.isnan),
    _predicate("isinf", np.isinf),
    _predicate("isfinite", np.isfinite),
)
