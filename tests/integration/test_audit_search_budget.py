# SPDX-License-Identifier: Apache-2.0
"""The number of records that a page of a search reads, on a real PostgreSQL."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec
import pytest

from gateway.access.audit.audit_record import AuditedActor, AuditedResource
from gateway.access.operations.audit import AuditedObject, AuditSelection
from gateway.db.audit import audit_log
from gateway.db.engine.database import Database
from gateway.features.audit.audit_search import read_page
from gateway.features.audit.audit_view import AuditPlace
from tests.support.rows.audit_records import allowed_record

SINCE: Final = datetime(2019, 5, 1, tzinfo=UTC)
ALL: Final = AuditSelection(since=SINCE, until=SINCE + timedelta(hours=1))
#: Pairs of records have the same time. Every tenth record is of another request.
COUNT: Final = 40
RARE: Final = [3, 13, 23, 33]


def id_of(number: int) -> UUID:
    return UUID(int=0x5000 + number)


@pytest.fixture
async def database(url: str) -> AsyncIterator[Database]:
    """Yield the database with records of 2019."""
    database = Database(url, pool_size=5, acquire_timeout=10)
    records = [
        msgspec.structs.replace(
            allowed_record(id_of(number), SINCE + timedelta(minutes=number // 2)),
            request_id="rare" if number in RARE else "common",
            actor=AuditedActor(kind="user", id=f"oidc~{number % 2}"),
        )
        for number in range(COUNT)
    ]
    async with database.transaction() as connection:
        await audit_log.insert(connection, records)
    yield database
    await database.close()


async def pages(database: Database, selection: AuditSelection, *, size: int, budget: int) -> list[list[UUID]]:
    """Return the ids of all pages."""
    found: list[list[UUID]] = []
    before = None
    async with database.read() as connection:
        while True:
            page = await read_page(
                connection, selection=selection, place=AuditPlace(), before=before, size=size, budget=budget
            )
            found.append([each.id for each in page.entries])
            if page.last is None:
                return found
            assert before is None or page.last < before
            before = page.last


def newest_first(numbers: list[int]) -> list[UUID]:
    return [id_of(number) for number in sorted(numbers, reverse=True)]


@pytest.mark.parametrize(("size", "budget"), [(1, 1), (2, 5), (3, 40), (10, 6), (100, 7), (100, 1000)])
async def test_pages_of_any_size_and_budget_have_each_record_once(database: Database, size: int, budget: int) -> None:
    for selection, numbers in (
        (ALL, list(range(COUNT))),
        (replace(ALL, request_id="rare"), RARE),
        (replace(ALL, actor="oidc~1", request_id="rare"), RARE),
        (replace(ALL, actor="oidc~0", text="nothing of this kind"), []),
        (replace(ALL, operations=("load_table",)), list(range(COUNT))),
    ):
        found = await pages(database, selection, size=size, budget=budget)
        assert [id for page in found for id in page] == newest_first(numbers)


async def test_a_page_ends_at_its_budget(database: Database) -> None:
    found = await pages(database, replace(ALL, request_id="rare"), size=100, budget=10)
    assert len(found) >= 4
    assert all(len(page) <= 2 for page in found)
    assert len(await pages(database, ALL, size=100, budget=10)) == 1


async def test_pages_do_not_depend_on_the_hidden_part_of_records(url: str) -> None:
    database = Database(url, pool_size=5, acquire_timeout=10)
    here, elsewhere = str(UUID(int=0x71)), str(UUID(int=0x72))
    begin = SINCE + timedelta(days=1)
    tables = [
        AuditedResource(type="table", id=name, name=name, warehouse_id=warehouse)
        for name, warehouse in (("shown", here), ("concealed", elsewhere))
    ]
    for number in range(10):
        record = allowed_record(id_of(100 + number), begin + timedelta(minutes=number))
        [decision] = record.decisions
        record = msgspec.structs.replace(
            record,
            decisions=(msgspec.structs.replace(decision, resources=tuple(tables)),),
            detail={"location": "s3://secret"},
        )
        async with database.transaction() as connection:
            await audit_log.insert(connection, [record])
    selection = AuditSelection(since=begin, until=begin + timedelta(hours=1))
    place = AuditPlace(warehouses=frozenset({here}))
    async with database.read() as connection:

        async def first(selection: AuditSelection, place: AuditPlace) -> tuple[int, object]:
            page = await read_page(connection, selection=selection, place=place, before=None, size=1)
            return len(page.entries), page.last

        assert (await first(selection, place))[0] == 1
        concealed = msgspec.convert({"type": "table", "id": "concealed"}, AuditedObject)
        for hidden, absent in (
            (replace(selection, text="s3://secret"), replace(selection, text="s3://absent")),
            (replace(selection, object=concealed), replace(selection, object=AuditedObject(type="table", id="absent"))),
        ):
            assert await first(hidden, place) == await first(absent, place) == (0, None)
        # Without warehouses in the statement, too: a project can have more of them than it compares.
        many = AuditPlace(warehouses=frozenset(str(UUID(int=0x900 + number)) for number in range(30)))
        assert await first(selection, many) == (0, None)
    await database.close()
