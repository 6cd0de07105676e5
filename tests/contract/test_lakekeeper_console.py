# SPDX-License-Identifier: Apache-2.0
"""Requests that Lakekeeper's console sends to the management API, in the form in which it sends them."""

from __future__ import annotations

from typing import Any

from tests.contract.test_checks import BATCH
from tests.contract.world import World, error_of

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
