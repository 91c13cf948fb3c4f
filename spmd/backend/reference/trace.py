"""What the interpreter leaves for the reverse pass: value instances and the list of what defined them.

The invariant: an instance is one value of one run, defined once; copies (block arguments, call arguments and results,
results of `if` and `loop`) are the same instance, so a trace holds only steps that compute or read something, in the
order in which they ran. A trace is never changed once its run is over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spmd.ir.core import Op


class Instance:
    """One value of one run. Identity is what counts: the reverse pass keys cotangents by it."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


@dataclass(eq=False)
class Applied:
    """A primitive was applied."""

    __slots__ = ("op", "operands", "result")
    op: Op
    operands: Sequence[Instance]
    result: Instance


@dataclass(eq=False)
class Loaded:
    """A field of one row of an input table was read (`count` is None), or of `count` rows from `row` on."""

    __slots__ = ("table", "field", "row", "count", "result")
    table: str
    field: int
    row: int
    count: int | None
    result: Instance


@dataclass(eq=False)
class Stacked:
    """A field of a run of frames was read: the frames' results, stacked."""

    __slots__ = ("parts", "result")
    parts: Sequence[Instance]
    result: Instance


@dataclass(eq=False)
class Element:
    """Element `index` of an array along its first axis, as a mapped function sees it."""

    __slots__ = ("array", "index", "result")
    array: Instance
    index: int
    result: Instance


Step = Applied | Loaded | Stacked | Element
Trace = list[Step]
