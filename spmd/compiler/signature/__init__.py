"""Where the compiler meets packed data: the only part of `spmd` that knows `batching`.

`arguments` packs what a call is given, `structure` gives the front end the structure that a schema describes, `columns`
the arrays in the same order; `results` and `gradients` build what a call returns. The names below are what the rest of
the compiler needs of `batching`.
"""

from __future__ import annotations

from batching import Packed as Packed
from batching import pack as pack
from batching.schema import PackedSchema as PackedSchema
from batching.strings import intern as intern
from batching.strings import text


class Spelled(str):
    """The string of a number that `intern` gave."""

    def __new__(cls, number: int) -> Spelled:
        return super().__new__(cls, text(number))
