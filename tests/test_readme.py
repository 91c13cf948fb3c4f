"""The README's programs print what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```\s*```\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def test_the_readme_has_programs_with_their_output() -> None:
    assert len(BLOCKS) == 2


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_a_program_of_the_readme_prints_what_stands_below_it(number: int, tmp_path: Path) -> None:
    program, output = BLOCKS[number]
    file = tmp_path / "program.py"
    file.write_text(program, encoding="utf-8")
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, cwd=README.parent, timeout=120)
    assert done.stdout == output, done.stderr
