"""Which callees are written in place of their calls.

The invariant: never a function that leads back to itself by calls, so writing in place ends; and never so much that a
function outgrows a stated size. The writing itself is `flow`'s: among jumps a `return` inside a callee's loop is a jump
like any other, and a straight-line callee costs nothing. A `map` keeps its function: its frames are its batch.
"""

from __future__ import annotations

from spmd.analysis.callgraph import call_graph, components, cyclic, reachable
from spmd.ir.core import Module

LIMIT = 400  # ops of a callee, with what is written in place in it, that still goes in place of each call
ONCE = 4000  # the same for a callee with one call
FUNCTION = 20000  # ops that a function may reach


def inlinable(module: Module) -> set[str]:
    """Functions that are written in place of calls: not recursive, and small or called once."""
    graph = call_graph(module)
    graph = {name: graph[name] for name in reachable(graph, module.entry)}
    cycles = cyclic(graph)
    calls: dict[str, int] = {}
    for name in graph:
        for op in module.functions[name].body.walk():
            if op.name == "call":
                calls[op.attrs["function"]] = calls.get(op.attrs["function"], 0) + 1
    found: set[str] = set()
    sizes: dict[str, int] = {}
    for group in components(graph):  # callees first
        for name in group:
            sizes[name] = _size(module, name, found, sizes)
            limit = ONCE if calls.get(name) == 1 else LIMIT
            if name != module.entry and name not in cycles and sizes[name] <= limit:
                found.add(name)
    while True:
        large = [name for name in graph if _grown(module, name, found) > FUNCTION]
        inner = {c for name in large for c in graph[name] if c in found}
        if not inner:
            return found
        found.remove(max(inner, key=lambda c: sizes[c]))


def _size(module: Module, name: str, found: set[str], sizes: dict[str, int]) -> int:
    """Ops of a function with what is written in place in it."""
    total = 0
    for op in module.functions[name].body.walk():
        callee = op.attrs["function"] if op.name == "call" else ""
        total += sizes[callee] if callee in found else 1
    return total


def _grown(module: Module, name: str, found: set[str]) -> int:
    """Ops of a function after all writing in place, callees of callees included."""
    sizes: dict[str, int] = {}
    stack = [name]
    while stack:
        top = stack[-1]
        inner = [op.attrs["function"] for op in module.functions[top].body.walk() if op.name == "call"]
        missing = [c for c in inner if c in found and c not in sizes and c != top]
        if missing:
            stack.extend(missing)
            continue
        stack.pop()
        sizes[top] = _size(module, top, found & sizes.keys(), sizes)
    return sizes[name]
