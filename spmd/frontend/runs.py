"""Lists of varying length as arrays: `np.stack(list)`, `np.sum(list)`, `sum(list)` and their like.

The invariant: a list of n numbers or of n equal-shaped arrays becomes an array with n rows, with the exceptions that
NumPy raises for an empty list.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from spmd.errors import UnsupportedType
from spmd.frontend.lowering import Dead, Lowering
from spmd.frontend.operations import guard
from spmd.frontend.values import UNBOUND, Abstract, Const, Leaf, Run, describe
from spmd.ir.core import Value
from spmd.ir.types import INT, Num

Rule = Callable[[Lowering, list[Abstract], dict[str, Abstract], Any], Abstract]


def as_column(low: Lowering, run: Run, node: Any) -> Value:
    """The items of a list as rows of one array."""
    if run.item is UNBOUND:
        raise Dead
    if not isinstance(run.item, Leaf) or not run.item.type.static or run.item.type.text:
        raise low.error(UnsupportedType, f"a list of {describe(run.item)} cannot become an array in lanes", node,
                        "its items must be numbers, or arrays of one shape.")
    item = run.item.type
    type_ = Num(item.dtype, (None, *item.shape))
    return low.b.insert("column", [run.value], [type_], {"table": run.table, "field": run.fields[0]}).result


def _demand_some(low: Lowering, run: Run, text: str) -> None:
    length = low.b.insert("length", [run.value], [INT]).result
    guard(low, low.b.emit("gt", length, low.b.const(0)), (ValueError, (text,)))


def _stack(low: Lowering, args: list[Abstract], kwargs: dict[str, Abstract], node: Any) -> Abstract:
    run = args[0]
    assert isinstance(run, Run)
    axis = args[1] if len(args) > 1 else kwargs.get("axis", Const(0))
    _demand_some(low, run, "need at least one array to stack")
    column = as_column(low, run, node)
    type_ = column.type
    assert isinstance(type_, Num)
    if not isinstance(axis, Const) or not isinstance(axis.value, int) or not -type_.rank <= axis.value < type_.rank:
        raise low.error(UnsupportedType, "the axis to stack along must be a constant in range", node)
    at = axis.value % type_.rank
    if at:
        perm = [*range(1, type_.rank)]
        perm.insert(at, 0)
        column = low.b.emit("transpose", column, perm=tuple(perm))
    return Leaf(column)


def _array(low: Lowering, args: list[Abstract], kwargs: dict[str, Abstract], node: Any) -> Abstract:
    run = args[0]
    assert isinstance(run, Run)
    if len(args) > 1 or kwargs:
        raise low.error(UnsupportedType, "np.array of a list takes no other arguments in lanes", node)
    return Leaf(as_column(low, run, node))


def _vstack(low: Lowering, args: list[Abstract], kwargs: dict[str, Abstract], node: Any) -> Abstract:
    run = args[0]
    if isinstance(run, Run) and isinstance(run.item, Leaf) and run.item.type.rank == 1:
        return _stack(low, args[:1], {}, node)
    return _concatenate(low, args, kwargs, node)


def _concatenate(low: Lowering, args: list[Abstract], kwargs: dict[str, Abstract], node: Any) -> Abstract:
    run = args[0]
    assert isinstance(run, Run)
    axis = args[1] if len(args) > 1 else kwargs.get("axis", Const(0))
    if not isinstance(axis, Const) or axis.value != 0:
        raise low.error(UnsupportedType, "a list can be concatenated along axis 0 only", node)
    _demand_some(low, run, "need at least one array to concatenate")
    column = as_column(low, run, node)
    type_ = column.type
    assert isinstance(type_, Num)
    if type_.rank < 2:
        raise low.error(UnsupportedType, "zero-dimensional arrays cannot be concatenated", node)
    plain = Num("int64")
    rows = low.b.emit("cast", low.b.emit("dim", column, axis=0), dtype="int64", python=False)
    sizes = [low.b.emit("mul", rows, low.converter.constant(type_.shape[1], plain))]
    sizes += [low.converter.constant(n, plain) for n in type_.shape[2:]]
    dims = low.b.emit("stack", *sizes, axis=0)
    return Leaf(low.b.emit("reshape_to", column, dims, shape=(None, *type_.shape[2:])))


def _sum(low: Lowering, args: list[Abstract], kwargs: dict[str, Abstract], node: Any) -> Abstract:
    """The builtin sum: along the list, starting from 0 or the start that is given."""
    from spmd.ops import operators

    run = args[0]
    assert isinstance(run, Run)
    start = args[1] if len(args) > 1 else kwargs.get("start", Const(0))
    if run.item is UNBOUND:  # no item is known (yet): as of an empty list
        return Leaf(low.value(start))
    column = as_column(low, run, node)
    total = low.attempt(lambda: low.b.emit("sum", column, axes=(0,), keepdims=False), node)
    assert isinstance(run.item, Leaf)
    if run.item.type.python:
        item = run.item.type
        dtype = "int64" if item.dtype == "bool" else item.dtype
        total = low.b.emit("cast", total, dtype=dtype, python=True)
    return Leaf(low.attempt(lambda: operators.binary(low.b, "+", low.value(start), total), node))


EXACT: dict[Any, Rule] = {
    np.stack: _stack,
    np.array: _array,
    np.asarray: _array,
    np.vstack: _vstack,
    np.concatenate: _concatenate,
    sum: _sum,
}
