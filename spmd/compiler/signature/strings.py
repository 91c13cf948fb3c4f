"""The tables of strings that programs read: the letters of all strings, where each lies, and what methods give.

The invariant: a table has all strings that were packed before it was read, and what was read never changes.
"""

from __future__ import annotations

import numpy as np

from batching import Packed
from batching.columns import RaggedColumn
from batching.schema import ArraySchema, PackedSchema
from batching.strings import letters, told


def string_table(name: str) -> Packed:
    """'letters', 'bounds', or what the method of this name gives for each string, as one shared array."""
    array = letters()[("letters", "bounds").index(name)] if name in ("letters", "bounds") else told(name)
    schema = PackedSchema(ArraySchema(str(array.dtype), (None,)))
    column = RaggedColumn(array, np.zeros(1, np.int64), np.array([[len(array)]], np.int64))
    return Packed(schema, column, checked=True)
