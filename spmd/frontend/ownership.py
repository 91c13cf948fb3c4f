"""Which names hold arrays that nothing else names, so that `a += b` is the same as `a = a + b`.

A conservative look at the tree: every binding of the name makes a new array, and the name is never handed on whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import gast

from spmd.frontend.liveness import writes

FRESH = frozenset(
    "zeros ones full zeros_like ones_like full_like arange linspace eye identity array copy concatenate stack vstack"
    " hstack exp expm1 log log1p sqrt tanh sin cos sum prod mean dot matmul outer maximum minimum where add subtract"
    " multiply divide power abs square sign floor ceil clip tile repeat cumsum".split()
)


def names_bound(body: Sequence[Any], parameters: Sequence[str]) -> frozenset[str]:
    """Every name that is local to a function."""
    return frozenset().union(parameters, *map(writes, body))


def own_arrays(body: Sequence[Any], parameters: Sequence[str]) -> frozenset[str]:
    """Names whose arrays are theirs alone."""
    candidates: set[str] = set(names_bound(body, ())) - set(parameters)
    for node in _walk(body):
        if isinstance(node, gast.Assign):
            single = len(node.targets) == 1 and isinstance(node.targets[0], gast.Name)
            if not (single and _is_fresh(node.value)):
                candidates -= frozenset().union(*map(writes, node.targets))
            candidates -= set(_handed_on(node.value))
        elif isinstance(node, (gast.For, gast.AnnAssign, gast.NamedExpr)):
            candidates -= writes(node.target)
        elif isinstance(node, gast.Call) and not _is_fresh(node):
            for a in [*node.args, *(k.value for k in node.keywords)]:
                candidates -= set(_handed_on(a))
        elif isinstance(node, (gast.Tuple, gast.List, gast.Dict)) and isinstance(getattr(node, "ctx", gast.Load()), gast.Load):
            for child in gast.iter_child_nodes(node):
                candidates -= set(_handed_on(child))
    return frozenset(candidates)


def _walk(body: Sequence[Any]) -> Iterator[Any]:
    for statement in body:
        if isinstance(statement, gast.Return):  # what is returned cannot be written to any more
            continue
        yield from gast.walk(statement)


def _is_fresh(node: Any) -> bool:
    if isinstance(node, (gast.BinOp, gast.UnaryOp, gast.Constant)):
        return True
    return isinstance(node, gast.Call) and isinstance(node.func, gast.Attribute) and node.func.attr in FRESH


def _handed_on(node: Any) -> Iterator[str]:
    """Names whose whole array, or a view of it, a bound value may be."""
    if isinstance(node, gast.Name):
        yield node.id
    elif isinstance(node, (gast.Subscript, gast.Attribute, gast.Starred)):
        yield from _handed_on(node.value)
    elif isinstance(node, gast.IfExp):
        yield from _handed_on(node.body)
        yield from _handed_on(node.orelse)
    elif isinstance(node, gast.BoolOp):
        for value in node.values:
            yield from _handed_on(value)
    elif isinstance(node, (gast.Tuple, gast.List)):
        for value in node.elts:
            yield from _handed_on(value)
    elif isinstance(node, gast.Call) and not _is_fresh(node):
        for a in [node.func, *node.args]:
            yield from _handed_on(a)
