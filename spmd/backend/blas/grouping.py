"""Which elementwise ops of a region run as one kernel, and in which order everything runs.

`group` puts ops into stages: a kernel of stage s reads only what other ops gave before it. Elementwise ops of one stage
and one shape are one group. `sunk` first moves slices in front of the elementwise ops that they cut, so that the gates
of a cell are one group. The invariant: the ops that come out compute the same values, operands always come first, and
faults keep their program order since every op keeps its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field

from spmd.backend.blas.plan import num
from spmd.backend.simd import SUPPORTED
from spmd.ir.core import STRUCTURAL, Op, Value
from spmd.ir.types import Num
from spmd.ops.table import PRIMITIVES, chain_name, may_raise

# Worth a kernel of its own: NumPy is slower on these even with one pass.
COSTLY = frozenset(
    {"exp", "expm1", "log", "log1p", "log2", "log10", "tanh", "sigmoid", "sin", "cos", "pow", "arctan", "arctan2"}
)


Shape = tuple[int | None, ...]


@dataclass(eq=False)
class Group:
    """Elementwise ops over one shape, in order; `ragged`: over one set of sizes that differ between rows."""

    shape: Shape
    ops: list[Op] = field(default_factory=list)

    @property
    def ragged(self) -> bool:
        return None in self.shape


Item = Op | Group
SPREAD = frozenset({"broadcast", "broadcast_to"})


def uniform_values(ops: Iterable[Op], is_uniform: Callable[[Value], bool]) -> set[Value]:
    """Results that do not vary between rows, given which values from outside do not."""
    found: set[Value] = set()
    for op in ops:
        if op.name == "const":
            found.update(op.results)
        elif op.name not in STRUCTURAL and op.operands and not may_raise(op):
            if all(v in found or is_uniform(v) for v in op.operands):
                found.update(op.results)
    return found


def _broadcast_scalar(op: Op) -> bool:
    """A broadcast of one number per row (or of a shared value) to a static shape."""
    return op.name == "broadcast" and isinstance(op.operands[0].type, Num) and num(op.operands[0]).shape == ()


def chainable(op: Op, uniform: set[Value]) -> bool:
    """Whether the op can be part of a kernel."""
    if op.name in STRUCTURAL or op.result in uniform:
        return False
    if not all(isinstance(v.type, Num) and num(v).static for v in (*op.operands, op.result)):
        return False
    if _broadcast_scalar(op):
        return num(op.result).dtype in SUPPORTED["where"] and num(op.result).shape != ()
    name = chain_name(op)
    if not name or name not in SUPPORTED:
        return False
    checked_type = num(op.operands[-1]).dtype
    if name == "cast" and num(op.result).dtype not in SUPPORTED["cast"]:
        return False
    return checked_type in SUPPORTED[name]


def ragged_chainable(op: Op, uniform: set[Value]) -> bool:
    """Whether the op can be part of a kernel over ragged elements: equal sizes all round, or one number spread."""
    if op.name in STRUCTURAL or op.result in uniform or may_raise(op):
        return False
    if not isinstance(op.result.type, Num) or op.result.type.static:
        return False
    if op.name == "broadcast_to":
        source = op.operands[0]
        return source in uniform and num(source).shape == () and num(source).dtype in SUPPORTED["where"]
    name = chain_name(op)
    if not name or name not in SUPPORTED or any(v in uniform for v in op.operands):
        return False
    if name == "cast" and num(op.result).dtype not in SUPPORTED["cast"]:
        return False
    return num(op.operands[-1]).dtype in SUPPORTED[name]


def sizes_first(ops: Sequence[Op], uniform: set[Value], kept: Set[Value]) -> list[Op]:
    """Asks sizes of what an elementwise op reads instead of its result, and takes sizes that are already values, so
    that results need not be stored for their sizes alone."""
    like: dict[Value, Value] = {}
    sizes: dict[Value, Value] = {}
    same: dict[Value, Value] = {}
    out = []
    for op in ops:
        if any(v in same for v in op.operands):
            operands = [same.get(v, v) for v in op.operands]
            op = Op(op.name, operands, op.attrs, op.results, op.blocks, op.span, op.order)
        if op.name == "shape_of" and op.operands[0] in sizes and op.result not in kept:
            same[op.result] = sizes[op.operands[0]]
            continue
        if op.name in ("shape_of", "dim") and op.operands[0] in like:
            op = Op(op.name, [like[op.operands[0]]], op.attrs, op.results, [], op.span, op.order)
        elif op.name == "broadcast_to":
            sizes[op.result] = op.operands[1]
        elif op.operands and ragged_chainable(op, uniform):
            source = next((v for v in op.operands if v in like or v not in sizes), None)
            if source is not None:
                like[op.result] = like.get(source, source)
            else:
                sizes[op.result] = sizes[op.operands[0]]
        out.append(op)
    return out


def _shape(op: Op, uniform: set[Value]) -> Shape | None:
    """The shape of the kernels that an op can be part of."""
    return num(op.result).shape if chainable(op, uniform) or ragged_chainable(op, uniform) else None


def group(ops: Sequence[Op], uniform: set[Value], kept: Set[Value] = frozenset()) -> list[Item]:
    """Ops and groups in an order that can run."""
    shapes = {op: _shape(op, uniform) for op in ops}
    stage = _earliest(ops, shapes)
    _delay(ops, shapes, stage, kept)
    plain: dict[int, list[Op]] = {}
    groups: dict[tuple[int, Shape], Group] = {}
    for op in ops:
        shape, at = shapes[op], stage[op]
        if shape is None:
            plain.setdefault(at, []).append(op)
        else:
            groups.setdefault((at, shape), Group(shape)).ops.append(op)
    last = max(stage.values(), default=0)
    out: list[Item] = []
    for at in range(last + 1):
        for (own, _), found in groups.items():
            if own == at:
                for part in _parts(found) if found.ragged else [found]:
                    out += _worth(part)
        out += plain.get(at, [])
    return out


def _earliest(ops: Sequence[Op], shapes: dict[Op, Shape | None]) -> dict[Op, int]:
    """The first stage that each op can run in. Plain ops of stage s run after the kernels of stage s."""
    stage: dict[Op, int] = {}
    made: dict[Value, Op] = {}
    for op in ops:
        at, shape = (0 if shapes[op] is None else 1), shapes[op]
        for v in op.operands:
            before = made.get(v)
            if before is not None:
                at = max(at, stage[before] + (0 if shape is None or shapes[before] == shape else 1))
        stage[op] = at
        made.update((r, op) for r in op.results)
    return stage


def _delay(ops: Sequence[Op], shapes: dict[Op, Shape | None], stage: dict[Op, int], kept: Set[Value]) -> None:
    """Moves elementwise ops to the kernel that reads them, so that their results need not be stored in between."""
    readers: dict[Value, list[Op]] = {}
    for op in ops:
        for v in op.operands:
            readers.setdefault(v, []).append(op)
    for op in reversed(ops):
        after = readers.get(op.result, []) if shapes[op] is not None else []
        if after and op.result not in kept and all(shapes[r] == shapes[op] for r in after):
            stage[op] = max(stage[op], min(stage[r] for r in after))


def _parts(group_: Group) -> list[Group]:
    """A ragged group by what hangs together: only then are sizes known to agree."""
    parent: dict[Value, Value] = {}

    def root(v: Value) -> Value:
        while parent.setdefault(v, v) is not v:
            v = parent[v]
        return v

    for op in group_.ops:
        for v in op.operands if op.name != "broadcast_to" else ():
            parent[root(v)] = root(op.result)
    parts: dict[Value, Group] = {}
    for op in group_.ops:
        parts.setdefault(root(op.result), Group(group_.shape)).ops.append(op)
    return list(parts.values())


def _worth(group_: Group) -> list[Item]:
    """A group, or its ops by themselves where a kernel does not pay."""
    work = [op for op in group_.ops if op.name not in SPREAD]
    if len(work) == 1 and not may_raise(work[0]) and PRIMITIVES[work[0].name].chain not in COSTLY:
        return list(group_.ops)
    made = {op.result for op in group_.ops}
    reads = any(v not in made for op in work for v in op.operands)
    return [group_] if work and (reads or not group_.ragged) else list(group_.ops)


def sunk(ops: Sequence[Op], kept: Set[Value], uniform: set[Value]) -> list[Op]:
    """Moves slices in front of elementwise ops whose results are only ever sliced."""
    current = list(ops)
    while True:
        uses: Counter[Value] = Counter(v for op in current for v in op.operands)
        slices: dict[Value, list[Op]] = {}
        for op in current:
            if op.name == "slice":
                slices.setdefault(op.operands[0], []).append(op)
        target = next((op for op in reversed(current) if _sinks(op, slices, uses, kept, uniform)), None)
        if target is None:
            return current
        current = _sink(current, target, slices[target.result])


def _sinks(
    op: Op, slices: dict[Value, list[Op]], uses: Counter[Value], kept: Set[Value], uniform: set[Value]
) -> bool:
    if op.name in STRUCTURAL or len(op.results) != 1:
        return False
    cuts = slices.get(op.result, [])
    if not cuts or op.result in kept or uses[op.result] != len(cuts) or may_raise(op) or not chainable(op, uniform):
        return False
    return sum(num(c.result).size for c in cuts) <= num(op.result).size


def _sink(ops: list[Op], target: Op, cuts: list[Op]) -> list[Op]:
    out: list[Op] = []
    gone = set(cuts)
    for op in ops:
        if op in gone:
            continue
        if op is not target:
            out.append(op)
            continue
        for cut in cuts:
            shape = num(cut.result).shape
            if target.name == "broadcast":
                attrs = dict(target.attrs, shape=shape)
                out.append(Op("broadcast", list(target.operands), attrs, cut.results, [], target.span, target.order))
                continue
            parts = []
            for operand in target.operands:
                part = Value(Num(num(operand).dtype, shape))
                out.append(Op("slice", [operand], cut.attrs, [part], [], cut.span, cut.order))
                parts.append(part)
            out.append(Op(target.name, parts, target.attrs, cut.results, [], target.span, target.order))
    return out
