# SPDX-License-Identifier: Apache-2.0
"""The location of a dropped table does not pass to another user: keys for it are still valid and its files remain."""

from __future__ import annotations

import json
import time
from typing import Any
from uuid import UUID

import httpx
import pytest

from tests.support.stack.location_layouts import warehouse
from tests.support.stack.registrations import ADOPT
from tests.support.stack.views import create as create_view
from tests.support.stack.world import SCHEMA, Person, Table, World, error_triple, unique

HIERARCHY = {"type": "full-hierarchy", "namespace": "{name}-{uuid}", "tabular": "{name}-{uuid}"}


def _tables(world: World, namespace: str) -> str:
    return f"{world.root}/namespaces/{namespace}/tables"


def _register(by: Person, world: World, namespace: str, file: str, **more: Any) -> httpx.Response:
    body = {"name": unique("taken_in"), "metadata-location": file, **more}
    return by.post(f"{world.root}/namespaces/{namespace}/register", body)


def _adopt(by: Person, world: World, namespace: str, file: str) -> httpx.Response:
    body = {"name": unique("taken_in"), "metadata-location": file}
    return by.post(f"{world.root}/namespaces/{namespace}/register", body, headers=ADOPT)


def _key(world: World, location: str) -> str:
    return location.removeprefix(f"s3://{world.bucket}/")


def _location(world: World) -> str:
    return f"s3://{world.bucket}/demo/{unique('place')}"


def _creator(world: World, person: Person) -> str:
    """Return a namespace on which the user's only right is `create`."""
    namespace = world.namespace()
    world.grant("create", person, "namespace", world.namespace_id(namespace))
    return namespace


def _nothing_lives(world: World, location: str) -> None:
    """Expire all keys for the location."""
    world.sql("update retired_locations set keys_until = clock_timestamp() where location = $1", location)


def _wait_for_purge(world: World, location: str) -> None:
    purges = "select 1 from tasks where payload->>'location' = $1 and status in ('scheduled', 'running')"
    deadline = time.monotonic() + 60
    while world.sql(purges, location):
        assert time.monotonic() < deadline
        time.sleep(0.3)


def _gone(world: World, table: Table, how: str, by: Person) -> None:
    if how == "unregister":
        assert by.post(f"{table.path}/unregister").status_code == 200
    else:
        assert by.delete(f"{table.path}?purgeRequested={'true' if how == 'purge' else 'false'}").status_code == 204


# ---- files of dropped tables -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["drop", "purge", "unregister"])
def test_describe_gives_no_claim_on_the_files_of_a_dropped_table(world: World, how: str) -> None:
    own = _creator(world, world.carol)
    table = world.table(world.namespace())
    world.grant("describe", world.carol, "table", table.uuid)
    file = world.carol.get(table.path).json()["metadata-location"]
    _gone(world, table, how, world.admin)
    assert error_triple(_register(world.carol, world, own, file))[:2] == (403, "NamespaceActionForbidden")
    _nothing_lives(world, table.location)
    for more in ({}, {"overwrite": True}):
        assert error_triple(_register(world.carol, world, own, file, **more))[:2] == (403, "NamespaceActionForbidden")
    body = {"name": unique("view"), "metadata-location": file}
    view = world.carol.post(f"{world.root}/namespaces/{own}/register-view", body)
    assert error_triple(view)[:2] == (403, "NamespaceActionForbidden")


def test_own_metadata_file_claims_no_location_with_foreign_files(world: World) -> None:
    """The file itself is outside of retired locations, but the location that it names contains one."""
    own = _creator(world, world.carol)
    lake_location = _location(world)
    left = world.table(world.namespace(), location=f"{lake_location}/inner")
    _gone(world, left, "drop", world.admin)
    _nothing_lives(world, left.location)
    document = {**left.answer["metadata"], "location": lake_location}
    file = f"{lake_location}/metadata/00000-a.metadata.json"
    world.s3.put_object(Bucket=world.bucket, Key=_key(world, file), Body=json.dumps(document).encode())
    assert error_triple(_register(world.carol, world, own, file))[:2] == (403, "NamespaceActionForbidden")
    assert error_triple(_register(world.carol, world, own, file, overwrite=True))[:2] == (
        403,
        "NamespaceActionForbidden",
    )


@pytest.mark.parametrize("how", ["drop", "unregister"])
def test_an_owner_may_register_a_dropped_table_at_once(world: World, how: str) -> None:
    own = _creator(world, world.carol)
    table = world.table(own, by=world.carol)
    _gone(world, table, how, world.carol)
    again = _register(world.carol, world, own, table.answer["metadata-location"])
    assert again.status_code == 200, again.text
    assert world.sql("select 1 from retired_locations where location = $1", table.location) == []


def test_storage_manager_adopts_foreign_files_after_all_keys_expired(world: World) -> None:
    own = _creator(world, world.carol)
    table = world.table(own, by=world.carol)
    _gone(world, table, "drop", world.carol)
    file = table.answer["metadata-location"]
    assert error_triple(_register(world.admin, world, own, file))[:2] == (403, "NamespaceActionForbidden")
    assert error_triple(_adopt(world.admin, world, own, file))[:2] == (409, "LocationAlreadyTaken")
    _nothing_lives(world, table.location)
    assert error_triple(_register(world.admin, world, own, file))[:2] == (403, "NamespaceActionForbidden")
    assert _adopt(world.admin, world, own, file).status_code == 200


@pytest.mark.parametrize("how", ["move", "move and purge", "drop"])
def test_former_location_of_a_view_stays_with_its_owner(world: World, how: str) -> None:
    own, ns = _creator(world, world.carol), world.namespace()
    view = create_view(world, ns)
    lake_location = view["metadata"]["location"]
    if how == "drop":
        assert world.admin.delete(view["path"]).status_code == 204
    else:
        to = _location(world)
        moved = world.admin.post(view["path"], {"updates": [{"action": "set-location", "location": to}]})
        assert moved.status_code == 200, moved.text
    if how == "move and purge":
        assert world.admin.delete(f"{view['path']}?purgeRequested=true").status_code == 204
        _wait_for_purge(world, to)
    [left] = world.sql(
        "select retired_by, keys_until <= now() as past from retired_locations where location = $1", lake_location
    )
    assert (left["retired_by"], left["past"]) == (world.admin.id, True)

    def register(by: Person, namespace: str) -> httpx.Response:
        body = {"name": unique("v"), "metadata-location": view["metadata-location"]}
        return by.post(f"{world.root}/namespaces/{namespace}/register-view", body)

    assert error_triple(register(world.carol, own))[:2] == (403, "NamespaceActionForbidden")
    assert register(world.admin, ns).status_code == 200


# ---- locations that differ in letter case ------------------------------------------------------------------------


@pytest.mark.threat("LG-LOC-23")
@pytest.mark.parametrize("twin", ["x", "above"])
def test_table_at_a_case_variant_keeps_claims_against_ancestor_locations(world: World, twin: str) -> None:
    """The files below the ancestor remain the other owner's, although the case variant was created and purged."""
    own, other = _creator(world, world.carol), _creator(world, world.bob)
    raw = _location(world)
    outer = world.table(own, by=world.carol, location=raw)
    _gone(world, outer, "drop", world.carol)
    _nothing_lives(world, raw)
    inner = world.table(other, by=world.bob, location=f"{raw}/x")
    _gone(world, inner, "drop", world.bob)
    _nothing_lives(world, inner.location)
    file = outer.answer["metadata-location"]
    assert error_triple(_register(world.carol, world, own, file))[:2] == (403, "NamespaceActionForbidden")
    at = {"x": f"{raw}/X", "above": raw.replace("/place", "/PLACE")}[twin]
    _gone(world, world.table(own, by=world.carol, location=at), "purge", world.carol)
    _wait_for_purge(world, at)
    _nothing_lives(world, at)
    assert world.sql("select 1 from retired_locations where location = $1", inner.location) != []
    assert error_triple(_register(world.carol, world, own, file))[:2] == (403, "NamespaceActionForbidden")
    assert world.sql("select 1 from tables where location = $1", raw) == []


def test_later_table_at_a_case_variant_does_not_hide_an_owners_claim(world: World) -> None:
    own, other = _creator(world, world.carol), _creator(world, world.bob)
    raw = _location(world)
    first = world.table(other, by=world.bob, location=f"{raw}/x")
    _gone(world, first, "drop", world.bob)
    _nothing_lives(world, first.location)
    later = world.table(own, by=world.carol, location=f"{raw}/X")
    _gone(world, later, "drop", world.carol)
    _nothing_lives(world, later.location)
    for by, namespace, table in ((world.carol, own, first), (world.bob, other, later)):
        refused = _register(by, world, namespace, table.answer["metadata-location"])
        assert error_triple(refused)[:2] == (403, "NamespaceActionForbidden")
    back = _register(world.bob, world, other, first.answer["metadata-location"])
    assert back.status_code == 200, back.text


def test_view_purge_keeps_the_record_of_its_former_case_variant(world: World) -> None:
    raw = _location(world)
    view = create_view(world, world.namespace())
    for to in (f"{raw}/X", f"{raw}/z", f"{raw}/x"):
        moved = world.admin.post(view["path"], {"updates": [{"action": "set-location", "location": to}]})
        assert moved.status_code == 200, moved.text
    assert world.admin.delete(f"{view['path']}?purgeRequested=true").status_code == 204
    _wait_for_purge(world, f"{raw}/x")
    left = world.sql("select location, files_remain from retired_locations where location like $1", f"{raw}/%")
    assert {f"{raw}/X": True}.items() <= {row["location"]: row["files_remain"] for row in left}.items()


# ---- keys that outlive a table ---------------------------------------------------------------------------------------


def test_keys_of_a_dropped_staged_table_reach_no_other_table(world: World) -> None:
    own, other = _creator(world, world.carol), _creator(world, world.bob)
    assert world.carol.post(f"{world.root}/namespaces", {"namespace": [own, "mine"]}).status_code == 200
    lake_location = _location(world)
    inner = f"{world.root}/namespaces/{own}%1Fmine"
    body = {"name": "x", "schema": SCHEMA, "location": lake_location, "stage-create": True}
    staged = world.carol.post(f"{inner}/tables", body)
    assert staged.status_code == 200, staged.text
    assert world.carol.delete(inner).status_code == 204
    for location in (lake_location, f"{lake_location}/victim", f"{lake_location}/a/b"):
        for stage in (False, True):
            body = {"name": unique("t"), "schema": SCHEMA, "location": location, "stage-create": stage}
            assert error_triple(world.bob.post(_tables(world, other), body))[:2] == (409, "LocationAlreadyTaken"), (
                location
            )
    [kept] = world.sql(
        "select retired_by, extract(epoch from keys_until)::bigint * 1000 as until from retired_locations "
        "where location = $1",
        lake_location,
    )
    assert kept["retired_by"] == world.carol.id
    assert kept["until"] >= int(staged.json()["config"]["expiration-time"]) - 1000
    _nothing_lives(world, lake_location)
    # The staged table is purged; until then its files block the location too.
    _wait_for_purge(world, lake_location)
    world.table(other, by=world.bob, location=f"{lake_location}/victim")


@pytest.mark.parametrize("where", ["at", "above", "below"])
def test_dropped_table_location_is_blocked_for_all_creations_while_keys_live(world: World, where: str) -> None:
    lake_location = f"{_location(world)}/{unique('t')}"
    _gone(world, world.table(world.namespace(), location=lake_location), "drop", world.admin)
    location = {"at": lake_location, "above": lake_location.rpartition("/")[0], "below": f"{lake_location}/x"}[where]
    other = world.namespace()
    plain = {"name": unique("t"), "schema": SCHEMA, "location": location}
    assert error_triple(world.admin.post(_tables(world, other), plain))[:2] == (409, "LocationAlreadyTaken")
    name = unique("t")
    updates = [
        {"action": "assign-uuid", "uuid": str(UUID(int=7))},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": {**SCHEMA, "schema-id": 0}},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": location},
    ]
    commit = {"requirements": [{"type": "assert-create"}], "updates": updates}
    made = world.admin.post(f"{_tables(world, other)}/{name}", commit)
    assert error_triple(made)[:2] == (409, "LocationAlreadyTaken")
    named = {"namespace": [other], "name": name}
    many = {"table-changes": [{"identifier": named, **commit}]}
    made = world.admin.post(f"{world.root}/transactions/commit", many)
    assert error_triple(made)[:2] == (409, "LocationAlreadyTaken")


def test_files_below_a_namespace_folder_are_registered_but_not_the_folder(
    world: World,
) -> None:
    root = warehouse(world, **{"storage-layout": HIERARCHY})
    made = world.admin.post(f"{root}/namespaces", {"namespace": ["n"]}).json()["properties"]
    folder = f"{made['location']}n-{made['namespace_id']}"
    metadata = world.table(world.namespace()).answer["metadata"]
    for location, status in ((folder, 400), (f"{folder}/brought", 200)):
        file = f"{location}/metadata/00000-a.metadata.json"
        document = json.dumps({**metadata, "location": location}).encode()
        world.s3.put_object(Bucket=world.bucket, Key=_key(world, file), Body=document)
        body = {"name": unique("t"), "metadata-location": file}
        assert world.admin.post(f"{root}/namespaces/n/register", body, headers=ADOPT).status_code == status
    assert world.admin.post(f"{root}/namespaces/n/tables", {"name": "t", "schema": SCHEMA}).status_code == 200


# ---- creations whose keys cannot be made -----------------------------------------------------------------------------


@pytest.mark.parametrize("staged", [False, True])
def test_a_location_too_long_for_keys_is_refused_before_anything_is_created(
    world: World, ns: str, staged: bool
) -> None:
    location = f"{_location(world)}/{'/'.join(['p' * 90] * 10)}"
    body = {"name": unique("long"), "schema": SCHEMA, "location": location, "stage-create": staged}
    before = world.snapshot()
    assert error_triple(world.admin.post(_tables(world, ns), body))[:2] == (400, "PolicyTooLarge")
    assert world.snapshot() == before
