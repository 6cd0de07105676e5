# SPDX-License-Identifier: Apache-2.0
"""Explanations, reviews and previews disclose nothing that their caller may not read."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.support.stack.grants import give, strangers  # noqa: F401 - a fixture
from tests.support.stack.role_policies import make_role, put_in
from tests.support.stack.world import Person, World, send_until_decided, unique

EXPLAIN = "/management/v1/access/explain"
REVIEWS = "/management/v1/access/reviews/decisions"

pytestmark = [pytest.mark.attack, pytest.mark.usefixtures("strangers")]


def explain(world: World, asker: Person, table: str, action: str, about: Person) -> dict[str, Any]:
    operation = {"table": {"action": action, "warehouse-id": world.warehouse, "table-id": table}}
    body = {"operation": operation, "identity": {"user": about.id}}
    answer = send_until_decided(lambda: asker.post(EXPLAIN, body))
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def repairs(explanation: dict[str, Any]) -> list[list[tuple[str, str]]]:
    return [
        [(each["privilege"], each["object"]["id"]) for each in repair["grants"]]
        for repair in explanation["relationships"]["repairs"]
    ]


def test_repairs_are_equal_whether_or_not_a_hidden_grant_exists(world: World, ns: str) -> None:
    table = world.table(ns)
    give(world, "table", table.uuid, "manage_grants", {"user": world.analyst.id})
    before = explain(world, world.analyst, table.uuid, "move", world.carol)
    give(world, "warehouse", "", "modify", {"user": world.carol.id})
    after = explain(world, world.analyst, table.uuid, "move", world.carol)
    assert repairs(before) == repairs(after)
    assert repairs(before)


def test_containers_that_the_asker_does_not_see_are_not_named(world: World, ns: str) -> None:
    give(world, "namespace", world.namespace_id(ns), "create", {"user": world.carol.id})
    table = world.table(ns, by=world.carol)
    # manage_grants alone makes no container visible.
    give(world, "table", table.uuid, "manage_grants", {"user": world.analyst.id})
    assert world.analyst.get(f"{world.root}/namespaces/{ns}").status_code == 404
    found = explain(world, world.analyst, table.uuid, "grant_select", world.carol)
    assert found["relationships"]["holds"]
    assert world.warehouse not in str(found["relationships"])
    assert world.namespace_id(ns) not in str(found["relationships"])


def test_a_review_by_filter_needs_the_right_on_everything_below(world: World, ns: str) -> None:
    table = world.table(ns)
    for privilege in ("select", "pass_grants"):
        give(world, "namespace", world.namespace_id(ns), privilege, {"user": world.analyst.id})
    on = {"type": "namespace", "warehouse-id": world.warehouse, "namespace-id": world.namespace_id(ns)}
    body = {
        "object": on,
        "decision": "certify",
        "reason": "review",
        "filter": {"principal": {"user": world.carol.id}},
    }
    before = world.analyst.post(REVIEWS, body)
    give(world, "table", table.uuid, "modify", {"user": world.carol.id})
    after = world.analyst.post(REVIEWS, body)
    assert (before.status_code, before.json()["error"]["type"]) == (403, "CannotInspectPermissions")
    assert (after.status_code, after.json()["error"]["type"]) == (403, "CannotInspectPermissions")


def test_auditors_get_no_expressions_and_no_metadata_from_previews(world: World, ns: str) -> None:
    table = world.table(ns)
    give(world, "table", table.uuid, "select", {"user": world.carol.id})
    give(world, "warehouse", "", "auditor", {"user": world.analyst.id})
    path = f"/management/v1/warehouse/{world.warehouse}/table/{table.uuid}/data-policies/preview"
    answer = world.analyst.get(path, params={"principalUser": world.carol.id})
    assert answer.status_code == 403, answer.text
    assert "metadata-location" in world.admin.get(path, params={"principalUser": world.carol.id}).json()


def test_many_hidden_ways_displace_no_readable_reason(world: World, ns: str) -> None:
    """More ways than an explanation keeps for a relation, all shorter than the one that the asker may read."""
    asker, subject = world.stranger("asker"), world.stranger("subject")
    made = world.admin.post(f"{world.root}/namespaces", {"namespace": [ns, "sub"]})
    assert made.status_code == 200, made.text
    table = world.table(f"{ns}%1Fsub")
    give(world, "warehouse", "", "manage_grants", {"user": asker.id})
    give(world, "warehouse", "", "select", {"user": subject.id})
    before = explain(world, asker, table.uuid, "read_data", subject)["relationships"]
    roles = [make_role(world) for _ in range(17)]
    for role in roles:
        put_in(world, role, "user", subject.id)
    grants = [{"privilege": each, "principal": {"role": role}} for each in ("select", "modify") for role in roles]
    warehouse = f"/management/v1/warehouse/{world.warehouse}"
    for on in (f"table/{table.uuid}", f"namespace/{world.namespace_id(f'{ns}%1Fsub')}"):
        done = send_until_decided(partial(world.admin.post, f"{warehouse}/{on}/grants", {"writes": grants}))
        assert done.status_code == 204, done.text
    after = explain(world, asker, table.uuid, "read_data", subject)["relationships"]
    assert len(before["witnesses"]) == 1
    assert after == before
    assert explain(world, world.admin, table.uuid, "read_data", subject)["relationships"]["more"]


def test_names_of_roles_that_the_asker_does_not_see_are_left_out(world: World, ns: str) -> None:
    asker, subject, table = world.stranger("asker"), world.stranger("subject"), world.table(ns)
    name = unique("secret")
    role = world.admin.post("/management/v1/role", {"name": name}).json()["id"]
    put_in(world, role, "user", subject.id)
    give(world, "table", table.uuid, "manage_grants", {"user": asker.id})
    give(world, "table", table.uuid, "select", {"role": role})
    assert asker.get(f"/management/v1/role/{role}").status_code == 404
    operation = {"table": {"action": "read_data", "warehouse-id": world.warehouse, "table-id": table.uuid}}
    by_role = send_until_decided(lambda: asker.post(EXPLAIN, {"operation": operation, "identity": {"role": role}}))
    assert (by_role.status_code, name in by_role.text) == (200, False), by_role.text
    # Membership in the role is one of the repairs.
    found = explain(world, asker, table.uuid, "read_data", world.stranger("outside"))
    assert role in str(found["relationships"]["repairs"])
    assert name not in str(found)
    assert name in str(explain(world, world.admin, table.uuid, "read_data", subject))
    assert name in str(explain(world, subject, table.uuid, "read_data", subject)), "a member knows its role"
