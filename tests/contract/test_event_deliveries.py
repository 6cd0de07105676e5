# SPDX-License-Identifier: Apache-2.0
"""The management API for the delivery of change events, on a gateway without sinks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import msgspec
import psutil
import pytest

from tests.support.lakegate_command import run_lakegate
from tests.support.stack.world import World, error_triple, unique, without_facts

BASE = "/management/v1/events"


@pytest.fixture
def former_sink(world: World) -> Iterator[str]:
    """Write three events that a sink refused and one that waits for it. The sink is not in the settings."""
    sink = unique("former").replace("_", "-")
    for number in range(4):
        ((sequence,),) = world.sql(
            "insert into events (id, at, type, source, key, attributes, data) values "
            "($1, clock_timestamp(), 'dropTable', 'uri:test', $2, '{}', '{}') returning sequence",
            uuid4(),
            sink,
        )
        if number:
            world.sql("insert into event_dead_letters values ($1, $2, clock_timestamp(), 'too large')", sink, sequence)
        else:
            world.sql("insert into event_deliveries values ($1, $2)", sink, sequence)
    yield sink
    world.sql("delete from events where key = $1", sink)


def test_sink_that_is_no_longer_configured_is_listed_with_its_events(world: World, former_sink: str) -> None:
    answer = world.admin.get(f"{BASE}/sinks")
    assert answer.status_code == 200, answer.text
    (found,) = [each for each in answer.json()["sinks"] if each["name"] == former_sink]
    assert (found["configured"], found["waiting"], found["dead-letters"]) == (False, 1, 3)
    assert found["oldest-seconds"] >= 0


def test_pages_contain_each_dead_letter_once(world: World, former_sink: str) -> None:
    found: list[dict[str, Any]] = []
    query: dict[str, Any] = {"sink": former_sink, "pageSize": 2}
    for _ in range(2):
        page = world.admin.get(f"{BASE}/dead-letters", params=query).json()
        found += page["dead-letters"]
        query["pageToken"] = page.get("next-page-token")
    assert query["pageToken"] is None
    assert [each["reason"] for each in found] == ["too large"] * 3
    assert len({each["sequence"] for each in found}) == 3
    wrong = world.admin.get(f"{BASE}/dead-letters", params={"pageToken": "x"})
    assert wrong.status_code == 400


def test_caller_without_a_right_on_the_server_is_refused(world: World, former_sink: str) -> None:
    caller = world.stranger()
    assert caller.get(f"{BASE}/sinks").status_code == 403
    assert caller.get(f"{BASE}/dead-letters").status_code == 403
    assert caller.post(f"{BASE}/replay", {"from-sequence": 0}).status_code == 403
    assert caller.post(f"{BASE}/dead-letters/retry", {"sink": former_sink}).status_code == 403


@pytest.mark.parametrize(
    ("privilege", "kind", "expected"),
    [("operator", "server", 200), ("admin", "server", 200), ("project_admin", "project", 403)],
)
def test_events_are_for_administrators_and_operators_of_the_server(
    world: World, privilege: str, kind: str, expected: int
) -> None:
    """Events concern all projects, so an administrator of one project is refused."""
    caller = world.stranger()
    world.grant(privilege, caller, kind, world.project if kind == "project" else "")
    try:
        assert caller.get(f"{BASE}/sinks").status_code == expected
        assert caller.get(f"{BASE}/dead-letters").status_code == expected
        # The sink does not exist, so an admitted request changes nothing.
        answer = caller.post(f"{BASE}/dead-letters/retry", {"sink": unique("none")})
        assert answer.status_code == (404 if expected == 200 else 403)
    finally:
        world.strip(caller)


def test_sink_that_is_not_configured_gets_no_events_again(world: World, former_sink: str) -> None:
    for path, body in (
        ("replay", {"from-sequence": 0, "sink": former_sink}),
        ("dead-letters/retry", {"sink": former_sink}),
    ):
        answer = world.admin.post(f"{BASE}/{path}", body)
        assert error_triple(answer)[0] == 404, answer.text
    assert world.sql("select count(*) from event_deliveries where sink = $1", former_sink)[0][0] == 1


@pytest.mark.parametrize("body", [{}, {"from-sequence": 1, "from-time": "2026-01-01T00:00:00Z"}, {"from-sequence": -1}])
def test_replay_needs_exactly_one_start(world: World, body: dict[str, Any]) -> None:
    assert world.admin.post(f"{BASE}/replay", body).status_code == 400


def test_changes_by_the_command_line_are_audited(world: World, former_sink: str) -> None:
    """The API records the same changes. A command without a record would let events vanish without a trace."""
    name = former_sink.replace("-", "_").upper()
    environment = psutil.Process(world.ready.pids["gateway"][0]).environ()
    configured = {**environment, f"LAKEGATE__EVENTS__SINKS__{name}__KIND": "log"}
    retried = run_lakegate("events", "dead-letters", "--retry", "--sink", former_sink, environment=configured)
    assert retried.stdout == "events that wait again: 3\n", retried.stderr
    world.sql("delete from event_deliveries where sink = $1", former_sink)
    replayed = run_lakegate("events", "replay", "--from", "0", "--sink", former_sink, environment=configured)
    waiting = world.sql("select count(*) from event_deliveries where sink = $1", former_sink)[0][0]
    assert replayed.stdout == f"events that wait again: {waiting}\n", replayed.stderr
    forgotten = world.lakegate("events", "forget", "--sink", former_sink)
    assert forgotten.stdout == f"deleted rows: {waiting}\n", forgotten.stderr
    records = [
        (row["operation"], row["actor_id"], without_facts(msgspec.json.decode(row["record"])["detail"]))
        for row in world.sql(
            "select operation, actor_id, record from audit_log "
            "where convert_from(record, 'UTF8') like '%' || $1 || '%' and actor_id like 'system~%' order by at",
            former_sink,
        )
    ]
    assert records == [
        ("retry_dead_letters_by_command", "system~event_commands", {"sinks": former_sink, "events": "3"}),
        ("replay_events_by_command", "system~event_commands",
         {"sinks": former_sink, "from": "0", "events": str(waiting)}),
        ("forget_event_sink", "system~event_commands", {"sink": former_sink, "events": str(waiting)}),
    ]  # fmt: skip
