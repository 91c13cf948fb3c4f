"""What a `for` or a comprehension runs over, and the builtins that make such things.

The invariant: item i of an Iterable is what Python's iterator would give in its i-th step, and making it never raises
for 0 <= i < count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from spmd.errors import TypeMismatch, UnsupportedSyntax, UnsupportedType
from spmd.frontend.array_subscripts import array_item
from spmd.frontend.identities import ITEM, Object
from spmd.frontend.iteration import (
    Iterable,
)
from spmd.frontend.joins import (
    part_of,
    widen,
)
from spmd.frontend.lists import (
    by_value,
    grown,
    grown_item,
    item_of,
    length,
)
from spmd.frontend.lowering import Lowering
from spmd.frontend.operations import guard
from spmd.frontend.strings import character, over_characters
from spmd.frontend.subscripts import load_item, spread_node
from spmd.frontend.values import (
    NONE,
    Abstract,
    Const,
    Grown,
    Leaf,
    Node,
    Run,
    Struct,
    Table,
    describe,
    is_text,
    list_of,
    tuple_of,
)
from spmd.ir.core import Value
from spmd.ir.types import INT, Num, Ref

COUNT = Num("int64")


def iterable(low: Lowering, thing: Abstract, node: Any) -> Iterable:
    """The thing as something to run over. Items of an object are what it holds when they are reached."""
    thing = low.chosen(thing)
    if isinstance(thing, Object):
        assert low.memory is not None
        whole = Object(low.memory.behind(thing)[-1])
        over = ((whole.ident, low.memory.cell(whole)),)
        things = iterable(low, low.settled(thing), node)
        if things.items is None:
            return replace(things, at=lambda i: _item_now(low, thing, i, node), over=over)
        size = len(things.items)
        return replace(things, now=lambda k: _known_item_now(low, thing, k, size, node), over=over)
    if isinstance(thing, Iterable):
        _demand_unchanged(low, thing, node)
        return thing
    if isinstance(thing, Struct) and thing.kind != "dataclass":
        items = tuple(Const(n) for n in thing.names) if thing.kind == "dict" else thing.items
        return fixed(items)
    if isinstance(thing, Const) and isinstance(thing.value, str):
        return fixed(tuple(Const(character) for character in thing.value))
    if isinstance(thing, Leaf) and thing.type.rank:
        return _over_array(low, thing.value, node)
    if is_text(thing):
        return over_characters(low, thing)
    if isinstance(thing, Run):
        return _over_run(low, thing)
    if isinstance(thing, Table):
        keys = part_of(thing, "keys")
        assert isinstance(keys, Grown)
        return _over_grown(low, keys)
    if isinstance(thing, Grown) and thing.kind == "set":
        raise low.error(UnsupportedType, "a set cannot be run over in lanes: its order is that of hashes", node,
                        "keep a list beside it.")
    if isinstance(thing, Grown):
        return _over_grown(low, thing)
    if isinstance(thing, Node):
        return iterable(low, spread_node(low, thing, lambda one: one, node), node)
    raise low.error(TypeMismatch, f"{describe(thing)} cannot be iterated over", node)


def _demand_unchanged(low: Lowering, things: Iterable, node: Any) -> None:
    """Refuses an iterator over what was written to between where it was made and where it is run over."""
    for ident, cell in things.over:
        if low.memory is not None and low.memory.cell(Object(ident)) is not cell:
            raise low.error(UnsupportedSyntax, "what is run over is changed before, in the same expression", node,
                            "change it in a statement of its own.")


def _item_now(low: Lowering, thing: Object, index: Value, node: Any) -> Abstract:
    return iterable(low, low.settled(thing), node).at(index)


def _known_item_now(low: Lowering, thing: Object, k: int, size: int, node: Any) -> Abstract:
    """An item of a list that had a known length when the loop began; the loop saw to it that it has it still."""
    things = iterable(low, low.settled(thing), node)
    assert isinstance(things.count, Const) and things.count.value == size
    return things.at(low.converter.constant(k, COUNT)) if things.items is None else things.items[k]


def fixed(items: tuple[Abstract, ...], parts: Sequence[Iterable] = (), now: Callable[[int], Abstract] | None = None
          ) -> Iterable:
    """A fixed structure, made of the items of others."""
    def at(_: Value) -> Abstract:
        raise TypeError("a fixed structure is unrolled")

    return Iterable(Const(len(items)), at, items=items, over=_over(parts), now=now)


def _over(parts: Sequence[Iterable]) -> tuple[tuple[int, Any], ...]:
    return tuple(pair for part in parts for pair in part.over)


def _over_array(low: Lowering, array: Value, node: Any) -> Iterable:
    type_ = array.type
    assert isinstance(type_, Num)
    size = type_.shape[0]
    count: Abstract = Const(size) if size is not None else Leaf(low.b.emit("dim", array, axis=0))
    row = type_.with_shape(type_.shape[1:])
    return Iterable(
        count,
        lambda i: array_item(low, array, i, node),
        ((array, "each", row),),
        lambda values: Leaf(values[0]),
    )


def _over_run(low: Lowering, run: Run) -> Iterable:
    count = Leaf(low.b.insert("length", [run.value], [INT]).result)
    ref = Ref(run.table)

    def at(i: Value) -> Abstract:
        return load_item(low, run, low.b.insert("item", [run.value, i], [ref], {"table": run.table}).result)

    shape = ("run", run.item.key(), run.fields)
    return Iterable(count, at, ((run.value, "each", ref),), lambda values: _item_of(low, run, values[0]), shape=shape)


def _over_grown(low: Lowering, thing: Grown) -> Iterable:
    def rebuild(values: list[Value]) -> Abstract:
        inner = low.sp.current()
        return inner.hold(item_of(inner, thing.item, values[: len(thing.columns)]), ITEM)

    rows = ((c, "each", c.type.with_shape(c.type.shape[1:])) for c in thing.columns)  # type: ignore[union-attr]
    return Iterable(length(low, thing), lambda i: grown_item(low, thing, i), tuple(rows), rebuild,
                    shape=("grown", thing.item.key()))


def _item_of(low: Lowering, run: Run, ref: Value) -> Abstract:
    """The item of a run inside the function that is mapped over it; `low` is that function's when it is called."""
    return load_item(low.sp.current(), run, ref)


# ------------------------------------------------------------------------------------------------ builtins
def make_range(low: Lowering, args: list[Abstract], node: Any) -> Iterable:
    """range(stop), range(start, stop), range(start, stop, step) of ints."""
    for a in args:
        if not _is_int(a):
            raise low.error(TypeMismatch, f"range takes integers, not {describe(a)}", node)
    start, stop = (Const(0), args[0]) if len(args) == 1 else (args[0], args[1])
    step: Abstract = args[2] if len(args) == 3 else Const(1)
    if all(isinstance(a, Const) for a in (start, stop, step)):
        if step.value == 0:  # type: ignore[attr-defined]
            raise low.error(TypeMismatch, "range() arg 3 must not be zero", node)
        known = range(start.value, stop.value, step.value)  # type: ignore[attr-defined]
        return _range(low, start, step, Const(len(known)))
    if not isinstance(step, Const):
        guard(low, low.b.emit("ne", low.value(step), low.b.const(0)), (ValueError, ("range() arg 3 must not be zero",)))
    return _range(low, start, step, Leaf(_range_count(low, start, stop, step)))


def _is_int(thing: Abstract) -> bool:
    if isinstance(thing, Const):
        return isinstance(thing.value, int)
    return isinstance(thing, Leaf) and thing.type.rank == 0 and thing.type.kind in "iub" and not thing.type.text


def _wrapping(low: Lowering, thing: Abstract) -> Value:
    """An integer in NumPy's kind: arithmetic on a range's own numbers cannot overflow, so it need not be checked."""
    value = low.value(thing)
    return value if value.type == COUNT else low.b.emit("cast", value, dtype="int64", python=False)


def _range_count(low: Lowering, start: Abstract, stop: Abstract, step: Abstract) -> Value:
    """max(0, ceil((stop - start) / step))."""
    b = low.b
    span = b.emit("sub", _wrapping(low, stop), _wrapping(low, start))
    zero, one = low.converter.constant(0, COUNT), low.converter.constant(1, COUNT)
    stride = _wrapping(low, step)
    if isinstance(step, Const) and step.value == 1:
        count = span
    else:
        towards = b.emit("sub", stride, b.emit("sign", stride)) if not isinstance(step, Const) else (
            low.converter.constant(step.value - (1 if step.value > 0 else -1), COUNT)
        )
        safe = b.emit("where", b.emit("eq", stride, zero), one, stride) if not isinstance(step, Const) else stride
        count = b.emit("floordiv", b.emit("add", span, towards), safe)
    return b.emit("cast", b.emit("maximum", count, zero), dtype="int64", python=True)


def _range(low: Lowering, start: Abstract, step: Abstract, count: Abstract) -> Iterable:
    simple = isinstance(start, Const) and start.value == 0 and isinstance(step, Const) and step.value == 1

    def number(i: Value) -> Abstract:
        b = low.sp.current().b
        if not simple:
            stride = b.emit("mul", i, _wrapping(low.sp.current(), step))
            i = b.emit("add", _wrapping(low.sp.current(), start), stride)
        return Leaf(b.emit("cast", i, dtype="int64", python=True))

    known = all(isinstance(a, Const) for a in (start, step))
    sources = ((None, "index", COUNT),) if known else ()
    shape = ("range", start.key(), step.key()) if known else ()
    return Iterable(count, number, sources, (lambda values: number(values[0])) if known else None, shape=shape)


def make_enumerate(low: Lowering, args: list[Abstract], node: Any, start: Abstract | None = None) -> Iterable:
    inner = iterable(low, args[0], node)
    begin = args[1] if len(args) > 1 else start if start is not None else Const(0)
    if inner.items is not None and isinstance(begin, Const):
        items = tuple(tuple_of((Const(begin.value + k), x)) for k, x in enumerate(inner.items))
        return fixed(items, [inner], lambda k: tuple_of((Const(begin.value + k), inner.item(k))))
    numbers = _range(low, begin, Const(1), inner.count)
    return _together(low, [numbers, inner], inner.count)


def make_zip(low: Lowering, args: list[Abstract], node: Any) -> Iterable:
    parts = [iterable(low, a, node) for a in args]
    if not parts:
        return fixed(())
    if all(p.items is not None for p in parts):
        rows = zip(*(p.items for p in parts if p.items is not None))
        return fixed(tuple(map(tuple_of, rows)), parts, lambda k: tuple_of(tuple(p.item(k) for p in parts)))
    if any(p.items is not None and not p.items for p in parts):
        return fixed(())
    parts = [p if p.items is None else _in_columns(low, p, p.items, node) for p in parts]
    count = parts[0].count
    for part in parts[1:]:
        count = _least(low, count, part.count)
    return _together(low, parts, count)


def _in_columns(low: Lowering, part: Iterable, items: tuple[Abstract, ...], node: Any) -> Iterable:
    """A fixed structure beside a sequence of varying length: its items by their number, if they are of one kind."""
    held = list_of(tuple(by_value(low, i) for i in items))
    if len({widen(i).key() for i in held.items}) > 1:
        text = "zip of items of several kinds with a sequence of varying length cannot run in lanes"
        raise low.error(UnsupportedType, text, node, "numbers of one kind, arrays of one shape, or tuples of them can.")
    return replace(_over_grown(low, grown(low, held, (), node)), over=part.over)


def _least(low: Lowering, a: Abstract, b: Abstract) -> Abstract:
    if isinstance(a, Const) and isinstance(b, Const):
        return a if a.value <= b.value else b
    return Leaf(low.b.emit("pymin", low.value(a), low.value(b)))


def _together(low: Lowering, parts: list[Iterable], count: Abstract) -> Iterable:
    sources: list[Any] = []
    over = _over(parts)
    rebuilds: list[tuple[Callable[[list[Value]], Abstract], int, int]] = []
    for part in parts:
        if part.rebuild is None:
            return Iterable(count, lambda i: tuple_of(tuple(p.at(i) for p in parts)), over=over)
        rebuilds.append((part.rebuild, len(sources), len(sources) + len(part.sources)))
        sources += part.sources

    def rebuild(values: list[Value]) -> Abstract:
        return tuple_of(tuple(make(values[a:b]) for make, a, b in rebuilds))

    shape = tuple((part.shape, len(part.sources)) for part in parts)
    return Iterable(count, lambda i: tuple_of(tuple(p.at(i) for p in parts)), tuple(sources), rebuild, shape=shape,
                    over=over)


def make_reversed(low: Lowering, args: list[Abstract], node: Any) -> Iterable:
    if is_text(args[0]):
        backwards = character(low, args[0], (NONE, NONE, Const(-1)), node)
        return iterable(low, backwards, node)
    inner = iterable(low, args[0], node)
    if inner.items is not None:
        size = len(inner.items)
        return fixed(inner.items[::-1], [inner], lambda k: inner.item(size - 1 - k))
    last = low.b.emit("sub", _wrapping(low, inner.count), low.converter.constant(1, COUNT))
    return Iterable(inner.count, lambda i: inner.at(low.sp.current().b.emit("sub", last, i)), over=inner.over)
