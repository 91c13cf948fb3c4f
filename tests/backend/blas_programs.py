"""Small programs written straight in the IR, with the plain Python that they mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spmd.backend.blas.executor import Compiled, compile_program
from spmd.ir.build import Builder
from spmd.ir.core import Block, Function, Module, Table, Value
from spmd.ir.types import BOOL, FLOAT, INT, Num, Ref, Seq, Type
from spmd.ops.table import builder
from spmd.transform.adjoint import adjoint
from spmd.transform.regions import regions

D = 3
VEC = Num("float64", (D,))
MAT = Num("float64", (D, D))


class Writer(Builder):
    """A builder with the structural ops as methods."""

    def __init__(self, block: Block) -> None:
        plain = builder(block)
        super().__init__(block, plain.rule)

    def end(self, name: str, *values: Value, **attrs: Any) -> None:
        self.insert(name, values, [], attrs)

    def branch(self, cond: Value, then: Callable[[], None], other: Callable[[], None], *types: Type) -> list[Value]:
        blocks = [Block(), Block()]
        op = self.insert("if", [cond], types, {}, blocks)
        for block, fill in zip(blocks, (then, other)):
            with self.at(block):
                fill()
        return op.results

    def loop(self, inits: Sequence[Value], body: Callable[..., None], *types: Type) -> list[Value]:
        block = Block([Value(v.type) for v in inits])
        op = self.insert("loop", inits, types, {}, [block])
        with self.at(block):
            body(*block.args)
        return op.results

    def call(self, name: str, args: Sequence[Value], *types: Type) -> list[Value]:
        return self.insert("call", args, types, {"function": name}).results

    def map(self, name: str, count: Value, args: Sequence[Value], each: tuple[str, ...]) -> Value:
        return self.insert("map", [count, *args], [Seq("@" + name)], {"function": name, "each": each}).result

    def load(self, ref: Value, table: str, field: int, type_: Type) -> Value:
        return self.insert("load", [ref], [type_], {"table": table, "field": field}).result

    def item(self, run: Value, index: Value, table: str) -> Value:
        return self.insert("item", [run, index], [Ref(table)], {"table": table}).result

    def one(self, name: str, value: Value, type_: Type, **attrs: Any) -> Value:
        return self.insert(name, [value], [type_], attrs).result


def function(name: str, params: Sequence[Type], results: Sequence[Type], fill: Callable[..., None]) -> Function:
    """A function whose body `fill(writer, *params)` writes."""
    values = [Value(t) for t in params]
    body = Block()
    fill(Writer(body), *values)
    return Function(name, values, list(results), body)


def module(functions: Sequence[Function], inputs: Sequence[Value] = (), tables: Sequence[Table] = ()) -> Module:
    """The first function is the entry."""
    return Module({f.name: f for f in functions}, functions[0].name, list(inputs), {t.name: t for t in tables})


def compiled(source: Module, wrt: Sequence[Any] = (), target: str = "auto") -> Compiled:
    """Regions, adjoints where asked for, code."""
    program = regions(source)
    return compile_program(program, target=target, adjoints=adjoint(program, wrt) if wrt else None)


# ------------------------------------------------------------------------------------------------ the programs
def fib() -> Module:
    def fill(b: Writer, n: Value) -> None:
        def rest() -> None:
            one, two = b.const(1), b.const(2)
            (x,) = b.call("fib", [b.emit("sub", n, one)], INT)
            (y,) = b.call("fib", [b.emit("sub", n, two)], INT)
            b.end("return", b.emit("add", x, y))

        b.branch(b.emit("lt", n, b.const(2)), lambda: b.end("return", n), rest)
        b.end("unreachable")

    return module([function("fib", [INT], [INT], fill)])


def plain_fib(n: int) -> int:
    return n if n < 2 else plain_fib(n - 1) + plain_fib(n - 2)


def rnn() -> tuple[Module, Value]:
    """h = tanh(W h + x[t]) over a sequence whose length varies; returns the sum of the last h."""
    w = Value(MAT, "w")

    def fill(b: Writer, x: Value, start: Value) -> None:
        n = b.emit("dim", x, axis=0)

        def body(t: Value, h: Value) -> None:
            def step() -> None:
                pre = b.emit("add", b.emit("matmul", w, h), b.emit("index", x, t))
                b.end("continue", b.emit("add", t, b.const(1)), b.emit("tanh", pre))

            b.branch(b.emit("lt", t, n), step, lambda: b.end("break", h))
            b.end("unreachable")

        (h,) = b.loop([b.const(0), start], body, VEC)
        b.end("return", b.emit("sum", h, axes=(0,), keepdims=False))

    return module([function("rnn", [Num("float64", (None, D)), VEC], [Num("float64")], fill)], [w]), w


def plain_rnn(w: Any, x: Any, h: Any) -> Any:
    for t in range(len(x)):
        h = np.tanh(w @ h + x[t])
    return h.sum()


def swap() -> tuple[Module, Value]:
    """a, b = b, W a, n times; returns sum(a) + 2 sum(b)."""
    w = Value(MAT, "w")

    def fill(b: Writer, n: Value, p: Value, q: Value) -> None:
        def body(t: Value, x: Value, y: Value) -> None:
            def step() -> None:
                b.end("continue", b.emit("add", t, b.const(1)), y, b.emit("matmul", w, x))

            b.branch(b.emit("lt", t, n), step, lambda: b.end("break", x, y))
            b.end("unreachable")

        x, y = b.loop([b.const(0), p, q], body, VEC, VEC)
        s = b.emit("sum", x, axes=(0,), keepdims=False)
        t = b.emit("sum", y, axes=(0,), keepdims=False)
        b.end("return", b.emit("add", s, b.emit("mul", t, b.const(np.float64(2)))))

    return module([function("swap", [INT, VEC, VEC], [Num("float64")], fill)], [w]), w


def plain_swap(w: Any, n: int, a: Any, b: Any) -> Any:
    for _ in range(n):
        a, b = b, w @ a
    return a.sum() + 2 * b.sum()


def tree(shared: bool = False) -> tuple[Module, Value]:
    """enc(node) = x + W tanh(enc(left)) * enc(right), a leaf is x; returns sum(enc(root))."""
    w = Value(MAT, "w")
    fields = (VEC, Ref("node", True), Ref("node", True))

    def enc(b: Writer, node: Value) -> None:
        x = b.load(node, "node", 0, VEC)
        left = b.load(node, "node", 1, Ref("node", True))

        def rest() -> None:
            error = (AttributeError, ("none",))
            right = b.load(node, "node", 2, Ref("node", True))
            (h,) = b.call("enc", [b.one("nonnull", left, Ref("node"), error=error)], VEC)
            (k,) = b.call("enc", [b.one("nonnull", right, Ref("node"), error=error)], VEC)
            b.end("return", b.emit("add", x, b.emit("mul", b.emit("matmul", w, b.emit("tanh", h)), k)))

        b.branch(b.one("isnull", left, BOOL), lambda: b.end("return", x), rest)
        b.end("unreachable")

    def entry(b: Writer, root: Value) -> None:
        (h,) = b.call("enc", [root], VEC)
        b.end("return", b.emit("sum", h, axes=(0,), keepdims=False))

    table = Table("node", fields, ("x", "left", "right"), True, shared)
    functions = [
        function("loss", [Ref("node")], [Num("float64")], entry),
        function("enc", [Ref("node")], [VEC], enc),
    ]
    return module(functions, [w], [table]), w


def plain_tree(w: Any, x: Any, left: Any, right: Any, root: int) -> Any:
    def enc(i: int) -> Any:
        return x[i] if left[i] < 0 else x[i] + (w @ np.tanh(enc(left[i]))) * enc(right[i])

    return enc(root).sum()


def child_sum() -> tuple[Module, Value]:
    """enc(node) = tanh(x + W sum(enc(child))) over any number of children; returns sum(enc(root))."""
    w = Value(MAT, "w")

    def enc(b: Writer, node: Value) -> None:
        x = b.load(node, "node", 0, VEC)
        kids = b.load(node, "node", 1, Seq("node"))
        each = b.map("enc", b.one("length", kids, INT), [kids], ("each",))
        rows = b.insert("column", [each], [Num("float64", (None, D))], {"table": "@enc", "field": 0}).result
        total = b.emit("sum", rows, axes=(0,), keepdims=False)
        b.end("return", b.emit("tanh", b.emit("add", x, b.emit("matmul", w, total))))

    def entry(b: Writer, root: Value) -> None:
        (h,) = b.call("enc", [root], VEC)
        b.end("return", b.emit("sum", h, axes=(0,), keepdims=False))

    table = Table("node", (VEC, Seq("node")), ("x", "children"))
    functions = [
        function("loss", [Ref("node")], [Num("float64")], entry),
        function("enc", [Ref("node")], [VEC], enc),
    ]
    return module(functions, [w], [table]), w


def plain_child_sum(w: Any, x: Any, first: Any, count: Any, root: int) -> Any:
    def enc(i: int) -> Any:
        total = np.zeros(D)
        for c in range(first[i], first[i] + count[i]):
            total = total + enc(c)
        return np.tanh(x[i] + w @ total)

    return enc(root).sum()


def deep() -> Module:
    """f(n, x) = x if n == 0 else 0.5 * f(n - 1, x) + x."""

    def fill(b: Writer, n: Value, x: Value) -> None:
        def rest() -> None:
            (y,) = b.call("deep", [b.emit("sub", n, b.const(1)), x], FLOAT)
            b.end("return", b.emit("add", b.emit("mul", y, b.const(0.5)), x))

        b.branch(b.emit("eq", n, b.const(0)), lambda: b.end("return", x), rest)
        b.end("unreachable")

    return module([function("deep", [INT, FLOAT], [FLOAT], fill)])


def endless() -> Module:
    """f(n) = f(n + 1)."""

    def fill(b: Writer, n: Value) -> None:
        (y,) = b.call("endless", [b.emit("add", n, b.const(1))], INT)
        b.end("return", b.emit("add", y, b.const(1)))

    return module([function("endless", [INT], [INT], fill)])


def risky() -> Module:
    """f(n, k): at n == 0 divides 1 by k; else f(n-1, k-1) + 1 // (k - 7) + f(n-1, k+1)."""

    def fill(b: Writer, n: Value, k: Value) -> None:
        def rest() -> None:
            less = b.emit("sub", n, b.const(1))
            (x,) = b.call("risky", [less, b.emit("sub", k, b.const(1))], INT)
            mid = b.emit("floordiv", b.const(100), b.emit("sub", k, b.const(7)))
            (y,) = b.call("risky", [less, b.emit("add", k, b.const(1))], INT)
            b.end("return", b.emit("add", b.emit("add", x, mid), y))

        def leaf() -> None:
            b.end("return", b.emit("floordiv", b.const(100), k))

        b.branch(b.emit("eq", n, b.const(0)), leaf, rest)
        b.end("unreachable")

    return module([function("risky", [INT, INT], [INT], fill)])


def plain_risky(n: int, k: int) -> int:
    if n == 0:
        return 100 // k
    return plain_risky(n - 1, k - 1) + 100 // (k - 7) + plain_risky(n - 1, k + 1)


def central(f: Callable[[Any], float], x: Any, eps: float = 1e-6) -> Any:
    """Central differences."""
    x = np.array(x, float)
    out = np.zeros_like(x)
    for i in np.ndindex(*x.shape):
        high, low = x.copy(), x.copy()
        high[i] += eps
        low[i] -= eps
        out[i] = (f(high) - f(low)) / (2 * eps)
    return out


