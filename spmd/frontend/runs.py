"""Lists of varying length as arrays: `np.stack(list)`, `np.sum(list)`, `sum(list)` and their like.

The invariant: a list of n numbers or of n equal-shaped arrays becomes an array with n rows, with the exceptions that
NumPy raises for an empty list.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from spmd.errors import UnsupportedType
from spmd.frontend.lists import length
from spmd.frontend.lowering import Lowering
from spmd.frontend.operations import end_in_error, guard
from spmd.frontend.paths import Dead
from spmd.frontend.values import UNBOUND, Abstract, Const, Grown, Leaf, Run, describe, is_number
from spmd.ir.build import constant_type
from spmd.ir.core import Value
from spmd.ir.types import Num
from spmd.ops import operators
from spmd.ops.arguments import bind, product, sizes_of_value
from spmd.ops.calculus import num
from spmd.ops.numpy_creation import filled
from spmd.ops.numpy_elementwise import select
from spmd.ops.numpy_shapes import moved, reshaped

MASK = 2**32 - 1
Lists = Run | Grown
Rule = Callable[[Lowering, list[Abstract], dict[str, Abstract], Any], Abstract]


def as_column(low: Lowering, run: Lists, node: Any) -> Value:
    """The items of a list as rows of one array."""
    if isinstance(run, Grown):
        return _grown_column(low, run, node)
    if run.item is UNBOUND:
        demand_empty(low, run)
        return low.converter.zero(Num("float64", (None,)))
    if isinstance(run.item, Const) and is_number(run.item):
        return _filled(low, run, run.item)
    if not isinstance(run.item, Leaf) or not run.item.type.static or run.item.type.text:
        raise low.error(UnsupportedType, f"a list of {describe(run.item)} cannot become an array in lanes", node,
                        "its items must be numbers, or arrays of one shape.")
    item = run.item.type
    type_ = Num(item.dtype, (None, *item.shape))
    return low.b.insert("column", [run.value], [type_], {"table": run.table, "field": run.fields[0]}).result


def _grown_column(low: Lowering, thing: Grown, node: Any) -> Value:
    if thing.item is UNBOUND:
        return low.converter.zero(Num("float64", (None,)))
    if not isinstance(thing.item, Leaf) or thing.item.type.text:
        raise low.error(UnsupportedType, f"a list of {describe(thing.item)} cannot become an array in lanes", node,
                        "its items must be numbers, or arrays of one shape.")
    return thing.columns[0]


def _length(low: Lowering, run: Lists) -> Value:
    return low.value(length(low, run))


def _filled(low: Lowering, run: Lists, item: Const) -> Value:
    """A list whose items are all one number that is known now."""
    number = low.converter.constant(item.value, Num(constant_type(item.value).dtype))
    return filled(low.b, number, [_length(low, run)])


def _python_kind(run: Lists) -> Num | None:
    """The kind of the items, if they are Python numbers."""
    type_ = run.item.type if isinstance(run.item, Leaf) else None
    if isinstance(run.item, Const) and is_number(run.item):
        type_ = constant_type(run.item.value)
    return type_ if type_ is not None and type_.python else None


def demand_empty(low: Lowering, run: Lists) -> None:
    """A list whose items are of no known kind is empty, or not known yet: then this path does not go on for now."""
    if isinstance(run, Run) and run.table.startswith("@") and not low.sp.empty_list():
        raise Dead


def _demand_some(low: Lowering, run: Lists, text: str) -> None:
    guard(low, low.b.emit("gt", _length(low, run), low.b.const(0)), (ValueError, (text,)))


def _axis(
    low: Lowering, title: str, names: str, args: list[Abstract], kwargs: dict[str, Abstract], node: Any
) -> Abstract:
    """The axis among NumPy's arguments; what is given beside it is refused by name, as None it says nothing."""
    given = {k: None if isinstance(a, Const) and a.value is None and "-" + k in names.split() else a
             for k, a in kwargs.items()}
    found: Abstract = low.attempt(lambda: bind(title, names, args, given), node).get("axis", Const(0))
    return found


def _stack(low: Lowering, args: list[Abstract], kwargs: dict[str, Abstract], node: Any) -> Abstract:
    run = args[0]
    assert isinstance(run, (Run, Grown))
    axis = _axis(low, "np.stack", "arrays axis -out -dtype -casting", args, kwargs, node)
    column = _some_rows(low, run, node, "need at least one array to stack")
    type_ = column.type
    assert isinstance(type_, Num)
    if not isinstance(axis, Const) or not isinstance(axis.value, int) or not -type_.rank <= axis.value < type_.rank:
        raise low.error(UnsupportedType, "the axis to stack along must be a constant in range", node)
    return Leaf(moved(low.b, column, 0, axis.value % type_.rank))


def _some_rows(low: Lowering, run: Lists, node: Any, text: str) -> Value:
    """The rows of a list that must not be empty."""
    _demand_some(low, run, text)
    if run.item is UNBOUND:
        raise Dead
    return as_column(low, run, node)


def _array(low: Lowering, args: list[Abstract], kwargs: dict[str, Abstract], node: Any) -> Abstract:
    run = args[0]
    assert isinstance(run, (Run, Grown))
    if len(args) > 1 or kwargs:
        raise low.error(UnsupportedType, "np.array of a list takes no other arguments in lanes", node)
    return Leaf(as_column(low, run, node))


def _vstack(low: Lowering, args: list[Abstract], kwargs: dict[str, Abstract], node: Any) -> Abstract:
    _axis(low, "np.vstack", "tup -dtype -casting", args, kwargs, node)
    run = args[0]
    if isinstance(run, (Run, Grown)) and isinstance(run.item, Leaf) and run.item.type.rank == 1:
        return _stack(low, args[:1], {}, node)
    return _concatenate(low, args[:1], {}, node)


def _hstack(low: Lowering, args: list[Abstract], kwargs: dict[str, Abstract], node: Any) -> Abstract:
    _axis(low, "np.hstack", "tup -dtype -casting", args, kwargs, node)
    run = args[0]
    if isinstance(run, (Run, Grown)) and isinstance(run.item, Leaf) and run.item.type.rank == 0:
        return Leaf(_some_rows(low, run, node, "need at least one array to concatenate"))
    one = isinstance(run, (Run, Grown)) and isinstance(run.item, Leaf) and run.item.type.rank == 1
    return _concatenate(low, args[:1], {"axis": Const(0 if one else 1)}, node)


def _concatenate(low: Lowering, args: list[Abstract], kwargs: dict[str, Abstract], node: Any) -> Abstract:
    run = args[0]
    assert isinstance(run, (Run, Grown))
    given = _axis(low, "np.concatenate", "arrays axis -out -dtype -casting", args, kwargs, node)
    column = _some_rows(low, run, node, "need at least one array to concatenate")
    type_ = column.type
    assert isinstance(type_, Num)
    if type_.rank < 2:
        raise low.error(UnsupportedType, "zero-dimensional arrays cannot be concatenated", node)
    number = given.value if isinstance(given, Const) else None
    if not isinstance(number, int) or not -type_.rank < number < type_.rank - 1:
        raise low.error(UnsupportedType, "the axis to concatenate along must be a constant in range", node)
    axis = number % (type_.rank - 1)
    count, *sizes = sizes_of_value(low.b, column)
    sizes[axis] = product(low.b, [count, sizes[axis]])
    return Leaf(reshaped(low.b, moved(low.b, column, 0, axis), sizes))


def _sum(low: Lowering, args: list[Abstract], kwargs: dict[str, Abstract], node: Any) -> Abstract:
    """The builtin sum: along the list, starting from 0 or the start that is given."""
    run = args[0]
    assert isinstance(run, (Run, Grown))
    start = low.attempt(lambda: bind("sum", "iterable start", args, kwargs), node).get("start", Const(0))
    if run.item is UNBOUND:
        demand_empty(low, run)
        return start
    item = _python_kind(run)
    whole = not isinstance(start, Const) or not isinstance(start.value, (float, complex))
    if item is not None and item.kind == "i" and whole and not (isinstance(start, Leaf) and start.type.kind in "fc"):
        total = _sum_of_ints(low, run, node)
    else:
        total = _sum_of_rows(low, run, item, node)
    return Leaf(low.attempt(lambda: operators.binary(low.b, "+", low.value(start, node), total), node))


def _sum_of_rows(low: Lowering, run: Lists, item: Num | None, node: Any) -> Value:
    """The sum of numbers that cannot overflow as Python's ints do; ints that are added to a float are floats."""
    column = as_column(low, run, node)
    dtype = "int64" if column.type.kind == "b" else column.type.dtype  # type: ignore[union-attr]
    if item is not None and item.kind == "i":
        dtype = "float64"
    if dtype != column.type.dtype:  # type: ignore[union-attr]
        column = low.b.emit("cast", column, dtype=dtype, python=False)
    total = low.attempt(lambda: low.b.emit("sum", column, axes=(0,), keepdims=False), node)
    return total if item is None else low.b.emit("cast", total, dtype=dtype, python=True)


def _sum_of_ints(low: Lowering, run: Lists, node: Any) -> Value:
    """The sum of Python ints, OverflowError where it does not fit: the upper and the lower halves of the numbers are
    added apart, which cannot overflow, and put together by Python's arithmetic."""
    b = low.b
    if isinstance(run.item, Const):
        return operators.binary(b, "*", _length(low, run), b.const(int(run.item.value)))
    column = as_column(low, run, node)
    halves = [operators.binary(b, ">>", column, np.int64(32)), operators.binary(b, "&", column, np.int64(MASK))]
    sums = [b.emit("sum", half, axes=(0,), keepdims=False) for half in halves]
    upper, lower = (b.emit("cast", s, dtype="int64", python=True) for s in sums)
    upper = operators.binary(b, "+", upper, operators.binary(b, ">>", lower, 32))
    return operators.binary(b, "+", operators.binary(b, "*", upper, 2**32), operators.binary(b, "&", lower, MASK))


def _prod(low: Lowering, args: list[Abstract], kwargs: dict[str, Abstract], node: Any) -> Abstract:
    """math.prod: along the list, starting from 1 or the start that is given."""
    run = args[0]
    assert isinstance(run, Run)
    start = low.attempt(lambda: bind("math.prod", "start", args[1:], kwargs), node).get("start", Const(1))
    if run.item is UNBOUND:
        demand_empty(low, run)
        return start
    item, column = _python_kind(run), as_column(low, run, node)
    if column.type.rank != 1 or column.type.kind == "b":  # type: ignore[union-attr]
        raise low.error(UnsupportedType, f"math.prod of a list of {describe(run.item)} cannot run in lanes", node)
    if item is not None and item.kind == "i":
        total = low.b.emit("product_of_ints", column)
    else:
        total = low.b.emit("prod", column, axes=(0,), keepdims=False)
        total = total if item is None else low.b.emit("cast", total, dtype="float64", python=True)
    return Leaf(low.attempt(lambda: operators.binary(low.b, "*", low.value(start, node), total), node))


def extremum(low: Lowering, thing: Abstract, name: str, node: Any) -> Abstract:
    """max() or min() of a list or an array of numbers: the first item, or the first of those that compare beyond it.

    A NaN is beyond nothing and nothing is beyond it, so it counts only where it comes first. The derivative is that of
    the item chosen.
    """
    place = first_beyond(low, thing, name, node)
    if isinstance(thing, (Run, Grown)):
        column, python = as_column(low, thing, node), _python_kind(thing) is not None
    else:
        column, python = low.value(thing), False
    found = low.b.emit("index", column, place)
    return Leaf(low.b.emit("cast", found, dtype=num(found).dtype, python=True) if python else found)


def first_beyond(low: Lowering, thing: Abstract, name: str, node: Any) -> Value:
    """Where max() or min() finds its item; ValueError where there is none."""
    error = (ValueError, (f"{name}() iterable argument is empty" if sys.version_info >= (3, 12) else
                          f"{name}() arg is an empty sequence",))
    if isinstance(thing, (Run, Grown)) and thing.item is UNBOUND:
        end_in_error(low, error)
    column = as_column(low, thing, node) if isinstance(thing, (Run, Grown)) else low.value(thing)
    type_ = column.type
    assert isinstance(type_, Num)
    if type_.rank != 1:
        raise low.error(UnsupportedType, f"{name}() of arrays compares them as a whole", node, f"use np.{name}.")
    b = low.b
    guard(low, b.emit("gt", b.emit("dim", column, axis=0), b.const(0)), error)
    zero = low.converter.constant(0, Num("int64"))
    place = low.attempt(lambda: _chosen(b, column, name), node)
    if type_.floating:
        first = b.emit("index", column, zero)
        place = b.emit("where", b.emit("isnan", first), zero, place)
    return place


def _chosen(b: Any, column: Value, name: str) -> Value:
    """Where the largest or smallest number stands first, NaN left out."""
    if column.type.floating:  # type: ignore[union-attr]
        missing = np.full((), -np.inf if name == "max" else np.inf, column.type.dtype)  # type: ignore[union-attr]
        column = select(b, b.emit("isnan", column), b.const(missing[()]), column)
    return b.emit(f"arg{name}", column, axes=(0,), keepdims=False)


EXACT: dict[Any, Rule] = {
    np.stack: _stack,
    np.array: _array,
    np.asarray: _array,
    np.vstack: _vstack,
    np.hstack: _hstack,
    np.concatenate: _concatenate,
    sum: _sum,
    math.prod: _prod,
}
