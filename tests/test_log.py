"""Streams are silent unless asked for, and show more where more was asked."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from spmd import log


@pytest.fixture(autouse=True)
def silent_afterwards() -> Iterator[None]:
    yield
    log.show("")


def emit() -> None:
    for name in ("passes", "ir"):
        log.stream(name).info("%s short", name)
        log.stream(name).debug("%s long\nsecond line", name)


def test_streams_are_silent_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    log.show("")
    emit()
    assert capsys.readouterr().err == ""


def test_a_plus_shows_detail(capsys: pytest.CaptureFixture[str]) -> None:
    log.show("passes,+ir")
    emit()
    assert capsys.readouterr().err.splitlines() == [
        "spmd passes: passes short",
        "spmd ir: ir short",
        "spmd ir: ir long",
        "spmd ir: second line",
    ]


def test_all_names_every_stream(capsys: pytest.CaptureFixture[str]) -> None:
    log.show("+all")
    emit()
    assert len(capsys.readouterr().err.splitlines()) == 6


def test_unknown_streams_are_refused() -> None:
    with pytest.raises(ValueError, match="no stream 'pases'"):
        log.show("pases")
    with pytest.raises(ValueError, match="no stream 'pases'"):
        log.stream("pases")


def test_the_variable_turns_streams_on() -> None:
    program = "from spmd import log; log.stream('passes').info('hit'); log.stream('ir').info('no')"
    run = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "SPMD_LOG": "passes"}, capture_output=True, text=True
    )
    assert run.stderr == "spmd passes: hit\n"
