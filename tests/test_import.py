"""`import spmd` is light, and its public names are found on first use."""

from __future__ import annotations

import subprocess
import sys

import pytest

import spmd
from spmd.errors import ERRORS

HEAVY = ("numba", "llvmlite", "optree", "rich", "hypothesis", "pytest", "gast", "threadpoolctl")


def loaded_after(statement: str) -> set[str]:
    program = f"import sys; {statement}; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


@pytest.mark.parametrize("statement", ["import spmd", "import spmd; spmd.SpmdError", "import spmd; spmd.learn"])
def test_import_loads_no_heavy_library(statement: str) -> None:
    assert not loaded_after(statement) & set(HEAVY)


def test_import_of_batching_knows_nothing_of_spmd() -> None:
    assert not {name for name in loaded_after("import batching") if name.split(".")[0] == "spmd"}


def test_public_names_are_listed_and_found() -> None:
    assert {"vmap", "grad", "value_and_grad", "vjp", "SpmdError", "learn"} <= set(dir(spmd))
    assert spmd.learn.__name__ == "spmd.learn"
    assert spmd.__version__.count(".") == 2


def test_every_error_class_is_public_under_its_printed_name() -> None:
    for error in ERRORS:
        assert error.__module__ == "spmd"
        assert getattr(spmd, error.__name__) is error


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = spmd.nonsense
