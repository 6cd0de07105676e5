# SPDX-License-Identifier: Apache-2.0
"""Dry runs of access requests: they show what a request would open and who decides, and request nothing."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.support.stack.access_requests import REQUESTS, ask_together, asked, listed, on_table, requestable
from tests.support.stack.role_policies import make_role
from tests.support.stack.world import Person, Table, World, error_of


def dry_run(person: Person, *items: tuple[dict[str, Any], list[str]], **more: Any) -> httpx.Response:
    body = {
        "items": [{"object": on, "privileges": privileges} for on, privileges in items],
        "reason": "quarterly report",
    }
    return person.post(f"{REQUESTS}/dry-run", body | more)


def _in_namespace(world: World, ns: str) -> dict[str, Any]:
    return {"type": "namespace", "warehouse-id": world.warehouse, "namespace": [ns]}


def test_a_dry_run_shows_what_a_request_would_open_and_writes_nothing(world: World, ns: str) -> None:
    table, _ = world.table(ns), world.table(ns)
    bob = world.stranger()
    world.grant("describe", bob, "namespace", world.namespace_id(ns))
    items = (_in_namespace(world, ns), ["select", "modify"]), (on_table(world, table), ["select"])
    before = world.sql("select count(*) from access_requests")
    tried = dry_run(bob, *items, **{"duration-seconds": 60})
    assert tried.status_code == 200, tried.text
    assert tried.json()["duration-seconds"] == 60
    namespace, on = tried.json()["items"]
    assert (namespace["name"], namespace["opens"]) == (ns, [{"type": "table", "count": 2}])
    assert namespace["privileges"] == [
        {"privilege": each, "granted-with": f"can_grant_{each}"} for each in ("select", "modify")
    ]
    assert (on["object"]["table-id"], on["opens"]) == (table.uuid, [])
    assert listed(bob) == []
    assert world.sql("select count(*) from access_requests") == before
    made = ask_together(bob, *items).json()
    assert [(each["name"], each["opens"]) for each in made["items"]] == [
        (each["name"], each["opens"]) for each in (namespace, on)
    ]


def test_a_dry_run_names_deciders_to_callers_that_read_the_assignments(world: World, ns: str) -> None:
    table, other = world.table(ns), world.table(ns)
    bob, owner, role = world.stranger(), world.stranger(), make_role(world)
    world.grant("manage_grants", bob, "table", table.uuid)
    for each in (table, other):
        world.grant("describe", bob, "table", each.uuid)
    world.grant("manage_grants", owner, "table", table.uuid)
    entry = {"privilege": "manage_grants", "principal": {"role": role}}
    path = f"/management/v1/warehouse/{world.warehouse}/table/{table.uuid}/grants"
    assert world.admin.post(path, {"writes": [entry]}).status_code == 204
    tried = dry_run(bob, (on_table(world, other), ["select"]), (on_table(world, table), ["select", "manage_tags"]))
    assert tried.status_code == 200, tried.text
    hidden, shown = tried.json()["items"]
    assert "deciders" not in hidden["privileges"][0]
    select, tags = shown["privileges"]
    assert {"user": owner.id} in select["deciders"]
    assert {"role": role} in select["deciders"]
    assert {"user": bob.id} not in select["deciders"], "nobody decides about its own request"
    assert {"user": owner.id} not in tags["deciders"], "managing grants does not give the right to manage tags"


def test_a_dry_run_gives_the_errors_of_the_request(world: World, ns: str) -> None:
    table, hidden = world.table(ns), world.table(ns)
    bob = world.stranger()
    world.grant("describe", bob, "table", table.uuid)
    on = on_table(world, table)
    asked(bob, on, "modify")
    for items, more in (
        ([(on, ["modify"])], {}),
        ([(on, ["select"]), (on_table(world, hidden), ["select"])], {}),
        ([(on, ["select"]), (on, ["create"])], {}),
        ([(on, ["select"])], {"duration-seconds": 31_000_000}),
        ([(on, ["assignee"])], {}),
    ):
        tried, made = dry_run(bob, *items, **more), ask_together(bob, *items, **more)
        assert made.status_code in (400, 404, 409), made.text
        assert tried.status_code == made.status_code
        assert [error_of(tried)[each] for each in ("type", "message")] == [
            error_of(made)[each] for each in ("type", "message")
        ]


@pytest.mark.parametrize("via", ["namespace", "tag"])
def test_a_dry_run_for_an_invisible_object_needs_the_right_to_request(world: World, table: Table, via: str) -> None:
    bob, stranger = requestable(world, table, via), world.stranger()
    tried = dry_run(bob, (on_table(world, table), ["select"]))
    assert tried.status_code == 200, tried.text
    (item,) = tried.json()["items"]
    assert item["name"] == f"{table.namespace}.{table.name}"
    assert "deciders" not in item["privileges"][0]
    absent = {**on_table(world, table), "table-id": "01999999-0000-7000-8000-000000000000"}
    answers = [dry_run(stranger, (on, ["select"])) for on in (on_table(world, table), absent)]
    assert [each.status_code for each in answers] == [404, 404]
    messages = [error_of(each)["message"] for each in answers]
    assert messages[0].replace(table.uuid, "ID") == messages[1].replace(absent["table-id"], "ID")


def test_command_shows_a_dry_run(world: World, ns: str) -> None:
    world.table(ns)
    on = ("--warehouse", world.warehouse, "--namespace", ns, "--reason", "a report")
    before = listed(world.admin, mine="true")
    done = world.lakegate(
        "access", "request", "select", *on, "--dry-run", "--gateway", world.base, "--token", world.admin.token
    )
    assert done.returncode == 0, done.stderr
    (fields,) = [each.split("\t") for each in done.stdout.splitlines()]
    assert fields[:5] == ["namespace", ns, "select", "can_grant_select", "1 table"]
    assert listed(world.admin, mine="true") == before
