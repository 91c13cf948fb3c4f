"""The record of one primitive: everything the compiler knows of an operation, in one place.

The invariant: a record is complete (meaning on one example, type rule, rows rule, derivative or the statement that
there is none, samples), and no other file knows a primitive by name to give it a part that is missing here.

Operands of elementwise primitives have equal shapes and the dtypes that the type rule demands; broadcasting and
casts are ops of their own (`broadcast`, `cast`), so derivative rules never un-broadcast.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from spmd.ir.build import Builder
from spmd.ir.core import Op, Value
from spmd.ir.types import Num, Type

TypeRule = Callable[[Sequence[Type], dict[str, Any]], Type]
AdjointRule = Callable[[Builder, Op, Value], Sequence["Value | None"]]
RowsRule = Callable[["Site"], Callable[..., Any]]
Samples = tuple[tuple[tuple[Any, ...], dict[str, Any]], ...]


class Refusal(Exception):
    """What this compiler does not do: `text` says what, `hint` what to write instead. The front end adds the place."""

    def __init__(self, text: str, hint: str = "") -> None:
        super().__init__(text)
        self.text = text
        self.hint = hint


@dataclass(frozen=True)
class Site:
    """What a rows rule is told of the op that it serves.

    types   operand types of one example; `result` the result's.
    varying for each operand whether it has a row axis in front (else it is uniform, as one example sees it).
    """

    types: tuple[Num, ...]
    result: Num
    attrs: dict[str, Any]
    varying: tuple[bool, ...]


class Faults:
    """Collects, while a region runs, which rows an op failed on. The rows go on with harmless values."""

    def __init__(self) -> None:
        self.found: list[tuple[Any, Callable[[int], BaseException]]] = []

    def report(self, bad: Any, make: Callable[[int], BaseException]) -> None:
        """`bad`: bool array [K]; `make(row)` builds the exception that this row raises."""
        if bad.any():
            self.found.append((bad, make))


@dataclass(frozen=True)
class Primitive:
    """One primitive.

    name      as it stands in IR text.
    infer     operand types, attrs -> result type; raises TypeError/ValueError with a text for the user.
    numpy     one example's meaning: values, attrs as keywords -> value (NumPy scalars for rank 0, Python scalars for
              Python kinds); raises what Python or NumPy raise.
    rows      Site -> function of K-row operands -> K-row result, for static shapes. Operands that are `varying` come
              as arrays [K, *shape]; at least one is. Dynamic shapes come in buckets of rows of equal sizes, as if
              static (the attribute `shape` still says None); where all is equal in a bucket, `numpy` is used. If the
              primitive may raise, the function takes `faults=` and reports rows instead of raising (`site.types` are
              the op's own: sizes that they do not know are looked at). It never warns (the caller ignores
              floating-point flags) and never traps. The result may be a view of an operand.
    adjoint   (builder, op, cotangent of the result) -> cotangent per operand, None where there is none. It may name
              op.operands and op.result: what it names is what the tape keeps. Cotangents are never Python kinds and
              no op of a rule raises. None: no derivative, all operands inactive (comparisons, integer ops, floor).
    raises    operand types, attrs -> whether it can raise on some values. The attribute `exact` (of primitives that
              check sizes or indices) says that the check is known to hold: then it cannot.
    chain     name in the kernel generator's vocabulary, for elementwise primitives ('' otherwise); the checked form,
              name + '!', is meant where the primitive can raise (`table.chain_name`).
    pointwise whether it works element by element on operands of one shape, though kernels do not have it (`chain` says
              so of those that they have): all elements of ragged rows are then one call.
    sizes     operand types, attrs -> positions of operands whose VALUES decide the result's dynamic sizes (or, in
              adjoint helpers, the sizes of the shape added into). Rows are then bucketed by these values, and the rows
              rule gets them uniform. Empty where the result's sizes follow from the operands' sizes.
    samples   operand value tuples (with attrs) for the registry test: (args, attrs).
    errors    bases of all that it can raise.
    """

    name: str
    infer: TypeRule
    numpy: Callable[..., Any]
    rows: RowsRule
    adjoint: AdjointRule | None = None
    raises: Callable[[Sequence[Type], dict[str, Any]], bool] = field(default=lambda types, attrs: False)
    chain: str = ""
    pointwise: bool = False
    sizes: Callable[[Sequence[Type], dict[str, Any]], tuple[int, ...]] = field(default=lambda types, attrs: ())
    samples: Samples = ()
    errors: tuple[type[Exception], ...] = (Exception,)
