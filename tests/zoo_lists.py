"""Zoo: lists that the program makes and writes to, and what is made of them: queues, sets, tables."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from program import Collection, Rng, arrays, integers, numbers, pairs, sequences
from zoo_children import branches
from zoo_records import trees

zoo = Collection()


def _lists(rng: Rng, size: int) -> list[tuple[Any, ...]]:
    return [([int(k) for k in rng.integers(0, 9, int(rng.integers(0, 8)))],) for _ in range(size)]


# ------------------------------------------------------------------------------------------------ lists
@zoo.add(integers(0, 9, first=((0,), (8,))))
def finds_primes(n):
    primes = []
    k = 2
    while len(primes) < n:
        prime = True
        for p in primes:
            if k % p == 0:
                prime = False
                break
        if prime:
            primes.append(k)
        k += 1
    return primes[-1] if primes else 0, len(primes)


@zoo.add(pairs(arrays((3,)), integers(0, 6, first=((0,), (5,)))), wrt=(0,))
def pops_a_stack_of_numbers(x, n):
    stack = []
    for i in range(n):
        stack.append(x[i % 3] * (i + 1))
    total = 0.0
    while stack:
        total = total * 0.5 + stack.pop() ** 2
    return total


@zoo.add(sequences(0, 6, 3), share=lambda r: (r.normal(size=(3, 3)),), wrt=(0, 1))
def appends_states(w, x):
    h = np.zeros(3)
    states = []
    for t in range(len(x)):
        h = np.tanh(w @ h + x[t])
        states.append(h)
    if not states:
        return 0.0
    return np.sum(np.stack(states) ** 2) + np.sum(states[-1])


def _walk(out, n):
    if n > 0:
        _walk(out, n - 1)
        out.append(n)
        _walk(out, n - 2)


@zoo.add(integers(0, 7, first=((0,), (6,))))
def appends_in_recursion(n):
    out = []
    _walk(out, n)
    return sum([k * (i + 1) for i, k in enumerate(out)])


@zoo.add(pairs(integers(0, 6), integers(-2, 7, first=((-2,), (6,)))), raises=True)
def inserts_and_takes_out(n, k):
    xs = [5, 6]
    for i in range(n):
        xs.insert(k, i)
    xs += [9]
    first = xs.pop(k)
    xs[0] = xs[0] + 100
    ys = xs[1:] + [first]
    return ys[0], sum(xs), len(ys), xs[-1]


@zoo.add(pairs(integers(0, 7, first=((0,), (6,))), integers(0, 7, first=((6,), (0,)))))
def counts_the_ways(n, m):
    row = [1] * (m + 1)
    for _ in range(n):
        for j in range(m):
            row[j + 1] += row[j]
    return row[m]


def _graphs(rng: Rng, size: int) -> list[tuple[Any, ...]]:
    return [(rng.random((5, 5)) < 0.3, int(rng.integers(0, 5))) for _ in range(size)]


@zoo.add(_graphs)
def searches_a_graph(edges, start):
    seen = np.zeros(5, dtype=bool)
    order = [start]
    seen[start] = True
    at = 0
    while at < len(order):
        u = order[at]
        at += 1
        for v in range(5):
            if edges[u, v] and not seen[v]:
                seen[v] = True
                order.append(v)
    return len(order), order[-1], seen


@zoo.add(pairs(numbers(-1.0, 1.0), integers(0, 5)), wrt=(0,))
def holds_pairs_in_a_list(x, n):
    items = [(x, 0)]
    for k in range(n):
        last, depth = items[-1]
        items.append((last * x, depth + k))
    total = 0.0
    for value, depth in items:
        total += value * depth
    return total, len(items)


# ------------------------------------------------------------------------------------------------ lists as results
@zoo.add(pairs(numbers(-1.0, 1.0), integers(0, 5, first=((0,), (4,)))), wrt=(0,))
def returns_what_it_appended(x, n):
    powers = [x]
    pairs_of = []
    for k in range(n):
        powers.append(powers[-1] * x)
        pairs_of.append((k, x * k))
    return powers, pairs_of


@zoo.add(pairs(arrays((2,)), integers(0, 5, first=((0,), (4,)))), wrt=(0,))
def returns_appended_arrays(x, n):
    states = []
    for k in range(n):
        states.append(x * k)
    return {"states": states, "last": states[-1:], "sum": x + np.sum(x)}


# ------------------------------------------------------------------------------------------------ objects in lists
@zoo.add(branches, wrt=(0,))
def walks_a_tree_with_a_stack(t):
    stack = [t]
    total, weight = 0.0, 1.0
    while stack:
        node = stack.pop()
        total = total + weight * np.sum(node.x)
        weight *= 0.9
        if node.right is not None:
            stack.append(node.right)
        if node.left is not None:
            stack.append(node.left)
    return total


@zoo.add(trees, wrt=(0,))
def walks_a_tree_by_levels(t):
    queue = [(t, 1)]
    at = 0
    total = 0.0
    while at < len(queue):
        node, depth = queue[at]
        at += 1
        total += node.v * depth
        for kid in node.kids:
            queue.append((kid, depth + 1))
    return total, len(queue), queue[-1][1]


# ------------------------------------------------------------------------------------------------ comprehensions
@zoo.add(pairs(sequences(0, 6), integers(0, 5)), wrt=(0,))
def keeps_some_items(x, n):
    k = 2.0
    above = [v * k for v in x if v > 0.0]
    grid = [i * j for i in range(n) for j in range(i) if (i + j) % 2 == 1]
    both = [k + v for k, v in enumerate(x) if k % 2 == 0 if v < 0.5]
    return sum(above) + sum(both) + k, len(grid), sum(grid)


def _ascending(xs):
    if len(xs) < 2:
        return xs
    pivot = xs[0]
    rest = xs[1:]
    return _ascending([x for x in rest if x < pivot]) + [pivot] + _ascending([x for x in rest if x >= pivot])


@zoo.add(_lists)
def sorts_by_partition(xs):
    return _ascending(xs)


@zoo.add(pairs(integers(0, 6, first=((0,), (5,))), integers(-2, 9)))
def looks_through_a_list(n, x):
    xs = []
    for k in range(n):
        xs.append((k * 5) % 7)
    turned = xs.copy()
    turned.reverse()
    return x in xs, xs.count(x), turned[0] if turned else -1, xs.index(5) if 5 in xs else -1


@zoo.add(pairs(integers(0, 6, first=((0,), (5,))), integers(0, 9)), raises=True)
def takes_an_item_out(n, x):
    xs = [3, 4]
    for k in range(n):
        xs.append(k)
    xs.remove(x)
    return len(xs), xs.index(4)


# ------------------------------------------------------------------------------------------------ tables
def _fibonacci(n, memo):
    if n < 2:
        return n
    if n in memo:
        return memo[n]
    found = _fibonacci(n - 1, memo) + _fibonacci(n - 2, memo)
    memo[n] = found
    return found


@zoo.add(integers(0, 25, first=((0,), (24,))))
def remembers_what_it_computed(n):
    memo = {}
    return _fibonacci(n, memo), len(memo)


@zoo.add(_lists)
def finds_the_commonest(xs):
    counts = {}
    for x in xs:
        counts[x] = counts.get(x, 0) + 1
    best, most = -1, 0
    for k, v in counts.items():
        if v > most:
            best, most = k, v
    return best, most, len(counts), sum(counts.values())


@zoo.add(pairs(numbers(-1.0, 1.0), integers(0, 4, 2, first=((0, 2), (3, 3)))), wrt=(0,))
def walks_a_grid_by_pairs(x, n, m):
    ways = {(0, 0): x}
    for i in range(n):
        for j in range(m):
            ways[i, j] = ways.get((i - 1, j), 0.5) * x + ways.get((i, j - 1), 0.25)
    return ways[(n - 1, m - 1)] if n and m else ways[0, 0]


@zoo.add(pairs(_lists, integers(0, 12)), raises=True)
def reads_a_key_that_may_be_missing(xs, k):
    places = {}
    for i, x in enumerate(xs):
        places[x] = i
    return places[k] if k < 6 else -1, k in places


# ------------------------------------------------------------------------------------------------ queues, sets, order
@zoo.add(integers(1, 12, 2, first=((1, 1), (11, 5))))
def searches_by_breadth(n, start):
    queue, seen = deque([start % n]), set()
    seen.add(start % n)
    order = []
    while queue:
        u = queue.popleft()
        order.append(u)
        for v in (u * 2 % n, (u + 3) % n):
            if v not in seen:
                seen.add(v)
                queue.append(v)
    return order, len(seen), 3 in seen


def _by_remainder(x):
    return x % 3, -x


@zoo.add(_lists)
def puts_in_order(xs):
    down = xs[:]
    down.sort(reverse=True)
    paired = sorted([(x % 4, i) for i, x in enumerate(xs)], reverse=True)
    return sorted(xs), down, sorted(xs, key=_by_remainder), paired


@zoo.add(pairs(_lists, integers(0, 9)), raises=True)
def changes_a_set(xs, k):
    s = set()
    for x in xs:
        if x % 2 == 0:
            s.add(x)
        else:
            s.discard(x + 1)
    s.remove(k)
    return len(s), 4 in s


# ------------------------------------------------------------------------------------------------ lists of lists
@zoo.add(pairs(arrays((3,)), integers(0, 3)), wrt=(0,))
def writes_into_rows_of_lists(x, i):
    grid = [[0.0] * 3 for _ in range(2)]
    grid[1][i] = x[0]
    grid[i % 2][0] += x[1]
    row = grid[1]
    row[2] *= x[2]
    parts = [np.zeros(2) for _ in range(3)]
    parts[i][1] = x[i]
    parts[0] += x[:2]
    return grid[1][0] + grid[1][i], grid[0][0], row[2], parts[0] + parts[i]


@zoo.add(pairs(integers(0, 3, 2), integers(0, 4)))
def fills_neighbour_lists(i, j, n):
    near = [[] for _ in range(3)]
    near[i].append(j)
    near[j].append(i)
    for k in range(n):
        near[k % 3].append(k)
    return len(near[0]), len(near[i]), near[j][-1], sum(near[2])


PRICES = {1: 2.5, 2: 4.0, 7: 1.0}


@zoo.add(pairs(_lists, integers(0, 9)), raises=True)
def names_the_key_that_is_missing(xs, k):
    bill = 0.0
    for x in xs:
        try:
            bill += PRICES[x]
        except KeyError:
            bill += 0.5
    return bill, PRICES[k]


@zoo.add(pairs(_lists, integers(0, 5, first=((0,), (4,)))))
def makes_tables_and_sets(xs, n):
    squares = {i: i * i for i in range(n) if i % 2}
    grid = {(i, j): i - j for i in range(n) for j in range(2)}
    kinds = {x % 3 for x in xs}
    best = max(xs, key=lambda x: (x % 4) * 10 - x) if xs else -1
    return len(squares), squares.get(3, -1), sum(grid.values()), len(kinds), best
