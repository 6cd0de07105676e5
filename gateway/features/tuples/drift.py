# SPDX-License-Identifier: Apache-2.0
"""Find and repair drift: tuples in OpenFGA that no row requires, and tuples that are missing there.

A finding is verified under the advisory lock of its key, which deliveries use too. A key in the outbox is not drift,
because its delivery will read the rows again. So the repair of drift never conflicts with a change in progress.

The revision, by which cached decisions are keyed, changes twice: when drift is found, which invalidates decisions
cached until then, and after the repair, because decisions made in between may depend on the drift.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Final, Protocol
from uuid import UUID

import structlog
from uuid_utils.compat import uuid7

from gateway.access.dependency_errors import CommitUnknown, DatabaseUnavailable, DecisionEngineUnavailable, first_of
from gateway.access.door.door import Door
from gateway.access.nouns.refs import ObjectType
from gateway.access.operations.tasks import RepairDrift
from gateway.access.tuples import PrincipalType, TupleKey
from gateway.db.engine.database import Connection, Database
from gateway.db.grants import grants
from gateway.db.principals import roles, users
from gateway.db.tuples import outbox
from gateway.db.tuples.delivery import TupleDelivery
from gateway.db.tuples.desired_tuples import containers_of, desired_tuples
from gateway.db.warehouses import drift
from gateway.features.kit import admitted
from gateway.features.tuples.drift_findings import External, Finding, Kind, RepairAction, announced_repairs, finding_of
from gateway.fga.client import MAX_TUPLES_PER_WRITE, FgaClient
from gateway.fga.relationships import StoredTuple, bare, read_back

_log = structlog.get_logger("tasks.drift")

#: The number of keys that are verified and repaired together, the maximum of one OpenFGA write.
BATCH: Final = MAX_TUPLES_PER_WRITE
_READS_AT_ONCE: Final = 8


class DriftObserver(Protocol):
    """Receiver of the numbers of findings and repairs, for metrics."""

    def drift_found(self, kind: str) -> None:
        """Record one tuple that differs from the rows."""
        ...

    def drift_repaired(self, action: str) -> None:
        """Record the action that was taken on one tuple (a value of `RepairAction`)."""
        ...

    def drift_checked(self, at: float) -> None:
        """Record that the change feed was read to its end at time `at`, in seconds since the epoch."""
        ...


class DriftKeeper:
    """Verifies findings about tuples and repairs them."""

    def __init__(
        self,
        *,
        database: Database,
        client: FgaClient,
        delivery: TupleDelivery,
        door: Door,
        observer: DriftObserver,
        external: External,
        revoke_lost: bool = False,
    ) -> None:
        """Configure the repair. With `revoke_lost`, a grant that is missing in OpenFGA is revoked instead of written
        again, and a grant that expires earlier in OpenFGA gets that expiry.
        """
        self._revoke_lost = revoke_lost
        self._database = database
        self._client = client
        self._delivery = delivery
        self._door = door
        self._observer = observer
        self._external = external

    async def desired(self, keys: Sequence[TupleKey]) -> dict[TupleKey, datetime | None]:
        """Return the keys that the rows require now, with their expiry (None: no expiry). Keys of changes in progress
        are left out.
        """
        found: dict[TupleKey, datetime | None] = {}
        async with self._database.read() as connection:
            for start in range(0, len(keys), BATCH):
                found.update(await desired_tuples(connection, keys[start : start + BATCH]))
        return found

    async def verify(
        self, suspects: Sequence[TupleKey], unmapped: Sequence[StoredTuple] = (), *, quietly: bool = False
    ) -> list[Finding]:
        """Return the confirmed findings about suspect keys and about `unmapped` tuples, which are not keys of the
        gateway.

        Unless `quietly`, the revisions of the affected objects have changed on return, and findings are logged and
        counted. Raises DecisionEngineUnavailable, DatabaseUnavailable and CommitUnknown.
        """
        findings = [Finding(Kind.FOREIGN if each.known else Kind.UNKNOWN, each.raw, None, each) for each in unmapped]
        if not quietly and any(finding.kind is Kind.FOREIGN for finding in findings):
            await self._move_revisions(findings)
        keys = list(dict.fromkeys(suspects))
        for start in range(0, len(keys), BATCH):
            findings += await self._verify_batch(keys[start : start + BATCH], quietly)
        if not quietly:
            self._report(findings)
        return findings

    def _report(self, findings: Sequence[Finding]) -> None:
        for finding in findings:
            if finding.kind is Kind.UNKNOWN:
                _log.info("drift.unknown_found", tuple=finding.text)
            elif finding.is_drift:
                self._observer.drift_found(finding.kind.value)
                _log.warning("drift.found", kind=finding.kind.value, tuple=finding.text)

    async def _verify_batch(self, keys: Sequence[TupleKey], quietly: bool) -> list[Finding]:
        async with self._database.transaction() as connection:
            await outbox.lock_keys(connection, keys)
            pending_keys = await drift.pending(connection, keys)
            settled_keys = [key for key in keys if key not in pending_keys]
            desired = await desired_tuples(connection, settled_keys)
            present = await self._read(settled_keys)
            moment = await drift.now(connection)
            verified = (
                finding_of(key, present.get(key), key in desired, desired.get(key), moment) for key in settled_keys
            )
            findings = [finding for finding in verified if finding is not None]
            if findings:
                # No read may follow this one. A change that was committed since the rows were read has its keys in the
                # outbox, and the keys are locked here, so they cannot be delivered. So rows and tuples may be from
                # different moments.
                changed = await drift.pending(connection, settled_keys)
                findings = [finding for finding in findings if finding.key not in changed]
            if not quietly:
                await _move(connection, [finding for finding in findings if finding.is_drift])
            return findings

    async def _read(self, keys: Sequence[TupleKey]) -> dict[TupleKey, StoredTuple]:
        """Return {key: stored tuple} of those `keys` that are in OpenFGA. Each key is read by one call: the API cannot
        read several.
        """
        slots = asyncio.Semaphore(_READS_AT_ONCE)

        async def one(key: TupleKey) -> tuple[TupleKey, StoredTuple | None]:
            plain_key = bare(key)
            async with slots:
                reading = self._client.read(user=plain_key.user, relation=plain_key.relation, object=plain_key.object)
                found = [each async for each in reading]
            return key, read_back(found[0]) if found else None

        try:
            async with asyncio.TaskGroup() as together:
                tasks = [together.create_task(one(key)) for key in keys]
        except ExceptionGroup as failed:
            raise first_of(failed) from None
        return {key: stored for key, stored in (task.result() for task in tasks) if stored is not None}

    async def repair(self, findings: Sequence[Finding], *, task: str, run: UUID) -> dict[RepairAction, int]:
        """Repair the findings, at most `BATCH` per transaction and audit record. Return the number of tuples by action.

        Raises the door's refusals and the errors of outages. The next run finds again what was not repaired.
        """
        done: dict[RepairAction, int] = dict.fromkeys(RepairAction, 0)
        repairable = [finding for finding in findings if finding.kind is not Kind.UNKNOWN]
        for start in range(0, len(repairable), BATCH):
            for finding, action in await self._repair_batch(repairable[start : start + BATCH], task, run):
                done[action] += 1
                if finding.is_drift:
                    self._observer.drift_repaired(action.value)
                    _log.warning("drift.repaired", kind=finding.kind.value, action=action.value, tuple=finding.text)
        return done

    async def _repair_batch(
        self, findings: Sequence[Finding], task: str, run: UUID
    ) -> list[tuple[Finding, RepairAction]]:
        operation = RepairDrift(
            tuples=tuple(finding.text for finding in findings), kinds=tuple(finding.kind.value for finding in findings)
        )
        verified: list[tuple[Finding, RepairAction]] = []
        async with admitted(self._door, task, str(run), operation) as permit:
            async with self._database.change(permit) as connection:
                await outbox.lock_keys(connection, [finding.key for finding in findings if finding.key is not None])
                follows: dict[TupleKey, None] = {}
                for finding in findings:
                    action, more = await self._decide(connection, finding)
                    verified.append((finding, action))
                    follows.update(dict.fromkeys(more))
                mended = [
                    each.key for each, action in verified if each.key is not None and action is not RepairAction.LEFT
                ]
                derived = [key for key in follows if key not in mended]
                pending = await _enqueue(connection, mended, takes_away=True)
                pending += await _enqueue(connection, derived, takes_away=False)
                if self._database.announces and (changes := await announced_repairs(connection, verified)):
                    permit.pending_audit.further_changes = changes.all
                permit.pending_audit.add_details(
                    tuples="\n".join(f"{each.text}: {each.kind} {action}" for each, action in verified)
                )
            await self._apply([finding for finding, action in verified if action is not RepairAction.LEFT], pending)
        return verified

    async def _apply(self, findings: Sequence[Finding], pending: Sequence[outbox.Pending]) -> None:
        """Apply the decided repairs to OpenFGA, and change the revisions of the affected objects again."""
        if unmapped := [finding.raw for finding in findings if finding.key is None]:
            await self._client.write(deletes=unmapped)
        await self._delivery.deliver(pending)
        await self._move_revisions(findings)

    async def _decide(self, connection: Connection, finding: Finding) -> tuple[RepairAction, Sequence[TupleKey]]:
        """Decide the repair of a finding, and change rows where it requires that. Return (action, keys of the tuples
        that the changed rows require).
        """
        match finding.kind:
            case Kind.MISSING if self._revoke_lost and finding.lost_grant and finding.key is not None:
                disown = partial(drift.end_grant, connection)
                follows = await self._change_rows(connection, finding, finding.key, disown)
                return (RepairAction.REVOKED if follows else RepairAction.WRITTEN), follows
            case Kind.OTHER_CONDITION if self._revoke_lost and finding.key is not None and finding.ends_at is not None:
                shorten = partial(drift.set_expiry, connection, until=finding.ends_at)
                follows = await self._change_rows(connection, finding, finding.key, shorten)
                return (RepairAction.SHORTENED if follows else RepairAction.WRITTEN), follows
            case Kind.MISSING | Kind.OTHER_CONDITION:
                return RepairAction.WRITTEN, ()
            case Kind.UNWANTED if finding.external_grant:
                return await self._external_grant(connection, finding)
            case _:
                return RepairAction.REMOVED, ()

    async def _external_grant(
        self, connection: Connection, finding: Finding
    ) -> tuple[RepairAction, Sequence[TupleKey]]:
        if self._external is External.REPORT:
            return RepairAction.LEFT, ()
        key, stored = finding.key, finding.stored
        if self._external is External.REMOVE or key is None or stored is None or not stored.plain:
            return RepairAction.REMOVED, ()
        if not await _may_be_adopted(connection, key):
            return RepairAction.REMOVED, ()
        adopt = partial(drift.adopt, connection, expires_at=stored.expires_at)
        follows = await self._change_rows(connection, finding, key, adopt)
        return (RepairAction.ADOPTED if follows else RepairAction.REMOVED), follows

    async def _change_rows(
        self,
        connection: Connection,
        finding: Finding,
        key: TupleKey,
        change: Callable[[TupleKey], Awaitable[Sequence[TupleKey]]],
    ) -> Sequence[TupleKey]:
        """Apply `change` to the rows, so that they match OpenFGA. Return the keys of the tuples that the changed rows
        require.

        If the grant or its tuple changed since the finding, nothing is changed and no key is returned: then the rows
        are authoritative.
        """
        current = (await self._read([key])).get(key)
        if (current and current.raw) != (finding.stored and finding.stored.raw):
            return ()
        async with connection.begin_nested() as untouched:
            follows = await change(key)
            # No read may follow this one. If the grant was changed before, its key is in the outbox. A concurrent
            # change has to wait for this transaction.
            if await drift.pending(connection, [key]):
                await untouched.rollback()
                return ()
        return follows

    async def _move_revisions(self, findings: Sequence[Finding]) -> None:
        async with self._database.transaction() as connection:
            await _move(connection, findings)

    async def move_all_revisions(self) -> None:
        """Change all revisions. For cases in which it is unknown which objects were affected."""
        async with self._database.transaction() as connection:
            await drift.move_all_revisions(connection)


OUTAGES: Final = (DecisionEngineUnavailable, DatabaseUnavailable, CommitUnknown)
"""Errors that end a drift check until the next one."""


async def _may_be_adopted(connection: Connection, key: TupleKey) -> bool:
    """Return True if the grant is one that the API could have created.

    Object and principal must exist. The grant must not make a role a member of a role: one tuple does not show whether
    nested roles form a cycle.
    """
    if key.object.type is ObjectType.ROLE and key.subject.type is PrincipalType.ROLE:
        return False
    known = users.exist if key.subject.type is PrincipalType.USER else roles.exist
    if not await known(connection, [key.subject.id]):
        return False
    return await grants.lock_object_shared(connection, key.object)


async def _move(connection: Connection, findings: Iterable[Finding]) -> None:
    """Change the revisions of the warehouses of the findings. For findings outside of warehouses, change the server's
    revision.
    """
    some = list(findings)
    if not some:
        return
    objects = [None if finding.key is None else finding.key.object for finding in some]
    where = await containers_of(connection, [on for on in objects if on is not None])
    within = {None if on is None else where[on].warehouse_id for on in objects}
    await drift.move_revisions(
        connection, within=[each for each in within if each is not None], server_too=None in within
    )


async def _enqueue(connection: Connection, keys: Sequence[TupleKey], *, takes_away: bool) -> list[outbox.Pending]:
    where = await containers_of(connection, [key.object for key in keys])
    return await outbox.enqueue_each(
        connection, [(key, where[key.object].warehouse_id) for key in keys], takes_away=takes_away
    )


def new_run_id() -> UUID:
    """Return a new id of a drift check, which its audit records share."""
    run: UUID = uuid7()
    return run
