"""Figures of this project beside other tools, and beside the plain loop.

    python bench/run.py treelstm                                  ours alone
    python bench/run.py treelstm --peers --venvs DIR              each peer in the environment that it needs
    python bench/run.py loops                                     loops over numbers and lists
    python bench/run.py treelstm --task sst --mode train --batch 25 --threads 2 --json FILE
    python bench/run.py programs                                  programs from outside, each beside its loop
    python bench/run.py compile                                   how long compiling takes

bench/README.md says what is measured and how to read it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path[0:0] = [str(Path(__file__).resolve().parents[1])]

from bench import compile_time, loops, programs, treelstm  # noqa: E402

CASES = {"treelstm": treelstm, "compile": compile_time, "programs": programs, "loops": loops}


def parser() -> argparse.ArgumentParser:
    """One subcommand a case."""
    top = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = top.add_subparsers(dest="case", required=True, metavar="CASE")
    for name, case in CASES.items():
        case.add_arguments(commands.add_parser(name, help=(case.__doc__ or "").splitlines()[0]))
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one case; 1 if this project's own row could not run."""
    options = parser().parse_args(arguments)
    figures = CASES[options.case].run(options)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf8")
    return 1 if figures["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
