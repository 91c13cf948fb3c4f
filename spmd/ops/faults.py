"""Rows that fail: finding the exception that Python or NumPy raises for one row.

The invariant: the exception of a row is made by the primitive's own one-example rule on that row's operands, so type
and text are those of the Python that runs. Operands are copied when the fault is found, because buffers are reused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spmd.ir.types import Num
from spmd.ops.primitive import Faults, Site

Rule = Callable[..., Any]


def row_count(site: Site, operands: Sequence[Any]) -> int:
    """The number of rows: that of the first varying operand."""
    return next((len(x) for x, varying in zip(operands, site.varying) if varying), 1)


def blame(faults: Faults, bad: Any, site: Site, rule: Rule, operands: Sequence[Any]) -> None:
    """Report the rows where `bad` holds ([K], or one bool for all rows)."""
    if not np.any(bad):
        return
    bad = np.broadcast_to(bad, (row_count(site, operands),))
    rows = np.flatnonzero(bad)
    if not rows.size:
        return
    saved = [x[rows] if varying else x for x, varying in zip(operands, site.varying)]

    def make(row: int) -> BaseException:
        at = int(np.searchsorted(rows, row))
        values = [
            one_example(x[at] if varying else x, type_) for x, varying, type_ in zip(saved, site.varying, site.types)
        ]
        return raised(rule, values, site.attrs)

    faults.report(bad, make)


def one_example(value: Any, type_: Num) -> Any:
    """A row's operand as the one-example rule takes it."""
    return np.asarray(value).item() if type_.python else value


def raised(rule: Rule, values: Sequence[Any], attrs: dict[str, Any]) -> BaseException:
    """The exception that the rule raises on these values."""
    try:
        with np.errstate(all="ignore"):
            rule(*values, **attrs)
    except Exception as error:
        return error.with_traceback(None)
    return OverflowError("the result is out of range")


def checked(site: Site, rule: Rule, compute: Callable[..., tuple[Any, Any]]) -> Callable[..., Any]:
    """The rows rule of an operation that can fail: `compute` gives (result, bad rows)."""

    def run(*operands: Any, faults: Faults) -> Any:
        result, bad = compute(*operands)
        blame(faults, bad, site, rule, operands)
        return result

    return run
