# SPDX-License-Identifier: Apache-2.0
"""Decisions whether an engine is trusted by its probes."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import uuid4

import msgspec
import pytest

from gateway.access.engine_probes import (
    CANARY_NAMESPACE,
    EngineProbes,
    ProbeState,
    Standing,
    counts,
    probe_states,
    standing_of,
    warned,
)
from gateway.access.nouns.resolved import FormerNames
from gateway.iceberg.identifiers import Namespace, TableIdentifier
from tests.support.door import world

NOW = world.NOW
LATER, EARLIER = NOW + timedelta(hours=1), NOW - timedelta(hours=1)
CANARY = "canary_0123456789abcdef"


@pytest.mark.parametrize(
    ("state", "standing", "end"),
    [
        (ProbeState(), None, None),
        (ProbeState(verdict="failed", warn_until=LATER), Standing.FAILED, None),
        (ProbeState(verdict="passed", valid_until=LATER), Standing.TRUSTED, LATER),
        (ProbeState(verdict="passed", valid_until=NOW + timedelta(minutes=29)), Standing.EXPIRING, None),
        (ProbeState(verdict="passed", valid_until=NOW), Standing.EXPIRED, NOW),
        (ProbeState(warn_until=LATER), Standing.WARNED, LATER),
        (ProbeState(verdict="passed", valid_until=EARLIER, warn_until=LATER), Standing.WARNED, LATER),
        (ProbeState(verdict="passed", valid_until=NOW, warn_until=EARLIER), Standing.EXPIRED, NOW),
        (
            ProbeState(verdict="passed", valid_until=NOW + timedelta(minutes=1), warn_until=LATER),
            Standing.TRUSTED,
            LATER,
        ),
    ],
)
def test_trust_is_expiring_before_it_ends_and_a_failure_never_expires(
    state: ProbeState, standing: Standing | None, end: datetime | None
) -> None:
    found, until = standing_of(state, NOW, required=True, soon=timedelta(minutes=30))
    assert found is standing
    assert until == (state.valid_until if standing is Standing.EXPIRING else end)
    if standing is not Standing.FAILED:
        assert standing_of(state, NOW, required=False, soon=timedelta(minutes=30)) == (Standing.TRUSTED, None)


@pytest.mark.parametrize(
    ("state", "required", "optional"),
    [
        (None, False, True),
        (ProbeState(), False, True),
        (ProbeState(canary=CANARY, open_until=LATER), False, True),
        (ProbeState(verdict="passed", valid_until=LATER), True, True),
        (ProbeState(verdict="passed", valid_until=NOW), False, True),
        (ProbeState(verdict="passed", valid_until=EARLIER), False, True),
        (ProbeState(verdict="passed"), False, True),
        (ProbeState(verdict="failed", valid_until=LATER), False, False),
        (ProbeState(verdict="failed", warn_until=LATER), False, False),
        (ProbeState(verdict="unheard of", valid_until=LATER, warn_until=LATER), False, False),
        (ProbeState(warn_until=LATER), True, True),
        (ProbeState(warn_until=NOW), False, True),
        (ProbeState(verdict="passed", valid_until=EARLIER, warn_until=LATER), True, True),
    ],
)
def test_engine_counts_only_after_a_recent_passed_probe(
    state: ProbeState | None, required: bool, optional: bool
) -> None:
    assert counts(state, NOW, required=True) is required
    assert counts(state, NOW, required=False) is optional


def test_only_an_engine_without_recent_result_is_warned() -> None:
    assert warned(ProbeState(warn_until=LATER), NOW)
    assert warned(ProbeState(verdict="passed", valid_until=EARLIER, warn_until=LATER), NOW)
    assert not warned(ProbeState(verdict="passed", valid_until=LATER, warn_until=LATER), NOW)
    assert not warned(ProbeState(verdict="failed", warn_until=LATER), NOW)
    assert not warned(ProbeState(warn_until=EARLIER), NOW)
    assert not warned(None, NOW)


def test_canary_of_an_open_probe_is_created_under_its_name_and_only_until_it_ends() -> None:
    table = world.table_row
    named = TableIdentifier(Namespace((CANARY_NAMESPACE,)), CANARY)
    within = msgspec.structs.replace(table.namespace, namespace=named.namespace)
    canary = msgspec.structs.replace(table, identifier=named, namespace=within, location=f"s3://lake/{table.id}")
    other = msgspec.structs.replace(canary, identifier=TableIdentifier(named.namespace, f"{CANARY}0"))
    elsewhere = msgspec.structs.replace(canary, identifier=TableIdentifier(Namespace(("x", CANARY_NAMESPACE)), CANARY))
    renamed = msgspec.structs.replace(canary, former=FormerNames(names=(("people", "salaries"),)))
    often_renamed = msgspec.structs.replace(canary, former=FormerNames(complete=False))
    registered = msgspec.structs.replace(canary, location=f"s3://lake/{uuid4()}")
    for verdict in (None, "failed"):
        opened = ProbeState(verdict=verdict, canary=CANARY, open_until=LATER)
        probes = EngineProbes(by_warehouse={table.warehouse.id: opened})
        assert probes.is_canary(canary, NOW)
        for each in (table, other, elsewhere, renamed, often_renamed, registered):
            assert not probes.is_canary(each, NOW), each
        assert not probes.is_canary(canary, LATER)
    closed = EngineProbes(by_warehouse={table.warehouse.id: ProbeState(open_until=LATER)})
    assert not closed.is_canary(canary, NOW)


def test_passed_probe_counts_in_its_own_warehouse_only() -> None:
    table = world.table_row
    passed = ProbeState(verdict="passed", valid_until=LATER)
    assert EngineProbes(by_warehouse={table.warehouse.id: passed}).trusts_on(table, NOW)
    assert not EngineProbes(by_warehouse={uuid4(): passed}).trusts_on(table, NOW)


def test_default_is_no_trust() -> None:
    assert not EngineProbes().trusts_on(world.table_row, NOW)


def test_states_are_read_with_absent_times() -> None:
    warehouse = uuid4()
    recorded = [[str(warehouse), "passed", "2026-01-01T00:00:00+00:00", None, None, None]]
    [(id, state)] = probe_states(recorded).items()
    assert (id, state.verdict, state.warn_until, state.canary) == (warehouse, "passed", None, None)
    assert state.valid_until is not None and state.valid_until.tzinfo is not None
    assert probe_states(None) == {}
