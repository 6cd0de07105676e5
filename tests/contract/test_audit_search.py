# SPDX-License-Identifier: Apache-2.0
"""The search of the audit log over HTTP: filters, pages, and what auditors of each place read."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support.stack.lifecycle import until
from tests.support.stack.live_credentials import credentials, reader
from tests.support.stack.roles import make as make_role
from tests.support.stack.world import Person, Table, World, error_triple, unique

SEARCH = "/management/v1/audit/search"
READS = ["load_table", "vend_credentials", "sign_request"]


@pytest.fixture
def auditor(world: World) -> Iterator[Person]:
    """Return an auditor of the server."""
    person = world.stranger("auditor")
    world.grant("auditor", person, "server", "")
    yield person
    world.strip(person)


@pytest.fixture
def local_auditor(world: World) -> Iterator[Person]:
    """Return an auditor of the warehouse."""
    person = world.stranger("auditor")
    world.grant("auditor", person, "warehouse", world.warehouse)
    yield person
    world.strip(person)


def search(by: Person, **body: Any) -> dict[str, Any]:
    answer = by.post(SEARCH, {name.replace("_", "-"): value for name, value in body.items()})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def records(by: Person, *, least: int = 1, **body: Any) -> list[dict[str, Any]]:
    """Return the records of one page, as soon as there are at least so many: those of reads are written later."""
    found: list[dict[str, Any]] = []

    def enough() -> bool:
        found[:] = search(by, **body)["records"]
        return len(found) >= least

    until(enough, "records of the audit log", seconds=10)
    return found


def of_table(table: Table) -> dict[str, str]:
    return {"type": "table", "id": table.uuid}


def operations(found: list[dict[str, Any]]) -> set[str]:
    return {decision["operation"] for record in found for decision in record["decisions"]}


def test_one_request_shows_the_readers_of_a_table(world: World, auditor: Person, table: Table, ns: str) -> None:
    other = world.table(ns)
    person, stranger = reader(world, table), world.stranger()
    credentials(person, table.path)
    assert world.admin.get(other.path).status_code == 200
    assert stranger.get(table.path).status_code == 404
    found = records(auditor, object=of_table(table), operations=READS, outcomes=["allowed"])
    assert {record["actor"]["id"] for record in found} == {person.id}
    (record,) = [each for each in found if "credential_id" in each.get("detail", {})]
    assert (record["detail"]["vended"], record["detail"]["prefix"]) == ("read", table.location.rstrip("/") + "/")
    assert {each["outcome"] for each in record["decisions"]} == {"allowed"}
    (refused,) = records(auditor, object=of_table(table), outcomes=["hidden"])
    assert (refused["actor"]["id"], refused["decisions"][0]["failure"]) == (stranger.id, "CannotSeeResource")


def test_pages_are_complete_newest_first_and_without_repeats(world: World, auditor: Person, table: Table) -> None:
    person = reader(world, table)
    for _ in range(7):
        assert person.get(table.path).status_code == 200
    whole = records(auditor, least=7, actor=person.id)
    assert [each["at"] for each in whole] == sorted((each["at"] for each in whole), reverse=True)
    seen: list[str] = []
    token: dict[str, str] = {}
    while True:
        page = search(auditor, actor=person.id, page_size=3, **token)
        assert len(page["records"]) <= 3
        seen += [each["id"] for each in page["records"]]
        if "next-page-token" not in page:
            break
        token = {"page_token": page["next-page-token"]}
    assert seen == [each["id"] for each in whole]
    assert page["searched-since"] == page["since"]


def test_record_is_found_by_the_id_of_its_request_and_of_its_error(world: World, auditor: Person, table: Table) -> None:
    person = world.stranger()
    world.grant("describe", person, "table", table.uuid)
    refused = person.delete(table.path)
    assert refused.status_code == 403
    own = refused.headers["x-request-id"]
    (found,) = records(auditor, request_id=own)
    assert (found["request-id"], found["actor"]["id"]) == (own, person.id)
    (same,) = records(auditor, request_id=found["id"])
    assert same == found
    assert search(auditor, request_id=str(uuid4()))["records"] == []


def test_filters_of_time_actor_outcome_text_and_container(world: World, auditor: Person, table: Table, ns: str) -> None:
    person = world.stranger()
    world.grant("describe", person, "table", table.uuid)
    assert person.delete(table.path).status_code == 403
    (found,) = records(auditor, actor=person.id, outcomes=["forbidden"])
    at = datetime.fromisoformat(found["at"])
    for given, selected in (
        ({"text": "actionFORBIDDEN"}, True),
        ({"text": "nothing of this kind"}, False),
        ({"outcomes": ["allowed"]}, False),
        ({"operations": ["drop_table"], "outcomes": ["forbidden"]}, True),
        ({"since": at.isoformat(), "until": (at + timedelta(seconds=1)).isoformat()}, True),
        ({"since": (at - timedelta(days=2)).isoformat(), "until": at.isoformat()}, False),
        ({"below": {"type": "namespace", "id": world.namespace_id(ns)}}, True),
        ({"below": {"type": "namespace", "id": str(uuid4())}}, False),
        ({"below": {"type": "warehouse", "id": world.warehouse}}, True),
        ({"object": {"type": "view", "id": table.uuid}}, False),
        ({"object": of_table(table), "below": {"type": "warehouse", "id": world.warehouse}}, True),
    ):
        page = search(auditor, actor=person.id, **given)
        assert (found["id"] in [each["id"] for each in page["records"]]) is selected, given


def test_search_is_recorded_with_its_filters(world: World, auditor: Person, table: Table) -> None:
    search(auditor, object=of_table(table), text="why")
    found = records(auditor, actor=auditor.id, operations=["search_audit"])
    assert any(table.uuid in each["detail"]["search"] and '"text":"why"' in each["detail"]["search"] for each in found)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"since": "2026-01-01T00:00:00Z", "until": "2026-01-01T00:00:00Z"}, "must be before"),
        ({"since": "2020-01-01T00:00:00Z"}, "at most 366 days"),
        ({"until": "9999-12-31T00:00:00Z"}, "in the years"),
        ({"operations": ["load_tabel"]}, "There is no operation load_tabel"),
        ({"page-token": "nonsense"}, "page token"),
        ({"project-id": "a", "warehouse-id": "0190a0b0-0000-7000-8000-000000000001"}, "not possible together"),
    ],
)
def test_invalid_search_is_refused_with_the_reason(auditor: Person, body: dict[str, Any], says: str) -> None:
    answer = auditor.post(SEARCH, body)
    assert answer.status_code == 400
    assert says in answer.json()["error"]["message"]


def test_places_that_the_caller_does_not_see_answer_like_absent_ones(world: World, local_auditor: Person) -> None:
    outsider = world.stranger()
    answers: list[httpx.Response] = [
        outsider.post(SEARCH, {"warehouse-id": id}) for id in (world.warehouse, str(uuid4()))
    ]
    assert [error_triple(each)[0] for each in answers] == [404, 404]
    assert error_triple(answers[0])[1] == error_triple(answers[1])[1]
    assert outsider.post(SEARCH, {"project-id": world.project}).status_code == 404
    assert outsider.post(SEARCH, {}).status_code == 403
    assert local_auditor.post(SEARCH, {}).status_code == 403
    assert local_auditor.post(SEARCH, {"project-id": world.project}).status_code == 403
    assert local_auditor.post(SEARCH, {"warehouse-id": world.warehouse}).status_code == 200


@pytest.mark.parametrize("right", ["ownership", "manage_grants", "modify"])
def test_holders_of_other_rights_do_not_read_the_audit_log(world: World, right: str) -> None:
    person = world.stranger()
    world.grant(right, person, "warehouse", world.warehouse)
    if right == "manage_grants":
        world.grant("describe", person, "warehouse", world.warehouse)
    assert person.post(SEARCH, {"warehouse-id": world.warehouse}).status_code == 403
    world.strip(person)
    assert world.admin.post(SEARCH, {}).status_code == 403


def test_auditor_of_a_warehouse_reads_nothing_of_other_places(
    world: World, auditor: Person, local_auditor: Person, table: Table
) -> None:
    person = reader(world, table)
    assert person.get(table.path).status_code == 200
    made = make_role(world)["id"]
    assert world.admin.get(f"/management/v1/role/{made}").status_code == 200
    assert world.admin.get("/management/v1/user").status_code == 200
    place: dict[str, Any] = {"warehouse_id": world.warehouse}
    assert records(local_auditor, actor=person.id, **place)
    assert records(auditor, object={"type": "role", "id": made})
    assert search(local_auditor, object={"type": "role", "id": made}, **place)["records"] == []
    page = search(local_auditor, page_size=1000, **place)
    for record in page["records"]:
        assert record["decisions"]
        for each in (each for decision in record["decisions"] for each in decision["objects"]):
            assert world.warehouse in (each.get("warehouse-id"), each["id"])
    assert {"list_users", "create_role"}.isdisjoint(operations(page["records"]))


def test_auditor_of_a_project_reads_its_roles_and_warehouses(world: World, auditor: Person, table: Table) -> None:
    person, watching = reader(world, table), world.stranger("auditor")
    world.grant("auditor", watching, "project", world.project)
    role = make_role(world)["id"]
    assert world.admin.get(f"/management/v1/role/{role}").status_code == 200
    assert person.get(table.path).status_code == 200
    place: dict[str, Any] = {"project_id": world.project}
    assert records(watching, actor=person.id, **place)
    assert records(watching, object={"type": "role", "id": role}, **place)
    assert search(watching, operations=["search_audit"], actor=auditor.id, **place)["records"] == []
    world.strip(watching)


def test_auditors_read_no_metadata_and_no_secrets_of_the_records(
    world: World, auditor: Person, table: Table, ns: str
) -> None:
    secret_column = unique("column")
    update = {"action": "set-properties", "updates": {secret_column: "x"}}
    assert world.commit(world.admin, table.path, update).status_code == 200
    person = reader(world, table)
    credentials(person, table.path)
    world.grant("describe", person, "table", table.uuid)
    stored = world.sql(
        "select convert_from(record, 'UTF8') as record from audit_log where position($1::bytea in record) > 0",
        secret_column.encode(),
    )
    assert stored
    answer = auditor.post(SEARCH, {"object": of_table(table), "page-size": 1000})
    assert "commit_table" in operations(answer.json()["records"])
    assert secret_column not in answer.text
    assert search(auditor, object=of_table(table), text=secret_column)["records"] == []
    (granted,) = [
        each
        for each in answer.json()["records"]
        if "write_table_assignments" in operations([each]) and '"describe"' in each["detail"].get("facts", "")
    ]
    assert person.id in granted["detail"]["facts"]


def test_records_of_this_moment_are_in_the_default_range(world: World, auditor: Person, table: Table) -> None:
    person = reader(world, table)
    assert person.get(table.path).status_code == 200
    found, *_ = records(auditor, actor=person.id)
    page = search(auditor, actor=person.id)
    since, ends = (datetime.fromisoformat(page[name]) for name in ("since", "until"))
    assert ends - since == timedelta(days=1)
    assert since < datetime.fromisoformat(found["at"]) < ends <= datetime.now(UTC) + timedelta(seconds=5)
