"""Fixtures that every test may use: golden texts, the folder of shared material, options of the test run.

Invariant: a run gives the same verdict twice (hypothesis draws from a fixed seed, keeps no files and no clock), and
golden files change only under ``--update-golden``.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = Path(__file__).resolve().parent / "golden"
_CASE = re.compile(r"^\[case ([^\]\n]+)\]\n", re.MULTILINE)

settings.register_profile(
    "repeatable", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("repeatable")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite tests/golden from what the code gives now")
    parser.addoption("--full", action="store_true", help="run the tests marked full, and all batch sizes")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--full"):
        for item in items:
            if item.get_closest_marker("full"):
                item.add_marker(pytest.mark.skip(reason="runs only under --full"))


def read_golden(name: str) -> dict[str, str]:
    """The cases of tests/golden/<name>.test, in the order of the file."""
    file = GOLDEN / f"{name}.test"
    if not file.exists():
        return {}
    _, *parts = _CASE.split(file.read_text(encoding="utf-8"))
    return {case: text.strip("\n") for case, text in zip(parts[::2], parts[1::2], strict=True)}


def write_golden(name: str, cases: dict[str, str]) -> None:
    """Writes the cases in the order of their names, so that a rewrite changes nothing but what differs."""
    GOLDEN.mkdir(exist_ok=True)
    blocks = [f"[case {case}]\n{cases[case]}\n" for case in sorted(cases)]
    (GOLDEN / f"{name}.test").write_text("\n".join(blocks), encoding="utf-8")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str, str], None]:
    """``golden(name, case, text)``: the text must be that of case `case` in tests/golden/<name>.test."""
    update = bool(request.config.getoption("--update-golden"))

    def check(name: str, case: str, text: str) -> None:
        text = "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")
        cases = read_golden(name)
        if update:
            write_golden(name, {**cases, case: text})
            return
        if case not in cases:
            pytest.fail(f"tests/golden/{name}.test has no case {case!r}; run with --update-golden and read the diff")
        if cases[case] != text:
            difference = difflib.unified_diff(cases[case].split("\n"), text.split("\n"), "golden", "now", lineterm="")
            pytest.fail(f"{name}.test, case {case}:\n" + "\n".join(difference), pytrace=False)

    return check


@pytest.fixture(scope="session")
def full(request: pytest.FixtureRequest) -> bool:
    """Whether the run is a full one (``--full``)."""
    return bool(request.config.getoption("--full"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared material beside the repository; the test is skipped where it is missing."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("the folder ../shared is not here")
    return folder
