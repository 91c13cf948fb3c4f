"""Writes random expressions that read and write: elements, views, shared names, calls that change what they are given.

The invariant: an expression raises only where it was asked to, names only what the scope holds, and is of bounded size.
"""

from __future__ import annotations

from collections.abc import Callable

Pick = Callable[[int], int]
Names = dict[str, list[str]]


class MemoryExpressions:
    """Floats, integers, indices, tests, and vectors of three floats: new ones, and ones that something else names."""

    def __init__(self, pick: Pick, raising: bool) -> None:
        self.pick = pick
        self.raising = raising
        self.running: list[str] = []
        self.own: list[str] = []
        self.depth = 0

    def float(self, names: Names) -> str:
        """A float."""
        if self.depth > 2:
            return self._name(names, "float") if names["float"] else "0.5"
        self.depth += 1
        forms: list[Callable[[], str]] = [
            lambda: ("0.5", "-0.75", "1.25")[self.pick(3)],
            lambda: f"({self.float(names)} + {self.float(names)})",
            lambda: f"({self.float(names)} * {self.float(names)})",
            lambda: f"np.tanh({self.float(names)})",
        ]
        if names["float"]:
            forms += [lambda: self._name(names, "float")] * 2
        if names["vec"]:
            forms += [
                lambda: f"{self._name(names, 'vec')}[{self.index(names)}]",
                lambda: f"np.sum({self.vec(names)})",
                lambda: f"({self._name(names, 'vec')} @ {self.vec(names)})",
                lambda: f"put({self._name(names, 'vec')}, {self.index(names)}, {self.float(names)})",
                lambda: f"halves({self._name(names, 'vec')}, {self.int(names)})",
                lambda: f"np.sum(tail({self._name(names, 'vec')}))",
            ]
        if names["mat"]:
            forms.append(lambda: f"{self._name(names, 'mat')}[{self.index(names)}, {self.index(names)}]")
        if names["list"]:
            forms += [
                lambda: f"sum({self._name(names, 'list')}, 0.0)",
                lambda: f"(len({self._name(names, 'list')}) * 0.25)",
                lambda: self._guarded_item(names),
            ]
            if self._free(names, "list"):
                forms += [
                    lambda: f"grows({self._free(names, 'list')}, {self.int(names)}, {self.float(names)})",
                    lambda: f"drains({self._free(names, 'list')}, {self.float(names)})",
                ]
        if names["rec"]:
            forms += [
                lambda: f"{self._name(names, 'rec')}.k",
                lambda: f"{self._name(names, 'rec')}.bump({self.float(names)})",
            ]
        if names["dict"]:
            forms.append(lambda: f"{self._name(names, 'dict')}['f']")
        if names["table"]:
            forms += [
                lambda: f"{self._name(names, 'table')}.get({self.int(names)}, {self.item(names)})",
                lambda: f"sum({self._name(names, 'table')}.values(), 0.0)",
            ]
        for name, kind in (h.split(":") for h in self.own):
            if names[kind] and names["vec"] and not (kind == "list" and self.running):
                forms.append(lambda name=name, kind=kind: (
                    f"{name}({self._name(names, kind)}, {self._name(names, 'vec')}, {self.float(names)})"))
        try:
            return forms[self.pick(len(forms))]()
        finally:
            self.depth -= 1

    def item(self, names: Names) -> str:
        """A float as lists hold them: Python's, so that all items are of one kind."""
        return f"float({self.float(names)})"

    def _guarded_item(self, names: Names) -> str:
        name = self._name(names, "list")
        if self.raising and self.pick(3) == 2:
            return f"{name}[{self.int(names)}]"
        return f"({name}[{self.int(names)} % len({name})] if {name} else {self.float(names)})"

    def int(self, names: Names) -> str:
        """An integer from about -1 to 5."""
        forms = ["1", "2"] + names["int"] * 2
        if names["list"]:
            forms.append(f"len({self._name(names, 'list')}) % 4")
        return forms[self.pick(len(forms))]

    def index(self, names: Names) -> str:
        """An index of an axis of three."""
        if self.raising and self.pick(6) == 5:
            return self.int(names)
        forms = ["0", "1", "-1", *(f"{i} % 3" for i in names["int"])]
        return forms[self.pick(len(forms))]

    def test(self, names: Names) -> str:
        forms = [
            lambda: f"{self.float(names)} > {self.float(names)}",
            lambda: f"{self.int(names)} < {self.int(names)}",
            lambda: f"{self.int(names)} % 2 == 0",
        ]
        if names["list"]:
            forms.append(lambda: self._name(names, "list"))
        if names["table"]:
            forms.append(lambda: f"{self.int(names)} in {self._name(names, 'table')}")
        return forms[self.pick(len(forms))]()

    def vec(self, names: Names) -> str:
        """Three floats: a new array."""
        if self.depth > 2 or not names["vec"]:
            return f"np.full(3, {self.float(names)})"
        self.depth += 1
        forms = [
            lambda: f"np.full(3, {self.float(names)})",
            lambda: f"{self._name(names, 'vec')}.copy()",
            lambda: f"({self._name(names, 'vec')} * {self.float(names)})",
            lambda: f"({self.vec(names)} + {self._name(names, 'vec')})",
            lambda: f"np.array([{self.float(names)}, {self.float(names)}, {self.float(names)}])",
            lambda: f"np.concatenate([{self._name(names, 'vec')}[:1], tail({self._name(names, 'vec')})])",
            lambda: f"np.sort({self._name(names, 'vec')})",
        ]
        if names["mat"]:
            forms.append(lambda: f"({self._name(names, 'mat')} @ {self._name(names, 'vec')})")
        try:
            return forms[self.pick(len(forms))]()
        finally:
            self.depth -= 1

    def alias(self, names: Names) -> str:
        """Three floats that something else may name, too."""
        forms = [lambda: self.vec(names)]
        if names["vec"]:
            forms += [
                lambda: self._name(names, "vec"),
                lambda: f"same({self._name(names, 'vec')})",
                lambda: f"{self._name(names, 'vec')}[::-1]",
                lambda: f"{self._name(names, 'vec')}[:]",
                lambda: f"blend({self._name(names, 'vec')}, {self.vec(names)}, {self.float(names)})",
            ]
            if self.pick(3) == 2:
                forms += [
                    lambda: f"either({self._name(names, 'vec')}, {self.alias(names)}, {self.float(names)})",
                    lambda: f"({self._name(names, 'vec')} if {self.test(names)} else {self._name(names, 'vec')})",
                ]
        if names["mat"]:
            forms += [
                lambda: f"{self._name(names, 'mat')}[{self.index(names)}]",
                lambda: f"{self._name(names, 'mat')}[:, {self.index(names)}]",
                lambda: f"{self._name(names, 'mat')}.T[{self.index(names)}]",
            ]
        if names["rec"]:
            forms += [
                lambda: f"{self._name(names, 'rec')}.a",
                lambda: f"{self._name(names, 'rec')}.renew({self.vec(names)}).a",
            ]
        if names["dict"]:
            forms.append(lambda: f"{self._name(names, 'dict')}['v']")
        return forms[self.pick(len(forms))]()

    def _name(self, names: Names, kind: str) -> str:
        known = names[kind]
        return known[len(known) - 1 - self.pick(len(known))]

    def _free(self, names: Names, kind: str) -> str:
        """A container that no loop runs over, if there is one."""
        if self.running:  # the list may be known under another name
            return ""
        return self._name(names, kind) if names[kind] else ""
