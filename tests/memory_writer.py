"""Writes random single-example programs that write: into arrays, views, lists, records and dictionaries, through names
that are shared and through calls, as source text.

The invariant: every program ends, reads only names that are bound on every path, and raises only where it was asked to.
No vector is assigned to an overlapping one of another stride: NumPy's copy then reads what it has written already.
All choices come from `pick(n) -> 0..n-1`, as in `program_writer`.
"""

from __future__ import annotations

from collections.abc import Callable

from memory_expressions import MemoryExpressions, Names, Pick

HEAD = '''from dataclasses import dataclass

import numpy as np


@dataclass
class Record:
    a: np.ndarray
    k: float

    def bump(self, f):
        self.k += f
        self.a[0] = self.k
        return f

    def renew(self, v):
        self.a = v * 0.5
        return self


def same(a):
    return a


def tail(a):
    return a[1:]


def either(a, b, f):
    if f > 0.2:
        return a
    return b


def put(a, i, f):
    a[i] = f
    return f * 0.5


def blend(a, b, f):
    a += b * f
    b[0] = a[1]
    return a


def halves(a, k):
    if k <= 0 or len(a) < 2:
        return a[0]
    a[0] = a[-1] * 0.5
    return halves(a[1:], k - 1) + a[0]


def grows(xs, k, f):
    if k <= 0 or len(xs) > 12:
        return f
    xs.append(float(f * k))
    g = grows(xs, k - 1, f * 0.5)
    xs.append(float(g))
    return xs[0] * 0.5


def drains(xs, f):
    total = f
    while len(xs) > 2:
        total += xs.pop() * 0.25
    return total


'''


class MemoryWriter(MemoryExpressions):
    """Writes one module: some helpers and `main(x, n, v, m, xs)`: a float, an int from -1 to 4, three floats, three by
    three floats, a list of any number of floats."""

    def __init__(self, pick: Pick, raising: bool = False) -> None:
        super().__init__(pick, raising)
        self.lines: list[str] = []
        self.indent = 1
        self.fresh = 0
        self.loops: list[str] = []

    # ------------------------------------------------------------------------------------------ the module
    def module(self) -> str:
        """The text of a module."""
        self.lines = [HEAD.rstrip()]
        for k in range(self.pick(3)):
            self._helper(f"helper{k}")
        names: Names = {"float": ["x"], "int": ["n"], "vec": ["v"], "mat": ["m"], "list": ["xs"], "rec": [], "dict": [],
                        "table": []}
        self._line("\n\ndef main(x, n, v, m, xs):", 0)
        self._body(names, 4 + self.pick(6), self._results)
        return "\n".join(self.lines) + "\n"

    def _helper(self, name: str) -> None:
        """A function that may write to what it is given, and gives a float."""
        kinds = ("vec", "mat", "list", "rec")
        kind = kinds[self.pick(4)]
        names: Names = {k: [] for k in ("float", "int", "vec", "mat", "list", "rec", "dict", "table")}
        names[kind].append("p")
        names["vec"].append("q")
        names["float"].append("f")
        self._line(f"\n\ndef {name}(p, q, f):", 0)
        self._body(names, 1 + self.pick(4), lambda inner: self.float(inner))
        self.own.append(f"{name}:{kind}")

    def _body(self, names: Names, count: int, results: Callable[[Names], str]) -> None:
        self.indent, self.results = 1, results
        for _ in range(count):
            self._statement(names)
        self._line("return " + results(names))

    def _results(self, names: Names) -> str:
        parts = [self.float(names), self._name(names, "vec"), self._name(names, "vec"), self._name(names, "mat")]
        return ", ".join([*parts, self._name(names, "list") + " + [0.25]"])

    def _line(self, text: str, indent: int | None = None) -> None:
        self.lines.append("    " * (self.indent if indent is None else indent) + text)

    def _new(self, names: Names, kind: str) -> str:
        """A name to bind: a new one, or one that is known."""
        if names[kind] and self.pick(3) == 2:
            return self._name(names, kind)
        self.fresh += 1
        return f"{kind[0]}{self.fresh}"

    # ------------------------------------------------------------------------------------------ statements
    def _statement(self, names: Names) -> None:
        forms: list[Callable[[Names], None]] = [
            self._binds, self._binds, self._writes_vec, self._writes_vec, self._writes_mat, self._writes_list,
            self._writes_list, self._writes_record, self._writes_dict, self._writes_table, self._writes_vec,
        ]
        if self.indent < 3:
            forms += [self._if, self._for, self._while, self._over, self._if, self._jumps]
        forms[self.pick(len(forms))](names)

    def _binds(self, names: Names) -> None:
        kind = ("vec", "float", "mat", "list", "vec", "rec", "dict", "table")[self.pick(8)]
        if kind in ("rec", "dict", "table") and names[kind] and self.pick(2):
            text = self._name(names, kind)
        else:
            text = {
                "vec": lambda: self.alias(names), "float": lambda: self.float(names), "mat": lambda: self._mat(names),
                "list": lambda: self._list(names), "rec": lambda: f"Record({self.alias(names)}, {self.float(names)})",
                "dict": lambda: f"{{'v': {self.alias(names)}, 'f': {self.float(names)}}}",
                "table": lambda: "{}",
            }[kind]()
        target = self._new(names, kind)
        if target in self.running:
            return
        self._line(f"{target} = {text}")
        if target not in names[kind]:
            names[kind].append(target)

    def _mat(self, names: Names) -> str:
        if not names["mat"]:
            return "np.zeros((3, 3))"
        name = self._name(names, "mat")
        forms = (f"{name}.copy()", "np.zeros((3, 3))", name, f"{name}.T", f"{name} * 0.5", f"{name}[::-1]")
        return forms[self.pick(len(forms))]

    def _list(self, names: Names) -> str:
        if not names["list"]:
            return f"[{self.item(names)}]"
        name = self._name(names, "list")
        forms = [
            lambda: f"[{self.item(names)}, {self.item(names)}]", lambda: "[]", lambda: name, lambda: f"{name}[:]",
            lambda: f"{name} + [{self.item(names)}]", lambda: f"{name}[1:]", lambda: f"list({name})",
            lambda: f"[e * {self._name(names, 'float') if names['float'] else 0.5} for e in {name}]",
            lambda: f"[e for e in {name} if e > {self._name(names, 'float') if names['float'] else 0}]",
        ]
        return forms[self.pick(len(forms))]()

    def _writes_vec(self, names: Names) -> None:
        if not names["vec"]:
            return self._binds(names)
        a = self._name(names, "vec")
        forms = [
            lambda: f"{a}[{self.index(names)}] = {self.float(names)}",
            lambda: f"{a}[{self.index(names)}] {self._op()} {self.float(names)}",
            lambda: f"{a} {self._op()} {self.vec(names)}",
            lambda: f"{a} {self._op()} {self.float(names)}",
            lambda: f"{a}[:] = {self.alias(names)}.copy()",
            lambda: f"{a}[1:] = {a}[:2]",
            lambda: f"{a}[1:] = {self._name(names, 'vec')}[:2].copy()",
            lambda: f"{a}[:-1] += {self._name(names, 'vec')}[1:]",
            lambda: f"{a}[::-1] = {self._name(names, 'vec')}.copy()",
            lambda: f"{a}[{a} > {self.float(names)}] {('=', '+=')[self.pick(2)]} {self.float(names)}",
            lambda: f"{a}[np.array([0, 2])] {('=', '+=')[self.pick(2)]} {self.float(names)}",
            lambda: f"{a}[0], {a}[{self.index(names)}] = {self.float(names)}, {a}[0]",
            lambda: f"{a}, {self._name(names, 'vec')} = {self._name(names, 'vec')}, {a}",
            lambda: f"{a}[{self.index(names)}] = {self._name(names, 'vec')}[1] = {self.float(names)}",
        ]
        self._line(forms[self.pick(len(forms))]())
        return None

    def _op(self) -> str:
        return ("+=", "-=", "*=")[self.pick(3)]

    def _writes_mat(self, names: Names) -> None:
        if not names["mat"]:
            return self._binds(names)
        m, i = self._name(names, "mat"), self.index(names)
        forms = [
            lambda: f"{m}[{i}] = {self.alias(names)}.copy()",
            lambda: f"{m}[:, {i}] {self._op()} {self.vec(names)}",
            lambda: f"{m}[{i}, {self.index(names)}] = {self.float(names)}",
            lambda: f"{m}[1:] *= {self.float(names)}",
            lambda: f"{m}[{i}], {m}[1] = {m}[1], {m}[{i}]",
            lambda: f"{m}[1:, 1:] += {m}[:2, :2]",
            lambda: f"{m} {self._op()} {self._name(names, 'mat')}.T",
            lambda: f"{m}[{m} > {self.float(names)}] = {self.float(names)}",
        ]
        self._line(forms[self.pick(len(forms))]())
        return None

    def _writes_list(self, names: Names) -> None:
        if not names["list"]:
            return self._binds(names)
        xs, ys = self._name(names, "list"), self._name(names, "list")
        item = f"{xs}[{self.int(names)} % len({xs})]"
        forms = [
            (xs, lambda: f"{item} = {self.item(names)}"),
            (xs, lambda: f"{item} += {self.item(names)}"),
            (xs, lambda: f"{xs}[0], {xs}[-1] = {xs}[-1], {self.item(names)}"),
            (xs, lambda: f"{xs}.reverse()"),
        ]
        if not self.running:
            forms += [
                (xs, lambda: f"{self._float_name(names)} = {xs}.pop()"),
                (xs, lambda: f"{self._float_name(names)} = {xs}.pop(0) - {self.float(names)}"),
                ("", lambda: f"{xs}.append({self.item(names)})"),
                ("", lambda: f"{xs}.append({self.item(names)})"),
                ("", lambda: f"{xs}.insert({self.int(names)}, {self.item(names)})"),
                ("", lambda: f"{xs}.extend([{self.item(names)}, {self.item(names)}])"),
                ("", lambda: f"{xs} += {ys}[:2]"),
                ("", lambda: f"{xs}.clear()"),
                ("", lambda: f"{xs}, {ys} = {ys}, {xs}"),
            ]
        guard, text = forms[self.pick(len(forms))]
        line = text()
        if guard and not (self.raising and self.pick(3) == 2):
            self._line(f"if {guard}:")
            self._line("    " + line)
        else:
            self._line(line)
        return None

    def _float_name(self, names: Names) -> str:
        known = [n for n in names["float"] if n not in self.running]
        if not known:
            return "unused"
        return known[self.pick(len(known))]

    def _writes_record(self, names: Names) -> None:
        if not names["rec"]:
            self._line(f"r{self.fresh}_ = Record({self.alias(names)}, {self.float(names)})")
            names["rec"].append(f"r{self.fresh}_")
        r = self._name(names, "rec")
        forms = [
            lambda: f"{r}.k = {self.float(names)}",
            lambda: f"{r}.k {self._op()} {self.float(names)}",
            lambda: f"{r}.a = {self.alias(names)}",
            lambda: f"{r}.a[{self.index(names)}] = {self.float(names)}",
            lambda: f"{r}.a {self._op()} {self.vec(names)}",
            lambda: f"{r}.bump({self.float(names)})",
            lambda: f"{r}.renew({self.vec(names)}).k = {self.float(names)}",
        ]
        self._line(forms[self.pick(len(forms))]())

    def _writes_dict(self, names: Names) -> None:
        if not names["dict"]:
            self._line(f"d{self.fresh}_ = {{'v': {self.alias(names)}, 'f': {self.float(names)}}}")
            names["dict"].append(f"d{self.fresh}_")
        d = self._name(names, "dict")
        forms = [
            lambda: f"{d}['f'] = {self.float(names)}",
            lambda: f"{d}['f'] {self._op()} {self.float(names)}",
            lambda: f"{d}['v'] = {self.alias(names)}",
            lambda: f"{d}['v'][{self.index(names)}] = {self.float(names)}",
            lambda: f"{d}['v'] {self._op()} {self.vec(names)}",
        ]
        self._line(forms[self.pick(len(forms))]())

    def _writes_table(self, names: Names) -> None:
        if not names["table"]:
            self._line(f"t{self.fresh}_ = {{}}")
            names["table"].append(f"t{self.fresh}_")
        t, key = self._name(names, "table"), self.int(names)
        forms = [
            lambda: f"{t}[{key}] = {self.item(names)}",
            lambda: f"{t}[{key}] = {t}.get({key}, 0.5) + {self.item(names)}",
        ]
        if self.running and not self.raising:
            self._line(f"if {key} in {t}:")
            self._line(f"    {t}[{key}] += {self.item(names)}")
            return
        self._line(forms[self.pick(len(forms))]())

    # ------------------------------------------------------------------------------------------ control flow
    def _block(self, names: Names, loop: str = "") -> None:
        """Some statements; names that they bind are their own."""
        self.indent += 1
        inner = {kind: list(known) for kind, known in names.items()}
        if loop:
            self.loops.append(loop)
        start = len(self.lines)
        for _ in range(1 + self.pick(3)):
            self._statement(inner)
        if len(self.lines) == start:
            self._line("pass")
        if loop:
            self.loops.pop()
        self.indent -= 1

    def _if(self, names: Names) -> None:
        self._line(f"if {self.test(names)}:")
        self._block(names)
        if self.pick(2):
            self._line("else:")
            self._block(names)

    def _for(self, names: Names) -> None:
        self.fresh += 1
        i = f"i{self.fresh}"
        self._line(f"for {i} in range({('n', 'n + 1', '2', '3')[self.pick(4)] if 'n' in names['int'] else '2'}):")
        self._block({**names, "int": [*names["int"], i]}, "for")
        self._else(names)

    def _while(self, names: Names) -> None:
        self.fresh += 1
        i = f"i{self.fresh}"
        self._line(f"{i} = 0")
        self._line(f"while {i} < 3 and {self.test(names)}:")
        self._line(f"    {i} += 1")
        self._block({**names, "int": [*names["int"], i]}, "while")
        self._else(names)

    def _else(self, names: Names) -> None:
        if self.pick(5) == 4:
            self._line("else:")
            self._block(names)

    def _over(self, names: Names) -> None:
        """A loop over something that its body may write to."""
        kinds = [k for k in ("vec", "mat", "list", "list", "table") if names[k]]
        if not kinds or self.running:
            return self._for(names)
        kind = kinds[self.pick(len(kinds))]
        name = self._name(names, kind)
        self.fresh += 1
        e, i = f"e{self.fresh}", f"i{self.fresh}"
        inner = dict(names)
        own = "vec" if kind == "mat" else "int" if kind == "table" else "float"
        inner[own] = [*names[own], e]
        forms = [f"for {e} in {name}:"]
        if kind != "table":
            forms += [f"for {i}, {e} in enumerate({name}):", f"for {e} in reversed({name}):",
                      f"for {e}, {e}_ in zip({name}, range(3)):"]
        else:
            forms.append(f"for {i}, {e}_ in {name}.items():")
            inner = dict(names)
        text = forms[self.pick(len(forms))]
        if f" {i}, " in text:
            inner["int"] = [*inner["int"], i]
        self._line(text)
        self.running.append(e)
        self._block(inner, "for")
        self.running.pop()
        self._else(names)
        return None

    def _jumps(self, names: Names) -> None:
        forms = ["return"]
        if self.loops:
            forms += ["break", "continue"] * 2
        if self.raising:
            forms += ['raise ValueError("asked for")']
        kind = forms[self.pick(len(forms))]
        self._line(f"if {self.test(names)}:")
        self._line("    " + (f"return {self.results(names)}" if kind == "return" else kind))
