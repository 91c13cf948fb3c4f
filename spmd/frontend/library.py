"""Calls of functions that have a rule: NumPy's, Python's numeric builtins, and methods of arrays.

The invariant: what is called with constants alone is called now; a rule gets values, constants, and tuples or lists of
them, and nothing that is one of several kinds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spmd.errors import TypeMismatch, UnsupportedFunction
from spmd.frontend.lowering import Lowering
from spmd.frontend.runs import EXACT, as_column
from spmd.frontend.values import Abstract, Choice, Const, Grown, Leaf, Run, Static, Struct, describe, list_of, tuple_of
from spmd.ir.core import Value
from spmd.ops.numpy_elementwise import SCALAR_TYPES

CONSTANT = frozenset({
    np.eye, np.identity, np.tri, np.linspace, np.geomspace, np.logspace, np.full, np.diag, np.dtype, np.indices,
    np.triu_indices, np.tril_indices, np.diag_indices, np.unravel_index, np.ravel_multi_index, np.vander, np.bartlett,
    np.blackman, np.hamming, np.hanning, np.kaiser,
})

SHARING = frozenset({
    np.asarray, np.asanyarray, np.ascontiguousarray, np.atleast_1d, np.atleast_2d, np.atleast_3d, np.broadcast_to,
    np.diagonal, np.expand_dims, np.flip, np.fliplr, np.flipud, np.moveaxis, np.ravel, np.real, np.reshape, np.rollaxis,
    np.rot90, np.squeeze, np.swapaxes, np.transpose, np.split, np.array_split, np.hsplit, np.vsplit, np.dsplit,
    np.broadcast_arrays, np.diag, np.diff, np.einsum, np.matrix_transpose, np.linalg.matrix_transpose,
    np.linalg.matrix_power,
    *SCALAR_TYPES, "conj", "conjugate", "diagonal", "ravel", "reshape", "squeeze", "swapaxes", "transpose", "view",
})
"""Functions and methods whose result may be the argument's own memory; all others make new arrays."""


def call_numpy(
    low: Lowering, function: Any, rule: Any, args: list[Abstract], kwargs: dict[str, Abstract], node: Any
) -> Abstract:
    """A call of a function that has a rule; of constants alone it is called now."""
    several = next((k for k, thing in enumerate(args) if isinstance(low.settled(thing), Choice)), None)
    if several is not None:
        before, after = args[:several], args[several + 1 :]
        return low.spread(
            args[several], lambda one: call_numpy(low, function, rule, [*before, one, *after], kwargs, node)
        )
    exact = EXACT.get(function)
    if exact is not None and args and isinstance(args[0], (Run, Grown)):
        return exact(low, args, kwargs, node)
    found = _called(low, function, rule, args, kwargs, node)
    return found if low.memory is None or function in SHARING else low.memory.apart(found)


def _called(
    low: Lowering, function: Any, rule: Any, args: list[Abstract], kwargs: dict[str, Abstract], node: Any
) -> Abstract:
    plain = [_argument(low, a, node) for a in args]
    named = {k: _argument(low, a, node) for k, a in kwargs.items()}
    if not _has_value(plain) and not _has_value(list(named.values())):
        found = _fold(function, plain, named)
        if found is not None:
            return _thing(low, found)
    return _thing(low, low.attempt(lambda: rule(low.b, plain, named), node))


def call_of_constants(
    low: Lowering, function: Any, args: list[Abstract], kwargs: dict[str, Abstract], node: Any
) -> Abstract:
    """An array that is made of constants alone, made now."""
    plain = [_argument(low, a, node) for a in args]
    named = {k: _argument(low, a, node) for k, a in kwargs.items()}
    if _has_value(plain) or _has_value(list(named.values())):
        raise low.error(UnsupportedFunction, f"'{function.__name__}' takes only arguments that are known now", node)
    found = _fold(function, plain, named)
    if found is None:
        raise low.error(TypeMismatch, f"'{function.__name__}' cannot be called with these arguments", node)
    return _thing(low, found)


def _argument(low: Lowering, thing: Abstract, node: Any) -> Any:
    """A bound thing as rules take it: a value, a Python constant, or a tuple or list of them."""
    thing = low.settled(thing)
    if isinstance(thing, Leaf):
        return thing.value
    if isinstance(thing, Const):
        return thing.value
    if isinstance(thing, Static):
        return thing.value
    if isinstance(thing, Struct) and thing.kind in ("tuple", "list", "namedtuple"):
        items = [_argument(low, i, node) for i in thing.items]
        return items if thing.kind == "list" else tuple(items)
    if isinstance(thing, (Run, Grown)):
        return as_column(low, thing, node)
    if isinstance(thing, Choice):
        raise low.error(TypeMismatch, f"one kind of value is needed here, not {describe(thing)}", node)
    raise low.error(TypeMismatch, f"a number or array is needed here, not {describe(thing)}", node)


def _has_value(things: Any) -> bool:
    if isinstance(things, Value):
        return True
    return isinstance(things, (list, tuple)) and any(_has_value(t) for t in things)


def _fold(function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    try:
        with np.errstate(all="raise"):
            return function(*args, **kwargs)
    except Exception:  # noqa: BLE001 (what NumPy raises here it raises when the example runs)
        return None


def _thing(low: Lowering, found: Any) -> Abstract:
    """What a rule gave, as a bound thing."""
    if isinstance(found, Value):
        return Leaf(found)
    if isinstance(found, tuple) and hasattr(found, "_fields"):
        return Struct("namedtuple", type(found), found._fields, tuple(_thing(low, x) for x in found))
    if isinstance(found, tuple):
        return tuple_of(tuple(_thing(low, x) for x in found))
    if isinstance(found, list):
        return list_of(tuple(_thing(low, x) for x in found))
    if isinstance(found, (np.ndarray, np.generic)):
        return Leaf(low.b.const(found))
    return Const(found)
