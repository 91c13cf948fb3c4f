"""Random programs with `try`, inner functions that read and write the variables around them, and `match`.

The invariant: that of `program_writer`; a call of an inner function stands in the scope as an expression, so that later
code calls it wherever it reads a float, with the variables as they are then.
"""

from __future__ import annotations

from expression_writer import Scope, copied, scope_of
from program_writer import Writer

CAUGHT = ("ZeroDivisionError", "ValueError", "IndexError", "(ValueError, IndexError)", "ArithmeticError")


class WideWriter(Writer):
    """Adds statements to those of `Writer`."""

    inner = 0

    def statement(self, scope: Scope, level: int) -> None:
        chosen = self.pick(9) if level < 4 else 8
        if chosen < 2:
            self._try(scope, level)
        elif chosen == 2 and self.inner < 2:
            self._inner(scope, level)
        elif chosen == 3:
            self._match(scope, level)
        elif chosen == 4 and self.raising and level > 1:
            self._raise(scope, level)
        else:
            super().statement(scope, level)

    def _try(self, scope: Scope, level: int) -> None:
        helpers, self.helpers = self.helpers, [h for h in self.helpers if h != "stacked"]  # no comprehension in a try
        outer, all_caught = self.raising, self.pick(3) > 0 or not self.raising
        self.raising = True
        self.emit(level, "try:")
        self.block(copied(scope), level + 1, 1 + self.pick(3))
        self.raising = outer
        forms = [CAUGHT[self.pick(len(CAUGHT))] for _ in range(self.pick(3))] + (["Exception"] if all_caught else [])
        final = self.pick(3) == 0
        self.helpers = self.helpers if final else helpers
        if not forms and not final:
            forms = ["Exception"]
        for form in forms:
            self.emit(level, f"except {form}:")
            if outer and self.pick(4) == 0:
                self.emit(level + 1, f"if {self.condition(scope)}:")
                self.emit(level + 2, "raise")
            self.block(copied(scope), level + 1, 1)
        if forms and self.pick(3) == 0:
            self.emit(level, "else:")
            self.block(copied(scope), level + 1, 1)
        if final:
            self.emit(level, "finally:")
            self.block(copied(scope), level + 1, 1)
        self.helpers = helpers

    def _inner(self, scope: Scope, level: int) -> None:
        """`def f(a, b=...)`, which reads floats and ints around it and may write some."""
        self.fresh += 1
        name = f"f{self.fresh}"
        floats = [n for n in scope["float"] if "." not in n]
        written = sorted({floats[self.pick(len(floats))] for _ in range(self.pick(3))}) if floats else []
        first, second = f"p{self.fresh}", f"o{self.fresh}"
        read = [n if "." in n else f"({n} * 1.0)" for n in scope["float"] if n not in written]
        own = scope_of(
            float=[first, second, *written, *read],
            int=[f"int({n} * 1.0)" for n in scope["int"] if "." not in n],
        )
        default = self.float(scope)
        before = self.loop, self.returns, self.helpers, self.inner
        self.loop, self.returns, self.helpers, self.inner = 0, self._one_float, [], self.inner + 1
        self.emit(level, f"def {name}({first}, {second}={default}):")
        if written:
            self.emit(level + 1, f"nonlocal {', '.join(written)}")
        self.block(own, level + 1, 1 + self.pick(2))
        self.emit(level + 1, self._one_float(own))
        self.loop, self.returns, self.helpers, self.inner = before
        scope["float"].append(f"{name}({('0.5', f'-1.0, {second}=0.25', 'GAIN * 1.0')[self.pick(3)]})")

    def _match(self, scope: Scope, level: int) -> None:
        self.emit(level, f"match ({self.int(scope)}) % 4:")
        arms = 1 + self.pick(3)
        for k in range(arms):
            pattern = (f"case {k}:", f"case {k} | {k + 2}:", f"case m{level}{k} if m{level}{k} > 1:")[self.pick(3)]
            inner = copied(scope)
            self.emit(level + 1, pattern)
            if "if" in pattern:
                inner["int"].append(f"int(m{level}{k} * 1.0)")
            self.block(inner, level + 2, 1)
        if self.pick(2):
            self.emit(level + 1, "case _:")
            self.block(copied(scope), level + 2, 1)
