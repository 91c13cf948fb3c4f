"""The programs from outside (tests/programs), each as a batch and as the plain Python loop over its examples.

Invariant: each program is a process of its own, so that one that is refused, fails or takes too long costs its own row
alone; the parent imports no program.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.peers import REPOSITORY
from bench.process import Failure, environment, measure
from bench.treelstm import positive

SCRIPT = REPOSITORY / "bench" / "cases" / "outside.py"
SECONDS = 600.0
NAMES = (
    "kepler", "rk45", "conjugate_gradients", "gauss_newton", "viterbi", "edit_distance", "particle_filter", "lz77",
    "k_means", "barnes_hut", "barnes_hut_objects", "stack_machine", "shunting_yard", "dijkstra", "sudoku",
    "sudoku_by_stack", "rk45_in_scalars", "edit_distance_by_memo", "edit_distance_in_lists", "viterbi_in_lists",
    "lz77_there_and_back", "stack_machine_by_dispatch", "sudoku_by_bits", "sudoku_in_lists",
)
HEAD = f"{'':22}{'loop ms':>10}{'batch ms':>10}{'loop/batch':>11}{'compile s':>10}{'pack ms':>9}"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """The options of `run.py programs`."""
    command.add_argument("--only", default="", metavar="WORDS", help="programs whose name holds one of these")
    command.add_argument("--batch", type=positive, default=50, metavar="N")
    command.add_argument("--full", action="store_true", help="full sizes instead of those of the tests")
    command.add_argument("--target", default="auto", metavar="NAME")
    command.add_argument("--threads", type=positive, default=1, metavar="N")
    command.add_argument("--json", type=Path, metavar="FILE", help="all figures")


def chosen(words: str) -> list[str]:
    """The programs whose name holds one of the words."""
    parts = [word for word in words.split(",") if word]
    return [name for name in NAMES if not parts or any(part in name for part in parts)]


def run(options: argparse.Namespace, say: Callable[[str], None] = print) -> dict[str, Any]:
    """Measures and prints a row for each program. `failed`: one neither ran nor was refused."""
    sizes = "full" if options.full else "small"
    say(f"batch of {options.batch}, {sizes} sizes, target {options.target}, {options.threads} thread(s)")
    say(HEAD)
    rows = []
    for name in chosen(options.only):
        row = {"name": name, "reason": "", **row_of(name, options)}
        rows.append(row)
        say(line(row))
    return {"batch": options.batch, "sizes": sizes, "rows": rows, "failed": any(row["reason"] for row in rows)}


def row_of(name: str, options: argparse.Namespace) -> dict[str, Any]:
    words = [sys.executable, str(SCRIPT), name, "--batch", str(options.batch), "--target", options.target]
    env = environment(options.threads, {"PYTHONPATH": str(REPOSITORY)})
    found = measure([*words, *(["--full"] if options.full else [])], env, REPOSITORY, SECONDS)
    return {"reason": found.reason} if isinstance(found, Failure) else found


def line(row: dict[str, Any]) -> str:
    """One row."""
    if row["reason"]:
        return f"{row['name']:22}not run: {row['reason']}"
    loop = f"{row['name']:22}{1e3 * row['loop_s']:10.2f}"
    if row["refused"]:
        return f"{loop}  refused: {row['refused']}"
    ratio = row["loop_s"] / row["call_s"]
    return f"{loop}{1e3 * row['call_s']:10.2f}{ratio:11.3f}{row['first_s']:10.2f}{1e3 * row['pack_s']:9.2f}"
