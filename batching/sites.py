"""Groups the Python values of all examples by position (site), column by column.

Invariant: a site holds every value that occurs at its position, in row order, and its alternatives partition the rows
whose value is not None; work per site is bulk work, not per value, as long as the site has one type.
Must not know: schemas and columns.
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np

from batching.shapes import (
    ARRAYS,
    DICT,
    FORMS,
    NUMBERS,
    TUPLE,
    NodeShape,
    Offence,
    attributes_of,
    dict_names,
    field_getter,
    tuple_names,
)
from batching.walking import SEQUENCE, Decisions, Plan

__all__ = ["MAX_NESTING", "Alternative", "Site"]

MAX_NESTING = 64
Index = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(eq=False)
class Alternative:
    """The values of one type at a site.

    `key` tells the type: ('number', kind), ('string',), ('array', dtype, ndim), ('list', kind), ('record', kind, cls,
    names) or ('link',). `index` holds their rows, None for all rows of the site.
    """

    key: tuple[Any, ...]
    values: Sequence[Any]
    index: Index | None
    children: list[Site] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)


@dataclass(eq=False)
class Site:
    """One position: its values, the example that each belongs to, and how it is reached."""

    values: Sequence[Any]
    owners: Index
    plan: Plan | None
    parent: Site | None = None
    step: Any = None
    label: str = ""
    depth: int = 0
    alternatives: list[Alternative] = field(default_factory=list)
    nullable: bool = False
    evaluated: bool = False

    def evaluate(self, decisions: Decisions) -> None:
        """Sorts the values into alternatives and makes the sites inside their containers."""
        if self.depth > MAX_NESTING:
            raise Offence(self.values[0] if self.values else None, (
                f"containers nested deeper than {MAX_NESTING} levels, or a container that holds itself; "
                "write the nesting as objects that link to one another"))
        self.evaluated = True
        for kind, (values, index) in self._partition(self.values, None, type).items():
            if kind is type(None):
                self.nullable = True
            elif kind in NUMBERS:
                self._add(("number", NUMBERS[kind]), values, index)
            elif kind is str:
                self._add(("string",), values, index)
            elif kind in ARRAYS:
                self._arrays(values, index)
            elif kind is list or kind is collections.deque:
                self._sequence("list" if kind is list else "deque", kind, values, index)
            elif self.plan is not None and self.plan.group is not None and FORMS.get(kind) in (TUPLE, DICT):
                self._add(("link",), values, index)
            elif kind is tuple:
                self._tuples(values, index, decisions)
            elif FORMS.get(kind) is DICT:
                for names, (part, rows) in self._partition(values, index, dict_names).items():
                    self._record("dict", kind, names, part, rows)
            elif kind in decisions.records:
                self._records(kind, values, index)
            else:
                self._add(("link",), values, index)

    def children(self) -> Iterator[Site]:
        """The sites inside this one's containers."""
        for alternative in self.alternatives:
            yield from alternative.children

    @property
    def path(self) -> str:
        """How code reads this position, from the node or the example that it is inside of."""
        labels: list[str] = []
        site: Site | None = self
        while site is not None:
            labels.append(site.label)
            site = site.parent
        return "".join(reversed(labels))

    def _partition(
        self, values: Sequence[Any], index: Index | None, key: Callable[[Any], Any],
    ) -> dict[Any, tuple[Sequence[Any], Index | None]]:
        """Splits values by key, in order of first sight."""
        keys = list(map(key, values))
        distinct = dict.fromkeys(keys)
        if len(distinct) <= 1:
            return {found: (values, index) for found in distinct}
        codes = {found: code for code, found in enumerate(distinct)}
        coded = np.fromiter(map(codes.__getitem__, keys), np.int64, len(keys))
        parts: dict[Any, tuple[Sequence[Any], Index | None]] = {}
        for found, code in codes.items():
            rows = np.flatnonzero(coded == code)
            part = [values[row] for row in rows.tolist()]
            parts[found] = part, rows if index is None else index[rows]
        return parts

    def _add(self, key: tuple[Any, ...], values: Sequence[Any], index: Index | None) -> Alternative:
        """Adds values of one alternative; types that make the same alternative (node classes, whose table tells them
        apart, or an array and a memory map) join, in row order."""
        for alternative in self.alternatives:
            if alternative.key == key:
                assert alternative.index is not None
                assert index is not None
                rows = np.concatenate([alternative.index, index])
                order = np.argsort(rows, kind="stable")
                merged = [*alternative.values, *values]
                alternative.index = rows[order]
                alternative.values = [merged[position] for position in order.tolist()]
                return alternative
        alternative = Alternative(key, values, index)
        self.alternatives.append(alternative)
        return alternative

    def _arrays(self, values: Sequence[Any], index: Index | None) -> None:
        kinds = self._partition(values, index, attrgetter("dtype", "ndim"))
        for (dtype, ndim), (part, rows) in kinds.items():
            if dtype.kind not in "biufc":
                raise Offence(part[0], f"an array of dtype {dtype}; packed are arrays of bools, integers and floats")
            if not dtype.isnative:
                raise Offence(part[0], f"an array of dtype {dtype}, in foreign byte order; convert it with "
                                       ".astype(a.dtype.newbyteorder('='))")
            self._add(("array", dtype_name(dtype), ndim), part, rows)

    def _child(self, values: Sequence[Any], owners: Index, steps: object, label: str) -> Site:
        plan = None if self.plan is None else self.plan.below.get(steps)
        return Site(values, owners, plan, self, steps, label, self.depth + 1)

    def _owners(self, index: Index | None) -> Index:
        return self.owners if index is None else self.owners[index]

    def _sequence(self, kind: str, step: object, values: Sequence[Any], index: Index | None) -> Alternative:
        lengths = list(map(len, values))
        alternative = self._add(("list", kind), values, index)
        alternative.lengths = lengths
        elements = list(chain.from_iterable(values))
        owners = np.repeat(self._owners(index), lengths)
        alternative.children = [self._child(elements, owners, step, "[...]")]
        return alternative

    def _record(self, kind: str, cls: type, names: tuple[str | int, ...], values: Sequence[Any],
                index: Index | None) -> None:
        alternative = self._add(("record", kind, cls, names), values, index)
        owners = self._owners(index)
        step: object = (cls, len(names)) if kind == "tuple" else (cls, names) if kind == "dict" else cls
        for position, name in enumerate(names):
            column = list(map(field_getter(NodeShape(cls, names), position), values))
            item = position if kind == "tuple" else name
            label = f".{name}" if kind in ("namedtuple", "dataclass") else f"[{item!r}]"
            alternative.children.append(self._child(column, owners, (step, position), label))

    def _records(self, cls: type, values: Sequence[Any], index: Index | None) -> None:
        """Instances of a dataclass or NamedTuple that is structure."""
        kind = "namedtuple" if issubclass(cls, tuple) else "dataclass"
        for names, (part, rows) in self._partition(values, index, attributes_or_fields(cls)).items():
            self._record(kind, cls, names, part, rows)

    def _tuples(self, values: Sequence[Any], index: Index | None, decisions: Decisions) -> None:
        """Tuples of one length are records; of several, a sequence if their elements have one type, else records."""
        arities = self._partition(values, index, len)
        wanted = None if self.plan is None else self.plan.sequence
        if wanted or wanted is None and len(arities) > 1:
            alternative = self._sequence("tuple", SEQUENCE, values, index)
            if wanted or _one_type(alternative.children[0].values, decisions):
                return
            self.alternatives.pop()
        for arity, (part, rows) in arities.items():
            self._record("tuple", tuple, tuple_names(arity), part, rows)


@functools.cache
def dtype_name(dtype: np.dtype[Any]) -> str:
    """The name of a dtype (NumPy takes a microsecond or two to find it)."""
    return dtype.name


def _one_type(values: Sequence[Any], decisions: Decisions) -> bool:
    """Whether values would make a single alternative, None apart, as far as their own types tell."""
    kinds = set(map(type, values)) - {type(None)}
    return len(kinds) <= 1 or not any(kind in FORMS or kind in decisions.records for kind in kinds)


def attributes_or_fields(cls: type) -> Callable[[Any], tuple[str, ...]]:
    """Reads the field names of an instance of a record class."""
    if issubclass(cls, tuple):
        names: tuple[str, ...] = cls._fields  # type: ignore[attr-defined]
        return lambda value: names
    return attributes_of
