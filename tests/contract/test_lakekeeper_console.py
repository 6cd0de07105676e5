# SPDX-License-Identifier: Apache-2.0
"""Requests that Lakekeeper's console sends to the management API, in the form in which it sends them."""

from __future__ import annotations

from typing import Any

from tests.contract.signing_in import PUBLIC_CLIENT, claims_of, signed_in
from tests.contract.test_checks import BATCH
from tests.contract.world import World, error_of, unique

MANAGEMENT = "/management/v1"


def test_task_lists_accept_the_warehouse_of_an_entity(world: World, ns: str) -> None:
    table = world.table(ns)
    entity = {"type": "table", "table-id": table.uuid, "warehouse-id": world.warehouse}
    answer = world.admin.post(f"{MANAGEMENT}/warehouse/{world.warehouse}/task/list", {"entities": [entity]})
    assert (answer.status_code, answer.json()["tasks"]) == (200, []), answer.text


def test_checks_carry_notes_of_the_console_and_actions_that_do_not_exist(world: World) -> None:
    actions = ["use", "update_storage_credential", "get_metadata", "drop"]
    checks: list[dict[str, Any]] = [
        {
            "id": f"check-{number}",
            "identity": {"user": world.admin.id},
            "operation": {"warehouse": {"action": action, "warehouse-id": world.warehouse}},
            "_metadata": {"identityType": "user", "action": action},
        }
        for number, action in enumerate(actions)
    ]
    answer = world.admin.post(BATCH, {"checks": checks, "error-on-not-found": False})
    assert answer.status_code == 200, answer.text
    assert [(each["id"], each["allowed"]) for each in answer.json()["results"]] == [
        ("check-0", True),
        ("check-1", False),
        ("check-2", True),
        ("check-3", False),
    ]


def test_a_mistyped_expiry_of_a_grant_is_refused_and_nothing_is_granted(world: World) -> None:
    bob = world.stranger()
    path = f"{MANAGEMENT}/warehouse/{world.warehouse}/grants"
    write = {"privilege": "select", "principal": {"user": bob.id}, "expire-at": "2030-01-01T00:00:00Z"}
    refused = world.admin.post(path, {"writes": [write]})
    assert refused.status_code == 400, refused.text
    assert "expire-at" in error_of(refused)["message"]
    assert bob.get(f"/catalog/v1/{world.warehouse}/namespaces").status_code == 404


def test_an_unknown_parameter_of_a_list_is_refused(world: World) -> None:
    path = f"{MANAGEMENT}/warehouse/{world.warehouse}/grants"
    assert world.admin.get(path, params={"pageSize": "10"}).status_code == 200
    refused = world.admin.get(path, params={"grantedBy": "oidc~bob"})
    assert refused.status_code == 400, refused.text
    assert "'grantedBy'" in error_of(refused)["message"]


def test_sign_in_keeps_the_name_and_the_type_of_a_known_user(world: World) -> None:
    for person in (signed_in(world, "carol"), world.carol):
        assert claims_of(person.token)["name"] == "carol"
        answer = person.post(f"{MANAGEMENT}/user", {"update-if-exists": True})
        assert answer.status_code == 200, answer.text
        assert (answer.json()["name"], answer.json()["user-type"]) == ("carol", "human")


def test_no_fallback_replaces_a_name_or_type_and_a_name_replaces_the_fallback(world: World) -> None:
    subject = unique("zoe")
    nameless = world.person_with(subject, name=None)
    named = world.person_with(subject, name="Zoe", client_id=PUBLIC_CLIENT)
    update = {"update-if-exists": True}
    created = nameless.post(f"{MANAGEMENT}/user", update).json()
    assert (created["name"], created["user-type"]) == (f"Nameless App with ID {subject}", "application")
    for person in (named, nameless):
        user = person.post(f"{MANAGEMENT}/user", update).json()
        assert (user["name"], user["user-type"]) == ("Zoe", "human"), person
    kept = world.admin.post(f"{MANAGEMENT}/user", {"id": nameless.id, **update}).json()
    assert (kept["name"], kept["user-type"]) == ("Zoe", "human")
    stated = world.admin.post(f"{MANAGEMENT}/user", {"id": nameless.id, "user-type": "application", **update}).json()
    assert (stated["name"], stated["user-type"]) == ("Zoe", "application")
    assert named.post(f"{MANAGEMENT}/user", update).json()["user-type"] == "application", (
        "a guess changes no stated type"
    )
