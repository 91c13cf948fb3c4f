"""The command line: topics, diagnosis, exit codes, plain text in pipes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import spmd
from spmd.cli import diagnose, error_section, guide, main
from spmd.config import VARIABLES
from spmd.errors import CODES


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"spmd {spmd.__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["help", "E99"], ["doctor", "--nonsense"]])
def test_wrong_usage_is_status_two_and_silent_on_stdout(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err


@pytest.mark.parametrize("code", sorted(CODES))
def test_every_code_has_a_wrong_and_a_right_program(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", code.lower()]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"{code} {CODES[code][0].__name__}\n")
    if code != "E13":  # no program is at fault there
        wrong, right = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
        assert text.index("Wrong:") < text.index(wrong) < text.index("Right:") < text.index(right)
        for program in (wrong, right):
            compile(program, code, "exec")


def test_the_guide_has_no_section_without_a_code() -> None:
    titles = re.findall(r"^## (.*)$", guide("errors"), re.MULTILINE)
    assert titles == [f"{code} {error.__name__}" for code, (error, _) in CODES.items()]
    assert error_section("E00") is None


def test_env_lists_every_variable(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "env"]) == 0
    text = capsys.readouterr().out
    assert all(variable.name in text for variable in VARIABLES)


def test_every_variable_that_the_package_reads_is_listed() -> None:
    package = Path(spmd.__file__).parent
    known = {variable.name for variable in VARIABLES}
    used = {name for path in package.rglob("*.py") for name in re.findall(r"\bSPMD_[A-Z]+\b", path.read_text())}
    assert used <= known


def test_help_without_a_topic_lists_the_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help"]) == 0
    text = capsys.readouterr().out
    assert all(code in text for code in CODES)


def test_doctor_finds_what_runs_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["spmd"] == spmd.__version__ and found["python"].endswith(sys.version.split()[0])
    assert "numpy" in found and "blas" in found and "processor" in found


def test_doctor_fails_where_a_library_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("spmd.cli.LIBRARIES", ("numpy", "a-library-that-does-not-exist"))
    assert diagnose()["a-library-that-does-not-exist"].startswith("MISSING")
    assert main(["doctor"]) == 1
    assert "MISSING" in capsys.readouterr().out


def test_a_bad_variable_is_a_failure_that_names_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPMD_WIDTH", "7")
    assert main(["doctor"]) == 1
    assert "SPMD_WIDTH" in capsys.readouterr().err


def test_python_dash_m_is_the_command() -> None:
    run = subprocess.run([sys.executable, "-m", "spmd", "help", "E07"], capture_output=True, text=True)
    assert run.returncode == 0 and "\x1b" not in run.stdout and run.stdout.startswith("E07 UnsupportedSyntax")
