"""Random programs that write arrays and lists in loops: names that share a value and part, swaps, appends, jumps.

Memory is written in place where nobody else reads it; a mistake there is a wrong number, and these programs find it.
"""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spmd

NAMES = ("a", "b", "c")
TERMS = ("k", "t", "k * 2", "t + k", "len(a)", "len(b)", "a[0]", "b[-1]", "t - k")
TESTS = ("k % 3 == 1", "t > 5", "len(a) > len(b)", "a[0] > b[0]")


class Author:
    """Writes one program about lists or arrays."""

    def __init__(self, seed: int) -> None:
        self.choose = random.Random(seed)
        self.lists = self.choose.random() < 0.5
        self.size = self.choose.choice((5, 20))
        self.lines: list[str] = []

    def text(self) -> str:
        if self.lists:
            self.lines += ["def f(n, s):", "    a = [s, 1]", "    b = [2, s, 3]", "    c = [n]", "    t = 0"]
        else:
            self.lines += ["def f(x, n):", "    a = x.copy()", "    b = x * 2", "    c = x", "    t = 0.0"]
        self.lines.append("    for k in range(n):")
        self.body(0, 2)
        self.lines.append("    return t, a[0], b[-1], " + ("len(a), len(b), len(c)" if self.lists else "a, b, c"))
        return "import numpy as np\n\n\n" + "\n".join(self.lines) + "\n"

    def body(self, depth: int, indent: int) -> None:
        for _ in range(self.choose.randrange(1, 4)):
            self.statement(depth, indent)

    def statement(self, depth: int, indent: int) -> None:
        kind = self.choose.randrange(12 if depth < 3 else 9)
        pad = "    " * indent
        if kind < 9:
            self.lines.append(pad + self.choose.choice(self.simple(pad)))
        elif kind == 9:
            self.lines.append(f"{pad}if {self.choose.choice(TESTS)}:")
            self.body(depth + 1, indent + 1)
            if self.choose.random() < 0.5:
                self.lines.append(f"{pad}else:")
                self.body(depth + 1, indent + 1)
        elif kind == 10:
            self.lines.append(f"{pad}for _{depth} in range({self.choose.choice(('2', 'k % 4', 'len(a) % 4'))}):")
            self.body(depth + 1, indent + 1)
        else:
            test, jump = self.choose.choice(("k % 5 == 2", "t > 50")), self.choose.choice(("break", "continue"))
            self.lines.append(f"{pad}if {test}:\n{pad}    {jump}")

    def simple(self, pad: str) -> tuple[str, ...]:
        x, y = self.choose.choice(NAMES), self.choose.choice(NAMES)
        term, place = self.choose.choice(TERMS), self.choose.choice(("0", "-1", f"k % len({x})"))
        if self.lists:
            return (
                f"{x} = {y}[:]", f"{x}[{place}] = {term}", f"{x}.append({term})", f"{x} = {y} + [{term}]",
                "a, b = b, a", f"if len({x}) > 2:\n{pad}    {x}.pop()", f"t += {x}[k % len({x})]",
                f"{x} = [{term}] + [2] * (k % 4)", f"{x} = {y}[:2]",
            )
        return (
            f"{x} = {y}.copy()", f"{x}[{place}] = {term}", f"{x} = {y}.copy()\n{pad}{x}[1] = {term}",
            f"t += {x}[1] * {y}[2]", "a, b = b, a", "a, b, c = c, a.copy(), b", f"t += {x}[k % len({x})]",
            f"{x}[k % 3] = {y}[k % 2]", f"{x} = np.zeros({self.size})\n{pad}{x}[0] = k",
        )


def arguments(author: Author, seed: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed)
    numbers = [rng.integers(low, high, 6).tolist() for low, high in ((0, 12), (-3, 9))]
    if author.lists:
        return tuple(numbers)
    return rng.normal(size=(6, author.size)).round(2), numbers[0]


def fresh(row: tuple[Any, ...]) -> list[Any]:
    return [x.copy() if isinstance(x, np.ndarray) else x for x in row]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(40))
def test_random_writes(seed: int, tmp_path: Path) -> None:
    author = Author(seed)
    path = tmp_path / "program.py"
    path.write_text(author.text())
    spec = importlib.util.spec_from_file_location("program", path)
    assert spec is not None and spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    columns = arguments(author, seed)
    try:
        found = spmd.vmap(program.f)(*columns)
    except (spmd.SpmdError, OverflowError) as error:
        pytest.skip(str(error).splitlines()[0])
    expected = [program.f(*fresh(row)) for row in zip(*columns)]
    for k, own in enumerate(expected):
        for x, y in zip(found, own, strict=True):
            np.testing.assert_allclose(np.asarray(x[k], float), np.asarray(y, float), rtol=1e-9)
