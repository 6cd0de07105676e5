# SPDX-License-Identifier: Apache-2.0
"""Statements on audit records, and on the entries in the register of live credentials that are committed with them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.audit.audit_record import AuditRecord, IssuedCredential, encode_record
from gateway.db.engine.event_outbox import ISSUED_CTE, EventOutbox, issued_values
from gateway.db.pools.compiled_reads import DirectRead
from gateway.scope.profile import CLOCK_TOLERANCE_SECONDS

#: The statement can be repeated. It skips existing records, which an earlier attempt committed whose response was lost.
_INSERT: Final = """
    insert into audit_log (id, at, request_id, actor_id, operation, outcome, record)
    select * from unnest(cast(:ids as uuid[]), cast(:times as timestamptz[]), cast(:request_ids as text[]),
        cast(:actor_ids as text[]), cast(:operations as text[]), cast(:outcomes as text[]), cast(:records as bytea[]))
    on conflict (id) do nothing
"""
INSERT = DirectRead(text(_INSERT))

#: One statement, so one transaction: the audit record and the row of the credential become durable together, before the
#: credential is sent. A cached credential already has its row. The expiry is computed from both clocks, the store's and
#: the database's, and `live_until` is later than both results: the lifetime in the store cannot have begun after this
#: statement.
_REGISTER: Final = f"""
    with registered as (
        insert into live_credentials (id, principal, assumed_role, engine, view_owner, project_id, warehouse_id, kind,
            table_id, prefix, level, provider, session_name, policy_digest, expires_at, live_until)
        select c.id, c.principal, c.assumed_role, c.engine, c.view_owner, c.project_id, c.warehouse_id, c.kind,
            c.table_id, c.prefix, c.level, c.provider, c.session_name, c.policy_digest, c.expires_at,
            greatest(c.expires_at, clock_timestamp() + make_interval(secs => c.seconds))
                + make_interval(secs => {CLOCK_TOLERANCE_SECONDS})
        from json_to_recordset(cast(cast(:issued as text) as json)) as c(id uuid, principal text, assumed_role uuid,
            engine text, view_owner text, project_id text, warehouse_id uuid, kind text, table_id uuid, prefix text,
            level text, provider text, session_name text, policy_digest text, expires_at timestamptz, seconds int)
        on conflict (id) do nothing)
"""  # noqa: S608 - composed of constants; every value is a bound parameter
_INSERT_BOTH = DirectRead(text(_REGISTER + _INSERT))
_INSERT_AND_ANNOUNCE = DirectRead(text(_REGISTER + ISSUED_CTE + _INSERT))


async def insert(connection: AsyncConnection, records: Sequence[AuditRecord]) -> None:
    """Write audit records in one statement of a transaction. Records that already exist are skipped."""
    await connection.execute(INSERT.statement, parameters_of(records))


def batch(
    records: Sequence[AuditRecord], issued: Sequence[IssuedCredential], outbox: EventOutbox | None = None
) -> tuple[DirectRead[Any], Mapping[str, Any]]:
    """Return the statement that writes records, register entries and credential events in one transaction, and its
    parameters.

    It can be repeated: existing records, entries and events are skipped.
    """
    parameters = parameters_of(records)
    if not issued:
        return INSERT, parameters
    parameters["issued"] = msgspec.json.encode(issued).decode()
    announced = issued_values(outbox, issued)
    if announced is None:
        return _INSERT_BOTH, parameters
    return _INSERT_AND_ANNOUNCE, parameters | announced


def parameters_of(records: Sequence[AuditRecord]) -> dict[str, Any]:
    """Return the parameters of `INSERT` for these records."""
    return {
        "ids": [record.id for record in records],
        "times": [record.at for record in records],
        "request_ids": [record.request_id for record in records],
        "actor_ids": [record.actor.id for record in records],
        "operations": [record.operation for record in records],
        "outcomes": [record.outcome for record in records],
        "records": [encode_record(record) for record in records],
    }


_SINCE: Final = text("select record from audit_log where at >= clock_timestamp() - cast(:age as interval) order by id")


async def records_since(connection: AsyncConnection, age: timedelta) -> AsyncIterator[bytes]:
    """Yield the records of at most this age as JSON, oldest first, without keeping them in memory."""
    rows = await connection.stream(_SINCE, {"age": age})
    async for row in rows:
        yield row.record
