# SPDX-License-Identifier: Apache-2.0
"""Use cases of the canary, which tests that vended credentials stay in their scope: read its last verdict, or run it
now.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

import msgspec

from gateway.access.door.permit import Permit
from gateway.access.nouns.authz_errors import not_found
from gateway.access.nouns.refs import WarehouseRef
from gateway.access.operations.warehouse_bodies import ScopeFinding, ScopeReportAnswer
from gateway.access.operations.warehouses import GetScopeReport, RunScopeCanary
from gateway.db.credentials import scope_verdicts
from gateway.db.engine.database import Connection
from gateway.features.credentials.storage_validation import ValidationReport
from gateway.features.kit import Kit, UseCases
from gateway.vending.canary import run_canary
from gateway.vending.scope_verdict import Finding, ScopeReport, Verdict, announce

__all__ = ["FIRST_VERSION", "CredentialScope", "record_scope"]

FIRST_VERSION: Final = 1
"""The profile version of a new warehouse (`gateway/db/schema/warehouses.py`)."""
_SHARE: Final = 8 / 15


class CredentialScope(UseCases):
    """Return and renew the verdict of the canary on a warehouse's store.

    `request_seconds` is the request timeout; a run and its cleanup end before it. `keep` is the time for which a
    conclusive verdict stays valid while later runs are inconclusive.
    """

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._storage = kit.storage
        self._clients = kit.clients
        self._seconds = kit.request_seconds * _SHARE
        self._keep = kit.canary_keep

    async def report(self, permit: Permit[GetScopeReport]) -> ScopeReportAnswer:
        """Return the verdict on the current storage profile, and the result of the last run."""
        return await self._answer(permit.operation.warehouse)

    async def run(self, permit: Permit[RunScopeCanary]) -> ScopeReportAnswer:
        """Run the canary, store its result, and return it as `report` does.

        Nothing is stored if the storage profile is replaced during the run.
        """
        warehouse = permit.warehouse(permit.operation.warehouse)
        async with self._database.transaction() as connection:
            claimed = await scope_verdicts.claim(connection, warehouse.id)
        report = await run_canary(
            warehouse.storage_profile,
            await self._storage.of(warehouse),
            self._clients,
            seconds=self._seconds,
        )
        announce(str(warehouse.id), report)
        async with self._database.change(permit) as connection:
            permit.pending_audit.add_details(
                verdict=report.verdict, attempts=str(report.attempts), escapes=str(len(report.findings))
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
        return await self._answer(permit.operation.warehouse)

    async def _answer(self, ref: WarehouseRef) -> ScopeReportAnswer:
        async with self._database.read() as connection:
            row = await scope_verdicts.stored(connection, ref.warehouse_id)
        if row is None:
            raise not_found(ref)
        run = None if row.report is None else msgspec.json.decode(row.report, type=ScopeReport)
        # The result of a run for an earlier version of the profile says nothing about the current version.
        if row.version != row.profile_version:
            run = None
        return ScopeReportAnswer(
            warehouse_id=ref.warehouse_id,
            verdict=row.verdict or Verdict.INCONCLUSIVE,
            verdict_at=row.verdict_at,
            last_run_at=row.tried_at,
            last_run_verdict=None if run is None else run.verdict,
            attempts=0 if run is None else run.attempts,
            findings=[] if run is None else [_finding(each) for each in run.findings],
            unclear=[] if run is None else [_finding(each) for each in run.unclear],
            reason=run.reason if run is not None else "the canary has not run for the current storage profile",
        )


async def record_scope(
    connection: Connection, warehouse_id: UUID, tried: ValidationReport, *, profile_version: int
) -> None:
    """Store the canary's result of a validation of this profile version, if the validation has one."""
    if tried.scope is not None:
        await scope_verdicts.record(
            connection,
            warehouse_id,
            verdict=tried.scope.verdict,
            report=msgspec.json.encode(tried.scope),
            profile_version=profile_version,
        )


def _finding(found: Finding) -> ScopeFinding:
    return ScopeFinding(level=found.level, attempt=found.attempt, place=found.place, text=found.text)
