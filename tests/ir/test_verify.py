"""The verifier accepts sound modules and names what is wrong with others."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from spmd.errors import InternalError
from spmd.ir.core import Module, Op, Value
from spmd.ir.parser import parse
from spmd.ir.region import Branch, Jump, Leave, Program
from spmd.ir.region_verify import verify_adjoints, verify_program
from spmd.ir.types import FLOAT, INT, Num, Ref
from spmd.ir.verify import verify
from spmd.ops.table import type_rule
from spmd.transform.adjoint import adjoint
from spmd.transform.regions import regions

HEAD = """module @f
table node(x: float, next: ref<node?>) unique
func @g(%x: float) -> (float) {
  return %x
}
func @f(%x: float, %n: int, %p: pybool, %r: ref<node?>, %s: seq<node>) -> (float) {
"""

WRONG = {
    "does not dominate": "if %p {\n %y: float = neg %x\n yield\n } else {\n yield\n }\n return %y",
    "a block does not end": "%y: float = neg %x",
    "stands in the middle": "return %x\n return %x",
    "should have types": "return %n",
    "`break` outside": "break",
    "`yield` ends arms": "yield %x",
    "takes one boolean": "if %n {\n yield\n } else {\n yield\n }\n return %x",
    "the type rule refuses": "%y: float = add %x, %n\n return %y",
    "the type rule gives": "%y: int = add %x, %x\n return %x",
    "not nullable": '%y: float = load %r [table="node", field=0]\n return %y',
    "it should give": '%q: ref<node?> = item %s, %n [table="node"]\n return %x',
    "a run of other": '%q: ref<node> = item %s, %n [table="other"]\n return %x',
    "no function h": '%y: float = call %x [function="h"]\n return %y',
    "arguments should be": '%y: float = call %n [function="g"]\n return %y',
    "does not give a": '%m: seq<@g> = map %n, %n [function="g", each=("same",)]\n return %x',
    "its value is a": "%y: float = const [value=1]\n return %y",
    "malformed": "%y: float = load %r [field=0]\n return %y",
    "only a number makes": '%y: float64[?] = column %s [table="node", field=1]\n return %x',
    "attrs error": "guard %p\n return %x",
}


def broken(body: str) -> Module:
    text = HEAD + body + "\n}\n"
    if "%y" in body and body.startswith("if"):  # the parser refuses the use before the verifier can
        module = parse(text.replace("return %y", "return %x"))
        inner = module.functions["f"].body.ops[0].blocks[0].ops[0].result
        module.functions["f"].body.ops[-1].operands = [inner]
        return module
    return parse(text)


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_named(what: str) -> None:
    with pytest.raises(InternalError, match=what):
        verify(broken(WRONG[what]), type_rule)


def test_the_sound_program_around_them_passes() -> None:
    verify(broken("return %x"), type_rule)


def test_a_row_that_is_never_none_may_stand_where_one_may_be() -> None:
    text = """module @f
table node(x: float, next: ref<node?>) unique
func @f(%r: ref<node>, %q: ref<node?>, %p: pybool) -> (ref<node?>) {
  %s: ref<node?> = if %p {
    yield %r
  } else {
    yield %q
  }
  %t: ref<node?> = where %p, %r, %s
  return %t
}
"""
    verify(parse(text), type_rule)
    verify_program(regions(parse(text)), type_rule)


def test_values_are_defined_once() -> None:
    module = broken("%y: float = neg %x\n return %y")
    module.functions["f"].body.ops.insert(0, module.functions["f"].body.ops[0])
    with pytest.raises(InternalError, match="defined twice"):
        verify(module, type_rule)


def test_the_prologue_must_fit_the_derived_inputs() -> None:
    text = "module @f\ninput %a: float\nderived %b: int\nprologue {\n  yield %a\n}\nfunc @f() -> () {\n  return\n}\n"
    with pytest.raises(InternalError, match="should have types"):
        verify(parse(text), type_rule)


LOOP = """module @f
input %w: float64
func @f(%x: float64, %n: int) -> (float64) {
  %zero: int = const [value=0]
  %r: float64 = loop %zero, %x (%i: int, %y: float64) {
    %c: pybool = lt %i, %n
    if %c {
      yield
    } else {
      break %y
    }
    %z: float64 = mul %y, %w
    %one: int = const [value=1]
    %j: int = add %i, %one
    continue %j, %z
  }
  return %r
}
"""


def store_of_another_type(program: Program) -> None:
    region = program.regions[0]
    column, _ = region.stores[0]
    region.stores[0] = (column, Value(FLOAT))


def jump_out(program: Program) -> None:
    program.regions[0].exit = Jump(99)


def condition_that_is_none(program: Program) -> None:
    program.regions[0].exit = Branch(Value(INT), 0, 0)


def leave_with_nothing(program: Program) -> None:
    next(r for r in program.regions if isinstance(r.exit, Leave)).exit = Leave([])


def unknown_operand(program: Program) -> None:
    program.regions[1].ops[0].operands[0] = Value(Num("float64"))


def load_twice(program: Program) -> None:
    program.regions[1].loads.append(program.regions[1].loads[0])


SPOILED: dict[str, Callable[[Program], None]] = {
    "is not there": store_of_another_type,
    "it leads to": jump_out,
    "it branches on": condition_that_is_none,
    "should have types": leave_with_nothing,
    "not there": unknown_operand,
    "loaded twice": load_twice,
}


@pytest.mark.parametrize("what", SPOILED)
def test_what_is_wrong_with_regions_is_named(what: str) -> None:
    program = regions(parse(LOOP))
    verify_program(program, type_rule)
    SPOILED[what](program)
    with pytest.raises(InternalError, match=what):
        verify_program(program, type_rule)


GUARDED = """module @f
func @f(%x: float64, %a: pybool, %b: pybool) -> (float64) {
  %y: float64 = if %a {
    %u: float64 = call %x, %b, %a [function="f"]
    yield %u
  } else {
    yield %x
  }
  %z: float64 = if %b {
    %v: float64 = call %x, %a, %a [function="f"]
    yield %v
  } else {
    yield %x
  }
  %r: float64 = sub %y, %z
  return %r
}
"""


def guard_of_another_type(program: Program) -> None:
    sites = program.regions[0].exit.sites  # type: ignore[union-attr]
    sites[0].guards = ((sites[0].args[0], True),)


def result_of_another_type(program: Program) -> None:
    read = next(op for region in program.regions for op in region.ops if op.name == "load_or")
    column = next(c for c in program.functions["f"].columns if c.name == "b")
    read.operands[1] = Value(column.type)
    program.regions[1].loads.append((column, read.operands[1]))


@pytest.mark.parametrize(
    "what, spoil", [("it branches on", guard_of_another_type), ("the field is no pybool", result_of_another_type)]
)
def test_what_is_wrong_with_guarded_calls_is_named(what: str, spoil: Callable[[Program], None]) -> None:
    program = regions(parse(GUARDED))
    verify_program(program, type_rule)
    spoil(program)
    with pytest.raises(InternalError, match=what):
        verify_program(program, type_rule)


def test_what_is_wrong_with_adjoints_is_named() -> None:
    program = regions(parse(LOOP))
    adjoints = adjoint(program, [0, program.inputs[0]])
    verify_adjoints(program, adjoints, type_rule)
    first = next(a for a in adjoints.values() if a.residuals)
    first.residuals = []
    with pytest.raises(InternalError, match="not there"):
        verify_adjoints(program, adjoints, type_rule)
    first.residuals = [Value(FLOAT)]
    with pytest.raises(InternalError, match="no value of the primal"):
        verify_adjoints(program, [first], type_rule)


def test_tables_that_types_name_must_exist() -> None:
    module = broken("return %x")
    module.functions["g"].params[0].type = Ref("gone")
    with pytest.raises(InternalError, match="no table gone"):
        verify(module, type_rule)


def test_an_op_that_owns_no_blocks_may_not_have_any() -> None:
    module = broken("%y: float = neg %x\n return %y")
    op = module.functions["f"].body.ops[0]
    module.functions["f"].body.ops[0] = Op(op.name, op.operands, {}, op.results, [module.functions["g"].body])
    with pytest.raises(InternalError, match="own blocks"):
        verify(module, type_rule)
