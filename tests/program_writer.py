"""Writes random single-example programs as source text, typed so that they run as plain Python.

The invariant: every program ends (loops and recursion have bounded trips), reads only names that are bound on every
path, and raises only where it was asked to. Choices come from one function, `pick(n) -> 0..n-1`, so that hypothesis can
shrink a program and a plain generator can make thousands.
"""

from __future__ import annotations

from collections.abc import Callable

from expression_writer import CALLS, ExpressionWriter, Pick, Scope, copied, scope_of

HEAD = '''import math

import numpy as np

GAIN = 0.75
MIX = np.array([[0.4, -0.3, 0.2], [0.1, 0.5, -0.35], [-0.2, 0.3, 0.7]])


class Node:
    def __init__(self, value, left, right):
        self.value = value
        self.left = left
        self.right = right


class Branch:
    def __init__(self, value, children):
        self.value = value
        self.children = children
'''


class Writer(ExpressionWriter):
    """Writes one module: some helper functions and `main(w, x, n, v, xs, tree, wide)`."""

    def __init__(self, pick: Pick, raising: bool = False) -> None:
        super().__init__(pick)
        self.raising = raising
        self.lines: list[str] = []
        self.fresh = 0
        self.loop = 0
        self.returns: Callable[[Scope], str] = self._one_float

    # ------------------------------------------------------------------------------------------ the module
    def module(self) -> str:
        """The text of a module."""
        self.lines = [HEAD]
        for kind in ("plain", "pair", "recursive", "ping", "walk", "fold", "stacked", "tested"):
            if self.pick(3) == 1:
                getattr(self, f"_{kind}_helper")()
                self.helpers.append(kind)
        scope = scope_of(
            float=["x"], int=["n"], vec=["v"], seq=["xs"], mat=["w", "MIX"], tree=["tree"], wide=["wide"]
        )
        kinds = ("float", "int", "vec", "seq")[: 3 + self.pick(2)]
        self.returns = lambda s: "return " + ", ".join(self.value(s, kind) for kind in kinds)
        opening = []
        for helper in self.helpers:
            if helper in CALLS:
                opening.append(f"{helper}_0 = {self._called(helper, scope)}")
                scope["float"].append(f"{helper}_0")
        self._function("main(w, x, n, v, xs, tree, wide)", scope, 3 + self.pick(4), tuple(opening))
        return "\n".join(self.lines) + "\n"

    def _function(self, head: str, scope: Scope, statements: int, opening: tuple[str, ...] = ()) -> None:
        self.lines += ["", "", f"def {head}:", *(f"    {line}" for line in opening)]
        if statements:
            self.block(scope, 1, statements)
        self.emit(1, self.returns(scope))

    def _one_float(self, scope: Scope) -> str:
        return f"return {self.float(scope)}"

    def _plain_helper(self) -> None:
        self.returns = self._one_float
        self._function("plain(a, b)", scope_of(float=["a", "b"]), 1 + self.pick(3))

    def _pair_helper(self) -> None:
        self.returns = lambda s: f"return {self.float(s)}, {self.float(s)}"
        self._function("pair(a, k)", scope_of(float=["a"], int=["k"]), 1 + self.pick(3))

    def _recursive_helper(self) -> None:
        scope = scope_of(float=["a"], int=["k"])
        opening = ["if k <= 0:", f"    return {self.float(scope)}", f"s = recursive({self.float(scope)}, k - 1)"]
        scope["float"].append("s")
        if self.pick(2):
            opening.append(f"t = recursive({self.float(scope)}, k - 2)")
            scope["float"].append("t")
        self.returns = lambda s: f"return 0.5 * {self.float(s)} + 0.25 * s"
        self._function("recursive(a, k)", scope, self.pick(3), tuple(opening))

    def _ping_helper(self) -> None:
        """Two functions that call each other."""
        for name, other in (("ping", "pong"), ("pong", "ping")):
            scope = scope_of(float=["a"], int=["k"])
            opening = ("if k <= 0:", f"    return {self.float(scope)}", "below = k - 1")
            self.returns = lambda s, other=other: f"return {other}({self.float(s)}, below) * 0.9"  # type: ignore[misc]
            self._function(f"{name}(a, k)", scope, self.pick(3), opening)

    def _walk_helper(self) -> None:
        scope = scope_of(float=["a", "node.value"])
        opening = ["if node is None:", f"    return {self.float(scope_of(float=['a']))}"]
        opening.append(f"s = walk(node.left, {self.float(scope)})")
        if self.pick(3) == 0:
            scope["float"].append("s")
        opening.append(f"t = walk(node.right, {self.float(scope)})")
        scope["float"] += [name for name in ("s", "t") if name not in scope["float"]]
        self.returns = lambda s: f"return {self.float(s)} * 0.5 + s * 0.3 - t * 0.2"
        self._function("walk(node, a)", scope, self.pick(3), tuple(opening))

    def _tested_helper(self) -> None:
        """Calls behind tests at the call site, of which some depend on earlier ones."""
        scope = scope_of(float=["a", "node.value"])
        opening = ["if node is None:", f"    return {self.float(scope_of(float=['a']))}"]
        for k, side in enumerate(("left", "right", "left")[: 2 + (self.pick(4) == 1)]):
            test = f"node.{side} is not None"
            form = self.pick(3)
            if form == 1:
                test = f"{test} and {(self.condition(scope), f'node.{side}.value > a')[self.pick(2)]}"
            elif form == 2:
                held = f"{test} and {self.condition(scope)}"
                opening.append(f"b{k} = node.{side}.value > a if {held} else {self.pick(2) == 1}")
                test = f"b{k} and {test}"
            call = f"tested(node.{side}, {self.float(scope)})"
            other = self.float(scope)
            if self.pick(2):
                opening.append(f"r{k} = {call} if {test} else {other}")
            else:
                opening += [f"r{k} = {other}", f"if {test}:", f"    r{k} = {call} * 0.5"]
            if self.pick(4) == 1:
                scope["float"].append(f"r{k}")
        self.returns = lambda s: f"return np.tanh({self.float(s)}) + r0 * 0.3 - r1 * 0.2"
        self._function("tested(node, a)", scope, self.pick(2), tuple(opening))

    def _fold_helper(self) -> None:
        """A loop over children; their calls may depend on each other, and the loop may be left early."""
        scope = scope_of(float=["a", "node.value"])
        opening = [f"total = {self.float(scope)}", "for child in node.children:"]
        inner = copied(scope)
        if self.pick(2):
            inner["float"].append("total")
        if self.pick(4) == 1:
            opening += [f"    if {self.condition(inner)}:", "        break"]
        opening.append(f"    part = fold(child, {self.float(inner)})")
        inner["float"].append("part")
        if self.pick(4) == 1:
            opening += [f"    if {self.condition(inner)}:", "        continue"]
        opening.append(f"    total = total * 0.5 + {self.float(inner)}")
        scope["float"].append("total")
        self.returns = self._one_float
        self._function("fold(node, a)", scope, self.pick(3), tuple(opening))

    def _stacked_helper(self) -> None:
        """A comprehension over children whose results are stacked."""
        scope = scope_of(float=["node.value"], vec=["b"], mat=["MIX"])
        opening = ["if len(node.children) == 0:", f"    return {self.vec(scope)}"]
        opening.append(f"kids = [stacked(child, {self.vec(scope)}) for child in node.children]")
        opening.append(f"h = np.{('sum', 'max', 'mean')[self.pick(3)]}(np.stack(kids), axis=0)")
        scope["vec"].append("h")
        self.returns = lambda s: f"return np.tanh({self.vec(s)} + 0.5 * h)"
        self._function("stacked(node, b)", scope, self.pick(2), tuple(opening))

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
        kinds = ["float", "float", "int", *(kind for kind in ("vec", "seq") if scope[kind])]
        return kinds[self.pick(len(kinds))]

    def _assign(self, scope: Scope, level: int) -> None:
        kind = self._kind(scope)
        value = self.value(scope, kind)
        self.emit(level, f"{self._name(scope, kind)} = {value}")

    def _rebind(self, scope: Scope, level: int) -> None:
        kind = self._kind(scope)
        names = [name for name in scope[kind] if "." not in name]
        if names:
            self.emit(level, f"{names[self.pick(len(names))]} = {self.value(scope, kind)}")
        else:
            self._assign(scope, level)

    def _augment(self, scope: Scope, level: int) -> None:
        names = [name for name in scope["float"] if "." not in name]
        if not names:
            return self._assign(scope, level)
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
        arms = [copied(scope)]
        self.emit(level, f"if {self.condition(scope)}:")
        self.block(arms[0], level + 1, 1 + self.pick(2))
        if self.pick(4) == 0:
            arms.append(copied(scope))
            self.emit(level, f"elif {self.condition(scope)}:")
            self.block(arms[-1], level + 1, 1)
        if self.pick(2):
            arms.append(copied(scope))
            self.emit(level, "else:")
            self.block(arms[-1], level + 1, 1 + self.pick(2))

    def _body(self, scope: Scope, level: int, opening: tuple[str, ...] = ()) -> None:
        inner = copied(scope)
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
        inner = copied(scope)
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
        inner = copied(scope)
        inner["float"].append(f"e{self.fresh}")
        self.emit(level, f"for e{self.fresh} in {self.seq(scope)}:")
        self._body(inner, level + 1)

    def _leave_loop(self, scope: Scope, level: int) -> None:
        self.emit(level, f"if {self.condition(scope)}:")
        self.emit(level + 1, ("break", "continue")[self.pick(2)])

    def _return_early(self, scope: Scope, level: int) -> None:
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
