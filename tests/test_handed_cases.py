"""The handed behaviour cases: none may be wrong, and those that are refused are listed and become fewer.

They run through the public names, in a process of their own with a limit for each case. `expected.toml` lists, by
part, the cases that may still be refused, or may still fail with an error; a listed case that holds must be taken out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

EXPECTED = Path(__file__).resolve().parent / "expected.toml"
SECONDS = 20
LIMIT = 420
Row = tuple[str, str, str, str]


def expected() -> dict[str, dict[str, list[str]]]:
    """state -> part -> names."""
    with EXPECTED.open("rb") as file:
        return tomllib.load(file)


@pytest.fixture(scope="module")
def rows(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    """(part, name, state, reason) of every case."""
    script = shared / "cases" / "run.py"
    if not script.is_file():
        pytest.skip("the handed cases are not here")
    report = tmp_path_factory.mktemp("cases") / "report.json"
    command = [sys.executable, str(script), "--seconds", str(SECONDS), "--json", str(report)]
    root = str(EXPECTED.parent.parent)
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=LIMIT, check=False, env={**os.environ, "PYTHONPATH": path}
    )
    if not report.is_file():
        pytest.fail(f"the cases did not run to their end:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    print(done.stdout)
    return [tuple(row) for row in json.loads(report.read_text())]


def test_no_handed_case_is_wrong(rows: list[Row]) -> None:
    wrong = [f"{part} {name}: {why}" for part, name, state, why in rows if state == "WRONG"]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("state", ["refused", "error"])
def test_cases_that_do_not_hold_are_listed(rows: list[Row], state: str) -> None:
    listed = {(part, name) for part, names in expected().get(state, {}).items() for name in names}
    found = {(part, name): why for part, name, was, why in rows if was == state}
    unlisted = [f"{part} {name}: {why}" for (part, name), why in found.items() if (part, name) not in listed]
    assert not unlisted, f"{state}, but not in {EXPECTED.name}:\n" + "\n".join(unlisted)


@pytest.mark.parametrize("state", ["refused", "error"])
def test_the_list_only_shrinks(rows: list[Row], state: str) -> None:
    found = {(part, name) for part, name, was, _ in rows if was == state}
    known = {(part, name) for part, name, _, _ in rows}
    listed = [(part, name) for part, names in expected().get(state, {}).items() for name in names]
    better = [f"{part} {name}" for part, name in listed if (part, name) in known - found]
    gone = [f"{part} {name}" for part, name in listed if (part, name) not in known]
    assert not better, f"these are no longer {state}: take them out of {EXPECTED.name}:\n" + "\n".join(better)
    assert not gone, f"{EXPECTED.name} names cases that do not exist:\n" + "\n".join(gone)
