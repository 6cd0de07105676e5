# SPDX-License-Identifier: Apache-2.0
"""Decisions about restricted tables: an engine with `enforcer` also needs its probe."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gateway.access.engine_probes import EngineProbes, ProbeState
from gateway.iceberg.errors import ForbiddenException
from tests.support.door import world
from tests.support.door.column_restrictions import LOAD, SIGN, VEND, Restricted, by_engine, door_fixture
from tests.support.door.world import request_context

LATER = world.NOW + timedelta(days=1)
WAREHOUSE = world.warehouse_row.id


@pytest.mark.parametrize(
    "probes",
    [
        EngineProbes(),
        EngineProbes(by_warehouse={WAREHOUSE: ProbeState(verdict="passed", valid_until=world.NOW)}),
        EngineProbes(by_warehouse={WAREHOUSE: ProbeState(verdict="failed", valid_until=LATER, warn_until=LATER)}),
        EngineProbes(required=False, by_warehouse={WAREHOUSE: ProbeState(verdict="failed")}),
        EngineProbes(by_warehouse={WAREHOUSE: ProbeState(canary="canary_0", open_until=LATER)}),
    ],
)
async def test_enforcer_without_a_probe_that_counts_gets_nothing(probes: EngineProbes) -> None:
    fixture = door_fixture(Restricted())
    fixture.resolver.probes = probes
    for operation in (LOAD, VEND, SIGN):
        with pytest.raises(ForbiddenException):
            await fixture.door.admit(request_context(by_engine()), operation)


async def test_enforcer_with_a_recent_passed_probe_gets_the_restricted_table() -> None:
    fixture = door_fixture(Restricted())
    fixture.resolver.probes = EngineProbes(by_warehouse={WAREHOUSE: ProbeState(verdict="passed", valid_until=LATER)})
    permit = await fixture.door.admit(request_context(by_engine()), LOAD)
    assert permit.restriction(world.TABLE) is not None


async def test_passed_probe_does_not_replace_the_privilege() -> None:
    fixture = door_fixture(Restricted(engine_has=frozenset()))
    fixture.resolver.probes = EngineProbes(by_warehouse={WAREHOUSE: ProbeState(verdict="passed", valid_until=LATER)})
    with pytest.raises(Exception, match="oes not exist|not allowed"):
        await fixture.door.admit(request_context(by_engine()), LOAD)


async def test_probe_that_fails_before_the_credentials_are_minted_ends_the_decision() -> None:
    fixture = door_fixture(Restricted())
    permit = await fixture.door.admit(request_context(by_engine()), VEND)
    fixture.resolver.probes = EngineProbes(required=False, by_warehouse={WAREHOUSE: ProbeState(verdict="failed")})
    with pytest.raises(ForbiddenException):
        await permit.revalidate()
