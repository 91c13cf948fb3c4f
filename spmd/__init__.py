"""Batches and differentiates Python programs that were written for one example.

The names below are the public ones. They are loaded on first use, so that ``import spmd`` stays quick and pulls in
neither the code generator nor the terminal library. This file must not import any part of the compiler at load time.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from spmd.version import __version__

if TYPE_CHECKING:
    from spmd import learn as learn
    from spmd.api import grad as grad
    from spmd.api import value_and_grad as value_and_grad
    from spmd.api import vjp as vjp
    from spmd.api import vmap as vmap
    from spmd.config import configure as configure
    from spmd.errors import SpmdError as SpmdError
    from spmd.explanation import explain as explain
    from spmd.runtime.heap import release_memory as release_memory
    from spmd.streams import Stream as Stream
    from spmd.streams import rngs as rngs

_HOMES = {
    "vmap": "spmd.api",
    "grad": "spmd.api",
    "value_and_grad": "spmd.api",
    "vjp": "spmd.api",
    "explain": "spmd.explanation",
    "configure": "spmd.config",
    "release_memory": "spmd.runtime.heap",
    "SpmdError": "spmd.errors",
    "Stream": "spmd.streams",
    "rngs": "spmd.streams",
}
_SUBPACKAGES = ("learn",)

# Every error class is printed by tracebacks as ``spmd.<name>`` and is found here under that name.
_ERRORS = (
    "BatchError",
    "GradientError",
    "InternalError",
    "MemoryBudgetError",
    "OptionError",
    "ShapeMismatch",
    "SourceUnavailable",
    "StructureError",
    "TypeMismatch",
    "UnknownName",
    "UnsupportedAttribute",
    "UnsupportedFunction",
    "UnsupportedSyntax",
    "UnsupportedType",
)

__all__ = ["__version__", *_HOMES, *_SUBPACKAGES, *_ERRORS]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    """Loads a public name from its home the first time that it is asked for."""
    if name in _SUBPACKAGES:
        return importlib.import_module(f"spmd.{name}")
    home = "spmd.errors" if name in _ERRORS else _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'spmd' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
