"""Adjoints of regions, walked backwards over the log, give the derivative of the program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ir_programs import SAMPLES, Sample
from loop_programs import LOOPS
from one_example import gradient_parameters, run_program

from spmd.ir.parser import parse
from spmd.ir.region import AdjointRegion, Program
from spmd.ir.region_printer import adjoints_text
from spmd.ir.region_verify import verify_adjoints
from spmd.ir.types import carries_gradient
from spmd.ops.table import PRIMITIVES, type_rule
from spmd.transform.adjoint import adjoint
from spmd.transform.fission import fission
from spmd.transform.hoist import hoist
from spmd.transform.passes import Pass, run
from spmd.transform.regions import regions
from spmd.transform.simplify import simplify

UNIFORM = Sample(
    """module @main
input %w: float64[2, 3]
input %a: float64
func @main(%x: float64[2], %n: int) -> (float64[2]) {
  %t: float64[3, 2] = transpose %w [perm=(1, 0)]
  %half: float64 = const [value=scalar("float64", [0.5])]
  %b: float64 = mul %a, %half
  %c: float64[2] = broadcast %b [shape=(2,)]
  %m: float64[2, 2] = matmul %w, %t
  %e: float64[2, 2] = exp %m
  %zero: int = const [value=0]
  %one: int = const [value=1]
  %h: float64[2] = loop %zero, %x (%i: int, %y: float64[2]) {
    %more: pybool = lt %i, %n
    if %more {
      yield
    } else {
      break %y
    }
    %u: float64[3] = matmul %t, %y
    %v: float64[2] = matmul %w, %u
    %z: float64[2] = matmul %e, %v
    %s: float64[2] = add %z, %c
    %r: float64[2] = tanh %s
    %j: int = add %i, %one
    continue %j, %r
  }
  return %h
}
""",
    [[np.array([0.3, -0.2]), n] for n in (0, 1, 3)],
    [0.4 * np.arange(6.0).reshape(2, 3) / 6, np.float64(0.7)],
)

DIFFERENTIABLE = {n: SAMPLES[n] for n in ("swap", "tree", "returns", "guarded", "map", "branches", "leave_early")}
DIFFERENTIABLE |= {n: LOOPS[n] for n in ("child_sum", "conditional", "stops", "carried")} | {"uniform": UNIFORM}
PASSES = [Pass("simplify", simplify), Pass("fission", fission), Pass("hoist", hoist)]


def pair(sample: Sample, passes: list[Pass]) -> tuple[Program, dict[int, AdjointRegion]]:
    program = regions(run(passes, parse(sample.text)))
    wanted: list[Any] = [v for v in program.inputs if carries_gradient(v.type)]
    wanted += gradient_parameters(program)
    for table in program.tables.values():
        wanted += [(table.name, k) for k, t in enumerate(table.fields) if carries_gradient(t)]
    adjoints = adjoint(program, wanted)
    verify_adjoints(program, adjoints, type_rule)
    return program, adjoints


def numeric(f: Callable[[Any], float], x: Any) -> Any:
    """Central differences of a number by an array or number."""
    x = np.asarray(x, float)
    out = np.zeros_like(x)
    for at in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[at] = 1e-6
        out[at] = (f((x + step)[()]) - f((x - step)[()])) / 2e-6
    return out


def close(found: Any, expected: Any) -> None:
    found = np.zeros_like(expected) if found is None else found
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("passes", [[], PASSES], ids=["plain", "passes"])
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_agree_with_differences(name: str, passes: list[Pass]) -> None:
    sample = DIFFERENTIABLE[name]
    program, adjoints = pair(sample, passes)
    rng = np.random.default_rng(3)
    types = [c.type for c in program.functions[program.entry].results]
    weights = [rng.normal(size=getattr(t, "shape", ())) for t in types]

    def loss(args: list[Any], inputs: list[Any], tables: Any) -> float:
        results, _ = run_program(program, PRIMITIVES, args, inputs, tables)
        return float(sum(np.sum(w * r) for w, r in zip(weights, results, strict=True)))

    given, rows = sample.inputs, sample.tables
    for args in sample.args:
        _, once = run_program(program, PRIMITIVES, args, given, rows)
        first = once.backward(adjoints, weights, 0)
        found = once.backward(adjoints, weights, 0)  # a tape can be walked twice
        for k in gradient_parameters(program):
            moved = numeric(lambda x, k=k, a=args: loss(a[:k] + [x] + a[k + 1 :], given, rows), args[k])
            close(found.params[k], moved)
            close(first.params[k], moved)
        for k, value in enumerate(program.inputs[: len(given)]):
            moved = numeric(lambda x, k=k, a=args: loss(a, given[:k] + [x] + given[k + 1 :], rows), given[k])
            close(found.inputs.get(value), moved)
        check_tables(sample, program, found.tables, lambda t, a=args: loss(a, given, t))


def check_tables(sample: Sample, program: Program, found: Any, loss: Callable[[Any], float]) -> None:
    for table in program.tables.values():
        for row in range(len(sample.tables[table.name])):
            for k, type_ in enumerate(table.fields):
                if not carries_gradient(type_):
                    continue

                def moved(x: Any, name: str = table.name, row: int = row, k: int = k) -> float:
                    rows = [list(r) for r in sample.tables[name]]
                    rows[row][k] = x
                    return loss({**sample.tables, name: rows})

                close(found.get((table.name, k, row)), numeric(moved, sample.tables[table.name][row][k]))


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_text_of_adjoints(name: str, golden: Any) -> None:
    program, adjoints = pair(DIFFERENTIABLE[name], PASSES)
    golden("adjoints", name, adjoints_text(program, adjoints))


def test_disjoint_slices_of_one_value_make_one_assembly() -> None:
    _, adjoints = pair(SAMPLES["tree"], PASSES)
    names = [op.name for a in adjoints.values() for op in a.ops]
    assert names.count("assemble") == 1


def test_what_nobody_differentiates_has_no_adjoint() -> None:
    program = regions(parse(SAMPLES["swap"].text))
    assert adjoint(program, []) == {}
    assert adjoint(regions(parse(SAMPLES["fib"].text)), [0]) == {}


def test_only_wanted_inputs_are_added_to() -> None:
    program = regions(parse(SAMPLES["swap"].text))
    adjoints = adjoint(program, [0])
    assert not [add for a in adjoints.values() for add in a.adds if add.kind == "input"]
