"""Programs from outside: searches, by a heap and by backtracking."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from outside_program import Outside
from program import Rng


# ------------------------------------------------------------------------------------------------ Dijkstra
def push(heap, item):
    heap.append(item)
    i = len(heap) - 1
    while i > 0:
        parent = (i - 1) // 2
        if heap[parent] <= heap[i]:
            break
        heap[parent], heap[i] = heap[i], heap[parent]
        i = parent


def pop(heap):
    top = heap[0]
    last = heap.pop()
    if heap:
        heap[0] = last
        i = 0
        while 2 * i + 1 < len(heap):
            child = 2 * i + 1
            if child + 1 < len(heap) and heap[child + 1] < heap[child]:
                child += 1
            if heap[i] <= heap[child]:
                break
            heap[i], heap[child] = heap[child], heap[i]
            i = child
    return top


def dijkstra(neighbours, source):
    """Distances from the source; `neighbours[u]` lists pairs (node, length)."""
    distances = [math.inf] * len(neighbours)
    distances[source] = 0.0
    heap = [(0.0, source)]
    while heap:
        d, u = pop(heap)
        if d > distances[u]:
            continue
        for v, length in neighbours[u]:
            if d + length < distances[v]:
                distances[v] = d + length
                push(heap, (d + length, v))
    return distances


def dijkstra_total(neighbours, source):
    total = 0.0
    for d in dijkstra(neighbours, source):
        if d < math.inf:
            total += d * d
    return total


def _graphs(rng: Rng, count: int, full: bool) -> list[tuple[Any, ...]]:
    largest = 30 if full else 7
    made = []
    for n in [1, largest, *rng.integers(2, largest + 1, count)][:count]:
        edges = [
            [(int(v), float(rng.uniform(0.1, 2.0))) for v in rng.permutation(int(n))[: int(rng.integers(0, 4))]]
            for _ in range(int(n))
        ]
        made.append((edges, int(rng.integers(0, n))))
    return made


# -------------------------------------------------------------------------------------------------- Sudoku
def allowed(grid, row, column, digit):
    for k in range(9):
        if grid[row, k] == digit or grid[k, column] == digit:
            return False
    top, left = 3 * (row // 3), 3 * (column // 3)
    return not (grid[top : top + 3, left : left + 3] == digit).any()


def fill(grid):
    """Fills the first empty cell, and the others behind it; whether that is possible."""
    for row in range(9):
        for column in range(9):
            if grid[row, column] == 0:
                for digit in range(1, 10):
                    if allowed(grid, row, column, digit):
                        grid[row, column] = digit
                        if fill(grid):
                            return True
                        grid[row, column] = 0
                return False
    return True


def sudoku(puzzle):
    """The grid, filled by backtracking, and whether there was a solution."""
    grid = puzzle.copy()
    solved = fill(grid)
    return grid, solved


def sudoku_by_stack(puzzle):
    """The same search with the positions on a list."""
    grid = puzzle.copy()
    empty = [(r, c) for r in range(9) for c in range(9) if grid[r, c] == 0]
    depth = 0
    trials = 0
    while 0 <= depth < len(empty):
        row, column = empty[depth]
        digit = grid[row, column] + 1
        while digit < 10 and not allowed(grid, row, column, digit):
            digit += 1
        trials += 1
        if digit < 10:
            grid[row, column] = digit
            depth += 1
        else:
            grid[row, column] = 0
            depth -= 1
    return grid, depth == len(empty), trials


def puzzles(rng: Rng, count: int, full: bool) -> list[tuple[Any, ...]]:
    base = np.array([[(3 * (r % 3) + r // 3 + c) % 9 + 1 for c in range(9)] for r in range(9)])
    made = []
    for k in range(count):
        grid = rng.permutation(9)[base - 1] + 1
        rows = [3 * int(b) + int(r) for b in rng.permutation(3) for r in rng.permutation(3)]
        grid = grid[rows]
        holes = [0, 1, 46 if full else 12, 4][k] if k < 4 else int(rng.integers(1, 47 if full else 12))
        grid.flat[rng.permutation(81)[:holes]] = 0
        made.append((grid,))
    if count > 3:
        made[3][0][0, :2] = 5
    return made


PROGRAMS = (
    Outside(dijkstra, _graphs, loss=dijkstra_total, wrt=(0,)),
    Outside(sudoku, puzzles, few=5),
    Outside(sudoku_by_stack, puzzles, few=5),
)
