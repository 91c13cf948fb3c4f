"""Loads and stores of a vector's lanes: whole, the last ones of an array, at any distance from each other.

Invariant: memory outside of the array is neither read nor written. On machines with masked instructions a partial
vector is one masked instruction; elsewhere, and for elements that do not touch, the lanes go through a small buffer on
the stack, so that the code between load and store exists once. Must not know chains.
"""

from __future__ import annotations

from spmd.backend.simd.vector import SHORT, SIZES, Builder, Value


def copy_function(size: int) -> str:
    """LLVM text of a loop that copies `count` elements of `size` bytes from one distance to another."""
    bits = 8 * size
    return f"""
define internal void @copy{size}(ptr %to, i64 %to.step, ptr %from, i64 %from.step, i64 %count) noinline {{
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %i.next, %body ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %body, label %done
body:
  %from.offset = mul i64 %i, %from.step
  %to.offset = mul i64 %i, %to.step
  %from.at = getelementptr i8, ptr %from, i64 %from.offset
  %to.at = getelementptr i8, ptr %to, i64 %to.offset
  %item = load i{bits}, ptr %from.at, align 1
  store i{bits} %item, ptr %to.at, align 1
  %i.next = add i64 %i, 1
  br label %head
done:
  ret void
}}
"""


def stored(element: str) -> str:
    """Element type in memory: masks are bytes."""
    return "i8" if element == "i1" else element


def load_scalar(b: Builder, element: str, pointer: str) -> str:
    register = b.scalar(f"load {stored(element)}, ptr {pointer}, align 1")
    return b.scalar(f"icmp ne i8 {register}, 0") if element == "i1" else register


def store_scalar(b: Builder, element: str, register: str, pointer: str) -> None:
    if element == "i1":
        register = b.scalar(f"zext i1 {register} to i8")
    b.write(f"store {stored(element)} {register}, ptr {pointer}, align 1")


class Stretch:
    """The lanes of one step of a loop: at most `builder.lanes` of the `remaining` elements (a register, at least 1)."""

    def __init__(self, b: Builder, remaining: str) -> None:
        self.b = b
        self.whole = b.scalar(f"icmp uge i64 {remaining}, {b.lanes}")
        self.count = b.scalar(f"select i1 {self.whole}, i64 {b.lanes}, i64 {remaining}")
        self._active: Value | None = None

    @property
    def active(self) -> Value:
        """Mask of the lanes that stand for an element. Ask for it first in the block where the step begins."""
        if self._active is None:
            short = self.b.scalar(f"trunc i64 {self.count} to i32")
            self._active = self.b.lane_numbers("i32").compare("lt", self.b.splat("i32", short), unsigned=True)
        return self._active

    def load(self, element: str, pointer: str, stride: str | None = None) -> Value:
        """Lanes from `pointer` on; contiguous, or `stride` (a register) bytes from each other."""
        b, kind = self.b, stored(element)
        fast = self._fast(kind, stride)
        if fast is not None:
            buffer = self._buffer(kind)
            pull, join = b.fresh("pull"), b.fresh("join")
            before = b.block
            b.write(f"br i1 {fast}, label %{join}, label %{pull}")
            b.open(pull)
            self._copy(kind, buffer, str(SIZES[kind]), pointer, stride or str(SIZES[kind]))
            b.write(f"br label %{join}")
            b.open(join)
            pointer = b.scalar(f"phi ptr [ {pointer}, %{before} ], [ {buffer}, %{pull} ]")
        value = self._load_whole(kind, pointer)
        return value.ne(0) if element == "i1" else value

    def store(self, value: Value, pointer: str, stride: str | None = None) -> None:
        b = self.b
        kind = stored(value.element)
        if value.element == "i1":
            value = b.convert("zext", value, "i8")
        fast = self._fast(kind, stride)
        if fast is None:
            self._store_whole(value, pointer)
            return
        buffer = self._buffer(kind)
        place = b.scalar(f"select i1 {fast}, ptr {pointer}, ptr {buffer}")
        self._store_whole(value, place)
        push, join = b.fresh("push"), b.fresh("join")
        b.write(f"br i1 {fast}, label %{join}, label %{push}")
        b.open(push)
        self._copy(kind, pointer, stride or str(SIZES[kind]), buffer, str(SIZES[kind]))
        b.write(f"br label %{join}")
        b.open(join)

    def _fast(self, kind: str, stride: str | None) -> str | None:
        """Register that tells whether memory can be accessed directly; None if it always can."""
        masked = self.b.machine.masked
        if stride is None:
            return None if masked else self.whole
        adjacent = self.b.scalar(f"icmp eq i64 {stride}, {SIZES[kind]}")
        return adjacent if masked else self.b.scalar(f"and i1 {adjacent}, {self.whole}")

    def _buffer(self, kind: str) -> str:
        vector = self.b.vector(kind)
        buffer = self.b.stack(vector)
        # lanes behind the end compute with what the buffer holds: defined, though never used
        self.b.entry.append(f"  store {vector} zeroinitializer, ptr {buffer}, align 64")
        return buffer

    def _copy(self, kind: str, to: str, to_step: str, source: str, source_step: str) -> None:
        size = SIZES[kind]
        self.b.functions[f"copy{size}"] = copy_function(size)
        arguments = f"ptr {to}, i64 {to_step}, ptr {source}, i64 {source_step}, i64 {self.count}"
        self.b.write(f"call void @copy{size}({arguments})")

    def _load_whole(self, kind: str, pointer: str) -> Value:
        b, vector = self.b, self.b.vector(kind)
        if not b.machine.masked:
            return b.emit(kind, f"load {vector}, ptr {pointer}, align 1")
        mask = self.active
        name = f"@llvm.masked.load.v{b.lanes}{SHORT[kind]}.p0"
        b.declarations.add(f"declare {vector} {name}(ptr, i32, {mask.type}, {vector})")
        return b.emit(
            kind, f"call {vector} {name}(ptr {pointer}, i32 1, {mask.type} {mask.name}, {vector} zeroinitializer)"
        )

    def _store_whole(self, value: Value, pointer: str) -> None:
        b = self.b
        if not b.machine.masked:
            b.write(f"store {value.type} {value.name}, ptr {pointer}, align 1")
            return
        mask = self.active
        name = f"@llvm.masked.store.v{b.lanes}{SHORT[value.element]}.p0"
        b.declarations.add(f"declare void {name}({value.type}, ptr, i32, {mask.type})")
        b.write(f"call void {name}({value.type} {value.name}, ptr {pointer}, i32 1, {mask.type} {mask.name})")
