# SPDX-License-Identifier: Apache-2.0
"""The entry of one issued credential in the register of live credentials. It contains no secret."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import msgspec


class IssuedCredential(msgspec.Struct, frozen=True, kw_only=True):
    """A credential in the hands of one principal, for one table or generic table.

    `principal` is the user that received it, `engine` the proven engine that acted for the user. Below a view that is
    read with its owner's rights, `view_owner` is that owner. `seconds` is the lifetime that was requested from the
    store, `expires_at` the expiry that the store stated. `policy_digest` is the SHA-256 of the session policy that
    confines the credential. The names of the fields are those of the columns; `request_id`, the first request that
    received it, is only for its event.
    """

    id: UUID
    request_id: str
    principal: str
    assumed_role: UUID | None
    engine: str | None
    view_owner: str | None
    project_id: str
    warehouse_id: UUID
    kind: str
    table_id: UUID
    prefix: str
    level: str
    provider: str
    session_name: str
    policy_digest: str
    seconds: int
    expires_at: datetime
