"""Every pass keeps the meaning of every program, and leaves the module that it was given alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ir_programs import SAMPLES, Sample
from loop_programs import LOOPS
from one_example import run_module, run_program

from spmd.errors import InternalError
from spmd.ir.core import Module, Op
from spmd.ir.parser import parse
from spmd.ir.printer import module_text
from spmd.ir.region_verify import verify_adjoints, verify_program
from spmd.ops.table import PRIMITIVES, type_rule
from spmd.transform.adjoint import adjoint
from spmd.transform.fission import fission
from spmd.transform.hoist import hoist
from spmd.transform.passes import Pass, run
from spmd.transform.regions import regions
from spmd.transform.simplify import simplify

EVERY: dict[str, Sample] = {**SAMPLES, **LOOPS}
PASSES: dict[str, Callable[[Module], Module]] = {"simplify": simplify, "fission": fission, "hoist": hoist}


def outcome(call: Callable[[], list[Any]]) -> Any:
    try:
        return call()
    except Exception as error:
        return type(error), error.args


def same(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    if isinstance(found, list):
        for x, y in zip(found, expected, strict=True):
            assert type(x) is type(y)
            np.testing.assert_array_equal(x, y)
    else:
        assert found == expected


def check(sample: Sample, passes: list[Pass]) -> None:
    before = parse(sample.text)
    text = module_text(before)
    after = run(passes, before)
    assert module_text(before) == text
    program = regions(after)
    verify_program(program, type_rule)
    for args in sample.args:
        given = (PRIMITIVES, args, sample.inputs, sample.tables)
        expected = outcome(lambda given=given: run_module(before, *given))
        same(outcome(lambda given=given: run_module(after, *given)), expected)
        same(outcome(lambda given=given: run_program(program, *given)[0]), expected)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("which", PASSES)
def test_a_pass_keeps_results_and_exceptions(which: str, name: str) -> None:
    check(EVERY[name], [Pass(which, PASSES[which])])


@pytest.mark.parametrize("name", EVERY)
def test_all_passes_twice_keep_results_and_exceptions(name: str) -> None:
    check(EVERY[name], [Pass(n, f) for n, f in PASSES.items()] * 2)


@pytest.mark.parametrize("name", EVERY)
def test_what_passes_give_has_sound_adjoints(name: str) -> None:
    program = regions(run([Pass(n, f) for n, f in PASSES.items()], parse(EVERY[name].text)))
    wanted: list[Any] = list(program.inputs)
    verify_adjoints(program, adjoint(program, wanted), type_rule)


def test_a_pass_that_breaks_the_ir_is_named() -> None:
    def spoil(module: Module) -> Module:
        module = simplify(module)
        module.functions["fib"].body.ops.insert(0, Op("return", [], {}, []))
        return module

    with pytest.raises(InternalError, match="after pass 'spoil'"):
        run([Pass("spoil", spoil)], parse(SAMPLES["fib"].text))


def test_the_watcher_sees_each_pass() -> None:
    seen: list[str] = []
    run([Pass(n, f) for n, f in PASSES.items()], parse(SAMPLES["fib"].text), watch=lambda name, _: seen.append(name))
    assert seen == list(PASSES)
