"""The programs of the guide's error page: each right one runs, each wrong one is refused with the page's code."""

from __future__ import annotations

import importlib.util
import re
import runpy
from pathlib import Path

import pytest

from spmd.cli import error_section, guide
from spmd.errors import CODES, SpmdError

PROGRAMS = [
    (code, kind, program)
    for code in CODES
    for kind, program in zip(
        ("wrong", "right"), re.findall(r"```python\n(.*?)```", error_section(code) or "", re.DOTALL), strict=False
    )
]


@pytest.mark.skipif(importlib.util.find_spec("spmd.api") is None, reason="spmd.api is not there")
@pytest.mark.parametrize(("code", "kind", "program"), PROGRAMS, ids=[f"{code}-{kind}" for code, kind, _ in PROGRAMS])
def test_programs_of_the_error_page(code: str, kind: str, program: str, tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(program, encoding="utf-8")
    if kind == "right":
        runpy.run_path(str(file))
        return
    with pytest.raises(SpmdError) as caught:
        runpy.run_path(str(file))
    assert caught.value.code == code
    assert len(str(caught.value).splitlines()) <= 20


LANGUAGE = re.findall(r"```python\n(.*?)```", guide("language"), re.DOTALL)


@pytest.mark.parametrize("number", range(len(LANGUAGE)))
def test_programs_of_the_language_page_run(number: int, tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(LANGUAGE[number], encoding="utf-8")
    runpy.run_path(str(file))
