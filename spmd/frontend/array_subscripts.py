"""`a[i]`, `a[i, 1:n]`, `a[:, idx]` reads of arrays.

The invariant: as NumPy reads; an index out of range raises that example's IndexError and reads nothing.
"""

from __future__ import annotations

from typing import Any

from spmd.errors import ShapeMismatch, TypeMismatch, UnsupportedType
from spmd.frontend.lowering import Lowering
from spmd.frontend.operations import guard
from spmd.frontend.values import (
    Abstract,
    Const,
    Leaf,
    describe,
)
from spmd.ir.core import Value
from spmd.ir.types import Num
from spmd.ops.numpy_shapes import with_axes
from spmd.ops.numpy_sorting import nonzero
from spmd.ops.promotion import broadcast_together


def array_item(low: Lowering, array: Value, index: Value, node: Any) -> Abstract:
    """Row `index` of an array."""
    return Leaf(low.attempt(lambda: low.b.emit("index", array, index), node))


def array_pick(low: Lowering, array: Value, index: list[Any], node: Any) -> Abstract:
    """Basic and fancy reads. One step per part: integers first read whole leading axes at once."""
    type_ = array.type
    assert isinstance(type_, Num)
    index = _without_ellipsis(low, index, type_.rank, node)
    arrays = [p for p in index if isinstance(p, Leaf) and p.type.rank]
    if arrays:
        return _fancy(low, array, index, node)
    leading = 0
    while leading < len(index) and _is_dynamic_or_int(index[leading]):
        leading += 1
    if leading:
        numbers = [_integer(low, p, node) for p in index[:leading]]
        array = low.attempt(lambda: low.b.emit("index", array, *numbers), node)
        index = index[leading:]
    axis = 0
    for part in index:
        array, axis = _one_axis(low, array, part, axis, node)
    return Leaf(array)


def _without_ellipsis(low: Lowering, index: list[Any], rank: int, node: Any) -> list[Any]:
    full = (Const(None), Const(None), Const(None))
    taken = sum(1 for p in index if not (isinstance(p, Const) and p.value in (None, Ellipsis)))
    if taken > rank:
        raise low.error(ShapeMismatch, f"too many indices: the array has {rank} axes, {taken} are indexed", node)
    parts: list[Any] = []
    for p in index:
        if isinstance(p, Const) and p.value is Ellipsis:
            parts += [full] * (rank - taken)
        else:
            parts.append(p)
    return parts


def _is_dynamic_or_int(part: Any) -> bool:
    if isinstance(part, Const):
        return isinstance(part.value, int) and not isinstance(part.value, bool)
    return isinstance(part, Leaf)


def _integer(low: Lowering, part: Any, node: Any) -> Value:
    value = low.value(part, node)
    if value.type.kind not in "iu" or value.type.rank or value.type.text:  # type: ignore[union-attr]
        raise low.error(TypeMismatch, f"an array index must be an integer, not {describe(part)}", node)
    return value


def _one_axis(low: Lowering, array: Value, part: Any, axis: int, node: Any) -> tuple[Value, int]:
    """Applies one part of an index at `axis`; gives the array and the next part's axis."""
    type_ = array.type
    assert isinstance(type_, Num)
    if isinstance(part, Const) and part.value is None:
        return low.attempt(lambda: with_axes(low.b, array, [axis]), node), axis + 1
    if isinstance(part, tuple):
        return low.attempt(lambda: _sliced(low, array, part, axis, node), node), axis + 1
    if _is_dynamic_or_int(part):
        perm = (axis, *(k for k in range(type_.rank) if k != axis))
        front = low.b.emit("transpose", array, perm=perm) if axis else array
        return low.attempt(lambda: low.b.emit("index", front, _integer(low, part, node)), node), axis
    raise low.error(UnsupportedType, f"an array cannot be indexed by {describe(part)} in lanes", node)


def _sliced(low: Lowering, array: Value, part: tuple[Any, Any, Any], axis: int, node: Any) -> Value:
    type_ = array.type
    assert isinstance(type_, Num)
    size = type_.shape[axis]
    known = all(isinstance(p, Const) for p in part)
    if known and all(p.value is None for p in part):
        return array
    if known and size is not None:
        start, stop, step = slice(*(p.value for p in part)).indices(size)
        every = [(0, n, 1) if n is not None else None for n in type_.shape]
        index = tuple((start, stop, step) if k == axis else every[k] for k in range(type_.rank))
        if all(index):
            return low.b.emit("slice", array, index=index)
    step = part[2].value if isinstance(part[2], Const) else 0
    if step == 0 or step is not None and not isinstance(step, int):
        raise low.error(UnsupportedType, "a slice's step must be a constant", node)
    return _dynamic_slice(low, array, part, axis, step or 1, node)


def _dynamic_slice(low: Lowering, array: Value, part: tuple[Any, Any, Any], axis: int, step: int, node: Any) -> Value:
    """A slice with bounds or a size known when the program runs."""
    given = tuple(not (isinstance(p, Const) and p.value is None) for p in part[:2])
    bounds = [_integer(low, p, node) for p, here in zip(part[:2], given) if here]
    return low.b.emit("dynslice", array, *bounds, axis=axis, step=step, given=given)


# ---------------------------------------------------------------------------------------------- index arrays
def _fancy(low: Lowering, array: Value, index: list[Any], node: Any) -> Abstract:
    """One integer array or mask along one axis, else full slices; or index arrays, numbers, masks of leading axes."""
    at = [k for k, p in enumerate(index) if isinstance(p, Leaf)]
    whole = all(p is index[at[0]] or _is_full(p) for p in index)
    if len(at) == 1 and whole and index[at[0]].type.kind in "iu":
        chosen = index[at[0]].value
        return Leaf(low.attempt(lambda: low.b.emit("take", array, chosen, axis=at[0]), node))
    if len(at) == 1 and whole and index[at[0]].type.kind == "b" and index[at[0]].type.rank == 1:
        (places,) = _places(low, array, index[at[0]].value, at[0], node)
        return Leaf(low.attempt(lambda: low.b.emit("take", array, places, axis=at[0], exact=True), node))
    ids = index_arrays(low, array, index, node)
    return Leaf(low.attempt(lambda: low.b.emit("gather", array, *ids), node))


def _is_full(part: Any) -> bool:
    return isinstance(part, tuple) and all(isinstance(b, Const) and b.value is None for b in part)


def index_arrays(low: Lowering, array: Value, index: list[Any], node: Any) -> list[Value]:
    """The index arrays of an index that takes elements of the leading axes, in one shape."""
    while index and _is_full(index[-1]):
        index = index[:-1]
    found: list[Value] = []
    for part in index:
        if isinstance(part, Leaf) and part.type.rank and part.type.kind == "b":
            found += _places(low, array, part.value, len(found), node)
        elif _is_dynamic_or_int(part):
            value = low.value(part, node)
            if value.type.kind not in "iu" or value.type.text:  # type: ignore[union-attr]
                raise low.error(TypeMismatch, f"an array index must be an integer, not {describe(part)}", node)
            found.append(low.b.emit("cast", value, dtype="int64", python=False))
        else:
            raise low.error(UnsupportedType, "this way of indexing an array cannot run in lanes", node,
                            "index arrays, masks and numbers for the leading axes can, without slices between them.")
    spread: list[Value] = low.attempt(lambda: broadcast_together(low.b, found), node)
    return spread


def _places(low: Lowering, array: Value, mask: Value, axis: int, node: Any) -> list[Value]:
    """Where a mask holds, an index array for each of its axes."""
    demand_mask(low, array, mask, axis, node)
    return list(low.attempt(lambda: nonzero(low.b, mask), node))


def demand_mask(low: Lowering, array: Value, mask: Value, axis: int, node: Any) -> None:
    """Refuses, or lets the example raise, where a mask has other sizes than the axes that it is for."""
    ours, theirs = mask.type, array.type
    assert isinstance(ours, Num) and isinstance(theirs, Num)
    if axis + ours.rank > theirs.rank:
        raise low.error(ShapeMismatch, "too many indices: the mask has more axes than the array", node)
    text = "boolean index did not match indexed array along an axis"
    for k in range(ours.rank):
        m, n = ours.shape[k], theirs.shape[axis + k]
        if m is not None and n is not None:
            if m != n:
                raise low.error(ShapeMismatch, f"{text}: {m} and {n}", node)
            continue
        same = low.b.emit("eq", low.b.emit("dim", mask, axis=k), low.b.emit("dim", array, axis=axis + k))
        guard(low, same, (IndexError, (text,)))
