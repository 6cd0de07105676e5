# SPDX-License-Identifier: Apache-2.0
"""The register of live credentials: one entry for each vended credential, until it expires."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from tests.support.stack.exchanging import acting, delegating
from tests.support.stack.generic_tables import make as make_generic
from tests.support.stack.lifecycle import until
from tests.support.stack.live_credentials import credentials, entries, own, reader
from tests.support.stack.registrations import register, released
from tests.support.stack.roles import add
from tests.support.stack.roles import make as role
from tests.support.stack.world import SCHEMA, Person, Table, World, error_triple, unique

HEADER = "x-lakegate-live-credentials"


def listed(by: Person, world: World, **query: str) -> list[dict[str, Any]]:
    """Return the live credentials of the warehouse that match the query."""
    return entries(by.get(f"/management/v1/warehouse/{world.warehouse}/live-credentials", params=query))


def of_table(by: Person, world: World, table: Table) -> list[dict[str, Any]]:
    """Return the live credentials of one table."""
    return entries(by.get(f"/management/v1/warehouse/{world.warehouse}/table/{table.uuid}/live-credentials"))


def audited(world: World, person: Person, operation: str) -> list[dict[str, Any]]:
    """Return the audit records of an operation of a user, oldest first."""
    rows = world.sql(
        "select convert_from(record, 'UTF8') as record from audit_log where actor_id = $1 and operation = $2 "
        "order by id",
        person.id,
        operation,
    )
    return [json.loads(row["record"]) for row in rows]


def test_a_vended_credential_is_listed_with_the_expiry_that_its_holder_has(world: World, ns: str) -> None:
    table = world.table(ns)
    person = reader(world, table)
    began = datetime.now(UTC)
    config = credentials(person, table.path)
    [entry] = listed(world.admin, world, user=person.id)
    assert set(entry) == {
        "id", "principal", "warehouse-id", "table-id", "prefix", "level", "provider", "session-name", "policy-digest",
        "issued-at", "expires-at", "live-until",
    }  # fmt: skip
    expiry = datetime.fromisoformat(entry["expires-at"])
    assert int(expiry.timestamp() * 1000) == int(config["s3.session-token-expires-at-ms"])
    assert timedelta(seconds=60) <= datetime.fromisoformat(entry["live-until"]) - expiry < timedelta(seconds=180)
    assert abs(datetime.fromisoformat(entry["issued-at"]) - began) < timedelta(seconds=60)
    assert (entry["principal"], entry["level"], entry["provider"]) == (person.id, "read", "s3")
    assert (entry["warehouse-id"], entry["table-id"]) == (world.warehouse, table.uuid)
    assert entry["prefix"] == table.location.rstrip("/") + "/"
    assert len(entry["policy-digest"]) == 64
    [record] = audited(world, person, "vend_credentials")
    assert record["detail"]["credential_id"] == entry["id"]
    assert record["detail"]["session_name"] == entry["session-name"]
    assert not any(secret in json.dumps(entry) for name, secret in config.items() if "key" in name or "token" in name)
    assert of_table(world.admin, world, table)[-1] == entry
    assert own(person) == [entry] == own(world.admin, principalUser=person.id)


def test_a_cached_hand_out_is_not_listed_twice(world: World, ns: str) -> None:
    """Several processes may each have made one: the number of entries is that of the different keys."""
    table = world.table(ns)
    person = reader(world, table)
    keys = {credentials(person, table.path)["s3.access-key-id"] for _ in range(6)}
    keys |= {person.get(table.path).json()["config"]["s3.access-key-id"] for _ in range(6)}
    assert len(listed(world.admin, world, user=person.id)) == len(keys) < 12
    assert len({record["detail"]["credential_id"] for record in audited(world, person, "vend_credentials")}) <= len(
        keys
    )


def test_each_principal_and_each_table_has_an_entry_of_its_own(world: World, ns: str) -> None:
    first, second = world.table(ns), world.table(ns)
    one, other = reader(world, first), reader(world, first)
    world.grant("modify", one, "table", second.uuid)
    for person, table in ((one, first), (other, first), (one, second)):
        credentials(person, table.path)
    levels = {(entry["principal"], entry["level"]) for entry in of_table(world.admin, world, first)}
    assert {(one.id, "read"), (other.id, "read")} <= levels
    assert {(entry["table-id"], entry["level"]) for entry in own(one)} == {
        (first.uuid, "read"),
        (second.uuid, "read-write-delete"),
    }
    assert {entry["table-id"] for entry in listed(world.admin, world, user=one.id, tableId=second.uuid)} == {
        second.uuid
    }


def test_credentials_of_creators_are_listed(world: World, ns: str) -> None:
    person = world.stranger()
    world.grant("create", person, "namespace", world.namespace_id(ns))
    table = world.table(ns, by=person)
    assert [(entry["table-id"], entry["prefix"]) for entry in own(person)] == [
        (table.uuid, table.location.rstrip("/") + "/")
    ]
    staged = {"name": unique("t"), "schema": SCHEMA, "stage-create": True}
    answer = person.post(f"{world.root}/namespaces/{ns}/tables", staged)
    assert answer.status_code == 200, answer.text
    [_, entry] = own(person)
    assert entry["prefix"] == answer.json()["metadata"]["location"].rstrip("/") + "/"


def test_credentials_of_generic_tables_are_listed(world: World, ns: str) -> None:
    made = make_generic(world, ns)
    person = world.stranger()
    world.grant("select", person, "generic-table", made["id"])
    credentials(person, made["path"])
    path = f"/management/v1/warehouse/{world.warehouse}/generic-table/{made['id']}/live-credentials"
    [entry] = entries(world.admin.get(path, params={"user": person.id}))
    assert (entry["generic-table-id"], entry["principal"]) == (made["id"], person.id)
    assert "table-id" not in entry


def test_an_engine_that_acted_for_the_user_is_named_and_has_an_entry_of_its_own(world: World, ns: str) -> None:
    table = world.table(ns)
    person = reader(world, table)
    world.strip(world.etl)
    with delegating(world, world.etl, "warehouse", world.warehouse):
        credentials(acting(world, world.etl, person), table.path)
    credentials(person, table.path)
    entries_of = own(person)
    assert [entry.get("engine") for entry in entries_of] == [world.etl.id, None]
    assert entries_of[0] in listed(world.admin, world, user=world.etl.id)
    assert entries_of[1] not in listed(world.admin, world, user=world.etl.id)
    assert entries_of[0] not in own(world.etl), "an engine must not list its users' credentials as its own"


def test_an_expired_credential_is_not_listed(world: World, ns: str) -> None:
    table = world.table(ns)
    person = reader(world, table)
    credentials(person, table.path)
    [entry] = own(person)
    world.sql("update live_credentials set live_until = now() where principal = $1", person.id)
    assert own(person) == []
    assert entry not in listed(world.admin, world)
    assert entry not in of_table(world.admin, world, table)


def test_the_credentials_of_a_dropped_table_stay_listed(world: World, ns: str) -> None:
    table = world.table(ns)
    person = reader(world, table)
    credentials(person, table.path)
    [entry] = own(person)
    assert world.admin.delete(f"{table.path}?purgeRequested=true").status_code == 204
    assert own(person) == [entry]
    assert entry in listed(world.admin, world, tableId=table.uuid)


def test_the_credentials_of_a_deleted_user_stay_listed(world: World, ns: str) -> None:
    table = world.table(ns)
    person = reader(world, table)
    credentials(person, table.path)
    assert world.admin.delete(f"/management/v1/user/{person.id}").status_code == 204
    assert [entry["principal"] for entry in listed(world.admin, world, user=person.id)] == [person.id]


def test_pages_contain_each_entry_once(world: World, ns: str) -> None:
    tables = [world.table(ns) for _ in range(3)]
    person = world.stranger()
    for table in tables:
        world.grant("select", person, "table", table.uuid)
        credentials(person, table.path)
    found: list[str] = []
    query = {"pageSize": "2"}
    while True:
        answer = person.get("/management/v1/live-credentials", params=query).json()
        found += [entry["table-id"] for entry in answer["live-credentials"]]
        assert len(answer["live-credentials"]) <= 2
        if "next-page-token" not in answer:
            break
        query["pageToken"] = answer["next-page-token"]
    assert found == [table.uuid for table in tables], "the oldest first"
    refused = person.get("/management/v1/live-credentials", params={"pageToken": "x"})
    assert error_triple(refused)[:2] == (400, "InvalidPaginationToken")


def test_a_revocation_tells_how_many_credentials_it_leaves(world: World, ns: str) -> None:
    table, other = world.table(ns), world.table(ns)
    person, second = reader(world, table), reader(world, table)
    world.grant("select", person, "table", other.uuid)
    for path in (table.path, other.path):
        credentials(person, path)
    credentials(second, table.path)
    [entry] = [each for each in own(person) if each["table-id"] == table.uuid]
    answer = world.revoke("select", person, "table", table.uuid)
    count, ends = answer.headers[HEADER].split("; until=")
    assert count == "1"
    late = datetime.fromisoformat(ends) - datetime.fromisoformat(entry["live-until"])
    assert timedelta() <= late < timedelta(seconds=1)
    records = [each.get("detail") for each in audited(world, world.admin, "write_table_assignments")]
    assert records[-1] == {"live_credentials": answer.headers[HEADER]}
    assert own(person) and error_triple(person.get(f"{table.path}/credentials"))[0] == 404
    # The other forms, and the objects above.
    change = {"deletes": [{"privilege": "select", "principal": {"user": second.id}}]}
    changed = world.admin.post(f"/management/v1/warehouse/{world.warehouse}/table/{table.uuid}/grants", change)
    assert (changed.status_code, changed.content) == (204, b"")
    assert changed.headers[HEADER].startswith("1; until=")
    space = world.namespace_id(ns)
    world.grant("select", person, "namespace", space)
    assert HEADER not in world.grant("select", second, "warehouse", world.warehouse).headers
    assert world.revoke("select", person, "namespace", space).headers[HEADER].startswith("2; until=")
    assert world.revoke("select", second, "warehouse", world.warehouse).headers[HEADER].startswith("1; until=")
    stranger = world.stranger()
    world.grant("select", stranger, "table", table.uuid)
    assert world.revoke("select", stranger, "table", table.uuid).headers[HEADER] == "0"


def test_a_repeated_revocation_has_the_empty_response_without_a_number(world: World, ns: str) -> None:
    table = world.table(ns)
    person = reader(world, table)
    credentials(person, table.path)
    key = {"Idempotency-Key": str(uuid4())}
    change = {"deletes": [{"type": "select", "user": person.id}]}
    path = world.grants_path("table", table.uuid)
    first, again = (world.admin.post(path, change, headers=key) for _ in range(2))
    assert (first.status_code, first.headers[HEADER][:2]) == (204, "1;")
    assert (again.status_code, again.content, HEADER in again.headers) == (204, b"", False)


def test_a_revocation_from_a_role_counts_every_credential_on_the_object(world: World, ns: str) -> None:
    table = world.table(ns)
    person = reader(world, table)
    id = role(world)["id"]
    path = world.grants_path("table", table.uuid)
    given = world.admin.post(path, {"writes": [{"type": "select", "role": id}]})
    assert given.status_code == 204, given.text
    credentials(person, table.path)
    taken = world.admin.post(path, {"deletes": [{"type": "select", "role": id}]})
    expected = len(of_table(world.admin, world, table))
    assert expected >= 1
    assert taken.headers[HEADER].startswith(f"{expected}; until=")


def test_credentials_of_an_assumed_role_are_listed_by_role(world: World, ns: str) -> None:
    table = world.table(ns)
    person, other = reader(world, table), reader(world, table)
    made = role(world)
    as_role = {"x-assume-role": made["id"]}
    writes = {"writes": [{"type": "select", "role": made["id"]}]}
    assert world.admin.post(world.grants_path("table", table.uuid), writes).status_code == 204
    for each in (person, other):
        assert add(world, made, "user", each.id).status_code == 204
        assert each.get(f"{table.path}/credentials", headers=as_role).status_code == 200
    credentials(person, table.path)
    assert [entry.get("assumed-role") for entry in own(person)] == [made["id"], None]
    found = entries(person.get("/management/v1/live-credentials", headers=as_role))
    assert [(entry["principal"], entry["assumed-role"]) for entry in found] == [(person.id, made["id"])]
    assert {entry["principal"] for entry in own(world.admin, principalRole=made["id"])} == {person.id, other.id}
    assert person.get("/management/v1/live-credentials", params={"principalRole": made["id"]}).status_code == 403
    taken = world.admin.delete(f"/management/v1/role/{made['id']}/members/user/{person.id}")
    assert taken.status_code == 204, taken.text
    assert taken.headers[HEADER].startswith("2; until="), "each of the user's credentials may rest on the role"


def test_only_callers_that_may_list_credentials_learn_their_number(world: World, ns: str) -> None:
    """The owner of a role may remove any user from it, and learns nothing about the user's credentials."""
    table = world.table(ns)
    person, owner = reader(world, table), world.stranger()
    credentials(person, table.path)
    made = role(world)
    world.grant("ownership", owner, "role", made["id"])
    taken = owner.delete(f"/management/v1/role/{made['id']}/members/user/{person.id}")
    assert taken.status_code == 204, taken.text
    assert HEADER not in taken.headers


def test_a_table_at_the_location_of_another_one_has_entries_of_its_own(world: World, ns: str) -> None:
    """A cached credential for the location must not hide that it was handed out for the new table."""
    table = released(world, ns)
    made = register(world.admin, world, ns, table.name, table.answer["metadata-location"])
    assert made.status_code == 200, made.text
    credentials(world.admin, table.path)
    found = [entry for entry in own(world.admin) if entry["prefix"] == table.location.rstrip("/") + "/"]
    [row] = world.sql("select id::text from tables where name = $1", table.name)
    assert table.uuid in {entry["table-id"] for entry in found}
    assert row["id"] in {entry["table-id"] for entry in found} - {table.uuid}


@contextmanager
def register_refusing(world: World, person: Person) -> Iterator[None]:
    """Make the database refuse register entries of one user during the block."""
    name = f"refused_{uuid4().hex}"
    world.sql(f"alter table live_credentials add constraint {name} check (principal <> '{person.id}') not valid")
    try:
        yield
    finally:
        world.sql(f"alter table live_credentials drop constraint {name}")


@pytest.mark.parametrize("at", ["/credentials", ""])
def test_no_credential_leaves_without_its_register_entry(world: World, ns: str, at: str) -> None:
    table = world.table(ns)
    person, other = reader(world, table), reader(world, table)
    with register_refusing(world, person):
        refused = person.get(f"{table.path}{at}")
        assert refused.status_code == 503, refused.text
        assert "access-key" not in refused.text
        credentials(other, table.path)
    assert own(person) == [] and len(own(other)) == 1
    # The failure is buffered, so it is recorded a moment later; the hand-out is not recorded.
    config = credentials(person, table.path)
    records = audited(world, person, "vend_credentials") + audited(world, person, "load_table")
    assert [each["detail"]["result"] for each in records if "error" in each["detail"]] == ["failed"]
    assert len([each for each in records if "credential_id" in each["detail"] and "error" not in each["detail"]]) == 1
    assert config and len(own(person)) == 1


def test_a_creation_whose_credential_cannot_be_registered_answers_without_it(world: World, ns: str) -> None:
    person = world.stranger()
    world.grant("create", person, "namespace", world.namespace_id(ns))
    with register_refusing(world, person):
        table = world.table(ns, by=person)
    assert not {name for name in table.answer["config"] if "access-key" in name}
    assert table.answer.get("storage-credentials", []) == []
    assert own(person) == []


def test_the_command_line_lists_live_credentials_by_name(world: World, ns: str) -> None:
    table = world.table(ns)
    person = reader(world, table)
    credentials(person, table.path)
    [entry] = own(person)
    line = "\t".join(
        (
            datetime.fromisoformat(entry["live-until"]).isoformat(timespec="seconds"),
            person.id,
            "-",
            "read",
            entry["prefix"],
            entry["session-name"],
            table.uuid,
            entry["id"],
        )
    )
    for place in (["--table", table.uuid], ["--warehouse", world.warehouse, "--table", f"{ns}.{table.name}"]):
        done = world.lakegate("live-credentials", *place, "--user", person.id)
        assert (done.returncode, done.stdout.splitlines()) == (0, [line]), done.stderr
        assert done.stderr.splitlines()[-1] == "live credentials: 1"
    refused = world.lakegate("live-credentials", "--warehouse", world.warehouse, "--table", f"{ns}.absent")
    assert refused.returncode == 1 and "give the id of a deleted table" in refused.stderr
    assert world.lakegate("live-credentials", "--table", f"{ns}.{table.name}").returncode == 1


def test_the_number_of_live_credentials_is_a_metric(world: World, ns: str) -> None:
    table = world.table(ns)
    credentials(reader(world, table), table.path)
    name = 'lakegate_live_credentials{level="read",provider="s3"}'
    expected = world.sql(
        "select count(*) as n from live_credentials where live_until > now() and level = 'read' and provider = 's3'"
    )[0]["n"]

    def shown() -> float:
        lines = httpx.get(world.ready.metrics_uri, trust_env=False).text.splitlines()
        return next((float(line.split()[-1]) for line in lines if line.startswith(name)), 0.0)

    until(lambda: shown() >= expected, "the metric was not updated")


def test_housekeeping_deletes_only_entries_that_expired_an_hour_ago(world: World, ns: str) -> None:
    table = world.table(ns)
    people = [reader(world, table) for _ in range(2)]
    for person, age in zip(people, ("59 minutes", "61 minutes"), strict=True):
        credentials(person, table.path)
        world.sql(
            "update live_credentials set live_until = now() - $2::text::interval where principal = $1", person.id, age
        )

    def left() -> set[str]:
        rows = world.sql("select principal from live_credentials where table_id = $1", UUID(table.uuid))
        return {row["principal"] for row in rows}

    until(lambda: people[1].id not in left(), "the expired entry was not deleted")
    assert people[0].id in left()
