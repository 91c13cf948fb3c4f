"""`vmap`, `grad`, `value_and_grad`, `vjp`: what users call.

The invariant: a transformed function is a callable with the original's signature and docstring, and all of them end in
one mechanism: a program for one example, run on a batch (of one, with every argument shared, for a plain gradient).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from spmd.compiler.axes import check_out_axes, in_front, placed
from spmd.compiler.cache import SpecialisationCache
from spmd.compiler.executable import Call, call
from spmd.compiler.into import places
from spmd.compiler.pipelines import ROUNDINGS, check_target
from spmd.compiler.signature import Packed, pack
from spmd.compiler.signature.arguments import copies, has_rows, packed_mapped, packed_shared
from spmd.compiler.signature.gradients import empty_gradient, holds_numbers
from spmd.compiler.signature.overlaps import demand_apart
from spmd.compiler.signature.results import one
from spmd.compiler.trace import Argument
from spmd.errors import (
    BatchError,
    GradientError,
    OptionError,
    SourceUnavailable,
    TypeMismatch,
    hide_compiler_frames,
)

Axes = Any


class Transformed:
    """A function with its compiled specialisations. `one` is the function itself."""

    def __init__(self, function: Callable[..., Any], target: str = "auto", fp: str = "strict") -> None:
        if not callable(function):
            raise OptionError(f"a function is needed, not {type(function).__name__}")
        inner = getattr(function, "gradient", None) if isinstance(function, Vmapped) else function
        if isinstance(inner, Gradient):
            raise OptionError(f"a derivative of the gradient of '{_title(inner)}' is not available")
        check_target(target)
        self.one = function
        self.title = _title(function)
        functools.update_wrapper(self, function)  # type: ignore[arg-type]
        if fp not in ROUNDINGS:
            raise OptionError(f"fp='{fp}' does not exist; there are {', '.join(ROUNDINGS)}")
        self.target, self.fp = target, fp
        self.cache = SpecialisationCache.of(function)
        try:
            self.signature = inspect.signature(function)
        except (ValueError, TypeError):
            raise SourceUnavailable(f"'{self.title}' is not written in Python, so it has no source") from None

    def arguments(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[dict[str, Any], dict[str, int | None]]:
        """Arguments by parameter name, defaults included, and their axes. Raises TypeMismatch, a TypeError."""
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as problem:
            raise TypeMismatch(f"{self.title}() {problem}") from None
        given = frozenset(bound.arguments)
        bound.apply_defaults()
        for parameter in self.signature.parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                if bound.arguments[parameter.name]:
                    raise OptionError(f"'{self.title}' is called with *{parameter.name}, which cannot be mapped",
                                      hint="name each argument.")
                del bound.arguments[parameter.name]
        values = dict(bound.arguments)
        return values, self.axes_of(values, given)

    def axes_of(self, values: dict[str, Any], given: frozenset[str]) -> dict[str, int | None]:
        """The axis of each argument that is mapped over; here all are shared."""
        return dict.fromkeys(values)

    def packed(
        self, values: dict[str, Any], axes: dict[str, int | None], keep: bool = False
    ) -> tuple[list[Packed], list[Argument], int]:
        """The arguments as columns, their types, and the number of examples. `keep`: arrays are copied."""
        packed: list[Packed] = []
        mapped: list[tuple[str, int]] = []
        for name, value in values.items():
            axis = axes[name]
            packed.append(packed_shared(value, name, keep) if axis is None else packed_mapped(value, name, axis, keep))
            if axis is not None:
                mapped.append((name, len(packed[-1])))
        if len({size for _, size in mapped}) > 1:
            raise BatchError.of_lengths(mapped)
        arguments = [Argument(n, p.schema, axes[n] is not None) for n, p in zip(values, packed)]
        return packed, arguments, mapped[0][1] if mapped else 1

    def run(
        self, values: dict[str, Any], axes: dict[str, int | None], argnums: Sequence[int] | None, keep: bool = False
    ) -> Call:
        """Packs the arguments and runs the program; with argnums it keeps a tape for them. `keep`: arrays are copied,
        so that a later pullback sees them as they are now."""
        packed, arguments, batch = self.packed(values, axes, keep)
        executable, captured = self.cache.find(arguments, self.target, self.fp, keep)
        if executable.traced.written:
            demand_apart(values, axes, executable.traced.written)
        wanted = None if argnums is None else executable.wanted(argnums)
        return call(executable, packed, batch, wanted, captured)

    def program(
        self, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> tuple[Any, list[Argument], str, str, list[int] | None]:
        """What a call with these arguments compiles, for `explain`: the function, the types, target and rounding, and
        the positions that it is differentiated for."""
        values, axes = self.arguments(args, kwargs)
        return self.one, self.packed(values, axes)[1], self.target, self.fp, self.differentiated(values)

    def differentiated(self, values: dict[str, Any]) -> list[int] | None:
        """Positions of the arguments that a call takes gradients for; None if it takes none."""
        return None


def _title(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


class Vmapped(Transformed):
    """A function of one example that runs on a batch. See `vmap`."""

    def __init__(self, function: Any, in_axes: Axes, out_axes: Axes, target: str, fp: str) -> None:
        gradient = function if isinstance(function, Gradient) else None
        super().__init__(gradient.one if gradient is not None else function, target, fp)
        if gradient is not None:
            functools.update_wrapper(self, gradient)
        check_out_axes(out_axes)
        self.gradient = gradient
        self.in_axes, self.out_axes = in_axes, out_axes
        names = list(self.signature.parameters)
        self.axes(names)

    @property
    def __spmd_vmap__(self) -> tuple[Any, Callable[[list[str]], dict[str, int | None]]]:
        """What a program that calls this needs: the function of one example and its axes."""
        if not in_front(self.out_axes):
            raise OptionError(f"'{self.title}' is called in a program with out_axes={self.out_axes!r}; only 0 can be")
        return (self.one if self.gradient is None else self.gradient), self.axes

    def axes(self, names: list[str]) -> dict[str, int | None]:
        """The mapped axis of each parameter, None for shared ones."""
        given = self.in_axes
        if isinstance(given, dict):
            unknown = [n for n in given if n not in names]
            if unknown:
                raise OptionError(f"in_axes names '{unknown[0]}', which is no parameter of '{self.title}'")
            found = {n: given.get(n, 0) for n in names}
        elif isinstance(given, (tuple, list)):
            if len(given) > len(names):
                raise OptionError(f"in_axes has {len(given)} entries; '{self.title}' has {len(names)} parameters")
            found = {n: (given[k] if k < len(given) else 0) for k, n in enumerate(names)}
        else:
            found = {n: given for n in names}
        for name, axis in found.items():
            if axis is not None and (isinstance(axis, bool) or not isinstance(axis, int)):
                raise OptionError(f"in_axes of '{name}' is {axis!r}; an int or None is needed")
        if names and all(axis is None for axis in found.values()):
            raise OptionError(f"in_axes of '{self.title}' maps no argument",
                              hint="call the function itself, or map at least one argument.")
        return found

    def axes_of(self, values: dict[str, Any], given: frozenset[str]) -> dict[str, int | None]:
        """The axes of a call; a parameter left at its default is shared."""
        axes = self.axes(list(self.signature.parameters))
        return {name: axes[name] if name in given else None for name in values}

    def differentiated(self, values: dict[str, Any]) -> list[int] | None:
        return None if self.gradient is None else self.gradient.positions(list(values))

    def packed(
        self, values: dict[str, Any], axes: dict[str, int | None], keep: bool = False
    ) -> tuple[list[Packed], list[Argument], int]:
        """As for all; a shared list or object that each example has a gradient for is given to each as its own."""
        packed, arguments, batch = super().packed(values, axes, keep)
        for k in self.differentiated(values) or ():
            name = arguments[k].name
            if not arguments[k].mapped and has_rows(packed[k].schema):
                packed[k] = copies(values[name], name, batch) if batch else packed[k][:0]
                arguments[k] = Argument(name, packed[k].schema, True)
        return packed, arguments, batch

    def _outcome(self, done: Call, positions: list[int] | None) -> Any:
        if self.gradient is None or positions is None:
            return self.placed(done, done.results())
        _check_floats(done, positions)
        found = done.gradients(done.ones(self.gradient.has_aux), positions, per_lane=True)
        result = self.gradient.outcome(done.results(), found)
        return placed(result, self.out_axes, False)

    def placed(self, done: Call, result: Any) -> Any:
        """The result with its batch where `out_axes` says."""
        return result if in_front(self.out_axes) else placed(result, self.out_axes, done.uniform())

    @hide_compiler_frames()
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        values, axes = self.arguments(args, kwargs)
        positions = self.differentiated(values)
        if _nothing_tells(values, axes):
            return self._empty(values, axes, positions)
        return self._outcome(self.run(values, axes, positions), positions)

    def _empty(self, values: dict[str, Any], axes: dict[str, int | None], positions: list[int] | None) -> Any:
        """The result for no examples, of types that nothing tells: an empty array for each thing that depends on them,
        and for a shared argument a gradient in its structure."""
        if self.gradient is None or positions is None:
            return np.zeros(0)
        shared = [(name, values[name]) for name in (list(values)[k] for k in positions) if axes[name] is None]
        known = {name: empty_gradient(name, packed_shared(value, name)) for name, value in shared}
        found = [known.get(list(values)[k], np.zeros(0)) for k in positions]
        return self.gradient.outcome((np.zeros(0), np.zeros(0)) if self.gradient.has_aux else np.zeros(0), found)

    @hide_compiler_frames()
    def into(self, out: Any, *args: Any, **kwargs: Any) -> Any:
        """Like a call; the result is written into the arrays of `out`, which has the result's structure, and `out` is
        returned. Raises ShapeMismatch where a shape or dtype does not fit; then nothing has been written."""
        found = list(places(out, self(*args, **kwargs), "out"))
        for array, value in found:
            np.copyto(array, value)
        return out

    @hide_compiler_frames()
    def bind(self, *args: Any, **kwargs: Any) -> Callable[..., Any]:
        """A call for arguments of these types, compiled now. It neither looks for the program nor asks whether captured
        constants still have their values. Raises OptionError for arguments of other types."""
        values, axes = self.arguments(args, kwargs)
        executable, _ = self.cache.find(self.packed(values, axes)[1], self.target, self.fp)
        positions = self.differentiated(values)
        wanted = None if positions is None else executable.wanted(positions)
        executable.compiled(wanted)

        @hide_compiler_frames()
        def bound(*args: Any, **kwargs: Any) -> Any:
            values, axes = self.arguments(args, kwargs)
            packed, arguments, batch = self.packed(values, axes)
            captured = executable.captured()
            if tuple(arguments) != executable.arguments or captured is None:
                raise OptionError(f"'{self.title}' was bound for arguments of other types",
                                  hint="call the function itself, or bind it again.")
            return self._outcome(call(executable, packed, batch, wanted, captured), positions)

        return bound


def _nothing_tells(values: dict[str, Any], axes: dict[str, int | None]) -> bool:
    """Whether there are no examples, and an empty list says nothing of their types."""
    mapped = [v for name, v in values.items() if axes[name] is not None]
    sized = [v for v in mapped if hasattr(v, "__len__")]
    return any(isinstance(v, list) and not v for v in mapped) and all(len(v) == 0 for v in sized)


class Gradient(Transformed):
    """The gradient of a function of one example. See `grad`."""

    def __init__(self, function: Any, argnums: int | tuple[int, ...], with_value: bool, has_aux: bool = False) -> None:
        super().__init__(function)
        wanted = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        if not wanted or any(isinstance(k, bool) or not isinstance(k, int) for k in wanted):
            raise OptionError(f"argnums is {argnums!r}; an int or a tuple of ints is needed")
        self.argnums = argnums
        self.with_value, self.has_aux = with_value, has_aux

    def outcome(self, result: Any, found: list[Any]) -> Any:
        """What a call gives: gradients, with the value or what else the function returned."""
        grads = found[0] if isinstance(self.argnums, int) else tuple(found)
        if self.with_value:
            return result, grads
        return (grads, result[1]) if self.has_aux else grads

    def positions(self, names: list[str]) -> list[int]:
        """The positions asked for. Raises OptionError for one that does not exist."""
        return _positions((self.argnums,) if isinstance(self.argnums, int) else self.argnums, names, self.title)

    def differentiated(self, values: dict[str, Any]) -> list[int] | None:
        return self.positions(list(values))

    @hide_compiler_frames()
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        values, axes = self.arguments(args, kwargs)
        positions = self.positions(list(values))
        done = self.run(values, axes, positions)
        _check_floats(done, positions)
        found = [one(g) for g in done.gradients(done.ones(self.has_aux), positions, per_lane=False)]
        return self.outcome(one(done.results()) if self.with_value or self.has_aux else None, found)


def _positions(wanted: Iterable[int], names: list[str], title: str) -> list[int]:
    """Argument numbers, counted from the front. Raises OptionError for one that does not exist."""
    found = list(wanted)
    for k in found:
        if not -len(names) <= k < len(names):
            raise OptionError(f"argnums names argument {k}; '{title}' has {len(names)}")
    return [k % len(names) for k in found]


def _check_floats(done: Call, positions: Sequence[int]) -> None:
    """Refuses a gradient with respect to an argument that holds no float."""
    for k in positions:
        if not done.packed[k].float_leaves() and holds_numbers(done.packed[k].schema):
            argument = done.executable.arguments[k].name
            raise GradientError(
                f"argument '{argument}' holds no floats, so it has no gradient",
                hint="pass floats, or leave the argument out of argnums.",
            )


# ------------------------------------------------------------------------------------------------ public names
@hide_compiler_frames()
def vmap(
    f: Callable[..., Any] | None = None,
    in_axes: Axes = 0,
    out_axes: Axes = 0,
    target: str = "auto",
    fp: str = "strict",
) -> Any:
    """Runs a function of one example on a batch: a decorator, a decorator with options, or a call.

    in_axes  the axis that is mapped over, for all arguments (int), by position (tuple) or by name (dict); None: shared.
             In a mapped argument tuples, dictionaries, dataclasses and NamedTuples are structure; the first list,
             array or packed value on a path carries the batch, below it is one example.
    out_axes where the batch stands in the results' arrays: an int, or a container of them in the results' structure;
             None for a result that all examples share.
    target   'auto', 'blas' or 'reference'.
    fp       'strict', or 'contract': a * b + c may be rounded once. Called within a compiled program, a vmapped
             function is part of that program: target and fp are those of the outermost call.

    The result has the structure that `f` returns, its leaves stacked over the batch. Raises what the first example (in
    batch order) raises, SpmdError for what cannot be compiled.
    """
    if f is None:
        return lambda function: Vmapped(function, in_axes, out_axes, target, fp)
    return Vmapped(f, in_axes, out_axes, target, fp)


vmap.__spmd_known__ = True  # type: ignore[attr-defined]  # a compiled function may call it: it works on what is known


@hide_compiler_frames()
def grad(f: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Gradient:
    """The gradient of a function that returns one number, with the structure of its argument (a tuple of gradients for
    a tuple of argnums). With `has_aux` the function returns (number, anything) and the call (gradient, anything).
    Raises GradientError for arguments without floats."""
    return Gradient(f, argnums, with_value=False, has_aux=has_aux)


@hide_compiler_frames()
def value_and_grad(f: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Gradient:
    """Like `grad`, but gives (value, gradient); with `has_aux` ((number, anything), gradient)."""
    return Gradient(f, argnums, with_value=True, has_aux=has_aux)


def vjp(
    f: Callable[..., Any], *args: Any, argnums: int | Sequence[int] | None = None
) -> tuple[Any, Callable[..., Any]]:
    """(f(*args), pullback): `pullback(cotangent)` gives a tuple, one gradient for each argnum (all arguments if None),
    summed over the batch for shared arguments of a vmapped function. It may be called again."""
    with hide_compiler_frames():
        function = f if isinstance(f, Transformed) else Transformed(f)
        if isinstance(function, Gradient) or getattr(function, "gradient", None) is not None:
            raise OptionError("vjp of a gradient is not available")
        values, axes = function.arguments(args, {})
        mapped = isinstance(function, Vmapped)
        chosen = range(len(values)) if argnums is None else (argnums,) if isinstance(argnums, int) else argnums
        positions = _positions(chosen, list(values), function.title)
        done = function.run(values, axes, positions, keep=True)
        if argnums is not None:
            _check_floats(done, positions)
        out_axes = function.out_axes if isinstance(function, Vmapped) else 0
        out = function.placed(done, done.results()) if isinstance(function, Vmapped) else one(done.results())

    @hide_compiler_frames()
    def pullback(cotangent: Any) -> tuple[Any, ...]:
        rows, fields = done.cotangents(cotangent if mapped else pack([cotangent]), out_axes)
        found = done.gradients(rows, positions, per_lane=False, fields=fields)
        shared = [not done.executable.arguments[k].mapped for k in positions]
        return tuple(one(g) if single else g for g, single in zip(found, shared))

    return out, pullback
