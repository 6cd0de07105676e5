# SPDX-License-Identifier: Apache-2.0
"""Statements on audit records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.audit_record import AuditRecord
from gateway.access.audit_size import encode_record
from gateway.db.compiled_reads import DirectRead

#: It can be repeated: records that exist are skipped. An earlier attempt committed them and its answer was lost.
INSERT = DirectRead(
    text("""
    insert into audit_log (id, at, request_id, actor_id, operation, outcome, record)
    select * from unnest(cast(:ids as uuid[]), cast(:times as timestamptz[]), cast(:request_ids as text[]),
        cast(:actor_ids as text[]), cast(:operations as text[]), cast(:outcomes as text[]), cast(:records as bytea[]))
    on conflict (id) do nothing
    """)
)


async def insert(connection: AsyncConnection, records: Sequence[AuditRecord]) -> None:
    """Write audit records in one statement of a transaction. Skip records that exist."""
    await connection.execute(INSERT.statement, parameters_of(records))


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
