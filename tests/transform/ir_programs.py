"""Small programs in IR text, with arguments, that tests of passes share.

Each entry: text, arguments of several examples, inputs, tables (rows of fields). Together they hold every terminator in
every place: swaps, nested loops with break, continue and return, callees that return from inside loops, sibling calls,
maps, guards that raise before, between and behind calls.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Sample:
    text: str
    args: list[list[Any]]
    inputs: list[Any] = field(default_factory=list)
    tables: dict[str, list[list[Any]]] = field(default_factory=dict)


RNG = np.random.default_rng(7)

FIB = Sample(
    """module @fib
func @fib(%n: int) -> (int) {
  %two: int = const [value=2]
  %c: pybool = lt %n, %two
  if %c {
    return %n
  } else {
    yield
  }
  %one: int = const [value=1]
  %a: int = sub %n, %one
  %b: int = call %a [function="fib"]
  %d: int = sub %n, %two
  %e: int = call %d [function="fib"]
  %r: int = add %b, %e
  return %r
}
""",
    [[0], [1], [7]],
)

SWAP = Sample(
    """module @main
input %w: float64[3, 3]
func @cell(%x: float64[3]) -> (float64[3]) {
  %y: float64[3] = matmul %w, %x
  %t: float64[3] = tanh %y
  return %t
}
func @main(%x: float64[3], %n: int) -> (float64[3], float64) {
  %zero: int = const [value=0]
  %a: float64[3], %b: float64[3] = loop %zero, %x, %x (%i: int, %h: float64[3], %g: float64[3]) {
    %c: pybool = lt %i, %n
    if %c {
      yield
    } else {
      break %h, %g
    }
    %u: float64[3] = call %h [function="cell"]
    %one: int = const [value=1]
    %j: int = add %i, %one
    continue %j, %g, %u
  }
  %p: float64[3] = mul %a, %b
  %s: float64 = sum %p [axes=(0,), keepdims=False]
  return %a, %s
}
""",
    [[RNG.normal(size=3), n] for n in (0, 1, 5)],
    [RNG.normal(size=(3, 3))],
)

TREE = Sample(
    """module @enc
input %w: float64[6, 3]
input %b: float64[3]
table node(left: ref<node?>, right: ref<node?>, x: float64[3]) unique
func @enc(%n: ref<node?>) -> (float64[3], float64[3]) {
  %z: pybool = isnull %n
  if %z {
    %k: float64[3] = const [value=array("float64", (3,), [0.5, 0.0, -1.0])]
    return %k, %b
  } else {
    yield
  }
  %m: ref<node> = nonnull %n [error=(cls("builtins:TypeError"), ("none",))]
  %x: float64[3] = load %m [table="node", field=2]
  %l: ref<node?> = load %m [table="node", field=0]
  %h: float64[3], %c: float64[3] = call %l [function="enc"]
  %r: ref<node?> = load %m [table="node", field=1]
  %g: float64[3], %d: float64[3] = call %r [function="enc"]
  %y: float64[3] = add %h, %x
  %y2: float64[3] = mul %y, %g
  %q: float64[6] = matmul %w, %y2
  %s1: float64[3] = slice %q [index=((0, 3, 1),)]
  %s2: float64[3] = slice %q [index=((3, 6, 1),)]
  %t: float64[3] = tanh %s1
  %u: float64[3] = mul %t, %s2
  %e: float64[3] = add %c, %d
  %v: float64[3] = mul %u, %e
  return %v, %t
}
""",
    [[0], [4], [3]],
    [RNG.normal(size=(6, 3)), RNG.normal(size=3)],
    {"node": [[1, 2, RNG.normal(size=3)], [3, -1, RNG.normal(size=3)], [-1, -1, RNG.normal(size=3)],
              [-1, 2, RNG.normal(size=3)], [-1, -1, RNG.normal(size=3)]]},
)

RETURNS = Sample(
    """module @main
func @find(%x: float64, %n: int) -> (float64) {
  %zero: int = const [value=0]
  %one: int = const [value=1]
  %limit: float64 = const [value=scalar("float64", [4.0])]
  %r: float64 = loop %zero, %x (%i: int, %y: float64) {
    %c: pybool = lt %i, %n
    if %c {
      yield
    } else {
      break %y
    }
    %j: int = add %i, %one
    %z: float64 = loop %zero, %y (%k: int, %v: float64) {
      %d: pybool = lt %k, %i
      if %d {
        yield
      } else {
        break %v
      }
      %big: bool = gt %v, %limit
      if %big {
        return %v
      } else {
        yield
      }
      %l: int = add %k, %one
      %s: float64 = mul %v, %x
      %neg: bool = lt %s, %x
      if %neg {
        continue %l, %x
      } else {
        yield
      }
      continue %l, %s
    }
    %e: float64 = add %z, %x
    continue %j, %e
  }
  %q: float64 = mul %r, %r
  return %q
}
func @main(%x: float64, %n: int) -> (float64) {
  %a: float64 = call %x, %n [function="find"]
  %b: float64 = add %a, %x
  %c: float64 = call %b, %n [function="find"]
  %d: float64 = mul %a, %c
  return %d
}
""",
    [[np.float64(x), n] for x, n in ((0.3, 0), (0.7, 3), (1.4, 4), (-1.2, 5), (2.5, 6))],
)

GUARDED = Sample(  # a result that is selected, an argument that only the arm may compute, another arm with work
    """module @sum
input %w: float64[2]
table node(left: ref<node?>, right: ref<node?>, x: float64[2]) unique
func @sum(%n: ref<node>, %s: float64) -> (float64) {
  %x: float64[2] = load %n [table="node", field=2]
  %p: float64 = matmul %x, %w
  %l: ref<node?> = load %n [table="node", field=0]
  %nl: pybool = isnull %l
  %a: float64 = if %nl {
    yield %s
  } else {
    %la: ref<node> = assured %l
    %v: float64 = call %la, %p [function="sum"]
    yield %v
  }
  %r: ref<node?> = load %n [table="node", field=1]
  %nr: pybool = isnull %r
  %b: float64 = if %nr {
    %e: float64 = exp %p
    yield %e
  } else {
    %ra: ref<node> = assured %r
    %q: float64 = mul %s, %p
    %u: float64 = call %ra, %q [function="sum"]
    %f: float64 = mul %u, %p
    yield %f
  }
  %t: float64 = sub %a, %b
  %y: float64 = tanh %t
  return %y
}
""",
    [[0, 0.5], [4, -1.0], [3, 2.0]],
    [RNG.normal(size=2)],
    {"node": [[1, 2, RNG.normal(size=2)], [3, -1, RNG.normal(size=2)], [-1, 3, RNG.normal(size=2)],
              [-1, 4, RNG.normal(size=2)], [-1, -1, RNG.normal(size=2)]]},
)

MAP = Sample(
    """module @sum
table item(x: float64[2], kids: seq<item>) unique
input %w: float64[2]
func @sum(%n: ref<item>, %scale: float64) -> (float64) {
  %kids: seq<item> = load %n [table="item", field=1]
  %count: int = length %kids
  %x: float64[2] = load %n [table="item", field=0]
  %p: float64 = matmul %x, %w
  %half: float64 = mul %scale, %p
  %done: seq<@sum> = map %count, %kids, %half [function="sum", each=("each", "same")]
  %zero: int = const [value=0]
  %one: int = const [value=1]
  %r: float64 = loop %zero, %p (%i: int, %acc: float64) {
    %c: pybool = lt %i, %count
    if %c {
      yield
    } else {
      break %acc
    }
    %kid: ref<@sum> = item %done, %i [table="@sum"]
    %v: float64 = load %kid [table="@sum", field=0]
    %next: float64 = add %acc, %v
    %j: int = add %i, %one
    continue %j, %next
  }
  %col: float64[?] = column %done [table="@sum", field=0]
  %square: float64[?] = mul %col, %col
  %t: float64 = sum %square [axes=(0,), keepdims=False]
  %u: float64 = add %t, %r
  return %u
}
""",
    [[0, np.float64(1.5)], [1, np.float64(-0.5)], [3, np.float64(0.5)]],
    [RNG.normal(size=2)],
    {"item": [[RNG.normal(size=2), (1, 2)], [RNG.normal(size=2), (3, 1)], [RNG.normal(size=2), (0, 0)],
              [RNG.normal(size=2), (0, 0)]]},
)

RAISES = Sample(
    """module @main
func @down(%n: int, %k: int) -> (int) {
  %zero: int = const [value=0]
  %one: int = const [value=1]
  %neg: pybool = lt %n, %zero
  if %neg {
    raise [error=(cls("builtins:ValueError"), ("negative",))]
  } else {
    yield
  }
  %last: pybool = eq %n, %zero
  if %last {
    return %k
  } else {
    yield
  }
  %m: int = sub %n, %one
  %r: int = call %m, %k [function="down"]
  return %r
}
func @main(%a: int, %b: int, %d: int) -> (int) {
  %x: int = call %a, %d [function="down"]
  %hundred: int = const [value=100]
  %q: int = floordiv %hundred, %d
  %y: int = call %b, %q [function="down"]
  %z: int = add %x, %y
  %bound: int = const [value=60]
  %ok: pybool = lt %z, %bound
  guard %ok [error=(cls("builtins:KeyError"), ("large",))]
  %v: int = call %b, %z [function="down"]
  %s: int = add %v, %x
  return %s
}
""",
    [[2, 3, 4], [-1, 3, 0], [2, -3, 0], [2, -3, 5], [0, 0, 1], [1, 1, 0]],
)

BRANCHES = Sample(
    """module @main
func @main(%x: float64, %y: float64) -> (float64, float64) {
  %zero: float64 = const [value=scalar("float64", [0.0])]
  %pos: bool = gt %x, %zero
  %a: float64, %b: float64 = if %pos {
    %s: float64 = sin %x
    %less: bool = lt %s, %y
    %k: float64 = if %less {
      %p: float64 = mul %s, %y
      yield %p
    } else {
      yield %x
    }
    yield %k, %s
  } else {
    %t: float64 = exp %x
    yield %t, %t
  }
  %unused: float64 = cos %a
  %c: float64 = mul %a, %b
  return %c, %a
}
""",
    [[np.float64(x), np.float64(y)] for x, y in ((0.5, 0.9), (0.5, 0.1), (-0.4, 0.2))],
)

LEAVE_EARLY = Sample(
    """module @main
func @main(%x: float64, %n: int) -> (float64) {
  %one: int = const [value=1]
  %zero: int = const [value=0]
  loop %n, %x (%i: int, %y: float64) {
    %z: float64 = sin %y
    %last: pybool = le %i, %zero
    if %last {
      return %z
    } else {
      yield
    }
    %w: float64 = add %z, %x
    %j: int = sub %i, %one
    continue %j, %w
  }
  unreachable
}
""",
    [[np.float64(0.3), 0], [np.float64(0.9), 4]],
)

SAMPLES = {
    "fib": FIB,
    "swap": SWAP,
    "tree": TREE,
    "returns": RETURNS,
    "guarded": GUARDED,
    "map": MAP,
    "raises": RAISES,
    "branches": BRANCHES,
    "leave_early": LEAVE_EARLY,
}
