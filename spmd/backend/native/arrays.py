"""Reads and writes of arrays in loops.

Invariant: no address outside of an array is touched: every index is checked where it is used. An array is written in
place only where its block is owned and the op is its last reader; else a copy is written. Must not know control flow
beyond "this row fails if".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from spmd.backend.native.liveness import Liveness
from spmd.backend.native.scalars import ScalarBuilder, element_of
from spmd.backend.native.support import as_number, in_memory, keeps, small
from spmd.backend.native.things import Array, Small, Thing
from spmd.backend.simd import arithmetic
from spmd.backend.simd.memory import load_scalar, store_scalar, stored
from spmd.backend.simd.vector import SIZES, Value
from spmd.ir.core import Op
from spmd.ir.core import Value as Name
from spmd.ir.types import Num


def num(value: Name) -> Num:
    return as_number(value.type)


class ArrayWriter:
    """Emits ops on arrays: `_op_NAME` for each. `owned` holds the blocks that the path so far must give back."""

    def __init__(self, b: ScalarBuilder, liveness: Liveness) -> None:
        self.b = b
        self.name = ""
        self.liveness = liveness
        self.env: dict[Name, Thing] = {}
        self.owned: dict[Name, Array] = {}
        self.globals: list[str] = []
        self.constants: dict[Name, object] = {}
        # Values that are defined outside of the loop at hand: their blocks are not given back in it.
        self.outer: frozenset[Name] = frozenset()

    def fails(self, op: Op, mask: str) -> None:
        """Ends the row where the mask (i1) is on."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------------------ values
    def scalar(self, value: Name) -> Value:
        found = self.env[value]
        assert isinstance(found, Value)
        return found

    def few(self, value: Name) -> Small:
        """A small array, or a number as one."""
        found = self.env[value]
        if isinstance(found, Value):
            return Small((found,))
        assert isinstance(found, Small)
        return found

    def array(self, value: Name) -> Array:
        found = self.env[value]
        assert isinstance(found, Array)
        return found

    def define(self, value: Name, thing: Thing) -> None:
        self.env[value] = thing
        if isinstance(thing, Array) and thing.owned:
            self.owned[value] = thing

    def dims(self, value: Name) -> tuple[str, ...]:
        found = self.env[value]
        return found.dims if isinstance(found, Array) else tuple(str(n) for n in num(value).shape)

    # ------------------------------------------------------------------------------------------ memory
    def times(self, factors: Sequence[str]) -> str:
        """The product of sizes."""
        known = 1
        out = ""
        for factor in factors:
            if factor.startswith("%"):
                out = self.b.scalar(f"mul i64 {out}, {factor}") if out else factor
            else:
                known *= int(factor)
        if not out:
            return str(known)
        return out if known == 1 else self.b.scalar(f"mul i64 {out}, {known}")

    def plus(self, x: str, y: str) -> str:
        if not x.startswith("%") and not y.startswith("%"):
            return str(int(x) + int(y))
        return self.b.scalar(f"add i64 {x}, {y}")

    def at(self, element: str, data: str, place: str) -> str:
        return self.b.scalar(f"getelementptr {stored(element)}, ptr {data}, i64 {place}")

    def take(self, op: Op, nbytes: str) -> str:
        """A block; the row fails where there is no memory left."""
        data = self.b.scalar(f"call ptr @take(ptr %t, i64 {nbytes})")
        self.no_memory(op, self.b.scalar(f"icmp eq ptr {data}, null"))
        return data

    def no_memory(self, op: Op, mask: str) -> None:
        raise NotImplementedError

    def give(self, array: Array) -> None:
        self.b.write(f"call void @give(ptr %t, ptr {array.data})")

    def copied(self, op: Op, array: Array, type_: Num) -> Array:
        """The array in a block of its own."""
        nbytes = self.times([*array.dims, str(SIZES[stored(element_of(type_.dtype))])])
        data = self.take(op, nbytes)
        self.move(data, array.data, nbytes)
        return Array(data, array.dims, True)

    def move(self, to: str, source: str, nbytes: str) -> None:
        self.b.write(f"call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {source}, i64 {nbytes}, i1 false)")

    def mine(self, op: Op, value: Name) -> Array:
        """An operand as an array that the op may write to: its own block if the op is its last reader, else a copy."""
        array = self.array(value)
        if value in self.owned and self.liveness.dies(op, value):
            del self.owned[value]
            return array
        return self.copied(op, array, num(value))

    def spilled(self, value: Name) -> str:
        """Address of a small array's elements; good until the next one is spilled."""
        elements = self.few(value).elements
        kind = stored(element_of(num(value).dtype))
        data = self.b.stack(f"[{max(len(elements), 1)} x {kind}]")
        for k, e in enumerate(elements):
            store_scalar(self.b, e.element, e.name, self.at(e.element, data, str(k)))
        return data

    def data(self, value: Name) -> str:
        """Address of any array's elements, to be read at once."""
        found = self.env[value]
        return found.data if isinstance(found, Array) else self.spilled(value)

    def loaded(self, type_: Num, data: str) -> Thing:
        """A number or a small array from memory."""
        element = element_of(type_.dtype)
        if not type_.rank:
            return Value(self.b, load_scalar(self.b, element, data), element)
        registers = [load_scalar(self.b, element, self.at(element, data, str(k))) for k in range(type_.size)]
        return Small(tuple(Value(self.b, r, element) for r in registers))

    def stored(self, value: Name, data: str) -> None:
        """Writes a value's elements to memory."""
        found = self.env[value]
        if isinstance(found, Array):
            size = str(SIZES[stored(element_of(num(value).dtype))])
            self.move(data, found.data, self.times([*found.dims, size]))
            return
        for k, e in enumerate(self.few(value).elements):
            store_scalar(self.b, e.element, e.name, self.at(e.element, data, str(k)))

    def result(self, op: Op, data: str, dims: Sequence[str]) -> None:
        """The op's result from a fresh block, which is given back where the value goes to registers."""
        type_ = num(op.result)
        array = Array(data, tuple(dims), True)
        if in_memory(type_):
            self.define(op.result, array)
            return
        self.define(op.result, self.loaded(type_, data))
        self.give(array)

    # ------------------------------------------------------------------------------------------ indices
    def integer(self, value: Name) -> str:
        """An index as i64."""
        return arithmetic.cast(self.b, num(value).dtype, "int64", self.scalar(value)).name

    def place(self, op: Op, array: Name, indices: Sequence[Name]) -> str:
        """Number of the element (or of the part's first one) that the indices lead to; the row fails outside."""
        b, dims = self.b, self.dims(array)
        offset, bad = "0", ""
        for axis, index in enumerate(indices):
            size = dims[axis]
            given = Value(b, self.integer(index), "i64")
            at = b.select(given.lt(0), given + Value(b, size, "i64"), given)
            outside = at.compare("ge", Value(b, size, "i64"), unsigned=True).name
            bad = b.scalar(f"or i1 {bad}, {outside}") if bad else outside
            offset = self.plus(self.times([offset, size]) if offset != "0" else "0", at.name)
        if bad:
            self.fails(op, bad)
        return self.times([offset, *dims[len(indices) :]])

    # ------------------------------------------------------------------------------------------ ops
    def array_op(self, op: Op) -> None:
        method: Callable[[Op], None] = getattr(self, f"_op_{op.name}")
        method(op)

    def constant_array(self, op: Op) -> None:
        type_ = num(op.result)
        value = np.ascontiguousarray(op.attrs["value"], type_.dtype)
        element = element_of(type_.dtype)
        self.constants[op.result] = value
        if small(type_):
            flat = value.reshape(-1).tolist()
            self.define(op.result, Small(tuple(self.b.constant(element, x) for x in flat)))
            return
        kind = stored(element)
        items = ", ".join(f"{kind} {self.b.constant(kind, x).name}" for x in value.reshape(-1).tolist())
        name = f"@{self.name}.{len(self.globals)}"
        self.globals.append(f"{name} = internal constant [{max(value.size, 0)} x {kind}] [{items}], align 16")
        self.define(op.result, Array(name, tuple(str(n) for n in value.shape)))

    def _op_index(self, op: Op) -> None:
        array, *indices = op.operands
        type_ = num(op.result)
        offset = self.place(op, array, indices)
        data = self.at(element_of(type_.dtype), self.data(array), offset)
        if not in_memory(type_):
            self.define(op.result, self.loaded(type_, data))
            return
        part = Array(data, self.dims(array)[len(indices) :])
        self.define(op.result, self.copied(op, part, type_))

    def _op_put_index(self, op: Op) -> None:
        array, part, *indices = op.operands
        type_ = num(op.result)
        offset = self.place(op, array, indices)
        if not in_memory(type_):
            self._put_few(op, array, part, offset)
            return
        whole = self.mine(op, array)
        self.stored(part, self.at(element_of(type_.dtype), whole.data, offset))
        self.define(op.result, whole)

    def _put_few(self, op: Op, array: Name, part: Name, offset: str) -> None:
        b, old, new = self.b, self.few(array).elements, self.few(part).elements
        first = Value(b, offset, "i64")
        out = []
        for k, element in enumerate(old):
            for j, e in enumerate(new):
                if 0 <= k - j:
                    element = b.select(first.eq(k - j), e, element)
            out.append(element)
        self.define(op.result, Small(tuple(out)))

    def _op_dim(self, op: Op) -> None:
        self.define(op.result, Value(self.b, self.dims(op.operands[0])[op.attrs["axis"]], "i64"))

    def _op_shape_of(self, op: Op) -> None:
        self.define(op.result, Small(tuple(Value(self.b, n, "i64") for n in self.dims(op.operands[0]))))

    def _op_copy(self, op: Op) -> None:
        found = self.env[op.operands[0]]
        self.define(op.result, self.mine(op, op.operands[0]) if isinstance(found, Array) else found)

    def _op_stack(self, op: Op) -> None:
        items = tuple(self.scalar(v) for v in op.operands)
        type_ = num(op.result)
        if small(type_):
            self.define(op.result, Small(items))
            return
        element = element_of(type_.dtype)
        data = self.take(op, str(len(items) * SIZES[stored(element)]))
        for k, item in enumerate(items):
            store_scalar(self.b, element, item.name, self.at(element, data, str(k)))
        self.define(op.result, Array(data, (str(len(items)),), True))

    def _op_fill_to(self, op: Op) -> None:
        dims = self.few(op.operands[1]).elements
        known = num(op.result).shape
        most = 1 << (40 if known.count(None) == 1 else 28)  # so that bytes are a number of 64 bits
        bad = ""
        for size in dims:
            negative = size.lt(0) | size.gt(most)
            bad = self.b.scalar(f"or i1 {bad}, {negative.name}") if bad else negative.name
        self.fails(op, bad)
        if op.name == "broadcast_to" and num(op.operands[0]).rank and keeps(op):
            if isinstance(self.env[op.operands[0]], Array):
                self.define(op.result, self.mine(op, op.operands[0]))
            else:
                self._in_block(op)
            return
        value = self._only(op.operands[0])
        self._filled(op, value, tuple(d.name if n is None else str(n) for d, n in zip(dims, known)))

    _op_broadcast_to = _op_fill_to

    def _only(self, value: Name) -> Value:
        """The one element of a number or of an array of one."""
        return self.few(value).elements[0]

    def _in_block(self, op: Op) -> None:
        """A small array as one in memory."""
        source = num(op.operands[0])
        data = self.take(op, str(max(source.size, 1) * SIZES[stored(element_of(source.dtype))]))
        self.stored(op.operands[0], data)
        self.result(op, data, [str(n) for n in source.shape])

    def _op_fill(self, op: Op) -> None:
        self._filled(op, self.scalar(op.operands[0]), tuple(str(n) for n in num(op.result).shape))

    def _op_broadcast(self, op: Op) -> None:
        source = num(op.operands[0])
        if not source.rank:
            self._op_fill(op)
            return
        shape = tuple(n or 0 for n in num(op.result).shape)
        numbers = np.arange(source.size).reshape([n or 0 for n in source.shape])
        elements = self.few(op.operands[0]).elements
        self.define(op.result, Small(tuple(elements[k] for k in np.broadcast_to(numbers, shape).reshape(-1))))

    def _filled(self, op: Op, value: Value, dims: tuple[str, ...]) -> None:
        type_ = num(op.result)
        if small(type_):
            self.define(op.result, Small((value,) * type_.size))
            return
        b, count = self.b, self.times(dims)
        data = self.take(op, self.times([count, str(SIZES[stored(value.element)])]))
        name = b.fresh("fill")
        k = b.open_loop(name, "0", count, 1)
        store_scalar(b, value.element, value.name, self.at(value.element, data, k))
        b.close_loop(name)
        self.define(op.result, Array(data, dims, True))

    def _op_concat(self, op: Op) -> None:
        """The first part grows where it stands if nobody else reads it."""
        first, *rest = op.operands
        type_ = num(op.result)
        if small(type_) and all(isinstance(self.env[v], Small) for v in op.operands):
            self.define(op.result, Small(tuple(e for v in op.operands for e in self.few(v).elements)))
            return
        element = element_of(type_.dtype)
        size = str(SIZES[stored(element)])
        tail = list(self.dims(first)[1:])
        heads = [self.dims(v)[0] for v in op.operands]
        total = heads[0]
        for n in heads[1:]:
            total = self.plus(total, n)
        counts = [self.times([n, *tail]) for n in heads]
        whole = self.times([total, *tail, size])
        if isinstance(self.env[first], Array) and first in self.owned and self.liveness.dies(op, first):
            old = self.array(first)
            del self.owned[first]
            used = self.times([counts[0], size])
            data = self.b.scalar(f"call ptr @grow(ptr %t, ptr {old.data}, i64 {used}, i64 {whole})")
            self.no_memory(op, self.b.scalar(f"icmp eq ptr {data}, null"))
        else:
            data = self.take(op, whole)
            self.stored(first, data)
        offset = counts[0]
        for value, count in zip(rest, counts[1:]):
            self.stored(value, self.at(element, data, offset))
            offset = self.plus(offset, count)
        self.result(op, data, [total, *tail])

    def _op_dynslice(self, op: Op) -> None:
        """x[start:stop] along the first axis, ends clipped as Python does; a cut at the end only makes it shorter."""
        array, *bounds = op.operands
        b, type_ = self.b, num(op.result)
        element = element_of(type_.dtype)
        given = op.attrs.get("given", (True, True))
        length, *tail = self.dims(array)
        n = Value(b, length, "i64")
        ends = iter(bounds)
        start = self._clipped(next(ends), n) if given[0] else Value(b, "0", "i64")
        stop = self._clipped(next(ends), n) if given[1] else n
        count = b.select(stop.gt(start), stop - start, 0).name
        found = self.env[array]
        if not given[0] and isinstance(found, Array) and array in self.owned and self.liveness.dies(op, array):
            del self.owned[array]
            self.define(op.result, Array(found.data, (count, *tail), True))
            return
        source = self.at(element, self.data(array), self.times([start.name, *tail]))
        nbytes = self.times([count, *tail, str(SIZES[stored(element)])])
        data = self.take(op, nbytes)
        self.move(data, source, nbytes)
        self.define(op.result, Array(data, (count, *tail), True))

    def _clipped(self, bound: Name, n: Value) -> Value:
        b = self.b
        given = Value(b, self.integer(bound), "i64")
        at = b.select(given.lt(0), given + n, given)
        at = b.select(at.lt(0), 0, at)
        return b.select(at.gt(n), n, at)

    def _op_slice(self, op: Op) -> None:
        """A few elements at known places."""
        array = op.operands[0]
        source = num(array)
        numbers = np.arange(source.size).reshape([n or 0 for n in source.shape])
        entries = tuple(slice(None) if e is None else _python(e) for e in op.attrs["index"])
        places = numbers[entries].reshape(-1).tolist()
        if small(source):
            elements = self.few(array).elements
            self.define(op.result, Small(tuple(elements[k] for k in places)))
            return
        element, data = element_of(source.dtype), self.data(array)
        registers = [load_scalar(self.b, element, self.at(element, data, str(k))) for k in places]
        self.define(op.result, Small(tuple(Value(self.b, r, element) for r in registers)))

    def _op_reshape(self, op: Op) -> None:
        elements = self.few(op.operands[0]).elements
        self.define(op.result, Small(elements) if num(op.result).rank else elements[0])


def _python(entry: tuple[int, int, int]) -> slice:
    start, stop, step = entry
    if not len(range(start, stop, step)):
        return slice(0, 0, 1)
    return slice(start, None if stop < 0 else stop, step)
