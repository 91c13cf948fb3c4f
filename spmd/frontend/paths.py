"""Paths of a function that is being lowered: how they end and where that is noted.

The invariant: a path that has ended raises `Dead` up to the branch it is in; its block waits in a list for a terminator
that needs the type of what meets there.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from spmd.frontend.scope import Scope
from spmd.frontend.values import Abstract
from spmd.ir.core import Block
from spmd.spans import Span


class Dead(Exception):
    """This path does not go on."""


@dataclass(eq=False)
class Tried:
    """How many alternatives of a union an operation was tried on, and how many it does not fit."""

    total: int
    refused: int = 0


@dataclass(eq=False)
class Pending:
    """A block that ends in a terminator still to be written, with what its names are there."""

    block: Block
    scope: Scope
    span: Span | None
    result: Abstract | None = None


@dataclass(eq=False)
class LoopFrame:
    """The innermost loop: where `break` and `continue` are noted."""

    breaks: list[Pending] = field(default_factory=list)
    continues: list[Pending] = field(default_factory=list)
