"""Tables of what was measured, as lines of text.

Invariant: reads figures, computes none but shares and units. A row without a figure says `not run` and why.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

HEAD = (
    f"{'':26}{'trees/s':>9}{'by CPU':>9}{'ours/it':>9}{'by CPU':>9}"
    f"{'loss, first epoch':>19}{'last':>11}{'1st epoch s':>12}{'peak MiB':>10}"
)


def machine(gemm: dict[str, Any], threads: int) -> Iterator[str]:
    """What the matrix product reaches here, in this run."""
    if gemm.get("reason"):
        yield f"GEMM rate: not run ({gemm['reason']})"
        return
    yield f"BLAS: {gemm['kernel']}; {threads} thread(s)"
    for name, rate in gemm["gflops"].items():
        yield f"  {name:28}{gemm['shapes'][name]:>16}{rate:>8.0f} GFLOP/s"


def table(found: dict[str, Any], gemm: dict[str, Any]) -> Iterator[str]:
    """One table: what was run, its rows, and what belongs to ours alone."""
    config = found["config"]
    trained = ", embeddings trained" if config["emb"] else ""
    yield ""
    yield (
        f"{config['task']} {config['mode']}, minibatches of {config['batch']}, {config['threads']} thread(s), "
        f"{config['trees']} trees{trained}"
    )
    yield HEAD
    for row in found["rows"]:
        yield line(row)
    mine = found["rows"][0]
    if not mine["reason"]:
        yield own(mine, gemm)
    for target in found["targets"]:
        verdict = "met" if target["met"] else "NOT MET"
        yield f"  {target['ratio']:.2f} x {target['peer']} by CPU time; {target['wanted']:.0f} x is wanted: {verdict}"


def line(row: dict[str, Any]) -> str:
    """One row."""
    if row["reason"]:
        return f"{row['name']:26}not run: {row['reason']}"
    ratios = "".join(f"{row[key]:9.2f}" if row[key] else f"{'-':>9}" for key in ("ratio", "cpu_ratio"))
    flag = "  LOSS DIFFERS" if row["loss_differs"] else ""
    part = f"  (first {row['trees']} trees)" if row["part"] else ""
    return (
        f"{row['name']:26}{row['trees_per_s']:9.0f}{row['cpu_trees_per_s']:9.0f}{ratios}"
        f"{row['loss_first']:19.5f}{row['loss_last']:11.5f}{row['first_epoch_s']:12.2f}{row['peak_mib']:10.0f}{part}{flag}"
    )


def own(row: dict[str, Any], gemm: dict[str, Any]) -> str:
    """Packing, first call and the share of the matrix product's rate, of this project's row."""
    packing = 1e6 * row["pack_s"] / row["trees"]
    start = f"first call {row['first_call_s']:.2f} s cold, import {row['import_s']:.2f} s"
    text = f"  ours: {start}, packing {packing:.1f} us/tree"
    work = row["mflop_per_tree"] * row["cpu_trees_per_s"] / 1e3
    if gemm.get("reason"):
        return text
    square = gemm["gflops"]["square"]
    return (
        f"{text}, {row['mflop_per_tree']:.2f} MFLOP/tree = {work:.0f} GFLOP/s, {work / square:.0%} of the square GEMM"
    )
