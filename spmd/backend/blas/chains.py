"""Elementwise groups as generated kernels.

A `Chain` is one group turned into the kernel generator's terms; `Kernels` gathers all chains of a program and compiles
them in one go. The invariant: where a kernel says that some row failed, the primitives' own rules run again on the same
operands and say which rows and why, so exceptions never depend on the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spmd.backend.blas.grouping import SPREAD, Group
from spmd.backend.blas.plan import num
from spmd.backend.simd import ChainOp, ChainOperand, ChainSpec, compile_chains
from spmd.ir.core import Op, Value
from spmd.ops.primitive import Site
from spmd.ops.table import PRIMITIVES, chain_name, may_raise
from spmd.runtime.faults import Faults


@dataclass(eq=False)
class Chain:
    """A group in the generator's terms. `operands`: the values that it reads, with their kinds; `outputs`: the values
    that others read; `checked`: some op may fail."""

    spec: ChainSpec
    operands: list[tuple[Value, str]]
    outputs: list[Value]
    checked: bool


class ChainMaker:
    """Builds one chain. `uniform`: values without rows; `known`: value -> constant, for those that are."""

    def __init__(self, group: Group, uniform: Callable[[Value], bool], known: Callable[[Value], Any]) -> None:
        self.group = group
        self.uniform = uniform
        self.known = known
        self.operands: list[tuple[Value, str]] = []
        self.specs: list[ChainOperand] = []
        self.numbers: dict[Value, tuple[str, int]] = {}
        self.ops: list[tuple[str, tuple[tuple[str, int], ...], str, Any]] = []

    def make(self, outputs: Sequence[Value]) -> Chain:
        """The chain, with these values as outputs."""
        for op in self.group.ops:
            spread = op.name in SPREAD
            args = [self._argument(v) for v in (op.operands[:1] if spread else op.operands)]
            if spread:
                self.numbers[op.result] = args[0]
                continue
            self.ops.append((chain_name(op), tuple(args), num(op.result).dtype, None))
            self.numbers[op.result] = ("op", len(self.ops) - 1)
        kind = "full" if self.group.shape else "row"
        given = []
        for value in outputs:
            place = self.numbers[value]
            if place[0] == "operand":  # only a broadcast: the kernel has to write something
                self.ops.append(("cast", (place,), num(value).dtype, None))
                place = ("op", len(self.ops) - 1)
            given.append((self._number(place), kind))
        ops = tuple(ChainOp(n, tuple(self._number(a) for a in args), d, v) for n, args, d, v in self.ops)
        checked = any(may_raise(op) for op in self.group.ops)
        return Chain(ChainSpec(tuple(self.specs), ops, tuple(given)), self.operands, list(outputs), checked)

    def _number(self, place: tuple[str, int]) -> int:
        return place[1] if place[0] == "operand" else len(self.specs) + place[1]

    def _argument(self, value: Value) -> tuple[str, int]:
        found = self.numbers.get(value)
        if found is not None:
            return found
        if self.uniform(value):
            constant = self.known(value)
            if isinstance(constant, np.ndarray):  # a constant that was spread over a shape
                constant = constant.flat[0] if constant.size and (constant == constant.flat[0]).all() else None
            if constant is not None:
                plain = np.asarray(constant, num(value).dtype).item()
                self.ops.append(("const", (), num(value).dtype, plain))
                place = ("op", len(self.ops) - 1)
                self.numbers[value] = place
                return place
            kind = "col" if num(value).shape else "one"
        else:
            kind = "full" if num(value).shape else "row"
        self.operands.append((value, kind))
        self.specs.append(ChainOperand(kind, num(value).dtype))
        place = ("operand", len(self.specs) - 1)
        self.numbers[value] = place
        return place


class Rerun:
    """The ops of a group by their own rules: what runs where the kernel found a fault."""

    def __init__(
        self,
        group: Group,
        chain: Chain,
        first: int,
        uniform: Callable[[Value], bool],
        known: Callable[[Value], Any],
    ) -> None:
        self.operands = [v for v, _ in chain.operands]
        self.outputs = chain.outputs
        inside = {op.result for op in group.ops}
        outside = [v for op in group.ops for v in op.operands if v not in inside and v not in self.operands]
        self.constants = {v: known(v) for v in outside}
        self.steps: list[tuple[Op, Any, bool, int]] = []
        at = first
        for op in group.ops:
            types = tuple(num(v) for v in op.operands)
            varying = tuple(not uniform(v) for v in op.operands)
            raises = may_raise(op)
            rule = PRIMITIVES[op.name].rows(Site(types, num(op.result), op.attrs, varying))
            self.steps.append((op, rule, raises, at))
            at += raises

    def __call__(self, faults: Faults, values: Sequence[Any]) -> list[Any]:
        """The outputs; failing rows are reported under their ops' numbers."""
        env = dict(self.constants)
        env.update(zip(self.operands, values))
        for op, rule, raises, at in self.steps:
            args = [env[v] for v in op.operands]
            if raises:
                faults.at = at
                env[op.result] = rule(*args, faults=faults)
            else:
                env[op.result] = rule(*args)
        return [env[v] for v in self.outputs]


class Kernels:
    """All chains of a program. `contract`: a * b + c may be rounded once."""

    def __init__(self, contract: bool = False) -> None:
        self.contract = contract
        self.specs: list[ChainSpec] = []
        self.places: list[tuple[dict[str, Any], str]] = []

    def add(self, spec: ChainSpec, names: dict[str, Any], name: str) -> None:
        """Has the kernel of `spec` put under `name` into a table of names."""
        self.specs.append(spec)
        self.places.append((names, name))

    def compile(self) -> None:
        """Compiles all in one module and puts them where they belong."""
        if not self.specs:
            return
        for (names, name), kernel in zip(self.places, compile_chains(self.specs, contract=self.contract)):
            names[name] = kernel
        self.specs, self.places = [], []


def contiguous(value: Any) -> Any:
    """The array with every row contiguous, as kernels read it."""
    return value if value.flags.c_contiguous else np.ascontiguousarray(value)
