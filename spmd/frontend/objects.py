"""Mutable things by identity: which names hold the same array, list or record, and what it holds now.

Arrays, lists, dictionaries and records that are kept under a name get an identity (`Object`); what an object holds is a
`Cell` of the scope, so that paths split and meet over it as over any name. The invariant: two things are one Object
exactly where Python has one object (or a view of one array's memory); what cannot be told is `fixed`, and a write to it
is refused; what a write may have changed unseen is `stale`, and a read of it is refused. Programs without writes
are lowered without identities.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from spmd.errors import UnsupportedSyntax
from spmd.frontend.values import Abstract, Cell, Choice, Grown, Leaf, Object, Run, Step, Struct, View, cell_name
from spmd.ir.core import Block, Op, Value

if TYPE_CHECKING:
    from spmd.frontend.lowering import Lowering

FRESH = itertools.count(1_000_000)  # parameters of functions have small numbers
MUTABLE = ("list", "dict", "dataclass")
VIEWS = frozenset({"index", "slice", "dynslice", "transpose", "reshape", "reshape_to", "broadcast", "broadcast_to"})
FOREIGN = frozenset({"load", "item"})
INPUT = "it belongs to an object, a list or a global name, which examples do not write to"

ITEM = "it is an item of a list of varying length, which holds its items by value"


class NeedsObjects(Exception):
    """The program writes into something: it must be lowered with identities."""


def fresh() -> Object:
    """An object that nothing else is."""
    return Object(next(FRESH))


def is_mutable(thing: Abstract) -> bool:
    """Whether Python could write into such a thing."""
    if isinstance(thing, Leaf):
        return thing.type.rank > 0
    if isinstance(thing, Struct):
        frozen = thing.kind == "dataclass" and thing.cls.__dataclass_params__.frozen  # type: ignore[attr-defined]
        return thing.kind in MUTABLE and not frozen
    return isinstance(thing, Grown) or isinstance(thing, Run) and thing.kind == "list"


def inside(thing: Abstract) -> Iterator[Object]:
    """The objects that a thing names, in order."""
    if isinstance(thing, Object):
        yield thing
    elif isinstance(thing, Cell):
        yield from inside(thing.thing)
    elif isinstance(thing, View):
        yield Object(thing.root)
    elif isinstance(thing, Struct):
        for item in thing.items:
            yield from inside(item)
    elif isinstance(thing, Choice):
        for item in thing.alternatives:
            yield from inside(item)
    elif hasattr(thing, "owner"):
        yield from inside(thing.owner)


def renamed(thing: Abstract, names: dict[int, int]) -> Abstract:
    """The thing with other identities for its objects."""
    if isinstance(thing, Object):
        return Object(names.get(thing.ident, thing.ident))
    if isinstance(thing, Cell):
        shares = frozenset(names.get(k, k) for k in thing.shares)
        return Cell(renamed(thing.thing, names), thing.fixed, shares, thing.stale)
    if isinstance(thing, View):
        return View(names.get(thing.root, thing.root), thing.steps)
    if isinstance(thing, Struct):
        return Struct(thing.kind, thing.cls, thing.names, tuple(renamed(i, names) for i in thing.items))
    if isinstance(thing, Choice):
        return Choice(thing.tag, tuple(renamed(a, names) for a in thing.alternatives))
    if hasattr(thing, "owner"):
        return replace(thing, owner=renamed(thing.owner, names))  # type: ignore[type-var]
    return thing


class Memory:
    """What one function's lowering does with objects."""

    def __init__(self, low: Lowering) -> None:
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
        if cell.stale:
            raise self.low.error(UnsupportedSyntax, f"this may have been changed through another name: {cell.stale}",
                                 None, "make a copy where the two names part: b = a.copy().")
        if isinstance(cell.thing, View):
            return Leaf(self._seen(thing.ident, cell.thing)[-1])
        return cell.thing

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
        repeats = any(op.name.startswith("broadcast") for op in steps)
        view = View(root, tuple(map(Step.of, steps)))
        self.names[made.cell] = Cell(view, "it repeats the elements of another array" if repeats else "")
        self.seen[made.ident] = (self.low.b.block, [steps[0].operands[0], *(op.result for op in steps)])
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
        return op.name in FOREIGN if op is not None else value in set(self.low.sp.module.inputs)

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
        return thing

    # ---------------------------------------------------------------------------------------- writing
    def demand_writable(self, thing: Object, node: Any) -> None:
        """Refuses a write to what is fixed."""
        cell = self.cell(thing)
        if cell.fixed:
            raise self.low.error(UnsupportedSyntax, f"this cannot be written to in lanes: {cell.fixed}", node,
                                 "make a copy first: b = a.copy(), and write to that.")

    def write(self, thing: Object, new: Abstract, node: Any) -> None:
        """The object holds something else from now on."""
        self.demand_writable(thing, node)
        cell = self.cell(thing)
        if isinstance(cell.thing, View):
            assert isinstance(new, Leaf)
            self._write_through(thing.ident, cell.thing, new.value, node)
            return
        self.names[thing.cell] = Cell(new, "", cell.shares, "")
        self._spoil(thing.ident)

    def _write_through(self, ident: int, view: View, new: Value, node: Any) -> None:
        """Writes into a part of an array: the steps' inverses, from the last step to the first."""
        values = self._seen(ident, view)
        for step, whole in zip(reversed(view.steps), reversed(values[:-1])):
            new = self.low.attempt(partial(put, self.low, step, whole, new), node)
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


def put(low: Lowering, step: Step, whole: Value, part: Value) -> Value:
    """The array `whole` with `part` where the step reads."""
    b = low.b
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


def reachable(names: dict[str, Abstract], things: list[Abstract]) -> set[int]:
    """The objects that things lead to."""
    found: set[int] = set()
    stack = [o.ident for thing in things for o in inside(thing)]
    while stack:
        ident = stack.pop()
        if ident not in found:
            found.add(ident)
            cell = names.get(cell_name(ident))
            stack += [o.ident for o in inside(cell)] if cell is not None else []
    return found
