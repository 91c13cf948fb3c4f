"""Values that must be of some kind, or their example raises: `demand`.

The invariant: the value is handed on unchanged, and so is its derivative; what is demanded is named by the attribute
`what` and said here alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spmd.ir.build import Builder
from spmd.ir.core import Op, Value
from spmd.ir.types import Num, Type
from spmd.ops.calculus import lift
from spmd.ops.faults import blame
from spmd.ops.inference import numbers
from spmd.ops.primitive import Faults, Primitive, Site


@dataclass(frozen=True)
class Demand:
    """Which elements are right, and what an example raises that has another one."""

    holds: Callable[[Any], Any]
    error: type[Exception]
    text: str


DEMANDS: dict[str, Demand] = {
    "quantile": Demand(lambda x: (x >= 0) & (x <= 1), ValueError, "Quantiles must be in the range [0, 1]"),
    "percentile": Demand(lambda x: (x >= 0) & (x <= 1), ValueError, "Percentiles must be in the range [0, 100]"),
    "weights": Demand(lambda x: x != 0, ZeroDivisionError, "Weights sum to zero, can't be normalized"),
    "edges": Demand(
        lambda x: np.logical_not(x < 0), ValueError, "`bins` must increase monotonically, when an array"
    ),
    "points": Demand(lambda x: x == 0, ValueError, "fp and xp are not of the same length."),
    "some": Demand(lambda x: x > 0, ValueError, "array of sample points is empty"),
    "repeats": Demand(lambda x: x != 0, ValueError, "operands could not be broadcast together"),
    "counts": Demand(lambda x: x >= 0, ValueError, "repeats may not contain negative values."),
    "tolerances": Demand(lambda x: x >= 0, ValueError, "tolerances must be non-negative"),
}


def _infer(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    (x,) = numbers("demand", types, 1)
    if attrs["what"] not in DEMANDS:
        raise TypeError(f"'demand' knows nothing of {attrs['what']!r}")
    return x


def _demand(x: Any, what: str) -> Any:
    rule = DEMANDS[what]
    if not np.all(rule.holds(x)):
        raise rule.error(rule.text)
    return x


def _rows(site: Site) -> Callable[..., Any]:
    holds = DEMANDS[site.attrs["what"]].holds

    def run(x: Any, faults: Faults) -> Any:
        blame(faults, ~holds(x).reshape(len(x), int(np.prod(x.shape[1:]))).all(1), site, _demand, (x,))
        return x

    return run


def _adjoint(b: Builder, op: Op, ct: Value) -> Sequence[Value | None]:
    return (lift(b, ct),)


DEMANDING: tuple[Primitive, ...] = (
    Primitive(
        "demand", _infer, _demand, _rows, _adjoint, lambda types, attrs: True,
        samples=tuple(
            ((x,), {"what": what}) for what in DEMANDS
            for x in (np.array([0.25, 1.0]), np.array([0.5, 0.0]), np.array([-1.0, np.nan]), 0.5, -0.5, 0.0)
        ),
    ),
)
