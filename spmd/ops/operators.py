"""Python's operators on numbers and arrays: which primitives `x + y`, `not x`, `if x` are.

The invariants: two Python kinds follow CPython (int, float and bool results, checked ints), anything else NumPy 2. The
primitives get operands of equal types. Raises TypeError or ValueError with Python's or NumPy's text where the operator
is no operation of these types, and Refusal for what the compiler does not do.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spmd.ir.build import Builder
from spmd.ir.core import Value
from spmd.ir.types import Num
from spmd.ops.calculus import dims_of, num
from spmd.ops.primitive import Refusal
from spmd.ops.promotion import (
    as_value,
    broadcast_like,
    broadcast_together,
    cast,
    common_python,
    constant_of,
    loop,
    type_name,
)

ARITHMETIC: dict[str, tuple[str, np.ufunc]] = {
    "+": ("add", np.add),
    "-": ("sub", np.subtract),
    "*": ("mul", np.multiply),
    "/": ("div", np.true_divide),
    "//": ("floordiv", np.floor_divide),
    "%": ("mod", np.remainder),
    "**": ("pow", np.power),
    "&": ("bitand", np.bitwise_and),
    "|": ("bitor", np.bitwise_or),
    "^": ("bitxor", np.bitwise_xor),
    "<<": ("lshift", np.left_shift),
    ">>": ("rshift", np.right_shift),
}
COMPARISONS: dict[str, tuple[str, np.ufunc]] = {
    "<": ("lt", np.less),
    "<=": ("le", np.less_equal),
    ">": ("gt", np.greater),
    ">=": ("ge", np.greater_equal),
    "==": ("eq", np.equal),
    "!=": ("ne", np.not_equal),
}
ON_BOOLS = {
    "add": "logical_or",
    "mul": "logical_and",
    "maximum": "logical_or",
    "minimum": "logical_and",
    "bitand": "logical_and",
    "bitor": "logical_or",
    "bitxor": "logical_xor",
    "invert": "logical_not",
}
BITS = ("&", "|", "^", "<<", ">>")

__all__ = [
    "apply", "binary", "broadcast_like", "compare", "convert", "matrix_product", "power", "python_bool", "truth",
    "unary",
]


def binary(b: Builder, op: str, x: Any, y: Any) -> Value:
    """`x op y` for operands that are values or constants."""
    exponent = constant_of(b, y) if op == "**" else None
    x, y = as_value(b, x), as_value(b, y)
    if op in COMPARISONS:
        return compare(b, op, x, y)
    if num(x).text or num(y).text:
        raise TypeError(f"unsupported operand type(s) for {op}: {_named(x)} and {_named(y)}")
    if op == "@":
        return matrix_product(b, x, y)
    if num(x).python and num(y).python:
        return _python_power(b, x, y, exponent) if op == "**" else _python(b, op, x, y)
    if op == "**":
        return power(b, x, y, exponent)
    return apply(b, *ARITHMETIC[op], x, y)


def _named(x: Value) -> str:
    return f"'{type_name(num(x))}'"


def apply(b: Builder, name: str, ufunc: np.ufunc, *operands: Value) -> Value:
    """A ufunc of NumPy, on operands promoted and broadcast as NumPy does."""
    dtypes, _ = loop(ufunc, [num(v) for v in operands])
    ready = [cast(b, v, dtype) for v, dtype in zip(operands, dtypes)]
    ready = broadcast_together(b, ready) if len(ready) > 1 else ready
    if dtypes[0] == "bool":
        name = ON_BOOLS.get(name, name)
    return b.emit(name, *ready)


# ------------------------------------------------------------------------------------------------------- Python
def _python(b: Builder, op: str, x: Value, y: Value) -> Value:
    types = (num(x), num(y))
    both_bool = types[0].dtype == types[1].dtype == "bool"
    wide = common_python(types)
    if op in BITS:
        if wide == "float64":
            raise TypeError(f"unsupported operand type(s) for {op}: {_named(x)} and {_named(y)}")
        if both_bool and op in ("&", "|", "^"):
            return b.emit(ON_BOOLS[ARITHMETIC[op][0]], x, y)
    ints = op == "/" and wide == "int64"
    if op == "/":
        wide = "float64"
    x, y = cast(b, x, wide, True), cast(b, y, wide, True)
    return b.emit("div", x, y, ints=True) if ints else b.emit(ARITHMETIC[op][0], x, y)


def _python_power(b: Builder, x: Value, y: Value, exponent: Any) -> Value:
    if common_python((num(x), num(y))) == "float64":
        x, y = cast(b, x, "float64", True), cast(b, y, "float64", True)
        return b.emit("square", x) if exponent == 2 else b.emit("pow", x, y)
    x = cast(b, x, "int64", True)
    if exponent is None:
        raise Refusal(
            "a Python int to the power of a Python int is an int or a float, as the sign of the exponent says",
            "write float(x) ** n, or np.power(x, n), or use a constant exponent.",
        )
    if exponent < 0:
        return b.emit("pow", cast(b, x, "float64", True), b.const(float(exponent)))
    return _repeated(b, x, int(exponent))


def _repeated(b: Builder, x: Value, exponent: int) -> Value:
    """A power with a constant exponent that is not negative, by squaring; partial products never exceed the power."""
    if exponent == 0:
        return broadcast_like(b, b.const(num(x).python and 1 or np.dtype(num(x).dtype).type(1)), x)
    result: Value | None = None
    while True:
        if exponent & 1:
            result = x if result is None else b.emit("mul", result, x)
        exponent >>= 1
        if not exponent:
            assert result is not None
            return result
        x = b.emit("mul", x, x)


def power(b: Builder, x: Value, y: Value, exponent: Any = None) -> Value:
    """NumPy's power; small constant exponents become products and roots, within 2 ulp of NumPy's result."""
    dtypes, result = loop(np.power, (num(x), num(y)))
    base = cast(b, x, dtypes[0])
    if isinstance(exponent, (bool, int, float, np.number, np.bool_)) and not num(y).shape:
        simple = _simple_power(b, base, exponent, np.dtype(result).kind)
        if simple is not None:
            return simple
    return apply(b, "pow", np.power, x, y)


def _simple_power(b: Builder, x: Value, exponent: Any, kind: str) -> Value | None:
    if kind in "iu":
        return _repeated(b, x, int(exponent)) if 0 <= exponent <= 64 else None
    if exponent == 1:
        return x
    if exponent == 2:
        return b.emit("square", x)
    if exponent == 3:
        return b.emit("mul", b.emit("square", x), x)
    if exponent == -1:
        return b.emit("reciprocal", x)
    if exponent == 0.5 and num(x).rank:
        return b.emit("sqrt", x)
    return None


# -------------------------------------------------------------------------------------------------- comparisons
def compare(b: Builder, op: str, x: Value, y: Value) -> Value:
    """A comparison. A Python int is compared by its value, whatever integer type stands on the other side."""
    name, ufunc = COMPARISONS[op]
    tx, ty = num(x), num(y)
    if tx.text or ty.text:
        return _compare_strings(b, op, x, y)
    if tx.python and ty.python:
        if {tx.dtype, ty.dtype} == {"int64", "float64"} and not _small(b, x, y):
            return _compare_exactly(b, name, x, y)
        wide = common_python((tx, ty), "bool")
        return b.emit(name, cast(b, x, wide, True), cast(b, y, wide, True))
    for one, other in ((x, y), (y, x)):
        if num(one).python and num(one).kind == "i" and num(other).kind in "iub":
            if num(other).dtype != "uint64":
                return b.emit(name, *broadcast_together(b, [cast(b, x, "int64"), cast(b, y, "int64")]))
            known = constant_of(b, one)
            if known is None or known < 0:
                raise Refusal("comparing a uint64 with a Python int is not supported", "convert one side first.")
    dtypes, _ = loop(ufunc, (tx, ty))
    if dtypes[0] != dtypes[1]:
        raise Refusal(f"comparing {dtypes[0]} with {dtypes[1]} is not supported", "convert one side first.")
    return b.emit(name, *broadcast_together(b, [cast(b, x, dtypes[0]), cast(b, y, dtypes[1])]))


def _small(b: Builder, *operands: Value) -> bool:
    """Whether one operand is a constant below 2**53: then an int and a float compare as floats do."""
    known = [constant_of(b, v) for v in operands]
    return any(isinstance(c, (int, float)) and not 2.0**53 <= abs(c) < np.inf for c in known)


def _compare_exactly(b: Builder, name: str, x: Value, y: Value) -> Value:
    """A Python int with a Python float, by value. Rounding the int to a float keeps the order, so that floats decide
    unless they are equal; then the float is whole and fits in 64 bits, and is compared as an int."""
    whole, other = (x, y) if num(x).kind == "i" else (y, x)
    rounded, exact = cast(b, whole, "float64"), cast(b, whole, "int64")
    number = cast(b, other, "float64")
    beyond = b.emit("ge", number, b.const(np.float64(2.0**63)))
    number = b.emit("where", beyond, b.const(np.float64(np.inf)), number)
    tie = b.emit("eq", rounded, number)
    digits = cast(b, b.emit("where", tie, number, b.const(np.float64(0.0))), "int64")
    pairs = ((exact, digits), (rounded, number))
    ints, floats = (b.emit(name, *(pair if whole is x else pair[::-1])) for pair in pairs)
    return cast(b, b.emit("where", tie, ints, floats), "bool", True)


def _compare_strings(b: Builder, op: str, x: Value, y: Value) -> Value:
    tx, ty = num(x), num(y)
    if op not in ("==", "!="):
        raise Refusal("strings can only be compared with == and !=")
    if tx.text and ty.text:
        return b.emit(COMPARISONS[op][0], x, y)
    if (tx if ty.text else ty).shape:
        raise Refusal("an array cannot be compared with a string")
    return b.const(op == "!=")


# ----------------------------------------------------------------------------------------------- matrix products
def matrix_product(b: Builder, x: Value, y: Value) -> Value:
    """`x @ y`"""
    if not num(x).rank and not num(y).rank:
        raise TypeError(f"unsupported operand type(s) for @: {_named(x)} and {_named(y)}")
    dtypes, _ = loop(np.matmul, (num(x), num(y)))
    return b.emit("matmul", cast(b, x, dtypes[0]), cast(b, y, dtypes[1]))


# ------------------------------------------------------------------------------------------------------- unary
def unary(b: Builder, op: str, x: Any) -> Value:
    """`-x`, `+x`, `~x`, `not x`"""
    x = as_value(b, x)
    if op == "not":
        return b.emit("logical_not", cast(b, truth(b, x), "bool", True))
    type_ = num(x)
    if type_.text or type_.python and op == "~" and type_.kind == "f":
        raise TypeError(f"bad operand type for unary {op}: {_named(x)}")
    if type_.python:
        x = cast(b, x, common_python((type_,)), True)
        return x if op == "+" else b.emit("neg" if op == "-" else "invert", x)
    if op == "+":
        loop(np.positive, (type_,))
        return x
    return apply(b, "neg", np.negative, x) if op == "-" else apply(b, "invert", np.invert, x)


def truth(b: Builder, x: Any) -> Value:
    """The condition that `if x` tests: a bool scalar. Raises Refusal for arrays that have no single truth value."""
    x = as_value(b, x)
    type_ = num(x)
    if type_.text:
        raise Refusal("the truth of a string is not supported", "compare it with ''.")
    if type_.shape:
        if not type_.static or type_.size != 1:
            raise Refusal(
                "the truth value of an array with more than one element is ambiguous",
                "use a.any() or a.all(), or np.where to choose by element.",
            )
        x = b.emit("reshape", x, shape=())
    if type_.dtype == "bool":
        return x
    zero: Any = 0.0 if type_.kind == "f" else 0
    return b.emit("ne", x, b.const(zero if type_.python else np.dtype(type_.dtype).type(zero)))


# ------------------------------------------------------------------------------------------------------- joins
def convert(b: Builder, x: Value, type_: Num) -> Value:
    """A value as another type that can hold it: another kind, a wider dtype, a size that is not known."""
    own = num(x)
    if own == type_:
        return x
    if own.text or type_.text or own.rank != type_.rank:
        raise TypeError(f"{own} cannot become {type_}")
    x = cast(b, x, type_.dtype, type_.python)
    if num(x).shape == type_.shape:
        return x
    if any(n is not None and m != n for m, n in zip(own.shape, type_.shape)):
        raise TypeError(f"{own} cannot become {type_}")
    return b.emit("broadcast_to", x, dims_of(b, x), shape=type_.shape)


def python_bool(b: Builder, x: Any) -> Value:
    """bool(x)"""
    return cast(b, truth(b, x), "bool", True)
