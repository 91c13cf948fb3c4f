"""Node tables: sorts the nodes that a walk found into tables, and tells whether links share nodes or close cycles.

Invariant: the rows of a table are in the order of the walk, so the nodes of one example are contiguous; each field's
site holds the values of exactly those rows whose class has the field.
Must not know: how sites become columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from batching.shapes import NodeShape, field_getter
from batching.sites import Site
from batching.walking import Decisions, Nodes

__all__ = ["Links", "NodeTable", "link_flags", "node_tables"]

TAG_BITS = 32
Index = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(eq=False)
class NodeTable:
    """One table before it has columns. `numbers` are the walk's numbers of its rows; `tag` indexes `shapes`;
    `having[i]` holds the rows that have field i, None for all."""

    owner: object
    shapes: list[NodeShape]
    numbers: Index
    tag: Index
    names: tuple[str | int, ...] = ()
    sites: list[Site] = field(default_factory=list)
    having: list[Index | None] = field(default_factory=list)


def shape_order(shape: NodeShape) -> tuple[str, str, int, tuple[str, ...]]:
    """Orders the classes of a table the same way whatever the order of the data."""
    return shape.cls.__module__, shape.cls.__qualname__, len(shape.names), tuple(map(str, shape.names))


def node_tables(nodes: Nodes, decisions: Decisions, wanted: dict[object, list[NodeShape]]) -> dict[object, NodeTable]:
    """The tables by owner. `wanted` gives the shapes, in order, that a table must have (of a schema to follow)."""
    found: dict[int, NodeShape] = {id(shape): shape for shape in nodes.shapes}
    members: dict[object, list[NodeShape]] = {owner: list(shapes) for owner, shapes in wanted.items()}
    for shape in sorted(found.values(), key=shape_order):
        listed = members.setdefault(decisions.table(shape.owner), [])
        if shape not in listed:
            listed.append(shape)
    place: dict[NodeShape, tuple[int, int]] = {}
    for position, shapes in enumerate(members.values()):
        for tag, shape in enumerate(shapes):
            place[shape] = position, tag
    codes = {identity: place[shape][0] << TAG_BITS | place[shape][1] for identity, shape in found.items()}
    coded = np.fromiter(map(codes.__getitem__, map(id, nodes.shapes)), np.int64, len(nodes.shapes))
    tables = {}
    for position, (owner, shapes) in enumerate(members.items()):
        numbers = np.flatnonzero(coded >> TAG_BITS == position)
        table = NodeTable(owner, shapes, numbers, coded[numbers] & (1 << TAG_BITS) - 1)
        _fill_sites(table, nodes, decisions)
        tables[owner] = table
    return tables


def _fill_sites(table: NodeTable, nodes: Nodes, decisions: Decisions) -> None:
    """Reads every field of a table's nodes, column by column."""
    table.names = tuple(dict.fromkeys(name for shape in table.shapes for name in shape.names))
    rows_of = [np.flatnonzero(table.tag == tag) for tag in range(len(table.shapes))]
    single = len(table.shapes) == 1
    if single and len(table.numbers) == len(nodes.objects):
        objects = [nodes.objects]
    else:
        objects = [[nodes.objects[number] for number in table.numbers[rows].tolist()] for rows in rows_of]
    owners = nodes.owners[table.numbers]
    for name in table.names:
        rows: list[Index] = []
        values: list[Sequence[Any]] = []
        for tag, shape in enumerate(table.shapes):
            if name in shape.names:
                rows.append(rows_of[tag])
                values.append(list(map(field_getter(shape, shape.names.index(name)), objects[tag])))
        index, column = _in_row_order(rows, values)
        having = None if len(index) == len(table.numbers) else index
        label = f"{table.shapes[0].cls.__name__}.{name}" if isinstance(name, str) else f"dict[{name!r}]"
        site = Site(column, owners[index], decisions.plan_of(table.owner, name), label=label)
        table.sites.append(site)
        table.having.append(having)


def _in_row_order(rows: list[Index], values: list[Sequence[Any]]) -> tuple[Index, Sequence[Any]]:
    if len(rows) == 1:
        return rows[0], values[0]
    index = np.concatenate(rows)
    merged = [value for part in values for value in part]
    order = np.argsort(index, kind="stable")
    return index[order], [merged[position] for position in order.tolist()]


@dataclass
class Links:
    """The links of all tables as pairs (source, target) of walk numbers; source -1 is an example itself."""

    sources: list[Index] = field(default_factory=list)
    targets: list[Index] = field(default_factory=list)

    def add(self, sources: Index, targets: Index) -> None:
        """Adds links."""
        self.sources.append(sources)
        self.targets.append(targets)


def link_flags(links: Links, count: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """For each node: whether several links lead to it, and whether it lies on a cycle (or between two cycles)."""
    if not links.sources:
        return np.zeros(count, bool), np.zeros(count, bool)
    sources, targets = np.concatenate(links.sources), np.concatenate(links.targets)
    shared = np.bincount(targets, minlength=count) > 1
    inner = sources >= 0
    sources, targets = sources[inner], targets[inner]
    if np.all(targets > sources):
        return shared, np.zeros(count, bool)
    alive = _peel(sources, targets, np.ones(count, bool))
    return shared, _peel(targets, sources, alive)


def _peel(sources: Index, targets: Index, alive: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Removes, again and again, the nodes without a link to them (Kahn 1962); what remains reaches a cycle."""
    keep = alive[sources] & alive[targets]
    sources, targets = sources[keep], targets[keep]
    order = np.argsort(sources, kind="stable")
    ends = targets[order].tolist()
    first = np.searchsorted(sources[order], np.arange(len(alive) + 1)).tolist()
    waiting = np.bincount(targets, minlength=len(alive)).tolist()
    left = alive.tolist()
    ready = [node for node, is_left in enumerate(left) if is_left and waiting[node] == 0]
    for node in ready:
        left[node] = False
        for target in ends[first[node]:first[node + 1]]:
            waiting[target] -= 1
            if waiting[target] == 0:
                ready.append(target)
    return np.asarray(left, bool)
