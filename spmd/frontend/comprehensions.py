"""`[expr for x in xs]` and calls of vmapped functions: one function, mapped over elements.

The expression becomes a function of the element and of the names that it reads; a `map` runs one frame for each
element, all of them together. The invariant: elements do not see each other, so their order of execution cannot be
observed.
A comprehension that only picks fields is a view of the list it runs over; one that only calls a function maps that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gast

from spmd.errors import BatchError, UnsupportedFunction, UnsupportedSyntax
from spmd.frontend.bindings import bind
from spmd.frontend.closures import own_cells, pack
from spmd.frontend.compounds import Exit
from spmd.frontend.handing import Handed
from spmd.frontend.identities import ITEM, Object
from spmd.frontend.iterables import iterable, make_zip
from spmd.frontend.iteration import Iterable
from spmd.frontend.joins import alternatives
from spmd.frontend.list_methods import append
from spmd.frontend.liveness import reads, writes
from spmd.frontend.lowering import Lowering, Spec
from spmd.frontend.operations import guard
from spmd.frontend.paths import Pending
from spmd.frontend.python_calls import bind_arguments, call_python
from spmd.frontend.queues import add
from spmd.frontend.read import read
from spmd.frontend.runs import as_column
from spmd.frontend.scoping import bare, own_name
from spmd.frontend.values import (
    UNBOUND,
    Abstract,
    Const,
    Grown,
    Leaf,
    Node,
    Run,
    Struct,
    describe,
    list_of,
)
from spmd.frontend.writes import (
    store_item,
)
from spmd.ir.core import Function, Op, Value
from spmd.ir.types import Num, Ref, Seq

COUNT = Num("int64")
ELEMENTS = "all elements of a comprehension or a batch see it"


FEW = 64  # items of a list that may each be written to


def _makes(node: Any) -> bool:
    """Whether an element is something new that can be written to: then each is an object of its own."""
    if isinstance(node, gast.BinOp):
        return _makes(node.left) or _makes(node.right)
    if isinstance(node, gast.Call) and isinstance(node.func, gast.Attribute):
        return node.func.attr in ("zeros", "ones", "full", "copy", "array", "zeros_like", "ones_like", "arange")
    return isinstance(node, (gast.List, gast.ListComp, gast.Dict))


class Doing(gast.AST):
    """A statement that is a function of the lowering: what a construct does in loops that are written for it."""

    _fields = ()

    def __init__(self, run: Any) -> None:
        super().__init__()
        self.run = run


def comprehension(low: Lowering, node: Any) -> Abstract:
    """A list comprehension. One `for` without `if` is a map; all others append in loops."""
    if any(g.is_async for g in node.generators):
        raise low.error(UnsupportedSyntax, "'async for' cannot run in lanes", node, "use a plain 'for'.")
    if len(node.generators) != 1 or node.generators[0].ifs:
        return _appended(low, node)
    generator = node.generators[0]
    things = iterable(low, low.expression(generator.iter), generator.iter)
    low.locate(node)
    names = sorted(reads(node.elt) - writes(generator.target))
    if things.items is not None:
        over = [ident for ident, _ in things.over]
        with low.running_over(over, over):
            return _unrolled(low, node, generator.target, things.item, len(things.items))
    if low.memory is not None and isinstance(things.count, Const) and things.count.value <= FEW and _makes(node.elt):
        over = [ident for ident, _ in things.over]
        with low.running_over(over, over):
            return _unrolled(low, node, generator.target, lambda k: things.at(low.converter.constant(k, COUNT)),
                             things.count.value)
    _refuse_walrus(low, node)
    captured = {n: low.scope.names[n] for n in [*names, *_inner_names(low, node)] if n in low.scope.names}
    captured |= own_cells(low, captured.values())
    if things.rebuild is None:
        raise low.error(UnsupportedSyntax, "a comprehension over this cannot run in lanes", generator.iter,
                        "run over the sequence itself.")

    def body(inner: Lowering, item: Abstract) -> Abstract:
        bind(inner, generator.target, item)
        return inner.expression(node.elt)

    place = (node.lineno, node.col_offset)
    return mapped(low, things, captured, body, ("comprehension", low.definition.function, place), "comprehension")


def dict_comprehension(low: Lowering, node: Any) -> Abstract:
    """`{key: value for ...}`"""
    def put(inner: Lowering, made: Object) -> None:
        key = inner.expression(node.key)
        store_item(inner, made, [inner.settled(key)], False, inner.expression(node.value), node)

    return _looped(low, node, Struct("dict", dict, (), ()), put)


def set_comprehension(low: Lowering, node: Any) -> Abstract:
    """`{item for ...}`"""
    low.needs_objects()
    empty = Grown(UNBOUND, (), low.converter.constant(0, COUNT), "set")
    return _looped(low, node, empty, lambda inner, made: add(
        inner, made, inner.settled(made), inner.expression(node.elt), node))


def _appended(low: Lowering, node: Any) -> Abstract:
    """A list comprehension as the loops that it stands for."""
    return _looped(low, node, list_of(()), lambda inner, made: append(
        inner, made, inner.settled(made), inner.expression(node.elt), node))


def _looped(low: Lowering, node: Any, empty: Abstract, put: Callable[[Lowering, Object], None]) -> Abstract:
    """A comprehension as loops around a list, dictionary or set of its own. Its variables are its own, too."""
    _refuse_walrus(low, node)
    low.needs_objects()
    made = low.hold(empty)
    assert isinstance(made, Object)
    targets = frozenset().union(*(writes(g.target) for g in node.generators))
    kept = {n: low.scope.names.pop(n) for n in targets if n in low.scope.names}
    visible = frozenset(n for n in low.scope.names if not n.startswith("@"))
    body: list[Any] = [gast.copy_location(Doing(lambda inner: put(inner, made)), node)]
    for generator in reversed(node.generators):
        for test in reversed(generator.ifs):
            body = [gast.copy_location(gast.If(test=test, body=body, orelse=[]), test)]
            low.definition.liveness.after[body[0]] = visible | targets
        loop = gast.For(target=generator.target, iter=generator.iter, body=body, orelse=[], type_comment=None)
        body = [gast.copy_location(loop, generator.target)]
        low.definition.liveness.after[body[0]] = low.definition.liveness.head[body[0]] = visible
    pins = list(low.pins)
    low.pins.append(made.ident)
    low.block(body)
    low.pins = pins
    for name in targets:
        low.scope.names.pop(name, None)
    low.scope.names.update(kept)
    return made


def _inner_names(low: Lowering, node: Any) -> list[str]:
    """Names that the functions inside an expression read."""
    made = [n for n in gast.walk(node) if isinstance(n, gast.Lambda)]
    free = {key for n in made for key in low.definition.scopes.free[n]}
    return sorted(own_name(key, low.definition.level) for key in free)


def _refuse_walrus(low: Lowering, node: Any) -> None:
    """What `:=` binds in one element would be seen by the next."""
    for part in gast.walk(node):
        if isinstance(part, gast.NamedExpr):
            raise low.error(UnsupportedSyntax, f"':=' binds '{part.target.id}' in a comprehension, which cannot run in "
                            "lanes here", part, "write a 'for' loop.")


def _unrolled(low: Lowering, node: Any, target: Any, item: Callable[[int], Abstract], size: int) -> Abstract:
    """A list of known length, its elements computed one after the other."""
    kept = {n: low.scope.names.get(n) for n in writes(target)}
    results = []
    for k in range(size):
        bind(low, target, item(k))
        results.append(low.hold(low.expression(node.elt)))
    for name, thing in kept.items():
        low.scope.names.pop(name, None)
        if thing is not None:
            low.scope.names[name] = thing
    return list_of(tuple(results))


def mapped(
    low: Lowering, things: Iterable, captured: dict[str, Abstract], body: Any, identity: Any, title: str
) -> Run:
    """Emits a `map` of `body` over the items; gives the list of its results."""
    assert things.rebuild is not None
    rebuild = things.rebuild
    sources = things.sources
    elements: dict[str, Abstract] = {f"#{k}": _placeholder(type_) for k, (_, _, type_) in enumerate(sources)}

    def lower(inner: Lowering) -> None:
        values = [next(inner.scope.names[f"#{k}"].leaves()) for k in range(len(sources))]
        before = dict(inner.scope.names)
        result = body(inner, inner.hold(rebuild(values), ELEMENTS))
        for name in inner.definition.boxed & before.keys():
            if inner.scope.names[name] is not before[name]:
                raise inner.error(UnsupportedSyntax, f"the elements of a comprehension, which are computed together, "
                                  f"write the variable '{bare(name)}' through 'nonlocal'", None, "write a 'for' loop.")
        inner.returns.append(Pending(inner.b.block, inner.scope, inner.b.span, result))
        inner.ended.add(inner.b.block)

    handed = Handed(low.memory, ELEMENTS) if low.memory is not None else None
    if handed is not None:
        captured = handed.arguments(captured)
    args = {**elements, **captured}
    span = low.b.span
    shape = tuple((kind, type_) for _, kind, type_ in sources)
    spec = low.sp.specialise(low.definition, (identity, shape, things.shape), args, low, span, lower, title, plain=True)
    low.b.span = span
    if spec.result is not None and any(isinstance(way, Exit) for way in alternatives(spec.result)):
        text = "the elements of a comprehension, which are computed together, may raise what is caught around it"
        raise low.error(UnsupportedSyntax, text, None, "write a 'for' loop.")
    if handed is not None:
        handed.fix(spec.escaped, ITEM)
    inputs = set(low.sp.module.inputs)
    same = [v for thing in captured.values() for v in thing.leaves() if v not in inputs]
    count = low.b.emit("cast", low.value(things.count), dtype="int64", python=False)
    operands = [count if operand is None else operand for operand, _, _ in sources]
    each = [kind for _, kind, _ in sources] + ["same"] * len(same)
    return _emit(low, spec, count, operands + same, each)


def _placeholder(type_: Any) -> Abstract:
    value = Value(type_)
    return Node(value) if isinstance(type_, Ref) else Leaf(value)


def _emit(low: Lowering, spec: Spec, count: Value, operands: list[Value], each: list[str]) -> Run:
    name, function, result = spec.name, spec.function, spec.result
    if function is not None and result is not None:
        picked = _only_picks(function)
        if picked is not None and each and isinstance(operands[0].type, Seq):
            return Run(operands[0], result, picked)
        direct = _only_calls(function, operands, each)
        if direct is not None and not _shares_frames(low, direct):
            name, operands, each = direct
    elif result is None:  # no item is known yet, or none ever comes to be: what needs one does not go on
        result = UNBOUND
    attrs = {"function": name, "each": tuple(each)}
    value = low.b.insert("map", [count, *operands], [Seq("@" + name)], attrs).result
    return Run(value, result, tuple(range(len(list(result.leaves())))))


def _shares_frames(low: Lowering, direct: tuple[str, list[Value], list[str]]) -> bool:
    """Whether the callee is called on nodes that may have several parents: calls of it, unlike the frames of a map,
    can share a frame."""
    callee = low.sp.module.functions.get(direct[0])
    types = [v.type for v in callee.params] if callee is not None else []
    tables = [low.sp.module.tables[t.table] for t in types if isinstance(t, Ref) and t.table in low.sp.module.tables]
    return callee is None or any(table.shared and table.unique for table in tables)


def _only_picks(function: Function) -> tuple[int, ...] | None:
    """The fields that a function returns, if it does nothing but load fields of its element."""
    *ops, last = function.body.ops
    if last.name != "return" or not function.params or any(op.name != "load" for op in ops):
        return None
    fields = {op.result: op.attrs["field"] for op in ops if op.operands[0] is function.params[0]}
    if len(fields) != len(ops) or not all(v in fields for v in last.operands):
        return None
    return tuple(fields[v] for v in last.operands)


def _only_calls(
    function: Function, operands: list[Value], each: list[str]
) -> tuple[str, list[Value], list[str]] | None:
    """The callee and how to map it directly, if a function does nothing but call it with what it is given."""
    *ops, last = function.body.ops
    calls = [op for op in ops if op.name == "call"]
    if last.name != "return" or len(calls) != 1 or ops[-1] is not calls[0] or last.operands != calls[0].results:
        return None
    given = dict(zip(function.params, zip(operands, each)))
    for op in ops[:-1]:
        source = given.get(op.operands[0]) if op.name == "load" else None
        if source is None or source[1] != "each" or not isinstance(source[0].type, Seq):
            return None
        if isinstance(op.result.type, Seq) or isinstance(op.result.type, Num) and not op.result.type.static:
            return None  # a list or an array of varying size is not handed on by its place
        given[op.result] = (source[0], f"field:{op.attrs['field']}")
    call: Op = calls[0]
    if not all(v in given for v in call.operands):
        return None
    return call.attrs["function"], [given[v][0] for v in call.operands], [given[v][1] for v in call.operands]


# ------------------------------------------------------------------------------------------------ vmap inside
def call_vmapped(
    low: Lowering, function: Any, args: list[Abstract], kwargs: dict[str, Abstract], node: Any
) -> Abstract:
    """A call of a vmapped function: one frame for each example, its results stacked."""
    inner, in_axes = function.__spmd_vmap__
    if not hasattr(inner, "__code__"):
        raise low.error(UnsupportedFunction, "only a vmapped Python function can be called in lanes", node)
    bound = {n: pack(low, t, node) for n, t in bind_arguments(low, read(inner), args, kwargs, node).items()}
    names = list(bound)
    given = {*names[: len(args)], *kwargs}
    axes = {n: axis if n in given else None for n, axis in in_axes(names).items()}
    parts: list[Abstract] = []
    captured: dict[str, Abstract] = {}
    counts: list[tuple[str, Abstract]] = []
    for name, thing in bound.items():
        if axes[name] is None:
            captured[name] = thing
        else:
            parts.append(thing)
            counts += [(name, c) for c in _lengths(low, thing, node)]
    if not counts:
        raise low.error(BatchError, f"no argument of '{inner.__name__}' is mapped over", node)
    _demand_equal(low, counts, inner.__name__)
    things = _split(low, parts, node)
    names = [n for n in bound if axes[n] is not None]

    def body(within: Lowering, item: Abstract) -> Abstract:
        assert isinstance(item, Struct)
        own = dict(zip(names, item.items))
        values = {n: own[n] if n in own else within.scope.names[n] for n in bound}
        return call_python(within, inner, list(values.values()), {}, node)

    run = mapped(low, things, captured, body, ("vmap", inner, tuple(axes.items())), inner.__name__)
    return stacked(low, run, node)


def _lengths(low: Lowering, thing: Abstract, node: Any) -> list[Abstract]:
    if isinstance(thing, Struct) and thing.kind != "list":
        return [c for item in thing.items for c in _lengths(low, item, node)]
    return [iterable(low, thing, node).count]


def _demand_equal(low: Lowering, counts: list[tuple[str, Abstract]], title: str) -> None:
    first_name, first = counts[0]
    for name, count in counts[1:]:
        text = f"{title}: mapped arguments '{first_name}' and '{name}' have different lengths"
        if isinstance(first, Const) and isinstance(count, Const):
            if first.value != count.value:
                raise BatchError.of_lengths([(first_name, first.value), (name, count.value)])
            continue
        guard(low, low.b.emit("eq", low.value(first), low.value(count)), (ValueError, (text,)))


def _split(low: Lowering, parts: list[Abstract], node: Any) -> Iterable:
    """The mapped arguments as one thing to run over, whose item is the tuple of one example's arguments."""
    return make_zip(low, [_sliced(low, p, node) for p in parts], node)


def _sliced(low: Lowering, thing: Abstract, node: Any) -> Abstract:
    if isinstance(thing, Struct) and thing.kind != "list":
        inner = make_zip(low, [_sliced(low, i, node) for i in thing.items], node)
        rebuild = inner.rebuild
        assert rebuild is not None

        def again(values: list[Value]) -> Abstract:
            items = rebuild(values)
            assert isinstance(items, Struct)
            return Struct(thing.kind, thing.cls, thing.names, items.items)

        shape = (thing.kind, thing.cls, thing.names, inner.shape)
        return Iterable(inner.count, inner.at, inner.sources, again, shape=shape)
    return iterable(low, thing, node)


def stacked(low: Lowering, run: Run, node: Any) -> Abstract:
    """A list of results as a vmapped call gives it: one example's structure, its leaves stacked."""
    def stack(item: Abstract, fields: tuple[int, ...]) -> Abstract:
        if isinstance(item, Struct):
            items, at = [], 0
            for part in item.items:
                size = len(list(part.leaves()))
                items.append(stack(part, fields[at : at + size]))
                at += size
            return Struct(item.kind, item.cls, item.names, tuple(items))
        if isinstance(item, Leaf):
            return Leaf(as_column(low, Run(run.value, item, fields), node))
        if isinstance(item, Const) and item.value is None:
            return item
        text = f"a vmapped function that returns {describe(item)} cannot be called here"
        raise low.error(UnsupportedFunction, text, node)

    return stack(run.item, run.fields)
