"""Infers the schema of a list of examples.

Invariant: the result depends on the kinds of values that occur and not on their order; the rounds end, since every
round but the last adds a decision and the decisions are finitely many.
Must not know: how columns are filled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from batching.forest import NodeTable, node_tables
from batching.recursion import Origin, irregular_nesting, record_classes
from batching.schema import (
    ArraySchema,
    LinkSchema,
    ListSchema,
    NoneSchema,
    NumberSchema,
    OptionalSchema,
    PackedSchema,
    RecordSchema,
    Schema,
    StringSchema,
    TableSchema,
    VariantSchema,
)
from batching.shapes import NodeShape, Offence, declared_fields
from batching.sites import Alternative, Site
from batching.walking import Decisions, Nodes, walk

__all__ = ["Survey", "infer_schema", "survey"]

MAX_ALTERNATIVES = 127
MAX_ROUNDS = 1000


@dataclass(eq=False)
class Survey:
    """All values of the examples, by position: the root site and the node tables by owner."""

    decisions: Decisions
    nodes: Nodes
    root: Site
    tables: dict[object, NodeTable]


def survey(examples: Sequence[Any], decisions: Decisions | None = None,
           wanted: dict[object, list[NodeShape]] | None = None) -> Survey:
    """Walks the examples and sorts their values by position.

    With `decisions` (of a schema to follow) nothing is decided anew. Raises Offence for what cannot be packed.
    """
    if decisions is not None:
        taken = _look(examples, decisions, wanted or {})
        _evaluate(taken, decisions, decide=False)
        return taken
    decisions = Decisions()
    barred: set[type] = set()
    for _ in range(MAX_ROUNDS):
        taken = _look(examples, decisions, {})
        if _evaluate(taken, decisions, decide=True) and _decide_classes(taken, decisions, barred):
            return taken
    raise Offence(examples[0], "the types of the values nest in too irregular a way")


def _look(examples: Sequence[Any], decisions: Decisions, wanted: dict[object, list[NodeShape]]) -> Survey:
    nodes = walk(examples, decisions)
    root = Site(examples, np.arange(len(examples)), decisions.root)
    return Survey(decisions, nodes, root, node_tables(nodes, decisions, wanted))


def _evaluate(taken: Survey, decisions: Decisions, decide: bool) -> bool:
    """Evaluates all sites, level by level; False as soon as irregular nesting led to a new decision."""
    origin: Origin = {}
    level = [taken.root]
    for table in taken.tables.values():
        owner = min((shape.group for shape in table.shapes if shape.group is not None), default=table.owner)
        for name, site in zip(table.names, table.sites, strict=True):
            origin[id(site)] = owner, name, site
            level.append(site)
    above: list[Site] = []
    while level or above:
        for site in level:
            site.evaluate(decisions)
        if decide and irregular_nesting(above, origin, decisions):
            return False
        above, level = level, [child for site in level for child in site.children()]
    return True


def _all_sites(taken: Survey) -> list[Site]:
    sites = [taken.root, *(site for table in taken.tables.values() for site in table.sites)]
    for site in sites:
        sites.extend(site.children())
    return sites


def _decide_classes(taken: Survey, decisions: Decisions, barred: set[type]) -> bool:
    """Unites the tables of node classes that meet at a site, and finds the classes that are records; True if nothing
    changed."""
    stable = True
    classes = {shape.cls for table in taken.tables.values() for shape in table.shapes if shape.group is None}
    candidates = {cls for cls in classes if declared_fields(cls) is not None and (
        hasattr(cls, "__dataclass_fields__") or issubclass(cls, tuple))} - barred
    if candidates and not decisions.records:
        held: dict[type, set[type]] = {cls: set() for cls in classes}
        for table in taken.tables.values():
            for name, site in zip(table.names, table.sites, strict=True):
                below = {kind for inner in _below(site) for kind in map(type, _linked(inner))}
                for shape in table.shapes:
                    if shape.group is None and name in shape.names:
                        held[shape.cls] |= below
        mixed = [set(map(type, _linked(site))) for site in _all_sites(taken)]
        records = record_classes(candidates, held, [kinds for kinds in mixed if len(kinds) > 1])
        barred |= candidates - records
        if records:
            decisions.records |= records
            return False
    for site in _all_sites(taken):
        met = [part for part in site.alternatives if part.key == ("link",)]
        if not met:
            continue
        mixed_in = {part.key[2] for part in site.alternatives if part.key[0] == "record"} & decisions.records
        if mixed_in:
            # A record where a node may stand as well becomes a node, so that the site holds links only.
            decisions.records -= mixed_in
            barred |= mixed_in
            return False
        stable &= not _unite(site, met[0], decisions)
    return stable


def _below(site: Site) -> list[Site]:
    sites = [site]
    for inner in sites:
        sites.extend(inner.children())
    return sites


def _linked(site: Site) -> Sequence[Any]:
    return next((part.values for part in site.alternatives if part.key == ("link",)), ())


def owners_at(site: Site, part: Alternative) -> list[object]:
    """The classes and groups that the links of a site lead to."""
    owners: list[object] = []
    for kind in dict.fromkeys(map(type, part.values)):
        if kind in (tuple, dict) or kind.__name__ == "OrderedDict":
            assert site.plan is not None
            owners.append(site.plan.group)
        else:
            owners.append(kind)
    return list(dict.fromkeys(owners))


def _unite(site: Site, part: Alternative, decisions: Decisions) -> bool:
    owners = owners_at(site, part)
    return any([decisions.unite(owners[0], other) for other in owners[1:]])


class _Namer:
    """Gives tables their numbers, in the order in which the schema first mentions them."""

    def __init__(self, decisions: Decisions) -> None:
        self.decisions = decisions
        self.order: list[object] = []

    def number(self, owner: object) -> int:
        owner = self.decisions.table(owner)
        if owner not in self.order:
            self.order.append(owner)
        return self.order.index(owner)


def infer_schema(taken: Survey) -> tuple[PackedSchema, list[object]]:
    """The schema, and the owner of each of its tables. The flags of the tables are not known yet."""
    namer = _Namer(taken.decisions)
    root = schema_of(taken.root, namer)
    tables: list[TableSchema] = []
    while len(tables) < len(namer.order):
        table = taken.tables[namer.order[len(tables)]]
        if len(table.shapes) > MAX_ALTERNATIVES:
            raise Offence(taken.nodes.objects[int(table.numbers[0])],
                          f"nodes of more than {MAX_ALTERNATIVES} classes or sets of attributes share a position")
        fields = tuple(schema_of(site, namer) for site in table.sites)
        classes = tuple((shape.cls, shape.names) for shape in table.shapes)
        tables.append(TableSchema(classes, table.names, fields))
    return PackedSchema(root, tuple(tables)), namer.order


def schema_of(site: Site, namer: _Namer) -> Schema:
    """The schema of a site from its alternatives, which are put in an order that the data's order does not change."""
    parts = sorted(site.alternatives, key=alternative_order)
    if not parts:
        return NoneSchema(site.nullable)
    if len(parts) > MAX_ALTERNATIVES:
        raise Offence(parts[0].values[0], f"values of more than {MAX_ALTERNATIVES} different types share a position")
    if len(parts) == 1 and parts[0].key == ("link",):
        return LinkSchema(namer.number(owners_at(site, parts[0])[0]), site.nullable)
    schemas = tuple(_alternative_schema(site, part, namer) for part in parts)
    schema = schemas[0] if len(schemas) == 1 else VariantSchema(schemas)
    return OptionalSchema(schema) if site.nullable else schema


def alternative_order(part: Alternative) -> tuple[Any, ...]:
    """The canonical order of the alternatives of a variant."""
    texts = [item.__qualname__ if isinstance(item, type) else str(item) for item in part.key]
    return part.key[0], len(part.children), texts


def _alternative_schema(site: Site, part: Alternative, namer: _Namer) -> Schema:
    what = part.key[0]
    if what == "number":
        return NumberSchema(part.key[1])
    if what == "string":
        return StringSchema()
    if what == "array":
        return ArraySchema(part.key[1], common_shape([value.shape for value in part.values]))
    if what == "list":
        return ListSchema(schema_of(part.children[0], namer), part.key[1])
    if what == "record":
        _, kind, cls, names = part.key
        return RecordSchema(kind, cls, names, tuple(schema_of(child, namer) for child in part.children))
    return LinkSchema(namer.number(owners_at(site, part)[0]), False)


def common_shape(shapes: Sequence[tuple[int, ...]]) -> tuple[int | None, ...]:
    """The sizes that all shapes (of one rank) have in common, None where they differ."""
    distinct = set(shapes)
    return tuple(sizes[0] if len(set(sizes)) == 1 else None for sizes in zip(*distinct, strict=True))
