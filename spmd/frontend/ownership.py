"""Which names hold arrays that nothing else names, so that `a += b` is the same as `a = a + b`.

A conservative look at the tree: every binding of the name makes a new array, and wherever a value is kept (bound, put
into a container, passed to a function, run over) the name can be no part of it but as an operand of what makes a new
array. An expression that is not known to make a new array is taken to hand on every name in it.
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
MODULES = frozenset({"np", "numpy", "math"})
NUMBERS = frozenset({"shape", "size", "ndim", "dtype"})
CONTAINERS = (gast.Tuple, gast.List, gast.Dict, gast.Set)
COMPREHENSIONS = (gast.ListComp, gast.SetComp, gast.GeneratorExp, gast.DictComp)


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
        elif isinstance(node, (gast.For, gast.AnnAssign, gast.NamedExpr)):
            candidates -= writes(node.target)
        candidates -= set(_kept(node))
    return frozenset(candidates)


def _walk(body: Sequence[Any]) -> Iterator[Any]:
    for statement in body:
        for node in gast.walk(statement):
            if not isinstance(node, gast.Return):
                yield node


def _kept(node: Any) -> Iterator[str]:
    """Names that may be known elsewhere by what this node does with a value."""
    if isinstance(node, (gast.Assign, gast.AnnAssign, gast.NamedExpr)):
        yield from _handed_on(node.value)
    elif isinstance(node, gast.For):
        yield from _handed_on(node.iter)
    elif isinstance(node, COMPREHENSIONS):
        for child in gast.iter_child_nodes(node):
            yield from _handed_on(child)
    elif isinstance(node, gast.Call) and not _is_fresh(node):
        for a in [*node.args, *(k.value for k in node.keywords)]:
            yield from _handed_on(a)
    elif isinstance(node, CONTAINERS) and not isinstance(getattr(node, "ctx", None), gast.Store):
        for child in gast.iter_child_nodes(node):
            yield from _handed_on(child)


def _is_fresh(node: Any) -> bool:
    """Whether the value is a new array, whatever it is made of."""
    if isinstance(node, (gast.BinOp, gast.UnaryOp, gast.Compare, gast.Constant)):
        return True
    if not isinstance(node, gast.Call) or not isinstance(node.func, gast.Attribute):
        return False
    owner = node.func.value
    if node.func.attr == "copy" and not node.args and not node.keywords:
        return True
    return isinstance(owner, gast.Name) and owner.id in MODULES and node.func.attr in FRESH


def _handed_on(node: Any) -> Iterator[str]:
    """Names whose array, or a view of it, a value may be or hold."""
    if node is None or _is_fresh(node):
        return
    if isinstance(node, gast.Name):
        yield node.id
    elif not (isinstance(node, gast.Attribute) and node.attr in NUMBERS):
        for child in gast.iter_child_nodes(node):
            yield from _handed_on(child)
