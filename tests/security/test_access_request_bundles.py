# SPDX-License-Identifier: Apache-2.0
"""Attacks on requests for several objects: learn of hidden objects, or have a part decided by a race."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support.stack.access_requests import (
    REQUESTS,
    ask_together,
    asked_together,
    decide,
    holder,
    listed,
    may_read,
    on_table,
    read,
)
from tests.support.stack.world import Table, World, error_of


@pytest.fixture
def two(world: World) -> tuple[Table, Table]:
    """Create tables in two namespaces, in the order in which their requests are locked."""
    first, second = sorted((world.table(world.namespace()) for _ in range(2)), key=lambda table: table.uuid)
    return first, second


def _waiting(world: World, sent: Future[httpx.Response]) -> None:
    """Wait until the request waits for a lock."""
    deadline = time.monotonic() + 30
    while not world.sql("select 1 from pg_locks where not granted"):
        assert not sent.done(), sent.result().text
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.threat("LG-REQ-02")
def test_a_bundle_does_not_exist_for_who_may_decide_about_none_of_its_objects(
    world: World, two: tuple[Table, Table]
) -> None:
    bob, mallory = holder(world, "describe", *two), holder(world, "select", *two)
    bundle, _ = asked_together(bob, world, *two)
    absent = str(uuid4())
    for method, below, body in (
        ("GET", "", None),
        *(("POST", f"/{each}", {"reason": "x"} if each == "deny" else {}) for each in ("approve", "deny")),
        *(("POST", f"/{each}", None) for each in ("end", "withdraw", "remind")),
    ):
        answers = [
            mallory.send(method, f"{REQUESTS}/{id}{below}", **({} if body is None else {"json": body}))
            for id in (bundle, absent)
        ]
        assert [answer.status_code for answer in answers] == [404, 404], (below, answers[0].text)
        messages = {error_of(answer)["message"].replace(bundle, "ID").replace(absent, "ID") for answer in answers}
        assert len(messages) == 1, messages
    assert decide(world.admin, bundle, "withdraw").status_code == 404, "only the requester withdraws"
    assert [each["status"] for each in read(bob, bundle)["items"]] == ["pending", "pending"]


@pytest.mark.threat("LG-REQ-03")
def test_an_invisible_object_of_a_bundle_is_answered_like_an_absent_one(world: World, two: tuple[Table, Table]) -> None:
    seen, hidden = two
    bob, absent = holder(world, "describe", seen), str(uuid4())
    answers: list[tuple[int, str]] = []
    for id in (hidden.uuid, absent):
        objects: list[dict[str, Any]] = [on_table(world, seen), {**on_table(world, seen), "table-id": id}]
        for order in (objects, objects[::-1]):
            refused = ask_together(bob, *((on, ["select"]) for on in order))
            answers.append((refused.status_code, error_of(refused)["message"].replace(id, "ID")))
    assert {status for status, _ in answers} == {404}
    assert len(set(answers)) == 1, answers
    assert listed(bob) == []


@pytest.mark.threat("LG-REQ-03")
def test_an_approver_of_one_object_learns_nothing_of_the_others(world: World, two: tuple[Table, Table]) -> None:
    bob, half = holder(world, "describe", *two), holder(world, "manage_grants", two[1])
    bundle, (first, second) = asked_together(bob, world, *two)
    answers = [half.get(f"{REQUESTS}/{id}") for id in (bundle, second)]
    answers += [decide(half, bundle, "approve"), decide(half, bundle, "approve", {"requests": [first]})]
    assert [each.status_code for each in answers] == [200, 200, 403, 404]
    for answer in answers[:3]:
        assert not any(each in answer.text for each in (first, two[0].uuid, two[0].name)), answer.text
    assert listed(half) == [second]


@pytest.mark.threat("LG-REQ-04")
@pytest.mark.parametrize("action", ["approve", "deny", "withdraw", "remind", "end"])
def test_all_changes_of_a_bundle_lock_its_requests_in_one_order(
    world: World, two: tuple[Table, Table], action: str
) -> None:
    bob = holder(world, "describe", *two)
    # The request whose object is last has the first id.
    bundle, (_, locked_first) = asked_together(bob, world, *reversed(two))
    if action == "end":
        assert decide(world.admin, bundle, "approve").status_code == 204
    world.sql("update access_requests set created_at = now() - interval '2 days' where bundle = $1::text::uuid", bundle)

    def act() -> httpx.Response:
        return decide(world.admin if action in ("approve", "deny") else bob, bundle, action)

    def while_waiting() -> None:
        free = "select id from access_requests where bundle = $1::text::uuid for update skip locked"
        assert len(world.sql(free, bundle)) == 2, "the other request is not locked yet"

    assert _act_while_locked(world, locked_first, act, while_waiting).status_code == 204


@pytest.mark.threat("LG-REQ-04")
def test_a_denial_that_meets_another_decision_changes_nothing(world: World, two: tuple[Table, Table]) -> None:
    bob = holder(world, "describe", *two)
    bundle, (first, second) = asked_together(bob, world, *two)

    def deny_first() -> None:
        denied = "update access_requests set status = 'denied', decided_by = $2 where id = $1::text::uuid"
        world.sql(denied, first, world.admin.id)

    refused = _act_while_locked(world, first, lambda: decide(world.admin, bundle, "deny"), deny_first)
    assert (refused.status_code, error_of(refused)["type"]) == (409, "AccessRequestNotOpen")
    assert [each["status"] for each in read(bob, bundle)["items"]] == ["denied", "pending"]
    assert decide(world.admin, bundle, "approve").status_code == 204
    assert [may_read(bob, world, table) for table in two] == [False, True]


def _act_while_locked(
    world: World, id: str, act: Callable[[], httpx.Response], change: Callable[[], None]
) -> httpx.Response:
    """Send a request while a transaction locks a row; return the answer. The transaction makes the change meanwhile."""
    with ThreadPoolExecutor(1) as threads:
        world.sql("begin")
        try:
            world.sql("select id from access_requests where id = $1::text::uuid for update", id)
            sent = threads.submit(act)
            _waiting(world, sent)
            change()
        finally:
            world.sql("commit")
        return sent.result()


@pytest.mark.threat("LG-REQ-02")
def test_the_audit_record_of_an_approval_names_each_request(world: World, two: tuple[Table, Table]) -> None:
    bob = holder(world, "describe", *two)
    bundle, ids = asked_together(bob, world, *two)
    made = decide(world.admin, bundle, "approve")
    assert made.status_code == 204, made.text
    record = "convert_from(record, 'UTF8')::jsonb"
    (row,) = world.sql(
        f"select {record} -> 'detail' ->> 'access_request' as named, jsonb_array_length({record} -> 'decisions') as "
        f"parts from audit_log where request_id = $1 and {record} -> 'detail' ? 'access_request'",
        made.headers["x-request-id"],
    )
    assert sorted(row["named"].split(",")) == sorted(ids)
    assert row["parts"] == 3, "the approval, and a change of grants on each object"
