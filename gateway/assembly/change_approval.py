# SPDX-License-Identifier: Apache-2.0
"""Create the approval of changes from the verifiers of this gateway."""

from __future__ import annotations

from gateway.db.engine.database import Database
from gateway.features.approvals.change_approval import ChangeApproval
from gateway.settings import Settings
from gateway.verification.panel import Panel


def open_change_approval(settings: Settings, database: Database, panel: Panel | None) -> ChangeApproval:
    """Return the approval of changes. Without a `panel` it approves every change and costs nothing."""
    return ChangeApproval(database=database, panel=panel, lifetime=settings.change_tickets.lifetime)
