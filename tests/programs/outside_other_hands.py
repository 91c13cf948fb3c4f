"""Programs from outside: the same tasks as other people would write them."""

from __future__ import annotations

import numpy as np
import outside_recurrences as recurrences
import outside_searches as searches
import outside_solvers as solvers
from outside_machines import stack_codes
from outside_program import Outside

# ------------------------------------------------------------------------------------------------- RK45
ROWS = [list(row[:s]) for s, row in enumerate(solvers.A.tolist())]
WEIGHTS = solvers.ERROR.tolist()


def rk45_in_scalars(mu, start, end, tolerance):
    """Dormand and Prince with the two coordinates by name and the stages in a list."""

    def slope(y, v):
        return v, mu * (1.0 - y * y) * v - y

    y, v = start
    t, h, accepted = 0.0, 0.05, 0
    while t < end:
        h = min(h, end - t)
        k = [slope(y, v)]
        for row in ROWS[1:]:
            y1, v1 = y, v
            for a, (p, q) in zip(row, k):  # noqa: B905
                y1 += h * a * p
                v1 += h * a * q
            k.append(slope(y1, v1))
        ey = h * sum(e * p for e, (p, _) in zip(WEIGHTS, k))  # noqa: B905
        ev = h * sum(e * q for e, (_, q) in zip(WEIGHTS, k))  # noqa: B905
        error = max(abs(ey) / (1.0 + max(abs(y), abs(y1))), abs(ev) / (1.0 + max(abs(v), abs(v1)))) / tolerance
        if error <= 1.0:
            t += h
            y, v = y1, v1
            accepted += 1
        h *= min(5.0, max(0.2, 0.9 * max(error, 1e-10) ** -0.2))
    return y, v, accepted


def rk45_in_scalars_end(mu, start, end, tolerance):
    y, v, _ = rk45_in_scalars(mu, start, end, tolerance)
    return y + 0.5 * v


# ------------------------------------------------------------------------------------------ edit distance
def edit_distance_by_memo(a, b):
    known = {}

    def distance(i, j):
        if i == 0 or j == 0:
            return i + j
        if (i, j) not in known:
            replaced = distance(i - 1, j - 1) + (a[i - 1] != b[j - 1])
            known[i, j] = min(distance(i - 1, j) + 1, distance(i, j - 1) + 1, replaced)
        return known[i, j]

    return distance(len(a), len(b))


def edit_distance_in_lists(a, b):
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in range(len(a) + 1):
        table[i][0] = i
    for j in range(len(b) + 1):
        table[0][j] = j
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            replaced = table[i - 1][j - 1] + (a[i - 1] != b[j - 1])
            table[i][j] = min(table[i - 1][j] + 1, table[i][j - 1] + 1, replaced)
    return table[-1][-1]


# ------------------------------------------------------------------------------------------------ Viterbi
def viterbi_in_lists(initial, transition, emission, observed):
    best = [initial[k] + emission[k, observed[0]] for k in range(len(initial))]
    back = []
    for symbol in observed[1:]:
        row, new = [], []
        for k in range(len(initial)):
            j = max(range(len(initial)), key=lambda j: best[j] + transition[j, k])  # noqa: B023
            row.append(j)
            new.append(best[j] + transition[j, k] + emission[k, symbol])
        best = new
        back.append(row)
    state = best.index(max(best))
    path = [state]
    for row in reversed(back):
        state = row[state]
        path.append(state)
    return path[::-1], max(best)


# --------------------------------------------------------------------------------------------------- LZ77
def lz77_there_and_back(data, window):
    """Compresses, keeping the best match as a pair, and expands again."""
    found = []
    i = 0
    while i < len(data):
        best = (0, 0)
        for j in range(max(0, i - window), i):
            k = 0
            while i + k < len(data) - 1 and data[j + k] == data[i + k]:
                k += 1
            best = max(best, (k, j - i))
        length, offset = best
        found.append((-offset, length, data[i + length]))
        i += length + 1
    expanded = []
    for offset, length, symbol in found:
        for _ in range(length):
            expanded.append(expanded[-offset])
        expanded.append(symbol)
    return len(found), expanded, expanded == data


# ------------------------------------------------------------------------------------------ stack machine
ACTIONS = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b,
}


def stack_machine_by_dispatch(program, x):
    stack = [x]
    for operation, number in program:
        if operation in ACTIONS:
            b, a = stack.pop(), stack.pop()
            stack.append(ACTIONS[operation](a, b))
        elif operation == "push":
            stack.append(number)
        elif operation == "dup":
            stack.append(stack[-1])
    return stack[-1]


# ------------------------------------------------------------------------------------------------- Sudoku
def sudoku_by_bits(puzzle):
    """Backtracking over the empty cells with the used digits as bits."""
    rows, columns, boxes = [0] * 9, [0] * 9, [0] * 9
    grid = puzzle.ravel().copy()
    empty = []
    for cell in range(81):
        r, c = divmod(cell, 9)
        digit = int(grid[cell])
        if digit:
            rows[r] |= 1 << digit
            columns[c] |= 1 << digit
            boxes[r // 3 * 3 + c // 3] |= 1 << digit
        else:
            empty.append(cell)

    def search(at):
        if at == len(empty):
            return True
        r, c = divmod(empty[at], 9)
        box = r // 3 * 3 + c // 3
        for digit in range(1, 10):
            bit = 1 << digit
            if not (rows[r] | columns[c] | boxes[box]) & bit:
                rows[r] |= bit
                columns[c] |= bit
                boxes[box] |= bit
                grid[empty[at]] = digit
                if search(at + 1):
                    return True
                rows[r] &= ~bit
                columns[c] &= ~bit
                boxes[box] &= ~bit
                grid[empty[at]] = 0
        return False

    return search(0), grid.reshape(9, 9)


def sudoku_in_lists(puzzle):
    grid = [[int(digit) for digit in row] for row in puzzle]

    def fits(r, c, digit):
        line = all(grid[r][k] != digit and grid[k][c] != digit for k in range(9))
        return line and all(grid[r // 3 * 3 + i][c // 3 * 3 + j] != digit for i in range(3) for j in range(3))

    def search(at):
        while at < 81 and grid[at // 9][at % 9]:
            at += 1
        if at == 81:
            return True
        for digit in range(1, 10):
            if fits(at // 9, at % 9, digit):
                grid[at // 9][at % 9] = digit
                if search(at + 1):
                    return True
                grid[at // 9][at % 9] = 0
        return False

    return search(0), np.array(grid)


PROGRAMS = (
    Outside(rk45_in_scalars, solvers.oscillators, loss=rk45_in_scalars_end, wrt=(0, 1)),
    Outside(edit_distance_by_memo, recurrences.words),
    Outside(edit_distance_in_lists, recurrences.words,
            refused="an item of a list of varying length is not written to"),
    Outside(viterbi_in_lists, recurrences.observations, share=recurrences.hidden_model,
            refused="max() takes no key"),
    Outside(lz77_there_and_back, recurrences.symbols),
    Outside(stack_machine_by_dispatch, stack_codes, refused="a global dictionary of functions is not captured"),
    Outside(sudoku_by_bits, searches.puzzles, few=5),
    Outside(sudoku_in_lists, searches.puzzles, few=5,
            refused="all() of a generator whose items may raise; lists of lists are not written to"),
)
