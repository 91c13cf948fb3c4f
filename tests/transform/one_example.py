"""Runs one example of a module, or of a program in regions with its adjoints: the meaning that passes must keep.

Plain and slow on purpose: Python recursion over structured blocks, a dictionary per frame over regions, NumPy rules of
the primitives' records. It shares nothing with the engines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spmd.ir.core import Block, Function, Module, Op, Value
from spmd.ir.region import AdjointRegion, Branch, Column, Fork, Jump, Leave, Program, Raise
from spmd.ir.types import Num, Type, carries_gradient

Tables = Mapping[str, Sequence[Sequence[Any]]]  # table -> rows -> fields
NONE: Tables = {}


class Leaving(Exception):
    """A terminator that leaves its block: kind and values."""

    def __init__(self, kind: str, values: list[Any]) -> None:
        self.kind = kind
        self.values = values


def make_error(error: Any) -> BaseException:
    cls, args = error
    kind = cls if isinstance(cls, type) else getattr(__import__("builtins"), cls)
    return kind(*args)


class Ops:
    """Straight-line ops over an environment; `rows` gives the fields of a row of a table."""

    def __init__(self, primitives: Mapping[str, Any], tables: Tables) -> None:
        self.primitives = primitives
        self.tables = tables
        self.frames: list[Any] = []

    def field(self, table: str, row: int, index: int) -> Any:
        if table.startswith("@"):
            return self.frames[row].results[index]
        return self.tables[table][row][index]

    def run(self, op: Op, env: dict[Value, Any]) -> None:
        values = [env[v] for v in op.operands]
        name, attrs = op.name, op.attrs
        if name == "const":
            env[op.result] = attrs["value"]
        elif name == "load":
            env[op.result] = self.field(attrs["table"], values[0], attrs["field"])
        elif name == "load_or":
            env[op.result] = values[1] if values[0] == -1 else self.field(attrs["table"], values[0], attrs["field"])
        elif name == "item":
            (first, count), i = values
            i = i + count if i < 0 else i
            if not 0 <= i < count:
                raise IndexError("list index out of range")
            env[op.result] = first + i
        elif name == "length":
            env[op.result] = values[0][1]
        elif name == "column":
            first, count = values[0]
            rows = [self.field(attrs["table"], first + k, attrs["field"]) for k in range(count)]
            type_ = op.result.type
            assert isinstance(type_, Num)
            env[op.result] = np.array(rows, type_.dtype).reshape(count, *type_.shape[1:])
        elif name == "isnull":
            env[op.result] = values[0] == -1
        elif name == "same":
            env[op.result] = values[0] == values[1]
        elif name == "assured":
            env[op.result] = values[0]  # no row where it is an argument of a guarded call that is not made
        elif name == "nonnull":
            if values[0] == -1:
                raise make_error(attrs["error"])
            env[op.result] = values[0]
        elif name == "seqslice":
            (first, _), lo, hi = values
            env[op.result] = (first + lo, max(hi - lo, 0))
        elif name == "guard":
            if not values[0]:
                raise make_error(attrs["error"])
        else:
            with np.errstate(all="ignore"):
                env[op.result] = self.primitives[name].numpy(*values, **attrs)


def elements(word: str, argument: Any, count: int) -> list[Any]:
    """The arguments of the elements of a map."""
    if word == "same":
        return [argument] * count
    if word == "index":
        return list(range(count))
    if isinstance(argument, tuple):
        return [argument[0] + k for k in range(count)]
    return [argument[k] for k in range(count)]


# ------------------------------------------------------------------------------------------------ modules
@dataclass
class Results:
    results: list[Any]


class ModuleRun(Ops):
    def __init__(self, module: Module, primitives: Mapping[str, Any], tables: Tables, inputs: Sequence[Any]) -> None:
        super().__init__(primitives, tables)
        self.module = module
        derived = len(module.prologue.terminator.operands) if module.prologue else 0
        self.env = dict(zip(module.inputs[: len(module.inputs) - derived], inputs, strict=True))
        if module.prologue is not None:
            for op in module.prologue.ops[:-1]:
                self.run(op, self.env)
            given = [self.env[v] for v in module.prologue.terminator.operands]
            self.env.update(zip(module.inputs[len(module.inputs) - derived :], given, strict=True))

    def call(self, function: Function, args: Sequence[Any]) -> list[Any]:
        env = dict(self.env)
        env.update(zip(function.params, args, strict=True))
        try:
            self.block(function.body, env)
        except Leaving as left:
            assert left.kind == "return"
            return left.values
        raise AssertionError("a body ended without return")

    def block(self, block: Block, env: dict[Value, Any]) -> list[Any]:
        for op in block.ops:
            values = [env[v] for v in op.operands]
            if op.name == "yield":
                return values
            if op.name == "raise":
                raise make_error(op.attrs["error"])
            if op.name == "unreachable":
                raise AssertionError("unreachable was reached")
            if op.terminator:
                raise Leaving(op.name, values)
            if op.name == "if":
                env.update(zip(op.results, self.block(op.blocks[0 if values[0] else 1], env), strict=True))
            elif op.name == "loop":
                env.update(zip(op.results, self.loop(op, values, env), strict=True))
            elif op.name == "call":
                results = self.call(self.module.functions[op.attrs["function"]], values)
                env.update(zip(op.results, results, strict=True))
            elif op.name == "map":
                env[op.result] = self.map(op, values)
            else:
                self.run(op, env)
        raise AssertionError("a block ended without terminator")

    def loop(self, op: Op, values: list[Any], env: dict[Value, Any]) -> list[Any]:
        (body,) = op.blocks
        while True:
            env.update(zip(body.args, values, strict=True))
            try:
                self.block(body, env)
            except Leaving as left:
                if left.kind == "break":
                    return left.values
                if left.kind == "return":
                    raise
                values = left.values

    def map(self, op: Op, values: list[Any]) -> tuple[int, int]:
        count = values[0]
        columns = [elements(w, v, count) for w, v in zip(op.attrs["each"], values[1:], strict=True)]
        made = [self.call(self.module.functions[op.attrs["function"]], args) for args in zip(*columns, strict=True)]
        first = len(self.frames)
        self.frames += [Results(r) for r in made]
        return first, count


def run_module(
    module: Module,
    primitives: Mapping[str, Any],
    args: Sequence[Any],
    inputs: Sequence[Any] = (),
    tables: Tables = NONE,
) -> list[Any]:
    """Results of the entry for one example."""
    return ModuleRun(module, primitives, tables, inputs).call(module.functions[module.entry], args)


# ------------------------------------------------------------------------------------------------ programs
@dataclass
class Frame:
    function: str
    columns: dict[Column, Any] = field(default_factory=dict)
    results: list[Any] = field(default_factory=list)
    cotangents: dict[Column, Any] = field(default_factory=dict)


@dataclass
class Entry:
    region: int
    frame: Frame
    values: dict[Value, Any]
    children: list[list[int]]


class ProgramRun(Ops):
    """Runs frames depth first, sibling calls in the order of their sites, and keeps the log for `backward`."""

    def __init__(
        self, program: Program, primitives: Mapping[str, Any], tables: Tables, inputs: Sequence[Any], limit: int = 3000
    ) -> None:
        super().__init__(primitives, tables)
        self.program = program
        self.log: list[Entry] = []
        self.limit = limit
        derived = len(program.prologue.terminator.operands) if program.prologue else 0
        self.env = dict(zip(program.inputs[: len(program.inputs) - derived], inputs, strict=True))
        self.prologue: dict[Value, Any] = dict(self.env)
        if program.prologue is not None:
            for op in program.prologue.ops[:-1]:
                self.run(op, self.prologue)
            given = [self.prologue[v] for v in program.prologue.terminator.operands]
            self.env.update(zip(program.inputs[len(program.inputs) - derived :], given, strict=True))

    def start(self, function: str, args: Sequence[Any]) -> int:
        frame = Frame(function)
        frame.columns.update(zip(self.program.functions[function].params, args, strict=True))
        self.frames.append(frame)
        return len(self.frames) - 1

    def finish(self, number: int) -> list[Any]:
        frame = self.frames[number]
        at = self.program.functions[frame.function].entry
        while True:
            region = self.program.regions[at]
            env = dict(self.env)
            env.update((v, frame.columns[c]) for c, v in region.loads)
            fault = None
            for op in sorted(region.ops, key=lambda op: () if op.name == "const" else op.order):
                try:
                    self.run(op, env)
                except Exception as error:
                    fault = (op.order, error)
                    break
            if fault is not None and not isinstance(region.exit, Fork):
                raise fault[1]
            if fault is None:
                frame.columns.update([(c, env[v]) for c, v in region.stores])
            entry = Entry(at, frame, env, [])
            self.log.append(entry)
            if len(self.log) > self.limit:
                raise RuntimeError("too many regions")
            out = region.exit
            if isinstance(out, Jump):
                at = out.target
            elif isinstance(out, Branch):
                at = out.then if env[out.cond] else out.other
            elif isinstance(out, Fork):
                for site in out.sites:
                    if fault is not None and site.order > fault[0]:
                        break
                    entry.children.append(self.fork(site, frame, env))
                if fault is not None:
                    raise fault[1]
                at = out.target
            elif isinstance(out, Leave):
                frame.results = [env[v] for v in out.values]
                return frame.results
            elif isinstance(out, Raise):
                raise make_error(out.error)
            else:
                raise AssertionError("a dead region was reached")

    def fork(self, site: Any, frame: Frame, env: dict[Value, Any]) -> list[int]:
        args = [env[v] for v in site.args]
        if not all(bool(env[v]) == truth for v, truth in site.guards):
            frame.columns[site.child] = -1 if site.count is None else (0, 0)
            return []
        if site.count is None:
            children = [self.start(site.function, args)]
            frame.columns[site.child] = children[0]
        else:
            count = env[site.count]
            columns = [elements(w, v, count) for w, v in zip(site.each, args, strict=True)]
            first = len(self.frames)
            children = [self.start(site.function, row) for row in zip(*columns, strict=True)] if columns else []
            frame.columns[site.child] = (first, count)
        for child in children:
            self.finish(child)
        return children

    # ---- reverse
    def backward(self, adjoints: Mapping[int, AdjointRegion], cotangents: Sequence[Any], root: int) -> Cotangents:
        program = self.program
        found = Cotangents({}, {}, [])
        frame = self.frames[root]
        for each in self.frames:
            each.cotangents.clear()
        for column, ct in zip(program.functions[frame.function].results, cotangents, strict=True):
            if ct is not None:
                frame.cotangents[column] = np.array(ct, copy=True)
        for entry in reversed(self.log):
            adjoint = adjoints.get(entry.region)
            if adjoint is not None:
                self.reverse(adjoint, entry, found)
        if -1 in adjoints:
            self.reverse_prologue(adjoints[-1], found)
        for param in program.functions[frame.function].params:
            found.params.append(frame.cotangents.get(param))
        return found

    def reverse(self, adjoint: AdjointRegion, entry: Entry, found: Cotangents) -> None:
        frame = entry.frame
        env = {v: entry.values[v] for v in adjoint.residuals}
        env.update(self.env)
        out = self.program.regions[entry.region].exit
        for seed in adjoint.seeds:
            if seed.kind != "argument":
                assert seed.column is not None
                env[seed.value] = frame.cotangents.pop(seed.column, zeros(seed.value.type, entry.values, seed))
                continue
            assert isinstance(out, Fork) and seed.column is not None
            site = out.sites[seed.site]
            like = entry.values[site.args[seed.index]]
            children = [self.frames[k].cotangents.pop(seed.column, None) for k in entry.children[seed.site]]
            total = np.zeros_like(np.asarray(like))
            for k, ct in enumerate(children):
                if ct is not None and site.each and site.each[seed.index] == "each":
                    total[k] += ct
                elif ct is not None:
                    total = total + ct
            env[seed.value] = total
        for op in adjoint.ops:
            self.run(op, env)
        for add in adjoint.adds:
            self.add(add, env, entry, found)

    def add(self, add: Any, env: dict[Value, Any], entry: Entry, found: Cotangents) -> None:
        ct = env[add.value]
        if add.kind == "column":
            accumulate(entry.frame.cotangents, add.column, ct)
        elif add.kind == "input":
            accumulate(found.inputs, add.input, ct)
        else:
            ref = env[add.ref] if add.ref in env else entry.values[add.ref]
            if add.kind == "maybe" and ref == -1:
                return
            rows = [(ref, ct)] if add.kind != "run" else [(ref[0] + k, ct[k]) for k in range(ref[1])]
            for row, part in rows:
                if add.table.startswith("@"):
                    column = self.program.functions[add.table[1:]].results[add.index]
                    accumulate(self.frames[row].cotangents, column, part)
                else:
                    accumulate(found.tables, (add.table, add.index, row), part)

    def reverse_prologue(self, adjoint: AdjointRegion, found: Cotangents) -> None:
        env = dict(self.prologue)
        env.update(self.env)
        for seed in adjoint.seeds:
            value = self.program.inputs[seed.index]
            env[seed.value] = found.inputs.get(value, np.zeros_like(np.asarray(self.env[value])))
        for op in adjoint.ops:
            self.run(op, env)
        for add in adjoint.adds:
            accumulate(found.inputs, add.input, env[add.value])


@dataclass
class Cotangents:
    inputs: dict[Value, Any]
    tables: dict[tuple[str, int, int], Any]
    params: list[Any]


def zeros(type_: Type, values: dict[Value, Any], seed: Any) -> Any:
    assert isinstance(type_, Num) and type_.static, "hand-written tests use static shapes"
    return np.zeros(type_.shape, type_.dtype)


def accumulate(where: dict[Any, Any], key: Any, ct: Any) -> None:
    where[key] = where[key] + ct if key in where else np.array(ct, copy=True)


def run_program(
    program: Program,
    primitives: Mapping[str, Any],
    args: Sequence[Any],
    inputs: Sequence[Any] = (),
    tables: Tables = NONE,
) -> tuple[list[Any], ProgramRun]:
    """Results of the entry for one example, and the run, which can go backwards."""
    run = ProgramRun(program, primitives, tables, inputs)
    return run.finish(run.start(program.entry, args)), run


def gradient_parameters(program: Program) -> list[int]:
    """Numbers of the entry's parameters that have a gradient."""
    return [k for k, c in enumerate(program.functions[program.entry].params) if carries_gradient(c.type)]

