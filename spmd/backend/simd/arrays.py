"""How compiled code receives arrays: it reads NumPy's array objects itself, out of one Python tuple.

Asking an array for its address costs Python about a microsecond, ten arrays as much as a small kernel; compiled code
finds address, shape and strides in the object within nanoseconds. Invariant: code touches an array's elements only
after the text written here has seen that it is an array of the expected dtype, byte order, shape and layout, writeable
where it is written. Where objects are laid out otherwise than in the usual 64-bit builds of CPython and NumPy
(`readable` tells, by trying), `Described` makes look-alikes for the same code to read. Must not know chains.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

TYPE, DATA, NDIM, DIMENSIONS, STRIDES, DESCRIPTOR, FLAGS = 8, 16, 24, 32, 40, 56, 64
DESCRIPTOR_ORDER, DESCRIPTOR_NUMBER = 26, 28
ITEMS = tuple.__basicsize__
OBJECT_WORDS = FLAGS // 8 + 1
WRITEABLE = 0x400
FOREIGN_ORDER = ord(">")
NOT_FITTING = -(1 << 63)

ROW_STRIDE = f"""
define internal i64 @row_stride(
  ptr %object, ptr %type, i32 %number, i64 %size, i64 %lead, i64 %inner, i32 %flags) noinline {{
entry:
  %type.at = getelementptr i8, ptr %object, i64 {TYPE}
  %type.is = load ptr, ptr %type.at
  %is.array = icmp eq ptr %type.is, %type
  br i1 %is.array, label %array, label %refuse
array:
  %descriptor.at = getelementptr i8, ptr %object, i64 {DESCRIPTOR}
  %descriptor = load ptr, ptr %descriptor.at
  %order.at = getelementptr i8, ptr %descriptor, i64 {DESCRIPTOR_ORDER}
  %order = load i8, ptr %order.at
  %native = icmp ne i8 %order, {FOREIGN_ORDER}
  %number.at = getelementptr i8, ptr %descriptor, i64 {DESCRIPTOR_NUMBER}
  %number.is = load i32, ptr %number.at
  %same.number = icmp eq i32 %number.is, %number
  %flags.at = getelementptr i8, ptr %object, i64 {FLAGS}
  %flags.are = load i32, ptr %flags.at
  %flags.wanted = and i32 %flags.are, %flags
  %same.flags = icmp eq i32 %flags.wanted, %flags
  %ok.1 = and i1 %native, %same.number
  %ok.2 = and i1 %ok.1, %same.flags
  %ndim.at = getelementptr i8, ptr %object, i64 {NDIM}
  %ndim.32 = load i32, ptr %ndim.at
  %ndim = sext i32 %ndim.32 to i64
  %dimensions.at = getelementptr i8, ptr %object, i64 {DIMENSIONS}
  %dimensions = load ptr, ptr %dimensions.at
  %strides.at = getelementptr i8, ptr %object, i64 {STRIDES}
  %strides = load ptr, ptr %strides.at
  br i1 %ok.2, label %shape, label %refuse
shape:
  %no.lead = icmp slt i64 %lead, 0
  br i1 %no.lead, label %walk, label %leading
leading:
  %has.lead = icmp sgt i64 %ndim, 0
  br i1 %has.lead, label %rows, label %refuse
rows:
  %lead.is = load i64, ptr %dimensions
  %stride.is = load i64, ptr %strides
  %same.lead = icmp eq i64 %lead.is, %lead
  br i1 %same.lead, label %walk, label %refuse
walk:
  %first = phi i64 [ 0, %shape ], [ 1, %rows ]
  %stride = phi i64 [ 0, %shape ], [ %stride.is, %rows ]
  %wanted.total = mul i64 %inner, %size
  br label %axis
axis:
  %left = phi i64 [ %ndim, %walk ], [ %index, %next ]
  %expected = phi i64 [ %size, %walk ], [ %grown, %next ]
  %more = icmp sgt i64 %left, %first
  br i1 %more, label %measure, label %total
measure:
  %index = sub i64 %left, 1
  %dimension.at = getelementptr i64, ptr %dimensions, i64 %index
  %dimension = load i64, ptr %dimension.at
  %distance.at = getelementptr i64, ptr %strides, i64 %index
  %distance = load i64, ptr %distance.at
  %adjacent = icmp eq i64 %distance, %expected
  %single = icmp eq i64 %dimension, 1
  %no.columns = icmp eq i64 %inner, 0
  %no.rows = icmp eq i64 %lead, 0
  %empty = or i1 %no.columns, %no.rows
  %fits.1 = or i1 %adjacent, %single
  %fits = or i1 %fits.1, %empty
  br i1 %fits, label %next, label %refuse
next:
  %grown = mul i64 %expected, %dimension
  br label %axis
total:
  %same.total = icmp eq i64 %expected, %wanted.total
  br i1 %same.total, label %accept, label %refuse
accept:
  ret i64 %stride
refuse:
  ret i64 {NOT_FITTING}
}}
"""
"""Bytes from row to row of an array, 0 if it has no rows (lead < 0), or `NOT_FITTING`.

Fits: a NumPy array proper, of the type number, in native byte order, with the flags; its first axis `lead` long, the
others contiguous with `inner` elements of `size` bytes in all. The strides of an array without elements mean nothing.
"""


def type_number(dtype: str) -> int:
    return int(np.dtype(dtype).num)


@lru_cache(maxsize=1)
def readable() -> bool:
    """Whether array objects of this process are laid out as the compiled code expects; found by reading some."""
    if struct.calcsize("P") != 8 or sys.byteorder != "little" or sys.implementation.name != "cpython":
        return False
    if not getattr(sys, "_is_gil_enabled", lambda: True)() or object.__basicsize__ != 16:
        return False
    frozen = np.zeros(3, np.int32)
    frozen.flags.writeable = False
    samples = (np.arange(12.0).reshape(3, 4)[:, ::2], frozen, np.array(1.5, np.float32), np.zeros((2, 5, 0), np.bool_))
    read = ctypes.c_int64.from_address
    if [read(id(samples) + ITEMS + 8 * i).value for i in range(len(samples))] != [id(array) for array in samples]:
        return False
    return all(_as_read(id(array)) == _as_known(array) for array in samples)


def _as_known(array: NDArray[np.generic]) -> tuple[object, ...]:
    where = array.__array_interface__["data"][0]
    flags = WRITEABLE if array.flags.writeable else 0
    return id(np.ndarray), where, array.shape, array.strides, flags, array.dtype.num, array.dtype.byteorder


def _as_read(address: int) -> tuple[object, ...]:
    word = ctypes.c_int64.from_address
    half = ctypes.c_int32.from_address
    ndim = half(address + NDIM).value
    if not 0 <= ndim <= 8:
        return ()
    shape, strides = word(address + DIMENSIONS).value, word(address + STRIDES).value
    descriptor = word(address + DESCRIPTOR).value
    return (
        word(address + TYPE).value,
        word(address + DATA).value,
        tuple(word(shape + 8 * i).value for i in range(ndim)),
        tuple(word(strides + 8 * i).value for i in range(ndim)),
        half(address + FLAGS).value & WRITEABLE,
        half(descriptor + DESCRIPTOR_NUMBER).value,
        chr(ctypes.c_uint8.from_address(descriptor + DESCRIPTOR_ORDER).value),
    )


class Described:
    """A tuple of arrays as compiled code wants to read it, made by hand. `address` is valid while this object lives."""

    def __init__(self, items: Sequence[object]) -> None:
        self._kept: list[object] = list(items)
        table = np.zeros(ITEMS // 8 + len(items), np.int64)
        for position, item in enumerate(items):
            exact = type(item) is np.ndarray
            table[ITEMS // 8 + position] = self._array(item) if exact else self._plain(id(item))  # type: ignore[arg-type]
        # the first item stands for the type of arrays and is compared, not read
        table[ITEMS // 8] = id(np.ndarray)
        self.address = self._keep(table)

    def _keep(self, words: NDArray[np.int64]) -> int:
        self._kept.append(words)
        return int(words.ctypes.data)

    def _plain(self, identity: int) -> int:
        return self._keep(np.zeros(OBJECT_WORDS, np.int64))

    def _array(self, array: NDArray[np.generic]) -> int:
        descriptor = np.zeros(4, np.int64)
        raw = descriptor.view(np.uint8)
        raw[DESCRIPTOR_ORDER] = ord("=") if array.dtype.isnative else FOREIGN_ORDER
        raw[DESCRIPTOR_NUMBER : DESCRIPTOR_NUMBER + 4].view(np.int32)[0] = array.dtype.num
        words = np.zeros(OBJECT_WORDS, np.int64)
        words[TYPE // 8] = id(np.ndarray)
        words[DATA // 8] = array.ctypes.data
        words[NDIM // 8] = array.ndim
        words[DIMENSIONS // 8] = self._keep(np.array((*array.shape, 0), np.int64))
        words[STRIDES // 8] = self._keep(np.array((*array.strides, 0), np.int64))
        words[DESCRIPTOR // 8] = self._keep(descriptor)
        words[FLAGS // 8] = WRITEABLE if array.flags.writeable else 0
        return self._keep(words)
