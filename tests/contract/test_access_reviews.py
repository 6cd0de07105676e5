# SPDX-License-Identifier: Apache-2.0
"""Reviews: grants are certified or revoked, one by one or by a filter, and each decision is recorded."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from tests.support.stack.access_requests import may_read, on_table
from tests.support.stack.world import Person, Table, World, error_of

DECISIONS = "/management/v1/access/reviews/decisions"


def _review(person: Person, decision: str, on: dict[str, Any], **more: Any) -> httpx.Response:
    body = {"decision": decision, "reason": "yearly review", "object": on}
    return person.post(DECISIONS, body | {name.replace("_", "-"): value for name, value in more.items()})


def _grant(privilege: str, person: Person) -> dict[str, Any]:
    return {"privilege": privilege, "principal": {"user": person.id}}


def _namespace(world: World, name: str) -> dict[str, Any]:
    return {"type": "namespace", "warehouse-id": world.warehouse, "namespace": [name]}


def _recorded(person: Person, world: World, table: Table) -> list[dict[str, Any]]:
    query = {"type": "table", "id": table.uuid, "warehouseId": world.warehouse}
    answer = person.get(DECISIONS, params=query)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["decisions"]
    return found


def test_named_grants_are_certified_and_revoked_with_a_record(world: World, table: Table) -> None:
    bob = world.stranger()
    world.grant("select", bob, "table", table.uuid)
    kept = _review(world.admin, "certify", on_table(world, table), grants=[_grant("select", bob)])
    assert kept.status_code == 200, kept.text
    [decision] = kept.json()["decisions"]
    assert (decision["outcome"], decision["principal"]) == ("certified", {"user": bob.id})
    assert may_read(bob, world, table)
    for outcome in ("revoked", "gone"):
        done = _review(world.admin, "revoke", on_table(world, table), grants=[_grant("select", bob)])
        assert [each["outcome"] for each in done.json()["decisions"]] == [outcome], done.text
        assert not may_read(bob, world, table)
    found = _recorded(world.admin, world, table)
    assert [(each["decision"], each["decided-by"], each["reason"]) for each in found] == [
        ("revoked", world.admin.id, "yearly review"),
        ("certified", world.admin.id, "yearly review"),
    ]
    history = f"/management/v1/warehouse/{world.warehouse}/table/{table.uuid}/grants/history"
    [ended] = world.admin.get(history).json()["grants"]
    assert (ended["ended-because"], ended["ended-by"]) == ("revoked", world.admin.id)


def test_filter_decides_about_a_subtree_in_pages(world: World, ns: str) -> None:
    bob, carol = world.stranger(), world.stranger()
    tables = [world.table(ns) for _ in range(3)]
    world.grant("select", bob, "namespace", world.namespace_id(ns))
    for table in tables:
        for person in (bob, carol):
            world.grant("select", person, "table", table.uuid)
    chosen = {"principal": {"user": bob.id}, "privilege": "select"}
    outcomes: list[str] = []
    token: str | None = None
    while True:
        more = {} if token is None else {"page-token": token}
        answer = _review(world.admin, "revoke", _namespace(world, ns), filter=chosen, page_size=3, **more)
        assert answer.status_code == 200, answer.text
        outcomes += [each["outcome"] for each in answer.json()["decisions"]]
        token = answer.json().get("next-page-token")
        if token is None:
            break
    assert outcomes == ["revoked"] * 4
    assert not any(may_read(bob, world, table) for table in tables)
    assert all(may_read(carol, world, table) for table in tables)


def test_filter_by_age_leaves_newer_grants(world: World, table: Table) -> None:
    old, new = world.stranger(), world.stranger()
    for person in (old, new):
        world.grant("select", person, "table", table.uuid)
    world.sql("update grants set granted_at = now() - interval '400 days' where principal_id = $1", old.id)
    before = (datetime.now(UTC) - timedelta(days=365)).isoformat()
    done = _review(world.admin, "revoke", on_table(world, table), filter={"granted-before": before})
    assert [each["principal"] for each in done.json()["decisions"]] == [{"user": old.id}], done.text
    assert (may_read(old, world, table), may_read(new, world, table)) == (False, True)


def test_review_needs_the_right_to_grant_and_a_refusal_changes_nothing(world: World, ns: str) -> None:
    bob, mallory = world.stranger(), world.stranger()
    own, other = world.table(ns), world.table(ns)
    for table in (own, other):
        world.grant("select", bob, "table", table.uuid)
    assert _review(mallory, "revoke", on_table(world, own), grants=[_grant("select", bob)]).status_code == 404
    world.grant("describe", mallory, "namespace", world.namespace_id(ns))
    for decision in ("certify", "revoke"):
        refused = _review(mallory, decision, on_table(world, own), grants=[_grant("select", bob)])
        assert refused.status_code == 403, refused.text
        refused = _review(mallory, decision, _namespace(world, ns), filter={"privilege": "select"})
        assert refused.status_code == 403, refused.text
    assert mallory.get(DECISIONS, params={"type": "table", "id": own.uuid, "warehouseId": world.warehouse}).is_error
    assert all(may_read(bob, world, table) for table in (own, other))
    assert _recorded(world.admin, world, own) == []


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"grants": [{"privilege": "select", "principal": {"user": "oidc~a"}}], "filter": {}},
        {"filter": {"privilege": "unknown"}},
        {"filter": {}, "page_token": "odd"},
        {"filter": {}, "page_size": 101},
        {"grants": []},
    ],
)
def test_malformed_review_is_400(world: World, table: Table, more: dict[str, Any]) -> None:
    refused = _review(world.admin, "certify", on_table(world, table), **more)
    assert refused.status_code == 400, error_of(refused)
