"""Who calls whom: calls of each function and groups of functions that call each other.

The invariant: a function is recursive exactly if a chain of calls (maps included) leads from it back to it.
Components by Tarjan, "Depth-first search and linear graph algorithms", 1972, without recursion, since call chains of
generated programs can be long.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

from spmd.ir.core import Block, Module

Key = TypeVar("Key", bound=Hashable)


def callees(block: Block) -> list[str]:
    """Functions that the block calls, in program order, with repetitions."""
    return [op.attrs["function"] for op in block.walk() if op.name in ("call", "map")]


def call_graph(module: Module) -> dict[str, list[str]]:
    """Callees of each function, each once."""
    return {name: list(dict.fromkeys(callees(f.body))) for name, f in module.functions.items()}


def reachable(graph: Mapping[Key, list[Key]], start: Key) -> list[Key]:
    """What can be reached from `start`, itself first, depth first."""
    seen: dict[Key, None] = {}
    stack = [start]
    while stack:
        key = stack.pop()
        if key not in seen:
            seen[key] = None
            stack.extend(reversed(graph[key]))
    return list(seen)


def components(graph: Mapping[Key, Sequence[Key]]) -> list[list[Key]]:
    """Strongly connected components, callees before callers."""
    index: dict[Key, int] = {}
    low: dict[Key, int] = {}
    path: list[Key] = []
    on_path: set[Key] = set()
    found: list[list[Key]] = []
    for root in graph:
        work = [(root, iter(graph[root]))] if root not in index else []
        while work:
            key, successors = work[-1]
            if key not in index:
                index[key] = low[key] = len(index)
                path.append(key)
                on_path.add(key)
            for successor in successors:
                if successor not in index:
                    work.append((successor, iter(graph[successor])))
                    break
                if successor in on_path:
                    low[key] = min(low[key], index[successor])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[key])
                if low[key] == index[key]:
                    at = path.index(key)
                    found.append(path[at:])
                    on_path.difference_update(path[at:])
                    del path[at:]
    return found


def cyclic(graph: Mapping[Key, Sequence[Key]]) -> set[Key]:
    """Nodes that lie on a cycle."""
    result: set[Key] = set()
    for group in components(graph):
        if len(group) > 1 or group[0] in graph[group[0]]:
            result.update(group)
    return result


def recursive(module: Module) -> set[str]:
    """Functions from which a chain of calls leads back to themselves."""
    return cyclic(call_graph(module))
