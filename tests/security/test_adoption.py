# SPDX-License-Identifier: Apache-2.0
"""Registration of metadata files returns a location only to its former owner (LG-LOC-23).

Any other registration of existing files is an adoption, which needs a right on the storage.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.support.stack.adoption import brought, key, lake_location, register, register_view, write
from tests.support.stack.assumed_roles import acting, give
from tests.support.stack.lifecycle import end_now, soft_world
from tests.support.stack.registrations import ADOPT
from tests.support.stack.roles import ROLE, add, make
from tests.support.stack.views import body as view_body
from tests.support.stack.views import create as create_view
from tests.support.stack.world import Person, Table, World, error_triple, unique

REFUSED = (403, "NamespaceActionForbidden")


def release(world: World, table: Table, by: Person, how: str = "unregister") -> None:
    """Remove a table from the catalog and keep its files."""
    if how == "unregister":
        assert by.post(f"{table.path}/unregister").status_code == 200
    else:
        assert by.delete(f"{table.path}?purgeRequested=false").status_code == 204


@pytest.fixture
def creator(world: World) -> Person:
    """Return a user whose only right is `create` on one namespace."""
    return world.stranger("creator")


@pytest.fixture
def own(world: World, creator: Person) -> str:
    """Return the namespace in which the creator may create."""
    namespace = world.namespace()
    world.grant("create", creator, "namespace", world.namespace_id(namespace))
    return namespace


def keys_of(answer: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Return the storage credentials of a response."""
    yield from answer.get("storage-credentials") or ()


# ---- location in the file -------------------------------------------------------------------------------------------


@pytest.mark.threat("LG-LOC-23")
@pytest.mark.parametrize("how", ["unregister", "drop", "overwrite"])
def test_a_metadata_file_that_names_an_ancestor_folder_is_refused(
    world: World, creator: Person, own: str, how: str
) -> None:
    raw = lake_location(world)
    victim = write(world, f"{raw}/orphan/secret.json", {"secret": 1})
    table = world.table(own, by=creator, location=f"{raw}/x")
    config = dict(table.answer["config"])
    file = f"{table.location}/metadata/00009-{uuid.uuid4()}.metadata.json"
    document = {**table.answer["metadata"], "location": raw}
    world.store_of(config).put_object(Bucket=world.bucket, Key=key(world, file), Body=json.dumps(document).encode())
    if how == "overwrite":
        answer = register(creator, world, own, file, table.name, overwrite=True)
    else:
        release(world, table, creator, how)
        answer = register(creator, world, own, file)
    assert error_triple(answer)[:2] == (400, "InvalidLocation"), answer.text
    assert raw not in [row["location"] for row in world.sql("select location from tables")]
    with pytest.raises(ClientError):
        world.store_of(config).get_object(Bucket=world.bucket, Key=key(world, victim))
    # The same file is accepted with the recorded location: the refusal was for the location alone.
    write(world, file, table.answer["metadata"])
    more: dict[str, Any] = {"name": table.name, "overwrite": True} if how == "overwrite" else {}
    again = register(creator, world, own, file, **more)
    assert again.status_code == 200, again.text
    assert [each["prefix"] for each in keys_of(again.json())] == [f"{table.location}/"]


@pytest.mark.threat("LG-LOC-23")
@pytest.mark.parametrize("inner", ["{at}/metadata", "{at}/metadata/deeper", "{above}", "{above}/y", "{twin}"])
def test_the_location_inside_a_registered_file_must_equal_the_recorded_one(
    world: World, creator: Person, own: str, inner: str
) -> None:
    raw = lake_location(world)
    table = world.table(own, by=creator, location=f"{raw}/x")
    release(world, table, creator)
    at = table.location
    location = inner.format(at=at, above=raw, twin=f"{raw}/X")
    document = {**table.answer["metadata"], "location": location}
    file = write(world, f"{at}/metadata/deeper/00009-a.metadata.json", document)
    assert error_triple(register(creator, world, own, file))[:2] == (400, "InvalidLocation")
    write(world, file, {**document, "location": f"{at}/"})
    assert register(creator, world, own, file).status_code == 200, "a trailing slash must not matter"


@pytest.mark.threat("LG-LOC-23")
def test_a_view_file_that_names_an_ancestor_folder_is_refused(world: World, creator: Person, own: str) -> None:
    raw = lake_location(world)
    name = unique("v")
    made = creator.post(f"{world.root}/namespaces/{own}/views", view_body(name, location=f"{raw}/v"))
    assert made.status_code == 200, made.text
    view = {**made.json(), "path": f"{world.root}/namespaces/{own}/views/{name}"}
    assert creator.delete(f"{view['path']}?purgeRequested=false").status_code == 204
    file = write(world, f"{raw}/v/metadata/00009-a.gz.metadata.json", {**view["metadata"], "location": raw})
    assert error_triple(register_view(creator, world, own, file))[:2] == (400, "InvalidLocation")
    assert register_view(creator, world, own, view["metadata-location"]).status_code == 200


# ---- equal responses -------------------------------------------------------------------------------------------------


@pytest.mark.threat("LG-LOC-23")
def test_taken_retired_and_unknown_locations_get_the_same_response(world: World, creator: Person, own: str) -> None:
    live, gone = world.table(world.namespace()), world.table(world.namespace())
    release(world, gone, world.admin)
    raw = lake_location(world)
    mine = world.table(own, by=creator, location=f"{raw}/mine")
    release(world, mine, creator)
    twin = mine.location.replace("/mine", "/MINE")
    elsewhere = write(world, f"{raw}/metadata/00000-a.metadata.json", {**mine.answer["metadata"], "location": raw})
    files = [
        live.answer["metadata-location"],
        f"{live.location}/metadata/none.metadata.json",
        gone.answer["metadata-location"],
        f"{gone.location}/metadata/none.metadata.json",
        f"{lake_location(world)}/metadata/none.metadata.json",
        f"{twin}/metadata/none.metadata.json",
        elsewhere,
    ]
    for file in files:
        answers = [
            error_triple(register(creator, world, own, file)),
            error_triple(register(creator, world, own, file, overwrite=True)),
            error_triple(register_view(creator, world, own, file)),
        ]
        assert {(status, kind, text.replace(file, "<file>")) for status, kind, text in answers} == {
            (*REFUSED, answers[0][2].replace(file, "<file>"))
        }, file
        assert answers[0][2].replace(file, "<file>") == error_triple(register(creator, world, own, files[0]))[
            2
        ].replace(files[0], "<file>")


def test_location_containing_another_owners_is_never_returned(world: World, creator: Person, own: str) -> None:
    """A table in that location now belongs to another owner."""
    raw = lake_location(world)
    outer = world.table(own, by=creator, location=raw)
    release(world, outer, creator)
    world.sql("update retired_locations set keys_until = clock_timestamp() where location = $1", raw)
    inner = world.table(world.namespace(), location=f"{raw}/data/inner")
    assert error_triple(register(creator, world, own, outer.answer["metadata-location"]))[:2] == REFUSED
    release(world, inner, world.admin)
    assert error_triple(register(creator, world, own, outer.answer["metadata-location"]))[:2] == REFUSED
    assert error_triple(register(world.admin, world, own, inner.answer["metadata-location"]))[:2] == REFUSED


# ---- owners ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["drop", "soft drop"])
def test_dropping_a_table_gives_no_ownership_of_its_files(world: World, creator: Person, how: str) -> None:
    where = soft_world(world) if how == "soft drop" else world
    try:
        own, theirs = where.namespace(), where.namespace()
        where.grant("create", creator, "namespace", where.namespace_id(own))
        table = where.table(theirs)
        id = str(where.sql("select id from tables where table_uuid = $1::text::uuid", table.uuid)[0]["id"])
        where.grant("modify", creator, "table", id)
        release(where, table, creator, "drop")
        if how == "soft drop":
            end_now(where, id)
        assert error_triple(register(creator, where, own, table.answer["metadata-location"]))[:2] == REFUSED
        assert error_triple(register_view(creator, where, own, table.answer["metadata-location"]))[:2] == REFUSED
        back = register(where.admin, where, theirs, table.answer["metadata-location"])
        assert back.status_code == 200, back.text
    finally:
        if where is not world:
            where.close()


def test_overwriting_a_table_with_its_own_file_needs_ownership(world: World, creator: Person) -> None:
    """`modify` allows the drop, but the caller would own the new table permanently."""
    ns = world.namespace()
    table = world.table(ns)
    file = table.answer["metadata-location"]
    world.grant("create", creator, "namespace", world.namespace_id(ns))
    world.grant("modify", creator, "table", table.uuid)
    assert error_triple(register(creator, world, ns, file, table.name, overwrite=True))[:2] == REFUSED
    assert creator.get(table.path).json()["metadata-location"] == file
    world.grant("ownership", creator, "table", table.uuid)
    assert register(creator, world, ns, file, table.name, overwrite=True).status_code == 200


def test_temporary_ownership_gives_no_claim_on_the_files(world: World, creator: Person, own: str) -> None:
    table = world.table(own)
    until = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    grants = f"/management/v1/warehouse/{world.warehouse}/table/{table.uuid}/grants"
    entry = {"privilege": "ownership", "principal": {"user": creator.id}, "expires-at": until}
    given = world.admin.post(grants, {"writes": [entry]})
    assert given.status_code == 204, given.text
    release(world, table, creator, "drop")
    assert error_triple(register(creator, world, own, table.answer["metadata-location"]))[:2] == REFUSED
    assert register(world.admin, world, own, table.answer["metadata-location"]).status_code == 200


@pytest.mark.parametrize("acts", [False, True], ids=["as a member", "acting as the role"])
def test_table_owned_by_a_role_returns_to_the_role(world: World, creator: Person, own: str, acts: bool) -> None:
    """A member that leaves the role keeps no right on the table."""
    role = make(world)
    assert add(world, role, "user", creator.id).status_code == 204
    give(world, role, "create", "namespace", world.namespace_id(own))
    headers = acting(role)
    made = creator.post(
        f"{world.root}/namespaces/{own}/tables",
        {"name": unique("t"), "schema": {"type": "struct", "fields": []}},
        headers=headers,
    )
    assert made.status_code == 200, made.text
    name, file = made.json()["metadata"]["location"], made.json()["metadata-location"]
    [row] = world.sql("select name from tables where location = $1", name)
    gone = creator.post(f"{world.root}/namespaces/{own}/tables/{row['name']}/unregister", headers=headers)
    assert gone.status_code == 200, gone.text
    assert error_triple(register(world.stranger(), world, own, file))[0] == 404
    back = register(creator, world, own, file, headers=headers if acts else {})
    assert back.status_code == 200, back.text
    owners = world.sql(
        "select g.principal_type, g.principal_id from grants g join tables t on t.id::text = g.object_id "
        "where t.location = $1 and g.privilege = 'ownership'",
        name,
    )
    assert [tuple(each.values()) for each in owners] == [("role", role["id"])]
    assert world.admin.delete(f"{ROLE}/{role['id']}").status_code == 204


def test_assumed_role_gives_the_user_no_claim(world: World, creator: Person, own: str) -> None:
    role = make(world)
    assert add(world, role, "user", creator.id).status_code == 204
    give(world, role, "create", "namespace", world.namespace_id(own))
    table = world.table(own, by=creator)
    release(world, table, creator)
    file = table.answer["metadata-location"]
    assert error_triple(register(creator, world, own, file, headers=acting(role)))[:2] == REFUSED
    assert register(creator, world, own, file).status_code == 200


def test_returning_deleted_user_owns_none_of_the_earlier_files(world: World, creator: Person, own: str) -> None:
    table = world.table(own, by=creator)
    release(world, table, creator)
    assert world.admin.delete(f"/management/v1/user/{creator.id}").status_code == 204
    user = {"name": creator.name, "user-type": "human"}
    assert creator.post("/management/v1/user", user).status_code == 201
    world.grant("create", creator, "namespace", world.namespace_id(own))
    assert error_triple(register(creator, world, own, table.answer["metadata-location"]))[:2] == REFUSED


def test_retired_location_without_recorded_owners_needs_adoption(world: World, creator: Person, own: str) -> None:
    table = world.table(own, by=creator)
    release(world, table, creator)
    file = table.answer["metadata-location"]
    world.sql("update retired_locations set owners = '{}' where location = $1", table.location)
    assert error_triple(register(creator, world, own, file))[:2] == REFUSED
    world.sql("update retired_locations set keys_until = clock_timestamp() where location = $1", table.location)
    assert register(world.admin, world, own, file, headers=ADOPT).status_code == 200


def test_a_retired_location_records_owners_and_the_last_metadata_file(world: World, creator: Person, own: str) -> None:
    table = world.table(own, by=creator)
    world.grant("modify", world.carol, "table", table.uuid)
    world.grant("ownership", world.bob, "table", table.uuid, by=creator)
    change = {"action": "set-properties", "updates": {"a": "b"}}
    last = world.commit(creator, table.path, change).json()["metadata-location"]
    release(world, table, world.carol, "drop")
    [row] = world.sql("select owners, metadata_location from retired_locations where location = $1", table.location)
    assert set(row["owners"]) == {f"user:{creator.id}", f"user:{world.bob.id}"}
    assert row["metadata_location"] == last


def test_table_created_at_an_emptied_location_ends_earlier_claims(world: World, creator: Person, own: str) -> None:
    at = lake_location(world)
    first = world.table(own, by=creator, location=at)
    release(world, first, creator)
    world.sql("update retired_locations set keys_until = clock_timestamp() where location = $1", at)
    for found, _ in world.objects(key(world, at)):
        world.s3.delete_object(Bucket=world.bucket, Key=found)
    second = world.table(world.namespace(), location=at)
    assert world.sql("select 1 from retired_locations where location = $1", at) == []
    release(world, second, world.admin)
    assert error_triple(register(creator, world, own, second.answer["metadata-location"]))[:2] == REFUSED


# ---- adoption --------------------------------------------------------------------------------------------------------


def test_adoption_needs_manage_storage_and_an_explicit_request(world: World, creator: Person, own: str) -> None:
    at, file = brought(world)
    assert error_triple(register(creator, world, own, file))[:2] == REFUSED
    assert error_triple(register(creator, world, own, file, headers=ADOPT))[:2] == (403, "WarehouseActionForbidden")
    for header in ("", "false"):
        assert (
            error_triple(register(world.admin, world, own, file, headers={"X-Lakegate-Adopt": header}))[:2] == REFUSED
        )
    for header in ("yes", "1", "true, true", "true false"):
        refused = register(world.admin, world, own, file, headers={"X-Lakegate-Adopt": header})
        assert error_triple(refused)[:2] == (400, "BadRequestException"), header
    answer = register(world.admin, world, own, file, headers={"X-Lakegate-Adopt": "TRUE"})
    assert answer.status_code == 200, answer.text
    assert [each["prefix"] for each in keys_of(answer.json())] == [f"{at}/"]


def test_adoption_is_audited_as_adoption(world: World, own: str) -> None:
    _, file = brought(world)
    answer = register(world.admin, world, own, file, headers=ADOPT)
    assert answer.status_code == 200
    [record] = world.sql(
        "select convert_from(record, 'UTF8') as r from audit_log where request_id = $1 and operation = 'adopt_table'",
        answer.headers["x-request-id"],
    )
    assert "can_adopt_files" in record["r"]
    assert (
        world.sql(
            "select 1 from audit_log where request_id = $1 and operation = 'register_table'",
            answer.headers["x-request-id"],
        )
        == []
    )


def test_view_adoption_follows_the_rules_of_tables(world: World, creator: Person, own: str) -> None:
    sample = create_view(world, own)
    at = lake_location(world)
    file = write(world, f"{at}/metadata/00000-a.metadata.json", {**sample["metadata"], "location": at})
    assert error_triple(register_view(creator, world, own, file, headers=ADOPT))[:2] in (
        (403, "WarehouseActionForbidden"),
        REFUSED,
    )
    assert error_triple(register_view(world.admin, world, own, file))[:2] == REFUSED
    assert register_view(world.admin, world, own, file, headers=ADOPT).status_code == 200


def test_an_adopted_location_overlaps_no_table(world: World, own: str) -> None:
    raw = lake_location(world)
    table = world.table(own, location=f"{raw}/x")
    for location in (raw, f"{raw}/x", f"{raw}/x/data"):
        document = {**table.answer["metadata"], "location": location}
        file = write(world, f"{location}/metadata/00009-a.metadata.json", document)
        refused = register(world.admin, world, own, file, headers=ADOPT)
        assert error_triple(refused)[:2] == (409, "LocationAlreadyTaken"), location
