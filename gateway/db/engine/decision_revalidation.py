# SPDX-License-Identifier: Apache-2.0
"""Revalidate a decision before commit or vending: read the revisions again, and decide again if one has changed.

A revision is a random value of the server or of a warehouse that changes whenever a right may have ended.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import TextClause, any_, bindparam, cast, null, select, text, true, union_all
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.audit.audit_record import encode_record
from gateway.access.dependency_errors import DecisionEngineUnavailable
from gateway.access.door.permit import Permit
from gateway.access.nouns.resolved import Resolution
from gateway.access.operation import HttpOperation, Operation
from gateway.db.engine import policy_loss, vacated_names
from gateway.db.engine.event_outbox import EVENTS_CTE, EventOutbox, event_values
from gateway.db.engine.idempotency_claims import in_progress
from gateway.db.pools.compiled_reads import DirectRead
from gateway.db.pools.rows import fetch_all
from gateway.db.schema.warehouses import server, warehouses

#: Limit of new decisions for one permit. Repair of a tuple that was written directly into OpenFGA changes a revision
#: three times (found, delivered, repaired). That alone must not fail a request. The limit bounds the transaction that
#: waits for the decisions.
_DECIDED_ANEW = 3


class Revision(NamedTuple):
    """The revisions of the server or of a warehouse. The server is always active, and has no data policy revision."""

    id: UUID
    revision: UUID
    data_policy_revision: UUID | None
    active: bool


#: The revisions of the server and of the warehouses `ids`.
REVISIONS = DirectRead(
    union_all(
        select(
            server.c.id,
            server.c.revision,
            cast(null(), server.c.id.type).label("data_policy_revision"),
            true().label("active"),
        ),
        select(warehouses.c.id, warehouses.c.revision, warehouses.c.data_policy_revision, warehouses.c.active).where(
            warehouses.c.id == any_(bindparam("ids", type_=ARRAY(server.c.id.type)))
        ),
    ),
    Revision,
)

ReadRevisions = Callable[[Mapping[str, Any]], Awaitable[Sequence[Revision]]]
"""Returns the rows of `REVISIONS` for the given parameters."""


async def revalidate_decision(connection: AsyncConnection, permit: Permit[Operation]) -> Resolution:
    """Revalidate the decision of `permit` on the connection of a transaction; see `revalidate_by`."""
    return await revalidate_by(partial(fetch_all, connection, Revision, REVISIONS.statement), permit)


async def revalidate_by(read: ReadRevisions, permit: Permit[Operation]) -> Resolution:
    """Return the resolution that `permit` depends on now.

    It is the resolution of the permit if no revision changed, else that of a new decision. The door decides again if a
    revision changed, or if a warehouse is inactive and the operation needs an active one. Its refusal is raised. Raises
    DecisionEngineUnavailable if revisions also change during each new decision. A deleted row causes no new decision,
    because the statement of the change fails on it.
    """
    resolution = permit.resolution
    needs_active = permit.operation.is_of_catalog()
    for _ in range(_DECIDED_ANEW):
        if not await _moved(read, resolution, needs_active):
            return resolution
        resolution = await permit.revalidate()
    if await _moved(read, resolution, needs_active):
        raise DecisionEngineUnavailable("the rights of the caller changed during each attempt of the decision")
    return resolution


async def _moved(read: ReadRevisions, resolution: Resolution, needs_active: bool) -> bool:
    known = resolution.warehouses()
    rows = await read({"ids": list(known)})
    if needs_active and not all(row.active for row in rows):
        return True
    now = {row.id: row.revision for row in rows}
    within = any(now.get(id, revision) != revision for id, revision in known.items())
    policies = resolution.data_policy_revisions()
    if any(policies.get(row.id) != row.data_policy_revision for row in rows):
        return True
    (of_server,) = [revision for id, revision in now.items() if id not in known]
    return within or of_server != resolution.revision


async def revalidate_and_record(
    connection: AsyncConnection, permit: Permit[Operation], outbox: EventOutbox | None = None
) -> None:
    """Revalidate the decision of a change. Write its audit record, its events and the result under its idempotency key.

    One statement does all of it, as the last step before COMMIT. It writes nothing if a revision changed. The door then
    decides again, and the statement is repeated. It also writes nothing if the transaction gave the name of a
    restricted object to another object and the loss of restrictions is not settled yet (`policy_loss`). Raises the
    refusal of the door, DecisionEngineUnavailable as `revalidate_decision` does, DataPolicyLost, and RequestInProgress
    if another attempt claimed the key.
    """
    resolution = permit.resolution
    losses: Sequence[policy_loss.Loss] = ()
    left = _DECIDED_ANEW
    while True:
        row = (await connection.execute(*_recording(permit, resolution, outbox))).one()
        if row.taken:
            losses = await policy_loss.settle(connection, permit, resolution)
        elif not row.moved:
            if row.fulfilled == 0:
                raise in_progress()
            return
        elif left:
            left -= 1
            resolution = await permit.revalidate()
            await policy_loss.require_permitted(permit, losses, resolution)
        else:
            raise DecisionEngineUnavailable("the rights of the caller changed during each attempt of the decision")


def _recording(
    permit: Permit[Operation], resolution: Resolution, outbox: EventOutbox | None
) -> tuple[TextClause, dict[str, Any]]:
    """Return the statement of `revalidate_and_record` and its values."""
    known, policies = resolution.warehouses(), resolution.data_policy_revisions()
    record, claim = permit.pending_audit.record, permit.claim
    values: dict[str, Any] = {
        "server_revision": resolution.revision,
        "warehouses": list(known),
        "revisions": list(known.values()),
        "data_policy_revisions": [policies[id] for id in known],
        "needs_active": permit.operation.is_of_catalog(),
        "id": record.id,
        "at": record.at,
        "request_id": record.request_id,
        "actor_id": record.actor.id,
        "operation": record.operation,
        "outcome": record.outcome,
        "record": encode_record(record),
    }
    announced = event_values(outbox, permit)
    values |= announced or {}
    if claim is None or not isinstance(permit.operation, HttpOperation):
        return _RECORD if announced is None else _RECORD_AND_ANNOUNCE, values
    values |= {
        "scope": claim.scope,
        "attempt": claim.attempt,
        "status": permit.operation.returns,
        "detail": dict(record.detail),
        "keep": claim.keep_seconds,
    }
    return _RECORD_AND_FULFIL if announced is None else _RECORD_ANNOUNCE_AND_FULFIL, values


# A data policy revision that this transaction wrote does not count as changed: operations on policies and tags
# write it themselves (`data_policy_revisions.touch`), and their decisions do not depend on data policies.
#
# A deleted warehouse does not count as changed: the statement of the change fails on it. An audit record that exists
# was committed by an earlier attempt whose response was lost.
_MOVED: Final = f"""
    taken as materialized (select exists ({vacated_names.TAKEN}) as it),
    moved as materialized (
        select (select it from taken)
            or exists (select 1 from server s where s.revision is distinct from cast(:server_revision as uuid))
            or exists (
                select 1 from unnest(
                    cast(:warehouses as uuid[]), cast(:revisions as uuid[]), cast(:data_policy_revisions as uuid[]))
                    as known(id, revision, data_policy_revision)
                join warehouses w on w.id = known.id
                where w.revision is distinct from known.revision
                    or (w.data_policy_revision is distinct from known.data_policy_revision
                        and w.xmin <> pg_current_xact_id()::xid)
                    or (cast(:needs_active as boolean) and not w.active)) as it),
    recorded as (
        insert into audit_log (id, at, request_id, actor_id, operation, outcome, record)
        select cast(:id as uuid), cast(:at as timestamptz), cast(:request_id as text), cast(:actor_id as text),
            cast(:operation as text), cast(:outcome as text), cast(:record as bytea)
        from moved where not it
        on conflict (id) do nothing)
"""  # noqa: S608 - composed of constants; every value is a bound parameter


def _record(events: str) -> TextClause:
    answer = "select moved.it as moved, taken.it as taken, null as fulfilled from moved, taken"
    return text(f"with {_MOVED}{events} {answer}")


def _record_and_fulfil(events: str) -> TextClause:
    return text(
        f"""
        with {_MOVED}{events},
        fulfilled as (
            update idempotency set status = cast(:status as integer), detail = :detail,
                written_in = pg_current_xact_id()::text::bigint,
                expires_at = clock_timestamp() + make_interval(secs => cast(:keep as double precision))
            from moved where not it and scope = cast(:scope as bytea) and attempt = cast(:attempt as uuid)
            returning 1)
        select moved.it as moved, taken.it as taken, (select count(*) from fulfilled) as fulfilled from moved, taken
        """  # noqa: S608 - composed of constants; every value is a bound parameter
    ).bindparams(bindparam("detail", type_=JSONB))


_RECORD: Final = _record("")
_RECORD_AND_ANNOUNCE: Final = _record(EVENTS_CTE)
_RECORD_AND_FULFIL: Final = _record_and_fulfil("")
_RECORD_ANNOUNCE_AND_FULFIL: Final = _record_and_fulfil(EVENTS_CTE)
