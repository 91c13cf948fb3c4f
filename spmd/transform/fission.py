"""Calls of a loop that depend on the element alone become one `map` before the loop.

The invariant: values and exceptions stay. It is done only where every round is sure to start (a counted loop without
break, return or anything else that can raise), so no call runs that the loop would not have run; elements keep their
order, and what a round does for its element stays together and in order. Done for callees that are not written in
place: the elements of a node's children then run as one batch.

    loop 0, %0 (%i, %s) { ... %k = item %kids, %i; %v = call %k; %t = add %s, %v; continue %i + 1, %t }
    ->  %m = map %n, %kids;  loop 0, %0 (%i, %s) { ... %r = item %m, %i; %v = load %r; %t = add %s, %v; continue ... }
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spmd.analysis.callgraph import call_graph, cyclic, reachable
from spmd.analysis.effects import Primitives, default_primitives, may_raise
from spmd.ir.core import Block, Function, Module, Op, Value
from spmd.ir.rewrite import Map, clone_module, clone_op, substitute, use_counts
from spmd.ir.types import Num, Ref, Seq
from spmd.transform.counted import (
    CountedLoop,
    Definitions,
    bounds,
    counted,
    definitions,
    not_negative,
    reads_element,
)

ROUNDS = 4096  # rounds of a loop over numbers that may become frames at once


def fission(module: Module, primitives: Primitives | None = None) -> Module:
    """A module in which loops over elements make their calls at once."""
    primitives = default_primitives() if primitives is None else primitives
    module = clone_module(module)
    graph = call_graph(module)
    cycles = cyclic(graph)
    worth: set[str] = {name for name in graph if any(callee in cycles for callee in reachable(graph, name))}
    for function in list(module.functions.values()):
        _Splitter(module, function, worth, primitives).block(function.body)
    return module


def shares_frames(module: Module, name: str) -> bool:
    """Whether calls of a function on the same row of a table may share a frame: then each must stay a call, which an
    element's own frame makes, since the frames of a map lie side by side."""
    params = [v.type for v in module.functions[name].params]
    tables = [module.tables[t.table] for t in params if isinstance(t, Ref) and t.table in module.tables]
    return any(table.shared and table.unique for table in tables)


@dataclass(eq=False)
class _Plan:
    """What leaves the loop: `moved` ops, in order, and which of their results the loop still reads. `lifted`: what
    stands before the loop for values that its test computes anew in each round."""

    loop: CountedLoop
    lifted: Map
    moved: list[Op]
    elements: set[Op]
    safe: set[Op]
    needed: list[Value]


class _Splitter:
    """Works on one function, inner loops first."""

    def __init__(self, module: Module, function: Function, worth: set[str], primitives: Primitives) -> None:
        self.module = module
        self.function = function
        self.worth = worth
        self.primitives = primitives
        self.free = set(module.inputs)
        self.defs: Definitions = definitions(function)

    def block(self, block: Block) -> None:
        ops: list[Op] = []
        for op in block.ops:
            for inner in op.blocks:
                self.block(inner)
            if op.name == "loop":
                ops += self.before(op)
            ops.append(op)
        block.ops = ops

    def before(self, loop: Op) -> list[Op]:
        """The ops to put before the loop; the loop is changed to read their results."""
        found = counted(loop, self.defs, self.primitives)
        if found is None:
            return []
        lead, lifted = self.lifted(found)
        limit = lifted.get(found.limit, found.limit)
        plan = None if limit in found.inside else self.plan(found, lifted)
        if plan is None:
            return []
        self.defs.update((v, op) for op in lead for v in op.results)
        ops, count = self.count(limit)
        mapped = self.direct(plan, count) or self.outlined(plan, count)
        self.read_back(plan, mapped)
        new = [*lead, *ops, mapped]
        self.defs.update((v, op) for op in new for v in op.results)
        return new

    # ---- what can leave
    def plan(self, found: CountedLoop, lifted: Map) -> _Plan | None:
        limits = bounds(found.limit, self.defs)
        if not any(kind != "number" or (isinstance(n, int) and n <= ROUNDS) for kind, n in limits):
            return None  # as many frames at once as some number says, which nothing bounds
        known = {found.counter}
        elements: set[Op] = set()
        safe = set(found.steps)
        for op in (*found.head, *found.round):
            if all(v in known or v not in found.inside for v in free_values(op)):
                known.update(op.results)
                elements.add(op)
            if reads_element(op, found, limits) and (op.operands[0] not in found.inside or op.operands[0] in lifted):
                safe.add(op)
        moved = [op for op in found.round if op in elements and op not in safe and may_raise(op, self.primitives)]
        if not any(self.calls(op) for op in moved):
            return None
        rest = [op for op in found.round if op not in elements and op not in safe]
        if any(may_raise(op, self.primitives) for op in rest):
            return None
        results = {v for op in moved for v in op.results}
        used: dict[Value, None] = {}
        for op in found.block.ops[found.start :]:
            if op not in moved:
                used.update((v, None) for v in free_values(op) if v in results)
        return _Plan(found, lifted, moved, elements, safe, list(used))

    def calls(self, op: Op) -> bool:
        """Whether the op calls, in itself or in its blocks, a function that is worth a batch."""
        inner = [op, *(o for b in op.blocks for o in b.walk())]
        return any(o.name in ("call", "map") and o.attrs["function"] in self.worth for o in inner)

    def lifted(self, found: CountedLoop) -> tuple[list[Op], Map]:
        """Copies, to stand before the loop, of what its test computes the limit from."""
        names: Map = {}
        ops = []
        for op in found.head:
            if all(v in names or v not in found.inside for v in op.operands):
                ops.append(clone_op(op, names))
        limit = names.get(found.limit, found.limit)
        counts = use_counts(Block([], ops))
        kept: list[Op] = []
        for op in reversed(ops):
            if any(v is limit or counts.get(v) for v in op.results):
                kept.append(op)
            else:
                for v in op.operands:
                    counts[v] -= 1
        copied = {v for op in kept for v in op.results}
        return kept[::-1], {v: copy for v, copy in names.items() if copy in copied}

    def count(self, limit: Value) -> tuple[list[Op], Value]:
        """The number of rounds: the limit, or 0 if it is less."""
        if not_negative(limit, self.defs):
            return [], limit
        type_ = limit.type
        assert isinstance(type_, Num)
        zero = Op("const", [], {"value": 0 if type_.python else np.dtype(type_.dtype).type(0)}, [Value(type_)])
        name = "pymax" if type_.python else "maximum"
        clipped = Op(name, [limit, zero.result], {}, [Value(type_)])
        return [zero, clipped], clipped.result

    # ---- the map
    def direct(self, plan: _Plan, count: Value) -> Op | None:
        """A map of the callee itself, where the only thing moved is one call whose arguments can be told so."""
        if len(plan.moved) != 1 or plan.moved[0].name != "call":
            return None
        (call,) = plan.moved
        if shares_frames(self.module, call.attrs["function"]):
            return None
        operands: list[Value] = []
        each: list[str] = []
        for value in call.operands:
            how = self.argument(plan, value, count)
            if how is None:
                return None
            operands.append(how[0])
            each.append(how[1])
        return self.map_op(call.attrs["function"], count, operands, each, call)

    def argument(self, plan: _Plan, value: Value, count: Value) -> tuple[Value, str] | None:
        """The operand and the word of a map that give each round's value."""
        if value not in plan.loop.inside:
            return value, "same"
        if value is plan.loop.counter:
            return count, "index"
        op = self.defs[value]
        if op in plan.safe and op.name in ("item", "index"):
            return plan.lifted.get(op.operands[0], op.operands[0]), "each"
        inner = self.defs.get(op.operands[0]) if op.name == "load" else None
        if inner is not None and inner in plan.safe and inner.name == "item":
            whole = inner.operands[0]
            return plan.lifted.get(whole, whole), f"field:{op.attrs['field']}"
        return None

    def outlined(self, plan: _Plan, count: Value) -> Op:
        """A map of a new function that does for one element what is moved, in order."""
        names: Map = {}
        operands: list[Value] = []
        each: list[str] = []
        body = Block()
        params: list[Value] = []
        for op in self.closure(plan):
            for value in free_values(op):
                if value in names or value in self.free:
                    continue
                source = self.defs.get(value)
                if source is not None and source.name == "const":
                    body.ops.append(clone_op(source, names))
                    continue
                how = self.argument(plan, value, count)
                assert how is not None, "what an element's work reads is brought before it"
                names[value] = Value(value.type, value.name)
                params.append(names[value])
                operands.append(how[0])
                each.append(how[1])
            body.ops.append(clone_op(op, names))
        span = plan.moved[0].span
        body.ops.append(Op("return", [names[v] for v in plan.needed], {}, [], [], span))
        function = Function(self.fresh_name(), params, [v.type for v in plan.needed], body, span)
        self.module.functions[function.name] = function
        return self.map_op(function.name, count, operands, each, plan.moved[0])

    def closure(self, plan: _Plan) -> list[Op]:
        """The moved ops and those of the round that they need, in order; reads of the element are arguments."""
        wanted = {v for op in plan.moved for v in free_values(op)}
        found: list[Op] = []
        for op in reversed([*plan.loop.head, *plan.loop.round]):
            reads = op in plan.safe and op.name in ("item", "index")
            if op in plan.moved or (op.name != "const" and not reads and any(v in wanted for v in op.results)):
                found.append(op)
                wanted.update(free_values(op))
        return found[::-1]

    def fresh_name(self) -> str:
        number = 1
        while f"{self.function.name}.round{number}" in self.module.functions:
            number += 1
        return f"{self.function.name}.round{number}"

    def map_op(self, function: str, count: Value, operands: list[Value], each: list[str], call: Op) -> Op:
        attrs = {"function": function, "each": tuple(each)}
        result = Value(Seq("@" + function))
        return Op("map", [count, *operands], attrs, [result], [], call.span, call.order)

    def read_back(self, plan: _Plan, mapped: Op) -> None:
        """The round reads results of its element instead of making the calls."""
        table = "@" + mapped.attrs["function"]
        fields: dict[Value, int] = {v: k for k, v in enumerate(plan.needed)}
        if mapped.attrs["function"] == plan.moved[0].attrs.get("function"):
            fields = {v: k for k, v in enumerate(plan.moved[0].results)}
        span = mapped.span
        whole, counter, order = mapped.result, plan.loop.counter, mapped.order
        row = Op("item", [whole, counter], {"table": table}, [Value(Ref(table))], [], span, order)
        reads = [row] if plan.needed else []
        names: Map = {}
        for value in plan.needed:
            names[value] = Value(value.type, value.name)
            attrs = {"table": table, "field": fields[value]}
            reads.append(Op("load", [row.result], attrs, [names[value]], [], span, order))
        block, start = plan.loop.block, plan.loop.start
        block.ops[start:] = reads + [op for op in block.ops[start:] if op not in plan.moved]
        substitute(block, names)
        counts = use_counts(plan.loop.loop.blocks[0])
        kept = []
        for op in reversed(block.ops):
            spare = op in plan.safe or (op in plan.elements and not may_raise(op, self.primitives))
            if spare and not op.blocks and op.results and not any(counts.get(v) for v in op.results):
                for v in op.operands:
                    counts[v] -= 1
            else:
                kept.append(op)
        block.ops = kept[::-1]
        self.defs.update((v, op) for op in reads for v in op.results)


def free_values(op: Op) -> list[Value]:
    """Values that the op, with its blocks, reads from outside."""
    own: set[Value] = set()
    found: dict[Value, None] = {}
    for each in (op, *(o for b in op.blocks for o in b.walk())):
        for block in each.blocks:
            own.update(block.args)
        if each is not op:
            own.update(each.results)
        found.update((v, None) for v in each.operands)
    return [v for v in found if v not in own]
