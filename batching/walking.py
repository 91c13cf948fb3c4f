"""Finds every node that the examples reach, each once per example.

Invariant: no Python recursion; a node object reached from two examples becomes two nodes, one reached twice from one
example becomes one; the nodes of an example are numbered contiguously, in breadth-first order.
Must not know: schemas and columns. Which tuples, dictionaries and classes are nodes is decided by recursion.py and
handed in as `Decisions`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import numpy as np

from batching.shapes import (
    DICT,
    FORMS,
    LEAF,
    LIST,
    NAMEDTUPLE,
    OBJECT,
    TUPLE,
    NodeShape,
    attributes_of,
    declared_fields,
    dict_names,
    form_of,
    tuple_names,
)

__all__ = ["Decisions", "Nodes", "Plan", "walk"]

SEQUENCE = "sequence"
LEAVES = frozenset(kind for kind, form in FORMS.items() if form is LEAF)


@dataclass(eq=False)
class Plan:
    """What is decided for one position: `group`: tuples and dictionaries here are nodes of that recursive group;
    `sequence`: tuples here are lists (True) or records (False) whatever their lengths, or it is open (None). `below`
    leads to positions inside containers."""

    group: int | None = None
    sequence: bool | None = None
    below: dict[object, Plan] = field(default_factory=dict)

    def child(self, step: object) -> Plan:
        """The plan one step below, made if there is none."""
        return self.below.setdefault(step, Plan())

    def merge(self, other: Plan) -> None:
        """Takes over what another plan decides. A plan merges its own table's groups only, so they agree."""
        self.group = other.group if self.group is None else self.group
        self.sequence = other.sequence if self.sequence is None else self.sequence
        for step, plan in other.below.items():
            self.child(step).merge(plan)


@dataclass
class Decisions:
    """All that inference has decided so far; each round only adds to it, so that the rounds end."""

    root: Plan = field(default_factory=Plan)
    records: set[type] = field(default_factory=set)
    fields: dict[object, dict[str | int, Plan]] = field(default_factory=dict)
    parent: dict[object, object] = field(default_factory=dict)
    groups: int = 0

    def table(self, owner: object) -> object:
        """The representative of the class or group among those that share a node table."""
        while owner in self.parent:
            owner = self.parent[owner]
        return owner

    def unite(self, one: object, other: object) -> bool:
        """Lets two classes or groups share a table; whether that is new."""
        one, other = self.table(one), self.table(other)
        if one == other:
            return False
        self.parent[other] = one
        plans = self.fields.setdefault(one, {})
        for name, plan in self.fields.pop(other, {}).items():
            plans.setdefault(name, Plan()).merge(plan)
        return True

    def plan_of(self, owner: object, name: str | int) -> Plan | None:
        """The plan of a node field, None where nothing was decided inside it."""
        plans = self.fields.get(self.table(owner))
        return None if plans is None else plans.get(name)


@dataclass
class Nodes:
    """The nodes found: object, shape and example of each; `number` finds a node by identity.

    `severed`: some object is a node of several examples. `aliased`: some example reaches a list, dictionary or record
    that is no node in two ways.
    """

    objects: list[Any]
    shapes: list[NodeShape]
    owners: np.ndarray[Any, np.dtype[np.int64]]
    number: dict[int, int]
    severed: bool
    aliased: bool
    by_owner: dict[tuple[int, int], int] = field(default_factory=dict)

    def numbers_of(self, values: Sequence[Any], owners: np.ndarray[Any, Any]) -> list[int]:
        """The node numbers of node objects, each seen from its example."""
        if not self.severed:
            return list(map(self.number.__getitem__, map(id, values)))
        if not self.by_owner:
            keys = zip(self.owners.tolist(), map(id, self.objects), strict=True)
            self.by_owner = dict(zip(keys, range(len(self.objects)), strict=True))
        return list(map(self.by_owner.__getitem__, zip(owners.tolist(), map(id, values), strict=True)))


class _Walker:
    """The state of one walk."""

    def __init__(self, decisions: Decisions) -> None:
        self.decisions = decisions
        self.forms: dict[type, str] = {}
        self.objects: list[Any] = []
        self.shapes: list[NodeShape] = []
        self.number: dict[int, int] = {}
        self.severed = False
        self.aliased = False
        self.known: dict[object, NodeShape] = {}
        self.readers: dict[type, tuple[tuple[str, ...] | None, Callable[[Any], Any] | None]] = {}

    def example(self, value: Any) -> None:
        """Walks one example."""
        first = len(self.objects)
        number, forms, records = self.number, self.forms, self.decisions.records
        seen: set[object] = set()
        met: set[int] = set()
        work: list[tuple[Any, Plan | None]] = [(value, self.decisions.root)]
        for item, plan in work:
            kind = type(item)
            if kind in FORMS:
                if kind in LEAVES:
                    continue
                form = FORMS[kind]
                node = plan is not None and plan.group is not None and form is not LIST
            else:
                form = forms.get(kind) or form_of(item, forms)
                node = kind not in records
            identity = id(item)
            if node:
                known = number.get(identity)
                if known is not None:
                    if known >= first:
                        continue
                    self.severed = True
                number[identity] = len(self.objects)
                self.objects.append(item)
                work.extend(self.node(item, form, plan))
            else:
                visit = (identity, id(plan))
                if identity in met:
                    # A container that is reached twice: a write to it would show in both places.
                    self.aliased = self.aliased or not _fixed(item, form)
                if visit not in seen:
                    met.add(identity)
                    seen.add(visit)
                    work.extend(self.container(item, form, plan))

    def node(self, item: Any, form: str, plan: Plan | None) -> list[tuple[Any, Plan | None]]:
        """Notes the shape of a new node and gives what it holds that is not a leaf."""
        group = None
        if form is OBJECT or form is NAMEDTUPLE:
            names, values = self.attributes(item)
        else:
            assert plan is not None
            group = plan.group
            names, values = (tuple_names(len(item)), item) if form is TUPLE else (dict_names(item), item.values())
        key = (type(item), names, group)
        shape = self.known.get(key)
        if shape is None:
            shape = self.shape(type(item), names, group)
        self.shapes.append(shape)
        plans = self.decisions.fields.get(self.decisions.table(shape.owner)) if self.decisions.fields else None
        if plans is None:
            return [(value, None) for value in values if type(value) not in LEAVES]
        return [(value, plans.get(name)) for name, value in zip(names, values, strict=True)]

    def attributes(self, item: Any) -> tuple[tuple[str | int, ...], Any]:
        """The field names of an object and their values, by the fastest way its class allows."""
        kind = type(item)
        if kind not in self.readers:
            self.readers[kind] = _reader(item)
        declared, read = self.readers[kind]
        if declared is None:
            return tuple(item.__dict__), item.__dict__.values()
        if read is not None:
            try:
                return declared, read(item)
            except AttributeError:
                pass  # a slot that is not set: only the others are fields of this instance
        names = attributes_of(item)
        return names, [getattr(item, name) for name in names]

    def shape(self, kind: type, names: tuple[str | int, ...], group: int | None) -> NodeShape:
        """The shape for a class and its names; the order in which an instance got its attributes does not count."""
        canonical: object = (kind, names, group) if issubclass(kind, dict) else (kind, frozenset(names), group)
        shape = self.known.setdefault(canonical, NodeShape(kind, names, group))
        self.known[kind, names, group] = shape
        return shape

    def container(self, item: Any, form: str, plan: Plan | None) -> list[tuple[Any, Plan | None]]:
        """What a container that is not a node holds."""
        if form is LIST:
            below = None if plan is None else plan.below.get(type(item))
            kinds = set(map(type, item))
            if kinds <= LEAVES:
                return []
            return [(value, below) for value in item]
        if form is OBJECT:
            names, values = self.attributes(item)
        elif form is DICT:
            names, values = dict_names(item), item.values()
        else:
            names, values = (), item
        if plan is None or not plan.below:
            return [(value, None) for value in values if type(value) not in LEAVES]
        if form is TUPLE and plan.sequence:
            below = plan.below.get(SEQUENCE)
            return [(value, below) for value in values]
        kind = type(item)
        key: object = (kind, len(item)) if form is TUPLE else (kind, tuple(names)) if form is DICT else kind
        return [(value, plan.below.get((key, position))) for position, value in enumerate(values)]


def _fixed(item: Any, form: str) -> bool:
    """Whether nothing in a container can be written to: a tuple of numbers, strings and None."""
    return form in (TUPLE, NAMEDTUPLE) and all(type(value) in LEAVES and not hasattr(value, "shape") for value in item)


def _reader(item: Any) -> tuple[tuple[str, ...] | None, Callable[[Any], Any] | None]:
    """The fields that an object's class fixes, and what reads them all at once; None where instances differ."""
    kind = type(item)
    declared = declared_fields(kind)
    if declared is None or issubclass(kind, tuple):
        return declared, tuple
    fixed = hasattr(kind, "__dataclass_fields__") or not hasattr(item, "__dict__")
    return declared, attrgetter(*declared) if fixed and len(declared) > 1 else None


def walk(examples: Sequence[Any], decisions: Decisions) -> Nodes:
    """Finds the nodes of all examples. Raises Offence for a value that cannot be packed."""
    walker = _Walker(decisions)
    if set(map(type, examples)) <= LEAVES:
        return Nodes([], [], np.zeros(0, np.int64), {}, False, False)
    counts = np.zeros(len(examples), np.int64)
    for position, value in enumerate(examples):
        before = len(walker.objects)
        walker.example(value)
        counts[position] = len(walker.objects) - before
    owners = np.repeat(np.arange(len(examples)), counts)
    return Nodes(walker.objects, walker.shapes, owners, walker.number, walker.severed, walker.aliased)
