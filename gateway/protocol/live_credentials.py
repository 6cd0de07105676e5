# SPDX-License-Identifier: Apache-2.0
"""Bodies of the endpoints for live credentials."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from gateway.protocol.base import Answer


class LiveCredential(Answer, frozen=True, omit_defaults=True):
    """A credential that left this server and may still be valid. The secret itself is stored nowhere.

    `principal` is the user that received it, `engine` the engine that acted for the user, and `view-owner` the owner of
    the definer view whose right was used. Exactly one of `table-id` and `generic-table-id` is present; the table may be
    deleted. `session-name` is in the logs of the store. `policy-digest` is the SHA-256 of the session policy.
    `expires-at` is the expiry that the store stated; by `live-until` the credential has expired by every clock.
    """

    id: UUID
    principal: str
    warehouse_id: UUID
    prefix: str
    level: str
    provider: str
    session_name: str
    policy_digest: str
    issued_at: datetime
    expires_at: datetime
    live_until: datetime
    table_id: UUID | None = None
    generic_table_id: UUID | None = None
    assumed_role: UUID | None = None
    engine: str | None = None
    view_owner: str | None = None


class LiveCredentialList(Answer, frozen=True, omit_defaults=True):
    """Response of `GET …/live-credentials`: the oldest credentials first."""

    live_credentials: list[LiveCredential]
    next_page_token: str | None = None
