"""Lists that are written: items set, appended, inserted and taken out.

The invariant: a list of known length stays a structure; one whose length paths do not agree on is `Grown`.
"""

from __future__ import annotations

from typing import Any

from spmd.errors import UnsupportedSyntax
from spmd.frontend.lowering import Lowering
from spmd.frontend.values import Abstract, Const, Object, Struct, list_of


def set_item(low: Lowering, owner: Object, held: Abstract, index: Any, thing: Abstract, node: Any) -> None:
    memory = low.memory
    assert memory is not None
    if isinstance(held, Struct) and held.kind == "list" and isinstance(index, Const) and type(index.value) is int:
        items = list(held.items)
        items[index.value] = low.hold(thing)
        memory.write(owner, list_of(tuple(items)), node)
        return
    raise low.error(UnsupportedSyntax, "this list cannot be written to", node)


def extend_list(low: Lowering, owner: Object, held: Abstract, more: Abstract, node: Any) -> None:
    raise low.error(UnsupportedSyntax, "this list cannot be extended", node)
