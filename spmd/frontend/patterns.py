"""`match` as tests and bindings.

    match shape:                              #m = shape
        case Circle(r) if r > 0: A      ->    if isinstance(#m, Circle) and #m.r > 0: r = #m.r; A
        case [x, 0] | None: B                 elif ...: B

A pattern becomes a test of paths from the subject (`#m.left.value`, `#m[0]`), which reads what Python's matching reads,
and names bound to paths. A guard is evaluated in the test, its names replaced by their paths; Python binds them before
the guard, so they are noted (`binds_before`), and the lowering refuses what would read them where the guard has failed.
The invariant: a case is taken, and its names are bound, as Python would.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import gast

from spmd.errors import UnsupportedSyntax
from spmd.spans import Span

BUILTIN = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)
"""Classes whose one positional pattern is the subject itself."""


class Matches:
    """Rewrites the `match` statements of one function; `function` is where names of classes are looked up."""

    def __init__(self, function: Any, span: Callable[[Any], Span]) -> None:
        self.function = function
        self.span = span
        self.count = 0

    def rewritten(self, node: Any) -> list[Any]:
        """The statements that a `match` stands for."""
        self.count += 1
        subject = f"#m{self.count}"
        bound = _at(gast.Assign(targets=[_name(subject, gast.Store())], value=node.subject, type_comment=None), node)
        chain: list[Any] = []
        for case in reversed(node.cases):
            chain = self.case(case, _name(subject, gast.Load()), chain)
        return [bound, *chain]

    def case(self, case: Any, subject: Any, orelse: list[Any]) -> list[Any]:
        """One case, with what follows where it is not taken."""
        names: dict[str, Any] = {}
        test = self.test(case.pattern, subject, names)
        if case.guard is not None:
            test = _both(test, _Paths(names).visit(copy.deepcopy(case.guard)))
        body = [self.bind(name, path, case) for name, path in names.items()] + case.body
        if test is None:
            return body
        made = _at(gast.If(test=test, body=body, orelse=orelse), case.pattern)
        made.binds_before = frozenset(names) if case.guard is not None else frozenset()
        return [made]

    def bind(self, name: str, path: Any, case: Any) -> Any:
        target = _name(name, gast.Store())
        assign = gast.Assign(targets=[target], value=copy.deepcopy(path), type_comment=None)
        return _at(assign, case.pattern)

    def refusal(self, node: Any, text: str, hint: str = "write it with 'if' and 'elif'.") -> UnsupportedSyntax:
        return UnsupportedSyntax(text, span=self.span(node), hint=hint)

    # -------------------------------------------------------------------------------------------- patterns
    def test(self, pattern: Any, path: Any, names: dict[str, Any]) -> Any:
        """Whether `path` fits the pattern; None where anything does. What it binds is added to `names`."""
        rule: Callable[..., Any] = getattr(self, type(pattern).__name__.replace("Match", "_").lower())
        made = rule(pattern, path, names)
        return None if made is None else _at(made, pattern)

    def _value(self, pattern: Any, path: Any, names: dict[str, Any]) -> Any:
        return gast.Compare(left=_copied(path, pattern), ops=[gast.Eq()], comparators=[pattern.value])

    def _singleton(self, pattern: Any, path: Any, names: dict[str, Any]) -> Any:
        value = gast.Constant(value=pattern.value, kind=None)
        return gast.Compare(left=_copied(path, pattern), ops=[gast.Is()], comparators=[value])

    def _as(self, pattern: Any, path: Any, names: dict[str, Any]) -> Any:
        test = None if pattern.pattern is None else self.test(pattern.pattern, path, names)
        if pattern.name is not None:
            names[_text(pattern.name)] = path
        return test

    def _or(self, pattern: Any, path: Any, names: dict[str, Any]) -> Any:
        tests = []
        for one in pattern.patterns:
            if _captures(one):
                raise self.refusal(one, "a pattern with '|' that binds names cannot run in lanes")
            tests.append(self.test(one, path, names))
        if None in tests:
            return None
        return gast.BoolOp(op=gast.Or(), values=tests)

    def _sequence(self, pattern: Any, path: Any, names: dict[str, Any]) -> Any:
        star = next((k for k, p in enumerate(pattern.patterns) if isinstance(p, gast.MatchStar)), None)
        count = len(pattern.patterns) - (star is not None)
        kinds = gast.Tuple(elts=[gast.Constant(value=c, kind=None) for c in (tuple, list)], ctx=gast.Load())
        test: Any = _call(isinstance, path, kinds)
        order = gast.Eq() if star is None else gast.GtE()
        test = _both(test, gast.Compare(left=_call(len, path), ops=[order], comparators=[_constant(count)]))
        for k, part in enumerate(pattern.patterns):
            if star is not None and k == star:
                self._star(part, path, k, count - k, names)
                continue
            place = k if star is None or k < star else k - len(pattern.patterns)
            test = _both(test, self.test(part, _item(path, _constant(place)), names))
        return test

    def _star(self, part: Any, path: Any, first: int, last: int, names: dict[str, Any]) -> None:
        if part.name is not None:
            end = _constant(-last) if last else None
            cut = gast.Slice(lower=_constant(first), upper=end, step=None)
            names[_text(part.name)] = _call(list, _item(path, cut))

    def _mapping(self, pattern: Any, path: Any, names: dict[str, Any]) -> Any:
        if pattern.rest is not None:
            raise self.refusal(pattern, "'**' in a pattern cannot run in lanes")
        test: Any = _call(isinstance, path, gast.Constant(value=dict, kind=None))
        for key, part in zip(pattern.keys, pattern.patterns):
            found = gast.Compare(left=copy.deepcopy(key), ops=[gast.In()], comparators=[copy.deepcopy(path)])
            test = _both(_both(test, found), self.test(part, _item(path, copy.deepcopy(key)), names))
        return test

    def _class(self, pattern: Any, path: Any, names: dict[str, Any]) -> Any:
        test: Any = _call(isinstance, path, pattern.cls)
        cls = self.known(pattern.cls)
        if len(pattern.patterns) == 1 and cls in BUILTIN:
            return _both(test, self.test(pattern.patterns[0], path, names))
        fields = getattr(cls, "__match_args__", ()) if pattern.patterns else ()
        if len(pattern.patterns) > len(fields):
            raise self.refusal(pattern, f"{getattr(cls, '__name__', 'this')}() accepts {len(fields)} positional "
                               f"sub-patterns ({len(pattern.patterns)} given)")
        pairs = [*zip(fields, pattern.patterns), *zip(pattern.kwd_attrs, pattern.kwd_patterns)]
        for name, part in pairs:
            attribute = gast.Attribute(value=copy.deepcopy(path), attr=name, ctx=gast.Load())
            test = _both(test, self.test(part, attribute, names))
        return test

    def known(self, node: Any) -> Any:
        """The class that a pattern names."""
        if isinstance(node, gast.Attribute):
            return getattr(self.known(node.value), node.attr, None)
        function = self.function
        free = function.__code__.co_freevars
        if node.id in free and function.__closure__ is not None:
            return function.__closure__[free.index(node.id)].cell_contents
        builtins = function.__builtins__ if hasattr(function, "__builtins__") else {}
        return function.__globals__.get(node.id, builtins.get(node.id))


class _Paths(gast.NodeTransformer):
    """Puts paths in the places of names."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names

    def visit_Name(self, node: Any) -> Any:  # noqa: N802
        if node.id in self.names and isinstance(node.ctx, gast.Load):
            return _copied(self.names[node.id], node)
        return node


def _captures(pattern: Any) -> set[str]:
    """Names that a pattern binds."""
    return {
        _text(n.name) for n in gast.walk(pattern)
        if isinstance(n, (gast.MatchAs, gast.MatchStar)) and n.name is not None
    }


def _text(name: Any) -> str:
    return name.id if isinstance(name, gast.Name) else str(name)


def _name(name: str, ctx: Any) -> Any:
    return gast.Name(id=name, ctx=ctx, annotation=None, type_comment=None)


def _constant(value: Any) -> Any:
    return gast.Constant(value=value, kind=None)


def _call(function: Any, *args: Any) -> Any:
    return gast.Call(func=_constant(function), args=[copy.deepcopy(a) for a in args], keywords=[])


def _item(path: Any, index: Any) -> Any:
    return gast.Subscript(value=copy.deepcopy(path), slice=index, ctx=gast.Load())


def _both(one: Any, other: Any) -> Any:
    """`one and other`; None stands for what always holds."""
    if one is None or other is None:
        return other if one is None else one
    values = [*(one.values if _is_and(one) else [one]), *(other.values if _is_and(other) else [other])]
    return gast.BoolOp(op=gast.And(), values=values)


def _is_and(node: Any) -> bool:
    return isinstance(node, gast.BoolOp) and isinstance(node.op, gast.And)


def _copied(path: Any, place: Any) -> Any:
    """A path of its own, that stands at `place`."""
    new = copy.deepcopy(path)
    for part in gast.walk(new):
        gast.copy_location(part, place)
    return new


def _at(node: Any, place: Any) -> Any:
    """The node, with the place of another where it and its parts have none."""
    gast.copy_location(node, place)
    return gast.fix_missing_locations(node)
