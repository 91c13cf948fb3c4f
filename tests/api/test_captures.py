"""What a program captures: arrays and containers are read at each call, what is baked in is guarded."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest

import spmd

RATE = 2.0
WEIGHTS = np.array([1.0, 2.0, 3.0])
TABLES: dict[str, Any] = {"a": np.ones(3), "b": [1.0, 2.0]}
MODE = "double"
settings = types.ModuleType("settings")
settings.scale = 3.0  # type: ignore[attr-defined]
settings.bias = np.array([0.5, 1.5])  # type: ignore[attr-defined]


class Config:
    rate = 0.25
    table = np.array([1.0, 2.0])

    @classmethod
    def scaled(cls, x):
        return x * cls.rate

    @staticmethod
    def shifted(x):
        return x + 1.0


def rated(x):
    return x * RATE


def weighted(x):
    return np.sum(WEIGHTS * x)


def from_tables(x):
    return np.sum(TABLES["a"]) * x + TABLES["b"][1]


def by_mode(x):
    return x * 2.0 if MODE == "double" else x


def configured(x):
    return Config.scaled(x) + Config.shifted(x) + Config.table[1]


def from_module(x):
    return x * settings.scale + settings.bias[0]


def helper(x):
    return x + 1.0


def helped(x):
    return helper(x)


XS = np.array([1.0, 2.0])


def check(function: Any) -> Any:
    """A vmapped function that has been compared with the loop; call it again after a change."""
    batched = spmd.vmap(function)

    def compare() -> None:
        np.testing.assert_allclose(batched(XS), [function(x) for x in XS], rtol=1e-12)

    compare()
    return compare


def test_numbers_that_change_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    compare = check(rated)
    monkeypatch.setitem(globals(), "RATE", 5.0)
    compare()
    monkeypatch.setitem(globals(), "RATE", 5)
    compare()


def test_arrays_that_change_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    compare = check(weighted)
    WEIGHTS[1] = 7.0
    compare()
    WEIGHTS[1] = 2.0
    monkeypatch.setitem(globals(), "WEIGHTS", np.arange(4.0))
    compare()
    monkeypatch.setitem(globals(), "WEIGHTS", np.arange(4, dtype=np.float32))
    compare()


def test_containers_that_change_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    compare = check(from_tables)
    monkeypatch.setitem(TABLES, "a", np.full(3, 4.0))
    compare()
    monkeypatch.setitem(TABLES, "b", [1.0, 9.0, 3.0])
    compare()


def test_strings_that_change_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    compare = check(by_mode)
    monkeypatch.setitem(globals(), "MODE", "single")
    compare()


def test_class_attributes_that_change_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    compare = check(configured)
    monkeypatch.setattr(Config, "rate", 4.0)
    compare()
    monkeypatch.setattr(Config, "table", np.array([1.0, 8.0]))
    compare()
    monkeypatch.setattr(Config, "shifted", staticmethod(helper))
    compare()


def test_module_attributes_that_change_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    compare = check(from_module)
    monkeypatch.setattr(settings, "scale", -1.0)
    compare()
    monkeypatch.setattr(settings, "bias", np.array([2.5, 1.5]))
    compare()


def test_functions_that_are_replaced_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    compare = check(helped)
    monkeypatch.setitem(globals(), "helper", lambda x: x * 10.0)
    compare()


def test_closures_are_read_at_each_call() -> None:
    def make(w: Any) -> Any:
        def inner(x):
            return np.sum(w * x) * k

        k = 2.0
        return inner

    w = np.ones(3)
    compare = check(make(w))
    w[0] = 5.0
    compare()
    check(make(np.ones(2)))
    check(make(3.0))


def test_two_functions_of_one_name_do_not_meet() -> None:
    def first() -> Any:
        def f(x):
            return x + 1.0

        return f

    def second() -> Any:
        def f(x):
            return x * 5.0

        return f

    one, other = first(), second()
    np.testing.assert_array_equal(spmd.vmap(one)(XS), XS + 1.0)
    np.testing.assert_array_equal(spmd.vmap(other)(XS), XS * 5.0)


def test_an_instance_that_is_captured_by_its_method_is_refused() -> None:
    class Model:
        def __init__(self) -> None:
            self.w = 2.0

        def forward(self, x):
            return x * self.w

    with pytest.raises(spmd.SpmdError):
        spmd.vmap(Model().forward)(XS)
