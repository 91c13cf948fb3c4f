"""The order of the passes, and what each target is made of. Read from top to bottom."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from spmd.backend.native.support import light, runs
from spmd.errors import OptionError
from spmd.ir.core import Block, Module
from spmd.ir.region import AdjointRegion, Program
from spmd.ir.region_verify import verify_adjoints, verify_program
from spmd.ops.table import type_rule
from spmd.transform.adjoint import adjoint
from spmd.transform.algebra import algebra
from spmd.transform.fission import fission
from spmd.transform.hoist import hoist
from spmd.transform.passes import Pass, run
from spmd.transform.region_sizes import trim_adjoint, trim_regions
from spmd.transform.regions import regions
from spmd.transform.simplify import simplify
from spmd.transform.sizes import trim_sizes

TARGETS = ("auto", "blas", "reference")
ROUNDINGS = ("strict", "contract")

PASSES: tuple[Pass, ...] = (
    Pass("simplify", simplify),
    Pass("algebra", algebra),
    Pass("sizes", trim_sizes),
    Pass("fission", fission),
    Pass("hoist", hoist),
)


def optimise(module: Module, watch: Callable[[str, Module], None] | None = None) -> Module:
    """IR of one example -> better IR of one example; `watch` is told the name of each pass and what it gave."""
    return run(PASSES, module, watch=watch)


LOOPS: dict[str, Callable[[Block], bool] | None] = {
    "coarse": None, "native": runs, "wide": lambda block: light(block) and runs(block)
}
"""Which loops stay whole, for compiled code to run them: none (there is no adjoint of such a loop), all that can, or
all that many rows at a time would not run faster in vectors."""


def cut(module: Module, loops: str = "coarse") -> Program:
    """IR of one example -> regions. Raises InternalError if they are broken."""
    program = trim_regions(regions(module, native=LOOPS[loops]))
    verify_program(program, type_rule)
    return program


def differentiate(program: Program, wanted: Iterable[Any]) -> dict[int, AdjointRegion]:
    """The adjoint of each region. Raises InternalError if one is broken."""
    found = adjoint(program, wanted)
    adjoints = {k: trim_adjoint(program.regions[k], a) if k >= 0 else a for k, a in found.items()}
    verify_adjoints(program, adjoints, type_rule)
    return adjoints


def check_target(target: str) -> None:
    """Raises OptionError for a target that does not exist."""
    if target not in TARGETS:
        raise OptionError(f"target '{target}' does not exist; there are {', '.join(TARGETS)}")
