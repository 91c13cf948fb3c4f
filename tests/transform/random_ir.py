"""Random structured programs: nested branches and loops with every terminator, recursion over rows, siblings, checks.

Every program ends: recursion goes down a table whose links lead to later rows, or burns fuel; loops are counted. Values
stay moderate, so that finite differences make sense.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from spmd.ir.build import Builder
from spmd.ir.core import Block, Function, Module, Table, Value
from spmd.ir.types import BOOL, INT, Num, Ref, Seq, Type
from spmd.ops.table import type_rule

REAL = Num("float64")
ITEM = Table("item", (REAL, Seq("item"), Ref("item", True)), ("x", "kids", "next"))
PARAMS: tuple[Type, ...] = (Ref("item"), REAL, REAL, INT)


def table(rng: random.Random, rows: int = 7) -> list[list[Any]]:
    """Rows whose links lead to later rows."""
    found = []
    for k in range(rows):
        first = rng.randint(k + 1, rows)
        count = min(rng.choice([0, 1, 2, 3]), rows - first)
        follower = rng.randint(k + 1, rows) if rng.random() < 0.6 else rows
        found.append([np.float64(rng.uniform(-1, 1)), (first, count), follower if follower < rows else -1])
    return found


class Writer:
    """Writes the body of one function; `pool` holds what may be read at this point, by type."""

    def __init__(self, rng: random.Random, module: Module, function: Function, results: int) -> None:
        self.rng = rng
        self.module = module
        self.results = results
        self.b = Builder(function.body, type_rule)
        self.ref = function.params[0]
        self.reals = [*function.params[1:3], *module.inputs]
        self.ints = [function.params[3]]
        self.fuel = function.params[3]
        self.size = rng.randint(4, 16)
        self.loops: list[tuple[Value, list[Value], int]] = []  # counter, carried reals, reals of the result

    # ---- values
    def real(self) -> Value:
        return self.rng.choice(self.reals[-6:] if self.rng.random() < 0.6 else self.reals)

    def integer(self) -> Value:
        return self.rng.choice(self.ints)

    def condition(self) -> Value:
        if self.rng.random() < 0.5:
            return self.b.emit(self.rng.choice(["lt", "ge"]), self.real(), self.real())
        return self.b.emit(self.rng.choice(["lt", "eq", "ne"]), self.integer(), self.b.const(self.rng.randint(0, 3)))

    def arithmetic(self) -> None:
        kind = self.rng.randrange(6)
        if kind == 0:
            self.reals.append(self.b.emit("sin", self.real()))
        elif kind == 1:
            self.reals.append(self.b.emit("tanh", self.b.emit("mul", self.real(), self.real())))
        elif kind == 2:
            self.reals.append(self.b.emit(self.rng.choice(["add", "sub"]), self.real(), self.real()))
        elif kind == 3:
            self.reals.append(self.b.const(np.float64(self.rng.choice([0.5, -1.5, 0.0, -0.0]))))
        elif kind == 4:
            self.ints.append(self.b.emit(self.rng.choice(["add", "sub"]), self.integer(), self.b.const(1)))
        else:
            read = self.b.insert("load", [self.ref], [REAL], {"table": "item", "field": 0})
            self.reals.append(read.result)

    def check(self) -> None:
        """A guard, on the value that was made last as often as not."""
        if self.rng.random() < 0.7:
            bound = self.b.const(np.float64(self.rng.choice([-0.3, 0.0, 0.3, 0.6])))
            holds = self.b.emit("lt", self.reals[-1], bound)
        else:
            holds = self.b.emit("ne", self.integer(), self.b.const(self.rng.randint(-1, 5)))
        error = {"error": (self.rng.choice([ValueError, KeyError]), (self.rng.randint(0, 99),))}
        self.b.insert("guard", [holds], [], error)

    # ---- statements
    def body(self, depth: int, last: Any) -> None:
        """Statements, then `last`, which ends the block; a statement may end it earlier."""
        reals, ints = list(self.reals), list(self.ints)
        for _ in range(self.rng.randint(1, 4)):
            if self.statement(depth):
                break
        else:
            last()
        self.reals, self.ints = reals, ints

    def statement(self, depth: int) -> bool:
        """Writes one statement; true if it ended the block."""
        self.size -= 1
        choice = self.rng.random()
        if depth > 3 or self.size < 0 or choice < 0.35:
            self.arithmetic()
        elif choice < 0.55:
            self.branch(depth)
        elif choice < 0.68:
            self.count_loop(depth)
        elif choice < 0.76:
            self.calls()
        elif choice < 0.80:
            for _ in range(self.rng.randint(2, 3)):
                self.guarded_call()
        elif choice < 0.90:
            self.kids_loop(depth)
        elif choice < 0.93:
            self.check()
        elif choice < 0.97 and depth > 0:
            self.leave()
            return True
        return False

    def leave(self) -> None:
        """A terminator that leaves more than the block."""
        which = self.rng.random()
        if self.loops and which < 0.4:
            self.b.insert("break", [self.real() for _ in range(self.loops[-1][2])], [])
        elif self.loops and which < 0.7:
            self.next_round()
        elif which < 0.95:
            self.b.insert("return", [self.real() for _ in range(self.results)], [])
        else:
            self.b.insert("raise", [], [], {"error": (ValueError, (self.rng.randint(100, 199),))})

    def next_round(self) -> None:
        counter, carried, _ = self.loops[-1]
        step = self.b.emit("add", counter, self.b.const(counter_one(counter)))
        values = [self.real() for _ in carried]
        if self.rng.random() < 0.4:  # rotate: all are assigned at once
            values = self.rng.choice([carried[::-1], values[:1] + carried[:-1], carried[1:] + values[:1]])
        if values and self.rng.random() < 0.3:
            values[-1] = self.b.const(np.float64(0.25))
        self.b.insert("continue", [step, *values], [])

    def branch(self, depth: int) -> None:
        condition = self.condition()
        count = self.rng.randint(0, 2)
        blocks = [Block(), Block()]
        for block in blocks:
            with self.b.at(block):
                self.body(depth + 1, lambda: self.b.insert("yield", [self.real() for _ in range(count)], []))
        self.reals += self.b.insert("if", [condition], [REAL] * count, blocks=blocks).results

    def count_loop(self, depth: int) -> None:
        limit = self.b.const(self.rng.randint(0, 3))
        self.loop(depth, self.b.const(0), limit, lambda _: None)

    def kids_loop(self, depth: int) -> None:
        kids = self.b.insert("load", [self.ref], [Seq("item")], {"table": "item", "field": 1}).result
        length = self.b.insert("length", [kids], [INT]).result

        def enter(counter: Value) -> None:
            kid = self.b.insert("item", [kids, counter], [Ref("item")], {"table": "item"}).result
            carried = self.real() if self.rng.random() < 0.3 else self.reals[0]
            self.call(kid, carried, self.fuel)
            if self.rng.random() < 0.2:
                self.check()

        if self.rng.random() < 0.5:
            length = self.b.emit("cast", length, dtype="int64", python=False)
            self.loop(depth, self.b.const(np.int64(0)), length, enter)
        else:
            self.loop(depth, self.b.const(0), length, enter)

    def loop(self, depth: int, zero: Value, limit: Value, enter: Any) -> None:
        carried, given = self.rng.randint(0, 3), self.rng.randint(0, 2)
        inits = [self.real() for _ in range(carried)]
        block = Block([Value(zero.type), *[Value(REAL) for _ in range(carried)]])
        counter = block.args[0]
        reals, ints = list(self.reals), list(self.ints)
        self.reals += block.args[1:]
        self.loops.append((counter, block.args[1:], given))
        with self.b.at(block):
            test = self.b.emit("lt", counter, limit)
            go, stop = Block(), Block()
            with self.b.at(stop):
                self.b.insert("break", [self.real() for _ in range(given)], [])
            nested = self.rng.random() < 0.5
            with self.b.at(go if nested else Block()):
                if not nested:
                    go.ops = []
                    Builder(go, type_rule).insert("yield", [], [])
                else:
                    enter(counter)
                    self.body(depth + 1, self.next_round)
            self.b.insert("if", [test], [], blocks=[go, stop])
            if nested:
                self.b.insert("unreachable", [], [])
            else:
                enter(counter)
                self.body(depth + 1, self.next_round)
        self.loops.pop()
        self.reals, self.ints = reals, ints
        self.reals += self.b.insert("loop", [zero, *inits], [REAL] * given, blocks=[block]).results

    # ---- calls
    def call(self, ref: Value, real: Value, fuel: Value) -> None:
        name = self.rng.choice(list(self.module.functions))
        callee = self.module.functions[name]
        results = self.b.insert("call", [ref, real, self.reals[1], fuel], callee.results, {"function": name}).results
        self.reals += results

    def calls(self) -> None:
        """Siblings, behind the test that there is fuel and a next row."""
        following = self.b.insert("load", [self.ref], [Ref("item", True)], {"table": "item", "field": 2}).result
        none = self.b.insert("isnull", [following], [BOOL]).result
        blocks = [Block(), Block()]
        with self.b.at(blocks[0]):
            self.b.insert("yield", [self.real(), self.real()], [])
        reals, ints = list(self.reals), list(self.ints)
        with self.b.at(blocks[1]):
            row = self.b.insert("assured", [following], [Ref("item")]).result
            for _ in range(self.rng.randint(1, 3)):
                fuel = self.b.emit("sub", self.fuel, self.b.const(1))
                self.call(row, self.real() if self.rng.random() < 0.5 else self.reals[0], fuel)
                if self.rng.random() < 0.4:
                    self.arithmetic()
                if self.rng.random() < 0.3:
                    self.check()
            self.b.insert("yield", [self.real(), self.real()], [])
        self.reals, self.ints = reals, ints
        self.reals += self.b.insert("if", [none], [REAL, REAL], blocks=blocks).results


    def guarded_call(self) -> None:
        """A call behind a test of its own, in one of its arms or in both; little stands around it."""
        following = self.b.insert("load", [self.ref], [Ref("item", True)], {"table": "item", "field": 2}).result
        none = self.b.insert("isnull", [following], [BOOL]).result
        blocks = [Block(), Block()]
        reals, ints = list(self.reals), list(self.ints)
        with self.b.at(blocks[0]):
            self.short_arm()
        with self.b.at(blocks[1]):
            row = self.b.insert("assured", [following], [Ref("item")]).result
            if self.rng.random() < 0.3:
                self.reals.append(self.b.insert("load", [row], [REAL], {"table": "item", "field": 0}).result)
            if self.rng.random() < 0.4:
                arms = [Block(), Block()]
                condition = self.condition()
                for arm, calls in zip(arms, (True, self.rng.random() < 0.4)):
                    with self.b.at(arm):
                        self.short_arm(row if calls else None)
                self.b.insert("yield", self.b.insert("if", [condition], [REAL], blocks=arms).results, [])
            else:
                self.short_arm(row)
        self.reals, self.ints = reals, ints
        self.reals += self.b.insert("if", [none], [REAL], blocks=blocks).results

    def short_arm(self, row: Value | None = None) -> None:
        """Yields one number; calls a function on the row, if there is one."""
        reals, ints = list(self.reals), list(self.ints)
        if self.rng.random() < 0.3:
            self.arithmetic()
        if self.rng.random() < 0.1:
            self.check()
        if row is not None:
            for _ in range(self.rng.choice((1, 1, 1, 2))):
                fuel = self.b.emit("sub", self.fuel, self.b.const(1))
                self.call(row, self.real() if self.rng.random() < 0.5 else self.reals[0], fuel)
            if self.rng.random() < 0.3:
                self.arithmetic()
        self.b.insert("yield", [self.real()], [])
        self.reals, self.ints = reals, ints


def counter_one(counter: Value) -> Any:
    return 1 if counter.type == INT else np.int64(1)


def program(seed: int) -> Module:
    """A module with an entry of PARAMS and two inputs."""
    rng = random.Random(seed)
    module = Module({}, "f0", [Value(REAL, "w"), Value(REAL, "u")], {"item": ITEM})
    names = [f"f{k}" for k in range(rng.randint(1, 3))]
    for name in names:
        params = [Value(t) for t in PARAMS]
        module.functions[name] = Function(name, params, [REAL] * rng.randint(1, 2), Block())
    for name in names:
        function = module.functions[name]
        writer = Writer(rng, module, function, len(function.results))

        def last(writer: Writer = writer) -> None:
            writer.b.insert("return", [writer.real() for _ in range(writer.results)], [])

        writer.body(0, last)
    return module


def arguments(seed: int, count: int) -> list[list[Any]]:
    """Arguments of several examples."""
    rng = random.Random(seed + 1)
    return [
        [rng.randint(0, 4), np.float64(rng.uniform(-1, 1)), np.float64(rng.uniform(-1, 1)), rng.randint(0, 4)]
        for _ in range(count)
    ]


def inputs(seed: int) -> Sequence[Any]:
    rng = random.Random(seed + 2)
    return [np.float64(rng.uniform(-1, 1)), np.float64(rng.uniform(-1, 1))]
