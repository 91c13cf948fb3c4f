"""Loops over elements in IR text: those that may be split and those that must not be."""

from __future__ import annotations

import numpy as np
from ir_programs import Sample

RNG = np.random.default_rng(11)

ITEMS = """table item(x: float64, kids: seq<item>, next: ref<item?>) unique
"""
TABLE = {
    "item": [
        [np.float64(0.5), (1, 3), -1],
        [np.float64(-0.7), (4, 2), 2],
        [np.float64(1.2), (0, 0), -1],
        [np.float64(0.3), (6, 1), 5],
        [np.float64(0.9), (0, 0), -1],
        [np.float64(-1.1), (0, 0), 6],
        [np.float64(0.2), (0, 0), -1],
    ]
}
EVERY = [[k] for k in range(7)]

CHILD_SUM = Sample(
    f"""module @sum
{ITEMS}
func @sum(%n: ref<item>) -> (float64) {{
  %kids: seq<item> = load %n [table="item", field=1]
  %x: float64 = load %n [table="item", field=0]
  %count: int = length %kids
  %limit: int64 = cast %count [dtype="int64", python=False]
  %zero: int64 = const [value=scalar("int64", [0])]
  %s: float64 = loop %zero, %x (%i: int64, %acc: float64) {{
    %c: bool = lt %i, %limit
    if %c {{
      %kid: ref<item> = item %kids, %i [table="item"]
      %v: float64 = call %kid [function="sum"]
      %t: float64 = sin %v
      %next: float64 = add %acc, %t
      %one: int64 = const [value=scalar("int64", [1])]
      %j: int64 = add %i, %one
      continue %j, %next
    }} else {{
      break %acc
    }}
    unreachable
  }}
  return %s
}}
""",
    EVERY,
    tables=TABLE,
)

TWO_CALLS = Sample(
    f"""module @sum
{ITEMS}
func @sum(%n: ref<item>, %d: int) -> (float64, int) {{
  %kids: seq<item> = load %n [table="item", field=1]
  %x: float64 = load %n [table="item", field=0]
  %zero: int = const [value=0]
  %one: int = const [value=1]
  %ok: pybool = lt %d, %one
  %s: float64 = loop %zero, %x (%i: int, %acc: float64) {{
    %count: int = length %kids
    %c: pybool = lt %i, %count
    if %c {{
      yield
    }} else {{
      break %acc
    }}
    %kid: ref<item> = item %kids, %i [table="item"]
    %e: int = add %d, %i
    %v: float64, %p: int = call %kid, %e [function="sum"]
    %f: int = floordiv %p, %d
    %w: float64, %q: int = call %kid, %f [function="sum"]
    %t: float64 = mul %v, %w
    %next: float64 = add %acc, %t
    %j: int = add %i, %one
    continue %j, %next
  }}
  %k: int = add %d, %one
  return %s, %k
}}
""",
    [[k, d] for k in range(4) for d in (0, 1, 3)],
    tables=TABLE,
)

CONDITIONAL = Sample(
    f"""module @sum
{ITEMS}
func @sum(%n: ref<item>) -> (float64) {{
  %kids: seq<item> = load %n [table="item", field=1]
  %x: float64 = load %n [table="item", field=0]
  %count: int = length %kids
  %zero: int = const [value=0]
  %one: int = const [value=1]
  %s: float64 = loop %zero, %x (%i: int, %acc: float64) {{
    %c: pybool = lt %i, %count
    if %c {{
      yield
    }} else {{
      break %acc
    }}
    %kid: ref<item> = item %kids, %i [table="item"]
    %other: ref<item?> = load %kid [table="item", field=2]
    %none: pybool = isnull %other
    %v: float64 = if %none {{
      %y: float64 = load %kid [table="item", field=0]
      yield %y
    }} else {{
      %m: ref<item> = nonnull %other [error=(cls("builtins:TypeError"), ("none",))]
      %r: float64 = call %m [function="sum"]
      yield %r
    }}
    %next: float64 = add %acc, %v
    %j: int = add %i, %one
    continue %j, %next
  }}
  return %s
}}
""",
    EVERY,
    tables=TABLE,
)

STOPS = Sample(
    f"""module @sum
{ITEMS}
func @sum(%n: ref<item>) -> (float64) {{
  %kids: seq<item> = load %n [table="item", field=1]
  %x: float64 = load %n [table="item", field=0]
  %count: int = length %kids
  %zero: int = const [value=0]
  %one: int = const [value=1]
  %s: float64 = loop %zero, %x (%i: int, %acc: float64) {{
    %c: pybool = lt %i, %count
    if %c {{
      yield
    }} else {{
      break %acc
    }}
    %kid: ref<item> = item %kids, %i [table="item"]
    %v: float64 = call %kid [function="sum"]
    %next: float64 = add %acc, %v
    %big: bool = gt %next, %x
    if %big {{
      break %next
    }} else {{
      yield
    }}
    %j: int = add %i, %one
    continue %j, %next
  }}
  return %s
}}
""",
    EVERY,
    tables=TABLE,
)

CARRIED = Sample(
    f"""module @sum
{ITEMS}
func @sum(%n: ref<item>, %a: float64) -> (float64) {{
  %kids: seq<item> = load %n [table="item", field=1]
  %x: float64 = load %n [table="item", field=0]
  %start: float64 = add %x, %a
  %count: int = length %kids
  %zero: int = const [value=0]
  %one: int = const [value=1]
  %s: float64 = loop %zero, %start (%i: int, %acc: float64) {{
    %c: pybool = lt %i, %count
    if %c {{
      yield
    }} else {{
      break %acc
    }}
    %kid: ref<item> = item %kids, %i [table="item"]
    %v: float64 = call %kid, %acc [function="sum"]
    %j: int = add %i, %one
    continue %j, %v
  }}
  return %s
}}
""",
    [[k, np.float64(0.25)] for k in range(7)],
    tables=TABLE,
)

NUMBERS = Sample(
    """module @f
func @f(%n: int, %xs: float64[3]) -> (float64) {
  %zero: int = const [value=0]
  %one: int = const [value=1]
  %three: int = const [value=3]
  %half: float64 = const [value=scalar("float64", [0.5])]
  %s: float64 = loop %zero, %half (%i: int, %acc: float64) {
    %c: pybool = lt %i, %n
    if %c {
      yield
    } else {
      break %acc
    }
    %x: float64 = index %xs, %i
    %v: float64 = call %i, %xs [function="f"]
    %w: float64 = mul %v, %x
    %next: float64 = add %acc, %w
    %j: int = add %i, %one
    continue %j, %next
  }
  return %s
}
""",
    [[n, RNG.normal(size=3)] for n in (-2, 0, 1, 3)],
)

SPLIT = {"child_sum": CHILD_SUM, "two_calls": TWO_CALLS, "conditional": CONDITIONAL}
KEPT = {"stops": STOPS, "carried": CARRIED, "numbers": NUMBERS}
LOOPS = {**SPLIT, **KEPT}
