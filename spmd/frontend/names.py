"""What a global, closure or attribute name means, and what a program captures.

Only None, bool, int, float, str, functions, classes and modules are baked in, each with a guard; arrays and containers
become hidden shared arguments, read again at each call (DESIGN 8). The invariant: a compiled program is used only while
every guard holds. How a captured value is packed is not known here: `capture` is handed in.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spmd.frontend.values import UNBOUND, Abstract, Const, Static

BAKED = (type(None), bool, int, float, complex, str, type(Ellipsis))
LIBRARIES = frozenset({"numpy", "math", "cmath", "builtins", "scipy", "spmd", "batching"})


class Missing:
    """Stands for a name that is not bound."""


MISSING = Missing()


@dataclass(frozen=True, eq=False)
class Source:
    """Where a captured name lives: a module's globals, a closure cell of a function, or attributes of an object."""

    namespace: Any
    name: str

    def read(self) -> Any:
        if isinstance(self.namespace, types.CellType):
            try:
                return self.namespace.cell_contents
            except ValueError:
                return MISSING
        if isinstance(self.namespace, (type, types.ModuleType)):
            return inspect.getattr_static(self.namespace, self.name, MISSING)
        found = self.namespace.get(self.name, MISSING)
        return getattr(builtins, self.name, MISSING) if found is MISSING else found


@dataclass(frozen=True, eq=False)
class Guard:
    """A baked-in value: the program holds while the name still has it."""

    source: Source
    value: Any
    state: Any = None

    @classmethod
    def of(cls, source: Source, value: Any) -> Guard:
        """A guard on what a name has now."""
        return cls(source, value, _state(value))

    def holds(self) -> bool:
        now = self.source.read()
        if isinstance(self.value, BAKED):
            return type(now) is type(self.value) and repr(now) == repr(self.value)  # repr tells 0.0 from -0.0
        return now is self.value and _state(now) == self.state


@dataclass(frozen=True)
class Held:
    """A value that is baked in with a function: numbers by what they are, anything else by which object it is."""

    value: Any
    state: Any

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Held):
            return False
        if isinstance(self.value, BAKED):
            return type(other.value) is type(self.value) and repr(other.value) == repr(self.value)
        return other.value is self.value and other.state == self.state


def _state(value: Any, within: tuple[Any, ...] = ()) -> Any:
    """What can change in a function that stays the same object: its code, its defaults and what is bound to it."""
    if isinstance(value, (staticmethod, classmethod)):
        return _state(value.__func__, within)
    if any(value is outer for outer in within):
        return None
    inner = (*within, value)
    if isinstance(value, functools.partial):
        return _held({"": value.func, **dict(enumerate(value.args)), **value.keywords}, inner)
    if not isinstance(value, types.FunctionType):
        return None
    defaults = _held({**dict(enumerate(value.__defaults__ or ())), **(value.__kwdefaults__ or {})}, inner)
    return value.__code__, defaults


def _held(values: dict[Any, Any], within: tuple[Any, ...]) -> tuple[tuple[Any, Held], ...]:
    return tuple((name, Held(value, _state(value, within))) for name, value in values.items())


@dataclass(eq=False)
class NodeLayout:
    """How a table of nodes is read: for each field its structure around placeholder leaves and its first leaf's
    number in the table; `classes` are (class, its field names) by tag; `tag` is the tag's field."""

    table: str
    classes: tuple[tuple[type, tuple[Any, ...]], ...]
    fields: dict[Any, tuple[Abstract, int]]
    tag: int | None


@dataclass(eq=False)
class Globals:
    """Resolves captured names. `capture(source, value)` gives the structure of an array or container."""

    capture: Callable[[Source, Any], Abstract]
    layouts: dict[str, NodeLayout] = field(default_factory=dict)
    guards: list[Guard] = field(default_factory=list)
    known: dict[tuple[int, str], Abstract] = field(default_factory=dict)

    def resolve(self, function: Any, name: str) -> Abstract | None:
        """What `name` means in a function's globals or closure; None where it is not bound."""
        source = source_of_name(function, name)
        key = (id(source.namespace), name)
        if key in self.known:
            return self.known[key]
        value = source.read()
        if value is MISSING:
            return None
        thing = static(value)
        if thing is None:
            thing = self.capture(source, value)
        else:
            self.guards.append(Guard.of(source, value))
        self.known[key] = thing
        return thing

    def captured_attribute(self, owner: Any, name: str) -> Abstract:
        """An array or container that is an attribute of a module or class."""
        key = (id(owner), name)
        if key not in self.known:
            self.known[key] = self.capture(Source(owner, name), getattr(owner, name))
        return self.known[key]

    def note_attribute(self, owner: Any, name: str) -> None:
        """An attribute of a module or class was baked in. Those of libraries are taken to stay as they are."""
        if isinstance(owner, (type, types.ModuleType)) and _root(owner) not in LIBRARIES:
            key = (id(owner), "guard " + name)
            if key not in self.known:
                source = Source(owner, name)
                self.guards.append(Guard.of(source, source.read()))
                self.known[key] = UNBOUND


def _root(owner: Any) -> str:
    """The outermost package that a module or class is of."""
    name = owner.__name__ if isinstance(owner, types.ModuleType) else owner.__module__
    return str(name).split(".")[0]


def source_of_name(function: Any, name: str) -> Source:
    free = function.__code__.co_freevars
    if name in free and function.__closure__ is not None:
        return Source(function.__closure__[free.index(name)], name)
    return Source(function.__globals__, name)


def static(value: Any) -> Abstract | None:
    """The value as something known now, or None if it must be captured."""
    if isinstance(value, BAKED):
        return Const(value)
    if isinstance(value, np.dtype):
        return Const(value)
    if isinstance(value, (np.ndarray, np.generic, list, dict, tuple)):
        return None
    if isinstance(value, (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, np.ufunc)):
        return Static(value)
    if callable(value) and (hasattr(value, "__wrapped__") or type(value).__module__.split(".")[0] in ("spmd", "numpy")):
        return Static(value)
    if isinstance(value, types.MethodType) or type(value).__module__ in ("functools", "builtins", "typing"):
        return Static(value)
    return None


def attribute_of(value: Any, name: str) -> Any:
    """A static object's attribute, MISSING where it has none."""
    return getattr(value, name, MISSING)


def _callees(function: Any) -> Iterator[Any]:
    seen = function.__code__
    stack = [seen]
    while stack:
        code = stack.pop()
        stack += [c for c in code.co_consts if isinstance(c, types.CodeType)]
        for name in (*code.co_names, *code.co_freevars):
            value = source_of_name(function, name).read()
            if isinstance(value, types.FunctionType):
                yield value
            elif name == function.__name__:  # a method that calls its own name
                yield function


def is_recursive(function: Any) -> bool:
    """Whether a function may call itself, through the functions that it and they name."""
    seen: set[Any] = set()
    stack = list(_callees(function))
    while stack:
        other = stack.pop()
        if other is function:
            return True
        if other not in seen:
            seen.add(other)
            stack += list(_callees(other))
    return False

