# SPDX-License-Identifier: Apache-2.0
"""Views: creation, commits, history, documents."""

import json
from typing import Any
from uuid import UUID

import pytest

from gateway.iceberg import wire
from gateway.iceberg.commit import ViewCommitOutcome, commit_view
from gateway.iceberg.creation import new_view_metadata
from gateway.iceberg.errors import (
    BadRequestException,
    CatalogError,
    CommitFailedException,
    EmptyView,
    IllegalArgumentException,
    InvalidTableUpdate,
    MetadataTooLarge,
    ViewUuidMismatch,
)
from gateway.iceberg.limits import Limits
from gateway.iceberg.views import ViewMetadata, decode_stored_view_metadata, decode_view_metadata, encode_view_metadata

VIEW_UUID = UUID(int=77)
LOCATION = "s3://lake/views/v"
NOW = 1_700_000_100_000


def query(sql: str, dialect: str = "spark") -> dict[str, Any]:
    return {"type": "sql", "sql": sql, "dialect": dialect}


def version(*queries: Any, **more: Any) -> dict[str, Any]:
    return {
        "version-id": 1,
        "timestamp-ms": 1_700_000_000_000,
        "schema-id": 0,
        "summary": {"engine-name": "spark"},
        "representations": list(queries) or [query("select 1")],
        "default-namespace": ["ns"],
        **more,
    }


def schema(*names: str) -> dict[str, Any]:
    fields = [{"id": i, "name": n, "type": "int", "required": False} for i, n in enumerate(names or ("a",), 1)]
    return {"type": "struct", "schema-id": 3, "fields": fields}


def make(**body: Any) -> ViewMetadata:
    request = {"name": "v", "schema": schema(), "view-version": version(), "properties": {"k": "v"}, **body}
    decoded = wire.decode(json.dumps(request).encode(), wire.CreateViewRequest)
    return new_view_metadata(decoded, view_uuid=VIEW_UUID, location=LOCATION + "/", now_ms=NOW)


def commit(base: ViewMetadata, *updates: Any, requirements: Any = ()) -> ViewCommitOutcome:
    body = {"requirements": list(requirements), "updates": list(updates)}
    request = wire.decode(json.dumps(body).encode(), wire.CommitViewRequest)
    before = encode_view_metadata(base)
    try:
        return commit_view(base, request.requirements, request.updates, now_ms=NOW)
    finally:
        assert encode_view_metadata(base) == before


def add(*queries: Any, **more: Any) -> list[Any]:
    return [{"action": "add-view-version", "view-version": version(*queries, **more)}, CURRENT]


CURRENT = {"action": "set-current-view-version", "view-version-id": -1}
WIDER = {"action": "add-schema", "schema": schema("a", "b")}


def test_a_new_view_has_schema_0_and_version_1() -> None:
    made = json.loads(encode_view_metadata(make(**{"view-version": version(**{"version-id": 8, "schema-id": 3})})))
    assert made == {
        "view-uuid": str(VIEW_UUID),
        "format-version": 1,
        "location": LOCATION,
        "properties": {"k": "v"},
        "schemas": [{**schema(), "schema-id": 0}],
        "current-version-id": 1,
        "versions": [version()],
        "version-log": [{"timestamp-ms": 1_700_000_000_000, "version-id": 1}],
    }


@pytest.mark.parametrize(
    ("body", "error", "message"),
    [
        ({"view-version": version(query("a", "Trino"), query("b", "trino"))}, IllegalArgumentException, "trino"),
        ({"view-version": {**version(), "representations": []}}, EmptyView, "at least one representation"),
        ({"view-version": version({"type": "sql", "sql": "x"})}, BadRequestException, "fields sql and dialect"),
        ({"view-version": {"version-id": 1}}, BadRequestException, "`$.view-version`"),
        ({"view-version": 1}, BadRequestException, "expected an object at `$.view-version`"),
        ({"schema": {"type": "struct"}}, BadRequestException, "`fields` at `$.schema`"),
        ({"properties": {"version.history.num-entries": "0"}}, BadRequestException, "must be positive but was 0"),
    ],
)
def test_an_invalid_view_is_refused(body: Any, error: type[CatalogError], message: str) -> None:
    with pytest.raises(error) as caught:
        if "properties" in body:
            base = make(**body)
            for i in range(11):
                base = commit(base, *add(query(f"select x{i}"))).metadata
        make(**body)
    assert message in caught.value.message
    assert caught.value.code == 400


def test_a_duplicate_dialect_is_refused_with_the_message_clients_match() -> None:
    with pytest.raises(IllegalArgumentException) as caught:
        commit(make(), *add(query("a", "trino"), query("b", "TRINO")))
    assert caught.value.message == "Invalid view version: Cannot add multiple queries for dialect trino"
    assert caught.value.type == "IllegalArgumentException"


def test_a_replaced_view_gets_the_next_version_id_regardless_of_the_client() -> None:
    new = commit(make(), WIDER, *add(query("select 2"), **{"schema-id": -1})).metadata
    assert (new.current_version_id, new.current_version.schema_id) == (2, 1)
    assert [e.version_id for e in new.version_log] == [1, 2]


def test_the_version_of_the_later_of_two_writers_is_renumbered() -> None:
    base = make()
    mine = add(query("select 2"), **{"version-id": 2})
    theirs = add(query("select 3"), **{"version-id": 2})
    new = commit(commit(base, *mine).metadata, *theirs).metadata
    assert [v.version_id for v in new.versions] == [1, 2, 3]
    assert new.current_version.representations[0].sql == "select 3"


def test_an_equal_version_is_reused_regardless_of_id_and_time() -> None:
    base = commit(make(), *add(query("select 2"))).metadata
    back = commit(base, *add(**{"version-id": 9, "timestamp-ms": 5})).metadata
    assert (back.current_version_id, len(back.versions)) == (1, 2)
    assert [(e.version_id, e.timestamp_ms) for e in back.version_log][-1] == (1, NOW)
    assert not commit(back, *add()).changed


def test_an_equal_schema_is_reused() -> None:
    new = commit(make(), {"action": "add-schema", "schema": schema()}, *add(query("x"), **{"schema-id": -1})).metadata
    assert [s.schema_id for s in new.schemas] == [0]


@pytest.mark.parametrize(
    ("updates", "message"),
    [
        ([CURRENT], "no current version id has been set"),
        (add(query("x"), **{"schema-id": -1}), "Cannot set last added schema"),
        (add(query("x"), **{"schema-id": 7}), "Cannot add version with unknown schema: 7"),
        ([{**CURRENT, "view-version-id": 9}], "Cannot set current version to unknown version: 9"),
        ([{"action": "upgrade-format-version", "format-version": 2}], "unsupported format version: v2"),
        ([{"action": "upgrade-format-version", "format-version": 0}], "Cannot downgrade v1 view to v0"),
    ],
)
def test_invalid_updates_are_refused(updates: Any, message: str) -> None:
    with pytest.raises(InvalidTableUpdate) as caught:
        commit(make(), *updates)
    assert message in caught.value.message


def test_a_view_keeps_its_uuid() -> None:
    assert not commit(make(), {"action": "assign-uuid", "uuid": str(VIEW_UUID).upper()}).changed
    with pytest.raises(ViewUuidMismatch, match="Cannot reassign uuid"):
        commit(make(), {"action": "assign-uuid", "uuid": str(UUID(int=5))})
    with pytest.raises(BadRequestException, match="is not a UUID"):
        commit(make(), {"action": "assign-uuid", "uuid": "5"})


def test_a_failed_uuid_requirement_of_a_view_is_a_conflict() -> None:
    right, wrong = ({"type": "assert-view-uuid", "uuid": str(u)} for u in (VIEW_UUID, UUID(int=5)))
    assert not commit(make(), requirements=[right]).changed
    with pytest.raises(CommitFailedException) as caught:
        commit(make(), requirements=[wrong])
    assert caught.value.message.startswith("Requirement failed: view UUID does not match: expected ")


def test_a_view_may_move_and_change_properties() -> None:
    new = commit(
        make(),
        {"action": "set-location", "location": "s3://lake/elsewhere/"},
        {"action": "set-properties", "updates": {"a": "b"}},
        {"action": "remove-properties", "removals": ["k", "z"]},
    ).metadata
    assert (new.location, new.properties) == ("s3://lake/elsewhere", {"a": "b"})


def test_changes_without_effect_return_the_very_same_metadata() -> None:
    base = make()
    same = [
        {"action": "set-location", "location": LOCATION},
        {"action": "set-properties", "updates": {"k": "v"}},
        {"action": "remove-properties", "removals": ["z"]},
        {"action": "upgrade-format-version", "format-version": 1},
        {"action": "set-current-view-version", "view-version-id": 1},
    ]
    assert commit(base, *same).metadata is base


def test_dropping_a_dialect_needs_an_explicit_property() -> None:
    base = commit(make(), *add(query("a"), query("b", "Trino"))).metadata
    with pytest.raises(BadRequestException, match="Cannot replace view due to loss of view dialects"):
        commit(base, *add(query("c")))
    assert commit(base, *add(query("c"), query("d", "trino"))).changed
    allowed = {"action": "set-properties", "updates": {"replace.drop-dialect.allowed": "TRUE"}}
    assert commit(base, allowed, *add(query("c"))).changed


def test_expired_versions_are_removed_with_their_log_entries() -> None:
    base = make(properties={"version.history.num-entries": "2"})
    for i in range(4):
        base = commit(base, *add(query(f"select x{i}"))).metadata
    assert [v.version_id for v in base.versions] == [4, 5]
    assert [e.version_id for e in base.version_log] == [4, 5]


def test_the_current_version_never_expires_though_it_is_the_oldest() -> None:
    base = make()
    for i in range(5):
        base = commit(base, *add(query(f"select x{i}"))).metadata
    shorter = {"action": "set-properties", "updates": {"version.history.num-entries": "2"}}
    new = commit(base, {**CURRENT, "view-version-id": 1}, shorter).metadata
    assert sorted(v.version_id for v in new.versions) == [1, 6]
    assert [e.version_id for e in new.version_log] == [6, 1]


def test_all_versions_of_one_commit_stay() -> None:
    base = make(properties={"version.history.num-entries": "1"})
    several = [u for i in range(3) for u in add(query(f"select x{i}"))]
    assert [v.version_id for v in commit(base, *several).metadata.versions] == [2, 3, 4]


def test_a_view_document_round_trips_with_unknown_members() -> None:
    document = json.loads(encode_view_metadata(commit(make(), WIDER, *add(query("x"), **{"schema-id": 1})).metadata))
    document["x-top"] = 1
    document["versions"][0]["x-version"] = {"a": None}
    document["versions"][0]["representations"][0]["x-representation"] = 2
    document["version-log"][0]["x-entry"] = 3
    data = encode_view_metadata(decode_view_metadata(json.dumps(document).encode()))
    assert json.loads(data) == document
    assert encode_view_metadata(decode_stored_view_metadata(data)) == data


def test_unknown_representations_are_preserved_in_a_new_version() -> None:
    plan = {"type": "substrait", "plan": "AAAA"}
    new = commit(make(), *add(query("select 2"), plan)).metadata
    assert new.current_version.members()["representations"][1] == plan


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format-version": 2}, "Unsupported format version 2"),
        ({"view-uuid": "x"}, "is not a UUID"),
        ({"current-version-id": 4}, "current-version-id is 4"),
        ({"schemas": []}, "unknown schema: 0"),
        ({"version-log": [{}]}, "version-id"),
        ({"versions": [version(), version()]}, "exists twice"),
    ],
)
def test_inconsistent_documents_are_refused(change: dict[str, Any], message: str) -> None:
    document = {**json.loads(encode_view_metadata(make())), **change}
    with pytest.raises(BadRequestException) as caught:
        decode_view_metadata(json.dumps(document).encode())
    assert message in caught.value.message


def test_view_documents_have_a_size_limit() -> None:
    with pytest.raises(MetadataTooLarge, match="at most 10 are allowed"):
        decode_view_metadata(encode_view_metadata(make()), limits=Limits(document_bytes=10))


def test_a_version_keeps_the_id_of_the_client_if_it_is_higher_than_all_others() -> None:
    new = commit(make(), *add(query("select 2"), **{"version-id": 7})).metadata
    assert new.current_version_id == 7
    later = commit(new, *add(query("select 3"), **{"version-id": 7})).metadata
    assert later.current_version_id == 8
    highest = commit(later, *add(query("select 4"), **{"version-id": 2**31 - 1})).metadata
    assert highest.current_version_id == 9
