"""Which tools run beside ours on the TreeLSTMs, in which environment, with which command.

Invariant: a row is known by its name alone; whether it can run here is found out when it is asked for. The scripts are
those of the folder of shared material (`peers/treelstm`); nothing of them is imported.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.process import Failure

REPOSITORY = Path(__file__).resolve().parents[1]
SLOW_TREES = 100


@dataclass(frozen=True)
class Config:
    """One table: what is measured, the same for all its rows."""

    task: str
    mode: str
    batch: int
    threads: int
    trees: int
    epochs: int
    emb: int = 0

    def arguments(self, trees: int | None = None, epochs: int | None = None) -> list[str]:
        """The command line that every workload understands."""
        given = {
            "task": self.task,
            "mode": self.mode,
            "batch": self.batch,
            "trees": trees or self.trees,
            "epochs": epochs or self.epochs,
            "emb": self.emb if self.task == "sst" else 0,
        }
        return [text for name, value in given.items() for text in (f"--{name}", str(value))]


@dataclass(frozen=True)
class Peer:
    """One row. `slow` peers run the first minibatches of sst only, at least `SLOW_TREES` trees."""

    name: str
    environment: str
    script: str
    options: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ("sst", "ast")
    one_thread: bool = False
    slow: bool = False
    variables: tuple[tuple[str, str], ...] = field(default=())

    def trees(self, config: Config) -> int:
        """How many trees it runs: whole minibatches, so that its loss is one that the others pass through.

        All of ast's: the node types are those of the trees read, so fewer trees would be another model.
        """
        if not self.slow or config.task == "ast":
            return config.trees
        return min(config.trees, -(-SLOW_TREES // config.batch) * config.batch)

    def epochs(self, config: Config) -> int:
        return min(config.epochs, 3) if self.slow else config.epochs


PEERS = (
    Peer("torch-eager (per node)", "main", "torch_peer.py", ("--impl", "eager"), slow=True),
    Peer("torch-level", "main", "torch_peer.py", ("--impl", "level")),
    Peer("torch-fused", "main", "torch_peer.py", ("--impl", "fused"), tasks=("sst",)),
    Peer("torch-compile", "main", "torch_peer.py", ("--impl", "compile")),
    Peer("jax-hand", "main", "jax_peer.py", ("--impl", "hand"), tasks=("sst",)),
    Peer("jax-scan", "main", "jax_peer.py", ("--impl", "scan"), tasks=("sst",)),
    Peer("numpy+numba by hand", "main", "numba_peer.py"),
    Peer("dgl", "dgl", "dgl_peer.py"),
    Peer("dynet-autobatch", "dynet", "dynet_peer.py", ("--style", "split"), one_thread=True),
    Peer("dynet-autobatch, fused", "dynet", "dynet_peer.py", ("--style", "fused"), one_thread=True),
    Peer(
        "dynet-autobatch, wheel",
        "dynetwhl",
        "dynet_peer.py",
        ("--style", "split"),
        one_thread=True,
        variables=(("DYNET_NAME", "-wheel"),),
    ),
)


def ours(config: Config, shared: Path) -> list[str]:
    """The command of this project's own row."""
    script = REPOSITORY / "bench" / "cases" / "treelstm_spmd.py"
    return [sys.executable, str(script), *config.arguments(), "--sst", str(shared / "data" / "sst")]


def command(peer: Peer, config: Config, shared: Path, venvs: Path | None) -> list[str] | Failure:
    """The command of a peer's row, or why it has none here."""
    if config.task not in peer.tasks:
        return Failure(f"has no {config.task} program")
    if peer.one_thread and config.threads != 1:
        return Failure("runs on one thread only")
    if venvs is None:
        return Failure("no environments: give --venvs DIR")
    script = shared / "peers" / "treelstm" / peer.script
    if not script.is_file():
        return Failure(f"no {script}")
    python = venvs / peer.environment / "bin" / "python"
    if not python.exists():
        return Failure(f"no environment {peer.environment!r} in {venvs}")
    arguments = config.arguments(peer.trees(config), peer.epochs(config))
    return [str(python), str(script), *peer.options, *arguments, "--threads", str(config.threads)]


def variables(peer: Peer, shared: Path, venvs: Path) -> dict[str, str]:
    """What a peer's process needs: the data, the library of a DyNet built from source; it writes nothing beside it."""
    return {
        "SST_DIR": str(shared / "data" / "sst"),
        "LD_LIBRARY_PATH": str(venvs / peer.environment / "lib"),
        "PYTHONDONTWRITEBYTECODE": "1",
        **dict(peer.variables),
    }


def chosen(peers: Sequence[Peer], only: str) -> list[Peer]:
    """The peers whose name holds one of the comma-separated words of `only`; all for an empty one."""
    words = [word.strip() for word in only.split(",") if word.strip()]
    return [peer for peer in peers if not words or any(word in peer.name for word in words)]
