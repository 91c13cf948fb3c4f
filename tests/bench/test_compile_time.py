"""The compile-time table: every stage is timed, and the programs that it writes compile."""

from __future__ import annotations

from bench import compile_time


def test_every_stage_of_a_program_is_timed() -> None:
    rows = compile_time._zoo("fib")
    assert rows
    for row in rows:
        assert row["all"] == sum(row[stage] for stage in compile_time.STAGES)
        assert row["lower"] > 0.0 and row["code"] > 0.0


def test_generated_programs_compile() -> None:
    value, gradient = compile_time._generated(10)
    assert value > 0.0 and gradient > 0.0
