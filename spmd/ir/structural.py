"""Types of the structural ops that own no blocks.

The invariant: one statement of the table in `core`'s docstring, used by the verifiers of modules and of regions, so
that both demand the same. Results that a structural op must have are computed here, never guessed elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from spmd.ir.build import constant_type
from spmd.ir.core import Op, Value
from spmd.ir.types import BOOL, INT, Num, Ref, Seq, Type, fits


class Signatures(Protocol):
    """What checks need to know of the rest: a Module keeps this; so does the view of a Program."""

    def fields(self, table: str) -> tuple[Type, ...]:
        """Types of a table's fields."""

    def signature(self, function: str) -> tuple[list[Type], list[Type]] | None:
        """Parameter and result types of a function, None if there is none of that name."""


def check(op: Op, around: Signatures) -> str:
    """What is wrong with the op; empty if nothing is. Raises nothing for any attrs."""
    try:
        return CHECKS[op.name](op, around)
    except (KeyError, ValueError, TypeError, IndexError, AttributeError) as error:
        return f"it is malformed ({type(error).__name__}: {error})"


def _types(values: Sequence[Value]) -> list[Type]:
    return [v.type for v in values]


def _gives(op: Op, *types: Type) -> str:
    if _types(op.results) != list(types):
        return f"it should give ({', '.join(map(str, types))})"
    return ""


def _integer(type_: Type) -> bool:
    return isinstance(type_, Num) and type_.shape == () and type_.kind in "iub" and not type_.text


def _const(op: Op, around: Signatures) -> str:
    (type_,) = _types(op.results)
    if op.operands:
        return "a constant has no operands"
    if isinstance(type_, Ref):
        return "" if op.attrs["value"] == -1 and type_.nullable else "a constant row is -1 and nullable"
    if isinstance(type_, Seq):
        return "" if op.attrs["value"] == (0, 0) else "a constant run is empty"
    if type_.text:
        return "" if isinstance(op.attrs["value"], (int, np.integer)) else "a text constant is an interned number"
    found = constant_type(op.attrs["value"])
    sizes = zip(type_.shape, found.shape)
    alike = len(found.shape) == len(type_.shape) and all(m in (None, n) for m, n in sizes)
    same = found.dtype == type_.dtype and alike and found.python == type_.python
    return "" if same else f"its value is a {found}"


def _load(op: Op, around: Signatures) -> str:
    (ref,) = _types(op.operands)
    if not isinstance(ref, Ref) or ref.nullable or ref.table != op.attrs["table"]:
        return f"it reads a row of {op.attrs['table']}, by a ref that is not nullable"
    return _gives(op, around.fields(ref.table)[op.attrs["field"]])


def _load_or(op: Op, around: Signatures) -> str:
    ref, value = _types(op.operands)
    if not isinstance(ref, Ref) or ref.table != op.attrs["table"] or isinstance(value, Seq):
        return f"it reads a row of {op.attrs['table']} and takes what it gives where there is none"
    if value != around.fields(ref.table)[op.attrs["field"]]:
        return f"the field is no {value}"
    return _gives(op, value)


def _item(op: Op, around: Signatures) -> str:
    seq, number = _types(op.operands)
    if not isinstance(seq, Seq) or seq.table != op.attrs["table"] or not _integer(number):
        return f"it takes a run of {op.attrs['table']} and an integer"
    return _gives(op, Ref(seq.table))


def _length(op: Op, around: Signatures) -> str:
    (seq,) = _types(op.operands)
    return _gives(op, INT) if isinstance(seq, Seq) else "it takes a run of rows"


def _column(op: Op, around: Signatures) -> str:
    (seq,) = _types(op.operands)
    if not isinstance(seq, Seq) or seq.table != op.attrs["table"]:
        return f"it takes a run of {op.attrs['table']}"
    field = around.fields(seq.table)[op.attrs["field"]]
    if not isinstance(field, Num):
        return "only a number makes a column"
    return _gives(op, Num(field.dtype, (None, *field.shape)))


def _isnull(op: Op, around: Signatures) -> str:
    (ref,) = _types(op.operands)
    return _gives(op, BOOL) if isinstance(ref, Ref) else "it takes a ref"


def _nonnull(op: Op, around: Signatures) -> str:
    (ref,) = _types(op.operands)
    if not isinstance(ref, Ref) or "error" not in op.attrs:
        return "it takes a ref and has attrs error"
    return _gives(op, Ref(ref.table))


def _assured(op: Op, around: Signatures) -> str:
    (ref,) = _types(op.operands)
    return _gives(op, Ref(ref.table)) if isinstance(ref, Ref) else "it takes a ref"


def _rownumber(op: Op, around: Signatures) -> str:
    (ref,) = _types(op.operands)
    return _gives(op, Num("int64")) if isinstance(ref, Ref) else "it takes a ref"


def _row(op: Op, around: Signatures) -> str:
    """A ref by its number: the number came from such a ref, which was nullable only if this one is."""
    alike = _types(op.operands) == [Num("int64")] and all(isinstance(t, Ref) for t in _types(op.results))
    return "" if alike and len(op.results) == 1 else "it takes a number and gives a ref"


def _same(op: Op, around: Signatures) -> str:
    one, other = _types(op.operands)
    alike = isinstance(one, Ref) and isinstance(other, Ref) and one.table == other.table
    return _gives(op, BOOL) if alike else "it takes two refs of one table"


def _seqslice(op: Op, around: Signatures) -> str:
    seq, lo, hi = _types(op.operands)
    if not isinstance(seq, Seq) or not _integer(lo) or not _integer(hi):
        return "it takes a run and two integers"
    return _gives(op, seq)


def _guard(op: Op, around: Signatures) -> str:
    (cond,) = _types(op.operands)
    if cond not in (BOOL, Num("bool")) or "error" not in op.attrs:
        return "it takes a boolean and has attrs error"
    return _gives(op)


def _call(op: Op, around: Signatures) -> str:
    signature = around.signature(op.attrs["function"])
    if signature is None:
        return f"there is no function {op.attrs['function']}"
    given = _types(op.operands)
    if len(given) != len(signature[0]) or not all(map(fits, given, signature[0])):
        return f"arguments should be ({', '.join(map(str, signature[0]))})"
    return _gives(op, *signature[1])


def _map(op: Op, around: Signatures) -> str:
    problem = map_arguments(_types(op.operands), op.attrs["function"], op.attrs["each"], around)
    return problem or _gives(op, Seq("@" + op.attrs["function"]))


def map_arguments(operands: Sequence[Type], function: str, each: Sequence[str], around: Signatures) -> str:
    """Problems of a map's operands: the count, then one argument per parameter as `each` says."""
    signature = around.signature(function)
    if signature is None:
        return f"there is no function {function}"
    if not operands or not _integer(operands[0]):
        return "its first operand is the number of elements"
    if len(operands) != len(each) + 1 or len(each) != len(signature[0]):
        return "it takes the count and one argument per parameter"
    for number, (word, argument, param) in enumerate(zip(each, operands[1:], signature[0], strict=True)):
        given = parameter_of(word, argument, around)
        if given is None or not fits(given, param):
            return f"argument {number} ({word} of {argument}) does not give a {param}"
    return ""


def parameter_of(word: str, argument: Type, around: Signatures) -> Type | None:
    """The type that a callee's parameter has if its argument is given so; None where that cannot be.

    'field:K' of a run gives element i the field K of row i of the run.
    """
    if word == "same":
        return argument
    if word.startswith("field:"):
        return around.fields(argument.table)[int(word[6:])] if isinstance(argument, Seq) else None
    if word == "index":
        return argument if _integer(argument) else None
    if word != "each":
        return None
    if isinstance(argument, Seq):
        return Ref(argument.table)
    if isinstance(argument, Num) and argument.rank:
        return Num(argument.dtype, argument.shape[1:])
    return None


def _native(op: Op, around: Signatures) -> str:
    (block,) = op.blocks
    if _types(op.operands) != _types(block.args):
        return "its operands are not what its block takes"
    inner = {*block.args, *(v for o in block.walk() for v in o.results), *(
        v for o in block.walk() for b in o.blocks for v in b.args)}
    if any(v not in inner for o in block.walk() for v in o.operands):
        return "its block names a value from outside"
    return _gives(op, *_types(block.terminator.operands))


CHECKS: dict[str, Callable[[Op, Signatures], str]] = {
    "const": _const,
    "load": _load,
    "load_or": _load_or,
    "item": _item,
    "length": _length,
    "column": _column,
    "isnull": _isnull,
    "nonnull": _nonnull,
    "assured": _assured,
    "same": _same,
    "rownumber": _rownumber,
    "row": _row,
    "seqslice": _seqslice,
    "guard": _guard,
    "call": _call,
    "map": _map,
    "native": _native,
}


def ruled_types(op: Op) -> list[Type]:
    """Operand types for the type rule: a row that is never None counts as one that may be where the result may."""
    nullable = any(isinstance(v.type, Ref) and v.type.nullable for v in op.results)
    return [Ref(v.type.table, True) if nullable and isinstance(v.type, Ref) else v.type for v in op.operands]
