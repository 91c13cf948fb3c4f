"""The import contracts of setup.cfg hold: imports go down, and the data package and the training kit stand alone."""

from __future__ import annotations

import ast
import configparser
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LEARN = ["spmd", "learn"]


def test_imports_go_down() -> None:
    run = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as main; main()", "--no-cache"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "0 broken" in run.stdout


def test_every_module_of_spmd_stands_on_a_floor() -> None:
    """A module that no contract names could import anything unseen."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    named = set(
        config["importlinter:contract:floors"]["layers"].replace("|", " ").replace("(", " ").replace(")", " ").split()
    )
    modules = {
        f"spmd.{path.stem}"
        for path in (ROOT / "spmd").iterdir()
        if (path.suffix == ".py" and path.stem != "__init__") or (path / "__init__.py").exists()
    }
    assert modules - named <= {"spmd.learn"}  # it imports nothing of spmd, by the next test


def test_the_training_kit_stands_alone() -> None:
    for path in (ROOT / "spmd" / "learn").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            strangers = [n for n in names if n.split(".")[0] in ("spmd", "batching") and n.split(".")[:2] != LEARN]
            assert not strangers, path.name


def test_no_file_is_longer_than_a_person_reads() -> None:
    sources = [path for package in ("spmd", "batching") for path in (ROOT / package).rglob("*.py")]
    too_long = {
        str(path.relative_to(ROOT)): count for path in sources if (count := len(path.read_text().splitlines())) > 420
    }
    assert not too_long


def test_every_module_says_what_it_does() -> None:
    sources = [path for package in ("spmd", "batching") for path in (ROOT / package).rglob("*.py")]
    assert [str(path) for path in sources if not ast.get_docstring(ast.parse(path.read_text()))] == []
