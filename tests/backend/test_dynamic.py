"""Ops on arrays of different sizes: every row equals the primitive's one-example meaning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spmd.backend.blas import dynamic
from spmd.backend.blas.plan import ragged_axes
from spmd.ir.core import Op, Value
from spmd.ir.types import INT, Num, Type
from spmd.ops.table import PRIMITIVES, type_rule
from spmd.runtime.faults import Faults
from spmd.runtime.ragged import Ragged, packed

F64 = "float64"
V, M, W3 = Num(F64, (None,)), Num(F64, (None, 3)), Num(F64, (3, 2))
DIMS1, DIMS2 = Num("int64", (1,)), Num("int64", (2,))
SIZES = np.array([3, 0, 2, 3, 5, 1, 2])


def cut(*entries: Any) -> dict[str, Any]:
    return {"index": tuple(entries)}


# name, operand types, forms, attrs
CASES: list[tuple[str, list[Type], list[str], dict[str, Any]]] = [
    ("add", [V, V], ["ragged", "ragged"], {}),
    ("mul", [M, M], ["ragged", "ragged"], {}),
    ("tanh", [M], ["ragged"], {}),
    ("where", [Num("bool", (None,)), V, V], ["ragged"] * 3, {}),
    ("cast", [V], ["ragged"], {"dtype": "float32", "python": False}),
    ("sum", [V], ["ragged"], {"axes": (0,), "keepdims": False}),
    ("sum", [M], ["ragged"], {"axes": (0,), "keepdims": False}),
    ("sum", [M], ["ragged"], {"axes": (1,), "keepdims": False}),
    ("sum", [M], ["ragged"], {"axes": (0, 1), "keepdims": False}),
    ("sum", [M], ["ragged"], {"axes": (0,), "keepdims": True}),
    ("sum", [M], ["ragged"], {"axes": (1,), "keepdims": True}),
    ("any", [Num("bool", (None,))], ["ragged"], {"axes": (0,), "keepdims": False}),
    ("matmul", [M, W3], ["ragged", "uniform"], {}),
    ("matmul", [M, W3], ["ragged", "rows"], {}),
    ("matmul", [M, Num(F64, (3,))], ["ragged", "rows"], {}),
    ("matmul", [M, Num(F64, (3,))], ["ragged", "uniform"], {}),
    ("matmul", [V, V], ["ragged", "ragged"], {}),
    ("matmul", [V, M], ["ragged", "ragged"], {}),
    ("matmul", [Num(F64, (4, 3)), Num(F64, (3, None))], ["uniform", "ragged"], {}),
    ("outer", [V, Num(F64, (3,))], ["ragged", "rows"], {}),
    ("transpose", [M], ["ragged"], {"perm": (1, 0)}),
    ("concat", [V, V], ["ragged", "ragged"], {"axis": 0}),
    ("concat", [M, Num(F64, (2, 3))], ["ragged", "rows"], {"axis": 0}),
    ("stack", [V, V], ["ragged", "ragged"], {"axis": 0}),
    ("shape_of", [M], ["ragged"], {}),
    ("dim", [M], ["ragged"], {"axis": 0}),
    ("dim", [M], ["ragged"], {"axis": 1}),
    ("broadcast_to", [Num(F64), DIMS1], ["rows", "sizes"], {"shape": (None,)}),
    ("broadcast_to", [Num(F64), DIMS1], ["uniform", "sizes"], {"shape": (None,)}),
    ("broadcast_to", [Num(F64, (3,)), DIMS2], ["rows", "sizes"], {"shape": (None, 3)}),
    ("broadcast_to", [Num(F64, (3,)), DIMS2], ["uniform", "sizes"], {"shape": (None, 3)}),
    ("broadcast_to", [V, DIMS1], ["ragged", "sizes"], {"shape": (None,)}),
    ("broadcast_to", [V, DIMS2], ["ragged", "wide"], {"shape": (3, None)}),
    ("broadcast_to", [Num(F64, (1, 3)), DIMS2], ["rows", "sizes"], {"shape": (None, 3)}),
    ("broadcast_to", [Num(F64, (1, 3)), DIMS2], ["uniform", "sizes"], {"shape": (None, 3)}),
    ("unbroadcast", [M, DIMS2], ["ragged", "sizes"], {"shape": (None, 3), "extra": 0}),
    ("unbroadcast", [M, DIMS2], ["ragged", "ones"], {"shape": (None, 3), "extra": 0}),
    ("fill_to", [Num(F64), DIMS1], ["rows", "sizes"], {"shape": (None,)}),
    ("fill_to", [Num(F64), DIMS1], ["uniform", "sizes"], {"shape": (None,)}),
]


def value_of(rng: np.random.Generator, type_: Num, form: str) -> Any:
    """Operands for K rows in a form."""
    if form == "sizes":
        return np.array([[n, *(m for m in (3,) if type_.shape == (2,))] for n in SIZES], np.int64)
    if form == "ones":
        return np.array([[1, 3]] * len(SIZES), np.int64)
    if form == "wide":
        return np.array([[3, n] for n in SIZES], np.int64)
    k = ragged_axes(type_)
    if form == "ragged":
        dims = np.array([[n if s is None else s for s in type_.shape[:k]] for n in SIZES], np.int64)
        total = int(dims.prod(1).sum())
        trail = tuple(n for n in type_.shape[k:] if n is not None)
        data = np.round(rng.normal(size=(total, *trail)) * 2).astype(type_.dtype)
        tight = packed(data, dims)
        # In a larger buffer, blocks in another order: nothing may rely on packed rows.
        order = rng.permutation(len(SIZES))
        moved = np.concatenate([data[:0]] + [tight.one(int(r)).reshape((-1, *trail)) for r in order])
        lo = np.empty(len(SIZES), np.int64)
        lo[order] = np.concatenate([[0], np.cumsum(tight.sizes[order])[:-1]])
        return Ragged(moved, lo, dims)
    shape = tuple(n for n in type_.shape if n is not None)
    lead = (len(SIZES),) if form == "rows" else ()
    return np.round(rng.normal(size=(*lead, *shape)) * 2).astype(type_.dtype)[()]


def row_of(value: Any, form: str, row: int) -> Any:
    if form == "uniform":
        return value
    return value.one(row) if isinstance(value, Ragged) else value[row]


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0]}-{'-'.join(map(str, c[1]))}-{'-'.join(c[2])}-{c[3]}")
def test_each_row_has_the_primitives_meaning(case: Any) -> None:
    name, types, forms, attrs = case
    rng = np.random.default_rng(0)
    values = [value_of(rng, t, f) for t, f in zip(types, forms)]
    op = Op(name, [Value(t) for t in types], attrs, [Value(t) for t in type_rule(name, types, attrs)])
    kinds = ["rows" if f in ("sizes", "wide", "ones") else f for f in forms]
    raises = PRIMITIVES[name].raises(types, attrs)
    rule, form = dynamic.rule(op, kinds, raises)
    faults = Faults()
    with np.errstate(all="ignore"):
        got = rule(*values, faults=faults)
    assert not faults.found
    for row in range(len(SIZES)):
        want = np.asarray(PRIMITIVES[name].numpy(*(row_of(v, f, row) for v, f in zip(values, kinds)), **attrs))
        mine = got.one(row) if form == "ragged" else got[row]
        np.testing.assert_allclose(mine, want, rtol=1e-12)
        assert mine.shape == want.shape and np.asarray(mine).dtype == want.dtype


def test_reading_elements_and_slices() -> None:
    rng = np.random.default_rng(1)
    x = value_of(rng, M, "ragged")
    some = SIZES > 0
    x = Ragged(x.data, x.lo[some], x.dims[some])
    i = np.array([-1 if k % 2 else 0 for k in range(len(x))])
    index = Op("index", [Value(M), Value(INT)], {}, [Value(Num(F64, (3,)))])
    rule, _ = dynamic.rule(index, ["ragged", "rows"], True)
    got = rule(x, i, faults=Faults())
    for row in range(len(x)):
        np.testing.assert_array_equal(got[row], x.one(row)[i[row]])
    attrs = {"axis": 0, "step": 1}
    cut_op = Op("dynslice", [Value(M), Value(INT), Value(INT)], attrs, [Value(M)])
    rule, _ = dynamic.rule(cut_op, ["ragged", "rows", "uniform"], False)
    for stop in (-1, 1, 2, 7):
        got = rule(x, i, stop, faults=Faults())
        for row in range(len(x)):
            np.testing.assert_array_equal(got.one(row), x.one(row)[i[row] : stop])


def test_an_index_out_of_range_is_reported_for_its_row_only() -> None:
    x = packed(np.arange(6.0), np.array([[3], [1], [2]]))
    op = Op("index", [Value(V), Value(INT)], {}, [Value(Num(F64))])
    rule, _ = dynamic.rule(op, ["ragged", "rows"], True)
    faults = Faults()
    got = rule(x, np.array([2, 1, -2]), faults=faults)
    ((_, bad, make),) = faults.found
    assert bad.tolist() == [False, True, False]
    assert str(make(1)) == "index 1 is out of bounds for axis 0 with size 1"
    assert got[0] == 2.0 and got[2] == 4.0


def test_rows_that_failed_before_disturb_no_other_row() -> None:
    x = packed(np.arange(5.0), np.array([[2], [3]]))
    y = packed(np.arange(5.0), np.array([[3], [2]]))
    op = Op("add", [Value(V), Value(V)], {}, [Value(V)])
    rule, _ = dynamic.rule(op, ["ragged", "ragged"], False)
    faults = Faults()
    with pytest.raises((ValueError, TypeError)):
        rule(x, y, faults=faults)
    faults.report(np.array([True, True]), lambda row: ValueError())
    assert rule(x, y, faults=faults).sizes.tolist() == [0, 0]
    z = packed(np.arange(6.0), np.array([[2], [4]]))
    one = Faults()
    one.report(np.array([False, True]), lambda row: ValueError())
    np.testing.assert_array_equal(rule(x, z, faults=one).one(0), [0.0, 2.0])
