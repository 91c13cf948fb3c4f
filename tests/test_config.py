"""Options come from the environment, are checked, and are overridden for one thread only."""

from __future__ import annotations

import threading

import pytest

from spmd.config import GIB, VARIABLES, Options, configure, options, read_bytes, read_environment


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in VARIABLES:
        monkeypatch.delenv(variable.name, raising=False)


def test_defaults() -> None:
    assert read_environment() == Options("short", "", GIB, GIB // 2, None)


def test_every_variable_sets_its_option(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"TRACEBACK": "full", "LOG": "passes,+ir", "BUDGET": "64MiB", "KEEP": "1MiB", "WIDTH": "256"}
    for name, value in given.items():
        monkeypatch.setenv(f"SPMD_{name}", value)
    assert read_environment() == Options("full", "passes,+ir", 64 << 20, 1 << 20, 256)
    assert {variable.name.removeprefix("SPMD_") for variable in VARIABLES} == set(given)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SPMD_TRACEBACK", "long"),
        ("SPMD_BUDGET", "lots"),
        ("SPMD_BUDGET", "-1"),
        ("SPMD_KEEP", "-1"),
        ("SPMD_WIDTH", "100"),
    ],
)
def test_a_bad_variable_is_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=name):
        read_environment()


def test_an_empty_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPMD_BUDGET", "")
    assert read_environment().budget == GIB


@pytest.mark.parametrize(
    ("text", "size"), [("0", 0), ("4096", 4096), ("1.5 GB", 1_500_000_000), ("2kib", 2048), ("1e9", 10**9), ("7B", 7)]
)
def test_sizes_are_read_with_units(text: str, size: int) -> None:
    assert read_bytes(text) == size


def test_configure_overrides_and_restores() -> None:
    before = options()
    with configure(budget=10), configure(width=128) as inner:
        assert inner == options() and (options().budget, options().width) == (10, 128)
    assert options() == before


def test_configure_restores_after_an_exception() -> None:
    before = options()
    with pytest.raises(KeyError), configure(budget=10):
        raise KeyError
    assert options() == before


def test_configure_is_seen_by_its_own_thread_only() -> None:
    seen: list[int] = []
    with configure(budget=10):
        thread = threading.Thread(target=lambda: seen.append(options().budget))
        thread.start()
        thread.join()
    assert seen == [options().budget] and seen != [10]


def test_unknown_and_bad_options_are_refused() -> None:
    with pytest.raises(TypeError, match="no option 'bugdet'"), configure(bugdet=1):
        pass
    with pytest.raises(ValueError, match="number of bytes"), configure(budget=True):
        pass
