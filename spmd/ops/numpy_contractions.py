"""NumPy's products and contractions: dot, inner, outer, tensordot, einsum, as primitives.

The invariant: a contraction is one matrix product, over axes moved together and reshaped; what only spreads is a
broadcast product. Subscripts and axes are constants.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from spmd.ir.build import Builder
from spmd.ir.core import Value
from spmd.ops.arguments import (
    alike,
    array,
    axis_number,
    bind,
    needed,
    product,
    sizes_of_value,
    static_int,
)
from spmd.ops.calculus import num
from spmd.ops.inference import agree
from spmd.ops.numpy_elementwise import Rule
from spmd.ops.numpy_shapes import flattened, permuted, reshaped, with_axes
from spmd.ops.operators import apply, matrix_product
from spmd.ops.primitive import Refusal
from spmd.ops.promotion import cast, strengthen

Labels = Sequence[Any]


def pair(b: Builder, title: str, args: list[Any], kwargs: dict[str, Any], names: str = "a b -out") -> list[Value]:
    bound = bind(title, names, args, kwargs)
    first, second = (n for n in names.split()[:2])
    return [array(b, x) for x in needed(title, bound, first, second)]


# --------------------------------------------------------------------------------------------------- contractions
def contracted(b: Builder, x: Value, xs: Labels, y: Value, ys: Labels, kept: set[Any]) -> tuple[Value, list[Any]]:
    """The product of two arrays whose axes have labels, summed over the shared labels that are not kept.

    Each operand has a label once, and labels that are not kept are in both.
    """
    shared = [n for n in xs if n in ys]
    batch, inner = [n for n in shared if n in kept], [n for n in shared if n not in kept]
    rows, columns = [n for n in xs if n not in shared], [n for n in ys if n not in shared]
    if not inner:
        labels = [*xs, *columns]
        sides = [_aligned(b, v, own, labels) for v, own in ((x, xs), (y, ys))]
        return apply(b, "mul", np.multiply, *sides), labels
    sizes = {**dict(zip(ys, sizes_of_value(b, y))), **dict(zip(xs, sizes_of_value(b, x)))}
    left = _grouped(b, x, xs, batch, rows, inner, sizes)
    right = _grouped(b, y, ys, batch, inner, columns, sizes)
    plain = not batch and (not rows or not columns)
    if plain:
        left = left if rows else reshaped(b, left, [_size(b, inner, sizes)])
        right = right if columns else reshaped(b, right, [_size(b, inner, sizes)])
    labels = [*batch, *rows, *columns]
    result = matrix_product(b, left, right)
    if not plain or num(result).rank != len(labels):
        result = reshaped(b, result, [sizes[n] for n in labels])
    return result, labels


def _size(b: Builder, labels: Labels, sizes: dict[Any, Any]) -> Any:
    return product(b, [sizes[n] for n in labels])


def _grouped(b: Builder, x: Value, own: Labels, batch: Labels, first: Labels, second: Labels, sizes: Any) -> Value:
    """The array with its axes as [*batch, all of `first`, all of `second`]."""
    order = [*batch, *first, *second]
    x = permuted(b, x, [list(own).index(n) for n in order])
    if len(first) == len(second) == 1:
        return x
    return reshaped(b, x, [*(sizes[n] for n in batch), _size(b, first, sizes), _size(b, second, sizes)])


def _aligned(b: Builder, x: Value, own: Labels, labels: Labels) -> Value:
    """The array with its axes where the labels stand; those that it does not have are of size 1."""
    x = permuted(b, x, [list(own).index(n) for n in labels if n in own])
    return with_axes(b, x, [k for k, n in enumerate(labels) if n not in own])


# ---------------------------------------------------------------------------------------------------------- einsum
def _parsed(text: str, ranks: Sequence[int]) -> tuple[list[list[str]], list[str]]:
    """Labels of each operand and of the result; an ellipsis stands for labels that are counted from the back."""
    text = text.replace(" ", "")
    inputs, arrow, output = text.partition("->")
    parts = inputs.split(",")
    if len(parts) != len(ranks):
        which = "more" if len(parts) < len(ranks) else "fewer"
        raise ValueError(f"{which} operands provided to einstein sum function than specified in the subscripts string")
    spread = [rank - len(part.replace("...", "")) for part, rank in zip(parts, ranks)]
    longest = max((n for n, part in zip(spread, parts) if "..." in part), default=0)
    dots = [f".{k}" for k in range(longest)]
    labels = []
    for k, (part, extra) in enumerate(zip(parts, spread)):
        if extra < 0 or (extra and "..." not in part):
            raise ValueError(
                "einstein sum subscripts string contains too many subscripts for operand "
                f"{k}" if extra < 0 else "operand has more dimensions than subscripts given in einstein sum, but no "
                "'...' ellipsis provided to broadcast the extra dimensions."
            )
        labels.append(_letters(part, dots[longest - extra :]))
    if arrow:
        result = _letters(output, dots)
    else:
        flat = [n for part in labels for n in part]
        result = dots + sorted(n for n in set(flat) if flat.count(n) == 1 and n not in dots)
    if len(set(result)) != len(result):
        raise ValueError("einstein sum subscripts string includes output subscript multiple times")
    for name in result:
        if not any(name in part for part in labels):
            raise ValueError(f"einstein sum subscripts string included output subscript '{name}' which never appeared "
                             "in an input")
    return labels, result


def _letters(part: str, dots: Sequence[str]) -> list[str]:
    head, _, tail = part.partition("...")
    found = [*head, *dots, *tail] if "..." in part else list(part)
    if any(len(n) == 1 and not n.isalpha() for n in found):
        raise ValueError(f"invalid subscript '{part}' in einstein sum subscripts string, subscripts must be letters")
    return found


def _einsum(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bind("np.einsum", "-out -dtype -order -casting optimize", [], kwargs)
    if not args or not isinstance(args[0], str):
        raise Refusal("np.einsum takes its subscripts as a string that is known now")
    values = alike(b, [array(b, x) for x in args[1:]])
    if not values:
        raise ValueError("No input operands")
    if num(values[0]).kind == "b":
        raise Refusal("np.einsum of bools is not supported", "convert them to numbers.")
    labels, result = _parsed(args[0], [num(v).rank for v in values])
    values, labels = _of_equal_sizes(b, values, labels)
    operands = [_once(b, v, own) for v, own in zip(values, labels)]
    x, xs = operands[0]
    for k, (y, ys) in enumerate(operands[1:], 1):
        later = {*result, *(n for _, own in operands[k + 1 :] for n in own)}
        x, xs = _summed(b, x, xs, later | set(ys))
        y, ys = _summed(b, y, ys, later | set(xs))
        x, xs = contracted(b, x, xs, y, ys, later)
    x, xs = _summed(b, x, xs, set(result))
    return permuted(b, x, [xs.index(n) for n in result])


def _of_equal_sizes(b: Builder, values: list[Value], labels: list[list[str]]) -> tuple[list[Value], list[list[str]]]:
    """Axes of size 1 that meet longer ones are dropped: einsum repeats them."""
    sizes: dict[str, int | None] = {}
    for k, (value, own) in enumerate(zip(values, labels)):
        for name, size in zip(own, num(value).shape):
            before = sizes.get(name, 1)
            if not agree(before, size) and 1 not in (before, size):
                raise ValueError(
                    f"operands could not be broadcast together with remapped shapes [original->remapped]: operand {k} "
                    f"has size {size} along '{name}', another one {before}")
            sizes[name] = size if before in (1, None) and size != 1 else before
    made = []
    for value, own in zip(values, labels):
        dropped = [k for k, (n, size) in enumerate(zip(own, num(value).shape)) if size == 1 and sizes[n] != 1]
        if dropped:
            value = reshaped(b, value, [n for k, n in enumerate(sizes_of_value(b, value)) if k not in dropped])
        made.append((value, [n for k, n in enumerate(own) if k not in dropped]))
    return [v for v, _ in made], [own for _, own in made]


def _once(b: Builder, x: Value, own: list[str]) -> tuple[Value, list[str]]:
    """The diagonals along labels that an operand has several times."""
    twice = next((n for n in own if own.count(n) > 1), None)
    if twice is None:
        return x, own
    places = [k for k, n in enumerate(own) if n == twice][:2]
    if not agree(*(num(x).shape[k] for k in places)):
        raise ValueError(f"dimensions in operand 0 for collapsing index '{twice}' don't match")
    if None in [num(x).shape[k] for k in places]:
        raise Refusal("np.einsum along a diagonal needs sizes that are known")
    rest = [k for k in range(len(own)) if k not in places]
    diagonal = b.emit("diagonal", permuted(b, x, [*rest, *places]), offset=0)
    return _once(b, diagonal, [*(own[k] for k in rest), twice])


def _summed(b: Builder, x: Value, own: Labels, kept: set[str]) -> tuple[Value, list[str]]:
    """Summed over the labels that nothing needs any more."""
    axes = tuple(k for k, n in enumerate(own) if n not in kept)
    if axes:
        x = b.emit("sum", x, axes=axes, keepdims=False)
    return x, [n for n in own if n in kept]


# --------------------------------------------------------------------------------------------------------- products
def dot(b: Builder, x: Value, y: Value) -> Value:
    """np.dot: along the last axis of one and the last but one of the other."""
    if not num(x).rank or not num(y).rank:
        return apply(b, "mul", np.multiply, x, y)
    if num(x).rank <= 2 and num(y).rank <= 2:
        return matrix_product(b, x, y)
    return _along(b, x, [num(x).rank - 1], y, [max(num(y).rank - 2, 0)])


def _along(b: Builder, x: Value, xaxes: Sequence[int], y: Value, yaxes: Sequence[int]) -> Value:
    """tensordot along these axes."""
    x, y = alike(b, [x, y])
    for i, j in zip(xaxes, yaxes):
        if not agree(num(x).shape[i], num(y).shape[j]):
            raise ValueError("shape-mismatch for sum")
    xs: list[Any] = [("x", k) for k in range(num(x).rank)]
    ys: list[Any] = [("y", k) for k in range(num(y).rank)]
    for i, j in zip(xaxes, yaxes):
        ys[j] = xs[i]
    kept = {n for n in (*xs, *ys) if not (n in xs and n in ys)}
    return contracted(b, x, xs, y, ys, kept)[0]


def _dot(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    return dot(b, *pair(b, "np.dot", args, kwargs))


def _matmul(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    return matrix_product(b, *pair(b, "np.matmul", args, kwargs, "x1 x2 -out"))


def _vecdot(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("np.vecdot", "x1 x2 -out axis", args, kwargs)
    x, y = alike(b, [array(b, v) for v in needed("np.vecdot", bound, "x1", "x2")])
    axis = static_int(b, "np.vecdot", "the axis", bound.get("axis", -1))
    x, y = (last(b, v, axis) for v in (x, y))
    both = apply(b, "mul", np.multiply, x, y)
    return b.emit("any" if num(both).kind == "b" else "sum", both, axes=(num(both).rank - 1,), keepdims=False)


def last(b: Builder, x: Value, axis: int) -> Value:
    """The value with one axis moved to the end."""
    rank = num(x).rank
    at = axis_number(axis, rank)
    return permuted(b, x, [*(k for k in range(rank) if k != at), at])


def _inner(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    x, y = pair(b, "np.inner", args, kwargs)
    if not num(x).rank or not num(y).rank:
        return dot(b, x, y)
    if num(x).rank <= 2 and num(y).rank <= 2:
        return dot(b, x, permuted(b, y, (1, 0)) if num(y).rank == 2 else y)
    return _along(b, x, [num(x).rank - 1], y, [num(y).rank - 1])


def _vdot(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    x, y = pair(b, "np.vdot", args, kwargs)
    return matrix_product(b, flattened(b, x), flattened(b, y))


def _outer(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    x, y = (flattened(b, strengthen(b, v)) for v in pair(b, "np.outer", args, kwargs))
    dtype = str(np.promote_types(num(x).dtype, num(y).dtype))
    return b.emit("outer", cast(b, x, dtype), cast(b, y, dtype))


def _tensordot(b: Builder, args: list[Any], kwargs: dict[str, Any]) -> Value:
    bound = bind("np.tensordot", "a b axes", args, kwargs)
    x, y = (array(b, v) for v in needed("np.tensordot", bound, "a", "b"))
    axes = bound.get("axes", 2)
    if not isinstance(axes, (tuple, list)):
        count = static_int(b, "np.tensordot", "the axes", axes)
        sides: list[Any] = [list(range(num(x).rank - count, num(x).rank)), list(range(count))]
    else:
        sides = [list(s) if isinstance(s, (tuple, list)) else [s] for s in axes]
    if len(sides) != 2 or len(sides[0]) != len(sides[1]):
        raise ValueError("shape-mismatch for sum")
    xaxes, yaxes = (
        [axis_number(static_int(b, "np.tensordot", "an axis", k), num(v).rank) for k in side]
        for side, v in zip(sides, (x, y))
    )
    return _along(b, x, xaxes, y, yaxes)


CONTRACTION_CALLS: dict[Any, Rule] = {
    np.dot: _dot,
    np.matmul: _matmul,
    np.linalg.matmul: _matmul,
    np.linalg.vecdot: _vecdot,
    **({np.vecdot: _vecdot} if hasattr(np, "vecdot") else {}),  # younger than NumPy 2.0
    np.inner: _inner,
    np.vdot: _vdot,
    np.outer: _outer,
    np.linalg.outer: _outer,
    np.tensordot: _tensordot,
    np.linalg.tensordot: _tensordot,
    np.einsum: _einsum,
}
