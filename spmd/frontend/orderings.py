"""`<` and its like of tuples and lists of known length.

The invariant: the first pair of items that Python would not take for the same decides, and where there is none, the
lengths; a pair behind the one that decides is compared too, without effect, since a comparison of numbers never raises.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from spmd.frontend.lowering import Lowering
from spmd.frontend.operations import binary, both, negated, refuse_own, same_item, truth
from spmd.frontend.values import Abstract, Const, Struct

ORDERS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "<": ("__lt__", operator.lt), "<=": ("__le__", operator.le),
    ">": ("__gt__", operator.gt), ">=": ("__ge__", operator.ge),
}
KINDS = {"tuple": tuple, "namedtuple": tuple, "list": list}


def ordered(low: Lowering, symbol: str, x: Abstract, y: Abstract, node: Any) -> Abstract | None:
    """x < y; None where these are not two tuples or two lists of known length."""
    if symbol not in ORDERS or not isinstance(x, Struct) or not isinstance(y, Struct):
        return None
    if x.kind not in KINDS or KINDS[x.kind] is not KINDS.get(y.kind):
        return None
    method, fold = ORDERS[symbol]
    refuse_own(low, [x.cls, y.cls], (method,), node)
    result: Abstract = Const(fold(len(x.items), len(y.items)))
    for a, b in reversed(list(zip(x.items, y.items))):
        same = same_item(low, a, b, node)
        if isinstance(same, Const) and same.value:
            continue
        here = truth(low, binary(low, symbol, fold, a, b, node), node).value
        decided, passed = both(low, negated(low, same), here), both(low, same, result)
        result = negated(low, both(low, negated(low, decided), negated(low, passed)))
    return result
