"""Arguments that are one thing in memory, in programs that write into them.

Columns hold values: what an example reaches in two ways becomes two. That cannot be told from a program that only
reads; the invariant: a call whose program writes into an argument that shares memory with another, or with a part of
itself, is refused. Must not know what the program does but the names of the arguments that it writes into.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from batching import Packed, Ragged
from batching.aliasing import buffer_of, overlapping
from spmd.compiler.signature.results import parts_of
from spmd.errors import UnsupportedType

NUMBERS = (bool, int, float, complex, str, bytes, np.generic, type(None))


def demand_apart(values: Mapping[str, Any], axes: Mapping[str, int | None], written: frozenset[str]) -> None:
    """Refuses arguments of which an example reaches one list, array or object in two ways, if it may be written to."""
    carriers = [(name, part) for name, value in values.items() for part in _carriers(value, axes[name])]
    if all(isinstance(part, np.ndarray) for _, part in carriers):
        if len({buffer_of(part) for _, part in carriers}) == len(carriers):
            return
    count = next((len(part) for name, part in carriers if axes[name] is not None), 1)
    for k in range(count):
        _demand_apart([(n, _example(part, axes[n], k)) for n, part in carriers], written, k)


def _carriers(value: Any, axis: int | None) -> Iterator[Any]:
    """What carries the examples of an argument: its first lists and arrays on each path. Packed data are values."""
    if isinstance(value, (Packed, Ragged)):
        return
    parts = parts_of(value) if axis is not None and not isinstance(value, (np.ndarray, list)) else None
    if parts is None:
        yield np.moveaxis(value, axis, 0) if axis and isinstance(value, np.ndarray) else value
        return
    for part in parts[2]:
        yield from _carriers(part, axis)


def _example(carrier: Any, axis: int | None, k: int) -> Any:
    return carrier if axis is None else carrier[k]


def _demand_apart(parts: list[tuple[str, Any]], written: frozenset[str], k: int) -> None:
    """The same of one example."""
    owner: dict[int, str] = {}
    arrays: list[tuple[str, np.ndarray[Any, Any]]] = []
    for name, part in parts:
        for thing in _mutable(part):
            if isinstance(thing, np.ndarray):
                arrays.append((name, thing))
                continue
            other = owner.get(id(thing))
            if other is not None and {name, other} & written:
                _refuse(name, other, k)
            owner.setdefault(id(thing), name)
    if not overlapping([a for _, a in arrays], [0] * len(arrays)):
        return
    for j, (name, array) in enumerate(arrays):
        for other, before in arrays[:j]:
            if {name, other} & written and np.shares_memory(array, before):
                _refuse(name, other, k)


def _mutable(value: Any) -> Iterator[Any]:
    """The arrays and containers that a value leads to, each as often as one comes to it."""
    seen: set[int] = set()
    stack = [value]
    while stack:
        thing = stack.pop()
        if isinstance(thing, NUMBERS):
            continue
        if isinstance(thing, np.ndarray):
            yield thing
            continue
        if not isinstance(thing, tuple):
            if isinstance(thing, (list, dict)) or dataclasses.is_dataclass(thing):
                yield thing
            if id(thing) in seen:
                continue
            seen.add(id(thing))
        if isinstance(thing, (list, tuple)):
            stack += thing
        elif isinstance(thing, dict):
            stack += thing.values()
        else:
            stack += getattr(thing, "__dict__", {}).values()


def _refuse(name: str, other: str, k: int) -> None:
    text = f"'{name}' holds one thing twice" if name == other else f"'{other}' and '{name}' share memory"
    raise UnsupportedType(f"{text} in example {k}, and the program writes into it",
                          hint="give each its own: a.copy(), xs[:].")
