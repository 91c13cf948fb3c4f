"""What a value of a loop is in registers: a number, a few numbers, or an array in memory.

Invariant: the kind follows from the type alone, so the sides of every join agree; components are in one order.
An `Array` that is `owned` is the only holder of its block; one that is not is only ever read.
"""

from __future__ import annotations

from dataclasses import dataclass

from spmd.backend.native.scalars import ScalarBuilder, element_of
from spmd.backend.native.support import ragged_axes, small
from spmd.backend.simd.vector import Value
from spmd.ir.types import Num


@dataclass(frozen=True)
class Small:
    """An array of few elements, in C order."""

    elements: tuple[Value, ...]


@dataclass(frozen=True)
class Array:
    """Address of the first element, and all sizes (registers, or numbers where they are known)."""

    data: str
    dims: tuple[str, ...]
    owned: bool = False


Thing = Value | Small | Array


def components(thing: Thing, type_: Num) -> list[tuple[str, str]]:
    """LLVM type and register of everything that moves at a join."""
    if isinstance(thing, Value):
        return [(thing.element, thing.name)]
    if isinstance(thing, Small):
        return [(e.element, e.name) for e in thing.elements]
    return [("ptr", thing.data), *(("i64", thing.dims[k]) for k in range(ragged_axes(type_)))]


def component_types(type_: Num) -> list[str]:
    """The same without the registers."""
    if not type_.rank:
        return [element_of(type_.dtype)]
    if small(type_):
        return [element_of(type_.dtype)] * type_.size
    return ["ptr", *["i64"] * ragged_axes(type_)]


def rebuilt(b: ScalarBuilder, type_: Num, registers: list[str], owned: bool = True) -> Thing:
    """The value whose components these are."""
    element = element_of(type_.dtype)
    if not type_.rank:
        return Value(b, registers[0], element)
    if small(type_):
        return Small(tuple(Value(b, r, element) for r in registers))
    return Array(registers[0], sizes(type_, registers[1:]), owned)


def sizes(type_: Num, leading: list[str]) -> tuple[str, ...]:
    """All sizes of an array whose first ones are in registers; known ones as numbers."""
    given = {k: r for k, r in enumerate(leading)}
    return tuple(given[k] if n is None else str(n) for k, n in enumerate(type_.shape))
