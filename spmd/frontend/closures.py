"""Inner functions as values: the variables that they reach, and what becomes of them where they leave their frame.

Python's inner function shares its free variables with the frame that made it. While that frame runs (or waits for a
call), the variables are names of the scope, so a call passes them as they are then: late binding. A function that is
passed on, returned or stored in what leaves the frame takes their values along (`pack`). The invariant: what was taken
along is what Python would read: the frame is over, or waits, or never binds these variables again; else refused.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

from spmd.errors import UnsupportedFunction, UnsupportedSyntax
from spmd.frontend.compounds import Closure, functions_in
from spmd.frontend.identities import Cell, Object, cell_name, reachable
from spmd.frontend.lowering import Lowering
from spmd.frontend.read import Definition
from spmd.frontend.scoping import bare, own_name
from spmd.frontend.values import UNBOUND, Abstract, Grown, Run, Table, around, parts_of

NESTED = 12


def free(function: Closure) -> frozenset[str]:
    """The cells that the function itself, or one inside it, names."""
    found: frozenset[str] = function.definition.scopes.free[function.definition.node]
    return found


def held_functions(low: Lowering, thing: Abstract) -> Iterable[Closure]:
    """The functions that a thing is or holds, in lists and records of its too."""
    yield from functions_in(thing)
    for ident in reachable(low.scope.names, [thing]) if low.memory is not None else ():
        cell = low.scope.names.get(cell_name(ident))
        if isinstance(cell, Cell):
            yield from functions_in(cell.thing)


def reached(low: Lowering, functions: Iterable[Closure]) -> dict[str, Abstract]:
    """The cells that functions of this scope, and the functions that they reach, read: what they hold now."""
    found: dict[str, Abstract] = {}
    stack = [f for f in functions if f.cells is None]
    while stack:
        for key in sorted(free(stack.pop()) - found.keys()):
            thing = found[key] = low.scope.names.get(own_name(key, low.definition.level), UNBOUND)
            stack += [f for f in held_functions(low, thing) if f.cells is None]
    return dict(sorted(found.items()))


def own_cells(low: Lowering, things: Iterable[Abstract]) -> dict[str, Abstract]:
    """What functions among the things read, by the names that this frame has for it."""
    cells = reached(low, [f for thing in things for f in held_functions(low, thing)])
    return {own_name(key, low.definition.level): thing for key, thing in cells.items()}


def pack(low: Lowering, thing: Abstract, node: Any, leaving: bool = False) -> Abstract:
    """The thing as it can leave this frame: to a callee, or for good (`leaving`)."""
    if isinstance(thing, Closure) and thing.cells is None:
        given = tuple(pack(low, part, node, leaving) for part in thing.given)
        cells = reached(low, [thing])
        scopes, level = low.definition.scopes, low.definition.level
        for key in cells.keys() & scopes.boxed:
            raise low.error(
                UnsupportedSyntax, f"'{thing.definition.name}' shares the variable '{bare(key)}', which is written "
                "through 'nonlocal', and cannot be passed on", node, "call it in the function that defines it.")
        if any(_depth(part) > NESTED for part in (*given, *cells.values())):
            text = f"'{thing.definition.name}' holds functions that hold functions, more than {NESTED} deep"
            raise low.error(UnsupportedFunction, text, node,
                            "a recursion that adds a function each time has no finite program.")
        shaky = [key for key in cells if _may_change(low, key, level, leaving)]
        return Closure(thing.definition, thing.names, given, tuple(cells), tuple(cells.values()), bool(shaky))
    if isinstance(thing, (Run, Grown, Table, Object)):
        if any(free(f) for f in held_functions(low, thing) if f.cells is None):
            text = "a list of functions that read variables around them cannot be passed on"
            raise low.error(UnsupportedSyntax, text, node, "give them what they read as defaults: lambda x, k=k: ...")
        return thing
    parts = parts_of(thing)
    packed = tuple(pack(low, part, node, leaving) for part in parts)
    return thing if all(map(operator.is_, packed, parts)) else around(thing, packed)


def _depth(thing: Abstract) -> int:
    """How deep functions that have taken their variables along are nested in a thing."""
    below = max((_depth(part) for part in parts_of(thing)), default=0)
    return below + (isinstance(thing, Closure) and thing.cells is not None)


def _may_change(low: Lowering, key: str, level: int, leaving: bool) -> bool:
    """Whether the variable may be bound again while the packed function lives."""
    name, owner = key.split("@")
    if leaving and int(owner) == level:
        return False
    shaky = low.definition.scopes.shaky
    definition: Definition | None = low.definition
    while definition is not None and definition.level > int(owner):
        definition = definition.around
    return definition is None or name in shaky[definition.key]


def keep(low: Lowering, thing: Abstract, node: Any) -> Abstract:
    """The thing as a result: functions with what they read, if nothing can change it any more."""
    packed = pack(low, thing, node, leaving=True)
    for function in functions_in(packed):
        if function.loaned:
            raise low.error(
                UnsupportedSyntax, f"the function '{function.definition.name}' reads variables that are bound again "
                "later, and cannot be returned to where they are", node,
                "bind these variables once, before the function is defined, or give it defaults: lambda x, k=k: ...")
    return packed


def demand_none_left_behind(low: Lowering) -> None:
    """Refuses a function that leaves an inner function in a list or record that it was given, if the variables which
    that reads are of its own frame, or may be bound again."""
    for pending in low.returns:
        names = pending.scope.names
        for ident in reachable(names, [Object(k) for k in low.pins]):
            cell = names.get(cell_name(ident))
            for function in functions_in(cell.thing) if isinstance(cell, Cell) else ():
                own = f"@{low.definition.level}"
                if function.loaned or function.cells is None and any(key.endswith(own) for key in free(function)):
                    text = f"the function '{function.definition.name}' is kept in a list or record from outside"
                    raise low.error(UnsupportedSyntax, text, low.definition.node,
                                    "give it what it reads as defaults: lambda x, k=k: ...")
