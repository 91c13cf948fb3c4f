"""The import contracts of setup.cfg hold: imports go down, and the data package and the training kit stand alone."""

from __future__ import annotations

import ast
import configparser
import graphlib
import os
import subprocess
import sys
from collections.abc import Container
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
    assert modules - named <= {"spmd.learn", "spmd.streams"}  # they import nothing of spmd, by the next test


def test_the_training_kit_and_streams_stand_alone() -> None:
    for path in (*(ROOT / "spmd" / "learn").glob("*.py"), ROOT / "spmd" / "streams.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            strangers = [n for n in names if n.split(".")[0] in ("spmd", "batching") and n.split(".")[:2] != LEARN]
            assert not strangers, path.name


def _modules() -> dict[str, ast.Module]:
    """Every module of both packages, parsed, by its dotted name."""
    paths = [path for package in ("spmd", "batching") for path in (ROOT / package).rglob("*.py")]
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in paths]
    return {name: ast.parse(path.read_text()) for name, path in zip(names, paths)}


def _imports(tree: ast.AST, modules: Container[str]) -> set[str]:
    """Those of `modules` that a piece of code imports: at the top, inside functions, for types only."""
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "a relative import"
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            found += [name if name in modules else node.module or "" for name in inner]
    return {name for name in found if name in modules}


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports inside functions and for types count: a circle hidden from the interpreter still is one to a reader."""
    modules = _modules()
    assert "spmd.frontend.lowering" in _imports(modules["spmd.frontend.expressions"], modules)
    try:
        graphlib.TopologicalSorter({n: _imports(tree, modules) for n, tree in modules.items()}).prepare()
    except graphlib.CycleError as error:
        raise AssertionError(" is imported by ".join(error.args[1])) from None


def test_the_front_end_imports_at_the_top() -> None:
    """A rule knows only what is below it; what contains itself it reaches by its `Lowering`."""
    modules = _modules()
    hidden = {
        name: inner
        for name, tree in modules.items()
        if name.startswith("spmd.frontend.")
        for node in tree.body
        if not isinstance(node, (ast.Import, ast.ImportFrom)) and (inner := _imports(node, modules))
    }
    assert not hidden


def test_no_file_is_longer_than_a_person_reads() -> None:
    sources = [path for package in ("spmd", "batching") for path in (ROOT / package).rglob("*.py")]
    too_long = {
        str(path.relative_to(ROOT)): count for path in sources if (count := len(path.read_text().splitlines())) > 420
    }
    assert not too_long


def test_every_module_says_what_it_does() -> None:
    sources = [path for package in ("spmd", "batching") for path in (ROOT / package).rglob("*.py")]
    assert [str(path) for path in sources if not ast.get_docstring(ast.parse(path.read_text()))] == []
