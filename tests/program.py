"""The record of one program of the zoo: a function for one example and how its examples are made.

The invariant: `examples` and `shared_arguments` give fresh, equal objects at every call with the same numbers, so that
an oracle and the code under test never see each other's writes, and no deep structure has to be copied.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Rng = np.random.Generator
Make = Callable[[Rng, int], list[tuple[Any, ...]]]


STREAM = 64


def no_shared(rng: Rng) -> tuple[Any, ...]:
    return ()


@dataclass(frozen=True)
class Program:
    """One program.

    fn      takes the shared arguments first, then those of one example.
    make    (rng, B) -> the own arguments of B examples, extremes first.
    share   rng -> the shared arguments.
    wrt     positions whose float leaves have a gradient that finite differences can check.
    raises  some examples raise (never with gradients).
    float32 computed in single precision: wider tolerance, no finite differences.
    """

    fn: Callable[..., Any]
    make: Make
    share: Callable[[Rng], tuple[Any, ...]] = no_shared
    wrt: tuple[int, ...] = ()
    raises: bool = False
    float32: bool = False

    @property
    def name(self) -> str:
        return self.fn.__name__

    def _rng(self, seed: int, what: int) -> Rng:
        return np.random.default_rng([seed, what, zlib.crc32(self.name.encode())])

    def shared_arguments(self, seed: int = 0) -> tuple[Any, ...]:
        return self.share(self._rng(seed, 1))

    def examples(self, seed: int, count: int) -> list[tuple[Any, ...]]:
        """Own arguments of the first `count` of a fixed stream of examples for this seed."""
        return self.make(self._rng(seed, 2), max(count, STREAM))[:count]

    @property
    def shared(self) -> int:
        return len(self.shared_arguments())

    @property
    def own(self) -> int:
        return len(self.examples(0, 1)[0])

    @property
    def in_axes(self) -> tuple[int | None, ...]:
        return (None,) * self.shared + (0,) * self.own


class Collection:
    """Programs of one theme; `add` is the decorator that lists a function."""

    def __init__(self) -> None:
        self.programs: list[Program] = []

    def add(self, make: Make, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def listed(fn: Callable[..., Any]) -> Callable[..., Any]:
            self.programs.append(Program(fn, make, **options))
            return fn

        return listed


# ---------------------------------------------------------------------------------------- makers of examples
def numbers(low: float, high: float, count: int = 1, first: tuple[tuple[float, ...], ...] = ()) -> Make:
    """Python floats, the extremes `first`."""

    def make(rng: Rng, size: int) -> list[tuple[Any, ...]]:
        drawn = [tuple(float(v) for v in rng.uniform(low, high, count)) for _ in range(size)]
        return [*first, *drawn][:size]

    return make


def integers(low: int, high: int, count: int = 1, first: tuple[tuple[int, ...], ...] = ()) -> Make:
    """Python ints in low..high-1, the extremes `first`."""

    def make(rng: Rng, size: int) -> list[tuple[Any, ...]]:
        drawn = [tuple(int(v) for v in rng.integers(low, high, count)) for _ in range(size)]
        return [*first, *drawn][:size]

    return make


def arrays(*shapes: tuple[int, ...], scale: float = 1.0) -> Make:
    """Float arrays of fixed shapes."""

    def make(rng: Rng, size: int) -> list[tuple[Any, ...]]:
        return [tuple(scale * rng.normal(size=shape) for shape in shapes) for _ in range(size)]

    return make


def sequences(shortest: int, longest: int, *tail: int) -> Make:
    """One float array of shape (n, *tail) with a different n for each example, the shortest and longest first."""

    def make(rng: Rng, size: int) -> list[tuple[Any, ...]]:
        lengths = [shortest, longest, *rng.integers(shortest, longest + 1, size)][:size]
        return [(rng.normal(size=(int(n), *tail)),) for n in lengths]

    return make


def pairs(*makes: Make) -> Make:
    """The arguments of several makers, side by side."""

    def make(rng: Rng, size: int) -> list[tuple[Any, ...]]:
        columns = [one(rng, size) for one in makes]
        return [tuple(v for part in row for v in part) for row in zip(*columns, strict=True)]

    return make
