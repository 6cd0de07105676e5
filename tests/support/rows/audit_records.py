# SPDX-License-Identifier: Apache-2.0
"""Audit records for tests that store or send them."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from gateway.access.audit.audit_record import AUDIT_FORMAT, AuditedActor, AuditedDecision, AuditRecord


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
