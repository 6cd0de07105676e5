# SPDX-License-Identifier: Apache-2.0
"""Request and response bodies: kebab-case, members of later versions, and errors with a path."""

import json
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from gateway.iceberg import updates, wire
from gateway.iceberg.errors import BadRequestException, IdentifierNameEmpty
from gateway.iceberg.identifiers import Namespace, TableIdentifier
from lakegate.restrictions.literals import ABSENT


def decode(body: Any, kind: Any) -> Any:
    return wire.decode(json.dumps(body).encode(), kind)


def refusal(body: Any, kind: type) -> str:
    with pytest.raises(BadRequestException) as caught:
        decode(body, kind)
    return caught.value.message


def commit_body(*changes: Any) -> dict[str, Any]:
    return {"requirements": [], "updates": list(changes)}


def test_unknown_members_of_requests_and_updates_are_ignored() -> None:
    request = decode({"namespace": ["a"], "colour": 1}, wire.CreateNamespaceRequest)
    assert request == decode({"namespace": ["a"]}, wire.CreateNamespaceRequest)
    update = {"action": "set-location", "location": "s3://a"}
    request = decode(commit_body({**update, "force": True}), wire.CommitTableRequest)
    assert request == decode(commit_body(update), wire.CommitTableRequest)


def test_an_unknown_member_of_a_requirement_is_refused_with_its_path() -> None:
    requirement = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 1, "within-ms": 5}
    message = refusal({"requirements": [requirement], "updates": []}, wire.CommitTableRequest)
    assert "`within-ms` at `$.requirements[0]`" in message


def test_an_unknown_member_of_a_table_identifier_is_refused() -> None:
    table = {"namespace": ["a"], "name": "t"}
    body = {"source": table, "destination": {**table, "catalog": "other"}}
    assert "`catalog` at `$.destination`" in refusal(body, wire.RenameRequest)


def test_an_unknown_update_is_refused_naming_it_and_the_known_ones() -> None:
    message = refusal(commit_body({"action": "enable-row-lineage"}), wire.CommitTableRequest)
    assert "unknown update 'enable-row-lineage' at `$.updates[0].action`" in message
    assert "remove-encryption-key" in message and "add-view-version" not in message


def test_an_unknown_requirement_is_refused_naming_it_and_the_known_ones() -> None:
    body = {"requirements": [{"type": "assert-sunny"}], "updates": []}
    message = refusal({"table-changes": [body]}, wire.CommitTransactionRequest)
    assert "unknown requirement 'assert-sunny' at `$.table-changes[0].requirements[0].type`" in message
    assert "assert-default-sort-order-id" in message


def test_views_and_tables_accept_different_updates() -> None:
    message = refusal({"updates": [{"action": "add-snapshot", "snapshot": {}}]}, wire.CommitViewRequest)
    assert "set-current-view-version" in message and "add-spec" not in message


def test_errors_name_paths_in_the_spelling_of_the_request() -> None:
    message = refusal(commit_body({"action": "set-current-schema", "schema-id": "1"}), wire.CommitTableRequest)
    assert message == "Malformed request: expected `int`, got `str` at `$.updates[0].schema-id`"


@pytest.mark.parametrize(
    "data", [b"", b"{", b'{"namespace":["a"]} x', b"\xff", b'{"namespace":["\xff"]}', b"[" * 100_000]
)
def test_invalid_json_is_a_bad_request(data: bytes) -> None:
    with pytest.raises(BadRequestException):
        wire.decode(data, wire.CreateNamespaceRequest)


def test_a_nul_character_is_refused_and_its_escaped_text_is_accepted() -> None:
    for body in (rb'{"namespace":["a"],"properties":{"k":"\u0000"}}', rb'{"namespace":["a\\\u0000"]}'):
        with pytest.raises(BadRequestException, match=r"U\+0000"):
            wire.decode(body, wire.CreateNamespaceRequest)
    plain = wire.decode(rb'{"namespace":["a"],"properties":{"k":"\\u0000"}}', wire.CreateNamespaceRequest)
    assert plain.properties == {"k": r"\u0000"}


def test_ids_beyond_64_bits_are_refused() -> None:
    assert "snapshot-id" in refusal(
        commit_body({"action": "remove-statistics", "snapshot-id": 2**63}), wire.CommitTableRequest
    )


def test_null_counts_as_absent() -> None:
    body = {"name": "t", "schema": {"type": "struct", "fields": []}, "location": None, "properties": None}
    request = decode({**body, "stage-create": None, "partition-spec": None}, wire.CreateTableRequest)
    assert (request.location, request.properties, request.stage_create) == (None, {}, False)
    assert request.partition_spec == ABSENT


def test_a_null_member_does_not_hide_another_error() -> None:
    body = {"namespace": ["a", 1], "properties": None}
    assert "`$.namespace[1]`" in refusal(body, wire.CreateNamespaceRequest)
    assert "`namespace`" in refusal({"namespace": None}, wire.CreateNamespaceRequest)


def test_deprecated_names_of_property_updates_are_accepted() -> None:
    request = decode(
        commit_body(
            {"action": "set-properties", "updated": {"a": "b"}}, {"action": "remove-properties", "removed": ["c"]}
        ),
        wire.CommitTableRequest,
    )
    assert request.updates[0].updates == {"a": "b"}
    assert request.updates[1].removals == ("c",)


@pytest.mark.parametrize("action", ["set-properties", "remove-properties"])
def test_a_property_update_without_properties_is_refused(action: str) -> None:
    assert "required field" in refusal(commit_body({"action": action}), wire.CommitTableRequest)


def test_an_empty_property_update_is_not_an_absent_one() -> None:
    request = decode(commit_body({"action": "remove-properties", "removals": []}), wire.CommitTableRequest)
    assert request.updates[0].removals == ()


def test_a_ref_requirement_may_omit_the_snapshot_id() -> None:
    body = {"requirements": [{"type": "assert-ref-snapshot-id", "ref": "main"}], "updates": []}
    assert decode(body, wire.CommitTableRequest).requirements[0].snapshot_id is None


def test_identifiers_in_bodies_are_parsed() -> None:
    body = {"source": {"namespace": ["a", "b"], "name": "T"}, "destination": {"namespace": ["c"], "name": "u"}}
    request = decode(body, wire.RenameRequest)
    assert request.source.identifier == TableIdentifier(Namespace(("a", "b")), "T")
    assert (request.source.key, request.source.dotted) == ("a\x1fb\x1ft", "a.b.T")
    assert wire.TableIdentifierBody.of(request.source.identifier) == request.source


def test_an_identifier_without_a_name_is_refused_on_use() -> None:
    body = {"source": {"namespace": ["a"], "name": ""}, "destination": {"namespace": ["c"], "name": "u"}}
    with pytest.raises(IdentifierNameEmpty):
        _ = decode(body, wire.RenameRequest).source.identifier


def test_the_last_page_has_a_null_next_page_token() -> None:
    page = wire.ListTablesResponse(identifiers=(wire.TableIdentifierBody(("a",), "t"),), next_page_token=None)
    assert json.loads(msgspec.json.encode(page)) == {
        "identifiers": [{"namespace": ["a"], "name": "t"}],
        "next-page-token": None,
    }
    empty = wire.ListNamespacesResponse(namespaces=(), next_page_token="x", namespace_uuids=())
    assert json.loads(msgspec.json.encode(empty)) == {"namespaces": [], "next-page-token": "x", "namespace-uuids": []}


def test_a_loaded_table_contains_the_stored_document_and_no_empty_members() -> None:
    result = wire.LoadTableResult(metadata=Raw(b'{"format-version": 2}'), metadata_location="s3://x")
    assert msgspec.json.encode(result) == b'{"metadata":{"format-version": 2},"metadata-location":"s3://x"}'


def test_a_staged_table_has_no_location() -> None:
    assert b"metadata-location" not in msgspec.json.encode(wire.LoadTableResult(metadata=Raw(b"{}")))


def test_credentials_and_restrictions_are_encoded_as_specified() -> None:
    credential = wire.StorageCredential(prefix="s3://a/", config={"s3.access-key-id": "k"})
    result = wire.LoadTableResult(
        metadata=Raw(b"{}"), storage_credentials=(credential,), read_restrictions=Raw(b'{"a":1}'), labels=Raw(b"{}")
    )
    members = json.loads(msgspec.json.encode(result))
    assert members["storage-credentials"] == [{"prefix": "s3://a/", "config": {"s3.access-key-id": "k"}}]
    assert members["read-restrictions"] == {"a": 1}


def test_an_error_has_the_format_of_the_protocol() -> None:
    body = wire.ErrorResponse(error=wire.ErrorModel(message="m", type="NoSuchTableException", code=404))
    assert json.loads(msgspec.json.encode(body)) == {
        "error": {"message": "m", "type": "NoSuchTableException", "code": 404}
    }


def test_a_config_without_idempotency_omits_its_members() -> None:
    config = wire.CatalogConfig(defaults={}, overrides={}, endpoints=("GET /v1/{prefix}/namespaces",))
    assert b"idempotency" not in msgspec.json.encode(config)


def test_reports_are_read_leniently() -> None:
    report = {"report-type": "scan-report", "table-name": "t", "snapshot-id": 1, "schema-id": 0, "metrics": {}, "x": 1}
    assert isinstance(decode({**report, "filter": True}, wire.ReportMetricsRequest), wire.ScanReport)
    commit = {"report-type": "commit-report", "table-name": "t", "snapshot-id": 1, "sequence-number": 2}
    assert isinstance(
        decode({**commit, "operation": "append", "metrics": {}}, wire.ReportMetricsRequest), wire.CommitReport
    )


def test_every_update_of_the_specification_is_supported() -> None:
    assert len(updates.TABLE_ACTIONS) == 23
    assert set(updates.VIEW_ACTIONS) - set(updates.TABLE_ACTIONS) == {"add-view-version", "set-current-view-version"}
