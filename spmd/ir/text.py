"""Names, types and attribute values as they stand in IR text.

The invariant: what `printer` writes with these functions, `parser` reads back to an equal value, bit for bit. It does
not know the shape of ops or modules.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from spmd.ir.core import Value
from spmd.ir.types import Num, Ref, Seq, Type

NAME = re.compile(r"[A-Za-z_@][\w.@$]*")
SHORT_ARRAY = 16


def quoted(name: str) -> str:
    """A name as it stands in text: bare where that is unambiguous, else as a string literal."""
    return name if NAME.fullmatch(name) else string_text(name)


def string_text(text: str) -> str:
    """A string literal on one line with double quotes."""
    return json.dumps(text, ensure_ascii=False)


def type_text(type_: Type) -> str:
    """A type; only table names that are no plain words differ from `str`."""
    if isinstance(type_, Ref):
        return f"ref<{quoted(type_.table)}{'?' if type_.nullable else ''}>"
    if isinstance(type_, Seq):
        return f"seq<{quoted(type_.table)}>"
    if isinstance(type_, Num) and type_.python and type_.dtype not in ("int64", "float64", "bool", "complex128"):
        raise ValueError(f"Python has no number of dtype {type_.dtype}")
    return str(type_)


def literal(value: Any) -> str:
    """An attribute value as a Python expression of literals and of the names `array`, `scalar`, `cls`, `nan`, `inf`."""
    if isinstance(value, str):
        return string_text(value)
    if value is None or type(value) in (bool, int, bytes):
        return repr(value)
    if type(value) is float:
        return _float(value)
    if type(value) is complex:
        return f"complex({_float(value.real)}, {_float(value.imag)})"
    if isinstance(value, (tuple, list)):
        return _sequence(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{literal(k)}: {literal(v)}" for k, v in value.items()) + "}"
    if isinstance(value, slice):
        return f"slice({literal(value.start)}, {literal(value.stop)}, {literal(value.step)})"
    if isinstance(value, (Num, Ref, Seq)):
        return f"type({string_text(type_text(value))})"
    if isinstance(value, (np.ndarray, np.generic)):
        return array_text(value)
    if isinstance(value, type):
        return f"cls({string_text(value.__module__ + ':' + value.__qualname__)})"
    raise TypeError(f"{value!r} cannot stand in IR text")


def _float(value: float) -> str:
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return repr(value)


def _sequence(value: tuple[Any, ...] | list[Any]) -> str:
    inner = ", ".join(literal(v) for v in value)
    if isinstance(value, list):
        return f"[{inner}]"
    return f"({inner},)" if len(value) == 1 else f"({inner})"


def array_text(value: np.ndarray | np.generic) -> str:
    """Small arrays by their elements, large ones and those with odd bits by their bytes."""
    word = "scalar" if isinstance(value, np.generic) else "array"
    array = np.asarray(value)
    head = f"{word}({string_text(str(array.dtype))}, "
    if word == "array":
        head += f"{literal(tuple(array.shape))}, "
    flat = array.reshape(-1)
    plain = [literal(v) for v in flat.tolist()] if flat.size <= SHORT_ARRAY and array.dtype.kind in "biufc" else None
    if plain is not None and not any("nan" in text for text in plain):
        return f"{head}[{', '.join(plain)}])"
    return f"{head}{base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()!r})"


def read_array(word: str, dtype: str, shape: tuple[int, ...], data: Any) -> np.ndarray | np.generic:
    """The array or NumPy scalar that `array_text` wrote."""
    if isinstance(data, str):
        array = np.frombuffer(base64.b64decode(data), dtype=dtype).copy()
    else:
        array = np.array(data, dtype=dtype)
    array = array.reshape(shape)
    return array[()] if word == "scalar" else array


class Names:
    """Gives each value of one text a name: its own where that is free and a plain word, else a number."""

    def __init__(self, values: Iterable[Value] = ()) -> None:
        self._names: dict[Value, str] = {}
        self._taken: set[str] = set()
        self._next = 0
        for value in values:
            self.define(value)

    def define(self, value: Value) -> str:
        """The name of a value that is now defined."""
        if value in self._names:
            return self._names[value]
        name = value.name
        if not re.fullmatch(r"[A-Za-z_][\w.]*", name):
            name = str(self._next)
            self._next += 1
        elif name in self._taken:
            count = 1
            while f"{name}.{count}" in self._taken:
                count += 1
            name = f"{name}.{count}"
        self._taken.add(name)
        self._names[value] = name
        return name

    def __getitem__(self, value: Value) -> str:
        """How a use of the value reads; a value that was never defined shows as `%?`."""
        return "%" + self._names.get(value, f"?{value.id}")
