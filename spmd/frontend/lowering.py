"""The state of lowering one function, and how control flow splits and meets.

The invariant: `low.b.block` is where ops go, `low.scope` is what holds there, and a path that has ended (return, break,
continue, a call that never returns) raises `Dead` up to the branch it is in. Blocks whose terminator needs a type that
is not known yet are kept in `pending` lists and get it when the join is known.
It knows the rules of no syntax: those that contain each other are handed in, and so is the program around.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NoReturn, Protocol

from spmd.errors import ShapeMismatch, SpmdError, StructureError, TypeMismatch, UnsupportedAttribute, UnsupportedType
from spmd.frontend.conversion import Converter, Yielded
from spmd.frontend.excerpts import Strings
from spmd.frontend.identities import NeedsObjects, Object
from spmd.frontend.joins import JoinError, join_all
from spmd.frontend.names import Globals, NodeLayout
from spmd.frontend.objects import Memory
from spmd.frontend.paths import Dead, LoopFrame, Pending, Tried
from spmd.frontend.read import Definition
from spmd.frontend.scope import NO_FACTS, Facts, Scope
from spmd.frontend.values import Abstract, Choice, Const, Leaf, Node, describe
from spmd.frontend.watched import WatchedBuilder
from spmd.ir.core import Block, Function, Module, Value
from spmd.ir.types import Num, Ref
from spmd.ops.primitive import Refusal
from spmd.spans import Span


@dataclass(eq=False)
class Spec:
    """One specialisation. `params` are named arguments around placeholder leaves or module inputs; `plain`: its results
    are rows of its frames, so no module input may stand among them; `escaped`: the objects that these hold by value.
    `caught`: what it raises of these it returns, in a form that may be raised again if it `keeps`."""

    key: Any
    name: str
    title: str
    params: dict[str, Abstract]
    lower: Callable[[Lowering], None]
    definition: Definition
    plain: bool = False
    caught: tuple[type, ...] = ()
    keeps: bool = False
    nullable: set[int] = field(default_factory=set)
    escaped: set[int] = field(default_factory=set)
    result: Abstract | None = None
    result_key: Any = None
    function: Function | None = None
    running: bool = False
    stale: bool = True
    leans_on: dict[Spec, Any] = field(default_factory=dict)

    @property
    def outdated(self) -> bool:
        """Whether it must be lowered (again): new kinds of arguments, or other results of what it leaned on."""
        return self.stale or any(spec.result_key != key for spec, key in self.leans_on.items())


class Enclosing(Protocol):
    """What lowering one function asks of the whole program, which `specialise` lowers."""

    module: Module
    globals: Globals
    layouts: dict[str, NodeLayout]
    intern: Callable[[str], int]
    table: Callable[[str], Value]
    objects: bool
    spell: type

    def chain(self) -> tuple[tuple[str, Span], ...]:
        """The calls that led here, innermost first."""

    def current(self) -> Lowering:
        """The function that is being lowered now."""

    def call(self, low: Lowering, function: Any, args: dict[str, Abstract], span: Span | None) -> Abstract:
        """The result of calling a Python function."""

    def call_inner(
        self, low: Lowering, definition: Definition, args: dict[str, Abstract], cells: dict[str, Abstract],
        written: list[str], span: Span | None,
    ) -> Abstract:
        """The result of calling a function inside a function."""

    def lower_body(self, low: Lowering) -> None:
        """The body of a function, from its first statement to its end."""

    def specialise(
        self,
        definition: Definition,
        identity: Any,
        args: dict[str, Abstract],
        low: Lowering,
        span: Span | None,
        lower: Callable[[Lowering], None],
        title: str = "",
        plain: bool = False,
    ) -> Spec:
        """The lowered specialisation for these arguments."""

    def empty_list(self) -> bool:
        """Whether a list of results of which none is known may be taken as empty now."""


@dataclass(frozen=True)
class Rules:
    """The rules through which syntax contains itself: the rules of every kind reach them by the `Lowering`, so that no
    two of their files need each other."""

    expression: Callable[[Lowering, Any], Abstract]
    block: Callable[[Lowering, Sequence[Any]], None]
    apply: Callable[[Lowering, Abstract, list[Abstract], dict[str, Abstract], Any], Abstract]
    of_lists: Callable[[Lowering, str, Abstract, Abstract, Any], Abstract | None]
    has: Callable[[Lowering, Any, Abstract, Any], Abstract]
    overloaded: Callable[..., Abstract | None]


class Lowering:
    """Lowers the body of one specialisation."""

    def __init__(self, program: Enclosing, definition: Definition, builder: WatchedBuilder, rules: Rules) -> None:
        self.sp = program
        self.rules = rules
        self.definition = definition
        self.b = builder
        self.scope = Scope()
        self.loops: list[LoopFrame] = []
        self.returns: list[Pending] = []
        self.caught: tuple[type, ...] = ()
        self.keeps = False
        self.handled: list[Abstract] = []
        self.ended: set[Block] = set()
        self.strings = Strings(builder, program.intern, program.table)
        self.converter = Converter(builder, self.strings)
        self.memory = Memory(self, lambda: program.module.inputs) if program.objects else None
        self.pins: list[int] = []  # objects that the caller sees, and those that a loop runs over
        self.iterated: list[int] = []

    # ------------------------------------------------------------------------------------------ rules
    def expression(self, node: Any) -> Abstract:
        """The value of an expression."""
        return self.rules.expression(self, node)

    def block(self, body: Sequence[Any]) -> None:
        """Statements in order."""
        self.rules.block(self, body)

    def apply(self, callee: Abstract, args: list[Abstract], kwargs: dict[str, Abstract], node: Any) -> Abstract:
        """callee(*args, **kwargs)"""
        return self.rules.apply(self, callee, args, kwargs, node)

    def overloaded(
        self, name: str, operands: list[Abstract], node: Any, named: dict[str, Abstract] | None = None
    ) -> Abstract | None:
        """What a special method of an operand's class gives; None where there is none."""
        return self.rules.overloaded(self, name, operands, node, named)

    # ------------------------------------------------------------------------------------------ errors and places
    def locate(self, node: Any) -> Span:
        """Makes `node` the place of ops emitted next."""
        span = self.definition.span(node)
        self.b.span = span
        return span

    def error(self, kind: type[SpmdError], message: str, node: Any = None, hint: str | None = None) -> SpmdError:
        """A refusal at `node` (else at the current place), with the chain of calls that led here."""
        span = self.definition.span(node) if node is not None else self.b.span
        return kind(message, span=span, hint=hint, calls=self.sp.chain())

    def attempt(self, emit: Callable[[], Any], node: Any = None) -> Any:
        """Runs builder rules, whose complaints become refusals at this place."""
        try:
            return emit()
        except Refusal as refusal:
            text, hint = refusal.args[0], getattr(refusal, "hint", None)
            raise self.error(UnsupportedType, text, node, hint) from None
        except JoinError as problem:
            raise self.error(TypeMismatch, str(problem), node) from None
        except SpmdError as problem:
            if problem.span is None:
                raise self.error(type(problem), problem.message, node, problem.hint) from None
            raise
        except (TypeError, ValueError, IndexError) as problem:
            complaint = TypeMismatch if isinstance(problem, TypeError) else ShapeMismatch
            raise self.error(complaint, str(problem), node) from None

    # ------------------------------------------------------------------------------------------ leaves
    def value(self, thing: Abstract, node: Any = None) -> Value:
        """A number, array or string as an SSA value."""
        if isinstance(thing, Leaf):
            return thing.value
        if isinstance(thing, Const):
            if isinstance(thing.value, str):
                return self.converter.number(thing, Num("int64", text=True))
            if isinstance(thing.value, (bool, int, float, complex)):
                if isinstance(thing.value, int) and not -(2**63) <= thing.value < 2**63:
                    raise self.error(UnsupportedType, f"{thing.value} needs more than 64 bits", node)
                return self.b.const(thing.value)
        if isinstance(thing, Object):
            return self.value(self.settled(thing), node)
        raise self.error(TypeMismatch, f"a number or array is needed here, not {describe(thing)}", node)

    def boolean(self, value: bool) -> Value:
        return self.b.const(value)

    def possible(self, choice: Choice) -> frozenset[int]:
        """Which alternatives the facts leave."""
        every = frozenset(range(len(choice.alternatives)))
        return self.scope.facts.tags.get(choice.tag, every) & every

    def chosen(self, thing: Abstract) -> Abstract:
        """The one alternative that is left, if only one is; else the thing."""
        if isinstance(thing, Choice):
            left = self.possible(thing)
            if len(left) == 1:
                return self.chosen(thing.alternatives[next(iter(left))])
        return thing

    def settled(self, thing: Abstract) -> Abstract:
        """What is known of a thing at this point: the one alternative that is left, what an object holds now."""
        thing = self.chosen(thing)
        if isinstance(thing, Object):
            assert self.memory is not None
            return self.settled(self.memory.contents(thing))
        return thing

    def hold(self, thing: Abstract, fixed: str = "") -> Abstract:
        """A thing as it is kept: what is mutable in it has an identity, where the program writes."""
        return thing if self.memory is None else self.memory.hold(thing, fixed)

    def shared(self, thing: Abstract) -> Abstract:
        """A part of an object's array as the view that it is."""
        return thing if self.memory is None else self.memory.shared(thing)

    @contextmanager
    def running_over(self, over: Iterable[int], fixed: Iterable[int]) -> Iterator[None]:
        """While a loop runs over objects they keep their identity where paths meet, and the `fixed` their length."""
        kept = self.pins, self.iterated
        self.pins, self.iterated = [*self.pins, *over], [*self.iterated, *fixed]
        try:
            yield
        finally:
            self.pins, self.iterated = kept

    def apart(self, thing: Abstract) -> Abstract:
        """A new array as one that shares no memory."""
        return thing if self.memory is None else self.memory.apart(thing)

    def needs_objects(self) -> None:
        """Something is written to here: without identities the program must be lowered again, with them."""
        if self.memory is None:
            raise NeedsObjects

    def is_nonnull(self, node: Node) -> bool:
        return not node.nullable or node.value in self.scope.facts.nonnull

    def assured(self, value: Value) -> Value:
        """A row that the facts say is not None, as one that cannot be."""
        if not isinstance(value.type, Ref) or not value.type.nullable or value not in self.scope.facts.nonnull:
            return value
        key = (value, -1)
        if key not in self.scope.loads:
            self.scope.loads[key] = self.b.insert("assured", [value], [Ref(value.type.table)]).result
        return self.scope.loads[key]

    def load(self, ref: Value, table: str, field: int, type_: Any) -> Value:
        """A field of a row, loaded once per point of the program (rows never change)."""
        key = (ref, field)
        known = self.scope.loads.get(key)
        if known is None:
            known = self.b.insert("load", [ref], [type_], {"table": table, "field": field}).result
            self.scope.loads[key] = known
        return known

    # ------------------------------------------------------------------------------------------ branches
    def end(self, pending: list[Pending], result: Abstract | None = None) -> NoReturn:
        """Ends the path at a jump whose terminator is written later."""
        pending.append(Pending(self.b.block, self.scope, self.b.span, result))
        self.ended.add(self.b.block)
        raise Dead

    def close(self, block: Block) -> None:
        """Gives a block whose path ended its terminator, if it neither has one nor waits for one."""
        if block not in self.ended and not (block.ops and block.ops[-1].terminator):
            with self.b.at(block):
                self.b.insert("unreachable", (), ())

    def arm(self, facts: Facts, run: Callable[[], Abstract | None]) -> tuple[Pending, bool]:
        """Lowers one arm into a block of its own: the block with its scope and result, and whether it goes on."""
        outer, block = self.scope, Block()
        self.scope = outer.copy(facts)
        span = self.b.span
        result: Abstract | None = None
        alive = True
        with self.b.at(block):
            try:
                result = run()
                result = None if result is None else self.hold(result)
            except Dead:
                alive = False
                self.close(block)
            finally:
                inner, at, self.scope, self.b.span = self.scope, self.b.span, outer, span
        return Pending(block, inner, at, result), alive

    def branch(
        self,
        cond: Value,
        arms: tuple[Callable[[], Abstract | None], Callable[[], Abstract | None]],
        facts: tuple[Facts, Facts] = (NO_FACTS, NO_FACTS),
        live: Iterable[str] = (),
    ) -> Abstract | None:
        """`if cond` with two arms; `live` are the names that matter after it. Gives the arms' joined result."""
        span = self.b.span
        done = [self.arm(f, run) for f, run in zip(facts, arms)]
        self.b.span = span
        alive = [pending for pending, goes_on in done if goes_on]
        live = self.met(alive, live, self.scope.names if live is self.scope.names else ())
        names = self._changed(alive, live)
        has_result = any(p.result is not None for p in alive)
        parts = [self._parts(p, names, has_result) for p in alive]
        joined = self.attempt(lambda: [join_all(column) for column in zip(*parts)])
        results = self._yields(alive, parts, joined)
        op = self.b.insert("if", [cond], [v.type for v in results.types], blocks=[p.block for p, _ in done])
        if not alive:
            raise Dead
        things = results.rebuild(joined, op.results)
        if len(alive) == 1:
            self._inherit(alive[0].scope, results, op.results)
        self.scope.names.update(zip(names, things))
        return things[-1] if has_result else None

    def met(self, paths: Sequence[Pending], live: Iterable[str], flying: Iterable[str] = ()) -> Iterable[str]:
        """What is alive where paths meet, after they agree on the identities of objects (see Memory.met)."""
        return live if self.memory is None or not paths else self.memory.met(paths, live, flying)

    def _changed(self, alive: list[Pending], live: Iterable[str]) -> list[str]:
        outer = self.scope.names
        if live is outer:  # of an expression: whatever `:=` has bound in an arm
            live = frozenset().union(*(p.scope.names for p in alive))
        return sorted(n for n in live if any(p.scope.names.get(n) is not outer.get(n) for p in alive))

    def _parts(self, pending: Pending, names: list[str], has_result: bool) -> list[Abstract]:
        things = [pending.scope.bound(n) for n in names]
        if has_result:
            things.append(pending.result if pending.result is not None else Const(None))
        return things

    def _yields(self, alive: list[Pending], parts: list[list[Abstract]], joined: list[Abstract]) -> Yielded:
        columns: list[list[Value]] = []
        for pending, things in zip(alive, parts):
            with self.b.at(pending.block):
                columns.append(
                    self.attempt(partial(self._converted, things, joined))
                )
        results = Yielded(columns, [{r for op in p.block.ops for r in op.results} for p in alive])
        for pending, column in zip(alive, columns):
            with self.b.at(pending.block):
                self.b.insert("yield", [v for v, keep in zip(column, results.yielded) if keep], ())
        return results

    def _converted(self, things: list[Abstract], targets: list[Abstract]) -> list[Value]:
        return [v for thing, target in zip(things, targets) for v in self.converter.convert(thing, target)]

    def _inherit(self, scope: Scope, results: Yielded, values: list[Value]) -> None:
        """After a branch with one way out, what that way has shown holds."""
        facts = scope.facts
        renamed = dict(zip(results.sources(0), values))
        nonnull = facts.nonnull | {renamed[v] for v in facts.nonnull if v in renamed}
        tags = dict(facts.tags) | {renamed[v]: t for v, t in facts.tags.items() if v in renamed}
        self.scope.facts = Facts(nonnull, tags)

    # ------------------------------------------------------------------------------------------ unions
    def spread(
        self, thing: Abstract, run: Callable[[Abstract], Abstract], tried: Tried | None = None, keep: bool = False
    ) -> Abstract:
        """Applies `run` to each alternative that a union may be, behind a test of its tag; `keep`: to objects, not to
        what they hold.

        An alternative that it does not fit raises TypeError, as Python would; if none fits, the program is refused.
        """
        thing = self.chosen(thing) if keep else self.settled(thing)
        if not isinstance(thing, Choice):
            return run(thing) if tried is None else self._or_raise(thing, run, tried)
        left = sorted(self.possible(thing))
        first = left[0]
        tried = Tried(len(left)) if tried is None else tried
        test = self.b.emit("eq", thing.tag, self.converter.constant(first, Num("int8")))
        rest = frozenset(left[1:])
        result = self.branch(
            test,
            (
                lambda: self.spread(thing.alternatives[first], run, tried, keep),
                lambda: self.spread(thing, run, tried, keep),
            ),
            (Facts(tags={thing.tag: frozenset({first})}), Facts(tags={thing.tag: rest})),
            live=self.scope.names,
        )
        assert result is not None
        return result

    def _or_raise(self, thing: Abstract, run: Callable[[Abstract], Abstract], tried: Tried) -> Abstract:
        """`run(thing)`; where it is refused for the thing's kind, the example that has this kind raises."""
        try:
            return run(thing)
        except (TypeMismatch, UnsupportedAttribute, StructureError) as problem:
            tried.refused += 1
            if tried.refused == tried.total:
                raise
            kind = TypeError if isinstance(problem, TypeMismatch) else AttributeError
            self.b.insert("raise", (), (), {"error": (kind, (problem.message,))})
            raise Dead from None
