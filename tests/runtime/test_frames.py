"""Frame tables and arenas."""

from __future__ import annotations

import numpy as np

from spmd.runtime.arena import Arena, Arenas
from spmd.runtime.frames import ColumnSpec, FrameSpec, FrameTable, compact, count, union, vector
from spmd.runtime.ragged import Ragged, from_arrays

DENSE = ColumnSpec("dense", "float64", (2,), 0)
AGAIN = ColumnSpec("dense", "float64", (), 1, single=False)
RUN = ColumnSpec("run", "int64", (), 2)
RAGGED = ColumnSpec("ragged", "float64", (), 4, sizes=1)


def table(capacity: int = 1) -> FrameTable:
    return FrameTable(FrameSpec(0, "f", (DENSE, AGAIN, RUN, RAGGED), (0,), (1,), None, True, True), capacity)


def test_columns_keep_their_cells_when_the_table_grows() -> None:
    frames, arenas = table(), Arenas()
    frames.new(2)
    frames.write(DENSE, slice(0, 2), np.ones((2, 2)))
    frames.write(RUN, slice(0, 2), (np.array([1, 2]), np.array([3, 4])))
    view = frames.read(DENSE, slice(0, 2), arenas)
    assert frames.new(100) == 2
    frames.write(DENSE, np.array([5, 7]), 2.0)
    assert (view == 1).all() and (frames.read(DENSE, slice(0, 2), arenas) == 1).all()
    assert [a.tolist() for a in frames.read(RUN, np.array([1]), arenas)] == [[2], [4]]


def test_a_column_written_again_is_read_by_copy() -> None:
    frames, arenas = table(), Arenas()
    frames.new(3)
    frames.write(AGAIN, slice(0, 3), np.arange(3.0))
    before = frames.read(AGAIN, slice(0, 3), arenas)
    frames.write(AGAIN, slice(0, 3), 9.0)
    assert before.tolist() == [0.0, 1.0, 2.0]
    frames.write(DENSE, slice(0, 3), 1.0)
    assert np.shares_memory(frames.read(DENSE, slice(0, 3), arenas), frames.data[0])


def test_handles_stay_valid_when_the_arena_grows() -> None:
    frames, arenas = table(), Arenas()
    frames.new(2)
    arena = arenas.get("float64", ())
    value = from_arrays([np.arange(3.0), np.arange(1.0)])
    first = arena.append(value.data)
    frames.write(RAGGED, slice(0, 2), Ragged(arena.buffer, value.lo + first, value.dims))
    arena.append(np.zeros(5000))
    got = frames.read(RAGGED, np.array([0, 1]), arenas)
    assert got.one(0).tolist() == [0.0, 1.0, 2.0] and got.one(1).tolist() == [0.0]


def test_an_adopted_buffer_is_never_written() -> None:
    arena, given = Arena("float64", ()), np.arange(3.0)
    assert arena.adopt(given) == 0 and arena.buffer is given
    assert arena.append(np.full(2, 7.0)) == 3
    assert given.tolist() == [0.0, 1.0, 2.0] and arena.buffer[:5].tolist() == [0.0, 1.0, 2.0, 7.0, 7.0]


def test_row_sets() -> None:
    assert compact(np.array([3, 4, 5])) == slice(3, 6)
    assert union([slice(4, 6), slice(0, 4)]) == slice(0, 6)
    assert vector(slice(1, 9, 3)).tolist() == [1, 4, 7] and count(slice(1, 9, 3)) == 3
