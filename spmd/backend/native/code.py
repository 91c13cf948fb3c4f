"""A loop as LLVM text: one function that runs it for every row, to its end.

Invariant: control flow is the structured IR's own, block for block. A row ends by the loop's results, by a fault (its
site and operands are recorded, then the next row goes on), or because it ran too long; every so many back edges it
looks at Python's signals. Rows of examples behind one that has failed are left out. Must not know where operands come
from.

The function is ``i64 name(ptr t)``; `t` points to words: those of `memory`, then what `Slots` says.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from spmd.backend.native import memory
from spmd.backend.native.arrays import num
from spmd.backend.native.liveness import Liveness
from spmd.backend.native.rows import RowWriter
from spmd.backend.native.scalars import ScalarBuilder, element_of, elementwise
from spmd.backend.native.support import ROWS, in_memory, ragged_axes, scalar_name, small
from spmd.backend.native.things import Array, Small, Thing, component_types, components, rebuilt, sizes
from spmd.backend.simd.checked import Failure
from spmd.backend.simd.memory import stored
from spmd.backend.simd.target import host
from spmd.backend.simd.vector import SIZES, Value
from spmd.errors import InternalError
from spmd.ir.core import Block, Op
from spmd.ir.core import Value as Name
from spmd.ir.types import Num

LATE, SKIPPED, NO_MEMORY = -1, -2, 1 << 20
BARE = frozenset({"guard", "item", "nonnull"})
FAULT_WIDTH = "%fault.width%"
"""Status of a row that ran too long, and of one that was left out; sites of a lack of memory come from NO_MEMORY on."""
STOPPED, LOST = -1, -2
"""The function's result where the poll says stop, and where control is at a place that nothing leads to; else 0."""


@dataclass
class Join:
    """A block that several edges lead to: label, the types that move there, and the edges so far."""

    label: str
    types: list[str]
    edges: list[tuple[str, list[str]]] = field(default_factory=list)
    states: list[dict[Name, Array]] = field(default_factory=list)


@dataclass(frozen=True)
class Scope:
    """Where terminators lead; the results there."""

    yields: tuple[Join, list[Name]] | None
    breaks: tuple[Join, list[Name]] | None
    continues: tuple[Join, list[Name]] | None
    returns: tuple[Join, list[Name]] | None = None


def input_slots(type_: Num) -> int:
    """Words of an operand: address and bytes from row to row; of one of varying size the addresses of elements, first
    elements and sizes, and words from row to row."""
    return 4 if ragged_axes(type_) else 2


def output_slots(type_: Num) -> int:
    """Words of a result: its address; of one of varying size the addresses of blocks, of bytes and of sizes."""
    return 3 if ragged_axes(type_) else 1


class LoopWriter(RowWriter):
    """Writes one closed block (see `ir.core`, `native`). `sites`: the ops that a row may fail at, by number."""

    def __init__(self, block: Block, name: str, contract: bool) -> None:
        super().__init__(ScalarBuilder(host()), Liveness(block))
        self.block = block
        self.contract = contract
        self.sites: list[Op] = []
        self.numbers: dict[int, int] = {}
        self.fault_edges: list[tuple[str, int]] = []
        self.width = 1
        self.name = name
        self._write()
        text = self.b.function(name + ".rows", "ptr noalias %t")
        self.text = text.replace(FAULT_WIDTH, str(self.width)) + memory.entry_text(name, name + ".rows")

    # ------------------------------------------------------------------------------------------ the rows
    def _write(self) -> None:
        b = self.b
        b.write("br label %begin")
        b.open("begin")
        count, status = self.word(memory.ROWS), self.word(memory.STATUS, "ptr")
        lanes, records = self.word(memory.LANES, "ptr"), self.word(memory.RECORDS, "ptr")
        self.fuel = b.scalar(f"getelementptr i64, ptr %t, i64 {memory.FUEL}")
        least = b.scalar(f"getelementptr i64, ptr %t, i64 {memory.LEAST}")
        places = self._places()
        self.row = row = b.open_loop("rows", "0", count, 1)
        self.status = b.scalar(f"getelementptr i64, ptr {status}, i64 {row}")
        lane = b.scalar(f"load i64, ptr {b.scalar(f'getelementptr i64, ptr {lanes}, i64 {row}')}")
        wanted = b.scalar(f"icmp sle i64 {lane}, {b.scalar(f'load i64, ptr {least}')}")
        here = b.scalar(f"icmp eq i64 {b.scalar(f'load i64, ptr {self.status}')}, 0")
        b.write(f"br i1 {b.scalar(f'and i1 {wanted}, {here}')}, label %row, label %skip")
        b.open("skip")
        b.write(f"store i64 {SKIPPED}, ptr {self.status}")
        b.write("br label %rows.latch")
        b.open("row")
        at = b.scalar(f"mul i64 {row}, {FAULT_WIDTH}")
        self.record = b.scalar(f"getelementptr i64, ptr {records}, i64 {at}")
        for value, place in zip(self.block.args, places):
            self.env[value] = self._read(num(value), place)
        end = Join("end", [])
        self.finish = end
        self._block(self.block, Scope((end, []), None, None))
        b.close_loop("rows")
        b.write("ret i64 0")
        self._endings(lane, least)

    def _endings(self, lane: str, least: str) -> None:
        b = self.b
        b.open("fault")
        edges = ", ".join(f"[ {number}, %{label} ]" for label, number in self.fault_edges)
        if self.fault_edges:
            b.write(f"%site = phi i64 {edges}")
            b.write(f"store i64 %site, ptr {self.status}")
            # this row is wanted, so its lane is the least that has failed
            b.write(f"store i64 {lane}, ptr {least}")
        b.write("br label %rows.latch")
        b.open("late")
        b.write(f"store i64 {LATE}, ptr {self.status}")
        b.write("br label %rows.latch")
        b.open("stopped")
        b.write(f"ret i64 {STOPPED}")
        b.open("lost")
        b.write(f"ret i64 {LOST}")

    def _places(self) -> list[list[str]]:
        """The words of every operand, read once."""
        at, found = memory.WORDS, []
        for value in self.block.args:
            count = input_slots(num(value))
            kinds = ["ptr", "i64"] if count == 2 else ["ptr", "ptr", "ptr", "i64"]
            found.append([self.word(at + k, kind) for k, kind in enumerate(kinds)])
            at += count
        self.outputs = []
        for value in self.block.terminator.operands:
            count = output_slots(num(value))
            self.outputs.append([self.word(at + k, "ptr") for k in range(count)])
            at += count
        self.words = self.field_words(self.block, at)
        return found

    def _read(self, type_: Num, place: list[str]) -> Thing:
        b = self.b
        if len(place) == 2:
            data = b.scalar(f"getelementptr i8, ptr {place[0]}, i64 {b.scalar(f'mul i64 {self.row}, {place[1]}')}")
            return Array(data, sizes(type_, [])) if in_memory(type_) else self.loaded(type_, data)
        data, first, dims, step = place
        return self.block_of(type_, data, first, dims, b.scalar(f"mul i64 {self.row}, {step}"))

    def _deliver(self, op: Op) -> None:
        """The row's results."""
        b = self.b
        for value, place in zip(op.operands, self.outputs, strict=True):
            type_ = num(value)
            element = element_of(type_.dtype)
            if not ragged_axes(type_):
                offset = self.times([self.row, str(max(type_.size, 0))])
                self.stored(value, self.at(element, place[0], offset))
                continue
            array = self.mine(op, value)
            nbytes = self.times([*array.dims, str(SIZES[stored(element)])])
            for word, register, kind in ((place[0], array.data, "ptr"), (place[1], nbytes, "i64")):
                b.write(f"store {kind} {register}, ptr {b.scalar(f'getelementptr i64, ptr {word}, i64 {self.row}')}")
            axes = ragged_axes(type_)
            at = b.scalar(f"getelementptr i64, ptr {place[2]}, i64 {self.times([self.row, str(axes)])}")
            for k in range(axes):
                b.write(f"store i64 {array.dims[k]}, ptr {b.scalar(f'getelementptr i64, ptr {at}, i64 {k}')}")
        for array in self.owned.values():
            self.give(array)

    # ------------------------------------------------------------------------------------------ faults
    def fails(self, op: Op, mask: str) -> None:
        number = self.numbers.get(id(op))
        if number is None:
            number = self.numbers[id(op)] = len(self.sites)
            self.sites.append(op)
        b = self.b
        bad, good = b.fresh("bad"), b.fresh("good")
        b.write(f"br i1 {mask}, label %{bad}, label %{good}")
        b.open(bad)
        at = 0
        for value in op.operands if op.name not in BARE else []:
            for word in self._recorded(value):
                b.write(f"store i64 {word}, ptr {b.scalar(f'getelementptr i64, ptr {self.record}, i64 {at}')}")
                at += 1
        self.width = max(self.width, at)
        b.write("br label %fault")
        self.fault_edges.append((bad, number + 1))
        b.open(good)

    def no_memory(self, op: Op, mask: str) -> None:
        number = self.numbers.get(id(op))
        if number is None:
            number = self.numbers[id(op)] = len(self.sites)
            self.sites.append(op)
        b = self.b
        bad, good = b.fresh("full"), b.fresh("good")
        b.write(f"br i1 {mask}, label %{bad}, label %{good}")
        b.open(bad)
        b.write("br label %fault")
        self.fault_edges.append((bad, NO_MEMORY + number))
        b.open(good)

    def _recorded(self, value: Name) -> list[str]:
        """What of an operand decides the exception: a number's bits, all of a small array, an array's sizes."""
        found = self.env[value]
        if isinstance(found, Array):
            return list(found.dims)
        return [self._bits(e) for e in self.few(value).elements]

    def _bits(self, value: Value) -> str:
        b = self.b
        if value.floating:
            value = b.bits(value)
        if value.element == "i64":
            return value.name
        return b.scalar(f"zext {value.element} {value.name} to i64")

    # ------------------------------------------------------------------------------------------ control
    def _block(self, block: Block, scope: Scope) -> None:
        for op in block.ops:
            if op.terminator:
                self._terminator(op, scope)
                return
            if op.name == "if":
                self._if(op, scope)
            elif op.name == "loop":
                self._loop(op, scope)
            elif op.name == "inline":
                self._inline(op)
            elif op.name == "guard":
                self.fails(op, (~self.scalar(op.operands[0])).name)
            else:
                self._op(op)
        raise InternalError("a block without an end")

    def _terminator(self, op: Op, scope: Scope) -> None:
        if op.name == "raise":
            self.fails(op, "true")
            self.b.write("br label %lost")
            return
        where = {
            "yield": scope.yields, "break": scope.breaks, "continue": scope.continues, "return": scope.returns
        }.get(op.name)
        if where is None:  # unreachable
            self.b.write("br label %lost")
            return
        join, results = where
        if join is self.finish:
            self._deliver(op)
            return
        self._leave(op, join, results)

    def _leave(self, op: Op, join: Join, results: list[Name]) -> None:
        """An edge to a join: its operands in the results' form, owned where they are arrays in memory."""
        registers: list[str] = []
        for value, result in zip(op.operands, results, strict=True):
            registers += [r for _, r in components(self._moved(op, value), num(result))]
        alive = self.liveness.after[id(op)]
        for value, array in list(self.owned.items()):
            if value not in alive and value not in self.outer:
                self.give(array)
                del self.owned[value]
        join.edges.append((self.b.block, registers))
        join.states.append(dict(self.owned))
        self.b.write(f"br label %{join.label}")

    def _moved(self, op: Op, value: Name) -> Thing:
        return self.mine(op, value) if isinstance(self.env[value], Array) else self.env[value]

    def _phis(self, join: Join) -> list[str]:
        registers = []
        for k, kind in enumerate(join.types):
            edges = ", ".join(f"[ {given[k]}, %{label} ]" for label, given in join.edges)
            registers.append(self.b.scalar(f"phi {kind} {edges}"))
        return registers

    def _enter(self, join: Join, results: list[Name]) -> None:
        """Control goes on at a join with its results."""
        self.b.open(join.label)
        if not join.edges:  # nothing leads here
            self.b.write("br label %lost")
            self.b.open(self.b.fresh("dead"))
            for result in results:
                zeros = ["null" if t == "ptr" else "0" if t[0] == "i" else "0.0" for t in component_types(num(result))]
                self.env[result] = rebuilt(self.b, num(result), zeros, False)
            return
        registers = self._phis(join)
        first = join.states[0]
        self.owned = {v: a for v, a in first.items() if all(v in s for s in join.states)}
        for result in results:
            count = len(component_types(num(result)))
            self.define(result, rebuilt(self.b, num(result), registers[:count]))
            registers = registers[count:]

    def _if(self, op: Op, scope: Scope) -> None:
        b = self.b
        then, other = b.fresh("then"), b.fresh("else")
        join = Join(b.fresh("join"), [t for v in op.results for t in component_types(num(v))])
        b.write(f"br i1 {self.scalar(op.operands[0]).name}, label %{then}, label %{other}")
        inner = Scope((join, op.results), scope.breaks, scope.continues, scope.returns)
        before = self.owned
        for label, block in zip((then, other), op.blocks, strict=True):
            b.open(label)
            self.owned = dict(before)
            self._block(block, inner)
        self._enter(join, op.results)

    def _inline(self, op: Op) -> None:
        """A callee's body; arrays that nobody reads behind the call are its own."""
        (body,) = op.blocks
        for value, arg in zip(op.operands, body.args, strict=True):
            thing = self.env[value]
            if isinstance(thing, Array):
                own = value in self.owned and self.liveness.dies(op, value)
                thing = Array(thing.data, thing.dims, own)
                if own:
                    del self.owned[value]
            self.define(arg, thing)
        join = Join(self.b.fresh("back"), [t for v in op.results for t in component_types(num(v))])
        self._block(body, Scope(None, None, None, (join, op.results)))
        self._enter(join, op.results)

    def _loop(self, op: Op, scope: Scope) -> None:
        b, (body,) = self.b, op.blocks
        name = b.fresh("loop")
        types = [t for v in body.args for t in component_types(num(v))]
        head, latch = Join(f"{name}.head", types), Join(f"{name}.latch", types)
        done = Join(f"{name}.done", [t for v in op.results for t in component_types(num(v))])
        initial: list[str] = []
        for value, arg in zip(op.operands, body.args, strict=True):
            initial += [r for _, r in components(self._moved(op, value), num(arg))]
        before, outer = b.block, self.outer
        b.write(f"br label %{head.label}")
        b.open(head.label)
        mark = len(b.lines)
        registers = ["%" + b.fresh("c") for _ in types]
        self.outer = outer | frozenset(self.owned)
        rest = list(registers)
        for arg in body.args:
            count = len(component_types(num(arg)))
            self.define(arg, rebuilt(b, num(arg), rest[:count]))
            rest = rest[count:]
        self._block(body, Scope(None, (done, op.results), (latch, body.args), scope.returns))
        edges = [(before, initial)]
        if latch.edges:
            edges += self._latch(name, head, latch)
        phis = []
        for k, (kind, register) in enumerate(zip(types, registers)):
            phis.append(f"  {register} = phi {kind} " + ", ".join(f"[ {g[k]}, %{label} ]" for label, g in edges))
        b.lines[mark:mark] = phis
        self.outer = outer
        self._enter(done, op.results)

    def _latch(self, name: str, head: Join, latch: Join) -> list[tuple[str, list[str]]]:
        """The back edge: counts down, and asks whether to go on when the count is at its end."""
        b = self.b
        b.open(latch.label)
        given = self._phis(latch)
        left = b.scalar(f"sub i64 {b.scalar(f'load i64, ptr {self.fuel}')}, 1")
        b.write(f"store i64 {left}, ptr {self.fuel}")
        ask = f"{name}.ask"
        b.write(f"br i1 {b.scalar(f'icmp sgt i64 {left}, 0')}, label %{head.label}, label %{ask}")
        b.open(ask)
        more = b.scalar(f"call i64 @ask(ptr %t, i64 {self.row})")
        b.write(f"store i64 {b.scalar(f'call i64 @llvm.smax.i64(i64 {more}, i64 1)')}, ptr {self.fuel}")
        b.declarations.add("declare i64 @llvm.smax.i64(i64, i64)")
        b.write(f"br i1 {b.scalar(f'icmp sgt i64 {more}, 0')}, label %{head.label}, label %{name}.end")
        b.open(f"{name}.end")
        b.write(f"br i1 {b.scalar(f'icmp eq i64 {more}, 0')}, label %late, label %stopped")
        return [(latch.label, given), (ask, given)]

    # ------------------------------------------------------------------------------------------ ops
    def _op(self, op: Op) -> None:
        type_ = num(op.result)
        if op.name == "const":
            if type_.rank:
                self.constant_array(op)
            else:
                element = element_of(type_.dtype)
                self.define(op.result, self.b.constant(element, _plain(op.attrs["value"])))
            return
        if op.name in ROWS or hasattr(self, f"_op_{op.name}") and any(num(v).rank for v in (*op.operands, *op.results)):
            self.array_op(op)
            return
        self._elementwise(op, type_)

    def _elementwise(self, op: Op, type_: Num) -> None:
        name = scalar_name(op) or "where"
        dtype = num(op.operands[-1]).dtype

        def fail(mask: Value, reason: Failure) -> None:
            self.fails(op, mask.name)

        count = type_.size if small(type_) else 1
        few = [self.few(v).elements for v in op.operands]
        out = []
        for k in range(count):
            operands = [e[k] if len(e) == count else e[0] for e in few]
            out.append(elementwise(self.b, name, dtype, type_.dtype, fail, operands, self.contract))
        self.define(op.result, Small(tuple(out)) if type_.rank else out[0])


def _plain(value: object) -> int | float | bool:
    item = value.item() if hasattr(value, "item") else value
    assert isinstance(item, (int, float, bool))
    return item
