"""Exceptions as values: which class an operation would raise, and exceptions whose arguments depend on data.

  fails     operands of another primitive (attrs op, attrs) -> int8: 0 where it does not raise, else which of CLASSES.
  complain  leaves of an exception's arguments (attrs error, spell): raises it.

The invariant: `fails` asks the primitive's own rules, so it says that a row raises exactly where the op itself would,
and it never raises. An exception is built as Python builds it, of values of the example's own kinds.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spmd.ir.types import BOOL, Num, Type
from spmd.ops.faults import blame, one_example, row_count
from spmd.ops.primitive import Faults, Primitive, Site

CODE = Num("int8")
CLASSES: tuple[type[Exception], ...] = (
    ZeroDivisionError, OverflowError, ValueError, IndexError, TypeError, KeyError, AttributeError,
    np.linalg.LinAlgError, np.exceptions.AxisError, FloatingPointError,
)
"""What operations raise; a code is a place in it, from 1. One more stands for any other class."""

Lookup = Callable[[str], Primitive]


def code_of(error: BaseException) -> int:
    """The number of an exception's class."""
    return CLASSES.index(type(error)) + 1 if type(error) in CLASSES else len(CLASSES) + 1


def classes() -> tuple[tuple[int, type[Exception]], ...]:
    """Every code with the class that it stands for; the last with the base of all."""
    return tuple(enumerate((*CLASSES, Exception), start=1))


# ---------------------------------------------------------------------------------------------- which rows fail
def outcomes(lookup: Lookup) -> tuple[Primitive, ...]:
    """The primitives of this file; `lookup` finds the one that an op is asked about."""

    def numpy(*operands: Any, op: str, attrs: dict[str, Any]) -> Any:
        return np.int8(_code(lookup(op), operands, attrs))

    def infer(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
        return CODE

    def sizes(types: Sequence[Type], attrs: dict[str, Any]) -> tuple[int, ...]:
        return lookup(attrs["op"]).sizes(types, attrs["attrs"])

    def rows(site: Site) -> Callable[..., Any]:
        return _rows(site, lookup(site.attrs["op"]), site.attrs["attrs"])

    quotients: tuple[tuple[int, int], ...] = ((7, 2), (7, 0), (-(2**63), -1), (0, 3))
    return (
        Primitive(
            "fails", infer, numpy, rows, sizes=sizes,
            samples=tuple((pair, {"op": "floordiv", "attrs": {}}) for pair in quotients),
        ),
        Primitive(
            "complain", lambda types, attrs: BOOL, _complain, _rows_complain, raises=lambda types, attrs: True,
            samples=tuple(((x, 2.5), {"error": EXAMPLE, "spell": None}) for x in (1, -3)),
        ),
    )


def _code(primitive: Primitive, operands: Sequence[Any], attrs: dict[str, Any]) -> int:
    try:
        with np.errstate(all="ignore"):
            primitive.numpy(*operands, **attrs)
    except Exception as error:
        return code_of(error)
    return 0


def _rows(site: Site, primitive: Primitive, attrs: dict[str, Any]) -> Callable[..., Any]:
    """The rule on rows: of the primitive's own, which reports what fails; row by row where that cannot run at all."""
    try:
        result = primitive.infer(site.types, attrs)
        assert isinstance(result, Num)
        inner: Callable[..., Any] | None = primitive.rows(Site(site.types, result, attrs, site.varying))
    except (ValueError, IndexError, TypeError, OverflowError):
        inner = None

    def each(operands: Sequence[Any], count: int) -> Any:
        found = np.zeros(count, np.int8)
        for row in range(count):
            one = [
                one_example(x[row] if varying else x, type_)
                for x, varying, type_ in zip(operands, site.varying, site.types)
            ]
            found[row] = _code(primitive, one, attrs)
        return found

    def run(*operands: Any) -> Any:
        count = row_count(site, operands)
        if inner is None:
            return each(operands, count)
        faults = Faults()
        try:
            inner(*operands, faults=faults)
        except (ValueError, IndexError, TypeError, OverflowError):
            return each(operands, count)
        found = np.zeros(count, np.int8)
        for bad, make in faults.found:
            for row in np.flatnonzero(bad & (found == 0)):
                found[row] = code_of(make(int(row)))
        return found

    return run


# ---------------------------------------------------------------------------------------------- what is raised
EXAMPLE = ("ValueError", (("format", ("bad ", (("given", 0), "", ("value", "")), ": ")), ("given", 1)))


def exception(error: tuple[Any, tuple[Any, ...]]) -> BaseException:
    """What an `error` attribute of constants describes: a class, or the name of a builtin one, and its arguments."""
    kind, args = error
    return _called(kind, args)


def _called(kind: Any, args: Sequence[Any]) -> BaseException:
    if isinstance(kind, str):
        kind = getattr(builtins, kind)
    try:
        made: BaseException = kind(*args)
    except Exception as problem:  # the constructor is the user's, or lacks arguments
        return problem.with_traceback(None)
    return made


def _complain(*values: Any, error: tuple[Any, tuple[Any, ...]], spell: Any) -> Any:
    kind, args = error
    try:
        given = [built(template, values, spell) for template in args]
    except Exception as problem:  # a format that does not fit
        raise problem.with_traceback(None) from None
    raise _called(kind, given)


def built(template: Any, values: Sequence[Any], spell: Any) -> Any:
    """An argument of an exception: a template around the numbers of `values`. `spell` gives the string of a number."""
    what, *parts = template
    if what == "value":
        return parts[0]
    if what == "given":
        return values[parts[0]]
    if what == "text":
        return str(spell(int(values[parts[0]])))
    if what == "format":
        return "".join(p if isinstance(p, str) else _formatted(p, values, spell) for p in parts[0])
    items = [built(item, values, spell) for item in parts[-1]]
    if what == "dict":
        return dict(zip(parts[0], items))
    if what == "record":
        return parts[0](*items)
    return tuple(items) if what == "tuple" else items


def _formatted(part: Any, values: Sequence[Any], spell: Any) -> str:
    template, conversion, spec = part
    value = built(template, values, spell)
    convert: dict[str, Callable[[Any], Any]] = {"r": repr, "s": str, "a": ascii}
    return format(convert[conversion](value) if conversion else value, built(spec, values, spell))


def _rows_complain(site: Site) -> Callable[..., Any]:
    def run(*operands: Any, faults: Faults) -> Any:
        count = row_count(site, operands)
        blame(faults, np.ones(count, bool), site, _complain, operands)
        return np.zeros(count, bool)

    return run
