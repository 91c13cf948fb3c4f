"""The treelstm comparison: every row of every table, round by round, and what is concluded from the rounds.

Invariant: rows are interleaved (ours, each peer, and again), each in a new process, so a slow minute of the machine
hits all of them; a figure is the median of its rounds. A row that cannot run says why and is not tried again.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench import peers, report
from bench.peers import PEERS, REPOSITORY, Config, Peer
from bench.process import Failure, environment, measure

OURS = "ours"
LOSS_TOLERANCE = 1e-5
PRINTED_LOSS = 1e-5
"""Losses are printed with five digits, so two equal ones may differ by one in the last."""
SECONDS = 900.0
MEDIANS = ("trees_per_s", "cpu_trees_per_s", "first_epoch_s", "first_call_s", "import_s", "pack_s", "peak_mib")
SAME_IN_ALL_ROUNDS = ("trees", "loss_first", "loss_last", "loss_after", "mflop_per_tree")
TARGETS = (("torch-eager (per node)", 12.0), ("dynet-autobatch", 1.0))
"""What SST training on one thread has to reach: this many times the peer's rate."""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """The options of `run.py treelstm`."""
    command.add_argument("--peers", action="store_true", help="run the other tools too")
    command.add_argument("--venvs", type=Path, metavar="DIR", help="folder of their environments: main dgl dynet ...")
    command.add_argument(
        "--only", default="", metavar="WORDS", help="of the peers, those whose name holds one of these"
    )
    command.add_argument("--shared", type=Path, default=REPOSITORY.parent / "shared", help="folder of data and peers")
    command.add_argument("--threads", type=positive, default=1, metavar="N")
    command.add_argument("--task", choices=["sst", "ast", "both"], default="both")
    command.add_argument("--batch", type=positives, default=[25, 256], metavar="N,N")
    command.add_argument("--mode", type=modes, default=["train", "infer"], metavar="train,infer")
    command.add_argument("--trees", type=positive, default=1024, metavar="N")
    command.add_argument("--epochs", type=several, default=6, metavar="N", help="2 or more: the first is not timed")
    command.add_argument("--emb", type=int, choices=[0, 1], default=0, help="1: word embeddings are trained (sst)")
    command.add_argument("--rounds", type=positive, default=3, metavar="N", help="processes of each row, interleaved")
    command.add_argument("--json", type=Path, metavar="FILE", help="all figures, round by round")


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return number


def several(text: str) -> int:
    if positive(text) < 2:
        raise argparse.ArgumentTypeError("the first epoch is not timed: 2 or more")
    return positive(text)


def positives(text: str) -> list[int]:
    return [positive(part) for part in text.split(",")]


def modes(text: str) -> list[str]:
    parts = text.split(",")
    if not set(parts) <= {"train", "infer"}:
        raise argparse.ArgumentTypeError(f"{text} is not train, infer or train,infer")
    return parts


def configs(options: argparse.Namespace) -> list[Config]:
    """The tables that were asked for."""
    tasks = ["sst", "ast"] if options.task == "both" else [options.task]
    return [
        Config(task, mode, batch, options.threads, options.trees, options.epochs, options.emb if task == "sst" else 0)
        for task in tasks
        for mode in options.mode
        for batch in options.batch
    ]


def run(options: argparse.Namespace, say: Callable[[str], None] = print) -> dict[str, Any]:
    """Measures and prints everything; the figures as plain data. `failed` says whether a row of ours has none."""
    shared, venvs = options.shared.resolve(), options.venvs.resolve() if options.venvs else None
    others = peers.chosen(PEERS, options.only) if options.peers else []
    gemm = gemm_rates(options.threads)
    for line in report.machine(gemm, options.threads):
        say(line)
    tables = []
    for config in configs(options):
        table = run_table(config, others, options.rounds, shared, venvs)
        table["targets"] = reached(table) if config.task == "sst" and config.mode == "train" else []
        tables.append(table)
        for line in report.table(table, gemm):
            say(line)
    failed = any(row["reason"] for table in tables for row in table["rows"] if row["name"] == OURS)
    return {"threads": options.threads, "gemm": gemm, "tables": tables, "failed": failed}


def gemm_rates(threads: int) -> dict[str, Any]:
    """GFLOP/s of NumPy's matrix product at the shapes that occur, in a process like those that are measured."""
    script = REPOSITORY / "bench" / "cases" / "gemm.py"
    found = measure([sys.executable, str(script)], environment(threads), REPOSITORY, SECONDS)
    return {"reason": found.reason} if isinstance(found, Failure) else found


def run_table(config: Config, others: list[Peer], times: int, shared: Path, venvs: Path | None) -> dict[str, Any]:
    """All rounds of one table."""
    rounds: dict[str, list[dict[str, Any]]] = {OURS: [], **{peer.name: [] for peer in others}}
    reasons: dict[str, str] = {}
    for number in range(1, times + 1):
        for peer in [None, *others]:
            name = peer.name if peer else OURS
            if name in reasons:
                continue
            progress(f"{config.task} {config.mode} {config.batch}: round {number} of {times}, {name}")
            found = run_peer(peer, config, shared, venvs) if peer else run_ours(config, shared)
            if isinstance(found, Failure):
                reasons[name] = found.reason
            else:
                rounds[name].append(found)
    progress("")
    rows = [summary(name, runs, reasons.get(name, "")) for name, runs in rounds.items()]
    compare(rows, others, config)
    return {"config": asdict(config), "rows": rows, "rounds": rounds}


def progress(text: str) -> None:
    """One line that is written over, on a terminal only."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()


def run_ours(config: Config, shared: Path) -> dict[str, Any] | Failure:
    """A cold process: nothing compiled is kept between processes."""
    extra = {"PYTHONPATH": str(REPOSITORY)}
    return measure(peers.ours(config, shared), environment(config.threads, extra), REPOSITORY, SECONDS)


def run_peer(peer: Peer, config: Config, shared: Path, venvs: Path | None) -> dict[str, Any] | Failure:
    words = peers.command(peer, config, shared, venvs)
    if isinstance(words, Failure) or venvs is None:
        return words if isinstance(words, Failure) else Failure("no environments")
    extra = peers.variables(peer, shared, venvs)
    return measure(words, environment(config.threads, extra), shared / "peers" / "treelstm", SECONDS)


def summary(name: str, runs: list[dict[str, Any]], reason: str) -> dict[str, Any]:
    """Medians over the rounds of one row; a row that failed once has none."""
    if reason or not runs:
        return {"name": name, "reason": reason or "not run"}
    row: dict[str, Any] = {"name": name, "reason": ""}
    row.update({key: statistics.median(run[key] for run in runs) for key in MEDIANS if key in runs[0]})
    row.update({key: runs[0][key] for key in SAME_IN_ALL_ROUNDS if key in runs[0]})
    return row


def compare(rows: list[dict[str, Any]], others: list[Peer], config: Config) -> None:
    """Adds to each row ours / it, and `loss_differs`: None where there is nothing to compare it with.

    A peer that ran the first minibatches only is held against what ours had lost by then in its first epoch.
    """
    mine, by_name = rows[0], {peer.name: peer for peer in others}
    for row in rows:
        peer = by_name.get(row["name"])
        row["part"] = peer is not None and (peer.trees(config), peer.epochs(config)) != (config.trees, config.epochs)
        row["ratio"] = row["cpu_ratio"] = row["loss_differs"] = None
        if row["reason"] or mine["reason"]:
            continue
        row["ratio"] = mine["trees_per_s"] / row["trees_per_s"]
        row["cpu_ratio"] = mine["cpu_trees_per_s"] / row["cpu_trees_per_s"]
        expected = mine["loss_after"].get(str(row["trees"])) if row["part"] else mine["loss_first"]
        if expected is not None:
            last = not row["part"] and differs(row["loss_last"], mine["loss_last"])
            row["loss_differs"] = last or differs(row["loss_first"], expected)


def differs(one: float, other: float) -> bool:
    """Whether two printed losses are of different computations; a NaN equals nothing."""
    return not abs(one - other) <= LOSS_TOLERANCE * abs(other) + PRINTED_LOSS


def reached(table: dict[str, Any]) -> list[dict[str, Any]]:
    """How ours stands to what SST training on one thread has to reach, by CPU time: other load does not count."""
    if table["config"]["threads"] != 1:
        return []
    ratios = {row["name"]: row["cpu_ratio"] for row in table["rows"] if row["cpu_ratio"]}
    return [
        {"peer": name, "wanted": factor, "ratio": ratios[name], "met": ratios[name] >= factor}
        for name, factor in TARGETS
        if name in ratios
    ]
