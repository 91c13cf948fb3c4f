"""Tells what a Python value is to the packer: a number, an array, a container, a node, or nothing that can be packed.

Invariant: the answer depends on the value's exact type (a subclass of list or int may behave differently and is
refused) and, for nodes, on which attributes the instance has.
Must not know: schemas and columns.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = ["FORMS", "NUMBERS", "NodeShape", "Offence", "attributes_of", "field_getter", "form_of"]

NUMBERS: dict[type, str] = {int: "int", float: "float", bool: "bool", complex: "complex"}
for _scalar in (
    np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.float16, np.float32,
    np.float64, np.longdouble, np.complex64, np.complex128, np.clongdouble,
):
    NUMBERS.setdefault(_scalar, "bool_" if _scalar is np.bool_ else np.dtype(_scalar).name)

ARRAYS = (np.ndarray, np.memmap)
DICTS = (dict, collections.OrderedDict)
LEAF, LIST, TUPLE, DICT, NAMEDTUPLE, OBJECT = "leaf", "list", "tuple", "dict", "namedtuple", "object"

ALLOWED = (
    "packed are numbers, strings, None, NumPy arrays of numbers, tuples, lists, deques, dicts, NamedTuples, dataclasses"
    " and objects of classes written in Python"
)


class Offence(Exception):
    """A value that cannot be packed; `pack` turns it into a PackingError once it has found the value's key path."""

    def __init__(self, value: object, message: str, path: str | None = None) -> None:
        super().__init__(message)
        self.value = value
        self.message = message
        self.path = path


@dataclasses.dataclass(frozen=True)
class NodeShape:
    """What makes two nodes the same kind of row: the class, its field names, and for tuples and dictionaries the
    recursive group they belong to."""

    cls: type
    names: tuple[str | int, ...]
    group: int | None = None

    @property
    def owner(self) -> object:
        """What the shapes of one node table have in common before tables are united: the class or the group."""
        return self.cls if self.group is None else self.group


# The exact types whose form is fixed; all others are classified by `form_of`.
FORMS: dict[type, str] = dict.fromkeys([*NUMBERS, *ARRAYS, str, type(None)], LEAF)
FORMS.update({list: LIST, collections.deque: LIST, tuple: TUPLE, dict: DICT, collections.OrderedDict: DICT})


def form_of(value: Any, forms: dict[type, str]) -> str:
    """Leaf, list, tuple, dict, namedtuple or object; `forms` caches the answer by type.

    Raises Offence for a type that cannot be packed.
    """
    kind = type(value)
    found = FORMS.get(kind) or forms.get(kind)
    if found is None:
        found = forms[kind] = _classify(value)
    return found


def _classify(value: Any) -> str:
    kind = type(value)
    name = kind.__qualname__
    if isinstance(value, type):
        raise Offence(value, f"the class {value.__qualname__} is not data; {ALLOWED}")
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return NAMEDTUPLE
    if isinstance(value, enum.Enum):
        raise Offence(value, f"{value} is an enum member, which would lose its identity; store its value instead")
    for base in (np.ndarray, np.generic, int, float, complex, str, list, tuple, dict, collections.deque):
        if isinstance(value, base):
            if isinstance(value, np.generic):
                raise Offence(value, f"a NumPy scalar of dtype {value.dtype} is not a number; {ALLOWED}")
            raise Offence(value, f"{name} is a subclass of {base.__name__}, whose behaviour packing would not keep; "
                                 f"convert it to a plain {base.__name__}")
    if not kind.__flags__ & (1 << 9) or callable(value) and not hasattr(value, "__dict__"):
        raise Offence(value, f"a value of type {name} cannot be packed; {ALLOWED}")
    try:
        object.__new__(kind)
    except TypeError:
        raise Offence(value, f"a value of type {name}, which is not written in Python, cannot be packed; "
                             f"{ALLOWED}") from None
    return OBJECT


def attributes_of(value: Any) -> tuple[str, ...]:
    """The names of an object's fields: dataclass fields, slots that are set, and instance attributes."""
    kind = type(value)
    declared = declared_fields(kind)
    if declared is None:
        return tuple(vars(value))
    present = tuple(name for name in declared if hasattr(value, name))
    if dataclasses.is_dataclass(kind) or not hasattr(value, "__dict__"):
        return present
    return present + tuple(name for name in vars(value) if name not in declared)


def declared_fields(kind: type) -> tuple[str, ...] | None:
    """The field names that a class fixes: of a dataclass, a NamedTuple, or slots; None if it has none of these."""
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    if issubclass(kind, tuple):
        return tuple(kind._fields)  # type: ignore[attr-defined]
    names: list[str] = []
    slotted = False
    for base in reversed(kind.__mro__):
        slots = vars(base).get("__slots__")
        if slots is None:
            continue
        slotted = True
        for name in (slots,) if isinstance(slots, str) else slots:
            if name in ("__dict__", "__weakref__"):
                continue
            if name.startswith("__") and not name.endswith("__"):
                name = f"_{base.__name__.lstrip('_')}{name}"
            names.append(name)
    return tuple(names) if slotted else None


def field_getter(shape: NodeShape, position: int) -> Callable[[Any], Any]:
    """Reads field number `position` of nodes of this shape."""
    name = shape.names[position]
    if issubclass(shape.cls, tuple):
        return operator.itemgetter(position)
    if issubclass(shape.cls, dict):
        return operator.itemgetter(name)
    text = str(name)
    if isinstance(getattr(shape.cls, text, None), property):
        return lambda value: vars(value)[text]
    return operator.attrgetter(text) if "." not in text else lambda value: vars(value)[text]


def dict_names(value: dict[Any, Any]) -> tuple[str | int, ...]:
    """The keys of a dictionary in their order. Raises Offence for keys other than strings and ints."""
    names = tuple(value)
    for key in names:
        if type(key) is not str and type(key) is not int:
            raise Offence(value, f"the dictionary key {key!r} is a {type(key).__qualname__}; packed are keys that are "
                                 "str or int")
    return names


def tuple_names(length: int) -> tuple[str, ...]:
    """The field names of a tuple: '0', '1', ..."""
    return tuple(map(str, range(length)))


def type_names(values: Sequence[Any]) -> str:
    """The names of the types of some values, for messages."""
    return ", ".join(sorted({type(value).__qualname__ for value in values}))
