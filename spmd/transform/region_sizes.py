"""The same work on sizes goes from regions and their adjoints (see `sizes`).

Regions are cut after callees were written in place, so more is known in them than in functions; adjoints ask sizes of
primal values, which need not be on the tape for that. The invariant: a region and its adjoint compute the same as
before; residuals are what the adjoint names.
"""

from __future__ import annotations

from dataclasses import replace

from spmd.analysis.effects import Primitives, default_primitives, removable
from spmd.analysis.sizes import Sizes
from spmd.ir.core import Op
from spmd.ir.region import AdjointRegion, Branch, Exit, Fork, Leave, Program, Region, Seed
from spmd.ir.rewrite import Map, resolve
from spmd.ir.types import Num, Seq
from spmd.transform.sizes import Scope, Trimmer
from spmd.transform.write import exit_values


def trim_regions(program: Program, primitives: Primitives | None = None) -> Program:
    """The program with less work on sizes in its regions."""
    primitives = default_primitives() if primitives is None else primitives
    return replace(program, regions=[_trimmed(region, primitives) for region in program.regions])


def _trimmed(region: Region, primitives: Primitives) -> Region:
    facts, scope = Sizes(primitives), Scope()
    if not any(isinstance(v.type, Num) and not v.type.static for op in region.ops for v in op.results):
        return region
    for _, value in region.loads:
        scope.enter(value, facts)
    trimmer = Trimmer(facts)
    ops = trimmer.ops(_copies(region.ops), scope)
    names = trimmer.names
    stores = [(column, resolve(names, v)) for column, v in region.stores]
    out = replace(region, ops=ops, stores=stores, exit=_exit(region.exit, names))
    used = {v for _, v in stores} | set(exit_values(out))
    kept = []
    for op in reversed(ops):
        if any(v in used for v in op.results) or not removable(op, primitives):
            kept.append(op)
            used.update(op.operands)
    out.ops = kept[::-1]
    out.loads = [(column, v) for column, v in region.loads if v in used]
    return out


def _copies(ops: list[Op]) -> list[Op]:
    return [replace(op, operands=list(op.operands)) for op in ops]


def _exit(exit_: Exit, names: Map) -> Exit:
    """The exit with the values that are there now."""
    if isinstance(exit_, Branch):
        return replace(exit_, cond=resolve(names, exit_.cond))
    if isinstance(exit_, Leave):
        return Leave([resolve(names, v) for v in exit_.values])
    if isinstance(exit_, Fork):
        sites = [
            replace(
                site,
                args=[resolve(names, v) for v in site.args],
                count=None if site.count is None else resolve(names, site.count),
                guards=tuple((resolve(names, v), truth) for v, truth in site.guards),
            )
            for site in exit_.sites
        ]
        return Fork(sites, exit_.target)
    return exit_


# ------------------------------------------------------------------------------------------------------- adjoints
def trim_adjoint(region: Region, adjoint: AdjointRegion, primitives: Primitives | None = None) -> AdjointRegion:
    """The adjoint of a region with less work on sizes; sizes are asked of what is on the tape anyway."""
    primitives = default_primitives() if primitives is None else primitives
    for _ in range(2):  # what is on the tape for its elements is known only when the first round is done
        adjoint = _trimmed_adjoint(region, adjoint, primitives)
    return adjoint


def _trimmed_adjoint(region: Region, adjoint: AdjointRegion, primitives: Primitives) -> AdjointRegion:
    facts = Sizes(primitives)
    for op in region.ops:
        facts.see(op)
    for seed in adjoint.seeds:
        _seed(facts, region, seed)
    asking = ("shape_of", "dim", "length")
    named = [v for op in adjoint.ops if op.name not in asking for v in op.operands]
    named += [v for add in adjoint.adds for v in (add.value, add.ref) if v is not None]
    scope = Scope()
    for value in dict.fromkeys((*(s.value for s in adjoint.seeds), *(v for v in adjoint.residuals if v in named))):
        scope.enter(value, facts)
    trimmer = Trimmer(facts, {v for v in named if isinstance(v.type, Seq)})
    ops = trimmer.ops(_copies(adjoint.ops), scope)
    adds = [
        replace(
            add,
            value=resolve(trimmer.names, add.value),
            ref=None if add.ref is None else resolve(trimmer.names, add.ref),
        )
        for add in adjoint.adds
    ]
    used = {v for add in adds for v in (add.value, add.ref) if v is not None}
    kept = []
    for op in reversed(ops):
        if any(v in used for v in op.results):
            kept.append(op)
            used.update(op.operands)
    own = {v for _, v in region.loads} | {v for op in region.ops for v in op.results}
    order = dict.fromkeys((*adjoint.residuals, *(v for op in reversed(kept) for v in op.operands)))
    order.update(dict.fromkeys(v for add in adds for v in (add.value, add.ref) if v is not None))
    residuals = [v for v in order if v in used and v in own]
    return AdjointRegion(adjoint.id, adjoint.seeds, residuals, kept[::-1], adds)


def _seed(facts: Sizes, region: Region, seed: Seed) -> None:
    """A cotangent has the sizes of its value."""
    exit_, value = region.exit, None
    if seed.kind == "store":
        value = next((v for column, v in region.stores if column is seed.column), None)
    elif seed.kind == "result" and isinstance(exit_, Leave):
        value = exit_.values[seed.index]
    elif seed.kind == "argument" and isinstance(exit_, Fork):
        value = exit_.sites[seed.site].args[seed.index]
    if value is None:
        return
    if isinstance(value.type, Num) and isinstance(seed.value.type, Num):
        if value.type.shape == seed.value.type.shape:
            facts.sized(seed.value, facts.of(value))
    elif isinstance(value.type, Seq):
        facts.sized(seed.value, (facts.length(value), *facts.of(seed.value)[1:]))
