"""The beginning of every compiled function: it takes its arrays out of a tuple and checks them.

Invariant: a `Place` exists only for an array that fits; the function returns -1 - i, before it has touched any element,
if the array numbered i does not. Must not know what the function does afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass

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
    """Writes the checks into a builder's current block. After `close`, code runs only if all arrays fit."""

    def __init__(self, b: Builder) -> None:
        self.b = b
        self._refusals: list[tuple[str, int]] = []
        b.functions["row_stride"] = arrays.ROW_STRIDE
        self.type = self.item(0)

    def item(self, position: int) -> str:
        at = self.b.scalar(f"getelementptr i8, ptr %arguments, i64 {arrays.ITEMS + 8 * position}")
        return self.b.scalar(f"load ptr, ptr {at}")

    def is_array(self, item: str) -> str:
        """Register of type i1: whether an object is a NumPy array."""
        at = self.b.scalar(f"getelementptr i8, ptr {item}, i64 {arrays.TYPE}")
        return self.b.scalar(f"icmp eq ptr {self.b.scalar(f'load ptr, ptr {at}')}, {self.type}")

    def place(self, number: int, position: int, kind: str, dtype: str, *, written: bool, rows: str = "%K") -> Place:
        """The array at a position of the tuple, blamed as `number` if it does not fit.

        `kind` is 'full' [rows, F], 'row' [rows], 'col' [F] or 'one' [].
        """
        b, element = self.b, ELEMENTS[dtype]
        lead = rows if kind in ("full", "row") else "-1"
        flags = arrays.WRITEABLE if written else 0
        item = self.item(position)
        stride = b.scalar(
            f"call i64 @row_stride(ptr {item}, ptr {self.type}, i32 {arrays.type_number(dtype)}, "
            f"i64 {SIZES[stored(element)]}, i64 {lead}, i64 {INNER[kind]}, i32 {flags})"
        )
        bad = b.scalar(f"icmp eq i64 {stride}, {arrays.NOT_FITTING}")
        good = b.fresh("fits")
        self._refusals.append((b.block, number))
        b.write(f"br i1 {bad}, label %refuse, label %{good}")
        b.open(good)
        data = b.scalar(f"load ptr, ptr {b.scalar(f'getelementptr i8, ptr {item}, i64 {arrays.DATA}')}")
        return Place(kind, element, data, stride)

    def close(self) -> None:
        b = self.b
        ready = b.fresh("ready")
        b.write(f"br label %{ready}")
        b.open("refuse")
        incoming = ", ".join(f"[ {-1 - number}, %{block} ]" for block, number in self._refusals)
        b.write(f"ret i64 {b.scalar(f'phi i64 {incoming}')}" if incoming else "unreachable")
        b.open(ready)


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
