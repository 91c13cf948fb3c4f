"""Zoo: strings that differ between examples, and what programs read, compare, search and make of them.

Every function is written for one example; nothing here knows that it will be batched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from program import Collection, Rng

zoo = Collection()


def words(alphabet: str, most: int, *first: str, count: int = 1) -> Callable[[Rng, int], list[tuple[Any, ...]]]:
    """Strings of at most `most` characters, after the `first` ones; `count` for each example."""

    def make(rng: Rng, size: int) -> list[tuple[Any, ...]]:
        lengths = rng.integers(0, most + 1, (size, count))
        made = [tuple("".join(rng.choice(list(alphabet), n)) for n in row) for row in lengths]
        return [(one,) * count for one in first] + made[len(first) :]

    return make


@zoo.add(words("ab", 7, "", "a", count=2))
def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i in range(len(a)):
        diagonal = row[0]
        row[0] = i + 1
        for j in range(len(b)):
            above = row[j + 1]
            cost = 0 if a[i] == b[j] else 1
            row[j + 1] = min(above + 1, row[j] + 1, diagonal + cost)
            diagonal = above
    return row[-1]


CLOSES = {")": "(", "]": "[", "}": "{"}


@zoo.add(words("()[]", 8, "", "([{é}])", "(", ")"))
def brackets_match(s):
    stack = []
    for c in s:
        if c in "([{":
            stack.append(c)
        elif c in CLOSES and (not stack or stack.pop() != CLOSES[c]):
            return False
    return not stack


@zoo.add(words("aab", 9, ""))
def run_lengths(s):
    longest, runs, last, length = 0, 0, "", 0
    for c in s:
        length = length + 1 if c == last else 1
        runs += length == 1
        last = c
        longest = max(longest, length)
    return longest, runs, last


STRENGTH = {"+": 1, "-": 1, "*": 2, "/": 2}


def operate(values, operator):
    b = values.pop()
    a = values.pop()
    if operator == "+":
        values.append(a + b)
    elif operator == "-":
        values.append(a - b)
    elif operator == "*":
        values.append(a * b)
    else:
        values.append(a / b)


def expressions(rng: Rng, size: int) -> list[tuple[Any, ...]]:
    def write(depth: int) -> str:
        if depth == 0 or rng.random() < 0.3:
            return str(rng.integers(1, 300))
        both = write(depth - 1) + str(rng.choice([" + ", "-", "*", "/"])) + write(depth - 1)
        return f"({both})" if rng.random() < 0.7 else both

    return [("7",), ("12+3*40",), ("(1+2)*3-4/8",), *((write(2),) for _ in range(size - 3))]


@zoo.add(expressions)
def evaluates_expressions(s):
    values = []
    operators = []
    i = 0
    while i < len(s):
        c = s[i]
        if c.isdigit():
            j = i
            while j < len(s) and s[j].isdigit():
                j += 1
            values.append(float(s[i:j]))
            i = j
            continue
        if c == "(":
            operators.append(c)
        elif c == ")":
            while operators[-1] != "(":
                operate(values, operators.pop())
            operators.pop()
        elif c != " ":
            while operators and operators[-1] != "(" and STRENGTH[operators[-1]] >= STRENGTH[c]:
                operate(values, operators.pop())
            operators.append(c)
        i += 1
    while operators:
        operate(values, operators.pop())
    return values[0]


@zoo.add(words("aab", 8, "", "aaaaaaa"))
def longest_matches(s):
    total, best = 0, 0
    for i in range(len(s)):
        longest = 0
        for j in range(i):
            k = 0
            while i + k < len(s) and s[j + k] == s[i + k]:
                k += 1
            longest = max(longest, k)
        total += longest
        best = max(best, longest)
    return total, best


@zoo.add(words("ab", 5, "", "é", "e\u0301", "😀a😀"))
def palindromes(s):
    i, j = 0, len(s) - 1
    while i < j:
        if s[i] != s[j]:
            return False, s == s[::-1]
        i += 1
        j -= 1
    return True, s == s[::-1]


@zoo.add(words("ab \t\u3000", 9, "", " ", "a"))
def counts_words(s):
    count, inside = 0, False
    for c in s:
        if c.isspace():
            inside = False
        elif not inside:
            inside = True
            count += 1
    return count


def shifts(rng: Rng, size: int) -> list[tuple[Any, ...]]:
    return [(s, int(k)) for (s,), k in zip(words("abyzAZ é😀", 8, "")(rng, size), rng.integers(0, 26, size))]


@zoo.add(shifts)
def shifts_letters(s, k):
    codes = []
    for c in s:
        if c.islower() and c <= "z":
            codes.append((ord(c) - ord("a") + k) % 26 + ord("a"))
        elif "A" <= c <= "Z":
            codes.append((ord(c.lower()) - ord("a") + k) % 26 + ord("A"))
        else:
            codes.append(ord(c))
    return [chr(n) for n in codes]


@zoo.add(words("ab0 é😀e\u0301ßΣ", 7, "", "a", "Straße", "ΑΣ"))
def slices_and_methods(s):
    half = s[len(s) // 2 :]
    best = s[:0]
    for i in range(len(s)):
        if s[i : i + 2] > best:
            best = s[i : i + 2]
    return (
        half, s[::-2], s[-3:-1], best, s.upper(), s.lower().strip(), len(half), half.isalpha(), s.isalnum(),
        s.find("a"), s.rfind("a", 1), s.count(half), s.startswith(("a", "b")), s.endswith(half), half in s,
        s[1:2] in ("a", "0"), bool(half), s < half, best >= "b",
    )


@zoo.add(words("ab", 6, "", "a"))
def characters_in_comprehensions(s):
    pairs = [a == b for a, b in zip(s, s[1:])]
    codes = [i * ord(c) for i, c in enumerate(s)]
    return list(s), tuple(s), codes, [c for c in reversed(s)], all(c == "a" for c in s), sum(pairs)


@zoo.add(words("ab", 6, ""))
def recursion_over_a_string(s):
    return s if s == "" else last_letter(s[1:], s[0])


def last_letter(s, found):
    if not s:
        return found
    return last_letter(s[1:], s[0])


@zoo.add(words("0123456789+x", 3, "12", "7"), raises=True)
def reads_integers(s):
    return int(s) * 10 + int(s[0])


@zoo.add(words("abc", 3, "abc"), raises=True)
def third_letter(s):
    return CLOSES.get(s[2], "none"), ord(s[2:])
