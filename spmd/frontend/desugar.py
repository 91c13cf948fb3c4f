"""Syntax tree -> smaller syntax tree, with true spans.

  assert test, message (not constant)   ->  if not test: raise AssertionError(message)
  match subject: case ...               ->  if, elif with tests, and bindings (see `patterns`)

The invariant: every node that is made has the place of the one it stands for, and what is evaluated, how often and in
which order stays Python's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gast

from spmd.frontend.patterns import Matches
from spmd.spans import Span


def desugar(body: list[Any], function: Any, span: Callable[[Any], Span]) -> list[Any]:
    """The statements in the small syntax; the tree is changed in place."""
    rewriter = _Rewriter(Matches(function, span))
    return [new for statement in body for new in rewriter.statements(statement)]


class _Rewriter(gast.NodeTransformer):
    """Rewrites statements, innermost first."""

    def __init__(self, matches: Matches) -> None:
        self.matches = matches

    def statements(self, node: Any) -> list[Any]:
        """What a statement becomes."""
        new = self.visit(node)
        return new if isinstance(new, list) else [new]

    def visit_Assert(self, node: Any) -> Any:  # noqa: N802
        self.generic_visit(node)
        if node.msg is None or isinstance(node.msg, gast.Constant):
            return node
        error = gast.Call(func=gast.Constant(value=AssertionError, kind=None), args=[node.msg], keywords=[])
        failed = gast.Raise(exc=error, cause=None)
        test = gast.If(test=gast.UnaryOp(op=gast.Not(), operand=node.test), body=[failed], orelse=[])
        for made, place in ((error, node.msg), (error.func, node.msg), (failed, node), (test, node), (test.test, node)):
            gast.copy_location(made, place)
        return test

    def visit_Match(self, node: Any) -> Any:  # noqa: N802
        self.generic_visit(node)
        return self.matches.rewritten(node)
