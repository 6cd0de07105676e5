# SPDX-License-Identifier: Apache-2.0
"""The audit record, and the entry of one issued credential in the register of live credentials.

A record has the caller, the operation, the decision and its reason. The fields have closed sets of values. Entries of a
list beyond the size limit are counted, and their digest is in the record. The entry of a credential contains no secret.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypeVar
from uuid import UUID

import msgspec

from gateway.access.audit.audited_inputs import INPUTS_LEFT_OUT, CallerInputs, DecisionInputs

__all__ = [
    "MAX_RECORD_BYTES",
    "bounded",
    "digest",
    "encode_record",
]


AUDIT_FORMAT = 1


class AuditedActor(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The caller, and the engine that acts for it. `subject_proven` is false if the engine asserted the caller.

    Below a view that is read with its owner's rights, `id` is that owner and `asked_by` the caller.
    """

    kind: str
    id: str
    assumed_role: str | None = None
    engine: str | None = None
    subject_proven: bool = True
    asked_by: str | None = None


class AuditedResource(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An object that a decision is about: its name as in the request, and its id if it exists.

    `project_id` is that of an object outside of warehouses, such as a role.
    """

    type: str
    id: str | None = None
    name: str | None = None
    warehouse_id: str | None = None
    project_id: str | None = None


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """Summary of a list whose entries exceed the size limit: the number of entries left out, and the SHA-256 of the
    whole list.

    The digest covers the list's compact JSON as an unlimited record would contain it (`digest`).
    """

    count: int
    sha256: str


class AuditedRefusal(msgspec.Struct, frozen=True, kw_only=True):
    """The relation that a refused caller needs, and the object that it sees: the type and the id."""

    relation: str
    type: str
    id: str


class AuditedDecision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The decision on one operation. `failure` is the true reason of a refusal, which the response may hide.

    `refused` is the demand that was refused, if the caller sees its object.
    """

    operation: str
    outcome: str
    determined_by: str
    relations: tuple[str, ...] = ()
    resources: tuple[AuditedResource, ...] = ()
    failure: str | None = None
    refused: AuditedRefusal | None = None
    policy_reasons: tuple[str, ...] = ()
    obligations: Mapping[str, int | bool] = {}
    resources_left_out: LeftOut | None = None
    policy_reasons_left_out: LeftOut | None = None
    inputs: DecisionInputs | None = None
    """None if no policy was asked about the operation."""


class AuditRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The record of one admission by the door. Use cases add to `detail` what they vended or changed."""

    id: UUID
    format: int
    at: datetime
    request_id: str
    actor: AuditedActor
    decisions: tuple[AuditedDecision, ...]
    client_request_id: str | None = None
    """The `x-request-id` that the caller sent: any text, and not necessarily unique."""
    trace_id: str | None = None
    """The id of the trace, if the request is recorded by a tracer or its client sent the id."""
    user_agent: str | None = None
    client_address: str | None = None
    detail: Mapping[str, str] = {}
    decisions_left_out: LeftOut | None = None
    detail_left_out: Mapping[str, LeftOut] = {}
    inputs: CallerInputs | None = None

    @property
    def operation(self) -> str:
        """The first operation of the request."""
        return self.decisions[0].operation

    @property
    def outcome(self) -> str:
        """The outcome of the first operation of the request."""
        return self.decisions[0].outcome


MAX_RECORD_BYTES: Final = 65_536


_MAX_DETAIL_BYTES: Final = 8_192
"""Limit of each entry of `detail`."""


_MAX_DETAILS_BYTES: Final = 24_576


_MAX_REASONS_BYTES: Final = 4_096
"""Limit of the reasons of one decision."""


_MAX_NAME_CHARACTERS: Final = 1_024


_SPARE: Final = 1_024
"""Bytes reserved for the counts and digests themselves."""


_encoder = msgspec.json.Encoder()


Entry = TypeVar("Entry")


def encode_record(record: AuditRecord) -> bytes:
    """Return the record as JSON of at most `MAX_RECORD_BYTES`. Long lists are cut to fit."""
    return _encoder.encode(bounded(record))


def digest(whole: object) -> str:
    """Return the SHA-256 of a value's compact JSON."""
    return hashlib.sha256(_encoder.encode(whole)).hexdigest()


def bounded(record: AuditRecord) -> AuditRecord:
    """Return the record itself if it is small enough.

    Otherwise return a copy without the inputs of its decisions, and with only the first entries of its long lists.
    """
    if len(_encoder.encode(record)) <= MAX_RECORD_BYTES:
        return record
    record = msgspec.structs.replace(record, decisions=tuple(map(_without_inputs, record.decisions)))
    if len(_encoder.encode(record)) <= MAX_RECORD_BYTES:
        return record
    detail, detail_left_out = _short_details(record.detail)
    frame = msgspec.structs.replace(record, decisions=(), detail=detail, detail_left_out=detail_left_out)
    room = MAX_RECORD_BYTES - len(_encoder.encode(frame)) - _SPARE
    kept: list[AuditedDecision] = []
    for decision in record.decisions:
        fitting = _fit_resources(decision, room)
        if fitting is None:
            break
        kept.append(fitting)
        room -= _size(fitting)
    left_out = _left_out(record.decisions, len(kept), record.decisions_left_out)
    return msgspec.structs.replace(frame, decisions=tuple(kept), decisions_left_out=left_out)


def _without_inputs(decision: AuditedDecision) -> AuditedDecision:
    return decision if decision.inputs is None else msgspec.structs.replace(decision, inputs=INPUTS_LEFT_OUT)


def _fit_resources(decision: AuditedDecision, room: int) -> AuditedDecision | None:
    """Return the decision with as many of its resources as fit in `room` bytes.

    Return None if the decision does not fit even without resources.
    """
    if _size(decision) <= room:
        return decision
    reasons = _first(decision.policy_reasons, _MAX_REASONS_BYTES)
    left = _left_out(decision.policy_reasons, len(reasons), decision.policy_reasons_left_out)
    decision = msgspec.structs.replace(decision, policy_reasons=reasons, policy_reasons_left_out=left)
    resources = tuple(map(_short_name, decision.resources))
    shortened = resources != decision.resources
    bare = msgspec.structs.replace(decision, resources=(), resources_left_out=LeftOut(count=0, sha256="0" * 64))
    left_for_resources = room - _size(bare) - 16
    if left_for_resources < 0:
        return None
    first = _first(resources, left_for_resources)
    left = _left_out(decision.resources, len(first), decision.resources_left_out, shortened=shortened)
    return msgspec.structs.replace(bare, resources=first, resources_left_out=left)


def _left_out(whole: Sequence[object], kept: int, before: LeftOut | None, *, shortened: bool = False) -> LeftOut | None:
    """Return the summary of the entries that were cut from a list.

    `before` is the summary of an earlier cut: its digest is kept.
    """
    if kept == len(whole) and not shortened:
        return before
    missing = len(whole) - kept
    if before is not None:
        return LeftOut(count=before.count + missing, sha256=before.sha256)
    return LeftOut(count=missing, sha256=digest(whole))


def _short_name(resource: AuditedResource) -> AuditedResource:
    """Return the resource, with its name cut to the maximum length."""
    if resource.name is None or len(resource.name) <= _MAX_NAME_CHARACTERS:
        return resource
    return msgspec.structs.replace(resource, name=resource.name[:_MAX_NAME_CHARACTERS] + "\u2026")


def _short_details(detail: Mapping[str, str]) -> tuple[dict[str, str], dict[str, LeftOut]]:
    """Return (the details, each cut to a limited size, and summaries of the cut lists by the detail's name).

    A JSON list keeps its first entries.
    """
    short: dict[str, str] = {}
    left_out: dict[str, LeftOut] = {}
    room = _MAX_DETAILS_BYTES
    for name, text in detail.items():
        limit = min(_MAX_DETAIL_BYTES, max(room, 0))
        if _size(text) > limit:
            short[name], left_out[name] = _short_text(text, limit)
        else:
            short[name] = text
        room -= _size(short[name])
    return short, left_out


def _short_text(text: str, limit: int) -> tuple[str, LeftOut]:
    try:
        entries: list[Any] = msgspec.json.decode(text, type=list[Any])
    except (msgspec.MsgspecError, RecursionError):
        first = _first_words(text, limit)
        return first, LeftOut(count=len(text) - len(first), sha256=digest(text))
    kept = _first(entries, limit // 2)  # half, because the result is encoded again
    return _encoder.encode(kept).decode(), LeftOut(count=len(entries) - len(kept), sha256=digest(entries))


def _first_words(text: str, room: int) -> str:
    """Return the beginning of a text, at most `room` bytes when encoded.

    It ends with a whole word if it has several words.
    """
    first = text[: max(room - 3, 0)]  # room for two quotes and for what `_size` adds
    while first and (excess := _size(first) - room) > 0:
        first = first[: -max(excess // 6, 1)]  # an escaped character has at most six bytes
    return first.rpartition(" ")[0] or first


def _first(entries: Sequence[Entry], room: int) -> tuple[Entry, ...]:
    """Return as many of the first entries as fit in `room` bytes together when encoded."""
    kept: list[Entry] = []
    for entry in entries:
        room -= _size(entry) + 1
        if room < 0:
            break
        kept.append(entry)
    return tuple(kept)


def _size(value: object) -> int:
    return len(_encoder.encode(value)) + 1


class IssuedCredential(msgspec.Struct, frozen=True, kw_only=True):
    """A storage credential that one principal received for one table or generic table.

    `principal` is the user that received it, `engine` the proven engine that acted for the user. Below a view that is
    read with its owner's rights, `view_owner` is that owner. `seconds` is the lifetime that was requested from the
    store, `expires_at` the expiry that the store returned. `policy_digest` is the SHA-256 of the session policy that
    confines the credential. The fields have the names of the database columns. `request_id`, the first request that
    received the credential, is used in its event only.
    """

    id: UUID
    request_id: str
    principal: str
    assumed_role: UUID | None
    engine: str | None
    view_owner: str | None
    project_id: str
    warehouse_id: UUID
    kind: str
    table_id: UUID
    prefix: str
    level: str
    provider: str
    session_name: str
    policy_digest: str
    seconds: int
    expires_at: datetime
