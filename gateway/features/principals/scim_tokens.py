# SPDX-License-Identifier: Apache-2.0
"""Issue, list and revoke tokens for SCIM provisioning: `lakegate secrets scim-token`."""

from __future__ import annotations

from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from gateway.access.actor import provisioner_of
from gateway.access.door.door import Door
from gateway.access.operations.tasks import IssueScimToken, RevokeScimToken
from gateway.db.engine.database import Database
from gateway.db.principals import scim_tokens, users
from gateway.db.warehouses import projects
from gateway.features.kit import admitted

TASK: Final = "scim_tokens"


class NoSuchProject(Exception):
    """The project of a token does not exist."""


class Issued(msgspec.Struct, frozen=True, kw_only=True):
    """A new token. The token itself is shown once and not stored."""

    id: UUID
    user_id: str
    expires_at: datetime


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """The stored facts about an issued token. `state` is `good`, `over` (expired) or `revoked`."""

    id: UUID
    provider_id: str
    project_id: str
    expires_at: datetime
    state: str


async def issue(
    *, database: Database, door: Door, id: UUID, digest: bytes, provider_id: str, project_id: str, days: int
) -> Issued:
    """Store the digest of a new token, and create the user record of the provider's directory. `days` is its lifetime.

    Raises NoSuchProject, the error of a policy refusal, and the errors of outages.
    """
    user_id = provisioner_of(provider_id)
    operation = IssueScimToken(provider_id, project_id, days)
    async with (
        admitted(door, TASK, str(uuid7()), operation) as permit,
        database.change(permit) as connection,
    ):
        if not await projects.exists_with(connection, project_id):
            raise NoSuchProject(f"The project {project_id} does not exist.")
        permit.pending_audit.add_details(scim_token=str(id), user_id=user_id)
        await users.upsert(
            connection,
            id=user_id,
            profile=users.Profile(name=f"Directory of {provider_id} (SCIM)", user_type="application"),
            address=None,
            by="scim",
            update_if_exists=False,
        )
        ends = await scim_tokens.store(
            connection, id=id, provider_id=provider_id, project_id=project_id, digest=digest, days=days
        )
    return Issued(id=id, user_id=user_id, expires_at=ends)


async def revoke(*, database: Database, door: Door, id: UUID) -> bool:
    """Revoke a token, from the next request on. Return False if no valid token has this id. Raises the errors of
    `issue`.
    """
    async with (
        admitted(door, TASK, str(uuid7()), RevokeScimToken(id)) as permit,
        database.change(permit) as connection,
    ):
        ended = await scim_tokens.revoke(connection, id)
        permit.pending_audit.add_details(revoked=str(ended).lower())
    return ended


async def list_all(database: Database) -> list[Known]:
    """Return all issued tokens, newest first. Raises DatabaseUnavailable."""
    async with database.read() as connection:
        rows = await scim_tokens.list_all(connection)
    return [
        Known(
            id=row.id,
            provider_id=row.provider_id,
            project_id=row.project_id,
            expires_at=row.expires_at,
            state="good" if row.good else "over" if row.revoked_at is None else "revoked",
        )
        for row in rows
    ]
