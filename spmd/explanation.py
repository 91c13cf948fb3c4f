"""`spmd.explain`: what the compiler makes of a program, stage by stage, as text.

The invariant: the text is that of the program which a call with these arguments runs; nothing is executed. Must not
know how a stage works: it asks the pipeline and prints.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import re
from collections.abc import Sequence
from typing import Any

from spmd.compiler import pipelines
from spmd.compiler.executable import Executable, build
from spmd.compiler.signature.arguments import packed_shared
from spmd.compiler.trace import Argument
from spmd.errors import OptionError, hide_compiler_frames
from spmd.ir.core import Module
from spmd.ir.printer import module_text
from spmd.ir.region_printer import adjoints_text, program_text

_TEXT = r'"(?:[^"\\]|\\.)*"'
_SPAN = re.compile(rf" @({_TEXT}):(\d+):\d+-\d+:\d+:{_TEXT}")


def explain(f: Any, *args: Any, stage: str | None = None, **kwargs: Any) -> str:
    """The program that `f(*args, **kwargs)` runs, as text: IR of one example after lowering and after each pass, with
    source lines; the regions that it is cut into; their adjoints where `f` takes gradients; the generated code.

    `stage` picks one of 'lowered', the passes (`spmd.compiler.pipelines.PASSES`: 'simplify' ... 'hoist'), 'regions',
    'adjoint', 'code'; all of them if None.
    Raises OptionError for a stage that there is not, SpmdError for what cannot be compiled.
    """
    with hide_compiler_frames():
        texts = dict(_stages(*_program(f, args, kwargs)))
        if stage is None:
            return "\n".join(f"== {name} ==\n{text.rstrip()}\n" for name, text in texts.items())
        if stage not in texts:
            raise OptionError(f"there is no stage '{stage}' here; there are {', '.join(texts)}")
        return texts[stage].rstrip() + "\n"


def _program(
    f: Any, args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[Any, list[Argument], str, str, list[int] | None]:
    """The function, its arguments' types, target and rounding, and the arguments that it is differentiated for."""
    if hasattr(f, "program"):
        found: tuple[Any, list[Argument], str, str, list[int] | None] = f.program(args, kwargs)
        return found
    bound = inspect.signature(f).bind(*args, **kwargs)
    bound.apply_defaults()
    arguments = [Argument(n, packed_shared(v, n).schema, False) for n, v in bound.arguments.items()]
    return f, arguments, "auto", "strict", None


def _stages(
    function: Any, arguments: Sequence[Argument], target: str, fp: str, argnums: list[int] | None
) -> list[tuple[str, str]]:
    texts: list[tuple[str, str]] = []

    def note(name: str, module: Module) -> None:
        texts.append((name, _with_source(module_text(module, spans=True))))

    executable = build(function, arguments, target, fp, note)
    if executable.program is None:
        return texts
    return texts + _compiled(executable, argnums)


def _compiled(executable: Executable, argnums: list[int] | None) -> list[tuple[str, str]]:
    wanted = None if argnums is None else executable.wanted(argnums)
    program = executable.program if wanted is None else executable.differentiable
    assert program is not None
    texts = [("regions", program_text(program))]
    if wanted is not None:
        texts.append(("adjoint", adjoints_text(program, pipelines.differentiate(program, wanted))))
    code = executable.compiled(wanted).texts
    texts.append(("code", "\n".join(f"# {name}\n{text.rstrip()}\n" for name, text in code.items())))
    return texts


def _with_source(text: str) -> str:
    """IR with the source line before the ops that it gave, in place of a span behind each op."""
    lines: list[str] = []
    last: tuple[str, int] | None = None
    for line in text.splitlines():
        found = _SPAN.search(line)
        if found is not None:
            place = (ast.literal_eval(found[1]), int(found[2]))
            line = line[: found.start()] + line[found.end() :]
            source = linecache.getline(*place).strip()
            if place != last and source:
                indent = line[: len(line) - len(line.lstrip())]
                lines.append(f"{indent}; {place[1]}: {source}")
            last = place
        lines.append(line)
    return "\n".join(lines) + "\n"
