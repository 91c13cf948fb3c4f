"""The table of operations that a chain can hold: name, dtypes, and the function that writes its vector code.

Invariant: what the table says is supported is emitted and tested for each of its dtypes; names ending in ``!`` are
Python's checked operations, all others have NumPy's meaning. Adding an operation is one line here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from spmd.backend.simd import arithmetic, checked
from spmd.backend.simd.arithmetic import ALL, BOOL, FLOATS, INTEGERS, NUMBERS, SIGNED
from spmd.backend.simd.elementary_exp import exp, expm1, sigmoid, tanh
from spmd.backend.simd.elementary_log import log, log1p, log2, log10, softplus
from spmd.backend.simd.elementary_power import arctan2, power
from spmd.backend.simd.elementary_trig import arctan, cos, sin
from spmd.backend.simd.vector import Builder, Value

INT64 = frozenset({"int64"})
INT64_AND_FLOAT = frozenset({"int64", "float64"})
FLOAT64 = frozenset({"float64"})

Emit = Callable[..., Value]
"""Called with (builder, dtype of the operands, *operands); of checked operations with the failure callback third."""


@dataclass(frozen=True)
class Operation:
    """One operation: how many operands, of which dtypes (all alike), the result's dtype, and how it is written.

    `result` is 'same', 'bool', 'int64' or 'any' (the operation's own dtype, as in a cast).
    """

    arity: int
    dtypes: frozenset[str]
    emit: Emit
    result: str = "same"
    contracts: bool = False

    def check(self, where: str, operands: tuple[str, ...], result: str) -> None:
        """Raises ValueError if the operation does not take these dtypes or does not give that one."""
        common = operands
        if self.emit is _where:
            if operands[0] != "bool":
                raise ValueError(f"{where}: the condition must be bool, not {operands[0]}")
            common = operands[1:]
        if len(set(common)) > 1:
            raise ValueError(f"{where}: operands must have one dtype, not {', '.join(common)}")
        wanted = common[0] if common else result
        if wanted not in self.dtypes:
            raise ValueError(f"{where}: not supported for {wanted}")
        given = {"same": wanted, "any": result}.get(self.result, self.result)
        if result != given or result not in ALL:
            raise ValueError(f"{where}: the result is {given}, not {result}")


def _where(b: Builder, dtype: str, mask: Value, x: Value, y: Value) -> Value:
    return b.select(mask, x, y)


def _relation(name: str) -> Emit:
    def emit(b: Builder, dtype: str, x: Value, y: Value) -> Value:
        return x.compare(name, y, unsigned=dtype not in SIGNED)

    return emit


def _rounding(name: str) -> Emit:
    return lambda b, dtype, x: arithmetic.rounding(b, name, x)


def _function(function: Callable[..., Value]) -> Emit:
    """An elementary function, which needs no dtype."""
    return lambda b, dtype, *operands: function(b, *operands)


def _const(b: Builder, dtype: str) -> Value:
    raise AssertionError("constants are written by the chain, which has their values")


def _cast(b: Builder, dtype: str, x: Value) -> Value:
    raise AssertionError("casts are written by the chain, which has both dtypes")


PLAIN: dict[str, Operation] = {
    "const": Operation(0, ALL, _const),
    "cast": Operation(1, ALL, _cast, "any"),
    "where": Operation(3, ALL, _where),
    "add": Operation(2, NUMBERS, lambda b, dtype, x, y: x + y, contracts=True),
    "sub": Operation(2, NUMBERS, lambda b, dtype, x, y: x - y, contracts=True),
    "strongmul": Operation(2, FLOATS, lambda b, dtype, x, y: b.select(x.eq(0.0), 0.0, x * y)),
    "mul": Operation(2, NUMBERS, lambda b, dtype, x, y: x * y, contracts=True),
    "div": Operation(2, FLOATS, lambda b, dtype, x, y: x / y),
    "floordiv": Operation(2, NUMBERS, arithmetic.floor_divide),
    "mod": Operation(2, NUMBERS, arithmetic.remainder),
    "neg": Operation(1, NUMBERS, lambda b, dtype, x: -x, contracts=True),
    "abs": Operation(1, NUMBERS, arithmetic.absolute),
    "sign": Operation(1, NUMBERS, arithmetic.sign),
    "square": Operation(1, NUMBERS, lambda b, dtype, x: x * x, contracts=True),
    "reciprocal": Operation(1, FLOATS, lambda b, dtype, x: 1.0 / x),
    "minimum": Operation(2, ALL, arithmetic.minimum),
    "maximum": Operation(2, ALL, arithmetic.maximum),
    "copysign": Operation(2, FLOATS, lambda b, dtype, x, y: b.copysign(x, y)),
    "floor": Operation(1, FLOATS, _rounding("floor")),
    "ceil": Operation(1, FLOATS, _rounding("ceil")),
    "trunc": Operation(1, FLOATS, _rounding("trunc")),
    "round": Operation(1, FLOATS, _rounding("rint")),
    "isnan": Operation(1, FLOATS, lambda b, dtype, x: x.unordered(), "bool"),
    "isinf": Operation(1, FLOATS, lambda b, dtype, x: arithmetic.infinite(b, x), "bool"),
    "isfinite": Operation(1, FLOATS, lambda b, dtype, x: arithmetic.finite(b, x), "bool"),
    "signbit": Operation(1, FLOATS, lambda b, dtype, x: arithmetic.signbit(b, x), "bool"),
    **{name: Operation(2, ALL, _relation(name), "bool") for name in ("lt", "le", "gt", "ge", "eq", "ne")},
    "and": Operation(2, BOOL, lambda b, dtype, x, y: x & y),
    "or": Operation(2, BOOL, lambda b, dtype, x, y: x | y),
    "xor": Operation(2, BOOL, lambda b, dtype, x, y: x ^ y),
    "not": Operation(1, BOOL, lambda b, dtype, x: ~x),
    "bitand": Operation(2, INTEGERS, lambda b, dtype, x, y: x & y),
    "bitor": Operation(2, INTEGERS, lambda b, dtype, x, y: x | y),
    "bitxor": Operation(2, INTEGERS, lambda b, dtype, x, y: x ^ y),
    "bitnot": Operation(1, INTEGERS, lambda b, dtype, x: ~x),
    "lshift": Operation(2, INTEGERS, arithmetic.shift_left),
    "rshift": Operation(2, INTEGERS, arithmetic.shift_right),
    "sqrt": Operation(1, FLOATS, _function(lambda b, x: b.sqrt(x))),
    "exp": Operation(1, FLOATS, _function(exp)),
    "expm1": Operation(1, FLOATS, _function(expm1)),
    "log": Operation(1, FLOATS, _function(log)),
    "log2": Operation(1, FLOATS, _function(log2)),
    "log10": Operation(1, FLOATS, _function(log10)),
    "log1p": Operation(1, FLOATS, _function(log1p)),
    "tanh": Operation(1, FLOATS, _function(tanh)),
    "sin": Operation(1, FLOATS, _function(sin)),
    "cos": Operation(1, FLOATS, _function(cos)),
    "arctan": Operation(1, FLOATS, _function(arctan)),
    "arctan2": Operation(2, FLOATS, _function(arctan2)),
    "pow": Operation(2, FLOATS, _function(power)),
    "sigmoid": Operation(1, FLOATS, _function(sigmoid)),
    "softplus": Operation(1, FLOATS, _function(softplus)),
}

CHECKED: dict[str, Operation] = {
    "add!": Operation(2, INT64, checked.add),
    "sub!": Operation(2, INT64, checked.sub),
    "mul!": Operation(2, INT64, checked.mul),
    "neg!": Operation(1, INT64, checked.neg),
    "abs!": Operation(1, INT64, checked.absolute),
    "floordiv!": Operation(2, INT64_AND_FLOAT, checked.floor_divide),
    "mod!": Operation(2, INT64_AND_FLOAT, checked.remainder),
    "div!": Operation(2, FLOAT64, checked.divide),
    "int!": Operation(1, FLOATS, checked.to_integer, "int64"),
    "exp!": Operation(1, FLOAT64, checked.exp_checked),
    "expm1!": Operation(1, FLOAT64, checked.expm1_checked),
    "log!": Operation(1, FLOAT64, checked.log_checked),
    "log2!": Operation(1, FLOAT64, checked.log2_checked),
    "log10!": Operation(1, FLOAT64, checked.log10_checked),
    "log1p!": Operation(1, FLOAT64, checked.log1p_checked),
    "sqrt!": Operation(1, FLOAT64, checked.sqrt_checked),
    "sin!": Operation(1, FLOAT64, checked.sin_checked),
    "cos!": Operation(1, FLOAT64, checked.cos_checked),
    "pow!": Operation(2, FLOAT64, checked.power_checked),
}

OPERATIONS: dict[str, Operation] = PLAIN | CHECKED
SUPPORTED: dict[str, frozenset[str]] = {name: operation.dtypes for name, operation in OPERATIONS.items()}
"""Name of an operation -> dtypes that its operands (of 'where': the two choices) may have."""
