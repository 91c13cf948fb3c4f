"""Mutable things by identity: which names hold the same array, list or record, and what it holds now.

Arrays, lists, dictionaries and records that are kept under a name get an identity (`Object`); what an object holds is a
`Cell` of the scope, so that paths split and meet over it as over any name. The invariant: two things are one Object
exactly where Python has one object (or a view of one array's memory); what cannot be told is `fixed`, and a write to it
is refused; what a write may have changed unseen is `stale`, and a read of it is refused. Programs without writes
are lowered without identities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Protocol

from spmd.errors import SpmdError, UnsupportedSyntax
from spmd.frontend.identities import (
    INPUT,
    Cell,
    Object,
    Part,
    Step,
    View,
    cell_name,
    fresh,
    inside,
    is_mutable,
    reachable,
)
from spmd.frontend.joins import part_of
from spmd.frontend.meetings import Meeting
from spmd.frontend.scope import Scope
from spmd.frontend.values import Abstract, Choice, Compound, Leaf, Struct
from spmd.frontend.watched import WatchedBuilder
from spmd.ir.build import Builder
from spmd.ir.core import Block, Op, Value

VIEWS = frozenset({
    "index", "slice", "dynslice", "transpose", "reshape", "reshape_to", "broadcast", "broadcast_to", "diagonal",
})
FOREIGN = frozenset({"load", "item"})
SIZES = "a loop runs over it, and it would change its length meanwhile"


RESULT = "#result"  # what a path gives, as a name of its scope


class Path(Protocol):
    """A path that ends: where its ops are, its names, and what it gives."""

    block: Block
    scope: Scope
    result: Abstract | None


class Frame(Protocol):
    """What the objects of a function ask of its lowering."""

    b: WatchedBuilder
    scope: Scope
    pins: list[int]
    iterated: list[int]

    def error(self, kind: type[SpmdError], message: str, node: Any = None, hint: str | None = None) -> SpmdError:
        """A refusal at a node."""

    def attempt(self, emit: Callable[[], Any], node: Any = None) -> Any:
        """Runs builder rules, whose complaints become refusals."""


class Memory:
    """What one function's lowering does with objects. `inputs` gives the module's inputs, which are captured."""

    def __init__(self, low: Frame, inputs: Callable[[], Sequence[Value]]) -> None:
        self.inputs = inputs
        self.low = low
        self.seen: dict[int, tuple[Block, list[Value]]] = {}

    @property
    def names(self) -> dict[str, Abstract]:
        return self.low.scope.names

    # ---------------------------------------------------------------------------------------- reading
    def cell(self, thing: Object) -> Cell:
        found = self.names[thing.cell]
        assert isinstance(found, Cell)
        return found

    def contents(self, thing: Object) -> Abstract:
        """What an object holds now."""
        cell = self.cell(thing)
        self._demand_known(cell, None)
        if isinstance(cell.thing, Part):
            return part_of(self.contents(Object(cell.thing.root)), cell.thing.name)
        if isinstance(cell.thing, View):
            return Leaf(self._seen(thing.ident, cell.thing)[-1])
        return cell.thing

    def behind(self, thing: Abstract) -> list[int]:
        """The objects that a thing names and those that they are parts of: of one object, it and the whole."""
        found: list[int] = []
        for one in inside(thing):
            cell = self.cell(one)
            found += [one.ident, cell.thing.root] if isinstance(cell.thing, View) else [one.ident]
        return found

    def demand_known(self, thing: Abstract, node: Any) -> None:
        """Refuses to give away what may have been changed unseen."""
        for ident in reachable(self.names, [thing]):
            self._demand_known(self.cell(Object(ident)), node)

    def _demand_known(self, cell: Cell, node: Any) -> None:
        if cell.stale:
            raise self.low.error(UnsupportedSyntax, f"this may have been changed through another name: {cell.stale}",
                                 node, "make a copy where the two names part: b = a.copy().")

    def _seen(self, ident: int, view: View) -> list[Value]:
        """The root's array, and then what each step of a view gives now."""
        root = self.contents(Object(view.root))
        assert isinstance(root, Leaf)
        block, values = self.seen.get(ident, (None, []))
        if block is self.low.b.block and values[0] is root.value:
            return values
        values = [root.value]
        for step in view.steps:
            attrs = {**dict(step.attrs), **({"exact": True} if step.name in ("index", "reshape_to") else {})}
            values.append(self.low.b.insert(step.name, [values[-1], *step.operands], [step.type], attrs).result)
        self.seen[ident] = (self.low.b.block, values)
        return values

    # ---------------------------------------------------------------------------------------- identities
    def hold(self, thing: Abstract, fixed: str = "") -> Abstract:
        """A thing as it is kept under a name or in a container: what is mutable in it has an identity."""
        thing = self.shared(thing)
        if isinstance(thing, Struct):
            thing = Struct(thing.kind, thing.cls, thing.names, tuple(self.hold(i, fixed) for i in thing.items))
        elif isinstance(thing, Choice):
            thing = Choice(thing.tag, tuple(self.hold(a, fixed) for a in thing.alternatives))
        elif isinstance(thing, Compound):
            thing = thing.around(tuple(self.hold(part, fixed) for part in thing.parts))
        if not is_mutable(thing):
            return thing
        if isinstance(thing, Leaf):
            fixed = fixed or (INPUT if self._foreign(thing.value) else "")
        made = fresh()
        self.names[made.cell] = Cell(thing, fixed)
        return made

    def shared(self, thing: Abstract) -> Abstract:
        """An array that is the array of an object, or a view of it, as that object; anything else as it is."""
        if not isinstance(thing, Leaf) or not thing.type.rank:
            return thing
        root, steps = self._source(thing.value)
        if root is None:
            return thing
        if not steps:
            return Object(root)
        made = fresh()
        if any(map(_may_copy, steps)):
            fixed = "it is another array in a new shape, which NumPy may copy or not"
            self.names[made.cell] = Cell(thing, fixed, frozenset({root}))
            return made
        fixed = ""
        if any(op.name.startswith("broadcast") for op in steps):
            fixed = "it repeats the elements of another array"
        elif any(op.name == "diagonal" for op in steps):
            fixed = "NumPy gives a diagonal to be read alone"
        view = View(root, tuple(map(Step.of, steps)))
        self.names[made.cell] = Cell(view, fixed)
        self.seen[made.ident] = (self.low.b.block, [steps[0].operands[0], *(op.result for op in steps)])
        return made

    def part(self, whole: Object, name: str) -> Object:
        """d.keys(), d.values() or d.items(): it changes with the dictionary."""
        made = fresh()
        self.names[made.cell] = Cell(Part(whole.ident, (), name), "it is a dictionary's own list")
        return made

    def apart(self, thing: Abstract) -> Abstract:
        """What a function gives that makes a new array: never an object's own array, or a part of it."""
        if isinstance(thing, Struct):
            return Struct(thing.kind, thing.cls, thing.names, tuple(map(self.apart, thing.items)))
        if isinstance(thing, Leaf) and thing.type.rank and self._source(thing.value)[0] is not None:
            return Leaf(self.low.b.emit("copy", thing.value))
        return thing

    def _source(self, value: Value) -> tuple[int | None, list[Op]]:
        """The object whose array a value is or is read from, and the ops that read it."""
        owners = {next(cell.leaves()): name for name, cell in self.names.items()
                  if isinstance(cell, Cell) and isinstance(cell.thing, Leaf)}
        steps: list[Op] = []
        while True:
            owner = owners.get(value)
            if owner is not None:
                return int(owner[1:]), steps[::-1]
            op = self.low.b.defs.get(value)
            if op is None or op.name not in VIEWS:
                return None, []
            steps.append(op)
            value = op.operands[0]

    def _foreign(self, value: Value) -> bool:
        """Whether an array is a field of an input object, an item of a list, or captured."""
        op = self.low.b.defs.get(value)
        while op is not None and op.name in VIEWS:
            value = op.operands[0]
            op = self.low.b.defs.get(value)
        return op.name in FOREIGN if op is not None else value in set(self.inputs())

    def fix(self, thing: Abstract, why: str) -> None:
        """From now on nothing that is in the thing may be written to."""
        names = self.names
        for ident in reachable(names, [thing]):
            cell = names[cell_name(ident)]
            assert isinstance(cell, Cell)
            names[cell_name(ident)] = Cell(cell.thing, cell.fixed or why, cell.shares, cell.stale)

    def plain(self, thing: Abstract) -> Abstract:
        """A thing with what its objects hold in their place."""
        if isinstance(thing, Object):
            return self.plain(self.contents(thing))
        if isinstance(thing, Struct):
            return Struct(thing.kind, thing.cls, thing.names, tuple(map(self.plain, thing.items)))
        if isinstance(thing, Choice):
            return Choice(thing.tag, tuple(map(self.plain, thing.alternatives)))
        if isinstance(thing, Compound):
            return thing.around(tuple(map(self.plain, thing.parts)))
        return thing

    # ---------------------------------------------------------------------------------------- paths that meet
    def met(self, paths: Sequence[Path], live: Iterable[str], flying: Iterable[str] = ()) -> list[str]:
        """Makes paths agree on the identities of objects; gives what is alive behind their meeting, cells included.
        `flying`: names whose objects may be in use by an expression that is not finished."""
        roots = [n for n in live if not n.startswith("@")]
        for path in paths:
            if path.result is not None:
                path.scope.names[RESULT] = path.result
        idents = {int(n[1:]) for n in flying if n.startswith("@")} | set(self.low.pins)
        meeting = Meeting([p.scope.names for p in paths], lambda k, thing: self.look(paths[k], thing))
        reached = meeting.meet([*roots, RESULT], idents)
        for path in paths:
            if path.result is not None:
                path.result = path.scope.names.pop(RESULT)
        return [*roots, *(cell_name(k) for k in sorted(reached))]

    def look(self, path: Path, thing: Object) -> Abstract:
        """What an object holds at the end of a path."""
        outer, self.low.scope = self.low.scope, path.scope
        try:
            with self.low.b.at(path.block):
                return self.contents(thing)
        finally:
            self.low.scope = outer

    # ---------------------------------------------------------------------------------------- writing
    def demand_writable(self, thing: Object, node: Any) -> None:
        """Refuses a write to what is fixed."""
        cell = self.cell(thing)
        if cell.fixed:
            raise self.low.error(UnsupportedSyntax, f"this cannot be written to in lanes: {cell.fixed}", node,
                                 "make a copy first: b = a.copy(), and write to that.")

    def demand_resizable(self, thing: Object, node: Any) -> None:
        """Refuses to make what a loop runs over longer or shorter."""
        if thing.ident in self.low.iterated:
            raise self.low.error(UnsupportedSyntax, f"this cannot be changed here: {SIZES}", node,
                                 "run over a copy: xs[:].")

    def write(self, thing: Object, new: Abstract, node: Any) -> None:
        """The object holds something else from now on."""
        self.demand_writable(thing, node)
        cell = self.cell(thing)
        if isinstance(cell.thing, View):
            assert isinstance(new, Leaf)
            self._write_through(thing.ident, cell.thing, new.value, node)
            return
        self.names[thing.cell] = Cell(self._own(thing, new), "", cell.shares, "")
        self._spoil(thing.ident)

    def _own(self, thing: Object, new: Abstract) -> Abstract:
        """An array that is written as a whole holds the same numbers as what was written, in memory of its own."""
        if not isinstance(new, Leaf) or not new.type.rank:
            return new
        source = self._source(new.value)[0]
        if source == thing.ident or source is None and not self._foreign(new.value):
            return new
        return Leaf(self.low.b.emit("copy", new.value))

    def _write_through(self, ident: int, view: View, new: Value, node: Any) -> None:
        """Writes into a part of an array: the steps' inverses, from the last step to the first."""
        values = self._seen(ident, view)
        for step, whole in zip(reversed(view.steps), reversed(values[:-1])):
            new = self.low.attempt(partial(put, self.low.b, step, whole, new), node)
        self.write(Object(view.root), Leaf(new), node)

    def _spoil(self, ident: int) -> None:
        """What may share the memory that was written is not known any more."""
        span = self.low.b.span
        where = f"written in line {span.line}" if span is not None else "written"
        for name, cell in list(self.names.items()):
            if isinstance(cell, Cell) and ident in cell.shares:
                self.names[name] = Cell(cell.thing, cell.fixed, cell.shares, where)


def _may_copy(op: Op) -> bool:
    """Whether NumPy copies or not by how memory is laid out: a reshape of several axes that does more than put in or
    take out axes of size 1."""
    if op.name not in ("reshape", "reshape_to"):
        return False
    old, new = ([n for n in getattr(v.type, "shape", ()) if n != 1] for v in (op.operands[0], op.result))
    return len(old) > 1 and old != new


def put(b: Builder, step: Step, whole: Value, part: Value) -> Value:
    """The array `whole` with `part` where the step reads."""
    attrs = dict(step.attrs)
    if step.name == "index":
        return b.emit("put_index", whole, part, *step.operands, exact=True)
    if step.name == "slice":
        return b.emit("put_slice", whole, part, index=attrs["index"])
    if step.name == "dynslice":
        return b.emit("put_dynslice", whole, part, *step.operands, **attrs)
    if step.name == "transpose":
        perm = attrs["perm"]
        return b.emit("transpose", part, perm=tuple(perm.index(k) for k in range(len(perm))))
    shape = whole.type.shape  # type: ignore[union-attr]
    if None not in shape:
        return b.emit("reshape", part, shape=shape)
    return b.emit("reshape_to", part, b.emit("shape_of", whole), shape=shape, exact=True)
