"""The command ``spmd``: what a person asks of the compiler from a shell.

Invariant: exit status 0 for success, 1 for a failure, 2 for wrong usage; what was asked for goes to stdout, complaints
to stderr, and nothing is coloured in a pipe. Must not hold any knowledge that the parts it prints do not.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Callable, Sequence
from importlib import metadata
from importlib.resources import files

from spmd.config import VARIABLES, options, read_environment
from spmd.errors import CODES, SpmdError
from spmd.version import __version__

LIBRARIES = ("numpy", "gast", "llvmlite", "rich", "threadpoolctl")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns the exit status."""
    parser = _parser()
    try:
        given = parser.parse_args(arguments)
    except SystemExit as end:  # argparse has printed its usage or the version
        return end.code if isinstance(end.code, int) else 2
    if given.command is None:
        parser.print_usage(sys.stderr)
        return 2
    run: Callable[[argparse.Namespace], int] = given.run
    try:
        read_environment()
    except ValueError as error:
        print(f"spmd: {error}", file=sys.stderr)
        return 1
    try:
        return run(given)
    except SpmdError as error:
        print(error.render(), file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader of the pipe has seen enough
        sys.stderr.close()
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="spmd", description="Batches and differentiates programs for one example.")
    parser.add_argument("--version", action="version", version=f"spmd {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    about = commands.add_parser("help", help="explain an error code (E07), 'language', 'env' or 'errors' (all codes)")
    about.add_argument("topic", nargs="?", help="an error code, language, env, or errors")
    about.set_defaults(run=_help)
    doctor = commands.add_parser("doctor", help="show Python, libraries, BLAS and processor as spmd sees them")
    doctor.add_argument("--json", action="store_true", help="print JSON")
    doctor.set_defaults(run=_doctor)
    return parser


def guide(page: str) -> str:
    """The text of a page of the guide. Raises FileNotFoundError if there is none."""
    return files("spmd").joinpath("guide", f"{page}.md").read_text(encoding="utf-8")


def error_section(code: str) -> str | None:
    """The section of the guide on one error code, or None."""
    for section in guide("errors").split("\n## ")[1:]:
        if section.split(maxsplit=1)[0] == code.upper():
            return section.rstrip() + "\n"
    return None


def variables_text() -> str:
    """The table of SPMD_* variables."""
    width = max(len(variable.name) for variable in VARIABLES)
    return "\n".join(f"{variable.name:<{width}}  {variable.about}" for variable in VARIABLES)


def _help(given: argparse.Namespace) -> int:
    topic = given.topic
    if topic is None or topic == "errors":
        print("\n".join(f"{code}  {error.__name__:<22}{title}" for code, (error, title) in CODES.items()))
        if topic is None:
            print("\nspmd help CODE explains one; spmd help language says what a program may say;")
            print("spmd help env lists the variables.")
        return 0
    if topic == "env":
        print(variables_text())
        return 0
    section = guide(topic) if topic == "language" else error_section(topic)
    if section is None:
        topics = ", ".join(["language", "env", "errors", *CODES])
        print(f"spmd: there is no topic {topic!r}; there are {topics}", file=sys.stderr)
        return 2
    print(section, end="")
    return 0


def _doctor(given: argparse.Namespace) -> int:
    found = diagnose()
    if given.json:
        print(json.dumps(found, indent=2))
    else:
        width = max(map(len, found))
        print("\n".join(f"{name:<{width}}  {value}" for name, value in found.items()))
    return 1 if any(value.startswith("MISSING") for value in found.values()) else 0


def diagnose() -> dict[str, str]:
    """What `spmd doctor` prints: name -> finding; a finding that starts with MISSING is a failure."""
    found = {"spmd": __version__, "python": f"{platform.python_implementation()} {platform.python_version()}"}
    found["system"] = f"{platform.system()} {platform.release()}, {platform.machine()}"
    for library in LIBRARIES:
        try:
            found[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            found[library] = "MISSING: install it with pip"
    found["blas"] = _guarded(_blas)
    found["processor"] = _guarded(_processor)
    found["budget"] = f"{options().budget:,} bytes"
    return found


def _guarded(find: Callable[[], str]) -> str:
    """A finding, or why there is none: doctor is run when something is broken, and must get to its end."""
    try:
        return find()
    except Exception as error:
        return f"MISSING: {type(error).__name__}: {error}"


def _blas() -> str:
    import numpy  # noqa: F401 (loads its BLAS, which threadpoolctl then sees)
    from threadpoolctl import threadpool_info

    pools = [pool for pool in threadpool_info() if pool.get("user_api") == "blas"]
    shown = [
        f"{pool['internal_api']} {pool.get('version') or '?'}, kernel {pool.get('architecture') or '?'},"
        f" {pool['num_threads']} threads"
        for pool in pools
    ]
    return "; ".join(shown) or "none that threadpoolctl knows"


def _processor() -> str:
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    known = ("avx512f", "avx512vl", "avx512dq", "avx2", "fma", "avx", "sse4.2", "neon", "sve")
    shown = [name for name in known if features.get(name)]
    forced = options().width
    return f"{llvm.get_host_cpu_name()}: {' '.join(shown) or 'no known vector features'}" + (
        f"; width forced to {forced} bits" if forced else ""
    )
