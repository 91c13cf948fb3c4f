"""`vmap`, `grad`, `value_and_grad`, `vjp`: what users call.

The invariant: a transformed function is a callable with the original's signature and docstring, and all of them end in
one mechanism: a program for one example, run on a batch (of one, with every argument shared, for a plain gradient).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spmd.compiler.cache import SpecialisationCache
from spmd.compiler.executable import Call, call
from spmd.compiler.pipelines import check_target
from spmd.compiler.signature import Packed, pack
from spmd.compiler.signature.arguments import packed_mapped, packed_shared
from spmd.compiler.signature.gradients import holds_numbers
from spmd.compiler.signature.results import one
from spmd.compiler.trace import Argument
from spmd.errors import BatchError, GradientError, OptionError, hide_compiler_frames

Axes = Any


class Transformed:
    """A function with its compiled specialisations. `one` is the function itself."""

    def __init__(self, function: Callable[..., Any], target: str = "auto") -> None:
        if not callable(function):
            raise OptionError(f"a function is needed, not {type(function).__name__}")
        check_target(target)
        functools.update_wrapper(self, function)
        self.one = function
        self.target = target
        self.cache = SpecialisationCache(function)
        self.signature = inspect.signature(function)

    def bind(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[dict[str, Any], frozenset[str]]:
        """Arguments by parameter name, defaults included, and which were given. Raises TypeError as Python does."""
        bound = self.signature.bind(*args, **kwargs)
        given = frozenset(bound.arguments)
        bound.apply_defaults()
        for parameter in self.signature.parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) and bound.arguments[parameter.name]:
                raise OptionError(f"'{self.__name__}' is called with *{parameter.name}, which cannot be mapped",
                                  hint="name each argument.")
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                del bound.arguments[parameter.name]
        return dict(bound.arguments), given

    def run(
        self, values: dict[str, Any], axes: dict[str, int | None], argnums: Sequence[int] | None, keep: bool = False
    ) -> Call:
        """Packs the arguments and runs the program; with argnums it keeps a tape for them. `keep`: arrays are copied,
        so that a later pullback sees them as they are now."""
        packed: list[Packed] = []
        mapped: list[tuple[str, int]] = []
        for name, value in values.items():
            axis = axes[name]
            packed.append(packed_shared(value, name, keep) if axis is None else packed_mapped(value, name, axis, keep))
            if axis is not None:
                mapped.append((name, len(packed[-1])))
        if len({size for _, size in mapped}) > 1:
            raise BatchError.of_lengths(mapped)
        batch = mapped[0][1] if mapped else 1
        arguments = [Argument(n, p.schema, axes[n] is not None) for n, p in zip(values, packed)]
        executable, captured = self.cache.find(arguments, self.target)
        wanted = None if argnums is None else executable.wanted(argnums)
        return call(executable, packed, batch, wanted, captured)


class Vmapped(Transformed):
    """A function of one example that runs on a batch. See `vmap`."""

    def __init__(self, function: Any, in_axes: Axes, out_axes: Axes, target: str, fp: str) -> None:
        gradient = function if isinstance(function, Gradient) else None
        super().__init__(gradient.one if gradient is not None else function, target)
        if gradient is not None:
            functools.update_wrapper(self, gradient)
        if fp != "strict":
            raise OptionError(f"fp='{fp}' is not available; floating point is strict")
        if out_axes != 0:
            raise OptionError(f"out_axes={out_axes!r} is not available; results are stacked in front (0)")
        self.gradient = gradient
        self.in_axes = in_axes
        names = list(self.signature.parameters)
        self.axes(names)

    @property
    def __spmd_vmap__(self) -> tuple[Any, Callable[[list[str]], dict[str, int | None]]]:
        """What a program that calls this needs: the function of one example and its axes."""
        return (self.one if self.gradient is None else self.gradient), self.axes

    def axes(self, names: list[str]) -> dict[str, int | None]:
        """The mapped axis of each parameter, None for shared ones."""
        given = self.in_axes
        if isinstance(given, dict):
            unknown = [n for n in given if n not in names]
            if unknown:
                raise OptionError(f"in_axes names '{unknown[0]}', which is no parameter of '{self.__name__}'")
            found = {n: given.get(n, 0) for n in names}
        elif isinstance(given, (tuple, list)):
            if len(given) > len(names):
                raise OptionError(f"in_axes has {len(given)} entries; '{self.__name__}' has {len(names)} parameters")
            found = {n: (given[k] if k < len(given) else 0) for k, n in enumerate(names)}
        else:
            found = {n: given for n in names}
        for name, axis in found.items():
            if axis is not None and (isinstance(axis, bool) or not isinstance(axis, int)):
                raise OptionError(f"in_axes of '{name}' is {axis!r}; an int or None is needed")
        if names and all(axis is None for axis in found.values()):
            raise OptionError(f"in_axes of '{self.__name__}' maps no argument",
                              hint="call the function itself, or map at least one argument.")
        return found

    def axes_of(self, values: dict[str, Any], given: frozenset[str]) -> dict[str, int | None]:
        """The axes of a call; a parameter left at its default is shared."""
        axes = self.axes(list(self.signature.parameters))
        return {name: axes[name] if name in given else None for name in values}

    @hide_compiler_frames()
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        values, given = self.bind(args, kwargs)
        axes = self.axes_of(values, given)
        empty = _empty(values, axes)
        if empty is not None:
            return empty
        if self.gradient is None:
            return self.run(values, axes, None).results()
        positions = self.gradient.positions(list(values))
        done = self.run(values, axes, positions)
        found = done.gradients(done.ones(), positions, per_lane=True)
        grads = found[0] if isinstance(self.gradient.argnums, int) else tuple(found)
        return (done.results(), grads) if self.gradient.with_value else grads


def _empty(values: dict[str, Any], axes: dict[str, int | None]) -> Any:
    """The result for a batch of no examples whose types nothing tells: an empty array. None if there are examples."""
    for name, value in values.items():
        if axes[name] is not None and isinstance(value, list) and not value:
            others = [v for n, v in values.items() if axes[n] is not None and hasattr(v, "__len__")]
            if all(len(v) == 0 for v in others):
                return np.zeros(0)
    return None




class Gradient(Transformed):
    """The gradient of a function of one example. See `grad`."""

    def __init__(self, function: Any, argnums: int | tuple[int, ...], with_value: bool) -> None:
        super().__init__(function)
        wanted = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        if not wanted or any(isinstance(k, bool) or not isinstance(k, int) for k in wanted):
            raise OptionError(f"argnums is {argnums!r}; an int or a tuple of ints is needed")
        self.argnums = argnums
        self.with_value = with_value

    def positions(self, names: list[str]) -> list[int]:
        """The positions asked for. Raises OptionError for one that does not exist."""
        wanted = (self.argnums,) if isinstance(self.argnums, int) else self.argnums
        for k in wanted:
            if not -len(names) <= k < len(names):
                raise OptionError(f"argnums names argument {k}; '{self.__name__}' has {len(names)}")
        return [k % len(names) for k in wanted]

    @hide_compiler_frames()
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        values, _ = self.bind(args, kwargs)
        positions = self.positions(list(values))
        done = self.run(values, {name: None for name in values}, positions)
        _check_floats(done, positions)
        found = [one(g) for g in done.gradients(done.ones(), positions, per_lane=False)]
        grads = found[0] if isinstance(self.argnums, int) else tuple(found)
        return (one(done.results()), grads) if self.with_value else grads


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
    target   'auto', 'blas' or 'reference'.

    The result has the structure that `f` returns, its leaves stacked over the batch. Raises what the first example (in
    batch order) raises, SpmdError for what cannot be compiled.
    """
    if f is None:
        return lambda function: Vmapped(function, in_axes, out_axes, target, fp)
    return Vmapped(f, in_axes, out_axes, target, fp)


def grad(f: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Gradient:
    """The gradient of a function that returns one number, with the structure of its argument (a tuple of gradients for
    a tuple of argnums). Raises GradientError for arguments without floats."""
    _no_aux(has_aux)
    return Gradient(f, argnums, with_value=False)


def value_and_grad(f: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Gradient:
    """Like `grad`, but gives (value, gradient)."""
    _no_aux(has_aux)
    return Gradient(f, argnums, with_value=True)


def _no_aux(has_aux: bool) -> None:
    if has_aux:
        raise OptionError("has_aux=True is not available", hint="compute what else is needed in a call of its own.")


def vjp(f: Callable[..., Any], *args: Any, argnums: int | Sequence[int] | None = None) -> tuple[Any, Callable[..., Any]]:
    """(f(*args), pullback): `pullback(cotangent)` gives a tuple, one gradient for each argnum (all arguments if None),
    summed over the batch for shared arguments of a vmapped function. It may be called again."""
    with hide_compiler_frames():
        function = f if isinstance(f, Transformed) else Transformed(f)
        if isinstance(function, Gradient) or getattr(function, "gradient", None) is not None:
            raise OptionError("vjp of a gradient is not available")
        values, given = function.bind(args, {})
        names = list(values)
        mapped = isinstance(function, Vmapped)
        axes = function.axes_of(values, given) if mapped else {n: None for n in names}
        chosen = range(len(names)) if argnums is None else (argnums,) if isinstance(argnums, int) else argnums
        positions = [k % len(names) for k in chosen]
        done = function.run(values, axes, positions, keep=True)
        if argnums is not None:
            _check_floats(done, positions)
        out = done.results() if mapped else one(done.results())

    @hide_compiler_frames()
    def pullback(cotangent: Any) -> tuple[Any, ...]:
        rows = done.cotangents(cotangent if mapped else _batch_of_one(cotangent))
        found = done.gradients(rows, positions, per_lane=False)
        shared = [not done.executable.arguments[k].mapped for k in positions]
        return tuple(one(g) if single else g for g, single in zip(found, shared))

    return out, pullback


def _batch_of_one(cotangent: Any) -> Any:
    return pack([cotangent])
