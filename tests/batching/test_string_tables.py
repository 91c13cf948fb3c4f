"""Strings as numbers and as characters: what an id means, and what the tables of strings say."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from batching.strings import CHANGES, TESTS, excerpts, intern, intern_all, letters, text, told

ODD = ["", "a", "é", "e\u0301", "😀", "\0", "ab\0", "\ud800", "\ud800\udc00", "ΑΣ", "Straße", "ǅz", "٣", " \t\u3000"]


@pytest.mark.parametrize("string", ODD)
def test_an_id_is_that_of_one_string(string: str) -> None:
    number = intern(string)
    assert text(number) == string
    assert intern_all([string, "other", string]) == [number, intern("other"), number]
    assert (number == 0) == (string == "")
    if len(string) == 1:
        assert number == ord(string) + 1


def test_a_subclass_of_str_is_kept_as_the_string_that_it_is() -> None:
    class Loud(str):
        def __str__(self) -> str:
            return "loud"

    assert type(text(intern(Loud("some loud string")))) is str
    assert text(intern(Loud("some loud string"))) == "some loud string"


def test_the_letters_spell_every_string_also_those_seen_later() -> None:
    first = intern_all(ODD)
    points, bounds = letters()
    later = intern("a string that was not seen before")
    again, more = letters()
    assert len(more) > len(bounds)
    np.testing.assert_array_equal(again[: len(points)], points)
    for number in (*first, later):
        lo, hi = more[number], more[number + 1]
        assert "".join(text(int(k)) for k in again[lo:hi]) == text(number)
    assert not again.flags.writeable


def test_excerpts_are_slices() -> None:
    number = intern("abcdef")
    lo = int(letters()[1][number])
    parts = excerpts(np.array([lo, lo + 4, lo, lo]), np.array([3, 3, 0, 1]), np.array([2, -2, 1, 1]))
    assert parts == ["ace", "eca", "", "a"]


@pytest.mark.parametrize("method", TESTS)
def test_what_a_table_tells_is_what_python_says(method: str) -> None:
    numbers = np.array(intern_all(ODD))
    assert told(method)[numbers].tolist() == [getattr(s, method)() for s in ODD]
    every = [getattr(chr(c), method)() for c in range(sys.maxunicode + 1)]
    np.testing.assert_array_equal(told(method)[1 : sys.maxunicode + 2], every)


@pytest.mark.parametrize("method", CHANGES)
def test_what_a_table_leads_to_is_what_python_makes(method: str) -> None:
    numbers = np.array(intern_all([*ODD, f"Some Σ {method} words"]))
    expected = [getattr(text(int(k)), method)() for k in numbers]
    assert [text(int(k)) for k in told(method)[numbers]] == expected
    places = range(0, sys.maxunicode + 1, 1 if method in ("lower", "upper") else 97)
    assert [text(int(told(method)[c + 1])) for c in places] == [getattr(chr(c), method)() for c in places]
    assert len(letters()[1]) > max(told(method))


def test_threads_agree_on_ids_and_tables() -> None:
    strings = [f"thread string {k}" for k in range(400)]

    def number(k: int) -> list[int]:
        found = intern_all(strings[k:] + strings[:k])
        upper = told("upper")
        changed = [text(int(upper[n])) for n in found]
        assert changed == [text(n).upper() for n in found]
        return sorted(found)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(number, range(0, 400, 20)))
    assert all(f == found[0] for f in found)
