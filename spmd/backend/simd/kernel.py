"""Compiled chains: many specs become one LLVM module, each a callable kernel.

Invariant: a spec is compiled once per process, machine width and contraction; kernels may be called by several threads
at once. A call checks every array's type, shape and layout in compiled code before anything is read or
written. Must not know where chains come from.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from spmd.backend.simd import arrays
from spmd.backend.simd.chain import ChainSpec
from spmd.backend.simd.checked import Failure
from spmd.backend.simd.emit import ChainWriter
from spmd.backend.simd.entry import refusal
from spmd.backend.simd.target import Assembly, Machine, assemble, host

Array = NDArray[np.generic]
RELEASE_ABOVE = 1 << 14
"""Elements from which a call lets other Python threads run: giving the lock back costs a small kernel's time."""

_lock = threading.RLock()
_kernels: dict[tuple[ChainSpec, Machine, bool], ChainKernel] = {}

_holding = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.py_object, ctypes.c_int64, ctypes.c_int64)
_releasing = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.py_object, ctypes.c_int64, ctypes.c_int64)
_described = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)

Call = Callable[[tuple[object, ...], int, int], int]


def error_operation(error: int) -> int:
    """Number, in the spec's `ops`, of the operation that an entry of the error array blames."""
    return int(error) // 16 - 1


def error_reason(error: int) -> Failure:
    """Why it failed."""
    return Failure(int(error) % 16)


class ChainKernel:
    """One compiled chain. `address` is that of its function, see `spmd.backend.simd.emit` for the signature."""

    __slots__ = ("spec", "machine", "contract", "name", "assembly", "address", "_hold", "_release", "_narrow")

    def __init__(self, spec: ChainSpec, machine: Machine, contract: bool, name: str, assembly: Assembly) -> None:
        self.spec = spec
        self.machine = machine
        self.contract = contract
        self.name = name
        self.assembly = assembly
        self.address = assembly.addresses[name]
        self._hold: Call
        self._release: Call
        if arrays.readable():
            self._hold, self._release = _holding(self.address), _releasing(self.address)
        else:
            self._hold = self._release = self._call_described
        # F = 1 wants vectors of rows; chains of rows alone are that already
        self._narrow: ChainKernel | None = self if spec.by_rows else None

    def __call__(
        self,
        outs: Sequence[Array],
        ins: Sequence[Array],
        K: int,
        F: int = 1,
        errors: NDArray[np.int32] | None = None,
    ) -> int:
        """Runs the chain over K rows and F features, writing into `outs`; returns 0, or an error number.

        Outputs and operands are NumPy arrays as their kinds say (see `ChainOperand`; an output 'full' is [K, F] with
        contiguous rows, 'row' is [K]); an output may be the same array as an operand, but must not overlap one
        otherwise. `errors` (int32 [K]) gets, for every row, 0 or the error number of the first operation in order that
        failed in it; the result is the least of them. Results of failing rows are unspecified. Raises ValueError for an
        array that does not fit its place, TypeError for a wrong number of arrays.
        """
        if F == 1 and self._narrow is not self:
            return self._for_one_feature()(outs, ins, K, 1, errors)
        spec = self.spec
        if len(outs) != len(spec.outputs) or len(ins) != len(spec.operands):
            raise TypeError(f"takes {len(spec.outputs)} outputs and {len(spec.operands)} operands")
        call = self._hold if K * F < RELEASE_ABOVE else self._release
        result = call((np.ndarray, errors, *outs, *ins), K, F)
        if result < 0:
            self._refuse(-1 - result, outs, ins, K, F, errors)
        return result

    def emit_object(self) -> bytes:
        """The object file that holds this kernel (and those compiled with it)."""
        return self.assembly.object_code

    def _call_described(self, items: tuple[object, ...], K: int, F: int) -> int:
        table = arrays.Described(items)
        return int(_described(self.address)(table.address, K, F))

    def _for_one_feature(self) -> ChainKernel:
        if self._narrow is None:
            spec = self.spec.for_one_feature()
            (self._narrow,) = compile_chains([spec], contract=self.contract, width=8 * self.machine.vector_bytes)
        return self._narrow

    def _refuse(
        self, number: int, outs: Sequence[Array], ins: Sequence[Array], K: int, F: int, errors: Array | None
    ) -> NoReturn:
        spec = self.spec
        wanted = [(f"output {i}", kind, spec.dtypes[value]) for i, (value, kind) in enumerate(spec.outputs)]
        wanted += [(f"operand {i}", operand.kind, operand.dtype) for i, operand in enumerate(spec.operands)]
        wanted.append(("the error array", "row", "int32"))
        given = [*outs, *ins, errors]
        place, kind, dtype = wanted[number]
        raise refusal(given[number], place, kind, dtype, K, F, written=number < len(outs))


def compile_chains(
    specs: Sequence[ChainSpec], *, contract: bool = False, width: int | None = None, machine: Machine | None = None
) -> list[ChainKernel]:
    """Kernels for chains, in order; those not yet compiled are compiled together, as one module.

    `contract` allows a * b + c as one operation with one rounding. `width` (bits) narrows the vectors further than the
    option of that name; `machine` replaces this computer's description.
    """
    machine = (machine or host()).narrowed(width)
    with _lock:
        missing = [spec for spec in dict.fromkeys(specs) if (spec, machine, contract) not in _kernels]
        if missing:
            for kernel in _compile(missing, machine, contract):
                _kernels[kernel.spec, machine, contract] = kernel
        return [_kernels[spec, machine, contract] for spec in specs]


def chains_text(specs: Sequence[ChainSpec], machine: Machine, contract: bool = False) -> str:
    """The LLVM text of a module whose functions chain0, chain1, ... are the specs in order."""
    declarations: set[str] = set()
    functions: dict[str, str] = {}
    chains = []
    for number, spec in enumerate(specs):
        writer = ChainWriter(spec, machine, f"chain{number}", contract)
        declarations |= writer.b.declarations
        functions |= writer.b.functions
        chains.append(writer.text)
    return "\n".join([*sorted(declarations), *functions.values(), *chains])


def _compile(specs: Sequence[ChainSpec], machine: Machine, contract: bool) -> list[ChainKernel]:
    names = [f"chain{number}" for number in range(len(specs))]
    assembly = assemble(chains_text(specs, machine, contract), names, machine)
    return [ChainKernel(spec, machine, contract, name, assembly) for spec, name in zip(specs, names, strict=True)]
