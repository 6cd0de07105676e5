# SPDX-License-Identifier: Apache-2.0
"""Statements on audit records."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from sqlalchemy.dialects.postgresql import insert as sql_insert
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.audit_record import AuditRecord
from gateway.db.schema.audit_log import audit_log

_encoder = msgspec.json.Encoder()


async def insert(connection: AsyncConnection, records: Sequence[AuditRecord]) -> None:
    """Write the records in one statement. One that is there already is left as it is: it was committed by a statement
    whose answer got lost.
    """
    await connection.execute(
        sql_insert(audit_log).on_conflict_do_nothing(index_elements=["id"]),
        [
            {
                "id": record.id,
                "at": record.at,
                "request_id": record.request_id,
                "actor_id": record.actor.id,
                "operation": record.operation,
                "outcome": record.outcome,
                "record": _encoder.encode(record),
            }
            for record in records
        ],
    )
