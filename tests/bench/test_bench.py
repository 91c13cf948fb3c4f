"""The benchmark program: its options, rows that cannot run, and what it concludes from figures. Measures nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
sys.path[0:0] = [str(ROOT), str(ROOT / "bench" / "cases")]

import treelstm_data as data  # noqa: E402

from bench import peers, process, report, run, treelstm  # noqa: E402

CONFIG = peers.Config("sst", "train", 25, 1, 1024, 6)


def options(*words: str) -> Any:
    return run.parser().parse_args(["treelstm", *words])


def figures(**changes: Any) -> dict[str, Any]:
    base = {"trees_per_s": 100.0, "cpu_trees_per_s": 100.0, "first_epoch_s": 1.0, "peak_mib": 50.0, "trees": 1024}
    return {**base, "loss_first": 35.0, "loss_last": 30.0, **changes}


def own(**changes: Any) -> dict[str, Any]:
    more = {"first_call_s": 1.0, "import_s": 0.1, "pack_s": 0.01, "mflop_per_tree": 37.0, "loss_after": {"100": 49.0}}
    return figures(trees_per_s=1500.0, cpu_trees_per_s=1600.0, **{**more, **changes})


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[list[str]]]:
    """Replaces the processes: ours and the peers give figures at once. The commands that were asked for."""
    asked: list[list[str]] = []

    def measure(command: list[str], *rest: Any) -> dict[str, Any]:
        asked.append(command)
        if command[1].endswith("gemm.py"):
            return {"kernel": "none", "threads": 1, "gflops": {"square": 200.0}, "shapes": {"square": "1x1x1"}}
        return own() if command[1].endswith("treelstm_spmd.py") else figures()

    monkeypatch.setattr(treelstm, "measure", measure)
    yield asked


def test_by_default_both_tasks_modes_and_sizes_are_measured_on_one_thread() -> None:
    tables = treelstm.configs(options())
    assert [(c.task, c.mode, c.batch) for c in tables] == [
        (task, mode, batch) for task in ("sst", "ast") for mode in ("train", "infer") for batch in (25, 256)
    ]
    assert {(c.threads, c.trees, c.epochs, c.emb) for c in tables} == {(1, 1024, 6, 0)}


def test_options_narrow_the_tables() -> None:
    (table,) = treelstm.configs(options("--task", "ast", "--mode", "infer", "--batch", "8", "--threads", "2"))
    assert (table.task, table.mode, table.batch, table.threads) == ("ast", "infer", 8, 2)


@pytest.mark.parametrize(
    "words", [["--threads", "0"], ["--batch", "25,x"], ["--mode", "test"], ["--epochs", "1"], ["--task", "mnist"]]
)
def test_options_that_make_no_sense_end_the_program(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        options(*words)
    assert stopped.value.code == 2
    assert words[0] in capsys.readouterr().err


def test_a_case_has_to_be_named() -> None:
    with pytest.raises(SystemExit):
        run.parser().parse_args([])


def test_without_environments_every_peer_is_not_run(children: list[list[str]], tmp_path: Path) -> None:
    lines: list[str] = []
    asked = options("--peers", "--task", "sst", "--mode", "train", "--batch", "25", "--shared", str(tmp_path))
    found = treelstm.run(asked, lines.append)
    rows = found["tables"][0]["rows"]
    assert [row["name"] for row in rows] == ["ours", *(peer.name for peer in peers.PEERS)]
    assert rows[0]["reason"] == "" and all("--venvs" in row["reason"] for row in rows[1:])
    assert sum("not run: no environments" in line for line in lines) == len(peers.PEERS)
    assert not found["failed"]


def test_a_missing_environment_names_itself(tmp_path: Path) -> None:
    scripts = tmp_path / "peers" / "treelstm"
    scripts.mkdir(parents=True)
    for peer in peers.PEERS:
        (scripts / peer.script).touch()
        answer = peers.command(peer, CONFIG, tmp_path, tmp_path / "venvs")
        assert isinstance(answer, process.Failure)
        assert peer.environment in answer.reason


def test_peers_without_a_program_or_threads_say_so(tmp_path: Path) -> None:
    by_name = {peer.name: peer for peer in peers.PEERS}
    ast_table = peers.Config("ast", "train", 25, 1, 1024, 6)
    two_threads = peers.Config("sst", "train", 25, 2, 1024, 6)
    assert peers.command(by_name["jax-hand"], ast_table, tmp_path, tmp_path) == process.Failure("has no ast program")
    answer = peers.command(by_name["dynet-autobatch"], two_threads, tmp_path, tmp_path)
    assert answer == process.Failure("runs on one thread only")


def test_rows_are_interleaved_and_a_failed_one_is_not_tried_again(
    children: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "command", lambda peer, *rest: ["python", peer.script])
    asked = options(
        *("--peers", "--only", "eager,dgl", "--venvs", str(tmp_path), "--task", "sst"),
        *("--mode", "train", "--batch", "25", "--rounds", "2"),
    )
    treelstm.run(asked, lambda line: None)
    names = [Path(command[1]).name for command in children]
    assert names == ["gemm.py", *["treelstm_spmd.py", "torch_peer.py", "dgl_peer.py"] * 2]


def test_a_peer_that_sees_few_trees_is_held_against_the_loss_at_that_point() -> None:
    slow = next(peer for peer in peers.PEERS if peer.slow)
    assert slow.trees(CONFIG) == 100
    assert slow.trees(peers.Config("sst", "train", 256, 1, 1024, 6)) == 256
    assert slow.trees(peers.Config("ast", "train", 25, 1, 1024, 6)) == 1024
    rows = [
        {"name": "ours", "reason": "", **own()},
        {"name": slow.name, "reason": "", **figures(trees=100, loss_first=49.0, loss_last=1.0)},
    ]
    treelstm.compare(rows, [slow], CONFIG)
    assert rows[1]["part"] and rows[1]["loss_differs"] is False and rows[1]["cpu_ratio"] == 16.0


@pytest.mark.parametrize("wrong", [35.01, 34.999, float("nan")])
def test_a_row_with_another_loss_is_flagged(wrong: float) -> None:
    peer = next(peer for peer in peers.PEERS if not peer.slow)
    for key in ("loss_first", "loss_last"):
        rows = [
            {"name": "ours", "reason": "", **own()},
            {"name": peer.name, "reason": "", **figures(**{key: wrong})},
        ]
        treelstm.compare(rows, [peer], CONFIG)
        assert rows[1]["loss_differs"]
        assert "LOSS DIFFERS" in report.line(rows[1])


def test_when_ours_fails_the_peers_still_have_their_rows_and_the_program_ends_with_1(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(treelstm, "measure", lambda *rest: process.Failure("SomeError: not today"))
    file = tmp_path / "figures.json"
    words = ["treelstm", "--task", "sst", "--mode", "train", "--batch", "25", "--json", str(file)]
    assert run.main(words) == 1
    assert "not run: SomeError: not today" in capsys.readouterr().out
    assert json.loads(file.read_text())["tables"][0]["rows"][0]["reason"] == "SomeError: not today"


def test_a_child_has_no_blas_overrides_and_the_stated_threads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    monkeypatch.setenv("OPENBLAS_L2_SIZE", "512")
    code = (
        "import json, os; print('noise'); print(json.dumps({'threads': os.environ['OPENBLAS_NUM_THREADS'],"
        "'unset': [n for n in os.environ if n in ('OPENBLAS_CORETYPE', 'OPENBLAS_L2_SIZE')]}))"
    )
    found = process.measure([sys.executable, "-c", code], process.environment(2), tmp_path, 60)
    assert not isinstance(found, process.Failure)
    assert found["threads"] == "2" and found["unset"] == [] and found["peak_mib"] > 1


@pytest.mark.parametrize(
    ("code", "seconds", "reason"),
    [
        ("raise ValueError('of another kind')", 60.0, "ValueError: of another kind"),
        ("import sys; sys.exit(3)", 60.0, "exit status 3"),
        ("print('hello')", 60.0, "printed no figures"),
        ("import time; time.sleep(60)", 0.2, "more than 0 s"),
    ],
)
def test_a_child_without_figures_gives_a_reason(code: str, seconds: float, reason: str, tmp_path: Path) -> None:
    found = process.measure([sys.executable, "-c", code], process.environment(1), tmp_path, seconds)
    assert found == process.Failure(reason)


def test_a_child_that_is_not_there_gives_a_reason(tmp_path: Path) -> None:
    found = process.measure([str(tmp_path / "python")], process.environment(1), tmp_path, 1)
    assert isinstance(found, process.Failure) and str(tmp_path) in found.reason


def test_phrases_are_read_with_words_that_hold_a_no_break_space() -> None:
    vocabulary: dict[str, int] = {}
    tree = data.parse_phrase("(3 (2 It) (4 (2 1\u00a01/2) (1 it)))\n", vocabulary)
    assert vocabulary == {"it": 0, "1\u00a01/2": 1}
    assert tree.label == 3 and tree.left is not None and (tree.left.label, tree.left.word) == (2, 0)
    assert tree.right is not None and tree.right.right is not None and tree.right.right.word == 0
    assert sum(1 for _ in data.nodes(tree)) == 5


def test_library_functions_keep_to_their_sizes_and_classes() -> None:
    found, kinds = data.load_ast(40)
    assert len(found) == 40
    for tree, label in found:
        every = list(data.nodes(tree))
        assert 10 <= len(every) <= 300 and 0 <= label < data.AST_CLASSES
        assert all(0 <= node.kind < kinds for node in every)


def test_trees_and_parameters_are_those_of_the_peers() -> None:
    script = SHARED / "peers" / "treelstm" / "common.py"
    if not script.is_file():
        pytest.skip("no folder of shared material")
    code = (
        "import common, json; t, v = common.load_sst(30); a, k = common.load_ast(30);"
        "p, q = common.sst_params(v), common.ast_params(k);"
        "print(json.dumps([v, sum(x.n for x in t), k, sum(x.n for x in a), [int(x.y) for x in a],"
        "{n: float(x.sum()) for n, x in p.items()}, {n: float(x.sum()) for n, x in q.items()}]))"
    )
    env = process.environment(1, {"PYTHONDONTWRITEBYTECODE": "1"})
    text = subprocess.run(
        [sys.executable, "-c", code], cwd=script.parent, env=env, capture_output=True, text=True, check=True
    ).stdout
    words, sst_nodes, kinds, ast_nodes, labels, sst_sums, ast_sums = json.loads(text)
    trees, my_words = data.load_sst(SHARED / "data" / "sst", 30)
    functions, my_kinds = data.load_ast(30)
    assert (my_words, sum(1 for t in trees for _ in data.nodes(t))) == (words, sst_nodes)
    assert (my_kinds, sum(1 for t, _ in functions for _ in data.nodes(t))) == (kinds, ast_nodes)
    assert [label for _, label in functions] == labels
    assert {n: float(x.sum()) for n, x in data.sst_parameters(words).items()} == sst_sums
    assert {n: float(x.sum()) for n, x in data.ast_parameters(kinds).items()} == ast_sums
