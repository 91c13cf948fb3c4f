"""Ragged values, runs of rows, segment sums, repeated adds."""

from __future__ import annotations

import numpy as np
import pytest

from spmd.runtime.ragged import (
    Ragged,
    add_rows,
    concat,
    from_arrays,
    from_dense,
    from_uniform,
    offsets,
    packed,
    runs,
    segment_sum,
)


def test_arrays_come_back_as_they_went_in() -> None:
    arrays = [np.arange(n * 2.0).reshape(n, 2) for n in (3, 0, 1)]
    value = from_arrays(arrays)
    assert value.packed and value.trail == (2,)
    for i, a in enumerate(arrays):
        np.testing.assert_array_equal(value.one(i), a)


def test_taken_rows_share_the_buffer_and_pack_to_the_same_value() -> None:
    value = from_arrays([np.arange(n) for n in (3, 1, 2)])
    some = value.take(np.array([2, 0]))
    assert some.data is value.data and not some.packed
    tight = some.pack()
    assert tight.data.tolist() == [0, 1, 0, 1, 2] and tight.lo.tolist() == [0, 2]


def test_uniform_and_dense_values_become_equal_blocks() -> None:
    value = from_uniform(np.array([[1.0, 2.0]]), 3, 1)
    assert value.dims.tolist() == [[1], [1], [1]] and value.flat().shape == (3, 2)
    np.testing.assert_array_equal(from_dense(value.dense((1, 2)), 2).flat(), np.tile([1.0, 2.0], 3))


def test_concat_joins_rows() -> None:
    value = concat([from_arrays([np.arange(2)]), from_arrays([np.arange(3), np.arange(1)])])
    assert [value.one(i).tolist() for i in range(3)] == [[0, 1], [0, 1, 2], [0]]


def test_runs_and_offsets() -> None:
    counts = np.array([2, 0, 3])
    assert offsets(counts).tolist() == [0, 2, 2]
    assert runs(np.array([5, 9, 0]), counts).tolist() == [5, 6, 0, 1, 2]
    assert offsets(np.array([], int)).tolist() == []


@pytest.mark.parametrize("counts", [[2, 0, 3, 0], [0, 0], [], [1]])
def test_segment_sums_with_empty_segments(counts: list[int]) -> None:
    data = np.arange(sum(counts) * 2.0).reshape(-1, 2)
    got = segment_sum(data, np.array(counts, np.int64))
    at = 0
    for row, n in zip(got, counts):
        np.testing.assert_array_equal(row, data[at : at + n].sum(0))
        at += n


def test_adds_at_repeated_rows_are_all_counted() -> None:
    rng = np.random.default_rng(0)
    rows, values = rng.integers(0, 5, size=40), rng.normal(size=(40, 3))
    got, want = np.zeros((5, 3)), np.zeros((5, 3))
    add_rows(got, rows, values)
    np.add.at(want, rows, values)
    np.testing.assert_allclose(got, want)
    flat = np.zeros(5)
    add_rows(flat, rows, 1.0)
    assert flat.tolist() == np.bincount(rows, minlength=5).tolist()


def test_an_empty_value_packs() -> None:
    value = packed(np.zeros((0, 2)), np.zeros((0, 1), np.int64))
    assert len(value) == 0 and value.flat().shape == (0, 2)
    assert isinstance(value.take(slice(0, 0)), Ragged)
