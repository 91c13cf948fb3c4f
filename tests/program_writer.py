"""Writes random single-example programs as source text, typed so that they run as plain Python.

The invariant: every program ends (loops and recursion have bounded trips), reads only names that are bound on every
path, and raises only where it was asked to. Choices come from one function, `pick(n) -> 0..n-1`, so that hypothesis can
shrink a program and a plain generator can make thousands.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

Pick = Callable[[int], int]
Scope = dict[str, list[str]]

HEAD = '''import math

import numpy as np

GAIN = 0.75
MIX = np.array([[0.4, -0.3, 0.2], [0.1, 0.5, -0.6], [-0.2, 0.3, 0.7]])


class Node:
    def __init__(self, value, left, right):
        self.value = value
        self.left = left
        self.right = right
'''


class Writer:
    """Writes one module: some helper functions and `main(w, x, n, v, xs, tree)`."""

    def __init__(self, pick: Pick, raising: bool = False) -> None:
        self.pick = pick
        self.raising = raising
        self.lines: list[str] = []
        self.fresh = 0
        self.helpers: list[str] = []
        self.depth = 0
        self.loop = 0
        self.returns: Callable[[Scope], str] | None = None

    # ------------------------------------------------------------------------------------------ the module
    def module(self) -> str:
        """The text of a module."""
        self.lines = [HEAD]
        for kind in ("plain", "pair", "recursive", "walk"):
            if self.pick(3):
                getattr(self, f"_{kind}_helper")()
                self.helpers.append(kind)
        scope: Scope = {"float": ["x"], "int": ["n"], "vec": ["v"], "seq": ["xs"]}
        scope.update(mat=["w", "MIX"], tree=["tree"])
        self.returns = lambda s: f"return {self.float(s)}, {self.int(s)}, {self.vec(s)}"
        self._function("main(w, x, n, v, xs, tree)", scope, 3 + self.pick(4))
        return "\n".join(self.lines) + "\n"

    def _function(self, head: str, scope: Scope, statements: int, opening: tuple[str, ...] = ()) -> None:
        self.lines += ["", "", f"def {head}:", *(f"    {line}" for line in opening)]
        self.block(scope, 1, statements)
        assert self.returns is not None
        self.lines.append("    " + self.returns(scope))

    def _plain_helper(self) -> None:
        scope: Scope = {"float": ["a", "b"], "int": [], "vec": [], "seq": [], "mat": [], "tree": []}
        self.returns = lambda s: f"return {self.float(s)}"
        self._function("plain(a, b)", scope, 1 + self.pick(3))

    def _pair_helper(self) -> None:
        scope: Scope = {"float": ["a"], "int": ["k"], "vec": [], "seq": [], "mat": [], "tree": []}
        self.returns = lambda s: f"return {self.float(s)}, {self.float(s)}"
        self._function("pair(a, k)", scope, 1 + self.pick(3))

    def _recursive_helper(self) -> None:
        scope: Scope = {"float": ["a"], "int": ["k"], "vec": [], "seq": [], "mat": [], "tree": []}
        opening = ["if k <= 0:", f"    return {self.float(scope)}", f"s = recursive({self.float(scope)}, k - 1)"]
        scope["float"].append("s")
        if self.pick(2):
            opening.append(f"t = recursive({self.float(scope)}, k - 2)")
            scope["float"].append("t")
        self.returns = lambda s: f"return 0.5 * {self.float(s)} + 0.25 * s"
        self._function("recursive(a, k)", scope, self.pick(3), tuple(opening))

    def _walk_helper(self) -> None:
        scope: Scope = {"float": ["a", "node.value"], "int": [], "vec": [], "seq": [], "mat": [], "tree": []}
        bare: Scope = {**scope, "float": ["a"]}
        opening = ["if node is None:", f"    return {self.float(bare)}"]
        opening.append(f"s = walk(node.left, {self.float(scope)})")
        if self.pick(3) == 0:
            scope["float"].append("s")
        opening.append(f"t = walk(node.right, {self.float(scope)})")
        scope["float"] += [name for name in ("s", "t") if name not in scope["float"]]
        self.returns = lambda s: f"return {self.float(s)} * 0.5 + s * 0.3 - t * 0.2"
        self._function("walk(node, a)", scope, self.pick(3), tuple(opening))

    # ------------------------------------------------------------------------------------------- statements
    def block(self, scope: Scope, level: int, statements: int) -> None:
        """Statements at an indentation; `scope` gains the names that they bind."""
        for _ in range(max(1, statements)):
            self.statement(scope, level)

    def emit(self, level: int, text: str) -> None:
        self.lines.append("    " * level + text)

    def statement(self, scope: Scope, level: int) -> None:
        simple = [self._assign, self._assign, self._rebind, self._augment, self._swap, self._unpack]
        nested = [self._if, self._if, self._for, self._while, self._for_each]
        leaving = [self._leave_loop] if self.loop else []
        if level >= 4:
            nested = []
        raising = [self._raise] if self.raising and level > 1 else []
        choices = [*simple, *nested, *leaving, *raising, self._return_early]
        choices[self.pick(len(choices))](scope, level)

    def _name(self, scope: Scope, kind: str) -> str:
        self.fresh += 1
        name = f"{kind[0]}{self.fresh}"
        scope[kind].append(name)
        return name

    def _kind(self, scope: Scope) -> str:
        kinds = ["float", "float", "int"] + (["vec"] if scope["vec"] else [])
        return kinds[self.pick(len(kinds))]

    def _value(self, scope: Scope, kind: str) -> str:
        return {"float": self.float, "int": self.int, "vec": self.vec}[kind](scope)

    def _assign(self, scope: Scope, level: int) -> None:
        kind = self._kind(scope)
        value = self._value(scope, kind)
        self.emit(level, f"{self._name(scope, kind)} = {value}")

    def _rebind(self, scope: Scope, level: int) -> None:
        kind = self._kind(scope)
        names = [name for name in scope[kind] if "." not in name]
        if names:
            self.emit(level, f"{names[self.pick(len(names))]} = {self._value(scope, kind)}")
        else:
            self._assign(scope, level)

    def _augment(self, scope: Scope, level: int) -> None:
        names = [name for name in scope["float"] if "." not in name]
        self.emit(level, f"{names[self.pick(len(names))]} {('+=', '-=', '*=')[self.pick(3)]} {self.float(scope)}")

    def _swap(self, scope: Scope, level: int) -> None:
        names = [name for name in scope["float"] if "." not in name]
        if len(names) < 2:
            return self._assign(scope, level)
        a, b = names[self.pick(len(names))], names[self.pick(len(names))]
        if a == b:
            self.emit(level, f"{a} = {self.float(scope)}")
        else:
            self.emit(level, f"{a}, {b} = {b}, {a if self.pick(2) else self.float(scope)}")

    def _unpack(self, scope: Scope, level: int) -> None:
        if "pair" not in self.helpers:
            return self._assign(scope, level)
        value = f"pair({self.float(scope)}, {self.int(scope)})"
        self.emit(level, f"{self._name(scope, 'float')}, {self._name(scope, 'float')} = {value}")

    def _if(self, scope: Scope, level: int) -> None:
        arms = [_copy(scope)]
        self.emit(level, f"if {self.condition(scope)}:")
        self.block(arms[0], level + 1, 1 + self.pick(2))
        if self.pick(4) == 0:
            arms.append(_copy(scope))
            self.emit(level, f"elif {self.condition(scope)}:")
            self.block(arms[-1], level + 1, 1)
        if self.pick(2):
            arms.append(_copy(scope))
            self.emit(level, "else:")
            self.block(arms[-1], level + 1, 1 + self.pick(2))

    def _body(self, scope: Scope, level: int, opening: tuple[str, ...] = ()) -> None:
        inner = _copy(scope)
        for line in opening:
            self.emit(level, line)
        self.loop += 1
        self.block(inner, level, 1 + self.pick(3))
        self.loop -= 1

    def _for(self, scope: Scope, level: int) -> None:
        self.fresh += 1
        index = f"i{self.fresh}"
        bound = f"({self.int(scope)}) % {2 + self.pick(3)}"
        forms = (f"range({bound})", f"range({bound}, -1, -1)", f"range(1, {bound} + 2)", f"range({1 + self.pick(3)})")
        self.emit(level, f"for {index} in {forms[self.pick(len(forms))]}:")
        inner = _copy(scope)
        inner["int"].append(index)
        self._body(inner, level + 1)

    def _while(self, scope: Scope, level: int) -> None:
        self.fresh += 1
        counter = f"c{self.fresh}"
        self.emit(level, f"{counter} = 0")
        self.emit(level, f"while {counter} < {1 + self.pick(4)} and {self.condition(scope)}:")
        self._body(scope, level + 1, (f"{counter} += 1",))

    def _for_each(self, scope: Scope, level: int) -> None:
        if not scope["seq"]:
            return self._for(scope, level)
        self.fresh += 1
        inner = _copy(scope)
        inner["float"].append(f"e{self.fresh}")
        self.emit(level, f"for e{self.fresh} in {scope['seq'][0]}:")
        self._body(inner, level + 1)

    def _leave_loop(self, scope: Scope, level: int) -> None:
        self.emit(level, f"if {self.condition(scope)}:")
        self.emit(level + 1, ("break", "continue")[self.pick(2)])

    def _return_early(self, scope: Scope, level: int) -> None:
        assert self.returns is not None
        self.emit(level, f"if {self.condition(scope)} and {self.condition(scope)}:")
        self.emit(level + 1, self.returns(scope))

    def _raise(self, scope: Scope, level: int) -> None:
        form = self.pick(3)
        if form == 1 and scope["int"]:
            value = f"{3 + self.pick(5)} // ({self.int(scope)})"
            self.emit(level, f"{self._name(scope, 'int')} = {value}")
        elif form == 2 and scope["seq"]:
            value = f"{scope['seq'][0]}[{self.int(scope)}]"
            self.emit(level, f"{self._name(scope, 'float')} = {value}")
        else:
            self.emit(level, f"if {self.condition(scope)} and {self.condition(scope)}:")
            self.emit(level + 1, "raise ValueError('met')")

    # ------------------------------------------------------------------------------------------ expressions
    def _atom(self, scope: Scope, kind: str, constants: tuple[str, ...]) -> str:
        names = scope[kind]
        at = self.pick(len(names) + 1)
        return names[len(names) - 1 - at] if at < len(names) else constants[self.pick(len(constants))]

    def float(self, scope: Scope) -> str:
        """An expression whose value is a float."""
        if self.depth >= 2:
            return self._atom(scope, "float", ("0.5", "-1.25", "GAIN"))
        self.depth += 1
        try:
            return self._float(scope)
        finally:
            self.depth -= 1

    def _float(self, scope: Scope) -> str:
        atom = self._atom(scope, "float", ("0.5", "-1.25", "GAIN"))
        forms: list[Callable[[], str]] = [
            lambda: atom,
            lambda: f"({atom} + {self.float(scope)})",
            lambda: f"({atom} - {self.float(scope)})",
            lambda: f"({atom} * {self.float(scope)})",
            lambda: f"{atom} / (1.0 + {atom} * {atom})",
            lambda: f"math.sin({self.float(scope)})",
            lambda: f"np.tanh({self.float(scope)})",
            lambda: f"({self.float(scope)} if {self.condition(scope)} else {atom})",
            lambda: f"{('min', 'max')[self.pick(2)]}({atom}, {self.float(scope)})",
            lambda: f"abs({self.float(scope)})",
        ]
        if scope["int"]:
            forms.append(lambda: f"0.25 * {self.int(scope)}")
        if scope["vec"]:
            forms += [
                lambda: f"{self._atom(scope, 'vec', ('MIX[0]',))}[({self.int(scope)}) % 3]",
                lambda: f"np.sum({self.vec(scope)})",
                lambda: f"({self.vec(scope)} @ {self.vec(scope)})",
            ]
        if scope["seq"]:
            forms.append(lambda: f"np.sum({scope['seq'][0]} * {atom})")
        if scope["tree"]:
            forms += [partial(self._called, helper, scope) for helper in self.helpers if helper != "pair"]
        return forms[self.pick(len(forms))]()

    def _called(self, helper: str, scope: Scope) -> str:
        """A call of a helper that gives one float."""
        first = self.float(scope)
        if helper == "plain":
            return f"plain({first}, {self.float(scope)})"
        return f"recursive({first}, ({self.int(scope)}) % 4)" if helper == "recursive" else f"walk(tree, {first})"

    def int(self, scope: Scope) -> str:
        """An expression whose value is a small int."""
        atom = self._atom(scope, "int", ("0", "1", "2", "3"))
        forms = [atom, f"({atom} + {1 + self.pick(3)})", f"({atom} * 2 % 5)", f"({atom} // 2)", f"(1 - {atom})"]
        if scope["seq"]:
            forms.append(f"len({scope['seq'][0]})")
        return forms[self.pick(len(forms))]

    def vec(self, scope: Scope) -> str:
        """An expression whose value is an array of three floats."""
        atom = self._atom(scope, "vec", ("np.zeros(3)", "np.ones(3)", "MIX[1]"))
        if self.depth >= 2 or not scope["vec"]:
            return atom
        self.depth += 1
        forms: list[Callable[[], str]] = [
            lambda: atom,
            lambda: f"({atom} + {self.vec(scope)})",
            lambda: f"({atom} * {self.float(scope)})",
            lambda: f"np.tanh({scope['mat'][self.pick(2)]} @ {self.vec(scope)})",
            lambda: f"np.where({atom} > 0.1, {self.vec(scope)}, {atom})",
            lambda: f"np.maximum({atom}, {self.vec(scope)})",
            lambda: f"np.concatenate([{atom}[1:], {self.vec(scope)}[:1]])",
            lambda: f"{self.vec(scope)}[::-1]",
        ]
        try:
            return forms[self.pick(len(forms))]()
        finally:
            self.depth -= 1

    def condition(self, scope: Scope) -> str:
        """A test."""
        forms: list[Callable[[], str]] = [
            lambda: f"{self.float(scope)} > {self._atom(scope, 'float', ('0.1', '-0.4'))}",
            lambda: f"{self.float(scope)} < 0.3",
            lambda: f"-0.5 < {self.float(scope)} <= 0.8",
        ]
        if scope["int"]:
            forms += [lambda: f"{self.int(scope)} == {self.pick(3)}", lambda: f"{self.int(scope)} > {self.pick(4)}"]
        if self.depth < 2:
            self.depth += 1
            forms += [
                lambda: f"not ({self.condition(scope)})",
                lambda: f"({self.condition(scope)} or {self.condition(scope)})",
                lambda: f"({self.condition(scope)} and {self.condition(scope)})",
            ]
            try:
                return forms[self.pick(len(forms))]()
            finally:
                self.depth -= 1
        return forms[self.pick(len(forms))]()


def _copy(scope: Scope) -> Scope:
    return {kind: list(names) for kind, names in scope.items()}
