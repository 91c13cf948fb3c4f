"""The control-flow graph of one function, between structured blocks and regions.

The invariant: nodes work on variables that are assigned, not on SSA values (an `ir.core.Value` serves as the name of
a variable; the parallel `Move` at an edge stands for a block argument). Every variable is still assigned before it is
used on every path, so nodes may be copied, joined and threaded freely. Not-recursive callees are written in place here:
a `return` inside any loop of theirs is a jump like any other.

    loop %0 (%i: int) { ... continue %1 }     ->     n0: %i := %0; goto n1
                                                     n1: ...  %i := %1; goto n1
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from spmd.ir.core import Block, Function, Module, Op, Value
from spmd.ir.rewrite import Map, fresh
from spmd.ir.types import BOOL
from spmd.spans import Span
from spmd.transform.native import Whole, WholeLoops


@dataclass(eq=False)
class Move:
    """Parallel assignment."""

    targets: list[Value]
    sources: list[Value]


@dataclass(eq=False)
class Goto:
    target: Node


@dataclass(eq=False)
class Split:
    cond: Value
    then: Node
    other: Node


@dataclass(eq=False)
class CallSite:
    """As `ir.region.Site`, with variables for the child and the guards."""

    function: str
    args: list[Value]
    child: Value
    each: tuple[str, ...] = ()
    count: Value | None = None
    order: tuple[int, ...] = ()
    span: Span | None = None
    guards: tuple[tuple[Value, bool], ...] = ()

    @property
    def uses(self) -> list[Value]:
        counted = [] if self.count is None else [self.count]
        return [*(v for v, _ in self.guards), *counted, *self.args]


@dataclass(eq=False)
class Calls:
    sites: list[CallSite]
    target: Node


@dataclass(eq=False)
class Give:
    values: list[Value]


@dataclass(eq=False)
class Fail:
    error: Any


@dataclass(eq=False)
class Stop:
    pass


Step = Op | Move
FlowExit = Goto | Split | Calls | Give | Fail | Stop


@dataclass(eq=False)
class Node:
    """Steps in order and one exit. `order` is the program position of its first op, for display."""

    steps: list[Step] = field(default_factory=list)
    exit: FlowExit = field(default_factory=Stop)
    span: Span | None = None
    order: tuple[int, ...] = ()

    @property
    def successors(self) -> list[Node]:
        out = self.exit
        if isinstance(out, (Goto, Calls)):
            return [out.target]
        if isinstance(out, Split):
            return [out.then, out.other]
        return []

    @property
    def ops(self) -> list[Op]:
        return [s for s in self.steps if isinstance(s, Op)]

    def exit_uses(self) -> list[Value]:
        """Variables that the exit reads."""
        out = self.exit
        if isinstance(out, Split):
            return [out.cond]
        if isinstance(out, Calls):
            return [v for site in out.sites for v in site.uses]
        return list(out.values) if isinstance(out, Give) else []


@dataclass(eq=False)
class Flow:
    """One function as a graph; `nodes()` finds what can be reached."""

    function: Function
    entry: Node

    def nodes(self) -> list[Node]:
        """Reachable nodes in a depth-first order, the entry first; `then` before `other`."""
        seen: dict[Node, None] = {}
        stack = [self.entry]
        while stack:
            node = stack.pop()
            if node not in seen:
                seen[node] = None
                stack.extend(reversed(node.successors))
        return list(seen)

    def predecessors(self) -> dict[Node, list[Node]]:
        """Predecessors of each reachable node, one entry per edge; the entry has none extra."""
        nodes = self.nodes()
        found: dict[Node, list[Node]] = {node: [] for node in nodes}
        for node in nodes:
            for successor in node.successors:
                found[successor].append(node)
        return found


@dataclass(frozen=True)
class Scope:
    """Where terminators lead: `yield`, `break`, `continue` and `return`, each a node and variables to assign."""

    yields: tuple[Node, Sequence[Value]] | None = None
    breaks: tuple[Node, Sequence[Value]] | None = None
    continues: tuple[Node, Sequence[Value]] | None = None
    returns: tuple[Node, Sequence[Value]] | None = None


class FlowBuilder:
    """Lowers one function; `inline` says whether the body of a callee is written in place of a call, `whole` finds
    the loops that stay whole, as one op."""

    def __init__(
        self, module: Module, inline: Callable[[str], bool], whole: WholeLoops | None = None
    ) -> None:
        self.module = module
        self.inline = inline
        self.loops = whole
        self.current = Node()

    def build(self, function: Function) -> Flow:
        entry = self.current = Node(span=function.span)
        self.block(function.body, {}, Scope(), ())
        return Flow(function, entry)

    def block(self, block: Block, names: Map, scope: Scope, prefix: tuple[int, ...]) -> None:
        for op in block.ops:
            order = (*prefix, *op.order)
            if not self.current.order:
                self.current.order, self.current.span = order, op.span or self.current.span
            if op.terminator:
                self.terminator(op, names, scope)
            elif op.name == "if":
                self.branch(op, names, scope, prefix)
            elif op.name == "loop":
                whole = None if self.loops is None else self.loops.find(op)
                if whole is None:
                    self.loop(op, names, scope, prefix)
                else:
                    self.whole(op, whole, names, scope, prefix)
            elif op.name == "call" and self.inline(op.attrs["function"]):
                self.inlined(op, names, order)
            elif op.name in ("call", "map"):
                self.call(op, names, order)
            else:
                operands = [names.get(v, v) for v in op.operands]
                self.current.steps.append(
                    Op(op.name, operands, op.attrs, fresh(op.results, names), [], op.span, order)
                )

    def goto(self, where: tuple[Node, Sequence[Value]] | None, values: list[Value]) -> None:
        assert where is not None, "the verifier allows no terminator out of place"
        node, targets = where
        if targets:
            self.current.steps.append(Move(list(targets), values))
        self.current.exit = Goto(node)

    def terminator(self, op: Op, names: Map, scope: Scope) -> None:
        values = [names.get(v, v) for v in op.operands]
        if op.name == "return":
            if scope.returns is None:
                self.current.exit = Give(values)
            else:
                self.goto(scope.returns, values)
        elif op.name == "yield":
            self.goto(scope.yields, values)
        elif op.name == "break":
            self.goto(scope.breaks, values)
        elif op.name == "continue":
            self.goto(scope.continues, values)
        elif op.name == "raise":
            self.current.exit = Fail(op.attrs["error"])
            self.current.span = self.current.span if self.current.steps else op.span
        else:
            self.current.exit = Stop()

    def branch(self, op: Op, names: Map, scope: Scope, prefix: tuple[int, ...]) -> None:
        then, other, join = Node(), Node(), Node()
        self.current.exit = Split(names.get(op.operands[0], op.operands[0]), then, other)
        targets = fresh(op.results, names)
        inner = Scope((join, targets), scope.breaks, scope.continues, scope.returns)
        for node, block in zip((then, other), op.blocks, strict=True):
            self.current = node
            self.block(block, names, inner, prefix)
        self.current = join

    def loop(self, op: Op, names: Map, scope: Scope, prefix: tuple[int, ...]) -> None:
        (body,) = op.blocks
        header, behind = Node(), Node()
        inits = [names.get(v, v) for v in op.operands]
        args, results = fresh(body.args, names), fresh(op.results, names)
        self.goto((header, args), inits)
        self.current = header
        self.block(body, names, Scope(None, (behind, results), (header, args), scope.returns), prefix)
        self.current = behind

    def whole(self, op: Op, whole: Whole, names: Map, scope: Scope, prefix: tuple[int, ...]) -> None:
        """A loop as one op; behind it the function's return, if the loop says that it has returned."""
        made = whole.op(op, (*prefix, *op.order), prefix)
        made.operands = [names.get(v, v) for v in whole.given]
        made.results = fresh(op.results, names)
        self.current.steps.append(made)
        if whole.returned is None:
            return
        flag, values = Value(BOOL), [Value(t) for t in whole.returned]
        made.results = [flag, *made.results, *values]
        leave, behind = Node(), Node()
        self.current.exit = Split(flag, leave, behind)
        self.current = leave
        if scope.returns is None:
            self.current.exit = Give(list(values))
        else:
            self.goto(scope.returns, list(values))
        self.current = behind

    def inlined(self, op: Op, names: Map, order: tuple[int, ...]) -> None:
        """The callee's body in place; its parameters are the arguments, which nobody assigns meanwhile."""
        callee = self.module.functions[op.attrs["function"]]
        inner: Map = {p: names.get(v, v) for p, v in zip(callee.params, op.operands, strict=True)}
        behind = Node()
        self.block(callee.body, inner, Scope(returns=(behind, fresh(op.results, names))), order)
        self.current = behind

    def call(self, op: Op, names: Map, order: tuple[int, ...]) -> None:
        """Ends the node; a call's results are loads from the child in the next one."""
        operands = [names.get(v, v) for v in op.operands]
        function = op.attrs["function"]
        behind = Node(order=order, span=op.span)
        results = fresh(op.results, names)
        if op.name == "map":
            (child,) = results
            site = CallSite(function, operands[1:], child, tuple(op.attrs["each"]), operands[0], order, op.span)
        else:
            child = child_of(function)
            site = CallSite(function, operands, child, (), None, order, op.span)
            table = "@" + function
            for index, result in enumerate(results):
                attrs = {"table": table, "field": index}
                behind.steps.append(Op("load", [child], attrs, [result], [], op.span, order))
        self.current.exit = Calls([site], behind)
        self.current = behind


def child_of(function: str) -> Value:
    """A variable for the frame of a called function."""
    from spmd.ir.types import Ref

    return Value(Ref("@" + function), "child")
