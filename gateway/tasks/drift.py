# SPDX-License-Identifier: Apache-2.0
"""What OpenFGA holds that no row wants, or lacks, and making both agree again.

Whatever is found is judged under the key's advisory lock, which deliveries take too, and a key that waits in the outbox
is nobody's drift: its delivery reads the rows anew. So looking for drift never fights a change that is under way.

The revision moves twice: when drift is found, so that no answer remembered until then is used again, and when it has
been mended, because an answer made in between may rest on it.
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
from gateway.access.door import Door
from gateway.access.operations.tasks import RepairDrift
from gateway.access.refs import ObjectType
from gateway.access.tuples import PrincipalType, TupleKey
from gateway.db import drift, grants, outbox, roles, users
from gateway.db.delivery import TupleDelivery
from gateway.db.desired_tuples import places, wanted
from gateway.db.engine import Connection, Database
from gateway.fga.client import MAX_TUPLES_PER_WRITE, FgaClient
from gateway.fga.stored import StoredTuple, bare, read_back
from gateway.tasks.drift_findings import External, Finding, Kind, Mended, finding_of
from gateway.tasks.system_admission import admitted

_log = structlog.get_logger("tasks.drift")

#: Keys that are judged and mended together: no more than one write of OpenFGA takes.
BATCH: Final = MAX_TUPLES_PER_WRITE
_READS_AT_ONCE: Final = 8


class DriftObserver(Protocol):
    """Is told what is found and mended, for metrics."""

    def drift_found(self, kind: str) -> None:
        """One tuple is not as the rows want it."""
        ...

    def drift_repaired(self, action: str) -> None:
        """One was mended, or left as the settings say."""
        ...

    def drift_checked(self, at: float) -> None:
        """The change feed was read to its end; `at` is seconds since the epoch."""
        ...


class DriftKeeper:
    """Judges tuples and mends them."""

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
        """`revoke_lost`: a grant that OpenFGA does not have is ended instead of written there again, and one that ends
        sooner there ends then.
        """
        self._revoke_lost = revoke_lost
        self._database = database
        self._client = client
        self._delivery = delivery
        self._door = door
        self._observer = observer
        self._external = external

    async def wants(self, keys: Sequence[TupleKey]) -> dict[TupleKey, datetime | None]:
        """Which of `keys` the rows want at this moment, and until when. Says nothing of changes under way."""
        found: dict[TupleKey, datetime | None] = {}
        async with self._database.read() as connection:
            for start in range(0, len(keys), BATCH):
                found.update(await wanted(connection, keys[start : start + BATCH]))
        return found

    async def judge(
        self, suspects: Sequence[TupleKey], strange: Sequence[StoredTuple] = (), *, quietly: bool = False
    ) -> list[Finding]:
        """What is really wrong with keys that looked wrong, and with tuples that are no key; the revisions of what they
        are about have moved when this returns, unless `quietly` was asked for.

        Raises DecisionEngineUnavailable, DatabaseUnavailable and CommitUnknown.
        """
        findings = [Finding(Kind.FOREIGN if each.known else Kind.UNKNOWN, each.raw, None, each) for each in strange]
        if not quietly and any(finding.kind is Kind.FOREIGN for finding in findings):
            await self._move_revisions(findings)
        keys = list(dict.fromkeys(suspects))
        for start in range(0, len(keys), BATCH):
            findings += await self._judge_batch(keys[start : start + BATCH], quietly)
        if not quietly:
            self._tell(findings)
        return findings

    def _tell(self, findings: Sequence[Finding]) -> None:
        for finding in findings:
            if finding.kind is Kind.UNKNOWN:
                _log.info("drift.unknown_found", tuple=finding.text)
            elif finding.is_drift:
                self._observer.drift_found(finding.kind.value)
                _log.warning("drift.found", kind=finding.kind.value, tuple=finding.text)

    async def _judge_batch(self, keys: Sequence[TupleKey], quietly: bool) -> list[Finding]:
        async with self._database.transaction() as connection:
            await outbox.lock_keys(connection, keys)
            busy = await drift.pending(connection, keys)
            free = [key for key in keys if key not in busy]
            wants = await wanted(connection, free)
            present = await self._read(free)
            moment = await drift.now(connection)
            judged = (finding_of(key, present.get(key), key in wants, wants.get(key), moment) for key in free)
            findings = [finding for finding in judged if finding is not None]
            if findings:
                # Asked again, last: what was changed since the rows were read waits there, for as long as its keys are
                # locked here, and neither the rows nor the tuples that were read tell of it together.
                changed = await drift.pending(connection, free)
                findings = [finding for finding in findings if finding.key not in changed]
            if not quietly:
                await _move(connection, [finding for finding in findings if finding.is_drift])
            return findings

    async def _read(self, keys: Sequence[TupleKey]) -> dict[TupleKey, StoredTuple]:
        """Those of `keys` that OpenFGA has, read one by one: there is no way to ask for several."""
        room = asyncio.Semaphore(_READS_AT_ONCE)

        async def one(key: TupleKey) -> tuple[TupleKey, StoredTuple | None]:
            asked = bare(key)
            async with room:
                reading = self._client.read(user=asked.user, relation=asked.relation, object=asked.object)
                found = [each async for each in reading]
            return key, read_back(found[0]) if found else None

        try:
            async with asyncio.TaskGroup() as together:
                tasks = [together.create_task(one(key)) for key in keys]
        except ExceptionGroup as failed:
            raise first_of(failed) from None
        return {key: stored for key, stored in (task.result() for task in tasks) if stored is not None}

    async def repair(self, findings: Sequence[Finding], *, task: str, run: UUID) -> dict[Mended, int]:
        """Mend what was found, at most `BATCH` in one go and one audit record; how many of each.

        Raises the door's refusals and outages: then what was not mended is found again.
        """
        done: dict[Mended, int] = dict.fromkeys(Mended, 0)
        ours = [finding for finding in findings if finding.kind is not Kind.UNKNOWN]
        for start in range(0, len(ours), BATCH):
            for finding, action in await self._repair_batch(ours[start : start + BATCH], task, run):
                done[action] += 1
                if finding.is_drift:
                    self._observer.drift_repaired(action.value)
                    _log.warning("drift.repaired", kind=finding.kind.value, action=action.value, tuple=finding.text)
        return done

    async def _repair_batch(self, findings: Sequence[Finding], task: str, run: UUID) -> list[tuple[Finding, Mended]]:
        operation = RepairDrift(
            tuples=tuple(finding.text for finding in findings), kinds=tuple(finding.kind.value for finding in findings)
        )
        judged: list[tuple[Finding, Mended]] = []
        async with admitted(self._door, task, str(run), operation) as permit:
            async with self._database.change(permit) as connection:
                await outbox.lock_keys(connection, [finding.key for finding in findings if finding.key is not None])
                follows: dict[TupleKey, None] = {}
                for finding in findings:
                    action, more = await self._decide(connection, finding)
                    judged.append((finding, action))
                    follows.update(dict.fromkeys(more))
                mended = [each.key for each, action in judged if each.key is not None and action is not Mended.LEFT]
                derived = [key for key in follows if key not in mended]
                pending = await _enqueue(connection, mended, takes_away=True)
                pending += await _enqueue(connection, derived, takes_away=False)
                permit.trail.tell(tuples="\n".join(f"{each.text}: {each.kind} {action}" for each, action in judged))
            await self._make_so([finding for finding, action in judged if action is not Mended.LEFT], pending)
        return judged

    async def _make_so(self, findings: Sequence[Finding], pending: Sequence[outbox.Pending]) -> None:
        """Carry out in OpenFGA what was decided, and move the revisions once more."""
        if strange := [finding.raw for finding in findings if finding.key is None]:
            await self._client.write(deletes=strange)
        await self._delivery.deliver(pending)
        await self._move_revisions(findings)

    async def _decide(self, connection: Connection, finding: Finding) -> tuple[Mended, Sequence[TupleKey]]:
        """(what is to be done, the keys that follow where the rows were changed)."""
        match finding.kind:
            case Kind.MISSING if self._revoke_lost and finding.lost_grant and finding.key is not None:
                disown = partial(drift.disown, connection)
                follows = await self._change_rows(connection, finding, finding.key, disown)
                return (Mended.REVOKED if follows else Mended.WRITTEN), follows
            case Kind.OTHER_CONDITION if self._revoke_lost and finding.key is not None and finding.ends_at is not None:
                shorten = partial(drift.shorten, connection, until=finding.ends_at)
                follows = await self._change_rows(connection, finding, finding.key, shorten)
                return (Mended.SHORTENED if follows else Mended.WRITTEN), follows
            case Kind.MISSING | Kind.OTHER_CONDITION:
                return Mended.WRITTEN, ()
            case Kind.UNWANTED if finding.external_grant:
                return await self._external_grant(connection, finding)
            case _:
                return Mended.REMOVED, ()

    async def _external_grant(self, connection: Connection, finding: Finding) -> tuple[Mended, Sequence[TupleKey]]:
        if self._external is External.REPORT:
            return Mended.LEFT, ()
        key, stored = finding.key, finding.stored
        if self._external is External.REMOVE or key is None or stored is None or not stored.plain:
            return Mended.REMOVED, ()
        if not await _may_be_adopted(connection, key):
            return Mended.REMOVED, ()
        adopt = partial(drift.adopt, connection, expires_at=stored.expires_at)
        follows = await self._change_rows(connection, finding, key, adopt)
        return (Mended.ADOPTED if follows else Mended.REMOVED), follows

    async def _change_rows(
        self,
        connection: Connection,
        finding: Finding,
        key: TupleKey,
        change: Callable[[TupleKey], Awaitable[Sequence[TupleKey]]],
    ) -> Sequence[TupleKey]:
        """Let the rows say what OpenFGA has; the keys that follow, none where somebody gave, took away or wrote the
        grant since it was found: then nothing is changed here, and the rows hold.
        """
        there = (await self._read([key])).get(key)
        if (there and there.raw) != (finding.stored and finding.stored.raw):
            return ()
        async with connection.begin_nested() as untouched:
            follows = await change(key)
            # Asked last: whoever changed the grant before this did left its key there, and whoever changes it now has
            # to wait for this.
            if await drift.pending(connection, [key]):
                await untouched.rollback()
                return ()
        return follows

    async def _move_revisions(self, findings: Sequence[Finding]) -> None:
        async with self._database.transaction() as connection:
            await _move(connection, findings)

    async def move_all_revisions(self) -> None:
        """Fresh revisions for everything, for when nobody can tell what differed."""
        async with self._database.transaction() as connection:
            await drift.move_all_revisions(connection)


OUTAGES: Final = (DecisionEngineUnavailable, DatabaseUnavailable, CommitUnknown)
"""What ends a look for drift until the next one."""


async def _may_be_adopted(connection: Connection, key: TupleKey) -> bool:
    """Whether the grant could have been given the ordinary way: both ends exist, and it nests no role in another.

    Membership of roles in roles has a rule of its own (no cycles) that needs more than one tuple to judge.
    """
    if key.object.type is ObjectType.ROLE and key.subject.type is PrincipalType.ROLE:
        return False
    known = users.exist if key.subject.type is PrincipalType.USER else roles.exist
    if not await known(connection, [key.subject.id]):
        return False
    return await grants.hold_object(connection, key.object)


async def _move(connection: Connection, findings: Iterable[Finding]) -> None:
    """Fresh revisions for the warehouses that findings are about, and the server's for what lies in none."""
    some = list(findings)
    if not some:
        return
    objects = [None if finding.key is None else finding.key.object for finding in some]
    where = await places(connection, [on for on in objects if on is not None])
    within = {None if on is None else where[on].warehouse_id for on in objects}
    await drift.move_revisions(
        connection, within=[each for each in within if each is not None], server_too=None in within
    )


async def _enqueue(connection: Connection, keys: Sequence[TupleKey], *, takes_away: bool) -> list[outbox.Pending]:
    where = await places(connection, [key.object for key in keys])
    return await outbox.enqueue_each(
        connection, [(key, where[key.object].warehouse_id) for key in keys], takes_away=takes_away
    )


def a_run() -> UUID:
    """The id of one look for drift, which its audit records share."""
    run: UUID = uuid7()
    return run
