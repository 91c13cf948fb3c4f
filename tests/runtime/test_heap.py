"""Freed memory stays with the process for the next run, up to a bound, and not for ever."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from spmd.runtime import heap

glibc = pytest.mark.skipif(heap._glibc() is None, reason="other allocators are left as they are")

PROGRAM = """
    import gc, json, resource
    import numpy as np
    import spmd

    W = np.full((64, 64), 0.01)

    def down(w, x, n):
        if n == 0:
            return np.sum(x)
        return down(w, np.tanh(w @ x), n - 1)

    each = spmd.vmap(down, in_axes=(None, 0, 0))
    step = spmd.value_and_grad(lambda w, x, n: np.sum(each(w, x, n)))

    def run(batch, again=1):  # some 10 KiB an example
        for _ in range(again):
            step(W, np.ones((batch, 64)), np.full(batch, 5))

    def resident():
        return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()

    def faults():
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

    def say(**found):
        print(json.dumps(found))

    run(4)
    small = resident()
"""


def measured(folder: Path, program: str, **variables: str) -> dict[str, Any]:
    """What a process of its own says."""
    file = folder / "measured.py"
    file.write_text(textwrap.dedent(PROGRAM) + textwrap.dedent(program))
    unset = {k: v for k, v in os.environ.items() if not k.startswith(("MALLOC_", "GLIBC_", "SPMD_"))}
    done = subprocess.run(
        [sys.executable, str(file)], env={**unset, **variables}, stdout=subprocess.PIPE, text=True, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@glibc
def test_a_run_uses_the_memory_of_the_run_before(tmp_path: Path) -> None:
    found = measured(tmp_path, """
        run(10_000, 3)
        before = faults()
        run(10_000, 4)
        say(kept=resident() - small, faults=(faults() - before) / 4)
    """)
    assert found["kept"] > 50 << 20
    assert found["faults"] < 100


@glibc
@pytest.mark.parametrize("variables", ({"SPMD_KEEP": "0"}, {"SPMD_KEEP": "8MiB"}, {"MALLOC_TRIM_THRESHOLD_": "131072"}))
def test_no_more_is_kept_than_the_bound(variables: dict[str, str], tmp_path: Path) -> None:
    found = measured(tmp_path, "run(10_000, 3); say(kept=resident() - small)", **variables)
    assert found["kept"] < 48 << 20


@glibc
def test_what_is_kept_can_be_released(tmp_path: Path) -> None:
    found = measured(tmp_path, """
        run(10_000, 3)
        spmd.release_memory()
        say(kept=resident() - small)
    """)
    assert found["kept"] < 30 << 20


@glibc
def test_memory_of_a_large_run_is_not_kept_for_ever(tmp_path: Path) -> None:
    found = measured(tmp_path, f"""
        run(10_000)
        kept = resident() - small
        run(4, {2 * heap.WINDOW + 1})
        say(kept=kept, left=resident() - small)
    """)
    assert found["kept"] > 50 << 20
    assert found["left"] < 30 << 20


def test_runs_of_like_size_keep_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    released: list[int] = []
    monkeypatch.setattr(heap, "release_memory", lambda: released.append(1))
    mark = heap.Watermark()
    for number in range(10 * heap.WINDOW):
        mark.ran((100 << 20) if number % heap.WINDOW == 7 else 1 << 20)
    assert not released and mark.held == 100 << 20
    for _ in range(2 * heap.WINDOW):
        mark.ran(1 << 20)
    assert released == [1] and mark.held == 1 << 20
