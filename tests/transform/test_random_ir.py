"""Random programs: passes, regions and adjoints keep their meaning; and the test itself finds seeded faults."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from one_example import run_module, run_program
from random_ir import arguments, inputs, program, table

from spmd.ir.core import Module
from spmd.ir.parser import parse
from spmd.ir.printer import module_text
from spmd.ir.region import Program
from spmd.ir.region_verify import verify_adjoints, verify_program
from spmd.ir.verify import verify
from spmd.ops.table import PRIMITIVES, type_rule
from spmd.transform import columns, forks, guards, results
from spmd.transform.adjoint import adjoint
from spmd.transform.fission import fission
from spmd.transform.hoist import hoist
from spmd.transform.passes import Pass, run
from spmd.transform.regions import regions
from spmd.transform.simplify import simplify
from spmd.transform.write import RegionWriter

PASSES = [Pass("simplify", simplify), Pass("fission", fission), Pass("hoist", hoist), Pass("again", simplify)]
WEIGHTS = [np.float64(1.0), np.float64(-0.7)]
STEP = 1e-6
ROWS = 7


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except (ValueError, KeyError, IndexError, OverflowError) as error:
        return type(error), error.args


class TooLong(Exception):
    """The example makes more regions than a test waits for."""


def ran(made: Program, given: tuple[Any, ...]) -> Any:
    def call() -> Any:
        try:
            return run_program(made, PRIMITIVES, *given)
        except RuntimeError:
            raise TooLong from None

    return outcome(call)


def check(seed: int, examples: int, gradients: bool) -> None:
    """Everything that must hold of one random program."""
    module = program(seed)
    verify(module, type_rule)
    assert module_text(parse(module_text(module))) == module_text(module)
    after = run(PASSES, module)
    made = [regions(module), regions(after)]
    for each in made:
        verify_program(each, type_rule)
    rows = {"item": table(random.Random(seed + 3), ROWS)}
    for args in arguments(seed, examples):
        given = (args, inputs(seed), rows)
        expected = outcome(lambda given=given: run_module(module, PRIMITIVES, *given))
        assert outcome(lambda given=given: run_module(after, PRIMITIVES, *given)) == expected
        try:
            found = [ran(each, given) for each in made]
        except TooLong:
            continue
        if not isinstance(expected, list):
            assert found == [expected, expected]
            continue
        for values, _ in found:
            np.testing.assert_array_equal(values, expected)
        if gradients:
            check_gradients(module, made, found, given)


def check_gradients(module: Module, made: list[Program], found: list[Any], given: tuple[Any, ...]) -> None:
    plain, passed = (gradient(each, once, len(results)) for each, (results, once) in zip(made, found))
    np.testing.assert_allclose(passed, plain, rtol=1e-9, atol=1e-12)
    moved = np.array([difference(module, given, k) for k in range(len(plain))])
    usable = np.isfinite(moved) & (np.abs(moved) < 1e3)  # elsewhere a branch flips within the step
    np.testing.assert_allclose(plain[usable], moved[usable], rtol=1e-4, atol=1e-5)


def gradient(made: Program, once: Any, count: int) -> Any:
    """Of two parameters, two inputs and a field of every row."""
    adjoints = adjoint(made, [*made.inputs[:2], 1, 2, ("item", 0)])
    verify_adjoints(made, adjoints, type_rule)
    ct = once.backward(adjoints, WEIGHTS[:count], 0)
    parts = [ct.params[1], ct.params[2], *[ct.inputs.get(v) for v in made.inputs[:2]]]
    parts += [ct.tables.get(("item", 0, k)) for k in range(ROWS)]
    return np.array([0.0 if part is None else float(part) for part in parts])


def difference(module: Module, given: tuple[Any, ...], number: int) -> float:
    """Central difference in the place that `gradient` has at this position; NaN where a moved example raises."""

    def loss(step: float) -> float:
        args, shared, rows = list(given[0]), list(given[1]), {"item": [list(r) for r in given[2]["item"]]}
        if number < 2:
            args[1 + number] += step
        elif number < 4:
            shared[number - 2] += step
        else:
            rows["item"][number - 4][0] += step
        results = outcome(lambda: run_module(module, PRIMITIVES, args, shared, rows))
        if not isinstance(results, list):
            return float("nan")
        return float(sum(w * r for w, r in zip(WEIGHTS, results)))

    return (loss(STEP) - loss(-STEP)) / (2 * STEP)


@pytest.mark.parametrize("block", range(6))
def test_random_programs_keep_values_exceptions_and_gradients(block: int) -> None:
    for seed in range(20 * block, 20 * block + 20):
        check(seed, 3, gradients=True)


@pytest.mark.full
@pytest.mark.parametrize("block", range(40))
def test_many_more_random_programs(block: int) -> None:
    for seed in range(1000 + 50 * block, 1050 + 50 * block):
        check(seed, 4, gradients=True)


# ------------------------------------------------------------------------------------------------ seeded faults
def columns_always_shared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(columns, "_interfere", lambda *_: False)


def moves_made_sequential(patch: pytest.MonkeyPatch) -> None:
    def move(self: RegionWriter, step: Any) -> None:
        for target, source in zip(step.targets, step.sources):
            self.values[target] = self.read(source)

    patch.setattr(RegionWriter, "move", move)


def calls_pass_checks(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(forks, "may_raise", lambda *_: False)


def arms_run_everywhere(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(guards, "_harmless", lambda op, _: op.name != "load" or not op.attrs["table"].startswith("@"))


def missing_results_are_zero(patch: pytest.MonkeyPatch) -> None:
    def merged(cond: Any, truth: bool, first: Any, second: Any, real: Any = results._merged) -> Any:
        zeros = {read: read.operands[1] for read in second.reads.values()}
        steps = real(cond, truth, first, second)
        for read, zero in zeros.items():
            read.operands[1] = zero
        return steps

    patch.setattr(results, "_merged", merged)


FAULTS = {  # and the seed to begin with
    columns_always_shared: 0,
    moves_made_sequential: 130,
    calls_pass_checks: 310,
    arms_run_everywhere: 0,
    missing_results_are_zero: 0,
}


@pytest.mark.parametrize("fault", FAULTS)
def test_seeded_faults_are_found(fault: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    fault(monkeypatch)
    with pytest.raises(AssertionError):
        for seed in range(FAULTS[fault], FAULTS[fault] + 400):
            check(seed, 4, gradients=False)
