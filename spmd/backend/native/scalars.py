"""One number instead of a vector of lanes: the builder for it, and the operations that only loops have.

Invariant: every operation that vectors have is written by the same function as theirs, so a number has the same bits in
a loop and in a chain (up to the last places of elementary functions, see `Machine.scales`).
"""

from __future__ import annotations

from collections.abc import Callable

from spmd.backend.simd import arithmetic, checked
from spmd.backend.simd.arithmetic import ELEMENTS
from spmd.backend.simd.checked import Fail, Failure
from spmd.backend.simd.operations import CHECKED, PLAIN
from spmd.backend.simd.target import Machine
from spmd.backend.simd.vector import SHORT, Builder, Number, Value, literal


class ScalarBuilder(Builder):
    """Writes code whose values are single numbers."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine, 1)

    def vector(self, element: str) -> str:
        return element

    def suffix(self, element: str) -> str:
        return SHORT[element]

    def constant(self, element: str, value: Number) -> Value:
        return Value(self, literal(element, value), element)

    def splat(self, element: str, register: str) -> Value:
        return Value(self, register, element)

    def extract(self, value: Value, lane: int = 0) -> str:
        return value.name

    def any(self, mask: Value) -> str:
        return mask.name

    def scale_instruction(self, value: Value, power: Value) -> Value | None:
        return None


def _left(b: Builder, dtype: str, fail: Fail, x: Value, n: Value) -> Value:
    """x << n of Python ints; fails for negative n and for results beyond 64 bits."""
    inside = n.compare("lt", 64, unsigned=True)
    distance = b.select(inside, n, 63)
    shifted = x << distance
    back = b.emit("i64", f"ashr {x.type} {shifted.name}, {distance.name}")
    fail(n.lt(0) | back.ne(x) | (n.gt(63) & x.ne(0)), Failure.OVERFLOW)
    return b.select(inside, shifted, 0)


def _right(b: Builder, dtype: str, fail: Fail, x: Value, n: Value) -> Value:
    fail(n.lt(0), Failure.OVERFLOW)
    return arithmetic.shift_right(b, dtype, x, n)


def _square(b: Builder, dtype: str, fail: Fail, x: Value) -> Value:
    result = x * x
    fail(arithmetic.infinite(b, result) & arithmetic.finite(b, x), Failure.OVERFLOW)
    return result


def _round(b: Builder, dtype: str, fail: Fail, x: Value) -> Value:
    return checked.to_integer(b, dtype, fail, b.intrinsic("rint", x))


def _choice(relation: str) -> Callable[..., Value]:
    """Python's max or min of two: the second where it compares so, else the first."""

    def emit(b: Builder, dtype: str, x: Value, y: Value) -> Value:
        second = y.compare(relation, x, unsigned=dtype in arithmetic.UNSIGNED)
        return b.select(second, y, x)

    return emit


OWN_CHECKED: dict[str, Callable[..., Value]] = {
    "square!": _square, "lshift!": _left, "rshift!": _right, "toround!": _round,
}
OWN_PLAIN: dict[str, Callable[..., Value]] = {"pymax": _choice("gt"), "pymin": _choice("lt")}


def elementwise(
    b: Builder, name: str, dtype: str, result: str, fail: Fail, operands: list[Value], contract: bool
) -> Value:
    """The operation on numbers of `dtype` (of 'where': the dtype of the choices)."""
    if name == "cast":
        return arithmetic.cast(b, dtype, result, operands[0])
    if name in OWN_CHECKED:
        return OWN_CHECKED[name](b, dtype, fail, *operands)
    if name in OWN_PLAIN:
        return OWN_PLAIN[name](b, dtype, *operands)
    if name in CHECKED:
        return CHECKED[name].emit(b, dtype, fail, *operands)
    record = PLAIN[name]
    with b.contracting(contract and record.contracts):
        return record.emit(b, dtype, *operands)


def element_of(dtype: str) -> str:
    """LLVM's type of a number."""
    return ELEMENTS[dtype]
