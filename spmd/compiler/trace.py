"""The front end's part of compiling: a function and the schemas of its arguments -> module, result, captures.

The invariant: mapped arguments are the entry's parameters, leaf by leaf in order; shared and captured ones are module
inputs, in the order of `given`. What the program captured and what it took for granted is in `captures` and `guards`.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from spmd.compiler.signature import Packed, PackedSchema, Spelled, intern
from spmd.compiler.signature.arguments import packed_shared
from spmd.compiler.signature.strings import string_table
from spmd.compiler.signature.structure import Shapes
from spmd.errors import InternalError, TypeMismatch, UnsupportedType
from spmd.frontend.identities import NeedsObjects, cell_name, reachable
from spmd.frontend.lowering import Lowering
from spmd.frontend.names import MISSING, Globals, Guard, Source
from spmd.frontend.paths import Pending
from spmd.frontend.read import Definition, read
from spmd.frontend.specialise import Specialiser
from spmd.frontend.values import NONE, Abstract, Static, describe, inner_thing
from spmd.ir.core import Module, Value


@dataclass(frozen=True)
class Argument:
    """One argument of a call, as far as compiling goes."""

    name: str
    schema: PackedSchema
    mapped: bool


@dataclass(frozen=True, eq=False)
class Capture:
    """A captured array or container: read at each call, valid while its schema is the same."""

    name: str
    source: Source
    schema: PackedSchema

    def read(self, keep: bool = False) -> Packed | None:
        """What the name holds now, packed; None if it is gone. `keep`: arrays are copied."""
        value = self.source.read()
        return None if value is MISSING else packed_shared(value, self.source.name, keep)


@dataclass(frozen=True, eq=False)
class StringTable:
    """What a program asks of all strings: read at each call, after its arguments have been packed."""

    name: str
    table: str
    schema: PackedSchema

    def read(self, keep: bool = False) -> Packed:
        """The table as it is now; arrays that were read never change."""
        return string_table(self.table)


@dataclass(eq=False)
class Traced:
    """A program in IR, before any pass.

    given      structure of each argument and then of each capture: which leaf is which input or parameter.
    result     structure of what the entry returns; its leaves are placeholders or module inputs.
    written    the arguments that it writes into.
    """

    module: Module
    result: Abstract
    given: list[Abstract]
    captures: list[Capture | StringTable]
    guards: list[Guard] = field(default_factory=list)
    written: frozenset[str] = frozenset()


def trace(function: Any, arguments: Sequence[Argument]) -> Traced:
    """Lowers a function for arguments of these schemas. Raises SpmdError."""
    try:
        return _traced(function, arguments, objects=False)
    except NeedsObjects:
        return _traced(function, arguments, objects=True)


def _traced(function: Any, arguments: Sequence[Argument], objects: bool) -> Traced:
    module = Module({}, "", [], {})
    captures: list[Capture | StringTable] = []
    given: list[Abstract] = []
    shapes = Shapes(module.tables, {})
    alone = not any(a.mapped for a in arguments)  # there is one example, so every row belongs to it

    def share(name: str, schema: PackedSchema) -> Abstract:
        thing = shapes.argument(name, schema, unique=alone)
        for value in thing.leaves():
            value.name = name
            module.inputs.append(value)
        given.append(thing)
        return thing

    def capture(source: Source, value: Any) -> Abstract:
        packed = packed_shared(value, source.name)
        name = f"${len(captures)}.{source.name}"
        captures.append(Capture(name, source, packed.schema))
        return share(name, packed.schema)

    @functools.cache
    def table(name: str) -> Value:
        title = f"${len(captures)}.{name}"
        captures.append(StringTable(title, name, string_table(name).schema))
        return next(share(title, captures[-1].schema).leaves())

    specialiser = Specialiser(module, Globals(capture, shapes.layouts), intern, Spelled, table, objects)
    bound: dict[str, Abstract] = {}
    for a in arguments:
        if a.mapped:
            bound[a.name] = shapes.argument(a.name, a.schema, unique=True)
            given.append(bound[a.name])
        else:
            bound[a.name] = share(a.name, a.schema)
    written: set[str] = set()
    result = _enter(specialiser, function, bound, written)
    _prune(module)
    return Traced(module, result, given, captures, specialiser.globals.guards, frozenset(written))


def _enter(specialiser: Specialiser, function: Any, bound: dict[str, Abstract], changed: set[str]) -> Abstract:
    """Lowers the entry: the function itself, or a wrapper that calls something that is no Python function. Notes in
    `changed` the arguments that it writes into."""
    module = specialiser.module
    written = _written(function)
    if written is not function or specialiser.objects:
        definition = read(written)
        lower = _calling(function, list(bound), changed)
        spec = specialiser.specialise(definition, ("entry", function), bound, None, None, lower, plain=True)
    else:
        definition = read(function)
        specialiser.check(definition)
        lower = specialiser.lower_definition
        spec = specialiser.specialise(definition, ("function", function), bound, None, None, lower, plain=True)
    if spec.function is None:
        raise InternalError(f"'{spec.title}' was not lowered")
    module.entry = spec.name
    unfit = None if spec.result is None else inner_thing(spec.result)
    if unfit is not None:
        raise UnsupportedType(f"'{spec.title}' returns {describe(unfit)}, which cannot be a result in lanes",
                              span=definition.span(), hint="call a function, and return what it gives.")
    if spec.result is None and not _raises(module):
        raise TypeMismatch(f"'{spec.title}' never returns", span=definition.span(),
                           hint="a recursive function needs a path on which it does not call itself.")
    return NONE if spec.result is None else spec.result


def _raises(module: Module) -> bool:
    """Whether a function that is reached raises by itself: then its examples do, if they do not return."""
    _prune(module)
    return any(op.name == "raise" for f in module.functions.values() for op in f.body.walk())


def _written(function: Any) -> Any:
    """The Python function behind something that is called."""
    if hasattr(function, "__spmd_vmap__"):
        return function.__wrapped__
    if isinstance(function, types.MethodType):
        return function.__func__
    return function.func if isinstance(function, functools.partial) else function


def _calling(function: Any, names: list[str], changed: set[str]) -> Callable[[Lowering], None]:
    """The body of an entry that calls something that is no plain function with the entry's own arguments."""
    def lower(low: Lowering) -> None:
        args = {name: low.scope.names[name] for name in names}
        before = dict(low.scope.names)
        definition: Definition = low.definition
        result = low.apply(Static(function), [], args, definition.node)
        for name, thing in args.items():
            cells = map(cell_name, reachable(before, [thing]))
            if any(low.scope.names.get(cell) is not before[cell] for cell in cells):
                changed.add(name)
        low.returns.append(Pending(low.b.block, low.scope, low.b.span, result))
        low.ended.add(low.b.block)

    return lower


def _prune(module: Module) -> None:
    """Drops functions that the entry does not reach."""
    reached: set[str] = set()
    stack = [module.entry]
    while stack:
        name = stack.pop()
        if name in reached:
            continue
        reached.add(name)
        stack += [op.attrs["function"] for op in module.functions[name].body.walk() if op.name in ("call", "map")]
    module.functions = {name: f for name, f in module.functions.items() if name in reached}
