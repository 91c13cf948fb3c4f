"""Strings that differ between examples are Python's strings: values, exceptions, and what is refused."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import zoo_strings

import batching
import spmd

TARGETS = ("auto", "blas", "reference")
ODD = ["", "a", "ab", "0", "12", "é", "e\u0301", "😀😀", "ab\0", "\0", "Straße", "ΑΣ", "İx", "abab", " \u3000a"]


def check(f: Callable[..., Any], *columns: list[Any], target: str = "auto") -> None:
    """The batch is the loop: values, kinds, or the first exception."""
    expected: list[Any] = []
    for index, args in enumerate(zip(*columns)):
        try:
            expected.append(f(*args))
        except Exception as error:
            with pytest.raises(type(error)) as found:
                spmd.vmap(f, target=target)(*columns)
            assert str(found.value) == str(error)
            assert found.value.example == index  # type: ignore[attr-defined]
            return
    got = batching.unpack(spmd.vmap(f, target=target)(*columns))
    assert list(got) == expected


def sliced(text: str) -> Callable[..., Any]:
    """A function that returns s[text]."""
    source = f"def f(s):\n    return s[{text}]\n"
    name = f"<sliced {text}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    space: dict[str, Any] = {}
    exec(compile(source, name, "exec"), space)
    made: Callable[..., Any] = space["f"]
    return made


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("text", ["1:", ":-1", "-2:", "1:3", "5:2", "::-1", "::2",
                                  "-1:0:-2", "3::-1", ":99", "-99:1", "2:-9:-1"])
def test_slices(text: str, target: str) -> None:
    check(sliced(text), ODD, target=target)


def varying(s: str, i: int, j: int) -> Any:
    return s[i:j], s[i:j:-1], s[i:][:j][::-2][::-1], s[i:] < s[j:], s[i:] == s[j:], s[i::2] >= s


def test_slices_whose_bounds_differ() -> None:
    rng = np.random.default_rng(1)
    strings = ODD * 8
    check(varying, strings, rng.integers(-6, 7, len(strings)).tolist(), rng.integers(-6, 7, len(strings)).tolist())


def item(s: str, i: int) -> str:
    return s[i]


def ordinal(s: str) -> int:
    return ord(s)


def ordinal_of_rest(s: str) -> int:
    return ord(s[1:])


def place(s: str) -> int:
    return s.index("b")


def whole(s: str) -> int:
    return int(s)


def whole_of_rest(s: str) -> int:
    return int(s[1:])


def hexadecimal(s: str) -> int:
    return int(s, 16)


def real(s: str) -> float:
    return float(s)


def keyed(s: str) -> int:
    return {"a": 1, "ab": 2}[s]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("f, strings", [
    (ordinal, ["a", "é", "😀", "\0"]), (ordinal, ["a", "ab"]), (ordinal, [""]), (ordinal_of_rest, ["ab", "x"]),
    (place, ["ab", "b", "xx"]), (whole, ["12", "-3", " 4 ", "1_0", "٣", "9" * 18]), (whole, ["1", "", "x"]),
    (whole, ["0x10"]), (whole_of_rest, ["x12", "y-7", "zz"]), (hexadecimal, ["ff", "0x1F", "g"]),
    (real, ["1.5", "1e5", " -2 ", "inf"]), (real, ["1", "1,5"]), (real, [""]),
    (keyed, ["a", "ab"]), (keyed, ["a", "é"]),
])
def test_conversions_raise_as_python_does(f: Callable[..., Any], strings: list[str], target: str) -> None:
    check(f, strings, target=target)


@pytest.mark.parametrize("target", TARGETS)
def test_an_index_out_of_range_raises_for_its_example(target: str) -> None:
    check(item, ["abc", "é", "xy"], [2, -1, -2], target=target)
    check(item, ["abc", "", "xy"], [2, 0, 5], target=target)
    check(item, ["abc", "xy"], [-3, -3], target=target)


def character(n: int) -> str:
    return chr(n)


def test_chr() -> None:
    check(character, [97, 233, 0x10FFFF, 0])
    check(character, [97, -1, 0x110000])


def searches(s: str, t: str) -> Any:
    return (
        s.find(t), s.rfind(t), s.count(t), s.startswith(t), s.endswith((t, "b")), t in s, s.find(t, 1),
        s.count(t, -3, -1), s[1:] in t, t not in "ab", s in ("a", t), s in ["x", "12"], s < t, s == t, s[:1] != t[:1],
    )


def methods(s: str) -> Any:
    return (
        s.isdigit(), s.isalpha(), s.isspace(), s.isupper(), s.islower(), s.isalnum(), s[1:].isalpha(),
        s[::-1].isspace(), s.upper().lower(), s.lower()[1:], s.strip(), s.title(), s.swapcase(), len(s), bool(s),
        not s[1:],
    )


@pytest.mark.parametrize("target", TARGETS)
def test_methods_and_searches(target: str) -> None:
    check(methods, ODD, target=target)
    check(searches, ODD * 4, [ODD[(3 * k) % 7] for k in range(len(ODD) * 4)], target=target)


def counted(s: str) -> dict[str, int]:
    return {"n": len(s), "a": s.count("a")}


def test_strings_that_are_seen_after_compiling() -> None:
    f = spmd.vmap(counted)
    for k in range(3):
        strings = [f"a string of round {k}" * n for n in range(3)]
        assert batching.unpack(f(strings)) == [counted(s) for s in strings]


def test_threads_may_share_a_program() -> None:
    def loud(s: str) -> Any:
        return s.upper(), s[::-1], s.find("9")

    f = spmd.vmap(loud)

    def run(k: int) -> bool:
        strings = [f"thread {k} string {n}" for n in range(5)]
        return bool(batching.unpack(f(strings)) == [loud(s) for s in strings])

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(run, range(40)))


def weighed(w: float, s: str) -> float:
    total = 0.0
    for c in s:
        total = total + w * ord(c) if c != "b" else total * w
    return total


def test_gradients_pass_by_strings() -> None:
    strings = ["", "a", "ab", "aba"]
    got = spmd.vmap(spmd.grad(weighed), in_axes=(None, 0))(2.0, strings)
    a = float(ord("a"))
    np.testing.assert_allclose(got, [0.0, a, 4 * a, 4 * a + a])


def texts_of(s: str) -> Any:
    stack = ["("]
    for c in s:
        if c in stack and stack[-1] == c:
            stack.pop()
        else:
            stack.append(c)
    parts = [s[:0]]
    while len(parts) < 3:
        parts.append(s[len(parts) :])
    return len(stack), stack[-1], parts[-1], "a" in stack


def mixed(s: str) -> Any:
    parts = []
    for c in s:
        parts.append(c)
    for i in range(len(s)):
        parts.append(s[i : i + 2])
    same = 0
    for part in parts:
        same += part == s[:1]
    return len(parts), same, parts[-1] if parts else "none"


def words_of(s: str) -> Any:
    words, word, start = [], "", 0
    for i in range(len(s)):
        if s[i].isspace():
            words.append(word)
            word, start = "", i + 1
        else:
            word = s[start : i + 1]
    words.append(word)
    longest = words[0]
    for one in words:
        if len(one) > len(longest):
            longest = one
    return len(words), longest


def tallied(s: str) -> Any:
    counts: dict[str, int] = {}
    seen = set()
    order = ["none"] * (len(s) + 1)
    for c in s:
        counts[c] = counts.get(c, 0) + 1
        if c not in seen:
            order[len(seen)] = c
            seen.add(c)
    most, best = 0, ""
    for c in counts:
        if counts[c] > most:
            most, best = counts[c], c
    return len(counts), most, best, len(seen), order[0], "a" in counts


def demanded(s: str) -> int:
    counts = {}
    for c in s:
        counts[c] = 1
    return counts["a"]


def number_or_none(s: str) -> Any:
    try:
        return int(s), "whole"
    except ValueError:
        return -1, s[1:2]


@pytest.mark.parametrize("target", TARGETS)
def test_strings_as_keys_and_in_handlers(target: str) -> None:
    check(tallied, ODD, target=target)
    check(demanded, ["a", "ba", "b"], target=target)
    check(number_or_none, ODD, target=target)


def test_lists_of_characters_and_of_slices_grow() -> None:
    check(texts_of, ODD)
    check(mixed, ODD)
    check(words_of, [*ODD, "one three five", "  a"])


@pytest.mark.parametrize("text", [
    "s + s", "s[1:] + 'a'", "s * 2", "s.split()", "s[1:].upper()", "'%s' % s", "max(s)", "max(s, 'b')", "s < 1",
    "1 in s", "np.array([s, s])", "np.array([c for c in s])", "sum([c for c in s])", "np.abs(s)", "-s", "s[1.0]",
    "s['a']", "ord(1)", "','.join(s)", "np.zeros(3)[s]", "abs(s)", "s[::len(s)]",
])
def test_what_is_no_string_of_the_data_is_refused(text: str) -> None:
    source = f"import numpy as np\ndef f(s):\n    return {text}\n"
    name = f"<refused {text}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    space: dict[str, Any] = {}
    exec(compile(source, name, "exec"), space)
    with pytest.raises(spmd.SpmdError) as found:
        spmd.vmap(space["f"])(["a", "ab"])
    assert found.value.span is not None and found.value.span.line == 3


def test_programs_on_strings_equal_the_loop_at_batch_64() -> None:
    rng = np.random.default_rng(5)
    lengths = [0, 0, 1, 120, *rng.integers(0, 25, 60)]
    strings = ["".join(rng.choice(list("ab"), n)) for n in lengths]
    others = ["".join(rng.choice(list("ab"), n)) for n in lengths[::-1]]
    others[3] = strings[3][::-1]
    check(zoo_strings.edit_distance, strings, others)
    check(zoo_strings.longest_matches, strings)
    check(zoo_strings.run_lengths, strings)
    check(zoo_strings.palindromes, strings)
    check(zoo_strings.counts_words, [s.replace("b", " ") for s in strings])
    check(zoo_strings.brackets_match, [s.replace("a", "(").replace("b", ")") for s in strings])
    check(zoo_strings.shifts_letters, strings, rng.integers(0, 26, 64).tolist())
    expressions = [s for (s,) in zoo_strings.expressions(rng, 64)]
    check(zoo_strings.evaluates_expressions, expressions)
    check(zoo_strings.evaluates_expressions, [*expressions[:40], "3/(2-2)", "1+"])
