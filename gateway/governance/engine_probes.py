# SPDX-License-Identifier: Apache-2.0
"""Probe engines: open a probe with random values, compare what the engine showed, and list the results.

The gateway cannot send queries to engines. `lakegate engine probe` creates the canary, has the engine read it, and
posts the output. The principal that opened a probe posts its result: it states what it saw, and the audit names it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final
from uuid import UUID, uuid4

import msgspec
import structlog

from gateway.access.engine_probes import CANARY_NAMESPACE, FAILED, PASSED, ProbeState, counts, warned
from gateway.access.operations.engine_probes import CreateEngineProbe, ListEngineProbes, RecordEngineProbe
from gateway.access.permit import Permit
from gateway.db import engine_probes
from gateway.db.engine import Database
from gateway.db.rows import AnyRow
from gateway.governance.errors import EngineProbeNotOpen, OwnProbeForbidden
from gateway.governance.probe_challenges import Challenge, judge, new_rows
from gateway.protocol.engine_probes import EngineProbe, EngineProbeChallenge, EngineProbeList

_log = structlog.get_logger("governance.engine_probes")

OPEN_TIME: Final = timedelta(minutes=15)
"""The time in which the result of a probe must be posted."""


class EngineProbes:
    """Use cases of `/engine-probe`.

    A passed probe counts for `valid_days`. With `required`, engines without one are not trusted. `count` receives each
    verdict, for metrics.
    """

    def __init__(self, *, database: Database, count: Callable[[str], None], valid_days: float, required: bool) -> None:
        self._database = database
        self._count = count
        self._valid_days = valid_days
        self._required = required

    async def list(self, permit: Permit[ListEngineProbes]) -> EngineProbeList:
        """Return the engines that have a result, an open probe or a warning in the warehouse."""
        async with self._database.read() as connection:
            rows = await engine_probes.in_warehouse(connection, permit.operation.warehouse.warehouse_id)
        return EngineProbeList(engine_probes=[self._answer(row) for row in rows])

    async def create(self, permit: Permit[CreateEngineProbe]) -> EngineProbeChallenge:
        """Open a probe and return its values. Raises OwnProbeForbidden if an engine probes itself."""
        request, warehouse_id = permit.operation.request, permit.operation.warehouse.warehouse_id
        _require_other(permit.actor.id, request.engine)
        id = uuid4()
        async with self._database.change(permit) as connection:
            challenge = Challenge(
                id=id,
                # The number makes the name of the canary impossible to guess: no other table can be read by it.
                table=f"canary_{uuid4().hex}",
                rows=new_rows(),
                created_by=permit.actor.id,
                expires_at=await engine_probes.now(connection) + OPEN_TIME,
            )
            permit.pending_audit.add_details(engine=request.engine, probe=str(id), restriction=request.restriction)
            await engine_probes.open_probe(
                connection, request.engine, warehouse_id, msgspec.to_builtins(challenge, str_keys=True)
            )
        return _opened(permit, challenge)

    async def repeat_create(self, permit: Permit[CreateEngineProbe]) -> EngineProbeChallenge:
        """Return the probe that an earlier request with the same idempotency key opened.

        Raises EngineProbeNotOpen if the probe of this engine is finished, expired or of another principal.
        """
        engine, warehouse_id = permit.operation.request.engine, permit.operation.warehouse.warehouse_id
        async with self._database.read() as connection:
            rows = await engine_probes.in_warehouse(connection, warehouse_id)
        challenge = _open(next((row for row in rows if row.engine == engine), None))
        if challenge.created_by != permit.actor.id:
            raise _not_open()
        await _repeated(permit)
        return _opened(permit, challenge)

    async def record(self, permit: Permit[RecordEngineProbe]) -> EngineProbe:
        """Store the verdict on the output of the engine, and return the new state of the engine.

        Raises EngineProbeNotOpen for a probe that is finished, replaced, expired or unknown, and OwnProbeForbidden for
        a caller that did not open it.
        """
        operation, warehouse_id = permit.operation, permit.operation.warehouse.warehouse_id
        async with self._database.change(permit) as connection:
            row = await engine_probes.lock(connection, warehouse_id, operation.probe_id)
            challenge = _open(row)
            engine: str = "" if row is None else row.engine
            _require_other(permit.actor.id, engine)
            if challenge.created_by != permit.actor.id:
                raise OwnProbeForbidden(
                    "Another principal opened this probe. Only that principal can post its result; open a probe of "
                    "your own with POST /management/v1/warehouse/<id>/engine-probe."
                )
            result = judge(challenge.rows, operation.request.output)
            verdict = PASSED if result.passed else FAILED
            permit.pending_audit.add_details(
                engine=engine, probe=str(operation.probe_id), verdict=verdict, reason=result.reason
            )
            await engine_probes.close(
                connection,
                engine,
                warehouse_id,
                operation.probe_id,
                verdict=verdict,
                detail=result.reason,
                valid_days=self._valid_days,
            )
            rows = await engine_probes.in_warehouse(connection, warehouse_id)
        if not result.passed:
            # In a transaction of its own: the change itself is decided again if a revision changes before it commits.
            async with self._database.transaction() as connection:
                await engine_probes.change_revision(connection, warehouse_id)
        self._count(verdict)
        _announce(engine, warehouse_id, verdict, result.reason)
        return next(self._answer(each) for each in rows if each.engine == engine)

    async def repeat_record(self, permit: Permit[RecordEngineProbe]) -> EngineProbe:
        """Return the state after an earlier request with the same idempotency key. Raises EngineProbeNotOpen."""
        operation = permit.operation
        async with self._database.read() as connection:
            rows = await engine_probes.in_warehouse(connection, operation.warehouse.warehouse_id)
        for row in rows:
            if row.challenge is not None and row.challenge["id"] == str(operation.probe_id):
                await _repeated(permit)
                return self._answer(row)
        raise _not_open()

    def _answer(self, row: AnyRow) -> EngineProbe:
        state = ProbeState(verdict=row.verdict, valid_until=row.valid_until, warn_until=row.warn_until)
        challenge = _challenge(row)
        open_until = None if challenge is None else challenge.expires_at
        return EngineProbe(
            engine=row.engine,
            warehouse_id=row.warehouse_id,
            trusted=counts(state, row.now, required=self._required),
            warned=warned(state, row.now),
            verdict=row.verdict,
            detail=row.detail,
            probed_at=row.probed_at,
            valid_until=row.valid_until,
            warn_until=row.warn_until,
            open_until=open_until if open_until is not None and row.now < open_until else None,
        )


async def _repeated(permit: Permit[CreateEngineProbe] | Permit[RecordEngineProbe]) -> None:
    permit.pending_audit.add_details(repeated="true")
    await permit.pending_audit.commit()


def _opened(permit: Permit[CreateEngineProbe], challenge: Challenge) -> EngineProbeChallenge:
    request = permit.operation.request
    return EngineProbeChallenge(
        id=challenge.id,
        engine=request.engine,
        warehouse_id=permit.operation.warehouse.warehouse_id,
        restriction=request.restriction,
        namespace=[CANARY_NAMESPACE],
        table=challenge.table,
        rows=list(challenge.rows),
        expires_at=challenge.expires_at,
    )


def _challenge(row: AnyRow) -> Challenge | None:
    """Return the challenge in a row; None if the last probe is finished, which keeps only its id."""
    finished = row.challenge is None or "table" not in row.challenge
    return None if finished else msgspec.convert(row.challenge, Challenge)


def _open(row: AnyRow | None) -> Challenge:
    """Return the challenge of an open probe. Raises EngineProbeNotOpen."""
    challenge = None if row is None else _challenge(row)
    if row is None or challenge is None or row.now >= challenge.expires_at:
        raise _not_open()
    return challenge


def _not_open() -> EngineProbeNotOpen:
    return EngineProbeNotOpen(
        "The probe is not open: it is finished, expired or replaced by a later one. Open a new one with POST "
        "/management/v1/warehouse/<id>/engine-probe."
    )


def _require_other(caller: str, engine: str) -> None:
    if caller == engine:
        raise OwnProbeForbidden(
            "An engine cannot probe itself. Another principal that may grant `enforcer` on the warehouse has to do it."
        )


def _announce(engine: str, warehouse_id: UUID, verdict: str, reason: str) -> None:
    """Log the result: a failure as an error, because the engine loses the trust of the warehouse at once."""
    if verdict == FAILED:
        _log.error("engine_probe.failed", engine=engine, warehouse=str(warehouse_id), reason=reason)
    else:
        _log.info("engine_probe.passed", engine=engine, warehouse=str(warehouse_id))
