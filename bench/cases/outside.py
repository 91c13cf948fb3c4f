"""One program from outside (tests/programs): the plain loop over a batch, and the batch.

A child process of bench/run.py; prints one line of JSON. Invariant: both run on equal examples, made afresh where the
program writes; packing and the first call are timed apart. A refusal is a figure of its own, with its first line.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[0:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "programs")]

import numpy as np  # noqa: E402
from outside_programs import OUTSIDE  # noqa: E402

import batching  # noqa: E402
import spmd  # noqa: E402

ENOUGH = 0.5
MOST = 30


def seconds(run: Callable[[], Any]) -> float:
    """The median of as many runs as fit into half a second, one at least."""
    taken: list[float] = []
    while not taken or sum(taken) < ENOUGH and len(taken) < MOST:
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def looped(program: Any, shared: tuple[Any, ...], batch: int) -> float:
    """Seconds of the plain loop. Examples are made again for each run, since programs may write to them."""
    taken: list[float] = []
    while not taken or sum(taken) < ENOUGH and len(taken) < MOST:
        examples = program.examples(0, batch)
        start = time.perf_counter()
        for own in examples:
            program.fn(*shared, *own)
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def figures(name: str, batch: int, full: bool, target: str) -> dict[str, Any]:
    program = OUTSIDE[name].program(full)
    shared = program.shared_arguments()
    loop_s = looped(program, shared, batch)
    start = time.perf_counter()
    packed = [batching.pack(list(column)) for column in zip(*program.examples(0, batch), strict=True)]
    pack_s = time.perf_counter() - start
    batched = spmd.vmap(program.fn, in_axes=program.in_axes, target=target)
    start = time.perf_counter()
    try:
        batched(*shared, *(column[0:1] for column in packed))
    except spmd.SpmdError as error:
        return {"loop_s": loop_s, "refused": str(error).splitlines()[0]}
    first_s = time.perf_counter() - start
    call_s = seconds(lambda: batched(*shared, *packed))
    return {"loop_s": loop_s, "pack_s": pack_s, "first_s": first_s, "call_s": call_s, "refused": ""}


def main() -> None:
    command = argparse.ArgumentParser()
    command.add_argument("name")
    command.add_argument("--batch", type=int, required=True)
    command.add_argument("--full", action="store_true")
    command.add_argument("--target", default="auto")
    options = command.parse_args()
    with np.errstate(all="ignore"):
        print(json.dumps(figures(options.name, options.batch, options.full, options.target)))


if __name__ == "__main__":
    main()
