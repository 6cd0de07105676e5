# SPDX-License-Identifier: Apache-2.0
"""Probe engines: open a probe with random values, evaluate what the engine shows of them, and list the results.

A probe tests whether an engine enforces row filters, masks and withheld columns, on a canary table with these values.
It passes only by evidence that the gateway itself has collected. The gateway queries the engine at the address in its
settings, and the register of credentials shows that the engine received keys of the canary table. A principal can also
post the engine's output as a self-test. If that passes, the engine gains no trust, because the principal knows the
values.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from secrets import SystemRandom
from typing import Final
from uuid import UUID, uuid4

import msgspec
import structlog

from gateway.access.door.permit import Permit
from gateway.access.engine_probes import CANARY_NAMESPACE, FAILED, PASSED, ProbeState, counts, warned
from gateway.access.management_errors import (
    EngineAddressUnknown,
    EngineProbeNotOpen,
    EngineUnreachable,
    OwnProbeForbidden,
)
from gateway.access.operations.engine_probes import (
    CreateEngineProbe,
    EngineProbe,
    EngineProbeChallenge,
    EngineProbeList,
    ListEngineProbes,
    RecordEngineProbe,
    RunEngineProbe,
)
from gateway.db.engine.database import Connection
from gateway.db.grants import engine_probes
from gateway.db.grants.engine_probes import ProbeRow
from gateway.features.engines.probe_challenges import Challenge, LastProbe, ProbeResult, judge, judge_read, new_rows
from gateway.features.kit import Kit, UseCases
from gateway.verification.engine_reads import EngineAddress, EngineNotReached

_log = structlog.get_logger("governance.engine_probes")

OPEN_TIME: Final = timedelta(minutes=15)
"""The time in which a probe must be finished."""
_READS: Final = 2
"""The number of reads of a canary for each of the two test users."""
_SHARE: Final = 2 / 3
"""The part of the request timeout in which all reads must end, so that the caller learns which engine is too slow."""


class EngineProbes(UseCases):
    """Use cases of `/engine-probe`.

    A passed probe is valid for `valid_days`. `rules` define which engines need a passed probe to be trusted. `count`
    receives each verdict, for metrics. `request_seconds` is the request timeout.
    """

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._count = kit.count_probe
        self._valid_days = kit.probe_valid_days
        self._rules = kit.probe_rules
        self._engines = kit.engine_reads
        self._seconds = kit.request_seconds * _SHARE

    async def list(self, permit: Permit[ListEngineProbes]) -> EngineProbeList:
        """Return the engines of the warehouse that have a result, an open probe or a warning."""
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
                # The random number makes the name impossible to guess, so the engine can read no other table under this
                # name.
                table=f"canary_{uuid4().hex}",
                rows=new_rows(),
                created_by=permit.actor.id,
                expires_at=await engine_probes.now(connection) + OPEN_TIME,
            )
            permit.pending_audit.add_details(engine=request.engine, probe=str(id), restriction=request.restriction)
            await engine_probes.open_probe(
                connection, request.engine, warehouse_id, msgspec.to_builtins(challenge, str_keys=True)
            )
        return self._opened(permit, challenge)

    async def repeat_create(self, permit: Permit[CreateEngineProbe]) -> EngineProbeChallenge:
        """Return the probe that an earlier request with the same idempotency key opened.

        Raises EngineProbeNotOpen if the probe of this engine is finished or expired, or another principal opened it.
        """
        engine, warehouse_id = permit.operation.request.engine, permit.operation.warehouse.warehouse_id
        async with self._database.read() as connection:
            rows = await engine_probes.in_warehouse(connection, warehouse_id)
        challenge = _open(next((row for row in rows if row.engine == engine), None))
        if challenge.created_by != permit.actor.id:
            raise _not_open()
        await _repeated(permit)
        return self._opened(permit, challenge)

    async def run(self, permit: Permit[RunEngineProbe]) -> EngineProbe:
        """Read the canary table through the engine, store the verdict, and return the new state of the engine.

        Raises EngineProbeNotOpen, OwnProbeForbidden, EngineAddressUnknown, and EngineUnreachable.
        """
        operation, warehouse_id = permit.operation, permit.operation.warehouse.warehouse_id
        async with self._database.read() as connection:
            rows = await engine_probes.in_warehouse(connection, warehouse_id)
            row = next((each for each in rows if _has_probe(each, operation.probe_id)), None)
            challenge = _open(row)
            engine: str = "" if row is None else row.engine
            _require_opener(permit.actor.id, challenge, engine)
            if await engine_probes.granted_by(connection, engine, permit.actor.id):
                raise OwnProbeForbidden(
                    f"You granted {engine} `enforcer` or `delegate`, so you cannot prove that it deserves the trust. "
                    "Another principal that may grant `enforcer` on the warehouse has to probe it."
                )
        address = self._engines.address_of(engine, warehouse_id)
        if address is None:
            raise EngineAddressUnknown(
                f"The settings of the gateway have no address of {engine} for this warehouse. Its operator can set "
                "LAKEGATE__ENGINE_PROBES__ENGINES__<NAME>__URL, or trust the engine by "
                "LAKEGATE__ENGINE_PROBES__VOUCHED."
            )
        result = await self._read(address, challenge)
        async with self._database.change(permit) as connection:
            _open(await engine_probes.lock(connection, warehouse_id, operation.probe_id))
            since = challenge.expires_at - OPEN_TIME
            served = await engine_probes.was_served(
                connection, warehouse_id, challenge.table, engine, address.user.id, since
            )
            if result.passed and not served:
                result = ProbeResult(
                    False,
                    "The gateway gave no keys of the canary to the identity of this engine for the test user, so "
                    "another engine answered at the address.",
                )
            state = await self._close(connection, permit, engine, result)
        await self._settle(engine, warehouse_id, result)
        return state

    async def _read(self, address: EngineAddress, challenge: Challenge) -> ProbeResult:
        """Return the verdict on the rows that the engine shows its test users.

        The reads are in random order. Otherwise the canary table could be replaced between them unnoticed. Raises
        EngineUnreachable.
        """
        order = [False, True] * _READS
        SystemRandom().shuffle(order)
        outputs: dict[bool, list[str]] = {False: [], True: []}
        try:
            async with asyncio.timeout(self._seconds):
                for control in order:
                    outputs[control].append(
                        await self._engines.read(address, CANARY_NAMESPACE, challenge.table, control=control)
                    )
        except EngineNotReached as error:
            raise EngineUnreachable(f"{error}. Nothing was recorded; repeat the request.") from None
        except TimeoutError:
            raise EngineUnreachable(
                f"The engine at {address.url} did not finish {len(order)} reads within {self._seconds:g} seconds. "
                "Nothing was recorded. Repeat the request, or ask the operator for a longer "
                "LAKEGATE__MAX_REQUEST_TIME."
            ) from None
        return judge_read(challenge.rows, outputs[False], outputs[True])

    async def record(self, permit: Permit[RecordEngineProbe]) -> EngineProbe:
        """Evaluate the output of the engine that the caller posted, and return the state of the engine.

        If the output fails, the trust ends. If it passes, nothing changes, because the caller knows the values. Raises
        EngineProbeNotOpen for a probe that is finished, replaced, expired or unknown, and OwnProbeForbidden for a
        caller that did not open it.
        """
        operation, warehouse_id = permit.operation, permit.operation.warehouse.warehouse_id
        async with self._database.change(permit) as connection:
            row = await engine_probes.lock(connection, warehouse_id, operation.probe_id)
            challenge = _open(row)
            engine: str = "" if row is None else row.engine
            _require_opener(permit.actor.id, challenge, engine)
            result = judge(challenge.rows, operation.request.output)
            permit.pending_audit.add_details(self_test="true")
            state = await self._close(connection, permit, engine, result, self_test=True)
        if not result.passed:
            await self._settle(engine, warehouse_id, result)
        return msgspec.structs.replace(state, self_test=PASSED if result.passed else FAILED)

    async def _close(
        self,
        connection: Connection,
        permit: Permit[RunEngineProbe] | Permit[RecordEngineProbe],
        engine: str,
        result: ProbeResult,
        *,
        self_test: bool = False,
    ) -> EngineProbe:
        """Store the result of a probe. Return the state of the engine. The result of a passed self-test is not
        stored.
        """
        probe_id, warehouse_id = permit.operation.probe_id, permit.operation.warehouse.warehouse_id
        verdict = PASSED if result.passed else FAILED
        permit.pending_audit.add_details(engine=engine, probe=str(probe_id), verdict=verdict, reason=result.reason)
        if self_test and result.passed:
            await engine_probes.finish_self_test(connection, engine, warehouse_id, probe_id)
        else:
            await engine_probes.close(
                connection,
                engine,
                warehouse_id,
                probe_id,
                verdict=verdict,
                detail=result.reason,
                valid_days=self._valid_days,
            )
        rows = await engine_probes.in_warehouse(connection, warehouse_id)
        return next(self._answer(each) for each in rows if each.engine == engine)

    async def _settle(self, engine: str, warehouse_id: UUID, result: ProbeResult) -> None:
        """Announce the verdict. If the probe failed, change the warehouse's revision, so that running requests are
        decided again.
        """
        if not result.passed:
            # In a separate transaction: the change itself is decided again if a revision changes before it commits.
            async with self._database.transaction() as connection:
                await engine_probes.change_revision(connection, warehouse_id)
        verdict = PASSED if result.passed else FAILED
        self._count(verdict)
        _announce(engine, warehouse_id, verdict, result.reason)

    async def repeat_record(self, permit: Permit[RecordEngineProbe] | Permit[RunEngineProbe]) -> EngineProbe:
        """Return the state of the engine for a repeated idempotency key. Raises EngineProbeNotOpen."""
        operation = permit.operation
        async with self._database.read() as connection:
            rows = await engine_probes.in_warehouse(connection, operation.warehouse.warehouse_id)
        for row in rows:
            if _has_probe(row, operation.probe_id):
                await _repeated(permit)
                return self._answer(row)
        raise _not_open()

    def _answer(self, row: ProbeRow) -> EngineProbe:
        state = ProbeState(verdict=row.verdict, valid_until=row.valid_until, warn_until=row.warn_until)
        challenge = _challenge(row)
        open_until = None if challenge is None else challenge.expires_at
        return EngineProbe(
            engine=row.engine,
            warehouse_id=row.warehouse_id,
            trusted=counts(state, row.now, required=self._rules.require(row.engine)),
            warned=warned(state, row.now),
            verdict=row.verdict,
            detail=row.detail,
            probed_at=row.probed_at,
            valid_until=row.valid_until,
            warn_until=row.warn_until,
            open_until=open_until if open_until is not None and row.now < open_until else None,
        )

    def _opened(self, permit: Permit[CreateEngineProbe], challenge: Challenge) -> EngineProbeChallenge:
        request, warehouse_id = permit.operation.request, permit.operation.warehouse.warehouse_id
        address = self._engines.address_of(request.engine, warehouse_id)
        return EngineProbeChallenge(
            id=challenge.id,
            engine=request.engine,
            warehouse_id=warehouse_id,
            restriction=request.restriction,
            namespace=[CANARY_NAMESPACE],
            table=challenge.table,
            rows=list(challenge.rows),
            expires_at=challenge.expires_at,
            user=None if address is None else address.user.id,
            control=None if address is None else address.control.id,
        )


async def _repeated(
    permit: Permit[CreateEngineProbe] | Permit[RecordEngineProbe] | Permit[RunEngineProbe],
) -> None:
    permit.pending_audit.add_details(repeated="true")
    await permit.pending_audit.commit()


def _has_probe(row: ProbeRow, id: UUID) -> bool:
    return row.challenge is not None and msgspec.convert(row.challenge, LastProbe).id == id


def _challenge(row: ProbeRow) -> Challenge | None:
    """Return the challenge in a row; None if there is no unfinished probe. A finished probe keeps only its id."""
    finished = row.challenge is None or "table" not in row.challenge
    return None if finished else msgspec.convert(row.challenge, Challenge)


def _open(row: ProbeRow | None) -> Challenge:
    """Return the challenge of an open probe. Raises EngineProbeNotOpen if `row` has none or it is expired."""
    challenge = None if row is None else _challenge(row)
    if row is None or challenge is None or row.now >= challenge.expires_at:
        raise _not_open()
    return challenge


def _not_open() -> EngineProbeNotOpen:
    return EngineProbeNotOpen(
        "The probe is not open: it is finished, expired or replaced by a later one. Open a new one with POST "
        "/management/v1/warehouse/<id>/engine-probe."
    )


def _require_opener(caller: str, challenge: Challenge, engine: str) -> None:
    """Raise OwnProbeForbidden if the caller is the engine itself, or did not open the probe."""
    _require_other(caller, engine)
    if challenge.created_by != caller:
        raise OwnProbeForbidden(
            "Another principal opened this probe. Only that principal can finish it; open a probe of your own with "
            "POST /management/v1/warehouse/<id>/engine-probe."
        )


def _require_other(caller: str, engine: str) -> None:
    if caller == engine:
        raise OwnProbeForbidden(
            "An engine cannot probe itself. Another principal that may grant `enforcer` on the warehouse has to do it."
        )


def _announce(engine: str, warehouse_id: UUID, verdict: str, reason: str) -> None:
    """Log the verdict. A failure is logged as an error, because the warehouse stops trusting the engine immediately."""
    if verdict == FAILED:
        _log.error("engine_probe.failed", engine=engine, warehouse=str(warehouse_id), reason=reason)
    else:
        _log.info("engine_probe.passed", engine=engine, warehouse=str(warehouse_id))
