# SPDX-License-Identifier: Apache-2.0
"""Order the changes of a plan, so that no principal can read more in between than before and afterwards. Pure.

`docs/apply.md` lists the changes of roles and definitions for which no such order exists or is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.access.nouns.privileges import Privilege
from gateway.apply.state import Action, Address, Change, Kind, Phase, State
from gateway.iceberg.identifiers import fold
from gateway.obligations.data_policies import AppliesTo


@dataclass(frozen=True, slots=True)
class Known:
    """The state, besides the changes, on which the order depends.

    `policies` have no bindings before the plan, and `mapping_tables` are new, so neither restricts a principal yet.
    `subjects` are the roles that are subjects of policies before or after the plan, with the roles that are their
    members. Row filters hide the rows that have values of the mapping tables `excluding`: there, more values show fewer
    rows. The roles `regrouped` get the members of another group of an identity provider, are not renamed, and no new
    role gets their former group.
    """

    policies: frozenset[Address]
    mapping_tables: frozenset[Address]
    subjects: frozenset[Address]
    excluding: frozenset[Address]
    regrouped: frozenset[Address]


_ABOUT_ROLES = (Kind.ROLE, Kind.MEMBER, Kind.GRANT)


def in_order(changes: Iterable[Change], desired: State, present: State) -> tuple[Change, ...]:
    """Return the changes in the order in which they must be made.

    Within a phase, creations precede removals, parents precede children in creations, and children precede parents in
    removals. Changes precede creations of the same kind, because a rename can free the name of a new object.
    """
    known = _known(desired, present)
    return tuple(sorted(changes, key=lambda each: (_phase(each, known), *_within_phase(each))))


def _known(desired: State, present: State) -> Known:
    lists = [on for kind, on in desired.scopes if kind is Kind.BINDING]
    policies = present.of_kind(Kind.DATA_POLICY)
    used = {fold(text) for each in policies for text in _texts(each.fields.get("definition"))}
    new = [each.address for each in desired.of_kind(Kind.MAPPING_TABLE) if each.address not in present.resources]
    return Known(
        subjects=_subject_roles(desired, present),
        regrouped=_regrouped(desired, present),
        excluding=frozenset(
            Address(Kind.MAPPING_TABLE, fold(name), each.address.parent)
            for each in (*desired.of_kind(Kind.DATA_POLICY), *policies)
            for name in _excluded(each.fields.get("definition"))
        ),
        policies=frozenset(each for each in lists if not present.children(Kind.BINDING, each)),
        # A policy may name a table that does not exist. Only policies of a list that the file contains are known.
        mapping_tables=frozenset(
            each
            for each in new
            if each.name not in used and desired.has_scope(Kind.DATA_POLICY, each.within(Kind.PROJECT))
        ),
    )


def _regrouped(desired: State, present: State) -> frozenset[Address]:
    """Return the roles of `Known.regrouped`, without those whose former group is assigned to a new role.

    Such a role must change before the new one is created.
    """
    roles = desired.of_kind(Kind.ROLE)
    taken = [_source(each.fields) for each in roles if each.address not in present.resources]
    found = set()
    for each in roles:
        before = present.resources.get(each.address)
        if before is None or each.fields.get("name", before.fields.get("name")) != before.fields.get("name"):
            continue
        source = _source(before.fields)
        if _source({**before.fields, **each.fields}) != source and source not in taken:
            found.add(each.address)
    return frozenset(found)


def _source(fields: Mapping[str, Any]) -> tuple[Any, Any]:
    return fields.get("provider-id"), fields.get("source-id")


def _subject_roles(desired: State, present: State) -> frozenset[Address]:
    """Return the roles of `Known.subjects`. In grants and members, a role is given by its name or its UUID."""
    named: dict[tuple[Address, str], Address] = {}
    grants: set[tuple[Address, str]] = set()
    members: list[tuple[tuple[Address, str], Address]] = []
    for each in (*desired.of_kind(*_ABOUT_ROLES), *present.of_kind(*_ABOUT_ROLES)):
        address = each.address
        if address.kind is Kind.ROLE:
            project = address.within(Kind.PROJECT)
            named |= {(project, name): address for name in (address.name, each.id) if name is not None}
        elif address.kind is Kind.MEMBER and address.name.startswith("role:"):
            role = address.within(Kind.ROLE)
            members.append(((role.within(Kind.PROJECT), address.name.removeprefix("role:")), role))
        elif address.name.startswith(f"{Privilege.SUBJECT} role:"):
            grants.add((address.within(Kind.PROJECT), address.name.partition(":")[2]))
    found = {named[each] for each in grants if each in named}
    while more := {named[each] for each, role in members if role in found and each in named} - found:
        found |= more
    return frozenset(found)


def _texts(value: Any) -> Iterator[str]:
    """Yield every text in a definition."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | Sequence):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(each)


def _excluded(value: Any) -> Iterator[str]:
    """Yield the mapping tables whose values a negated `in` test of a definition uses."""
    if isinstance(value, Mapping):
        values = value.get("values")
        if value.get("negated") is True and isinstance(values, Mapping) and values.get("source") == "mapping":
            yield values.get("name", "")
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    for each in parts:
        yield from _excluded(each)


def _phase(change: Change, known: Known) -> Phase:
    kind, on, removes = change.address.kind, change.address.parent, change.action is Action.REMOVE
    privilege = change.address.name.partition(" ")[0] if kind is Kind.GRANT else None
    if privilege == Privilege.SUBJECT:
        return Phase.RELEASES if removes else Phase.PRINCIPALS
    if privilege == Privilege.EXEMPT:
        return Phase.RESTRICTIONS if removes else Phase.PRINCIPALS if on in known.policies else Phase.RELEASES
    if kind is Kind.MEMBER and on in known.subjects:
        return Phase.DEPARTURES if removes else Phase.SUBJECTS
    if change.action is Action.UPDATE and change.address in known.regrouped:
        return Phase.DEPARTURES if change.address in known.subjects else Phase.ACCESS
    if removes and kind is Kind.ROLE and change.address in known.subjects:
        return Phase.DEPARTURES
    if removes:
        return kind.removed
    if kind is Kind.MAPPING_ENTRY:
        narrows = change.action is Action.UPDATE and _narrows(change, excludes=on in known.excluding)
        return Phase.RESTRICTIONS if narrows else Phase.PRINCIPALS if on in known.mapping_tables else Phase.RELEASES
    if change.action is Action.UPDATE and kind is Kind.DATA_POLICY:
        return Phase.RELEASES if _loosens(change) else Phase.POLICIES if _waits_for_tags(change) else Phase.DEFINITIONS
    return kind.added


def _narrows(change: Change, *, excludes: bool) -> bool:
    """Return True if the changed values of a principal hide rows from it. They may also show other rows."""
    values = [(set(each.after), set(each.before)) for each in change.fields]
    return any(after - before if excludes else before - after for after, before in values)


def _loosens(change: Change) -> bool:
    """Return True if the change of a data policy must be made last.

    If a policy becomes one for subjects only, it no longer restricts the members of a role that is not a subject yet.
    So the change waits until the role is a subject, and the current definition restricts every reader until then.
    """
    found = {each.name: each.after for each in change.fields}
    return found.get("applies-to") == AppliesTo.SUBJECTS or (len(found) == 1 and found.get("allow-append") is True)


def _waits_for_tags(change: Change) -> bool:
    """Return True if the current row filter may hide all rows until a tag is attached. Then the filter must change
    first.
    """
    before = next((each.before for each in change.fields if each.name == "definition"), None)
    return isinstance(before, Mapping) and before.get("kind") == "row-filter" and _names_a_tag(before)


def _names_a_tag(value: Any) -> bool:
    if isinstance(value, Mapping):
        return "tag" in value or any(_names_a_tag(each) for each in value.values())
    return isinstance(value, list | tuple) and any(_names_a_tag(each) for each in value)


def _within_phase(change: Change) -> tuple[int, int, int, bool, str]:
    rank, depth = change.address.kind.rank, change.address.depth
    if change.action is Action.REMOVE:
        return 1, -rank, -depth, False, str(change.address)
    return 0, rank, depth, change.action is Action.CREATE, str(change.address)
