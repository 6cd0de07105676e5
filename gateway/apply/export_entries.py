# SPDX-License-Identifier: Apache-2.0
"""Write grants, tags, mapping tables and data policies in the form of the file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.apply.state import Address, Kind, Resource, State, bound_object


def policies_of(state: State, project: Address) -> dict[str, Any]:
    """Return the members of a project about tags, mapping tables and data policies, except those that were not read."""
    found: dict[str, Any] = {}
    for kind, member, entry in (
        (Kind.TAG, "tag-definitions", _tag),
        (Kind.MAPPING_TABLE, "mapping-tables", _mapping_table),
        (Kind.DATA_POLICY, "data-policies", _policy),
    ):
        if state.has_scope(kind, project):
            found[member] = [entry(state, each) for each in state.children(kind, project)]
    return found


def tags_of(state: State, on: Address) -> dict[str, Any]:
    """Return the member `tags` of an object, or nothing if its tags were not read."""
    if not state.has_scope(Kind.ATTACHMENT, on):
        return {}
    attached = state.children(Kind.ATTACHMENT, on)
    return {"tags": {_tag_name(state, each.address): each.fields["value"] for each in attached}}


def _tag(state: State, tag: Resource) -> dict[str, Any]:
    return {**_stated(tag.fields), **grants_of(state, tag.address)}


def _mapping_table(state: State, table: Resource) -> dict[str, Any]:
    if not state.has_scope(Kind.MAPPING_ENTRY, table.address):
        return _stated(table.fields)
    entries = [
        {**principal_of(each.address.name), "values": each.fields["values"]}
        for each in state.children(Kind.MAPPING_ENTRY, table.address)
    ]
    return {**_stated(table.fields), "entries": entries}


def _policy(state: State, policy: Resource) -> dict[str, Any]:
    found = {**_stated(policy.fields), **grants_of(state, policy.address)}
    if state.has_scope(Kind.BINDING, policy.address):
        bound = (bound_object(each.address) for each in state.children(Kind.BINDING, policy.address))
        found["bindings"] = [_binding(state, each) for each in bound if each is not None]
    return found


def _binding(state: State, target: Address) -> dict[str, Any]:
    if target.kind is Kind.TAG:
        known = state.resources.get(target)
        return {"tag": target.name if known is None else known.fields["name"]}
    levels = list(target.levels)
    found: dict[str, Any] = {"warehouse": target.within(Kind.WAREHOUSE).name}
    if levels:
        found["namespace"] = levels[0] if len(levels) == 1 else levels
    named = target.kind in (Kind.TABLE, Kind.GENERIC_TABLE, Kind.NAME)
    return found | ({str(target.kind): target.name} if named else {})


def _tag_name(state: State, attachment: Address) -> str:
    """Return the name of the tag as it is defined: the address has the folded one."""
    tag = state.resources.get(Address(Kind.TAG, attachment.name, attachment.within(Kind.PROJECT)))
    return attachment.name if tag is None else str(tag.fields["name"])


def _stated(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def grants_of(state: State, on: Address) -> dict[str, Any]:
    """Return the member `grants` of an object, or nothing if the caller may not read them."""
    if not state.has_scope(Kind.GRANT, on):
        return {}
    found = []
    for each in state.children(Kind.GRANT, on):
        privilege, _, principal = each.address.name.partition(" ")
        until, reason = each.fields["expires-at"], each.fields["reason"]
        entry: dict[str, Any] = {"privilege": privilege, **principal_of(principal)}
        entry |= {} if until is None else {"expires-at": until.isoformat()}
        limits = each.fields.get("acts-for")
        # Grantors with different limits have no common form in the file; without it apply keeps them.
        entry |= {"acts-for": limits} if isinstance(limits, dict) else {}
        found.append(entry | ({} if reason is None else {"reason": reason}))
    return {"grants": found}


def principal_of(text: str) -> dict[str, str]:
    """Return the member `user` or `role` of an entry. `text` is `user:<id>` or `role:<name or UUID>`."""
    kind, _, name = text.partition(":")
    return {kind: name}
