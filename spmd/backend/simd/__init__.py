"""The SIMD engine: elementwise chains, and the row kernels around them, as vector code made with llvmlite.

`compile_chains` turns `ChainSpec`s into kernels; `SUPPORTED` says what a chain can hold. Invariant: importing this
package imports no llvmlite; the first compilation does. Must not know the IR or the schedule.
"""

from spmd.backend.simd.chain import ChainOp, ChainOperand, ChainSpec
from spmd.backend.simd.checked import Failure
from spmd.backend.simd.kernel import ChainKernel, compile_chains, error_operation, error_reason
from spmd.backend.simd.operations import SUPPORTED

__all__ = [
    "SUPPORTED",
    "ChainKernel",
    "ChainOp",
    "ChainOperand",
    "ChainSpec",
    "Failure",
    "compile_chains",
    "error_operation",
    "error_reason",
]
