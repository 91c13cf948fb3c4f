"""Strings: what their characters say, compared, searched and read as numbers.

A string is an id (a value of type `str`), or an excerpt: the `length` characters at `start`, `start + step`, ... among
the `letters` of all strings, which hold ids too. The id of the character of code point k is k + 1, that of the empty
string 0. The invariant: the meaning is that of Python's own function on the string that an excerpt spells, errors
included. Where the letters come from is not known here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spmd.ir.types import BOOL, FLOAT, INT, TEXT, Num, Type
from spmd.ops.checked import fits
from spmd.ops.faults import blame, checked, row_count
from spmd.ops.inference import integer, numbers
from spmd.ops.primitive import Faults, Primitive, Samples, Site

Array = np.ndarray[Any, Any]
PLACE = Num("int64")
SHORT = 64  # characters; longer strings are compared one by one
DIGITS = 18  # so many decimal digits fit in 64 bits whatever they are


def spelled(letters: Any, start: Any, length: Any, step: Any) -> str:
    """The string that an excerpt spells."""
    first, count, stride = int(start), int(length), int(step)
    if count <= 0:
        return ""
    if count == 1:
        return chr(int(letters[first]) - 1)
    stop = first + count * stride
    part = letters[first:stop:stride] if stop >= 0 else letters[first::stride]
    return (part - 1).astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")


# ------------------------------------------------------------------------------------------------------ type rules
def _excerpts(name: str, count: int, result: Num, more: bool = False) -> Callable[..., Num]:
    """The rule of a function of letters and `count` excerpts in them; `more`: of two places after them, perhaps."""

    def infer(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
        letters, *places = numbers(name, types)
        if letters.dtype != "int64" or letters.rank != 1:
            raise TypeError(f"'{name}' reads letters, not {letters}")
        if len(places) != 3 * count and not (more and len(places) == 3 * count + 2):
            raise TypeError(f"'{name}' takes {count} excerpts")
        if any(p != PLACE for p in places):
            raise TypeError(f"'{name}' takes places of type {PLACE}")
        return result

    return infer


def _of_id(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
    (source,) = numbers("idof", types, 1, text=True)
    if source not in (TEXT, PLACE):
        raise TypeError(f"'idof' takes a string, not {source}")
    return PLACE


def _of_place(name: str, count: int, kind: Num, result: Num) -> Callable[..., Num]:
    def infer(types: Sequence[Type], attrs: dict[str, Any]) -> Num:
        for type_ in numbers(name, types, count):
            if integer(name, type_) != kind:
                raise TypeError(f"'{name}' takes {kind}, not {type_}")
        return result

    return infer


# ------------------------------------------------------------------------------------------------------ characters
def _ordinal(number: Any, length: Any) -> int:
    """ord(c), of the id of a string and its length."""
    if length != 1:
        raise TypeError(f"ord() expected a character, but string of length {int(length)} found")
    return int(number) - 1


def _character(point: Any) -> Any:
    return np.int64(ord(chr(point)) + 1)


def _rows_character(point: Any) -> tuple[Any, Any]:
    bad = (point < 0) | (point > sys.maxunicode)
    return np.where(bad, 0, point + 1), bad


# ------------------------------------------------------------------------------------------------------ row by row
def _row_by_row(rule: Callable[..., Any], errors: bool) -> Callable[[Site], Any]:
    """The rows rule that asks Python for each row, and once for equal rows of shared letters."""

    def rows(site: Site) -> Callable[..., Any]:
        def run(letters: Any, *places: Any, faults: Faults | None = None) -> Any:
            count = row_count(site, (letters, *places))
            out = np.zeros(count, site.result.dtype)
            bad = np.zeros(count, bool)
            known: dict[tuple[int, ...], Any] = {}
            spread = [np.broadcast_to(p, (count,)).tolist() for p in places]
            for k, key in enumerate(zip(*spread)):
                if key not in known or site.varying[0]:
                    known[key] = _attempt(rule, letters[k] if site.varying[0] else letters, key, site.attrs)
                found = known[key]
                bad[k] = found is None
                out[k] = 0 if found is None else found
            if faults is not None:
                blame(faults, bad, site, rule, (letters, *places))
            return out

        return run

    def plain(site: Site) -> Callable[..., Any]:
        run = rows(site)
        return lambda *operands: run(*operands)

    return rows if errors else plain


def _attempt(rule: Callable[..., Any], letters: Any, places: tuple[int, ...], attrs: dict[str, Any]) -> Any:
    """The value of one row; None where it raises."""
    try:
        return rule(letters, *places, **attrs)
    except (ValueError, OverflowError, KeyError):
        return None


# ------------------------------------------------------------------------------------------------------ numbers
def _integer_of(letters: Any, start: Any, length: Any, step: Any, base: int = 10) -> int:
    found: int = fits(int(spelled(letters, start, length, step), base))
    return found


def _float_of(letters: Any, start: Any, length: Any, step: Any) -> float:
    return float(spelled(letters, start, length, step))


def _rows_integer(site: Site) -> Callable[..., Any]:
    """Rows of few plain digits at once, all others by Python."""
    slow = _row_by_row(_integer_of, True)(site)

    def run(letters: Any, *places: Any, faults: Faults) -> Any:
        if site.varying[0] or site.attrs.get("base", 10) != 10:
            return slow(letters, *places, faults=faults)
        start, length, step = _full(site, *places)
        most = int(length.max(initial=0))
        if most > DIGITS or (length <= 0).any():
            return slow(letters, *places, faults=faults)
        total = np.zeros(start.shape, np.int64)
        for k in range(most):
            inside = length > k
            digit = letters.take(np.where(inside, start + k * step, 0)) - 1 - ord("0")
            if (inside & ((digit < 0) | (digit > 9))).any():
                return slow(letters, *places, faults=faults)
            total = np.where(inside, total * 10 + digit, total)
        return total

    return run


def _full(site: Site, *places: Any) -> tuple[Any, ...]:
    """Places with a row axis each."""
    count = next((len(p) for p, varying in zip(places, site.varying[1:]) if varying), 1)
    return tuple(np.broadcast_to(p, (count,)) for p in places)


# ------------------------------------------------------------------------------------------------------ comparing
def _comparison(letters: Any, *places: Any) -> Any:
    """-1, 0 or 1: how the first string compares with the second."""
    a, b = spelled(letters, *places[:3]), spelled(letters, *places[3:])
    return np.int64((a > b) - (a < b))


def _rows_comparison(site: Site) -> Callable[..., Any]:
    """All rows together, one character after the other, as long as there are rows that have not differed."""
    slow = _row_by_row(_comparison, False)(site)

    def run(letters: Any, *places: Any) -> Any:
        if site.varying[0]:
            return slow(letters, *places)
        s, n, t, u, m, v = _full(site, *places)
        shorter = np.minimum(n, m)
        if shorter.max(initial=0) > SHORT:
            return slow(letters, *places)
        result = np.sign(n - m)
        rows, k = np.flatnonzero(shorter > 0), 0
        while rows.size:
            found = np.sign(letters[s[rows] + k * t[rows]] - letters[u[rows] + k * v[rows]])
            apart = found != 0
            result[rows[apart]] = found[apart]
            k += 1
            rows = rows[~apart & (shorter[rows] > k)]
        return result

    return run


# ------------------------------------------------------------------------------------------------------ searching
def _search(letters: Any, *places: Any, way: str) -> Any:
    """A method of the first string with the second: find, rfind, count, startswith, endswith; from and to a place."""
    whole, part = spelled(letters, *places[:3]), spelled(letters, *places[3:6])
    return np.int64(getattr(whole, way)(part, *(int(p) for p in places[6:])))


def _test(letters: Any, start: Any, length: Any, step: Any, way: str) -> bool:
    """A method of a string that tells something of all its characters."""
    return bool(getattr(spelled(letters, start, length, step), way)())


def _missing(letters: Any, start: Any, length: Any, step: Any) -> bool:
    """What a dictionary raises that does not have this key."""
    raise KeyError(spelled(letters, start, length, step))


# ------------------------------------------------------------------------------------------------------ records
LETTERS = np.array([ord(c) + 1 for c in "12+03.5 x-7é"], np.int64)


def _at(*places: int) -> tuple[Any, ...]:
    return (LETTERS, *(np.int64(p) for p in places))


ONE: Samples = tuple(
    (_at(*p), {}) for p in ((3, 2, 1), (3, 0, 1), (4, 2, -1), (3, 4, 1), (2, 3, 1), (8, 1, 1), (9, 2, 1))
)
TWO: Samples = tuple(
    (_at(*p), {})
    for p in ((3, 2, 1, 4, 2, -1), (3, 2, 1, 3, 1, 1), (3, 0, 1, 5, 0, 1), (3, 4, 1, 3, 4, 1), (11, 1, 1, 8, 1, 1))
)


def _ways(samples: Samples, *ways: str) -> Samples:
    return tuple((args, {"way": way}) for way in ways for args, _ in samples)


WITHIN: Samples = tuple(((*args, np.int64(0), np.int64(1)), attrs) for args, attrs in TWO)


def _raising(types: Sequence[Type], attrs: dict[str, Any]) -> bool:
    return True


STRINGS: tuple[Primitive, ...] = (
    Primitive("idof", _of_id, lambda x: np.int64(x), lambda site: lambda x: x, chain="cast",
              samples=(((np.int64(5),), {}),)),
    Primitive("textof", _of_place("textof", 1, PLACE, TEXT), lambda x: np.int64(x), lambda site: lambda x: x,
              chain="cast", samples=(((np.int64(5),), {}),)),
    Primitive(
        "ord", _of_place("ord", 2, PLACE, INT), _ordinal,
        lambda site: checked(site, _ordinal, lambda n, length: (n - 1 + 0 * length, length != 1)), raises=_raising,
        samples=(((np.int64(98), np.int64(1)), {}), ((np.int64(0), np.int64(0)), {})),
    ),
    Primitive(
        "chr", _of_place("chr", 1, INT, TEXT), _character, lambda site: checked(site, _character, _rows_character),
        raises=_raising, samples=tuple(((n,), {}) for n in (97, 0, -1, 0x10FFFF, 0x110000, 2**62)),
    ),
    Primitive("strint", _excerpts("strint", 1, INT), _integer_of, _rows_integer, raises=_raising, samples=ONE),
    Primitive("strfloat", _excerpts("strfloat", 1, FLOAT), _float_of, _row_by_row(_float_of, True), raises=_raising,
              samples=ONE),
    Primitive("strmissing", _excerpts("strmissing", 1, BOOL), _missing, _row_by_row(_missing, True), raises=_raising,
              samples=ONE),
    Primitive("strcompare", _excerpts("strcompare", 2, PLACE), _comparison, _rows_comparison, samples=TWO),
    Primitive(
        "strsearch", _excerpts("strsearch", 2, PLACE, more=True), _search, _row_by_row(_search, False),
        samples=_ways(TWO, "find", "rfind", "count", "startswith", "endswith") + _ways(WITHIN, "find", "count"),
    ),
    Primitive("strtest", _excerpts("strtest", 1, BOOL), _test, _row_by_row(_test, False),
              samples=_ways(ONE, "isdigit", "isspace", "isalnum")),
)
