"""Optimiser steps: SGD with momentum, Adagrad, Adam.

Invariant: a leaf keeps its dtype and shape (float32 stays float32), leaves that are not float are never touched, and
all state is in the state that ``init`` gives and ``step`` returns. Must not know where gradients come from.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spmd.learn.leaves import is_float_leaf, iterate, map_with_path

# Elements worked on at a time: few enough for the temporaries of a step to stay in a core's cache.
BLOCK = 1 << 15


class State(NamedTuple):
    """State of an optimiser: steps taken, and its running values, each shaped as the parameters."""

    steps: int
    slots: tuple[Any, ...]


@dataclass(frozen=True)
class _Optimizer(ABC):
    """What all optimisers share: ``init`` and ``step`` over containers. A subclass updates one block of one leaf."""

    rate: float

    def _slots(self) -> tuple[float, ...]:
        """Initial value of each running value."""
        return ()

    @abstractmethod
    def _update(self, p: Any, g: Any, slots: list[Any], steps: int) -> None:
        """Updates arrays p and slots in place from the gradient g; `steps` counts this step too."""

    def init(self, params: Any) -> State:
        """State before the first step. Raises ValueError if one array stands at two places of `params`."""
        owners: dict[int, str] = {}
        for path, leaf in iterate(params):
            if isinstance(leaf, np.ndarray) and owners.setdefault(id(leaf), path) != path:
                raise ValueError(f"{owners[id(leaf)]} and {path} are one array, but steps would part them")

        def filled(value: float) -> Any:
            return map_with_path(lambda _, leaf: np.full_like(leaf, value) if is_float_leaf(leaf) else None, params)

        return State(0, tuple(filled(value) for value in self._slots()))

    def step(self, params: Any, grads: Any, state: State, *, inplace: bool = False) -> tuple[Any, State]:
        """One step down the gradient: (params, state), both new.

        `grads` has the structure of `params`; a None in it leaves that leaf (or that whole part) as it is. With
        ``inplace=True`` writeable arrays of `params` and their arrays in `state` are overwritten and returned, which
        saves memory traffic; scalars and frozen arrays cannot be overwritten and come back new. Raises ValueError for
        a gradient of another structure or shape, TypeError for a gradient of a leaf that is not float.
        """
        steps = state.steps + 1
        new_slots: dict[tuple[str, int], Any] = {}

        def one(path: str, leaf: Any, grad: Any, *slots: Any) -> Any:
            if grad is None:
                new_slots.update({(path, i): slot for i, slot in enumerate(slots)})
                return leaf
            _check(path, leaf, grad)
            fresh = not (inplace and isinstance(leaf, np.ndarray) and leaf.flags.writeable)
            p = np.array(leaf) if fresh else leaf
            held = [np.array(slot) if fresh else slot for slot in slots]
            self._by_blocks(p, np.asarray(grad), held, steps)
            new_slots.update({(path, i): slot for i, slot in enumerate(held)})
            return p if isinstance(leaf, np.ndarray) else _scalar_like(leaf, p)

        stepped = map_with_path(one, params, grads, *state.slots)
        slots = tuple(
            map_with_path(lambda path, _, i=i: new_slots.get((path, i)), params) for i in range(len(state.slots))
        )
        return stepped, State(steps, slots)

    def _by_blocks(self, p: Any, g: Any, slots: list[Any], steps: int) -> None:
        flat = [p, g, *slots]
        if p.size <= BLOCK or not all(a.flags.c_contiguous for a in flat):
            self._update(p, g, slots, steps)
            return
        p, g, *slots = (a.reshape(-1) for a in flat)
        for start in range(0, p.size, BLOCK):
            part = slice(start, start + BLOCK)
            self._update(p[part], g[part], [slot[part] for slot in slots], steps)


def _check(path: str, leaf: Any, grad: Any) -> None:
    if not is_float_leaf(leaf):
        raise TypeError(f"{path} is not float ({_kind(leaf)}), so it takes no gradient")
    if not isinstance(grad, (np.ndarray, np.generic, float, int, complex)):
        raise ValueError(f"the gradient of {path} is a {type(grad).__name__}, not an array")
    if np.shape(grad) != np.shape(leaf):
        raise ValueError(f"the gradient of {path} has shape {np.shape(grad)}, the parameter {np.shape(leaf)}")
    if np.asarray(grad).dtype.kind == "c" and np.asarray(leaf).dtype.kind != "c":
        raise TypeError(f"the gradient of {path} is complex, the parameter is not")


def _kind(leaf: Any) -> str:
    return str(leaf.dtype) if isinstance(leaf, (np.ndarray, np.generic)) else type(leaf).__name__


def _scalar_like(leaf: Any, value: Any) -> Any:
    return value[()] if isinstance(leaf, np.generic) else type(leaf)(value)


@dataclass(frozen=True)
class SGD(_Optimizer):
    """p <- p - rate * g; with momentum m: v <- m * v + g, p <- p - rate * v (Polyak, 1964)."""

    momentum: float = 0.0

    def _slots(self) -> tuple[float, ...]:
        return (0.0,) if self.momentum else ()

    def _update(self, p: Any, g: Any, slots: list[Any], steps: int) -> None:
        if slots:
            (v,) = slots
            v *= self.momentum
            v += g
            g = v
        p -= np.multiply(g, self.rate, dtype=p.dtype)


@dataclass(frozen=True)
class Adagrad(_Optimizer):
    """s <- s + g^2, p <- p - rate * g / (sqrt(s) + eps) (Duchi, Hazan, Singer, 2011); s starts at `start`."""

    eps: float = 1e-10
    start: float = 0.0

    def _slots(self) -> tuple[float, ...]:
        return (self.start,)

    def _update(self, p: Any, g: Any, slots: list[Any], steps: int) -> None:
        (s,) = slots
        s += np.abs(g) ** 2 if np.iscomplexobj(g) else g * g
        root = np.sqrt(s)
        root += self.eps
        step = np.divide(g, root, dtype=p.dtype)
        step *= self.rate
        p -= step


@dataclass(frozen=True)
class Adam(_Optimizer):
    """Adam with bias correction (Kingma, Ba, 2015, algorithm 1)."""

    rate: float = 1e-3
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8

    def _slots(self) -> tuple[float, ...]:
        return (0.0, 0.0)

    def _update(self, p: Any, g: Any, slots: list[Any], steps: int) -> None:
        m, v = slots
        m *= self.beta1
        m += np.multiply(g, 1 - self.beta1, dtype=m.dtype)
        v *= self.beta2
        v += np.multiply(np.abs(g) ** 2 if np.iscomplexobj(g) else g * g, 1 - self.beta2, dtype=v.dtype)
        root = np.sqrt(v)
        root *= 1 / math.sqrt(1 - self.beta2**steps)
        root += self.eps
        step = np.divide(m, root, dtype=p.dtype)
        step *= self.rate / (1 - self.beta1**steps)
        p -= step
