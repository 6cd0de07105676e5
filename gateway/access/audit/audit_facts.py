# SPDX-License-Identifier: Apache-2.0
"""Build the facts of a change for its audit record: all fields of the declared operation, of limited size."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

from gateway.access.audit.audit_record import AuditedDecision, AuditedResource, AuditRecord, LeftOut
from gateway.access.events.event_redaction import without_secrets
from gateway.access.nouns.refs import TabularRef
from gateway.access.operation import Operation

FACTS: Final = "facts"
"""The detail of the audit record with the facts of its changes."""

MAX_FACTS_BYTES: Final = 8_192
"""Limit of the facts of one operation, in bytes of JSON, beside the names of its fields."""
_MAX_REDACTED_BYTES: Final = 65_536
"""Only the digest of a larger value is recorded, and it is computed with the secrets."""

Facts = dict[str, msgspec.Raw]


class Digest(msgspec.Struct, frozen=True):
    """A value that is too large for the record: the length and the SHA-256 of its compact JSON."""

    bytes: int
    sha256: str


def facts_of_changes(operations: Iterable[Operation]) -> dict[str, str]:
    """Return the detail `FACTS`: JSON with the facts of each changing operation by its name; empty without any.

    An operation with the same facts as one before it, such as the two of an adoption, is left out.
    """
    facts: dict[str, Facts] = {}
    for operation in operations:
        if operation.changes() and (own := facts_of(operation)) and own not in facts.values():
            facts[operation.name()] = own
    return {FACTS: msgspec.json.encode(facts).decode()} if facts else {}


def facts_of(operation: Operation) -> Facts:
    """Return the fields of an operation as JSON by name, without unset fields and the objects of the record."""
    objects = {*(demand.on for demand in operation.demands()), *operation.further_refs()}
    kinds = {type(each) for each in objects}
    facts: Facts = {}
    for name, value in operation.audited_fields().items():
        if value is not None and not (type(value) in kinds and value in objects):
            facts[name] = _encoded(value)
    return _fitting(facts, MAX_FACTS_BYTES)


def _encoded(value: object) -> msgspec.Raw:
    data = msgspec.json.encode(_stated(value))
    return msgspec.Raw(data if len(data) > _MAX_REDACTED_BYTES else without_secrets(data))


def _stated(value: object) -> object:
    """Return a value with its references to tables and views as objects of type and id or name."""
    match value:
        case TabularRef():
            named = {"name": value.identifier} if value.named else {"id": value.id}
            return {"type": value.type, **named}
        case tuple():
            return [_stated(each) for each in value]
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {field.name: _stated(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return value


def _fitting(values: Facts, room: int, *, members: bool = True) -> Facts:
    """Replace the largest values by digests until all fit in `room` bytes. With `members`, replace those of an object
    before the object.
    """
    excess = sum(len(bytes(value)) for value in values.values()) - room
    for name in sorted(values, key=lambda name: -len(bytes(values[name]))):
        if excess > 0:
            whole = bytes(values[name])
            values[name] = _shorter(whole, len(whole) - excess) if members else _digest(whole)
            excess -= len(whole) - len(bytes(values[name]))
    return values


def _shorter(whole: bytes, room: int) -> msgspec.Raw:
    """Return an object with digests of its largest members if it fits in `room` bytes, else the digest of the value."""
    if whole.startswith(b"{"):
        members = msgspec.json.decode(whole, type=Facts)
        names = len(whole) - sum(len(bytes(value)) for value in members.values())
        shorter = msgspec.json.encode(_fitting(members, room - names, members=False))
        if len(shorter) <= room:
            return msgspec.Raw(shorter)
    return _digest(whole)


def _digest(whole: bytes) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(Digest(len(whole), hashlib.sha256(whole).hexdigest())))


__all__ = ["MAX_RECORD_BYTES", "bounded", "digest", "encode_record"]

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
    """Return the record as JSON of at most `MAX_RECORD_BYTES`."""
    return _encoder.encode(bounded(record))


def digest(whole: object) -> str:
    """Return the SHA-256 of a value's compact JSON."""
    return hashlib.sha256(_encoder.encode(whole)).hexdigest()


def bounded(record: AuditRecord) -> AuditRecord:
    """Return the record itself if it is small enough, else a copy with the first entries of its long lists."""
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


def _fit_resources(decision: AuditedDecision, room: int) -> AuditedDecision | None:
    """Return the decision with as many resources as fit in `room` bytes; None if it does not fit without any."""
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
    """Return the summary of the entries cut from a list. A list cut `before` keeps its first digest."""
    if kept == len(whole) and not shortened:
        return before
    missing = len(whole) - kept
    if before is not None:
        return LeftOut(count=before.count + missing, sha256=before.sha256)
    return LeftOut(count=missing, sha256=digest(whole))


def _short_name(resource: AuditedResource) -> AuditedResource:
    """Return the resource; a name that is too long is cut to its beginning."""
    if resource.name is None or len(resource.name) <= _MAX_NAME_CHARACTERS:
        return resource
    return msgspec.structs.replace(resource, name=resource.name[:_MAX_NAME_CHARACTERS] + "\u2026")


def _short_details(detail: Mapping[str, str]) -> tuple[dict[str, str], dict[str, LeftOut]]:
    """Return (entries of limited size, summaries of the cut entries by name). JSON lists keep their first entries."""
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
    kept = _first(entries, limit // 2)  # quotes are escaped once more
    return _encoder.encode(kept).decode(), LeftOut(count=len(entries) - len(kept), sha256=digest(entries))


def _first_words(text: str, room: int) -> str:
    """Return the beginning of a text that encodes to at most `room` bytes, to the end of a word if it has several."""
    first = text[: max(room - 3, 0)]  # two quotes, and what `_size` adds
    while first and (excess := _size(first) - room) > 0:
        first = first[: -max(excess // 6, 1)]  # one character is six bytes at most, escaped
    return first.rpartition(" ")[0] or first


def _first(entries: Sequence[Entry], room: int) -> tuple[Entry, ...]:
    """Return the first entries that together encode to at most `room` bytes."""
    kept: list[Entry] = []
    for entry in entries:
        room -= _size(entry) + 1
        if room < 0:
            break
        kept.append(entry)
    return tuple(kept)


def _size(value: object) -> int:
    return len(_encoder.encode(value)) + 1
