"""The beginning of every compiled function: it takes its arrays out of a tuple and checks them.

Invariant: a `Place` exists only for an array that fits; the function returns -1 - i, before it has touched any element,
if the array numbered i does not. Must not know what the function does afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from spmd.backend.simd import arrays
from spmd.backend.simd.arithmetic import ELEMENTS
from spmd.backend.simd.memory import stored
from spmd.backend.simd.vector import SIZES, Builder

FIRST_ARRAY = 2
"""Position in the tuple of the first array; before it come the type of arrays and the error array."""
INNER = {"full": "%F", "col": "%F", "row": "1", "one": "1"}


@dataclass(frozen=True)
class Place:
    """An array in the function: its address and the bytes from row to row (registers), and how it varies."""

    kind: str
    element: str
    data: str
    stride: str


class Entry:
    """Writes the checks into a builder's current block: `want` each array, then `close`, behind which all fit."""

    def __init__(self, b: Builder) -> None:
        self.b = b
        self._wanted: list[tuple[str, Place]] = []
        self._bad: list[str] = []
        b.functions["row_stride"] = arrays.ROW_STRIDE
        self.type = self.item(0)

    def item(self, position: int) -> str:
        at = self.b.scalar(f"getelementptr i8, ptr %arguments, i64 {arrays.ITEMS + 8 * position}")
        return self.b.scalar(f"load ptr, ptr {at}")

    def want(self, position: int, kind: str, dtype: str, *, written: bool, rows: str = "%K") -> None:
        """Checks the array at a position of the tuple: 'full' [rows, F], 'row' [rows], 'col' [F] or 'one' []."""
        item = self.item(position)
        stride = self._stride(item, kind, dtype, written, rows)
        self._bad.append(self.b.scalar(f"icmp eq i64 {stride}, {arrays.NOT_FITTING}"))
        self._wanted.append((item, Place(kind, ELEMENTS[dtype], "", stride)))

    def want_or_none(self, position: int, kind: str, dtype: str) -> str:
        """As `want`, for an array to write that may be left out; returns a register of type i1: whether it is there.

        Anything but an array counts as left out.
        """
        b, item = self.b, self.item(position)
        type_at = b.scalar(f"getelementptr i8, ptr {item}, i64 {arrays.TYPE}")
        there = b.scalar(f"icmp eq ptr {b.scalar(f'load ptr, ptr {type_at}')}, {self.type}")
        stride = self._stride(item, kind, dtype, True, "%K")
        misfit = b.scalar(f"icmp eq i64 {stride}, {arrays.NOT_FITTING}")
        self._bad.append(b.scalar(f"and i1 {there}, {misfit}"))
        # what is read as the address of a missing array is never used, but must be memory: the tuple is
        self._wanted.append(
            (b.scalar(f"select i1 {there}, ptr {item}, ptr %arguments"), Place(kind, ELEMENTS[dtype], "", stride))
        )
        return there

    def _stride(self, item: str, kind: str, dtype: str, written: bool, rows: str) -> str:
        lead = rows if kind in ("full", "row") else "-1"
        return self.b.scalar(
            f"call i64 @row_stride(ptr {item}, ptr {self.type}, i32 {arrays.type_number(dtype)}, "
            f"i64 {SIZES[stored(ELEMENTS[dtype])]}, i64 {lead}, i64 {INNER[kind]}, "
            f"i32 {arrays.WRITEABLE if written else 0})"
        )

    def close(self) -> list[Place]:
        """Ends the checks: one branch, for branches cost more time to compile than to run. The places in order."""
        b = self.b
        first_bad = "0"
        for number in reversed(range(len(self._bad))):
            first_bad = b.scalar(f"select i1 {self._bad[number]}, i64 {-1 - number}, i64 {first_bad}")
        b.write(f"br i1 {b.scalar(f'icmp eq i64 {first_bad}, 0')}, label %ready, label %refuse")
        b.open("refuse")
        b.write(f"ret i64 {first_bad}")
        b.open("ready")
        places = []
        for item, place in self._wanted:
            data = b.scalar(f"load ptr, ptr {b.scalar(f'getelementptr i8, ptr {item}, i64 {arrays.DATA}')}")
            places.append(replace(place, data=data))
        return places


def row_of(b: Builder, place: Place, k: str) -> str:
    """Address of row k."""
    offset = b.scalar(f"mul i64 {k}, {place.stride}")
    return b.scalar(f"getelementptr i8, ptr {place.data}, i64 {offset}")


def element_of(b: Builder, place: Place, base: str, j: str) -> str:
    """Address of element j of the row (or vector) at `base`."""
    return b.scalar(f"getelementptr {stored(place.element)}, ptr {base}, i64 {j}")


def refusal(found: object, what: str, kind: str, dtype: str, K: int, F: int, *, written: bool) -> ValueError:
    """The error for an array that does not fit its place."""
    import numpy as np

    shape = {"full": f"[{K}, {F}], rows contiguous", "row": f"[{K}]", "col": f"[{F}], contiguous", "one": "[]"}[kind]
    if isinstance(found, np.ndarray):
        has = f"{found.dtype} {list(found.shape)} with strides {found.strides}"
        has += "" if found.flags.writeable else ", read-only"
    else:
        has = type(found).__name__
    return ValueError(f"{what} must be a {'writeable ' * written}{dtype} array {shape}; it is {has}")
