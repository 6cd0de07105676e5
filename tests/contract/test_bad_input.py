# SPDX-License-Identifier: Apache-2.0
"""Every malformed request gets a clear 4xx in the Iceberg form and changes nothing.

"Nothing" is asserted in all three stores: every row of PostgreSQL but the audit's, every object in the store, and every
tuple change in OpenFGA.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
import pytest

from tests.support.stack.world import SCHEMA, Snapshot, Table, World, error_of, unique

pytestmark = pytest.mark.generated

_NUL = "\x00"


@pytest.fixture(scope="module")
def lake_location(world: World) -> str:
    """Create a namespace for this module; return its name."""
    return world.namespace()


@pytest.fixture(scope="module")
def table(world: World, lake_location: str) -> Table:
    """Create the table that the bad requests name."""
    return world.table(lake_location)


@pytest.fixture(scope="module")
def neighbour(world: World, lake_location: str) -> Table:
    """Create another table, whose location the first must not use."""
    return world.table(lake_location)


@pytest.fixture(scope="module")
def before(world: World, table: Table, neighbour: Table) -> Snapshot:
    """Return the state before the first bad request.

    It does not change, so each test takes one snapshot only.
    """
    return world.snapshot()


@pytest.fixture(autouse=True)
def _nothing_changes(world: World, before: Snapshot) -> Iterator[None]:
    yield
    assert world.snapshot() == before


def _refused(answer: httpx.Response, *codes: int) -> dict[str, Any]:
    assert answer.status_code in (codes or (400,)), answer.text
    return error_of(answer)


# ---- content that no request may have --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"null",
        b"[]",
        b'"text"',
        b"{",
        b"{} trailing",
        b"<xml/>",
        b'{"namespace": "a"}',
        b'{"namespace": [1]}',
        b'{"namespace": {"a": 1}}',
        b'{"namespace": ["a"], "properties": {"a": 1}}',
        b'{"namespace": ["a"], "properties": ["a"]}',
        b'{"Namespace": ["a"]}',
        b'{"namespace": []}',
        b'{"namespace": ["\xff\xfe"]}',
        b'{"namespace": ["\\ud800"]}',
        b'{"namespace": ["a\\u0000b"]}',
        b'{"namespace": ["fine"], "properties": {"key": "\\u0000"}}',
        b'{"namespace": ["fine"], "properties": {"\\u0000": "value"}}',
        b'{"namespace": ["fine"], "properties": ' + b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"}",
        b"[" * 100_000,
    ],
)
def test_malformed_body_is_refused(world: World, content: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    _refused(world.admin.send("POST", f"{world.root}/namespaces", content=content, headers=headers))


@pytest.mark.parametrize("streamed", [False, True])
def test_body_of_33_mebibytes_is_refused(world: World, streamed: bool) -> None:
    mebibyte = b" " * 2**20

    def pieces() -> Iterator[bytes]:
        for _ in range(33):
            yield mebibyte

    content: Any = pieces() if streamed else mebibyte * 33
    try:
        answer = world.admin.send("POST", f"{world.root}/namespaces", content=content)
    except httpx.TransportError:
        return  # The server may close the connection before it has read the whole body.
    assert _refused(answer, 413)["type"] == "PayloadTooLarge"


@pytest.mark.parametrize(
    "path",
    [
        "/catalog/v1/config?warehouse=%00",
        "/catalog/v1/config?warehouse=%00%2Fdemo",
        "/catalog/v1/config?warehouse=demo&warehouse=other",
        "/catalog/v1/config",
        "/management/v1/user?name=%00",
        "/management/v1/user?pageToken=%00&pageSize=1",
        "/management/v1/warehouse?projectId=%00",
        "/management/v1/warehouse?warehouseStatus=sleeping",
        f"/catalog/v1/{'n' * 129}/namespaces",
        "/catalog/v1/%00/namespaces",
        "{root}/namespaces?pageSize=0",
        "{root}/namespaces?pageSize=-1",
        "{root}/namespaces?pageSize=ten",
        "{root}/namespaces?pageSize=1&pageSize=2",
        "{root}/namespaces?pageToken=made-up",
        "{root}/namespaces?pageToken=%C3%A9",
        "{root}/namespaces?parent=a&parent=b",
        "{root}/namespaces?parent=%1F",
        "{root}/namespaces?returnUuids=perhaps",
        "{root}/namespaces/a%2Fb",
        "{root}/namespaces/a%5Cb",
        "{root}/namespaces/%00",
        "{root}/namespaces/%0A",
        "{root}/namespaces/a%1F",
        "{root}/namespaces/%1Fa",
        "{root}/namespaces/%FF",
        "{root}/namespaces/..%2F..",
        "{root}/namespaces/{ns}/tables/a%2Fb",
        "{root}/namespaces/{ns}/tables/%2e%2e",
        "{root}/namespaces/{ns}/tables/%2E",
        "{root}/namespaces/{ns}/tables/a%0D%0Ab",
        "{root}/namespaces/{ns}/tables/%C0%AE",
        "/management/v1/permissions/namespace/nope/assignments",
        "/management/v1/permissions/warehouse/nope/table/nope/assignments",
        "/management/v1/user/oidc~%00",
    ],
)
def test_impossible_path_or_query_is_refused(world: World, lake_location: str, path: str) -> None:
    _refused(world.admin.get(path.replace("{root}", world.root).replace("{ns}", lake_location)))


@pytest.mark.threat("LG-DIS-03")
def test_forged_page_token_is_refused(world: World) -> None:
    forged = msgspec.msgpack.encode(["a\x00b", "00000000-0000-0000-0000-000000000000"])
    token = base64.urlsafe_b64encode(forged).decode().rstrip("=")
    answer = world.admin.get(f"{world.root}/namespaces?pageSize=3&pageToken={token}")
    assert _refused(answer)["type"] == "InvalidPaginationToken"


def test_a_page_size_of_thousands_of_digits_means_the_largest_page(world: World) -> None:
    assert world.admin.get(f"{world.root}/namespaces?pageSize={'9' * 5000}").status_code == 200


def test_a_body_on_a_get_changes_nothing_about_it(world: World, lake_location: str) -> None:
    answer = world.admin.send("GET", f"{world.root}/namespaces/{lake_location}", content=b'{"namespace": ["other"]}')
    assert answer.json()["namespace"] == [lake_location]


@pytest.mark.parametrize("path", ["/nope", "/catalog/v1", "/catalog/v2/x/namespaces", "{root}/namespaces/{ns}/nope"])
def test_unknown_endpoint_is_refused(world: World, lake_location: str, path: str) -> None:
    _refused(world.admin.get(path.replace("{root}", world.root).replace("{ns}", lake_location)), 404)


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_unsupported_method_is_refused(world: World, method: str) -> None:
    _refused(world.admin.send(method, f"{world.root}/namespaces"), 405)


# ---- names ----------------------------------------------------------------------------------------------------------

_BAD_NAMES = [
    "",
    ".",
    "..",
    "a/b",
    "a\\b",
    "a+b",
    "a%2Fb",
    "%2e%2e",
    "%252e%252e",
    " a",
    "a ",
    "a\tb",
    "a\nb",
    "a\x1fb",
    "a\x7fb",
    "a\x85b",
    "a\u2028b",
    "\u202eevil",
    "\ufeffa",
    "x" * 256,
    "ü" * 128,
]


@pytest.mark.threat("LG-LOC-11")
@pytest.mark.parametrize("name", _BAD_NAMES, ids=ascii)
def test_invalid_table_or_namespace_name_is_refused(world: World, lake_location: str, name: str) -> None:
    _refused(world.admin.post(f"{world.root}/namespaces/{lake_location}/tables", {"name": name, "schema": SCHEMA}))
    _refused(world.admin.post(f"{world.root}/namespaces", {"namespace": [lake_location, name]}))


# ---- creations ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "more",
    [
        {"schema": None},
        {"schema": []},
        {"schema": {"type": "struct"}},
        {"schema": {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "colour", "required": False}]}},
        {"schema": {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "long"}]}},
        {
            "schema": {
                "type": "struct",
                "fields": [
                    {"id": 1, "name": "a", "type": "long", "required": False},
                    {"id": 1, "name": "b", "type": "long", "required": False},
                ],
            }
        },
        {"partition-spec": {"fields": [{"source-id": 99, "transform": "identity", "name": "x"}]}},
        {"partition-spec": 5},
        {"write-order": {"order-id": 1, "fields": [{"source-id": 99, "transform": "identity"}]}},
        {"properties": {"format-version": "9"}},
        {"properties": {"a": {"b": "c"}}},
        {"properties": {"nul": _NUL}},
        {"stage-create": "yes"},
        {"location": 5},
    ],
    ids=lambda more: json.dumps(more)[:60],
)
def test_invalid_table_creation_is_refused(world: World, lake_location: str, more: dict[str, Any]) -> None:
    body = {"name": unique("bad"), "schema": SCHEMA, **more}
    _refused(world.admin.post(f"{world.root}/namespaces/{lake_location}/tables", body))


# ---- locations ------------------------------------------------------------------------------------------------------


def _foreign(world: World, neighbour: Table) -> dict[str, str]:
    base = f"s3://{world.bucket}/demo"
    return {
        "another table's": neighbour.location,
        "another table's with a slash": f"{neighbour.location}/",
        "below another table's": f"{neighbour.location}/data",
        "above everything": base,
        "above everything with a slash": f"{base}/",
        "the bucket": f"s3://{world.bucket}",
        "the bucket with a slash": f"s3://{world.bucket}/",
        "beside the base": f"s3://{world.bucket}/demo2/x",
        "another letter case of the base": f"s3://{world.bucket}/DEMO/x",
        "another table's in capitals": neighbour.location.replace(base, "")
        and f"{base}/{neighbour.location[len(base) + 1 :].upper()}",
        "another table's through s3a": neighbour.location.replace("s3://", "s3a://"),
        "another table's through S3": neighbour.location.replace("s3://", "S3://"),
        "another bucket": "s3://elsewhere/demo/x",
        "parent segments": f"{base}/x/../{neighbour.location[len(base) + 1 :]}",
        "encoded parent segments": f"{base}/x/%2e%2e/y",
        "twice encoded": f"{base}/x/%252e%252e/y",
        "encoded slash": f"{base}/x%2Fy",
        "single dots": f"{base}/./x",
        "empty segments": f"{base}//x",
        "a star": f"{base}/*",
        "a question mark": f"{base}/a?b",
        "a fragment": f"{base}/a#b",
        "a variable": f"{base}/${{aws:username}}",
        "a backslash": f"{base}/a\\b",
        "a space": f"{base}/ a",
        "a no-break space": f"{base}/a\u00a0b",
        "a line separator": f"{base}/a\u2028b",
        "NUL": f"{base}/a{_NUL}b",
        "a newline": f"{base}/a\nb",
        "a user in the authority": f"s3://me@{world.bucket}/demo/x",
        "a port in the authority": f"s3://{world.bucket}:80/demo/x",
        "no scheme": "demo/x",
        "a file": "file:///etc/passwd",
        "http": "http://169.254.169.254/latest",
        "gs": f"gs://{world.bucket}/demo/x",
        "empty": "",
        "too long": f"{base}/{'x' * 1100}",
    }


_PLACES = [
    "another table's",
    "another table's with a slash",
    "below another table's",
    "above everything",
    "above everything with a slash",
    "the bucket",
    "the bucket with a slash",
    "beside the base",
    "another letter case of the base",
    "another table's in capitals",
    "another table's through s3a",
    "another table's through S3",
    "another bucket",
    "parent segments",
    "encoded parent segments",
    "twice encoded",
    "encoded slash",
    "single dots",
    "empty segments",
    "a star",
    "a question mark",
    "a fragment",
    "a variable",
    "a backslash",
    "a space",
    "a no-break space",
    "a line separator",
    "NUL",
    "a newline",
    "a user in the authority",
    "a port in the authority",
    "no scheme",
    "a file",
    "http",
    "gs",
    "empty",
    "too long",
]
_PROPERTIES = ["write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path"]


def _no_secret(answer: httpx.Response) -> None:
    assert "s3.secret-access-key" not in answer.text
    assert "session-token" not in answer.text


@pytest.mark.threat("LG-LOC-02", "LG-LOC-03", "LG-LOC-06", "LG-LOC-12", "LG-LOC-13")
@pytest.mark.parametrize("which", _PLACES)
def test_foreign_location_is_refused_in_every_member(
    world: World, lake_location: str, table: Table, neighbour: Table, which: str
) -> None:
    location = _foreign(world, neighbour)[which]
    tables = f"{world.root}/namespaces/{lake_location}/tables"
    for staged in (False, True):
        body = {"name": unique("bad"), "schema": SCHEMA, "location": location, "stage-create": staged}
        answer = world.admin.post(tables, body)
        _refused(answer, 400, 409)
        _no_secret(answer)
    moved = world.commit(world.admin, table.path, {"action": "set-location", "location": location})
    _refused(moved, 400)
    name = unique("bad")
    created = world.commit(
        world.admin,
        f"{tables}/{name}",
        *_creation(location, {}),
        requirements=({"type": "assert-create"},),
    )
    _refused(created, 400, 409)


@pytest.mark.threat("LG-LOC-04")
@pytest.mark.parametrize("name", _PROPERTIES)
@pytest.mark.parametrize("which", ["another table's", "above everything", "parent segments", "another bucket", "http"])
def test_path_property_outside_the_table_is_refused_in_every_request(
    world: World, lake_location: str, table: Table, neighbour: Table, name: str, which: str
) -> None:
    properties = {name: _foreign(world, neighbour)[which]}
    tables = f"{world.root}/namespaces/{lake_location}/tables"
    for staged in (False, True):
        body = {"name": unique("bad"), "schema": SCHEMA, "properties": properties, "stage-create": staged}
        answer = world.admin.post(tables, body)
        _refused(answer, 400, 409)
        _no_secret(answer)
    _refused(world.commit(world.admin, table.path, {"action": "set-properties", "updates": properties}), 400, 409)
    created = world.commit(
        world.admin,
        f"{tables}/{unique('bad')}",
        *_creation(None, properties),
        requirements=({"type": "assert-create"},),
    )
    _refused(created, 400, 409)


@pytest.mark.parametrize("which", ["another table's", "parent segments", "another bucket", "http", "a file"])
def test_commit_files_outside_the_table_are_refused(world: World, table: Table, neighbour: Table, which: str) -> None:
    file = f"{_foreign(world, neighbour)[which]}/x.avro"
    snapshot = {
        "snapshot-id": 1,
        "timestamp-ms": int(time.time() * 1000),
        "sequence-number": 1,
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    statistics = {
        "snapshot-id": 1,
        "statistics-path": file,
        "file-size-in-bytes": 1,
        "file-footer-size-in-bytes": 1,
        "blob-metadata": [],
    }
    partitions = {"snapshot-id": 1, "statistics-path": file, "file-size-in-bytes": 1}
    for update in (
        {"action": "add-snapshot", "snapshot": {**snapshot, "manifest-list": file}},
        {"action": "set-statistics", "snapshot-id": 1, "statistics": statistics},
        {"action": "set-partition-statistics", "partition-statistics": partitions},
    ):
        _refused(world.commit(world.admin, table.path, update), 400)


def _creation(location: str | None, properties: dict[str, str]) -> list[dict[str, Any]]:
    updates: list[dict[str, Any]] = [
        {"action": "assign-uuid", "uuid": "7c1b2a4e-58a4-4f6e-9d0a-1a2b3c4d5e6f"},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": {**SCHEMA, "schema-id": 0}, "last-column-id": 2},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
    ]
    if location is not None:
        updates.append({"action": "set-location", "location": location})
    if properties:
        updates.append({"action": "set-properties", "updates": properties})
    return updates


# ---- commits --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"updates": []},
        {"requirements": [], "updates": {}},
        {"requirements": [], "updates": [{}]},
        {"requirements": [], "updates": [{"action": "launch"}]},
        {"requirements": [], "updates": [{"action": 5}]},
        {"requirements": [], "updates": ["set-properties"]},
        {"requirements": [{"type": "assert-moon"}], "updates": []},
        {"requirements": [{"type": "assert-table-uuid"}], "updates": []},
        {"requirements": [{"type": "assert-table-uuid", "uuid": 5}], "updates": []},
        {"requirements": [], "updates": [{"action": "set-properties"}]},
        {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": 1}}]},
        {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": _NUL}}]},
        {"requirements": [], "updates": [{"action": "assign-uuid", "uuid": "00000000-0000-0000-0000-000000000000"}]},
        {"requirements": [], "updates": [{"action": "upgrade-format-version", "format-version": 9}]},
        {"requirements": [], "updates": [{"action": "upgrade-format-version", "format-version": 1}]},
        {"requirements": [], "updates": [{"action": "set-current-schema", "schema-id": 77}]},
        {"requirements": [], "updates": [{"action": "set-default-spec", "spec-id": 77}]},
        {
            "requirements": [],
            "updates": [{"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 7}],
        },
        {"requirements": [], "updates": [{"action": "add-snapshot", "snapshot": 5}]},
        {"requirements": [], "updates": [{"action": "add-snapshot", "snapshot": {"snapshot-id": 2**63}}]},
        {"requirements": [], "updates": [{"action": "add-schema", "schema": {"type": "list"}}]},
        {"identifier": {"namespace": [], "name": "x"}, "requirements": [], "updates": []},
        {"identifier": {"namespace": ["other"], "name": "other"}, "requirements": [], "updates": []},
        {"identifier": "x", "requirements": [], "updates": []},
    ],
    ids=lambda body: json.dumps(body)[:90],
)
def test_invalid_commit_is_refused(world: World, table: Table, body: dict[str, Any]) -> None:
    _refused(world.admin.post(table.path, body), 400)


# ---- management -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/management/v1/user", {"id": "no-provider"}),
        ("/management/v1/user", {"id": "oidc~"}),
        ("/management/v1/user", {"id": "oidc~x", "email": _NUL}),
        ("/management/v1/user", {"id": "oidc~x", "user-type": "robot"}),
        ("/management/v1/permissions/server/assignments", {"writes": [], "bogus": 1}),
        ("/management/v1/user", {"id": f"oidc~{'x' * 200}"}),
        ("/management/v1/project", {"project-name": ""}),
        ("/management/v1/project", {"project-name": "x" * 129}),
        ("/management/v1/project", {"project-name": f"a{_NUL}"}),
        ("/management/v1/project", {"project-name": "fine", "project-id": "a/b"}),
        ("/management/v1/project", {"name": "wrong member"}),
        ("/management/v1/bootstrap", {"accept-terms-of-use": "yes"}),
        ("/management/v1/bootstrap", {"accept-terms-of-use": False}),
        ("/management/v1/bootstrap", {"accept-terms-of-use": True, "is-operator": True}),
        ("/management/v1/warehouse", {}),
        ("/management/v1/warehouse", {"warehouse-name": "w"}),
        ("/management/v1/warehouse", {"warehouse-name": "w", "storage-profile": {}}),
        ("/management/v1/warehouse", {"warehouse-name": "w", "storage-profile": {"type": "tape"}}),
        ("/management/v1/permissions/check", {}),
        ("/management/v1/permissions/check", {"operation": {"server": {"action": "fly"}}}),
        (
            "/management/v1/permissions/check",
            {"operation": {"project": {"project-id": _NUL, "action": "get_metadata"}}},
        ),
        ("/management/v1/permissions/check", {"operation": {"warehouse": {"warehouse-id": "x", "action": "use"}}}),
        ("/management/v1/permissions/check", {"operation": {"a": {}, "b": {}}}),
        ("/management/v1/permissions/server/assignments", {"writes": [{"type": "select", "user": "oidc~alice"}]}),
        ("/management/v1/permissions/server/assignments", {"writes": [{"type": "admin"}]}),
        ("/management/v1/permissions/server/assignments", {"writes": [{"type": "emperor", "user": "oidc~alice"}]}),
        ("/management/v1/permissions/server/assignments", {"writes": [{"type": "admin", "user": "*"}]}),
        ("/management/v1/permissions/server/assignments", {"writes": [{"type": "admin", "user": "user:*"}]}),
        (
            "/management/v1/permissions/server/assignments",
            {"writes": [{"type": "admin", "user": "oidc~a", "role": "b"}]},
        ),
        ("/management/v1/permissions/server/assignments", {"grants": []}),
    ],
    ids=lambda value: value if isinstance(value, str) else json.dumps(value)[:60],
)
def test_invalid_management_body_is_refused(world: World, path: str, body: dict[str, Any]) -> None:
    _refused(world.admin.post(path, body), 400)


@pytest.mark.parametrize(
    "change",
    [
        {"bucket": "b"},
        {"bucket": "not_a_bucket!"},
        {"region": ""},
        {"key-prefix": "../up"},
        {"key-prefix": "a//b"},
        {"key-prefix": "a*"},
        {"endpoint": "http://169.254.169.254/"},
        {"endpoint": "file:///etc"},
        {"endpoint": "http://user:secret@127.0.0.1:1/"},
        {"flavor": "homebrew"},
        {"sts-token-validity-seconds": -1},
        {"storage-layout": {"type": "tabular-only", "tabular": "{name}"}},
        {"bogus": 1},
    ],
    ids=lambda change: json.dumps(change),
)
def test_invalid_warehouse_storage_is_refused(world: World, change: dict[str, Any]) -> None:
    profile = {**world.ready.s3.profile, "bucket": world.bucket, "key-prefix": unique("bad"), **change}
    credential = {
        "type": "s3",
        "credential-type": "access-key",
        "access-key-id": world.ready.s3.access_key,
        "secret-access-key": world.ready.s3.secret_key,
    }
    body = {"warehouse-name": unique("bad"), "storage-profile": profile, "storage-credential": credential}
    answer = world.admin.post("/management/v1/warehouse", body)
    _refused(answer, 400)
    assert world.ready.s3.secret_key not in answer.text


def test_warehouse_with_wrong_keys_is_refused_without_revealing_them(world: World) -> None:
    profile = {**world.ready.s3.profile, "bucket": world.bucket, "key-prefix": unique("bad")}
    secret = "wrong-secret-0123456789-wrong-secret-0123"
    credential = {
        "type": "s3",
        "credential-type": "access-key",
        "access-key-id": world.ready.s3.access_key,
        "secret-access-key": secret,
    }
    body = {"warehouse-name": unique("bad"), "storage-profile": profile, "storage-credential": credential}
    answer = world.admin.post("/management/v1/warehouse", body)
    _refused(answer, 400)
    assert secret not in answer.text
    assert secret[:12] not in answer.text
