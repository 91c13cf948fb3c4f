"""Which arrays have equal sizes, whatever the sizes are.

Every axis of every array has a size: a number, or a symbol that stands for one unknown number (an axis of an array
that comes from elsewhere, the length of a run, an element of a vector of sizes). Equal symbols mean equal sizes.
The invariant: what is said here also holds for an example whose ops have raised before (targets run many examples at
once, and one that has raised goes on with values whose sizes do not fit); so the sizes of a result that an op gives
only if it does not raise are new symbols. Forward over straight-line code; must not know what its facts are used for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from spmd.analysis.effects import Primitives, may_raise
from spmd.ir.core import STRUCTURAL, Op, Value
from spmd.ir.types import Num


@dataclass(frozen=True)
class Symbol:
    """kind 'axis' (of an array), 'length' (of a run), 'entry' (of a vector of integers), 'number' (a scalar)."""

    kind: str
    value: Value
    axis: int = 0


Size = int | Symbol
Known = tuple[Size, ...]


class Sizes:
    """Facts about values; `see` takes in one op after the other, in program order."""

    def __init__(self, primitives: Primitives) -> None:
        self.primitives = primitives
        self._arrays: dict[Value, Known] = {}
        self._vectors: dict[Value, Known] = {}
        self._scalars: dict[Value, Size] = {}
        self._lengths: dict[Value, Size] = {}

    # ------------------------------------------------------------------------------------------ questions
    def of(self, value: Value) -> Known:
        """The sizes of an array."""
        found = self._arrays.get(value)
        if found is None:
            assert isinstance(value.type, Num)
            shape = value.type.shape
            found = tuple(Symbol("axis", value, k) if n is None else n for k, n in enumerate(shape))
            self._arrays[value] = found
        return found

    def entries(self, value: Value) -> Known:
        """The elements of a vector of integers."""
        found = self._vectors.get(value)
        if found is None:
            count = self.of(value)[0]
            assert isinstance(count, int)
            found = self._vectors[value] = tuple(Symbol("entry", value, k) for k in range(count))
        return found

    def number(self, value: Value) -> Size:
        """An integer scalar."""
        return self._scalars.setdefault(value, Symbol("number", value))

    def length(self, run: Value) -> Size:
        """The number of rows of a run."""
        return self._lengths.setdefault(run, Symbol("length", run))

    # ------------------------------------------------------------------------------------------ facts
    def counted(self, run: Value, size: Size) -> None:
        """The length of a run."""
        self._lengths[run] = size

    def sized(self, value: Value, sizes: Sequence[Size]) -> None:
        """The sizes of an array; what its type states holds too."""
        assert isinstance(value.type, Num)
        shape = value.type.shape
        self._arrays[value] = tuple(s if n is None else n for n, s in zip(shape, sizes, strict=True))

    def see(self, op: Op) -> None:
        """Takes in what an op says of its results."""
        if op.name in STRUCTURAL:
            self._structural(op)
            return
        if op.terminator or len(op.results) != 1 or not isinstance(op.result.type, Num):
            return
        if op.result.type.shape == ():
            scalar = SCALARS.get(op.name)
            if scalar is not None:
                self._say_scalar(op, scalar(self, op))
            return
        if not op.result.type.static:
            found = self._result(op)
            if found is not None:
                self.sized(op.result, found)
        else:
            entries = self.vector(op)
            if entries is not None:
                self._vectors[op.result] = entries

    def vector(self, op: Op) -> Known | None:
        """The elements of an op's result, if it is a vector of integers made from sizes that are known."""
        rule, type_ = VECTORS.get(op.name), op.result.type
        if rule is None or not isinstance(type_, Num) or not type_.static or type_.rank != 1 or type_.kind != "i":
            return None
        entries = rule(self, op)
        return None if entries is None else tuple(entries)

    def _say_scalar(self, op: Op, size: Size | None) -> None:
        if size is not None:
            self._scalars[op.result] = size

    def _structural(self, op: Op) -> None:
        if op.name == "const":
            self._constant(op)
        elif op.name == "length":
            self._scalars[op.result] = self.length(op.operands[0])
        elif op.name == "column":
            assert isinstance(op.result.type, Num)
            inner = self.of(op.result)[1:]
            self.sized(op.result, (self.length(op.operands[0]), *inner))
        elif op.name == "map":
            self.counted(op.result, self.number(op.operands[0]))
        elif op.name == "if":
            self._joined(op)

    def _constant(self, op: Op) -> None:
        value = op.attrs["value"]
        if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "iu":
            self._vectors[op.result] = tuple(int(n) for n in value)
        elif isinstance(value, (int, np.integer)) and not isinstance(value, bool):
            self._scalars[op.result] = int(value)

    def _joined(self, op: Op) -> None:
        """Sizes on which both arms agree; neither arm can name the other's values, so they come from outside."""
        ends = [b.terminator for b in op.blocks if b.terminator.name == "yield"]
        for k, result in enumerate(op.results):
            if isinstance(result.type, Num) and not result.type.static and ends:
                sides = [self.of(e.operands[k]) for e in ends]
                self.sized(result, [
                    sizes[0] if len(ends) == 2 and sizes[0] == sizes[1] else Symbol("axis", result, axis)
                    for axis, sizes in enumerate(zip(*sides))
                ])

    def _result(self, op: Op) -> Sequence[Size] | None:
        """The sizes of a dynamic result; None where they are new."""
        record = self.primitives[op.name]
        if op.name != "take" and may_raise(op, self.primitives):
            return None
        if record.chain:
            first, *others = [self.of(v) for v in op.operands]
            return first if all(sizes == first for sizes in others) else None
        rule = ARRAYS.get(op.name)
        return None if rule is None else rule(self, op)

    # ------------------------------------------------------------------------------------------ broadcasts
    def widens(self, sizes: Known, target: Known) -> bool:
        """Whether an array of `sizes` is known to broadcast to `target`."""
        return len(sizes) <= len(target) and all(m in (1, n) for m, n in zip(sizes[::-1], target[::-1]))

    def broadcast(self, a: Known, b: Known) -> Known | None:
        """The sizes that two arrays broadcast to; None where that is not known to be possible."""
        rank = max(len(a), len(b))
        out: list[Size] = []
        for m, n in zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b):
            if m == n or n == 1:
                out.append(m)
            elif m == 1:
                out.append(n)
            else:
                return None
        return tuple(out)


# ---------------------------------------------------------------------------------------- sizes of dynamic results
Rule = Callable[[Sizes, Op], "Sequence[Size] | None"]


def _by_dims(facts: Sizes, op: Op) -> Sequence[Size]:
    return facts.entries(op.operands[-1])


def _broadcast_to(facts: Sizes, op: Op) -> Sequence[Size] | None:
    target = facts.entries(op.operands[1])
    return target if facts.widens(facts.of(op.operands[0]), target) else None


def _transpose(facts: Sizes, op: Op) -> Sequence[Size]:
    sizes = facts.of(op.operands[0])
    return [sizes[k] for k in op.attrs["perm"]]


def _reduced(facts: Sizes, op: Op) -> Sequence[Size]:
    sizes, axes = facts.of(op.operands[0]), op.attrs["axes"]
    if op.attrs["keepdims"]:
        return [1 if k in axes else n for k, n in enumerate(sizes)]
    return [n for k, n in enumerate(sizes) if k not in axes]


def _matmul(facts: Sizes, op: Op) -> Sequence[Size] | None:
    a, b = (facts.of(v) for v in op.operands)
    return [*a[:-1], *(b[1:] if len(b) == 2 else ())] if len(a) <= 2 and len(b) <= 2 else None


def _outer(facts: Sizes, op: Op) -> Sequence[Size]:
    return [facts.of(v)[0] for v in op.operands]


def _stack(facts: Sizes, op: Op) -> Sequence[Size] | None:
    first, *others = [facts.of(v) for v in op.operands]
    if any(sizes != first for sizes in others):
        return None
    axis = op.attrs["axis"]
    return [*first[:axis], len(op.operands), *first[axis:]]


def _concat(facts: Sizes, op: Op) -> Sequence[Size] | None:
    axis, parts = op.attrs["axis"], [facts.of(v) for v in op.operands]
    out: list[Size] = []
    for k, sizes in enumerate(zip(*parts)):
        if k == axis:
            numbers = [n for n in sizes if isinstance(n, int)]
            out.append(sum(numbers) if len(numbers) == len(sizes) else Symbol("axis", op.result, k))
        elif any(n != sizes[0] for n in sizes):
            return None
        else:
            out.append(sizes[0])
    return out


def _slice(facts: Sizes, op: Op) -> Sequence[Size]:
    sizes = facts.of(op.operands[0])
    return [n if entry is None else len(range(*entry)) for n, entry in zip(sizes, op.attrs["index"])]


def _take(facts: Sizes, op: Op) -> Sequence[Size]:
    """Indices out of range are read as some other element: the sizes stay."""
    sizes, axis = facts.of(op.operands[0]), op.attrs["axis"]
    return [*sizes[:axis], *facts.of(op.operands[1]), *sizes[axis + 1 :]]


def _like(facts: Sizes, op: Op) -> Sequence[Size]:
    return facts.of(op.operands[0])


ARRAYS: dict[str, Rule] = {
    "broadcast_to": _broadcast_to, "reshape_to": _by_dims, "unbroadcast": _by_dims, "fill_to": _by_dims,
    "onto_index": _by_dims, "onto_take": _by_dims, "onto_slice": _by_dims, "assemble": _by_dims,
    "transpose": _transpose, "matmul": _matmul, "outer": _outer, "stack": _stack, "concat": _concat, "slice": _slice,
    "take": _take,
    **dict.fromkeys(("cumsum", "cumprod", "shift", "roll", "sort", "argsort", "triangle"), _like),
    **dict.fromkeys(("sum", "prod", "max", "min", "any", "all", "argmax", "argmin"), _reduced),
}


# ---------------------------------------------------------------------------------------------- vectors of sizes
def _vector(value: Value) -> bool:
    return isinstance(value.type, Num) and value.type.static and value.type.rank == 1 and value.type.kind in "iu"


def _entries_concat(facts: Sizes, op: Op) -> Sequence[Size]:
    return [n for v in op.operands for n in facts.entries(v)]


def _entries_take(facts: Sizes, op: Op) -> Sequence[Size] | None:
    if not all(_vector(v) for v in op.operands):
        return None
    source, index = (facts.entries(v) for v in op.operands)
    if not all(isinstance(k, int) and -len(source) <= k < len(source) for k in index):
        return None
    return [source[k] for k in index if isinstance(k, int)]


def _entries_slice(facts: Sizes, op: Op) -> Sequence[Size]:
    entries, (entry,) = facts.entries(op.operands[0]), op.attrs["index"]
    return entries if entry is None else [entries[k] for k in range(*entry)]


def _entries_spread(facts: Sizes, op: Op) -> Sequence[Size] | None:
    type_ = op.operands[0].type
    scalar = isinstance(type_, Num) and type_.shape == () and tuple(op.attrs["shape"]) == (1,)
    return [facts.number(op.operands[0])] if scalar else None


def _entries_cast(facts: Sizes, op: Op) -> Sequence[Size] | None:
    (source,) = op.operands
    alike = isinstance(source.type, Num) and source.type.dtype == op.attrs["dtype"] == "int64"
    return facts.entries(source) if alike and _vector(source) else None


VECTORS: dict[str, Rule] = {
    "shape_of": lambda facts, op: facts.of(op.operands[0]),
    "broadcast_dims": lambda facts, op: facts.broadcast(*(facts.entries(v) for v in op.operands)),
    "concat": _entries_concat,
    "stack": lambda facts, op: [facts.number(v) for v in op.operands],
    "take": _entries_take,
    "slice": _entries_slice,
    "broadcast": _entries_spread,
    "reshape": _entries_spread,
    "cast": _entries_cast,
}


# ------------------------------------------------------------------------------------------------------- numbers
def _dim(facts: Sizes, op: Op) -> Size:
    return facts.of(op.operands[0])[op.attrs["axis"]]


def _number_cast(facts: Sizes, op: Op) -> Size | None:
    type_ = op.operands[0].type
    same = isinstance(type_, Num) and not type_.text and type_.dtype == op.attrs["dtype"] == "int64"
    return facts.number(op.operands[0]) if same else None


def _number_index(facts: Sizes, op: Op) -> Size | None:
    source, *index = op.operands
    if not _vector(source) or len(index) != 1:
        return None
    at, entries = facts.number(index[0]), facts.entries(source)
    return entries[at] if isinstance(at, int) and -len(entries) <= at < len(entries) else None


SCALARS: dict[str, Callable[[Sizes, Op], Size | None]] = {
    "dim": _dim, "cast": _number_cast, "index": _number_index,
}

