# SPDX-License-Identifier: Apache-2.0
"""Encode audit records as OTLP logs, in the JSON encoding of OTLP/HTTP.

See https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding: names in lowerCamelCase, 64-bit integers as text.
The body of a log record is the exact text of the audit record, so its digest can be computed from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from gateway.access.audit.audit_chain import Block, SealedRecord

_MOST_BYTES: Final = 2 * 1024 * 1024
"""Limit of the records' texts in one request. Collectors accept requests of 4 MiB and more."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_INFO: Final = 9
_WARN: Final = 13
_encoder = msgspec.json.Encoder()


class _Text(msgspec.Struct, frozen=True, rename="camel"):
    string_value: str


class _Integer(msgspec.Struct, frozen=True, rename="camel"):
    int_value: str


class _Attribute(msgspec.Struct, frozen=True):
    key: str
    value: _Text | _Integer


class _LogRecord(msgspec.Struct, frozen=True, rename="camel"):
    time_unix_nano: str
    observed_time_unix_nano: str
    severity_number: int
    severity_text: str
    event_name: str
    body: _Text
    attributes: tuple[_Attribute, ...]
    trace_id: str | msgspec.UnsetType = msgspec.UNSET
    """Hexadecimal, which this encoding demands instead of the base64 of protobuf's JSON."""


class _Traced(msgspec.Struct, frozen=True):
    trace_id: str | msgspec.UnsetType = msgspec.UNSET


class _Scope(msgspec.Struct, frozen=True):
    name: str


class _ScopeLogs(msgspec.Struct, frozen=True, rename="camel"):
    scope: _Scope
    log_records: list[_LogRecord]


class _Resource(msgspec.Struct, frozen=True):
    attributes: tuple[_Attribute, ...]


class _ResourceLogs(msgspec.Struct, frozen=True, rename="camel"):
    resource: _Resource
    scope_logs: tuple[_ScopeLogs, ...]


class _Request(msgspec.Struct, frozen=True, rename="camel"):
    resource_logs: tuple[_ResourceLogs, ...]


class _PartialSuccess(msgspec.Struct, frozen=True, rename="camel"):
    rejected_log_records: int | str = 0
    error_message: str = ""


class _Response(msgspec.Struct, frozen=True, rename="camel"):
    partial_success: _PartialSuccess | None = None


class Rejected(msgspec.Struct, frozen=True):
    """The number of records that the collector rejected, and its reason. They must not be sent again."""

    records: int
    reason: str


def requests_of(block: Block, records: Sequence[SealedRecord]) -> Iterator[bytes]:
    """Yield the request bodies that send a block's records. The size of each body is limited."""
    batch: list[SealedRecord] = []
    size = 0
    for record in records:
        if batch and size + len(record.record) > _MOST_BYTES:
            yield _request(block, batch)
            batch, size = [], 0
        batch.append(record)
        size += len(record.record)
    if batch:
        yield _request(block, batch)


def rejected_in(answer: bytes) -> Rejected | None:
    """Return the records that a successful response rejects.

    Return None if it rejects none, or is not an OTLP response in JSON.
    """
    try:
        partial = msgspec.json.decode(answer or b"{}", type=_Response).partial_success
        count = 0 if partial is None else int(partial.rejected_log_records)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    if partial is None or not count:
        return None
    return Rejected(count, "".join(each for each in partial.error_message if each.isprintable())[:200])


def _request(block: Block, records: Sequence[SealedRecord]) -> bytes:
    logs = _ScopeLogs(_Scope("lakegate.audit"), [_log(block, record) for record in records])
    resource = _Resource((_text("service.name", "lakegate"),))
    return _encoder.encode(_Request((_ResourceLogs(resource, (logs,)),)))


def _log(block: Block, record: SealedRecord) -> _LogRecord:
    allowed = record.outcome == "allowed"
    return _LogRecord(
        time_unix_nano=_nanoseconds(record.at),
        observed_time_unix_nano=_nanoseconds(block.sealed_at),
        severity_number=_INFO if allowed else _WARN,
        severity_text="INFO" if allowed else "WARN",
        event_name="lakegate.audit",
        body=_Text(record.record.decode()),
        attributes=(
            _text("lakegate.audit.id", str(record.id)),
            _Attribute("lakegate.audit.block", _Integer(str(block.number))),
            _text("lakegate.request_id", record.request_id),
            _text("lakegate.actor_id", record.actor_id),
            _text("lakegate.operation", record.operation),
            _text("lakegate.outcome", record.outcome),
        ),
        trace_id=_trace_of(record.record),
    )


def _trace_of(record: bytes) -> str | msgspec.UnsetType:
    """Return the trace id of an audit record, UNSET if it has none."""
    try:
        return msgspec.json.decode(record, type=_Traced).trace_id
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return msgspec.UNSET


def _text(key: str, value: str) -> _Attribute:
    return _Attribute(key, _Text(value))


def _nanoseconds(at: datetime) -> str:
    return str((at - _EPOCH) // timedelta(microseconds=1) * 1000)
