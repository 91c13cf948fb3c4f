"""The machine that vector code is made for, and the way from LLVM text to code that runs.

Invariant: every call into LLVM happens under one lock, after one initialisation; code stays mapped as long as its
`Assembly` lives. What lane counts and instructions a machine has is decided here and nowhere else. Must not know
what the code computes.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from spmd.config import options

_lock = threading.RLock()
_initialised = False


@dataclass(frozen=True)
class Machine:
    """What the code generator knows of a processor.

    `vector_bytes` is the width of one vector register as used here. `fma` tells whether a fused multiply-add is one
    instruction: elementary functions then use it, so results are the same for all vector widths of one machine.
    `masked` tells whether loads and stores under a mask are single instructions for all element sizes, `scales` whether
    there is an instruction for x * 2^k that is right for every k.
    """

    triple: str
    cpu: str
    features: str
    vector_bytes: int
    fma: bool
    masked: bool
    scales: bool

    def lanes(self, itemsize: int) -> int:
        """Lanes of a vector whose widest element has `itemsize` bytes; at least one."""
        return max(1, self.vector_bytes // itemsize)

    def narrowed(self, bits: int | None) -> Machine:
        """This machine with vectors of at most `bits` bits. Raises ValueError for anything but a power of two."""
        if bits is None or bits // 8 >= self.vector_bytes:
            return self
        if bits < 8 or bits & (bits - 1):
            raise ValueError(f"a vector width is a power of two of at least 8 bits, not {bits}")
        return replace(self, vector_bytes=bits // 8)


def _initialise() -> Any:
    global _initialised
    import llvmlite.binding as llvm

    if not _initialised:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        _initialised = True
    return llvm


@lru_cache(maxsize=1)
def _host() -> Machine:
    with _lock:
        llvm = _initialise()
        triple = llvm.get_process_triple()
        cpu = llvm.get_host_cpu_name()
        found = llvm.get_host_cpu_features()
        features = found.flatten()
    architecture = triple.split("-")[0]
    if architecture in ("x86_64", "amd64", "i686"):
        wide = all(found.get(name, False) for name in ("avx512f", "avx512bw", "avx512dq", "avx512vl"))
        if wide:
            # LLVM prefers half-width vectors on some processors that have the full ones; chains are dense enough
            # to gain from the full width.
            features += ",-prefer-256-bit"
        width = 64 if wide else 32 if found.get("avx2", False) else 16
        return Machine(triple, cpu, features, width, bool(found.get("fma", False)), wide, wide)
    return Machine(triple, cpu, features, 16, architecture in ("aarch64", "arm64"), False, False)


def host(width: int | None = None) -> Machine:
    """This computer, its vectors at most `width` bits wide (default: option `width`, else as wide as they are)."""
    return _host().narrowed(options().width if width is None else width)


@dataclass
class Assembly:
    """Compiled code: the LLVM text that it was made from, its object file, and the addresses of its functions."""

    text: str
    object_code: bytes
    addresses: dict[str, int]
    engine: Any = field(repr=False)


def assemble(text: str, names: Sequence[str], machine: Machine, level: int = 2) -> Assembly:
    """Compiles LLVM text and loads it; `names` are the functions whose addresses are wanted.

    No IR pass is run: the text is already what such passes would leave, and they would double the time. `level` is
    LLVM's code generation level. Raises RuntimeError, with LLVM's message, for text that it refuses.
    """
    with _lock:
        object_code = _generate(text, machine, level)
        return _load(text, object_code, names, machine)


def assemble_object(object_code: bytes, names: Sequence[str], machine: Machine, text: str = "") -> Assembly:
    """Loads an object file that `assemble` made on this machine, without compiling."""
    with _lock:
        return _load(text, object_code, names, machine)


def _machine_of(machine: Machine, level: int) -> Any:
    llvm = _initialise()
    target = llvm.Target.from_triple(machine.triple)
    return target.create_target_machine(cpu=machine.cpu, features=machine.features, opt=level, jit=True)


def _generate(text: str, machine: Machine, level: int) -> bytes:
    target_machine = _machine_of(machine, level)
    llvm = _initialise()
    module = llvm.parse_assembly(text)
    module.triple = machine.triple
    module.data_layout = str(target_machine.target_data)
    module.verify()
    return bytes(target_machine.emit_object(module))


def _load(text: str, object_code: bytes, names: Sequence[str], machine: Machine) -> Assembly:
    llvm = _initialise()
    # An engine wants a module to start from; the code itself comes as an object file, so that what runs is always
    # what a cache on disk would hold.
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine_of(machine, 2))
    engine.add_object_file(llvm.ObjectFileRef.from_data(object_code))
    engine.finalize_object()
    addresses = {name: int(engine.get_function_address(name)) for name in names}
    missing = [name for name, address in addresses.items() if not address]
    if missing:
        raise RuntimeError(f"compiled code lacks the functions {', '.join(missing)}")
    return Assembly(text, object_code, addresses, engine)
