# SPDX-License-Identifier: Apache-2.0
"""Statements on audit records."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.audit_record import AuditRecord
from gateway.access.audit_size import encode_record

_INSERT = text(
    """
    insert into audit_log (id, at, request_id, actor_id, operation, outcome, record)
    select * from unnest(cast(:ids as uuid[]), cast(:times as timestamptz[]), cast(:request_ids as text[]),
        cast(:actor_ids as text[]), cast(:operations as text[]), cast(:outcomes as text[]), cast(:records as bytea[]))
    on conflict (id) do nothing
    """
)


async def insert(connection: AsyncConnection, records: Sequence[AuditRecord]) -> None:
    """Write audit records in one statement. Skip records that exist: an earlier attempt committed them and its answer
    was lost.
    """
    values = {
        "ids": [record.id for record in records],
        "times": [record.at for record in records],
        "request_ids": [record.request_id for record in records],
        "actor_ids": [record.actor.id for record in records],
        "operations": [record.operation for record in records],
        "outcomes": [record.outcome for record in records],
        "records": [encode_record(record) for record in records],
    }
    await connection.execute(_INSERT, values)
