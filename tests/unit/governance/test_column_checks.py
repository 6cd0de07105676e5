# SPDX-License-Identifier: Apache-2.0
"""Batch answers of `read_columns`; a thousand tables need as many calls as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

import msgspec
import pytest

from gateway.access.actor import Actor
from gateway.access.nouns.refs import ObjectType, Table, TabularRef
from gateway.access.nouns.relations import Can
from gateway.access.operations.checks import BatchCheck, Check, CheckPermission
from gateway.access.ports import Pin, Question
from gateway.features.grants.checks import Checks
from tests.support.door import world
from tests.support.door.column_restrictions import DOCUMENT
from tests.support.door.world import DoorFixture, request_context
from tests.support.kits import kit_of


@dataclass
class Reader:
    """A caller that reads the tables in `whole`, and column 2 of those in `partly`."""

    whole: frozenset[str] = frozenset()
    partly: frozenset[str] = frozenset()
    calls: list[int] = field(default_factory=list)

    async def check(
        self, actor: Actor, questions: Sequence[Question], *, now: datetime, pin: Pin | None = None, paced: bool = True
    ) -> list[bool]:
        self.calls.append(len(questions))
        return [self._holds(each) for each in questions]

    def _holds(self, question: Question) -> bool:
        table, _, column = question.object.id.partition(".")
        if question.object.type is ObjectType.COLUMN:
            return table in self.whole or (table in self.partly and column == "2")
        whole = {Can.READ_DATA, Can.READ_COLUMNS}
        return (table in self.whole and question.relation in whole) or (
            table in self.partly and question.relation is Can.READ_COLUMNS
        )


def tables(count: int) -> list[UUID]:
    """Return the ids of `count` tables."""
    return [UUID(int=number + 1) for number in range(count)]


def door_fixture(
    judge: Reader, ids: Sequence[UUID], granted: dict[UUID, frozenset[int]], document: bytes = DOCUMENT
) -> DoorFixture:
    """Return a house with these tables and column grants."""
    made = DoorFixture(judge=judge)  # type: ignore[arg-type]  # the same port
    for id in ids:
        row = msgspec.structs.replace(world.table_row, id=id)
        made.resolver.rows[TabularRef(Table, world.WAREHOUSE_ID, id)] = row
        made.resolver.documents[id] = document
    made.resolver.granted = granted
    return made


async def answers(door_fixture: DoorFixture, ids: Sequence[UUID]) -> list[object]:
    """Return True for all columns, False for none, or the names."""
    checks = tuple(Check(TabularRef(Table, world.WAREHOUSE_ID, id), Can.READ_COLUMNS) for id in ids)
    permit = await door_fixture.door.admit(request_context(), BatchCheck(checks))
    result = await Checks(kit_of(door=door_fixture.door)).batch(permit)
    return [(True if each.columns is None else each.columns) if each.allowed else False for each in result.results]


async def test_a_column_check_returns_all_some_or_none() -> None:
    whole, partly, none = tables(3)
    judge = Reader(frozenset({str(whole)}), frozenset({str(partly)}))
    found = await answers(
        door_fixture(judge, [whole, partly, none], {partly: frozenset({1, 2})}), [whole, partly, none]
    )
    assert found == [True, ["c2"], False]


@pytest.mark.parametrize(
    ("granted", "document"),
    [({}, DOCUMENT), ({1: {9}}, DOCUMENT), ({1: {4}}, DOCUMENT), ({1: {2}}, b"{}"), ({1: {1}}, DOCUMENT)],
    ids=["tuple without a row", "no such column", "dropped", "unreadable schemas", "denied by OpenFGA"],
)
async def test_an_unknown_column_set_is_none_and_never_all(granted: dict[int, set[int]], document: bytes) -> None:
    [id] = tables(1)
    known = {UUID(int=table): frozenset(fields) for table, fields in granted.items()}
    assert await answers(door_fixture(Reader(partly=frozenset({str(id)})), [id], known, document), [id]) == [False]


async def test_a_policy_against_reading_also_forbids_reading_some_columns() -> None:
    [id] = tables(1)
    closed = door_fixture(Reader(partly=frozenset({str(id)})), [id], {id: frozenset({2})})
    permit = await closed.door.admit(
        request_context(), BatchCheck((Check(TabularRef(Table, world.WAREHOUSE_ID, id), Can.READ_COLUMNS),))
    )
    closed.rules.answer = world.DENIED
    result = await Checks(kit_of(door=closed.door)).batch(permit)
    assert [(each.allowed, each.columns) for each in result.results] == [(False, None)]


async def test_a_thousand_tables_need_as_many_calls_as_one() -> None:
    costs = []
    for count in (1, 1000):
        ids = tables(count)
        judge = Reader(partly=frozenset(str(id) for id in ids))
        made = door_fixture(judge, ids, {id: frozenset({2}) for id in ids})
        assert await answers(made, ids) == [["c2"]] * count
        costs.append((len(judge.calls), len(made.rules.calls), len(made.resolver.looked_for_columns)))
        assert judge.calls == [count] * 3, "expected three calls: tables, partly readable tables, granted columns"
    assert costs == [(3, 3, 1), (3, 3, 1)]


async def test_a_user_without_column_grants_costs_one_additional_statement() -> None:
    ids = tables(1000)
    judge = Reader()
    made = door_fixture(judge, ids, {})
    assert await answers(made, ids) == [False] * 1000
    assert (judge.calls, len(made.resolver.looked_for_columns)) == ([1000], 1)


async def test_a_single_check_is_true_for_some_columns() -> None:
    [id] = tables(1)
    for fields, expected in ((frozenset({2}), True), (frozenset({4}), False)):
        made = door_fixture(Reader(partly=frozenset({str(id)})), [id], {id: fields})
        permit = await made.door.admit(
            request_context(), CheckPermission(Check(TabularRef(Table, world.WAREHOUSE_ID, id), Can.READ_COLUMNS))
        )
        assert (await Checks(kit_of(door=made.door)).check(permit)).allowed is expected
