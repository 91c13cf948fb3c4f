"""What a chain is: a graph of elementwise operations over an iteration space of K rows by F features.

Invariant: a `ChainSpec` that exists is well formed: operands of an operation come before it, every operation supports
its dtypes, results have the dtype that the operation gives, and a 'row' output does not depend on a feature. Specs are
frozen and hashable; two equal ones have the same code. Must not know machines or arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from spmd.backend.simd.operations import OPERATIONS, Operation

KINDS = ("full", "row", "col", "one")
ARGUMENT = {"one": 0, "row": 1, "col": 2, "full": 2}
"""How often a value of a kind changes: 0 once per call, 1 once per row, 2 with every feature."""


@dataclass(frozen=True)
class ChainOperand:
    """An array that a chain reads.

    kind 'full': [K, F] (or [K, ...] with F numbers per row), rows at any distance, a row contiguous. 'row': [K], at any
    distance, one number per row. 'col': F contiguous numbers, the same for all rows. 'one': an array of one number.
    """

    kind: str
    dtype: str

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"an operand is {', '.join(KINDS)}, not {self.kind!r}")
        if self.dtype not in OPERATIONS["where"].dtypes:
            raise ValueError(f"no operand can have the dtype {self.dtype!r}")


@dataclass(frozen=True)
class ChainOp:
    """One operation. `args` number the operands of the chain first, then the results of earlier operations.

    `dtype` is that of the result; for 'const' `value` is the constant. Names are the keys of `SUPPORTED`.
    """

    name: str
    args: tuple[int, ...]
    dtype: str
    value: int | float | bool | None = field(default=None)

    def __hash__(self) -> int:
        return hash((self.name, self.args, self.dtype, repr(self.value)))

    def __eq__(self, other: object) -> bool:
        # 0.0 == -0.0 and nan != nan, 1 == True: as constants of a kernel they are what they print as
        if not isinstance(other, ChainOp):
            return NotImplemented
        mine, others = (self.name, self.args, self.dtype), (other.name, other.args, other.dtype)
        return mine == others and repr(self.value) == repr(other.value)


@dataclass(frozen=True)
class ChainSpec:
    """A chain: operands, operations in order, and outputs as (value number, 'full' or 'row').

    Raises ValueError, saying which operation is at fault, for anything that is not well formed.
    """

    operands: tuple[ChainOperand, ...]
    ops: tuple[ChainOp, ...]
    outputs: tuple[tuple[int, str], ...]

    def __post_init__(self) -> None:
        dtypes = [operand.dtype for operand in self.operands]
        for number, op in enumerate(self.ops):
            _check_op(number, op, dtypes)
            dtypes.append(op.dtype)
        for value, kind in self.outputs:
            if kind not in ("full", "row"):
                raise ValueError(f"an output is 'full' or 'row', not {kind!r}")
            if not 0 <= value < len(dtypes):
                raise ValueError(f"there is no value {value} to output")
            if kind == "row" and self.levels[value] == 2:
                raise ValueError(f"value {value} differs from feature to feature: it cannot be a 'row' output")

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """Of each value, how often it changes: 0 once per call, 1 once per row, 2 with every feature."""
        levels = [ARGUMENT[operand.kind] for operand in self.operands]
        for op in self.ops:
            levels.append(max((levels[arg] for arg in op.args), default=0))
        return tuple(levels)

    @property
    def dtypes(self) -> tuple[str, ...]:
        """Of each value, its dtype."""
        return tuple(operand.dtype for operand in self.operands) + tuple(op.dtype for op in self.ops)

    @cached_property
    def by_rows(self) -> bool:
        """Whether nothing depends on a feature, so that the chain is one loop over K."""
        return all(op.kind in ("row", "one") for op in self.operands) and all(k == "row" for _, k in self.outputs)

    @cached_property
    def checked(self) -> bool:
        """Whether an operation can fail."""
        return any(op.name.endswith("!") for op in self.ops)

    def live(self) -> Iterator[int]:
        """Numbers of the operations that outputs need or that can fail, in order."""
        first = len(self.operands)
        needed = {value for value, _ in self.outputs}
        kept = []
        for number in reversed(range(len(self.ops))):
            op = self.ops[number]
            if first + number in needed or op.name.endswith("!"):
                kept.append(number)
                needed.update(op.args)
        return reversed(kept)

    def for_one_feature(self) -> ChainSpec:
        """The same chain for F = 1, where every array of features is one of rows."""
        narrow = {"full": "row", "col": "one"}
        operands = tuple(replace(op, kind=narrow.get(op.kind, op.kind)) for op in self.operands)
        return ChainSpec(operands, self.ops, tuple((value, "row") for value, _ in self.outputs))


def _check_op(number: int, op: ChainOp, dtypes: list[str]) -> None:
    where = f"operation {number} ({op.name})"
    record: Operation | None = OPERATIONS.get(op.name)
    if record is None:
        raise ValueError(f"{where}: there is no such operation")
    if len(op.args) != record.arity:
        raise ValueError(f"{where}: takes {record.arity} arguments, not {len(op.args)}")
    if any(not 0 <= arg < len(dtypes) for arg in op.args):
        raise ValueError(f"{where}: arguments must be operands or results of earlier operations, not {op.args}")
    if (op.value is None) != (op.name != "const"):
        raise ValueError(f"{where}: a value is for 'const', and only for it")
    record.check(where, tuple(dtypes[arg] for arg in op.args), op.dtype)
