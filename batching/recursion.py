"""Decides which containers are nodes of a table, and which are structure.

A class whose instances can reach an instance of the same class, through data or by its annotations, is a node class.
A dataclass or NamedTuple that cannot, and never stands where a node may stand, is a record. Tuples and dictionaries
have no class to tell them apart; they are nodes where they nest irregularly: where one of them sits, or may be
something else, inside another of the same make.

Invariant: decisions only grow; any decision gives a correct packing (a node in place of a record, or the reverse,
changes the representation and not the values), so the rules may be simple.
Must not know: schemas and columns.

The rule for tuples and dictionaries ("irregular"): a site Q with a tuple and an alternative (None, a number, a tuple of
another length, or an enclosing list that is sometimes empty), inside a site P with a tuple, such that making P and Q
one type would mix only kinds of values that some position mixes already. So ((0, 1), 2) beside (0, (1, 2)) is a tree,
(1.5, (0.5, None)) beside None a linked list, but (x, None) beside (x, (lo, hi)) is a pair with an optional pair. Eight
levels of the same make are a tree in any case.
"""

from __future__ import annotations

import dataclasses
import re
import sys
import typing
from collections.abc import Iterable
from typing import Any

from batching.sites import Alternative, Site
from batching.walking import SEQUENCE, Decisions, Plan

__all__ = ["irregular_nesting", "record_classes"]

NESTED_ALIKE = 8
Kinds = frozenset[str]
Origin = dict[int, tuple[object, "str | int", Site]]


def record_classes(candidates: Iterable[type], held: dict[type, set[type]], mixed: Iterable[set[type]]) -> set[type]:
    """The dataclasses and NamedTuples among the candidates that are structure.

    `held` maps each class to the classes that its instances' fields hold; `mixed` lists the classes met at one site.
    """
    graph = {cls: set(below) for cls, below in held.items()}
    classes = list(graph)
    for cls in classes:
        graph[cls] |= {other for other in classes if _mentions(cls, other)}
    plain = {cls for cls in classes if not (dataclasses.is_dataclass(cls) or issubclass(cls, tuple))}
    nodes = plain | {cls for cls in classes if _reaches(graph, cls, cls)}
    groups = [set(group) for group in mixed]
    grown = True
    while grown:
        before = len(nodes)
        for group in groups:
            if group & nodes:
                nodes |= group
        grown = len(nodes) > before
    return set(candidates) - nodes


def _mentions(cls: type, other: type) -> bool:
    """Whether an annotation of a class names another or one of its bases, or an alias of it.

    Annotations are read as text, none is evaluated; a name that the module binds to an alias is looked up once.
    """
    words: set[str] = set()
    for base in cls.__mro__:
        scope = vars(sys.modules.get(base.__module__, typing))
        for annotation in vars(base).get("__annotations__", {}).values():
            text = annotation if isinstance(annotation, str) else _text(annotation)
            for word in re.findall(r"\w+", text):
                words.add(word)
                alias = scope.get(word)
                if typing.get_args(alias):
                    words.update(re.findall(r"\w+", str(alias)))
    return any(base.__name__ in words for base in other.__mro__ if base.__module__ not in ("builtins", "typing"))


def _text(annotation: Any) -> str:
    if isinstance(annotation, type) and not typing.get_args(annotation):
        return annotation.__name__
    return str(annotation)


def _reaches(graph: dict[type, set[type]], start: type, goal: type) -> bool:
    seen: set[type] = set()
    work = [start]
    while work:
        for below in graph.get(work.pop(), ()):
            if below is goal:
                return True
            if below not in seen:
                seen.add(below)
                work.append(below)
    return False


def structural(site: Site) -> list[Alternative]:
    """The alternatives of a site that are tuples or dictionaries without a decision."""
    return [
        part for part in site.alternatives
        if part.key == ("list", "tuple") or part.key[0] == "record" and part.key[1] in ("tuple", "dict")
    ]


def irregular_nesting(level: list[Site], origin: Origin, decisions: Decisions) -> bool:
    """Looks for irregular nesting that ends at a site of this level (whose children are evaluated); notes what it
    finds in `decisions` and says whether it found any.

    `origin` gives, by id of a site without a parent, what node field it is; the site of the examples is not in it.
    """
    for site in level:
        if not structural(site) or site.parent is None and id(site) not in origin:
            continue
        ancestors = _above(site)
        if len(ancestors) >= NESTED_ALIKE:
            _make_nodes([site, *ancestors], origin, decisions)
            return True
        top = site
        while top.parent is not None:
            top = top.parent
        if not _irregular(site):
            continue
        allowed = [_kinds(other) for other in _subtree(top)]
        owner = origin.get(id(top))
        if owner is not None and isinstance(owner[0], int) and _fits_group(site, owner[0], origin, allowed):
            for plan in _plans(site, set(), 0, origin, decisions):
                plan.group = owner[0]
            return True
        fitting = [above for above in ancestors if _fits(above, site, allowed)]
        if fitting:
            highest = fitting[-1]
            chosen = [
                other for other in _subtree(highest)
                if structural(other) and (other is highest or other is site or _known_to_fit(highest, other, allowed))
            ]
            _make_nodes(chosen, origin, decisions)
            return True
    return False


def _above(site: Site) -> list[Site]:
    """The sites whose tuples or dictionaries hold this site, from the inside out."""
    chain = []
    while site.parent is not None:
        if _in_structure(site):
            chain.append(site.parent)
        site = site.parent
    return chain


def _in_structure(site: Site) -> bool:
    """Whether a site is a part of its parent's tuples or dictionaries, not of its lists or records."""
    return site.step == SEQUENCE or isinstance(site.step, tuple) and isinstance(site.step[0], tuple)


def _subtree(site: Site) -> list[Site]:
    found = [site]
    for member in found:
        found.extend(member.children())
    return found


def _irregular(site: Site) -> bool:
    if site.nullable or len(site.alternatives) > 1:
        return True
    if any(part.key[0] == "list" for part in structural(site)):
        return True
    parent = site.parent
    if parent is None:
        return False
    return any(part.key[0] == "list" and site in part.children and 0 in part.lengths for part in parent.alternatives)


def _kinds(site: Site) -> Kinds:
    """What occurs at a site, coarsely: numbers of any type are one kind, tuples of any length another."""
    kinds = set()
    for part in site.alternatives:
        if part.key[0] == "record":
            kinds.add("structure" if part.key[1] in ("tuple", "dict") else "record")
        elif part.key == ("list", "tuple"):
            kinds.add("structure")
        else:
            kinds.add(part.key[0])
    if site.plan is not None and site.plan.group is not None and "link" in kinds:
        kinds.discard("link")
        kinds.add("structure")
    return frozenset(kinds)


def _fields(site: Site) -> dict[object, Kinds]:
    return {
        (part.key, position): _kinds(child)
        for part in structural(site) for position, child in enumerate(part.children)
    }


def _fits(one: Site, other: Site, allowed: list[Kinds]) -> bool:
    """Whether two sites can be one type without mixing kinds of values that no position mixes."""
    first, second = _fields(one), _fields(other)
    common = first.keys() & second.keys()
    if common:
        pairs = [first[key] | second[key] for key in common]
    else:
        pairs = [frozenset().union(*first.values(), *second.values())]
    return all(any(pair <= kinds for kinds in allowed) for pair in pairs)


def _known_to_fit(one: Site, other: Site, allowed: list[Kinds]) -> bool:
    """As `_fits`, and the sites inside the other are evaluated; else a later round decides."""
    return all(child.evaluated for child in other.children()) and _fits(one, other, allowed)


def _fits_group(site: Site, group: int, origin: Origin, allowed: list[Kinds]) -> bool:
    """Whether a site inside a node of a recursive group can hold nodes of that group; as `_fits`, by field name."""
    fields = {str(name): _kinds(top) for owner, name, top in origin.values() if owner == group}
    allowed = [*allowed, *fields.values()]
    for part in structural(site):
        for position, child in enumerate(part.children):
            name = str(part.key[3][position]) if part.key[0] == "record" else "0"
            pair = fields.get(name, frozenset()) | _kinds(child)
            if not any(pair <= kinds for kinds in allowed):
                return False
    return True


def _make_nodes(chosen: list[Site], origin: Origin, decisions: Decisions) -> None:
    """Makes tuples and dictionaries of the chosen sites nodes of one new group."""
    group = decisions.groups
    decisions.groups += 1
    members = {id(site) for site in chosen}
    for site in chosen:
        for plan in _plans(site, members, group, origin, decisions):
            plan.group = group


def _plans(site: Site, members: set[int], group: int, origin: Origin, decisions: Decisions) -> list[Plan]:
    """The plans of a site, reached from the field of the nearest member above it, or from its origin."""
    steps: list[object] = []
    here = site
    while here.parent is not None and not (id(here.parent) in members and _in_structure(here)):
        steps.append(here.step)
        here = here.parent
    if here.parent is None:
        owner = origin.get(id(here))
        if owner is None:
            plans = [decisions.root]
        else:
            table, name, _ = owner
            plans = [decisions.fields.setdefault(decisions.table(table), {}).setdefault(name, Plan())]
    else:
        fields = decisions.fields.setdefault(decisions.table(group), {})
        plans = [fields.setdefault(name, Plan()) for name in _names(here)]
    for step in reversed(steps):
        for plan in plans:
            plan.sequence = True if step == SEQUENCE else plan.sequence
        plans = [plan.child(step) for plan in plans]
    return plans


def _names(site: Site) -> list[str | int]:
    """The node fields that a site inside a tuple or dictionary becomes."""
    assert site.parent is not None
    if site.step == SEQUENCE:
        tuples = [part for part in site.parent.alternatives if part.key == ("list", "tuple")]
        longest = max(max(part.lengths, default=0) for part in tuples)
        return [str(position) for position in range(longest)]
    made, position = site.step
    return [made[1][position] if isinstance(made[1], tuple) else str(position)]
