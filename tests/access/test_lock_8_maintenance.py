# SPDX-License-Identifier: Apache-2.0
"""Lock 8: every operation declares if it changes data, and the door refuses changes in read-only maintenance.

The walk covers all operations, including new ones. An operation without the declaration fails at class creation.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gateway.access.actor import Actor
from gateway.access.door.request_context import RequestContext
from gateway.access.nouns.relations import Can
from gateway.access.operation import (
    OPERATIONS,
    UNROUTED,
    Audience,
    ChangeOperation,
    HttpOperation,
    PublicAudience,
    QuestionOperation,
    ReadOperation,
    SystemTask,
    VendingOperation,
)
from gateway.access.operations.credentials import VendCredentials
from gateway.access.operations.tasks import PurgeTable, RepairDrift
from gateway.api.serves import SERVED
from gateway.db.engine.database import Database
from gateway.iceberg.errors import CatalogError
from tests.support.door import world
from tests.support.door.app import running
from tests.support.door.examples import EXAMPLES
from tests.support.door.use_cases import EXTRAS, ORDERED, WITHOUT_USE_CASE
from tests.support.door.world import DoorFixture

_WRITES = (Can.WRITE_DATA,)


def _closed() -> DoorFixture:
    """Return a house in read-only maintenance."""
    return DoorFixture(read_only=True)


@pytest.fixture
def fresh(registers: None) -> Iterator[None]:
    """Restore the registers after the test."""
    yield


async def test_maintenance_refuses_every_change_and_allows_everything_else() -> None:
    door_fixture = _closed()
    async with running(door_fixture) as app:
        for example in EXAMPLES:
            app.spy.calls.clear()
            operation = type(example.operation)
            answer = await app.send(example)
            if not operation.pauses():
                name = operation.__name__
                expected = [] if name in WITHOUT_USE_CASE else ORDERED.get(name, [name])
                assert app.spy.calls == expected or name in EXTRAS, example
                continue
            if getattr(operation, "refused_for_good", ""):
                assert (answer.status_code, "retry-after" in answer.headers) == (400, False), example
                assert (answer.json()["error"]["type"], app.spy.calls) == ("MaintenanceMode", []), example
                continue
            mutating = any(each.is_catalog_mutation() for each in SERVED[operation].opt["operations"])
            assert answer.status_code == (429 if mutating else 503), example
            assert int(answer.headers["retry-after"]) > 0
            if operation.is_provisioning():
                assert "read-only maintenance" in answer.json()["detail"], example
            elif example.method != "HEAD":
                error = answer.json()["error"]
                assert (error["type"], "read-only maintenance" in error["message"]) == ("MaintenanceMode", True)
            assert app.spy.calls == [], example
    requested = {decision.operation for record in door_fixture.audit.buffered for decision in record.decisions}
    changing = {operation.name() for operation in OPERATIONS.values() if operation.pauses()}
    assert requested.isdisjoint(changing), "maintenance must refuse changes without a check"


async def test_maintenance_is_not_disclosed_without_a_token() -> None:
    changing = next(example for example in EXAMPLES if example.operation.changes())
    async with running(_closed()) as app:
        assert (await app.send(changing, subject=None)).status_code == 401


def test_only_metrics_reports_are_refused_without_a_retry_time() -> None:
    assert {name for name, operation in OPERATIONS.items() if getattr(operation, "refused_for_good", "")} == {
        "ReportMetrics"
    }


async def test_maintenance_does_not_claim_an_idempotency_key() -> None:
    keyed = next(example for example in EXAMPLES if type(example.operation).__name__ == "DropTable")
    async with running(_closed()) as app:
        answer = await app.send(keyed, **{"idempotency-key": "6f2a9d0e-0000-4000-8000-000000000001"})
        assert (answer.status_code, app.spy.calls) == (429, [])


async def test_maintenance_does_not_check_the_optional_write_demand() -> None:
    vend = next(example.operation for example in EXAMPLES if isinstance(example.operation, VendCredentials))
    open_fixture, closed = DoorFixture(), _closed()
    entered = RequestContext(actor=world.ALICE, request_id="r")
    assert (await open_fixture.door.admit(entered, vend)).holds(Can.WRITE_DATA, vend.table)
    permit = await closed.door.admit(RequestContext(actor=world.ALICE, request_id="r"), vend)
    assert permit.holds(Can.READ_DATA, vend.table)
    assert not permit.holds(Can.WRITE_DATA, vend.table)


def test_optional_write_demands_of_reads_are_marked_as_changes() -> None:
    for example in EXAMPLES:
        if example.operation.changes():
            continue
        for demand in example.operation.demands():
            writes = any(relation in _WRITES for relation in demand.relations)
            assert demand.changes or not writes or demand.required, example
            assert not (demand.changes and demand.required), (
                "a required demand is checked in maintenance too, so it cannot be marked as a change"
            )


async def test_maintenance_pauses_changing_tasks_and_still_repairs_drift() -> None:
    purge = PurgeTable(world.WAREHOUSE, world.WAREHOUSE.warehouse_id, "s3://bucket/t")
    with pytest.raises(CatalogError, match="read-only maintenance"):
        await _closed().door.admit(RequestContext(actor=Actor.system("tabular_purge"), request_id="r"), purge)
    repair = RepairDrift(tuples=("user:x select table:y",), kinds=("unwanted",))
    await _closed().door.admit(RequestContext(actor=Actor.system("watch_drift"), request_id="r"), repair)
    continuing = {
        operation.__name__
        for operation in UNROUTED.values()
        if issubclass(operation, SystemTask) and operation.changes() and operation.continue_reason
    }
    good = {"ChangeEncryptionKey", "MoveSecret", "RepairDrift", "RevokeScimToken", "WithdrawSigningKeys"}
    assert continuing == good, "expected exactly these tasks to continue in maintenance"


@pytest.mark.parametrize(
    ("base", "method"),
    [
        (ReadOperation, "POST"),
        (ReadOperation, "DELETE"),
        (QuestionOperation, "GET"),
        (ChangeOperation, "GET"),
        (ChangeOperation, "HEAD"),
        (VendingOperation, "PUT"),
    ],
)
def test_an_operation_kind_has_only_its_own_methods(fresh: None, base: type[HttpOperation], method: str) -> None:
    """Maintenance admits an operation by its kind, so no subclass may override that decision."""
    with pytest.raises(TypeError, match=f"Odd is a {base.__name__} and cannot have the method {method}"):
        type(
            "Odd", (base,), {"endpoint": f"{method} /odd", "open_to": PublicAudience(Audience.AUTHENTICATED, "why not")}
        )
    assert "Odd" not in OPERATIONS


async def test_the_database_refuses_a_change_under_a_read_permit() -> None:
    vend = next(example.operation for example in EXAMPLES if isinstance(example.operation, VendCredentials))
    permit = await DoorFixture().door.admit(RequestContext(actor=world.ALICE, request_id="r"), vend)
    database = Database("postgresql+asyncpg://nobody@127.0.0.1:1/none", pool_size=1, acquire_timeout=1)
    with pytest.raises(TypeError, match="is declared to change nothing"):
        async with database.change(permit):
            pass


async def test_maintenance_serves_a_first_time_user_without_registration() -> None:
    config = next(example for example in EXAMPLES if type(example.operation).__name__ == "GetConfig")
    async with running(_closed()) as app:
        await app.send(config, subject="a-stranger")
        assert app.spy.calls == ["GetConfig"]
