"""The loader: seeded minibatches in the containers of the data."""

from __future__ import annotations

import subprocess
import sys
from typing import Any, NamedTuple

import numpy as np
import pytest

import batching


class Data(NamedTuple):
    trees: Any
    labels: Any


def seen(loader: batching.Loader) -> list[int]:
    return [int(value) for batch in loader for value in batch]


def test_every_example_comes_once_per_epoch() -> None:
    loader = batching.Loader(np.arange(10), 3)
    assert [len(batch) for batch in loader] == [3, 3, 3, 1]
    assert len(loader) == 4
    assert sorted(seen(loader)) == list(range(10))
    assert loader.epoch == 2


def test_an_incomplete_last_batch_can_be_left_out() -> None:
    loader = batching.Loader(np.arange(10), 3, drop_last=True)
    assert [len(batch) for batch in loader] == [3, 3, 3]
    assert len(loader) == 3


def test_the_order_depends_on_seed_and_epoch_alone() -> None:
    one, other = batching.Loader(np.arange(50), 8, seed=3), batching.Loader(np.arange(50), 8, seed=3)
    first, second = seen(one), seen(one)
    assert first != second
    next(iter(other))
    assert seen(other) == second
    assert seen(batching.Loader(np.arange(50), 8, seed=4)) != first
    assert seen(batching.Loader(np.arange(50), 8, shuffle=False)) == list(range(50))


def test_batches_have_the_containers_of_the_data() -> None:
    data = Data(batching.pack([[1.0] * place for place in range(6)]), {"y": np.arange(6), "z": list(range(6))})
    for batch in batching.Loader(data, 4):
        assert type(batch) is Data
        lengths = [len(example) for example in batch.trees.examples()]
        assert lengths == batch.labels["y"].tolist() == batch.labels["z"].examples()
        assert batch.trees.schema == data.trees.schema


def test_ragged_data_is_sliced() -> None:
    ragged = batching.Ragged.from_list([np.zeros(place) for place in range(4)])
    lengths = [batch.lengths.tolist() for batch in batching.Loader(ragged, 2, shuffle=False)]
    assert lengths == [[0, 1], [2, 3]]


def test_no_data_gives_no_batch() -> None:
    loader = batching.Loader(np.zeros((0, 2)), 4)
    assert len(loader) == 0
    assert list(loader) == []


def test_lengths_that_differ_are_refused_with_each_size() -> None:
    with pytest.raises(batching.PackingError, match=r"data\['a'\] has 2, data\['b'\] has 3"):
        batching.Loader({"a": np.zeros(2), "b": [1, 2, 3]}, 1)
    with pytest.raises(batching.PackingError, match="float"):
        batching.Loader((1.0, np.zeros(2)), 1)
    with pytest.raises(ValueError, match="at least 1"):
        batching.Loader(np.zeros(2), 0)


def test_progress_is_silent_where_the_output_is_no_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    assert len(list(batching.Loader(np.zeros(4), 2, progress=True))) == 2
    assert capfd.readouterr() == ("", "")


def test_importing_batching_loads_neither_rich_nor_the_compiler() -> None:
    heavy = ("rich", "numba", "llvmlite", "optree", "spmd")
    code = f"import sys, batching; print([name for name in {heavy} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
