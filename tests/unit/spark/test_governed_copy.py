# SPDX-License-Identifier: Apache-2.0
"""The decisions of a governed copy, from metadata alone: continue, rewrite, and what must be expired."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest

from gateway.access.nouns import authz_errors
from gateway.iceberg.errors import (
    CatalogError,
    ForbiddenException,
    NamespaceActionForbidden,
    NoSuchNamespaceException,
    NoSuchTableException,
    NoSuchWarehouseException,
    TableActionForbidden,
    WarehouseActionForbidden,
)
from lakegate.restrictions.actions import Action, Projection
from lakegate.restrictions.literals import NestedField
from lakegate.spark.catalog_client import Metadata
from lakegate.spark.config import CopyConfig, OnBehalfOf, parse_config
from lakegate.spark.errors import ConfigError, GovernedReadRefused, RequestRefused, RestrictionsRefused
from lakegate.spark.governed import GovernedTable
from lakegate.spark.jobs import governed_copy
from lakegate.spark.jobs.copy_files import (
    FINGERPRINT,
    PREVIOUS,
    READER,
    SOURCE,
    SOURCE_ID,
    access_ended,
    appended_since,
    check_target,
    continued,
    fingerprint,
    outdated,
    reader_of,
    storable,
)
from lakegate.spark.jobs.governed_copy import GovernedCopy
from lakegate.spark.restrictions import Restrictions

FIELDS = [
    {"id": 1, "name": "id", "type": "long", "required": True},
    {"id": 2, "name": "name", "type": "string", "required": False},
]


def table(*snapshots: tuple[str, dict[str, str]], fields: list[dict[str, Any]] = FIELDS) -> Metadata:
    """Return a table whose snapshots 1, 2, … follow each other; each is (operation, further summary)."""
    listed = [
        {
            "snapshot-id": number,
            **({"parent-snapshot-id": number - 1} if number > 1 else {}),
            "summary": {"operation": operation, **more},
        }
        for number, (operation, more) in enumerate(snapshots, 1)
    ]
    document = {
        "table-uuid": "0198f3c1-0000-7000-8000-000000000001",
        "current-schema-id": 0,
        "schemas": [{"schema-id": 0, "type": "struct", "fields": fields}],
        "current-snapshot-id": len(listed) or -1,
        "snapshots": listed,
    }
    return msgspec.convert(document, Metadata)


def mark(previous: str, value: str = "a") -> dict[str, str]:
    return {FINGERPRINT: value, PREVIOUS: previous}


REWRITE = ("overwrite", mark("none"))


def test_rewritten_and_appended_copies_are_continued() -> None:
    for copy, last in (
        (table(REWRITE), 1),
        (table(REWRITE, ("append", mark("1"))), 2),
        (table(REWRITE, ("replace", {}), ("append", mark("1"))), 3),
        (table(REWRITE, ("append", mark("1")), ("replace", {})), 2),
    ):
        newest = continued(copy, "a")
        assert newest is not None
        assert newest.snapshot_id == last


@pytest.mark.parametrize(
    "copy",
    [
        table(),
        table(("append", {})),
        table(("overwrite", mark("none", "b"))),
        table(REWRITE, ("append", {})),
        # Two runs appended the same rows: the second one expected snapshot 1 before it.
        table(REWRITE, ("append", mark("1")), ("append", mark("1"))),
        table(REWRITE, ("delete", {}), ("append", mark("1"))),
    ],
)
def test_a_copy_with_other_rows_or_another_fingerprint_is_rewritten(copy: Metadata) -> None:
    assert continued(copy, "a") is None


def test_a_source_that_only_appended_is_read_incrementally() -> None:
    source = table(("append", {}), ("append", {}), ("replace", {}), ("append", {}))
    found = appended_since(source, "1")
    assert found is not None
    assert found.snapshot_id == 1


@pytest.mark.parametrize("operation", ["overwrite", "delete", ""])
def test_a_source_that_changed_rows_is_read_in_full(operation: str) -> None:
    assert appended_since(table(("append", {}), (operation, {}), ("append", {})), "1") is None


@pytest.mark.parametrize("missing", ["9", "none", None])
def test_a_source_without_the_recorded_snapshot_is_read_in_full(missing: str | None) -> None:
    assert appended_since(table(("append", {}), ("append", {})), missing) is None


def test_snapshots_before_the_last_rewrite_are_outdated() -> None:
    copy = table(REWRITE, ("append", mark("1")), ("overwrite", mark("none", "b")), ("append", mark("3", "b")))
    assert outdated(copy) == [1, 2]
    assert outdated(table(REWRITE, ("append", mark("1")))) == []


def test_hashes_of_one_query_are_not_stored() -> None:
    fields = msgspec.convert(FIELDS, tuple[NestedField, ...])
    local = Restrictions(masks=(Projection(1, Action.SHA_256_QUERY_LOCAL), Projection(2, Action.SHA_256_QUERY_LOCAL)))
    assert storable(local, fields).masks == (
        Projection(1, Action.MASK_TO_FIXED_VALUE),
        Projection(2, Action.REPLACE_WITH_NULL),
    )
    others = Restrictions(masks=(Projection(2, Action.SHA_256_GLOBAL),))
    assert storable(others, fields) == others


def test_fingerprint_changes_with_masks_schema_and_reader() -> None:
    ann, role = OnBehalfOf(user="ann"), OnBehalfOf(user="ann", role="r")
    plain = GovernedTable("t", table(), Restrictions())
    hashed = GovernedTable("t", table(), Restrictions(masks=(Projection(2, Action.SHA_256_GLOBAL),)))
    shorter = GovernedTable("t", table(fields=FIELDS[:1]), Restrictions())
    marks = {fingerprint(plain, ann), fingerprint(plain, role), fingerprint(hashed, ann), fingerprint(shorter, ann)}
    assert len(marks) == 4
    assert fingerprint(plain, ann) == fingerprint(GovernedTable("u", table(REWRITE), Restrictions()), ann)


def config(**on_behalf_of: str) -> CopyConfig:
    document: dict[str, Any] = {
        "catalog": {"type": "rest", "uri": "http://127.0.0.1:1/catalog", "warehouse": "w", "token": "t"},
        "engine": {"jars": [], "work_dir": "/nowhere"},
        "source": "ns.t",
        "target": "ns.copy",
        "on_behalf_of": on_behalf_of,
    }
    return parse_config(msgspec.json.encode(document), CopyConfig)


def token(subject: str, **more: int) -> str:
    payload = msgspec.json.encode({"iss": "https://idp", "sub": subject, **more})
    return f"e30.{base64.urlsafe_b64encode(payload).rstrip(b'=').decode()}.signature"


def test_a_copy_for_another_principal_is_refused() -> None:
    source = table()
    copy = msgspec.structs.replace(
        source, properties={SOURCE_ID: source.table_uuid, READER: reader_of(OnBehalfOf(user="ann"))}
    )
    check_target(copy, source, config(user="ann"))
    for other in ({"user": "bob"}, {"user": "ann", "role": "r"}, {"token": token("ann")}):
        with pytest.raises(GovernedReadRefused, match="another user or role"):
            check_target(copy, source, config(**other))
    with pytest.raises(GovernedReadRefused, match="no copy of"):
        check_target(msgspec.structs.replace(copy, properties={}), source, config(user="ann"))


def test_a_table_under_the_name_of_the_source_is_the_source() -> None:
    copy = msgspec.structs.replace(
        table(), properties={SOURCE_ID: "another", SOURCE: "ns.t", READER: reader_of(OnBehalfOf(user="ann"))}
    )
    check_target(copy, table(), config(user="ann"))
    check_target(copy, None, config(user="ann"))
    for properties in ({SOURCE: "ns.other"}, {READER: "user:bob"}):
        with pytest.raises(GovernedReadRefused):
            check_target(
                msgspec.structs.replace(copy, properties=copy.properties | properties), None, config(user="ann")
            )


class Refusing:
    """Tables and client of a run whose read is refused. Every write and every other request fails the test."""

    session = None

    def __init__(self, refused: Exception, service: Exception | None = None) -> None:
        self._refused, self._service = refused, service

    def load(self, *_: object) -> None:
        raise self._refused

    def verify_service(self) -> None:
        if self._service is not None:
            raise self._service


UNCHANGED = [
    GovernedReadRefused("GET …: ConnectTimeout"),
    RequestRefused("GET …: 503: …", "AuthorizationBackendError"),
    RequestRefused("GET …: 429: …", "ShareExceeded"),
    RequestRefused("GET …: 401: …", "NotAuthorizedException"),
    RequestRefused("POST …: 400: no delegate", ""),
    RequestRefused("GET …: 403: not all of this table may be read", "ForbiddenException"),
    RequestRefused("GET …: 404: no message", ""),
    RequestRefused("GET …: 404: deactivated", "WarehouseNotActive"),
    RestrictionsRefused("nested"),
]


@pytest.mark.parametrize("refused", UNCHANGED, ids=str)
def test_failures_that_do_not_end_the_readers_access_change_no_copy(
    refused: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(governed_copy, "bind_catalog", lambda *_: None)
    run: Any = Refusing(refused)
    with pytest.raises(type(refused)) as raised:
        GovernedCopy(config(user="ann"), run, run).execute()
    assert raised.value is refused


def test_a_copy_is_unchanged_if_the_service_is_refused_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(governed_copy, "bind_catalog", lambda *_: None)
    service = GovernedReadRefused("GET /config: 401")
    run: Any = Refusing(RequestRefused("GET …: 404", "NoSuchTableException"), service)
    with pytest.raises(GovernedReadRefused) as raised:
        GovernedCopy(config(user="ann"), run, run).execute()
    assert raised.value is service


@pytest.mark.parametrize(
    "error",
    [
        authz_errors.UserDeactivated,
        authz_errors.AssumeRoleForbidden,
        authz_errors.InvalidAssumeRoleId,
        TableActionForbidden,
        NamespaceActionForbidden,
        WarehouseActionForbidden,
        NoSuchTableException,
        NoSuchNamespaceException,
        NoSuchWarehouseException,
    ],
)
def test_errors_of_the_gateway_about_the_reader_end_its_access(error: type[CatalogError]) -> None:
    assert access_ended(RequestRefused("…", error("…").type))


@pytest.mark.parametrize(
    "error",
    [
        ForbiddenException,
        authz_errors.DelegationForbidden,
        authz_errors.ProjectTokenForbidden,
        authz_errors.TooManyGroups,
        authz_errors.WarehouseNotActive,
        authz_errors.DecisionUnavailable,
        authz_errors.Overloaded,
    ],
)
def test_other_errors_of_the_gateway_do_not_end_its_access(error: type[CatalogError]) -> None:
    assert not access_ended(RequestRefused("…", error("…").type))


def test_a_user_is_recognized_by_a_newer_token() -> None:
    first, again, other = token("ann"), token("ann", exp=1), token("bob")
    assert reader_of(OnBehalfOf(token=first)) == reader_of(OnBehalfOf(token=again))
    assert reader_of(OnBehalfOf(token=first)) != reader_of(OnBehalfOf(token=other))
    assert "opaque" not in reader_of(OnBehalfOf(token="opaque"))


@pytest.mark.parametrize(
    "change",
    [
        {"source": "t"},
        {"target": "ns.T"},
        {"on_behalf_of": {}},
        {"on_behalf_of": {"user": "ann", "token": "x"}},
        {"unknown": 1},
        {"on_lost_access": "drop"},
    ],
)
def test_invalid_configurations_are_refused(change: dict[str, Any]) -> None:
    document: dict[str, Any] = {
        "catalog": {"type": "rest", "uri": "http://127.0.0.1:1/catalog", "warehouse": "w", "token": "t"},
        "engine": {"jars": [], "work_dir": "/nowhere"},
        "source": "ns.t",
        "target": "ns.copy",
        "on_behalf_of": {"user": "ann"},
    }
    assert parse_config(msgspec.json.encode(document), CopyConfig).grant_to is None
    with pytest.raises(ConfigError):
        parse_config(msgspec.json.encode(document | change), CopyConfig)


def test_the_user_token_is_not_printed() -> None:
    assert "secret" not in repr(OnBehalfOf(token="secret"))
