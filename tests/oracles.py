"""What a batch must give: the plain Python loop for values, finite differences of it for gradients.

The invariant: oracles run the original function on fresh examples and never touch the compiler. Trees of values are
walked by key path; an object that is reached twice counts once, as it does for the one who holds it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from program import Program
from tolerance import close

sys.setrecursionlimit(max(sys.getrecursionlimit(), 4000))

STEP = 1e-3
Path = tuple[str, ...]


# ------------------------------------------------------------------------------------------ trees of values
def children(value: Any) -> list[tuple[str, Any]] | None:
    """Named parts of a container or object; None for a leaf."""
    if isinstance(value, dict):
        return [(f"[{k!r}]", v) for k, v in value.items()]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return [(f".{k}", getattr(value, k)) for k in value._fields]
    if isinstance(value, (tuple, list)):
        return [(f"[{k}]", v) for k, v in enumerate(value)]
    if value is None or isinstance(value, (int, float, complex, str, np.generic, np.ndarray)):
        return None
    names = getattr(value, "__slots__", None) or vars(value)
    return [(f".{k}", getattr(value, k)) for k in names]


def is_float(value: Any) -> bool:
    return isinstance(value, (float, np.floating)) or (isinstance(value, np.ndarray) and value.dtype.kind == "f")


def leaves(value: Any) -> Iterator[tuple[str, Any]]:
    """(path, leaf) in order; each object once."""
    seen: set[int] = set()
    stack: list[tuple[str, Any]] = [("", value)]
    while stack:
        path, part = stack.pop()
        parts = children(part)
        if parts is None:
            yield path, part
        elif id(part) not in seen or isinstance(part, tuple):
            seen.add(id(part))
            stack.extend((path + key, v) for key, v in reversed(parts))


def paired(argument: Any, gradient: Any) -> Iterator[tuple[str, Any, Any]]:
    """(path, float leaf, its gradient) over an argument and its gradient, which has the argument's structure."""
    seen: set[int] = set()
    stack: list[tuple[str, Any, Any]] = [("", argument, gradient)]
    while stack:
        path, part, grad = stack.pop()
        parts = children(part)
        if parts is None:
            if is_float(part):
                yield path, part, grad
            elif part is not None:
                assert grad is None, f"{path}: {grad!r} as the gradient of {part!r}"
        elif id(part) not in seen or isinstance(part, tuple):
            seen.add(id(part))
            grads = children(grad)
            assert grads is not None, f"{path}: {grad!r} as the gradient of a {type(part).__name__}"
            assert [k for k, _ in parts] == [k for k, _ in grads], f"{path}: {grads} for {parts}"
            stack.extend((path + k, v, g) for (k, v), (_, g) in reversed(list(zip(parts, grads, strict=True))))


def float_leaves(value: Any) -> list[np.ndarray]:
    return [np.asarray(leaf) for _, leaf in leaves(value) if is_float(leaf)]


def shift(value: Any, direction: Iterator[np.ndarray], by: float) -> Any:
    """A copy of a value, its float leaves moved by `by` along a direction (one array per leaf, in order)."""
    return _shifted(value, direction, by, {})


def _shifted(value: Any, direction: Iterator[np.ndarray], by: float, made: dict[int, Any], widen: bool = False) -> Any:
    if is_float(value):
        moved = np.asarray(value) + by * next(direction)
        if isinstance(value, float) and not isinstance(value, np.floating):
            return float(moved)
        if widen:
            return moved.astype(np.float64)[()]
        return moved.astype(value.dtype) if isinstance(value, np.ndarray) else type(value)(moved)
    parts = children(value)
    if parts is None:
        return value
    if isinstance(value, tuple):
        inner = [_shifted(v, direction, by, made, widen) for _, v in parts]
        return type(value)(*inner) if hasattr(value, "_fields") else tuple(inner)
    if id(value) in made:
        return made[id(value)]
    if isinstance(value, dict):
        made[id(value)] = copy = {}
        copy.update((k, _shifted(v, direction, by, made, widen)) for k, v in value.items())
        return copy
    if isinstance(value, list):
        made[id(value)] = several = []
        several.extend(_shifted(v, direction, by, made, widen) for v in value)
        return several
    made[id(value)] = other = object.__new__(type(value))
    for key, v in parts:
        object.__setattr__(other, key[1:], _shifted(v, direction, by, made, widen))
    return other


# ------------------------------------------------------------------------------------------------- values
@dataclass
class Outcome:
    """What the loop gives: the values, or the exception of the first example that raises."""

    values: list[Any]
    error: BaseException | None = None
    index: int = -1


def loop(fn: Callable[..., Any], shared: tuple[Any, ...], examples: list[tuple[Any, ...]]) -> Outcome:
    """The plain Python loop. A Python int outside of 64 bits counts as the documented OverflowError."""
    values = []
    with np.errstate(all="ignore"):
        for k, own in enumerate(examples):
            try:
                value = fn(*untouched((*shared, *own)))
                if any(isinstance(v, int) and not -(1 << 63) <= v < 1 << 63 for _, v in leaves(value)):
                    raise OverflowError("Python int outside of 64 bits")
                values.append(value)
            except Exception as error:
                return Outcome(values, error, k)
    return Outcome(values)


def run_loop(program: Program, seed: int, count: int) -> Outcome:
    return loop(program.fn, program.shared_arguments(), program.examples(seed, count))


def differences(got: list[Any], want: list[Any], rtol: float | None = None) -> list[str]:
    """Where unpacked results differ from the loop's, in words; empty if they agree.

    A leaf has the dtype that the loop gives; where examples differ in kind, the one that NumPy joins them to.
    """
    if len(got) != len(want):
        return [f"{len(got)} examples instead of {len(want)}"]
    found: list[str] = []
    joined: dict[str, np.dtype] = {}
    for value in want:
        for path, leaf in leaves(value):
            if leaf is not None and not isinstance(leaf, str):
                dtype = np.asarray(leaf).dtype
                joined[path] = np.promote_types(joined[path], dtype) if path in joined else dtype
    for k, (g, w) in enumerate(zip(got, want, strict=True)):
        g_leaves, w_leaves = list(leaves(g)), list(leaves(w))
        if [p for p, _ in g_leaves] != [p for p, _ in w_leaves]:
            found.append(f"example {k}: structure {g!r} instead of {w!r}")
            continue
        for (path, a), (_, b) in zip(g_leaves, w_leaves, strict=True):
            if b is None or isinstance(b, str):
                if a != b:
                    found.append(f"example {k}{path}: {a!r} instead of {b!r}")
            elif a is None or not close(a, b, rtol):
                found.append(f"example {k}{path}: {a!r} instead of {b!r}")
            elif np.asarray(a).dtype != joined[path]:
                found.append(f"example {k}{path}: dtype {np.asarray(a).dtype} instead of {joined[path]}")
    return found


# ---------------------------------------------------------------------------------------------- gradients
def weighted(value: Any, weights: Any) -> float:
    """The number that cotangents `weights` make of a result."""
    both = zip(leaves(value), leaves(weights), strict=True)
    return float(sum(np.sum(np.asarray(a) * np.asarray(w)) for (_, a), (_, w) in both if is_float(a)))


def cotangent_of(value: Any, rng: np.random.Generator) -> Any:
    """A random cotangent with the structure of a result; zeros for what is no float."""
    if isinstance(value, dict):
        return {k: cotangent_of(v, rng) for k, v in value.items()}
    if isinstance(value, tuple):
        made = [cotangent_of(v, rng) for v in value]
        return type(value)(*made) if hasattr(value, "_fields") else tuple(made)
    if isinstance(value, list):
        return [cotangent_of(v, rng) for v in value]
    array = np.asarray(value)
    drawn = rng.normal(size=array.shape).astype(array.dtype) if is_float(value) else np.zeros(array.shape, array.dtype)
    return drawn if array.ndim else drawn[()]


def derivative(fn: Callable[[float], float]) -> float | None:
    """d fn / dt at 0 by central differences, extrapolated; None where they do not settle (a kink, a NaN, rounding)."""
    steps = (STEP, STEP / 2, STEP / 4)
    with np.errstate(all="ignore"):
        try:
            values = [(fn(h), fn(-h)) for h in steps]
        except (ArithmeticError, ValueError, IndexError):
            return None
    coarse, middle, fine = ((up - down) / (2.0 * h) for (up, down), h in zip(values, steps, strict=True))
    first, second = (4 * middle - coarse) / 3, (4 * fine - middle) / 3
    rounding = np.finfo(np.float64).eps * max(map(abs, values[-1])) / steps[-1]
    if not np.isfinite(second) or max(abs(first - second), 4 * rounding) > 2e-7 * (1.0 + abs(second)):
        return None
    return second


def untouched(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments for a program that may write into its arrays, lists and dictionaries. Objects are not written to."""
    return tuple(_untouched(a, {}) for a in args)


def _untouched(value: Any, made: dict[int, Any]) -> Any:
    if id(value) in made:
        return made[id(value)]
    if isinstance(value, np.ndarray):
        made[id(value)] = value.copy()
    elif isinstance(value, list):
        made[id(value)] = several = []
        several.extend(_untouched(v, made) for v in value)
    elif isinstance(value, dict):
        made[id(value)] = {k: _untouched(v, made) for k, v in value.items()}
    else:
        return value
    return made[id(value)]


def directional(
    loss: Callable[..., float], args: tuple[Any, ...], position: int, rng: np.random.Generator
) -> tuple[list[np.ndarray], float | None]:
    """A random direction for the float leaves of one argument, and the derivative of `loss(*args)` along it."""
    direction = [rng.normal(size=leaf.shape) for leaf in float_leaves(args[position])]

    def moved(t: float) -> float:
        argument = shift(args[position], iter(direction), t)
        return loss(*untouched((*args[:position], argument, *args[position + 1 :])))

    return direction, derivative(moved)


def widened(value: Any) -> Any:
    """A copy with float32 leaves in double precision."""
    zeros = (np.zeros(leaf.shape) for leaf in float_leaves(value))
    return _shifted(value, zeros, 0.0, {}, widen=True)


def along(argument: Any, gradient: Any, direction: list[np.ndarray], strict: bool = True) -> float:
    """The derivative along a direction that a gradient claims. `strict`: the gradient has its argument's dtype."""
    total, k = 0.0, 0
    for path, leaf, grad in paired(argument, gradient):
        assert grad is not None, f"{path}: no gradient of a float"
        assert np.shape(grad) == np.shape(leaf), f"{path}: shape {np.shape(grad)} of the gradient of {np.shape(leaf)}"
        assert not strict or np.asarray(grad).dtype == np.asarray(leaf).dtype, f"{path}: dtype of the gradient"
        total += float(np.sum(np.asarray(grad, dtype=np.float64) * direction[k]))
        k += 1
    assert k == len(direction)
    return total
