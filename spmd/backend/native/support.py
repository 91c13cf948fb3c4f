"""Which loops compiled code can run whole: a loop is native or it is not, nothing is half native.

Invariant: what is called supported here is emitted by `scalars`, `arrays` and `rows` with the own meaning of the
primitive; an op that is not named here leaves its loop to the regions. Must not know how code is written.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spmd.backend.simd.arithmetic import ELEMENTS
from spmd.backend.simd.operations import SUPPORTED
from spmd.ir.core import Block, Op, Value
from spmd.ir.types import Num, Ref, Type
from spmd.ops.table import chain_name

ELEMENTWISE_SIZE = 16
"""Static arrays of up to so many elements are kept in registers; larger ones, and those of varying size, in memory."""

ROWS = frozenset({"item", "length", "load", "isnull", "same", "assured", "nonnull", "seqslice", "rownumber", "row"})
ELEMENTARY = frozenset({
    "exp", "expm1", "log", "log1p", "log2", "log10", "tanh", "sigmoid", "softplus", "sin", "cos", "pow", "arctan",
    "arctan2",
})
"""Costly operations that vectors of rows do several times faster."""
WIDE = 512
"""Rows from which that outweighs what an iteration costs in regions."""
CONSTANT = 1024
"""Elements of a constant that is written into the code."""

CONTROL = frozenset({"if", "loop", "inline", "break", "continue", "yield", "return", "raise", "unreachable", "guard"})
OWN = frozenset({"pymax", "pymin", "square!", "lshift!", "rshift!", "toround!"})


def small(type_: Num) -> bool:
    """An array that is kept in registers, element by element."""
    return type_.rank > 0 and type_.static and type_.size <= ELEMENTWISE_SIZE


def in_memory(type_: Num) -> bool:
    """An array that is kept in memory."""
    return type_.rank > 0 and not small(type_)


def ragged_axes(type_: Num) -> int:
    """How many leading sizes come with the value: up to the last one that varies."""
    return max((k + 1 for k, n in enumerate(type_.shape) if n is None), default=0)


def as_number(type_: Type) -> Num:
    """What a value of any type is in registers: a row of a table is its number, a run of rows the
    first and how many."""
    if isinstance(type_, Num):
        return type_
    return Num("int64") if isinstance(type_, Ref) else Num("int64", (2,))


def carried(type_: Type) -> bool:
    """Whether code can hold a value of this type."""
    return as_number(type_).dtype in ELEMENTS


def scalar_name(op: Op) -> str:
    """The op's name in the vocabulary of elementwise operations; '' if it is none that is written here."""
    if op.name in ("pymax", "pymin"):
        return op.name
    if op.name == "round":
        return "toround!"
    name = chain_name(op)
    if name in OWN:
        return name
    if not name or name not in SUPPORTED:
        return ""
    operand = op.operands[-1].type
    assert isinstance(operand, Num)
    return name if operand.dtype in SUPPORTED[name] else ""


def runs(block: Block) -> bool:
    """Whether the closed block of a `native` op can run as compiled code."""
    return _block(block) and all(_supported(op) for op in block.walk())


def light(block: Block) -> bool:
    """Whether the loop is better run row by row than vector by vector over many rows: it has no elementary function."""
    return not any(op.name in ELEMENTARY for op in block.walk())


def _block(block: Block) -> bool:
    return all(carried(v.type) for v in block.args)


def _supported(op: Op) -> bool:
    if not all(carried(v.type) for v in (*op.operands, *op.results)):
        return False
    if not all(_block(b) for b in op.blocks):
        return False
    if op.name in CONTROL or op.name in ROWS:
        return True
    if op.name == "const":
        return np.size(op.attrs["value"]) <= CONSTANT
    rule = ARRAYS.get(op.name)
    if rule is not None and any(_num(v).rank for v in (*op.operands, *op.results)):
        return rule(op)
    return _elementwise(op)


def _num(value: Value) -> Num:
    return as_number(value.type)


def _elementwise(op: Op) -> bool:
    """All operands have the result's shape, which is a scalar's or a small array's."""
    if len(op.results) != 1 or not op.operands:
        return False
    shapes = {_num(v).shape for v in op.operands} | {_num(op.result).shape}
    if op.name == "where" and not _num(op.operands[0]).shape:
        return not in_memory(_num(op.result)) and _num(op.operands[1]).dtype in SUPPORTED["where"]
    if len(shapes) != 1 or in_memory(_num(op.result)):
        return False
    name = scalar_name(op)
    return bool(name) and not (name.endswith("!") and _num(op.result).rank > 0)


def _indices(values: Sequence[Value]) -> bool:
    return all(not _num(v).shape and _num(v).kind in "iub" and _num(v).dtype != "uint64" for v in values)


def _index(op: Op) -> bool:
    return _indices(op.operands[1:])


def _put_index(op: Op) -> bool:
    """A number, or a part of known size, so that it fits where it goes."""
    part, tail = _num(op.operands[1]), _num(op.operands[0]).shape[len(op.operands) - 2 :]
    return _indices(op.operands[2:]) and part.static and part.shape == tail


def _concat(op: Op) -> bool:
    """Vectors, or arrays that are joined along their first axis and agree in all others by their types."""
    tails = {_num(v).shape[1:] for v in op.operands}
    return op.attrs["axis"] == 0 and len(tails) == 1 and None not in next(iter(tails))


def _dynslice(op: Op) -> bool:
    x = _num(op.operands[0])
    fixed = op.attrs.get("size") is None or not in_memory(_num(op.result))
    tail = None not in x.shape[1:]
    return op.attrs["axis"] == 0 and op.attrs.get("step", 1) == 1 and tail and fixed and op.attrs.get("size") is None


def _stack(op: Op) -> bool:
    return all(not _num(v).shape for v in op.operands)


def _sized(op: Op) -> bool:
    """`fill_to` and `broadcast_to` of one number, or of an array of one, to sizes that are known one by one."""
    value, dims = _num(op.operands[0]), _num(op.operands[1])
    unknown = _num(op.result).shape.count(None)
    spread = not value.shape or set(value.shape) == {1} or keeps(op)
    return spread and small(dims) and dims.rank == 1 and unknown <= 2


def keeps(op: Op) -> bool:
    """Whether a `broadcast_to` gives what it takes: an array of as many axes, none of which is spread."""
    value = _num(op.operands[0])
    return value.static and 1 not in value.shape and value.rank == _num(op.result).rank


def _broadcast(op: Op) -> bool:
    return small(_num(op.result)) and not in_memory(_num(op.operands[0])) or not _num(op.operands[0]).shape


def _small_only(op: Op) -> bool:
    return all(not in_memory(_num(v)) for v in (*op.operands, *op.results))


def _slice(op: Op) -> bool:
    x = _num(op.operands[0])
    return x.static and not in_memory(_num(op.result))


ARRAYS = {
    "index": _index,
    "put_index": _put_index,
    "dim": lambda op: True,
    "shape_of": lambda op: True,
    "copy": lambda op: True,
    "stack": _stack,
    "fill_to": _sized,
    "broadcast_to": _sized,
    "fill": lambda op: True,
    "broadcast": _broadcast,
    "concat": _concat,
    "dynslice": _dynslice,
    "slice": _slice,
    "reshape": _small_only,
}
