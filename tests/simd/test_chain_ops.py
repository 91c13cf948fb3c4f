"""Every operation of a chain, for each of its dtypes and on every machine, gives what NumPy gives."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import pytest
from machines import MACHINES, grid, one_op, same, samples

from spmd.backend.simd import ChainKernel, ChainOp, ChainOperand, ChainSpec, compile_chains
from spmd.backend.simd.arithmetic import ALL
from spmd.backend.simd.operations import PLAIN

EXACT: dict[str, Callable[..., np.ndarray]] = {
    "where": np.where,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "strongmul": lambda x, y: np.where(x == 0, np.zeros((), x.dtype), x * y),
    "div": np.divide,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "neg": np.negative,
    "abs": np.absolute,
    "sign": np.sign,
    "square": np.square,
    "reciprocal": np.reciprocal,
    "copysign": np.copysign,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.rint,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "signbit": np.signbit,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
    "not": np.logical_not,
    "bitand": np.bitwise_and,
    "bitor": np.bitwise_or,
    "bitxor": np.bitwise_xor,
    "bitnot": np.invert,
    "lshift": np.left_shift,
    "rshift": np.right_shift,
    "sqrt": np.sqrt,
}
EITHER_ZERO = {"minimum": np.minimum, "maximum": np.maximum}
"""NumPy's own answer for zeros of both signs depends on the processor."""
ELEMENTARY = {
    "exp",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "tanh",
    "sigmoid",
    "softplus",
    "sin",
    "cos",
    "arctan",
    "arctan2",
    "pow",
}
CASES = [(name, dtype) for name in [*EXACT, *EITHER_ZERO] for dtype in sorted(PLAIN[name].dtypes)]


def test_the_table_of_operations_is_covered() -> None:
    assert set(EXACT) | set(EITHER_ZERO) | ELEMENTARY | {"const", "cast"} == set(PLAIN)


def _result(name: str, dtype: str) -> str:
    return "bool" if PLAIN[name].result == "bool" else dtype


@lru_cache
def _kernels(machine: str) -> dict[tuple[str, str], ChainKernel]:
    specs = [one_op(name, dtype, _result(name, dtype), PLAIN[name].arity) for name, dtype in CASES]
    return dict(zip(CASES, compile_chains(specs, machine=MACHINES[machine]), strict=True))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_an_operation_equals_numpys(name: str, dtype: str, machine: str) -> None:
    arity = PLAIN[name].arity
    axes = [samples(dtype, seed) for seed in range(arity)]
    if name == "where":
        axes = [samples("bool"), *axes[1:]]
    operands = grid(*axes)
    out = np.empty(len(operands[0]), _result(name, dtype))
    assert _kernels(machine)[name, dtype]([out], operands, len(out)) == 0
    with np.errstate(all="ignore"):
        wanted = (EXACT | EITHER_ZERO)[name](*operands)
    assert wanted.dtype == out.dtype
    equal = same(out, wanted)
    if name in EITHER_ZERO:
        equal |= out == wanted
    at = np.flatnonzero(~equal)
    assert not len(at), [([x[i] for x in operands], out[i], wanted[i]) for i in at[:5]]


@pytest.mark.parametrize("machine", MACHINES)
def test_casts_between_all_dtypes_equal_astype(machine: str) -> None:
    pairs = [(source, target) for source in sorted(ALL) for target in sorted(ALL)]
    specs = [one_op("cast", source, target, 1) for source, target in pairs]
    for (source, target), kernel in zip(pairs, compile_chains(specs, machine=MACHINES[machine]), strict=True):
        x = samples(source)
        if np.dtype(source).kind == "f" and np.dtype(target).kind in "iu":
            bounds = np.iinfo(target)
            with np.errstate(invalid="ignore"):
                x = x[(x > float(bounds.min) - 1) & (x < float(bounds.max))]
        out = np.empty(len(x), target)
        kernel([out], [x], len(x))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert same(out, x.astype(target)).all(), (source, target)


def test_casts_out_of_range_give_the_lowest_integer() -> None:
    (kernel,) = compile_chains([one_op("cast", "float64", "int64", 1)])
    x = np.array([np.nan, np.inf, -np.inf, 2.0**63, -(2.0**63), 1e300, 2.0**63 - 1024])
    out = np.empty(len(x), np.int64)
    kernel([out], [x], len(x))
    assert out.tolist() == [-(2**63)] * 6 + [2**63 - 1024]


@pytest.mark.parametrize("dtype", sorted(ALL))
def test_constants_have_the_value_of_their_dtype(dtype: str) -> None:
    for value in samples(dtype):
        spec = ChainSpec((), (ChainOp("const", (), dtype, value.item()),), ((0, "row"),))
        (kernel,) = compile_chains([spec])
        out = np.empty(5, dtype)
        kernel([out], [], 5)
        assert same(out, np.full(5, value)).all()


def test_arithmetic_is_strict_unless_contraction_is_asked_for() -> None:
    ops = (ChainOp("mul", (0, 1), "float64"), ChainOp("add", (3, 2), "float64"))
    spec = ChainSpec((ChainOperand("row", "float64"),) * 3, ops, ((4, "row"),))
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 1000))
    z = -(x * y)
    for machine in MACHINES.values():
        (strict,) = compile_chains([spec], machine=machine)
        (contracted,) = compile_chains([spec], machine=machine, contract=True)
        out = np.empty(1000)
        strict([out], [x, y, z], 1000)
        assert (out == 0).all()
        contracted([out], [x, y, z], 1000)
        assert (out != 0).any() == machine.fma


@pytest.mark.parametrize("machine", [name for name in MACHINES if name != "oldest"])
def test_elementary_functions_do_not_depend_on_the_vector_width(machine: str) -> None:
    x = np.concatenate([samples("float64"), np.random.default_rng(3).standard_normal(500) * 20])
    for name in sorted(ELEMENTARY):
        arity = PLAIN[name].arity
        spec = one_op(name, "float64", "float64", arity)
        results = []
        for chosen in ("native", machine):
            (kernel,) = compile_chains([spec], machine=MACHINES[chosen])
            out = np.empty_like(x)
            kernel([out], [x, x[::-1].copy()][:arity], len(x))
            results.append(out)
        assert same(*results).all(), name
