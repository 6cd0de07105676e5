# SPDX-License-Identifier: Apache-2.0
"""Warehouses by their names as `{prefix}`: projects, letter case, renames, idempotency keys and audit records."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.support.stack.world import SCHEMA, Person, World, error_of, send_until_decided, unique


def root(name: str) -> str:
    """Return the path of the catalog of a warehouse by its name."""
    return f"/catalog/v1/{name}"


def warehouse(world: World, name: str, **headers: str) -> str:
    """Create a warehouse; return its id."""
    body = {
        "warehouse-name": name,
        "storage-profile": {**world.ready.s3.profile, "bucket": world.bucket, "key-prefix": unique("named")},
        "storage-credential": {
            "type": "s3",
            "credential-type": "access-key",
            "access-key-id": world.ready.s3.access_key,
            "secret-access-key": world.ready.s3.secret_key,
        },
    }
    made = send_until_decided(lambda: world.admin.post("/management/v1/warehouse", body, headers=headers))
    assert made.status_code == 201, made.text
    return str(made.json()["warehouse-id"])


def shape(answer: httpx.Response, name: str) -> tuple[int, list[str], str]:
    """Return (status, header names, body) without the name and the error id."""
    body = answer.text.replace(name, "…")
    if answer.content:
        body = body.replace(error_of(answer)["stack"][-1], "id")
    return answer.status_code, sorted(each for each in answer.headers if each != "date"), body


def test_a_table_is_made_loaded_and_dropped_by_the_name_of_its_warehouse(world: World) -> None:
    demo, ns = root(str(world.ready.warehouse)), unique("ns")
    assert world.admin.post(f"{demo}/namespaces", {"namespace": [ns]}).status_code == 200
    made = world.admin.post(f"{demo}/namespaces/{ns}/tables", {"name": "t", "schema": SCHEMA})
    assert made.status_code == 200, made.text
    by_name = world.admin.get(f"{demo}/namespaces/{ns}/tables/t")
    by_id = world.admin.get(f"{world.root}/namespaces/{ns}/tables/t")
    assert by_name.json()["metadata"] == by_id.json()["metadata"]
    # The entity tag of one path holds for the other: nothing of the answer depends on the name.
    for path, loaded in ((demo, by_id), (world.root, by_name)):
        tag = {"If-None-Match": loaded.headers["etag"]}
        assert world.admin.get(f"{path}/namespaces/{ns}/tables/t", headers=tag).status_code == 304
    assert world.admin.delete(f"{demo}/namespaces/{ns}/tables/t").status_code == 204
    assert world.admin.head(f"{world.root}/namespaces/{ns}/tables/t").status_code == 404


@pytest.mark.parametrize("spelling", [str.upper, str.title, lambda name: "".join(f"%{ord(each):02x}" for each in name)])
def test_spellings_of_the_name_reach_the_same_warehouse(world: World, spelling: Callable[[str], str]) -> None:
    answer = world.admin.get(f"{root(spelling(str(world.ready.warehouse)))}/namespaces")
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("name", ["a%2Fb", "demo%2F..", "%2e%2e", "demo%00", "demo%5c", "%ff", "n" * 129])
def test_malformed_names_are_400(world: World, name: str) -> None:
    assert world.admin.get(f"{root(name)}/namespaces").status_code == 400


@pytest.mark.threat("LG-DIS-01")
@pytest.mark.parametrize("headers", [{}, {"x-project-id": "no-such-project"}])
def test_a_stranger_cannot_distinguish_a_name_from_an_unknown_one(world: World, headers: dict[str, str]) -> None:
    stranger, name = world.stranger(), unique("hidden")
    id = warehouse(world, name)
    absent = "x" * len(name)
    requests: list[tuple[str, str, Any]] = [
        ("GET", "/namespaces", None),
        ("POST", "/namespaces", {"namespace": ["a"]}),
        ("GET", "/namespaces/a", None),
        ("GET", "/namespaces/a/tables/t", None),
        ("POST", "/namespaces/a/tables", {"name": "t", "schema": SCHEMA}),
        ("POST", "/namespaces/a/register", {"name": "t", "metadata-location": "s3://a/b.metadata.json"}),
        ("POST", "/transactions/commit", {"table-changes": []}),
    ]
    for method, path, body in requests:
        there = stranger.send(method, root(name) + path, json=body, headers=headers)
        gone = stranger.send(method, root(absent) + path, json=body, headers=headers)
        assert shape(there, name) == shape(gone, absent), path
        assert id not in there.text


def test_a_name_belongs_to_its_project(world: World) -> None:
    name, project = unique("twin"), unique("project")
    made = world.admin.post("/management/v1/project", {"project-name": project, "project-id": project})
    assert made.status_code == 201, made.text
    here, there = warehouse(world, name), warehouse(world, name, **{"x-project-id": project})
    only_there = unique("only")
    warehouse(world, only_there, **{"x-project-id": project})
    ns = unique("ns")
    in_there = {"x-project-id": project}
    assert world.admin.post(f"{root(name)}/namespaces", {"namespace": [ns]}, headers=in_there).status_code == 200
    assert world.admin.head(f"{root(there)}/namespaces/{ns}").status_code == 204
    assert world.admin.head(f"{root(here)}/namespaces/{ns}").status_code == 404
    assert world.admin.head(f"{root(name)}/namespaces/{ns}").status_code == 404
    assert world.admin.get(f"{root(only_there)}/namespaces").status_code == 404
    assert world.admin.get(f"{root(only_there)}/namespaces", headers=in_there).status_code == 200
    # An id reaches its warehouse with any project in the header, as before.
    assert world.admin.head(f"{root(here)}/namespaces/{ns}", headers=in_there).status_code == 404


def test_a_name_in_the_form_of_another_warehouses_id_is_never_reached(world: World) -> None:
    ns = world.namespace()
    impostor = warehouse(world, world.warehouse)
    assert world.admin.head(f"{root(world.warehouse)}/namespaces/{ns}").status_code == 204
    assert world.admin.head(f"{root(impostor)}/namespaces/{ns}").status_code == 404
    assert world.admin.delete(f"/management/v1/warehouse/{impostor}").status_code == 204


def test_after_a_rename_only_the_new_name_reaches_the_warehouse(world: World) -> None:
    first, second, ns = unique("first"), unique("second"), unique("ns")
    id = warehouse(world, first)
    assert world.admin.post(f"{root(first)}/namespaces", {"namespace": [ns]}).status_code == 200
    renamed = world.admin.post(f"/management/v1/warehouse/{id}/rename", {"new-name": second})
    assert renamed.status_code == 200, renamed.text
    assert world.admin.head(f"{root(first)}/namespaces/{ns}").status_code == 404
    assert world.admin.head(f"{root(second)}/namespaces/{ns}").status_code == 204
    warehouse(world, first)
    assert world.admin.head(f"{root(first)}/namespaces/{ns}").status_code == 404


def _create(by: Person, at: str, ns: str, key: str) -> httpx.Response:
    return by.post(f"{root(at)}/namespaces", {"namespace": [ns]}, headers={"Idempotency-Key": key})


def test_idempotency_keys_belong_to_the_warehouse_and_not_to_its_name(world: World) -> None:
    first, second, ns, key = unique("first"), unique("second"), unique("ns"), str(uuid.uuid4())
    id = warehouse(world, first)
    assert _create(world.admin, first, ns, key).status_code == 200
    # The same request with the id is a retry, and not a conflict.
    assert _create(world.admin, id, ns, key).status_code == 200
    assert world.admin.post(f"/management/v1/warehouse/{id}/rename", {"new-name": second}).status_code == 200
    other = warehouse(world, first)
    # The former name now is another warehouse, in which the change must not count as done.
    assert _create(world.admin, first, ns, key).status_code == 200
    assert world.admin.head(f"{root(other)}/namespaces/{ns}").status_code == 204


def test_audit_records_contain_the_id(world: World) -> None:
    ns = unique("ns")
    answer = world.admin.post(f"{root(str(world.ready.warehouse))}/namespaces", {"namespace": [ns]})
    assert answer.status_code == 200, answer.text
    [row] = world.sql(
        "select convert_from(record, 'UTF8') as text from audit_log where operation = 'create_namespace' "
        "and convert_from(record, 'UTF8') like '%' || $1 || '%'",
        answer.headers["x-request-id"],
    )
    assert world.warehouse in row["text"]
