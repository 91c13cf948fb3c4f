"""Gather, scatter-add, segment and column sums: NumPy's values in NumPy's order, and no index unchecked."""

from __future__ import annotations

import numpy as np
import pytest

from spmd.backend.simd import arrays, rows
from spmd.backend.simd.arithmetic import ALL, NUMBERS

SHAPES = [(), (1,), (5,), (17,), (150,), (3, 4)]
N, K = 40, 93


def _rows(count: int, shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    values = np.random.default_rng(seed).standard_normal((count, *shape)) * 9
    return (np.abs(values) if dtype.startswith("u") else values).astype(dtype)


def _indices() -> np.ndarray:
    return np.random.default_rng(1).integers(0, N, K)


@pytest.fixture(params=[True, False], ids=["objects", "described"])
def layout(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways in which arrays reach compiled code."""
    monkeypatch.setattr(arrays, "readable", lambda: request.param)
    monkeypatch.setattr(rows, "_compiled", {})


@pytest.mark.parametrize("dtype", sorted(ALL))
def test_gather_takes_rows(dtype: str, layout: None) -> None:
    indices = _indices()
    for shape in SHAPES:
        wide = _rows(2 * N, shape, dtype)
        for source in (wide[:N], wide[::2], wide[:N][::-1]):
            out = np.empty((K, *shape), dtype)
            rows.gather_rows(source, indices, out)
            np.testing.assert_array_equal(out, source[indices])
    rows.gather_rows(source, indices[:0], out[:0])


@pytest.mark.parametrize("dtype", sorted(NUMBERS))
def test_scatter_adds_repeated_rows_in_order(dtype: str, layout: None) -> None:
    indices = _indices()
    for shape in SHAPES:
        target, source = _rows(N, shape, dtype), _rows(2 * K, shape, dtype, 2)[::2]
        wanted = target.copy()
        for k, i in enumerate(indices):
            wanted[i] += source[k]
        rows.scatter_add_rows(target, indices, source)
        np.testing.assert_array_equal(target, wanted)


@pytest.mark.parametrize("dtype", sorted(NUMBERS))
def test_segments_are_summed_in_order(dtype: str, layout: None) -> None:
    rng = np.random.default_rng(3)
    counts = rng.integers(0, 9, 30)
    starts = rng.integers(0, N - counts)
    starts[0], counts[0] = N, 0
    for shape in SHAPES:
        source, out = _rows(N, shape, dtype), np.empty((30, *shape), dtype)
        rows.segment_sum_rows(source, starts, counts, out)
        wanted = np.zeros((30, *shape), dtype)
        for k in range(30):
            for t in range(starts[k], starts[k] + counts[k]):
                wanted[k] += source[t]
        np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("dtype", sorted(NUMBERS))
def test_columns_are_summed_in_order(dtype: str, layout: None) -> None:
    for shape in SHAPES:
        for count in (0, 1, 7, 8, 93):
            source, out = _rows(2 * count, shape, dtype)[::2], np.empty(shape, dtype)
            rows.column_sum(source, out)
            wanted = np.zeros(shape, dtype)
            for row in source:
                wanted = np.add(wanted, row, out=np.empty(shape, dtype))
            np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("bad", [-1, N, 2**62, -(2**63)])
def test_an_index_outside_is_refused_before_anything_is_written(bad: int) -> None:
    indices = np.array([0, 1, bad])
    source, out = _rows(N, (5,), "float64"), np.zeros((3, 5))
    with pytest.raises(IndexError, match=rf"the index array\[2\] = {bad}: outside of the {N} rows"):
        rows.gather_rows(source, indices, out)
    with pytest.raises(IndexError):
        rows.scatter_add_rows(out, np.array([0, 0, bad if bad != N else 3]), out.copy())
    assert not out.any()
    for starts, counts in (([0, 0, bad], [1, 1, 1]), ([0, 0, 2], [1, 1, bad]), ([0, 0, N], [1, 1, 1])):
        with pytest.raises(IndexError, match=r"starts\[2\] = -?\d+, counts\[2\] = "):
            rows.segment_sum_rows(source, np.array(starts), np.array(counts), out)
    assert not out.any()


def test_arrays_that_do_not_fit_are_refused() -> None:
    source, out, indices = _rows(N, (5,), "float32"), np.zeros((3, 5), np.float32), np.array([0, 1, 2])
    with pytest.raises(ValueError, match="source must be a float32 array"):
        rows.gather_rows(source.astype(np.float64), indices, out)
    with pytest.raises(ValueError, match="the index array must be a int64 array"):
        rows.gather_rows(source, indices.astype(np.int32), out)
    with pytest.raises(ValueError, match="the index array must be"):
        rows.gather_rows(source, indices.astype(">i8"), out)
    with pytest.raises(ValueError, match="must be a"):
        rows.gather_rows(source[:, :4], indices, out)
    with pytest.raises(ValueError, match="must be a"):
        rows.column_sum(source, out[0, ::2])
    with pytest.raises(ValueError, match="not complex128"):
        rows.gather_rows(source.astype(complex), indices, out.astype(complex))
    with pytest.raises(ValueError, match="not bool"):
        rows.column_sum(source > 0, out[0] > 0)
    frozen = out.copy()
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="writeable"):
        rows.scatter_add_rows(frozen, indices, out)
