"""The time that compiling takes: every program of the zoo stage by stage, and generated programs of growing size.

Invariant: every program is compiled anew, once for its values and once with its gradient; what is timed is the work of
one process after the compiler itself was loaded and warmed by a program that is not counted.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SIZES = (10, 30, 100, 300, 1000)
STAGES = ("lower", "passes", "regions", "adjoints", "code")


def add_arguments(command: argparse.ArgumentParser) -> None:
    """The options of `run.py compile`."""
    command.add_argument("--only", default="", metavar="WORD", help="of the zoo, the programs whose name holds this")
    command.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Prints both tables; gives the figures."""
    rows = _zoo(options.only)
    _print_zoo(rows)
    sizes = [_generated(count) for count in SIZES]
    print("\ngenerated programs: seconds for the values, and for a gradient")
    for count, (value, gradient) in zip(SIZES, sizes):
        print(f"  {count:5d} statements  {value:8.3f} s  {gradient:8.3f} s  {1e3 * value / count:6.2f} ms a statement")
    return {"case": "compile", "zoo": rows, "sizes": dict(zip(map(str, SIZES), sizes)), "failed": False}


# ------------------------------------------------------------------------------------------------ stages
@contextmanager
def _timed(stages: dict[str, float]) -> Iterator[None]:
    """Adds up the seconds of each stage while programs are compiled."""
    from spmd.backend.blas import executor
    from spmd.compiler import executable, pipelines

    places = [
        (executable, "trace", "lower"), (pipelines, "optimise", "passes"), (pipelines, "cut", "regions"),
        (pipelines, "differentiate", "adjoints"), (executor, "compile_program", "code"),
    ]
    kept = [(owner, name, getattr(owner, name)) for owner, name, _ in places]
    for owner, name, stage in places:
        setattr(owner, name, _counting(getattr(owner, name), stages, stage))
    try:
        yield
    finally:
        for owner, name, function in kept:
            setattr(owner, name, function)


def _counting(function: Callable[..., Any], stages: dict[str, float], stage: str) -> Callable[..., Any]:
    def counted(*args: Any, **kwargs: Any) -> Any:
        start = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            stages[stage] += time.perf_counter() - start

    return counted


# ------------------------------------------------------------------------------------------------ the zoo
def _zoo(word: str) -> list[dict[str, Any]]:
    sys.path.insert(0, str(ROOT / "tests"))
    from zoo import ZOO

    import spmd

    programs = [p for p in ZOO.values() if word in p.name]
    rows = []
    for k, program in enumerate([programs[0], *programs] if programs else []):
        stages = dict.fromkeys(STAGES, 0.0)
        columns = [list(column) for column in zip(*program.examples(0, 33))]
        with _timed(stages):
            try:
                function = spmd.vmap(program.fn, in_axes=program.in_axes)
                if program.wrt:
                    spmd.vjp(function, *program.shared_arguments(), *columns, argnums=program.wrt)
                else:
                    function(*program.shared_arguments(), *columns)
            except Exception as error:  # noqa: BLE001 (programs that raise are compiled all the same)
                if isinstance(error, spmd.SpmdError):
                    raise
        if k:  # the first one warms the compiler
            rows.append({"name": program.name, **stages, "all": sum(stages.values())})
        for spec in list(vars(program.fn)):
            if spec.startswith("__spmd"):
                delattr(program.fn, spec)
    return rows


def _print_zoo(rows: list[dict[str, Any]]) -> None:
    print(f"{len(rows)} programs of the zoo, milliseconds in each stage")
    for title, choose in (("median", statistics.median), ("worst", max)):
        figures = "  ".join(f"{s} {1e3 * choose(r[s] for r in rows):7.1f}" for s in (*STAGES, "all"))
        print(f"  {title:7s} {figures}")
    slowest = sorted(rows, key=lambda r: -r["all"])[:5]
    print("  slowest: " + ", ".join(f"{r['name']} {1e3 * r['all']:.0f} ms" for r in slowest))


# ------------------------------------------------------------------------------------------------ growing programs
def _text(count: int) -> str:
    """A program of that many statements: arithmetic, branches and loops in turn."""
    lines = ["import numpy as np", "", "", "def grown(x, y):", "    z = x * y"]
    for k in range(count):
        kind = k % 5
        if kind == 0:
            lines.append(f"    z = z * 0.5 + np.tanh(x + {k})")
        elif kind == 1:
            lines.append(f"    x = x + 0.01 * z - y * {k % 7}.0")
        elif kind == 2:
            lines += [f"    if z > {k % 3}.0:", "        y = y * 0.9"]
        elif kind == 3:
            lines += [f"    for _ in range({k % 4 + 1}):", "        x = x * 0.99 + 0.1"]
        else:
            lines.append("    z, y = y, z")
    return "\n".join([*lines, "    return x + y + z", ""])


def _generated(count: int) -> tuple[float, float]:
    """Seconds of the first call, of the values and of a gradient."""
    import spmd

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"grown_{count}.py"
        file.write_text(_text(count), encoding="utf-8")
        spec = importlib.util.spec_from_file_location(file.stem, file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found = []
        for function in (spmd.vmap(module.grown), spmd.vmap(spmd.grad(module.grown))):
            start = time.perf_counter()
            function([0.1, 0.2], [0.3, 0.4])
            found.append(time.perf_counter() - start)
    return found[0], found[1]
