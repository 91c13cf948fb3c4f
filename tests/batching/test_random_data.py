"""Random examples of random structure come back equal, in any slice and by the schema of others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import batching

Alike = Callable[[Any, Any], bool]


class Node:
    def __init__(self, value: Any, links: Any) -> None:
        self.value, self.links = value, links


@dataclass
class Cell:
    head: Any
    tail: Any


class Pair(NamedTuple):
    one: Any
    two: Any


def arrays() -> st.SearchStrategy[Any]:
    shapes = st.lists(st.integers(0, 3), min_size=0, max_size=3)
    dtypes = st.sampled_from(["float64", "float32", "int64", "bool"])
    return st.builds(lambda shape, dtype: (np.arange(np.prod(shape, dtype=int)) % 3).reshape(shape).astype(dtype),
                     shapes, dtypes)


LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(), st.text(max_size=3), arrays(),
    st.builds(np.float32, st.floats(width=32)), st.builds(np.int16, st.integers(-9, 9)),
)


def grown(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.lists(inner, max_size=3), st.tuples(), st.tuples(inner), st.tuples(inner, inner),
        st.builds(Node, inner, inner), st.builds(Cell, inner, inner), st.builds(Pair, inner, inner),
        st.dictionaries(st.sampled_from(["a", "b", 1]), inner, max_size=2),
    )


VALUES = st.recursive(LEAVES, grown, max_leaves=12)
QUIET = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@QUIET
@given(st.lists(VALUES, max_size=5), st.data())
def test_any_structure_comes_back(alike: Alike, examples: list[Any], data: st.DataObject) -> None:
    packed = batching.pack(examples)
    batching.Packed(packed.schema, packed.root, packed.tables)
    assert all(alike(one, other) for one, other in zip(examples, packed.examples(), strict=True))
    if examples:
        rows = data.draw(st.lists(st.integers(0, len(examples) - 1), max_size=6))
        part = packed[np.asarray(rows, np.int64)]
        small = part.compact()
        batching.Packed(small.schema, small.root, small.tables)
        chosen = [examples[row] for row in rows]
        assert all(alike(one, other) for one, other in zip(chosen, part.examples(), strict=True))
        again = batching.pack(chosen, like=packed)
        assert batching.pack(part.examples(), like=packed).schema == again.schema
        assert all(alike(one, other) for one, other in zip(chosen, again.examples(), strict=True))


TREES = st.recursive(st.integers(0, 9) | st.none(), lambda inner: st.tuples(inner, inner), max_leaves=20)


@QUIET
@given(st.lists(TREES, max_size=6))
def test_tuple_trees_come_back(alike: Alike, examples: list[Any]) -> None:
    packed = batching.pack(examples)
    batching.Packed(packed.schema, packed.root, packed.tables)
    assert all(alike(one, other) for one, other in zip(examples, packed.examples(), strict=True))


@QUIET
@given(st.integers(1, 12), st.data())
def test_graphs_come_back_with_the_same_sharing(alike: Alike, size: int, data: st.DataObject) -> None:
    nodes = [Node(float(place), []) for place in range(size)]
    for node in nodes:
        node.links = [nodes[place] for place in data.draw(st.lists(st.integers(0, size - 1), max_size=3))]
    roots = data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=4))
    examples = [[nodes[root], nodes[0]] for root in roots]
    packed = batching.pack(examples)
    batching.Packed(packed.schema, packed.root, packed.tables)
    assert all(alike(one, other) for one, other in zip(examples, packed.examples(), strict=True))
    assert all(alike(one, packed[place]) for place, one in enumerate(examples))
