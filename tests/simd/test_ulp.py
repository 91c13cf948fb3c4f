"""Elementary functions are within 2 units of the last place, over random bit patterns and where they are hard."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from machines import MACHINES, grid, one_op, samples

from spmd.backend.simd import compile_chains

LIMIT = 2.0
COUNT = 4000
Exact = np.longdouble

pytestmark = pytest.mark.skipif(np.finfo(Exact).nmant < 60, reason="needs long doubles that are longer than doubles")


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return np.where(x >= 0, 1 / (1 + np.exp(-x)), np.exp(x) / (1 + np.exp(x)))


def _softplus(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


UNARY: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "tanh": np.tanh,
    "sigmoid": _sigmoid,
    "softplus": _softplus,
    "sin": np.sin,
    "cos": np.cos,
    "arctan": np.arctan,
    "sqrt": np.sqrt,
}
BINARY = {"pow": np.power, "arctan2": np.arctan2}
EDGES = {
    "float64": ((709.7, 709.8), (-746.0, -744.0), (-709.0, -708.0), (0.54, 0.56), (0.68, 0.72)),
    "float32": ((88.7, 88.8), (-104.1, -103.0), (-88.0, -87.0), (0.55, 0.57), (0.68, 0.72)),
}

HARD = {
    # just below a power of two, where the spacing of floats halves
    "sigmoid": (-5.544893811724826, -2.7180674076080322),
    # multiples of pi / 2, up to where another method takes over
    **{name: tuple(k * (np.pi / 2) for k in range(-600_000, 600_001, 1499)) for name in ("sin", "cos")},
}


def _patterns(dtype: str, rng: np.random.Generator) -> np.ndarray:
    integer = np.int64 if dtype == "float64" else np.int32
    bounds = np.iinfo(integer)
    return rng.integers(bounds.min, bounds.max, COUNT, dtype=integer).view(dtype)


def _arguments(name: str, dtype: str) -> np.ndarray:
    rng = np.random.default_rng(7)
    parts = [_patterns(dtype, rng), samples(dtype), np.array(HARD.get(name, ()))]
    parts += [rng.standard_normal(COUNT) * scale for scale in (1e-3, 0.3, 1, 3, 10, 30, 100, 1e4)]
    parts += [1 + rng.standard_normal(COUNT) * scale for scale in (1e-3, 0.3)]
    parts += [rng.uniform(low, high, COUNT // 4) for low, high in EDGES[dtype]]
    smallest = np.finfo(dtype).smallest_subnormal
    parts.append(smallest * rng.integers(1, 1 << 20, COUNT // 4))
    return np.concatenate([part.astype(dtype) for part in parts])


def _pairs(dtype: str) -> list[np.ndarray]:
    rng = np.random.default_rng(8)
    x = np.abs(_patterns(dtype, rng))
    y = rng.uniform(-750, 750, COUNT) / np.log(x.astype(np.float64))
    near = 1 + rng.standard_normal(COUNT) * 1e-6
    positive = np.exp(rng.standard_normal(COUNT))
    whole = rng.integers(-20, 20, COUNT)
    tiny = np.finfo(dtype).smallest_subnormal
    pairs = [
        grid(samples(dtype), samples(dtype, 1)),
        [_patterns(dtype, rng), _patterns(dtype, rng)],
        [x, y],
        [near, rng.standard_normal(COUNT) * 1e8],
        [positive, rng.standard_normal(COUNT) * 50],
        [-positive, whole],
        [rng.standard_normal(COUNT), rng.standard_normal(COUNT)],
        [tiny * rng.integers(-5, 5, COUNT), tiny * rng.integers(-5, 5, COUNT)],
    ]
    return [np.concatenate([pair[side].astype(dtype) for pair in pairs]) for side in (0, 1)]


def errors_in_ulp(got: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Distance from exact results, in the spacing of floats there; beyond the largest float it counts as one step away.

    A NaN in one only, or a zero of the wrong sign, is infinitely far.
    """
    info = np.finfo(got.dtype)
    finite = np.isfinite(wanted)
    exponents = np.frexp(np.where(finite & (wanted != 0), wanted, 1))[1].astype(int) - 1
    exponents = np.where(wanted == 0, info.minexp, np.clip(exponents, info.minexp, info.maxexp - 1))
    spacing = np.ldexp(Exact(1), exponents - info.nmant)
    end = np.ldexp(Exact(1), info.maxexp)
    bounded = [np.clip(values.astype(Exact), -end, end) for values in (got, wanted)]
    distance = np.abs(bounded[0] - bounded[1]) / spacing
    unknown = np.isnan(got) | np.isnan(wanted)
    distance = np.where(unknown, np.where(np.isnan(got) & np.isnan(wanted), 0, np.inf), distance)
    wrong_zero = (got == 0) & (wanted == 0) & (np.signbit(got) != np.signbit(wanted))
    return np.where(wrong_zero, np.inf, distance).astype(float)


@pytest.mark.parametrize("machine", ["native", "unmasked", "avx2", "oldest"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_an_elementary_function_is_within_two_ulp(name: str, dtype: str, machine: str) -> None:
    if machine not in MACHINES:
        pytest.skip("this processor cannot run that machine's code")
    with np.errstate(all="ignore"):
        operands = _pairs(dtype) if name in BINARY else [_arguments(name, dtype)]
        (kernel,) = compile_chains([one_op(name, dtype, dtype, len(operands))], machine=MACHINES[machine])
        out = np.empty_like(operands[0])
        kernel([out], operands, len(out))
        wanted = (UNARY | BINARY)[name](*[x.astype(Exact) for x in operands])
        error = errors_in_ulp(out, wanted)
    worst = int(np.argmax(error))
    assert error[worst] <= LIMIT, ([x[worst] for x in operands], out[worst], wanted[worst])
