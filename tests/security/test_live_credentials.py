# SPDX-License-Identifier: Apache-2.0
"""Only callers that may read the grants on an object learn who holds credentials for it; each user sees its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.stack.live_credentials import credentials, entries, own, reader
from tests.support.stack.world import Person, Table, World, error_triple, unique

PRINCIPAL = "/management/v1/live-credentials"
ABSENT = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def holder(world: World, table: Table) -> Person:
    """Return a reader of the table with a live credential."""
    person = reader(world, table)
    credentials(person, table.path)
    return person


@pytest.fixture
def foreign_steward(world: World) -> Iterator[Person]:
    """Yield the administrator of another project."""
    project = unique("other")
    made = world.admin.post("/management/v1/project", {"project-name": project, "project-id": project})
    assert made.status_code == 201, made.text
    person = world.stranger()
    world.grant("project_admin", person, "project", project)
    person.http.headers["x-project-id"] = project
    yield person
    world.strip(person)


def paths(world: World, table: Table) -> list[str]:
    """Return the paths of the lists by object."""
    at = f"/management/v1/warehouse/{world.warehouse}"
    return [
        f"{at}/table/{table.uuid}/live-credentials",
        f"{at}/live-credentials",
        f"{at}/live-credentials?tableId={table.uuid}",
    ]


def test_strangers_cannot_distinguish_the_register_from_absent_objects(
    world: World, table: Table, holder: Person
) -> None:
    stranger = world.stranger()
    for path in paths(world, table):
        refused, absent = stranger.get(path), stranger.get(path.replace(table.uuid, ABSENT))
        assert refused.status_code == 404, refused.text
        assert holder.id not in refused.text
        assert error_triple(refused)[:2] == error_triple(absent)[:2]
    for query in ({"principalUser": holder.id}, {"principalUser": "oidc~nobody"}):
        assert error_triple(stranger.get(PRINCIPAL, params=query))[0] == 404
    assert own(stranger) == []


def test_a_reader_of_the_table_sees_only_its_own_credentials(world: World, table: Table, holder: Person) -> None:
    other = reader(world, table)
    credentials(other, table.path)
    assert error_triple(other.get(paths(world, table)[0]))[0] == 403
    for path in paths(world, table)[1:]:
        assert error_triple(other.get(path))[0] == 403
    assert [entry["principal"] for entry in own(other)] == [other.id]
    assert error_triple(other.get(PRINCIPAL, params={"principalUser": holder.id}))[0] == 403


def test_an_administrator_of_another_project_sees_nothing(
    world: World, table: Table, holder: Person, foreign_steward: Person
) -> None:
    for path in paths(world, table):
        assert error_triple(foreign_steward.get(path))[0] == 404
    for query in ({}, {"principalUser": holder.id}):
        assert own(foreign_steward, **query) == [], "the list is limited to the project of the request"
    here = {"x-project-id": world.project}
    refused = foreign_steward.get(PRINCIPAL, params={"principalUser": holder.id}, headers=here)
    assert error_triple(refused)[0] == 404


def test_a_manager_of_the_grants_on_one_table_sees_its_credentials_alone(
    world: World, table: Table, holder: Person, ns: str
) -> None:
    manager = world.stranger()
    world.grant("manage_grants", manager, "table", table.uuid)
    elsewhere = world.table(ns)
    world.grant("select", holder, "table", elsewhere.uuid)
    credentials(holder, elsewhere.path)
    found = entries(manager.get(paths(world, table)[0], params={"user": holder.id}))
    assert [entry["table-id"] for entry in found] == [table.uuid]
    assert error_triple(manager.get(paths(world, elsewhere)[0]))[0] == 404
    assert error_triple(manager.get(paths(world, table)[1]))[0] == 404


def test_a_user_without_rights_left_still_sees_its_own_live_credentials(
    world: World, table: Table, holder: Person
) -> None:
    world.revoke("select", holder, "table", table.uuid)
    assert [entry["table-id"] for entry in own(holder)] == [table.uuid]


def test_the_register_contains_no_secret(world: World, table: Table) -> None:
    person = reader(world, table)
    config = credentials(person, table.path)
    [row] = world.sql("select live_credentials::text as text from live_credentials where principal = $1", person.id)
    secrets = [config[name] for name in ("s3.access-key-id", "s3.secret-access-key", "s3.session-token")]
    assert not [secret for secret in secrets if secret in row["text"]]
