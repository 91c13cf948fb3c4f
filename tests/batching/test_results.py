"""Ragged, unpacking of results, gradients in the structure of packed data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import batching
from batching.columns import NoneColumn, NumberColumn
from batching.schema import ArraySchema, NoneSchema, NumberSchema


class Pair(NamedTuple):
    lo: Any
    hi: Any


@dataclass(frozen=True)
class State:
    position: Any
    step: Any


class Node:
    def __init__(self, weight: float, label: int, name: str, kids: Any = ()) -> None:
        self.weight, self.label, self.name, self.kids = weight, label, name, list(kids)


ARRAYS = [np.arange(6.0).reshape(2, 3), np.zeros((0, 3)), np.ones((1, 3))]


def test_ragged_is_a_sequence_of_arrays() -> None:
    ragged = batching.Ragged.from_list(ARRAYS)
    assert len(ragged) == 3
    assert ragged.lengths.tolist() == [2, 0, 1]
    assert ragged.dtype == np.float64
    assert ragged.values.shape == (3, 3)
    for one, other in zip(ragged, ARRAYS, strict=True):
        assert np.array_equal(one, other)
    assert np.array_equal(ragged[-1], ARRAYS[2])
    assert [array.shape for array in ragged[np.asarray([2, 0])].to_list()] == [(1, 3), (2, 3)]
    assert [array.shape for array in ragged[::-1]] == [(1, 3), (0, 3), (2, 3)]
    assert len(ragged[[]]) == 0
    assert repr(ragged) == "Ragged(3 arrays of float64: (2, 3), (0, 3), (1, 3))"


def test_ragged_keeps_several_differing_sizes() -> None:
    arrays = [np.arange(6).reshape(2, 3), np.arange(4).reshape(4, 1)]
    ragged = batching.Ragged.from_list(arrays)
    assert ragged.dims.tolist() == [[2, 3], [4, 1]]
    assert all(np.array_equal(one, other) for one, other in zip(ragged, arrays, strict=True))


def test_an_array_taken_from_ragged_is_the_callers_own() -> None:
    ragged = batching.Ragged.from_list(ARRAYS)
    ragged[0][0, 0] = 9.0
    assert ragged[0][0, 0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        ragged.values[0] = 1.0


def test_ragged_refuses_offsets_outside_of_its_values() -> None:
    with pytest.raises(batching.PackingError):
        batching.Ragged(np.zeros(3), np.asarray([2]), np.asarray([2]))
    with pytest.raises(batching.PackingError):
        batching.Ragged(np.zeros(3), np.asarray([0, 1]), np.asarray([2]))
    with pytest.raises(batching.PackingError):
        batching.Ragged(np.zeros(3), np.asarray([0]), np.asarray([-1]))
    with pytest.raises(batching.PackingError):
        batching.Ragged.from_list([np.zeros(3), np.zeros(3, np.float32)])
    with pytest.raises(IndexError):
        batching.Ragged.from_list(ARRAYS)[3]


def test_a_result_unpacks_into_one_structure_per_example() -> None:
    result = {
        "number": np.asarray([1.0, 2.0], np.float32), "vector": np.ones((2, 3)), "none": None,
        "ragged": batching.Ragged.from_list([np.ones(1), np.ones(2)]), "packed": batching.pack([[1], [2, 3]]),
        "pair": Pair(np.asarray([1, 2]), (np.asarray([True, False]),)), "list": [np.zeros(2)],
        "state": State(np.zeros((2, 2)), np.asarray([3, 4])),
    }
    first, second = batching.unpack(result)
    assert list(first) == list(result)
    assert type(first["number"]) is np.float32
    assert first["vector"].shape == (3,)
    assert first["none"] is None
    assert second["ragged"].shape == (2,)
    assert second["packed"] == [2, 3]
    assert type(second["pair"]) is Pair
    assert second["pair"].lo == 2
    assert type(second["pair"].hi[0]) is np.bool_
    assert type(first["list"]) is list
    assert type(second["state"]) is State
    assert second["state"].step == 4


def test_unpacking_gives_arrays_that_can_be_written() -> None:
    result = np.zeros((2, 3))
    first, _ = batching.unpack(result)
    first[0] = 1.0
    assert result[0, 0] == 0.0


def test_an_empty_batch_unpacks_to_an_empty_list() -> None:
    assert batching.unpack((np.zeros((0, 3)), {"a": np.zeros(0)})) == []


@pytest.mark.parametrize(("result", "path"), [
    ((np.zeros(2), {"a": np.zeros(3)}), "result[1]['a']"), ((None, None), "result"),
    (Pair(1.0, np.zeros(2)), "result.lo"), (np.zeros(()), "result"),
])
def test_a_result_that_is_not_of_one_batch_is_refused(result: Any, path: str) -> None:
    with pytest.raises(batching.PackingError) as caught:
        batching.unpack(result)
    assert caught.value.path == path


def test_a_gradient_has_floats_in_place_of_floats_and_none_elsewhere() -> None:
    packed = batching.pack([Node(1.0, 1, "a", [Node(2.0, 2, "b")]), Node(3.0, 3, "c")])
    names = [name for name, _ in packed.float_leaves()]
    assert names == ["tables[0].weight"]
    gradient = packed.gradient_like([np.asarray([0.1, 0.2, 0.3])])
    assert gradient.schema.tables[0].fields[0] == NumberSchema("float")
    assert gradient.schema.tables[0].fields[1] == NoneSchema()
    first, second = batching.unpack(gradient)
    assert type(first) is Node
    assert (first.weight, first.label, first.name) == (0.1, None, None)
    assert first.kids[0].weight == 0.2
    assert second.weight == 0.3
    assert second.kids == []


def test_a_gradient_keeps_lists_options_and_variants() -> None:
    examples = [([1.0, 2.0], None, 3), ([], 4.0, "x"), ([5.0], None, 0.5)]
    packed = batching.pack(examples)
    leaves = [np.zeros(array.shape) + place for place, (_, array) in enumerate(packed.float_leaves())]
    assert batching.unpack(packed.gradient_like(leaves)) == [
        ([0.0, 0.0], None, None), ([], 1.0, None), ([0.0], None, 2.0)]
    assert batching.unpack(packed.gradient_like([None, None, None])) == [
        ([None, None], None, None), ([], None, None), ([None], None, None)]


def test_a_gradient_may_have_another_dtype() -> None:
    packed = batching.pack([np.zeros(2), np.ones(3)])
    gradient = packed.gradient_like([np.ones(5, np.float32)])
    assert gradient.schema.root == ArraySchema("float32", (None,))
    assert gradient[1].tolist() == [1.0, 1.0, 1.0]


def test_leaves_of_another_number_or_shape_are_refused() -> None:
    packed = batching.pack([1.0, 2.0])
    for leaves in ([], [np.zeros(3)], [np.zeros(2), np.zeros(2)]):
        with pytest.raises(batching.PackingError):
            packed.gradient_like(leaves)


def test_given_columns_replace_the_leaves_they_mirror() -> None:
    packed = batching.pack([1, 2])
    assert packed.with_columns(NumberColumn(np.asarray([0.5, 1.5])), ()).examples() == [0.5, 1.5]
    assert packed.with_columns(NoneColumn(2), ()).examples() == [None, None]
    with pytest.raises(batching.PackingError):
        packed.with_columns(NoneColumn(3), ())
    with pytest.raises(batching.PackingError):
        batching.pack([[1]]).with_columns(NumberColumn(np.zeros(1)), ())
