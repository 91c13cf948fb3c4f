"""Work on equal sizes goes; sizes that differ still raise, and gradients stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from one_example import run_module

from spmd.ir.core import Module
from spmd.ir.parser import parse
from spmd.ir.printer import module_text
from spmd.ir.verify import verify
from spmd.ops.table import PRIMITIVES, type_rule
from spmd.transform.sizes import trim_sizes

CASES = {
    "an array broadcasts to its own sizes by doing nothing": """module @f
func @f(%x: float64[?, 3]) -> (float64[?, 3]) {
  %y: float64[?, 3] = exp %x
  %d: int64[2] = shape_of %x
  %e: int64[2] = shape_of %y
  %b: int64[2] = broadcast_dims %d, %e
  %z: float64[?, 3] = broadcast_to %x, %b [shape=(None, 3)]
  %v: float64[?, 3] = broadcast_to %y, %b [shape=(None, 3)]
  %w: float64[?, 3] = mul %z, %v
  return %w
}
""",
    "sizes of different arrays may differ": """module @f
func @f(%x: float64[?], %y: float64[?]) -> (float64[?]) {
  %d: int64[1] = shape_of %x
  %e: int64[1] = shape_of %y
  %b: int64[1] = broadcast_dims %d, %e
  %z: float64[?] = broadcast_to %x, %b [shape=(None,)]
  %v: float64[?] = broadcast_to %y, %b [shape=(None,)]
  %w: float64[?] = mul %z, %v
  return %w
}
""",
    "a row and a column give a table that needs no check": """module @f
func @f(%x: float64[?], %y: float64[?, 1]) -> (float64[?, ?]) {
  %d: int64[1] = shape_of %x
  %e: int64[2] = shape_of %y
  %b: int64[2] = broadcast_dims %d, %e
  %z: float64[?, ?] = broadcast_to %x, %b [shape=(None, None)]
  %v: float64[?, ?] = broadcast_to %y, %b [shape=(None, None)]
  %w: float64[?, ?] = add %z, %v
  return %w
}
""",
    "a transposed matrix has its sizes swapped": """module @f
func @f(%x: float64[?, ?]) -> (float64[?, ?]) {
  %t: float64[?, ?] = transpose %x [perm=(1, 0)]
  %u: float64[?, ?] = matmul %x, %t
  %v: float64[?, ?] = matmul %x, %x
  %w: float64[?, ?] = matmul %t, %u
  return %w
}
""",
    "columns of one run are equally long": """module @f
table node(a: float64, b: float64) unique
func @f(%r: seq<node>) -> (float64[?], int) {
  %x: float64[?] = column %r [table="node", field=0]
  %y: float64[?] = column %r [table="node", field=1]
  %d: int64[1] = shape_of %x
  %e: int64[1] = shape_of %y
  %b: int64[1] = broadcast_dims %d, %e
  %z: float64[?] = broadcast_to %x, %b [shape=(None,)]
  %v: float64[?] = broadcast_to %y, %b [shape=(None,)]
  %w: float64[?] = mul %z, %v
  %n: int = dim %w [axis=0]
  return %w, %n
}
""",
    "zeros as long as an array cannot fail": """module @f
func @f(%x: float64[?]) -> (float64[?]) {
  %d: int64[1] = shape_of %x
  %o: float64 = const [value=scalar("float64", [1.0])]
  %z: float64[?] = fill_to %o, %d [shape=(None,)]
  %y: float64[?] = add %x, %z
  %s: int64[1] = shape_of %y
  %q: float64[?] = reshape_to %y, %s [shape=(None,)]
  return %q
}
""",
    "an adjoint's sum is by the axes that were widened": """module @f
func @f(%x: float64[?, 3], %y: float64[?, 1]) -> (float64[?, 3], float64[?, 1], float64[?]) {
  %d: int64[2] = shape_of %x
  %e: int64[2] = shape_of %y
  %a: float64[?, 3] = unbroadcast %x, %d [shape=(None, 3), extra=0]
  %b: float64[?, 1] = unbroadcast %x, %e [shape=(None, 1), extra=0]
  %t: float64[?, 3] = broadcast_to %x, %d [shape=(None, 3)]
  %c: float64[3, ?] = transpose %t [perm=(1, 0)]
  %s: int64[2] = shape_of %c
  %p: int64[1] = slice %s [index=((1, 2, 1),)]
  %g: float64[?] = unbroadcast %c, %p [shape=(None,), extra=1]
  return %a, %b, %g
}
""",
    "arms that agree give sizes, the rounds of a loop do not": """module @f
func @f(%x: float64[?], %p: pybool) -> (float64[?]) {
  %y: float64[?] = if %p {
    %a: float64[?] = exp %x
    yield %a
  } else {
    %b: float64[?] = neg %x
    yield %b
  }
  %zero: int = const [value=0]
  %z: float64[?] = loop %zero, %y (%i: int, %h: float64[?]) {
    %two: int = const [value=2]
    %c: pybool = lt %i, %two
    if %c {
      yield
    } else {
      break %h
    }
    %one: int = const [value=1]
    %j: int = add %i, %one
    %k: float64[?] = concat %h, %x [axis=0]
    continue %j, %k
  }
  %d: int64[1] = shape_of %x
  %e: int64[1] = shape_of %y
  %g: int64[1] = shape_of %z
  %m: int64[1] = broadcast_dims %d, %e
  %q: float64[?] = broadcast_to %y, %m [shape=(None,)]
  %n: int64[1] = broadcast_dims %g, %e
  %r: float64[?] = broadcast_to %z, %n [shape=(None,)]
  %s: float64[?] = broadcast_to %q, %n [shape=(None,)]
  %t: float64[?] = add %r, %s
  return %t
}
""",
}


def trimmed(text: str) -> Module:
    module = trim_sizes(parse(text))
    verify(module, type_rule)
    return module


def outcome(module: Module, args: list[Any], rows: Any = None) -> Any:
    """The results, or what was raised."""
    try:
        return run_module(module, PRIMITIVES, args, [], rows or {})
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize("case", CASES)
def test_text_after_sizes(case: str, golden: Any) -> None:
    golden("sizes", case, module_text(trimmed(CASES[case])))


@pytest.mark.parametrize("case", CASES)
def test_a_second_time_changes_nothing_more(case: str) -> None:
    once = trimmed(CASES[case])
    assert module_text(trim_sizes(once)) == module_text(once)


RNG = np.random.default_rng(3)
NODES = {"node": [[1.5, -2.0], [0.25, 4.0], [3.0, 0.5]]}
ARGUMENTS: dict[str, list[list[Any]]] = {
    "an array broadcasts to its own sizes by doing nothing": [[RNG.normal(size=(n, 3))] for n in (0, 1, 4)],
    "sizes of different arrays may differ": [
        [RNG.normal(size=m), RNG.normal(size=n)] for m, n in ((3, 3), (1, 4), (4, 1), (3, 2), (0, 1), (2, 3))
    ],
    "a row and a column give a table that needs no check": [
        [RNG.normal(size=m), RNG.normal(size=(n, 1))] for m, n in ((3, 3), (1, 4), (0, 2), (2, 0))
    ],
    "a transposed matrix has its sizes swapped": [[RNG.normal(size=s)] for s in ((2, 2), (2, 3), (1, 4), (0, 2))],
    "columns of one run are equally long": [[(0, 3)], [(1, 2)], [(0, 0)]],
    "zeros as long as an array cannot fail": [[RNG.normal(size=n)] for n in (0, 1, 3)],
    "an adjoint's sum is by the axes that were widened": [
        [RNG.normal(size=(n, 3)), RNG.normal(size=(n, 1))] for n in (0, 1, 2, 5)
    ],
    "arms that agree give sizes, the rounds of a loop do not": [
        [RNG.normal(size=n), p] for n in (0, 1, 2) for p in (True, False)
    ],
}


@pytest.mark.parametrize("case", CASES)
def test_values_and_exceptions_stay(case: str) -> None:
    before, after = parse(CASES[case]), trimmed(CASES[case])
    for args in ARGUMENTS[case]:
        expected, got = outcome(before, args, NODES), outcome(after, args, NODES)
        if isinstance(expected, str):
            assert got == expected
        else:
            for a, b in zip(expected, got, strict=True):
                np.testing.assert_array_equal(a, b)


def test_a_product_whose_inner_sizes_differ_still_raises_for_its_example() -> None:
    import spmd

    def f(x: Any, y: Any) -> Any:
        return np.sum((x * y) @ y)

    run = spmd.vmap(f)
    sizes = [(2, 2), (3, 3), (1, 4)]
    xs, ys = ([RNG.normal(size=pair[k]) for pair in sizes] for k in (0, 1))
    np.testing.assert_allclose(run(xs, ys), [f(x, y) for x, y in zip(xs, ys)])
    xs.append(RNG.normal(size=3))
    ys.append(RNG.normal(size=2))
    with pytest.raises(ValueError, match="could not be broadcast"):
        run(xs, ys)
