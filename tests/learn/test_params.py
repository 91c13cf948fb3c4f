"""Parameters on disk: what is saved comes back, and what is damaged or does not fit is refused."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spmd.learn import ParamsError, count, load, map_leaves, save


@dataclass
class Layer:
    W: Any
    b: Any


class Pair(NamedTuple):
    a: Any
    b: Any


def same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, Layer):
        return type(other) is Layer and same(one.W, other.W) and same(one.b, other.b)
    return type(one) is type(other) and repr(one) == repr(other)


PLAIN: Any = {
    "emb": np.arange(6, dtype=np.float32).reshape(2, 3),
    "layers": [(np.array(1.5), np.float32(2.0)), [], ()],
    3: {"None": None, "rate": 0.1, "nan": math.nan, "inf": -math.inf, "z": 1 + 2j, "n": 7, "flag": True, "name": "é/'"},
    "empty": np.zeros((0, 4), np.int8),
    "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
}


def test_plain_containers_come_back_as_they_were(tmp_path: Path) -> None:
    save(tmp_path / "p.npz", PLAIN)
    assert same(load(tmp_path / "p.npz"), PLAIN)
    assert same(load(tmp_path / "p.npz", like=PLAIN), PLAIN)
    assert os.listdir(tmp_path) == ["p.npz"]


def test_the_file_is_an_ordinary_npz_with_key_paths(tmp_path: Path) -> None:
    save(tmp_path / "p.npz", {"layers": [Layer(np.ones(2), np.zeros(2))]})
    with np.load(tmp_path / "p.npz", allow_pickle=False) as arrays:
        assert {"params['layers'][0].W", "params['layers'][0].b"} <= set(arrays)
        np.testing.assert_array_equal(arrays["params['layers'][0].W"], np.ones(2))


def test_classes_come_back_by_like(tmp_path: Path) -> None:
    params = [Layer(np.ones(2), Pair(np.zeros(1), 2.0))]
    save(tmp_path / "p.npz", params)
    assert same(load(tmp_path / "p.npz", like=params), params)
    with pytest.raises(ParamsError, match=r"params\[0\] was a Layer: give load\(\) like="):
        load(tmp_path / "p.npz")


def test_a_single_array_is_a_tree_too(tmp_path: Path) -> None:
    save(tmp_path / "p.npz", np.arange(3))
    assert same(load(tmp_path / "p.npz"), np.arange(3))


@pytest.mark.parametrize(
    ("like", "message"),
    [
        ({"w": np.ones(3), "v": np.ones(1)}, r"params\['v'\] is missing in the file"),
        ({}, "params"),
        ({"w": np.ones(4)}, r"params\['w'\] is float64\[3\] in the file, float64\[4\] in like"),
        ({"w": np.ones(3, np.float32)}, "float32"),
        ({"w": 1.0}, "float in like"),
        ([np.ones(3)], r"params\[0\] is missing"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(tmp_path: Path, like: Any, message: str) -> None:
    save(tmp_path / "p.npz", {"w": np.ones(3)})
    with pytest.raises(ParamsError, match=message):
        load(tmp_path / "p.npz", like=like)


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    save(tmp_path / "p.npz", {"w": np.arange(20.0), "b": np.float32(1)})
    content = (tmp_path / "p.npz").read_bytes()
    for size in range(0, len(content), 7):
        (tmp_path / "cut.npz").write_bytes(content[:size])
        with pytest.raises(ParamsError):
            load(tmp_path / "cut.npz")


def test_a_flipped_bit_is_refused_or_harmless(tmp_path: Path) -> None:
    params = {"w": np.arange(20.0), "b": np.float32(1)}
    save(tmp_path / "p.npz", params)
    content = (tmp_path / "p.npz").read_bytes()
    refused = 0
    for place in range(0, len(content), 3):
        damaged = bytearray(content)
        damaged[place] ^= 0x10
        (tmp_path / "bad.npz").write_bytes(damaged)
        try:
            assert same(load(tmp_path / "bad.npz"), params)  # bytes that the zip format does not read
        except ParamsError:
            refused += 1
    assert refused > len(content) // 6


def test_objects_are_never_unpickled(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="object"):
        save(tmp_path / "p.npz", {"w": np.array([object()])})
    np.savez(tmp_path / "q.npz", w=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ParamsError):
        load(tmp_path / "q.npz")


def test_a_failed_save_leaves_the_old_file(tmp_path: Path) -> None:
    save(tmp_path / "p.npz", {"w": np.ones(3)})
    with pytest.raises(TypeError, match=r"params\['w'\] is a set"):
        save(tmp_path / "p.npz", {"w": {1}})
    assert same(load(tmp_path / "p.npz"), {"w": np.ones(3)}) and os.listdir(tmp_path) == ["p.npz"]


def test_a_missing_file_is_what_python_says(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.npz")


def test_count_and_map() -> None:
    params = {"w": np.ones((2, 3)), "s": 1.0, "name": "x", "none": None}
    assert count(params) == 7
    doubled = map_leaves(lambda leaf: leaf * 2, params)
    assert np.all(doubled["w"] == 2) and doubled["s"] == 2.0 and doubled["name"] == "xx" and doubled["none"] is None


leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from([np.arange(3), np.float32(1.5), np.zeros((2, 0)), np.array(True)]),
)
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.one_of(st.text(max_size=4), st.integers(-5, 5)), inner, max_size=3),
    ),
    max_leaves=12,
)


@given(trees)
def test_any_tree_comes_back(tmp_path_factory: pytest.TempPathFactory, tree: Any) -> None:
    file = tmp_path_factory.mktemp("trees") / "p.npz"
    save(file, tree)
    assert same(load(file), tree) and same(load(file, like=tree), tree)
