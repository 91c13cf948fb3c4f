"""A chain as LLVM text: one function that checks its arrays and runs all operations, vector after vector.

Invariant: each operation is computed as seldom as its operands change: once per call, once per row, or per vector of
features (per vector of rows, where nothing depends on a feature); every vector is loaded, computed and only then
stored, so an output may be the very array of an input. Must not know Python's side of the call.

The function is ``i64 name(ptr arguments, i64 K, i64 F)``; `arguments` is a tuple (numpy.ndarray, errors or None,
*outputs, *operands). It returns 0, or -1 - i if item 2 + i (item 1: i = -1 + number of arrays) does not fit, or the
least error number: (operation + 1) * 16 + reason.
"""

from __future__ import annotations

from spmd.backend.simd import arithmetic
from spmd.backend.simd.arithmetic import ELEMENTS
from spmd.backend.simd.chain import ChainOp, ChainSpec
from spmd.backend.simd.checked import Failure
from spmd.backend.simd.entry import FIRST_ARRAY, Entry, Place, element_of, row_of
from spmd.backend.simd.memory import Stretch, load_scalar, store_scalar, stored
from spmd.backend.simd.operations import CHECKED, PLAIN
from spmd.backend.simd.target import Machine
from spmd.backend.simd.vector import SIZES, Builder, Value

NO_ERROR = -1


def lanes_of(spec: ChainSpec, machine: Machine) -> int:
    """Lanes per vector: full registers for the widest element that the chain computes with."""
    sizes = [SIZES[stored(ELEMENTS[dtype])] for dtype in spec.dtypes]
    return machine.lanes(max(sizes, default=8))


class ChainWriter:
    """Writes one chain. `text` is the function; what else it needs is in the builder's declarations and functions."""

    def __init__(self, spec: ChainSpec, machine: Machine, name: str, contract: bool = False) -> None:
        self.spec = spec
        self.contract = contract
        self.b = Builder(machine, lanes_of(spec, machine))
        self.values: dict[int, Value] = {}
        self.live = frozenset(spec.live())
        self.used = {arg for number in self.live for arg in spec.ops[number].args} | {v for v, _ in spec.outputs}
        self.stretch: Stretch | None = None
        self.errors: Place | None = None
        self.has_errors = "false"
        self._write()
        self.text = self.b.function(name, "ptr %arguments, i64 %K, i64 %F")

    # ---- the frame of the function

    def _write(self) -> None:
        b = self.b
        b.write("%any.rows = icmp sgt i64 %K, 0")
        b.write("br i1 %any.rows, label %check, label %nothing")
        b.open("nothing")
        b.write("ret i64 0")
        b.open("check")
        self._check_arrays()
        if self.spec.checked:
            self.uniform_errors = self._error_memory()
            self.row_errors = self._error_memory()
            self.worst = self._error_memory()
        self._run(0)
        if self.spec.by_rows:
            self._loop_over_rows()
        else:
            self._loop_over_features()
        self._finish()

    def _check_arrays(self) -> None:
        b, spec = self.b, self.spec
        entry = Entry(b)
        wanted = [(kind, spec.dtypes[value]) for value, kind in spec.outputs]
        wanted += [(operand.kind, operand.dtype) for operand in spec.operands]
        for number, (kind, dtype) in enumerate(wanted):
            entry.want(FIRST_ARRAY + number, kind, dtype, written=number < len(spec.outputs))
        if spec.checked:
            self.has_errors = entry.want_or_none(1, "row", "int32")
        places = entry.close()
        if spec.checked:
            self.errors = places.pop()
        self.outputs, self.operands = places[: len(spec.outputs)], places[len(spec.outputs) :]

    # ---- loops

    def _loop_over_rows(self) -> None:
        """Nothing depends on a feature: vectors of rows."""
        b = self.b
        k = b.open_loop("rows", "0", "%K", b.lanes)
        stretch = self.stretch = Stretch(b, b.scalar(f"sub i64 %K, {k}"))
        if b.machine.masked or self.spec.checked:
            _ = stretch.active
        self._begin_errors()
        for number, place in enumerate(self.operands):
            if place.kind == "row" and number in self.used:
                self.values[number] = stretch.load(place.element, row_of(b, place, k), place.stride)
        self._run(1)
        for place, (value, _) in zip(self.outputs, self.spec.outputs, strict=True):
            stretch.store(self.values[value], row_of(b, place, k), place.stride)
        if self.errors is not None:
            self._store_error_lanes(stretch, self.errors, k)
        b.close_loop("rows")

    def _loop_over_features(self) -> None:
        b = self.b
        rows, features = self._iteration_space()
        k = b.open_loop("rows", "0", rows, 1)
        self._begin_errors()
        pointers: dict[str, str] = {}
        for place in {id(p): p for p in self.operands + self.outputs}.values():
            if place.kind in ("full", "row"):
                pointers[place.data] = row_of(b, place, k)
        for number, place in enumerate(self.operands):
            if place.kind == "row" and number in self.used:
                scalar = load_scalar(b, place.element, pointers[place.data])
                self.values[number] = b.splat(place.element, scalar)
        self._run(1)
        j = b.open_loop("features", "0", features, b.lanes)
        self.stretch = Stretch(b, b.scalar(f"sub i64 {features}, {j}"))
        if b.machine.masked or self.spec.checked:
            _ = self.stretch.active
        for number, place in enumerate(self.operands):
            if place.kind in ("full", "col") and number in self.used:
                base = pointers.get(place.data, place.data)
                self.values[number] = self.stretch.load(place.element, element_of(b, place, base, j))
        self._run(2)
        for place, (value, kind) in zip(self.outputs, self.spec.outputs, strict=True):
            if kind == "full":
                self.stretch.store(self.values[value], element_of(b, place, pointers[place.data], j))
        b.close_loop("features")
        for place, (value, kind) in zip(self.outputs, self.spec.outputs, strict=True):
            if kind == "row":
                store_scalar(b, place.element, b.extract(self.values[value]), pointers[place.data])
        if self.errors is not None:
            self._store_error_of_row(self.errors, k)
        b.close_loop("rows")

    def _iteration_space(self) -> tuple[str, str]:
        """(K, F), or (1, K F) where all arrays are contiguous and nothing is per row: no remainder in every row."""
        b, places = self.b, self.operands + self.outputs
        if self.spec.checked or any(place.kind in ("row", "col") for place in places):
            return "%K", "%F"
        flat = "true"
        for place in places:
            if place.kind == "full":
                width = b.scalar(f"mul i64 %F, {SIZES[stored(place.element)]}")
                flat = b.scalar(f"and i1 {flat}, {b.scalar(f'icmp eq i64 {place.stride}, {width}')}")
        total = b.scalar("mul i64 %K, %F")
        return b.scalar(f"select i1 {flat}, i64 1, i64 %K"), b.scalar(f"select i1 {flat}, i64 {total}, i64 %F")

    # ---- operations

    def _run(self, level: int) -> None:
        """Writes the live operations of one level, in order."""
        spec, b = self.spec, self.b
        first = len(spec.operands)
        if level == 0:
            for number, place in enumerate(self.operands):
                if place.kind == "one" and number in self.used:
                    self.values[number] = b.splat(place.element, load_scalar(b, place.element, place.data))
        for number, op in enumerate(spec.ops):
            if number in self.live and spec.levels[first + number] == level:
                self.values[first + number] = self._operation(number, op, level)

    def _operation(self, number: int, op: ChainOp, level: int) -> Value:
        b, dtypes = self.b, self.spec.dtypes
        operands = [self.values[arg] for arg in op.args]
        if op.name == "const":
            assert op.value is not None
            return b.constant(ELEMENTS[op.dtype], op.value)
        # 'where' has its condition first: the dtype is that of the choices
        dtype = dtypes[op.args[-1]]
        if op.name == "cast":
            return arithmetic.cast(b, dtype, op.dtype, operands[0])
        if op.name in CHECKED:

            def fail(mask: Value, reason: Failure) -> None:
                self._record(mask, (number + 1) * 16 + reason, level)

            return CHECKED[op.name].emit(b, dtype, fail, *operands)
        record = PLAIN[op.name]
        with b.contracting(self.contract and record.contracts):
            return record.emit(b, dtype, *operands)

    # ---- errors: the least number wins, so the first operation in order does

    def _error_memory(self) -> str:
        b = self.b
        memory = b.stack(b.vector("i32"))
        none = b.constant("i32", NO_ERROR)
        b.entry.append(f"  store {none.type} {none.name}, ptr {memory}, align 64")
        return memory

    def _load_errors(self, memory: str) -> Value:
        return self.b.emit("i32", f"load {self.b.vector('i32')}, ptr {memory}, align 64")

    def _store_errors(self, value: Value, memory: str) -> None:
        self.b.write(f"store {value.type} {value.name}, ptr {memory}, align 64")

    def _begin_errors(self) -> None:
        """A row's errors start with those of the operations that all rows share."""
        if self.spec.checked:
            self._store_errors(self._load_errors(self.uniform_errors), self.row_errors)

    def _record(self, mask: Value, number: int, level: int) -> None:
        b = self.b
        if self.stretch is not None and level == (1 if self.spec.by_rows else 2):
            mask = mask & self.stretch.active
        memory = self.row_errors if level else self.uniform_errors
        failed = b.select(mask, b.constant("i32", number), NO_ERROR)
        self._store_errors(self._least(self._load_errors(memory), failed), memory)

    def _least(self, x: Value, y: Value) -> Value:
        return self.b.select(x.compare("lt", y, unsigned=True), x, y)

    def _store_error_lanes(self, stretch: Stretch, place: Place, k: str) -> None:
        b = self.b
        found = self._load_errors(self.row_errors)
        self._store_errors(self._least(self._load_errors(self.worst), found), self.worst)
        store, join = b.fresh("store"), b.fresh("join")
        b.write(f"br i1 {self.has_errors}, label %{store}, label %{join}")
        b.open(store)
        shown = b.select(found.eq(NO_ERROR), b.constant("i32", 0), found)
        stretch.store(shown, row_of(b, place, k), place.stride)
        b.write(f"br label %{join}")
        b.open(join)

    def _store_error_of_row(self, place: Place, k: str) -> None:
        b = self.b
        found = self._load_errors(self.row_errors)
        self._store_errors(self._least(self._load_errors(self.worst), found), self.worst)
        store, join = b.fresh("store"), b.fresh("join")
        b.write(f"br i1 {self.has_errors}, label %{store}, label %{join}")
        b.open(store)
        b.write(f"store i32 {self._shown(found)}, ptr {row_of(b, place, k)}, align 1")
        b.write(f"br label %{join}")
        b.open(join)

    def _shown(self, errors: Value) -> str:
        """The least error of all lanes as a scalar; 0 for none."""
        b = self.b
        name = f"@llvm.vector.reduce.umin.v{b.lanes}i32"
        b.declarations.add(f"declare i32 {name}({errors.type})")
        least = b.scalar(f"call i32 {name}({errors.type} {errors.name})")
        none = b.scalar(f"icmp eq i32 {least}, {NO_ERROR}")
        return b.scalar(f"select i1 {none}, i32 0, i32 {least}")

    def _finish(self) -> None:
        b = self.b
        if not self.spec.checked:
            b.write("ret i64 0")
            return
        shown = self._shown(self._load_errors(self.worst))
        b.write(f"ret i64 {b.scalar(f'zext i32 {shown} to i64')}")
