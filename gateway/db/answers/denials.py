# SPDX-License-Identifier: Apache-2.0
"""Read the audit record of a refused request."""

from __future__ import annotations

from typing import Final
from uuid import UUID

import msgspec
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.audit.audit_record import AuditRecord
from gateway.db.schema.audit import audit_log

_records: Final = msgspec.json.Decoder(AuditRecord)


async def denial(connection: AsyncConnection, id: UUID) -> AuditRecord | None:
    """Return the record with this id; None if there is none, or if it is of another format than this version's."""
    statement = select(audit_log.c.record).where(audit_log.c.id == id)
    record = (await connection.execute(statement)).scalar_one_or_none()
    if record is None:
        return None
    try:
        return _records.decode(record)
    except msgspec.ValidationError:
        return None
