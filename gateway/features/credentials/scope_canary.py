# SPDX-License-Identifier: Apache-2.0
"""Run the canary on the store of each warehouse: periodically, and for `lakegate verify-scope`.

The canary tests that vended credentials stay in their scope. Every process looks for due warehouses. A claim in the
warehouse's row lets one process run each of them, and a process runs one at a time. If it ends during a run, the
warehouse is due again after the retry time.
"""

from __future__ import annotations

import asyncio
import random
from datetime import timedelta
from typing import Final, Protocol
from uuid import UUID

import msgspec
import structlog
from uuid_utils.compat import uuid7

from gateway.access.dependency_errors import CommitUnknown, DatabaseUnavailable
from gateway.access.door.door import Door
from gateway.access.nouns.refs import WarehouseRef
from gateway.access.nouns.resolved import ResolvedWarehouse
from gateway.access.operations.tasks import VerifyCredentialScope
from gateway.db.credentials import scope_verdicts
from gateway.db.credentials.credentials import StorageCredentials
from gateway.db.credentials.scope_verdicts import Claimed, Counts
from gateway.db.engine.database import Connection, Database
from gateway.features.kit import admitted
from gateway.iceberg.errors import CatalogError
from gateway.storage.provider import StorageClients
from gateway.vending.canary import run_canary
from gateway.vending.scope_verdict import ScopeReport, Verdict, announce

__all__ = ["NoSuchWarehouse", "ScopeCanary", "ScopeEscaped", "ScopeObserver", "require_no_escape"]

_log = structlog.get_logger("tasks.canary")

TASK: Final = "verify_credential_scope"
_LONGEST_PAUSE: Final = 60.0
"""The longest mean pause in seconds between two searches for due warehouses."""


class ScopeEscaped(Exception):
    """The store of at least one active warehouse lets credentials leave their scope."""


class NoSuchWarehouse(Exception):
    """No warehouse has this id or name, or several projects have one with this name."""


class ScopeObserver(Protocol):
    """Receiver of the verdicts and attempts, for metrics."""

    def scope_counted(self, by_verdict: dict[str, int], oldest: float) -> None:
        """Record the number of active warehouses by verdict, and the time of the oldest verdict (seconds since 1970; 0:
        none).
        """
        ...

    def scope_tried(self, *, refused: int, reached: int, unclear: int) -> None:
        """Record the number of attempts of one run by result."""
        ...


class ScopeCanary:
    """The canary of one process.

    `every` is the time between two runs for a warehouse, `retry` the time after an inconclusive one, `keep` the time
    for which a conclusive verdict stays valid while later runs are inconclusive. `seconds` is the time limit of a run.
    """

    def __init__(
        self,
        *,
        database: Database,
        door: Door,
        storage: StorageCredentials,
        clients: StorageClients,
        observer: ScopeObserver,
        every: timedelta,
        retry: timedelta,
        keep: timedelta,
        seconds: float = 60.0,
    ) -> None:
        self._database = database
        self._door = door
        self._storage = storage
        self._clients = clients
        self._observer = observer
        self._every = every
        self._retry = retry
        self._keep = keep
        self._seconds = seconds

    async def run(self) -> None:
        """Run until the process ends."""
        pause = min(_LONGEST_PAUSE, self._every.total_seconds() / 4, self._retry.total_seconds())
        while True:
            await asyncio.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - jitter, not a secret
            try:
                while await self.run_next():
                    pass
                await self.count()
            except (DatabaseUnavailable, CommitUnknown, CatalogError) as outage:
                _log.warning("canary.postponed", reason=str(outage))
            except Exception:
                # The loop must survive unexpected errors; they are logged with their traceback.
                _log.exception("canary.failed")

    async def run_next(self) -> bool:
        """Run the canary for the warehouse that has been due for the longest time. Return False if none is due."""
        async with self._database.transaction() as connection:
            claimed = await scope_verdicts.claim_due(connection, every=self._every, retry=self._retry)
        if claimed is None:
            return False
        try:
            await self._verify(claimed)
        except CatalogError as refused:
            # A refusal or an unreadable secret of one warehouse must not prevent the runs for the others.
            _log.warning("canary.skipped", warehouse=str(claimed.warehouse_id), reason=str(refused))
        return True

    async def verify(self, warehouse: str) -> tuple[ResolvedWarehouse, ScopeReport]:
        """Run the canary now for the warehouse with this id or name.

        Raises NoSuchWarehouse, and the errors of the door and of outages.
        """
        async with self._database.transaction() as connection:
            claimed = await scope_verdicts.claim(connection, await _warehouse_id(connection, warehouse))
        if claimed is None:
            raise NoSuchWarehouse(f"no warehouse has the id {warehouse}")
        return await self._verify(claimed)

    async def count(self) -> Counts:
        """Report the number of verdicts to the metrics, and return it."""
        async with self._database.read() as connection:
            counts = await scope_verdicts.count(connection)
        oldest = 0.0 if counts.oldest is None else counts.oldest.timestamp()
        self._observer.scope_counted(dict(counts.by_verdict), oldest)
        return counts

    async def _verify(self, claimed: Claimed) -> tuple[ResolvedWarehouse, ScopeReport]:
        operation = VerifyCredentialScope(WarehouseRef(claimed.warehouse_id))
        async with admitted(self._door, TASK, str(uuid7()), operation) as permit:
            warehouse = permit.warehouse(operation.warehouse)
            report = await run_canary(
                warehouse.storage_profile,
                await self._storage.of(warehouse),
                self._clients,
                seconds=self._seconds,
            )
            announce(str(warehouse.id), report)
            reached, unclear = len(report.findings), len(report.unclear)
            self._observer.scope_tried(refused=report.attempts - reached - unclear, reached=reached, unclear=unclear)
            async with self._database.change(permit) as connection:
                permit.pending_audit.add_details(
                    verdict=report.verdict, attempts=str(report.attempts), escapes=str(reached)
                )
                await scope_verdicts.record(
                    connection,
                    warehouse.id,
                    verdict=report.verdict,
                    report=msgspec.json.encode(report),
                    profile_version=warehouse.profile_version,
                    claimed=claimed,
                    keep_seconds=self._keep.total_seconds(),
                )
        return warehouse, report


async def _warehouse_id(connection: Connection, given: str) -> UUID:
    try:
        return UUID(given)
    except ValueError:
        found = await scope_verdicts.named(connection, given)
    if len(found) != 1:
        known = "no warehouse has" if not found else f"{len(found)} warehouses have"
        raise NoSuchWarehouse(f"{known} the name {given!r}; give the id of the warehouse")
    return found[0]


async def require_no_escape(database: Database) -> None:
    """Raise ScopeEscaped if the store of an active warehouse lets credentials leave their scope, for the health
    endpoint.
    """
    async with database.read() as connection:
        counts = await scope_verdicts.count(connection)
    number = counts.by_verdict.get(Verdict.ESCAPED, 0)
    if number:
        raise ScopeEscaped(f"the stores of {number} warehouses let vended credentials leave their scope")
