"""The wider library of NumPy, math and scipy.special through the rules: value, dtype and kind as the functions give."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from spmd.ops.primitive import Refusal
from spmd.ops.table import METHODS, NUMPY, rule_of
from tests.ops.calls_of_arrays import LONG, SCANS, SORTS, STATISTICS
from tests.ops.calls_of_matrices import LAYOUTS, LINALG, PRODUCTS
from tests.ops.calls_of_numbers import ELEMENTWISE, MATH, scipy_calls
from tests.ops.test_numpy_calls import A, I, K, M, V, both_ways, check, through_rule

CALLS = [*SCANS, *SORTS, *STATISTICS, *PRODUCTS, *LINALG, *LAYOUTS, *ELEMENTWISE, *MATH]
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("case", "hide"), both_ways(CALLS, lambda case: case[1]))
def test_calls_give_value_and_kind_of_the_original(case: int, hide: bool) -> None:
    function, args, kwargs = CALLS[case]
    rule = NUMPY[function]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if hide:
            try:
                through_rule(rule, args, kwargs, True)
            except Refusal:
                return
            except Exception:  # noqa: BLE001 (what the function itself may raise)
                pass
        check(function, rule, args, kwargs, hide)


METHOD_CALLS: list[tuple[str, Any, list[Any], dict[str, Any]]] = [
    *[(name, x, [], o) for name in ("cumsum", "cumprod", "argsort") for x in (A, I) for o in ({}, {"axis": K(0)})],
    ("searchsorted", np.sort(LONG), [V], {}), ("diagonal", A, [], {}), ("trace", A, [], {}), ("nonzero", A > 0, [], {}),
    ("repeat", V, [2], {}), ("repeat", A, [2], {"axis": K(1)}), ("compress", V, [M], {}), ("conj", A, [], {}),
    ("clip", V, [], {"min": K(0.0)}), ("clip", A, [], {"max": 1.0}),
    ("std", A, [], {"ddof": K(1)}), ("argmax", A, [], {"axis": K(1)}),
    ("any", A > 0, [], {"axis": K(0)}), ("prod", A, [], {"axis": K(0), "keepdims": K(True)}),
    ("searchsorted", V, [V], {"side": K("right")}),
]


@pytest.mark.parametrize(("case", "hide"), both_ways(METHOD_CALLS, lambda case: case[1:2]))
def test_methods_give_value_and_kind_of_the_original(case: int, hide: bool) -> None:
    name, owner, args, kwargs = METHOD_CALLS[case]
    check(lambda x, *a, **k: getattr(x, name)(*a, **k), METHODS[name], [owner, *args], kwargs, hide)


# ------------------------------------------------------------------------------------------------------------ SciPy
SCIPY = scipy_calls()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(not SCIPY, reason="SciPy is not there")
def test_scipys_functions_are_scipys() -> None:
    for function, args, kwargs in SCIPY:
        rule = rule_of(function)
        assert rule is not None
        for hide in (False, True):
            check(function, rule, args, kwargs, hide)


def test_scipy_is_not_imported() -> None:
    assert rule_of(len) is None and rule_of(np.fft.fft) is None
