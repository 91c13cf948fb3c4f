"""Where the values of generated code are, and the text that is being written.

The invariant: generated text holds numbered names only; every constant, rule and user value comes through a table of
names, so no user text is ever compiled. One `Held` per value says where it is and in which form:

  uniform  what one example sees: a scalar or array
  rows     array [K, *shape] (links: int64 [K])
  run      pair (first, count) of int64 [K]
  ragged   Ragged of K rows
  lazy     an array in a column or table field that is read element by element
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from spmd.backend.blas import structural
from spmd.backend.blas.plan import Plan
from spmd.errors import InternalError
from spmd.ir.core import Op, Value
from spmd.ir.types import Num, Ref, Seq

UNKNOWN = object()


@dataclass(eq=False)
class Held:
    """Where a value is. `known`: its value where that is a compile-time constant. `source`: for lazy ones the
    expressions of the array and of the rows in it. `tight`: every row is known to be contiguous."""

    name: str
    form: str
    type: Any
    known: Any = UNKNOWN
    source: tuple[str, str] = ("", "")
    tight: bool = False

    @property
    def varying(self) -> bool:
        return self.form != "uniform"


class Source:
    """Text of one function and the table of names that it uses."""

    def __init__(self, name: str, arguments: str) -> None:
        self.name = name
        self.lines = [f"def {name}({arguments}):"]
        self.names: dict[str, Any] = {"np": np}
        self._next = 0
        self._dtypes: dict[str, str] = {}

    def fresh(self, letter: str = "v") -> str:
        """A name that nothing has yet."""
        self._next += 1
        return f"{letter}{self._next}"

    def constant(self, value: Any, letter: str = "c") -> str:
        """The name of a value in the table."""
        name = self.fresh(letter)
        self.names[name] = value
        return name

    def function(self, value: Callable[..., Any]) -> str:
        """The name of a function in the table; one name per function."""
        for name, known in self.names.items():
            if known is value:
                return name
        return self.constant(value, "f")

    def dtype(self, name: str) -> str:
        """The name of a dtype object."""
        known = self._dtypes.get(name)
        if known is None:
            known = self._dtypes[name] = self.constant(np.dtype(name), "d")
        return known

    def line(self, text: str, depth: int = 1) -> None:
        self.lines.append("    " * depth + text)

    def build(self) -> Callable[..., Any]:
        """Compiles the text."""
        code = compile(self.text, f"<spmd {self.name}>", "exec")
        scope = dict(self.names)
        exec(code, scope)  # noqa: S102 (numbered names only, see the module's invariant)
        out: Callable[..., Any] = scope[self.name]
        return out

    @property
    def text(self) -> str:
        return "\n".join([*self.lines, "    return None"] if len(self.lines) == 1 else self.lines) + "\n"


class ValueWriter:
    """Knows where values are. `orders`/`spans` collect the ops that may raise."""

    def __init__(self, source: Source, plan: Plan, inputs: dict[Value, int]) -> None:
        self.source = source
        self.plan = plan
        self.inputs = inputs
        self.env: dict[Value, Held] = {}
        self.orders: list[tuple[int, ...]] = []
        self.spans: list[Any] = []
        self.faults = False
        self.lazy: set[Value] = set()
        # Runs of rows: the name of their rows, and of one column of them.
        self.rows_of: dict[Value, str] = {}
        self.column_of: dict[Value, str] = {}
        self._head = len(source.lines)

    # ------------------------------------------------------------------------------------------ values
    def held(self, value: Value) -> Held:
        """Where a value is; a module input is fetched at its first use."""
        found = self.env.get(value)
        if found is not None:
            return found
        number = self.inputs.get(value)
        if number is None:
            raise InternalError(f"{value!r} is used where it is not known")
        name = self.source.fresh("i")
        text = f"run.inputs[{number}]"
        form = "uniform"
        if isinstance(value.type, Ref):
            text, form = f"np.full(K, {text})", "rows"
        elif isinstance(value.type, Seq):
            text, form = f"(np.full(K, {text}[0]), np.full(K, {text}[1]))", "run"
        self._head_line(f"{name} = {text}")
        return self.set(value, name, form)

    def _head_line(self, text: str) -> None:
        self.source.lines.insert(self._head, "    " + text)
        self._head += 1

    def set(self, value: Value, name: str, form: str, known: Any = UNKNOWN, tight: bool = False) -> Held:
        out = self.env[value] = Held(name, form, value.type, known, tight=tight)
        return out

    def uniform(self, value: Value) -> bool:
        """Whether a value from outside the ops at hand is the same for all rows."""
        held = self.env.get(value)
        if held is None:
            return value in self.inputs and isinstance(value.type, Num)
        return held.form == "uniform"

    def name(self, value: Value) -> str:
        return self.held(value).name

    def rows(self, value: Value) -> str:
        """Expression of a value with a row axis."""
        held = self.held(value)
        if held.form != "uniform":
            return held.name
        return self.as_rows(held)

    def as_rows(self, held: Held) -> str:
        """Expression that repeats a uniform value for every row."""
        return f"{self.source.function(spread)}({held.name}, K, {self.source.constant(np.dtype(held.type.dtype))})"

    def run_rows(self, run: Value) -> str:
        """The name of the rows of all runs, one after the other; found once."""
        known = self.rows_of.get(run)
        if known is None:
            known = self.rows_of[run] = self.source.fresh()
            self.source.line(f"{known} = {self.source.function(structural.run_rows)}({self.name(run)})")
        return known

    def fails(self, op: Op) -> str:
        """Says that the next line may report faults of `op`; the name of the collector."""
        self.faults = True
        self.orders.append(op.order)
        self.spans.append(op.span)
        self.source.line(f"ft.at = {len(self.orders) - 1}")
        return "ft"


def spread(value: Any, count: int, dtype: np.dtype[Any]) -> Any:
    """One example's value for `count` rows, without a copy."""
    value = np.asarray(value, dtype)
    return np.broadcast_to(value, (count, *value.shape))
