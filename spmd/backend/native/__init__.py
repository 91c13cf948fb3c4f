"""Loops of cheap operations as compiled scalar code, one row after the other."""

from __future__ import annotations

from spmd.backend.native.call import NativeLoop as NativeLoop
from spmd.backend.native.call import compile_loops as compile_loops
from spmd.backend.native.code import LoopWriter as LoopWriter
from spmd.backend.native.support import runs as runs
