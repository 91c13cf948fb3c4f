"""Machines that the tests of vector code compile for: this one, and poorer ones that its processor can also run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from spmd.backend.simd import ChainOp, ChainOperand, ChainSpec
from spmd.backend.simd.target import Machine, host


def machines() -> dict[str, Machine]:
    """By name: 'native', narrower ones, one without masked instructions, and the oldest of the architecture."""
    native = host()
    found = {"native": native}
    for width in (256, 128):
        if native.vector_bytes * 8 > width:
            found[f"narrow{width}"] = native.narrowed(width)
    if native.masked:
        found["unmasked"] = replace(native, masked=False)
    if native.triple.startswith("x86_64"):
        oldest = replace(native, cpu="x86-64", features="", vector_bytes=16, fma=False, masked=False, scales=False)
        found["oldest"] = oldest
        if native.vector_bytes >= 32 and native.fma:
            found["avx2"] = replace(oldest, cpu="haswell", vector_bytes=32, fma=True)
    return found


MACHINES = machines()


def one_op(name: str, operand: str, result: str, arity: int, kind: str = "row") -> ChainSpec:
    """A chain of one operation whose operands and output are of one kind ('where' gets its mask)."""
    operands = [ChainOperand(kind, operand)] * arity
    if name == "where":
        operands[0] = ChainOperand(kind, "bool")
    op = ChainOp(name, tuple(range(arity)), result)
    return ChainSpec(tuple(operands), (op,), ((arity, kind),))


FLOAT_SPECIALS = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, -7.0, 88.0, 1e-8, np.inf, -np.inf, np.nan)


def samples(dtype: str, seed: int = 0) -> np.ndarray:
    """Special values of a dtype and some random ones."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype)
    if kind == np.bool_:
        return np.array([False, True])
    if kind.kind == "f":
        info = np.finfo(kind)
        edges = [info.max, info.min, info.tiny, -info.tiny, info.smallest_subnormal, -info.smallest_subnormal]
        drawn = rng.standard_normal(7) * np.array([1e-3, 0.1, 1, 3, 10, 100, 1e4])
        return np.concatenate([np.array(FLOAT_SPECIALS, kind), np.array(edges, kind), drawn.astype(kind)])
    bounds = np.iinfo(kind)
    middle = [0, 1, 2, 3, 7, 100] + ([-1, -2, -3, -7, -100] if kind.kind == "i" else [])
    edges = [bounds.min, bounds.min + 1, bounds.max, bounds.max - 1]
    return np.concatenate([np.array(middle + edges, kind), rng.integers(bounds.min, bounds.max, 6, dtype=kind)])


def grid(*axes: np.ndarray) -> list[np.ndarray]:
    """All combinations, flat."""
    return [np.ascontiguousarray(axis.ravel()) for axis in np.meshgrid(*axes, indexing="ij")]


def same(got: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Where two arrays hold the same values: NaN equals NaN, and zeros have signs."""
    if got.dtype.kind != "f":
        return got == wanted
    zeros = (got == 0) & (wanted == 0)
    return (np.isnan(got) & np.isnan(wanted)) | ((got == wanted) & (~zeros | (np.signbit(got) == np.signbit(wanted))))
