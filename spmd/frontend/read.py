"""Function object -> syntax tree (gast: one form for all Python versions) with true spans in the user's file.

The invariant: positions are those of the file as it is. Reading does not judge: what is not supported is the fence's,
which looks at the function as it was `written`; every later stage reads the smaller syntax of `body`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from types import FunctionType
from typing import Any

import gast

from spmd.frontend.desugar import desugar
from spmd.frontend.liveness import Liveness
from spmd.frontend.scoping import Scopes, bare, inner_body, parameters, scope
from spmd.source import FunctionSource, source_of
from spmd.spans import Span


@dataclass(frozen=True, eq=False)
class Definition:
    """A function as it was written. An inner function (`level` > 0) is known by its node in the tree of the outermost.

    function  the outermost function, whose globals and closure the names without a scope are of.
    around    the function that an inner one stands in.
    """

    function: FunctionType
    source: FunctionSource
    node: Any
    level: int = 0
    outermost: Definition | None = None
    around: Definition | None = None
    _inner: dict[Any, Definition] = field(default_factory=dict, repr=False)

    @cached_property
    def written(self) -> list[Any]:
        """The statements as they stand in the file; a lambda's is one `return`."""
        return _statements(gast.ast_to_gast(self.source.node))

    @cached_property
    def _desugared(self) -> tuple[list[Any], Scopes]:
        if self.outermost is not None:
            return inner_body(self.node), self.outermost.scopes
        body = desugar(_statements(gast.ast_to_gast(self.source.node)), self.function, self.span)
        return body, scope(self.node, body, self.span)

    @property
    def body(self) -> list[Any]:
        """The statements in the small syntax that is lowered, names resolved."""
        return self._desugared[0]

    @property
    def scopes(self) -> Scopes:
        return self._desugared[1]

    @property
    def key(self) -> Any:
        """What `scopes` calls this function."""
        return None if self.outermost is None else self.node

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """Names of all parameters."""
        return parameters(self.node)

    @property
    def locals(self) -> frozenset[str]:
        """Names that the function binds."""
        return self.scopes.locals[self.key]

    @cached_property
    def boxed(self) -> frozenset[str]:
        """Names, as this function calls them, that an inner function may write."""
        pairs = [key.split("@") for key in self.scopes.boxed]
        return frozenset(n if int(at) == self.level else f"{n}@{at}" for n, at in pairs if int(at) <= self.level)

    @cached_property
    def liveness(self) -> Liveness:
        return Liveness(self.body, self.scopes.always(self.key, self.level))

    @property
    def name(self) -> str:
        return self.source.name if self.source.name.isidentifier() else "lambda"

    def inner(self, node: Any) -> Definition:
        """The definition of a function inside this one."""
        first = self.outermost or self
        if node not in first._inner:
            name = bare(getattr(node, "name", "<lambda>"))
            source = replace(self.source, name=name, node=node, first_line=node.lineno)
            first._inner[node] = Definition(self.function, source, node, self.level + 1, first, self)
        return first._inner[node]

    def span(self, node: Any = None) -> Span:
        """Where a node of this definition stands."""
        if node is None or not hasattr(node, "lineno"):
            return self.source.span()
        return self.source.span(node)


def _statements(node: Any) -> list[Any]:
    if isinstance(node, gast.Lambda):
        value = gast.Return(value=node.body)
        gast.copy_location(value, node.body)
        return [value]
    return list(node.body)


@lru_cache(maxsize=1024)
def _read(function: FunctionType, code: Any) -> Definition:
    source = source_of(function)
    return Definition(function, source, gast.ast_to_gast(source.node))


def read(function: Callable[..., Any]) -> Definition:
    """The definition of a Python function. Raises SourceUnavailable."""
    return _read(function, getattr(function, "__code__", None))
