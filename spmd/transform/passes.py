"""Runs passes one after the other: verified, timed and logged.

The invariant: a pass maps a module to a module that computes the same and leaves the one that it was given as it was;
what it gives holds to the verifier before the next pass sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import perf_counter

from spmd.errors import InternalError
from spmd.ir.build import TypeRule
from spmd.ir.core import Module
from spmd.ir.printer import module_text
from spmd.ir.verify import verify
from spmd.log import stream


@dataclass(frozen=True)
class Pass:
    """A named rewrite of modules."""

    name: str
    apply: Callable[[Module], Module]


def run(
    passes: Iterable[Pass],
    module: Module,
    rule: TypeRule | None = None,
    watch: Callable[[str, Module], None] | None = None,
) -> Module:
    """The module after all passes. Raises InternalError, naming the pass, if one breaks the IR.

    `rule` is the type rule that primitives are checked with (that of `spmd.ops` if None); `watch` is told the name of
    each pass and what it gave.
    """
    if rule is None:
        from spmd.ops.table import type_rule as rule
    log, texts = stream("passes"), stream("ir")
    verify(module, rule)
    for each in passes:
        start = perf_counter()
        module = each.apply(module)
        seconds = perf_counter() - start
        ops = sum(1 for f in module.functions.values() for _ in f.body.walk())
        log.info("%-10s %6.1f ms, %d functions, %d ops", each.name, 1e3 * seconds, len(module.functions), ops)
        texts.info("after %s\n%s", each.name, _Text(module))
        try:
            verify(module, rule)
        except InternalError as error:
            raise InternalError(f"after pass '{each.name}': {error.message}", span=error.span) from error
        if watch is not None:
            watch(each.name, module)
    return module


class _Text:
    """Prints a module only if somebody reads the log."""

    def __init__(self, module: Module) -> None:
        self.module = module

    def __str__(self) -> str:
        return module_text(self.module)
