"""Uniform work is done once, before the entry."""

from __future__ import annotations

from typing import Any

import pytest

from spmd.ir.core import Module
from spmd.ir.parser import parse
from spmd.ir.printer import module_text
from spmd.ir.verify import verify
from spmd.ops.table import type_rule
from spmd.transform.hoist import hoist

CASES = {
    "work on inputs moves, once": """module @f
input %w: float64[2, 3]
func @g(%x: float64[2]) -> (float64[3]) {
  %t: float64[3, 2] = transpose %w [perm=(1, 0)]
  %y: float64[3] = matmul %t, %x
  return %y
}
func @f(%x: float64[2]) -> (float64[3]) {
  %t: float64[3, 2] = transpose %w [perm=(1, 0)]
  %a: float64[3] = matmul %t, %x
  %b: float64[3] = call %x [function="g"]
  %c: float64[3] = add %a, %b
  return %c
}
""",
    "what can raise stays": """module @f
input %a: int
input %b: int
func @f(%x: int) -> (int) {
  %q: int = floordiv %a, %b
  %r: int = add %q, %x
  return %r
}
""",
    "broadcasts and constants are repeated": """module @f
input %a: float64
func @f(%x: float64[3]) -> (float64[3]) {
  %two: float64 = const [value=scalar("float64", [2.0])]
  %b: float64 = mul %a, %two
  %c: float64[3] = broadcast %b [shape=(3,)]
  %y: float64[3] = mul %x, %c
  %d: float64[3] = exp %c
  %z: float64[3] = add %y, %d
  return %z
}
""",
    "reads of tables stay": """module @f
input %n: ref<node>
table node(x: float64) unique
func @f(%x: float64) -> (float64) {
  %a: float64 = load %n [table="node", field=0]
  %b: float64 = exp %a
  %y: float64 = mul %x, %b
  return %y
}
""",
}


def hoisted(text: str) -> Module:
    module = hoist(parse(text))
    verify(module, type_rule)
    return module


@pytest.mark.parametrize("case", CASES)
def test_text_after_hoist(case: str, golden: Any) -> None:
    golden("hoist", case, module_text(hoisted(CASES[case])))


@pytest.mark.parametrize("case", CASES)
def test_hoisting_twice_changes_nothing_more(case: str) -> None:
    once = hoisted(CASES[case])
    assert module_text(hoist(once)) == module_text(once)
