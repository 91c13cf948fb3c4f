"""A run keeps the linear algebra library to one thread, and leaves it as it was."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import spmd
from spmd.runtime.threads import BLAS, BlasThreads, _loaded


class Library:
    """Stands for a library with a number of threads."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.history: list[int] = []

    def get_num_threads(self) -> int:
        return self.number

    def set_num_threads(self, number: int) -> None:
        self.number = number
        self.history.append(number)


def test_one_thread_in_a_run_and_all_for_a_large_product() -> None:
    library = Library(4)
    threads = BlasThreads(lambda: [library])
    with threads.narrow():
        assert library.number == 1
        with threads.wide():
            assert library.number == 4
        assert library.number == 1
        with threads.narrow():
            assert library.number == 1
        assert library.number == 1
    assert library.number == 4


def test_a_large_product_outside_a_run_changes_nothing() -> None:
    library = Library(4)
    threads = BlasThreads(lambda: [library])
    with threads.wide():
        assert library.number == 4
    assert library.history == []


def test_a_library_of_one_thread_is_left_alone() -> None:
    library = Library(1)
    with BlasThreads(lambda: [library]).narrow():
        pass
    assert library.history == []


def test_a_number_set_meanwhile_stays() -> None:
    library = Library(4)
    with BlasThreads(lambda: [library]).narrow():
        library.number = 2
    assert library.number == 2


def test_an_exception_gives_the_threads_back() -> None:
    library = Library(4)
    with pytest.raises(KeyError), BlasThreads(lambda: [library]).narrow():
        raise KeyError
    assert library.number == 4


def test_overlapping_runs_give_the_threads_back_at_the_end() -> None:
    library = Library(4)
    threads = BlasThreads(lambda: [library])
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with threads.narrow():
            inside.set()
            leave.wait(10)

    worker = threading.Thread(target=other)
    with threads.narrow():
        worker.start()
        inside.wait(10)
    assert library.number == 1
    leave.set()
    worker.join()
    assert library.number == 4


def test_a_call_leaves_the_process_as_it_was() -> None:
    libraries = _loaded()
    before = [library.get_num_threads() for library in libraries]
    seen: list[int] = []
    weights = np.ones((3, 3))

    def f(w: np.ndarray, x: np.ndarray) -> np.ndarray:
        return np.sum(w @ x)

    run = spmd.vmap(f, in_axes=(None, 0))
    limit = BLAS.count

    def watched(runs: int, large: int) -> None:
        limit(runs, large)
        seen.extend(library.get_num_threads() for library in libraries if runs > 0)

    BLAS.count = watched  # type: ignore[method-assign]
    try:
        np.testing.assert_allclose(run(weights, np.ones((4, 3))), np.full(4, 9.0))
    finally:
        del BLAS.count  # type: ignore[attr-defined]
    assert set(seen) <= {1}
    assert [library.get_num_threads() for library in libraries] == before
