"""Cutting into regions keeps the meaning of a program, forks siblings and inverts loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ir_programs import SAMPLES, Sample
from one_example import run_module, run_program

from spmd.ir.parser import parse
from spmd.ir.region import Fork, Program
from spmd.ir.region_printer import program_text
from spmd.ir.region_verify import verify_program
from spmd.ir.verify import verify
from spmd.ops.table import PRIMITIVES, type_rule
from spmd.transform.regions import regions


def cut(sample: Sample) -> Program:
    module = parse(sample.text)
    verify(module, type_rule)
    program = regions(module)
    verify_program(program, type_rule)
    return program


def outcome(run: Any) -> Any:
    """What a call gives: its results, or type and arguments of what it raises."""
    try:
        return run()
    except Exception as error:
        return type(error), error.args


def same(a: Any, b: Any) -> None:
    assert type(a) is type(b)
    if isinstance(a, list):
        for x, y in zip(a, b, strict=True):
            assert type(x) is type(y)
            np.testing.assert_array_equal(x, y)
    else:
        assert a == b


@pytest.mark.parametrize("name", SAMPLES)
def test_regions_compute_what_the_module_computes(name: str) -> None:
    sample = SAMPLES[name]
    module = parse(sample.text)
    program = cut(sample)
    for args in sample.args:
        expected = outcome(lambda args=args: run_module(module, PRIMITIVES, args, sample.inputs, sample.tables))
        found = outcome(lambda args=args: run_program(program, PRIMITIVES, args, sample.inputs, sample.tables)[0])
        same(found, expected)


@pytest.mark.parametrize("name", SAMPLES)
def test_text_of_regions(name: str, golden: Any) -> None:
    golden("regions", name, program_text(cut(SAMPLES[name])))


def forks(program: Program) -> list[int]:
    return [len(r.exit.sites) for r in program.regions if isinstance(r.exit, Fork)]


def test_sibling_calls_share_one_fork() -> None:
    assert forks(cut(SAMPLES["fib"])) == [2]
    assert forks(cut(SAMPLES["tree"])) == [2]


def test_calls_behind_tests_share_one_fork() -> None:
    program = cut(SAMPLES["guarded"])
    assert 2 in forks(program) and any(name.startswith("sum.arm") for name in program.functions)
    both = next(r.exit for r in program.regions if isinstance(r.exit, Fork) and len(r.exit.sites) == 2)
    assert [[truth for _, truth in site.guards] for site in both.sites] == [[False], [False]]


def test_a_call_does_not_pass_a_check_of_an_earlier_result() -> None:
    program = cut(SAMPLES["raises"])
    main = [r for r in program.regions if r.function == "main" and isinstance(r.exit, Fork)]
    assert [len(r.exit.sites) for r in main if isinstance(r.exit, Fork)] == [2, 1]


def test_an_iteration_is_one_region() -> None:
    _, run = run_program(cut(SAMPLES["swap"]), PRIMITIVES, [np.ones(3), 5], SAMPLES["swap"].inputs)
    assert len(run.log) == 1 + 5 + 1


def test_single_columns_are_stored_once_per_frame() -> None:
    for sample in SAMPLES.values():
        program = cut(sample)
        for args in sample.args:
            try:
                _, run = run_program(program, PRIMITIVES, args, sample.inputs, sample.tables)
            except Exception:
                continue
            stores: dict[tuple[int, int], int] = {}
            for entry in run.log:
                region = program.regions[entry.region]
                written = [c for c, _ in region.stores]
                if isinstance(region.exit, Fork):
                    written += [s.child for s in region.exit.sites]
                for column in written:
                    if column.single:
                        key = (id(entry.frame), column.id)
                        stores[key] = stores.get(key, 0) + 1
            assert max(stores.values(), default=1) == 1
