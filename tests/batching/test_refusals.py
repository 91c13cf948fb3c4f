"""What cannot be packed is refused with the key path of the value; columns that do not fit a schema likewise."""

from __future__ import annotations

import enum
import fractions
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import batching
from batching.columns import LinkColumn, ListColumn, NumberColumn, RaggedColumn, TableColumns
from batching.schema import (
    ArraySchema,
    LinkSchema,
    ListSchema,
    NumberSchema,
    PackedSchema,
    StringSchema,
    TableSchema,
    VariantSchema,
)


class Node:
    def __init__(self, word: Any, left: Any = None) -> None:
        self.word, self.left = word, left


class Color(enum.Enum):
    RED = 1


class Angle(float):
    pass


def numbers() -> Any:
    yield 1


@pytest.mark.parametrize(("value", "found"), [
    (lambda: 1, "function"), (numbers(), "generator"), ({1, 2}, "set"), (b"x", "bytes"), (range(3), "range"),
    (np.array([object()]), "dtype object"), (np.array(["x"]), "dtype <U1"), (np.ones(2, ">f8"), "byte order"),
    (Color.RED, "enum member"), (Angle(1.0), "subclass of float"), (int, "class int"), (np.datetime64("2020"), "dtype"),
    ({1.5: 2}, "dictionary key"), ({True: 2}, "dictionary key"), (np.ma.masked_array([1.0]), "subclass of ndarray"),
    (np.random.default_rng(0), "Generator"), (2**63, "64 bits"), (-2**63 - 1, "64 bits"),
    (np.zeros(2, [("a", "f8")]), "dtype"),
])
def test_the_message_names_the_value_and_its_key_path(value: Any, found: str) -> None:
    with pytest.raises(batching.PackingError, match=found) as caught:
        batching.pack([Node(1), Node(2, Node({"k": [0, value]}))], name="trees")
    assert caught.value.path == "trees[1].left.word['k'][1]"
    assert str(caught.value).startswith(caught.value.path + ": ")


def test_fractions_are_objects_of_a_python_class_like_any_other() -> None:
    assert batching.pack([fractions.Fraction(1, 2)])[0] == fractions.Fraction(1, 2)


def test_a_list_that_holds_itself_is_refused() -> None:
    ring: list[Any] = []
    ring.append(ring)
    with pytest.raises(batching.PackingError, match="holds itself"):
        batching.pack([1, ring])


def test_a_deep_path_is_shortened() -> None:
    node = Node(object())
    for _ in range(1000):
        node = Node(1, node)
    with pytest.raises(batching.PackingError) as caught:
        batching.pack([node])
    assert len(caught.value.path) < 200
    assert caught.value.path.startswith("examples[0].left")
    assert caught.value.path.endswith(".left.word")


@pytest.mark.parametrize(("known", "new", "found"), [
    ([1, 2], ["x"], "type str"), ([1, 2], [None], "None"), ([1, 2], [1.5], "type float"),
    ([np.ones(2)], [np.ones(3)], "shape"), ([np.ones(2)], [np.ones(2, np.float32)], "float32"),
    ([Node(1)], [Node("x")], "type str"), ([Node(1)], [Node(1, Node(2))], "type Node"),
    ([(1, 2)], [(1, 2, 3)], "tuple"),
    ([{"a": 1}], [{"b": 1}], "dict"), ([[], []], [[1]], "type int"), ([Node(1)], [Color], "class Color"),
    ([1], [Node(1)], "Node"),
])
def test_data_that_does_not_fit_the_schema_to_follow_is_refused(known: Any, new: Any, found: str) -> None:
    with pytest.raises(batching.PackingError, match=found) as caught:
        batching.pack([*known[:0], *new], like=batching.pack(known))
    assert caught.value.path.startswith("examples[0]")


def test_a_value_without_identity_is_placed_by_its_example() -> None:
    whole = batching.pack([(1, 2.0), (3, 4.0)])
    with pytest.raises(batching.PackingError, match="None") as caught:
        batching.pack([(1, 2.0), (3, None)], like=whole)
    assert caught.value.path == "examples[1][1]"


def test_sharing_that_the_schema_to_follow_lacks_widens_its_flags() -> None:
    child = Node(1)
    whole = batching.pack([(Node(1, Node(2)), Node(3))])
    part = batching.pack([(Node(1, child), child)], like=whole)
    assert not whole.schema.tables[0].shared
    assert part.schema.tables[0].shared
    assert part.schema.tables[0].fields == whole.schema.tables[0].fields


CHAIN = PackedSchema(LinkSchema(0, False), (TableSchema(
    ((Node, ("word", "left")),), ("word", "left"), (NumberSchema("int"), LinkSchema(0, True))),))


def ints(*values: int) -> np.ndarray[Any, Any]:
    return np.asarray(values, np.int64)


def chain(root: Any, tag: Any, word: Any, left: Any) -> batching.Packed:
    table = TableColumns(np.asarray(tag, np.int8), (NumberColumn(word), LinkColumn(left)))
    return batching.Packed(CHAIN, LinkColumn(root), (table,))


def test_given_columns_that_fit_are_taken() -> None:
    assert chain(ints(0), [0, 0], ints(5, 6), ints(1, -1))[0].left.word == 6


@pytest.mark.parametrize(("make", "place"), [
    (lambda: chain(ints(2), [0, 0], ints(5, 6), ints(1, -1)), "packed.root"),
    (lambda: chain(ints(-1), [0, 0], ints(5, 6), ints(1, -1)), "packed.root"),
    (lambda: chain(ints(0), [0, 1], ints(5, 6), ints(1, -1)), "packed.tables[0].tag"),
    (lambda: chain(ints(0), [0, 0], ints(5), ints(1, -1)), "packed.tables[0].word"),
    (lambda: chain(ints(0), [0, 0], np.ones(2), ints(1, -1)), "packed.tables[0].word"),
    (lambda: chain(ints(0), [0, 0], ints(5, 6), ints(1, -2)), "packed.tables[0].left"),
    (lambda: batching.Packed(CHAIN, LinkColumn(ints(0)), ()), "packed"),
    (lambda: batching.Packed(PackedSchema(NumberSchema("int")), LinkColumn(ints(0))), "packed.root"),
    (lambda: batching.Packed(PackedSchema(StringSchema()), NumberColumn(ints(0))), "packed.root"),
    (lambda: batching.Packed(
        PackedSchema(ListSchema(NumberSchema("int"))), ListColumn(ints(1), ints(2), NumberColumn(ints(1, 2)))),
     "packed.root"),
    (lambda: batching.Packed(
        PackedSchema(ArraySchema("int64", (None, 2))), RaggedColumn(np.zeros((3, 2), int), ints(2), ints(2)[:, None])),
     "packed.root"),
    (lambda: batching.Packed(
        PackedSchema(ArraySchema("int64", (None, 2))), RaggedColumn(np.zeros((3, 2), int), ints(0), ints(-1)[:, None])),
     "packed.root"),
])
def test_columns_that_do_not_fit_are_refused(make: Callable[[], Any], place: str) -> None:
    with pytest.raises(batching.PackingError) as caught:
        make()
    assert caught.value.path == place


def test_indices_out_of_range_are_refused() -> None:
    packed = batching.pack([1, 2, 3])
    for index in (3, -4, np.asarray([0, 3]), np.asarray([True]), np.asarray([0.5]), np.zeros((1, 1), int)):
        with pytest.raises(IndexError):
            packed[index]
    with pytest.raises(IndexError):
        batching.pack([(), ()])[np.asarray([2])]


def test_more_types_at_one_position_than_a_tag_can_tell_are_refused() -> None:
    with pytest.raises(batching.PackingError, match="127"):
        batching.pack([{f"k{place}": 1} for place in range(200)])
    assert isinstance(batching.pack([{f"k{place}": 1} for place in range(20)]).schema.root, VariantSchema)
