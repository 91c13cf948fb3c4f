"""Objects that link to one another: sharing, cycles, depth, and the severing of examples."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest

import batching
from batching.schema import LinkSchema, ListSchema, NumberSchema, OptionalSchema, RecordSchema

Alike = Callable[[Any, Any], bool]
DEEP = 100_000


class Chain:
    __slots__ = ("value", "next")

    def __init__(self, value: float, following: Any = None) -> None:
        self.value, self.next = value, following


class Vertex:
    def __init__(self, value: float) -> None:
        self.value = value
        self.edges: list[Any] = []


@dataclass
class Point:
    x: float
    y: float


@dataclass
class Shape:
    corner: Point
    inside: list[Shape] = field(default_factory=list)


class Rose(NamedTuple):
    value: int
    kids: tuple[Any, ...]


@dataclass
class Owner:
    thing: Any


def test_an_object_reached_twice_in_one_example_is_one_node() -> None:
    child = Chain(1.0)
    packed = batching.pack([(child, Chain(2.0, child), child)])
    assert len(packed.tables[0]) == 2
    assert packed.schema.tables[0].shared
    first, second, third = packed[0]
    assert first is third
    assert second.next is first


def test_a_tree_is_neither_shared_nor_cyclic() -> None:
    (table,) = batching.pack([Chain(1.0, Chain(2.0)), Chain(3.0)]).schema.tables
    assert not table.shared
    assert not table.cyclic


def test_an_object_in_two_examples_becomes_two_nodes() -> None:
    child = Chain(1.0)
    packed = batching.pack([child, Chain(2.0, child), child])
    assert len(packed.tables[0]) == 4
    assert not packed.schema.tables[0].shared
    first, second, third = packed.examples()
    assert len({id(first), id(second.next), id(third)}) == 3
    assert first.value == second.next.value == third.value == 1.0


def test_the_nodes_of_an_example_are_contiguous() -> None:
    packed = batching.pack([Chain(1.0, Chain(2.0)), Chain(3.0, Chain(4.0))])
    assert packed.tables[0].fields[0].values.tolist() == [1.0, 2.0, 3.0, 4.0]  # type: ignore[union-attr]


def test_cycles_are_links(alike: Alike) -> None:
    ring = [Vertex(float(place)) for place in range(3)]
    for place, vertex in enumerate(ring):
        vertex.edges = [ring[(place + 1) % 3], ring[place]]
    path = Vertex(7.0)
    packed = batching.pack([ring[0], path])
    assert packed.schema.tables[0].cyclic
    assert packed.schema.tables[0].shared
    assert alike(ring[0], packed[0])
    assert alike(path, packed[1])


def test_a_graph_without_cycles_is_not_cyclic_whatever_the_order_of_its_nodes(alike: Alike) -> None:
    deep, top = Vertex(1.0), Vertex(2.0)
    middle = Vertex(3.0)
    top.edges, middle.edges = [deep, middle], [deep]
    late = Vertex(4.0)
    late.edges = [top]
    example = [deep, late]
    packed = batching.pack([example])
    assert packed.schema.tables[0].shared
    assert not packed.schema.tables[0].cyclic
    assert alike(example, packed[0])


def test_depth_is_not_bounded_by_recursion(alike: Alike) -> None:
    assert sys.getrecursionlimit() < DEEP
    chain: Any = None
    cons: Any = None
    entries: Any = None
    for place in range(DEEP):
        chain = Chain(float(place), chain)
        cons = (place, cons)
        entries = {"value": place, "next": entries}
    for example in (chain, cons, entries):
        packed = batching.pack([example])
        assert len(packed.tables[0]) == DEEP
        assert alike(example, packed.examples()[0])
    assert packed[0]["next"]["value"] == DEEP - 2


def test_wide_nodes_pack(alike: Alike) -> None:
    top = Vertex(0.0)
    top.edges = [Vertex(float(place)) for place in range(5000)]
    packed = batching.pack([top])
    assert packed.schema.tables[0].fields == (NumberSchema("float"), ListSchema(LinkSchema(0, False)))
    assert alike(top, packed[0])


def test_a_record_inside_nodes_stays_structure() -> None:
    packed = batching.pack([Shape(Point(0.0, 1.0), [Shape(Point(2.0, 3.0))])])
    assert packed.schema.root == LinkSchema(0, False)
    corner, inside = packed.schema.tables[0].fields
    assert isinstance(corner, RecordSchema)
    assert inside == ListSchema(LinkSchema(0, False))


def test_a_named_tuple_that_holds_its_own_class_is_a_node(alike: Alike) -> None:
    example = Rose(1, (Rose(2, ()), Rose(3, (Rose(4, ()),))))
    packed = batching.pack([example, Rose(5, ())])
    assert packed.schema.root == LinkSchema(0, False)
    assert packed.schema.tables[0].fields[1] == ListSchema(LinkSchema(0, False), "tuple")
    assert alike(example, packed[0])


def test_a_record_where_a_node_may_stand_is_a_node(alike: Alike) -> None:
    examples = [Owner(Point(1.0, 2.0)), Owner(Chain(3.0)), Owner(Owner(None))]
    packed = batching.pack(examples)
    assert packed.schema.root == LinkSchema(0, False)
    assert all(alike(one, other) for one, other in zip(examples, packed.examples(), strict=True))


def test_a_dataclass_that_reaches_itself_through_another_class_is_a_node() -> None:
    packed = batching.pack([Owner(Vertex(1.0))])
    assert isinstance(packed.schema.root, RecordSchema)
    vertex = Vertex(1.0)
    vertex.edges = [Owner(vertex)]
    assert batching.pack([Owner(vertex)]).schema.root == LinkSchema(0, False)


def test_a_payload_of_the_same_make_as_the_tree_stays_a_record() -> None:
    packed = batching.pack([((1.0, 2.0), ((3.0, 4.0), None)), ((5.0, 6.0), None), None])
    assert packed.schema.root == LinkSchema(0, True)
    payload, rest = packed.schema.tables[0].fields
    assert isinstance(payload, RecordSchema)
    assert rest == LinkSchema(0, True)


@dataclass
class Term:
    pass


@dataclass
class Constant(Term):
    value: float


@dataclass
class Sum(Term):
    left: Term
    right: Term


@dataclass
class Link:
    value: int
    following: MaybeLink


MaybeLink = Link | None


def test_annotations_that_name_a_base_class_or_an_alias_make_nodes() -> None:
    packed = batching.pack([Sum(Constant(1.0), Constant(2.0))])
    assert packed.schema.root == LinkSchema(0, False)
    assert batching.pack([Link(1, None)]).schema.root == LinkSchema(0, False)


def test_objects_without_fields_pack() -> None:
    class Bare:
        pass

    class Slotless:
        __slots__ = ()

    examples = [Bare(), Slotless(), Term()]
    packed = batching.pack(examples)
    assert [type(example) for example in packed.examples()] == [Bare, Slotless, Term]


def test_a_slot_that_is_not_set_stays_unset() -> None:
    bare = Chain.__new__(Chain)
    bare.value = 1.0
    found = batching.pack([bare, Chain(2.0)])[0]
    assert found.value == 1.0
    assert not hasattr(found, "next")


def test_objects_are_built_without_calling_their_constructor() -> None:
    class Strict:
        made = 0

        def __init__(self) -> None:
            Strict.made += 1
            self.value = 1

    packed = batching.pack([Strict()])
    assert packed[0].value == 1
    assert Strict.made == 1


def test_private_slots_keep_their_names() -> None:
    class Hidden:
        __slots__ = ("__value",)

        def __init__(self, value: int) -> None:
            self.__value = value

        def read(self) -> int:
            return self.__value

    assert batching.pack([Hidden(3)])[0].read() == 3


def test_compaction_keeps_only_what_the_examples_reach(alike: Alike) -> None:
    examples = [Chain(float(place), Chain(place + 0.5)) for place in range(10)]
    part = batching.pack(examples)[np.asarray([7, 2])]
    assert len(part.tables[0]) == 20
    small = part.compact()
    assert len(small.tables[0]) == 4
    assert small.schema == part.schema
    assert all(alike(one, other) for one, other in zip([examples[7], examples[2]], small.examples(), strict=True))


MATRIX = np.zeros((4, 3))
KIDS = [1.0]
ROW = np.zeros(3)


@pytest.mark.parametrize(("examples", "aliased"), [
    ([(ROW, ROW)], True), ([(ROW, ROW.reshape(3, 1))], True), ([(MATRIX, MATRIX[0])], True),
    ([(MATRIX[:2], MATRIX[1:])], True), ([(MATRIX[0], MATRIX[1])], False), ([ROW, ROW], False),
    ([(ROW, ROW.copy())], False), ([(KIDS, KIDS)], True), ([([KIDS], KIDS)], True), ([KIDS, KIDS], False),
    ([[(1, 2)] * 3], False), ([({"a": 1},) * 2], True), ([((ROW,),) * 2], True), ([(MATRIX[:0], MATRIX[:0])], False),
])
def test_memory_that_an_example_reaches_in_two_ways_is_noted(examples: list[Any], aliased: bool) -> None:
    packed = batching.pack(examples)
    assert packed.schema.aliased == aliased
    assert batching.pack(examples[:1], like=packed).schema.aliased == aliased


def test_a_list_of_children_that_two_nodes_share_is_noted() -> None:
    one, other = Vertex(1.0), Vertex(2.0)
    one.edges = [Vertex(3.0)]
    other.edges = one.edges
    assert batching.pack([(one, other)]).schema.aliased
    other.edges = list(one.edges)
    assert not batching.pack([(one, other)]).schema.aliased


def test_more_sets_of_attributes_than_a_tag_can_tell_are_refused() -> None:
    vertices = []
    for place in range(300):
        vertex = Vertex(1.0)
        setattr(vertex, f"extra{place}", 1)
        vertices.append(vertex)
    with pytest.raises(batching.PackingError, match="127"):
        batching.pack(vertices)


@pytest.mark.parametrize("lists", [[[1.0], None], [None, []]])
def test_optional_children_are_marked(lists: list[Any]) -> None:
    vertices = []
    for edges in lists:
        vertex = Vertex(1.0)
        vertex.edges = edges
        vertices.append(vertex)
    assert isinstance(batching.pack(vertices).schema.tables[0].fields[1], OptionalSchema)
