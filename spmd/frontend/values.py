"""What a name is bound to while a function is lowered.

A bound thing is structure that is known now (a tuple, a function, a constant) around leaves that are known when the
program runs (SSA values). The invariant: everything here is immutable, `leaves` and `replace` are inverse of each
other, and two things of equal `key` can be exchanged leaf by leaf.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spmd.ir.core import Value
from spmd.ir.types import Num, Ref, Seq


class Abstract:
    """Base of all bound things. `label` is how an error names a thing that has nothing better."""

    label = "no value"

    def leaves(self) -> Iterator[Value]:
        """SSA values, in a fixed order."""
        return iter(())

    def replace(self, leaves: Iterator[Value]) -> Abstract:
        """The same structure around other leaves."""
        return self

    def key(self) -> Any:
        """Hashable: structure, static parts and leaf types."""
        raise TypeError(f"{type(self).__name__} has no key")


@dataclass(frozen=True, eq=False)
class Leaf(Abstract):
    """A number or array that is known when the program runs."""

    value: Value

    @property
    def type(self) -> Num:
        assert isinstance(self.value.type, Num)
        return self.value.type

    def leaves(self) -> Iterator[Value]:
        yield self.value

    def replace(self, leaves: Iterator[Value]) -> Leaf:
        return Leaf(next(leaves))

    def key(self) -> Any:
        return ("leaf", self.value.type)


@dataclass(frozen=True, eq=False)
class Const(Abstract):
    """A Python object known now: None, a number, a string, a dtype, a slice of constants, Ellipsis."""

    value: Any

    def key(self) -> Any:
        value = self.value
        if isinstance(value, float):
            return ("const", float, value.hex())
        return ("const", type(value), value)


NONE = Const(None)


@dataclass(frozen=True, eq=False)
class Struct(Abstract):
    """A container of fixed structure: kind 'tuple', 'list', 'dict', 'namedtuple' or 'dataclass'."""

    kind: str
    cls: type
    names: tuple[Any, ...]
    items: tuple[Abstract, ...]

    def leaves(self) -> Iterator[Value]:
        for item in self.items:
            yield from item.leaves()

    def replace(self, leaves: Iterator[Value]) -> Struct:
        return Struct(self.kind, self.cls, self.names, tuple(item.replace(leaves) for item in self.items))

    def key(self) -> Any:
        return (self.kind, self.cls, self.names, tuple(item.key() for item in self.items))

    def field(self, name: Any) -> Abstract | None:
        """The item called `name`, or None."""
        for own, item in zip(self.names, self.items):
            if own == name and type(own) is type(name):
                return item
        return None


def tuple_of(items: tuple[Abstract, ...]) -> Struct:
    return Struct("tuple", tuple, tuple(range(len(items))), items)


def list_of(items: tuple[Abstract, ...]) -> Struct:
    return Struct("list", list, tuple(range(len(items))), items)


@dataclass(frozen=True, eq=False)
class Node(Abstract):
    """An object of a packed graph: a row of a table, None where the row is -1."""

    value: Value

    @property
    def table(self) -> str:
        assert isinstance(self.value.type, Ref)
        return self.value.type.table

    @property
    def nullable(self) -> bool:
        assert isinstance(self.value.type, Ref)
        return self.value.type.nullable

    def leaves(self) -> Iterator[Value]:
        yield self.value

    def replace(self, leaves: Iterator[Value]) -> Node:
        return Node(next(leaves))

    def key(self) -> Any:
        return ("node", self.value.type)


@dataclass(frozen=True, eq=False)
class Run(Abstract):
    """A list of varying length: a run of rows of a table, an item being `item` with its leaves read from `fields`."""

    value: Value
    item: Abstract
    fields: tuple[int, ...]
    kind: str = "list"

    @property
    def table(self) -> str:
        assert isinstance(self.value.type, Seq)
        return self.value.type.table

    def leaves(self) -> Iterator[Value]:
        yield self.value

    def replace(self, leaves: Iterator[Value]) -> Run:
        return Run(next(leaves), self.item, self.fields, self.kind)

    def key(self) -> Any:
        return ("run", self.value.type, self.item.key(), self.fields, self.kind)


@dataclass(frozen=True, eq=False)
class Grown(Abstract):
    """A list in columns: `count` items (int64), an item being `item` with its leaves read from the columns, arrays
    whose first axis is the list. Its length varies, unless the columns are of one `size`. `kind` is 'list', 'deque' or
    'set'."""

    item: Abstract
    columns: tuple[Value, ...]
    count: Value
    kind: str = "list"

    @property
    def size(self) -> int | None:
        """The length, where it is known now."""
        first = self.columns[0].type if self.columns else None
        return first.shape[0] if isinstance(first, Num) else None

    def leaves(self) -> Iterator[Value]:
        yield from self.columns
        yield self.count

    def replace(self, leaves: Iterator[Value]) -> Grown:
        return Grown(self.item, tuple(next(leaves) for _ in self.columns), next(leaves), self.kind)

    def holding(self, columns: Sequence[Value], count: Value) -> Grown:
        """A list of this kind around other columns."""
        return Grown(self.item, tuple(columns), count, self.kind)

    def key(self) -> Any:
        return ("grown", self.kind, self.item.key(), tuple(v.type for v in self.columns))


@dataclass(frozen=True, eq=False)
class Table(Abstract):
    """A dictionary whose keys are known when the program runs: pairs (key, value) in the columns of a list."""

    entries: Grown

    def leaves(self) -> Iterator[Value]:
        return self.entries.leaves()

    def replace(self, leaves: Iterator[Value]) -> Table:
        return Table(self.entries.replace(leaves))

    def key(self) -> Any:
        return ("table", self.entries.key())


@dataclass(frozen=True, eq=False)
class Excerpt(Abstract):
    """A string that is a part of another: `length` characters at `start`, `start + step`, ... among the letters of all
    strings (int64 each)."""

    label = "str"

    start: Value
    length: Value
    step: Value

    def leaves(self) -> Iterator[Value]:
        yield from (self.start, self.length, self.step)

    def replace(self, leaves: Iterator[Value]) -> Excerpt:
        return Excerpt(next(leaves), next(leaves), next(leaves))

    def key(self) -> Any:
        return ("excerpt",)


@dataclass(frozen=True, eq=False)
class Choice(Abstract):
    """One of several things (a tagged union): `tag` says which alternative is meant. Leaves of the others are unused.

    UNBOUND as an alternative is a name that has no value on some path.
    """

    tag: Value
    alternatives: tuple[Abstract, ...]

    def leaves(self) -> Iterator[Value]:
        yield self.tag
        for alternative in self.alternatives:
            yield from alternative.leaves()

    def replace(self, leaves: Iterator[Value]) -> Choice:
        tag = next(leaves)
        return Choice(tag, tuple(a.replace(leaves) for a in self.alternatives))

    def key(self) -> Any:
        return ("choice", tuple(a.key() for a in self.alternatives))


@dataclass(frozen=True, eq=False)
class Unbound(Abstract):
    """No value."""

    def key(self) -> Any:
        return ("unbound",)


UNBOUND = Unbound()
TAG = Num("int8")


@dataclass(frozen=True, eq=False)
class Static(Abstract):
    """A function, class, module or other object that is known now and is used by what it is."""

    value: Any

    def key(self) -> Any:
        return ("static", id(self.value))


@dataclass(frozen=True, eq=False)
class Method(Abstract):
    """`name` of an object, waiting to be called: a Python function with its self, or a method of an array or list."""

    owner: Abstract
    name: str
    function: Any = None

    def leaves(self) -> Iterator[Value]:
        return self.owner.leaves()

    def replace(self, leaves: Iterator[Value]) -> Method:
        return Method(self.owner.replace(leaves), self.name, self.function)

    def key(self) -> Any:
        return ("method", self.owner.key(), self.name)


class Compound(Abstract):
    """Base of things made of other things in a fixed `form`."""

    @property
    def parts(self) -> tuple[Abstract, ...]:
        """The things that it is made of."""
        raise NotImplementedError

    @property
    def form(self) -> Any:
        """Hashable: all but the parts."""
        raise NotImplementedError

    @property
    def title(self) -> str:
        """How an error names it."""
        raise NotImplementedError

    def around(self, parts: tuple[Abstract, ...]) -> Compound:
        """The same form of other parts."""
        raise NotImplementedError

    def leaves(self) -> Iterator[Value]:
        for part in self.parts:
            yield from part.leaves()

    def replace(self, leaves: Iterator[Value]) -> Compound:
        return self.around(tuple(part.replace(leaves) for part in self.parts))

    def key(self) -> Any:
        return (*self.form, tuple(part.key() for part in self.parts))


def parts_of(thing: Abstract) -> tuple[Abstract, ...]:
    """The things that a thing holds."""
    if isinstance(thing, Struct):
        return thing.items
    if isinstance(thing, Choice):
        return thing.alternatives
    if isinstance(thing, Compound):
        return thing.parts
    if isinstance(thing, Method):
        return (thing.owner,)
    if isinstance(thing, Table):
        return (thing.entries,)
    return (thing.item,) if isinstance(thing, (Run, Grown)) else ()


def around(thing: Abstract, parts: tuple[Abstract, ...]) -> Abstract:
    """The thing with other parts in the places of its own."""
    if isinstance(thing, Compound):
        return thing.around(parts)
    if isinstance(thing, Struct):
        return replace(thing, items=parts)
    if isinstance(thing, Choice):
        return replace(thing, alternatives=parts)
    if isinstance(thing, Method):
        return replace(thing, owner=parts[0])
    return replace(thing, item=parts[0]) if isinstance(thing, Run) else thing


def inner_thing(thing: Abstract) -> Abstract | None:
    """What a result cannot be: a function, class, formatted string or exception that a thing is or holds."""
    if isinstance(thing, (Static, Method, Compound)):
        return thing
    return next((found for part in parts_of(thing) if (found := inner_thing(part)) is not None), None)


def is_number(thing: Abstract) -> bool:
    """A scalar number, known now or later."""
    if isinstance(thing, Const):
        return isinstance(thing.value, (bool, int, float, complex))
    return isinstance(thing, Leaf) and thing.type.rank == 0 and not thing.type.text


def is_text(thing: Abstract) -> bool:
    """A string, known now or later."""
    if isinstance(thing, Const):
        return isinstance(thing.value, str)
    return isinstance(thing, Excerpt) or isinstance(thing, Leaf) and thing.type.text


def class_of(thing: Abstract) -> type:
    """The class that Python's object would be of."""
    if isinstance(thing, Const):
        return type(thing.value)
    if isinstance(thing, Struct):
        return thing.cls
    if isinstance(thing, Run):
        return {"list": list, "tuple": tuple}.get(thing.kind, object)
    if isinstance(thing, (Grown, Table)):
        return {"list": list, "deque": deque, "set": set}[thing.kind] if isinstance(thing, Grown) else dict
    if isinstance(thing, Excerpt):
        return str
    assert isinstance(thing, Leaf)
    type_ = thing.type
    if type_.rank:
        return np.ndarray
    if type_.text:
        return str
    if type_.python:
        return {"int64": int, "float64": float, "bool": bool, "complex128": complex}[type_.dtype]
    return np.dtype(type_.dtype).type


def describe(thing: Abstract) -> str:
    """How an error names the kind of a thing."""
    if isinstance(thing, Leaf):
        return str(thing.type)
    if isinstance(thing, Const):
        return "None" if thing.value is None else f"{type(thing.value).__name__} {thing.value!r}"
    if isinstance(thing, Struct):
        return thing.cls.__name__ if thing.kind in ("namedtuple", "dataclass") else f"a {thing.kind}"
    if isinstance(thing, Node):
        return "an object or None" if thing.nullable else "an object"
    if isinstance(thing, Table):
        return "a dict"
    if isinstance(thing, (Run, Grown)):
        return f"a {getattr(thing, 'kind', 'list')}"
    if isinstance(thing, Choice):
        return " or ".join(describe(a) for a in thing.alternatives)
    if isinstance(thing, Static):
        return f"'{getattr(thing.value, '__name__', type(thing.value).__name__)}'"
    if isinstance(thing, Method):
        return f"method '{thing.name}'"
    if isinstance(thing, Compound):
        return thing.title
    return thing.label
