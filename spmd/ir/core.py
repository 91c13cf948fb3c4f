"""Values, ops, blocks, functions and modules.

The invariant: every Value is defined exactly once (a block argument, a function parameter, a module input or an op
result) and control flow is structured: `if` and `loop` own blocks, a block ends in exactly one terminator. Ops are
pure; what can raise says so through its primitive. This file holds data only: it builds, prints and checks nothing.

Structural ops (all others are primitives of `spmd.ops`):

  const                attrs value                      -> one Num
  load      ref        attrs table, field               -> the field of that row
  load_or   ref, value attrs table, field               -> the same where there is such a row, else the value (regions)
  item      seq, int   attrs table                      -> Ref: row `first + i`; raises IndexError
  length    seq                                         -> int
  column    seq        attrs table, field               -> Num[?, ...]: that field of all rows of the run
  isnull    ref                                         -> bool
  same      ref, ref                                    -> bool: one and the same row
  assured   ref                                         -> Ref that is not nullable, where a test has shown it. In
            regions also where the test has shown that it is none: what is made of it there is not looked at
  nonnull   ref        attrs error                      -> Ref that is not nullable; raises AttributeError/TypeError
  seqslice  seq, int lo, int hi  (already clipped)      -> Seq: rows lo..hi-1 of the run
  if        cond       blocks (then, else)              -> what the arms yield
  loop      inits...   blocks (body,)                   -> what `break` gives; body args are the carried values
  call      args...    attrs function                   -> the callee's results
  map       count, args...  attrs function, each        -> Seq of the callee's frames ('@function'), `count` rows;
            each[k] is 'each' (parameter k is the element: Ref of a Seq operand, or a row of an array operand),
            'field:n' (field n of the element of a Seq operand), 'same' (the operand itself) or 'index' (the element's
            number; its operand is `count`)
  native    args...    attrs number; block (args)       -> what the block yields: a `loop` that compiled code runs
            whole, with all that it reads as operands; the block names nothing from outside (regions)
  inline    args...    block (args), ends in `return`   -> what is returned: a callee in its place (in `native` only)
  guard     cond       attrs error                      -> no result; raises `error` where cond is false

Terminators: yield values | continue values | break values | return values | raise (attrs error) | unreachable.
`error` attrs are (exception class name in builtins or a Python class, args tuple).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from spmd.ir.types import Seq, Type
from spmd.source import Span

TERMINATORS = frozenset({"yield", "continue", "break", "return", "raise", "unreachable"})
STRUCTURAL = frozenset(
    {
        "const", "load", "load_or", "item", "length", "column", "isnull", "same", "assured", "nonnull", "seqslice",
        "rownumber", "row", "if", "loop", "call", "map", "guard", "native",
    }
)

_ids = itertools.count()


class Value:
    """One SSA value. Identity is what counts; `name` is for printing only."""

    __slots__ = ("id", "type", "name")

    def __init__(self, type_: Type, name: str = "") -> None:
        self.id = next(_ids)
        self.type = type_
        self.name = name

    def __repr__(self) -> str:
        return f"%{self.name or self.id}: {self.type}"


@dataclass(eq=False)
class Op:
    """One operation. `order` is its position in program order (a path: inlined ops come below their call)."""

    name: str
    operands: list[Value]
    attrs: dict[str, Any]
    results: list[Value]
    blocks: list[Block] = field(default_factory=list)
    span: Span | None = None
    order: tuple[int, ...] = ()

    @property
    def result(self) -> Value:
        (only,) = self.results
        return only

    @property
    def terminator(self) -> bool:
        return self.name in TERMINATORS

    def __repr__(self) -> str:
        return f"<{self.name} {self.operands} -> {self.results}>"


@dataclass(eq=False)
class Block:
    """Ops in order; the last one is the terminator."""

    args: list[Value] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)

    @property
    def terminator(self) -> Op:
        return self.ops[-1]

    def walk(self) -> Iterator[Op]:
        """Every op, those of inner blocks after the op that owns them."""
        for op in self.ops:
            yield op
            for block in op.blocks:
                yield from block.walk()


@dataclass(eq=False)
class Function:
    """One specialisation of a user's function."""

    name: str
    params: list[Value]
    results: list[Type]
    body: Block
    span: Span | None = None

    @property
    def table(self) -> str:
        """The table whose rows are this function's frames and whose fields are its results."""
        return "@" + self.name


@dataclass(frozen=True)
class Table:
    """A packed table that comes with the inputs: nodes or list elements. Fields are leaves.

    unique  every row is reachable from one example only (packing severs aliasing between examples)
    shared  some row has more than one parent: pure calls on it may share one frame
    """

    name: str
    fields: tuple[Type, ...]
    labels: tuple[str, ...]
    unique: bool = True
    shared: bool = False


@dataclass(eq=False)
class Module:
    """A compiled program: `inputs` are uniform values that any function may name (shared and captured arguments,
    and what `prologue` computes from them); `entry` takes the mapped arguments of one example as parameters.

    prologue  ops over inputs alone, run once before the entry; its `yield` gives the derived inputs, which are the
              last len(yield) of `inputs`.
    """

    functions: dict[str, Function]
    entry: str
    inputs: list[Value]
    tables: dict[str, Table]
    prologue: Block | None = None

    def fields(self, table: str) -> tuple[Type, ...]:
        """Types of the fields of a table, a function's results included."""
        if table.startswith("@"):
            return tuple(self.functions[table[1:]].results)
        return self.tables[table].fields


def element_table(type_: Type) -> str:
    """The table that a run of rows points into."""
    if not isinstance(type_, Seq):
        raise TypeError(f"{type_} is no run of rows")
    return type_.table
