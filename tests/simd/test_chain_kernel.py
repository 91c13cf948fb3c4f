"""Specs that are refused, arrays that do not fit, kernels that are kept, called from threads and reloaded."""

from __future__ import annotations

import subprocess
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest
from machines import MACHINES, one_op

from spmd.backend.simd import ChainKernel, ChainOp, ChainOperand, ChainSpec, arrays, compile_chains
from spmd.backend.simd import kernel as kernel_module
from spmd.backend.simd.target import assemble_object, host
from spmd.config import configure

F64 = "float64"
ADD = ChainSpec((ChainOperand("full", F64), ChainOperand("row", F64)), (ChainOp("add", (0, 1), F64),), ((2, "full"),))


def test_importing_the_engine_loads_no_llvm() -> None:
    code = "import sys, spmd.backend.simd; sys.exit(any(name in sys.modules for name in ('llvmlite', 'numba')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("op", "message"),
    [
        (ChainOp("gamma", (0,), F64), "no such operation"),
        (ChainOp("add", (0,), F64), "takes 2 arguments, not 1"),
        (ChainOp("add", (0, 3), F64), "results of earlier operations"),
        (ChainOp("add", (0, 2), F64), "one dtype, not float64, int64"),
        (ChainOp("exp", (2,), "int64"), "not supported for int64"),
        (ChainOp("add", (0, 1), "float32"), "the result is float64, not float32"),
        (ChainOp("lt", (0, 1), F64), "the result is bool"),
        (ChainOp("where", (0, 0, 1), F64), "the condition must be bool"),
        (ChainOp("const", (), F64), "a value is for 'const'"),
        (ChainOp("cast", (0,), "complex128"), "the result is"),
        (ChainOp("add!", (0, 1), F64), "not supported for float64"),
    ],
)
def test_a_malformed_operation_is_refused(op: ChainOp, message: str) -> None:
    operands = (ChainOperand("full", F64), ChainOperand("row", F64), ChainOperand("one", "int64"))
    with pytest.raises(ValueError, match=message):
        ChainSpec(operands, (op,), ((3, "full"),))


def test_malformed_operands_and_outputs_are_refused() -> None:
    with pytest.raises(ValueError, match="an operand is full, row, col, one"):
        ChainOperand("column", F64)
    with pytest.raises(ValueError, match="no operand can have the dtype 'float16'"):
        ChainOperand("full", "float16")
    with pytest.raises(ValueError, match="cannot be a 'row' output"):
        replace(ADD, outputs=((2, "row"),))
    with pytest.raises(ValueError, match="no value 3"):
        replace(ADD, outputs=((3, "full"),))


def test_constants_that_print_differently_make_different_chains() -> None:
    values = (0.0, -0.0, 1.0, float("nan"))
    assert len({ChainOp("const", (), F64, value) for value in values}) == 4
    assert ChainOp("const", (), F64, float("nan")) == ChainOp("const", (), F64, float("nan"))


X, ROW, OUT = np.ones((3, 4)), np.ones(3), np.zeros((3, 4))
FROZEN = np.zeros((3, 4))
FROZEN.flags.writeable = False


@pytest.mark.parametrize(
    ("out", "x", "row"),
    [
        (OUT, X.astype(np.float32), ROW),
        (OUT, X.astype(">f8"), ROW),
        (OUT, X[:2], ROW),
        (OUT, X[:, :3], ROW),
        (OUT, np.ones((3, 8))[:, ::2], ROW),
        (OUT, np.ones((4, 3)).T, ROW),
        (OUT, X, ROW[:2]),
        (OUT, X, np.ones((3, 2))),
        (OUT, X, np.float64(1)),
        (OUT, X, [1.0, 1.0, 1.0]),
        (OUT, X, None),
        (FROZEN, X, ROW),
        (np.zeros((3, 4), np.int64), X, ROW),
    ],
)
@pytest.mark.parametrize("readable", [True, False])
def test_arrays_that_do_not_fit_are_refused_untouched(
    out: np.ndarray, x: np.ndarray, row: np.ndarray, readable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrays, "readable", lambda: readable)
    (kernel,) = compile_chains([ADD])
    kernel = ChainKernel(kernel.spec, kernel.machine, False, kernel.name, kernel.assembly)
    with pytest.raises(ValueError, match="must be a "):
        kernel([out], [x, row], 3, 4)
    assert not out.any()


def test_the_first_array_that_does_not_fit_is_named() -> None:
    (kernel,) = compile_chains([ADD])
    with pytest.raises(ValueError, match=r"operand 0 must be a float64 array \[3, 4\].* it is float64 \[2, 4\]"):
        kernel([OUT], [X[:2], ROW[:2]], 3, 4)


def test_a_wrong_number_of_arrays_is_refused() -> None:
    (kernel,) = compile_chains([ADD])
    with pytest.raises(TypeError, match="1 outputs and 2 operands"):
        kernel([OUT], [X], 3, 4)


def test_a_bad_error_array_is_refused() -> None:
    (kernel,) = compile_chains([one_op("neg!", "int64", "int64", 1)])
    x = np.ones(3, np.int64)
    with pytest.raises(ValueError, match="the error array must be a int32 array"):
        kernel([x.copy()], [x], 3, errors=np.zeros(2, np.int32))


def test_arrays_are_read_as_python_sees_them() -> None:
    assert arrays.readable() == (sys.implementation.name == "cpython")


def test_processes_with_other_object_layouts_get_the_same_results(monkeypatch: pytest.MonkeyPatch) -> None:
    (kernel,) = compile_chains([_checked()])
    monkeypatch.setattr(arrays, "readable", lambda: False)
    slow = ChainKernel(kernel.spec, kernel.machine, False, kernel.name, kernel.assembly)
    x = np.arange(20).reshape(4, 5)[::-1]
    for errors in (None, np.empty(4, np.int32)):
        out = np.empty((4, 5), np.int64)
        status = slow([out], [x, np.array(7)], 4, 5, errors)
        assert (status != 0) and (errors is None or errors.tolist() == [0, 0, 0, status])
        np.testing.assert_array_equal(out[:3], 7 // x[:3])


def _checked() -> ChainSpec:
    operands = (ChainOperand("full", "int64"), ChainOperand("one", "int64"))
    return ChainSpec(operands, (ChainOp("floordiv!", (1, 0), "int64"),), ((2, "full"),))


def test_a_chain_is_compiled_once_and_together_with_others(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    real = kernel_module.assemble
    monkeypatch.setattr(kernel_module, "assemble", lambda *args: calls.append(args[1]) or real(*args))
    specs = [
        ChainSpec((ChainOperand("row", F64),), (ChainOp("const", (), F64, 0.1 + i),), ((1, "row"),)) for i in range(3)
    ]
    first = compile_chains([specs[0], specs[1], specs[0]])
    assert first[0] is first[2] and calls == [["chain0", "chain1"]]
    second = compile_chains(specs)
    assert second[:2] == first[:2] and calls[1:] == [["chain0"]]


def test_object_code_can_be_loaded_again() -> None:
    (kernel,) = compile_chains([ADD])
    assembly = assemble_object(kernel.emit_object(), [kernel.name], host())
    again = ChainKernel(ADD, kernel.machine, False, kernel.name, assembly)
    out = np.empty((3, 4))
    again([out], [X, ROW], 3, 4)
    assert (out == 2).all() and again.address != kernel.address


def test_the_width_option_narrows_vectors() -> None:
    with configure(width=128):
        (kernel,) = compile_chains([ADD])
    assert kernel.machine.vector_bytes == 16
    assert "<2 x double>" in kernel.assembly.text and "<4 x double>" not in kernel.assembly.text
    with pytest.raises(ValueError, match="power of two"):
        compile_chains([ADD], width=100)


def test_kernels_run_and_compile_in_several_threads_at_once() -> None:
    failures: list[str] = []
    start = threading.Barrier(4)

    def work(number: int) -> None:
        rng = np.random.default_rng(number)
        x, row = rng.standard_normal((300, 70)), rng.standard_normal(300)
        out = np.empty_like(x)
        start.wait()
        for i in range(5):
            ops = (ChainOp("const", (), F64, 1000.0 + i), ChainOp("add", (0, 1), F64), ChainOp("mul", (3, 2), F64))
            spec = ChainSpec(ADD.operands, ops, ((4, "full"),))
            (kernel,) = compile_chains([spec])
            for rows in (10, 300):
                kernel([out[:rows]], [x[:rows], row[:rows]], rows, 70)
                if not np.array_equal(out[:rows], (x[:rows] + row[:rows, None]) * (1000.0 + i)):
                    failures.append(f"thread {number}, chain {i}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_every_machine_compiles_for_itself() -> None:
    kernels = [compile_chains([ADD], machine=machine)[0] for machine in MACHINES.values()]
    assert len({kernel.address for kernel in kernels}) == len(kernels)
