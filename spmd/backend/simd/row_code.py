"""The LLVM text of the row kernels.

Invariant: a function first checks its arrays, then every index, and only then writes; it returns 0, -1 - i for array i,
or 1 + k for the index of row k. Must not know Python's side of the call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from spmd.backend.simd.arithmetic import ALL, ELEMENTS, NUMBERS
from spmd.backend.simd.entry import FIRST_ARRAY, Entry, Place, element_of, row_of
from spmd.backend.simd.memory import Stretch, load_scalar, store_scalar, stored
from spmd.backend.simd.target import Machine
from spmd.backend.simd.vector import SIZES, Builder

BLOCK = 8
"""Rows that a column sum adds before it stores: the sum stays in order, memory is visited an eighth as often."""


@dataclass(frozen=True)
class RowFunction:
    """How a row kernel is written; its arrays, the written one first, as (name, kind, rows: 'K' or 'N')."""

    arguments: tuple[tuple[str, str, str], ...]
    body: Callable[[Builder, list[Place]], None]
    dtypes: frozenset[str] = NUMBERS

    def write(self, dtype: str, machine: Machine) -> Builder:
        b = Builder(machine, machine.lanes(SIZES[stored(ELEMENTS[dtype])]))
        b.write("br label %check")
        b.open("check")
        entry = Entry(b)
        for i, (_, kind, lead) in enumerate(self.arguments):
            wanted = "int64" if kind == "row" else dtype
            entry.want(FIRST_ARRAY + i, kind, wanted, written=i == 0, rows=f"%{lead}")
        self.body(b, entry.close())
        return b


def _load_index(b: Builder, place: Place, k: str) -> str:
    return load_scalar(b, "i64", row_of(b, place, k))


def _refuse_unless(b: Builder, condition: str, k: str) -> None:
    good, bad = b.fresh("inside"), b.fresh("outside")
    b.write(f"br i1 {condition}, label %{good}, label %{bad}")
    b.open(bad)
    b.write(f"ret i64 {b.scalar(f'add i64 {k}, 1')}")
    b.open(good)


def _check_indices(b: Builder, indices: Place) -> None:
    k = b.open_loop("check", "0", "%K", 1)
    # as unsigned numbers negative indices are beyond the end too
    _refuse_unless(b, b.scalar(f"icmp ult i64 {_load_index(b, indices, k)}, %N"), k)
    b.close_loop("check")


def _stretch(b: Builder, j: str) -> Stretch:
    stretch = Stretch(b, b.scalar(f"sub i64 %F, {j}"))
    if b.machine.masked:
        _ = stretch.active
    return stretch


def _gather(b: Builder, places: list[Place]) -> None:
    out, indices, source = places
    _check_indices(b, indices)
    b.write(f"br i1 {b.scalar('icmp eq i64 %F, 1')}, label %single, label %several")
    b.open("single")
    k = b.open_loop("items", "0", "%K", 1)
    item = load_scalar(b, source.element, row_of(b, source, _load_index(b, indices, k)))
    store_scalar(b, out.element, item, row_of(b, out, k))
    b.close_loop("items")
    b.write("ret i64 0")
    b.open("several")
    k = b.open_loop("rows", "0", "%K", 1)
    source_row, out_row = row_of(b, source, _load_index(b, indices, k)), row_of(b, out, k)
    j = b.open_loop("features", "0", "%F", b.lanes)
    stretch = _stretch(b, j)
    value = stretch.load(source.element, element_of(b, source, source_row, j))
    stretch.store(value, element_of(b, out, out_row, j))
    b.close_loop("features")
    b.close_loop("rows")
    b.write("ret i64 0")


def _scatter_add(b: Builder, places: list[Place]) -> None:
    target, indices, source = places
    _check_indices(b, indices)
    k = b.open_loop("rows", "0", "%K", 1)
    source_row, target_row = row_of(b, source, k), row_of(b, target, _load_index(b, indices, k))
    j = b.open_loop("features", "0", "%F", b.lanes)
    stretch = _stretch(b, j)
    at = element_of(b, target, target_row, j)
    total = stretch.load(target.element, at) + stretch.load(source.element, element_of(b, source, source_row, j))
    stretch.store(total, at)
    b.close_loop("features")
    b.close_loop("rows")
    b.write("ret i64 0")


def _segment_sum(b: Builder, places: list[Place]) -> None:
    out, starts, counts, source = places
    k = b.open_loop("check", "0", "%K", 1)
    start, count = _load_index(b, starts, k), _load_index(b, counts, k)
    # start <= N and count <= N - start, as unsigned numbers: no sum that could wrap
    inside = b.scalar(f"icmp ule i64 {start}, %N")
    fits = b.scalar(f"icmp ule i64 {count}, {b.scalar(f'sub i64 %N, {start}')}")
    _refuse_unless(b, b.scalar(f"and i1 {inside}, {fits}"), k)
    b.close_loop("check")
    k = b.open_loop("rows", "0", "%K", 1)
    start, count = _load_index(b, starts, k), _load_index(b, counts, k)
    end, out_row = b.scalar(f"add i64 {start}, {count}"), row_of(b, out, k)
    j = b.open_loop("features", "0", "%F", b.lanes)
    stretch = _stretch(b, j)
    total = b.stack(b.vector(out.element))
    zero = b.constant(out.element, 0)
    b.write(f"store {zero.type} {zero.name}, ptr {total}")
    t = b.open_loop("segment", start, end, 1)
    item = stretch.load(source.element, element_of(b, source, row_of(b, source, t), j))
    before = b.emit(out.element, f"load {item.type}, ptr {total}")
    after = before + item
    b.write(f"store {after.type} {after.name}, ptr {total}")
    b.close_loop("segment")
    stretch.store(b.emit(out.element, f"load {item.type}, ptr {total}"), element_of(b, out, out_row, j))
    b.close_loop("features")
    b.close_loop("rows")
    b.write("ret i64 0")


def _column_sum(b: Builder, places: list[Place]) -> None:
    out, source = places
    j = b.open_loop("clear", "0", "%F", b.lanes)
    _stretch(b, j).store(b.constant(out.element, 0), element_of(b, out, out.data, j))
    b.close_loop("clear")
    blocks = b.scalar(f"and i64 %K, {-BLOCK}")
    for name, first, end, step in (("blocks", "0", blocks, BLOCK), ("rest", blocks, "%K", 1)):
        k = b.open_loop(name, first, end, step)
        rows = [row_of(b, source, b.scalar(f"add i64 {k}, {i}")) for i in range(step)]
        j = b.open_loop(f"{name}.features", "0", "%F", b.lanes)
        stretch = _stretch(b, j)
        at = element_of(b, out, out.data, j)
        total = stretch.load(out.element, at)
        for row in rows:
            total = total + stretch.load(source.element, element_of(b, source, row, j))
        stretch.store(total, at)
        b.close_loop(f"{name}.features")
        b.close_loop(name)
    b.write("ret i64 0")


INDICES = ("the index array", "row", "K")

WRITERS: dict[str, RowFunction] = {
    "gather": RowFunction((("out", "full", "K"), INDICES, ("source", "full", "N")), _gather, ALL),
    "scatter_add": RowFunction((("target", "full", "N"), INDICES, ("source", "full", "K")), _scatter_add),
    "segment_sum": RowFunction(
        (("out", "full", "K"), ("starts", "row", "K"), ("counts", "row", "K"), ("source", "full", "N")), _segment_sum
    ),
    "column_sum": RowFunction((("out", "col", "K"), ("source", "full", "K")), _column_sum),
}
