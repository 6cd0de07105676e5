# SPDX-License-Identifier: Apache-2.0
"""Audit records as OTLP logs: the requests are those of the protocol's own definition, and none is too large."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import msgspec
import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsPartialSuccess,
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)

from gateway.access.audit.audit_chain import SealedRecord, seal
from gateway.access.audit.audit_otlp import Rejected, rejected_in, requests_of

AT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


def _record(number: int, text: str = "{}", outcome: str = "allowed") -> SealedRecord:
    return SealedRecord(UUID(int=number), AT, "r", "oidc~alice", "load_table", outcome, text.encode())


def _sent(records: list[SealedRecord]) -> list[ExportLogsServiceRequest]:
    block = seal(records, after=None, sealed_at=AT)
    # `ParseDict` and `Parse` reject fields that the definition does not have.
    return [json_format.Parse(body, ExportLogsServiceRequest()) for body in requests_of(block, records)]


def test_a_request_has_the_exact_text_and_time_of_each_record() -> None:
    texts = ['{"a":"\\u0000 ä \\ud83d\\ude00 \'"}', "{}"]
    (request,) = _sent([_record(1, texts[0]), _record(2, texts[1], outcome="forbidden")])
    (resource,) = request.resource_logs
    assert [each.value.string_value for each in resource.resource.attributes] == ["lakegate"]
    (scope,) = resource.scope_logs
    assert [each.body.string_value for each in scope.log_records] == texts
    assert [each.severity_number for each in scope.log_records] == [9, 13]
    first = scope.log_records[0]
    assert first.time_unix_nano == 1_767_323_045_678_901_000
    assert first.event_name == "lakegate.audit"
    values = {each.key: each.value.string_value or each.value.int_value for each in first.attributes}
    assert values == {
        "lakegate.audit.id": str(UUID(int=1)),
        "lakegate.audit.block": 1,
        "lakegate.request_id": "r",
        "lakegate.actor_id": "oidc~alice",
        "lakegate.operation": "load_table",
        "lakegate.outcome": "allowed",
    }


def test_the_trace_of_a_record_is_that_of_its_log_record() -> None:
    """OTLP writes ids in hexadecimal. Records before traces, and those that are no objects, have none."""
    texts = [f'{{"trace_id":"{"0af7" * 8}","actor":{{}}}}', '{"trace_id":5}', "[]"]
    block = seal([_record(number, text) for number, text in enumerate(texts)], after=None, sealed_at=AT)
    (body,) = requests_of(block, [_record(number, text) for number, text in enumerate(texts)])
    (resource,) = msgspec.json.decode(body)["resourceLogs"]
    records = resource["scopeLogs"][0]["logRecords"]
    assert [each.get("traceId") for each in records] == ["0af7" * 8, None, None]


def test_large_records_are_sent_in_several_requests() -> None:
    records = [_record(number, "x" * 65_536) for number in range(100)]
    requests = _sent(records)
    sizes = [len(request.resource_logs[0].scope_logs[0].log_records) for request in requests]
    assert sum(sizes) == 100
    assert max(sizes) == 32


def test_a_record_larger_than_the_limit_is_sent_alone() -> None:
    huge = replace(_record(1), record=b"x" * 3_000_000)
    assert len(_sent([huge, _record(2)])) == 2


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"", None),
        (b"{}", None),
        (b"no json", None),
        (b'{"partialSuccess":{"rejectedLogRecords":"many"}}', None),
        (b'{"partialSuccess":{"rejectedLogRecords":"0","errorMessage":"a warning"}}', None),
        (b'{"partialSuccess":{"rejectedLogRecords":3,"errorMessage":"too\\nold"}}', Rejected(3, "tooold")),
    ],
)
def test_a_partial_success_is_read_and_other_answers_reject_nothing(answer: bytes, expected: Rejected | None) -> None:
    assert rejected_in(answer) == expected


def test_a_partial_success_of_the_definition_is_read() -> None:
    partial = ExportLogsPartialSuccess(rejected_log_records=7, error_message="old")
    answer = json_format.MessageToJson(ExportLogsServiceResponse(partial_success=partial))
    assert rejected_in(answer.encode()) == Rejected(7, "old")
