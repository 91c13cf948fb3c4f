"""The record of a program from outside: one function for one example, with small and with full examples.

The invariant: the function is written as its author would write it for one example and is not bent to the compiler.
What is refused is said in the record, and turns into a failure of the tests once it is accepted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from program import Program, Rng, no_shared

SizedMake = Callable[[Rng, int, bool], list[tuple[Any, ...]]]


@dataclass(frozen=True)
class Outside:
    """One program.

    make     (rng, count, full) -> the own arguments of `count` examples, extremes first; `full`: of the full sizes.
    loss     the number that is differentiated, of the same arguments; None where there is no float path.
    wrt      positions of the arguments that `loss` is differentiated by.
    raises   some examples raise.
    few      examples for the target `reference` and for gradients, which finite differences check one by one.
    most     examples of a full run.
    refused  why the program is refused; empty where it runs.
    """

    fn: Callable[..., Any]
    make: SizedMake
    share: Callable[[Rng], tuple[Any, ...]] = no_shared
    loss: Callable[..., Any] | None = None
    wrt: tuple[int, ...] = ()
    raises: bool = False
    few: int = 8
    most: int = 64
    refused: str = ""

    @property
    def name(self) -> str:
        return self.fn.__name__

    def program(self, full: bool) -> Program:
        """The record that the oracles know, for one of the two sizes."""

        def make(rng: Rng, count: int) -> list[tuple[Any, ...]]:
            return self.make(rng, count, full)

        return Program(self.fn, make, self.share, self.wrt, self.raises)
