"""What the tests of batching share: comparison of object graphs."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest


def same(one: Any, other: Any) -> bool:
    """Whether two object graphs are equal: same types, same values, same sharing of objects; without recursion."""
    partner: dict[int, int] = {}
    work = [(one, other)]
    for a, b in work:
        if type(a) is not type(b):
            return False
        if isinstance(a, np.ndarray):
            if a.dtype != b.dtype or a.shape != b.shape or not np.array_equal(a, b, equal_nan=a.dtype.kind == "f"):
                return False
        elif a is None or isinstance(a, (int, float, complex, str, np.generic)):
            if a != b and not (a != a and b != b):
                return False
        elif isinstance(a, (list, tuple, collections.deque)):
            if len(a) != len(b):
                return False
            work.extend(zip(a, b, strict=True))
        elif isinstance(a, dict):
            if list(a) != list(b):
                return False
            work.extend(zip(a.values(), b.values(), strict=True))
        else:
            if id(a) in partner:
                if partner[id(a)] != id(b):
                    return False
                continue
            partner[id(a)] = id(b)
            first, second = fields(a), fields(b)
            if set(first) != set(second):
                return False
            work.extend((first[name], second[name]) for name in first)
    return len(set(partner.values())) == len(partner)


def fields(value: Any) -> dict[str, Any]:
    """The attributes of an object."""
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if hasattr(value, "__dict__"):
        return dict(vars(value))
    return {name: getattr(value, name) for base in type(value).__mro__ for name in getattr(base, "__slots__", ())
            if hasattr(value, name)}


@pytest.fixture
def alike() -> Callable[[Any, Any], bool]:
    """Compares two object graphs."""
    return same
