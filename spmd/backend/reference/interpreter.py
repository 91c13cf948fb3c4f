"""Runs a structured module on one example, one op after the other.

The invariant: what it does is the definition of the IR (`spmd.ir.core`): primitives mean what their records' `numpy`
rules say, control flow is that of Python, and no Python recursion is used, so that depth is bounded by memory alone.
It must not know regions, frames in columns, masks, or any other target.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spmd.backend.reference.trace import Applied, Element, Instance, Loaded, Stacked, Trace
from spmd.backend.reference.values import nbytes, of_row, scalar, to_rows
from spmd.errors import InternalError, MemoryBudgetError
from spmd.ir.core import Block, Function, Module, Op, Value
from spmd.ir.types import Num, Type
from spmd.ops.outcomes import exception
from spmd.ops.table import PRIMITIVES
from spmd.source import Span

ACTIVATION_BYTES = 1200
VALUE_BYTES = 150


class Raised(Exception):
    """The example raised `error` at `span`; carries it past the interpreter's own errors."""

    def __init__(self, error: BaseException, span: Span | None) -> None:
        super().__init__(str(error))
        self.error = error
        self.span = span


class Scope:
    """A block being run: the next op, and the `if` or `loop` that owns the block (None for a function's body)."""

    __slots__ = ("block", "next", "owner")

    def __init__(self, block: Block, owner: Op | None) -> None:
        self.block = block
        self.next = 0
        self.owner = owner


class Mapping:
    """A `map` being run: its op, the frame of its first element, and how many elements are done."""

    __slots__ = ("op", "first", "count", "done")

    def __init__(self, op: Op, first: int, count: int) -> None:
        self.op = op
        self.first = first
        self.count = count
        self.done = 0


class Activation:
    """One call of a function: its values, the blocks it is in, and where its results go."""

    __slots__ = ("function", "env", "scopes", "site", "frame", "mapping", "cost")

    def __init__(self, function: Function, site: Op | None, frame: int) -> None:
        self.function = function
        self.env: dict[Value, Instance] = {}
        self.scopes = [Scope(function.body, None)]
        self.site = site
        self.frame = frame
        self.mapping: Mapping | None = None
        self.cost = 0


class Interpreter:
    """Runs functions of one module on given inputs and tables.

    frames  per function, the results of the frames that `map` made, over all examples of the run.
    trace   where steps are recorded for the reverse pass; None to record nothing.
    """

    def __init__(self, module: Module, tables: dict[str, Any], budget: int) -> None:
        self.module = module
        self.tables = tables
        self.budget = budget
        self.inputs: dict[Value, Instance] = {}
        self.frames: dict[str, list[tuple[Instance, ...]]] = {name: [] for name in module.functions}
        self.trace: Trace | None = None
        self._stack: list[Activation] = []
        self._live = 0
        self._outcome: tuple[Instance, ...] = ()

    def run(self, function: Function, args: Sequence[Instance]) -> tuple[Instance, ...]:
        """The results of a call. Raises Raised where the program raises, MemoryBudgetError past the budget."""
        self._stack, self._live = [], 0
        self._enter(function, args, None, -1)
        with np.errstate(all="ignore"):
            while self._stack:
                self._step()
        return self._outcome

    def _step(self) -> None:
        active = self._stack[-1]
        if active.mapping is not None:
            self._next_element(active, active.mapping)
            return
        scope = active.scopes[-1]
        op = scope.block.ops[scope.next]
        scope.next += 1
        structural = _STEPS.get(op.name)
        if structural is None:
            self._apply(active, op)
        else:
            structural(self, active, op)

    # ------------------------------------------------------------------------------------------- values
    def _get(self, active: Activation, value: Value) -> Instance:
        found = active.env.get(value)
        return found if found is not None else self.inputs[value]

    def _value(self, active: Activation, value: Value) -> Any:
        return self._get(active, value).value

    def _define(self, active: Activation, op: Op, value: Any) -> Instance:
        result = active.env[op.results[0]] = Instance(value)
        return result

    def _apply(self, active: Activation, op: Op) -> None:
        operands = [self._get(active, v) for v in op.operands]
        try:
            value = PRIMITIVES[op.name].numpy(*[i.value for i in operands], **op.attrs)
        except Exception as error:
            raise Raised(error, op.span) from error
        result = self._define(active, op, conforming(op, value))
        if self.trace is not None:
            self.trace.append(Applied(op, operands, result))

    def _const(self, active: Activation, op: Op) -> None:
        type_, value = op.result.type, op.attrs["value"]
        self._define(active, op, scalar(type_, value) if isinstance(type_, Num) else value)

    # ------------------------------------------------------------------------------------------- tables
    def _load(self, active: Activation, op: Op) -> None:
        row = self._value(active, op.operands[0])
        active.env[op.result] = self._field(op.attrs["table"], op.attrs["field"], op.result, row)

    def _field(self, table: str, index: int, value: Value, row: int) -> Instance:
        if table.startswith("@"):
            return self.frames[table[1:]][row][index]
        result = Instance(of_row(value.type, self.tables[table].fields[index], row))
        if self.trace is not None:
            self.trace.append(Loaded(table, index, row, None, result))
        return result

    def _column(self, active: Activation, op: Op) -> None:
        table, index = op.attrs["table"], op.attrs["field"]
        first, count = self._value(active, op.operands[0])
        if table.startswith("@"):
            parts = [frame[index] for frame in self.frames[table[1:]][first : first + count]]
            result = self._define(active, op, stacked(op.result.type, [p.value for p in parts]))
            if self.trace is not None:
                self.trace.append(Stacked(parts, result))
            return
        element = self.module.tables[table].fields[index]
        column = self.tables[table].fields[index]
        rows = [of_row(element, column, row) for row in range(first, first + count)]
        result = self._define(active, op, stacked(op.result.type, rows))
        if self.trace is not None:
            self.trace.append(Loaded(table, index, first, count, result))

    def _item(self, active: Activation, op: Op) -> None:
        (first, count), index = (self._value(active, v) for v in op.operands)
        index = int(index)
        if not -count <= index < count:
            raise Raised(IndexError("list index out of range"), op.span)
        self._define(active, op, first + (index + count if index < 0 else index))

    def _length(self, active: Activation, op: Op) -> None:
        self._define(active, op, self._value(active, op.operands[0])[1])

    def _seqslice(self, active: Activation, op: Op) -> None:
        (first, _), low, high = (self._value(active, v) for v in op.operands)
        self._define(active, op, (first + int(low), max(0, int(high) - int(low))))

    def _isnull(self, active: Activation, op: Op) -> None:
        null = self._value(active, op.operands[0]) < 0
        self._define(active, op, conforming(op, scalar(op.result.type, np.bool_(null))))  # type: ignore[arg-type]

    def _nonnull(self, active: Activation, op: Op) -> None:
        row = self._value(active, op.operands[0])
        if row < 0:
            raise Raised(exception(op.attrs["error"]), op.span)
        self._define(active, op, row)

    def _assured(self, active: Activation, op: Op) -> None:
        self._define(active, op, self._value(active, op.operands[0]))

    def _rownumber(self, active: Activation, op: Op) -> None:
        self._define(active, op, np.int64(self._value(active, op.operands[0])))

    def _row(self, active: Activation, op: Op) -> None:
        self._define(active, op, int(self._value(active, op.operands[0])))

    def _same(self, active: Activation, op: Op) -> None:
        one, other = (self._value(active, v) for v in op.operands)
        self._define(active, op, bool(one == other))

    def _guard(self, active: Activation, op: Op) -> None:
        if not self._value(active, op.operands[0]):
            raise Raised(exception(op.attrs["error"]), op.span)

    # ----------------------------------------------------------------------------------------- control flow
    def _if(self, active: Activation, op: Op) -> None:
        taken = op.blocks[0 if self._value(active, op.operands[0]) else 1]
        active.scopes.append(Scope(taken, op))

    def _loop(self, active: Activation, op: Op) -> None:
        body = op.blocks[0]
        self._bind(active, body.args, [self._get(active, v) for v in op.operands])
        active.scopes.append(Scope(body, op))

    def _bind(self, active: Activation, values: Sequence[Value], instances: Sequence[Instance]) -> None:
        if len(values) != len(instances):
            raise InternalError(f"{len(instances)} values for {len(values)} in {active.function.name}")
        active.env.update(zip(values, instances, strict=True))

    def _yield(self, active: Activation, op: Op) -> None:
        values = [self._get(active, v) for v in op.operands]
        owner = active.scopes.pop().owner
        if owner is None:
            self._leave(active, values)
        else:
            self._bind(active, owner.results, values)

    def _continue(self, active: Activation, op: Op) -> None:
        values = [self._get(active, v) for v in op.operands]
        scope = self._innermost_loop(active)
        scope.next = 0
        self._bind(active, scope.block.args, values)

    def _break(self, active: Activation, op: Op) -> None:
        values = [self._get(active, v) for v in op.operands]
        owner = self._innermost_loop(active).owner
        active.scopes.pop()
        assert owner is not None
        self._bind(active, owner.results, values)

    def _innermost_loop(self, active: Activation) -> Scope:
        while True:
            scope = active.scopes[-1]
            if scope.owner is None:
                raise InternalError(f"break or continue outside of a loop in {active.function.name}")
            if scope.owner.name == "loop":
                return scope
            active.scopes.pop()

    def _return(self, active: Activation, op: Op) -> None:
        self._leave(active, [self._get(active, v) for v in op.operands])

    def _raise(self, active: Activation, op: Op) -> None:
        raise Raised(exception(op.attrs["error"]), op.span)

    def _unreachable(self, active: Activation, op: Op) -> None:
        raise InternalError(f"{active.function.name} reached a point that it cannot reach", span=op.span)

    # ------------------------------------------------------------------------------------------------- calls
    def _call(self, active: Activation, op: Op) -> None:
        function = self.module.functions[op.attrs["function"]]
        self._enter(function, [self._get(active, v) for v in op.operands], op, -1)

    def _enter(self, function: Function, args: Sequence[Instance], site: Op | None, frame: int) -> None:
        if self._stack:
            caller = self._stack[-1]
            caller.cost = ACTIVATION_BYTES + sum(VALUE_BYTES + nbytes(i.value) for i in caller.env.values())
            self._live += caller.cost
            if self._live > self.budget:
                raise MemoryBudgetError.of_recursion(
                    function.name, len(self._stack), self.budget, span=site.span if site else function.span
                )
        active = Activation(function, site, frame)
        self._bind(active, function.params, args)
        self._stack.append(active)

    def _leave(self, active: Activation, values: Sequence[Instance]) -> None:
        self._stack.pop()
        if not self._stack:
            self._outcome = tuple(values)
            return
        caller = self._stack[-1]
        self._live -= caller.cost
        if active.frame >= 0:
            self.frames[active.function.name][active.frame] = tuple(values)
        elif active.site is not None:
            self._bind(caller, active.site.results, values)

    def _map(self, active: Activation, op: Op) -> None:
        count = int(self._value(active, op.operands[0]))
        frames = self.frames[op.attrs["function"]]
        first = len(frames)
        frames.extend([()] * count)
        active.mapping = Mapping(op, first, count)

    def _next_element(self, active: Activation, mapping: Mapping) -> None:
        op, index = mapping.op, mapping.done
        if index == mapping.count:
            active.mapping = None
            self._define(active, op, (mapping.first, mapping.count))
            return
        mapping.done += 1
        function = self.module.functions[op.attrs["function"]]
        args = [
            self._mapped_argument(active, operand, each, param, index)
            for operand, each, param in zip(op.operands[1:], op.attrs["each"], function.params, strict=True)
        ]
        self._enter(function, args, op, mapping.first + index)

    def _mapped_argument(self, active: Activation, operand: Value, each: str, param: Value, index: int) -> Instance:
        given = self._get(active, operand)
        if each == "same":
            return given
        if each == "index":
            return Instance(scalar(param.type, np.int64(index)))  # type: ignore[arg-type]
        if not isinstance(operand.type, Num):
            row = given.value[0] + index
            return Instance(row) if each == "each" else self._field(operand.type.table, int(each[6:]), param, row)
        assert isinstance(param.type, Num)
        element = Instance(scalar(param.type, given.value[index]))
        if self.trace is not None:
            self.trace.append(Element(given, index, element))
        return element


def conforming(op: Op, value: Any) -> Any:
    """A primitive's result, checked against the type that inference gave it.

    Raises InternalError where they differ: a wrong type here would be a wrong number elsewhere.
    """
    type_ = op.result.type
    assert isinstance(type_, Num)
    if type_.python:
        wanted = {"int64": int, "float64": float, "bool": bool, "complex128": complex}[type_.dtype]
        if type(value) is wanted:
            return value
    elif type_.text:
        return int(value)
    elif isinstance(value, (np.ndarray, np.generic)) and value.dtype == type_.dtype and value.ndim == type_.rank:
        if all(n is None or n == size for n, size in zip(type_.shape, value.shape, strict=True)):
            return value if type_.shape or isinstance(value, np.generic) else value[()]
    shown = f"{value.dtype}{list(value.shape)}" if isinstance(value, (np.ndarray, np.generic)) else type(value).__name__
    raise InternalError(f"'{op.name}' gave {shown} where {type_} was inferred", span=op.span)


def stacked(type_: Type, rows: Sequence[Any]) -> Any:
    """Rows on top of each other, as a value of `type_` (which has the number of rows in front)."""
    assert isinstance(type_, Num)
    tail = tuple(0 if n is None else n for n in type_.shape[1:])
    if not rows:
        return np.empty((0, *tail), dtype=type_.dtype)
    return np.stack([np.asarray(r, dtype=type_.dtype) for r in rows])


def row_value(type_: Type, instances: Sequence[Instance]) -> Any:
    """One result of all examples as a row value."""
    return to_rows(type_, [i.value for i in instances])


_STEPS: dict[str, Callable[[Interpreter, Activation, Op], None]] = {
    "const": Interpreter._const,
    "load": Interpreter._load,
    "column": Interpreter._column,
    "item": Interpreter._item,
    "length": Interpreter._length,
    "seqslice": Interpreter._seqslice,
    "isnull": Interpreter._isnull,
    "nonnull": Interpreter._nonnull,
    "assured": Interpreter._assured,
    "same": Interpreter._same,
    "rownumber": Interpreter._rownumber,
    "row": Interpreter._row,
    "guard": Interpreter._guard,
    "if": Interpreter._if,
    "loop": Interpreter._loop,
    "yield": Interpreter._yield,
    "continue": Interpreter._continue,
    "break": Interpreter._break,
    "return": Interpreter._return,
    "raise": Interpreter._raise,
    "unreachable": Interpreter._unreachable,
    "call": Interpreter._call,
    "map": Interpreter._map,
}
