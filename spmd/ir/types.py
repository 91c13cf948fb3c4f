"""What one value of one example is: a number or array, a row of a table, or a run of rows.

The invariant: a type is immutable and hashable, and two values of equal type are stored alike by every target.
Structure (tuples, dictionaries, dataclasses, optional values, unions) is no type here: the front end takes it
apart into leaves of these three kinds, a union into an integer tag and the leaves of its alternatives.
Types know nothing of lanes: whether a value is uniform or varying is an analysis, not a type.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

Shape = tuple[int | None, ...]


@dataclass(frozen=True)
class Num:
    """A number or an array of numbers.

    dtype   NumPy's name of the element type ('float64', 'int64', 'bool', ...).
    shape   sizes; None is a size that differs between examples. () is a scalar.
    python  the value is a Python int (64 bit, checked), float or bool, not a NumPy one; only with shape ().
    text    an interned string, stored as its number; only with dtype int64 and shape ().
    """

    dtype: str
    shape: Shape = ()
    python: bool = False
    text: bool = False

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def static(self) -> bool:
        """Every size is known before running."""
        return None not in self.shape

    @property
    def kind(self) -> str:
        """NumPy's kind letter: 'f', 'i', 'u', 'b' or 'c'."""
        return np.dtype(self.dtype).kind

    @property
    def floating(self) -> bool:
        return self.kind in "fc"

    @property
    def size(self) -> int:
        """Number of elements of a static shape."""
        total = 1
        for n in self.shape:
            if n is None:
                raise ValueError(f"{self} has no static size")
            total *= n
        return total

    def with_shape(self, shape: Shape) -> Num:
        return Num(self.dtype, tuple(shape))

    def __str__(self) -> str:
        if self.text:
            return "str"
        if self.python:
            return {"int64": "int", "float64": "float", "bool": "pybool", "complex128": "complex"}[self.dtype]
        if not self.shape:
            return self.dtype
        return f"{self.dtype}[{', '.join('?' if n is None else str(n) for n in self.shape)}]"


@dataclass(frozen=True)
class Ref:
    """A row of a table: a node of a packed object graph, an element of a packed list, or a frame of a function
    (table name '@name') whose results are the fields. -1 is None; only a nullable Ref may hold it."""

    table: str
    nullable: bool = False

    def __str__(self) -> str:
        return f"ref<{self.table}{'?' if self.nullable else ''}>"


@dataclass(frozen=True)
class Seq:
    """A run of consecutive rows of a table: (first row, number of rows). A list whose length varies."""

    table: str

    def __str__(self) -> str:
        return f"seq<{self.table}>"


Type = Num | Ref | Seq

INT = Num("int64", python=True)
FLOAT = Num("float64", python=True)
BOOL = Num("bool", python=True)
TEXT = Num("int64", text=True)


def fits(given: Type, wanted: Type) -> bool:
    """Whether a value of type `given` may stand where `wanted` is: the same type, or a row that is never None where
    one that may be is expected."""
    return given == wanted or isinstance(given, Ref) and wanted == Ref(given.table, True)


def carries_gradient(type_: Type) -> bool:
    """Whether a value of this type can have a cotangent (float leaves only)."""
    return isinstance(type_, Num) and type_.floating


def join(a: Type, b: Type) -> Type | None:
    """The type of a value that is an `a` on one path and a `b` on another; None where there is none.

    Scalars: Python kinds widen bool < int < float among themselves; a Python kind joined with a NumPy kind of the
    same or a wider family gives the NumPy kind (weak scalars, DESIGN 8: join(weak float, float32) = float32).
    Arrays must agree in rank; sizes that differ become dynamic.
    """
    if a == b:
        return a
    if isinstance(a, Ref) and isinstance(b, Ref) and a.table == b.table:
        return Ref(a.table, a.nullable or b.nullable)
    if isinstance(a, Num) and isinstance(b, Num):
        return _join_numbers(a, b)
    return None


def _join_numbers(a: Num, b: Num) -> Num | None:
    if a.text or b.text or a.rank != b.rank:
        return None
    if a.python and b.python:
        order = ["bool", "int64", "float64", "complex128"]
        return Num(order[max(order.index(a.dtype), order.index(b.dtype))], python=True)
    if a.python or b.python:
        weak, strong = (a, b) if a.python else (b, a)
        return replace(strong, dtype=promote_weak(weak.dtype, strong.dtype))
    shape = tuple(m if m == n else None for m, n in zip(a.shape, b.shape))
    return Num(str(np.promote_types(a.dtype, b.dtype)), shape)


def promote_weak(weak: str, strong: str) -> str:
    """NumPy 2's result dtype of a Python scalar (dtype name `weak`) with a NumPy value of dtype `strong`."""
    sample = {"bool": True, "int64": 1, "float64": 1.0, "complex128": 1j}[weak]
    return str(np.result_type(sample, np.dtype(strong)))
