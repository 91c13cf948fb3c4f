"""Function object -> syntax tree (gast: one form for all Python versions) with true spans in the user's file.

The invariant: positions are those of the file as it is. Reading does not judge: what is not supported is the fence's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from types import FunctionType
from typing import Any

import gast

from spmd.frontend.liveness import Liveness, writes
from spmd.source import FunctionSource, source_of
from spmd.spans import Span


@dataclass(frozen=True, eq=False)
class Definition:
    """A function as it was written. `body` is a list of statements; a lambda's is one `return`."""

    function: FunctionType
    source: FunctionSource
    node: Any
    body: list[Any]
    liveness: Liveness = field(repr=False)

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """Names of all parameters."""
        a = self.node.args
        extra = [x for x in (a.vararg, a.kwarg) if x is not None]
        return tuple(x.id for x in [*a.posonlyargs, *a.args, *a.kwonlyargs, *extra])

    @cached_property
    def locals(self) -> frozenset[str]:
        """Names that the function binds."""
        return frozenset().union(self.parameters, *map(writes, self.body))

    @property
    def name(self) -> str:
        return self.source.name if self.source.name.isidentifier() else "lambda"

    def span(self, node: Any = None) -> Span:
        """Where a node of this definition stands."""
        if node is None or not hasattr(node, "lineno"):
            return self.source.span()
        return self.source.span(node)


@lru_cache(maxsize=1024)
def _read(function: FunctionType, code: Any) -> Definition:
    source = source_of(function)
    node = gast.ast_to_gast(source.node)
    if isinstance(node, gast.Lambda):
        value = gast.Return(value=node.body)
        gast.copy_location(value, node.body)
        body = [value]
    else:
        body = list(node.body)
    return Definition(function, source, node, body, Liveness(body))


def read(function: Callable[..., Any]) -> Definition:
    """The definition of a Python function. Raises SourceUnavailable."""
    return _read(function, getattr(function, "__code__", None))
