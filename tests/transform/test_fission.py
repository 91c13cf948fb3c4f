"""Loops over elements make their calls at once where nothing can tell."""

from __future__ import annotations

from typing import Any

import pytest
from loop_programs import KEPT, LOOPS, SPLIT

from spmd.ir.core import Module
from spmd.ir.parser import parse
from spmd.ir.printer import module_text
from spmd.transform.fission import fission
from spmd.transform.simplify import simplify


def maps(module: Module) -> list[tuple[str, ...]]:
    return [op.attrs["each"] for f in module.functions.values() for op in f.body.walk() if op.name == "map"]


@pytest.mark.parametrize("name", SPLIT)
def test_calls_on_elements_become_one_map(name: str) -> None:
    assert len(maps(fission(parse(SPLIT[name].text)))) == 1


@pytest.mark.parametrize("name", KEPT)
def test_loops_that_may_stop_or_carry_stay(name: str) -> None:
    assert not maps(fission(parse(KEPT[name].text)))


def test_a_call_on_the_element_is_mapped_itself() -> None:
    module = fission(parse(SPLIT["child_sum"].text))
    assert maps(module) == [("each",)]
    assert list(module.functions) == ["sum"]


def test_a_callee_that_is_written_in_place_is_not_mapped() -> None:
    text = LOOPS["child_sum"].text.replace("module @sum", "module @top").replace("@sum", "@leaf")
    text = text.replace('call %kid [function="sum"]', 'load %kid [table="item", field=0]')
    assert not maps(fission(parse(text.replace("@leaf", "@top"))))


@pytest.mark.parametrize("name", LOOPS)
def test_text_after_fission(name: str, golden: Any) -> None:
    golden("fission", name, module_text(simplify(fission(parse(LOOPS[name].text)))))
