"""Strings as numbers, and their characters as arrays.

The invariant: equal strings have one id as long as the process lives, and what an id means never changes. Id 0 is the
empty string, 1 + k the character of code point k, and longer strings are numbered from `FIRST` in order of first sight.
Only longer strings are kept, each once and for as long as the process lives: those of packed data, of programs, and of
results that hold them in lists. Must not know what reads the arrays.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

FIRST = 1 + sys.maxunicode + 1
TESTS = ("isalnum", "isalpha", "isdecimal", "isdigit", "islower", "isnumeric", "isspace", "istitle", "isupper")
CHARACTERWISE = ("lower", "upper", "casefold", "swapcase")
CHANGES = (*CHARACTERWISE, "title", "capitalize", "strip", "lstrip", "rstrip")
Array = np.ndarray[Any, Any]


class _Growing:
    """An array that only grows. What `view` gave stays as it is."""

    def __init__(self, start: Array) -> None:
        self.data = start
        self.size = len(start)

    def extend(self, more: Array) -> None:
        """Appends; the old part is moved when there is no room, never written to."""
        size = self.size + len(more)
        if size > len(self.data):
            room = np.empty(size + size // 2, self.data.dtype)
            room[: self.size] = self.data[: self.size]
            self.data = room
        self.data[self.size : size] = more
        self.size = size

    def view(self) -> Array:
        """All of it, read-only."""
        found = self.data[: self.size]
        found.flags.writeable = False
        return found


class _Strings:
    """The strings of this process, and tables about them that are made at the first demand and grow with them."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.ids: dict[str, int] = {}
        self.texts: list[str] = []
        self.tables: dict[str, tuple[_Growing, ...]] = {}
        self.done: dict[str, int] = {}

    def intern(self, string: str) -> int:
        """The number of a string."""
        if len(string) < 2:
            return ord(string) + 1 if string else 0
        found = self.ids.get(string)
        if found is not None:
            return found
        with self.lock:
            if string not in self.ids:
                # The text is stored before its id can be seen, so that readers need no lock.
                plain = str.__str__(string)  # of a subclass, too
                self.texts.append(plain)
                self.ids[plain] = FIRST + len(self.texts) - 1
            return self.ids[string]

    def text(self, number: int) -> str:
        """The string of an id."""
        if number < FIRST:
            if number < 0:
                raise IndexError(f"no string has the id {number}")
            return chr(number - 1) if number else ""
        return self.texts[number - FIRST]

    def table(self, name: str) -> tuple[Array, ...]:
        """The arrays of a table, for all strings that there are now."""
        start, grow = TABLES[name]
        with self.lock:
            if name == "letters":  # what a table of changes leads to lies among the letters
                for other in self.tables.keys() & set(CHANGES):
                    self.table(other)
            if name not in self.tables:
                self.tables[name] = tuple(map(_Growing, start(self)))
                self.done[name] = 0
            while self.done[name] < len(self.texts):  # changed letters may be strings that were not seen before
                fresh = self.texts[self.done[name] :]
                self.done[name] += len(fresh)
                for part, more in zip(self.tables[name], grow(self, fresh)):
                    part.extend(more)
            return tuple(part.view() for part in self.tables[name])


# ------------------------------------------------------------------------------------------------ tables
def codes(string: str) -> Array:
    """The code points of a string, int64."""
    return np.frombuffer(string.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.int64)


def _letters(store: _Strings) -> tuple[Array, ...]:
    bounds = np.arange(-1, FIRST, dtype=np.int64)
    bounds[0] = 0
    return np.arange(1, FIRST, dtype=np.int64), bounds


def _more_letters(store: _Strings, fresh: list[str]) -> tuple[Array, ...]:
    last = store.tables["letters"][1]
    ends = last.data[last.size - 1] + np.cumsum([len(s) for s in fresh], dtype=np.int64)
    return codes("".join(fresh)) + 1, ends


def _test(name: str) -> tuple[Callable[[_Strings], tuple[Array, ...]], Callable[..., tuple[Array, ...]]]:
    """The table of a method that tells something of a string: id of a string -> truth."""
    test = getattr(str, name)

    def start(store: _Strings) -> tuple[Array, ...]:
        """Of characters, by NumPy's test, which is Python's; but NumPy takes the null character for an empty string."""
        found = np.zeros(FIRST, bool)
        found[1:] = getattr(np.char, name)(np.arange(FIRST - 1, dtype="<u4").view("<U1"))
        found[:2] = test(""), test("\0")
        return (found,)

    def grow(store: _Strings, fresh: list[str]) -> tuple[Array, ...]:
        return (np.array([test(s) for s in fresh], bool),)

    return start, grow


def _change(name: str) -> tuple[Callable[[_Strings], tuple[Array, ...]], Callable[..., tuple[Array, ...]]]:
    """The tables of a method that gives a string: id of a string -> id of the result."""
    change = getattr(str, name)

    def start(store: _Strings) -> tuple[Array, ...]:
        found = np.arange(FIRST, dtype=np.int64)
        every = codes_text(np.arange(FIRST - 1))
        for low in range(0, FIRST - 1, 256):
            part = every[low : low + 256]
            if name not in CHARACTERWISE or change(part) != part:
                found[low + 1 : low + 257] = [store.intern(change(c)) for c in part]
        return (found,)

    def grow(store: _Strings, fresh: list[str]) -> tuple[Array, ...]:
        return (np.array([store.intern(change(s)) for s in fresh], np.int64),)

    return start, grow


def codes_text(points: Array) -> str:
    """The string of code points."""
    return points.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")


TABLES: dict[str, Any] = {
    "letters": (_letters, _more_letters),
    **{name: _test(name) for name in TESTS},
    **{name: _change(name) for name in CHANGES},
}
_STRINGS = _Strings()


# ------------------------------------------------------------------------------------------------ for all
def intern(string: str) -> int:
    """The id of a string, the same for equal strings as long as the process lives."""
    return _STRINGS.intern(string)


def intern_all(strings: Iterable[str]) -> list[int]:
    """The ids of many strings."""
    strings = list(strings)
    found = {string: _STRINGS.intern(string) for string in set(strings)}
    return list(map(found.__getitem__, strings))


def text(number: int) -> str:
    """The string that has this id. Raises IndexError for a number that no string has."""
    return _STRINGS.text(number)


def letters() -> tuple[Array, Array]:
    """The characters of all strings, one string after the other, as ids of characters; and where each string lies:
    string k is ``bounds[k]:bounds[k + 1]``. Positions never change."""
    points, bounds = _STRINGS.table("letters")
    return points, bounds


def told(method: str) -> Array:
    """What ``string.method()`` is, by the id of the string: its truth for the methods in `TESTS`, the id of the string
    that it gives for those in `CHANGES`."""
    return _STRINGS.table(method)[0]


def excerpts(start: Array, length: Array, step: Array) -> list[str]:
    """The strings whose characters stand at these places among all `letters`."""
    points, _ = letters()
    return [
        codes_text(points[first + stride * np.arange(count)] - 1) if count > 0 else ""
        for first, count, stride in zip(start.tolist(), length.tolist(), step.tolist())
    ]
