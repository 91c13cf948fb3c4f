"""Writes random expressions over the names of a scope, typed so that they run as plain Python.

The invariant: an expression raises nothing, names only what the scope holds, and is of bounded size. `pick(n)` gives
0..n-1 and makes all choices; 0 is the simplest.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

Pick = Callable[[int], int]
Scope = dict[str, list[str]]
KINDS = ("float", "int", "vec", "seq", "mat", "tree", "wide")
DEEPEST = 2


def scope_of(**names: list[str]) -> Scope:
    """A scope with these names; other kinds have none."""
    return {kind: list(names.get(kind, [])) for kind in KINDS}


def copied(scope: Scope) -> Scope:
    return {kind: list(names) for kind, names in scope.items()}


class ExpressionWriter:
    """Expressions of the kinds float, int, vec (three floats), seq (any number of floats), and tests."""

    def __init__(self, pick: Pick) -> None:
        self.pick = pick
        self.helpers: list[str] = []
        self.depth = 0

    def value(self, scope: Scope, kind: str) -> str:
        """An expression of a kind."""
        return {"float": self.float, "int": self.int, "vec": self.vec, "seq": self.seq}[kind](scope)

    def _one_of(self, forms: list[Callable[[], str]]) -> str:
        """One of the forms, whose parts are one level deeper."""
        self.depth += 1
        try:
            return forms[self.pick(len(forms))]()
        finally:
            self.depth -= 1

    def _atom(self, scope: Scope, kind: str, constants: tuple[str, ...]) -> str:
        """A name, the newest first, or a constant."""
        names = scope[kind]
        at = self.pick(len(names) + 1)
        return names[len(names) - 1 - at] if at < len(names) else constants[self.pick(len(constants))]

    def float(self, scope: Scope) -> str:
        """An expression whose value is a float."""
        atom = self._atom(scope, "float", ("0.5", "-1.25", "GAIN"))
        if self.depth >= DEEPEST:
            return atom
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
            name = scope["seq"][-1]
            forms += [
                lambda: f"np.sum({self.seq(scope)} * {atom})",
                lambda: f"(np.max({name}) if len({name}) > 0 else {atom})",
                lambda: f"({name}[0] * {name}[-1] if len({name}) > 1 else {atom})",
            ]
        forms += [partial(self._called, helper, scope) for helper in self.helpers if helper in CALLS]
        return self._one_of(forms)

    def _called(self, helper: str, scope: Scope) -> str:
        """A call of a helper that gives one float; what the scope lacks for it makes it a plain value."""
        needed, text = CALLS[helper]
        if needed and not scope[needed]:
            return self._atom(scope, "float", ("0.5", "GAIN"))
        argument = self.vec(scope) if helper == "stacked" else self.float(scope)
        return text.format(argument, self.float(scope), self.int(scope))

    def int(self, scope: Scope) -> str:
        """An expression whose value is a small int."""
        atom = self._atom(scope, "int", ("0", "1", "2", "3"))
        forms = [atom, f"({atom} + {1 + self.pick(3)})", f"({atom} * 2 % 5)", f"({atom} // 2)", f"(1 - {atom})"]
        if scope["seq"]:
            forms.append(f"len({scope['seq'][-1]})")
        return forms[self.pick(len(forms))]

    def vec(self, scope: Scope) -> str:
        """An expression whose value is an array of three floats."""
        atom = self._atom(scope, "vec", ("np.zeros(3)", "np.ones(3)", "MIX[1]"))
        if self.depth >= DEEPEST or not scope["vec"]:
            return atom
        return self._one_of(
            [
                lambda: atom,
                lambda: f"({atom} + {self.vec(scope)})",
                lambda: f"({atom} * {self.float(scope)})",
                lambda: f"np.tanh({self._atom(scope, 'mat', ('MIX',))} @ {self.vec(scope)})",
                lambda: f"np.where({atom} > 0.1, {self.vec(scope)}, {atom})",
                lambda: f"np.maximum({atom}, {self.vec(scope)})",
                lambda: f"np.concatenate([{atom}[1:], {self.vec(scope)}[:1]])",
                lambda: f"{self.vec(scope)}[::-1]",
            ]
        )

    def seq(self, scope: Scope) -> str:
        """An expression whose value is an array of any number of floats."""
        atom = scope["seq"][len(scope["seq"]) - 1 - self.pick(len(scope["seq"]))]
        if self.depth >= DEEPEST:
            return atom
        return self._one_of(
            [
                lambda: atom,
                lambda: f"np.tanh({self.seq(scope)})",
                lambda: f"({atom} * {self.float(scope)})",
                lambda: f"({atom} + {atom})",
                lambda: f"{self.seq(scope)}[{self.pick(2)}:]",
                lambda: f"{self.seq(scope)}[:{self.int(scope)}]",
                lambda: f"{self.seq(scope)}[::-1]",
                lambda: f"np.maximum({atom}, {self.float(scope)})",
                lambda: f"np.concatenate([{atom}, {self.seq(scope)}])[:4]",
            ]
        )

    def condition(self, scope: Scope) -> str:
        """A test."""
        forms: list[Callable[[], str]] = [
            lambda: f"{self.float(scope)} > {self._atom(scope, 'float', ('0.1', '-0.4'))}",
            lambda: f"{self.float(scope)} < 0.3",
            lambda: f"-0.5 < {self.float(scope)} <= 0.8",
        ]
        if scope["int"]:
            forms += [lambda: f"{self.int(scope)} == {self.pick(3)}", lambda: f"{self.int(scope)} > {self.pick(4)}"]
        if self.depth < DEEPEST:
            forms += [
                lambda: f"not ({self.condition(scope)})",
                lambda: f"({self.condition(scope)} or {self.condition(scope)})",
                lambda: f"({self.condition(scope)} and {self.condition(scope)})",
            ]
        return self._one_of(forms)


# Helper -> (kind that the scope must hold, call with a float or vec, a float, an int).
CALLS = {
    "plain": ("", "plain({0}, {1})"),
    "recursive": ("tree", "recursive({0}, ({2}) % 4)"),
    "ping": ("tree", "ping({0}, ({2}) % 5)"),
    "walk": ("tree", "walk(tree, {0})"),
    "tested": ("tree", "tested(tree, {0})"),
    "fold": ("wide", "fold(wide, {0})"),
    "stacked": ("wide", "np.sum(stacked(wide, {0}))"),
}
