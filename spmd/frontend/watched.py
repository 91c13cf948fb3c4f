"""A builder that shows each op to a watcher before it is emitted.

Inside a `try`, an op that may raise what is caught is preceded by a test of it: the watcher emits that. The invariant:
what the watcher itself emits, and what is emitted `quiet`ly (conversions where paths meet), is not shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from spmd.ir.build import Builder
from spmd.ir.core import Block, Op, Value
from spmd.ir.types import Type

Watcher = Callable[[str, Sequence[Value], Sequence[Type], dict[str, Any]], None]


class WatchedBuilder(Builder):
    """`watcher` sees name, operands, result types and attrs of each op, and may end the path."""

    watcher: Watcher | None = None
    _silent = False

    def insert(
        self,
        name: str,
        operands: Sequence[Value],
        types: Sequence[Type],
        attrs: dict[str, Any] | None = None,
        blocks: Sequence[Block] = (),
    ) -> Op:
        if self.watcher is not None and not self._silent:
            with self.quiet():
                self.watcher(name, operands, types, attrs or {})
        return super().insert(name, operands, types, attrs, blocks)

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Shows nothing."""
        before, self._silent = self._silent, True
        try:
            yield
        finally:
            self._silent = before

    @contextmanager
    def loud(self) -> Iterator[None]:
        """Shows again what an outer `quiet` would not: for statements that are lowered inside it."""
        before, self._silent = self._silent, False
        try:
            yield
        finally:
            self._silent = before
