# SPDX-License-Identifier: Apache-2.0
"""Reduce an audit record to what an auditor reads of it, and compare it with a search. Pure.

A record can be about objects in several warehouses and projects. An auditor of one of them gets the objects there. A
search is compared with the result only, so it reveals nothing about the rest of a record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import msgspec

from gateway.access.audit.audit_facts import BREAK_GLASS, FACTS
from gateway.access.audit.audit_record import AuditedActor, AuditedDecision, AuditedResource, AuditRecord
from gateway.access.nouns.refs import ObjectType
from gateway.access.operation import OPERATIONS
from gateway.access.operations.audit import (
    AuditEntry,
    AuditEntryActor,
    AuditEntryDecision,
    AuditEntryObject,
    AuditSelection,
)
from gateway.access.operations.grant_lists import ChangeGrants
from gateway.access.operations.grants import WriteAssignments

#: The details that auditors read. Others can show metadata of tables, such as locations, columns and keys of files.
_DETAILS: Final = frozenset(
    {
        "access_request", "access_request_id", "activated_by", "activation", "asked_about", "asked_action", "at",
        BREAK_GLASS, "change_tickets", "change_verdict", "credential_id", "data_policy_id", "engine", "error",
        "expanded_role", "expires_at", "first", "generic_table_id", "kept_seconds", "last", "level", "live_credentials",
        "mapping_table_id", "namespace_id", "policies_lost", "prefix", "probe", "proven", "purge", "reason",
        "refused_by", "repeated", "replaced_id", "requested_by", "requests", "result", "role_id", "search",
        "session_name", "signed", "subject", "table_id", "ticket", "token_id", "user_id", "vended", "verdict",
        "version", "view_id",
    }
)  # fmt: skip

MOST_WAREHOUSES: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPlace:
    """The place of an auditor. Without a warehouse and a project it is the server: all records, and all objects.

    `warehouses` are the ids of the warehouses at the place: those of the project, or the one warehouse.
    """

    project_id: str | None = None
    warehouses: frozenset[str] = frozenset()

    @property
    def is_server(self) -> bool:
        """Return True if all objects are at the place."""
        return self.project_id is None and not self.warehouses

    def has(self, resource: AuditedResource) -> bool:
        """Return True if the object of a record is at the place."""
        if self.is_server or resource.warehouse_id in self.warehouses:
            return True
        if resource.type == ObjectType.WAREHOUSE:
            return resource.id in self.warehouses
        own = resource.id if resource.type == ObjectType.PROJECT else resource.project_id
        return self.project_id is not None and own == self.project_id


@dataclass(frozen=True, slots=True)
class _Shown:
    """A decision as the auditor reads it, and the ids of the namespaces that contain its first object."""

    decision: AuditEntryDecision
    namespaces: Sequence[str]


def entry_of(record: AuditRecord, place: AuditPlace, selection: AuditSelection, block: int | None) -> AuditEntry | None:
    """Return what an auditor of a place reads of a record.

    Return None if the auditor reads nothing of it, or the search does not select it.
    """
    shown = [each for each in (_shown(decision, place) for decision in record.decisions) if each is not None]
    if not shown and not place.is_server:
        return None
    partial = len(shown) < len(record.decisions) or any(each.decision.partial for each in shown)
    entry = AuditEntry(
        id=record.id,
        at=record.at,
        request_id=record.request_id,
        actor=_actor(record.actor),
        decisions=tuple(each.decision for each in shown),
        client_request_id=record.client_request_id,
        trace_id=record.trace_id,
        user_agent=record.user_agent,
        client_address=record.client_address,
        detail={} if partial else _details(record.detail),
        block=block,
        partial=partial,
    )
    return entry if _is_selected(entry, shown, selection) else None


def _actor(actor: AuditedActor) -> AuditEntryActor:
    return AuditEntryActor(**{name: getattr(actor, name) for name in AuditedActor.__struct_fields__})


def _shown(decision: AuditedDecision, place: AuditPlace) -> _Shown | None:
    kept = [each for each in decision.resources if place.has(each)]
    if not kept and not place.is_server:
        return None
    partial = len(kept) < len(decision.resources) or (decision.resources_left_out is not None and not place.is_server)
    shown = AuditEntryDecision(
        operation=decision.operation,
        outcome=decision.outcome,
        determined_by=decision.determined_by,
        relations=decision.relations,
        objects=tuple(
            AuditEntryObject(**{name: getattr(each, name) for name in AuditedResource.__struct_fields__})
            for each in kept
        ),
        failure=decision.failure,
        policy_reasons=() if partial else decision.policy_reasons,
        obligations=decision.obligations,
        partial=partial,
    )
    # The inputs describe the first object of the decision.
    described = None if decision.inputs is None or kept[:1] != list(decision.resources[:1]) else decision.inputs
    return _Shown(shown, [] if described is None else described.namespace_ids or [])


def _details(detail: Mapping[str, str]) -> dict[str, str]:
    shown = {name: text for name, text in detail.items() if name in _DETAILS}
    facts = _facts_of_grants(detail.get(FACTS))
    return shown | ({} if facts is None else {FACTS: facts})


def _facts_of_grants(text: str | None) -> str | None:
    """Return the facts of changed grants, which auditors read; None if there are none. Other facts are metadata."""
    if text is None:
        return None
    try:
        facts = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except msgspec.MsgspecError:
        return None  # facts that were too long for the record are cut
    of_grants = {name: value for name, value in facts.items() if name in _changes_of_grants()}
    return msgspec.json.encode(of_grants).decode() if of_grants else None


def _changes_of_grants() -> frozenset[str]:
    kinds = (WriteAssignments, ChangeGrants)
    return frozenset(each.name() for each in OPERATIONS.values() if issubclass(each, kinds))


def _is_selected(entry: AuditEntry, shown: Sequence[_Shown], selection: AuditSelection) -> bool:
    if not selection.since <= entry.at < selection.until:
        return False
    if selection.actor is not None and entry.actor.id != selection.actor:
        return False
    ids = (str(entry.id), entry.request_id, entry.client_request_id, entry.trace_id)
    if selection.request_id is not None and selection.request_id not in ids:
        return False
    if selection.text is not None and not any(has_text(text, selection.text) for text in _reasons(entry)):
        return False
    of_decision = selection.operations or selection.outcomes or selection.object or selection.below
    return not of_decision or any(_is_decision(each, selection) for each in shown)


def _is_decision(shown: _Shown, selection: AuditSelection) -> bool:
    """Return True if one decision meets all filters that are about a decision."""
    decision = shown.decision
    if selection.operations and decision.operation not in selection.operations:
        return False
    if selection.outcomes and decision.outcome not in selection.outcomes:
        return False
    wanted = selection.object
    if wanted is not None and not any((each.type, each.id) == (wanted.type, wanted.id) for each in decision.objects):
        return False
    return selection.below is None or _is_below(shown, selection.below.type, selection.below.id)


def _is_below(shown: _Shown, type: str, id: UUID) -> bool:
    if any((each.type, each.id) == (type, str(id)) for each in shown.decision.objects):
        return True
    if type == ObjectType.WAREHOUSE:
        return any(each.warehouse_id == str(id) for each in shown.decision.objects)
    return str(id) in shown.namespaces


def _reasons(entry: AuditEntry) -> Iterator[str]:
    for decision in entry.decisions:
        yield decision.failure or ""
        yield from decision.policy_reasons
    yield from (text for name, text in entry.detail.items() if name != FACTS)


def has_text(text: str, part: str) -> bool:
    """Return True if a text contains a part, without regard to the case of ASCII letters."""
    return part.encode().lower() in text.encode().lower()


def parts_of(selection: AuditSelection, place: AuditPlace) -> list[list[bytes]]:
    """Return parts of the JSON of every record of which `entry_of` returns an entry: one part of each list.

    Quotes within a text are escaped, so that a name or a fact cannot contain a part with quotes.
    """
    parts: list[list[bytes]] = []
    if selection.operations:
        parts.append([_member("operation", each) for each in selection.operations])
    if selection.outcomes:
        parts.append([_member("outcome", each) for each in selection.outcomes])
    if selection.object is not None:
        parts.append([_member("id", selection.object.id)])
    if selection.below is not None:
        parts.append([str(selection.below.id).encode()])
    if selection.request_id is not None:
        parts.append([msgspec.json.encode(selection.request_id)])
    # A project with more warehouses is compared without this help: reading more records is faster than so many parts.
    if not place.is_server and len(place.warehouses) <= MOST_WAREHOUSES:
        parts.append(parts_of_place(place))
    return parts


def parts_of_place(place: AuditPlace) -> list[bytes]:
    """Return the parts of which every record about a project or warehouse has one."""
    own = [] if place.project_id is None else [msgspec.json.encode(place.project_id)]
    return [*own, *(msgspec.json.encode(each) for each in sorted(place.warehouses))]


def _member(name: str, value: str) -> bytes:
    """Return a member of a JSON object as it is in a record."""
    return f'"{name}":'.encode() + msgspec.json.encode(value)


def text_part(text: str) -> bytes:
    """Return the part of a record's JSON in lower case that a text becomes."""
    return msgspec.json.encode(text)[1:-1].lower()
