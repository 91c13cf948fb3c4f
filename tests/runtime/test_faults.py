"""Which exception is the first: lane, then call site and element, then op."""

from __future__ import annotations

import numpy as np

from spmd.runtime.faults import FaultOrder
from spmd.runtime.frames import FrameSpec, FrameTable


def grown() -> tuple[list[FrameTable], FaultOrder]:
    """Lane 0 and 1: frames 0 and 1; frame 0 calls 2 (site 0, order 1) and 3 (site 1, order 3); 2 maps to 4, 5."""
    table = FrameTable(FrameSpec(0, "f", (), (), (), None, True), 8)
    table.new(6)
    table.parent[:6] = [-1, -1, 0, 0, 2, 2]
    table.site[:6] = [-1, -1, 0, 1, 0, 0]
    table.lane[:6] = [0, 1, 0, 0, 0, 0]
    table.element[:6] = [0, 0, 0, 0, 0, 1]
    return [table], FaultOrder([table], [(0, (1,)), (0, (3,))])


def offer(order: FaultOrder, frame: int, at: int, name: str) -> None:
    order.offer(0, frame, (at,), lambda: ValueError(name), None)


def test_the_lowest_lane_wins() -> None:
    _, order = grown()
    offer(order, 1, 1, "second")
    offer(order, 3, 9, "first")
    offer(order, 1, 0, "late")
    assert str(order.exception) == "first" and order.lane == 0


def test_calls_are_ordered_by_site_and_elements_by_number() -> None:
    _, order = grown()
    offer(order, 3, 0, "site 1")
    offer(order, 5, 0, "element 1")
    offer(order, 4, 7, "element 0")
    assert str(order.exception) == "element 0"


def test_an_op_between_two_calls_stands_between_them() -> None:
    _, order = grown()
    offer(order, 0, 2, "between")
    offer(order, 3, 0, "after")
    assert str(order.exception) == "between"
    offer(order, 2, 5, "before")
    assert str(order.exception) == "before"


def test_only_later_frames_are_dropped() -> None:
    _, order = grown()
    offer(order, 5, 0, "element 1")
    assert order.keep(0, np.array([1, 3, 4])).tolist() == [False, False, True]
    offer(order, 4, 0, "element 0")
    assert order.keep(0, np.array([3, 5])).tolist() == [False, False]
