"""The picking rule, queues, ranks."""

from __future__ import annotations

import numpy as np

from spmd.runtime.schedule import AGE, CHUNK, Priorities, Queues, ranks


def queues(rank: list[int], cheap: list[bool], spawns: list[bool]) -> Queues:
    return Queues(Priorities(tuple(rank), tuple(cheap), tuple(spawns)))


def test_ranks_follow_the_edges_and_components_share_one() -> None:
    got = ranks([[1], [2, 3], [1], [4], []])
    assert got[1] == got[2] and got[0] < got[1] < got[3] < got[4]


def test_ranks_of_a_long_chain_need_no_python_stack() -> None:
    n = 20_000
    got = ranks([[i + 1] for i in range(n - 1)] + [[]])
    assert list(got) == list(range(n))


def test_the_first_component_goes_first_and_its_fullest_cheap_queue() -> None:
    q = queues([0, 0, 0, 1], [False, True, True, True], [False] * 4)
    q.push(3, slice(0, 90), 90)
    q.push(0, slice(0, 50), 50)
    q.push(1, slice(0, 2), 2)
    q.push(2, slice(0, 3), 3)
    order = []
    while q.since:
        r = q.pick(False)
        q.take(r, False)
        order.append(r)
    assert order == [2, 1, 0, 3]


def test_a_queue_that_waited_too_long_is_served() -> None:
    q = queues([0, 1], [True, True], [False, False])
    q.push(1, slice(0, 1), 1)
    for step in range(AGE + 1):
        q.push(0, slice(step, step + 1), 1)
        r = q.pick(False)
        assert r == 0 or step == AGE
        q.take(r, False)
    assert r == 1


def test_over_budget_the_most_downstream_queue_that_makes_no_frames() -> None:
    q = queues([0, 1, 2], [True] * 3, [True, False, True])
    for r in range(3):
        q.push(r, slice(0, 4), 4)
    assert q.pick(True) == 1
    q.take(1, True)
    assert q.pick(True) == 2


def test_over_budget_a_spawner_gives_its_newest_chunk() -> None:
    q = queues([0], [True], [True])
    q.push(0, slice(0, CHUNK), CHUNK)
    q.push(0, slice(CHUNK, CHUNK + 10), 10)
    rows, number = q.take(0, True)
    assert number == CHUNK and rows == slice(10, CHUNK + 10)
    rows, number = q.take(0, False)
    assert number == 10 and np.arange(CHUNK + 10)[rows].tolist() == list(range(10))


def test_rows_come_back_sorted_and_as_a_slice_where_they_touch() -> None:
    q = queues([0], [True], [False])
    q.push(0, slice(5, 8), 3)
    q.push(0, np.array([1, 4]), 2)
    q.push(0, slice(2, 4), 2)
    rows, number = q.take(0, False)
    assert number == 7 and rows == slice(1, 8)
