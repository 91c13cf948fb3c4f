"""Runs one measurement in a process of its own and reads the line of JSON that it prints.

Invariant: a child sees the stated number of threads and no OPENBLAS_CORETYPE or OPENBLAS_L2_SIZE (they choose slower
kernels than the machine has); a child that fails, or is missing, gives `Failure` with a reason, never an exception.
The parent imports no NumPy: a child's peak memory as the kernel reports it is at least its parent's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

UNSET = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
REASON_LENGTH = 90


@dataclass(frozen=True)
class Failure:
    """Why there is no figure."""

    reason: str


def environment(threads: int, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a child: this one, with the threads set and the BLAS kernel left to the library."""
    kept = {name: value for name, value in os.environ.items() if name not in UNSET}
    kept.update({name: str(threads) for name in THREAD_VARIABLES})
    kept.update(extra or {})
    return kept


def measure(command: Sequence[str], env: Mapping[str, str], folder: Path, seconds: float) -> dict[str, Any] | Failure:
    """Runs `command` in `folder` for at most `seconds`; its last line of JSON, with `peak_mib` of the process added."""
    if not os.access(command[0], os.X_OK):
        return Failure(f"no {command[0]}")
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as complaints:
        process = subprocess.Popen(command, stdout=output, stderr=complaints, env=dict(env), cwd=folder)
        late = threading.Timer(seconds, process.kill)
        late.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            raise
        finally:
            expired = not late.is_alive()
            late.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        complaints.seek(0)
        if expired:
            return Failure(f"more than {seconds:.0f} s")
        if process.returncode != 0:
            return Failure(last_words(complaints.read()) or f"exit status {process.returncode}")
        lines = [line for line in output if line.startswith("{")]
    if not lines:
        return Failure("printed no figures")
    return {**json.loads(lines[-1]), "peak_mib": round(usage.ru_maxrss / peak_unit(), 1)}


def peak_unit() -> int:
    """How many of the units of ru_maxrss make a MiB: it counts KiB, on macOS bytes."""
    return 1 << 20 if sys.platform == "darwin" else 1 << 10


def last_words(text: str) -> str:
    """The last line of an error output that says something, cut to one line of a table."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:REASON_LENGTH] if lines else ""
