"""Vector code as LLVM text: values with operators, and the builder that numbers and writes their instructions.

Invariant: a `Value` is one SSA register (or constant) of `lanes` equal elements; every instruction goes to the
builder's current block, and only numbers and names made here reach the text. Arithmetic is strict (no contraction, no
reassociation) unless `flags` says otherwise. Must not know chains, arrays or the user's program.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from spmd.backend.simd.target import Machine

SIZES = {"double": 8, "float": 4, "i64": 8, "i32": 4, "i16": 2, "i8": 1, "i1": 1}
SHORT = {"double": "f64", "float": "f32", "i64": "i64", "i32": "i32", "i16": "i16", "i8": "i8", "i1": "i1"}
MANTISSA = {"double": 52, "float": 23}
BIAS = {"double": 1023, "float": 127}
INTEGER = {"double": "i64", "float": "i32"}
FLOAT = {"i64": "double", "i32": "float"}

Number = int | float | bool


def single(value: float) -> float:
    """The float32 nearest to a float, as a float; beyond the range of float32 an infinity."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def literal(element: str, value: Number) -> str:
    """LLVM's text for a constant of an element type; integers wrap to the type's width."""
    if element in FLOAT.values():
        number = float(value) if element == "double" else single(float(value))
        return "0x" + struct.pack(">d", number).hex().upper()
    if element == "i1":
        return "true" if value else "false"
    bits = 8 * SIZES[element]
    wrapped = int(value) & ((1 << bits) - 1)
    return str(wrapped - (1 << bits) if wrapped >> (bits - 1) else wrapped)


class Value:
    """A vector of equal elements. Operators write instructions; Python numbers become constants of the same element."""

    __slots__ = ("builder", "name", "element")

    def __init__(self, builder: Builder, name: str, element: str) -> None:
        self.builder, self.name, self.element = builder, name, element

    @property
    def type(self) -> str:
        return self.builder.vector(self.element)

    @property
    def floating(self) -> bool:
        return self.element in INTEGER

    def _binary(self, floating: str, integer: str, other: Value | Number, swapped: bool = False) -> Value:
        builder = self.builder
        left, right = self, builder.lift(other, self.element)
        if swapped:
            left, right = right, left
        operation = f"{floating}{builder.flags}" if self.floating else integer
        return builder.emit(self.element, f"{operation} {left.type} {left.name}, {right.name}")

    def __add__(self, other: Value | Number) -> Value:
        return self._binary("fadd", "add", other)

    def __sub__(self, other: Value | Number) -> Value:
        return self._binary("fsub", "sub", other)

    def __rsub__(self, other: Number) -> Value:
        return self._binary("fsub", "sub", other, swapped=True)

    def __mul__(self, other: Value | Number) -> Value:
        return self._binary("fmul", "mul", other)

    def __truediv__(self, other: Value | Number) -> Value:
        return self._binary("fdiv", "sdiv", other)

    def __rtruediv__(self, other: Number) -> Value:
        return self._binary("fdiv", "sdiv", other, swapped=True)

    def __and__(self, other: Value | Number) -> Value:
        return self._binary("and", "and", other)

    def __or__(self, other: Value | Number) -> Value:
        return self._binary("or", "or", other)

    def __xor__(self, other: Value | Number) -> Value:
        return self._binary("xor", "xor", other)

    def __lshift__(self, other: Value | Number) -> Value:
        return self._binary("shl", "shl", other)

    def __rshift__(self, other: Value | Number) -> Value:
        """Logical shift: on AVX2 the arithmetic one does not exist for 64 bits."""
        return self._binary("lshr", "lshr", other)

    def __neg__(self) -> Value:
        if self.floating:
            return self.builder.emit(self.element, f"fneg{self.builder.flags} {self.type} {self.name}")
        return 0 - self

    def __invert__(self) -> Value:
        return self ^ (1 if self.element == "i1" else -1)

    def compare(self, relation: str, other: Value | Number, unsigned: bool = False) -> Value:
        """Mask of lanes where a relation (lt le gt ge eq ne) holds; with a NaN only ne does."""
        right = self.builder.lift(other, self.element)
        if self.floating:
            code = f"fcmp {'une' if relation == 'ne' else 'o' + relation}"
        else:
            sign = "" if relation in ("eq", "ne") else "u" if unsigned else "s"
            code = f"icmp {sign}{relation}"
        return self.builder.emit("i1", f"{code} {self.type} {self.name}, {right.name}")

    def lt(self, other: Value | Number) -> Value:
        return self.compare("lt", other)

    def le(self, other: Value | Number) -> Value:
        return self.compare("le", other)

    def gt(self, other: Value | Number) -> Value:
        return self.compare("gt", other)

    def ge(self, other: Value | Number) -> Value:
        return self.compare("ge", other)

    def eq(self, other: Value | Number) -> Value:
        return self.compare("eq", other)

    def ne(self, other: Value | Number) -> Value:
        return self.compare("ne", other)

    def unordered(self) -> Value:
        """Mask of lanes that hold NaN."""
        return self.builder.emit("i1", f"fcmp uno {self.type} {self.name}, {self.name}")


class Builder:
    """Writes one function: numbers registers, opens blocks, and collects the intrinsics that must be declared."""

    def __init__(self, machine: Machine, lanes: int) -> None:
        self.machine = machine
        self.lanes = lanes
        self.flags = ""
        self.lines: list[str] = []
        self.entry: list[str] = []
        self.declarations: set[str] = set()
        self.functions: dict[str, str] = {}
        self.block = "entry"
        self._count = 0

    # ---- registers and blocks

    def fresh(self, stem: str = "v") -> str:
        self._count += 1
        return f"{stem}{self._count}"

    def write(self, line: str) -> None:
        self.lines.append("  " + line)

    def scalar(self, text: str) -> str:
        """Writes an instruction whose result is no vector of lanes; returns the register."""
        name = "%" + self.fresh("s")
        self.write(f"{name} = {text}")
        return name

    def emit(self, element: str, text: str) -> Value:
        name = "%" + self.fresh()
        self.write(f"{name} = {text}")
        return Value(self, name, element)

    def open(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block = label

    def open_loop(self, name: str, start: str, end: str, step: int) -> str:
        """Begins a loop; returns the register of its counter. Between here and `close_loop` is the body."""
        index, before = f"%{name}.i", self.block
        self.write(f"br label %{name}.head")
        self.open(f"{name}.head")
        self.write(f"{index} = phi i64 [ {start}, %{before} ], [ %{name}.next, %{name}.latch ]")
        self.write(f"%{name}.more = icmp slt i64 {index}, {end}")
        self.write(f"br i1 %{name}.more, label %{name}.body, label %{name}.done")
        self.open(f"{name}.latch")
        self.write(f"%{name}.next = add i64 {index}, {step}")
        self.write(f"br label %{name}.head")
        self.open(f"{name}.body")
        return index

    def close_loop(self, name: str) -> None:
        self.write(f"br label %{name}.latch")
        self.open(f"{name}.done")

    def function(self, name: str, parameters: str) -> str:
        """The text of the function written so far, returning i64."""
        allocations = "\n".join(self.entry)
        body = "\n".join(self.lines)
        return f"define i64 @{name}({parameters}) {{\nentry:\n{allocations}\n{body}\n}}\n"

    def stack(self, type_text: str) -> str:
        """Memory of the function's frame; allocated in the entry block however late it is asked for."""
        name = "%" + self.fresh("m")
        self.entry.append(f"  {name} = alloca {type_text}, align 64")
        return name

    # ---- values

    def vector(self, element: str) -> str:
        return f"<{self.lanes} x {element}>"

    def suffix(self, element: str) -> str:
        """How the names of intrinsics end for this element."""
        return f"v{self.lanes}{SHORT[element]}"

    def constant(self, element: str, value: Number) -> Value:
        return Value(self, f"splat ({element} {literal(element, value)})", element)

    def lift(self, value: Value | Number, element: str) -> Value:
        return value if isinstance(value, Value) else self.constant(element, value)

    def splat(self, element: str, register: str) -> Value:
        """A scalar register in all lanes."""
        one = self.scalar(f"insertelement {self.vector(element)} poison, {element} {register}, i64 0")
        zeros = f"<{self.lanes} x i32> zeroinitializer"
        return self.emit(element, f"shufflevector {self.vector(element)} {one}, {self.vector(element)} poison, {zeros}")

    def lane_numbers(self, element: str = "i64") -> Value:
        items = ", ".join(f"{element} {i}" for i in range(self.lanes))
        return Value(self, f"<{items}>", element)

    def extract(self, value: Value, lane: int = 0) -> str:
        return self.scalar(f"extractelement {value.type} {value.name}, i64 {lane}")

    # ---- operations that are not operators

    def select(self, mask: Value, true: Value | Number, false: Value | Number) -> Value:
        element = true.element if isinstance(true, Value) else false.element if isinstance(false, Value) else "i1"
        first, second = self.lift(true, element), self.lift(false, element)
        return self.emit(
            element, f"select {mask.type} {mask.name}, {first.type} {first.name}, {second.type} {second.name}"
        )

    def convert(self, operation: str, value: Value, element: str) -> Value:
        return self.emit(element, f"{operation} {value.type} {value.name} to {self.vector(element)}")

    def bits(self, value: Value) -> Value:
        """The same bits as integers."""
        return self.convert("bitcast", value, INTEGER[value.element])

    def floats(self, value: Value) -> Value:
        """The same bits as floats."""
        return self.convert("bitcast", value, FLOAT[value.element])

    def intrinsic(self, name: str, *operands: Value) -> Value:
        """An elementwise LLVM intrinsic, such as ``sqrt``, on operands of one type."""
        element = operands[0].element
        vector = self.vector(element)
        full = f"@llvm.{name}.{self.suffix(element)}"
        self.declarations.add(f"declare {vector} {full}({', '.join([vector] * len(operands))})")
        arguments = ", ".join(f"{vector} {operand.name}" for operand in operands)
        return self.emit(element, f"call {vector} {full}({arguments})")

    def sqrt(self, value: Value) -> Value:
        return self.intrinsic("sqrt", value)

    def fabs(self, value: Value) -> Value:
        return self.intrinsic("fabs", value)

    def copysign(self, magnitude: Value, sign: Value) -> Value:
        return self.intrinsic("copysign", magnitude, sign)

    def mad(self, first: Value, second: Value | Number, third: Value | Number) -> Value:
        """first * second + third, fused where the machine has the instruction: for elementary functions only."""
        second, third = self.lift(second, first.element), self.lift(third, first.element)
        if self.machine.fma:
            return self.intrinsic("fma", first, second, third)
        return first * second + third

    def scale_instruction(self, value: Value, power: Value) -> Value | None:
        """value * 2^power (a whole float) with one rounding, by AVX-512's instruction; None if there is none."""
        bits = 8 * SIZES[value.element] * self.lanes
        if not self.machine.scales or bits not in (128, 256, 512):
            return None
        suffix = "pd" if value.element == "double" else "ps"
        mask = f"i{max(8, self.lanes)}"
        rounding = ", i32" if bits == 512 else ""
        name = f"@llvm.x86.avx512.mask.scalef.{suffix}.{bits}"
        parameters = f"{value.type}, {value.type}, {value.type}, {mask}{rounding}"
        self.declarations.add(f"declare {value.type} {name}({parameters})")
        # 4: the current rounding mode
        return self.emit(
            value.element,
            f"call {value.type} {name}({value.type} {value.name}, {value.type} {power.name}, "
            f"{value.type} zeroinitializer, {mask} -1{', i32 4' if rounding else ''})",
        )

    def polynomial(self, variable: Value, coefficients: Iterable[float]) -> Value:
        """Horner's scheme; coefficients from the constant term upwards."""
        reversed_coefficients = list(coefficients)[::-1]
        result = self.constant(variable.element, reversed_coefficients[0])
        for coefficient in reversed_coefficients[1:]:
            result = self.mad(result, variable, coefficient)
        return result

    def any(self, mask: Value) -> str:
        """Register of type i1: whether a lane is on."""
        self.declarations.add(f"declare i1 @llvm.vector.reduce.or.v{self.lanes}i1({mask.type})")
        return self.scalar(f"call i1 @llvm.vector.reduce.or.v{self.lanes}i1({mask.type} {mask.name})")

    @contextmanager
    def contracting(self, allowed: bool) -> Iterator[None]:
        """Inside, arithmetic may be fused if `allowed`; elementary functions write theirs outside of it."""
        before, self.flags = self.flags, " contract" if allowed else ""
        try:
            yield
        finally:
            self.flags = before
