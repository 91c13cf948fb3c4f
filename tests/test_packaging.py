"""What is installed: every data file of the packages, and the commands that README and .ci/run state."""

from __future__ import annotations

import configparser
import fnmatch
import os
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def config() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    return parser


def test_every_data_file_is_installed() -> None:
    patterns = {package: text.split() for package, text in config()["options.package_data"].items()}
    for package in ("spmd", "batching"):
        files = [path for path in (ROOT / package).rglob("*") if path.is_file() and "__pycache__" not in path.parts]
        data = [path.relative_to(ROOT / package).as_posix() for path in files if path.suffix != ".py"]
        left_out = [name for name in data if not any(fnmatch.fnmatch(name, p) for p in patterns[package])]
        assert "py.typed" in data and not left_out


def test_every_folder_with_code_is_a_package() -> None:
    """Folders without __init__.py are not found by setup.cfg, and would be missing once installed."""
    for package in ("spmd", "batching"):
        folders = {path.parent for path in (ROOT / package).rglob("*.py")}
        assert [str(folder) for folder in folders if not (folder / "__init__.py").exists()] == []


def test_what_is_imported_is_required() -> None:
    required = {re.split(r"[<>=]", line)[0] for line in config()["options"]["install_requires"].split()}
    third_party = {"numpy", "gast", "llvmlite", "numba", "rich", "threadpoolctl", "optree", "scipy"}
    pattern = re.compile(r"^\s*(?:import|from)\s+(\w+)", re.MULTILINE)
    sources = [path for package in ("spmd", "batching") for path in (ROOT / package).rglob("*.py")]
    imported = {name for path in sources for name in pattern.findall(path.read_text(encoding="utf-8"))}
    assert imported & third_party <= required


def test_ci_runs_the_test_command_of_the_readme() -> None:
    commands = re.findall(r"^python3 -m venv .*$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(commands) == 2 and "pip install . " in commands[0] and "examples/treelstm.py" in commands[0]
    options = commands[1].partition("-m pytest")[2].strip()
    script = ROOT / ".ci" / "run"
    text = script.read_text(encoding="utf-8")
    assert f"-m pytest {options} " in text and "set -euo pipefail" in text and os.access(script, os.X_OK)
    for check in ("ruff", "mypy", "lint-imports"):
        assert check in text
