# SPDX-License-Identifier: Apache-2.0
"""Background tasks and their queues over HTTP: shapes, visibility, control, and effects of the actions."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support.stack.grants import strangers  # noqa: F401 - a fixture
from tests.support.stack.world import Person, World, error_triple, without_facts

MANAGEMENT = "/management/v1"
PROJECT = f"{MANAGEMENT}/project"

pytestmark = pytest.mark.usefixtures("strangers")

_KEYS = {
    "task-id",
    "project-id",
    "queue-name",
    "status",
    "scheduled-for",
    "attempt",
    "progress",
    "created-at",
    "picked-up-at",
    "last-heartbeat-at",
    "parent-task-id",
    "updated-at",
}
_OF_WAREHOUSE = _KEYS | {"warehouse-id", "entity", "entity-name"}
_DETAILS = {"task-data", "attempts", "execution-details", "message"}


@pytest.fixture
def root(world: World) -> Iterator[str]:
    """Yield the management path of the warehouse; delete the unfinished tasks of the test afterwards."""
    yield f"{MANAGEMENT}/warehouse/{world.warehouse}"
    world.sql("delete from tasks where payload ? 'of the test'")


def make(world: World, about: str | None = None, *, kind: str = "table", **columns: object) -> str:
    """Insert a task that is due tomorrow; return its id."""
    values: dict[str, object] = {
        "queue": "soft_deletion",
        "status": "scheduled",
        "scheduled_for": datetime.now(UTC) + timedelta(days=1),
        "entity_name": ["ns", "t"],
        **columns,
    }
    names = ", ".join(values)
    places = ", ".join(f"${number}" for number in range(4, 4 + len(values)))
    [row] = world.sql(
        "insert into tasks (id, warehouse_id, entity_type, entity_id, payload, "
        f'{names}) values (gen_random_uuid(), $1, $2, $3, \'{{"of the test": "yes"}}\', {places}) '
        "returning id::text as id",
        world.warehouse,
        kind,
        about or str(uuid4()),
        *values.values(),
    )
    return str(row["id"])


def listed(person: Person, root: str, **requested: Any) -> list[dict[str, Any]]:
    answer = person.post(f"{root}/task/list", requested)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["tasks"]
    return found


def ids(tasks: list[dict[str, Any]]) -> list[str]:
    return [task["task-id"] for task in tasks]


def about(table: str, kind: str = "table") -> dict[str, str]:
    return {"type": kind, f"{kind}-id": table}


def control(person: Person, root: str, action: dict[str, Any] | str, *tasks: str) -> httpx.Response:
    given = {"action-type": action} if isinstance(action, str) else action
    return person.post(f"{root}/task/control", {"action": given, "task-ids": list(tasks)})


def status(world: World, id: str) -> str:
    return str(world.sql("select status from tasks where id = $1", id)[0]["status"])


def until(true: Callable[[], bool], seconds: float = 60.0) -> None:
    # Tasks of projects are scheduled every half minute.
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_task_is_returned_with_all_fields(world: World, root: str) -> None:
    table, parent = str(uuid4()), uuid4()
    id = make(world, table, parent_task_id=parent, attempt=2, progress=0.25, last_error="away")
    [task] = listed(world.admin, root, entities=[about(table)])
    assert set(task) == _OF_WAREHOUSE
    assert (task["task-id"], task["warehouse-id"], task["project-id"]) == (
        id,
        world.warehouse,
        world.ready.project_id,
    )
    assert task["entity"] == about(table) | {"warehouse-id": world.warehouse}
    assert task["entity-name"] == ["ns", "t"]
    assert (task["queue-name"], task["status"], task["attempt"]) == ("soft_deletion", "SCHEDULED", 2)
    assert (task["progress"], task["parent-task-id"], task["picked-up-at"]) == (0.25, str(parent), None)
    assert datetime.fromisoformat(task["scheduled-for"]) > datetime.now(UTC)
    world.sql(
        "insert into task_log (task_id, attempt, status, scheduled_for, started_at, ended_at, message, progress) "
        "select $1, n, 'failed', now(), now(), now() + interval '3661.5 seconds', 'away ' || n, 0.5 "
        "from generate_series(1, 7) n",
        id,
    )
    path = f"{root}/task/by-id/{id}"
    details = world.admin.get(path).json()
    assert set(details) == _OF_WAREHOUSE | _DETAILS
    assert {key: details[key] for key in task} == task
    assert (details["task-data"], details["message"], details["execution-details"]) == (
        {"of the test": "yes"},
        "away",
        None,
    )
    assert [each["attempt"] for each in details["attempts"]] == [7, 6, 5, 4, 3]
    first = details["attempts"][0]
    assert (first["status"], first["message"], first["progress"]) == ("FAILED", "away 7", 0.5)
    assert first["duration"] == "PT3661.5S"
    assert len(world.admin.get(f"{path}?numAttempts=2").json()["attempts"]) == 2
    assert world.admin.get(f"{path}?numAttempts=0").json()["attempts"] == []
    assert world.admin.get(f"{path}?numAttempts=-1").status_code == 400


def test_task_filters_apply_singly_and_combined(world: World, root: str) -> None:
    table, view, other = str(uuid4()), str(uuid4()), str(uuid4())
    waiting = make(world, table)
    failed = make(world, table, queue="tabular_purge", status="failed")
    of_view = make(world, view, kind="view", status="cancelled", queue="tabular_purge")
    make(world, other)
    both = [about(table), about(view, "view")]
    assert ids(listed(world.admin, root, entities=both)) == [of_view, failed, waiting], (
        "tasks must be listed latest first"
    )
    assert ids(listed(world.admin, root, entities=both, status=["FAILED", "CANCELLED"])) == [of_view, failed]
    assert ids(listed(world.admin, root, entities=both, **{"queue-name": ["soft_deletion"]})) == [waiting]
    assert ids(listed(world.admin, root, entities=both, **{"queue-name": ["tabular_expiration"]})) == [waiting]
    assert listed(world.admin, root, entities=both, **{"queue-name": ["no such queue"]}) == []
    at = listed(world.admin, root, entities=[about(table)], status=["FAILED"])[0]["created-at"]
    assert ids(listed(world.admin, root, entities=both, **{"created-after": at})) == [of_view]
    assert ids(listed(world.admin, root, entities=both, **{"created-before": at})) == [waiting]
    assert listed(world.admin, root, entities=both, status=["FAILED"], **{"created-before": at}) == []
    assert listed(world.admin, root, entities=[about(view)]) == [], "a filter by view must not return tasks of tables"
    assert listed(world.admin, root, entities=[{"type": "warehouse"}]) == []
    assert listed(world.admin, root, entities=[]) == []


@pytest.mark.parametrize(
    "requested",
    [
        {"status": ["succeeded"]},
        {"entities": [{"type": "namespace", "namespace-id": str(uuid4())}]},
        {"entities": [{"type": "table", "table-id": str(uuid4())}] * 101},
        {"entities": [{"type": "table", "table-id": str(uuid4()), "warehouse-id": str(uuid4())}]},
        {"created-after": "yesterday"},
        {"created-after": "0001-01-01T00:00:00+14:00"},
        {"page-size": 0},
        {"page-token": "no token of this server"},
        {"page-token": "gqA"},
        {"pageSize": 10},
    ],
)
def test_invalid_task_filter_is_refused(world: World, root: str, requested: dict[str, Any]) -> None:
    assert world.admin.post(f"{root}/task/list", requested).status_code == 400


def test_task_pages_are_full_and_complete_for_their_reader(world: World, root: str, ns: str) -> None:
    """The reader learns nothing about the invisible tasks between them, not even that they exist."""
    seen, unseen = world.table(ns), world.table(ns)
    world.grant("describe", world.analyst, "table", seen.uuid)
    mine: list[str] = []
    hidden: list[str] = []
    for number in range(5):
        for table, kept in ((seen, mine), (unseen, hidden)):
            kept.append(make(world, table.uuid, status="failed", queue="tabular_purge", attempt=number))
    for _ in range(3):
        make(world, status="failed", queue="tabular_purge")
    assert ids(listed(world.analyst, root)) == mine[::-1]
    pages: list[list[str]] = []
    token: str | None = None
    while token is not None or not pages:
        more = {} if token is None else {"page-token": token}
        answer = world.analyst.post(f"{root}/task/list", {"page-size": 2, **more}).json()
        pages.append(ids(answer["tasks"]))
        token = answer["next-page-token"]
    assert pages == [mine[::-1][0:2], mine[::-1][2:4], mine[::-1][4:]]
    both = [about(seen.uuid), about(unseen.uuid)]
    assert set(ids(listed(world.admin, root, entities=both))) == {*mine, *hidden}
    assert ids(listed(world.analyst, root, entities=both)) == mine[::-1]
    world.revoke("describe", world.analyst, "table", seen.uuid)
    assert world.analyst.post(f"{root}/task/list", {}).status_code == 404


def test_tasks_are_visible_exactly_to_viewers_of_the_warehouse(world: World, root: str) -> None:
    id = make(world)
    for person in (world.analyst, world.unauthenticated):
        for answer in (
            person.post(f"{root}/task/list", {}),
            person.get(f"{root}/task/by-id/{id}"),
            control(person, root, "cancel", id),
        ):
            assert (
                error_triple(answer)[1] == "NoSuchWarehouseException"
                if person is world.analyst
                else answer.status_code == 401
            )
    absent = f"{MANAGEMENT}/warehouse/{uuid4()}"
    assert world.admin.post(f"{absent}/task/list", {}).status_code == 404
    world.grant("describe", world.analyst, "warehouse", world.warehouse)
    assert id in ids(listed(world.analyst, root))
    assert world.analyst.get(f"{root}/task/by-id/{id}").status_code == 200
    assert error_triple(control(world.analyst, root, "cancel", id))[:2] == (403, "WarehouseActionForbidden"), (
        "a task of a deleted object needs the right to all tasks of the warehouse"
    )
    assert status(world, id) == "scheduled"
    world.grant("modify", world.analyst, "warehouse", world.warehouse)
    assert control(world.analyst, root, "cancel", id).status_code == 204
    assert status(world, id) == "cancelled"


def test_task_action_fails_for_all_if_one_is_forbidden(world: World, root: str, ns: str) -> None:
    steered, seen, hidden = world.table(ns), world.table(ns), world.table(ns)
    world.grant("modify", world.analyst, "table", steered.uuid)
    world.grant("describe", world.analyst, "table", seen.uuid)
    mine, visible, unseen = (make(world, table.uuid) for table in (steered, seen, hidden))
    assert error_triple(control(world.analyst, root, "cancel", mine, visible))[:2] == (403, "TableActionForbidden")
    for absent in (unseen, str(uuid4())):
        assert error_triple(control(world.analyst, root, "cancel", mine, absent)) == (
            404,
            "TaskNotFound",
            f"Task does not exist: {absent}",
        )
        assert error_triple(world.analyst.get(f"{root}/task/by-id/{absent}"))[:2] == (404, "TaskNotFound")
    assert error_triple(control(world.admin, root, "cancel", mine, str(uuid4())))[:2] == (404, "TaskNotFound")
    assert {status(world, id) for id in (mine, visible, unseen)} == {"scheduled"}
    assert control(world.analyst, root, "cancel", mine, mine).status_code == 204
    assert status(world, mine) == "cancelled"


def test_task_action_fails_for_all_if_one_state_is_unsuitable(world: World, root: str) -> None:
    beating: dict[str, Any] = {"heartbeat_at": datetime.now(UTC) + timedelta(days=1), "attempt": 1}
    states = ("scheduled", "running", "stopping", "succeeded", "failed", "cancelled")

    def fresh(state: str) -> str:
        return make(world, status=state, **(beating if state in ("running", "stopping") else {}))

    later = datetime.now(UTC) + timedelta(days=30)
    actions: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
        "stop": ({"action-type": "stop"}, {"running": "stopping", "stopping": "stopping"}),
        "cancel": ({"action-type": "cancel"}, {"scheduled": "cancelled", "cancelled": "cancelled"}),
        "run-at": (
            {"action-type": "run-at", "scheduled-for": later.isoformat()},
            {"scheduled": "scheduled", "stopping": "stopping", "failed": "scheduled"},
        ),
    }
    for action, becomes in actions.values():
        for state in states:
            id, beside = fresh(state), fresh(next(iter(becomes)))
            answer = control(world.admin, root, action, beside, id)
            if state in becomes:
                assert answer.status_code == 204, (action, state, answer.text)
                assert status(world, id) == becomes[state]
                if action["action-type"] == "run-at":
                    [row] = world.sql("select scheduled_for, interruptions, attempt from tasks where id = $1", id)
                    assert row["scheduled_for"] == later
                    assert state != "failed" or row["interruptions"] == row["attempt"], (
                        "a restarted task must have all its attempts again"
                    )
            else:
                assert error_triple(answer)[:2] == (409, "TaskStateConflict"), (action, state)
                assert status(world, id) == state
                assert status(world, beside) == next(iter(becomes)), "a refused action must change no task"


@pytest.mark.parametrize(
    "body",
    [
        {"action": {"action-type": "stop"}, "task-ids": []},
        {"action": {"action-type": "stop"}, "task-ids": [str(uuid4())] * 101},
        {"action": {"action-type": "delete"}, "task-ids": [str(uuid4())]},
        {"action": {"action-type": "run-at"}, "task-ids": [str(uuid4())]},
        {"action": {"action-type": "run-now", "scheduled-for": "2030-01-01T00:00:00Z"}, "task-ids": [str(uuid4())]},
        {"action": "stop", "task-ids": [str(uuid4())]},
        {"task-ids": [str(uuid4())]},
    ],
)
def test_invalid_task_action_is_refused(world: World, root: str, body: dict[str, Any]) -> None:
    assert world.admin.post(f"{root}/task/control", body).status_code == 400
    assert world.admin.post(f"{PROJECT}/task/control", body).status_code == 400


def test_task_is_postponed_by_at_most_a_year(world: World, root: str) -> None:
    id = make(world)
    for days, code in ((366, 400), (364, 204)):
        at = (datetime.now(UTC) + timedelta(days=days)).isoformat()
        answer = control(world.admin, root, {"action-type": "run-at", "scheduled-for": at}, id)
        assert answer.status_code == code


def test_failed_task_is_restarted_but_never_beside_an_active_one(world: World, root: str, ns: str) -> None:
    """The restart of a failed purge deletes the files."""
    table = world.table(ns)
    key = table.location.removeprefix(f"s3://{world.bucket}/").rstrip("/") + "/data/1.parquet"
    world.s3.put_object(Bucket=world.bucket, Key=key, Body=b"x")
    assert world.admin.delete(f"{table.path}?purgeRequested=false").status_code == 204
    payload = f'{{"location": "{table.location}", "location_key": "none", "of the test": "yes"}}'
    id = make(world, table.uuid, queue="tabular_purge", status="failed", attempt=5)
    world.sql("update tasks set payload = $2::jsonb where id = $1", id, payload)
    active = make(world, table.uuid, queue="tabular_purge")
    assert error_triple(control(world.admin, root, "run-now", id))[:2] == (409, "TaskAlreadyActive")
    assert control(world.admin, root, "cancel", active).status_code == 204
    assert control(world.admin, root, "run-now", id).status_code == 204
    until(lambda: status(world, id) == "succeeded")
    details = world.admin.get(f"{root}/task/by-id/{id}").json()
    assert (details["status"], details["attempt"], details["progress"]) == ("SUCCESS", 6, 1.0)
    assert details["execution-details"]["deleted"] >= 1
    assert [each["status"] for each in details["attempts"]] == ["SUCCESS"]
    assert details["attempts"][0]["duration"].startswith("PT")


def test_task_actions_are_audited(world: World, root: str) -> None:
    id = make(world)
    assert control(world.admin, root, "cancel", id).status_code == 204
    written = "select convert_from(record, 'UTF8') as r from audit_log where operation = 'control_tasks'"
    [detail] = [json.loads(row["r"])["detail"] for row in world.sql(written) if id in row["r"]]
    assert without_facts(detail) == {"action": "cancel", "task_ids": id}


def test_a_queue_is_configured_for_a_warehouse(world: World, root: str) -> None:
    path = f"{root}/task-queue/soft_deletion/config"
    assert world.admin.get(path).json() == {
        "queue-config": {"queue-name": "soft_deletion"},
        "max-seconds-since-last-heartbeat": None,
    }
    try:
        given = {"queue-config": {}, "max-seconds-since-last-heartbeat": 300}
        assert world.admin.post(path, given).status_code == 204
        old_name = f"{root}/task-queue/tabular_expiration/config"
        assert world.admin.get(old_name).json()["max-seconds-since-last-heartbeat"] == 300
        other = f"{root}/task-queue/tabular_purge/config"
        assert world.admin.get(other).json()["max-seconds-since-last-heartbeat"] is None
        assert world.admin.post(path, world.admin.get(path).json()).status_code == 204, (
            "the configuration that was read must be accepted"
        )
    finally:
        assert world.admin.post(path, {"queue-config": {}}).status_code == 204
    assert world.admin.get(path).json()["max-seconds-since-last-heartbeat"] is None


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"queue-config": None},
        {"queue-config": {"expiration": "P1D"}},
        {"queue-config": {"queue-name": "tabular_purge"}},
        {"queue-config": {}, "max-seconds-since-last-heartbeat": 0},
        {"queue-config": {}, "max-seconds-since-last-heartbeat": 89},
        {"queue-config": {}, "max-seconds-since-last-heartbeat": "300"},
    ],
)
def test_invalid_queue_configuration_is_refused(world: World, root: str, body: dict[str, Any]) -> None:
    assert world.admin.post(f"{root}/task-queue/soft_deletion/config", body).status_code == 400


def test_unknown_queue_is_not_found_and_tasks_cannot_be_scheduled_by_request(world: World, root: str) -> None:
    for queue in ("expire_snapshots", "task_log_cleanup", "purge_table"):
        path = f"{root}/task-queue/{queue}"
        for answer in (
            world.admin.get(f"{path}/config"),
            world.admin.post(f"{path}/config", {"queue-config": {}}),
            world.admin.post(f"{path}/schedule", {}),
        ):
            assert error_triple(answer)[:2] == (404, "QueueNotFound")
    for queue in ("soft_deletion", "tabular_purge", "expire_staged_table"):
        refused = world.admin.post(f"{root}/task-queue/{queue}/schedule", {"entity": about(str(uuid4()))})
        assert error_triple(refused)[:2] == (400, "TaskNotSchedulable")


def test_queue_reads_need_visibility_and_changes_need_modify(world: World, root: str) -> None:
    path = f"{root}/task-queue/soft_deletion"
    requested: list[Callable[[], httpx.Response]] = [
        lambda: world.analyst.get(f"{path}/config"),
        lambda: world.analyst.post(f"{path}/config", {"queue-config": {}}),
        lambda: world.analyst.post(f"{path}/schedule", {}),
    ]
    assert [error_triple(send())[:2] for send in requested] == [(404, "NoSuchWarehouseException")] * 3
    world.grant("describe", world.analyst, "warehouse", world.warehouse)
    assert [send().status_code for send in requested] == [200, 403, 403]
    world.grant("modify", world.analyst, "warehouse", world.warehouse)
    assert [send().status_code for send in requested] == [200, 204, 400]


def _cleanup(world: World) -> dict[str, Any]:
    """Wait for a scheduled log cleanup; return it."""

    def waiting() -> list[dict[str, Any]]:
        answer = world.admin.post(f"{PROJECT}/task/list", {"queue-name": ["task_log_cleanup"], "status": ["SCHEDULED"]})
        assert answer.status_code == 200, answer.text
        return list(answer.json()["tasks"])

    until(lambda: bool(waiting()))
    [task] = waiting()
    return task


def test_project_removes_ended_tasks_by_its_configuration(world: World, root: str) -> None:
    """The test starts the scheduled task, which removes tasks beyond the retention and schedules the next one."""
    path = f"{PROJECT}/task-queue/task_log_cleanup/config"
    default = {"queue-name": "task_log_cleanup", "cleanup-period": "P1D", "retention-period": "P90D"}
    assert world.admin.get(path).json()["queue-config"] == default
    waiting = _cleanup(world)
    assert set(waiting) == _KEYS
    assert waiting["project-id"] == world.ready.project_id
    old = make(world, status="succeeded", finished_at=datetime.now(UTC) - timedelta(days=3))
    young = make(world, status="succeeded", finished_at=datetime.now(UTC))
    try:
        given = {"queue-config": {"cleanup-period": "PT3H", "retention-period": "P2D"}}
        assert world.admin.post(path, given).status_code == 204
        current = world.admin.get(path).json()["queue-config"]
        assert (current["cleanup-period"], current["retention-period"]) == ("PT10800S", "P2D")
        assert control(world.admin, PROJECT, "run-now", waiting["task-id"]).status_code == 204
        until(lambda: status(world, waiting["task-id"]) == "succeeded")
    finally:
        assert world.admin.post(path, {"queue-config": {}}).status_code == 204
    details = world.admin.get(f"{PROJECT}/task/by-id/{waiting['task-id']}").json()
    assert set(details) == _KEYS | _DETAILS
    assert details["execution-details"]["removed"] >= 1
    assert [each["status"] for each in details["attempts"]] == ["SUCCESS"]
    left = {str(row["id"]) for row in world.sql("select id from tasks where payload ? 'of the test'")}
    assert young in left and old not in left
    assert _cleanup(world)["task-id"] != waiting["task-id"]
    for wrong in ("P0D", "soon", "P10000D", 5):
        assert world.admin.post(path, {"queue-config": {"retention-period": wrong}}).status_code == 400


def test_project_and_warehouse_tasks_are_separate(world: World, root: str) -> None:
    of_warehouse, of_project = make(world), _cleanup(world)["task-id"]
    assert of_warehouse not in ids(world.admin.post(f"{PROJECT}/task/list", {}).json()["tasks"])
    assert of_project not in ids(listed(world.admin, root, **{"page-size": 1000}))
    assert error_triple(world.admin.get(f"{PROJECT}/task/by-id/{of_warehouse}"))[:2] == (404, "TaskNotFound")
    assert error_triple(world.admin.get(f"{root}/task/by-id/{of_project}"))[:2] == (404, "TaskNotFound")
    assert error_triple(control(world.admin, PROJECT, "cancel", of_warehouse))[:2] == (404, "TaskNotFound")
    assert error_triple(control(world.admin, root, "cancel", of_project))[:2] == (404, "TaskNotFound")
    refused = world.admin.post(f"{PROJECT}/task/list", {"entities": []})
    assert refused.status_code == 400, "a task filter by object must be refused for project tasks"


def test_project_tasks_need_describe_or_modify_on_the_project(world: World, root: str) -> None:
    id = _cleanup(world)["task-id"]
    config = f"{PROJECT}/task-queue/task_log_cleanup/config"
    later = {"action-type": "run-at", "scheduled-for": (datetime.now(UTC) + timedelta(days=1)).isoformat()}
    requested: list[Callable[[], httpx.Response]] = [
        lambda: world.analyst.post(f"{PROJECT}/task/list", {}),
        lambda: world.analyst.get(f"{PROJECT}/task/by-id/{id}"),
        lambda: world.analyst.get(config),
        lambda: control(world.analyst, PROJECT, later, id),
        lambda: world.analyst.post(config, {"queue-config": {}}),
    ]
    assert {error_triple(send())[:2] for send in requested} == {(404, "ProjectNotFound")}
    world.grant("describe", world.analyst, "project", world.ready.project_id)
    first = [send().status_code for send in requested]
    world.grant("project_admin", world.analyst, "project", world.ready.project_id)
    assert [send().status_code for send in requested] == [200, 200, 200, 204, 204]
    assert first[3:] == [403, 403] and set(first[:3]) <= {200, 403}
    unknown = {"x-project-id": str(uuid4())}
    assert world.admin.post(f"{PROJECT}/task/list", {}, headers=unknown).status_code == 404
