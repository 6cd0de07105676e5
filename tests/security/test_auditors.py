# SPDX-License-Identifier: Apache-2.0
"""The privilege `auditor` leads to the grants, tickets, credentials and policies of others, and to nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.stack.remote_signing import SignedTable
from tests.support.stack.world import SCHEMA, Person, Table, World, unique

ON = ("server", "project", "warehouse")
VENDED = {"X-Iceberg-Access-Delegation": "vended-credentials"}
SIGNED = {"X-Iceberg-Access-Delegation": "remote-signing"}
REFUSED = {403, 404}


def place(world: World, kind: str) -> str:
    places: dict[str, str] = {"server": "", "project": world.project, "warehouse": world.warehouse}
    return places[kind]


@pytest.fixture(params=ON)
def auditor(world: World, request: pytest.FixtureRequest) -> Iterator[Person]:
    """Return an auditor of the server, of the project, and of the warehouse."""
    person = world.stranger("auditor")
    world.grant("auditor", person, request.param, place(world, request.param))
    yield person
    world.strip(person)


def requests_for_data(world: World, table: Table) -> dict[str, tuple[str, str, Any, dict[str, str]]]:
    """Return requests that show metadata, data or keys of the table: name to method, path, body, headers."""
    managed = f"/management/v1/warehouse/{world.warehouse}/table/{table.uuid}"
    signed = SignedTable(world, world.warehouse, table)
    wish = {"region": world.ready.s3.region, "uri": signed.uri("data/a"), "method": "GET", "headers": {}}
    return {
        "load": ("GET", table.path, None, {}),
        "load with keys": ("GET", table.path, None, VENDED),
        "load to sign": ("GET", table.path, None, SIGNED),
        "credentials": ("GET", f"{table.path}/credentials", None, {}),
        "sign": ("POST", signed.endpoint, wish, {}),
        "tags": ("GET", f"{managed}/tags", None, {}),
        "column tags": ("GET", f"{managed}/column-tags", None, {}),
        "protection": ("GET", f"{managed}/protection", None, {}),
    }


def requests_for_changes(world: World, table: Table, ns: str) -> dict[str, tuple[str, str, Any, dict[str, str]]]:
    names = [{"namespace": [ns], "name": name} for name in (table.name, unique("other"))]
    managed = f"/management/v1/warehouse/{world.warehouse}"
    commit = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}
    new = {"name": unique("t"), "schema": SCHEMA}
    return {
        "commit": ("POST", table.path, commit, {}),
        "drop": ("DELETE", table.path, None, {}),
        "rename": ("POST", f"{world.root}/tables/rename", {"source": names[0], "destination": names[1]}, {}),
        "create": ("POST", f"{world.root}/namespaces/{ns}/tables", new, {}),
        "create with keys": ("POST", f"{world.root}/namespaces/{ns}/tables", new | {"stage-create": True}, VENDED),
        "create namespace": ("POST", f"{world.root}/namespaces", {"namespace": [ns, "x"]}, {}),
        "namespace properties": ("POST", f"{world.root}/namespaces/{ns}/properties", {"updates": {"a": "b"}}, {}),
        "drop namespace": ("DELETE", f"{world.root}/namespaces/{ns}", None, {}),
        "rename warehouse": ("POST", f"{managed}/rename", {"new-name": unique("w")}, {}),
        "deactivate": ("POST", f"{managed}/deactivate", None, {}),
        "create role": ("POST", "/management/v1/role", {"name": unique("r")}, {}),
        "create tag": ("POST", "/management/v1/tag-definition", marker(), {}),
    }


def marker() -> dict[str, Any]:
    return {"name": unique("tag"), "scope": ["table"], "value-kind": "marker"}


def sent(person: Person, wish: tuple[str, str, Any, dict[str, str]]) -> httpx.Response:
    method, path, body, headers = wish
    more: dict[str, Any] = {"headers": headers} | ({} if body is None else {"json": body})
    return person.send(method, path, **more)


def test_auditors_get_no_metadata_no_data_and_no_keys(world: World, auditor: Person, table: Table) -> None:
    found = {name: sent(auditor, wish) for name, wish in requests_for_data(world, table).items()}
    assert {name: each.status_code for name, each in found.items() if each.status_code not in REFUSED} == {}
    for each in found.values():
        assert table.location not in each.text


def test_auditors_change_nothing(world: World, auditor: Person, table: Table, ns: str) -> None:
    found = {name: sent(auditor, wish) for name, wish in requests_for_changes(world, table, ns).items()}
    assert {name: each.status_code for name, each in found.items() if each.status_code not in REFUSED} == {}
    assert world.admin.get(table.path).status_code == 200


@pytest.mark.parametrize("kind", [*ON, "namespace", "table"])
def test_auditors_grant_and_revoke_nothing_not_even_auditor(
    world: World, auditor: Person, table: Table, ns: str, kind: str
) -> None:
    id = {"namespace": world.namespace_id(ns), "table": table.uuid}.get(kind) or place(world, kind)
    other = world.stranger()
    given = {"server": ("admin", "auditor"), "project": ("describe", "auditor"), "warehouse": ("describe", "auditor")}
    for privilege in given.get(kind, ("describe", "select")):
        for person in (other, auditor):
            written = {"writes": [{"type": privilege, "user": person.id}]}
            assert auditor.post(world.grants_path(kind, id), written).status_code == 403
    taken = {"deletes": [{"type": given.get(kind, ("describe",))[-1], "user": auditor.id}]}
    assert auditor.post(world.grants_path(kind, id), taken).status_code == 403


@pytest.mark.parametrize("right", ["ownership", "manage_grants", "modify"])
def test_the_audited_neither_appoint_nor_dismiss_auditors(world: World, right: str) -> None:
    manager, watching, other = (world.stranger(stem) for stem in ("manager", "watching", "other"))
    world.grant(right, manager, "warehouse", world.warehouse)
    world.grant("describe", manager, "warehouse", world.warehouse)
    world.grant("auditor", watching, "warehouse", world.warehouse)
    world.grant("auditor", other, "warehouse", world.warehouse, by=manager, expect=403)
    world.revoke("auditor", watching, "warehouse", world.warehouse, by=manager, expect=403)
    for person in (manager, watching):
        world.strip(person)


def test_a_project_administrator_makes_no_auditor_of_the_server(world: World) -> None:
    security, other = world.stranger(), world.stranger()
    world.grant("security_admin", security, "project", world.project)
    world.grant("auditor", other, "server", "", by=security, expect=403)
    world.grant("auditor", other, "project", world.project, by=security)
    for person in (security, other):
        world.strip(person)


def test_auditors_read_who_holds_what_and_what_a_principal_may(
    world: World, auditor: Person, table: Table, ns: str
) -> None:
    reader = world.stranger("reader")
    world.grant("select", reader, "table", table.uuid)
    managed = f"/management/v1/warehouse/{world.warehouse}"
    for path in (f"{managed}/table/{table.uuid}", f"{managed}/namespace/{world.namespace_id(ns)}", managed):
        for what in ("grants", "grants/history"):
            answer = auditor.get(f"{path}/{what}")
            assert answer.status_code == 200, answer.text
    shown = auditor.get(f"{managed}/table/{table.uuid}/grants").text
    assert reader.id in shown
    assert auditor.get(f"{managed}/table/{table.uuid}/live-credentials").status_code == 200
    assert auditor.get(f"{managed}/table/{table.uuid}/data-policies").status_code == 200
    assert auditor.get(f"{managed}/change-tickets").status_code == 200
    question = {
        "identity": {"user": reader.id},
        "operation": {"table": {"warehouse-id": world.warehouse, "table-id": table.uuid, "action": "read_data"}},
    }
    answer = auditor.post("/management/v1/permissions/check", question)
    assert answer.status_code == 200 and answer.json()["allowed"] is True, answer.text
    world.strip(reader)


def test_auditors_find_names_and_no_tags(world: World, auditor: Person, table: Table, ns: str) -> None:
    listed = auditor.get(f"{world.root}/namespaces/{ns}/tables")
    assert table.name in listed.text, listed.text
    assert ns in auditor.get(f"{world.root}/namespaces").text
    search = f"/management/v1/warehouse/{world.warehouse}/search-tabular"
    assert table.uuid in auditor.post(search, {"search": table.name}).text
    made = world.admin.post("/management/v1/tag-definition", definition := marker())
    assert made.is_success, made.text
    tag = definition["name"]
    at = f"/management/v1/warehouse/{world.warehouse}/table/{table.uuid}/tags/{tag}"
    attached = world.admin.send("PUT", at, json={})
    assert attached.is_success, attached.text
    by_tag = {"search": "", "tag": tag}
    assert table.uuid in world.admin.post(search, by_tag).text
    assert table.uuid not in auditor.post(search, by_tag).text


def test_an_auditor_of_a_warehouse_reviews_nothing_else(world: World) -> None:
    person = world.stranger("auditor")
    world.grant("auditor", person, "warehouse", world.warehouse)
    assert person.get("/management/v1/project/grants").status_code == 403
    assert person.get("/management/v1/server/grants").status_code == 403
    assert person.get("/management/v1/data-policy").status_code == 403
    assert person.get("/management/v1/role").status_code == 403
    world.strip(person)


def test_a_dismissed_auditor_is_refused_by_the_next_request(world: World, table: Table) -> None:
    person = world.stranger("auditor")
    path = f"/management/v1/warehouse/{world.warehouse}/table/{table.uuid}/grants"
    world.grant("auditor", person, "warehouse", world.warehouse)
    assert person.get(path).status_code == 200
    world.revoke("auditor", person, "warehouse", world.warehouse)
    assert person.get(path).status_code == 404
    assert not world.tuples_of(f"user:{person.id}", "project")
