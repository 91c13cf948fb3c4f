"""Fewer and longer nodes: joins, jump threading, loop inversion and tail duplication on a flow graph.

The invariant: every path executes the same ops in the same order as before. A loop header is copied to the end of the
body, so that an iteration is one node per stretch between coarse branches; small joins that end in a branch, a return
or a raise are copied into the nodes that jump to them.
"""

from __future__ import annotations

from spmd.analysis.effects import costly
from spmd.ir.core import Op, Value
from spmd.transform.flow import Calls, Fail, Flow, FlowExit, Give, Goto, Move, Node, Split, Step, Stop

HEADER = 40  # ops of a loop header that may be copied to the loop's end
TAIL = 6  # cheap ops of another join that may be copied
GROWTH = 4000  # ops that one function may reach by copying


def straighten(flow: Flow) -> None:
    """Applies the rewrites, in place, until none applies."""
    while _join(flow) or _thread(flow) or _copy_small(flow):
        pass


def shorten(flow: Flow) -> None:
    """The rewrites that copy nothing."""
    while _join(flow) or _thread(flow):
        pass


def _join(flow: Flow) -> bool:
    """A node takes over its successor if it is the only one that leads there."""
    changed = False
    before = flow.predecessors()
    for node in list(before):
        while isinstance(node.exit, Goto):
            target = node.exit.target
            if target is node or target is flow.entry or len(before.get(target, ())) != 1:
                break
            node.steps += target.steps
            if not node.order:
                node.order, node.span = target.order, target.span
            node.exit = target.exit
            before[target] = []
            for successor in node.successors:
                before[successor] = [node if p is target else p for p in before[successor]]
            target.steps, target.exit = [], Stop()
            changed = True
    return changed


def _final(node: Node) -> Node:
    """Where a chain of empty nodes leads."""
    seen = set()
    while isinstance(node.exit, Goto) and not node.steps and node not in seen:
        seen.add(node)
        node = node.exit.target
    return node


def _thread(flow: Flow) -> bool:
    """Edges skip empty nodes; a branch both of whose sides lead to one node is no branch."""
    changed = False
    for node in flow.nodes():
        out = node.exit
        if isinstance(out, (Goto, Calls)):
            target = _final(out.target)
            changed |= target is not out.target
            out.target = target
        elif isinstance(out, Split):
            then, other = _final(out.then), _final(out.other)
            changed |= then is not out.then or other is not out.other
            out.then, out.other = then, other
            if then is other:
                node.exit = Goto(then)
                changed = True
    return changed


def _headers(flow: Flow) -> set[Node]:
    """Targets of back edges of a depth-first walk."""
    found: set[Node] = set()
    state: dict[Node, int] = {flow.entry: 1}
    stack = [(flow.entry, iter(flow.entry.successors))]
    while stack:
        node, successors = stack[-1]
        for successor in successors:
            if state.get(successor) == 1:
                found.add(successor)
            elif successor not in state:
                state[successor] = 1
                stack.append((successor, iter(successor.successors)))
                break
        else:
            state[node] = 2
            stack.pop()
    return found


def _copy_small(flow: Flow) -> bool:
    """Each node worth it is copied into all that jump to it; true if something changed."""
    changed = False
    headers = _headers(flow)
    before = flow.predecessors()
    total = sum(len(node.steps) for node in before)
    for target, sources in before.items():
        jumps = [p for p in sources if isinstance(p.exit, Goto) and p.exit.target is target and p is not target]
        if not jumps or target is flow.entry or not _worth_copying(target, target in headers):
            continue
        if total + len(target.steps) * len(jumps) > GROWTH:
            continue
        total += len(target.steps) * len(jumps)
        changed = True
        for source in jumps:
            source.steps += [copy_step(step) for step in target.steps]
            source.exit = copy_exit(target.exit)
            if not source.order:
                source.order, source.span = target.order, target.span
    return changed


def _worth_copying(node: Node, header: bool) -> bool:
    if isinstance(node.exit, (Calls, Stop)):
        return False
    ops = [op for op in node.ops if op.name != "const"]
    if isinstance(node.exit, Goto):  # only moves: they belong to the edge
        return not ops and not _reaches_itself(node)
    if header:
        return isinstance(node.exit, Split) and len(ops) <= HEADER
    return len(ops) <= TAIL and not costly(ops)


def _reaches_itself(node: Node) -> bool:
    """Whether following jumps alone leads back to the node."""
    seen = set()
    at = node
    while isinstance(at.exit, Goto) and at not in seen:
        seen.add(at)
        at = at.exit.target
    return at in seen


def copy_step(step: Step) -> Step:
    """Same variables, new op: positions are given per node."""
    if isinstance(step, Move):
        return Move(list(step.targets), list(step.sources))
    return Op(step.name, list(step.operands), step.attrs, list(step.results), step.blocks, step.span, step.order)


def copy_exit(out: FlowExit) -> FlowExit:
    """An exit of its own for a copied node."""
    if isinstance(out, Goto):
        return Goto(out.target)
    if isinstance(out, Split):
        return Split(out.cond, out.then, out.other)
    if isinstance(out, Give):
        return Give(list(out.values))
    if isinstance(out, Fail):
        return Fail(out.error)
    raise TypeError(f"{type(out).__name__} is not copied")


def defined(step: Step) -> list[Value]:
    """Variables that the step assigns."""
    return step.targets if isinstance(step, Move) else step.results


def used(step: Step) -> list[Value]:
    """Variables that the step reads."""
    return step.sources if isinstance(step, Move) else step.operands
