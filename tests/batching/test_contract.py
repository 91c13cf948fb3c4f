"""Every structure packs into the schema and columns that batching.schema describes, and back into equal objects."""

from __future__ import annotations

import collections
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import batching
from batching.columns import (
    ArrayColumn,
    LinkColumn,
    ListColumn,
    NumberColumn,
    OptionalColumn,
    RaggedColumn,
    RecordColumn,
    StringColumn,
    VariantColumn,
)
from batching.schema import (
    ArraySchema,
    LinkSchema,
    ListSchema,
    NoneSchema,
    NumberSchema,
    OptionalSchema,
    PackedSchema,
    RecordSchema,
    StringSchema,
    TableSchema,
    VariantSchema,
)
from batching.strings import intern, text

Alike = Callable[[Any, Any], bool]


class Plain:
    def __init__(self, value: Any, left: Any = None, right: Any = None) -> None:
        self.value, self.left, self.right = value, left, right


class Slotted:
    __slots__ = ("val", "kids")

    def __init__(self, val: Any, kids: Any = ()) -> None:
        self.val, self.kids = val, kids


class Pair(NamedTuple):
    lo: Any
    hi: Any


@dataclass
class Body:
    position: np.ndarray[Any, Any]
    mass: float


@dataclass(frozen=True)
class Expression:
    kind: int
    left: Expression | None = None
    right: Expression | None = None


class Leaf:
    def __init__(self, word: int) -> None:
        self.word = word


class Inner:
    def __init__(self, left: Any, right: Any) -> None:
        self.left, self.right = left, right


def array(*shape: int) -> np.ndarray[Any, Any]:
    return np.arange(np.prod(shape), dtype=float).reshape(shape)


SHARED = Plain(1.0)
LISTS: dict[str, list[Any]] = {
    "ints": [1, -2, 2**63 - 1],
    "floats": [0.5, float("nan"), -0.0, float("inf")],
    "bools": [True, False],
    "complex": [1 + 2j, 0j],
    "strings": ["a", "", "naïve\u00a0word"],
    "none": [None, None],
    "numpy scalars": [np.float32(1.5), np.float32(2)],
    "numpy bools": [np.True_, np.False_],
    "numpy int8": [np.int8(3)],
    "arrays": [array(2, 3), array(2, 3) + 1],
    "rank 0 arrays": [np.array(1.0), np.array(2.0)],
    "ragged": [array(2), array(0), array(5)],
    "ragged rows": [array(2, 3), array(0, 3), array(4, 3)],
    "ragged inner": [array(3, 2), array(3, 0)],
    "ragged both": [array(2, 1, 2), array(0, 4, 2), array(3, 3, 2)],
    "fortran order": [np.asfortranarray(array(2, 3)), np.asfortranarray(array(4, 3))],
    "empty arrays": [array(0, 3), array(0, 3)],
    "float16": [np.ones(2, np.float16)],
    "mixed dtypes": [np.ones(2), np.ones(2, np.float32)],
    "mixed ranks": [np.ones(2), np.ones((2, 2))],
    "tuples": [(1, 2.0), (3, 4.0)],
    "empty tuples": [(), ()],
    "nested tuples": [((1, 2), (3.0, "x")), ((4, 5), (6.0, "y"))],
    "dicts": [{"a": 1, "b": array(2)}, {"a": 2, "b": array(3)}],
    "int keys": [{1: "x"}, {1: "y"}],
    "ordered dicts": [collections.OrderedDict(a=1)],
    "dicts in another order": [{"a": 1, "b": 2}, {"b": 3, "a": 4}],
    "dicts of other keys": [{"a": 1}, {"b": 2.0}],
    "named tuples": [Pair(0, 1.0), Pair(2, 3.0)],
    "dataclasses": [Body(array(2), 1.5), Body(array(2), 2.5)],
    "lists": [[1.0, 2.0], [], [3.0]],
    "lists of lists": [[[1], []], [], [[2, 3]]],
    "lists of arrays": [[array(2), array(3)], [array(1)]],
    "empty lists": [[], []],
    "deques": [collections.deque([1, 2]), collections.deque()],
    "optional numbers": [1, None, 3],
    "optional arrays": [array(2), None, array(3)],
    "optional records": [(1, 2), None],
    "int or float": [1, 2.5],
    "int or tuple": [1, (2, 3), None],
    "str or float": ["x", 1.0],
    "tuples of other lengths": [(1.0,), (2.0, 3.0), ()],
    "mixed tuples of other lengths": [(1.0, "x"), (2.0,)],
    "objects": [Plain(1), Plain(2, Plain(3), None)],
    "slots": [Slotted(1.0, [Slotted(2.0, []), Slotted(3.0, [])]), Slotted(4.0, [])],
    "children in tuples": [Slotted(1.0, (Slotted(2.0), Slotted(3.0))), Slotted(4.0, (Slotted(5.0),))],
    "recursive dataclass": [Expression(1, Expression(0), Expression(2)), Expression(0)],
    "two classes": [Inner(Leaf(1), Inner(Leaf(2), Leaf(3))), Leaf(4)],
    "objects or none": [None, Plain(1.0)],
    "other attributes": [Leaf(1), Inner(1, 2)],
    "object or number": [Leaf(1), 3],
    "pair trees": [((0, 1), 2), (0, (1, (2, 3))), 5],
    "pair trees of one shape": [((0, 1), 2)],
    "cons lists": [(1.5, (0.5, (-2.0, None))), None, (0.7, None)],
    "tuple trees of any arity": [(0, (1, 2, 3)), ((4,), 5), 6],
    "labelled tuple trees": [("S", [("N", []), ("V", [("X", [])])])],
    "dict trees": [{"v": 1, "l": {"v": 2, "l": None}}, {"v": 3, "l": None}],
    "shared": [Plain(1.0, SHARED, SHARED)],
    "shared between examples": [SHARED, SHARED, Plain(0.5, SHARED)],
    "list of tuples": [[(1, 2), (3, 4)], []],
    "tuple holding objects": [(Leaf(1), 2), (Leaf(3), 4)],
    "one": [7],
}


@pytest.mark.parametrize("name", LISTS)
def test_unpacking_gives_back_what_was_packed(name: str, alike: Alike) -> None:
    examples = LISTS[name]
    packed = batching.pack(examples)
    assert len(packed) == len(examples)
    batching.Packed(packed.schema, packed.root, packed.tables)  # passes the checks of given columns
    found = batching.unpack(packed)
    assert all(alike(one, other) for one, other in zip(examples, found, strict=True))
    assert all(alike(one, packed[place]) for place, one in enumerate(examples))
    assert hash(packed.schema) == hash(batching.pack(examples).schema)


@pytest.mark.parametrize("name", LISTS)
def test_a_minibatch_has_the_schema_of_the_whole(name: str, alike: Alike) -> None:
    examples = LISTS[name]
    packed = batching.pack(examples)
    rows = np.asarray([len(examples) - 1, 0, 0])
    for index, chosen in (
        (rows, [examples[row] for row in rows]),
        (slice(1, None), examples[1:]), (slice(None, None, -1), examples[::-1]),
        (np.arange(len(examples)) % 2 == 0, examples[::2]), ([], []), (np.asarray([-1]), examples[-1:]),
    ):
        part = packed[index]
        assert part.schema == packed.schema
        assert part.tables is packed.tables
        batching.Packed(part.schema, part.root, part.tables)
        assert len(part) == len(chosen)
        assert all(alike(one, other) for one, other in zip(chosen, part.examples(), strict=True))
        small = part.compact()
        batching.Packed(small.schema, small.root, small.tables)
        assert all(len(one) <= len(other) for one, other in zip(small.tables, packed.tables, strict=True))


@pytest.mark.parametrize("name", LISTS)
def test_packing_by_the_schema_of_another_list_keeps_it(name: str, alike: Alike) -> None:
    examples = LISTS[name]
    whole = batching.pack(examples)
    for chosen in (examples, examples[:1], examples[-1:], []):
        part = batching.pack(chosen, like=whole)
        assert part.schema == whole.schema
        batching.Packed(part.schema, part.root, part.tables)
        assert all(alike(one, other) for one, other in zip(chosen, part.examples(), strict=True))


@pytest.mark.parametrize("name", LISTS)
def test_the_order_of_the_examples_does_not_change_the_schema(name: str) -> None:
    examples = LISTS[name]
    assert batching.pack(examples[::-1]).schema == batching.pack(examples).schema


def root_schema(examples: list[Any]) -> Any:
    return batching.pack(examples).schema.root


def test_numbers_keep_their_kind() -> None:
    for example, kind, dtype in (
        (1, "int", "int64"), (1.0, "float", "float64"), (True, "bool", "bool"), (1j, "complex", "complex128"),
        (np.float32(1), "float32", "float32"), (np.True_, "bool_", "bool"), (np.float64(1), "float64", "float64"),
        (np.int64(1), "int64", "int64"),
    ):
        packed = batching.pack([example, example])
        assert packed.schema.root == NumberSchema(kind)
        assert isinstance(packed.root, NumberColumn)
        assert packed.root.values.dtype.name == dtype == packed.schema.root.dtype
        assert packed.schema.root.python == (type(example).__module__ == "builtins")


def test_arrays_of_one_shape_are_stacked() -> None:
    packed = batching.pack([array(2, 3), array(2, 3) + 1])
    assert packed.schema.root == ArraySchema("float64", (2, 3))
    assert isinstance(packed.root, ArrayColumn)
    assert packed.root.values.shape == (2, 2, 3)


def test_a_memory_map_is_an_array_like_any_other(tmp_path: Path) -> None:
    mapped = np.memmap(tmp_path / "values", np.float64, "w+", shape=(2,))
    mapped[:] = 3.0
    packed = batching.pack([array(2), mapped, array(2)])
    assert packed.schema.root == ArraySchema("float64", (2,))
    assert [values.tolist() for values in packed.examples()] == [[0.0, 1.0], [3.0, 3.0], [0.0, 1.0]]


def test_ragged_arrays_are_joined_with_offsets() -> None:
    packed = batching.pack([array(2, 3), array(0, 3), array(4, 3)])
    assert packed.schema.root == ArraySchema("float64", (None, 3))
    assert isinstance(packed.root, RaggedColumn)
    assert packed.root.values.shape == (6, 3)
    assert packed.root.start.tolist() == [0, 2, 2]
    assert packed.root.dims.tolist() == [[2], [0], [4]]


def test_sizes_before_the_last_ragged_one_are_kept_per_example() -> None:
    packed = batching.pack([array(2, 3, 4), array(2, 1, 4)])
    assert packed.schema.root == ArraySchema("float64", (2, None, 4))
    assert isinstance(packed.root, RaggedColumn)
    assert packed.root.values.shape == (8, 4)
    assert packed.root.dims.tolist() == [[2, 3], [2, 1]]


def test_strings_are_interned_for_the_process() -> None:
    packed = batching.pack(["b", "a", "b"])
    assert packed.schema.root == StringSchema()
    assert isinstance(packed.root, StringColumn)
    assert packed.root.ids.tolist() == [intern("b"), intern("a"), intern("b")]
    assert text(intern("b")) == "b"
    with pytest.raises(IndexError):
        text(-1)


def test_containers_are_records_of_columns() -> None:
    packed = batching.pack([Body(array(2), 1.5), Body(array(2), 2.5)])
    assert packed.schema.root == RecordSchema(
        "dataclass", Body, ("position", "mass"), (ArraySchema("float64", (2,)), NumberSchema("float")))
    assert isinstance(packed.root, RecordColumn)
    assert [type(column) for column in packed.root.fields] == [ArrayColumn, NumberColumn]
    assert root_schema([(1, "x")]) == RecordSchema("tuple", tuple, ("0", "1"), (NumberSchema("int"), StringSchema()))
    assert root_schema([Pair(1, 2)]).kind == "namedtuple"
    assert root_schema([{"b": 1, "a": 2}]).names == ("b", "a")


def test_lists_share_one_column_of_elements() -> None:
    packed = batching.pack([[1.0, 2.0], [], [3.0]])
    assert packed.schema.root == ListSchema(NumberSchema("float"))
    assert isinstance(packed.root, ListColumn)
    assert packed.root.start.tolist() == [0, 2, 2]
    assert packed.root.length.tolist() == [2, 0, 1]
    assert packed.root.elements.values.tolist() == [1.0, 2.0, 3.0]  # type: ignore[union-attr]
    assert root_schema([[], []]) == ListSchema(NoneSchema(seen=False))
    assert root_schema([[None], []]) == ListSchema(NoneSchema())
    assert root_schema([collections.deque([1])]) == ListSchema(NumberSchema("int"), "deque")


def test_the_schema_of_elements_is_joined_over_all_lists() -> None:
    assert root_schema([[array(2)], [array(3), None]]) == ListSchema(OptionalSchema(ArraySchema("float64", (None,))))


def test_tuples_of_one_element_type_and_differing_length_are_sequences() -> None:
    assert root_schema([(1.0,), (2.0, 3.0)]) == ListSchema(NumberSchema("float"), "tuple")
    assert isinstance(root_schema([(1.0, "x"), (2.0,)]), VariantSchema)


def test_columns_are_in_c_order_whatever_the_order_of_the_examples() -> None:
    for examples in ([np.asfortranarray(array(2, 3))] * 2, [np.asfortranarray(array(rows, 3)) for rows in (2, 4)]):
        column = batching.pack(examples).root
        assert isinstance(column, (ArrayColumn, RaggedColumn))
        assert column.values.flags.c_contiguous


def test_absent_values_are_zero_and_marked() -> None:
    packed = batching.pack([array(2), None, array(3)])
    assert packed.schema.root == OptionalSchema(ArraySchema("float64", (None,)))
    assert isinstance(packed.root, OptionalColumn)
    assert packed.root.present.tolist() == [True, False, True]
    assert packed.root.inner.dims.tolist() == [[2], [0], [3]]  # type: ignore[union-attr]


def test_values_of_different_types_are_variants() -> None:
    packed = batching.pack([1, (2, 3), None])
    assert packed.schema.root == OptionalSchema(VariantSchema((
        NumberSchema("int"), RecordSchema("tuple", tuple, ("0", "1"), (NumberSchema("int"), NumberSchema("int"))))))
    assert isinstance(packed.root, OptionalColumn)
    assert isinstance(packed.root.inner, VariantColumn)
    assert packed.root.inner.tag.dtype == np.int8
    assert packed.root.inner.tag.tolist()[:2] == [0, 1]
    assert packed.root.inner.alternatives[0].values.tolist() == [1, 0, 0]  # type: ignore[union-attr]


def test_objects_are_rows_of_a_table() -> None:
    packed = batching.pack([Plain(1), Plain(2, Plain(3), None)])
    assert packed.schema == PackedSchema(LinkSchema(0, False), (TableSchema(
        ((Plain, ("value", "left", "right")),), ("value", "left", "right"),
        (NumberSchema("int"), LinkSchema(0, True), NoneSchema())),))
    assert isinstance(packed.root, LinkColumn)
    assert packed.root.rows.tolist() == [0, 1]
    value, left, _ = packed.tables[0].fields
    assert value.values.tolist() == [1, 2, 3]  # type: ignore[union-attr]
    assert left.rows.tolist() == [-1, 2, -1]  # type: ignore[union-attr]


def test_classes_that_stand_in_the_same_place_share_a_table() -> None:
    packed = batching.pack([Inner(Leaf(1), Inner(Leaf(2), Leaf(3))), Leaf(4)])
    (table,) = packed.schema.tables
    assert table.classes == ((Inner, ("left", "right")), (Leaf, ("word",)))
    assert table.field_of("word") == NumberSchema("int")
    assert packed.tables[0].tag.tolist() == [0, 1, 0, 1, 1, 1]
    assert packed.tables[0].fields[2].values.tolist() == [0, 1, 0, 2, 3, 4]  # type: ignore[union-attr]


def test_instances_with_other_attributes_are_another_class_of_the_table() -> None:
    bare = Leaf(1)
    extra = Leaf(2)
    extra.weight = 0.5  # type: ignore[attr-defined]
    (table,) = batching.pack([bare, extra]).schema.tables
    assert table.classes == ((Leaf, ("word",)), (Leaf, ("word", "weight")))


def test_a_dataclass_that_names_itself_is_a_node_even_without_children() -> None:
    assert root_schema([Expression(1)]) == LinkSchema(0, False)
    assert isinstance(root_schema([Body(array(2), 1.0)]), RecordSchema)


def test_irregularly_nested_tuples_are_nodes() -> None:
    packed = batching.pack([((0, 1), 2), (0, (1, 2)), 5])
    assert packed.schema.root == VariantSchema((LinkSchema(0, False), NumberSchema("int")))
    assert packed.schema.tables[0].classes == ((tuple, ("0", "1")),)
    cons = batching.pack([(1.5, (0.5, (-2.0, None))), None, (0.7, None)])
    assert cons.schema.root == LinkSchema(0, True)
    assert cons.schema.tables[0].fields == (NumberSchema("float"), LinkSchema(0, True))


def test_regularly_nested_tuples_are_records() -> None:
    for examples in ([((1, 2), 3)], [(1.0, None), (2.0, (3.0, 4.0))], [("k", [("a", 1.0)]), ("l", [])]):
        packed = batching.pack(examples)
        assert isinstance(packed.schema.root, RecordSchema)
        assert packed.schema.tables == ()


def test_columns_are_read_only_and_the_arrays_packed_are_not() -> None:
    value = array(3)
    packed = batching.pack([value])
    with pytest.raises(ValueError, match="read-only"):
        packed.root.values[0] = 1.0  # type: ignore[union-attr]
    value[0] = 5.0
    assert packed[0][0] == 0.0
    packed[0][0] = 1.0
    assert packed[0][0] == 0.0


def test_a_single_array_can_be_packed_without_a_copy() -> None:
    weights = array(2, 3)
    example = {"w": weights, "b": np.asfortranarray(array(2, 3)), "n": 1}
    packed = batching.pack([example], copy=False)
    assert packed.schema == batching.pack([example]).schema
    assert isinstance(packed.root, RecordColumn)
    first, second, _ = packed.root.fields
    assert np.shares_memory(first.values, weights)  # type: ignore[union-attr]
    assert not first.values.flags.writeable  # type: ignore[union-attr]
    assert second.values.flags.c_contiguous  # type: ignore[union-attr]
    assert weights.flags.writeable
    assert not np.shares_memory(batching.pack([weights]).root.values, weights)  # type: ignore[union-attr]


def test_an_empty_list_packs() -> None:
    packed = batching.pack([])
    assert packed.schema == PackedSchema(NoneSchema(seen=False))
    assert len(packed) == 0
    assert batching.unpack(packed) == []
