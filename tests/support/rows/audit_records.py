# SPDX-License-Identifier: Apache-2.0
"""Audit records for tests that store or send them."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from uuid_utils.compat import uuid7

from gateway.access.audit.audit_record import AUDIT_FORMAT, AuditedActor, AuditedDecision, AuditRecord
from gateway.db.audit import audit_log
from gateway.db.engine.database import Database


def allowed_record(id: UUID, at: datetime, *, request_id: str = "request") -> AuditRecord:
    """Return the record of a load that was allowed to one user."""
    return AuditRecord(
        id=id,
        format=AUDIT_FORMAT,
        at=at,
        request_id=request_id,
        actor=AuditedActor(kind="user", id="oidc~alice"),
        decisions=(AuditedDecision(operation="load_table", outcome="allowed", determined_by="both"),),
    )


def recent_record(at: datetime | None = None) -> AuditRecord:
    return allowed_record(uuid7(), datetime.now(UTC) if at is None else at)


async def insert_records(database: Database, count: int, at: datetime | None = None) -> list[UUID]:
    records = [recent_record(at) for _ in range(count)]
    async with database.transaction() as connection:
        await audit_log.insert(connection, records)
    return [record.id for record in records]
