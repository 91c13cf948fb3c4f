"""IR text: the parser is the inverse of the printer."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spmd.ir.core import Block, Function, Module, Op, Table, Value
from spmd.ir.equal import attrs_key
from spmd.ir.parser import ParseError, parse
from spmd.ir.printer import module_text, op_text
from spmd.ir.rewrite import clone_module
from spmd.ir.types import BOOL, FLOAT, INT, TEXT, Num, Ref, Seq, Type
from spmd.spans import Span


class LocalError(Exception):
    """An exception class that is no builtin."""


EVERYTHING = """module @main
input %w: float64[4, 4]
input %a: float
derived %t: float64[4, 4]
table "odd name"("[0].x": ref<"odd name"?>, kids: seq<node>, word: str, c: complex) shared
table node(x: float32[?, 3], flag: pybool) unique

prologue {
  %0: float64[4, 4] = transpose %w [perm=(1, 0)]
  yield %0
}

func @main(%x: float64[4], %n: int) -> (float64[4], int) {
  %0: int64 = const [value=scalar("int64", [-5])]
  %1: float64 = const [value=scalar("float64", [-0.0])]
  %2: float64[2, 2] = const [value=array("float64", (2, 2), [1.0, 2.5, 1e-300, inf])]
  %3: float = const [value=nan]
  %4: float = const [value=-inf]
  %b: pybool = const [value=True]
  %i: int = const [value=0]
  %h: float64[4], %k: int = loop %i, %x (%i.1: int, %h.1: float64[4]) {
    %c: pybool = lt %i.1, %n
    if %c {
      yield
    } else {
      break %h.1, %i.1
    }
    guard %c [error=(cls("builtins:ValueError"), ("it's \\"so\\"\\n", 3, None, True, 1.5))]
    %j: int = call %i.1 [function="g.<locals>.h"]
    continue %j, %h.1
  }
  %r: float64[4] = if %b {
    yield %h
  } else {
    raise [error=("ValueError", ())]
  }
  return %r, %k
}

func "@g.<locals>.h"(%n: int) -> (int) {
  unreachable
}
"""


def test_everything_round_trips() -> None:
    once = module_text(parse(EVERYTHING))
    assert module_text(parse(once)) == once
    assert once == EVERYTHING


def test_positions_and_spans_round_trip() -> None:
    module = parse(EVERYTHING)
    for number, op in enumerate(module.functions["main"].body.walk()):
        op.order = (1, number)
        op.span = Span('a "b".py', number + 1, 2, number + 1, 9, "f.<lambda>")
    module.functions["main"].span = Span("x.py", 1, 1, 2, 1, "main")
    text = module_text(module, spans=True, orders=True)
    again = parse(text)
    assert module_text(again, spans=True, orders=True) == text
    pairs = zip(module.functions["main"].body.walk(), again.functions["main"].body.walk(), strict=True)
    assert all(a.order == b.order and a.span == b.span for a, b in pairs)


def test_classes_that_are_no_builtins_must_be_handed_in() -> None:
    module = Module({"f": Function("f", [], [], Block())}, "f", [], {})
    module.functions["f"].body.ops.append(Op("raise", [], {"error": (LocalError, ("x",))}, []))
    text = module_text(module)
    with pytest.raises(ParseError, match="LocalError"):
        parse(text)
    path = f"{LocalError.__module__}:LocalError"
    assert parse(text, {path: LocalError}).functions["f"].body.ops[0].attrs["error"][0] is LocalError


def test_a_clone_reads_the_same() -> None:
    module = parse(EVERYTHING)
    assert module_text(clone_module(module)) == module_text(module)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("module @f\nfunc @f() -> () {\n  return %x\n}", "line 3: %x is not defined"),
        ("module @f\ninput %x: int\ninput %x: int", "line 3: %x is defined twice"),
        ("module @f\nfunc @f() -> () {\n  return", "ends within a block"),
        ("module @f\nfunc @f(%x) -> () {\n}", "line 2"),
        ('module @f\nfunc @f() -> () {\n  raise [error=cls("os:system")]\n}', "os:system"),
        ("module @f\nfunc @f() -> () {\n  raise [error=__import__('os')]\n}", "is no attribute value"),
    ],
)
def test_bad_text_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        parse(text)


def test_an_op_is_shown_with_its_operands_types() -> None:
    x, y = Value(INT, "x"), Value(Num("float64", (2, None)))
    text = op_text(Op("f", [x, y], {"axis": 0}, [Value(BOOL)]))
    assert text == "%1: pybool = f %x, %0 [axis=0]    where %x: int, %0: float64[2, ?]"


TYPES = st.one_of(
    st.sampled_from([INT, FLOAT, BOOL, TEXT, Num("complex128", python=True)]),
    st.builds(
        Num,
        st.sampled_from(["float64", "float32", "int64", "int8", "uint16", "bool"]),
        st.lists(st.one_of(st.none(), st.integers(0, 9)), max_size=3).map(tuple),
    ),
    st.builds(Ref, st.sampled_from(["t", "odd one"]), st.booleans()),
    st.builds(Seq, st.sampled_from(["t", "odd one"])),
)
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.complex_numbers(), st.text(), st.binary(),
    st.floats(width=32).map(np.float32), st.integers(-9, 9).map(np.int8), TYPES, st.just(ValueError),
    st.lists(st.floats(), max_size=40).map(np.array), st.lists(st.booleans(), max_size=4).map(lambda v: np.array([v])),
)
ATTRS = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple), max_leaves=5
)


@given(ATTRS, TYPES, st.text(max_size=6))
def test_any_attribute_type_and_name_round_trip(value: Any, type_: Type, name: str) -> None:
    tables = {n: Table(n, (), ()) for n in ("t", "odd one")}
    op = Op("thing", [], {"value": value}, [Value(type_, name)])
    module = Module({"f": Function("f", [], [], Block([], [op, Op("unreachable", [], {}, [])]))}, "f", [], tables)
    (again, _) = parse(module_text(module)).functions["f"].body.ops
    assert again.result.type == type_
    if not (isinstance(value, float) and math.isnan(value)) and "nan" not in repr(value):
        assert attrs_key(again.attrs) == attrs_key(op.attrs)


def test_large_and_odd_arrays_keep_every_bit() -> None:
    odd = np.array([0x7FF8000000000123, 0xFFF0000000000000], np.uint64).view(np.float64)
    for array in (odd, np.random.default_rng(0).normal(size=(7, 9)), np.zeros((0, 3)), np.array(3, np.int16)):
        op = Op("const", [], {"value": array}, [Value(Num(str(array.dtype), array.shape))])
        module = Module({"f": Function("f", [], [], Block([], [op]))}, "f", [], {})
        module.functions["f"].body.ops.append(Op("unreachable", [], {}, []))
        found = parse(module_text(module)).functions["f"].body.ops[0].attrs["value"]
        assert found.dtype == array.dtype and found.shape == array.shape and found.tobytes() == array.tobytes()
