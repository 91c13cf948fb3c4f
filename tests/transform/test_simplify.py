"""Simplification folds, shares, drops and selects, and knows where it must not."""

from __future__ import annotations

from typing import Any

import pytest

from spmd.ir.parser import parse
from spmd.ir.printer import module_text
from spmd.ir.verify import verify
from spmd.ops.table import type_rule
from spmd.transform.simplify import simplify

CASES = {
    "constants fold": """
  %a: int = const [value=2]
  %b: int = const [value=3]
  %c: int = mul %a, %b
  %d: float = cast %c [dtype="float64", python=True]
  %e: float = add %d, %x
  return %e""",
    "what raises or warns on constants is left": """
  %a: int = const [value=9223372036854775807]
  %b: int = add %a, %a
  %z: float = const [value=0.0]
  %c: float = cast %b [dtype="float64", python=True]
  %d: float = div %c, %z
  return %d""",
    "equal work is done once": """
  %a: float = mul %x, %y
  %b: float = mul %x, %y
  %c: float = sub %a, %b
  return %c""",
    "equal work of an arm is not used outside it": """
  %r: float = if %p {
    %a: float = mul %x, %y
    yield %a
  } else {
    yield %x
  }
  %b: float = mul %x, %y
  %c: float = sub %r, %b
  return %c""",
    "zeros of both signs are two constants": """
  %a: float = const [value=0.0]
  %b: float = const [value=-0.0]
  %c: float = add %x, %a
  %d: float = add %y, %b
  %e: float = mul %c, %d
  return %e""",
    "what cannot raise and is not used goes": """
  %a: float = mul %x, %y
  %b: float = div %x, %y
  %c: float = mul %a, %a
  return %x""",
    "what a decided arm yields is known by its last name": """
  %t: pybool = const [value=True]
  %r: float = loop %x (%u: float) {
    %a: float = mul %u, %y
    %s: float = if %t {
      %b: float = mul %u, %y
      yield %b
    } else {
      yield %u
    }
    if %p {
      break %s
    } else {
      continue %s
    }
    unreachable
  }
  return %r""",
    "a decided branch is its arm": """
  %t: pybool = const [value=True]
  %r: float = if %t {
    %a: float = mul %x, %y
    yield %a
  } else {
    yield %x
  }
  return %r""",
    "a decided branch that leaves drops what follows": """
  %t: pybool = const [value=False]
  if %t {
    yield
  } else {
    return %y
  }
  %a: float = mul %x, %y
  return %a""",
    "a decided branch with results may leave": """
  %t: pybool = const [value=True]
  %r: float = if %t {
    return %x
  } else {
    yield %y
  }
  %a: float = mul %r, %y
  return %a""",
    "cheap arms are selected": """
  %r: float, %q: pybool = if %p {
    %a: float = neg %x
    yield %a, %p
  } else {
    %c: pybool = lt %x, %y
    yield %x, %c
  }
  %s: float = if %q {
    yield %r
  } else {
    yield %y
  }
  return %s""",
    "products and quotients stay behind their branch": """
  %r: float = if %p {
    %a: float = mul %x, %y
    yield %a
  } else {
    yield %x
  }
  return %r""",
    "a loop carries only what changes": """
  %zero: int = const [value=0]
  %one: int = const [value=1]
  %n: int = const [value=3]
  %r: float, %s: float = loop %zero, %x, %y (%i: int, %a: float, %b: float) {
    %more: pybool = lt %i, %n
    if %more {
      yield
    } else {
      break %a, %b
    }
    %c: float = mul %a, %b
    %j: int = add %i, %one
    continue %j, %c, %b
  }
  %t: float = sub %r, %s
  return %t""",
    "an element at a constant place is a slice": """
  %v: float64[2, 3] = const [value=array("float64", (2, 3), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])]
  %f: float64 = cast %x [dtype="float64", python=False]
  %g: float64[2, 3] = broadcast %f [shape=(2, 3)]
  %w: float64[2, 3] = mul %v, %g
  %one: int = const [value=1]
  %last: int = const [value=-1]
  %out: int = const [value=2]
  %row: float64[3] = index %w, %one
  %a: float64 = index %w, %one, %last
  %b: float64 = index %w, %out, %one
  %c: float64 = index %row, %out
  %d: float64 = add %a, %b
  %e: float64 = add %d, %c
  %r: float = cast %e [dtype="float64", python=True]
  return %r""",
    "a check is made once": """
  guard %p [error=(cls("builtins:ValueError"), ("no",))]
  guard %p [error=(cls("builtins:ValueError"), ("no",))]
  guard %p [error=(cls("builtins:KeyError"), ("no",))]
  return %x""",
}


def module(body: str) -> str:
    return f"module @f\nfunc @f(%x: float, %y: float, %p: pybool) -> (float) {{{body}\n}}\n"


@pytest.mark.parametrize("case", CASES)
def test_text_after_simplify(case: str, golden: Any) -> None:
    before = parse(module(CASES[case]))
    verify(before, type_rule)
    after = simplify(before)
    verify(after, type_rule)
    golden("simplify", case, module_text(after))
