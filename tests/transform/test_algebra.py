"""Formulas become the primitives that compute them, and nothing else does."""

from __future__ import annotations

import numpy as np
import pytest

import spmd
from spmd.ir.parser import parse
from spmd.ir.printer import module_text
from spmd.ir.verify import verify
from spmd.ops.table import type_rule
from spmd.transform.algebra import algebra

HEAD = "module @f\nfunc @f(%x: float32[3]) -> (float32[3]) {\n"
ONE = '  %c: float32 = const [value=scalar("float32", [1.0])]\n  %one: float32[3] = broadcast %c [shape=(3,)]\n'
SPELLINGS = {
    "one over one plus exp of minus x": "  %n: float32[3] = neg %x\n  %e: float32[3] = exp %n\n"
    "  %s: float32[3] = add %one, %e\n  %y: float32[3] = div %one, %s\n",
    "exp first": "  %n: float32[3] = neg %x\n  %e: float32[3] = exp %n\n"
    "  %s: float32[3] = add %e, %one\n  %y: float32[3] = div %one, %s\n",
    "of plus x": "  %e: float32[3] = exp %x\n  %s: float32[3] = add %one, %e\n  %y: float32[3] = div %one, %s\n",
    "reciprocal": "  %n: float32[3] = neg %x\n  %e: float32[3] = exp %n\n"
    "  %s: float32[3] = add %one, %e\n  %y: float32[3] = reciprocal %s\n",
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_each_spelling_of_the_logistic_function_becomes_sigmoid(name: str) -> None:
    module = algebra(parse(HEAD + ONE + SPELLINGS[name] + "  return %y\n}\n"))
    verify(module, type_rule)
    text = module_text(module)
    assert "sigmoid" in text and "exp" not in text and "div" not in text


def test_two_over_the_same_is_left_alone() -> None:
    two = ONE.replace("[1.0]", "[2.0]")
    module = algebra(parse(HEAD + two + SPELLINGS["exp first"] + "  return %y\n}\n"))
    assert "sigmoid" not in module_text(module)


def logistic(x):
    return 1.0 / (1.0 + np.exp(-x))


def test_values_and_derivatives_are_the_formulas() -> None:
    xs = np.array([0.0, 1.5, -3.0, 40.0, -40.0, 800.0, -800.0, np.inf, -np.inf])
    with np.errstate(over="ignore"):
        want = np.array([logistic(x) for x in xs])
    assert np.allclose(spmd.vmap(logistic)(xs), want, rtol=1e-14, atol=1e-300)
    slopes = spmd.vmap(spmd.grad(logistic))(xs)
    assert np.allclose(slopes, want * (1.0 - want), rtol=1e-9, atol=1e-300)


def test_a_python_float_still_overflows() -> None:
    import math

    def plain(x):
        return 1.0 / (1.0 + math.exp(-x))

    with pytest.raises(OverflowError):
        spmd.vmap(plain)([0.0, -1000.0])
