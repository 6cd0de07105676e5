# SPDX-License-Identifier: Apache-2.0
"""The numbers of audit records over time, and how far the audit log is sealed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.stack.lifecycle import until
from tests.support.stack.live_credentials import reader
from tests.support.stack.world import Person, Table, World

STATISTICS = "/management/v1/audit/statistics"
INTEGRITY = "/management/v1/audit/integrity"


@pytest.fixture
def auditor(world: World) -> Iterator[Person]:
    """Return an auditor of the server."""
    person = world.stranger("auditor")
    world.grant("auditor", person, "server", "")
    yield person
    world.strip(person)


def counts(by: Person, **body: Any) -> list[dict[str, Any]]:
    answer = by.post(STATISTICS, {name.replace("_", "-"): value for name, value in body.items()})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["counts"]
    return found


def total(found: list[dict[str, Any]]) -> int:
    return sum(each["count"] for each in found)


def test_records_are_counted_by_operation_and_outcome(world: World, auditor: Person, table: Table) -> None:
    person = reader(world, table)
    for _ in range(3):
        assert person.get(table.path).status_code == 200
    assert person.delete(table.path).status_code == 403

    def counted() -> bool:
        found = counts(auditor, actor=person.id, interval="hour")
        by_operation = {(each["operation"], each["outcome"]): each["count"] for each in found}
        return (by_operation.get(("load_table", "allowed")), by_operation.get(("drop_table", "forbidden"))) == (3, 1)

    until(counted, "the records of the requests are counted", seconds=10)
    assert total(counts(auditor, actor=person.id, outcomes=["forbidden"])) == 1
    assert total(counts(auditor, actor=person.id, operations=["load_table"])) == 3
    (day,) = {each["at"] for each in counts(auditor, actor=person.id, operations=["drop_table"])}
    assert "T00:00:00" in day


def test_counts_of_a_warehouse_are_those_of_its_objects(world: World, auditor: Person, table: Table) -> None:
    person = world.stranger("auditor")
    world.grant("auditor", person, "warehouse", world.warehouse)
    assert person.get(f"/management/v1/warehouse/{world.warehouse}/live-credentials").status_code == 200
    assert person.get("/management/v1/user").status_code == 403
    place = {"warehouse_id": world.warehouse}
    until(lambda: total(counts(auditor, actor=person.id)) >= 2, "both requests are counted", seconds=10)
    # The record of the count itself may be written already.
    found = {each["operation"] for each in counts(person, actor=person.id, **place)} - {"count_audit"}
    assert found == {"list_warehouse_live_credentials"}
    assert person.post(STATISTICS, {}).status_code == 403
    assert world.stranger().post(STATISTICS, {"warehouse-id": world.warehouse}).status_code == 404
    world.strip(person)


@pytest.mark.parametrize(
    "body",
    [
        {"interval": "hour", "since": "2026-01-01T00:00:00Z", "until": "2026-03-01T00:00:00Z"},
        {"interval": "day", "since": "2024-01-01T00:00:00Z", "until": "2026-03-01T00:00:00Z"},
        {"interval": "minute"},
        {"text": "x"},
    ],
)
def test_invalid_question_is_refused(auditor: Person, body: dict[str, Any]) -> None:
    assert auditor.post(STATISTICS, body).status_code == 400


def test_integrity_shows_the_newest_block_to_auditors_of_the_server(world: World, auditor: Person) -> None:
    answer = auditor.get(INTEGRITY)
    assert answer.status_code == 200, answer.text
    rows = world.sql("select number, digest, count from audit_blocks order by number desc limit 1")
    shown = answer.json()
    if rows:
        assert shown["block"] <= rows[0]["number"]
        assert shown["anchor"].startswith(f"{shown['block']}:")
        assert "fault" not in shown
    else:
        assert set(shown) == {"unsealed"}
        assert shown["unsealed"] > 0
    assert world.stranger().get(INTEGRITY).status_code == 403
    assert world.admin.get(INTEGRITY).status_code == 403
