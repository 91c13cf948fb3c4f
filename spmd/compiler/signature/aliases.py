"""Minibatches in which an example occurs twice.

Slices of packed data share tables, elements and values, so two equal rows of a minibatch are one and the same data. The
invariant: after `severed` every node, element and value belongs to one example, which is what frames shared by table
row and gradients of mapped arguments rest on.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from batching import Packed, pack
from batching.columns import (
    Column,
    LinkColumn,
    ListColumn,
    OptionalColumn,
    RaggedColumn,
    RecordColumn,
    VariantColumn,
)


def severed(packed: Packed) -> Packed:
    """The same examples, with data of their own where some occur more than once."""
    if not _repeats(packed.root, np.ones(len(packed), bool)):
        return packed
    return pack(packed.examples(), like=packed)


def _repeats(column: Column, used: Any) -> bool:
    """Whether two of the rows that are used lead to the same data."""
    if isinstance(column, LinkColumn):
        rows = column.rows[used & (column.rows >= 0)]
        return len(np.unique(rows)) < len(rows)
    if isinstance(column, ListColumn):
        return _overlap(column.start, column.length, used)
    if isinstance(column, RaggedColumn):
        return _overlap(column.start, column.dims.prod(axis=1), used)
    if isinstance(column, RecordColumn):
        return any(_repeats(part, used) for part in column.fields)
    if isinstance(column, OptionalColumn):
        return _repeats(column.inner, used & column.present)
    if isinstance(column, VariantColumn):
        return any(_repeats(part, used & (column.tag == k)) for k, part in enumerate(column.alternatives))
    return False


def _overlap(start: Any, length: Any, used: Any) -> bool:
    """Whether runs of rows overlap."""
    used = used & (length > 0)
    order = np.argsort(start[used], kind="stable")
    first, last = start[used][order], (start + length)[used][order]
    return bool((first[1:] < last[:-1]).any())
