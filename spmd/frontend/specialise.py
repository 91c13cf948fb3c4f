"""Specialisations of functions for the structure and types of their arguments, and their fixpoint.

A call inside a function that is being lowered asks for a specialisation of the callee. A recursive call finds its own
specialisation unfinished: it is given the results known so far, or, where none is known, ends the path (`Dead`); the
function is lowered again until its results no longer change (Kleene iteration; the lattice is that of `joins`). A
specialisation that used unfinished results of another is lowered again with it.

The invariant: after `call` at the outermost level every function in `module.functions` was lowered with the final
results of all that it calls. Which rows may be None is joined over all calls, so that a root and an inner node of a
tree run in the same regions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from spmd.errors import UnsupportedFunction, UnsupportedType
from spmd.frontend import nesting
from spmd.frontend.calls import apply
from spmd.frontend.closures import demand_none_left_behind
from spmd.frontend.compounds import functions_in
from spmd.frontend.exits import caught, keeps, returned, watch
from spmd.frontend.expressions import expression
from spmd.frontend.fence import inspect
from spmd.frontend.functions import lower_inner
from spmd.frontend.handing import Handed, settle_returns
from spmd.frontend.joins import join, widen
from spmd.frontend.lists import of_lists, same_lists
from spmd.frontend.lowering import Lowering, Rules, Spec
from spmd.frontend.names import Globals, is_recursive
from spmd.frontend.paths import Dead, Pending
from spmd.frontend.read import Definition, read
from spmd.frontend.special_methods import overloaded
from spmd.frontend.statements import block
from spmd.frontend.tables import has
from spmd.frontend.values import NONE, Abstract
from spmd.frontend.watched import WatchedBuilder
from spmd.ir.core import Block, Function, Module, Value
from spmd.ir.types import Ref
from spmd.ops.table import type_rule
from spmd.spans import Span

RULES = Rules(expression, block, apply, of_lists, has, overloaded)
DEEPEST = 60
MOST = 400


class Specialiser:
    """Lowers a program: holds the module that grows, the specialisations, and what the program captures.

    `intern` numbers strings, `spell` is a class that makes the string of a number, `table` gives the tables of strings
    by name. `captures` gives the structure of a captured array or container. `objects`: the program writes into things,
    so that they have identities.
    """

    def __init__(
        self, module: Module, captures: Globals, intern: Callable[[str], int], spell: type,
        table: Callable[[str], Value], objects: bool = False,
    ) -> None:
        self.module = module
        self.objects = objects
        self.globals = captures
        self.intern = intern
        self.spell = spell
        self.table = table
        self.specs: dict[Any, Spec] = {}
        self.stack: list[tuple[Spec, Span | None]] = []
        self.layouts = captures.layouts
        self.lowerings: list[Lowering] = []
        self.empties: Spec | None = None
        self.unknown_lists: set[Spec] = set()
        self._names: set[str] = set()
        self._checked: set[Definition] = set()

    # ------------------------------------------------------------------------------------------ asking
    def chain(self) -> tuple[tuple[str, Span], ...]:
        """The calls that led to the function being lowered, innermost first."""
        found = []
        for (outer, _), (inner, span) in zip(reversed(self.stack[:-1]), reversed(self.stack[1:])):
            wraps = outer.key[0][0] == "entry" and outer.definition is inner.definition
            if span is not None and not wraps:
                found.append((outer.title, span))
        return tuple(found[:4])

    def current(self) -> Lowering:
        """The function that is being lowered now."""
        return self.lowerings[-1]

    def call(self, low: Lowering | None, function: Any, args: dict[str, Abstract], span: Span | None) -> Abstract:
        """The result of calling a Python function; emits the call. Raises Dead if no result is known yet."""
        definition = read(function)
        self.check(definition, span)
        if is_recursive(function) or any(spec.definition is definition for spec, _ in self.stack):
            args = {name: widen_numbers(low, thing) for name, thing in args.items()}
        memory = low.memory if low is not None else None
        if memory is None:
            spec = self.specialise(definition, ("function", function), args, low, span, self.lower_definition)
            result = self.emit_call(low, spec, args)
            return result if low is None else returned(low, result)
        assert low is not None
        handed = Handed(memory)
        args = handed.arguments(args)
        running = next((spec for spec, _ in reversed(self.stack) if spec.definition is definition), None)
        if running is not None:
            args = {name: same_lists(low, thing, running.params.get(name)) for name, thing in args.items()}
        if running is not None or is_recursive(function):
            args = {name: widen_numbers(low, thing) for name, thing in args.items()}
        spec = self.specialise(definition, ("function", function), args, low, span, self.lower_definition)
        return returned(low, handed.result(self.emit_call(low, spec, args), span))

    def call_inner(
        self,
        low: Lowering,
        definition: Definition,
        args: dict[str, Abstract],
        cells: dict[str, Abstract],
        written: list[str],
        span: Span | None,
    ) -> Abstract:
        """The result of calling a function inside a function: of `written` cells, a tuple with what they hold then."""
        recursive = any(f.definition is definition for thing in cells.values() for f in functions_in(thing))
        running = next((spec for spec, _ in reversed(self.stack) if spec.definition is definition), None)
        handed = Handed(low.memory) if low.memory is not None else None
        given = {**args, **cells}
        if handed is not None:
            given = handed.arguments(given)
            if running is not None:
                given = {name: same_lists(low, thing, running.params.get(name)) for name, thing in given.items()}
        if recursive or running is not None:
            for name in [*args, *written, *(n for n in given if n.startswith("@"))]:
                given[name] = widen_numbers(low, given[name])
        lower = partial(lower_inner, written=written)
        spec = self.specialise(definition, ("inner", definition, tuple(written)), given, low, span, lower)
        result = self.emit_call(low, spec, given)
        return result if handed is None else handed.result(result, span)

    def specialise(
        self,
        definition: Definition,
        identity: Any,
        args: dict[str, Abstract],
        low: Lowering | None,
        span: Span | None,
        lower: Callable[[Lowering], None],
        title: str = "",
        plain: bool = False,
    ) -> Spec:
        """Finds or makes the specialisation for these arguments, and makes sure that it is lowered."""
        leaves = [v for thing in args.values() for v in thing.leaves()]
        inputs = set(self.module.inputs)
        handled = () if low is None else caught(low)
        kept = low is not None and bool(handled) and keeps(low)
        key = (identity, handled, kept, tuple(args), tuple(_erased(t).key() for t in args.values()),
               tuple(v.id if v in inputs else -1 for v in leaves))
        spec = self.specs.get(key)
        if spec is None:
            if len(self.specs) >= MOST:
                raise UnsupportedFunction(
                    f"'{definition.name}' is called with more and more different kinds of arguments", span=span,
                    hint="a recursive call that adds structure to an argument each time has no finite program.",
                )
            outer = [s.params.values() for s, _ in self.stack if s.definition is definition]
            if nesting.deepens([*outer, args.values()]):
                raise UnsupportedType(f"'{definition.name}' {nesting.TEXT}", span=span, hint=nesting.HINT)
            fresh = iter([v if v in inputs else Value(_never_null(v.type)) for v in leaves])
            params = {name: thing.replace(fresh) for name, thing in args.items()}
            title = title or definition.name
            spec = Spec(key, self._name(title), title, params, lower, definition, plain, handled, kept)
            self.specs[key] = spec
        self._note_nullable(spec, leaves, low)
        if spec.running:
            self._lean(spec, spec.result_key)
        elif spec.outdated:
            self._fix(spec, span)
        else:
            for other, seen in spec.leans_on.items():
                self._lean(other, seen)
        return spec

    def _lean(self, spec: Spec, key: Any) -> None:
        """Notes that all that runs on top of `spec` (and itself) uses its unfinished results."""
        running = [s for s, _ in self.stack]
        if spec in running:
            for outer in running[running.index(spec) :]:
                outer.leans_on[spec] = key

    def emit_call(self, low: Lowering | None, spec: Spec, args: dict[str, Abstract]) -> Abstract:
        """The call of a specialisation, with its results as structure.

        A callee that never returns is called all the same: it raises, or recurs until memory ends.
        """
        if low is None:
            if spec.result is None:
                raise Dead
            return spec.result
        inputs = set(self.module.inputs)
        operands = [low.assured(v) for thing in args.values() for v in thing.leaves() if v not in inputs]
        if spec.result is None:
            low.b.insert("call", operands, (), {"function": spec.name})
            raise Dead
        own = [v for v in spec.result.leaves() if v not in inputs]
        op = low.b.insert("call", operands, [v.type for v in own], {"function": spec.name})
        renamed = dict(zip(own, op.results))
        return spec.result.replace(iter([renamed.get(v, v) for v in spec.result.leaves()]))

    def _name(self, base: str) -> str:
        base = "".join(c if c.isalnum() or c == "_" else "_" for c in base)
        name, k = base, 1
        while name in self._names:
            k += 1
            name = f"{base}.{k}"
        self._names.add(name)
        return name

    def _note_nullable(self, spec: Spec, leaves: list[Value], low: Lowering | None) -> None:
        known = low.scope.facts.nonnull if low is not None else frozenset()
        for k, v in enumerate(leaves):
            if isinstance(v.type, Ref) and v.type.nullable and v not in known and k not in spec.nullable:
                spec.nullable.add(k)
                spec.stale = True

    # ------------------------------------------------------------------------------------------ lowering
    def _fix(self, spec: Spec, span: Span | None) -> None:
        """Lowers until the results and what may be None no longer change."""
        if len(self.stack) >= DEEPEST:
            raise UnsupportedFunction(f"calls are nested more than {DEEPEST} deep in '{spec.title}'", span=span)
        self.stack.append((spec, span))
        spec.running = True
        growth = nesting.Growth()
        try:
            while True:
                spec.stale = False
                spec.leans_on = {}
                self._lower(spec)
                own = spec.leans_on.get(spec, spec.result_key)
                if own == spec.result_key and not spec.stale and not self._started(spec):
                    break
                if spec.result is not None and growth.endless([spec.result]):
                    raise UnsupportedType(f"'{spec.title}' {nesting.TEXT}", span=span, hint=nesting.HINT)
        finally:
            spec.running = False
            self.stack.pop()
            if self.empties is spec:
                self.empties = None
        running = {s for s, _ in self.stack}
        spec.leans_on = {s: key for s, key in spec.leans_on.items() if s in running}

    def _started(self, spec: Spec) -> bool:
        """Where no path ends but those over lists of results that are not known yet, these are taken as empty once:
        `sum([f(c) for c in children])` is what a leaf ends with."""
        outermost = not any(other is not spec for other in spec.leans_on)
        if spec.result is not None or not outermost or self.empties is not None or not self.unknown_lists:
            return False
        self.empties = spec
        for other in self.unknown_lists:
            other.stale = True
        return True

    def _lower(self, spec: Spec) -> None:
        leaves = [v for thing in spec.params.values() for v in thing.leaves()]
        inputs = set(self.module.inputs)
        values = [
            v if v in inputs else Value(_nullable(v.type) if k in spec.nullable else v.type)
            for k, v in enumerate(leaves)
        ]
        fresh = iter(values)
        body = Block()
        low = Lowering(self, spec.definition, WatchedBuilder(body, type_rule), RULES)
        low.caught, low.keeps = spec.caught, spec.keeps
        watch(low)
        low.scope.names = {name: thing.replace(fresh) for name, thing in spec.params.items()}
        for name in [n for n in low.scope.names if n[0] not in "@#"]:
            low.scope.names[name] = low.hold(low.scope.names[name])
        given = dict(low.scope.names)
        low.pins = [int(name[1:]) for name in spec.params if name.startswith("@")]
        low.locate(spec.definition.node)
        self.lowerings.append(low)
        try:
            spec.lower(low)
        except Dead:
            low.close(body)
        finally:
            self.lowerings.pop()
        if low.memory is not None:
            demand_none_left_behind(low)
            settle_returns(low, spec, given)
        results = self._returns(spec, low)
        params = [v for v in values if v not in inputs]
        spec.function = Function(spec.name, params, results, body, spec.definition.span())
        self.module.functions[spec.name] = spec.function

    def _returns(self, spec: Spec, low: Lowering) -> list[Any]:
        joined = spec.result
        for pending in low.returns:
            assert pending.result is not None
            thing = pending.result
            joined = thing if joined is None else low.attempt(partial(join, joined, thing))
        if joined is None:
            return []
        inputs = set() if spec.plain else set(self.module.inputs)
        placeholders = [v if v in inputs else Value(v.type) for v in joined.leaves()]
        if any(p.result is not None and not _same_inputs(p.result, joined, inputs) for p in low.returns):
            placeholders = [Value(v.type) for v in joined.leaves()]
        result = joined.replace(iter(placeholders))
        if spec.result is not None and _key(spec.result, inputs) == _key(result, inputs):
            result = spec.result
        spec.result, spec.result_key = result, _key(result, inputs)
        kept = [v not in inputs for v in result.leaves()]
        for pending in low.returns:
            assert pending.result is not None
            with low.b.at(pending.block):
                low.b.span = pending.span
                values = low.attempt(partial(low.converter.convert, pending.result, result))
                low.b.insert("return", [v for v, keep in zip(values, kept) if keep], ())
        return [v.type for v in result.leaves() if v not in inputs]

    def check(self, definition: Definition, span: Span | None = None) -> None:
        """The fence, once for each function; `span` is where it is called."""
        if definition not in self._checked:
            caller = ((self.stack[-1][0].title, span),) if self.stack and span is not None else ()
            inspect(definition, (*caller, *self.chain()))
            self._checked.add(definition)

    @staticmethod
    def lower_body(low: Lowering) -> None:
        """The body of a function; falling off its end returns None."""
        low.block(low.definition.body)
        low.returns.append(Pending(low.b.block, low.scope, low.b.span, NONE))
        low.ended.add(low.b.block)

    lower_definition = lower_body

    def empty_list(self) -> bool:
        """Whether a list of results of which none is known may be taken as empty now."""
        self.unknown_lists.add(self.stack[-1][0])
        return self.empties is not None


def widen_numbers(low: Lowering | None, thing: Abstract) -> Abstract:
    """Constant numbers of an argument as leaves: a recursive call computes its own."""
    wide = widen(thing)
    if wide is thing or low is None:
        return thing if wide is thing else wide
    return wide.replace(iter(low.converter.convert(thing, wide)))


def _erased(thing: Abstract) -> Abstract:
    """The thing with every row as one that may be None."""
    return thing.replace(iter([Value(_nullable(v.type)) for v in thing.leaves()]))


def _nullable(type_: Any) -> Any:
    return Ref(type_.table, True) if isinstance(type_, Ref) else type_


def _never_null(type_: Any) -> Any:
    return Ref(type_.table, False) if isinstance(type_, Ref) else type_


def _key(thing: Abstract | None, inputs: set[Value]) -> Any:
    """Structure and types of a result, and which of its leaves are which module inputs."""
    if thing is None:
        return None
    return thing.key(), tuple(v.id if v in inputs else -1 for v in thing.leaves())


def _same_inputs(thing: Abstract, joined: Abstract, inputs: set[Value]) -> bool:
    """Whether the module inputs among the joined leaves are the ones that this thing has there too."""
    if thing.key() != joined.key():
        return not any(v in inputs for v in joined.leaves())
    return all(v is w for v, w in zip(joined.leaves(), thing.leaves()) if v in inputs)
