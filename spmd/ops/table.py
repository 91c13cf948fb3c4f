"""All primitives, by name, and what asks them: the type rule of the builder, raising, chains.

The invariant: every primitive of `spmd.ops` is here once. Structural ops (`spmd.ir.core`) are not primitives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spmd.ir.build import Builder
from spmd.ir.core import Block, Op
from spmd.ir.types import Num, Type
from spmd.ops.broadcasting import BROADCASTING
from spmd.ops.casts import CASTS
from spmd.ops.compare import COMPARE
from spmd.ops.convolution import CONVOLUTION
from spmd.ops.creation import CREATION
from spmd.ops.decompositions import DECOMPOSITIONS
from spmd.ops.demands import DEMANDING
from spmd.ops.elementary import ELEMENTARY
from spmd.ops.elementwise import ELEMENTWISE
from spmd.ops.gathering import GATHERING
from spmd.ops.indexing import INDEXING
from spmd.ops.integers import INTEGERS
from spmd.ops.linalg import LINALG
from spmd.ops.linear_solvers import LINEAR_SOLVERS
from spmd.ops.numpy_calls import METHODS as METHODS
from spmd.ops.numpy_calls import NUMPY as NUMPY
from spmd.ops.numpy_calls import rule_of as rule_of
from spmd.ops.outcomes import outcomes
from spmd.ops.primitive import Primitive
from spmd.ops.reduce import REDUCE
from spmd.ops.scalars import SCALARS
from spmd.ops.scans import SCANNING
from spmd.ops.shaping import SHAPING
from spmd.ops.slicing import SLICING
from spmd.ops.sorting import SORTING
from spmd.ops.special import SPECIALS
from spmd.ops.strings import STRINGS
from spmd.ops.transcendental import TRANSCENDENTAL
from spmd.ops.triangles import TRIANGLES
from spmd.ops.writing import WRITING

FAMILIES: tuple[tuple[Primitive, ...], ...] = (
    ELEMENTWISE, TRANSCENDENTAL, COMPARE, CASTS, SCALARS, REDUCE, LINALG, BROADCASTING, SHAPING, SLICING, INDEXING,
    CREATION, SCANNING, SORTING, TRIANGLES, ELEMENTARY, INTEGERS, SPECIALS, CONVOLUTION, LINEAR_SOLVERS, DECOMPOSITIONS,
    DEMANDING, WRITING, GATHERING, STRINGS, outcomes(lambda name: PRIMITIVES[name]),
)


def _joined() -> dict[str, Primitive]:
    table: dict[str, Primitive] = {}
    for family in FAMILIES:
        for primitive in family:
            if primitive.name in table:
                raise ValueError(f"two primitives are named '{primitive.name}'")
            table[primitive.name] = primitive
    return table


PRIMITIVES: dict[str, Primitive] = _joined()


def type_rule(name: str, types: Sequence[Type], attrs: dict[str, Any]) -> tuple[Type, ...]:
    """Result types of a primitive. Raises TypeError, ValueError or IndexError with a text for the user."""
    return (PRIMITIVES[name].infer(types, attrs),)


def builder(block: Block, order: tuple[int, ...] = ()) -> Builder:
    """A builder that knows the primitives' types."""
    return Builder(block, type_rule, order)


def may_raise(op: Op) -> bool:
    """Whether a primitive op can raise on some values."""
    return PRIMITIVES[op.name].raises([v.type for v in op.operands], op.attrs)


def chain_name(op: Op) -> str:
    """The op's name in the kernel generator's vocabulary; '' if it is no elementwise op over one shape."""
    primitive = PRIMITIVES.get(op.name)
    if primitive is None or not primitive.chain:
        return ""
    shapes = {v.type.shape if isinstance(v.type, Num) else None for v in (*op.operands, *op.results)}
    if len(shapes) != 1 or None in shapes:
        return ""
    return primitive.chain + "!" if may_raise(op) else primitive.chain
