"""Elementwise operations that are no elementary functions, with NumPy's meaning, one function each.

Invariant: no operation traps or has undefined behaviour for any operand: divisors and conversions are guarded, and the
guarded lanes get what NumPy gives (integer division by zero is 0, integers wrap). Operands come with their dtype, which
tells signed from unsigned and float from the rest. Must not know chains.
"""

from __future__ import annotations

from spmd.backend.simd.vector import SIZES, Builder, Value

ELEMENTS = {
    "float64": "double",
    "float32": "float",
    "int64": "i64",
    "int32": "i32",
    "int16": "i16",
    "int8": "i8",
    "uint64": "i64",
    "uint32": "i32",
    "uint16": "i16",
    "uint8": "i8",
    "bool": "i1",
}
FLOATS = frozenset({"float64", "float32"})
SIGNED = frozenset({"int64", "int32", "int16", "int8"})
UNSIGNED = frozenset({"uint64", "uint32", "uint16", "uint8"})
INTEGERS = SIGNED | UNSIGNED
NUMBERS = FLOATS | INTEGERS
BOOL = frozenset({"bool"})
ALL = NUMBERS | BOOL


def lowest(value: Value) -> int:
    """The smallest signed integer of a value's element."""
    return -(1 << (8 * SIZES[value.element] - 1))


def absolute(b: Builder, dtype: str, x: Value) -> Value:
    if dtype in FLOATS:
        return b.fabs(x)
    return x if dtype in UNSIGNED else b.select(x.lt(0), -x, x)


def sign(b: Builder, dtype: str, x: Value) -> Value:
    """-1, 0 or 1; NaN stays; the sign of zero is dropped, as NumPy does."""
    if dtype in UNSIGNED:
        return b.select(x.ne(0), 1, x)
    signs = b.select(x.lt(0), -1, b.select(x.gt(0), 1, b.constant(x.element, 0)))
    return b.select(x.unordered(), x, signs) if dtype in FLOATS else signs


def minimum(b: Builder, dtype: str, x: Value, y: Value) -> Value:
    return _extreme(b, dtype, "le", x, y)


def maximum(b: Builder, dtype: str, x: Value, y: Value) -> Value:
    return _extreme(b, dtype, "ge", x, y)


def _extreme(b: Builder, dtype: str, relation: str, x: Value, y: Value) -> Value:
    """The first operand where it stands in the relation or is NaN; so a NaN of either operand is the result."""
    first = x.compare(relation, y, unsigned=dtype not in SIGNED)
    if dtype in FLOATS:
        first = first | x.unordered()
    return b.select(first, x, y)


def rounding(b: Builder, name: str, x: Value) -> Value:
    """floor, ceil, trunc or rint (half to even)."""
    return b.intrinsic(name, x)


def finite(b: Builder, x: Value) -> Value:
    return b.fabs(x).lt(float("inf"))


def infinite(b: Builder, x: Value) -> Value:
    return b.fabs(x).eq(float("inf"))


def signbit(b: Builder, x: Value) -> Value:
    return b.bits(x).lt(0)


# ---- division


def _signed_division(b: Builder, x: Value, y: Value) -> tuple[Value, Value]:
    """Quotient rounded down and its remainder; x and 0 where y is 0; the quotient of the lowest number by -1 wraps."""
    unsafe = y.eq(0) | (x.eq(lowest(x)) & y.eq(-1))
    divisor = b.select(unsafe, 1, y)
    quotient = b.emit(x.element, f"sdiv {x.type} {x.name}, {divisor.name}")
    remainder = x - quotient * divisor
    down = remainder.ne(0) & (remainder ^ divisor).lt(0)
    return b.select(down, quotient - 1, quotient), b.select(down, remainder + divisor, remainder)


def floor_divide(b: Builder, dtype: str, x: Value, y: Value) -> Value:
    if dtype in FLOATS:
        return _float_division(b, x, y)[0]
    if dtype in UNSIGNED:
        divisor = b.select(y.eq(0), 1, y)
        quotient = b.emit(x.element, f"udiv {x.type} {x.name}, {divisor.name}")
    else:
        quotient = _signed_division(b, x, y)[0]
    return b.select(y.eq(0), b.constant(x.element, 0), quotient)


def remainder(b: Builder, dtype: str, x: Value, y: Value) -> Value:
    """Remainder with the sign of the divisor."""
    if dtype in FLOATS:
        return _float_division(b, x, y)[1]
    if dtype in UNSIGNED:
        divisor = b.select(y.eq(0), 1, y)
        return b.emit(x.element, f"urem {x.type} {x.name}, {divisor.name}")
    return _signed_division(b, x, y)[1]


def _float_division(b: Builder, x: Value, y: Value) -> tuple[Value, Value]:
    """CPython's float_divmod: exact remainder of C's fmod, moved to the divisor's sign, and the quotient from it."""
    left = b.emit(x.element, f"frem {x.type} {x.name}, {y.name}")
    zero = left.eq(0.0)
    moved = left.ne(0.0) & (y.lt(0.0) ^ left.lt(0.0))
    quotient = (x - left) / y
    quotient = b.select(moved, quotient - 1.0, quotient)
    modulo = b.select(moved, left + y, left)
    modulo = b.select(zero, b.copysign(b.constant(x.element, 0.0), y), modulo)
    whole = b.intrinsic("floor", quotient)
    whole = b.select((quotient - whole).gt(0.5), whole + 1.0, whole)
    whole = b.select(quotient.eq(0.0), b.copysign(b.constant(x.element, 0.0), x / y), whole)
    by_zero = y.eq(0.0)
    return b.select(by_zero, x / y, whole), b.select(by_zero, left, modulo)


def shift_left(b: Builder, dtype: str, x: Value, y: Value) -> Value:
    """Zero for shifts that are negative or as long as the number."""
    bits = 8 * SIZES[x.element]
    inside = y.compare("lt", bits, unsigned=True)
    return b.select(inside, x << b.select(inside, y, 0), b.constant(x.element, 0))


def shift_right(b: Builder, dtype: str, x: Value, y: Value) -> Value:
    """Copies of the sign (zeros if unsigned) for shifts that are negative or as long as the number."""
    bits = 8 * SIZES[x.element]
    distance = b.select(y.compare("lt", bits, unsigned=True), y, bits - 1)
    if dtype in SIGNED:
        return b.emit(x.element, f"ashr {x.type} {x.name}, {distance.name}")
    return b.select(y.compare("lt", bits, unsigned=True), x >> distance, b.constant(x.element, 0))


# ---- conversion


def cast(b: Builder, source: str, target: str, x: Value) -> Value:
    """NumPy's astype. Floats out of an integer's range, and NaN, give what x86 gives: the lowest number."""
    if source == target:
        return x
    element = ELEMENTS[target]
    if target == "bool":
        return x.ne(0)
    if source == "bool":
        return b.select(x, b.constant(element, 1), b.constant(element, 0))
    if source in FLOATS:
        if target in FLOATS:
            return b.convert("fpext" if target == "float64" else "fptrunc", x, element)
        return _float_to_integer(b, x, target)
    if target in FLOATS:
        return b.convert("uitofp" if source in UNSIGNED else "sitofp", x, element)
    return resize(b, source, x, element)


def resize(b: Builder, source: str, x: Value, element: str) -> Value:
    """An integer with more or fewer bits: extended as its dtype's sign demands, or cut."""
    before, after = SIZES[x.element], SIZES[element]
    if before == after:
        return Value(b, x.name, element)
    if after < before:
        return b.convert("trunc", x, element)
    return b.convert("zext" if source in UNSIGNED else "sext", x, element)


def _float_to_integer(b: Builder, x: Value, target: str) -> Value:
    if target == "uint64":
        half = 2.0**63
        upper = x.ge(half)
        low = to_signed(b, b.select(upper, x - half, x), "i64")
        return b.select(upper, low ^ lowest(low), low)
    through = "i64" if target in ("int64", "uint32") else "i32"
    return resize(b, "int64", to_signed(b, x, through), ELEMENTS[target])


def in_range(x: Value, element: str) -> Value:
    """Mask of floats whose integer part fits the signed integers of `element`; NaN does not."""
    bound = 2.0 ** (8 * SIZES[element] - 1)
    if element == "i32" and x.element == "double":
        return x.gt(-bound - 1.0) & x.lt(bound)
    return x.ge(-bound) & x.lt(bound)


def to_signed(b: Builder, x: Value, element: str) -> Value:
    """The integer part; the lowest number where it does not fit."""
    fits = in_range(x, element)
    whole = b.convert("fptosi", b.select(fits, x, 0.0), element)
    return b.select(fits, whole, lowest(whole))
