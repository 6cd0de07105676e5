# SPDX-License-Identifier: Apache-2.0
"""Alerts about data policies that could not be applied as written."""

from __future__ import annotations

from gateway.access.door.engines import Engines
from gateway.access.restrictions.data_restrictions import DataRestrictions
from gateway.db.policies.policy_alerts import PolicyAlerts
from gateway.obligations.binding import PolicyProblem
from gateway.obligations.data_policies import (
    AnyOf,
    Attribute,
    AttributeSource,
    ColumnReference,
    InTest,
    NullTest,
    RowFilter,
)
from lakegate.restrictions.predicates import NEVER
from tests.support.door import world
from tests.support.door.data_restrictions import LOAD, TRUSTED, People, by_engine, fixture, policy
from tests.support.door.policy_rows import Rows
from tests.support.door.world import request_context

ONE, TWO = PolicyProblem("p", "t", "one"), PolicyProblem("p", "t", "two")


async def test_a_problem_is_recorded_once_and_again_after_the_quiet_time() -> None:
    rows, counts, now = Rows(), list[int](), [0.0]
    alerts = PolicyAlerts(rows, counts.append, clock=lambda: now[0])  # type: ignore[arg-type]  # the method that is used
    for _ in range(3):
        alerts.note([ONE])
    alerts.note([ONE, TWO])
    await alerts.flush()
    now[0] = 301.0
    alerts.note([ONE])
    await alerts.flush()
    recorded = [problem for each in rows.written for problem in each["problems"]]
    assert recorded == ["one", "two", "one"]
    assert counts == [1, 1, 1]


async def test_a_problem_is_recorded_again_after_an_outage() -> None:
    rows = Rows()
    rows.down = True
    alerts = PolicyAlerts(rows, lambda _: None)  # type: ignore[arg-type]  # the method that is used
    alerts.note([ONE])
    await alerts.flush()
    rows.down = False
    alerts.note([ONE])
    await alerts.flush()
    assert [each["problems"] for each in rows.written] == [["one"]]


async def test_a_decision_reports_the_policy_that_hides_everything() -> None:
    house = fixture(People(engine_has=TRUSTED), policy("p", RowFilter(NullTest(ColumnReference(name="absent")))))
    context = request_context(by_engine())
    permit = await house.door.admit(context, LOAD)
    seen: list[PolicyProblem] = []
    engines = Engines(house.judge, house.rules, house.watcher)
    data = DataRestrictions(house.resolver, engines, seen.extend)
    row = permit.table(world.TABLE)
    found = await data.verdicts(context.actor, [row], permit.resolution, ())
    restrictions = found[row.id].restrictions
    assert restrictions is not None
    assert restrictions.row_filter == NEVER
    assert [(each.policy_id, each.table_id) for each in seen] == [("p", str(world.TABLE_ID))]
    house.resolver.documents[world.TABLE_ID] = b"{}"
    found = await data.verdicts(context.actor, [row], permit.resolution, ())
    assert found[row.id].inexpressible
    assert len(seen) == 2


async def test_a_decision_reports_a_claim_that_no_provider_keeps() -> None:
    def among(claim: str) -> InTest:
        return InTest(ColumnReference(name="region"), Attribute(AttributeSource.CLAIM, claim))

    house = fixture(People(engine_has=TRUSTED), policy("p", RowFilter(AnyOf((among("team"), among("site"))))))
    context = request_context(by_engine())
    permit = await house.door.admit(context, LOAD)
    row, engines = permit.table(world.TABLE), Engines(house.judge, house.rules, house.watcher)
    reported: dict[frozenset[str] | None, list[str]] = {}
    for kept in (None, frozenset({"team", "site"}), frozenset({"site"})):
        seen: list[PolicyProblem] = []
        data = DataRestrictions(house.resolver, engines, seen.extend, kept)
        await data.verdicts(context.actor, [row], permit.resolution, ())
        reported[kept] = [each.problem for each in seen]
    assert reported[None] == reported[frozenset({"team", "site"})] == []
    [problem] = reported[frozenset({"site"})]
    assert "'team'" in problem
    assert "POLICY_CLAIMS" in problem
