"""Writes straight-line Python for ops over rows.

The invariant: every op is emitted once, after its operands; elementwise ones as kernels where there is a collector
for kernels, else each by its primitive's rule.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import partial
from typing import Any

import numpy as np

from spmd.backend.blas import dynamic, fast, spaces, structural
from spmd.backend.blas.chains import Chain, ChainMaker, Kernels, Rerun, contiguous
from spmd.backend.blas.dynamic_flat import static_sizes
from spmd.backend.blas.grouping import Group, Item, group, sizes_first, sunk, uniform_values
from spmd.backend.blas.native_code import Loops, between_loops, lanes_of
from spmd.backend.blas.plan import Plan, num
from spmd.backend.blas.ragged_chains import RaggedChain
from spmd.backend.blas.structural_code import StructuralWriter, static
from spmd.backend.blas.values import UNKNOWN, Held, Source
from spmd.ir.core import Op, Value
from spmd.ir.types import Num, Seq
from spmd.ops.primitive import Site
from spmd.ops.table import PRIMITIVES, may_raise

COMMA = ","
# Cheap views and copies of module inputs: made once per run, not per region execution.
PREPARED = frozenset({"slice", "broadcast", "cast", "reshape"})


class OpWriter(StructuralWriter):
    """Emits ops into a source."""

    def __init__(self, source: Source, plan: Plan, inputs: dict[Value, int], kernels: Kernels | None = None) -> None:
        super().__init__(source, plan, inputs)
        self.kernels = kernels
        # Chain outputs with a place of their own: expression of an array to write into (`placed`: done so).
        self.places: dict[Value, str] = {}
        self.placed: set[Value] = set()
        self.built: set[Op] = set()
        # Vectors of sizes that are those of a ragged value.
        self.likes: dict[Value, Value] = {}
        self.prepares = True
        self.loops: Loops | None = None
        self.region = -1

    def emit(self, ops: Sequence[Op], kept: Set[Value] = frozenset()) -> None:
        """Emits ops, elementwise ones as kernels where there is a collector for them; `kept`: values that are used
        by others than these ops."""
        if self.kernels is None:
            for op in ops:
                self.op(op)
            return
        for stretch, needed in between_loops(ops, kept):
            self._stretch(stretch, needed, self.kernels)

    def _stretch(self, ops: Sequence[Op], kept: Set[Value], kernels: Kernels) -> None:
        """Ops without native loops in between, or one such loop."""
        ops = sunk(ops, kept, uniform_values(ops, self.uniform))
        uniform = uniform_values(ops, self.uniform) | {v for op in ops for v in op.operands if self.uniform(v)}
        ops = sizes_first(ops, uniform, kept)
        items = group(ops, uniform, kept)
        self._assemblies(items, kept)
        readers = _readers(items)
        for item in items:
            if isinstance(item, Group):
                wanted = [op.result for op in item.ops if op.result in kept or readers.get(op.result, set()) - {item}]
                make = self._ragged_kernel if item.ragged else self._kernel
                make(item, wanted, kernels)
            elif item not in self.built:
                self.op(item)

    def _kernel(self, group_: Group, wanted: list[Value], kernels: Kernels) -> None:
        """One group as one call."""
        wanted = wanted or [op.result for op in group_.ops if may_raise(op)][-1:]
        if not wanted:
            return
        chain = ChainMaker(group_, self.uniform, self._known).make(wanted)
        source = self.source
        outs = []
        for value in chain.outputs:
            name = source.fresh()
            dtype = source.dtype(num(value).dtype)
            shape = "".join(f", {n}" for n in num(value).shape)
            source.line(f"{name} = {self.places.get(value) or f'np.empty((K{shape or COMMA}), {dtype})'}")
            if value in self.places:
                self.placed.add(value)
            outs.append(name)
        ins = [self._operand(v, kind) for v, kind in chain.operands]
        kernel = source.constant(None, "k")
        kernels.add(chain.spec, source.names, kernel)
        features = num(wanted[0]).size
        call = f"{kernel}(({''.join(o + ', ' for o in outs)}), ({''.join(i + ', ' for i in ins)}), K, {features})"
        if chain.checked:
            self._checked_call(group_, chain, call, outs)
        else:
            source.line(call)
        for value, name in zip(chain.outputs, outs):
            self.set(value, name, "rows", tight=True)

    def _ragged_kernel(self, group_: Group, wanted: list[Value], kernels: Kernels) -> None:
        """One group over ragged elements as one call."""
        if not wanted:
            return
        chain = ChainMaker(group_, self.uniform, self._known).make(wanted)
        made = {op.result for op in group_.ops}
        forms = {v: self.held(v).form for op in group_.ops for v in op.operands if v not in made}
        call = RaggedChain(group_, chain, forms, self.likes)
        kernels.add(chain.spec, vars(call), "kernel")
        self.faults = True
        names = [self.source.fresh() for _ in chain.outputs]
        values = "".join(self.name(v) + ", " for v in call.outside)
        place = self.source.constant(call, "p")
        self.source.line(f"{''.join(n + ', ' for n in names)} = {place}(({values}), ft)")
        for value, name in zip(chain.outputs, names):
            self.set(value, name, "ragged")

    def _checked_call(self, group_: Group, chain: Chain, call: str, outs: list[str]) -> None:
        self.faults = True
        rerun = Rerun(group_, chain, len(self.orders), self.uniform, self._known)
        for op in group_.ops:
            if may_raise(op):
                self.orders.append(op.order)
                self.spans.append(op.span)
        values = "".join(self.name(v) + ", " for v in rerun.operands)
        self.source.line(f"if {call}:")
        self.source.line(f"{''.join(o + ', ' for o in outs)} = {self.source.constant(rerun, 'p')}(ft, ({values}))", 2)

    def _known(self, value: Value) -> Any:
        held = self.env.get(value)
        return None if held is None or held.known is UNKNOWN else held.known

    def _operand(self, value: Value, kind: str) -> str:
        """Expression of an array that a kernel reads."""
        held = self.held(value)
        if kind == "one":
            return f"np.asarray({held.name}, {self.source.dtype(num(value).dtype)})"
        if kind == "row" or held.tight:
            return held.name
        return f"{self.source.function(contiguous)}({held.name})"

    def _assemblies(self, items: Sequence[Item], kept: Set[Value]) -> None:
        """Where an `assemble` of vectors only joins kernel outputs, the kernels write into its parts."""
        made = {op.result for item in items if isinstance(item, Group) for op in item.ops}
        for item in items:
            if isinstance(item, Group) or item.name != "assemble":
                continue
            shape, pieces = item.attrs["shape"], item.attrs["pieces"]
            bounds = [p[0] for p in pieces]
            simple = len(shape) == 1 and all(b is not None and b[2] == 1 for b in bounds)
            own = [v for v in item.operands if v in made and v not in self.places]
            if not simple or len(set(own)) != len(item.operands):
                continue
            ordered = sorted((b[0], b[1]) for b in bounds)
            if any(a[1] > b[0] for a, b in zip(ordered, ordered[1:])):
                continue
            whole = sum(b[1] - b[0] for b in bounds) == shape[0]
            name = self.source.fresh()
            create = "empty" if whole else "zeros"
            self.source.line(f"{name} = np.{create}((K, {shape[0]}), {self.source.dtype(num(item.result).dtype)})")
            for value, (start, stop, _) in zip(item.operands, bounds):
                self.places[value] = f"{name}[:, {start}:{stop}]"
            self.set(item.result, name, "rows", tight=True)
            self.built.add(item)

    def _op_native(self, op: Op) -> None:
        """A loop that compiled code runs for all rows. Rows that take too long end the execution before
        anything is stored."""
        assert self.loops is not None
        source = self.source
        loop = source.constant(None, "n")
        code = self.loops.add(op.blocks[0], source.names, loop)
        self.faults = True
        first = len(self.orders)
        self.orders += [site.order for site in code.sites]
        self.spans += [site.span for site in code.sites]
        values = "".join(f"({self.held(v).form!r}, {self.name(v)}), " for v in op.operands)
        fields = "".join(self.field(*key) + ", " for key in code.fields)
        found = source.fresh()
        lanes = f"{source.function(lanes_of)}(F, rows)"
        source.line(f"{found} = {loop}(run, {lanes}, ft, {first}, ({values}), ({fields}))")
        source.line("if ft.late is not None:")
        source.line(f"run.postpone({self.region}, rows, ft.late)", 2)
        source.line("return (), None", 2)
        for k, result in enumerate(op.results):
            name = source.fresh()
            if isinstance(result.type, Seq):
                source.line(f"{name} = ({found}[{k}][:, 0], {found}[{k}][:, 1])")
                self.set(result, name, "run")
                continue
            source.line(f"{name} = {found}[{k}]")
            ragged = isinstance(result.type, Num) and not result.type.static
            self.set(result, name, "ragged" if ragged else "rows", tight=not ragged)

    def op(self, op: Op) -> None:
        structural_op = getattr(self, f"_op_{op.name}", None)
        if structural_op is not None:
            structural_op(op)
        else:
            self._primitive(op)

    def _primitive(self, op: Op) -> None:
        record = PRIMITIVES[op.name]
        operands = [self.held(v) for v in op.operands]
        raises = record.raises([v.type for v in op.operands], op.attrs)
        if not any(h.varying for h in operands):
            if not raises:
                self._uniform(op, record, operands)
                return
            operands[0] = Held(f"({self.as_rows(operands[0])})", "rows", operands[0].type)
        result = num(op.result)
        if self._shared_space(op, operands):
            return
        if any(h.form == "lazy" for h in operands):
            self._element(op, operands)
            return
        fixed = all(static(h.type) for h in operands) and static(result)
        if fixed:
            site = Site(tuple(h.type for h in operands), result, op.attrs, tuple(h.varying for h in operands))
            rule, form = fast.shorter(op, [h.form for h in operands], record.rows(site)), "rows"
        else:
            rule, form = dynamic.rule(op, [h.form for h in operands], raises)
        name = self.source.fresh()
        args = ", ".join(h.name for h in operands)
        if raises:
            args += f", faults={self.fails(op)}"
        elif not fixed:
            self.faults = True
            args += ", faults=ft"
        self.source.line(f"{name} = {self.source.constant(rule, 'p')}({args})")
        tight = op.name == "matmul" or (op.name == "slice" and _plain_cut(op) and operands[0].tight)
        self.set(op.result, name, form, tight=tight and form == "rows")

    def _shared_space(self, op: Op, operands: Sequence[Held]) -> bool:
        """Whether the op was emitted as one that hands on the sizes of a ragged value."""
        source, first = self.source, operands[0]
        if op.name == "shape_of" and first.form == "ragged":
            self.likes[op.result] = op.operands[0]
            self.set(op.result, f"{source.function(spaces.sizes_of)}({first.name})", "rows")
            return True
        like = self.likes.get(op.operands[-1])
        if op.name == "broadcast_to" and like is not None and spaces.spreads(op, first.form, like.type):
            text, form = f"{source.function(spaces.spread)}({first.name}, {self.name(like)})", "ragged"
        elif op.name == "sum" and self.kernels is not None and spaces.sums_blocks(op, first.form):
            total = source.constant(spaces.block_sums(static_sizes(num(op.result))), "p")
            text, form = f"{total}({first.name})", "rows"
        else:
            return False
        name = source.fresh()
        source.line(f"{name} = {text}")
        self.set(op.result, name, form, tight=form == "rows")
        return True

    def _uniform(self, op: Op, record: Any, operands: Sequence[Held]) -> None:
        rule = partial(record.numpy, **op.attrs) if op.attrs else record.numpy
        if all(h.known is not UNKNOWN for h in operands):
            with np.errstate(all="ignore"):
                value = rule(*(h.known for h in operands))
            self.set(op.result, self.source.constant(value), "uniform", value)
            return
        numbers = [self.inputs.get(v) for v in op.operands]
        if self.prepares and op.name in PREPARED and None not in numbers:
            place = self.plan.prepare(op.name, rule, numbers, op.attrs)
            self.set(op.result, f"run.prepared[{place}]", "uniform", tight=True)
            return
        name = self.source.fresh()
        args = ", ".join(h.name for h in operands)
        self.source.line(f"{name} = {self.source.constant(rule, 'u')}({args})")
        self.set(op.result, name, "uniform")

    def _element(self, op: Op, operands: Sequence[Held]) -> None:
        """`index` of an array that stays in its column."""
        array, *index = operands
        name = self.source.fresh()
        shape = self.source.constant(array.type.shape)
        args = ", ".join(h.name for h in index)
        data, rows = array.source
        read, text = self.source.function(structural.element), self.source.constant(op.attrs.get("text", ""))
        self.source.line(f"{name} = {read}({data}, {rows}, ({args},), {shape}, K, {self.fails(op)}, {text})")
        self.set(op.result, name, "rows")


def _plain_cut(op: Op) -> bool:
    """A stretch of a vector, which stays contiguous."""
    (entry,) = op.attrs["index"] if len(op.attrs["index"]) == 1 else (None,)
    return num(op.operands[0]).rank == 1 and entry is not None and entry[2] == 1


def _readers(items: Sequence[Item]) -> dict[Value, set[Any]]:
    """Value -> the items that read it."""
    out: dict[Value, set[Any]] = {}
    for item in items:
        for op in item.ops if isinstance(item, Group) else [item]:
            for value in op.operands:
                out.setdefault(value, set()).add(item)
    return out


def lazy_values(ops: Sequence[Op], candidates: set[Value], kept: set[Value]) -> set[Value]:
    """Candidates (arrays that could stay where they are) whose every use is as the array of an `index`."""
    out = {v for v in candidates if isinstance(v.type, Num) and num(v).static and num(v).rank and v not in kept}
    used = set()
    for op in ops:
        for position, value in enumerate(op.operands):
            if op.name == "index" and position == 0:
                used.add(value)
            else:
                out.discard(value)
    return out & used
