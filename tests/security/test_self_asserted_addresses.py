# SPDX-License-Identifier: Apache-2.0
"""A search by address finds only users whose address a provider verified or a directory supplied (LG-AUT-16)."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from tests.support.stack.world import Person, World, unique

USER = "/management/v1/user"
SEARCH = "/management/v1/search/user"


def found(world: World, text: str) -> list[dict[str, Any]]:
    """Return the users that an administrator's search finds."""
    answer = world.admin.post(SEARCH, {"search": text})
    assert answer.status_code == 200, answer.text
    users: list[dict[str, Any]] = answer.json()["users"]
    return users


def ids(world: World, text: str) -> list[str]:
    """Return the ids of the users that an administrator's search finds."""
    return [each["id"] for each in found(world, text)]


@pytest.fixture
def boss(world: World) -> tuple[Person, str]:
    """Return (user whose address the provider verified, that address)."""
    address = f"{uuid.uuid4().hex}@corp.example"
    person = world.person_with(unique("claimed"), email=address, email_verified=True, name="The Boss")
    assert person.post(USER, {}).status_code == 201
    return person, address


def test_a_verified_address_is_found_and_shown(world: World, boss: tuple[Person, str]) -> None:
    person, address = boss
    assert found(world, address.upper())[0]["id"] == person.id
    assert found(world, address)[0]["email"] == address
    assert person.get("/management/v1/whoami").json()["email"] == address


@pytest.mark.parametrize("method", ["POST", "PUT"])
@pytest.mark.threat("LG-AUT-16")
def test_self_asserted_foreign_address_is_neither_stored_nor_found(
    world: World, boss: tuple[Person, str], method: str
) -> None:
    real, address = boss
    mallory = world.stranger("mallory")
    body = {"name": "Mallory", "email": address, "user-type": "human"}
    if method == "POST":
        sent = mallory.post(USER, body | {"update-if-exists": True})
    else:
        sent = mallory.send("PUT", f"{USER}/{mallory.id}", json=body)
    assert sent.status_code == 200, sent.text
    assert "email" not in sent.json()
    assert "email" not in world.admin.get(f"{USER}/{mallory.id}").json()
    assert address not in json.dumps(
        [dict(row) for row in world.sql("select * from users where id = $1", mallory.id)], default=str
    )
    for text in (address, address.upper(), address.partition("@")[0], address.replace("@", "＠")):
        assert mallory.id not in ids(world, text), text
        assert ids(world, text)[:1] == [real.id], text


@pytest.mark.threat("LG-AUT-16")
def test_unverified_address_of_a_token_is_not_stored(world: World) -> None:
    address = f"{uuid.uuid4().hex}@corp.example"
    for claims in (
        {"email": address},
        {"email": address, "email_verified": False},
        {"upn": address, "preferred_username": address, "email_verified": True},
    ):
        person = world.person_with(unique("claimed"), **claims)
        assert person.post(USER, {"name": "Somebody"}).status_code == 201
        assert "email" not in person.get("/management/v1/whoami").json(), claims
        assert person.id not in ids(world, address), claims


@pytest.mark.parametrize("form", ["{}", "Boss {}", "{} (Boss)", "＜{}＞"])
def test_name_resembling_an_address_is_not_found_as_address(world: World, form: str) -> None:
    local = uuid.uuid4().hex
    address = f"{local}@corp.example"
    mallory = world.stranger("mallory")
    for written in (address, address.replace("@", "＠"), address.replace("@", "﹫"), f"{local} corp example"):
        name = form.format(written)
        body = {"name": name, "user-type": "human"}
        assert mallory.send("PUT", f"{USER}/{mallory.id}", json=body).status_code == 200
        for text in (address, address.upper(), f"{local}@", "@corp.example"):
            assert mallory.id not in ids(world, text), (name, text)
        if "corp example" not in written:
            assert mallory.id not in ids(world, local), (
                "a name that resembles an address must not be found as a name part"
            )
            assert mallory.id not in ids(world, f"{local} corp.example")


def test_address_stored_by_an_earlier_version_or_administrator_is_not_searched(world: World) -> None:
    address = f"{uuid.uuid4().hex}@corp.example"
    old = world.stranger("old")
    world.sql("update users set email = $2 where id = $1", old.id, address)
    provisioned = f"oidc~{unique('provisioned')}"
    body = {"id": provisioned, "name": "New Colleague", "email": address, "user-type": "human"}
    assert world.admin.post(USER, body).status_code == 201
    for id in (old.id, provisioned):
        assert world.admin.get(f"{USER}/{id}").json()["email"] == address, "the stored address must not change"
        assert id not in ids(world, address)
    assert all("email" not in each for each in found(world, "New Colleague") if each["id"] == provisioned)


def test_verified_address_replaces_the_former_until_an_administrator_changes_it(
    world: World, boss: tuple[Person, str]
) -> None:
    person, address = boss
    mine = {"name": "The Boss", "user-type": "human", "email": "other@corp.example"}
    assert person.send("PUT", f"{USER}/{person.id}", json=mine).json()["email"] == address
    changed = world.admin.send(
        "PUT", f"{USER}/{person.id}", json={"name": "The Boss", "user-type": "human", "email": "new@corp.example"}
    )
    assert changed.json()["email"] == "new@corp.example"
    assert person.id not in ids(world, address)
    assert person.id not in ids(world, "new@corp.example")
