"""Writes, for a program of the zoo, the function of one example that turns its result into one number.

The invariant: the functions stand in a real file, since their source is read like any user's. Each float leaf of the
result enters with a weight of its own and once squared, so that no two leaves can be mistaken for each other.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from oracles import is_float, leaves
from program import Program


def terms(result: Any) -> list[str]:
    """One term per float leaf of a result that is called `r`."""
    made = []
    for k, (path, leaf) in enumerate(leaves(result)):
        if is_float(leaf):
            weight = round(0.7 + 0.45 * k, 2)
            whole = f"np.sum(r{path})" if np.ndim(leaf) else f"r{path}"
            square = f"np.sum(r{path} * r{path})" if np.ndim(leaf) else f"r{path} * r{path}"
            made.append(f"{weight} * {whole} + 0.5 * {square}")
    return made


def text(program: Program) -> str:
    """Source of the loss of a program; empty where its result holds no float."""
    result = program.fn(*program.shared_arguments(), *program.examples(0, 1)[0])
    parts = terms(result)
    if not parts:
        return ""
    names = ", ".join(f"a{k}" for k in range(program.shared + program.own))
    return f"def loss_of_{program.name}({names}):\n    r = {program.name}({names})\n    return {' + '.join(parts)}\n"


def write(programs: list[Program], folder: Path) -> dict[str, Callable[..., Any]]:
    """A module with the losses of all programs, loaded; name of the program -> its loss."""
    heads, bodies = ["import numpy as np"], []
    for program in programs:
        with np.errstate(all="ignore"):
            body = text(program)
        if body:
            heads.append(f"from {program.fn.__module__} import {program.name}")
            bodies.append(body)
    file = folder / "zoo_losses.py"
    file.write_text("\n".join(heads) + "\n\n\n" + "\n\n".join(bodies), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("zoo_losses", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return {p.name: getattr(module, f"loss_of_{p.name}") for p in programs if hasattr(module, f"loss_of_{p.name}")}
