"""Type rules that families of primitives share, and NumPy's texts for shapes that do not fit.

The invariant: a type rule looks at types and attributes alone and raises TypeError or ValueError with a text that a
user understands. It must not know any single primitive.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spmd.ir.types import Num, Shape, Type
from spmd.ops.primitive import TypeRule


def numbers(name: str, types: Sequence[Type], count: int | None = None, text: bool = False) -> tuple[Num, ...]:
    """The operand types, all of them numbers, or strings where `text` says so. Raises TypeError."""
    if count is not None and len(types) != count:
        raise TypeError(f"'{name}' takes {count} operands, not {len(types)}")
    for type_ in types:
        if not isinstance(type_, Num):
            raise TypeError(f"'{name}' takes numbers and arrays, not {type_}")
        if type_.text and not text:
            raise TypeError(f"'{name}' does not take strings")
    return tuple(t for t in types if isinstance(t, Num))


def alike(name: str, types: Sequence[Type], text: bool = False) -> Num:
    """The one type of all operands. Raises TypeError where they differ."""
    found = numbers(name, types, text=text)
    if any(t != found[0] for t in found):
        raise TypeError(f"'{name}' needs operands of one type, not {', '.join(str(t) for t in found)}")
    return found[0]


def integer(name: str, type_: Type) -> Num:
    """The type, if it is an integer scalar. Raises TypeError."""
    if not isinstance(type_, Num) or type_.kind not in "iu" or type_.shape or type_.text:
        raise TypeError(f"'{name}' takes integers here, not {type_}")
    return type_


def elementwise(
    name: str, arity: int, kinds: str = "iuf", result: str = "", python: bool = True, text: bool = False
) -> TypeRule:
    """The rule of an elementwise primitive.

    kinds   NumPy kind letters that it takes.
    result  dtype of the result ('' the operands' own); a bool result of Python kinds is a Python bool.
    python  whether it has a meaning on Python kinds; text: on interned strings.
    """

    def infer(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
        if len(types) != arity:
            raise TypeError(f"'{name}' takes {arity} operands, not {len(types)}")
        first = alike(name, types, text)
        if first.kind not in kinds:
            raise TypeError(f"'{name}' does not take {first.dtype} values")
        if first.python and not python:
            raise TypeError(f"'{name}' does not take Python numbers")
        if not result:
            return first
        return Num(result, first.shape, python=first.python or first.text)

    return infer


def shown(shape: Shape) -> str:
    """A shape as NumPy prints it; a size that is not known is a question mark."""
    sizes = ["?" if n is None else str(n) for n in shape]
    return f"({sizes[0]},)" if len(sizes) == 1 else f"({','.join(sizes)})"


def reduced(shape: Shape, axes: Sequence[int], keepdims: bool) -> Shape:
    """The shape after a reduction along `axes`."""
    if keepdims:
        return tuple(1 if k in axes else n for k, n in enumerate(shape))
    return tuple(n for k, n in enumerate(shape) if k not in axes)


def broadcast_shape(a: Shape, b: Shape) -> Shape:
    """NumPy's broadcast of two shapes; a size that is not known gives way to a known one above 1.

    Raises ValueError with NumPy's text.
    """
    rank = max(len(a), len(b))
    pairs = zip((1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b))
    sizes: list[int | None] = []
    for m, n in pairs:
        if m == n or n == 1:
            sizes.append(m)
        elif m == 1 or m is None:
            sizes.append(n)
        elif n is None:
            sizes.append(m)
        else:
            raise ValueError(f"operands could not be broadcast together with shapes {shown(a)} {shown(b)} ")
    return tuple(sizes)


def agree(a: int | None, b: int | None) -> bool:
    """Whether two sizes can be equal."""
    return a is None or b is None or a == b


def known(a: int | None, b: int | None) -> int | None:
    """The size that two equal sizes have."""
    return b if a is None else a
