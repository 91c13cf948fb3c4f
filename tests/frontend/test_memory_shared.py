"""Functions and methods share memory with their arguments where NumPy does, and nowhere else.

For every rule, every kind of argument that it takes: what NumPy's result shares with the argument is what the compiler
takes it to share. A function that copies in NumPy and is the identity here would show writes where there are none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import spmd
from spmd.frontend.library import SHARING
from spmd.frontend.objects import VIEWS
from spmd.ir.core import Block, Value
from spmd.ir.types import Num
from spmd.ops.table import METHODS, NUMPY, builder

MORE: tuple[tuple[Any, ...], ...] = (
    (), (0,), (1,), (2,), ((4, 3),), ((12,),), (-1,), ("float64",), (np.float64,), (0, 1), ((1, 0),), ((3, 4),), (0, 0),
)
NAMED: tuple[dict[str, Any], ...] = ({}, {"axis": 0}, {"axis": 1}, {"axis": -1}, {"dtype": np.float64})
ARRAYS = (
    np.arange(12.0).reshape(3, 4), np.arange(4.0), np.arange(4.0).reshape(1, 4), np.arange(4.0).reshape(4, 1),
    np.arange(4), np.arange(9.0).reshape(3, 3),
)


def functions() -> list[tuple[Any, Any, Callable[..., Any]]]:
    """What is called in SHARING, its rule, and how it is called on an array."""
    found: list[tuple[Any, Any, Callable[..., Any]]] = [
        (f, rule, f) for f, rule in NUMPY.items()
        if isinstance(f, np.ufunc) or str(getattr(f, "__module__", "")).startswith("numpy")
    ]
    return found + [(name, rule, _method(name)) for name, rule in METHODS.items()]


def _method(name: str) -> Callable[..., Any]:
    return lambda array, *more, **named: getattr(array, name)(*more, **named)


def title(function: Any) -> str:
    return function if isinstance(function, str) else function.__name__


def shares(rule: Any, array: Any, listed: bool, more: tuple[Any, ...], named: dict[str, Any]) -> bool | None:
    """Whether the rule's result is the argument or read from it; None where the rule refuses."""
    b, value = builder(Block()), Value(Num(str(array.dtype), array.shape))
    try:
        result = rule(b, [[value] if listed else value, *more], dict(named))
    except Exception:  # noqa: BLE001 (what a rule does not take is no case here)
        return None
    if not isinstance(result, Value):
        return None
    while result is not value and result in b.defs and b.defs[result].name in VIEWS:
        result = b.defs[result].operands[0]
    return result is value


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("function", "rule", "call"), functions(), ids=[title(f) for f, *_ in functions()])
def test_results_share_what_numpy_shares(function: Any, rule: Any, call: Callable[..., Any]) -> None:
    for array in ARRAYS:
        for listed in (False, True):
            for more in MORE:
                for named in NAMED:
                    given = array.copy()
                    try:
                        wanted = call([given] if listed else given, *more, **named)
                    except Exception:  # noqa: BLE001 (no case)
                        continue
                    if not isinstance(wanted, np.ndarray) or not wanted.ndim or not wanted.size:
                        continue
                    found = shares(rule, given, listed, more, named)
                    if found is None:
                        continue
                    known = np.shares_memory(wanted, given)
                    assert found or not known, "a view that is not known as one"
                    assert function in SHARING or not known, "a view of a function that is taken to copy"
                    assert function not in SHARING or found == known, "a copy of a function that is taken to share"


def writes_to_pieces(x):
    p, q = np.split(x, 2)
    p[0] = 9.0
    x[-1, 0] = 3.0
    return x, p, q


def writes_beside_a_diagonal(x):
    d, e = np.diag(x), np.diagonal(x, 1)
    x[0, 0], x[0, 1] = 5.0, 6.0
    return d, e, x


def writes_to_what_einsum_turned(x):
    y = np.einsum("ij->ji", x)
    y[0, 1] = 5.0
    return x, y, np.einsum("ij,jk->ik", x, y)


def writes_to_what_was_spread(x):
    u, v = np.broadcast_arrays(x, x[0])
    x[0, 0] = 3.0
    return u, v


def writes_to_new_arrays(x):
    a, b, c, d = np.sort(x, axis=0), np.tril(x), np.append(x, x), np.tile(x, 1)
    a[0], b[0], c[0], d[0] = 1.0, 2.0, 3.0, 4.0
    e, f, g = np.conj(x), np.block([[x]]), np.roll(x, 0)
    e[0], f[0], g[0] = 1.0, 2.0, 3.0
    return x, a, b, c, d, e, f, g


def writes_to_a_diagonal(x):
    d = np.diagonal(x)
    d[0] = 1.0  # here
    return x


WRITING = [
    writes_to_pieces, writes_beside_a_diagonal, writes_to_what_einsum_turned, writes_to_what_was_spread,
    writes_to_new_arrays,
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("function", WRITING, ids=title)
def test_writes_are_seen_where_numpy_shows_them(function: Callable[..., Any]) -> None:
    xs = np.random.default_rng(0).normal(size=(5, 2, 2))
    want = [function(x.copy()) for x in xs]
    for k, found in enumerate(spmd.vmap(function)(xs.copy())):
        np.testing.assert_allclose(found, np.stack([values[k] for values in want]), rtol=1e-12)


def test_a_diagonal_is_not_written_to() -> None:
    with pytest.raises(spmd.SpmdError, match="read alone"):
        spmd.vmap(writes_to_a_diagonal)(np.zeros((2, 2, 2)))
