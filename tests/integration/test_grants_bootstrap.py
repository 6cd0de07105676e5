# SPDX-License-Identifier: Apache-2.0
"""The first administrator of an empty server: of concurrent bootstraps exactly one succeeds, and later ones fail."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import httpx
import pytest

from lakegate.local.ready import Ready
from tests.support.stack.world import Person, World, error_triple, unique

pytestmark = pytest.mark.servers

BODY = {"accept-terms-of-use": True}
SERVER = "/management/v1/permissions/server/assignments"
REFUSED = (409, "LastServerAdmin")


@dataclass(frozen=True)
class Begun:
    """A bootstrapped server, its first administrator, and its users."""

    world: World
    first: Person
    answers: list[httpx.Response]
    people: list[Person]


@pytest.fixture(scope="module")
def begun(empty_stack: Ready) -> Iterator[Begun]:
    world = World(empty_stack)
    assert world.unauthenticated.post("/management/v1/bootstrap", BODY).status_code == 401
    assert world.admin.post("/management/v1/bootstrap", {"accept-terms-of-use": False}).status_code == 400
    assert world.admin.post("/management/v1/project", {"project-name": "early"}).status_code == 403
    assert world.admin.get("/management/v1/info").json()["bootstrapped"] is False
    people = [world.admin, world.alice, world.bob, world.carol]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda person: person.post("/management/v1/bootstrap", BODY), people))
    first = people[[answer.status_code for answer in answers].index(204)]
    yield Begun(world, first, answers, people)
    world.close()


def test_one_of_several_concurrent_bootstraps_succeeds(begun: Begun) -> None:
    assert sorted(answer.status_code for answer in begun.answers) == [204, 400, 400, 400]
    assert {error_triple(answer)[1] for answer in begun.answers if answer.status_code == 400} == {
        "CatalogAlreadyBootstrapped"
    }
    for person in begun.people:
        made = person.post("/management/v1/project", {"project-name": f"of {person.name}"})
        assert made.status_code == (201 if person is begun.first else 403)
    assert begun.world.sql("select principal_id from grants where object_type = 'server'")[0]["principal_id"] == (
        begun.first.id
    )


def test_last_server_administrator_cannot_be_removed(begun: Begun) -> None:
    world, first = begun.world, begun.first
    other = next(person for person in begun.people if person is not first)
    own = {"type": "admin", "user": first.id}

    def take(entry: dict[str, str]) -> tuple[int, str]:
        answer = first.post(SERVER, {"deletes": [entry]})
        return (204, "") if answer.status_code == 204 else error_triple(answer)[:2]

    expiring_grant = {"privilege": "admin", "principal": {"user": first.id}, "expires-at": "2100-01-01T00:00:00Z"}
    assert take(own) == REFUSED
    assert error_triple(first.post("/management/v1/server/grants", {"writes": [expiring_grant]}))[:2] == REFUSED
    assert error_triple(first.delete(f"/management/v1/user/{first.id}"))[:2] == REFUSED
    assert first.get("/management/v1/whoami").status_code == 200
    # Administration through a role counts too: its last member and the role itself are protected.
    role = first.post("/management/v1/role", {"name": unique("r")}).json()["id"]
    path = f"/management/v1/role/{role}"
    assert first.post(SERVER, {"writes": [{"type": "operator", "role": role}]}).status_code == 204
    assert take(own) == (204, ""), "the owner of the role must count as its member"
    assert error_triple(first.delete(path))[:2] == REFUSED
    ownership = f"/management/v1/permissions/role/{role}/assignments"
    own_role = {"deletes": [{"type": "ownership", "user": first.id}]}
    assert error_triple(first.post(ownership, own_role))[:2] == REFUSED
    # With a second administrator the first may leave, and then the second may not.
    assert other.post("/management/v1/user", {"name": "Other"}).status_code == 201
    assert first.post(f"{path}/members", {"members": [{"type": "user", "id": other.id}]}).status_code == 204
    assert first.post(ownership, own_role).status_code == 204
    assert error_triple(other.delete(f"{path}/members/user/{other.id}"))[:2] == REFUSED
    assert error_triple(other.delete(f"/management/v1/user/{other.id}"))[:2] == REFUSED
    assert other.post(SERVER, {"writes": [own]}).status_code == 204
    assert first.delete(f"/management/v1/user/{other.id}").status_code == 204
    assert world.sql("select 1 from grants where principal_id = $1", other.id) == []


def test_server_without_administrators_can_be_bootstrapped_again(begun: Begun) -> None:
    world = begun.world
    requested = world.lakegate("reopen-bootstrap")
    assert requested.returncode == 2
    assert "--yes" in requested.stderr
    assert world.bob.post("/management/v1/bootstrap", BODY).status_code == 400
    projects = world.sql("select count(*) as n from projects")[0]["n"]
    done = world.lakegate("reopen-bootstrap", "--yes")
    assert done.returncode == 0, done.stderr
    assert "this server still has an administrator" in done.stdout
    assert world.bob.post("/management/v1/bootstrap", BODY).status_code == 204
    assert world.bob.post("/management/v1/bootstrap", BODY).status_code == 400
    assert world.bob.post("/management/v1/project", {"project-name": unique("p")}).status_code == 201
    assert world.sql("select count(*) as n from projects")[0]["n"] == projects + 1, (
        "a second bootstrap must not create the default project again"
    )
    kept = world.sql("select count(*) as n from audit_log where convert_from(record, 'UTF8') like '%reopen_bootstrap%'")
    assert kept[0]["n"] >= 1


def test_bootstrap_can_be_reopened_for_one_user_only(begun: Begun) -> None:
    world = begun.world
    others = (world.bob, world.alice, begun.first)
    # Anybody may have been the first.
    named = next(person for person in begun.people if person not in others)
    for wrong in ("carol", "~carol", "oidc~", f"oidc~{'x' * 600}"):
        refused = world.lakegate("reopen-bootstrap", "--for", wrong, "--yes")
        assert refused.returncode == 2, wrong
    assert world.lakegate("reopen-bootstrap", "--for", named.id).returncode == 2
    done = world.lakegate("reopen-bootstrap", "--for", named.id, "--yes")
    assert done.returncode == 0, done.stderr
    assert named.id in done.stdout
    for other in others:
        assert error_triple(other.post("/management/v1/bootstrap", BODY))[:2] == (403, "BootstrapForbidden")
    assert named.get("/management/v1/info").json()["bootstrapped"] is False
    assert named.post("/management/v1/bootstrap", BODY).status_code == 204
    assert named.post("/management/v1/project", {"project-name": unique("p")}).status_code == 201
    assert error_triple(world.bob.post("/management/v1/bootstrap", BODY))[:2] == (400, "CatalogAlreadyBootstrapped")
    # A repetition without a user name opens it for every user; for a named user it is valid once.
    assert world.lakegate("reopen-bootstrap", "--for", named.id, "--yes").returncode == 0
    assert world.lakegate("reopen-bootstrap", "--yes").returncode == 0
    assert world.alice.post("/management/v1/bootstrap", BODY).status_code == 204


def test_assumed_role_cannot_bootstrap(begun: Begun) -> None:
    """The role has no such right, and the bootstrap would make the user behind it the administrator."""
    world, person = begun.world, begun.first  # administers the default project
    role = person.post("/management/v1/role", {"name": unique("r")}).json()["id"]
    assert world.lakegate("reopen-bootstrap", "--yes").returncode == 0
    acting = {"x-assume-role": role}
    refused = person.post("/management/v1/bootstrap", BODY, headers=acting)
    assert error_triple(refused)[:2] == (403, "AssumeRoleForbidden")
    assert person.post("/management/v1/bootstrap", BODY).status_code == 204
